/* How one stored schedule goes on, by the code that plans it: the version that is in force, one
 * that is announced, and where that begins. Thread: main. Blocks: what asks, until the session's
 * deadline. */
#ifndef RS_SCHEDULE_COURSE_H
#define RS_SCHEDULE_COURSE_H

#include "edit_preview.h"
#include "session.h"
#include "store_firings.h"

/* Versions as stored and as parsed. */
struct schedule_versions {
    struct due_rows rows; /* the one in force (or announced, if none is), behind it one announced */
    struct due_row row[2];
    struct rule rule[2];
    struct preview_version view[2];
    struct error why[2]; /* text "": the rule can be computed */
    bool unreadable[2];  /* it cannot be here: this machine's time zone data, not the rule */
};

/* A version for the comparing code; rule NULL: it cannot be computed. Pure. */
struct preview_version schedule_version_view(const struct due_row *row, const struct rule *rule);

struct schedule_course {
    struct session *session;
    const char *name;
    struct zone_set *zones;
    struct schedule_versions now;
    struct table *facts;         /* one row; columns: as its statement */
    struct preview_version none; /* base of a schedule of which no version is in force yet */
    struct preview_progress progress;
    const struct preview_version *base;      /* what is in force */
    const struct preview_version *announced; /* NULL: nothing is */
    const char *problem;                /* the leader's word for the version in force; NULL: none */
    struct plan_candidates *candidates; /* of the latest schedule_course_settle */
};

/* Read and parse it. Owns: schedule_course_close, whatever is returned. A failure has been
 * reported: NOT_FOUND; FAILED (also where this machine cannot read the zone). */
MUST_USE enum exit_code schedule_course_open(struct session *s, const char *schedule,
                                             struct schedule_course *ret);
void schedule_course_close(struct schedule_course *c);

/* A pause with an end is an edit announced for then: look at what comes after it too, if it is so.
 * Of one that is announced itself the end is not looked at. */
bool schedule_course_resume(struct schedule_course *c);

/* Read its versions as they are now, in the transaction that is open, and parse them. Owns:
 * ret->rows.dates. A failure has been reported. */
MUST_USE enum exit_code schedule_course_read(struct schedule_course *c,
                                             struct schedule_versions *ret);

/* Where a version that follows the one in force begins, as the leader will take it in. Returns: OK;
 * INVALID (*err is the problem that it will have); else as store_keys_used. */
MUST_USE enum status schedule_course_settle(struct schedule_course *c,
                                            const struct preview_version *next,
                                            struct plan_switch *ret_switch, struct error *err);

#endif
