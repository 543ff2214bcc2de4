/* Inside of relay*.c: one relay's work, turn by turn, on the relay thread.
 *
 * A turn takes reports and the answer of the statement in flight, sends the next one, and publishes
 * some rows while the server works. One statement is in flight at most, with a deadline; a fetch is
 * sent before the rows at hand are all published, and its rows wait in the socket till then. */
#ifndef RS_RELAY_WORK_H
#define RS_RELAY_WORK_H

#include "dispatch.h"
#include "relay.h"
#include "relay_window.h"
#include "store_outbox.h"

#define RELAY_ACK_WAIT_MS 10 /* deliveries are collected so long, or until they are many */

enum flight {
    FLIGHT_NONE,
    FLIGHT_FETCH,
    FLIGHT_ACK,
};

struct relay_work {
    const struct relay_options *options; /* borrowed */
    struct relay_window *window;
    struct outbox_row *rows; /* OUTBOX_FETCH_MAX; in the window as if sent, from rows_next on */
    size_t rows_next, rows_count;
    struct store *store;
    struct publisher *publisher;

    enum flight flight; /* the statement whose answer was not taken yet */
    instant flight_deadline;
    size_t fetch_limit;
    int64_t acked[OUTBOX_ACK_MAX];
    size_t acked_count;
    size_t locked;   /* delivered rows that other sessions held at the last deletion */
    int64_t bury_id; /* refused alone, to be buried when no statement is in flight; 0: none */
    char bury_reason[DISPATCH_REASON_MAX];

    instant store_retry_at;
    unsigned store_failures;
    bool store_up; /* as last logged */

    instant publisher_retry_at; /* a new producer, or metadata, is tried then */
    unsigned publisher_failures;
    instant publisher_made_at;
    bool warm;         /* metadata known and no failure since: messages may be handed over */
    bool publisher_up; /* as last logged */
    bool refusal_told; /* with what a broker said, if it was refused */

    instant fetch_at;
    instant ack_at; /* INSTANT_NEVER: nothing to delete */
    instant trim_at;
    bool fenced;
    instant decided_at; /* not after the lease was last looked at, see decision_log.h */
    struct relay_snapshot counters;
};

/* Set up an empty window; connections and the producer come with the turns. Returns: OK; FATAL (no
 * memory). Owns: after OK, end with relay_work_end. Thread: relay. Blocks: never. */
MUST_USE enum status relay_work_begin(struct relay_work *w, const struct relay_options *options,
                                      struct error *err);

/* One turn. Returns when the next is wanted at the latest. Blocks: bounded by a connection, a
 * statement for a single row, or a second for Kafka's metadata. */
instant relay_work_turn(struct relay_work *w, bool woken);

/* Let in-flight messages finish until the deadline, delete what was delivered, close all. */
void relay_work_end(struct relay_work *w, instant deadline);

/* Descriptors to wait for besides the own one; -1: none. */
struct relay_fds {
    int publisher, store;
};
struct relay_fds relay_work_fds(const struct relay_work *w);

/* ---- The producer, relay_kafka.c --------------------------------------------------------------
 */

/* Hand over nothing before its backoff is over. */
void relay_publisher_failed(struct relay_work *w, const struct error *why);

/* A producer that is not fatal and knows its topic. Anything else waits for its backoff. */
bool relay_publisher_ready(struct relay_work *w);

void relay_reports_take(struct relay_work *w);
void relay_publisher_end(struct relay_work *w, instant deadline);

#endif
