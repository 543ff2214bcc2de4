#include "fixture_database.h"

#include <glob.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ident.h"

#define LOOK_MS 5

const char *test_environment(const char *name)
{
    const char *value = getenv(name);
    if (value == NULL || value[0] == '\0') {
        (void)fprintf(stderr, "%s is not set: eval \"$(dev/stack env)\"\n", name);
        exit(2);
    }
    return value;
}

static void give_up(const char *what, const char *why)
{
    (void)fprintf(stderr, "test database: %s: %s\n", what, why);
    exit(2);
}

static void run_or_give_up(PGconn *c, const char *sql, const char *what)
{
    PGresult *r = PQexec(c, sql);
    ExecStatusType s = PQresultStatus(r);
    if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK) {
        give_up(what, PQerrorMessage(c));
    }
    PQclear(r);
}

static PGconn *connect_or_give_up(const char *conninfo)
{
    PGconn *c = PQconnectdb(conninfo);
    if (PQstatus(c) != CONNECTION_OK) {
        give_up("connect", PQerrorMessage(c));
    }
    return c;
}

static char *file_read(const char *path)
{
    FILE *f = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    if (f == NULL || getdelim(&text, &size, '\0', f) < 0) {
        give_up(path, "cannot be read");
    }
    (void)fclose(f);
    return text;
}

/* Each file in one transaction, in order of name, as `reportctl migrate` applies them. */
static void migrate(PGconn *c)
{
    glob_t files;
    if (glob(TEST_SOURCE_DIR "/../sql/0*.sql", 0, NULL, &files) != 0) {
        give_up("migrate", "there are no sql/0*.sql");
    }
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char *sql = file_read(files.gl_pathv[i]);
        run_or_give_up(c, "BEGIN", files.gl_pathv[i]);
        run_or_give_up(c, sql, files.gl_pathv[i]);
        run_or_give_up(c, "COMMIT", files.gl_pathv[i]);
        free(sql);
    }
    globfree(&files);
}

static void silence(void *argument, const PGresult *result)
{
    (void)argument;
    (void)result;
}

void test_database_create(struct test_database *db)
{
    const char *super = test_environment("RS_PG_SUPER");
    char id[UUID_TEXT_MAX];
    char sql[128];
    memset(db, 0, sizeof *db);
    uuid_random(id);
    (void)snprintf(db->name, sizeof db->name, "rs_test_%.8s", id);
    /* The last of two equal keywords counts. */
    (void)snprintf(db->super, sizeof db->super, "%.800s dbname=%s", super, db->name);
    (void)snprintf(db->scheduler, sizeof db->scheduler, "%.800s dbname=%s user=report_scheduler",
                   super, db->name);
    (void)snprintf(db->worker, sizeof db->worker, "%.800s dbname=%s user=report_worker", super,
                   db->name);
    char base[1024];
    (void)snprintf(base, sizeof base, "%.800s dbname=postgres", super);
    PGconn *admin = connect_or_give_up(base);
    (void)snprintf(sql, sizeof sql, "CREATE DATABASE %s", db->name);
    /* Roles are the cluster's: two programs that make them at once would collide. Advisory locks
     * are of one database, so it is taken in the one that all share; it ends with the connection.
     */
    run_or_give_up(admin, "SELECT pg_advisory_lock(7271)", "lock");
    run_or_give_up(admin, sql, "create");
    db->connection = connect_or_give_up(db->super);
    (void)PQsetNoticeReceiver(db->connection, silence, NULL);
    migrate(db->connection);
    PQfinish(admin);
}

void test_database_drop(struct test_database *db)
{
    char sql[128];
    char base[1024];
    PQfinish(db->connection);
    (void)snprintf(base, sizeof base, "%.800s dbname=postgres", test_environment("RS_PG_SUPER"));
    PGconn *admin = connect_or_give_up(base);
    (void)snprintf(sql, sizeof sql, "DROP DATABASE IF EXISTS %s WITH (FORCE)", db->name);
    run_or_give_up(admin, sql, "drop");
    PQfinish(admin);
}

void test_run(PGconn *c, const char *sql)
{
    PGresult *r = PQexec(c, sql);
    ExecStatusType s = PQresultStatus(r);
    PQclear(r);
    if (s != PGRES_COMMAND_OK && s != PGRES_TUPLES_OK) {
        print_error("%s\n%s\n", PQerrorMessage(c), sql);
        fail();
    }
}

const char *test_text(PGconn *c, const char *sql)
{
    static char text[8192];
    PGresult *r = PQexec(c, sql);
    if (PQresultStatus(r) != PGRES_TUPLES_OK) {
        print_error("%s\n%s\n", PQerrorMessage(c), sql);
        PQclear(r);
        fail();
    }
    (void)snprintf(text, sizeof text, "%s", PQntuples(r) == 0 ? "" : PQgetvalue(r, 0, 0));
    PQclear(r);
    return text;
}

int64_t test_int(PGconn *c, const char *sql)
{
    return strtoll(test_text(c, sql), NULL, 10);
}

bool test_wait_text(PGconn *c, const char *sql, const char *expected, int64_t limit_ms)
{
    instant end = instant_add_ms(clock_now(), limit_ms);
    for (;;) {
        const char *text = test_text(c, sql);
        if (strcmp(text, expected) == 0) {
            return true;
        }
        if (!instant_before(clock_now(), end)) {
            print_error("after %lld ms still \"%s\" instead of \"%s\": %s\n", (long long)limit_ms,
                        text, expected, sql);
            return false;
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
}
