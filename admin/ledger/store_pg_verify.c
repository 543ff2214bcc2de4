#include "store_verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "store_pg_plan.h"

/* Columns of reports.verify_ledger. */
enum {
    COLUMN_PART,
    COLUMN_N,
    COLUMN_VERSION,
    COLUMN_AT,
    COLUMN_KEY,
    COLUMN_TO_AT,
    COLUMN_TO_KEY,
    COLUMN_WORD,
    COLUMN_NUMBER,
    COLUMN_NOMINAL,
    COLUMN_OFFSET,
    COLUMN_YES,
    COLUMN_ALSO,
    COLUMN_RULE,
    COLUMN_ZONE,
    COLUMN_ANCHOR,
    COLUMN_STARTS,
    COLUMN_ENDS,
    COLUMN_DIALECT,
    COLUMN_EXDATES,
    COLUMN_RDATES,
    COLUMN_CALENDAR, /* RULE_CALENDAR */
    COLUMN_NOW = COLUMN_CALENDAR + RULE_CALENDAR_COLUMNS,
};

struct memory {
    struct verify_chunk chunk; /* first: freed as this */
    PGresult *result;
    struct ledger_version *versions;
    struct ledger_firing *firings;
    struct ledger_gap *gaps;
    size_t version_count, firing_count, gap_count; /* of all subjects, while they are filled */
    struct stored_dates dates;                     /* of the versions' rules */
    size_t dates_most;
    struct calendar_ask ask;
};

static struct local_time cell_local(const PGresult *r, int row, int column)
{
    char text[STORE_PG_TIME_MAX];
    utc_us t;
    (void)snprintf(text, sizeof text, "%.40s+00", PQgetvalue(r, row, column));
    return (struct local_time){store_pg_time_parse(text, &t) ? utc_seconds(t) : INT64_MIN};
}

