/* The relay of one led scope: a thread that publishes outbox rows to Kafka and deletes a row only
 * after a delivery report without error (docs/guarantees.md). Own connection, own producer. */
#ifndef RS_RELAY_H
#define RS_RELAY_H

#include <stddef.h>
#include <stdint.h>

#include "authority.h"
#include "clock.h"
#include "lease.h"
#include "status.h"
#include "store.h"

struct relay;

struct relay_options {
    struct authority authority; /* copied */
    const struct lease *lease;  /* borrowed until relay_stop returns */
    struct store_options store; /* strings borrowed until relay_stop returns */
    const char *brokers;        /* bootstrap.servers */
    const char *topic;
    const char *const *properties; /* extra librdkafka "key=value", NULL-terminated; may be NULL */
    const char *const *secret_files; /* see dispatch.h */
    size_t window;                   /* rows fetched and not yet acknowledged, at most */
    int64_t statement_ms;
};

/* Start the thread. Kafka or PostgreSQL being away is not an error: it retries with backoff.
 * Returns: OK, FATAL (no thread, no memory). Owns: end with relay_stop. */
MUST_USE enum status relay_start(const struct relay_options *options, struct relay **ret_relay,
                                 struct error *err);

/* Rows were committed: look now. A hint only. Thread: any. Blocks: never. */
void relay_wake(struct relay *relay);

/* True once a protected call of the relay was refused: the scope must step down. Thread: any. */
bool relay_is_fenced(const struct relay *relay);

/* Counters for people, since relay_start; a consistent copy. Thread: any. Blocks: never for long.
 */
struct relay_snapshot {
    uint64_t published, deleted, failed, buried, trimmed, producers_made;
    int64_t in_flight;
    bool kafka_reachable;
};
struct relay_snapshot relay_read(const struct relay *relay);

/* The longest stall of its loop, see stall.h. Thread: any. */
double relay_stall_s(struct relay *relay);

/* Stop fetching, give in-flight messages until the deadline, end the thread, free. Thread: scope
 * thread. Blocks: until the deadline plus the bounded end of the producer. */
void relay_stop(struct relay *relay, instant deadline);

#endif
