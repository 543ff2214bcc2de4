#include "scheduler_settings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lease.h"
#include "log.h"

#define AT(member)                                                                                 \
    .offset = offsetof(struct scheduler_settings, member),                                         \
    .size = sizeof(((struct scheduler_settings *)0)->member)
#define COUNT(table) (sizeof(table) / sizeof(table)[0])

/* table: exempt from the length limit */
static const struct setting scheduler_table[] = {
    {.key = "name",
     .type = SETTING_TEXT,
     AT(name),
     .unit = "",
     .fallback = "",
     .why = "Name of this replica for people: in the diary, in logs and in ZooKeeper. Empty: the "
            "host's name. Give each replica on one host its own."},
    {.key = "advertised_url",
     .type = SETTING_TEXT,
     AT(advertised_url),
     .unit = "",
     .fallback = "",
     .why = "Where others reach this replica's HTTP server. It is published in ZooKeeper; the "
            "server itself is not built yet."},
    {.key = "zookeeper",
     .type = SETTING_TEXT,
     AT(zookeeper),
     .unit = "",
     .why = "Servers, host:port,host:port; IPv6 without brackets (::1:2181). The protocol is clear "
            "text: tunnel it or isolate the network."},
    {.key = "zookeeper_root",
     .type = SETTING_TEXT,
     AT(zookeeper_root),
     .unit = "",
     .fallback = "/report-scheduler",
     .why = "Node below which everything lives; one a installation. It is created when missing."},
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
     .why = "libpq connection string, by TCP, with user=report_scheduler. No pooler in transaction "
            "mode in between."},
    {.key = "database_password_file",
     .type = SETTING_TEXT,
     AT(database_password_file),
     .unit = "",
     .fallback = "",
     .why = "File with the password, readable by the daemon only. Empty: none is sent."},
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
     .why = "A leader that had no successful statement for so long steps down: another replica may "
            "reach the database."},
    {.key = "establish_ms",
     .type = SETTING_INT,
     AT(establish_ms),
     .min = 1000,
     .max = 600000,
     .unit = "ms",
     .fallback = "15000",
     .why = "How long the first in line tries to make its generation the accepted one before it "
            "goes to the end of the line."},
    {.key = "scopes",
     .type = SETTING_LIST,
     AT(scopes),
     .unit = "",
     .fallback = "main",
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
     .why = "Directory of compiled time zones. Empty: the system's (/usr/share/zoneinfo)."},
    {.key = "kafka_brokers",
     .type = SETTING_TEXT,
     AT(kafka_brokers),
     .unit = "",
     .why = "host:port,host:port of Kafka. Kafka being away delays nothing but the hint to the "
            "workers."},
    {.key = "kafka_topic",
     .type = SETTING_TEXT,
     AT(kafka_topic),
     .unit = "",
     .fallback = "report.dispatch.v1",
     .why = "Topic of the dispatch messages; the same as in worker.conf."},
    {.key = "kafka_properties",
     .type = SETTING_LIST,
     AT(kafka_properties),
     .unit = "",
     .fallback = "",
     .secret = true,
     .why = "Further librdkafka properties, key=value: TLS and SASL."},
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
     .why = "At an ordered stop, messages on their way to Kafka get so long to be acknowledged; "
            "the rest is sent again by the successor."},
    {.key = "stop_ms",
     .type = SETTING_INT,
     AT(stop_ms),
     .min = 1000,
     .max = 600000,
     .unit = "ms",
     .fallback = "20000",
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
    {.key = "log_level",
     .type = SETTING_TEXT,
     AT(log_level),
     .unit = "",
     .fallback = "info",
     .why = "error, warn, info or debug."},
};

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