enum status store_verify_page(struct store *store, const char *after, const char *only,
                              struct verify_span span, instant deadline,
                              struct verify_page *ret_page, struct error *err)
{
    char from[STORE_PG_TIME_MAX];
    char to[STORE_PG_TIME_MAX];
    char limit[24];
    char most[24];
    store_pg_time_format(span.from, from);
    store_pg_time_format(span.to, to);
    (void)snprintf(limit, sizeof limit, "%d", VERIFY_PAGE_MAX);
    (void)snprintf(most, sizeof most, "%d", VERIFY_ROWS_MOST);
    const char *values[] = {after, only, limit, from, to, most};
    PGresult *r = NULL;
    enum status s = store_pg_query(
        store,
        "SELECT schedule, firings FROM reports.verify_page($1, $2, $3::integer, $4::timestamptz,"
        " $5::timestamptz, $6::integer)",
        6, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    ret_page->count = 0;
    for (int i = 0; i < PQntuples(r) && ret_page->count < VERIFY_PAGE_MAX; i++) {
        store_pg_text(r, i, 0, ret_page->names[ret_page->count], NAME_MAX_BYTES);
        ret_page->firings[ret_page->count++] = store_pg_int(r, i, 1);
    }
    PQclear(r);
    return STATUS_OK;
}

/* ---- a chunk ---- */

static char part_of(const PGresult *r, int row)
{
    return PQgetvalue(r, row, COLUMN_PART)[0]; /* p, v, g, o */
}

/* The subject of a row; NULL: of none that was asked for. */
static struct ledger_subject *subject_of(struct memory *m, int row)
{
    int64_t n = store_pg_int(m->result, row, COLUMN_N);
    return n >= 1 && (size_t)n <= m->chunk.count ? &m->chunk.subjects[n - 1] : NULL;
}

static void progress_fill(const PGresult *r, int row, struct ledger_subject *s)
{
    char form[16];
    s->has_progress = true;
    s->version = (int32_t)store_pg_int(r, row, COLUMN_VERSION);
    s->switched_at = cell_time(r, row, COLUMN_AT, NULL);
    s->next_fire_at = cell_time(r, row, COLUMN_TO_AT, NULL);
    s->last_fire_at = cell_time(r, row, COLUMN_ANCHOR, NULL);
    store_pg_text(r, row, COLUMN_WORD, form, sizeof form);
    s->has_form = key_form_parse(form, &s->form);
    s->has_problem = store_pg_bool(r, row, COLUMN_YES);
    s->held = store_pg_bool(r, row, COLUMN_ALSO);
}

/* Beside the rule; see verify_ledger for what stands where. */
static void stored_more_fill(const PGresult *r, int row, const char *name,
                             struct stored_dates *dates, struct stored_rule *stored)
{
    store_pg_text(r, row, COLUMN_DIALECT, stored->dialect, sizeof stored->dialect);
    store_pg_text(r, row, COLUMN_KEY, stored->dst_gap, sizeof stored->dst_gap);
    store_pg_text(r, row, COLUMN_TO_KEY, stored->dst_overlap, sizeof stored->dst_overlap);
    stored->jitter_us = rule_jitter_us(name, (int32_t)store_pg_int(r, row, COLUMN_OFFSET));
    stored->has_start = PQgetisnull(r, row, COLUMN_NOMINAL) == 0;
    stored->start = cell_local(r, row, COLUMN_NOMINAL);
    stored_dates_add(dates, PQgetvalue(r, row, COLUMN_EXDATES), &stored->exdates,
                     &stored->exdate_count, &stored->out_of_range);
    stored_dates_add(dates, PQgetvalue(r, row, COLUMN_RDATES), &stored->rdates,
                     &stored->rdate_count, &stored->out_of_range);
    cell_calendar(r, row, COLUMN_CALENDAR, stored);
}

/* A calendar counts as it is now: what an older version of it named cannot be told any more. */
static enum status version_calendar_take(struct memory *m, struct stored_rule *stored,
                                         struct error *why)
{
    enum status s = store_calendar_take(m->ask.store, m->ask.deadline, &m->dates, stored, why);
    const char *name = stored->calendar_name;
    if (s == STATUS_OK &&
        stored_calendar_find(&m->dates, name, stored->calendar_version + 1) != NULL) {
        s = error_set(why, STATUS_CONFLICT, "calendar %s has changed since", name);
    }
    return s;
}

static void version_fill(struct memory *m, int row, const char *name, struct zone_set *zones,
                         struct ledger_version *v)
{
    const PGresult *r = m->result;
    struct error why = {.text = ""};
    struct stored_rule stored = {.out_of_range = false};
    stored_more_fill(r, row, name, &m->dates, &stored);
    store_pg_text(r, row, COLUMN_WORD, stored.kind, sizeof stored.kind);
    store_pg_text(r, row, COLUMN_RULE, stored.text, sizeof stored.text);
    store_pg_text(r, row, COLUMN_ZONE, stored.time_zone, sizeof stored.time_zone);
    stored.anchor = cell_time(r, row, COLUMN_ANCHOR, &stored.out_of_range);
    stored.starts_at = cell_time(r, row, COLUMN_STARTS, &stored.out_of_range);
    stored.ends_at = cell_time(r, row, COLUMN_ENDS, &stored.out_of_range);
    *v = (struct ledger_version){
        .version = (int32_t)store_pg_int(r, row, COLUMN_VERSION),
        .effective_from = cell_time(r, row, COLUMN_AT, NULL),
        .paused = store_pg_bool(r, row, COLUMN_YES),
        .ended = store_pg_bool(r, row, COLUMN_ALSO),
        .once = strcmp(stored.kind, "once") == 0,
        .form_fixed = store_pg_int(r, row, COLUMN_NUMBER) != 0,
        .bounds = {stored.starts_at, stored.ends_at},
        .jitter_us = stored.jitter_us,
    };
    v->parsed = version_calendar_take(m, &stored, &why);
    if (v->parsed == STATUS_OK) {
        v->parsed = stored_rule_parse(&stored, zones, &v->rule, &why);
    }
    (void)snprintf(v->problem, sizeof v->problem, "%.*s", (int)sizeof v->problem - 1, why.text);
}

static void gap_fill(const PGresult *r, int row, struct ledger_gap *g)
{
    *g = (struct ledger_gap){
        .from = cell_time(r, row, COLUMN_AT, NULL),
        .to = cell_time(r, row, COLUMN_TO_AT, NULL),
        .version = (int32_t)store_pg_int(r, row, COLUMN_VERSION),
        .firings = store_pg_int(r, row, COLUMN_NUMBER),
        .from_key = PQgetvalue(r, row, COLUMN_KEY),
        .to_key = PQgetvalue(r, row, COLUMN_TO_KEY),
        .reason = PQgetvalue(r, row, COLUMN_WORD),
    };
}

static void firing_fill(const PGresult *r, int row, struct ledger_firing *f)
{
    const char *cause = PQgetvalue(r, row, COLUMN_WORD);
    *f = (struct ledger_firing){
        .at = cell_time(r, row, COLUMN_AT, NULL),
        .version = (int32_t)store_pg_int(r, row, COLUMN_VERSION),
        .by_hand = strcmp(cause, "manual") == 0 || strcmp(cause, "backfill") == 0,
        .nominal = cell_local(r, row, COLUMN_NOMINAL),
        .offset_s = (int32_t)store_pg_int(r, row, COLUMN_OFFSET),
        .planned_at = cell_time(r, row, COLUMN_TO_AT, NULL),
        .key = PQgetvalue(r, row, COLUMN_KEY),
        .business_date = PQgetvalue(r, row, COLUMN_TO_KEY),
    };
}

static void rows_count(struct memory *m)
{
    for (int row = 0; row < PQntuples(m->result); row++) {
        struct ledger_subject *s = subject_of(m, row);
        if (s != NULL) {
            char part = part_of(m->result, row);
            s->version_count += part == 'v' ? 1 : 0;
            m->dates_most += local_times_most(PQgetvalue(m->result, row, COLUMN_EXDATES)) +
                             local_times_most(PQgetvalue(m->result, row, COLUMN_RDATES));
            s->gap_count += part == 'g' ? 1 : 0;
            s->firing_count += part == 'o' ? 1 : 0;
        }
    }
    for (size_t i = 0; i < m->chunk.count; i++) {
        m->version_count += m->chunk.subjects[i].version_count;
        m->gap_count += m->chunk.subjects[i].gap_count;
        m->firing_count += m->chunk.subjects[i].firing_count;
    }
}

/* Each subject gets its part of the arrays; what it has of it is counted again while it is filled.
 */
static bool rows_allocate(struct memory *m)
{
    m->versions = calloc(m->version_count + 1, sizeof m->versions[0]);
    m->gaps = calloc(m->gap_count + 1, sizeof m->gaps[0]);
    m->firings = calloc(m->firing_count + 1, sizeof m->firings[0]);
    if (m->versions == NULL || m->gaps == NULL || m->firings == NULL ||
        !stored_dates_clear(&m->dates, m->dates_most)) {
        return false;
    }
    size_t version = 0;
    size_t gap = 0;
    size_t firing = 0;
    for (size_t i = 0; i < m->chunk.count; i++) {
        struct ledger_subject *s = &m->chunk.subjects[i];
        s->versions = &m->versions[version];
        s->gaps = &m->gaps[gap];
        s->firings = &m->firings[firing];
        version += s->version_count;
        gap += s->gap_count;
        firing += s->firing_count;
        s->version_count = s->gap_count = s->firing_count = 0;
    }
    return true;
}

static int version_order(const void *a, const void *b)
{
    const struct ledger_version *x = a;
    const struct ledger_version *y = b;
    return x->version < y->version ? -1 : x->version > y->version;
}

static int firing_order(const void *a, const void *b)
{
    const struct ledger_firing *x = a;
    const struct ledger_firing *y = b;
    return x->at.us < y->at.us ? -1 : x->at.us > y->at.us ? 1 : strcmp(x->key, y->key);
}

static int gap_order(const void *a, const void *b)
{
    const struct ledger_gap *x = a;
    const struct ledger_gap *y = b;
    return x->from.us < y->from.us ? -1 : x->from.us > y->from.us ? 1 : x->to.us > y->to.us;
}

static void rows_fill(struct memory *m, struct zone_set *zones)
{
    const PGresult *r = m->result;
    for (int row = 0; row < PQntuples(r); row++) {
        struct ledger_subject *s = subject_of(m, row);
        if (s == NULL) {
            continue;
        }
        switch (part_of(r, row)) {
        case 'p':
            progress_fill(r, row, s);
            break;
        case 'v':
            version_fill(m, row, s->name, zones, &s->versions[s->version_count++]);
            break;
        case 'g':
            gap_fill(r, row, &m->gaps[(size_t)(s->gaps - m->gaps) + s->gap_count++]);
            break;
        case 'o':
            firing_fill(r, row, &s->firings[s->firing_count++]);
            break;
        }
    }
    for (size_t i = 0; i < m->chunk.count; i++) {
        struct ledger_subject *s = &m->chunk.subjects[i];
        qsort(s->versions, s->version_count, sizeof s->versions[0], version_order);
        qsort(&m->gaps[s->gaps - m->gaps], s->gap_count, sizeof m->gaps[0], gap_order);
        qsort(s->firings, s->firing_count, sizeof s->firings[0], firing_order);
    }
}

static enum status chunk_make(PGresult *r, const struct verify_part *part, struct zone_set *zones,
                              const struct calendar_ask *ask, struct verify_chunk **ret_chunk)
{
    struct memory *m = calloc(1, sizeof *m);
    if (m == NULL) {
        PQclear(r);
        return STATUS_FATAL;
    }
    m->result = r;
    m->ask = *ask;
    m->chunk.memory = m;
    m->chunk.subjects = calloc(part->count, sizeof m->chunk.subjects[0]);
    m->chunk.count = m->chunk.subjects != NULL ? part->count : 0;
    for (size_t i = 0; i < m->chunk.count; i++) {
        m->chunk.subjects[i].name = part->page->names[part->first + i];
        m->chunk.subjects[i].last_fire_at = m->chunk.subjects[i].next_fire_at = UTC_NONE;
    }
    rows_count(m);
    if (m->chunk.subjects == NULL || !rows_allocate(m)) {
        verify_chunk_free(&m->chunk);
        return STATUS_FATAL;
    }
    rows_fill(m, zones);
    m->chunk.full = m->firing_count >= VERIFY_ROWS_MOST;
    m->chunk.now = PQntuples(r) > 0 ? cell_time(r, 0, COLUMN_NOW, NULL) : UTC_NONE;
    *ret_chunk = &m->chunk;
    return STATUS_OK;
}

enum status store_verify_chunk(struct store *store, const struct verify_part *part,
                               struct zone_set *zones, instant deadline,
                               struct verify_chunk **ret_chunk, struct error *err)
{
    struct store_pg_array list = {0};
    char from[STORE_PG_TIME_MAX];
    char to[STORE_PG_TIME_MAX];
    char most[24];
    for (size_t i = 0; i < part->count; i++) {
        store_pg_array_add(&list, part->page->names[part->first + i]);
    }
    store_pg_time_format(part->span.from, from);
    store_pg_time_format(part->span.to, to);
    (void)snprintf(most, sizeof most, "%d", VERIFY_ROWS_MOST);
    const char *values[] = {store_pg_array_text(&list), from, to, most};
    PGresult *r = NULL;
    enum status s = STATUS_FATAL;
    if (values[0] != NULL) {
        s = store_pg_query(store,
                           "SELECT *, statement_timestamp() FROM reports.verify_ledger($1::text[],"
                           " $2::timestamptz, $3::timestamptz, $4::integer)",
                           4, values, deadline, &r, err);
    }
    store_pg_array_free(&list);
    if (s == STATUS_OK) {
        s = chunk_make(r, part, zones, &(struct calendar_ask){store, deadline}, ret_chunk);
    }
    return s == STATUS_FATAL ? error_set(err, s, "out of memory") : s;
}

void verify_chunk_free(struct verify_chunk *c)
{
    if (c != NULL) {
        struct memory *m = c->memory;
        PQclear(m->result);
        free(m->chunk.subjects);
        stored_dates_free(&m->dates);
        free(m->versions);
        free(m->gaps);
        free(m->firings);
        free(m);
    }
}

/* ---- doubts ---- */

static bool doubt_stands(const PGresult *r, int row, const struct ledger_finding *f)
{
    bool found = store_pg_bool(r, row, 1);
    int64_t version = store_pg_int(r, row, 2);
    const char *cause = PQgetvalue(r, row, 3);
    bool by_hand = strcmp(cause, "manual") == 0 || strcmp(cause, "backfill") == 0;
    switch (f->doubt) {
    case DOUBT_NONE:
        break;
    case DOUBT_MISSING:
        /* Whatever made it: the key has its one occurrence. An older version that went on planning
         * means that this one had not begun. */
        return !found && !store_pg_bool(r, row, 5);
    case DOUBT_TAKEN:
        return !found ||
               (version == f->version && !by_hand && cell_time(r, row, 4, NULL).us == f->at.us);
    }
    return true;
}

enum status store_verify_doubts(struct store *store, const struct ledger_finding *findings,
                                size_t count, instant deadline, bool ret_stands[VERIFY_DOUBTS_MAX],
                                struct error *err)
{
    struct store_pg_array lists[5] = {{0}};
    const char *values[5];
    bool whole = true;
    for (size_t i = 0; i < count; i++) {
        char at[STORE_PG_TIME_MAX];
        store_pg_time_format(findings[i].at, at);
        store_pg_array_add(&lists[0], findings[i].schedule);
        store_pg_array_add(&lists[1], findings[i].key);
        store_pg_array_add_int(&lists[2], findings[i].version);
        store_pg_array_add(&lists[3], at);
        store_pg_array_add(&lists[4], findings[i].near ? "true" : "false");
        ret_stands[i] = true;
    }
    for (size_t i = 0; i < 5; i++) {
        values[i] = store_pg_array_text(&lists[i]);
        whole = whole && values[i] != NULL;
    }
    PGresult *r = NULL;
    enum status s =
        whole ? store_pg_query(store,
                               "SELECT n, found, version, cause, at, older_goes_on FROM"
                               " reports.verify_keys($1::text[], $2::text[], $3::integer[],"
                               " $4::timestamptz[], $5::boolean[])",
                               5, values, deadline, &r, err)
              : error_set(err, STATUS_FATAL, "out of memory");
    for (int i = 0; s == STATUS_OK && i < PQntuples(r); i++) {
        int64_t n = store_pg_int(r, i, 0);
        if (n >= 1 && (size_t)n <= count) {
            ret_stands[n - 1] = doubt_stands(r, i, &findings[n - 1]);
        }
    }
    PQclear(r);
    for (size_t i = 0; i < 5; i++) {
        store_pg_array_free(&lists[i]);
    }
    return s;
}

/* ---- what the server finds ---- */

static const char *const QUERIES[] = {
    [VERIFY_STRAYS] = "SELECT schedule, key, at, version, what, detail FROM"
                      " reports.verify_strays($1::timestamptz, $2::timestamptz, $3, $4::integer)",
    [VERIFY_JOBS] = "SELECT schedule, key, at, version, what, detail FROM"
                    " reports.verify_jobs($1::timestamptz, $2::timestamptz, $3, $4::integer)",
    [VERIFY_ORPHANS] = "SELECT schedule, key, at, version, what, detail FROM"
                       " reports.verify_orphans($1::timestamptz, $2::timestamptz, $3, $4::integer)",
};

static const char *word_of(const char *text)
{
    static const char *const words[] = {"unnamed", "key", "job", "attempt", "artifact", "left"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(text, words[i]) == 0) {
            return words[i];
        }
    }
    return "other";
}

