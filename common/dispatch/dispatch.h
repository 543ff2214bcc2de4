/* Port: Kafka. A publisher (the relay's), a consumer (the worker's), and topic administration
 * (reportctl's). One adapter, dispatch_kafka*.c, is the only code that includes librdkafka.
 *
 * Messages are hints (invariant I5): losing, repeating or delaying one costs time, never
 * correctness. So no transactions, no exactly-once machinery: what must be right is in PostgreSQL.
 * Objects belong to one thread each; library callbacks never run our code outside a call below.
 *
 * librdkafka 2.0.2 (Debian 12) shapes what is here: an idempotent producer may turn fatal after an
 * ordinary disconnect (fixed in 2.3.0), so a publisher must be replaceable at any time;
 * cooperative-sticky can abort the process on close (fixed in 2.3.0), so assignment is eager
 * roundrobin; batch consumption misattributes messages around rebalances (fixed in 2.1.0), so
 * messages are polled one by one. It is not fork-safe: children are made with posix_spawn and
 * close all descriptors from 3 on. */
#ifndef RS_DISPATCH_H
#define RS_DISPATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "message.h"
#include "status.h"

#define DISPATCH_CLIENT_ID_MAX 41 /* with NUL; longer ones crash some versions */
#define DISPATCH_REASON_MAX    200

struct dispatch_options {
    const char *brokers;           /* bootstrap.servers */
    const char *client_id;         /* cut at DISPATCH_CLIENT_ID_MAX - 1 bytes */
    const char *const *properties; /* librdkafka "key=value" (TLS, SASL …), NULL-terminated; may be
                                      NULL. They override our settings, except those that
                                      correctness rests on: those are refused by name. Values may
                                      be secrets: they never appear in error texts. */
    const char *const *secret_files; /* "property=/path": those whose value is the content of a file
                                        of mode 0600, read for each client; else as properties */
};

/* The same for one of options.secret_files: its form; and whether its file could be read now. */
MUST_USE enum status dispatch_secret_file_check(const char *item, struct error *err);
MUST_USE enum status dispatch_secret_file_around(const char *item, struct error *err);

/* Would this "name=value" of options.properties be taken? What the library thinks of it, without a
 * client; its value never appears in the text. Returns: OK; INVALID; FATAL (memory). Thread: any.
 * Blocks: never. */
MUST_USE enum status dispatch_property_check(const char *property, struct error *err);

/* ---- Publisher ------------------------------------------------------------------------------ */

struct publisher; /* owner thread only */

struct publisher_options {
    struct dispatch_options dispatch;
    const char *topic;
    size_t window;              /* messages accepted whose report was not taken yet, at most */
    int64_t message_timeout_ms; /* a message undelivered for so long is reported as failed */
};

enum publish_result {
    PUBLISH_DELIVERED, /* acknowledged by all in-sync replicas: the outbox row may go */
    PUBLISH_FAILED,    /* not, or not known to be, in Kafka: the row stays and is tried again */
    PUBLISH_REFUSED,   /* the broker will never take this message (size): try alone, then bury */
};

struct publish_report {
    int64_t id; /* as given to publisher_publish */
    enum publish_result result;
    char reason[DISPATCH_REASON_MAX]; /* "" when delivered */
};

/* Make a producer: idempotent, acks=all. Does not connect by itself (Kafka being away is no
 * error). Owns: *ret_publisher, publisher_free.
 * Returns: OK; INVALID (a property is unknown or refused: the text names it); FATAL (no memory). */
MUST_USE enum status publisher_new(const struct publisher_options *options,
                                   struct publisher **ret_publisher, struct error *err);

/* Fetch the topic's metadata: without it the first message waits up to a second, and it tells a
 * missing topic apart. Returns: OK (with the number of partitions); NOT_FOUND (no such topic: make
 * it with reportctl); AGAIN (brokers unreachable, not authorised yet …); FATAL.
 * Blocks: until deadline. */
MUST_USE enum status publisher_warm(struct publisher *p, instant deadline, int *ret_partitions,
                                    struct error *err);

/* Hand one message over; text is copied. Its key is m_key (the job id), so that a burst spreads
 * over the partitions. Blocks: never.
 * Returns: OK (exactly one report will follow); FULL (window or queue: poll, then the same message
 * again); INVALID (larger than the client may send: bury it, no report follows); AGAIN (topic or
 * partition not known now); FATAL (make a new publisher). */
MUST_USE enum status publisher_publish(struct publisher *p, int64_t id, const char *key,
                                       const struct message_text *text, struct error *err);

/* Take up to `capacity` delivery reports. Blocks: up to timeout_ms (0: not) for the first one.
 * Returns their number. Also serves the client's events; call it at least once a second. */
size_t publisher_poll(struct publisher *p, int timeout_ms, struct publish_report *ret_reports,
                      size_t capacity);

/* Readable when publisher_poll may have something; poll until it returns fewer than `capacity`,
 * which clears it. Borrowed. */
int publisher_fd(const struct publisher *p);

/* After a fatal error only stop, poll and free are of use. The text says what happened. */
bool publisher_is_fatal(const struct publisher *p, struct error *err);

