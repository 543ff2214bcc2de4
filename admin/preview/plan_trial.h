/* An edit of a schedule that is tried and not made: what is read, in a transaction that is rolled
 * back so that the tables' own checks judge it, and what the planner's own code makes of it.
 * Thread: main. Blocks: until the session's deadline. */
#ifndef RS_PLAN_TRIAL_H
#define RS_PLAN_TRIAL_H

#include "plan_edit_row.h"
#include "schedule_course.h"

struct plan_trial {
    struct session s;
    const char *name;
    struct plan_edit_row edit;
    struct schedule_course course;      /* without the edit */
    struct schedule_versions then;      /* as it is with it */
    const struct preview_version *next; /* the edit, of `then` */
    struct plan_switch where;           /* it begins */
    struct preview_version resumed; /* the edit when the pause it makes is over; no rule: none */
    struct plan_switch resumed_at;  /* that begins */
    bool base_resumes;              /* without the edit a pause ends by itself */
    struct table *pause;            /* one row: paused_until with the edit */
    struct table *words_before, *words; /* rule_words.h */
    struct preview_list before, after;
    utc_us until; /* they are compared */
    int64_t counts[PREVIEW_REDATED + 1];
    struct table *facts, *rows;
};

/* Try the edit. *ret_changes: it makes a version. A failure has been reported: USAGE with the words
 * of the tables or, where they would take it, of the leader; NOT_FOUND. */
MUST_USE enum exit_code plan_trial_make(struct plan_trial *p, bool *ret_changes);

/* Where the edit begins, and the firings with it and without it, for as many days. */
MUST_USE enum exit_code plan_trial_compare(struct plan_trial *p, int64_t days);

void plan_trial_close(struct plan_trial *p);

#endif
