/* Inside of planning*.c: the state of one scope's planning. Owner: the scope thread. */
#ifndef RS_PLANNING_STATE_H
#define RS_PLANNING_STATE_H

#include "planning.h"
#include "planning_rest.h"
#include "retention.h"
#include "store_plan.h"
#include "zone_watch.h"

#define PLAN_AHEAD_MAX 1000

/* To be blamed when there is a connection again. */
struct accused {
    char schedule[NAME_MAX_BYTES]; /* "": nobody */
    int64_t step;
    char problem[ERROR_TEXT_MAX];
};

/* What the database's clock showed at some time between two instants. */
struct clock_reading {
    utc_us said; /* UTC_NONE: none yet */
    instant after, before;
};

struct planning {
    struct planning_options options;
    struct zone_watch zone_watch;
    struct zone_set *zones; /* of the watch; another one after planning_zones_step */
    struct zone_walk *zone_walk;
    struct plan_batch *batch;
    struct due_rows due; /* rows of due() and of progress_of() */
    struct change_rows changes;
    struct due_rows ahead;              /* versions that are not in force */
    struct plan_candidates *candidates; /* keys of one edit */
    struct take_in_row *take_in;        /* PLAN_SCHEDULES_MAX */
    struct request_rows *requests;
    struct rest_table rest;
    struct rest_table request_rest; /* by the request's id */
    struct rest_table zone_rest;    /* by the zone's name: those that this replica cannot read */
    char changes_after[NAME_MAX_BYTES]; /* of many edits the next page begins behind this name */
    bool hidden;          /* something due is passed over for now, in the last plan_due */
    size_t batch_limit;   /* schedules a batch now: halved by a failure, doubled by a success */
    size_t burst_limit;   /* the same by another reason: small at first, see BURST_FIRST */
    utc_us ahead_for;     /* the batch holds what is due at this instant; UTC_NONE: nothing ahead */
    size_t ahead_written; /* entries of it that were sent */
    size_t take_in_limit; /* edits a take_in call, likewise */
    size_t move_limit;    /* moves a rezone call, likewise */
    uint64_t moved;       /* next firings that other time zone data have moved */
    uint64_t writes;      /* batches written */
    struct accused accused;

    utc_us next_fire_at; /* of the scope, as last read; valid when next_known */
    bool next_known;
    bool resumes;    /* the next look at edits lets schedules go on whose pause is over */
    instant due_at;  /* when next_fire_at is reached, by the latest reading of the database clock */
    instant look_at; /* when changes are looked at again */
    instant looked_at; /* when they were last */
    instant answer_at; /* the same of requests */
    bool handing_over; /* a handoff is going on */
    instant tend_at;
    instant tended_at;
    struct clock_reading beaten; /* by the last round that has beaten */
    size_t first_part;           /* of the next step: the one behind the part that failed, else 0 */
    bool may_wait; /* work may wait for room or its turn: the last round saw some, or made since */
    struct retention retention;

    /* of the step that runs */
    const struct authority *authority;
    struct store *store;
    struct planning_result result;
    unsigned calls; /* write calls made, bounded */
};

/* Before every statement: the lease holds. Fills the call with a fresh deadline.
 * Returns: OK; AGAIN (the lease is over: nothing may be decided any more, I8). */
MUST_USE enum status planning_call(struct planning *p, struct store_call *ret_call,
                                   struct error *err);

/* A statement that was sent at `before` says what the database's clock shows: may anything be
 * decided by it? Returns: OK; AGAIN: it is suspect, and the scope steps down. */
MUST_USE enum status planning_clock_saw(struct planning *p, utc_us said, instant before,
                                        struct error *err);

/* The batch serves what is due, edits, and looking ahead: emptied for one, it is lost to the
 * others. */
void planning_batch_clear(struct planning *p);

/* Write entries [begin, end) of the batch: one call, and on the fault of a row halves until the
 * culprit stands alone and gets its problem. Returns: OK (also when rows were skipped or blamed);
 * FENCED; HELD; AGAIN; TIMEOUT. */
MUST_USE enum status planning_write_batch(struct planning *p, size_t begin, size_t end,
                                          struct error *err);

/* Looking ahead (planning_ahead.c). When it is wanted, for one instant once: shortly before due_at;
 * INSTANT_NEVER: not now. */
instant planning_ahead_at(const struct planning *p);
void planning_ahead_forget(struct planning *p);

/* Where its time has come: read and compute into the batch what will be due. Returns: as store_due.
 */
MUST_USE enum status planning_look_ahead(struct planning *p, struct error *err);

/* Asks the server. *ret_ready: the batch holds entries that are due and may be written as they are.
 * Returns: as store_due. */
MUST_USE enum status planning_ahead_check(struct planning *p, bool *ret_ready, struct error *err);

/* Write the next `most` of them. *ret_more: some are left. Returns: as planning_write_batch. */
MUST_USE enum status planning_ahead_write(struct planning *p, size_t most, bool *ret_more,
                                          struct error *err);

/* The same for the first `count` rows of p->take_in. ret_taken: how many were taken in. */
MUST_USE enum status planning_write_take_in(struct planning *p, size_t count, size_t *ret_taken,
                                            struct error *err);

/* Write the first `count` of planning_zone_moves. Returns: as planning_write_batch. */
MUST_USE enum status planning_write_moves(struct planning *p, size_t count, struct error *err);

/* This replica cannot plan a schedule in this zone (its tzdata is damaged); another may. Nothing
 * durable is said: the zone's schedules rest here, longer each time, and the log tells once for
 * each time. */
void planning_cannot_here(struct planning *p, const char *zone, const char *schedule,
                          const char *why);

/* Take a schedule out of planning. A schedule that moved on meanwhile is left alone. */
MUST_USE enum status planning_blame(struct planning *p, const char *schedule, int64_t step,
                                    const char *problem, struct error *err);

/* Carry out a planning_blame that found no connection. Returns: as that. */
MUST_USE enum status planning_blame_accused(struct planning *p, struct error *err);

/* Where p->resumes: make the edit that ends each pause that is over. Returns: OK (also when some
 * could not be made: again with the next look); FENCED; AGAIN; TIMEOUT; INVALID. */
MUST_USE enum status planning_resume(struct planning *p, struct error *err);

/* Take edits in; the old versions plan what was due under them first. */
MUST_USE enum status planning_take_changes(struct planning *p, bool *ret_more, struct error *err);

/* Carry out and answer what people asked, a bounded part of it. *ret_more: more may wait right now.
 * Returns: OK (also when some could not be answered: they rest); FENCED; HELD; AGAIN; TIMEOUT. */
MUST_USE enum status planning_answer_requests(struct planning *p, bool *ret_more,
                                              struct error *err);

#endif
