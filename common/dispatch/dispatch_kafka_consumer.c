/* The consumer: one member of a group, eager roundrobin, one message at a time. */
#include "dispatch_kafka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crash_point.h"

#define STORED_NOTHING (-1)
#define REFUSAL_MS     60000

struct consumer {
    rd_kafka_t *rk;
    rd_kafka_message_t *current;               /* what the last poll returned */
    rd_kafka_topic_partition_list_t *assigned; /* ours now; .offset: highest stored offset */
    rd_kafka_topic_partition_list_t *one;      /* scratch for a single offset */
    const char **topics;                       /* copies, NULL-terminated */
    size_t topic_count;
    bool paused;
    bool fatal;
    char fatal_text[DISPATCH_REASON_MAX];
    char refusal[DISPATCH_REASON_MAX]; /* by a broker or of one, not told yet */
    instant refusal_at;                /* when one may be told again */
};

static void assigned_pause(struct consumer *c, bool pause)
{
    if (c->assigned == NULL || c->assigned->cnt == 0) {
        return;
    }
    /* Called once per change: resuming what is not paused can rewind (fixed in 2.4.0). */
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(c->assigned);
    (void)(pause ? rd_kafka_pause_partitions(c->rk, list)
                 : rd_kafka_resume_partitions(c->rk, list));
    rd_kafka_topic_partition_list_destroy(list);
}

static void assigned_clear(struct consumer *c)
{
    if (c->assigned != NULL) {
        rd_kafka_topic_partition_list_destroy(c->assigned);
        c->assigned = NULL;
    }
}

/* Runs inside consumer_poll and consumer_close. Nothing in flight depends on the assignment (a
 * claim is a row in PostgreSQL), so an eager rebalance costs only its own time. */
static void rebalanced(rd_kafka_t *rk, rd_kafka_resp_err_t code,
                       rd_kafka_topic_partition_list_t *partitions, void *opaque)
{
    struct consumer *c = opaque;
    if (code != RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        assigned_clear(c);
        (void)rd_kafka_assign(rk, NULL);
        return;
    }
    (void)rd_kafka_assign(rk, partitions);
    assigned_clear(c);
    c->assigned = rd_kafka_topic_partition_list_copy(partitions);
    for (int i = 0; i < c->assigned->cnt; i++) {
        c->assigned->elems[i].offset = STORED_NOTHING;
    }
    /* The pause flag lives on the client's partition object and outlasts a rebalance, for those
     * partitions we had before; saying it again for all makes them agree. */
    if (c->paused) {
        assigned_pause(c, true);
    }
}

static void error_happened(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
    struct consumer *c = opaque;
    kafka_refusal_note(c->refusal, code, reason);
    if (code == RD_KAFKA_RESP_ERR__FATAL) {
        char text[DISPATCH_REASON_MAX / 2] = "";
        rd_kafka_resp_err_t why = rd_kafka_fatal_error(rk, text, sizeof text);
        c->fatal = true;
        (void)snprintf(c->fatal_text, sizeof c->fatal_text, "%s: %s", rd_kafka_err2name(why),
                       text[0] != '\0' ? text : reason);
    }
}

static const struct kafka_setting consumer_settings[] = {
    {"enable.auto.commit", "true"},
    {"auto.commit.interval.ms", "1000"},
    {"enable.auto.offset.store", "false"},
    {"auto.offset.reset", "earliest"}, /* the default, latest, would skip what came before us */
    {"partition.assignment.strategy", "roundrobin"},
    {"session.timeout.ms", "15000"},
    {"heartbeat.interval.ms", "3000"},
    {"max.poll.interval.ms", "300000"},
    {"allow.auto.create.topics", "false"},
    {"fetch.wait.max.ms", "250"},
    {"fetch.min.bytes", "1"},
    {"fetch.error.backoff.ms", "100"},
    /* What is fetched early keeps nothing from others: a partition is one worker's anyway. But when
     * this many wait, the library (before 2.2) looks a second later whether it should fetch again:
     * more than are consumed in a second, and a bound on memory. */
    {"queued.min.messages", "20000"},
    {"queued.max.messages.kbytes", "16384"},
    {"check.crcs", "true"},
    {"isolation.level", "read_uncommitted"}, /* nothing here is transactional */
    {NULL, NULL},
};

