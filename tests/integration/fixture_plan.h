/* For integration tests of planning and relay: a database of their own with all migrations, a
 * leader context, and a topic of their own. Reads RS_PG_SUPER and RS_KAFKA (see dev/stack env). */
#ifndef RS_FIXTURE_PLAN_H
#define RS_FIXTURE_PLAN_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "authority.h"
#include "clock.h"
#include "lease.h"
#include "status.h"
#include "store.h"

struct CMUnitTest;

/* The whole of such a program: makes the database (dropping an old one of the name), empties it and
 * calls `before_each` (NULL: nothing) before each test, drops it. Returns main's status. The
 * fixture's superuser connection is to this database. Where a schedule names no time zone, and for
 * that connection, it is day: none begins or ends while the tests run. */
int fixture_plan_run(const char *name, const struct CMUnitTest *tests, size_t count,
                     void (*before_each)(void));

/* Empty everything once more, within a test, with the fence left where it is. */
void fixture_plan_clear(void);

/* Connection string of report_scheduler. Borrowed. */
const char *fixture_plan_conninfo(void);
struct store *fixture_plan_store(void); /* fails the test; the caller closes it */

/* SQL as superuser; fails the test. The value of the first cell, "" for NULL or no row; valid until
 * the next call. */
const char *fixture_sql(const char *format, ...) __attribute__((format(printf, 1, 2)));
int64_t fixture_count(const char *format, ...) __attribute__((format(printf, 1, 2)));
PGconn *fixture_plan_super(void);
PGconn *fixture_plan_second(void); /* another superuser session; the caller finishes it */

/* Become leader of scope main under a generation higher than all before. */
struct authority fixture_lead(void);

/* A lease that holds for ms from now. */
void fixture_lease(struct lease *lease, int64_t ms);

/* Environment variable, or fail with what to do. */
const char *fixture_environment(const char *name);

/* A new topic of the running Kafka, "<stem>-<random>"; 0 bytes: the usual bound. Borrowed: until
 * the next call. */
const char *fixture_topic(const char *stem, int max_message_bytes);

/* Run `dev/stack <command> kafka` on the stack under test; fails the test. */
void fixture_stack(const char *command, const char *service);

/* Poll a condition each 10 ms until it holds; false when the time is over. */
bool fixture_wait(bool (*condition)(void *argument), void *argument, int64_t ms);

#endif
