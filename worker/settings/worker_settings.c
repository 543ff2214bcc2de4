#include "worker_settings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dispatch.h"
#include "life_file.h"
#include "settings_form.h"
#include "settings_shared.h"
#include "store.h"

#define AT(type, member) SETTING_AT(struct type, member)
#define COUNT(table)     (sizeof(table) / sizeof(table)[0])
#define GIB              (INT64_C(1) << 30)

/* table: exempt from the length limit */
static const struct setting store_fields[] = {
    {.key = "name",
     .type = SETTING_TEXT,
     AT(artifact_store, name),
     .unit = "",
     .form = form_name,
     .why = "Name of the store, as artifact rows say it. Never rename a store that has files."},
    {.key = "directory",
     .type = SETTING_TEXT,
     AT(artifact_store, directory),
     .unit = "",
     .form = form_absolute_path,
     .around = around_writable_directory,
     .why = "Absolute path of an existing directory that the worker may write and no other program "
            "changes. On a network file system, mount it with `hard`."},
};

/* table: exempt from the length limit */
static const struct setting source_fields[] = {
    {.key = "name",
     .type = SETTING_TEXT,
     AT(data_source, name),
     .unit = "",
     .form = form_name,
     .why = "Name that `report.data_source` refers to."},
    {.key = "conninfo",
     .type = SETTING_TEXT,
     AT(data_source, conninfo),
     .unit = "",
     .secret = true,
     .form = store_conninfo_check,
     .why = "libpq connection string. Use a role that may only read. `options='-c timezone=...'` "
            "decides the zone that timestamps are written in."},
    {.key = "password_file",
     .type = SETTING_TEXT,
     AT(data_source, password_file),
     .unit = "",
     .fallback = "",
     .form = form_absolute_path,
     .around = around_secret_file,
     .why = "File (mode 0600) with the password; empty: none. Read again at every connect."},
    {.key = "statement_timeout_ms",
     .type = SETTING_INT,
     AT(data_source, statement_timeout_ms),
     .unit = "ms",
     .min = 100,
     .max = 604800000,
     .fallback = "3600000",
     .why = "The server ends a query that runs longer. The schedule's own timeout holds as well."},
};

/* table: exempt from the length limit */
static const struct setting program_fields[] = {
    {.key = "name",
     .type = SETTING_TEXT,
     AT(program_settings, name),
     .unit = "",
     .form = form_name,
     .why = "Name that `report.program` refers to."},
    {.key = "arguments",
     .type = SETTING_LIST,
     AT(program_settings, arguments),
     .unit = "",
     .why = "The command: an absolute path and its arguments. Nothing is taken from the job and no "
            "shell is involved; the job's context comes as JSON on stdin and in REPORT_* "
            "variables."},
    {.key = "environment",
     .type = SETTING_LIST,
     AT(program_settings, environment),
     .unit = "",
     .fallback = "",
     .form = form_variable,
     .secret = true,
     .why = "Further variables, NAME=value. The program sees PATH, LANG, REPORT_* and these only."},
    {.key = "working_directory",
     .type = SETTING_TEXT,
     AT(program_settings, working_directory),
     .unit = "",
     .fallback = "/",
     .form = form_absolute_path,
     .around = around_directory,
     .why = "Directory the program starts in."},
    {.key = "max_output_bytes",
     .type = SETTING_INT,
     AT(program_settings, max_output_bytes),
     .unit = "bytes",
     .min = 1,
     .max = 1024 * GIB,
     .fallback = "1073741824",
     .why = "A program that writes more to stdout is killed and its job fails."},
    {.key = "memory_bytes",
     .type = SETTING_INT,
     AT(program_settings, memory_bytes),
     .unit = "bytes",
     .min = 0,
     .max = 1024 * GIB,
     .fallback = "0",
     .why = "Address space the program may use (RLIMIT_AS); 0: no limit."},
    {.key = "cpu_s",
     .type = SETTING_INT,
     AT(program_settings, cpu_s),
     .unit = "s",
     .min = 0,
     .max = 604800,
     .fallback = "0",
     .why = "Processor time the program may use (RLIMIT_CPU); 0: no limit."},
};

