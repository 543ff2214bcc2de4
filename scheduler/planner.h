/* What is to be done about one due schedule. Pure: no I/O, no clock, no memory of its own.
 *
 * From a schedule's definition, how far it was planned, and the database's now: which firings run,
 * which become a recorded gap (invariant I3: nothing due is ever just dropped), and when it fires
 * next. Fire times come from the rule and the last nominal firing, never from a clock (I9).
 *
 * Misfire policy. A firing older than `grace` is *missed*.
 *   run_all     the latest `max` missed ones within `age` run, older ones become gaps
 *   run_latest  missed ones become a gap, except that the latest runs when nothing newer is due
 *   skip        missed ones become a gap
 * Whether a firing runs depends only on the firings after it. So a pass may stop anywhere, as long
 * as it stops before the first firing whose successors it has not seen: the outcome is the same as
 * that of one long pass. */
#ifndef RS_PLANNER_H
#define RS_PLANNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "key.h"
#include "rule.h"
#include "status.h"

#define PLANNER_MISSED_MAX  1000   /* misfire_max at most, as in SQL */
#define PLANNER_WORK_MAX    100000 /* firings looked at for one schedule in one pass */
#define PLANNER_PROBLEM_MAX 400

enum misfire {
    MISFIRE_DEFAULT, /* run_all for date keys, run_latest for finer ones */
    MISFIRE_RUN_ALL,
    MISFIRE_RUN_LATEST,
    MISFIRE_SKIP,
};

/* "" (NULL in SQL) is the default. False: no such word. */
bool misfire_parse(const char *word, enum misfire *ret_misfire);

enum gap_reason {
    GAP_MISFIRE_SKIP,
    GAP_MISFIRE_LATEST,
    GAP_MISFIRE_MAX,
    GAP_MISFIRE_AGE,
    GAP_PROBLEM_MENDED, /* due while the schedule had a problem */
};
const char *gap_reason_name(enum gap_reason reason);

/* One schedule under one version. */
struct plan_subject {
    const struct rule *rule; /* borrowed */
    enum key_form form;
    utc_us last_fire_at; /* latest firing dealt with; UTC_NONE: none yet */
    utc_us switched_at;  /* this version plans strictly after it */
    utc_us starts_at;    /* no firing before; UTC_NONE: open */
    utc_us ends_at;      /* no firing at or after; UTC_NONE: open */
    enum misfire misfire;
    int32_t misfire_max; /* 1 to PLANNER_MISSED_MAX */
    int64_t misfire_age_us;
    int64_t misfire_grace_us;
    utc_us until;    /* a newer version begins: only firings before it; UTC_UNBOUNDED */
    bool mend;       /* this version had a problem: all its due firings become a gap */
    size_t work_max; /* firings to look at; at least misfire_max + 1 are */
};

struct planned_firing {
    size_t subject; /* caller's number of the schedule */
    struct firing firing;
    utc_us window_start; /* the firing before, whatever became of it; UTC_NONE: none */
    bool missed;         /* cause misfire, otherwise schedule */
    char key[KEY_MAX_BYTES];
};

struct planned_gap {
    size_t subject;
    utc_us from, to; /* first and last firing in it */
    char from_key[KEY_MAX_BYTES], to_key[KEY_MAX_BYTES];
    int64_t firings;
    enum gap_reason reason;
};

/* Where a pass writes; several schedules may share one. Memory is the caller's. */
struct plan_sink {
    struct planned_firing *firings;
    size_t firing_count, firing_max;
    struct planned_gap *gaps;
    size_t gap_count, gap_max;
};

#define PLAN_GAPS_A_SCHEDULE 3 /* room a schedule may need in gaps[] */

struct plan_result {
    bool moved;         /* at least one firing was dealt with: `last` is valid */
    struct firing last; /* the latest one dealt with */
    struct firing next; /* the first one not dealt with; found = false: none before ends_at */
    size_t work;        /* firings looked at */
    bool more;          /* stopped by a bound: due firings are left for the next pass */
    bool reached_until; /* `next` is at or after `until`, or there is none */
};

/* Scratch of a pass: missed firings that may still run or become a gap. */
struct plan_window {
    struct firing slots[PLANNER_MISSED_MAX];
};

/* Plan one schedule. Firings and gaps are appended in order of time; gaps that touch are one. The
 * sink is left as it was unless OK.
 * Returns: OK (also when nothing is due); INVALID (this schedule cannot be planned: the text is
 * its problem); FULL (not even one firing or PLAN_GAPS_A_SCHEDULE gaps fit the sink). */
MUST_USE enum status plan_schedule(const struct plan_subject *s, utc_us now, size_t subject,
                                   struct plan_window *scratch, struct plan_sink *sink,
                                   struct plan_result *ret_result, struct error *err);

/* An edit about to be taken in. */
struct plan_edit {
    const struct rule *rule; /* NULL: the version ends the schedule */
    bool once;               /* kind once */
    bool has_form;           /* an earlier version has fixed the key form */
    enum key_form form;
    utc_us effective_from;
    utc_us last_fire_at; /* UTC_NONE: nothing was ever planned */
    utc_us starts_at, ends_at;
};

struct plan_switch {
    utc_us switched_at;
    struct firing next; /* found = false: none */
    bool has_form;
    enum key_form form;
};

/* Where the new version begins: strictly after max(effective_from, last firing dealt with), so that
 * the firings before it stay the old version's. Call it only once the old version has planned
 * everything due before effective_from.
 * Returns: OK; INVALID (the version cannot be planned; the text is its problem. *ret_switch is set
 * all the same, without a next firing). */
MUST_USE enum status plan_switch_find(const struct plan_edit *e, struct plan_switch *ret_switch,
                                      struct error *err);

#endif
