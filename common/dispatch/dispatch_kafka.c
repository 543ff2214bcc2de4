#include "dispatch_kafka.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"

#define PROPERTY_NAME_MAX 128
#define REMAINING_MAX_MS  3600000

/* Every client. librdkafka's defaults give up on a silent broker after a minute and know a moved
 * topic after five. socket.nagle.disable: 44 ms acknowledgements were seen without (2.0.2). */
static const struct kafka_setting base_settings[] = {
    {"socket.timeout.ms", "15000"},
    {"socket.connection.setup.timeout.ms", "5000"},
    {"socket.keepalive.enable", "true"},
    {"socket.nagle.disable", "true"},
    {"reconnect.backoff.ms", "100"},
    {"reconnect.backoff.max.ms", "2000"},
    {"topic.metadata.refresh.interval.ms", "30000"},
    {"log.connection.close", "false"},
    {NULL, NULL},
};

/* What correctness or the adapter itself rests on; all else is the operator's to change. */
static const struct {
    const char *name, *why;
} refused_properties[] = {
    {"acks", "a row leaves the outbox only when all in-sync replicas have its message"},
    {"request.required.acks",
     "a row leaves the outbox only when all in-sync replicas have its message"},
    {"enable.idempotence", "the relay publishes idempotently"},
    {"enable.gapless.guarantee", "the relay makes a new producer after a fatal error instead"},
    {"delivery.report.only.error", "the relay needs every delivery report"},
    {"transactional.id", "messages are hints: there are no transactions"},
    {"queue.buffering.max.messages", "relay_window bounds what is on its way"},
    {"enable.auto.offset.store", "an offset is stored only after the claim is durable"},
    {"enable.auto.commit", "stored offsets are committed each second"},
    {"partition.assignment.strategy", "others can abort the process in librdkafka 2.0.2"},
    {"auto.offset.reset", "a new group reads what waits already"},
    {"group.id", "it is the setting kafka_group"},
    {"group.instance.id", "a worker that is gone must not keep its partitions"},
    {"client.id", "it says which program this is"},
    {"bootstrap.servers", "it is the setting kafka_brokers"},
    {"metadata.broker.list", "it is the setting kafka_brokers"},
    {"log.queue", "the adapter reads the library's log itself"},
    {"enable.partition.eof", "the adapter does not expect such events"},
};

/* librdkafka repeats itself while brokers are away; our own lines say each change once, so its
 * lines are for debugging only. Thread: librdkafka's; log_event may be called from any. */
static void library_logged(const rd_kafka_t *rk, int level, const char *facility, const char *text)
{
    (void)rk;
    log_event(LOG_LEVEL_DEBUG, "librdkafka", "level=%d facility=%s text=%s", level, facility,
              log_quote(text).text);
}

static enum status setting_apply(rd_kafka_conf_t *conf, const char *name, const char *value,
                                 struct error *err)
{
    char why[256] = "";
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) == RD_KAFKA_CONF_OK) {
        return STATUS_OK;
    }
    /* librdkafka quotes the value in its text; it may be a password. */
    if (value[0] != '\0' && strstr(why, value) != NULL) {
        return error_set(err, STATUS_INVALID, "Kafka property %s: the value is not accepted", name);
    }
    return error_set(err, STATUS_INVALID, "Kafka property %s: %s", name, why);
}

static enum status property_apply(rd_kafka_conf_t *conf, const char *property, struct error *err)
{
    char name[PROPERTY_NAME_MAX];
    const char *equals = strchr(property, '=');
    size_t n = equals == NULL ? 0 : (size_t)(equals - property);
    if (n == 0 || n >= sizeof name) {
        return error_set(err, STATUS_INVALID, "a Kafka property is not of the form name=value");
    }
    memcpy(name, property, n);
    name[n] = '\0';
    if (kafka_property_is_secret(name)) {
        return error_set(err, STATUS_INVALID,
                         "Kafka property %s is a secret; put it into a file of mode 0600 and write "
                         "kafka_secret_files = [\"%s=/path\"]",
                         name, name);
    }
    for (size_t i = 0; i < sizeof refused_properties / sizeof refused_properties[0]; i++) {
        if (strcmp(name, refused_properties[i].name) == 0) {
            return error_set(err, STATUS_INVALID,
                             "Kafka property %s is set by this program (%s); remove it", name,
                             refused_properties[i].why);
        }
    }
    return setting_apply(conf, name, equals + 1, err);
}

