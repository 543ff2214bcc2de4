/* What an edit does to a schedule's coming firings, before it is made. Pure.
 *
 * Where the new version begins, which firings are passed over and what the edit is refused for is
 * the planner's own answer (plan_switch_find, plan_candidates_settle): here its question is made,
 * and the firings with and without the edit are listed and compared by their keys. */
#ifndef RS_EDIT_PREVIEW_H
#define RS_EDIT_PREVIEW_H

#include "planner.h"

/* A version that is in force, or will be. All zero: there is none. */
struct preview_version {
    const struct rule *rule; /* NULL: it names no firings */
    int64_t jitter_us;       /* of the rule, also where that is NULL */
    struct rule_bounds bounds;
    utc_us begins; /* effective_from */
    bool once;     /* kind once */
    bool paused;
    bool withheld; /* paused, or it has a problem: nothing of it runs */
};

/* What is known of the schedule whatever becomes of it. */
struct preview_progress {
    bool has_form;
    enum key_form form;
    utc_us planned_to;   /* the version in force plans strictly after it; finite */
    utc_us last_fire_at; /* UTC_NONE: none */
    bool has_last;
    struct local_time last_nominal;
    char highest_key[KEY_MAX_BYTES]; /* see plan_edit */
};

/* The instant behind which the version in force still fires: an edit can have begun behind firings
 * to come, whose keys were taken. */
utc_us preview_after(const struct preview_progress *p, utc_us now);

/* How a schedule goes on: under one version, and under another from an instant on. */
struct preview_course {
    const struct preview_version *base;
    const struct preview_version *next;    /* NULL: no edit */
    struct plan_switch where;              /* of `next`, settled */
    const struct preview_version *resumed; /* what follows `next` when its pause is over, or NULL */
    struct plan_switch resumed_at;         /* likewise */
    const struct plan_candidates *used; /* what it was settled with; NULL: nothing was in doubt */
};

/* A firing of the later version whose key is used already makes nothing. Thread: any. */
bool preview_key_is_used(const struct plan_candidates *used, const struct firing *f);

/* The edit as the leader will find it when it begins: everything that the version in force fires
 * before then has been planned. Thread: any. */
struct plan_edit preview_edit_of(const struct preview_version *base,
                                 const struct preview_version *next,
                                 const struct preview_progress *p);

/* Candidates whose keys the version in force will have used before the edit begins are taken; those
 * of occurrences that are there already the caller looks up. Thread: any. */
void preview_candidates_mark(const struct preview_version *base, const struct preview_version *next,
                             const struct preview_progress *p, struct plan_candidates *c);

#define PREVIEW_FIRINGS_MAX ((size_t)200000) /* of a list: 90 days of a firing a minute fit */

#define PREVIEW_NO_DATE INT64_MIN

struct preview_firing {
    utc_us at;
    int32_t offset_s;
    char key[KEY_MAX_BYTES];
    int64_t about;                      /* the business date, as a day number; PREVIEW_NO_DATE */
    const struct preview_firing *other; /* of the same key in the other list; NULL: none */
};

/* In order of time. Owns: preview_list_free. */
struct preview_list {
    struct preview_firing *firings;
    size_t count, max;
    utc_us whole_to; /* it is complete for all instants before */
};
void preview_list_free(struct preview_list *l);

/* The firings strictly after `now`, and one that the edit makes due at once, before `until`. Of
 * more than PREVIEW_FIRINGS_MAX the first ones. Returns: OK; FATAL (out of memory). */
MUST_USE enum status preview_list_make(const struct preview_course *course,
                                       const struct preview_progress *p, utc_us now, utc_us until,
                                       struct preview_list *ret_list);

/* A date that is moved may cross the end of what is looked at: lists are made for so much more. */
#define PREVIEW_MARGIN_US ((int64_t)3 * SECONDS_A_DAY * MICROS_A_SECOND)

enum preview_change {
    PREVIEW_KEPT,
    PREVIEW_ADDED,
    PREVIEW_REMOVED,
    PREVIEW_MOVED,   /* the same key at another instant */
    PREVIEW_REDATED, /* at the same instant, and about another business date */
};
const char *preview_change_name(enum preview_change change);

/* Pair the firings of both lists by their keys. Returns: OK; FATAL (out of memory). */
MUST_USE enum status preview_lists_pair(struct preview_list *before, struct preview_list *after);

/* One key with its firing without and with the edit; one of them may be NULL. */
struct preview_pair {
    enum preview_change change;
    const struct preview_firing *before, *after;
};

/* A walk over all pairs with a firing before `until`, in order of time (of two instants the earlier
 * one). */
struct preview_walk {
    const struct preview_list *before, *after;
    size_t b, a;
    utc_us until;
};
bool preview_walk_next(struct preview_walk *w, struct preview_pair *ret_pair);

#endif
