#include "worker_settings.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"

#define AT(type, member)                                                                           \
    .offset = offsetof(struct type, member), .size = sizeof(((struct type *)0)->member)
#define COUNT(table) (sizeof(table) / sizeof(table)[0])
#define GIB          (INT64_C(1) << 30)

/* table: exempt from the length limit */
static const struct setting store_fields[] = {
    {.key = "name",
     .type = SETTING_TEXT,
     AT(artifact_store, name),
     .unit = "",
     .why = "Name of the store, as artifact rows say it. Never rename a store that has files."},
    {.key = "directory",
     .type = SETTING_TEXT,
     AT(artifact_store, directory),
     .unit = "",
     .why = "Absolute path of an existing directory that the worker may write and no other program "
            "changes. On a network file system, mount it with `hard`."},
};

/* table: exempt from the length limit */
static const struct setting source_fields[] = {
    {.key = "name",
     .type = SETTING_TEXT,
     AT(data_source, name),
     .unit = "",
     .why = "Name that `report.data_source` refers to."},
    {.key = "conninfo",
     .type = SETTING_TEXT,
     AT(data_source, conninfo),
     .unit = "",
     .secret = true,
     .why = "libpq connection string. Use a role that may only read. `options='-c timezone=...'` "
            "decides the zone that timestamps are written in."},
    {.key = "password_file",
     .type = SETTING_TEXT,
     AT(data_source, password_file),
     .unit = "",
     .fallback = "",
     .why = "File (mode 0600) with the password; empty: none, or what the connection string says."},
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
     .why = "Further variables, NAME=value. The program sees PATH, LANG, REPORT_* and these only."},
    {.key = "working_directory",
     .type = SETTING_TEXT,
     AT(program_settings, working_directory),
     .unit = "",
     .fallback = "/",
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
     .why = "libpq connection string of the scheduler's database, as role report_worker, without a "
            "pooler in between."},
    {.key = "database_password_file",
     .type = SETTING_TEXT,
     AT(worker_settings, database_password_file),
     .unit = "",
     .fallback = "",
     .why = "File (mode 0600) with the password of the database role; empty: none is needed."},
    {.key = "kafka_brokers",
     .type = SETTING_TEXT,
     AT(worker_settings, kafka_brokers),
     .unit = "",
     .fallback = "",
     .why = "host:port,host:port of Kafka; empty: no Kafka, the worker looks for jobs in the "
            "database every pull_idle_ms."},
    {.key = "kafka_topic",
     .type = SETTING_TEXT,
     AT(worker_settings, kafka_topic),
     .unit = "",
     .fallback = "report.dispatch.v1",
     .why = "Topic of the dispatch messages; the same as in scheduler.conf."},
    {.key = "kafka_group",
     .type = SETTING_TEXT,
     AT(worker_settings, kafka_group),
     .unit = "",
     .fallback = "report-workers",
     .why = "Consumer group. Workers that serve different queues need different groups, or they "
            "take each other's messages (their jobs then wait for the pull)."},
    {.key = "kafka_properties",
     .type = SETTING_LIST,
     AT(worker_settings, kafka_properties),
     .unit = "",
     .fallback = "",
     .secret = true,
     .why = "Further librdkafka properties, key=value: TLS and SASL."},
    {.key = "queues",
     .type = SETTING_LIST,
     AT(worker_settings, queues),
     .unit = "",
     .fallback = "default",
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
     .why = "Between SIGTERM and SIGKILL when a program has to end early."},
    {.key = "sweep_ms",
     .type = SETTING_INT,
     AT(worker_settings, sweep_ms),
     .unit = "ms",
     .min = 1000,
     .max = 86400000,
     .fallback = "3600000",
     .why = "How often files of crashed attempts are looked for and removed."},
    {.key = "keeper",
     .type = SETTING_TEXT,
     AT(worker_settings, keeper),
     .unit = "",
     .fallback = "",
     .why = "Path of report-keeper; empty: beside report-worker, or in "
            "the libexec directory that the build was configured with."},
    {.key = "log_level",
     .type = SETTING_TEXT,
     AT(worker_settings, log_level),
     .unit = "",
     .fallback = "info",
     .why = "error, warn, info or debug."},
    {.key = "artifact_stores",
     .type = SETTING_GROUPS,
     .offset = offsetof(struct worker_settings, artifact_stores),
     .unit = "",
     .fields = store_fields,
     .field_count = COUNT(store_fields),
     .element_size = sizeof(struct artifact_store),
     .capacity = ARTIFACT_STORES_MAX,
     .count_offset = offsetof(struct worker_settings, artifact_store_count),
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
     .why = "Programs that reports may name; there are no others."},
};