static enum status check_scopes(const struct setting_list *scopes, struct error *err)
{
    for (size_t i = 0; i < scopes->count; i++) {
        if (!name_is_valid(scopes->items[i])) {
            return error_set(err, STATUS_INVALID,
                             "scopes: \"%s\" cannot be a scope's name: use a-z 0-9 _ . -",
                             scopes->items[i]);
        }
        for (size_t k = 0; k < i; k++) {
            if (strcmp(scopes->items[i], scopes->items[k]) == 0) {
                return error_set(err, STATUS_INVALID, "scopes: \"%s\" is named twice; remove one",
                                 scopes->items[i]);
            }
        }
    }
    return scopes->count > 0
               ? STATUS_OK
               : error_set(err, STATUS_INVALID, "scopes: is empty; write at least one scope");
}

static enum status check_times(const struct scheduler_settings *s, struct error *err)
{
    int64_t beat = lease_beat_ms(s->zookeeper_session_ms);
    if (s->zookeeper_session_ms - s->zookeeper_tick_ms - beat - s->lease_margin_ms < 2 * beat) {
        return error_set(err, STATUS_INVALID,
                         "zookeeper_session_ms: %lld leaves no lease after zookeeper_tick_ms and "
                         "lease_margin_ms; write at least %lld",
                         (long long)s->zookeeper_session_ms,
                         (long long)(s->zookeeper_tick_ms + s->lease_margin_ms + 3 * beat));
    }
    if (s->database_statement_ms > s->lease_margin_ms) {
        return error_set(err, STATUS_INVALID,
                         "database_statement_ms: %lld is above lease_margin_ms; a statement "
                         "decided under the lease could end after it",
                         (long long)s->database_statement_ms);
    }
    if (s->stuck_ms <= s->drain_ms + s->database_connect_ms + s->database_statement_ms) {
        return error_set(err, STATUS_INVALID,
                         "stuck_ms: %lld is not above drain_ms and database_connect_ms together",
                         (long long)s->stuck_ms);
    }
    return STATUS_OK;
}

static enum status check(const struct scheduler_settings *s, struct error *err)
{
    enum log_level level = LOG_LEVEL_INFO;
    size_t root = strlen(s->zookeeper_root);
    if (!log_level_parse(s->log_level, &level)) {
        return error_set(err, STATUS_INVALID,
                         "log_level: \"%s\" is none; write error, warn, info or debug",
                         s->log_level);
    }
    if (s->name[0] != '\0' && !name_is_valid(s->name)) {
        return error_set(err, STATUS_INVALID, "name: \"%s\" cannot be a name: use a-z 0-9 _ . -",
                         s->name);
    }
    if (root < 2 || s->zookeeper_root[0] != '/' || s->zookeeper_root[root - 1] == '/') {
        return error_set(err, STATUS_INVALID,
                         "zookeeper_root: \"%s\" is not a path; write for example "
                         "\"/report-scheduler\"",
                         s->zookeeper_root);
    }
    if (strchr(s->zookeeper, '[') != NULL) {
        return error_set(err, STATUS_INVALID,
                         "zookeeper: \"%s\" has brackets; write IPv6 as ::1:2181", s->zookeeper);
    }
    enum status status = check_scopes(&s->scopes, err);
    return status == STATUS_OK ? check_times(s, err) : status;
}

enum status scheduler_settings_load(const char *path, struct scheduler_settings **ret_settings,
                                    FILE *faults, struct error *err)
{
    struct error local = {.text = ""};
    struct error *e = err == NULL ? &local : err;
    struct scheduler_settings *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return error_set(e, STATUS_FATAL, "out of memory for the settings");
    }
    enum status status = settings_load(scheduler_table, COUNT(scheduler_table), path, s, faults, e);
    if (status == STATUS_OK) {
        status = check(s, e);
        if (status != STATUS_OK) {
            status = error_prefix(e, status, "%s", path);
            if (faults != NULL) {
                (void)fprintf(faults, "%s\n", e->text);
            }
        }
    }
    if (status != STATUS_OK) {
        free(s);
        return status;
    }
    if (s->name[0] == '\0') {
        name_from_host(s->name, sizeof s->name);
    }
    *ret_settings = s;
    return STATUS_OK;
}

void scheduler_settings_print(FILE *to)
{
    settings_print_reference(scheduler_table, COUNT(scheduler_table), to);
}
