/* Port: what planning asks of the database. Adapter: store_pg_plan*.c.
 *
 * Each call is one statement. Reads return rows as they are; what is written is checked again by
 * compare-and-set in the server, so nothing is locked in between. Protected calls carry the
 * authority and answer FENCED when it is not the accepted one any more.
 *
 * Thread of every store_* call: the connection's owner. Blocks: until call->deadline. Of all of
 * them: AGAIN (transient, the connection may be broken); TIMEOUT (the effect is unknown); INVALID
 * (the server refused the statement); CORRUPT (an answer that cannot be). Outputs are valid after
 * OK only. */
#ifndef RS_STORE_PLAN_H
#define RS_STORE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "authority.h"
#include "planner.h"
#include "planner_batch.h"
#include "store.h"
#include "store_call.h"
#include "zone_file.h"

/* Borrow the calendar and the fiscal periods that a rule names from the rows' `dates`; those that
 * are not there are read, in a statement of their own. Returns: OK (also when they are missing or
 * cannot be used: then there are none); AGAIN; TIMEOUT; CORRUPT. */
MUST_USE enum status store_calendar_take(struct store *store, instant deadline,
                                         struct stored_dates *dates, struct stored_rule *rule,
                                         struct error *err);

/* Rows into the caller's memory. */
struct due_rows {
    struct due_row *rows;
    size_t count, max;
    utc_us now; /* the database's; UTC_NONE when there are no rows */
    struct stored_dates dates;
};

struct due_page {
    size_t limit, offset; /* behind `offset` others */
    utc_us until;         /* also what will be due by then; UTC_NONE: only what is due now */
};

/* Schedules with something due, oldest first. Returns: OK, AGAIN, TIMEOUT, INVALID, CORRUPT. */
MUST_USE enum status store_due(const struct store_call *call, struct due_page page,
                               struct due_rows *ret_rows, struct error *err);

/* The same for named schedules, due or not, in any order. Returns: as store_due. */
MUST_USE enum status store_progress_of(const struct store_call *call, const char *const *names,
                                       size_t count, struct due_rows *ret_rows, struct error *err);

/* Versions of named schedules that are not the ones in force, newest first within a schedule: those
 * still to be taken in (ahead), or those before. At most `limit` a schedule. `switched_at` of such
 * a row is its effective_from. Returns: as store_due. */
struct versions_wanted {
    const char *const *names;
    size_t count;
    bool ahead;
    size_t limit;
};
MUST_USE enum status store_versions(const struct store_call *call,
                                    const struct versions_wanted *wanted, struct due_rows *ret_rows,
                                    struct error *err);

struct next_due {
    utc_us at; /* of the scope's next firing, announced edit or end of a pause; UTC_NONE: none */
    utc_us now;
    bool edited;  /* an edit of some schedule of the scope has begun and is not taken in */
    bool resumes; /* a pause is over */
};

/* Returns: as store_due. */
MUST_USE enum status store_next_due(const struct store_call *call, struct next_due *ret_next,
                                    struct error *err);

struct resumed {
    int64_t count;               /* schedules that go on: each has an edit to take in */
    char locked[NAME_MAX_BYTES]; /* one that was left for the next call; "": none */
    char fault[ERROR_TEXT_MAX];  /* why one cannot go on; "": all could */
};

/* Let schedules go on whose paused_until has come, at most `limit`. Returns: as store_take_in. */
MUST_USE enum status store_resume_paused(const struct store_call *call, size_t limit,
                                         struct resumed *ret_resumed, struct error *err);

/* The oldest edit of a schedule that was not taken in. */
struct change_row {
    char schedule[NAME_MAX_BYTES];
    int64_t change_id;
    int32_t version;
    utc_us effective_from;
    bool ended, paused;
    struct stored_rule rule;
    bool has_progress; /* the rest is what progress is now */
    int64_t step;
    utc_us next_fire_at, last_fire_at;
    char key_form[8];
    bool has_problem;
    bool was_paused;       /* the version in force is paused */
    int64_t was_jitter_us; /* of the version in force */
    bool has_last;
    struct local_time last_nominal; /* of last_fire_at */
    bool has_next;
    struct local_time next_nominal;            /* of its next firing, also while that is withheld */
    struct plan_period last_about, next_about; /* see plan_edit */
    char highest_key[KEY_MAX_BYTES];           /* see plan_edit */
};

struct change_rows {
    struct change_row *rows;
    size_t count, max;
    bool more; /* the limit was reached */
    utc_us now;
    struct stored_dates dates;
};

/* Edits to take in, the oldest of each schedule whose name comes after `after` ("": all), at most
 * ret_rows->max. Returns: as store_due. */
MUST_USE enum status store_changes(const struct store_call *call, const char *after,
                                   struct change_rows *ret_rows, struct error *err);

/* Which of the candidates' keys the schedule's occurrences have: sets c->taken.
 * Returns: as store_due. */
MUST_USE enum status store_keys_taken(const struct store_call *call, const char *schedule,
                                      struct plan_candidates *c, struct error *err);

