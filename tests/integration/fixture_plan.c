#include "fixture_plan.h"

#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "dispatch.h"
#include "ident.h"

#define SQL_MAX       8192
#define FILES_MAX     64
#define MIGRATION_MAX (1 << 20)
#define TESTS_MAX     32
#define CALM_S        20

extern char **environ;

static PGconn *super;
static char database[64];
static char conninfo[512];
static int64_t generation;
static void (*before)(void); /* what fixture_plan_run was given */

const char *fixture_environment(const char *name)
{
    const char *value = getenv(name);
    if (value == NULL || value[0] == '\0') {
        fail_msg("%s is not set: run dev/test integration, or dev/stack up and "
                 "eval \"$(dev/stack env)\"",
                 name);
    }
    return value;
}

/* The superuser's connection string with another database; the last dbname wins in libpq. */
static PGconn *connect_super(const char *dbname)
{
    char text[512];
    const char *base = getenv("RS_PG_SUPER");
    if (base == NULL) {
        print_error("RS_PG_SUPER is not set: dev/stack up, then eval \"$(dev/stack env)\"\n");
        return NULL;
    }
    (void)snprintf(text, sizeof text, "%s dbname=%s application_name=fixture", base, dbname);
    PGconn *c = PQconnectdb(text);
    if (PQstatus(c) != CONNECTION_OK) {
        print_error("%s\n", PQerrorMessage(c));
        PQfinish(c);
        return NULL;
    }
    return c;
}

static bool run(PGconn *c, const char *sql)
{
    PGresult *r = PQexec(c, sql);
    bool ok = PQresultStatus(r) == PGRES_COMMAND_OK || PQresultStatus(r) == PGRES_TUPLES_OK;
    if (!ok) {
        print_error("%.300s\n%s\n", sql, PQerrorMessage(c));
    }
    PQclear(r);
    return ok;
}

static void ignore_notice(void *argument, const char *text)
{
    (void)argument;
    (void)text;
}

static int name_order(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

static bool file_apply(PGconn *c, const char *directory, const char *name)
{
    char path[4200];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "r");
    char *text = calloc(1, MIGRATION_MAX);
    if (f == NULL || text == NULL) {
        print_error("%s cannot be read\n", path);
        return false;
    }
    size_t n = fread(text, 1, MIGRATION_MAX - 1, f);
    (void)fclose(f);
    bool ok = n > 0 && n < MIGRATION_MAX - 1;
    ok = ok && run(c, text);
    free(text);
    return ok;
}

static bool migrate(PGconn *c)
{
    const char *directory = TEST_SOURCE_DIR "/../sql";
    char *names[FILES_MAX];
    size_t count = 0;
    DIR *d = opendir(directory);
    if (d == NULL) {
        print_error("%s cannot be read\n", directory);
        return false;
    }
    for (struct dirent *e = readdir(d); e != NULL && count < FILES_MAX; e = readdir(d)) {
        size_t n = strlen(e->d_name);
        if (n > 4 && strcmp(e->d_name + n - 4, ".sql") == 0) {
            names[count++] = strdup(e->d_name);
        }
    }
    (void)closedir(d);
    qsort(names, count, sizeof names[0], name_order);
    bool ok = count > 0;
    for (size_t i = 0; i < count; i++) {
        ok = ok && names[i] != NULL && file_apply(c, directory, names[i]);
        free(names[i]);
    }
    return ok;
}

/* Tests speak of midnights, of days ago and of today. Where it is evening or night by UTC,
 * schedules of this database are meant in a zone that is half a day ahead, unless they name one,
 * and the fixture's session lives there: the last midnight and the next one are six hours away or
 * more, whenever the tests run. Two zones, not 24: both are easily tried (tests/instants.py). */
static const char BY_DAY[] =
    "DO $$ DECLARE zone text := CASE WHEN extract(hour FROM clock_timestamp() AT TIME ZONE 'UTC') "
    "BETWEEN 6 AND 17 THEN 'UTC' ELSE 'Etc/GMT-12' END; BEGIN "
    "PERFORM set_config('TimeZone', zone, false); "
    "EXECUTE format('ALTER TABLE reports.schedule ALTER COLUMN time_zone SET DEFAULT %L', zone); "
    "END $$";

static int database_open(void **state)
{
    char sql[256];
    const char *base = getenv("RS_PG_SUPER");
    PGconn *c = connect_super("postgres");
    (void)state;
    if (c == NULL) {
        return -1;
    }
    (void)PQsetNoticeProcessor(c, ignore_notice, NULL);
    (void)snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %s WITH (FORCE)", database);
    bool ok = run(c, sql);
    (void)snprintf(sql, sizeof sql, "CREATE DATABASE %s", database);
    ok = ok && run(c, sql);
    super = ok ? connect_super(database) : NULL;
    if (super == NULL) {
        PQfinish(c);
        return -1;
    }
    (void)PQsetNoticeProcessor(super, ignore_notice, NULL);
    (void)snprintf(conninfo, sizeof conninfo, "%s dbname=%s user=report_scheduler", base, database);
    /* Roles are the cluster's: another program's migration waits, as in fixture_database.c. */
    ok = run(c, "SELECT pg_advisory_lock(7271)") && migrate(super) && run(super, BY_DAY);
    PQfinish(c);
    return ok ? 0 : -1;
}

static int database_close(void **state)
{
    char sql[256];
    (void)state;
    PQfinish(super);
    super = NULL;
    PGconn *c = connect_super("postgres");
    if (c == NULL) {
        return -1;
    }
    (void)snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %s WITH (FORCE)", database);
    bool ok = run(c, sql);
    PQfinish(c);
    return ok ? 0 : -1;
}

