/* Settings of report-worker: what worker.conf may say. Names in _ms are milliseconds; the meaning
 * of each is in worker_settings.c, which also prints the reference. Strings found in it are
 * borrowed. Thread: any, after loading read only. Blocks: loading, on the file system. */
#ifndef RS_WORKER_SETTINGS_H
#define RS_WORKER_SETTINGS_H

#include "artifact.h"
#include "ident.h"
#include "settings.h"

#define WORKER_PATH_MAX     512
#define WORKER_SLOTS_MAX    512
#define ARTIFACT_STORES_MAX 4
#define DATA_SOURCES_MAX    32
#define PROGRAMS_MAX        32

struct data_source {
    char name[NAME_MAX_BYTES];
    char conninfo[SETTING_TEXT_MAX];
    char password_file[WORKER_PATH_MAX];
    int64_t statement_timeout_ms;
};

struct program_settings {
    char name[NAME_MAX_BYTES];
    struct setting_list arguments;   /* the first is an absolute path */
    struct setting_list environment; /* NAME=value */
    char working_directory[WORKER_PATH_MAX];
    int64_t max_output_bytes;
    int64_t memory_bytes; /* 0: no limit */
    int64_t cpu_s;        /* 0: no limit */
};

struct worker_settings {
    char name[254];
    char database[SETTING_TEXT_MAX];
    char database_password_file[WORKER_PATH_MAX];
    char kafka_brokers[SETTING_TEXT_MAX]; /* "": no Kafka, jobs are pulled */
    char kafka_topic[250];
    char kafka_group[250];
    struct setting_list kafka_properties;
    struct setting_list kafka_secret_files;
    struct setting_list queues;
    int64_t slots;
    int64_t heartbeat_ms; /* 0: a sixth of the lease */
    int64_t pull_idle_ms;
    int64_t drain_ms;
    int64_t kill_grace_ms;
    int64_t sweep_ms;
    int64_t stuck_ms;
    char incarnation_file[WORKER_PATH_MAX]; /* "": none */
    char keeper[WORKER_PATH_MAX];
    char http_address[64]; /* "": no HTTP */
    int64_t http_port;
    char http_tls_certificate_file[WORKER_PATH_MAX];
    char http_tls_key_file[WORKER_PATH_MAX];
    char log_level[8];
    struct artifact_store artifact_stores[ARTIFACT_STORES_MAX];
    size_t artifact_store_count;
    struct data_source data_sources[DATA_SOURCES_MAX];
    size_t data_source_count;
    struct program_settings programs[PROGRAMS_MAX];
    size_t program_count;
};

/* The table and its rules, for settings_read; what it returns is a struct worker_settings. */
extern const struct settings_spec worker_spec;

/* NULL when there is none of that name. */
const struct data_source *data_source_find(const struct worker_settings *s, const char *name);
const struct program_settings *program_find(const struct worker_settings *s, const char *name);
const struct artifact_store *artifact_store_find(const struct worker_settings *s, const char *name);

#endif
