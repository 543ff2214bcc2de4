/* Topics: made, deleted and looked at by people through reportctl. */
#include "dispatch_kafka.h"

#include <stdio.h>

#define TOPIC_BYTES_USUAL 65536
#define END_WAIT_MS       5000

static enum status client_make(const struct dispatch_options *options, rd_kafka_t **ret_rk,
                               struct error *err)
{
    static const struct kafka_setting none[] = {{NULL, NULL}};
    rd_kafka_conf_t *conf = NULL;
    enum status s = kafka_conf_new(options, none, NULL, &conf, err);
    if (s != STATUS_OK) {
        return s;
    }
    char why[256] = "";
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (rk == NULL) {
        rd_kafka_conf_destroy(conf);
        return error_set(err, STATUS_INVALID, "Kafka client: %s", why);
    }
    *ret_rk = rk;
    return STATUS_OK;
}

static enum status topic_config(rd_kafka_NewTopic_t *topic, const char *name, int64_t value,
                                struct error *err)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    if (rd_kafka_NewTopic_set_config(topic, name, text) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return error_set(err, STATUS_INVALID, "Kafka topic setting %s", name);
    }
    return STATUS_OK;
}

static enum status topic_describe(const struct topic_spec *spec, rd_kafka_NewTopic_t **ret_topic,
                                  struct error *err)
{
    char why[256] = "";
    rd_kafka_NewTopic_t *topic =
        rd_kafka_NewTopic_new(spec->name, spec->partitions, spec->replication, why, sizeof why);
    if (topic == NULL) {
        return error_set(err, STATUS_INVALID, "Kafka topic \"%s\": %s", spec->name, why);
    }
    /* No compaction: messages are hints, not state. */
    (void)rd_kafka_NewTopic_set_config(topic, "cleanup.policy", "delete");
    int bytes = spec->max_message_bytes > 0 ? spec->max_message_bytes : TOPIC_BYTES_USUAL;
    enum status s = topic_config(topic, "max.message.bytes", bytes, err);
    if (s == STATUS_OK && spec->retention_ms > 0) {
        s = topic_config(topic, "retention.ms", spec->retention_ms, err);
    }
    if (s == STATUS_OK && spec->min_insync > 0) {
        s = topic_config(topic, "min.insync.replicas", spec->min_insync, err);
    }
    if (s != STATUS_OK) {
        rd_kafka_NewTopic_destroy(topic);
        return s;
    }
    *ret_topic = topic;
    return STATUS_OK;
}

/* What the one topic of a request came to. */
static enum status event_verdict(rd_kafka_event_t *event, struct error *err)
{
    if (event == NULL) {
        return error_set(err, STATUS_TIMEOUT, "Kafka did not answer in time");
    }
    if (rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return error_set(err, STATUS_AGAIN, "Kafka: %s", rd_kafka_event_error_string(event));
    }
    size_t count = 0;
    const rd_kafka_topic_result_t **results = NULL;
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_CREATETOPICS_RESULT) {
        results =
            rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    } else if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DELETETOPICS_RESULT) {
        results =
            rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count);
    }
    if (count != 1) {
        return error_set(err, STATUS_AGAIN, "Kafka answered about %zu topics", count);
    }
    rd_kafka_resp_err_t code = rd_kafka_topic_result_error(results[0]);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        return STATUS_OK;
    }
    const char *text = rd_kafka_topic_result_error_string(results[0]);
    return error_set(err, kafka_status(code), "Kafka topic \"%s\": %s",
                     rd_kafka_topic_result_name(results[0]),
                     text != NULL ? text : rd_kafka_err2str(code));
}

