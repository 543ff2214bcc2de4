/* What a replica that does not lead tells the database, and hears from it: how it stands, and what
 * a planned handoff asks of it (docs/architecture.md, "Handoff"). Over the store port, unfenced: it
 * decides nothing about who leads. Thread: the connection's owner. Blocks: until deadline. */
#ifndef RS_STORE_CANDIDATE_H
#define RS_STORE_CANDIDATE_H

#include <stdbool.h>

#include "authority.h"
#include "store.h"

/* Told to all replicas when a handoff has begun, and to the leader when its successor is ready. */
#define CANDIDATE_CHANNEL "report_handoff"

enum candidate_state {
    CANDIDATE_READY,
    CANDIDATE_SUSPENDED, /* ZooKeeper does not answer */
    CANDIDATE_HELD,
};

/* How a replica stands. */
struct candidate_stand {
    const char *member;
    enum candidate_state state;
    unsigned ahead;  /* how many candidates are before it; ignored when HELD */
    bool confirmed;  /* a quorum write was answered since SUCCESSOR was heard first */
    const char *why; /* HELD: the reason */
    const char *url; /* advertised; NULL or "": none */
};

enum candidate_wish {
    CANDIDATE_WISH_NONE,
    CANDIDATE_WISH_ASIDE,     /* enroll again, behind the successor */
    CANDIDATE_WISH_SUCCESSOR, /* it is to lead next: get ready, and tell when the others are gone */
    CANDIDATE_WISH_READY,     /* that is noted: the leader drains and releases */
};

/* Authority: scope, incarnation and generation (0: no node). Returns: OK; AGAIN; TIMEOUT;
 * CORRUPT. */
MUST_USE enum status candidate_follow(struct store *store, const struct authority *a,
                                      const struct candidate_stand *stand, instant deadline,
                                      enum candidate_wish *ret_wish, struct error *err);

/* Call what a new leader calls first and undo it, so that this connection is quick at it. Changes
 * nothing. Returns: OK; AGAIN; TIMEOUT; INVALID. */
MUST_USE enum status candidate_rehearse(struct store *store, const struct authority *a,
                                        const char *member, instant deadline, struct error *err);

#endif