void worker_settings_print(FILE *to)
{
    settings_print_reference(worker_table, COUNT(worker_table), to);
}

static enum status fault(FILE *faults, const char *path, struct error *err)
{
    enum status s = error_prefix(err, STATUS_INVALID, "%s", path);
    if (faults != NULL) {
        (void)fprintf(faults, "%s\n", err->text);
    }
    return s;
}

static enum status programs_check(const struct worker_settings *s, struct error *err)
{
    for (size_t i = 0; i < s->program_count; i++) {
        const struct program_settings *p = &s->programs[i];
        if (p->arguments.items[0][0] != '/') {
            return error_set(err, STATUS_INVALID,
                             "programs[%zu].arguments: \"%s\" is no absolute path; write the whole "
                             "path of the program, it is not searched for",
                             i, p->arguments.items[0]);
        }
        for (size_t e = 0; e < p->environment.count; e++) {
            const char *equals = strchr(p->environment.items[e], '=');
            if (equals == NULL || equals == p->environment.items[e]) {
                return error_set(err, STATUS_INVALID,
                                 "programs[%zu].environment: item %zu is not of the form "
                                 "NAME=value",
                                 i, e + 1);
            }
        }
    }
    return STATUS_OK;
}

/* What the table cannot say. */
static enum status settings_check(const struct worker_settings *s, struct error *err)
{
    enum log_level level;
    if (!log_level_parse(s->log_level, &level)) {
        return error_set(err, STATUS_INVALID,
                         "log_level: \"%s\" is none; write error, warn, info or debug",
                         s->log_level);
    }
    if (s->queues.count == 0) {
        return error_set(err, STATUS_INVALID,
                         "queues: a worker must serve one; write queues = [\"default\"]");
    }
    if (s->artifact_store_count == 0) {
        /* Starting all the same would claim healthy jobs and use their attempts up. */
        return error_set(err, STATUS_INVALID,
                         "artifact_stores: a worker needs one; write artifact_stores = ( { name = "
                         "\"local\"; directory = \"/var/lib/report-worker\"; } )");
    }
    for (size_t i = 0; i < s->queues.count; i++) {
        if (!name_is_valid(s->queues.items[i])) {
            return error_set(err, STATUS_INVALID, "queues: \"%s\" cannot be a queue's name",
                             s->queues.items[i]);
        }
    }
    for (size_t i = 0; i < s->artifact_store_count; i++) {
        if (s->artifact_stores[i].directory[0] != '/' ||
            !name_is_valid(s->artifact_stores[i].name)) {
            return error_set(
                err, STATUS_INVALID,
                "artifact_stores[%zu]: write a name of a-z, 0-9, _ . - and an absolute "
                "directory",
                i);
        }
    }
    return programs_check(s, err);
}

enum status worker_settings_load(const char *path, struct worker_settings **ret_settings,
                                 FILE *faults, struct error *err)
{
    struct error local;
    struct error *e = err == NULL ? &local : err;
    struct worker_settings *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return error_set(e, STATUS_FATAL, "out of memory");
    }
    enum status status = settings_load(worker_table, COUNT(worker_table), path, s, faults, e);
    if (status == STATUS_OK && settings_check(s, e) != STATUS_OK) {
        status = fault(faults, path, e);
    }
    if (status == STATUS_OK && s->name[0] == '\0' && gethostname(s->name, sizeof s->name) != 0) {
        (void)snprintf(s->name, sizeof s->name, "%s", "worker");
    }
    if (status != STATUS_OK) {
        free(s);
        return status;
    }
    *ret_settings = s;
    return STATUS_OK;
}

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
