/* What the settings of both daemons have word for word: rows of their tables and rules across keys.
 * A row here names the member of the same name in the program's struct. Keys that only look alike
 * (name, database, http_port, drain_ms, ...) mean something else in each daemon and stay with it.
 */
#ifndef RS_SETTINGS_SHARED_H
#define RS_SETTINGS_SHARED_H

#include "dispatch.h"
#include "settings.h"
#include "settings_form.h"

#define SHARED_DATABASE_PASSWORD_FILE(program)                                                     \
    {                                                                                              \
        .key = "database_password_file", .type = SETTING_TEXT,                                     \
        SETTING_AT(program, database_password_file), .unit = "", .fallback = "",                   \
        .form = form_absolute_path, .around = around_secret_file,                                  \
        .why =                                                                                     \
            "File (mode 0600) with the password of the database role. Empty: none is sent. Read "  \
            "again at every connect."                                                              \
    }

#define SHARED_KAFKA_TOPIC(program)                                                                \
    {                                                                                              \
        .key = "kafka_topic", .type = SETTING_TEXT, SETTING_AT(program, kafka_topic), .unit = "",  \
        .fallback = "report.dispatch.v1", .form = form_kafka_topic,                                \
        .why = "Topic of the dispatch messages; the same in scheduler.conf and worker.conf."       \
    }

#define SHARED_KAFKA_PROPERTIES(program)                                                           \
    {                                                                                              \
        .key = "kafka_properties", .type = SETTING_LIST, SETTING_AT(program, kafka_properties),    \
        .unit = "", .fallback = "", .secret = true, .form = dispatch_property_check,               \
        .why =                                                                                     \
            "Further librdkafka properties, key=value: TLS and SASL. Secrets: kafka_secret_files." \
    }

#define SHARED_KAFKA_SECRET_FILES(program)                                                         \
    {                                                                                              \
        .key = "kafka_secret_files", .type = SETTING_LIST,                                         \
        SETTING_AT(program, kafka_secret_files), .unit = "", .fallback = "",                       \
        .form = dispatch_secret_file_check, .around = dispatch_secret_file_around,                 \
        .why =                                                                                     \
            "Secret librdkafka properties, property=/path of a file (mode 0600) with the value: "  \
            "\"sasl.password=/etc/report-scheduler/kafka.password\". Read for each new client."    \
    }

#define SHARED_HTTP_ADDRESS(program)                                                               \
    {                                                                                              \
        .key = "http_address", .type = SETTING_TEXT, SETTING_AT(program, http_address),            \
        .unit = "", .fallback = "127.0.0.1", .form = form_address,                                 \
        .why =                                                                                     \
            "Address that the HTTP server listens on, as numbers; 0.0.0.0 or :: for all. Beyond "  \
            "this host use TLS. Empty: no HTTP."                                                   \
    }

#define SHARED_HTTP_TLS_CERTIFICATE_FILE(program)                                                  \
    {                                                                                              \
        .key = "http_tls_certificate_file", .type = SETTING_TEXT,                                  \
        SETTING_AT(program, http_tls_certificate_file), .unit = "", .fallback = "",                \
        .form = form_absolute_path, .around = around_readable_file,                                \
        .why = "PEM file with the certificate chain; HTTP is then HTTPS only. Needs "              \
               "http_tls_key_file as well."                                                        \
    }

#define SHARED_HTTP_TLS_KEY_FILE(program)                                                          \
    {                                                                                              \
        .key = "http_tls_key_file", .type = SETTING_TEXT, SETTING_AT(program, http_tls_key_file),  \
        .unit = "", .fallback = "", .form = form_absolute_path, .around = around_private_file,     \
        .why = "PEM file with the private key, readable by the daemon only."                       \
    }

#define SHARED_LOG_LEVEL(program)                                                                  \
    {                                                                                              \
        .key = "log_level", .type = SETTING_TEXT, SETTING_AT(program, log_level), .unit = "",      \
        .fallback = "info", .form = form_log_level, .reloadable = true,                            \
        .why = "error, warn, info or debug."                                                       \
    }

/* Rules; each says what is wrong with settings_fault or settings_warn. */

/* A certificate and its key come together; "": not given. */
void shared_check_tls(struct settings_judge *judge, const char *certificate_file,
                      const char *key_file);

/* No item stands in the list twice. */
void shared_check_names(struct settings_judge *judge, const char *key,
                        const struct setting_list *list);

/* stuck_ms is below the WatchdogSec that the unit passes on, if any: otherwise a warning with what
 * comes of it. */
void shared_check_watchdog(struct settings_judge *judge, int64_t stuck_ms, const char *consequence);

#endif
