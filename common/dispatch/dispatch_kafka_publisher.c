/* The publisher: an idempotent producer whose every accepted message ends in exactly one report. */
#include "dispatch_kafka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "process_metrics.h"

#define PURGE_WAIT_MS 1000
#define END_WAIT_MS   10000

enum slot_state {
    SLOT_FREE,
    SLOT_SENT,     /* handed to librdkafka, no report yet */
    SLOT_REPORTED, /* report waits to be taken */
};

/* One accepted message. The slot's address is the message's opaque. */
struct slot {
    enum slot_state state;
    int64_t id;
    instant sent_at;
    enum publish_result result;
    rd_kafka_resp_err_t code;
    struct slot *next; /* in the free list or the list of reports */
};

struct publisher {
    rd_kafka_t *rk;
    rd_kafka_topic_t *topic;
    rd_kafka_queue_t *queue;
    int fd;
    struct slot *slots;
    size_t window, in_flight;
    struct slot *free_slots;
    struct slot *reports, **reports_end;
    struct metric *ack_seconds;
    bool fatal, reachable, stopped;
    char fatal_text[DISPATCH_REASON_MAX];
    char refusal[DISPATCH_REASON_MAX]; /* by a broker or of one, until a request succeeds */
};

static enum publish_result result_of(rd_kafka_resp_err_t code)
{
    switch ((int)code) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
        return PUBLISH_DELIVERED;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR__BAD_MSG:
        return PUBLISH_REFUSED;
    default:
        return PUBLISH_FAILED;
    }
}

static void slot_report(struct publisher *p, struct slot *slot, rd_kafka_resp_err_t code)
{
    slot->state = SLOT_REPORTED;
    slot->code = code;
    slot->result = result_of(code);
    slot->next = NULL;
    *p->reports_end = slot;
    p->reports_end = &slot->next;
}

/* Runs inside rd_kafka_poll and rd_kafka_flush, that is on the owner's thread. */
static void delivery_reported(rd_kafka_t *rk, const rd_kafka_message_t *m, void *opaque)
{
    (void)rk;
    struct publisher *p = opaque;
    struct slot *slot = m->_private;
    if (slot->state != SLOT_SENT) {
        return; /* reported on behalf of librdkafka by publisher_stop; a late one changes nothing */
    }
    if (m->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        p->reachable = true;
        metric_observe(p->ack_seconds, metric_seconds_since(slot->sent_at, clock_now()));
    }
    slot_report(p, slot, m->err);
}

/* The cause of a fatal error, from whichever call saw it first. */
static void fatal_note(struct publisher *p, const char *otherwise)
{
    char text[DISPATCH_REASON_MAX / 2] = "";
    rd_kafka_resp_err_t why = rd_kafka_fatal_error(p->rk, text, sizeof text);
    p->fatal = true;
    (void)snprintf(p->fatal_text, sizeof p->fatal_text, "%s: %s", rd_kafka_err2name(why),
                   text[0] != '\0' ? text : otherwise);
}

static void error_happened(rd_kafka_t *rk, int code, const char *reason, void *opaque)
{
    (void)rk;
    struct publisher *p = opaque;
    kafka_refusal_note(p->refusal, code, reason);
    if (code == RD_KAFKA_RESP_ERR__FATAL) {
        fatal_note(p, reason);
    } else if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        p->reachable = false;
    }
}

static enum status producer_make(struct publisher *p, const struct publisher_options *o,
                                 struct error *err)
{
    char timeout[24];
    char queue_size[24];
    (void)snprintf(timeout, sizeof timeout, "%lld", (long long)o->message_timeout_ms);
    /* The window is the bound; a full queue would be a bug of ours. */
    (void)snprintf(queue_size, sizeof queue_size, "%zu", o->window * 2 + 16);
    const struct kafka_setting settings[] = {
        {"enable.idempotence", "true"},
        {"acks", "all"},
        /* A burst goes in a request a partition instead of one for every few messages: half of the
         * broker's work for it, for a millisecond. */
        {"linger.ms", "1"},
        /* Messages are small and batches short: with zstd the broker spent twice as long on them.
         */
        {"compression.type", "none"},
        /* A broker measures whole batches by the topic's max.message.bytes, 65536 as reportctl
         * makes it, and refuses all of a larger one: each message would then go alone. */
        {"batch.size", "57344"},
        {"message.timeout.ms", timeout},
        {"request.timeout.ms", "10000"},
        {"retry.backoff.ms", "100"},
        {"queue.buffering.max.messages", queue_size},
        {"queue.buffering.max.kbytes", "65536"},
        {"delivery.report.only.error", "false"},
        {"partitioner", "murmur2_random"}, /* places a key as the Java clients do */
        {NULL, NULL},
    };
    rd_kafka_conf_t *conf = NULL;
    enum status s = kafka_conf_new(&o->dispatch, settings, p, &conf, err);
    if (s != STATUS_OK) {
        return s;
    }
    rd_kafka_conf_set_dr_msg_cb(conf, delivery_reported);
    rd_kafka_conf_set_error_cb(conf, error_happened);
    char why[256] = "";
    p->rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof why);
    if (p->rk == NULL) {
        rd_kafka_conf_destroy(conf);
        return error_set(err, STATUS_INVALID, "Kafka producer: %s", why);
    }
    p->topic = rd_kafka_topic_new(p->rk, o->topic, NULL);
    p->queue = rd_kafka_queue_get_main(p->rk);
    if (p->topic == NULL || p->queue == NULL) {
        return error_set(err, STATUS_INVALID, "Kafka topic \"%s\": %s", o->topic,
                         rd_kafka_err2str(rd_kafka_last_error()));
    }
    static const uint64_t one = 1;
    rd_kafka_queue_io_event_enable(p->queue, p->fd, &one, sizeof one);
    return STATUS_OK;
}

