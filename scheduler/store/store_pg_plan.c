/* PostgreSQL adapter of store_plan.h: reads, and the small protected calls. */
#include "store_pg_plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void authority_values(const struct authority *a, struct authority_text *text,
                      const char *values[AUTHORITY_VALUES])
{
    (void)snprintf(text->incarnation, sizeof text->incarnation, "%" PRId64, a->incarnation);
    (void)snprintf(text->generation, sizeof text->generation, "%" PRId64, a->generation);
    values[0] = a->scope;
    values[1] = text->incarnation;
    values[2] = text->generation;
    values[3] = a->owner;
}

enum status verdict_status(const char *verdict, struct error *err)
{
    if (strcmp(verdict, "ok") == 0) {
        return STATUS_OK;
    }
    if (strcmp(verdict, "fenced") == 0) {
        return error_set(err, STATUS_FENCED, "a newer generation holds the scope");
    }
    if (strcmp(verdict, "held") == 0) {
        return error_set(err, STATUS_HELD, "a hold stands on the scope");
    }
    if (strcmp(verdict, "changed") == 0) {
        return error_set(err, STATUS_CONFLICT, "changed meanwhile");
    }
    if (strcmp(verdict, "moved") == 0) {
        return error_set(err, STATUS_AGAIN,
                         "the server is not the one that the scope was established on");
    }
    return error_set(err, STATUS_CORRUPT, "the server answered \"%.40s\"", verdict);
}

enum status verdict_query(const struct store_call *call, const char *sql, int count,
                          const char *const *values, struct error *err)
{
    PGresult *r = NULL;
    enum status s = store_pg_query(call->store, sql, count, values, call->deadline, &r, err);
    if (s == STATUS_OK) {
        s = verdict_status(PQgetvalue(r, 0, 0), err);
        PQclear(r);
    }
    return s;
}

utc_us cell_time(const PGresult *r, int row, int column, bool *out_of_range)
{
    const char *text = PQgetvalue(r, row, column);
    utc_us t = UTC_NONE;
    if (PQgetisnull(r, row, column) != 0) {
        return UTC_NONE;
    }
    if (strcmp(text, "-infinity") == 0) {
        return UTC_PAST;
    }
    if (strcmp(text, "infinity") == 0) {
        return UTC_UNBOUNDED;
    }
    if (!store_pg_time_parse(text, &t) && out_of_range != NULL) {
        *out_of_range = true;
    }
    return t;
}

/* A local time; what is no time of ours sets *out_of_range. */
static struct local_time cell_local(const PGresult *r, int row, int column, bool *out_of_range)
{
    char text[STORE_PG_TIME_MAX];
    utc_us t = {0};
    if (PQgetisnull(r, row, column) != 0) {
        return (struct local_time){0};
    }
    (void)snprintf(text, sizeof text, "%.40s+00", PQgetvalue(r, row, column));
    if (!store_pg_time_parse(text, &t)) {
        *out_of_range = true;
    }
    return (struct local_time){utc_seconds(t)};
}

/* RULE_MORE from `column` on. */
static void cell_rule_more(const PGresult *r, int row, int column, struct stored_dates *dates,
                           struct stored_rule *rule)
{
    store_pg_text(r, row, column, rule->dialect, sizeof rule->dialect);
    store_pg_text(r, row, column + 1, rule->dst_gap, sizeof rule->dst_gap);
    store_pg_text(r, row, column + 2, rule->dst_overlap, sizeof rule->dst_overlap);
    rule->jitter_us =
        rule_jitter_us(PQgetvalue(r, row, 0), (int32_t)store_pg_int(r, row, column + 3));
    rule->has_start = PQgetisnull(r, row, column + 4) == 0;
    rule->start = cell_local(r, row, column + 4, &rule->out_of_range);
    stored_dates_add(dates, PQgetvalue(r, row, column + 5), &rule->exdates, &rule->exdate_count,
                     &rule->out_of_range);
    stored_dates_add(dates, PQgetvalue(r, row, column + 6), &rule->rdates, &rule->rdate_count,
                     &rule->out_of_range);
    cell_calendar(r, row, column + 7, rule);
}

