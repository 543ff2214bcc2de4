/* Secret librdkafka properties: their values stand in files, never among the settings. */
#include "dispatch_kafka.h"

#include <stdio.h>
#include <string.h>

#include "settings.h"
#include "settings_form.h"

#define PROPERTY_NAME_MAX 128
#define SCRAM_FIXED       0x020601ff

static const char *const secret_properties[] = {
    "sasl.password",    "sasl.oauthbearer.client.secret", "ssl.key.pem",
    "ssl.key.password", "ssl.keystore.password",
};

bool kafka_property_is_secret(const char *name)
{
    for (size_t i = 0; i < sizeof secret_properties / sizeof secret_properties[0]; i++) {
        if (strcmp(name, secret_properties[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* "name=/path" in two. The path is borrowed from `item`. */
static enum status item_split(const char *item, char ret_name[PROPERTY_NAME_MAX],
                              const char **ret_path, struct error *err)
{
    const char *equals = strchr(item, '=');
    size_t n = equals == NULL ? 0 : (size_t)(equals - item);
    if (n == 0 || n >= PROPERTY_NAME_MAX || equals[1] != '/') {
        /* What stands behind the = may be the secret itself. */
        return error_set(err, STATUS_INVALID,
                         "an item%s%.*s does not name a property and the absolute path of a file; "
                         "write for example \"sasl.password=/etc/report-scheduler/kafka.password\"",
                         n == 0 ? "" : " for ", (int)n, item);
    }
    memcpy(ret_name, item, n);
    ret_name[n] = '\0';
    *ret_path = equals + 1;
    return STATUS_OK;
}

enum status dispatch_secret_file_check(const char *item, struct error *err)
{
    char name[PROPERTY_NAME_MAX];
    const char *path = NULL;
    enum status s = item_split(item, name, &path, err);
    if (s == STATUS_OK && !kafka_property_is_secret(name)) {
        s = error_set(err, STATUS_INVALID,
                      "\"%s\" is no secret property of librdkafka; write sasl.password, "
                      "sasl.oauthbearer.client.secret, ssl.key.pem, ssl.key.password or "
                      "ssl.keystore.password, and all else into kafka_properties",
                      name);
    }
    return s;
}

enum status dispatch_secret_file_around(const char *item, struct error *err)
{
    char name[PROPERTY_NAME_MAX];
    const char *path = NULL;
    /* A wrong form is the check's to tell. */
    return item_split(item, name, &path, NULL) == STATUS_OK ? around_secret_file(path, err)
                                                            : STATUS_OK;
}

static enum status secret_apply(rd_kafka_conf_t *conf, const char *item, struct error *err)
{
    char name[PROPERTY_NAME_MAX];
    char value[SETTING_TEXT_MAX + 1];
    char why[256] = "";
    const char *path = NULL;
    enum status s = dispatch_secret_file_check(item, err);
    if (s == STATUS_OK) {
        s = item_split(item, name, &path, err);
    }
    if (s == STATUS_OK) {
        s = secret_read(path, value, sizeof value, err);
    }
    if (s != STATUS_OK) {
        return error_prefix(err, STATUS_INVALID, "kafka_secret_files");
    }
    /* The library quotes values in its texts, so its text is not passed on. */
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) {
        s = error_set(err, STATUS_INVALID,
                      "kafka_secret_files: librdkafka does not take what is in %s as %s", path,
                      name);
    }
    explicit_bzero(value, sizeof value);
    explicit_bzero(why, sizeof why);
    return s;
}

enum status kafka_secrets_apply(rd_kafka_conf_t *conf, const char *const *items, struct error *err)
{
    enum status s = STATUS_OK;
    for (; items != NULL && *items != NULL && s == STATUS_OK; items++) {
        s = secret_apply(conf, *items, err);
    }
    return s;
}

void kafka_refusal_note(char text[DISPATCH_REASON_MAX], int code, const char *reason)
{
    if (code != RD_KAFKA_RESP_ERR__AUTHENTICATION && code != RD_KAFKA_RESP_ERR__SSL) {
        return;
    }
    /* They repeat the client's nonce in the last message, which brokers from 4.0 on refuse in the
     * words for a wrong password. To be removed with support for such versions. */
    bool scram = rd_kafka_version() < SCRAM_FIXED && strstr(reason, "SCRAM") != NULL;
    (void)snprintf(text, DISPATCH_REASON_MAX, "%s%s",
                   scram ? "Kafka 4 refuses SCRAM of librdkafka before 2.6.1, use PLAIN by TLS: "
                         : "",
                   reason);
}