enum status publisher_new(const struct publisher_options *options, struct publisher **ret_publisher,
                          struct error *err)
{
    struct publisher *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    p->reports_end = &p->reports;
    p->ack_seconds = metric_get(&PROCESS_FAMILIES[PROCESS_KAFKA_ACK_SECONDS], NULL, NULL);
    p->window = options->window > 0 ? options->window : 1;
    p->slots = calloc(p->window, sizeof p->slots[0]);
    p->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    enum status s = STATUS_OK;
    if (p->slots == NULL || p->fd < 0) {
        s = error_set(err, STATUS_FATAL, "out of memory or descriptors");
    } else {
        for (size_t i = p->window; i-- > 0;) {
            p->slots[i].next = p->free_slots;
            p->free_slots = &p->slots[i];
        }
        s = producer_make(p, options, err);
    }
    if (s != STATUS_OK) {
        publisher_free(p);
        return s;
    }
    *ret_publisher = p;
    return STATUS_OK;
}

enum status publisher_warm(struct publisher *p, instant deadline, int *ret_partitions,
                           struct error *err)
{
    const struct rd_kafka_metadata *facts = NULL;
    rd_kafka_resp_err_t code =
        rd_kafka_metadata(p->rk, 0, p->topic, &facts, kafka_remaining_ms(deadline));
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        enum status s = kafka_status(code) == STATUS_FATAL ? STATUS_FATAL : STATUS_AGAIN;
        (void)rd_kafka_poll(p->rk, 0); /* serves the error callback */
        return error_set(err, s, "Kafka metadata: %s%s%s", rd_kafka_err2str(code),
                         p->refusal[0] == '\0' ? "" : ": ", p->refusal);
    }
    p->refusal[0] = '\0';
    enum status s = STATUS_OK;
    if (facts->topic_cnt != 1) {
        s = error_set(err, STATUS_AGAIN, "Kafka metadata: no answer about topic \"%s\"",
                      rd_kafka_topic_name(p->topic));
    } else if (facts->topics[0].err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        s = kafka_status(facts->topics[0].err) == STATUS_NOT_FOUND ? STATUS_NOT_FOUND
                                                                   : STATUS_AGAIN;
        s = error_set(err, s, "Kafka topic \"%s\": %s", rd_kafka_topic_name(p->topic),
                      rd_kafka_err2str(facts->topics[0].err));
    } else {
        p->reachable = true;
        *ret_partitions = facts->topics[0].partition_cnt;
    }
    rd_kafka_metadata_destroy(facts);
    return s;
}

static rd_kafka_headers_t *headers_make(const struct message_text *text)
{
    rd_kafka_headers_t *headers = rd_kafka_headers_new(text->header_count);
    for (size_t i = 0; headers != NULL && i < text->header_count; i++) {
        const struct message_header *h = &text->headers[i];
        if (rd_kafka_header_add(headers, h->name, -1, h->value, (ssize_t)h->size) !=
            RD_KAFKA_RESP_ERR_NO_ERROR) {
            rd_kafka_headers_destroy(headers);
            return NULL;
        }
    }
    return headers;
}