/* False from "all brokers are down" until something was acknowledged again. A gauge, not a rule. */
bool publisher_is_reachable(const struct publisher *p);
/* What a broker said when it refused us, or the library of it, for people. "": nothing, since the
 * brokers answered last. It comes later than the failure of a call: as soon as one has answered.
 * Valid until the next call. */
const char *publisher_refusal(const struct publisher *p);

/* Messages accepted whose report was not taken yet. */
size_t publisher_in_flight(const struct publisher *p);

/* Accept nothing more, wait until the deadline for what is in flight, then purge the rest. After
 * it each accepted message has its report: take them with publisher_poll(p, 0, …). */
void publisher_stop(struct publisher *p, instant deadline);

/* Stops at once if not stopped, then ends. NULL is fine. Blocks: bounded by librdkafka's join of
 * its threads, milliseconds as a rule. A message without a taken report is simply still in the
 * outbox: rows are deleted only on PUBLISH_DELIVERED. */
void publisher_free(struct publisher *p);

/* ---- Consumer ------------------------------------------------------------------------------- */

struct consumer; /* owner thread only */

struct consumer_options {
    struct dispatch_options dispatch;
    const char *group;         /* group.id, e.g. report-workers-default */
    const char *const *topics; /* NULL-terminated, at least one */
};

/* Where a message lies; keep it to store its offset after the claim committed. */
struct message_position {
    int32_t topic; /* index into options.topics */
    int32_t partition;
    int64_t offset;
};

#define INCOMING_HEADERS_MAX 32 /* further headers of one message are not shown */

/* A message as it arrived. Borrowed: valid until the next consumer_poll or consumer_close. */
struct incoming {
    struct message_position position;
    const void *value;
    size_t size;
    struct message_header headers[INCOMING_HEADERS_MAX];
    size_t header_count;
};

/* Join the group: eager roundrobin, dynamic member, offsets stored explicitly and committed each
 * second, auto.offset.reset=earliest. Does not wait for brokers.
 * Owns: *ret_consumer, consumer_close. Returns: OK; INVALID (property); FATAL. */
MUST_USE enum status consumer_open(const struct consumer_options *options,
                                   struct consumer **ret_consumer, struct error *err);

/* The next message. Call it at least every few seconds also while paused: not polling for
 * max.poll.interval.ms (5 min) leaves the group.
 * Returns: OK; NOT_FOUND (nothing within the timeout); AGAIN (a broker or topic error worth a log
 * line; polling goes on by itself); FATAL (close it and open a new one). Blocks: up to timeout_ms.
 */
MUST_USE enum status consumer_poll(struct consumer *c, int timeout_ms, struct incoming *ret_message,
                                   struct error *err);

/* The message is dealt with (claimed durably, or found to be poison): its offset may be committed
 * with the next automatic commit. Store positions of a partition in the order they were polled; a
 * lower one than already stored is ignored, so is a partition that was revoked meanwhile. */
void consumer_store(struct consumer *c, const struct message_position *position);

/* No free runner: fetch nothing, stay in the group, keep polling. Idempotent; holds over
 * rebalances until resumed. Messages fetched before but not returned are fetched again. */
void consumer_pause(struct consumer *c);
void consumer_resume(struct consumer *c);
bool consumer_is_paused(const struct consumer *c);

/* Partitions assigned now; a gauge. */
size_t consumer_assigned(const struct consumer *c);

/* Commit stored offsets and leave the group. Returns: OK; TIMEOUT: librdkafka hangs (it may when
 * the coordinator is away): the object is abandoned, its memory with it; end the process soon.
 * NULL is fine. Blocks: until deadline. */
MUST_USE enum status consumer_close(struct consumer *c, instant deadline);

/* ---- Administration ------------------------------------------------------------------------- */

struct topic_spec {
    const char *name;
    int partitions;        /* 1 or more; two to three times the largest number of workers */
    int replication;       /* 1 or more */
    int min_insync;        /* min.insync.replicas; 0: the broker's default */
    int64_t retention_ms;  /* messages are hints: hours; 0: the broker's default */
    int max_message_bytes; /* largest the broker takes; 0: 65536 */
};

/* Returns: OK; CONFLICT (it exists); INVALID (the broker refused it: the text is its own); AGAIN
 * (unreachable); TIMEOUT (unknown). Thread: any, one call at a time each. Blocks: until deadline.
 */
MUST_USE enum status topic_create(const struct dispatch_options *options,
                                  const struct topic_spec *spec, instant deadline,
                                  struct error *err);

/* Returns: OK; NOT_FOUND; and as topic_create. */
MUST_USE enum status topic_delete(const struct dispatch_options *options, const char *name,
                                  instant deadline, struct error *err);

struct topic_facts {
    int partitions;
    int replication; /* of the first partition */
};

/* Returns: OK; NOT_FOUND; AGAIN; TIMEOUT. Blocks: until deadline. */
MUST_USE enum status topic_read(const struct dispatch_options *options, const char *name,
                                instant deadline, struct topic_facts *ret_facts, struct error *err);

/* "2.0.2": the library that runs, for version lines. */
const char *dispatch_library_version(void);

#endif
