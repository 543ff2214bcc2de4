/* Settings of report-scheduler: what scheduler.conf may say. Names in _ms are milliseconds; the
 * meaning of each is in scheduler_settings.c, which also prints the reference.
 * Thread: any, after loading read only. Blocks: loading, on the file system. */
#ifndef RS_SCHEDULER_SETTINGS_H
#define RS_SCHEDULER_SETTINGS_H

#include "ident.h"
#include "settings.h"

#define SCHEDULER_PATH_MAX 512

struct scheduler_settings {
    char name[NAME_MAX_BYTES];
    char advertised_url[256];
    char http_address[64]; /* "": no HTTP */
    int64_t http_port;
    char http_token_file[SCHEDULER_PATH_MAX];
    char http_tls_certificate_file[SCHEDULER_PATH_MAX];
    char http_tls_key_file[SCHEDULER_PATH_MAX];
    char zookeeper[SETTING_TEXT_MAX];
    char zookeeper_root[160];
    char zookeeper_digest_file[SCHEDULER_PATH_MAX];
    int64_t zookeeper_session_ms;
    int64_t zookeeper_tick_ms;
    char session_file[SCHEDULER_PATH_MAX]; /* "": none */
    int64_t lease_margin_ms;
    char database[SETTING_TEXT_MAX];
    char database_password_file[SCHEDULER_PATH_MAX];
    int64_t database_connect_ms;
    int64_t database_statement_ms;
    int64_t database_unhealthy_ms;
    int64_t establish_ms;
    struct setting_list scopes;
    int64_t planner_batch;
    char tz_directory[SCHEDULER_PATH_MAX];
    int64_t tz_poll_ms;
    char kafka_brokers[SETTING_TEXT_MAX];
    char kafka_topic[250];
    struct setting_list kafka_properties;
    struct setting_list kafka_secret_files;
    int64_t relay_window;
    int64_t drain_ms;
    int64_t stop_ms;
    int64_t stuck_ms;
    int64_t observe_ms;
    char log_level[8];
};

/* The table and its rules, for settings_read; what it returns is a struct scheduler_settings. */
extern const struct settings_spec scheduler_spec;

#endif