/* Room for the lists of all rows; as a rule there is none. */
static enum status dates_clear(const PGresult *r, int column, struct stored_dates *dates,
                               struct error *err)
{
    size_t most = 0;
    for (int i = 0; i < PQntuples(r); i++) {
        most += local_times_most(PQgetvalue(r, i, column)) +
                local_times_most(PQgetvalue(r, i, column + 1));
    }
    return stored_dates_clear(dates, most) ? STATUS_OK
                                           : error_set(err, STATUS_AGAIN, "out of memory");
}

/* Columns kind, rule, time_zone, anchor, starts_at, ends_at from `column` on. */
static void cell_rule(const PGresult *r, int row, int column, struct stored_rule *rule)
{
    rule->out_of_range = false;
    store_pg_text(r, row, column, rule->kind, sizeof rule->kind);
    store_pg_text(r, row, column + 1, rule->text, sizeof rule->text);
    store_pg_text(r, row, column + 2, rule->time_zone, sizeof rule->time_zone);
    rule->anchor = cell_time(r, row, column + 3, &rule->out_of_range);
    rule->starts_at = cell_time(r, row, column + 4, &rule->out_of_range);
    rule->ends_at = cell_time(r, row, column + 5, &rule->out_of_range);
}

/* Columns next_nominal, next_offset_s, tzdata, zone_digest from `column` on. */
static void cell_next(const PGresult *r, int row, int column, struct due_row *d)
{
    bool out_of_range = false;
    struct local_time nominal = cell_local(r, row, column, &out_of_range);
    d->next = (struct firing){.found = false};
    if (!utc_is_none(d->next_fire_at) && PQgetisnull(r, row, column) == 0 && !out_of_range) {
        d->next = (struct firing){.found = true,
                                  .at = d->next_fire_at,
                                  .nominal = nominal,
                                  .offset_s = (int32_t)store_pg_int(r, row, column + 1)};
    }
    store_pg_text(r, row, column + 2, d->tzdata, sizeof d->tzdata);
    store_pg_text(r, row, column + 3, d->zone_digest, sizeof d->zone_digest);
}

enum status due_rows_fill(const struct calendar_ask *ask, PGresult *r, struct due_rows *rows,
                          struct error *err)
{
    int n = PQntuples(r);
    rows->count = 0;
    rows->now = UTC_NONE;
    if (dates_clear(r, 27, &rows->dates, err) != STATUS_OK) {
        PQclear(r);
        return STATUS_AGAIN;
    }
    for (int i = 0; i < n && rows->count < rows->max; i++) {
        struct due_row *d = &rows->rows[rows->count++];
        store_pg_text(r, i, 0, d->schedule, sizeof d->schedule);
        d->version = (int32_t)store_pg_int(r, i, 1);
        d->step = store_pg_int(r, i, 2);
        d->next_fire_at = cell_time(r, i, 3, NULL);
        d->last_fire_at = cell_time(r, i, 4, NULL);
        d->switched_at = cell_time(r, i, 5, NULL);
        store_pg_text(r, i, 6, d->key_form, sizeof d->key_form);
        cell_rule(r, i, 7, &d->rule);
        cell_rule_more(r, i, 22, &rows->dates, &d->rule);
        cell_next(r, i, 35, d);
        store_pg_text(r, i, 13, d->misfire, sizeof d->misfire);
        d->misfire_max = (int32_t)store_pg_int(r, i, 14);
        d->misfire_age_us = store_pg_int(r, i, 15);
        d->misfire_grace_us = store_pg_int(r, i, 16);
        d->effective_from = cell_time(r, i, 18, NULL);
        d->paused = store_pg_bool(r, i, 19);
        d->ended = store_pg_bool(r, i, 20);
        d->edited = store_pg_bool(r, i, 21);
        utc_us now = cell_time(r, i, 17, NULL);
        /* The earliest: what is due by it is due by all of them. */
        rows->now = utc_is_none(rows->now) || now.us < rows->now.us ? now : rows->now;
    }
    PQclear(r);
    enum status s = STATUS_OK;
    for (size_t i = 0; s == STATUS_OK && i < rows->count; i++) {
        s = store_calendar_take(ask->store, ask->deadline, &rows->dates, &rows->rows[i].rule, err);
    }
    return s;
}