enum status publisher_publish(struct publisher *p, int64_t id, const char *key,
                              const struct message_text *text, struct error *err)
{
    if (p->fatal || p->stopped) {
        return error_set(err, STATUS_FATAL, "Kafka producer: %s",
                         p->fatal ? p->fatal_text : "stopped");
    }
    struct slot *slot = p->free_slots;
    if (slot == NULL) {
        return error_set(err, STATUS_FULL, "%zu messages are in flight", p->window);
    }
    rd_kafka_headers_t *headers = headers_make(text);
    if (headers == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    /* producev, not produceva: that one frees headers twice on failure before 2.12. The types are
     * spelled out: librdkafka's macros for them are no ISO C. */
    rd_kafka_resp_err_t code = rd_kafka_producev(
        p->rk, RD_KAFKA_VTYPE_RKT, p->topic, RD_KAFKA_VTYPE_PARTITION,
        (int32_t)RD_KAFKA_PARTITION_UA, RD_KAFKA_VTYPE_MSGFLAGS, (int)RD_KAFKA_MSG_F_COPY,
        RD_KAFKA_VTYPE_KEY, (const void *)key, strlen(key), RD_KAFKA_VTYPE_VALUE,
        (const void *)text->value, text->value_size, RD_KAFKA_VTYPE_HEADERS, headers,
        RD_KAFKA_VTYPE_OPAQUE, (void *)slot, RD_KAFKA_VTYPE_END);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        rd_kafka_headers_destroy(headers);
        enum status s = kafka_status(code);
        if (s == STATUS_FATAL) {
            fatal_note(p, rd_kafka_err2str(code));
            return error_set(err, s, "Kafka producer: %s", p->fatal_text);
        }
        s = s == STATUS_NOT_FOUND ? STATUS_AGAIN : s;
        return error_set(err, s, "Kafka produce: %s", rd_kafka_err2str(code));
    }
    p->free_slots = slot->next;
    slot->next = NULL;
    slot->state = SLOT_SENT;
    slot->id = id;
    slot->sent_at = clock_now();
    p->in_flight++;
    return STATUS_OK;
}

size_t publisher_poll(struct publisher *p, int timeout_ms, struct publish_report *ret_reports,
                      size_t capacity)
{
    /* Cleared before the queue is served: what arrives after makes it readable again. */
    uint64_t ignored = 0;
    ssize_t got = read(p->fd, &ignored, sizeof ignored);
    (void)got;
    (void)rd_kafka_poll(p->rk, p->reports == NULL ? timeout_ms : 0);
    size_t n = 0;
    while (n < capacity && p->reports != NULL) {
        struct slot *slot = p->reports;
        p->reports = slot->next;
        if (p->reports == NULL) {
            p->reports_end = &p->reports;
        }
        struct publish_report *r = &ret_reports[n++];
        r->id = slot->id;
        r->result = slot->result;
        r->reason[0] = '\0';
        if (slot->code != RD_KAFKA_RESP_ERR_NO_ERROR) {
            (void)snprintf(r->reason, sizeof r->reason, "%s", rd_kafka_err2str(slot->code));
        }
        slot->state = SLOT_FREE;
        slot->next = p->free_slots;
        p->free_slots = slot;
        p->in_flight--;
    }
    return n;
}

int publisher_fd(const struct publisher *p)
{
    return p->fd;
}

bool publisher_is_fatal(const struct publisher *p, struct error *err)
{
    if (p->fatal) {
        (void)error_set(err, STATUS_FATAL, "Kafka producer: %s", p->fatal_text);
    }
    return p->fatal;
}

const char *publisher_refusal(const struct publisher *p)
{
    return p->refusal;
}

bool publisher_is_reachable(const struct publisher *p)
{
    return p->reachable;
}

size_t publisher_in_flight(const struct publisher *p)
{
    return p->in_flight;
}

static bool slot_is_sent(const struct publisher *p)
{
    for (size_t i = 0; i < p->window; i++) {
        if (p->slots[i].state == SLOT_SENT) {
            return true;
        }
    }
    return false;
}

void publisher_stop(struct publisher *p, instant deadline)
{
    if (p->stopped) {
        return;
    }
    p->stopped = true;
    if (slot_is_sent(p)) {
        (void)rd_kafka_flush(p->rk, kafka_remaining_ms(deadline));
    }
    if (slot_is_sent(p)) {
        (void)rd_kafka_purge(p->rk, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        instant end = instant_add_ms(clock_now(), PURGE_WAIT_MS);
        while (slot_is_sent(p) && instant_before(clock_now(), end)) {
            (void)rd_kafka_poll(p->rk, 10);
        }
    }
    /* Whatever librdkafka still owes us: its fate is unknown, so its row stays. */
    for (size_t i = 0; i < p->window; i++) {
        if (p->slots[i].state == SLOT_SENT) {
            slot_report(p, &p->slots[i], RD_KAFKA_RESP_ERR__DESTROY);
        }
    }
}

void publisher_free(struct publisher *p)
{
    if (p == NULL) {
        return;
    }
    bool ended = true;
    if (p->rk != NULL) {
        publisher_stop(p, clock_now());
        if (p->queue != NULL) {
            rd_kafka_queue_io_event_enable(p->queue, -1, NULL, 0);
            rd_kafka_queue_destroy(p->queue);
        }
        if (p->topic != NULL) {
            rd_kafka_topic_destroy(p->topic);
        }
        ended = kafka_end(p->rk, instant_add_ms(clock_now(), END_WAIT_MS));
    }
    if (!ended) {
        return; /* librdkafka still runs and may write to what it knows: leak rather than crash */
    }
    if (p->fd >= 0) {
        (void)close(p->fd);
    }
    free(p->slots);
    free(p);
}
