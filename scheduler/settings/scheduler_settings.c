#include "scheduler_settings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coord.h"
#include "dispatch.h"
#include "life_file.h"
#include "settings_form.h"
#include "settings_shared.h"
#include "store.h"

#define AT(member)   SETTING_AT(struct scheduler_settings, member)
#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* table: exempt from the length limit */
static const struct setting scheduler_table[] = {
    {.key = "name",
     .type = SETTING_TEXT,
     AT(name),
     .unit = "",
     .fallback = "",
     .form = form_name,
     .why = "Name of this replica for people: in the diary, in logs and in ZooKeeper. Empty: the "
            "host's name. Give each replica on one host its own."},
    {.key = "advertised_url",
     .type = SETTING_TEXT,
     AT(advertised_url),
     .unit = "",
     .fallback = "",
     .form = form_url,
     .why =
         "Where others reach this replica's HTTP server, as \"http://host:port\" without a path: "
         "another replica sends requests for the leader there. Empty: they wait for a leader that "
         "has one."},
    SHARED_HTTP_ADDRESS(struct scheduler_settings),
    {.key = "http_port",
     .type = SETTING_INT,
     AT(http_port),
     .min = 0,
     .max = 65535,
     .unit = "",
     .fallback = "9410",
     .why =
         "Port of the HTTP server: /, /livez, /readyz, /metrics, /requests. 0: any that is free, "
         "as the log says; give each daemon on one host its own."},
    {.key = "http_token_file",
     .type = SETTING_TEXT,
     AT(http_token_file),
     .unit = "",
     .fallback = "",
     .form = form_absolute_path,
     .around = around_secret_file,
     .why = "File (mode 0600) with the bearer token that /requests must bring; the same on all "
            "replicas. Empty: requests over HTTP are refused."},
    SHARED_HTTP_TLS_CERTIFICATE_FILE(struct scheduler_settings),
    SHARED_HTTP_TLS_KEY_FILE(struct scheduler_settings),
    {.key = "zookeeper",
     .type = SETTING_TEXT,
     AT(zookeeper),
     .unit = "",
     .form = form_zookeeper_servers,
     .why = "Servers, host:port,host:port; IPv6 without brackets (::1:2181). The protocol is clear "
            "text: tunnel it or isolate the network."},
    {.key = "zookeeper_root",
     .type = SETTING_TEXT,
     AT(zookeeper_root),
     .unit = "",
     .fallback = "/report-scheduler",
     .form = form_zookeeper_path,
     .why = "Node below which everything lives; one a installation. It is created when missing."},
    {.key = "zookeeper_digest_file",
     .type = SETTING_TEXT,
     AT(zookeeper_digest_file),
     .unit = "",
     .fallback = "",
     .form = form_absolute_path,
     .around = around_secret_file,
     .why = "File (mode 0600) with user:password, the same on all replicas; read at each new "
            "session. Nodes are then made so that only this identity can change them (docs/"
            "security.md, also for a tree that exists already). Empty: everybody can."},
    {.key = "zookeeper_session_ms",
     .type = SETTING_INT,
     AT(zookeeper_session_ms),
     .min = 1000,
     .max = 600000,
     .unit = "ms",
     .fallback = "10000",
     .why = "Session timeout T. A crashed leader is replaced after about T; a lower one makes "
            "short network trouble a change of leader. The servers allow 2 to 20 ticks."},
    {.key = "zookeeper_tick_ms",
     .type = SETTING_INT,
     AT(zookeeper_tick_ms),
     .min = 50,
     .max = 60000,
     .unit = "ms",
     .fallback = "2000",
     .why = "tickTime of the servers, which a client cannot see. Too low here makes the lease too "
            "long; keep the servers' at T/5 or less (T/8 makes takeovers shorter), and syncLimit * "
            "tickTime at T/2 or less."},
    {.key = "session_file",
     .type = SETTING_TEXT,
     AT(session_file),
     .unit = "",
     .fallback = "",
     .form = form_absolute_path,
     .around = around_own_file,
     .why =
         "File, in a directory of this user's on a local file system, that keeps the session's id "
         "and password while the process lives, for --close-dead-session after a crash; "
         "beside it FILE.lock. Give each replica on one host its own. Empty: session in the "
         "directory that systemd's RuntimeDirectory= made, without one none."},
    {.key = "lease_margin_ms",
     .type = SETTING_INT,
     AT(lease_margin_ms),
     .min = 100,
     .max = 60000,
     .unit = "ms",
     .fallback = "1000",
     .why = "Taken off the lease for a statement that was decided just before its end, and for "
            "clock rates. At least database_statement_ms."},
    {.key = "database",
     .type = SETTING_TEXT,
     AT(database),
     .unit = "",
     .secret = true,
     .form = store_tcp_conninfo_check,
     .why = "libpq connection string, by TCP, with user=report_scheduler. No pooler in transaction "
            "mode in between."},
    SHARED_DATABASE_PASSWORD_FILE(struct scheduler_settings),
    {.key = "database_connect_ms",
     .type = SETTING_INT,
     AT(database_connect_ms),
     .min = 100,
     .max = 60000,
     .unit = "ms",
     .fallback = "5000",
     .why = "Deadline of connecting to PostgreSQL and of verifying what is found there."},
    {.key = "database_statement_ms",
     .type = SETTING_INT,
     AT(database_statement_ms),
     .min = 100,
     .max = 10000,
     .unit = "ms",
     .fallback = "1000",
     .why = "Deadline of one statement; then it is cancelled and counts as unknown. At most "
            "lease_margin_ms."},
    {.key = "database_unhealthy_ms",
     .type = SETTING_INT,
     AT(database_unhealthy_ms),
     .min = 1000,
     .max = 600000,
     .unit = "ms",
     .fallback = "15000",
     .reloadable = true,
     .why = "A leader that had no successful statement for so long steps down: another replica may "
            "reach the database."},
    {.key = "establish_ms",
     .type = SETTING_INT,
     AT(establish_ms),
     .min = 1000,
     .max = 600000,
     .unit = "ms",
     .fallback = "15000",
     .reloadable = true,
     .why = "How long the first in line tries to make its generation the accepted one before it "
            "goes to the end of the line."},
    {.key = "scopes",
     .type = SETTING_LIST,
     AT(scopes),
     .unit = "",
     .fallback = "main",
     .form = form_name,
     .why = "Scopes this replica takes part in; each must exist in table scope. Replicas may name "
            "different ones."},
    {.key = "planner_batch",
     .type = SETTING_INT,
     AT(planner_batch),
     .min = 1,
     .max = 1000,
     .unit = "schedules",
     .fallback = "1000",
     .why =
         "Due schedules taken in one call. Lower it when calls come near database_statement_ms."},
    {.key = "tz_directory",
     .type = SETTING_TEXT,
     AT(tz_directory),
     .unit = "",
     .fallback = "",
     .form = form_absolute_path,
     .around = around_directory,
     .why = "Directory of compiled time zones. Empty: the system's (/usr/share/zoneinfo)."},
    {.key = "tz_poll_ms",
     .type = SETTING_INT,
     AT(tz_poll_ms),
     .min = 100,
     .max = 3600000,
     .unit = "ms",
     .fallback = "60000",
     .why = "How often the leader looks whether the time zone files have changed. They count once "
            "they have stood still for a twelfth of it."},
    {.key = "kafka_brokers",
     .type = SETTING_TEXT,
     AT(kafka_brokers),
     .unit = "",
     .form = form_kafka_brokers,
     .why = "host:port,host:port of Kafka. Kafka being away delays nothing but the hint to the "
            "workers."},
    SHARED_KAFKA_TOPIC(struct scheduler_settings),
    SHARED_KAFKA_PROPERTIES(struct scheduler_settings),
    SHARED_KAFKA_SECRET_FILES(struct scheduler_settings),
    {.key = "relay_window",
     .type = SETTING_INT,
     AT(relay_window),
     .min = 1,
     .max = 100000,
     .unit = "rows",
     .fallback = "2000",
     .why = "Outbox rows on their way to Kafka at once. More does not help unless brokers are far "
            "away."},
    {.key = "drain_ms",
     .type = SETTING_INT,
     AT(drain_ms),
     .min = 0,
     .max = 60000,
     .unit = "ms",
     .fallback = "5000",
     .reloadable = true,
     .why = "At an ordered stop, messages on their way to Kafka get so long to be acknowledged; "
            "the rest is sent again by the successor."},
    {.key = "stop_ms",
     .type = SETTING_INT,
     AT(stop_ms),
     .min = 1000,
     .max = 600000,
     .unit = "ms",
     .fallback = "20000",
     .reloadable = true,
     .why = "Bound of the whole ordered stop; then the process leaves, and its place in line falls "
            "by expiry. systemd's TimeoutStopSec must be longer."},
    {.key = "stuck_ms",
     .type = SETTING_INT,
     AT(stuck_ms),
     .min = 10000,
     .max = 3600000,
     .unit = "ms",
     .fallback = "30000",
     .why = "A thread that made no turn for so long is stuck: its statement is cancelled, its "
            "scope steps down, and systemd's watchdog is not fed. Above drain_ms and "
            "database_connect_ms together."},
    {.key = "observe_ms",
     .type = SETTING_INT,
     AT(observe_ms),
     .min = 1000,
     .max = 300000,
     .unit = "ms",
     .fallback = "5000",
     .why = "How often each replica reads the database's facts for the metrics, whoever leads: one "
            "statement of some milliseconds. Facts older than three times this vanish."},
    SHARED_LOG_LEVEL(struct scheduler_settings),
};

