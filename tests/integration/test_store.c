/* What every connection must be before anything is asked over it, on a real PostgreSQL. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_database.h"
#include "store_pg.h"

static struct test_database db;

static int group_setup(void **state)
{
    (void)state;
    test_database_create(&db);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    test_database_drop(&db);
    return 0;
}

static instant soon(void)
{
    return instant_add_ms(clock_now(), 10000);
}

static struct store *open_as_scheduler(const char *conninfo, struct store_identity *identity)
{
    struct store *store = NULL;
    struct error err = {.text = ""};
    const struct store_options options = {.conninfo = conninfo,
                                          .application_name = "test-store",
                                          .role = STORE_SCHEDULER,
                                          .identity = identity};
    if (store_open(&options, soon(), &store, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return store;
}

static void check_refused(const char *conninfo, struct store_identity *identity, const char *words)
{
    struct store *store = NULL;
    struct error err = {.text = ""};
    const struct store_options options = {.conninfo = conninfo,
                                          .application_name = "test-store",
                                          .role = STORE_SCHEDULER,
                                          .identity = identity};
    assert_int_equal(store_open(&options, soon(), &store, &err), STATUS_INVALID);
    assert_null(store);
    if (strstr(err.text, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, words);
    }
}

static void test_role_without_bounds_is_refused_by_name(void **state)
{
    (void)state;
    check_refused(db.super, NULL, "log in as report_scheduler");
}

static void test_another_role_is_refused_with_the_one_to_use(void **state)
{
    (void)state;
    check_refused(db.worker, NULL,
                  "role \"report_worker\" is not a member of report_scheduler and may not do its "
                  "work; write user=report_scheduler");
}

static void test_two_lines_of_the_library_become_one_sentence_after_the_other(void **state)
{
    (void)state;
    struct store *store = NULL;
    struct error err = {.text = ""};
    const struct store_options options = {.conninfo = "host=127.0.0.1 port=1 dbname=x user=x",
                                          .application_name = "test-store",
                                          .role = STORE_SCHEDULER};
    assert_int_equal(store_open(&options, soon(), &store, &err), STATUS_AGAIN);
    assert_non_null(strstr(err.text, "refused; Is the server"));
    assert_null(strchr(err.text, '\n'));
}

static void test_socket_connection_is_refused_for_want_of_a_bound(void **state)
{
    (void)state;
    char conninfo[1024];
    char directory[512];
    (void)snprintf(directory, sizeof directory, "%s",
                   test_text(db.connection, "SHOW unix_socket_directories"));
    (void)snprintf(conninfo, sizeof conninfo, "host=%s port=%s dbname=%s user=report_scheduler",
                   directory, PQport(db.connection), db.name);
    check_refused(conninfo, NULL, "connect by TCP");
}

static void test_database_without_the_schema_names_the_remedy(void **state)
{
    (void)state;
    char conninfo[1024];
    (void)snprintf(conninfo, sizeof conninfo, "host=%s port=%s dbname=postgres user=%s",
                   PQhost(db.connection), PQport(db.connection), PQuser(db.connection));
    check_refused(conninfo, NULL, "reportctl migrate");
}

static void test_another_installation_behind_the_same_address_is_refused(void **state)
{
    (void)state;
    struct store_identity identity = {.system = ""};
    store_close(open_as_scheduler(db.scheduler, &identity));
    assert_true(identity.installation[0] != '\0');
    store_close(open_as_scheduler(db.scheduler, &identity));
    test_run(db.connection, "UPDATE reports.installation SET id = gen_random_uuid()");
    check_refused(db.scheduler, &identity, "restart it");
}

static void test_another_cluster_with_the_same_installation_is_refused_as_a_copy(void **state)
{
    (void)state;
    struct store_identity identity = {.system = ""};
    store_close(open_as_scheduler(db.scheduler, &identity));
    /* What a copy would look like to a process that knew the original. */
    identity.system[0] = identity.system[0] == '1' ? '2' : '1';
    check_refused(db.scheduler, &identity, "a copy?");
}

/* The server ends no statement of it before a minute has passed: only we do. */
static struct store *open_without_haste(void)
{
    char sql[256];
    static const char *const times[] = {"60s", "3s"};
    struct store *store = NULL;
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        (void)snprintf(sql, sizeof sql,
                       "ALTER ROLE report_scheduler IN DATABASE %s SET statement_timeout = '%s'",
                       db.name, times[i]);
        test_run(db.connection, sql);
        store = store == NULL ? open_as_scheduler(db.scheduler, NULL) : store;
    }
    return store;
}

static void test_deadline_cancels_the_statement_and_breaks_the_connection(void **state)
{
    (void)state;
    struct store *store = open_without_haste();
    struct error err = {.text = ""};
    PGresult *r = NULL;
    assert_int_equal(store_pg_query(store, "SELECT pg_sleep(60)", 0, NULL,
                                    instant_add_ms(clock_now(), 200), &r, &err),
                     STATUS_TIMEOUT);
    assert_true(store_is_broken(store));
    assert_true(test_wait_text(db.connection,
                               "SELECT count(*) FROM pg_stat_activity WHERE application_name = "
                               "'test-store' AND state = 'active'",
                               "0", 20000));
    store_close(store);
}

static void *cancel_soon(void *store)
{
    /* Cancelling before the statement runs would do nothing: wait until it does. */
    (void)test_wait_text(db.connection,
                         "SELECT count(*) FROM pg_stat_activity WHERE application_name = "
                         "'test-store' AND state = 'active'",
                         "1", 20000);
    store_cancel(store);
    return NULL;
}

static void test_another_thread_can_cancel_and_the_connection_lives_on(void **state)
{
    (void)state;
    struct store *store = open_without_haste();
    struct error err = {.text = ""};
    PGresult *r = NULL;
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, cancel_soon, store), 0);
    assert_int_equal(store_pg_query(store, "SELECT pg_sleep(60)", 0, NULL, soon(), &r, &err),
                     STATUS_TIMEOUT);
    (void)pthread_join(other, NULL);
    assert_string_equal(err.code, "57014");
    assert_false(store_is_broken(store));
    utc_us now = {0};
    assert_int_equal(store_clock(store, soon(), &now, &err), STATUS_OK);
    assert_true(now.us > 0);
    store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_role_without_bounds_is_refused_by_name),
        cmocka_unit_test(test_another_role_is_refused_with_the_one_to_use),
        cmocka_unit_test(test_two_lines_of_the_library_become_one_sentence_after_the_other),
        cmocka_unit_test(test_socket_connection_is_refused_for_want_of_a_bound),
        cmocka_unit_test(test_database_without_the_schema_names_the_remedy),
        cmocka_unit_test(test_deadline_cancels_the_statement_and_breaks_the_connection),
        cmocka_unit_test(test_another_thread_can_cancel_and_the_connection_lives_on),
        cmocka_unit_test(test_another_cluster_with_the_same_installation_is_refused_as_a_copy),
        cmocka_unit_test(test_another_installation_behind_the_same_address_is_refused),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
