/* Inside of store_pg_plan*.c. */
#ifndef RS_STORE_PG_PLAN_H
#define RS_STORE_PG_PLAN_H

#include "store_pg.h"
#include "store_plan.h"

#define AUTHORITY_VALUES 4

/* The first four parameters of every protected function, as text. */
struct authority_text {
    char incarnation[24], generation[24];
};
void authority_values(const struct authority *a, struct authority_text *text,
                      const char *values[AUTHORITY_VALUES]);

/* "ok" is OK; "fenced", "held" and "changed" are theirs, "moved" is AGAIN; else CORRUPT. */
enum status verdict_status(const char *verdict, struct error *err);

/* A protected function that answers one word in column 0. */
MUST_USE enum status verdict_query(const struct store_call *call, const char *sql, int count,
                                   const char *const *values, struct error *err);

/* NULL gives UTC_NONE, -infinity UTC_PAST, infinity UTC_UNBOUNDED; what is no instant of ours sets
 * *out_of_range (which may be NULL: then it is UTC_NONE). */
utc_us cell_time(const PGresult *r, int row, int column, bool *out_of_range);

#define RULE_CALENDAR                                                                              \
    "calendar, calendar_version, nonbusiness, business_day_offset, roll_collision, business_date"
#define RULE_CALENDAR_COLUMNS 6
#define RULE_MORE                                                                                  \
    "dialect, dst_gap, dst_overlap, jitter_s, start_local, exdates, rdates, " RULE_CALENDAR
#define DUE_COLUMNS                                                                                \
    "schedule, version, step, next_fire_at, last_fire_at, switched_at, key_form, kind, rule, "     \
    "time_zone, anchor, starts_at, ends_at, misfire, misfire_max, misfire_age_us, "                \
    "misfire_grace_us, database_now, effective_from, paused, ended, edited, " RULE_MORE            \
    ", next_nominal, next_offset_s, tzdata, zone_digest"

/* Where a row's calendar is asked for. */
struct calendar_ask {
    struct store *store;
    instant deadline;
};

/* Columns RULE_CALENDAR from `column` on. */
void cell_calendar(const PGresult *r, int row, int column, struct stored_rule *rule);

/* Rows of DUE_COLUMNS, and their calendars. Frees the answer. Returns: OK, AGAIN (also: out of
 * memory), TIMEOUT, CORRUPT. */
MUST_USE enum status due_rows_fill(const struct calendar_ask *ask, PGresult *r,
                                   struct due_rows *rows, struct error *err);

/* Ask which keys of a schedule are used, by a statement of (schedule, keys) that answers their
 * numbers from 1; sets c->taken. Returns: as store_pg_query; AGAIN also when out of memory. */
MUST_USE enum status store_pg_keys_find(const struct store_call *call, const char *sql,
                                        const char *schedule, struct plan_candidates *c,
                                        struct error *err);

/* Many arrays of one call, in parameter order. */
#define ARRAYS_MAX 32
struct arrays {
    struct store_pg_array array[ARRAYS_MAX];
};
void arrays_add_time(struct store_pg_array *a, utc_us t);             /* UTC_NONE adds NULL */
void arrays_add_local(struct store_pg_array *a, struct local_time t); /* timestamp without zone */
void arrays_free(struct arrays *a);
/* Their texts into values[]; false when memory ran out. */
bool arrays_values(struct arrays *a, size_t count, const char **values);

#endif