/* table: exempt from the length limit */
static const struct setting worker_table[] = {
    {.key = "name",
     .type = SETTING_TEXT,
     AT(worker_settings, name),
     .unit = "",
     .fallback = "",
     .why = "Shown in `reportctl workers`; empty: the host's name."},
    {.key = "database",
     .type = SETTING_TEXT,
     AT(worker_settings, database),
     .unit = "",
     .secret = true,
     .form = store_tcp_conninfo_check,
     .why = "libpq connection string of the scheduler's database, as role report_worker, without a "
            "pooler in between."},
    SHARED_DATABASE_PASSWORD_FILE(struct worker_settings),
    {.key = "kafka_brokers",
     .type = SETTING_TEXT,
     AT(worker_settings, kafka_brokers),
     .unit = "",
     .fallback = "",
     .form = form_kafka_brokers,
     .why = "host:port,host:port of Kafka; empty: no Kafka, the worker looks for jobs in the "
            "database every pull_idle_ms."},
    SHARED_KAFKA_TOPIC(struct worker_settings),
    {.key = "kafka_group",
     .type = SETTING_TEXT,
     AT(worker_settings, kafka_group),
     .unit = "",
     .fallback = "report-workers",
     .why = "Consumer group. Workers that serve different queues need different groups, or they "
            "take each other's messages (their jobs then wait for the pull)."},
    SHARED_KAFKA_PROPERTIES(struct worker_settings),
    SHARED_KAFKA_SECRET_FILES(struct worker_settings),
    {.key = "queues",
     .type = SETTING_LIST,
     AT(worker_settings, queues),
     .unit = "",
     .fallback = "default",
     .form = form_name,
     .why = "Queues this worker serves, the most urgent first."},
    {.key = "slots",
     .type = SETTING_INT,
     AT(worker_settings, slots),
     .unit = "jobs",
     .min = 1,
     .max = WORKER_SLOTS_MAX,
     .fallback = "8",
     .why = "Jobs that run at once; each is a thread."},
    {.key = "heartbeat_ms",
     .type = SETTING_INT,
     AT(worker_settings, heartbeat_ms),
     .unit = "ms",
     .min = 0,
     .max = 600000,
     .fallback = "0",
     .why =
         "How often claims are renewed and cancellations arrive; 0: a sixth of the installation's "
         "lease. At most a third of the lease is used."},
    {.key = "pull_idle_ms",
     .type = SETTING_INT,
     AT(worker_settings, pull_idle_ms),
     .unit = "ms",
     .min = 50,
     .max = 60000,
     .fallback = "1000",
     .reloadable = true,
     .why =
         "A worker with a free slot and no message for this time, up to twice it, looks for jobs "
         "in the database."},
    {.key = "drain_ms",
     .type = SETTING_INT,
     AT(worker_settings, drain_ms),
     .unit = "ms",
     .min = 0,
     .max = 86400000,
     .fallback = "30000",
     .reloadable = true,
     .why = "At a stop, running jobs may finish for so long; the rest is handed back and does not "
            "count as an attempt. systemd's TimeoutStopSec must be at least drain_ms + "
            "kill_grace_ms + 30 s."},
    {.key = "kill_grace_ms",
     .type = SETTING_INT,
     AT(worker_settings, kill_grace_ms),
     .unit = "ms",
     .min = 0,
     .max = 60000,
     .fallback = "5000",
     .reloadable = true,
     .why = "Between SIGTERM and SIGKILL when a program has to end early."},
    {.key = "sweep_ms",
     .type = SETTING_INT,
     AT(worker_settings, sweep_ms),
     .unit = "ms",
     .min = 1000,
     .max = 86400000,
     .fallback = "3600000",
     .reloadable = true,
     .why = "How often files of crashed attempts are looked for and removed."},
    {.key = "stuck_ms",
     .type = SETTING_INT,
     AT(worker_settings, stuck_ms),
     .unit = "ms",
     .min = 20000,
     .max = 3600000,
     .fallback = "60000",
     .why = "A loop (claims, heartbeat, outcomes) that made no turn for so long is stuck: it is "
            "told, and systemd's watchdog is not fed until it turns again. Below WatchdogSec of "
            "the unit."},
    {.key = "incarnation_file",
     .type = SETTING_TEXT,
     AT(worker_settings, incarnation_file),
     .unit = "",
     .fallback = "",
     .form = form_absolute_path,
     .around = around_own_file,
     .why =
         "File, in a directory of this user's on a local file system, that says what the process "
         "is called in the database while it or a program of its lives, for --release-claims "
         "after a crash; beside it FILE.lock. Give each worker on one host its own. Empty: "
         "incarnation in the directory that systemd's RuntimeDirectory= made, without one none."},
    {.key = "keeper",
     .type = SETTING_TEXT,
     AT(worker_settings, keeper),
     .unit = "",
     .fallback = "",
     .form = form_absolute_path,
     .around = around_program,
     .why = "Path of report-keeper; empty: beside report-worker, or in "
            "the libexec directory that the build was configured with."},
    SHARED_HTTP_ADDRESS(struct worker_settings),
    {.key = "http_port",
     .type = SETTING_INT,
     AT(worker_settings, http_port),
     .min = 0,
     .max = 65535,
     .unit = "",
     .fallback = "9411",
     .why = "Port of the HTTP server: /livez, /readyz, /metrics. 0: any that is free, "
            "as the log says; give each daemon on one host its own."},
    SHARED_HTTP_TLS_CERTIFICATE_FILE(struct worker_settings),
    SHARED_HTTP_TLS_KEY_FILE(struct worker_settings),
    SHARED_LOG_LEVEL(struct worker_settings),
    {.key = "artifact_stores",
     .type = SETTING_GROUPS,
     .offset = offsetof(struct worker_settings, artifact_stores),
     .unit = "",
     .fields = store_fields,
     .field_count = COUNT(store_fields),
     .element_size = sizeof(struct artifact_store),
     .capacity = ARTIFACT_STORES_MAX,
     .count_offset = offsetof(struct worker_settings, artifact_store_count),
     .reloadable = true,
     .why = "Where report files go. New files go to the first one; the others are kept for what is "
            "in them."},
    {.key = "data_sources",
     .type = SETTING_GROUPS,
     .offset = offsetof(struct worker_settings, data_sources),
     .unit = "",
     .fields = source_fields,
     .field_count = COUNT(source_fields),
     .element_size = sizeof(struct data_source),
     .capacity = DATA_SOURCES_MAX,
     .count_offset = offsetof(struct worker_settings, data_source_count),
     .reloadable = true,
     .why = "Databases that sql reports may read."},
    {.key = "programs",
     .type = SETTING_GROUPS,
     .offset = offsetof(struct worker_settings, programs),
     .unit = "",
     .fields = program_fields,
     .field_count = COUNT(program_fields),
     .element_size = sizeof(struct program_settings),
     .capacity = PROGRAMS_MAX,
     .count_offset = offsetof(struct worker_settings, program_count),
     .reloadable = true,
     .why = "Programs that reports may name; there are no others."},
};

