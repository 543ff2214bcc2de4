/* A server that hangs, on a real PostgreSQL behind a proxy that swallows everything: nothing waits
 * for it beyond its deadline, not even the cancel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_database.h"
#include "fixture_proxy.h"
#include "job.h"
#include "source.h"
#include "store_pg.h"

#define STATEMENT_MS 300
#define BOUND_MS     15000 /* a statement's deadline, a cancel's, and room for a slow machine */

static struct test_database db;
static struct proxy *proxy;
static char conninfo[1100];

static instant in_ms(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

static int group_setup(void **state)
{
    char server[256];
    (void)state;
    test_database_create(&db);
    (void)snprintf(server, sizeof server, "%s:%s", test_environment("RS_PG_HOST"),
                   test_environment("RS_PG_PORT"));
    proxy = proxy_start(server);
    /* The server by itself ends nothing here. */
    (void)snprintf(server, sizeof server,
                   "ALTER ROLE report_scheduler IN DATABASE %s SET statement_timeout = '60s'",
                   db.name);
    test_run(db.connection, server);
    const char *port = strchr(proxy_address(proxy), ':') + 1;
    (void)snprintf(conninfo, sizeof conninfo, "%s host=127.0.0.1 port=%s", db.scheduler, port);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    proxy_stop(proxy);
    test_database_drop(&db);
    return 0;
}

static struct store *open_through_the_proxy(void)
{
    struct store *store = NULL;
    struct error err = {.text = ""};
    const struct store_options options = {
        .conninfo = conninfo, .application_name = "test-hang", .role = STORE_SCHEDULER};
    proxy_set(proxy, PROXY_PASS);
    if (store_open(&options, in_ms(10000), &store, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return store;
}

static void test_statement_on_a_server_that_hangs_ends_at_its_deadline(void **state)
{
    struct error err = {.text = ""};
    utc_us now = {0};
    (void)state;
    struct store *store = open_through_the_proxy();
    proxy_set(proxy, PROXY_HOLE);
    instant began = clock_now();
    assert_int_equal(store_clock(store, in_ms(STATEMENT_MS), &now, &err), STATUS_TIMEOUT);
    assert_true(store_is_broken(store));
    store_cancel(
        store); /* the first is still on its way: this one does not queue behind it for ever */
    store_close(store);
    assert_true(instant_ms_between(began, clock_now()) < BOUND_MS);
    proxy_cut(proxy); /* lets the cancel that was left behind end */
}

static void test_connecting_to_a_server_that_hangs_ends_at_its_deadline(void **state)
{
    struct error err = {.text = ""};
    struct store *store = NULL;
    const struct store_options options = {
        .conninfo = conninfo, .application_name = "test-hang", .role = STORE_SCHEDULER};
    (void)state;
    proxy_set(proxy, PROXY_HOLE);
    instant began = clock_now();
    assert_int_not_equal(store_open(&options, in_ms(STATEMENT_MS), &store, &err), STATUS_OK);
    assert_null(store);
    assert_true(instant_ms_between(began, clock_now()) < BOUND_MS);
}

static void test_statement_given_up_is_cancelled_at_the_server(void **state)
{
    struct error err = {.text = ""};
    PGresult *result = NULL;
    (void)state;
    struct store *store = open_through_the_proxy();
    assert_int_equal(
        store_pg_query(store, "SELECT pg_sleep(60)", 0, NULL, in_ms(STATEMENT_MS), &result, &err),
        STATUS_TIMEOUT);
    /* The connection is still open: only the cancel can have ended it. */
    assert_true(test_wait_text(db.connection,
                               "SELECT count(*) FROM pg_stat_activity WHERE application_name = "
                               "'test-hang' AND state = 'active'",
                               "0", 20000));
    store_close(store);
}

/* Otherwise a slot of the worker would be lost with each report whose data source hangs. */
static void test_query_of_a_report_on_a_source_that_hangs_ends_in_time(void **state)
{
    struct error err = {.text = ""};
    struct source *source = NULL;
    const struct source_options options = {.conninfo = conninfo,
                                           .password_file = "",
                                           .application = "test-hang",
                                           .statement_timeout_ms = 60000};
    struct source_wait wait = {.wake_fd = -1, .deadline = in_ms(10000)};
    struct job *job = job_new();
    (void)state;
    assert_non_null(job);
    job->query = strdup("SELECT pg_sleep(60)");
    proxy_set(proxy, PROXY_PASS);
    assert_int_equal(source_open(&options, &wait, &source, &err), STATUS_OK);
    wait.deadline = in_ms(STATEMENT_MS);
    assert_int_equal(source_query(source, job, &wait, &err), STATUS_TIMEOUT);
    proxy_set(proxy, PROXY_HOLE);
    instant began = clock_now();
    source_end(source);
    assert_true(instant_ms_between(began, clock_now()) < 2 * BOUND_MS);
    assert_true(source_is_broken(source));
    source_close(source);
    job_free(job);
    proxy_cut(proxy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statement_on_a_server_that_hangs_ends_at_its_deadline),
        cmocka_unit_test(test_connecting_to_a_server_that_hangs_ends_at_its_deadline),
        cmocka_unit_test(test_statement_given_up_is_cancelled_at_the_server),
        cmocka_unit_test(test_query_of_a_report_on_a_source_that_hangs_ends_in_time),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