static enum status consumer_make(struct consumer *c, const struct consumer_options *o,
                                 struct error *err)
{
    rd_kafka_conf_t *conf = NULL;
    enum status s = kafka_conf_new(&o->dispatch, consumer_settings, c, &conf, err);
    if (s != STATUS_OK) {
        return s;
    }
    char why[256] = "";
    if (rd_kafka_conf_set(conf, "group.id", o->group, why, sizeof why) != RD_KAFKA_CONF_OK) {
        rd_kafka_conf_destroy(conf);
        return error_set(err, STATUS_INVALID, "Kafka group \"%s\": %s", o->group, why);
    }
    rd_kafka_conf_set_rebalance_cb(conf, rebalanced);
    rd_kafka_conf_set_error_cb(conf, error_happened);
    c->rk = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof why);
    if (c->rk == NULL) {
        rd_kafka_conf_destroy(conf);
        return error_set(err, STATUS_INVALID, "Kafka consumer: %s", why);
    }
    (void)rd_kafka_poll_set_consumer(c->rk);
    rd_kafka_topic_partition_list_t *wanted =
        rd_kafka_topic_partition_list_new((int)c->topic_count);
    for (size_t i = 0; i < c->topic_count; i++) {
        (void)rd_kafka_topic_partition_list_add(wanted, c->topics[i], RD_KAFKA_PARTITION_UA);
    }
    rd_kafka_resp_err_t code = rd_kafka_subscribe(c->rk, wanted);
    rd_kafka_topic_partition_list_destroy(wanted);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return error_set(err, STATUS_INVALID, "Kafka subscription: %s", rd_kafka_err2str(code));
    }
    return STATUS_OK;
}

static void consumer_free(struct consumer *c)
{
    for (size_t i = 0; c->topics != NULL && i < c->topic_count; i++) {
        free((void *)(uintptr_t)c->topics[i]);
    }
    free(c->topics);
    free(c);
}

static bool topics_copy(struct consumer *c, const char *const *topics)
{
    size_t n = 0;
    while (topics[n] != NULL) {
        n++;
    }
    c->topics = calloc(n + 1, sizeof c->topics[0]);
    for (; c->topics != NULL && c->topic_count < n; c->topic_count++) {
        c->topics[c->topic_count] = strdup(topics[c->topic_count]);
        if (c->topics[c->topic_count] == NULL) {
            return false;
        }
    }
    return c->topics != NULL;
}

enum status consumer_open(const struct consumer_options *options, struct consumer **ret_consumer,
                          struct error *err)
{
    struct consumer *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    enum status s = STATUS_OK;
    if (!topics_copy(c, options->topics)) {
        s = error_set(err, STATUS_FATAL, "out of memory");
    } else if (c->topic_count == 0) {
        s = error_set(err, STATUS_INVALID, "no Kafka topic to subscribe to");
    } else {
        s = consumer_make(c, options, err);
    }
    if (s != STATUS_OK) {
        if (c->rk == NULL || kafka_end(c->rk, instant_add_ms(clock_now(), 1000))) {
            consumer_free(c);
        }
        return s;
    }
    c->one = rd_kafka_topic_partition_list_new(1);
    *ret_consumer = c;
    return STATUS_OK;
}

static void current_drop(struct consumer *c)
{
    if (c->current != NULL) {
        rd_kafka_message_destroy(c->current);
        c->current = NULL;
    }
}

