/* What is asked of the database about a worker that was killed (sql/0014_release_claims.sql). */
#ifndef RS_STORE_RELEASE_H
#define RS_STORE_RELEASE_H

#include <stdint.h>

#include "store.h"

struct released_claims {
    bool known;        /* the database has met this incarnation */
    bool ended_before; /* it was marked already: stopped, or found silent */
    int64_t jobs;      /* returned by this call */
    int64_t remaining; /* rows that another session holds: call again */
};

/* Mark the incarnation dead and return its jobs. May be repeated. Only for a process that is proved
 * dead, with all programs it started. Returns: OK; AGAIN; TIMEOUT (unknown); INVALID. Thread: the
 * connection's owner. Blocks: until the deadline. */
MUST_USE enum status store_release_claims(struct store *store, const char *worker, instant deadline,
                                          struct released_claims *ret_released, struct error *err);

#endif
