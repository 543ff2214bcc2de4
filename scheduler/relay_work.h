/* Inside of relay*.c: one relay's work, turn by turn, on the relay thread. */
#ifndef RS_RELAY_WORK_H
#define RS_RELAY_WORK_H

#include "dispatch.h"
#include "relay.h"
#include "relay_window.h"
#include "store_outbox.h"

struct relay_work {
    const struct relay_options *options; /* borrowed */
    struct relay_window *window;
    struct outbox_row *rows; /* OUTBOX_FETCH_MAX */
    struct store *store;
    struct publisher *publisher;

    instant store_retry_at;
    unsigned store_failures;
    bool store_up; /* as last logged */

    instant publisher_retry_at; /* a new producer, or metadata, is tried then */
    unsigned publisher_failures;
    instant publisher_made_at;
    bool warm;         /* metadata known and no failure since: messages may be handed over */
    bool publisher_up; /* as last logged */

    instant fetch_at;
    instant ack_at; /* INSTANT_NEVER: nothing to delete */
    instant trim_at;
    bool fenced;
    struct relay_snapshot counters;
};

/* Set up an empty window; connections and the producer come with the turns. Returns: OK; FATAL (no
 * memory). Owns: after OK, end with relay_work_end. Thread: relay. Blocks: never. */
MUST_USE enum status relay_work_begin(struct relay_work *w, const struct relay_options *options,
                                      struct error *err);

/* One turn: connections, reports, deletions, fetch and publish. Returns when the next is wanted at
 * the latest. Blocks: bounded by a statement, or a second for Kafka's metadata. */
instant relay_work_turn(struct relay_work *w, bool woken);

/* Let in-flight messages finish until the deadline, delete what was delivered, close all. */
void relay_work_end(struct relay_work *w, instant deadline);

/* Descriptor to wait for besides the own one; -1: none. */
int relay_work_fd(const struct relay_work *w);

#endif
