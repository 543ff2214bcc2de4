/* PostgreSQL adapter of store_plan.h: plan_batch and take_in, the two calls with arrays. */
#include "store_pg_plan.h"

#include <stdlib.h>
#include <string.h>

#define ENTRY_ARRAYS  9
#define FIRING_ARRAYS 9
#define GAP_ARRAYS    7
#define LATER_ARRAYS  2 /* f_window_end, p_zone_digest */
#define ALL_ARRAYS    (ENTRY_ARRAYS + FIRING_ARRAYS + GAP_ARRAYS + LATER_ARRAYS)

void arrays_add_time(struct store_pg_array *a, utc_us t)
{
    char text[STORE_PG_TIME_MAX];
    if (utc_is_none(t)) {
        store_pg_array_add(a, NULL);
        return;
    }
    store_pg_time_format(t, text);
    store_pg_array_add(a, text);
}

void arrays_add_local(struct store_pg_array *a, struct local_time t)
{
    /* `timestamp` ignores the "+00" behind it: documented, PostgreSQL manual 8.5.1.3. */
    arrays_add_time(a, utc_from_seconds(t.s));
}

void arrays_free(struct arrays *a)
{
    for (size_t i = 0; i < ARRAYS_MAX; i++) {
        store_pg_array_free(&a->array[i]);
    }
}

bool arrays_values(struct arrays *a, size_t count, const char **values)
{
    for (size_t i = 0; i < count; i++) {
        values[i] = store_pg_array_text(&a->array[i]);
        if (values[i] == NULL) {
            return false;
        }
    }
    return true;
}

/* Instant, nominal and offset of a firing that may not be there. */
static void arrays_add_firing(struct store_pg_array *a, const struct firing *f, bool found)
{
    if (!found) {
        store_pg_array_add(&a[0], NULL);
        store_pg_array_add(&a[1], NULL);
        store_pg_array_add(&a[2], NULL);
        return;
    }
    arrays_add_time(&a[0], f->at);
    arrays_add_local(&a[1], f->nominal);
    store_pg_array_add_int(&a[2], f->offset_s);
}

/* Mark the rows whose names are in the text[] cell. `name_at` gives the name of row i. */
struct written_names {
    const struct plan_entry *entries; /* one of the two */
    const struct take_in_row *take_in_rows;
    size_t count;
};

static const char *written_name(const struct written_names *n, size_t i)
{
    return n->entries != NULL ? n->entries[i].schedule : n->take_in_rows[i].change->schedule;
}

/* Names need no quoting in an array literal, except the word null, which is quoted. The server
 * gives them in its own order, so all is looked up; the common case is "all of them". */
static bool array_has_name(const char *list, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = strstr(list, name); p != NULL; p = strstr(p + 1, name)) {
        char before = p == list ? '\0' : p[-1];
        char after = p[n];
        if ((before == '{' || before == ',' || before == '"') &&
            (after == '}' || after == ',' || after == '"')) {
            return true;
        }
    }
    return false;
}

static void written_fill(const struct written_names *names, const char *list, int64_t listed,
                         struct written_rows *ret_written)
{
    ret_written->count = 0;
    for (size_t i = 0; i < names->count; i++) {
        ret_written->written[i] = (uint64_t)listed == names->count ||
                                  (listed > 0 && array_has_name(list, written_name(names, i)));
        ret_written->count += ret_written->written[i] ? 1 : 0;
    }
}

static void next_add(struct store_pg_array *a, const struct plan_entry *e)
{
    const struct firing *next = &e->result.next;
    if (!e->withheld || !next->found) {
        arrays_add_firing(a, next, next->found);
        return;
    }
    /* Not due, but an edit must know which date would have come next. */
    store_pg_array_add(&a[0], NULL);
    arrays_add_local(&a[1], next->nominal);
    store_pg_array_add_int(&a[2], next->offset_s);
}

/* p_schedule, p_version, p_step, p_next_fire_at, p_next_nominal, p_next_offset_s, p_last_fire_at,
 * p_last_nominal, p_last_offset_s: nine arrays from the first on; and p_zone_digest. */
static void entry_add(struct store_pg_array *a, const struct plan_entry *e)
{
    store_pg_array_add(&a[ALL_ARRAYS - 1], e->zone_digest);
    store_pg_array_add(&a[0], e->schedule);
    store_pg_array_add_int(&a[1], e->version);
    store_pg_array_add_int(&a[2], e->step);
    next_add(&a[3], e);
    arrays_add_firing(&a[6], &e->result.last, e->result.moved);
}

/* f_schedule, f_key, f_job, f_fire_at, f_nominal, f_offset_s, f_business_date, f_window_start,
 * f_cause: nine. */
