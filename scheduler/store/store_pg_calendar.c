/* PostgreSQL adapter: a calendar as its tables have it (reports.calendar_parts). */
#include "store_pg_plan.h"

#include <stdlib.h>
#include <string.h>

#include "calendar.h"
#include "civil.h"

#define DEPTH_MAX 8 /* of combinations: the tables allow 5 */

/* Columns of reports.calendar_parts, which come ordered by them. */
enum {
    COLUMN_CALENDAR,
    COLUMN_WHAT,
    COLUMN_DAY,
    COLUMN_UNTIL,
    COLUMN_WORD,
    COLUMN_WEEKEND,
    COLUMN_VERSION,
};

void cell_calendar(const PGresult *r, int row, int column, struct stored_rule *rule)
{
    store_pg_text(r, row, column, rule->calendar_name, sizeof rule->calendar_name);
    rule->calendar_version = store_pg_int(r, row, column + 1);
    rule->calendar = NULL;
    store_pg_text(r, row, column + 2, rule->nonbusiness, sizeof rule->nonbusiness);
    rule->business_day_offset = (int32_t)store_pg_int(r, row, column + 3);
    store_pg_text(r, row, column + 4, rule->roll_collision, sizeof rule->roll_collision);
    store_pg_text(r, row, column + 5, rule->business_date, sizeof rule->business_date);
    rule->periods = NULL;
}

/* The rows of one calendar. */
struct stretch {
    const PGresult *r;
    int begin, end;
    unsigned depth;
};

static struct stretch stretch_of(const PGresult *r, const char *name, unsigned depth)
{
    struct stretch s = {.r = r, .depth = depth};
    int n = PQntuples(r);
    while (s.begin < n && strcmp(PQgetvalue(r, s.begin, COLUMN_CALENDAR), name) != 0) {
        s.begin++;
    }
    s.end = s.begin;
    while (s.end < n && strcmp(PQgetvalue(r, s.end, COLUMN_CALENDAR), name) == 0) {
        s.end++;
    }
    return s;
}

static bool row_is(const struct stretch *s, int row, const char *what)
{
    return strcmp(PQgetvalue(s->r, row, COLUMN_WHAT), what) == 0;
}

static int64_t cell_day(const struct stretch *s, int row, int column, int64_t none)
{
    int64_t day = none;
    bool given = PQgetisnull(s->r, row, column) == 0;
    return given && date_parse(PQgetvalue(s->r, row, column), &day, NULL) == STATUS_OK ? day : none;
}

static size_t days_fill(const struct stretch *s, struct calendar_special *days)
{
    size_t count = 0;
    for (int i = s->begin; i < s->end; i++) {
        if (row_is(s, i, "day")) {
            days[count++] = (struct calendar_special){
                .day = cell_day(s, i, COLUMN_DAY, 0),
                .business = strcmp(PQgetvalue(s->r, i, COLUMN_WORD), "working") == 0,
            };
        }
    }
    return count;
}

static enum status plain_make(const struct stretch *s, struct calendar_special *days,
                              struct calendar **ret, struct error *err)
{
    struct calendar_weekend weekends[CALENDAR_WEEKENDS_MAX];
    const char *beyond = PQgetvalue(s->r, s->begin, COLUMN_WORD);
    struct calendar_rules rules = {
        .weekends = weekends,
        .days = days,
        .day_count = days_fill(s, days),
        .valid_from = cell_day(s, s->begin, COLUMN_DAY, CALENDAR_ALWAYS),
        .valid_through = cell_day(s, s->begin, COLUMN_UNTIL, CALENDAR_FOREVER),
        .beyond = strcmp(beyond, "hold") == 0 ? CALENDAR_BEYOND_HOLD : CALENDAR_BEYOND_WEEKENDS,
    };
    for (int i = s->begin; i < s->end && rules.weekend_count < CALENDAR_WEEKENDS_MAX; i++) {
        if (i == s->begin || row_is(s, i, "weekend")) {
            weekends[rules.weekend_count++] = (struct calendar_weekend){
                .from = i == s->begin ? CALENDAR_ALWAYS : cell_day(s, i, COLUMN_DAY, 0),
                .days = (uint8_t)store_pg_int(s->r, i, COLUMN_WEEKEND),
            };
        }
    }
    return calendar_new(&rules, ret, err);
}

static enum status calendar_make(const PGresult *r, const char *name, unsigned depth,
                                 struct calendar **ret, struct error *err);

static enum status joint_make(const struct stretch *s, struct calendar_special *days,
                              struct calendar **ret, struct error *err)
{
    struct calendar *parts[CALENDAR_PARTS_MAX];
    bool unites = strcmp(PQgetvalue(s->r, s->begin, COLUMN_WORD), "union") == 0;
    struct calendar_joint joint = {
        .combination = unites ? CALENDAR_UNION : CALENDAR_INTERSECTION,
        .parts = (const struct calendar *const *)parts,
        .days = days,
        .day_count = days_fill(s, days),
    };
    enum status status = STATUS_OK;
    for (int i = s->begin; status == STATUS_OK && i < s->end; i++) {
        if (row_is(s, i, "part") && joint.part_count < CALENDAR_PARTS_MAX) {
            status = calendar_make(s->r, PQgetvalue(s->r, i, COLUMN_WORD), s->depth + 1,
                                   &parts[joint.part_count], err);
            joint.part_count += status == STATUS_OK ? 1 : 0;
        }
    }
    if (status == STATUS_OK && joint.part_count == 0) {
        status = error_set(err, STATUS_INVALID, "a combination of nothing");
    }
    if (status == STATUS_OK) {
        status = calendar_combine(&joint, ret, err);
    }
    for (size_t i = 0; i < joint.part_count; i++) {
        calendar_free(parts[i]);
    }
    return status;
}