enum status store_verify_query(struct store *store, enum verify_query query,
                               struct verify_span span, const char *schedule, instant deadline,
                               struct ledger_sink *sink, struct error *err)
{
    char from[STORE_PG_TIME_MAX];
    char to[STORE_PG_TIME_MAX];
    char limit[24];
    store_pg_time_format(span.from, from);
    store_pg_time_format(span.to, to);
    (void)snprintf(limit, sizeof limit, "%d", VERIFY_QUERY_LIMIT);
    const char *values[] = {from, to, schedule, limit};
    PGresult *r = NULL;
    enum status s = store_pg_query(store, QUERIES[query], 4, values, deadline, &r, err);
    for (int i = 0; s == STATUS_OK && i < PQntuples(r); i++) {
        const char *name = PQgetvalue(r, i, 0);
        struct ledger_subject subject = {.name = name};
        struct ledger_finding f = ledger_finding_of(&subject, NULL, word_of(PQgetvalue(r, i, 4)),
                                                    cell_time(r, i, 2, NULL), PQgetvalue(r, i, 1));
        f.version = (int32_t)store_pg_int(r, i, 3);
        f.verdict = strcmp(f.what, "left") == 0 ? LEDGER_LOOK : f.verdict;
        store_pg_text(r, i, 5, f.detail, sizeof f.detail);
        sink->add(sink->context, &f);
    }
    PQclear(r);
    return s;
}

enum status store_verify_any(struct store *store, struct verify_span span, instant deadline,
                             bool *ret_any, struct error *err)
{
    char t[2][STORE_PG_TIME_MAX];
    store_pg_time_format(span.from, t[0]);
    store_pg_time_format(span.to, t[1]);
    const char *sql = "SELECT reports.verify_any($1, $2)";
    PGresult *r = NULL;
    enum status s = store_pg_query(store, sql, 2, (const char *[]){t[0], t[1]}, deadline, &r, err);
    *ret_any = s == STATUS_OK && store_pg_bool(r, 0, 0);
    PQclear(r);
    return s;
}