enum status store_due(const struct store_call *call, struct due_page page,
                      struct due_rows *ret_rows, struct error *err)
{
    char count[24];
    char skip[24];
    char until[STORE_PG_TIME_MAX];
    size_t limit = page.limit < ret_rows->max ? page.limit : ret_rows->max;
    (void)snprintf(count, sizeof count, "%zu", limit);
    (void)snprintf(skip, sizeof skip, "%zu", page.offset);
    store_pg_time_format(page.until, until);
    const char *values[] = {call->authority->scope, count, skip,
                            utc_is_none(page.until) ? NULL : until};
    PGresult *r = NULL;
    enum status s = store_pg_query(call->store,
                                   "SELECT " DUE_COLUMNS " FROM reports.due($1, $2::integer, "
                                   "$3::integer, $4::timestamptz)",
                                   4, values, call->deadline, &r, err);
    if (s == STATUS_OK) {
        s = due_rows_fill(&(struct calendar_ask){call->store, call->deadline}, r, ret_rows, err);
    }
    return s;
}

enum status store_progress_of(const struct store_call *call, const char *const *names, size_t count,
                              struct due_rows *ret_rows, struct error *err)
{
    struct store_pg_array list = {0};
    for (size_t i = 0; i < count; i++) {
        store_pg_array_add(&list, names[i]);
    }
    const char *values[] = {call->authority->scope, store_pg_array_text(&list)};
    enum status s = STATUS_OK;
    PGresult *r = NULL;
    if (values[1] == NULL) {
        s = error_set(err, STATUS_AGAIN, "out of memory");
    } else {
        s = store_pg_query(call->store,
                           "SELECT " DUE_COLUMNS " FROM reports.progress_of($1, $2::text[])", 2,
                           values, call->deadline, &r, err);
    }
    if (s == STATUS_OK) {
        s = due_rows_fill(&(struct calendar_ask){call->store, call->deadline}, r, ret_rows, err);
    }
    store_pg_array_free(&list);
    return s;
}

enum status store_versions(const struct store_call *call, const struct versions_wanted *wanted,
                           struct due_rows *ret_rows, struct error *err)
{
    struct store_pg_array list = {0};
    char limit[24];
    for (size_t i = 0; i < wanted->count; i++) {
        store_pg_array_add(&list, wanted->names[i]);
    }
    (void)snprintf(limit, sizeof limit, "%zu", wanted->limit);
    const char *values[] = {call->authority->scope, store_pg_array_text(&list),
                            wanted->ahead ? "true" : "false", limit};
    enum status s = STATUS_OK;
    PGresult *r = NULL;
    if (values[1] == NULL) {
        s = error_set(err, STATUS_AGAIN, "out of memory");
    } else {
        s = store_pg_query(call->store,
                           "SELECT " DUE_COLUMNS " FROM reports.versions_of($1, $2::text[], "
                           "$3::boolean, $4::integer)",
                           4, values, call->deadline, &r, err);
    }
    if (s == STATUS_OK) {
        s = due_rows_fill(&(struct calendar_ask){call->store, call->deadline}, r, ret_rows, err);
    }
    store_pg_array_free(&list);
    return s;
}

enum status store_pg_keys_find(const struct store_call *call, const char *sql, const char *schedule,
                               struct plan_candidates *c, struct error *err)
{
    struct store_pg_array list = {0};
    for (size_t i = 0; i < c->count; i++) {
        store_pg_array_add(&list, c->keys[i]);
    }
    const char *values[] = {schedule, store_pg_array_text(&list)};
    PGresult *r = NULL;
    enum status s = values[1] == NULL
                        ? error_set(err, STATUS_AGAIN, "out of memory")
                        : store_pg_query(call->store, sql, 2, values, call->deadline, &r, err);
    for (int i = 0; s == STATUS_OK && i < PQntuples(r); i++) {
        int64_t number = store_pg_int(r, i, 0); /* from 1 */
        if (number >= 1 && (size_t)number <= c->count) {
            c->taken[number - 1] = true;
        }
    }
    if (s == STATUS_OK) {
        PQclear(r);
    }
    store_pg_array_free(&list);
    return s;
}

