/* due -> durable: how many due firings a second one leader makes durable (occurrence, job, outbox
 * row, progress), beside two limits measured in the same run on the same database:
 *   bare   the fenced function plan_batch called in a loop with ready-made arrays
 *   copy   binary COPY of the same occurrence, job and outbox rows into the same tables
 * Usage: bench_plan SUPERUSER-CONNINFO SCHEDULER-CONNINFO DUE HELD ROUNDS (run by bench/plan). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "ident.h"
#include "measure.h"
#include "planning.h"

#define BATCH      1000
#define ROUNDS_MAX 15
#define ARRAYS     27 /* parameters 5 to 31 but for tzdata; see bare_round */

/* ---- The rows ----------------------------------------------------------------------------------
 */

static void schedules_make(int due, long held)
{
    (void)sql("INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop')");
    (void)sql("INSERT INTO reports.schedule (name, report, kind, rule, anchor) SELECT "
              "'s' || lpad(g::text, 7, '0'), 'nothing', 'interval', '1 day', "
              "date_trunc('minute', clock_timestamp()) FROM generate_series(1, %d) g",
              due);
    /* Schedules that are only held go straight where a take-in would have put them. */
    (void)sql("INSERT INTO reports.schedule_version SELECT h.* FROM reports.schedule_version v, "
              "generate_series(1, %ld) g, jsonb_populate_record(v, jsonb_build_object('schedule', "
              "'h' || lpad(g::text, 7, '0'))) h WHERE v.schedule = 's0000001'",
              held);
    (void)sql("INSERT INTO reports.schedule_progress (schedule, scope, version, next_fire_at, "
              "switched_at, key_form) SELECT 'h' || lpad(g::text, 7, '0'), 'main', 1, "
              "clock_timestamp() + interval '30 days' + g * interval '1 second', "
              "clock_timestamp(), 'minute' FROM generate_series(1, %ld) g",
              held);
    (void)sql("ANALYZE");
}

/* As before the round: nothing planned, `due` schedules due since a moment. */
static void rows_reset(void)
{
    (void)sql("TRUNCATE reports.occurrence, reports.job, reports.outbox, reports.schedule_gap");
    (void)sql("UPDATE reports.schedule_progress SET step = 1, last_fire_at = NULL, last_nominal = "
              "NULL, last_offset_s = NULL, switched_at = v.anchor - interval '1 second', "
              "next_fire_at = v.anchor, next_nominal = v.anchor AT TIME ZONE 'UTC', "
              "next_offset_s = 0 FROM reports.schedule_version v WHERE v.schedule = "
              "schedule_progress.schedule AND schedule_progress.schedule LIKE 's%%'");
    (void)sql("VACUUM ANALYZE reports.schedule_progress");
    (void)sql("CHECKPOINT");
}

static void rows_check(int due)
{
    long made = strtol(sql("SELECT count(*) FROM reports.occurrence o JOIN reports.job j ON j.id = "
                           "o.job_id JOIN reports.outbox x ON x.job_id = j.id"),
                       NULL, 10);
    if (made != due) {
        stop("wrong number of rows", sql("SELECT count(*) FROM reports.occurrence"));
    }
}

/* ---- Ours: planning steps as the scope thread makes them --------------------------------------
 */

static struct authority lead(void)
{
    static int64_t generation;
    struct authority a = {.scope = "main", .generation = ++generation};
    uuid_random(a.owner);
    a.incarnation =
        strtoll(sql("SELECT incarnation FROM reports.ensemble_meet('bench', 'bench')"), NULL, 10);
    if (strcmp(sql("SELECT verdict FROM reports.establish('main', %" PRId64 ", %" PRId64
                   ", '%s', 'bench')",
                   a.incarnation, a.generation, a.owner),
               "established") != 0) {
        stop("establish", "refused");
    }
    return a;
}

struct ours {
    struct authority authority;
    struct lease lease;
    struct store *store;
    struct planning *planning;
};

