/* Port: the outbox, as the relay sees it. Adapter: store_pg_outbox.c. Reads are plain SELECTs
 * without locks; nothing is held open while Kafka is waited for. Memory is the caller's.
 * Thread: the relay's, which owns the connection. Blocks: until call->deadline. */
#ifndef RS_STORE_OUTBOX_H
#define RS_STORE_OUTBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "message.h"
#include "store_call.h"

#define OUTBOX_FETCH_MAX 1000 /* rows a fetch */
#define OUTBOX_ACK_MAX   1000 /* ids an ack */

struct outbox_row {
    int64_t id;
    utc_us created_at;
    struct message message;
};

/* Make this connection known as the relay's, so that a successor can end it. Returns: OK; FENCED;
 * AGAIN; TIMEOUT; INVALID. */
MUST_USE enum status store_outbox_register(const struct store_call *call, struct error *err);

/* The scope's rows with id > low, in id order, at most `limit`. Returns: OK; AGAIN;
 * TIMEOUT; CORRUPT. */
MUST_USE enum status store_outbox_fetch(const struct store_call *call, int64_t low, size_t limit,
                                        struct outbox_row *ret_rows, size_t *ret_count,
                                        struct error *err);

/* Delete rows that Kafka has acknowledged; ones that are gone already are fine. ids, count: then
 * those that stay, since another session holds their rows; acknowledge them again. Returns: OK;
 * FENCED; AGAIN; TIMEOUT (the effect is unknown: ask again). */
MUST_USE enum status store_outbox_ack(const struct store_call *call, int64_t *ids, size_t *count,
                                      struct error *err);

/* Both in two halves, so that the relay publishes while the server works. After a send that was OK
 * its take must come before anything else is asked over the connection. Blocks: send only while the
 * request does not fit the socket; take until call->deadline, never once it is answered. */
MUST_USE enum status store_outbox_fetch_send(const struct store_call *call, int64_t low,
                                             size_t limit, struct error *err);
MUST_USE enum status store_outbox_fetch_take(const struct store_call *call, size_t limit,
                                             struct outbox_row *ret_rows, size_t *ret_count,
                                             struct error *err);
MUST_USE enum status store_outbox_ack_send(const struct store_call *call, const int64_t *ids,
                                           size_t count, struct error *err);
MUST_USE enum status store_outbox_ack_take(const struct store_call *call, int64_t *ids,
                                           size_t *count, struct error *err);

/* Has the answer come, or will none? Blocks: never. */
bool store_outbox_is_answered(struct store *store);

/* Move one row that cannot be published to outbox_dead. Not buried: it is gone already, or another
 * session holds it. Returns: as ack. */
MUST_USE enum status store_outbox_bury(const struct store_call *call, int64_t id,
                                       const char *reason, bool *ret_buried, struct error *err);

/* Drop the oldest rows beyond `keep`, a bounded number at a time: their jobs are served by the
 * pull path. Returns: as ack. */
MUST_USE enum status store_outbox_trim(const struct store_call *call, int64_t keep,
                                       int64_t *ret_dropped, struct error *err);

#endif