/* ---- what the host supplies ---- */

/* A replica's default name: the first label of the host's, in the alphabet of names. */
static void name_from_host(char *name, size_t size)
{
    char host[256] = "";
    (void)gethostname(host, sizeof host - 1);
    size_t n = 0;
    for (const char *p = host; *p != '\0' && *p != '.' && n + 1 < size; p++) {
        char c = *p;
        if (c >= 'A' && c <= 'Z') {
            c = (char)(c - 'A' + 'a');
        }
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c == '-' && n > 0)) {
            name[n++] = c;
        }
    }
    name[n] = '\0';
    if (n == 0) {
        (void)snprintf(name, size, "scheduler");
    }
}

/* ---- rules across keys ---- */

/* Is every one of these keys, which end in NULL, without a fault? */
static bool all_sound(const struct settings_judge *judge, const char *const *keys)
{
    for (; *keys != NULL; keys++) {
        if (!settings_sound(judge, *keys)) {
            return false;
        }
    }
    return true;
}

static void scopes_check(const struct scheduler_settings *s, struct settings_judge *judge)
{
    if (s->scopes.count == 0) {
        settings_fault(judge, "scopes", "is empty; write at least one scope");
    }
    if (s->scopes.count > COORD_SCOPES_MAX) {
        settings_fault(judge, "scopes", "has %zu scopes; write at most %d", s->scopes.count,
                       COORD_SCOPES_MAX);
    }
    shared_check_names(judge, "scopes", &s->scopes);
}

