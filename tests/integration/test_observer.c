/* The observer reads the database's facts whoever leads, and never shows an old one for new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <poll.h>

#include <cmocka.h>

#include "fixture_database.h"
#include "fixture_proxy.h"
#include "observer.h"
#include "scheduler_metrics.h"

#define PERIOD_MS 50
#define LIMIT_MS  30000

static struct test_database db;
static struct setting_list scopes = {.count = 2, .items = {"main", "other"}};
static struct observer *observer;

static void start(const char *conninfo)
{
    struct error err = {.text = ""};
    static struct observer_options options;
    options = (struct observer_options){.conninfo = conninfo,
                                        .scopes = &scopes,
                                        .observe_ms = PERIOD_MS,
                                        .connect_ms = 1000,
                                        .statement_ms = 500};
    if (observer_start(&options, &observer, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
}

static void stop(void)
{
    assert_int_equal(observer_stop(observer, instant_add_ms(clock_now(), 20000)), STATUS_OK);
    observer = NULL;
}

static int set_up(void **state)
{
    (void)state;
    metrics_reset();
    test_database_create(&db);
    test_run(db.connection, "INSERT INTO reports.scope (name) VALUES ('other')");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (observer != NULL) {
        stop();
    }
    test_database_drop(&db);
    return 0;
}

static bool page_has(const char *part)
{
    char *text = NULL;
    size_t size = 0;
    struct error err = {.text = ""};
    assert_int_equal(metrics_render(&text, &size, &err), STATUS_OK);
    bool found = strstr(text, part) != NULL;
    free(text);
    return found;
}

/* Wait until the page has, or has not, a part; the test fails at the limit. One look is not enough:
 * on a busy machine the facts may be three periods old just now, and not shown. */
static void await_page(const char *part, bool wanted)
{
    instant end = instant_add_ms(clock_now(), LIMIT_MS);
    while (page_has(part) != wanted) {
        if (!instant_before(clock_now(), end)) {
            fail_msg("%s %s the page within %d ms", part, wanted ? "is not on" : "stays on",
                     LIMIT_MS);
        }
        (void)poll(NULL, 0, 5);
    }
}

static void await_shown(const char *part)
{
    await_page(part, true);
}

static void await_gone(const char *part)
{
    await_page(part, false);
}

static double age(void)
{
    observer_collect(observer);
    return metric_read(scheduler_metric(SCHEDULER_OBSERVATION_AGE, NULL, NULL));
}

static void test_facts_of_every_scope_are_shown_although_nobody_leads(void **state)
{
    (void)state;
    start(db.scheduler);
    await_shown("report_scheduler_due_lag_seconds{scope=\"main\"} 0\n");
    await_shown("report_scheduler_holds{scope=\"other\"} 0\n");
    await_shown("report_scheduler_leaderless_seconds{scope=\"main\"} ");
    test_run(db.connection, "INSERT INTO reports.hold (scope, reason) VALUES ('other', 'a test')");
    await_shown("report_scheduler_holds{scope=\"other\"} 1\n");
    await_shown("report_scheduler_holds{scope=\"main\"} 0\n");
    assert_true(age() < 5);
}

static void test_series_of_a_queue_goes_with_the_queue(void **state)
{
    (void)state;
    test_run(db.connection, "INSERT INTO reports.queue (name) VALUES ('night')");
    start(db.scheduler);
    await_shown("report_scheduler_workers{scope=\"main\",queue=\"night\"} 0\n");
    test_run(db.connection, "DELETE FROM reports.queue WHERE name = 'night'");
    await_gone("queue=\"night\"");
    await_shown("report_scheduler_workers{scope=\"main\",queue=\"default\"} 0\n");
}

static void through_proxy(struct proxy **ret_proxy, char *conninfo, size_t size)
{
    char server[128];
    (void)snprintf(server, sizeof server, "%s:%s", test_environment("RS_PG_HOST"),
                   test_environment("RS_PG_PORT"));
    *ret_proxy = proxy_start(server);
    const char *port = strrchr(proxy_address(*ret_proxy), ':') + 1;
    (void)snprintf(conninfo, size, "%s host=127.0.0.1 port=%s", db.scheduler, port);
}

static void test_facts_vanish_while_the_database_is_away_and_come_back(void **state)
{
    (void)state;
    struct proxy *proxy = NULL;
    char conninfo[1200];
    through_proxy(&proxy, conninfo, sizeof conninfo);
    start(conninfo);
    await_shown("report_scheduler_due_lag_seconds{scope=\"main\"} 0\n");
    proxy_set(proxy, PROXY_REFUSE);
    await_gone("report_scheduler_due_lag_seconds{");
    assert_false(page_has("report_scheduler_workers{"));
    assert_true(age() >= 3 * PERIOD_MS / 1000.0);
    proxy_set(proxy, PROXY_PASS);
    await_shown("report_scheduler_due_lag_seconds{scope=\"main\"} 0\n");
    stop();
    proxy_stop(proxy);
}

static void test_hanging_database_hides_the_facts_and_does_not_hinder_the_stop(void **state)
{
    (void)state;
    struct proxy *proxy = NULL;
    char conninfo[1200];
    through_proxy(&proxy, conninfo, sizeof conninfo);
    start(conninfo);
    await_shown("report_scheduler_due_lag_seconds{scope=\"main\"} 0\n");
    proxy_set(proxy, PROXY_HOLE);
    await_gone("report_scheduler_due_lag_seconds{");
    stop(); /* within 20 s, or the test fails */
    proxy_stop(proxy);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_facts_of_every_scope_are_shown_although_nobody_leads),
        TEST(test_series_of_a_queue_goes_with_the_queue),
        TEST(test_facts_vanish_while_the_database_is_away_and_come_back),
        TEST(test_hanging_database_hides_the_facts_and_does_not_hinder_the_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