/* As a new leader begins: knowing nothing of what was planned before. */
static void planning_begin(struct ours *o)
{
    struct error err = {.text = ""};
    struct planning_options planning = {.scope = "main",
                                        .lease = &o->lease,
                                        .tz_poll_ms = 60000,
                                        .statement_ms = 10000,
                                        .batch_schedules = BATCH,
                                        .look_ms = PLANNING_LOOK_MS};
    planning_free(o->planning);
    o->planning = planning_new(&planning);
    if (o->planning == NULL ||
        planning_prepare(o->planning, &o->authority, o->store, &err) != STATUS_OK) {
        stop("prepare", err.text);
    }
}

static void ours_open(struct ours *o, const char *conninfo)
{
    struct error err = {.text = ""};
    struct store_options options = {
        .conninfo = conninfo, .application_name = "bench_plan", .role = STORE_SCHEDULER};
    o->authority = lead();
    lease_set(&o->lease, INSTANT_NEVER);
    if (store_open(&options, instant_add_ms(clock_now(), 10000), &o->store, &err) != STATUS_OK) {
        stop("connect", err.text);
    }
    planning_begin(o);
}

static int ours_settle(struct ours *o)
{
    struct planning_result r = {.more = true};
    struct error err = {.text = ""};
    int planned = 0;
    for (bool first = true; r.more; first = false) {
        if (planning_step(o->planning, &o->authority, o->store, first, &r, &err) != STATUS_OK) {
            stop("step", err.text);
        }
        planned += (int)r.planned;
    }
    return planned;
}

static double ours_round(struct ours *o, int due)
{
    rows_reset();
    /* The rows were changed behind its back, and jobs that it knows are gone. */
    planning_begin(o);
    instant begin = clock_now();
    int planned = ours_settle(o);
    double seconds = seconds_since(begin);
    if (planned != due) {
        stop("planned", "not all that was due");
    }
    rows_check(due);
    return (double)due / seconds;
}

/* ---- The bare function -------------------------------------------------------------------------
 */

struct text {
    char *at;
    size_t used, size;
};

static void text_add(struct text *t, const char *element)
{
    size_t n = strlen(element);
    if (t->size - t->used < n + 4) {
        t->size = t->size * 2 + n + 64;
        t->at = realloc(t->at, t->size);
        if (t->at == NULL) {
            stop("memory", "none");
        }
    }
    t->at[t->used] = t->used == 0 ? '{' : ',';
    memcpy(t->at + t->used + 1, element, n);
    t->used += n + 1;
    t->at[t->used] = '}';
    t->at[t->used + 1] = '\0';
}

/* The same values that the planner sends for these rows, made before the clock starts. */
static void arrays_fill(struct text a[ARRAYS], int begin, int end, const char *anchor)
{
    char day[16];
    char name[16];
    char key[40];
    char next[300];
    char fired[80];
    (void)snprintf(day, sizeof day, "%.10s", anchor);
    (void)snprintf(key, sizeof key, "\"%.10sT%.5sZ\"", anchor, anchor + 11);
    (void)snprintf(fired, sizeof fired, "\"%s\"", anchor);
    (void)snprintf(next, sizeof next, "\"%s\"",
                   sql("SELECT timestamptz '%s' + interval '1 day'", anchor));
    for (int i = begin; i < end; i++) {
        char job[UUID_TEXT_MAX];
        uuid_time_ordered((utc_us){INT64_C(1900000000000000)}, job);
        (void)snprintf(name, sizeof name, "s%07d", i + 1);
        const char *row[18] = {name, "1", "1", next,  next,  "0", fired, fired,  "0",
                               name, key, job, fired, fired, "0", day,   "NULL", "schedule"};
        for (size_t k = 0; k < 18; k++) {
            text_add(&a[k], row[k]);
        }
    }
}

