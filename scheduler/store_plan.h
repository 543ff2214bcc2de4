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
#include "planning_rest.h"
#include "store.h"
#include "store_call.h"
#include "zone_file.h"

#define PLAN_SCHEDULES_MAX 1000 /* a plan_batch or take_in call */
#define PLAN_FIRINGS_MAX   5000
#define PLAN_RULE_MAX      520

/* A definition as stored, not parsed. */
struct stored_rule {
    char kind[16];
    char text[PLAN_RULE_MAX];
    char dialect[8]; /* "": std */
    char time_zone[ZONE_NAME_MAX];
    utc_us anchor, starts_at, ends_at; /* UTC_NONE: NULL */
    bool out_of_range;                 /* one of the three is no instant of the years 1 to 9999 */
    char dst_gap[8], dst_overlap[8];   /* "": auto */
    int64_t jitter_us;                 /* rule_jitter_us */
    bool has_start;
    struct local_time start;
    /* Borrowed from the rows' `dates`, until those are read again. */
    const struct local_time *exdates, *rdates;
    size_t exdate_count, rdate_count;
    char calendar_name[NAME_MAX_BYTES]; /* "": none */
    int64_t calendar_version;           /* at least this one counts */
    const struct calendar *calendar;    /* borrowed likewise; NULL: none, or it cannot be used */
    char nonbusiness[32], roll_collision[16]; /* "": run, coalesce */
    int32_t business_day_offset;
    char business_date[BUSINESS_DATE_TEXT_MAX]; /* "": run_date */
    const struct fiscal_periods *periods;       /* borrowed likewise; NULL: none */
};

/* The lists of many rows, and the calendars that they have named so far. Owns: stored_dates_free.
 * All zero: none. */
struct stored_calendar {
    char name[NAME_MAX_BYTES];
    int64_t version;
    struct calendar *calendar;
    struct stored_calendar *next;
};
struct stored_fiscal {
    struct stored_fiscal *next;
    char name[FISCAL_NAME_MAX];
    struct fiscal_periods periods; /* of the list */
    struct fiscal_period list[];
};
struct stored_dates {
    struct local_time *times;
    size_t count, max;
    struct stored_calendar *calendars; /* newest first */
    struct stored_fiscal *fiscals;     /* as they were when the rows were read */
};
void stored_dates_free(struct stored_dates *d);

/* Begin anew with room for `most` local times; what was borrowed before is gone. False: memory. */
bool stored_dates_clear(struct stored_dates *d, size_t most);

/* Keep a calendar. Takes it over; frees it and returns false when memory ran out. */
bool stored_calendar_add(struct stored_dates *d, const char *name, int64_t version,
                         struct calendar *calendar);

/* A calendar of this or a later version; NULL: there is none yet. */
const struct calendar *stored_calendar_find(const struct stored_dates *d, const char *name,
                                            int64_t version);

/* Room for so many periods of a fiscal calendar, which the caller fills and counts. NULL: memory.
 */
struct stored_fiscal *stored_fiscal_add(struct stored_dates *d, const char *name, size_t most);

/* NULL: there is none yet. */
const struct fiscal_periods *stored_fiscal_find(const struct stored_dates *d, const char *name);

/* Borrow the calendar and the fiscal periods that a rule names from the rows' `dates`; those that
 * are not there are read, in a statement of their own. Returns: OK (also when they are missing or
 * cannot be used: then there are none); AGAIN; TIMEOUT; CORRUPT. */
MUST_USE enum status store_calendar_take(struct store *store, instant deadline,
                                         struct stored_dates *dates, struct stored_rule *rule,
                                         struct error *err);

/* Add the list of a row, as local_times_parse reads it; "" is none. What cannot be read, or has no
 * room, is none either, and makes *out_of_range true. */
void stored_dates_add(struct stored_dates *d, const char *text, const struct local_time **ret_times,
                      size_t *ret_count, bool *out_of_range);

struct due_row {
    char schedule[NAME_MAX_BYTES];
    int32_t version;
    int64_t step;
    utc_us next_fire_at, last_fire_at, switched_at;
    char key_form[8]; /* "" when none is fixed */
    struct stored_rule rule;
    char misfire[16];
    int32_t misfire_max;
    int64_t misfire_age_us, misfire_grace_us;
    utc_us effective_from; /* of the version */
    bool paused, ended;
    bool edited;        /* store_due: an edit waits that may begin before what is due */
    struct firing next; /* as it is stored; what the key needs is not set */
    char tzdata[TZDATA_VERSION_MAX]; /* that computed it */
    char zone_digest[ZONE_DIGEST_MAX];
};