enum status store_keys_taken(const struct store_call *call, const char *schedule,
                             struct plan_candidates *c, struct error *err)
{
    return store_pg_keys_find(call, "SELECT number FROM reports.keys_taken($1, $2::text[])",
                              schedule, c, err);
}

enum status store_next_due(const struct store_call *call, struct next_due *ret_next,
                           struct error *err)
{
    const char *values[] = {call->authority->scope};
    PGresult *r = NULL;
    enum status s = store_pg_query(
        call->store, "SELECT next_fire_at, database_now, edited, resumes FROM reports.next_due($1)",
        1, values, call->deadline, &r, err);
    if (s == STATUS_OK) {
        *ret_next = (struct next_due){.at = cell_time(r, 0, 0, NULL),
                                      .now = cell_time(r, 0, 1, NULL),
                                      .edited = store_pg_bool(r, 0, 2),
                                      .resumes = store_pg_bool(r, 0, 3)};
        PQclear(r);
    }
    return s;
}

/* A day number. */
static struct plan_period cell_period(const PGresult *r, int i, int column)
{
    return (struct plan_period){.known = PQgetisnull(r, i, column) == 0,
                                .last = store_pg_int(r, i, column)};
}

static void change_row_fill(const PGresult *r, int i, struct change_row *c)
{
    store_pg_text(r, i, 0, c->schedule, sizeof c->schedule);
    c->change_id = store_pg_int(r, i, 1);
    c->version = (int32_t)store_pg_int(r, i, 2);
    c->effective_from = cell_time(r, i, 3, NULL);
    c->ended = store_pg_bool(r, i, 4);
    cell_rule(r, i, 5, &c->rule);
    c->has_progress = PQgetisnull(r, i, 11) == 0;
    c->step = store_pg_int(r, i, 11);
    c->next_fire_at = cell_time(r, i, 12, NULL);
    c->last_fire_at = cell_time(r, i, 13, NULL);
    store_pg_text(r, i, 14, c->key_form, sizeof c->key_form);
    c->has_problem = PQgetisnull(r, i, 15) == 0;
    c->paused = store_pg_bool(r, i, 17);
    c->was_paused = store_pg_bool(r, i, 18);
    c->has_next = PQgetisnull(r, i, 19) == 0;
    c->next_nominal = (struct local_time){store_pg_int(r, i, 19)};
    store_pg_text(r, i, 20, c->highest_key, sizeof c->highest_key);
    c->has_last = PQgetisnull(r, i, 21) == 0;
    c->last_nominal = (struct local_time){store_pg_int(r, i, 21)};
    c->was_jitter_us = rule_jitter_us(c->schedule, (int32_t)store_pg_int(r, i, 35));
    c->last_about = cell_period(r, i, 36);
    c->next_about = cell_period(r, i, 37);
}