PGconn *fixture_plan_super(void)
{
    return super;
}

PGconn *fixture_plan_second(void)
{
    PGconn *c = connect_super(database);
    assert_non_null(c);
    return c;
}

__attribute__((format(printf, 1, 0))) static const char *sql_run(const char *format, va_list args)
{
    static char value[2048];
    char sql[SQL_MAX];
    int n = vsnprintf(sql, sizeof sql, format, args);
    assert_true(n > 0 && n < SQL_MAX);
    PGresult *r = PQexec(super, sql);
    ExecStatusType status = PQresultStatus(r);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fail_msg("%s\n%s", sql, PQerrorMessage(super));
    }
    (void)snprintf(value, sizeof value, "%s",
                   PQntuples(r) > 0 && PQnfields(r) > 0 ? PQgetvalue(r, 0, 0) : "");
    PQclear(r);
    return value;
}

const char *fixture_sql(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *value = sql_run(format, args);
    va_end(args);
    return value;
}

int64_t fixture_count(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *value = sql_run(format, args);
    va_end(args);
    return strtoll(value, NULL, 10);
}

void fixture_plan_clear(void)
{
    (void)fixture_sql(
        "TRUNCATE reports.zone_state, reports.schedule, reports.report, reports.schedule_version, "
        "reports.schedule_change, reports.schedule_progress, reports.occurrence, "
        "reports.schedule_gap, reports.job, reports.job_attempt, reports.outbox, "
        "reports.outbox_dead, reports.request, reports.hold, reports.fence_rejection, "
        "reports.worker CASCADE");
    (void)fixture_sql("INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop')");
}

static bool the_half_hour_lasts(void *argument)
{
    (void)argument;
    return fixture_count("SELECT (extract(epoch FROM clock_timestamp())::bigint / 1800 = "
                         "(extract(epoch FROM clock_timestamp())::bigint + %d) / 1800)::integer",
                         CALM_S) != 0;
}

static int test_begin(void **state)
{
    (void)state;
    /* Tests count the days and the hours up to now: none begins just before another one does. */
    assert_true(fixture_wait(the_half_hour_lasts, NULL, 2 * CALM_S * 1000));
    fixture_plan_clear();
    if (before != NULL) {
        before();
    }
    return 0;
}

int fixture_plan_run(const char *name, const struct CMUnitTest *tests, size_t count,
                     void (*before_each)(void))
{
    struct CMUnitTest all[TESTS_MAX] = {0}; /* cmocka leaves out what has no name */
    if (count > TESTS_MAX) {
        print_error("%zu tests are more than %d\n", count, TESTS_MAX);
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        all[i] = tests[i];
        all[i].setup_func = test_begin;
    }
    before = before_each;
    (void)snprintf(database, sizeof database, "%s", name);
    return cmocka_run_group_tests_name(name, all, database_open, database_close);
}

const char *fixture_plan_conninfo(void)
{
    return conninfo;
}

struct store *fixture_plan_store(void)
{
    const struct store_options options = {
        .conninfo = conninfo, .application_name = "test", .role = STORE_SCHEDULER};
    struct store *store = NULL;
    struct error err = {.text = ""};
    if (store_open(&options, instant_add_ms(clock_now(), 10000), &store, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return store;
}

struct authority fixture_lead(void)
{
    struct authority a = {.scope = "main", .generation = ++generation};
    uuid_random(a.owner);
    a.incarnation = fixture_count("SELECT incarnation FROM reports.ensemble_meet('test', 'test')");
    assert_string_equal(
        fixture_sql("SELECT verdict FROM reports.establish('main', %lld, %lld, '%s', 'test')",
                    (long long)a.incarnation, (long long)a.generation, a.owner),
        "established");
    return a;
}

void fixture_lease(struct lease *lease, int64_t ms)
{
    lease_set(lease, instant_add_ms(clock_now(), ms));
}

const char *fixture_topic(const char *stem, int max_message_bytes)
{
    static char name[250];
    char id[UUID_TEXT_MAX];
    uuid_random(id);
    (void)snprintf(name, sizeof name, "%s-%.8s", stem, id);
    struct dispatch_options options = {.brokers = fixture_environment("RS_KAFKA"),
                                       .client_id = "fixture"};
    struct topic_spec spec = {.name = name,
                              .partitions = 6,
                              .replication = 1,
                              .retention_ms = 3600000,
                              .max_message_bytes = max_message_bytes};
    struct error err = {.text = ""};
    if (topic_create(&options, &spec, instant_add_ms(clock_now(), 20000), &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return name;
}

void fixture_stack(const char *command, const char *service)
{
    char program[] = TEST_SOURCE_DIR "/../dev/stack";
    char verb[16];
    char what[16];
    char option[] = "--name";
    char timeout[] = "--timeout=150"; /* a JVM on a busy machine */
    char name[128];
    (void)snprintf(verb, sizeof verb, "%s", command);
    (void)snprintf(what, sizeof what, "%s", service);
    (void)snprintf(name, sizeof name, "%s", fixture_environment("RS_STACK"));
    char *argv[] = {program, verb, timeout, option, name, what, NULL};
    pid_t pid = 0;
    int status = -1;
    assert_int_equal(posix_spawn(&pid, program, NULL, NULL, argv, environ), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

bool fixture_wait(bool (*condition)(void *argument), void *argument, int64_t ms)
{
    instant end = instant_add_ms(clock_now(), ms);
    bool ok = condition(argument);
    while (!ok && instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, 10);
        ok = condition(argument);
    }
    return ok;
}