static enum status calendar_make(const PGresult *r, const char *name, unsigned depth,
                                 struct calendar **ret, struct error *err)
{
    struct stretch s = stretch_of(r, name, depth);
    if (s.begin == s.end || !row_is(&s, s.begin, "calendar") || depth == DEPTH_MAX) {
        return error_set(err, STATUS_NOT_FOUND, "calendar %s does not exist", name);
    }
    struct calendar_special *days = calloc((size_t)(s.end - s.begin), sizeof *days);
    if (days == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    const char *word = PQgetvalue(r, s.begin, COLUMN_WORD);
    bool joint = strcmp(word, "union") == 0 || strcmp(word, "intersection") == 0;
    enum status status = joint ? joint_make(&s, days, ret, err) : plain_make(&s, days, ret, err);
    free(days);
    return status;
}

static enum status calendar_read(struct store *store, instant deadline, const char *name,
                                 struct stored_dates *dates, struct error *err)
{
    const char *values[] = {name};
    struct calendar *calendar = NULL;
    PGresult *r = NULL;
    enum status s = store_pg_query(store,
                                   "SELECT calendar, what, day, until, word, weekend_days, version "
                                   "FROM reports.calendar_parts($1)",
                                   1, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s == STATUS_INVALID ? STATUS_AGAIN : s;
    }
    s = calendar_make(r, name, 0, &calendar, err);
    if (s == STATUS_OK) {
        int64_t version = store_pg_int(r, stretch_of(r, name, 0).begin, COLUMN_VERSION);
        s = stored_calendar_add(dates, name, version, calendar) ? STATUS_OK : STATUS_FATAL;
    }
    PQclear(r);
    return s == STATUS_FATAL ? error_set(err, STATUS_AGAIN, "out of memory") : s;
}

static enum status fiscal_read(struct store *store, instant deadline, const char *name,
                               struct stored_dates *dates, struct error *err)
{
    const char *values[] = {name};
    PGresult *r = NULL;
    enum status s =
        store_pg_query(store, "SELECT first_day, last_day, label FROM reports.fiscal_periods($1)",
                       1, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s == STATUS_INVALID ? STATUS_AGAIN : s;
    }
    int n = PQntuples(r);
    struct stored_fiscal *p = stored_fiscal_add(dates, name, (size_t)n);
    for (int i = 0; p != NULL && i < n; i++) {
        struct fiscal_period *one = &p->list[p->periods.count];
        if (date_parse(PQgetvalue(r, i, 0), &one->first, NULL) == STATUS_OK &&
            date_parse(PQgetvalue(r, i, 1), &one->last, NULL) == STATUS_OK) {
            store_pg_text(r, i, 2, one->label, sizeof one->label);
            p->periods.count++;
        }
    }
    PQclear(r);
    return p != NULL ? STATUS_OK : error_set(err, STATUS_AGAIN, "out of memory");
}

static enum status fiscal_take(struct store *store, instant deadline, struct stored_dates *dates,
                               struct stored_rule *rule, struct error *err)
{
    struct business_date b;
    enum status s = STATUS_OK;
    if (business_date_parse(rule->business_date, &b, NULL) != STATUS_OK ||
        b.kind != BUSINESS_FISCAL_PERIOD) {
        return s;
    }
    if (stored_fiscal_find(dates, b.fiscal) == NULL) {
        s = fiscal_read(store, deadline, b.fiscal, dates, err);
    }
    rule->periods = stored_fiscal_find(dates, b.fiscal);
    return s;
}

static enum status calendar_take(struct store *store, instant deadline, struct stored_dates *dates,
                                 struct stored_rule *rule, struct error *err)
{
    enum status s = STATUS_OK;
    if (rule->calendar_name[0] == '\0') {
        return s;
    }
    rule->calendar = stored_calendar_find(dates, rule->calendar_name, rule->calendar_version);
    if (rule->calendar == NULL) {
        s = calendar_read(store, deadline, rule->calendar_name, dates, err);
    }
    if (s == STATUS_OK) {
        rule->calendar = stored_calendar_find(dates, rule->calendar_name, 0);
    }
    return s == STATUS_NOT_FOUND || s == STATUS_INVALID ? STATUS_OK : s;
}

enum status store_calendar_take(struct store *store, instant deadline, struct stored_dates *dates,
                                struct stored_rule *rule, struct error *err)
{
    enum status s = calendar_take(store, deadline, dates, rule, err);
    return s == STATUS_OK ? fiscal_take(store, deadline, dates, rule, err) : s;
}