static rd_kafka_AdminOptions_t *request_options(rd_kafka_t *rk, rd_kafka_admin_op_t op,
                                                instant deadline)
{
    char why[128] = "";
    rd_kafka_AdminOptions_t *o = rd_kafka_AdminOptions_new(rk, op);
    int ms = kafka_remaining_ms(deadline);
    ms = ms > 1 ? ms : 1;
    (void)rd_kafka_AdminOptions_set_request_timeout(o, ms, why, sizeof why);
    (void)rd_kafka_AdminOptions_set_operation_timeout(o, ms, why, sizeof why);
    return o;
}

static enum status request_end(rd_kafka_t *rk, rd_kafka_queue_t *queue, instant deadline,
                               struct error *err)
{
    /* The request times out by itself at the deadline; its event follows at once. */
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, kafka_remaining_ms(deadline) + 500);
    enum status s = event_verdict(event, err);
    if (event != NULL) {
        rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
    (void)kafka_end(rk, instant_add_ms(clock_now(), END_WAIT_MS));
    return s;
}

enum status topic_create(const struct dispatch_options *options, const struct topic_spec *spec,
                         instant deadline, struct error *err)
{
    rd_kafka_NewTopic_t *topic = NULL;
    rd_kafka_t *rk = NULL;
    enum status s = topic_describe(spec, &topic, err);
    if (s != STATUS_OK) {
        return s;
    }
    s = client_make(options, &rk, err);
    if (s == STATUS_OK) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_AdminOptions_t *o = request_options(rk, RD_KAFKA_ADMIN_OP_CREATETOPICS, deadline);
        rd_kafka_CreateTopics(rk, &topic, 1, o, queue);
        rd_kafka_AdminOptions_destroy(o);
        s = request_end(rk, queue, deadline, err);
    }
    rd_kafka_NewTopic_destroy(topic);
    return s;
}

enum status topic_delete(const struct dispatch_options *options, const char *name, instant deadline,
                         struct error *err)
{
    rd_kafka_t *rk = NULL;
    enum status s = client_make(options, &rk, err);
    if (s != STATUS_OK) {
        return s;
    }
    rd_kafka_DeleteTopic_t *topic = rd_kafka_DeleteTopic_new(name);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_AdminOptions_t *o = request_options(rk, RD_KAFKA_ADMIN_OP_DELETETOPICS, deadline);
    rd_kafka_DeleteTopics(rk, &topic, 1, o, queue);
    rd_kafka_AdminOptions_destroy(o);
    s = request_end(rk, queue, deadline, err);
    rd_kafka_DeleteTopic_destroy(topic);
    return s;
}

enum status topic_read(const struct dispatch_options *options, const char *name, instant deadline,
                       struct topic_facts *ret_facts, struct error *err)
{
    rd_kafka_t *rk = NULL;
    enum status s = client_make(options, &rk, err);
    if (s != STATUS_OK) {
        return s;
    }
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, name, NULL);
    const struct rd_kafka_metadata *facts = NULL;
    rd_kafka_resp_err_t code =
        topic == NULL ? rd_kafka_last_error()
                      : rd_kafka_metadata(rk, 0, topic, &facts, kafka_remaining_ms(deadline));
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR && facts->topic_cnt == 1) {
        code = facts->topics[0].err;
    }
    s = kafka_status(code);
    if (s != STATUS_OK) {
        s = error_set(err, s, "Kafka topic \"%s\": %s", name, rd_kafka_err2str(code));
    } else if (facts->topic_cnt != 1 || facts->topics[0].partition_cnt < 1) {
        s = error_set(err, STATUS_AGAIN, "Kafka topic \"%s\": no partitions known yet", name);
    } else {
        *ret_facts = (struct topic_facts){facts->topics[0].partition_cnt,
                                          facts->topics[0].partitions[0].replica_cnt};
    }
    if (facts != NULL) {
        rd_kafka_metadata_destroy(facts);
    }
    if (topic != NULL) {
        rd_kafka_topic_destroy(topic);
    }
    (void)kafka_end(rk, instant_add_ms(clock_now(), END_WAIT_MS));
    return s;
}