enum status store_changes(const struct store_call *call, const char *after,
                          struct change_rows *ret_rows, struct error *err)
{
    static const char sql[] =
        "SELECT schedule, change_id, new_version, effective_from, ended, kind, rule, time_zone, "
        "anchor, starts_at, ends_at, step, next_fire_at, last_fire_at, key_form, problem, "
        "database_now, paused, was_paused, next_nominal_s, highest_key, last_nominal_s, " RULE_MORE
        ", was_jitter_s, last_about, next_about FROM reports.changes($1, $2::integer, $3)";
    char count[24];
    (void)snprintf(count, sizeof count, "%zu", ret_rows->max);
    const char *values[] = {call->authority->scope, count, after};
    PGresult *r = NULL;
    enum status s = store_pg_query(call->store, sql, 3, values, call->deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    ret_rows->count = 0;
    ret_rows->now = UTC_NONE;
    s = dates_clear(r, 27, &ret_rows->dates, err);
    for (int i = 0; s == STATUS_OK && i < PQntuples(r) && ret_rows->count < ret_rows->max; i++) {
        struct change_row *c = &ret_rows->rows[ret_rows->count++];
        change_row_fill(r, i, c);
        cell_rule_more(r, i, 22, &ret_rows->dates, &c->rule);
        utc_us now = cell_time(r, i, 16, NULL);
        ret_rows->now =
            utc_is_none(ret_rows->now) || now.us < ret_rows->now.us ? now : ret_rows->now;
    }
    PQclear(r);
    for (size_t i = 0; s == STATUS_OK && i < ret_rows->count; i++) {
        s = store_calendar_take(call->store, call->deadline, &ret_rows->dates,
                                &ret_rows->rows[i].rule, err);
    }
    return s;
}

enum status store_mark_problem(const struct store_call *call, const char *schedule, int64_t step,
                               const char *problem, struct error *err)
{
    struct authority_text text;
    char at[24];
    const char *values[AUTHORITY_VALUES + 3];
    authority_values(call->authority, &text, values);
    (void)snprintf(at, sizeof at, "%" PRId64, step);
    values[4] = schedule;
    values[5] = at;
    values[6] = problem;
    return verdict_query(call,
                         "SELECT reports.mark_problem($1, $2::bigint, $3::bigint, $4::uuid, $5, "
                         "$6::bigint, $7)",
                         7, values, err);
}

enum status store_tend(const struct store_call *call, struct tend_terms terms,
                       struct tend_clock clock, struct tended *ret_tended, struct error *err)
{
    static const char sql[] =
        "SELECT verdict, released, reaped, held_back, running, next_release, database_now, "
        "stepped, beaten FROM reports.tend($1, $2::bigint, $3::bigint, $4::uuid, $5::integer, "
        "$6::timestamptz, $7::timestamptz, $8::uuid)";
    struct authority_text text;
    char count[24];
    char from[STORE_PG_TIME_MAX];
    char to[STORE_PG_TIME_MAX];
    const char *known = terms.known == NULL || terms.known[0] == '\0' ? NULL : terms.known;
    const char *values[AUTHORITY_VALUES + 4];
    authority_values(call->authority, &text, values);
    (void)snprintf(count, sizeof count, "%zu", terms.limit);
    values[4] = count;
    store_pg_time_format(clock.from, from);
    store_pg_time_format(clock.to, to);
    values[5] = utc_is_none(clock.from) ? NULL : from;
    values[6] = utc_is_none(clock.to) ? NULL : to;
    values[7] = known;
    PGresult *r = NULL;
    enum status s = store_pg_query(call->store, sql, 8, values, call->deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    s = strcmp(PQgetvalue(r, 0, 0), "moved") == 0
            ? error_set(err, STATUS_CONFLICT, "the server forgot job %s", known)
            : verdict_status(PQgetvalue(r, 0, 0), err);
    if (s == STATUS_OK) {
        *ret_tended = (struct tended){
            .released = store_pg_int(r, 0, 1),
            .reaped = store_pg_int(r, 0, 2),
            .held_back = store_pg_int(r, 0, 3),
            .running = store_pg_int(r, 0, 4),
            .next_release = cell_time(r, 0, 5, NULL),
            .now = cell_time(r, 0, 6, NULL),
            .stepped = store_pg_bool(r, 0, 7),
            .beaten = store_pg_bool(r, 0, 8),
        };
    }
    PQclear(r);
    return s;
}

enum status store_authority_check(const struct store_call *call, struct error *err)
{
    static const char sql[] = "SELECT reports.authority_check($1, $2, $3, $4)";
    struct authority_text text;
    const char *values[AUTHORITY_VALUES];
    authority_values(call->authority, &text, values);
    return verdict_query(call, sql, AUTHORITY_VALUES, values, err);
}