/* The lease begins when a quorum write is sent, and must be renewed twice before it can end. */
static void lease_check(const struct scheduler_settings *s, struct settings_judge *judge)
{
    static const char *const keys[] = {"zookeeper_session_ms", "zookeeper_tick_ms",
                                       "lease_margin_ms", NULL};
    if (!all_sound(judge, keys)) {
        return;
    }
    /* session >= tick + margin + 3 beats, where a beat is an eighth of the session, at most 1 s. */
    int64_t taken = s->zookeeper_tick_ms + s->lease_margin_ms;
    int64_t least = taken > 5000 ? taken + 3000 : (8 * taken + 4) / 5;
    if (s->zookeeper_session_ms < 2 * s->zookeeper_tick_ms ||
        s->zookeeper_session_ms > 20 * s->zookeeper_tick_ms) {
        settings_fault(judge, "zookeeper_session_ms",
                       "%lld is not within 2 to 20 ticks of %lld ms, which is what the servers "
                       "grant; write %lld to %lld, or correct zookeeper_tick_ms",
                       (long long)s->zookeeper_session_ms, (long long)s->zookeeper_tick_ms,
                       (long long)(2 * s->zookeeper_tick_ms),
                       (long long)(20 * s->zookeeper_tick_ms));
    } else if (s->zookeeper_session_ms < least) {
        settings_fault(judge, "zookeeper_session_ms",
                       "%lld leaves no lease after zookeeper_tick_ms and lease_margin_ms; write "
                       "at least %lld",
                       (long long)s->zookeeper_session_ms, (long long)least);
    }
}