static int32_t topic_index(const struct consumer *c, const char *name)
{
    for (size_t i = 0; i < c->topic_count; i++) {
        if (strcmp(c->topics[i], name) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

static void incoming_fill(const struct consumer *c, struct incoming *m)
{
    const rd_kafka_message_t *k = c->current;
    m->position = (struct message_position){topic_index(c, rd_kafka_topic_name(k->rkt)),
                                            k->partition, k->offset};
    m->value = k->payload;
    m->size = k->len;
    m->header_count = 0;
    rd_kafka_headers_t *headers = NULL;
    if (rd_kafka_message_headers(k, &headers) != RD_KAFKA_RESP_ERR_NO_ERROR) {
        return;
    }
    while (m->header_count < INCOMING_HEADERS_MAX) {
        const char *name = NULL;
        const void *value = NULL;
        size_t size = 0;
        if (rd_kafka_header_get_all(headers, m->header_count, &name, &value, &size) !=
            RD_KAFKA_RESP_ERR_NO_ERROR) {
            return;
        }
        m->headers[m->header_count++] = (struct message_header){name, value, size};
    }
}

/* The library tries again twenty times a minute and fails of the same each time. */
static bool refusal_tell(struct consumer *c, struct error *err)
{
    instant now = clock_now();
    bool tell = c->refusal[0] != '\0' && !instant_before(now, c->refusal_at);
    if (tell) {
        c->refusal_at = instant_add_ms(now, REFUSAL_MS);
        (void)error_set(err, STATUS_AGAIN, "Kafka consumer: %s", c->refusal);
    }
    c->refusal[0] = '\0';
    return tell;
}

enum status consumer_poll(struct consumer *c, int timeout_ms, struct incoming *ret_message,
                          struct error *err)
{
    current_drop(c);
    rd_kafka_message_t *m = rd_kafka_consumer_poll(c->rk, timeout_ms);
    if (c->fatal) {
        if (m != NULL) {
            rd_kafka_message_destroy(m);
        }
        return error_set(err, STATUS_FATAL, "Kafka consumer: %s", c->fatal_text);
    }
    if (m == NULL) {
        return refusal_tell(c, err) ? STATUS_AGAIN : STATUS_NOT_FOUND;
    }
    if (m->err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        enum status s = kafka_status(m->err) == STATUS_FATAL ? STATUS_FATAL : STATUS_AGAIN;
        s = error_set(err, s, "Kafka consumer: %s", rd_kafka_message_errstr(m));
        rd_kafka_message_destroy(m);
        return s;
    }
    c->current = m;
    incoming_fill(c, ret_message);
    return STATUS_OK;
}

void consumer_store(struct consumer *c, const struct message_position *position)
{
    if (position->topic < 0 || (size_t)position->topic >= c->topic_count || c->assigned == NULL) {
        return;
    }
    const char *topic = c->topics[position->topic];
    rd_kafka_topic_partition_t *ours =
        rd_kafka_topic_partition_list_find(c->assigned, topic, position->partition);
    if (ours == NULL || position->offset <= ours->offset) {
        return;
    }
    CRASH_POINT("offset.before");
    ours->offset = position->offset;
    rd_kafka_topic_partition_t *next =
        rd_kafka_topic_partition_list_add(c->one, topic, position->partition);
    next->offset = position->offset + 1; /* the list form wants the next offset to read */
    /* A partition that is being revoked answers _STATE: the next member reads it again. */
    (void)rd_kafka_offsets_store(c->rk, c->one);
    rd_kafka_topic_partition_list_del(c->one, topic, position->partition);
}

void consumer_pause(struct consumer *c)
{
    if (!c->paused) {
        c->paused = true;
        assigned_pause(c, true);
    }
}

void consumer_resume(struct consumer *c)
{
    if (c->paused) {
        c->paused = false;
        assigned_pause(c, false);
    }
}

bool consumer_is_paused(const struct consumer *c)
{
    return c->paused;
}

size_t consumer_assigned(const struct consumer *c)
{
    return c->assigned != NULL ? (size_t)c->assigned->cnt : 0;
}

enum status consumer_close(struct consumer *c, instant deadline)
{
    if (c == NULL) {
        return STATUS_OK;
    }
    current_drop(c);
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(c->rk);
    rd_kafka_error_t *refused = rd_kafka_consumer_close_queue(c->rk, queue);
    bool closed = refused != NULL; /* it never joined, or is closed already */
    if (refused != NULL) {
        rd_kafka_error_destroy(refused);
    }
    while (!closed && instant_before(clock_now(), deadline)) {
        int wait = kafka_remaining_ms(deadline);
        /* Not rd_kafka_queue_poll_callback: it aborts the process on a fetched message that nobody
         * has taken (2.0.2). Such a message is not stored, so it comes again. */
        rd_kafka_message_t *m = rd_kafka_consumer_poll(c->rk, wait < 50 ? wait : 50);
        if (m != NULL) {
            rd_kafka_message_destroy(m);
        }
        closed = rd_kafka_consumer_closed(c->rk) != 0;
    }
    rd_kafka_queue_destroy(queue);
    /* Lists hold references to partitions; the end waits for them (2.0.2). */
    assigned_clear(c);
    rd_kafka_topic_partition_list_destroy(c->one);
    if (!kafka_end(c->rk, instant_max(deadline, instant_add_ms(clock_now(), 100)))) {
        return STATUS_TIMEOUT;
    }
    consumer_free(c);
    return STATUS_OK;
}