static double bare_round(const struct authority *a, PGconn *c, int due, const char *anchor)
{
    int batches = (due + BATCH - 1) / BATCH;
    struct text(*arrays)[ARRAYS] = calloc((size_t)batches, sizeof *arrays);
    if (arrays == NULL) {
        stop("memory", "none");
    }
    rows_reset();
    for (int b = 0; b < batches; b++) {
        int end = (b + 1) * BATCH < due ? (b + 1) * BATCH : due;
        arrays_fill(arrays[b], b * BATCH, end, anchor);
    }
    char incarnation[24];
    char generation[24];
    char known[UUID_TEXT_MAX] = "";
    (void)snprintf(incarnation, sizeof incarnation, "%" PRId64, a->incarnation);
    (void)snprintf(generation, sizeof generation, "%" PRId64, a->generation);
    instant begin = clock_now();
    for (int b = 0; b < batches; b++) {
        const char *values[31] = {a->scope, incarnation, generation, a->owner};
        for (int k = 0; k < 9; k++) {
            values[4 + k] = arrays[b][k].at;
            values[14 + k] = arrays[b][9 + k].at;
        }
        values[13] = "bench";
        for (int k = 23; k < 30; k++) {
            values[k] = "{}";
        }
        values[30] = known[0] == '\0' ? NULL : known;
        PGresult *r = PQexecParams(
            c,
            "SELECT verdict, cardinality(advanced), planned, newest_job FROM "
            "reports.plan_batch($1, "
            "$2::bigint, $3::bigint, $4::uuid, $5::text[], $6::integer[], $7::bigint[], "
            "$8::timestamptz[], $9::timestamp[], $10::integer[], $11::timestamptz[], "
            "$12::timestamp[], $13::integer[], $14, $15::text[], $16::text[], $17::uuid[], "
            "$18::timestamptz[], $19::timestamp[], $20::integer[], $21::date[], "
            "$22::timestamptz[], $23::text[], $24::text[], $25::timestamptz[], "
            "$26::timestamptz[], $27::text[], $28::text[], $29::bigint[], $30::text[], "
            "$31::uuid)",
            31, NULL, values, NULL, NULL, 0);
        if (PQresultStatus(r) != PGRES_TUPLES_OK || strcmp(PQgetvalue(r, 0, 0), "ok") != 0) {
            stop("bare plan_batch", PQerrorMessage(c));
        }
        (void)snprintf(known, sizeof known, "%s", PQgetvalue(r, 0, 3));
        PQclear(r);
    }
    double rate = (double)due / seconds_since(begin);
    rows_check(due);
    for (int b = 0; b < batches; b++) {
        for (int k = 0; k < ARRAYS; k++) {
            free(arrays[b][k].at);
        }
    }
    free(arrays);
    return rate;
}

/* ---- Binary COPY -------------------------------------------------------------------------------
 */

struct copied {
    const char *table, *columns;
    char *bytes;
    size_t size;
};

static void copy_out(struct copied *t)
{
    char text[512];
    char *piece = NULL;
    int n = 0;
    (void)snprintf(text, sizeof text, "COPY %s (%s) TO STDOUT (FORMAT binary)", t->table,
                   t->columns);
    PQclear(PQexec(super, text));
    while ((n = PQgetCopyData(super, &piece, 0)) > 0) {
        t->bytes = realloc(t->bytes, t->size + (size_t)n);
        if (t->bytes == NULL) {
            stop("memory", "none");
        }
        memcpy(t->bytes + t->size, piece, (size_t)n);
        t->size += (size_t)n;
        PQfreemem(piece);
    }
    PQclear(PQgetResult(super));
}

static void copy_in(const struct copied *t)
{
    char text[512];
    (void)snprintf(text, sizeof text, "COPY %s (%s) FROM STDIN (FORMAT binary)", t->table,
                   t->columns);
    PQclear(PQexec(super, text));
    if (PQputCopyData(super, t->bytes, (int)t->size) != 1 || PQputCopyEnd(super, NULL) != 1) {
        stop("copy", PQerrorMessage(super));
    }
    PGresult *r = PQgetResult(super);
    if (PQresultStatus(r) != PGRES_COMMAND_OK) {
        stop("copy", PQerrorMessage(super));
    }
    PQclear(r);
    PQclear(PQgetResult(super));
}