static void statement_check(const struct scheduler_settings *s, struct settings_judge *judge)
{
    static const char *const keys[] = {"database_statement_ms", "lease_margin_ms",
                                       "database_unhealthy_ms", "database_connect_ms", NULL};
    if (!all_sound(judge, keys)) {
        return;
    }
    if (s->database_statement_ms > s->lease_margin_ms) {
        settings_fault(judge, "database_statement_ms",
                       "%lld is above lease_margin_ms, so that a statement decided under the "
                       "lease could end after it; write at most %lld, or raise lease_margin_ms",
                       (long long)s->database_statement_ms, (long long)s->lease_margin_ms);
    }
    int64_t least = s->database_connect_ms + s->database_statement_ms;
    if (s->database_unhealthy_ms < least) {
        settings_fault(judge, "database_unhealthy_ms",
                       "%lld leaves no time to connect again and try; write at least %lld "
                       "(database_connect_ms and database_statement_ms together)",
                       (long long)s->database_unhealthy_ms, (long long)least);
    }
}

static void stop_check(const struct scheduler_settings *s, struct settings_judge *judge)
{
    static const char *const keys[] = {
        "stuck_ms", "drain_ms", "database_connect_ms", "stop_ms", "database_statement_ms", NULL};
    if (!all_sound(judge, keys)) {
        return;
    }
    int64_t turn = s->drain_ms + s->database_connect_ms + s->database_statement_ms;
    if (s->stuck_ms <= turn) {
        settings_fault(judge, "stuck_ms",
                       "%lld is not above what one honest turn may take (drain_ms, "
                       "database_connect_ms and database_statement_ms together); write at least "
                       "%lld",
                       (long long)s->stuck_ms, (long long)(turn + 1));
    }
    int64_t least = s->drain_ms + 2 * s->database_statement_ms;
    if (s->stop_ms < least) {
        settings_fault(judge, "stop_ms",
                       "%lld is too short to drain and to release; write at least %lld (drain_ms "
                       "and twice database_statement_ms)",
                       (long long)s->stop_ms, (long long)least);
    }
}

static void scheduler_check(const void *settings, struct settings_judge *judge)
{
    const struct scheduler_settings *s = settings;
    scopes_check(s, judge);
    lease_check(s, judge);
    statement_check(s, judge);
    stop_check(s, judge);
    shared_check_tls(judge, s->http_tls_certificate_file, s->http_tls_key_file);
    shared_check_watchdog(judge, s->stuck_ms, "a stuck scope is killed before it could step down");
}

static void scheduler_complete(void *settings)
{
    struct scheduler_settings *s = settings;
    if (s->name[0] == '\0') {
        name_from_host(s->name, sizeof s->name);
    }
    if (s->session_file[0] == '\0') {
        life_file_default("session", s->session_file, sizeof s->session_file);
    }
}

const struct settings_spec scheduler_spec = {
    .table = scheduler_table,
    .count = COUNT(scheduler_table),
    .size = sizeof(struct scheduler_settings),
    .check = scheduler_check,
    .complete = scheduler_complete,
};