static void firing_add(struct store_pg_array *a, const struct plan_batch *b, size_t i)
{
    const struct planned_firing *f = &b->sink.firings[i];
    char date[DATE_TEXT_MAX];
    business_date_format(&f->firing, date);
    store_pg_array_add(&a[0], b->entries[f->subject].schedule);
    store_pg_array_add(&a[1], f->key);
    store_pg_array_add(&a[2], b->job_ids[i]);
    arrays_add_firing(&a[3], &f->firing, true);
    store_pg_array_add(&a[6], date);
    arrays_add_time(&a[7], f->window_start);
    store_pg_array_add(&a[8], plan_cause_name(f->cause));
}

/* f_window_end stays empty where no window ends but with its firing, which is nearly always. */
static void window_ends_add(struct store_pg_array *a, const struct plan_batch *b, size_t begin,
                            size_t end)
{
    const struct planned_firing *f = b->sink.firings;
    bool any = false;
    for (size_t i = begin; i < end && !any; i++) {
        any = f[i].window_end.us != f[i].firing.at.us;
    }
    for (size_t i = begin; i < end && any; i++) {
        arrays_add_time(a, f[i].window_end);
    }
}

/* g_schedule, g_from, g_to, g_from_key, g_to_key, g_firings, g_reason: seven. */
static void gap_add(struct store_pg_array *a, const struct plan_batch *b, size_t i)
{
    const struct planned_gap *g = &b->sink.gaps[i];
    store_pg_array_add(&a[0], b->entries[g->subject].schedule);
    arrays_add_time(&a[1], g->from);
    arrays_add_time(&a[2], g->to);
    store_pg_array_add(&a[3], g->from_key);
    store_pg_array_add(&a[4], g->to_key);
    store_pg_array_add_int(&a[5], g->firings);
    store_pg_array_add(&a[6], gap_reason_name(g->reason));
}

/* What is sent beside the arrays. */
struct batch_facts {
    const char *tzdata, *known;
};

static enum status plan_batch_send(const struct store_call *call, struct arrays *a,
                                   struct batch_facts facts, PGresult **ret_result,
                                   struct error *err)
{
    static const char sql[] =
        "SELECT verdict, advanced, cardinality(advanced), planned, newest_job FROM "
        "reports.plan_batch("
        "$1, $2::bigint, $3::bigint, $4::uuid, $5::text[], $6::integer[], $7::bigint[], "
        "$8::timestamptz[], $9::timestamp[], $10::integer[], $11::timestamptz[], "
        "$12::timestamp[], $13::integer[], $14, $15::text[], $16::text[], $17::uuid[], "
        "$18::timestamptz[], $19::timestamp[], $20::integer[], $21::date[], $22::timestamptz[], "
        "$23::text[], $24::text[], $25::timestamptz[], $26::timestamptz[], $27::text[], "
        "$28::text[], $29::bigint[], $30::text[], $31::uuid, $32::timestamptz[], "
        "$33::text[])";
    struct authority_text text;
    const char *values[AUTHORITY_VALUES + ALL_ARRAYS + 2];
    const char *lists[ALL_ARRAYS];
    if (!arrays_values(a, ALL_ARRAYS, lists)) {
        return error_set(err, STATUS_AGAIN, "out of memory");
    }
    authority_values(call->authority, &text, values);
    memcpy(&values[4], lists, ENTRY_ARRAYS * sizeof lists[0]);
    values[4 + ENTRY_ARRAYS] = facts.tzdata;
    memcpy(&values[5 + ENTRY_ARRAYS], &lists[ENTRY_ARRAYS],
           (FIRING_ARRAYS + GAP_ARRAYS) * sizeof lists[0]);
    values[5 + ENTRY_ARRAYS + FIRING_ARRAYS + GAP_ARRAYS] =
        facts.known[0] == '\0' ? NULL : facts.known;
    memcpy(&values[6 + ENTRY_ARRAYS + FIRING_ARRAYS + GAP_ARRAYS],
           &lists[ALL_ARRAYS - LATER_ARRAYS], LATER_ARRAYS * sizeof lists[0]);
    return store_pg_query(call->store, sql, (int)(sizeof values / sizeof values[0]), values,
                          call->deadline, ret_result, err);
}

enum status store_plan_batch(const struct store_call *call, const struct plan_batch *b,
                             size_t begin, size_t end, const char *tzdata,
                             struct plan_written *ret_written, struct error *err)
{
    struct arrays a = {0};
    for (size_t i = begin; i < end; i++) {
        const struct plan_entry *e = &b->entries[i];
        entry_add(&a.array[0], e);
        for (size_t f = e->firing_begin; f < e->firing_end; f++) {
            firing_add(&a.array[ENTRY_ARRAYS], b, f);
        }
        for (size_t g = e->gap_begin; g < e->gap_end; g++) {
            gap_add(&a.array[ENTRY_ARRAYS + FIRING_ARRAYS], b, g);
        }
    }
    if (begin < end) {
        window_ends_add(&a.array[ENTRY_ARRAYS + FIRING_ARRAYS + GAP_ARRAYS], b,
                        b->entries[begin].firing_begin, b->entries[end - 1].firing_end);
    }
    PGresult *r = NULL;
    const struct batch_facts facts = {.tzdata = tzdata, .known = b->known};
    enum status s = plan_batch_send(call, &a, facts, &r, err);
    if (s == STATUS_OK) {
        s = strcmp(PQgetvalue(r, 0, 0), "moved") == 0
                ? error_set(err, STATUS_CONFLICT, "the server forgot job %s", b->known)
                : verdict_status(PQgetvalue(r, 0, 0), err);
        if (s == STATUS_OK) {
            struct written_names names = {.entries = &b->entries[begin], .count = end - begin};
            written_fill(&names, PQgetvalue(r, 0, 1), store_pg_int(r, 0, 2), &ret_written->rows);
            ret_written->planned = (int32_t)store_pg_int(r, 0, 3);
            store_pg_text(r, 0, 4, ret_written->newest_job, sizeof ret_written->newest_job);
        }
        PQclear(r);
    }
    arrays_free(&a);
    return s;
}