/* The rows are those of the round before. */
static double copy_round(int due)
{
    struct copied tables[] = {
        {"reports.occurrence",
         "schedule, occurrence_key, scope, job_id, scheduled_for, nominal_local, offset_s, "
         "business_date, window_end, cause, version, incarnation, generation, planned_at",
         NULL, 0},
        {"reports.job",
         "id, schedule, occurrence_key, scope, report, queue, priority, state, run_after, "
         "max_attempts, retry_base, retry_cap, timeout, created_at",
         NULL, 0},
        {"reports.outbox",
         "scope, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, "
         "generation, created_at",
         NULL, 0},
    };
    for (size_t i = 0; i < 3; i++) {
        copy_out(&tables[i]);
    }
    rows_reset();
    instant begin = clock_now();
    for (size_t i = 0; i < 3; i++) {
        copy_in(&tables[i]);
    }
    double rate = (double)due / seconds_since(begin);
    rows_check(due);
    for (size_t i = 0; i < 3; i++) {
        free(tables[i].bytes);
    }
    return rate;
}

static long rss_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kib = strtol(line + 6, NULL, 10);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return kib;
}

/* Rows of bench/run's table, where it asks for them. */
static void table_add(long held, const double m[3])
{
    static const char *const limits[] = {"bare fenced function", "binary COPY"};
    static const double targets[] = {0.7, 0.2};
    const char *path = getenv("RS_BENCH_TABLE");
    FILE *f = path == NULL ? NULL : fopen(path, "a");
    for (int i = 0; f != NULL && i < 2; i++) {
        double ratio = m[2] / m[i];
        (void)fprintf(f, "| plan | %s, %ld held | %.0f/s | %.0f/s | %.2f | >= %.1f | %s |\n",
                      limits[i], held, m[i], m[2], ratio, targets[i],
                      ratio >= targets[i] ? "yes" : "**no**");
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        stop("usage", "bench_plan SUPERUSER-CONNINFO SCHEDULER-CONNINFO DUE HELD ROUNDS");
    }
    int due = (int)strtol(argv[3], NULL, 10);
    long held = strtol(argv[4], NULL, 10);
    int rounds = (int)strtol(argv[5], NULL, 10);
    rounds = rounds < 1 ? 1 : rounds > ROUNDS_MAX ? ROUNDS_MAX : rounds;
    super = PQconnectdb(argv[1]);
    PGconn *bare = PQconnectdb(argv[2]);
    if (PQstatus(super) != CONNECTION_OK || PQstatus(bare) != CONNECTION_OK) {
        stop("connect", PQerrorMessage(super));
    }
    (void)sql("SET timezone = 'UTC'");
    schedules_make(due, held);
    char anchor[64];
    (void)snprintf(anchor, sizeof anchor, "%s", sql("SELECT anchor FROM reports.schedule LIMIT 1"));
    struct ours o = {.store = NULL};
    ours_open(&o, argv[2]);
    (void)ours_settle(&o); /* takes the schedules in */
    double rates[3][ROUNDS_MAX];
    for (int i = 0; i < rounds; i++) {
        rates[0][i] = bare_round(&o.authority, bare, due, anchor);
        rates[1][i] = copy_round(due);
        rates[2][i] = ours_round(&o, due);
    }
    double m[3] = {median(rates[0], rounds), median(rates[1], rounds), median(rates[2], rounds)};
    (void)printf("%d due at once, %ld more schedules held, batches of %d, median of %d rounds\n",
                 due, held, BATCH, rounds);
    (void)printf("  bare fenced function   %10.0f firings/s\n", m[0]);
    (void)printf("  binary COPY            %10.0f firings/s\n", m[1]);
    (void)printf("  ours                   %10.0f firings/s   %.2f x bare (target 0.70)   "
                 "%.2f x COPY (target 0.20)\n",
                 m[2], m[2] / m[0], m[2] / m[1]);
    table_add(held, m);
    (void)printf("  memory of the planning process: %.1f MiB\n", (double)rss_kib() / 1024);
    planning_free(o.planning);
    store_close(o.store);
    PQfinish(bare);
    PQfinish(super);
    return 0;
}
