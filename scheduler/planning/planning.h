/* The leader's database work for one scope: load, plan, tend, answer requests. Called by the scope
 * thread between lifecycle events; each step is short, so that a stop, a suspension or a lost lease
 * is noticed within one statement. Planning decisions themselves are in planner.h (pure). */
#ifndef RS_PLANNING_H
#define RS_PLANNING_H

#include <stddef.h>

#include "authority.h"
#include "clock.h"
#include "clock_watch.h"
#include "ident.h"
#include "lease.h"
#include "status.h"
#include "store.h"

struct planning;

#define PLANNING_LOOK_MS 30000 /* what is notified is seen at once; this is for what was not */

struct planning_options {
    struct clock_watch *watch; /* borrowed; NULL: no clock is suspect */
    const char *scope;
    const struct lease *lease; /* borrowed; checked before every statement */
    const char *tz_directory;  /* NULL: the system's */
    int64_t tz_poll_ms;        /* above 0: look for other time zone files as often */
    int64_t statement_ms;      /* deadline of one statement */
    size_t batch_schedules;    /* schedules a plan_batch call, 1 to PLAN_SCHEDULES_MAX */
    int64_t look_ms;           /* above 0: look for edits and requests as often */
};

/* Owns: planning_free. NULL when out of memory. */
struct planning *planning_new(const struct planning_options *options);
void planning_free(struct planning *p);

/* Read what needs no authority, so that planning_prepare need not: the zones. Failure is left to
 * planning_prepare (planning_zone.c). */
void planning_warm(struct planning *p);

/* The newest job that the database has committed, as far as is known; "": none. Nothing is planned
 * by a database that has forgotten it: a dump may be restored below a connected leader. From then
 * on planning remembers what it makes itself. */
void planning_know(struct planning *p, const char *job);
const char *planning_known(const struct planning *p); /* valid until the next step */

/* PREPARING: check what a new leader must know before it plans (take in changes, read progress).
 * `store` is borrowed for the call. Returns: OK, FENCED, HELD, AGAIN, TIMEOUT, CORRUPT, CONFLICT:
 * the database has forgotten planning_known. */
MUST_USE enum status planning_prepare(struct planning *p, const struct authority *a,
                                      struct store *store, struct error *err);

struct planning_result {
    instant wake_at;                /* when the next step is wanted at the latest */
    bool more;                      /* work is left right now: call again after looking at events */
    unsigned planned;               /* occurrences made durable by this step */
    bool outbox;                    /* outbox rows were written: wake the relay */
    bool leave;                     /* a handoff: the successor is ready */
    char newest_job[UUID_TEXT_MAX]; /* of the last batch that made any; "": none did */
};

/* One bounded step of the loop: take changes in, plan what is due, tend jobs. After a NOTIFY pass
 * notified = true. Returns: OK; FENCED (step down); HELD; CONFLICT, as above; AGAIN/TIMEOUT
 * (database trouble: the caller decides how long to bear it); others are for a human and stop
 * nothing else. */
MUST_USE enum status planning_step(struct planning *p, const struct authority *a,
                                   struct store *store, bool notified,
                                   struct planning_result *ret_result, struct error *err);

#endif
