/* A database of a test program's own: made fresh from the files in sql/, dropped at the end, so
 * that no test depends on another or on the order. Needs RS_PG_SUPER (`dev/stack env`), a
 * superuser's conninfo.
 *
 * Failures are the test's failures: nothing here returns one. */
#ifndef RS_FIXTURE_DATABASE_H
#define RS_FIXTURE_DATABASE_H

#include <stdbool.h>
#include <stdint.h>

#include <libpq-fe.h>

#include "clock.h"

struct test_database {
    char name[64];
    char super[1024];     /* conninfo as the superuser */
    char scheduler[1024]; /* as report_scheduler */
    char worker[1024];    /* as report_worker */
    PGconn *connection;   /* as the superuser; for the test's own questions */
};

/* Create and migrate. Prints why and exits when that cannot be done. */
void test_database_create(struct test_database *db);
void test_database_drop(struct test_database *db);

/* Run SQL (several statements may stand in it); a failure fails the test. */
void test_run(PGconn *c, const char *sql);

/* First column of the first row as text; "" for NULL or no row. Valid until the next call. */
const char *test_text(PGconn *c, const char *sql);
int64_t test_int(PGconn *c, const char *sql);

/* Ask every few milliseconds until the answer is `expected`; false (with a message) at the limit.
 */
bool test_wait_text(PGconn *c, const char *sql, const char *expected, int64_t limit_ms);

/* The value of an environment variable; ends the program when it is not set. */
const char *test_environment(const char *name);

#endif