/* An edit to take in. */
struct take_in_row {
    const struct change_row *change;
    struct plan_switch where;
    char problem[PLANNER_PROBLEM_MAX]; /* "": none */
    char zone_digest[ZONE_DIGEST_MAX];
    char rule_std[PLAN_RULE_MAX]; /* what a rule of another dialect is planned by; "": as it is */
};

/* Which of the rows given were written; the others are locked or changed meanwhile. */
struct written_rows {
    bool written[PLAN_SCHEDULES_MAX];
    size_t count;
};

/* Take edits in, each by compare-and-set together with the deletion of its change row.
 * Returns: OK; FENCED; INVALID (some row makes the statement fail); AGAIN; TIMEOUT. */
MUST_USE enum status store_take_in(const struct store_call *call, const struct take_in_row *rows,
                                   size_t count, const char *tzdata,
                                   struct written_rows *ret_written, struct error *err);

struct plan_written {
    struct written_rows rows;
    char newest_job[UUID_TEXT_MAX]; /* of those it made; "": none */
    int32_t planned;                /* occurrences that are new */
};

/* Write entries [begin, end) of the batch: occurrences, jobs, outbox rows, gaps and progress,
 * together or not at all (I4). ret_written->rows is numbered from `begin`.
 * Returns: OK; FENCED; HELD; CONFLICT (the database has forgotten b->known, and no hold for it was
 * lifted: nothing was written); INVALID; AGAIN; TIMEOUT. */
MUST_USE enum status store_plan_batch(const struct store_call *call, const struct plan_batch *b,
                                      size_t begin, size_t end, const char *tzdata,
                                      struct plan_written *ret_written, struct error *err);

/* Take a schedule out of planning with a readable reason. Returns: OK; CONFLICT (its progress
 * moved); FENCED; AGAIN; TIMEOUT; INVALID. */
MUST_USE enum status store_mark_problem(const struct store_call *call, const char *schedule,
                                        int64_t step, const char *problem, struct error *err);

struct tended {
    int64_t released, reaped;
    int64_t held_back, running;
    utc_us next_release; /* UTC_NONE: none */
    utc_us now;
    bool stepped; /* the database's clock is outside of the bounds: nothing was reaped */
    bool beaten;  /* false: another session holds the row of the sign of life */
};

/* What the database's clock shows during the call, by CLOCK_BOOTTIME; UTC_NONE: not known. */
struct tend_clock {
    utc_us from, to;
};

struct tend_terms {
    size_t limit;
    const char *known; /* a job that must be there; NULL, "": none */
};

/* Sign of life; release of retries; reaping of lapsed claims. Returns: OK; FENCED; CONFLICT, as
 * store_plan_batch; AGAIN … */
MUST_USE enum status store_tend(const struct store_call *call, struct tend_terms terms,
                                struct tend_clock clock, struct tended *ret_tended,
                                struct error *err);

/* OK: the scope's fence is ours and no hold stands; FENCED; HELD; AGAIN; TIMEOUT; CORRUPT. */
MUST_USE enum status store_authority_check(const struct store_call *call, struct error *err);

#define REQUESTS_MAX 1100 /* a call: what is answered in one step, and those that rest */
#define SUBJECT_MAX  (NAME_MAX_BYTES + KEY_MAX_BYTES) /* a schedule, SCHEDULE:KEY, or an id */

struct request_row {
    char id[UUID_TEXT_MAX];
    char kind[16];
    char subject[SUBJECT_MAX];
    utc_us now;
};

struct request_rows {
    struct request_row rows[REQUESTS_MAX];
    size_t count;
};

/* What people asked of this scope and nobody has answered, oldest first, at most `limit` and
 * REQUESTS_MAX. Returns: as store_due. */
MUST_USE enum status store_pending_requests(const struct store_call *call, size_t limit,
                                            struct request_rows *ret_rows, struct error *err);

/* What the leader's call came to; what was asked over HTTP is answered by request_answer
 * (store_request.h). */
struct request_verdict {
    bool skipped;    /* a row it needs is locked, or somebody has answered it: nothing was done */
    bool waits;      /* a handoff that is going on: ask again when notified, or soon */
    bool leaves;     /* a handoff: drain and release now; the next leader answers */
    char text[1024]; /* for people; "" when none of its answers are final */
};

/* Carry out one request of any kind and answer it in one transaction: done, refused, or expired.
 * `job_id` is for the job it may make. Returns: OK; FENCED; HELD; INVALID (this request makes the
 * statement fail); AGAIN; TIMEOUT. */
MUST_USE enum status store_answer_request(const struct store_call *call, const char *request,
                                          const char *job_id, struct request_verdict *ret_verdict,
                                          struct error *err);

/* Answer a request that makes store_answer_request fail as refused, with the reason.
 * Returns: OK; FENCED; AGAIN; TIMEOUT; INVALID. */
MUST_USE enum status store_refuse_request(const struct store_call *call, const char *request,
                                          const char *why, struct error *err);

#endif