/* p_schedule, p_change, p_version, p_step, p_switched_at, p_next_fire_at, p_next_nominal,
 * p_next_offset_s, p_key_form, p_problem, p_tzdata, p_rule_std, p_last_fire_at,
 * p_zone_digest, p_passed_from, p_passed_to, p_passed_from_key, p_passed_to_key, p_passed_firings:
 * nineteen. */
#define TAKE_IN_ARRAYS 19

static void passed_add(struct store_pg_array *a, const struct planned_gap *g)
{
    bool none = g->firings == 0;
    arrays_add_time(&a[0], none ? UTC_NONE : g->from);
    arrays_add_time(&a[1], none ? UTC_NONE : g->to);
    store_pg_array_add(&a[2], none ? NULL : g->from_key);
    store_pg_array_add(&a[3], none ? NULL : g->to_key);
    store_pg_array_add_int(&a[4], g->firings);
}

static void take_in_add(struct store_pg_array *a, const struct take_in_row *row, const char *tzdata)
{
    const struct change_row *c = row->change;
    store_pg_array_add(&a[0], c->schedule);
    store_pg_array_add_int(&a[1], c->change_id);
    store_pg_array_add_int(&a[2], c->version);
    if (c->has_progress) {
        store_pg_array_add_int(&a[3], c->step);
    } else {
        store_pg_array_add(&a[3], NULL);
    }
    arrays_add_time(&a[4], row->where.switched_at);
    /* Of the one behind, which stands with a problem, only the nominal time counts. */
    const struct firing *next = row->where.next.found ? &row->where.next : &row->where.behind;
    arrays_add_firing(&a[5], next, next->found);
    store_pg_array_add(&a[8], row->where.has_form ? key_form_name(row->where.form) : NULL);
    store_pg_array_add(&a[9], row->problem[0] != '\0' ? row->problem : NULL);
    store_pg_array_add(&a[10], tzdata);
    store_pg_array_add(&a[11], row->rule_std[0] != '\0' ? row->rule_std : NULL);
    arrays_add_time(&a[12], row->where.shifted ? row->where.last_fire_at : UTC_NONE);
    store_pg_array_add(&a[13], row->zone_digest);
    passed_add(&a[14], &row->where.passed);
}

enum status store_take_in(const struct store_call *call, const struct take_in_row *rows,
                          size_t count, const char *tzdata, struct written_rows *ret_written,
                          struct error *err)
{
    static const char sql[] =
        "SELECT verdict, taken, cardinality(taken) FROM reports.take_in($1, $2::bigint, "
        "$3::bigint, $4::uuid, $5::text[], $6::bigint[], $7::integer[], $8::bigint[], "
        "$9::timestamptz[], $10::timestamptz[], $11::timestamp[], $12::integer[], $13::text[], "
        "$14::text[], $15::text[], $16::text[], $17::timestamptz[], $18::text[], "
        "$19::timestamptz[], $20::timestamptz[], $21::text[], $22::text[], $23::bigint[])";
    struct arrays a = {0};
    struct authority_text text;
    const char *values[AUTHORITY_VALUES + TAKE_IN_ARRAYS];
    for (size_t i = 0; i < count; i++) {
        take_in_add(a.array, &rows[i], tzdata);
    }
    authority_values(call->authority, &text, values);
    enum status s = STATUS_OK;
    PGresult *r = NULL;
    if (!arrays_values(&a, TAKE_IN_ARRAYS, &values[AUTHORITY_VALUES])) {
        s = error_set(err, STATUS_AGAIN, "out of memory");
    } else {
        s = store_pg_query(call->store, sql, AUTHORITY_VALUES + TAKE_IN_ARRAYS, values,
                           call->deadline, &r, err);
    }
    if (s == STATUS_OK) {
        s = verdict_status(PQgetvalue(r, 0, 0), err);
        if (s == STATUS_OK) {
            struct written_names names = {.take_in_rows = rows, .count = count};
            written_fill(&names, PQgetvalue(r, 0, 1), store_pg_int(r, 0, 2), ret_written);
        }
        PQclear(r);
    }
    arrays_free(&a);
    return s;
}
