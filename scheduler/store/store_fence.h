/* What the scope thread asks the database about authority: the fence of docs/architecture.md,
 * "A protected write", over the store port. Each call is one server function, one round trip,
 * autocommit. Thread: the connection's owner. Blocks: until its deadline. */
#ifndef RS_STORE_FENCE_H
#define RS_STORE_FENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "authority.h"
#include "store.h"

enum fence_ensemble {
    FENCE_ENSEMBLE_KNOWN,
    FENCE_ENSEMBLE_ADOPTED, /* the database knew none: it does now */
    FENCE_ENSEMBLE_UNKNOWN, /* it knows another: HELD until an operator decides */
    FENCE_ENSEMBLE_RETIRED, /* it knew this one, and has adopted another since: likewise */
};

/* Map the ensemble's identity to its incarnation.
 * Returns: OK with *ret_meeting, and *ret_incarnation unless UNKNOWN or RETIRED, which are recorded
 * for people; AGAIN, TIMEOUT. */
MUST_USE enum status fence_meet(struct store *store, const char *ensemble, const char *member,
                                instant deadline, enum fence_ensemble *ret_meeting,
                                int64_t *ret_incarnation, struct error *err);

/* A zookeeper_root that belongs to another installation. */
struct fence_root {
    const char *ensemble, *owner; /* the node's content; the installation */
    const char *member;           /* who met it */
};

/* Record it for people. Returns: OK; AGAIN, TIMEOUT. */
MUST_USE enum status fence_root_refused(struct store *store, const struct fence_root *root,
                                        instant deadline, struct error *err);

struct fence_row {
    int64_t incarnation, generation; /* 0 before the first leader */
    bool released;
    bool held;      /* a hold row stands on the scope or the installation */
    char hold[256]; /* its cause, number and reason, "" when none stands */
};

/* Returns: OK; CORRUPT: the scope has no fence row, which is never "no lock"; AGAIN, TIMEOUT. */
MUST_USE enum status fence_read(struct store *store, const char *scope, instant deadline,
                                struct fence_row *ret_row, struct error *err);

/* The replica that establishes. */
struct fence_member {
    const char *name;
    const char *url; /* of its HTTP server, for redirections; NULL or "": none */
    /* Jobs that were planned and acknowledged, so that the database must know them: the mark in
     * ZooKeeper, and the last one of this replica. NULL or "": none. */
    const char *mark, *acknowledged;
};

/* Make the generation the accepted one: the barrier. Idempotent with the same owner. Registers
 * this connection's backend, and records the server.
 * Returns: OK; FENCED: superseded, the text says by whom; AGAIN: older writers still hold the
 * scope's locks (call fence_terminate and try again) or the database is away; TIMEOUT: unknown,
 * try again; CORRUPT: no fence row; HELD: a hold stands, or the database does not know one of the
 * jobs, so that now one does. */
MUST_USE enum status fence_establish(struct store *store, const struct authority *a,
                                     const struct fence_member *member, instant deadline,
                                     struct error *err);

/* Was the last failure of fence_establish a wait for older writers? */
bool fence_is_busy(const struct error *err);

/* End registered backends of lower generations of this scope. *ret_ended: how many.
 * Returns: OK; FENCED; AGAIN; TIMEOUT. */
MUST_USE enum status fence_terminate(struct store *store, const struct authority *a,
                                     instant deadline, int64_t *ret_ended, struct error *err);

/* A connection that follows the one which established makes itself known. `acknowledged`: as in
 * struct fence_member. Returns: OK; FENCED; CONFLICT: this is not the server that was established
 * on, or it does not know the job: establish again; ... */
MUST_USE enum status fence_register(struct store *store, const struct authority *a,
                                    const char *acknowledged, instant deadline, struct error *err);

struct fence_proof {
    int64_t read; /* generation that the fence row had before the own node was asked for */
    const char *member;
};

/* The own node got number a->generation, not above what had been read before in this incarnation:
 * the ensemble was restored from an older state. Puts a hold on the scope.
 * Returns: OK; CONFLICT: the fence row says otherwise, nothing was done; AGAIN; TIMEOUT. */
MUST_USE enum status fence_prove_regressed(struct store *store, const struct authority *a,
                                           const struct fence_proof *proof, instant deadline,
                                           struct error *err);

/* PREPARING is over; for the diary. Returns: OK, FENCED, ... */
MUST_USE enum status fence_activated(struct store *store, const struct authority *a,
                                     int64_t prepared_ms, instant deadline, struct error *err);

/* Give up in order: nothing of this generation is accepted after. Idempotent.
 * Returns: OK; FENCED: it was not accepted any more, there is nothing to release; ... */
MUST_USE enum status fence_release(struct store *store, const struct authority *a,
                                   const char *reason, instant deadline, struct error *err);

struct fence_note {
    const char *member;
    const char *event; /* "stepped_down", "held" or "unheld" */
    const char *reason;
};

/* Diary entry, unfenced: of a member that may write nothing else.
 * Returns: OK; AGAIN; TIMEOUT; INVALID (no such event). */
MUST_USE enum status fence_note(struct store *store, const struct authority *a,
                                const struct fence_note *note, instant deadline, struct error *err);

#endif