/* Which time zone data count for a stored firing (sql/0018_zones.sql). */
enum zone_standing {
    ZONE_SAME,  /* it was computed by this file of the zone, or nobody knows by which */
    ZONE_MOVES, /* this replica's data count: it is computed again */
    ZONE_STAYS, /* it was computed by newer data: it is planned as it stands */
};

/* Pure. A zone that has not been read makes it SAME. */
enum zone_standing zone_standing_of(const struct due_row *row, struct zone_set *zones);

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

/* One schedule's part of a batch. Its firings and gaps lie next to each other in the batch. */
struct plan_entry {
    char schedule[NAME_MAX_BYTES];
    int32_t version;
    int64_t step;
    struct plan_result result;
    bool withheld; /* the schedule stays out of planning: no next firing is written */
    char zone_digest[ZONE_DIGEST_MAX]; /* of the file that computed it */
    size_t firing_begin, firing_end;
    size_t gap_begin, gap_end;
};

struct plan_batch {
    struct plan_entry entries[PLAN_SCHEDULES_MAX];
    size_t count;
    struct plan_sink sink;
    char (*job_ids)[UUID_TEXT_MAX]; /* one a firing */
    struct plan_window window;
    size_t work;               /* firings looked at so far */
    char known[UUID_TEXT_MAX]; /* a job that must be there when the batch is written; "": none */
};

/* Owns: plan_batch_free (NULL is fine). NULL when out of memory. */
struct plan_batch *plan_batch_new(void);
void plan_batch_free(struct plan_batch *b);
void plan_batch_clear(struct plan_batch *b); /* `known` stays */

#define PLAN_BATCH_WORK_MAX 200000 /* firings looked at in one batch */

struct plan_bounds {
    utc_us until; /* these: see planner.h */
    struct plan_later later;
    bool withheld;
    enum gap_reason reason; /* when withheld */
};

/* plan_later_add for a row. A version that cannot be planned runs nothing. */
struct plan_later plan_later_add_row(const struct due_row *row, utc_us now, utc_us until,
                                     struct zone_set *zones, struct plan_later newer);

/* Plan one row into the batch, with fresh job ids.
 * Returns: OK; INVALID (the row cannot be planned: the text is its problem); FULL (send the batch
 * first). Thread: owner of the zone set. */
MUST_USE enum status plan_batch_add(struct plan_batch *b, const struct due_row *row, utc_us now,
                                    struct plan_bounds bounds, struct zone_set *zones,
                                    struct error *err);

/* What a rule of another dialect is planned by; "" where it is planned as it is written. */
void stored_rule_std(const struct stored_rule *stored, char ret_text[PLAN_RULE_MAX]);

/* Parse a stored definition. Returns: OK; INVALID (the text is the schedule's problem); CORRUPT
 * (this replica's time zone data is damaged: not the schedule's fault); FULL. */
MUST_USE enum status stored_rule_parse(const struct stored_rule *stored, struct zone_set *zones,
                                       struct rule *ret_rule, struct error *err);

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

#define REQUESTS_STEP_MAX 100                              /* answered in one step */
#define REQUESTS_MAX      (REQUESTS_STEP_MAX + REST_MAX)   /* those that rest are read, too */
#define SUBJECT_MAX       (NAME_MAX_BYTES + KEY_MAX_BYTES) /* a schedule, SCHEDULE:KEY, or an id */

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

struct request_answer {
    bool skipped;    /* a row it needs is locked, or somebody has answered it: nothing was done */
    bool waits;      /* a handoff that is going on: ask again when notified, or soon */
    bool leaves;     /* a handoff: drain and release now; the next leader answers */
    char text[1024]; /* for people; "" when none of its answers are final */
};

/* Carry out one request of any kind and answer it in one transaction: done, refused, or expired.
 * `job_id` is for the job it may make. Returns: OK; FENCED; HELD; INVALID (this request makes the
 * statement fail); AGAIN; TIMEOUT. */
MUST_USE enum status store_answer_request(const struct store_call *call, const char *request,
                                          const char *job_id, struct request_answer *ret_answer,
                                          struct error *err);

/* Answer a request that makes store_answer_request fail as refused, with the reason.
 * Returns: OK; FENCED; AGAIN; TIMEOUT; INVALID. */
MUST_USE enum status store_refuse_request(const struct store_call *call, const char *request,
                                          const char *why, struct error *err);

#endif
