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
 *   coalesce    one run for all that were missed within `age`: the first that is due and not
 * missed, or the latest missed one. Its window begins where that of the first of them begins; the
 * others become a gap. Older ones become a gap as with run_all. A version that an edit ends has a
 * run of its own. Whether a firing runs depends only on the firings after it. So a pass may stop
 * anywhere, as long as it stops before the first firing whose successors it has not seen: the
 * outcome is the same as that of one long pass. And so a version that an edit ends must know what
 * runs under the versions behind it (struct plan_later), or an edit in an outage would run more
 * than no edit. */
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
    MISFIRE_COALESCE,
};

/* "" (NULL in SQL) is the default. False: no such word. */
bool misfire_parse(const char *word, enum misfire *ret_misfire);

enum gap_reason {
    GAP_MISFIRE_SKIP,
    GAP_MISFIRE_LATEST,
    GAP_MISFIRE_MAX,
    GAP_MISFIRE_AGE,
    GAP_COALESCED,      /* the run behind it has their windows in its own */
    GAP_PROBLEM_MENDED, /* due while the schedule had a problem */
    GAP_PAUSED,         /* due while the schedule was paused */
    GAP_PASSED_OVER,    /* an edit of business_date goes on behind these periods */
};
const char *gap_reason_name(enum gap_reason reason);

/* What runs under the versions behind this one, which are not taken in yet: every one of their
 * firings is newer than all of this version's. */
struct plan_later {
    int64_t missed; /* missed firings that run by their policy */
    int64_t live;   /* firings that are due and not missed */
};

/* One schedule under one version. */
struct plan_subject {
    const struct rule *rule; /* borrowed */
    enum key_form form;
    utc_us last_fire_at; /* latest firing dealt with; UTC_NONE: none yet */
    utc_us switched_at;  /* this version plans from it on, and strictly after last_fire_at */
    /* When the version was made; UTC_NONE: long ago. A firing before it was called for by the edit
     * (plan_switch_find) and counts as due at that instant. */
    utc_us effective_from;
    utc_us starts_at; /* no firing before; UTC_NONE: open */
    utc_us ends_at;   /* no firing at or after; UTC_NONE: open */
    enum misfire misfire;
    int32_t misfire_max; /* 1 to PLANNER_MISSED_MAX */
    int64_t misfire_age_us;
    int64_t misfire_grace_us;
    /* The next firing as it is stored, where newer time zone data than the rule's computed it: it
     * is the first of a pass, and behind it only later nominal times count. Not found: the rule
     * says. */
    struct firing stored;
    utc_us until;            /* a newer version begins: only firings before it; UTC_UNBOUNDED */
    struct plan_later later; /* of the versions from `until` on */
    bool withheld;           /* nothing of this version runs: what was due is one gap */
    enum gap_reason withheld_reason;
    size_t work_max; /* firings to look at; at least misfire_max + 1 are */
};

/* `newer` and what would run under this version besides: fold the versions, newest first.
 * s->until bounds the version; a withheld one adds nothing. Work: by days (rule_count_within). */
struct plan_later plan_later_add(const struct plan_subject *s, utc_us now, struct plan_later newer);

enum plan_cause {
    PLAN_ON_TIME,
    PLAN_MISFIRE,
    PLAN_EDIT, /* an edit moved its time into the past of its own date */
};
const char *plan_cause_name(enum plan_cause cause); /* occurrence.cause */

struct planned_firing {
    size_t subject; /* caller's number of the schedule */
    struct firing firing;
    /* The firing before, whatever became of it, or the one before those that it coalesces;
     * UTC_NONE: none. */
    utc_us window_start;
    utc_us window_end; /* both without jitter */
    enum plan_cause cause;
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

/* What a firing is known by among those about periods: the last day of its period. */
struct plan_period {
    bool known; /* false: its rule is not about periods, or the table does not have it */
    int64_t last;
};
struct plan_period plan_period_of(const struct rule *r, struct local_time nominal);

/* An edit about to be taken in. */
struct plan_edit {
    const struct rule *rule; /* NULL: the version ends the schedule */
    bool once;               /* kind once */
    bool paused;             /* nothing will run until another edit */
    bool has_form;           /* an earlier version has fixed the key form */
    enum key_form form;
    utc_us effective_from;
    utc_us last_fire_at; /* UTC_NONE: nothing was ever planned */
    bool has_last;       /* last_nominal is that of last_fire_at, which ran or lies in a gap */
    struct local_time last_nominal;
    utc_us starts_at, ends_at;
    bool has_next; /* the version before would have fired again, first for next_nominal */
    struct local_time next_nominal;
    /* What both are about by the business_date of the version before; not known: by the new one. */
    struct plan_period last_about, next_about;
    char highest_key[KEY_MAX_BYTES]; /* of the schedule's own occurrences; "": there is none */
    /* How much later the rule's firings are due by the new version's jitter than by the old one's.
     * Where the one ends in the rule's own time the other begins: no firing is passed over or comes
     * twice because its delay is another. Of a new schedule: the whole jitter. */
    int64_t shift_us;
};

struct plan_switch {
    bool shifted;        /* last_fire_at is what it would have been by the new jitter */
    utc_us last_fire_at; /* UTC_NONE: none */
    utc_us switched_at;
    struct firing next; /* found = false: none; of a paused version: what would come next */
    bool has_form;
    enum key_form form;
    bool doubtful; /* next may repeat a key: settle it with plan_candidates */
    /* Periods that the version before would still have reported and that this one had its times for
     * before what has run, by its own times and keys; .firings 0: none. Only where business_date
     * has changed what the firings are about: nobody can take that back as one can a rule. */
    struct planned_gap passed;
    /* INVALID because dates that a calendar moves would have to come before what has run: the first
     * behind them. The next edit finds it as what was to come, and so goes on without them. Not
     * found otherwise. */
    struct firing behind;
};

/* Where the new version begins: at effective_from, but after the last firing dealt with, so that
 * what was due before stays the old version's. Call it only once the old version has planned
 * everything due before effective_from.
 * Date keys: a date that the old version would still have fired, and whose time under the new rule
 * is past already, is not passed over. The version begins at that firing, which is due at once.
 * Returns: OK; INVALID (the version cannot be planned; the text is its problem. *ret_switch is set
 * all the same, without a next firing). */
MUST_USE enum status plan_switch_find(const struct plan_edit *e, struct plan_switch *ret_switch,
                                      struct error *err);

/* A zone change or a rule moved to later on the same day can make the new version's first firings
 * fall under keys that exist. These are the ones in doubt, for the caller to look up. */
#define PLAN_CANDIDATES_MAX 2000 /* minutes by which two zones differ at most, and some */
struct plan_candidates {
    struct firing firings[PLAN_CANDIDATES_MAX];
    char keys[PLAN_CANDIDATES_MAX][KEY_MAX_BYTES];
    bool taken[PLAN_CANDIDATES_MAX]; /* the caller's answer: an occurrence has this key */
    size_t count;
};
void plan_candidates_fill(const struct plan_edit *e, const struct plan_switch *w,
                          struct plan_candidates *ret_candidates);

/* Date keys: begin at the first date that is free; a finer key that exists is a problem, because a
 * whole stretch of firings would make nothing.
 * Returns: OK; INVALID, as plan_switch_find. */
MUST_USE enum status plan_candidates_settle(const struct plan_edit *e,
                                            const struct plan_candidates *c, struct plan_switch *w,
                                            struct error *err);

#endif