enum status dispatch_property_check(const char *property, struct error *err)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (conf == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    enum status s = property_apply(conf, property, err);
    rd_kafka_conf_destroy(conf);
    return s;
}

static enum status conf_fill(rd_kafka_conf_t *conf, const struct dispatch_options *options,
                             const struct kafka_setting *settings, struct error *err)
{
    char client_id[DISPATCH_CLIENT_ID_MAX];
    (void)snprintf(client_id, sizeof client_id, "%s", options->client_id);
    enum status s = setting_apply(conf, "bootstrap.servers", options->brokers, err);
    if (s == STATUS_OK) {
        s = setting_apply(conf, "client.id", client_id, err);
    }
    for (const struct kafka_setting *b = base_settings; b->name != NULL && s == STATUS_OK; b++) {
        s = setting_apply(conf, b->name, b->value, err);
    }
    for (; settings->name != NULL && s == STATUS_OK; settings++) {
        s = setting_apply(conf, settings->name, settings->value, err);
    }
    const char *const *p = options->properties;
    for (; p != NULL && *p != NULL && s == STATUS_OK; p++) {
        s = property_apply(conf, *p, err);
    }
    return s == STATUS_OK ? kafka_secrets_apply(conf, options->secret_files, err) : s;
}

enum status kafka_conf_new(const struct dispatch_options *options,
                           const struct kafka_setting *settings, void *opaque,
                           rd_kafka_conf_t **ret_conf, struct error *err)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (conf == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    rd_kafka_conf_set_opaque(conf, opaque);
    rd_kafka_conf_set_log_cb(conf, library_logged);
    enum status s = conf_fill(conf, options, settings, err);
    if (s != STATUS_OK) {
        rd_kafka_conf_destroy(conf);
        return s;
    }
    *ret_conf = conf;
    return STATUS_OK;
}

enum status kafka_status(rd_kafka_resp_err_t code)
{
    switch ((int)code) { /* the codes are many and only some matter here */
    case RD_KAFKA_RESP_ERR_NO_ERROR:
        return STATUS_OK;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
        return STATUS_NOT_FOUND;
    case RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS:
        return STATUS_CONFLICT;
    case RD_KAFKA_RESP_ERR__QUEUE_FULL:
        return STATUS_FULL;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_PARTITIONS:
    case RD_KAFKA_RESP_ERR_INVALID_REPLICATION_FACTOR:
    case RD_KAFKA_RESP_ERR_INVALID_CONFIG:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case RD_KAFKA_RESP_ERR__INVALID_ARG:
        return STATUS_INVALID;
    case RD_KAFKA_RESP_ERR__FATAL:
    case RD_KAFKA_RESP_ERR__CRIT_SYS_RESOURCE:
        return STATUS_FATAL;
    default:
        return STATUS_AGAIN;
    }
}

int kafka_remaining_ms(instant deadline)
{
    int ms = instant_poll_timeout(clock_now(), deadline);
    return ms < REMAINING_MAX_MS ? ms : REMAINING_MAX_MS;
}

struct ending {
    rd_kafka_t *rk;
    int done_fd;
};

static void *ending_run(void *argument)
{
    struct ending *e = argument;
    rd_kafka_destroy_flags(e->rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    uint64_t one = 1;
    ssize_t ignored = write(e->done_fd, &one, sizeof one);
    (void)ignored;
    return NULL;
}

bool kafka_end(rd_kafka_t *rk, instant deadline)
{
    struct ending *e = calloc(1, sizeof *e);
    int fd = eventfd(0, EFD_CLOEXEC);
    pthread_t thread;
    if (e != NULL) {
        *e = (struct ending){rk, fd};
    }
    if (e == NULL || fd < 0 || pthread_create(&thread, NULL, ending_run, e) != 0) {
        /* No thread to be had: ending in place is the lesser evil. */
        free(e);
        if (fd >= 0) {
            (void)close(fd);
        }
        rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
        return true;
    }
    struct pollfd p = {.fd = fd, .events = POLLIN};
    int ready = 0;
    do {
        ready = poll(&p, 1, kafka_remaining_ms(deadline));
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) {
        (void)pthread_detach(thread); /* `e` and the descriptor stay with it */
        return false;
    }
    (void)pthread_join(thread, NULL);
    (void)close(fd);
    free(e);
    return true;
}

const char *dispatch_library_version(void)
{
    return rd_kafka_version_str();
}