/* ---- rules across keys ---- */

static void programs_check(const struct worker_settings *s, struct settings_judge *judge)
{
    for (size_t i = 0; i < s->program_count; i++) {
        const struct program_settings *p = &s->programs[i];
        const char *command = p->arguments.items[0];
        char key[64];
        struct error err;
        (void)snprintf(key, sizeof key, "programs[%zu].arguments", i);
        if (p->arguments.count == 0 || !settings_sound(judge, key)) {
            continue;
        }
        if (command[0] != '/') {
            settings_fault(judge, key,
                           "\"%s\" is no absolute path; write the whole path of the program, it "
                           "is not searched for",
                           command);
        } else if (around_program(command, &err) != STATUS_OK) {
            settings_warn(judge, key, "%s", err.text);
        }
    }
}

static void queues_check(const struct worker_settings *s, struct settings_judge *judge)
{
    if (s->queues.count == 0) {
        settings_fault(judge, "queues", "a worker must serve one; write queues = [\"default\"];");
    }
    shared_check_names(judge, "queues", &s->queues);
}

/* The sweep of one would take the files of the other for nobody's. */
static void stores_check(const struct worker_settings *s, struct settings_judge *judge)
{
    if (s->artifact_store_count == 0) {
        /* Starting all the same would claim healthy jobs and use their attempts up. */
        settings_fault(judge, "artifact_stores",
                       "a worker needs one; write artifact_stores = ( { name = \"local\"; "
                       "directory = \"/var/lib/report-worker\"; } );");
    }
    for (size_t i = 1; i < s->artifact_store_count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (strcmp(s->artifact_stores[i].directory, s->artifact_stores[k].directory) == 0) {
                char key[64];
                (void)snprintf(key, sizeof key, "artifact_stores[%zu].directory", i);
                settings_fault(judge, key, "is the directory of store \"%s\" too; write another",
                               s->artifact_stores[k].name);
            }
        }
    }
}

static void worker_check(const void *settings, struct settings_judge *judge)
{
    const struct worker_settings *s = settings;
    queues_check(s, judge);
    stores_check(s, judge);
    programs_check(s, judge);
    shared_check_tls(judge, s->http_tls_certificate_file, s->http_tls_key_file);
    shared_check_watchdog(judge, s->stuck_ms, "nothing is said before the process is killed");
}

static void worker_complete(void *settings)
{
    struct worker_settings *s = settings;
    if (s->name[0] == '\0' && gethostname(s->name, sizeof s->name - 1) != 0) {
        (void)snprintf(s->name, sizeof s->name, "%s", "worker");
    }
    if (s->incarnation_file[0] == '\0') {
        life_file_default("incarnation", s->incarnation_file, sizeof s->incarnation_file);
    }
}

const struct settings_spec worker_spec = {
    .table = worker_table,
    .count = COUNT(worker_table),
    .size = sizeof(struct worker_settings),
    .check = worker_check,
    .complete = worker_complete,
};

const struct data_source *data_source_find(const struct worker_settings *s, const char *name)
{
    for (size_t i = 0; i < s->data_source_count; i++) {
        if (strcmp(s->data_sources[i].name, name) == 0) {
            return &s->data_sources[i];
        }
    }
    return NULL;
}

const struct program_settings *program_find(const struct worker_settings *s, const char *name)
{
    for (size_t i = 0; i < s->program_count; i++) {
        if (strcmp(s->programs[i].name, name) == 0) {
            return &s->programs[i];
        }
    }
    return NULL;
}

const struct artifact_store *artifact_store_find(const struct worker_settings *s, const char *name)
{
    for (size_t i = 0; i < s->artifact_store_count; i++) {
        if (strcmp(s->artifact_stores[i].name, name) == 0) {
            return &s->artifact_stores[i];
        }
    }
    return NULL;
}
