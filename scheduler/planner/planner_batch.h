/* From stored rows to one plan_batch call: definitions as the database has them, the lists and
 * calendars that they name, and the batch in memory that the planner (planner.h) fills. Knows no
 * database: store_plan.h reads these rows and writes this batch. It makes job ids and reads the
 * files of time zones through the zone set, so it is not pure. Thread: owner of the rows, the batch
 * and the zone set. Blocks: on the file system for a zone that was not read yet, else never. */
#ifndef RS_PLANNER_BATCH_H
#define RS_PLANNER_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ident.h"
#include "planner.h"
#include "zone_file.h"

#define PLAN_SCHEDULES_MAX 1000 /* a plan_batch or take_in call */
#define PLAN_FIRINGS_MAX   5000
#define PLAN_RULE_MAX      520 /* what column rule takes, with NUL */

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
 * (this replica's time zone data is damaged: not the schedule's fault); FATAL (memory). */
MUST_USE enum status stored_rule_parse(const struct stored_rule *stored, struct zone_set *zones,
                                       struct rule *ret_rule, struct error *err);

#endif
