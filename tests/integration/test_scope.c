/* Whole scopes on real services: coordination, lifecycle, fence and planning together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "fixture_coord.h"
#include "fixture_database.h"
#include "fixture_proxy.h"
#include "fixture_replica.h"
#include "log.h"

#define EXPIRY_MS (LONG_SESSION_MS + TEST_TICK_MS + 20000)

static struct test_database db;
static char ensemble_root[64]; /* one ensemble for all tests, as the database adopts the first */

/* Of the running test; what it leaves when it fails is stopped after it. */
static struct replica a, b;
static struct proxy *proxy;
static PGconn *blocker; /* holds a lock against the leader */

/* A leader's statement waits for a lock of the blocker's. */
static const char waiting[] = "SELECT count(*) FROM pg_stat_activity WHERE datname = "
                              "current_database() AND application_name = 'report-scheduler:main' "
                              "AND wait_event_type = 'Lock'";

static int stop_all(void **state)
{
    (void)state;
    PQfinish(blocker); /* NULL is fine */
    blocker = NULL;
    if (proxy != NULL) {
        proxy_set(proxy, PROXY_PASS);
    }
    if (a.running) {
        replica_stop(&a);
    }
    if (b.running) {
        replica_stop(&b);
    }
    if (proxy != NULL) {
        proxy_stop(proxy);
        proxy = NULL;
    }
    return 0;
}

static bool diary_says(const char *event, const char *reason, int64_t generation)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) > 0 FROM reports.leadership_event WHERE event = '%s' AND "
                   "coalesce(reason, '') = '%s' AND generation = %lld",
                   event, reason, (long long)generation);
    return test_wait_text(db.connection, sql, "t", SOON_MS);
}

static void test_first_leads_second_follows_and_takes_over_at_an_ordered_stop(void **state)
{
    (void)state;
    const struct places usual = {0};
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    int64_t generation = generation_of(&a);
    assert_int_equal(test_int(db.connection, "SELECT generation FROM reports.fence "
                                             "WHERE scope = 'main'"),
                     generation);
    replica_start(&b, "b", &usual);
    assert_true(in_state(&b, LIFECYCLE_FOLLOWING, SOON_MS));
    assert_int_equal(scope_read(b.scope).ahead, 1);
    instant asked = clock_now();
    replica_stop(&a);
    assert_true(in_state(&b, LIFECYCLE_ACTIVE, SOON_MS));
    print_message("led again %lld ms after the stop was asked for\n",
                  (long long)instant_ms_between(asked, clock_now()));
    assert_true(diary_says("released", "stopped", generation));
    assert_true(generation_of(&b) > generation);
    replica_stop(&b);
    assert_string_equal(test_text(db.connection, "SELECT released_at IS NOT NULL FROM "
                                                 "reports.fence WHERE scope = 'main'"),
                        "t");
}

static void test_hold_raised_while_leading_releases_and_its_lifting_leads_anew(void **state)
{
    (void)state;
    const struct places usual = {0};
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    int64_t generation = generation_of(&a);
    test_run(db.connection, "INSERT INTO reports.hold (scope, reason) VALUES ('main', 'test')");
    assert_true(in_state(&a, LIFECYCLE_HELD, SOON_MS));
    assert_int_equal(scope_read(a.scope).reason, LIFECYCLE_REASON_HELD);
    assert_true(diary_says("released", "held", generation));
    test_run(db.connection, "UPDATE reports.hold SET lifted_at = now(), lifted_by = 'test'");
    assert_true(leads_anew(&a, generation, SOON_MS));
    replica_stop(&a);
}

static void test_short_disconnection_establishes_again_under_the_same_generation(void **state)
{
    (void)state;
    proxy = proxy_start(test_environment("RS_ZK"));
    const struct places proxied = {.zookeeper = proxy_address(proxy)};
    replica_start(&a, "a", &proxied);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    int64_t generation = generation_of(&a);
    instant since = scope_read(a.scope).since;
    proxy_cut(proxy);
    instant end = instant_add_ms(clock_now(), SOON_MS);
    struct scope_snapshot view = scope_read(a.scope);
    while ((view.state != LIFECYCLE_ACTIVE || view.since.ns == since.ns) &&
           instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, 2);
        view = scope_read(a.scope);
    }
    assert_int_equal(view.state, LIFECYCLE_ACTIVE);
    assert_int_equal(view.reason, LIFECYCLE_REASON_SUSPENDED);
    assert_int_equal(view.generation, generation);
    assert_true(view.since.ns != since.ns);
    replica_stop(&a);
}

static void test_leader_in_a_black_hole_releases_at_its_lease_and_another_leads(void **state)
{
    (void)state;
    proxy = proxy_start(test_environment("RS_ZK"));
    /* Its lease ends after 1.75 s, and the library bears 4 s of silence. */
    const struct places proxied = {
        .zookeeper = proxy_address(proxy), .session_ms = 6000, .margin_ms = 3000};
    const struct places usual = {0};
    replica_start(&a, "a", &proxied);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    int64_t generation = generation_of(&a);
    replica_start(&b, "b", &usual);
    assert_true(in_state(&b, LIFECYCLE_FOLLOWING, SOON_MS));
    proxy_set(proxy, PROXY_HOLE);
    instant cut = clock_now();
    /* Nobody tells it: in a black hole the lease ends before the library notices the silence. */
    assert_true(in_state(&a, LIFECYCLE_RELEASING, SOON_MS));
    assert_int_equal(scope_read(a.scope).reason, LIFECYCLE_REASON_LEASE_EXPIRED);
    assert_true(in_state(&b, LIFECYCLE_ACTIVE, EXPIRY_MS));
    print_message("led again %lld ms after the cut\n",
                  (long long)instant_ms_between(cut, clock_now()));
    proxy_set(proxy, PROXY_PASS);
    assert_true(in_state(&a, LIFECYCLE_FOLLOWING, EXPIRY_MS));
    assert_true(generation_of(&a) > generation);
    assert_true(diary_says("released", "lease_expired", generation));
    replica_stop(&b);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    replica_stop(&a);
}

/* A notification that arrives with the answer of a statement leaves the socket silent. */
static void test_edit_made_during_a_statement_of_the_leader_is_taken_in_at_once(void **state)
{
    (void)state;
    const struct places slow = {.statement_ms = 10000};
    char sql[256];
    blocker = PQconnectdb(db.super);
    test_run(db.connection, "INSERT INTO reports.report (name, kind) VALUES ('nothing', 'noop')");
    replica_start(&a, "a", &slow);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    for (int i = 0; i < 5; i++) {
        test_run(blocker, "BEGIN; LOCK TABLE reports.hold IN ACCESS EXCLUSIVE MODE");
        assert_true(test_wait_text(db.connection, waiting, "1", SOON_MS));
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO reports.schedule (name, report, kind, rule) VALUES "
                       "('s%d', 'nothing', 'interval', '1 day')",
                       i);
        test_run(db.connection, sql);
        test_run(blocker, "ROLLBACK");
        /* The slow look would come 30 s later. */
        assert_true(test_wait_text(db.connection, "SELECT count(*) FROM reports.schedule_change",
                                   "0", 15000));
    }
    replica_stop(&a);
}

static void timeouts_of_the_role(const char *lock, const char *statement)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "ALTER ROLE report_scheduler IN DATABASE %s SET lock_timeout = '%s'; "
                   "ALTER ROLE report_scheduler IN DATABASE %s SET statement_timeout = '%s'",
                   db.name, lock, db.name, statement);
    test_run(db.connection, sql);
}

/* The statement's own deadline is as far away as that of the server here: that it ends is the
 * cancel's doing. */
static void test_suspension_cancels_the_running_statement(void **state)
{
    (void)state;
    proxy = proxy_start(test_environment("RS_ZK"));
    const struct places slow = {.zookeeper = proxy_address(proxy), .statement_ms = 60000};
    blocker = PQconnectdb(db.super);
    timeouts_of_the_role("60s", "60s");
    replica_start(&a, "a", &slow);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    int64_t generation = generation_of(&a);
    test_run(blocker, "BEGIN; LOCK TABLE reports.schedule_change IN ACCESS EXCLUSIVE MODE");
    test_run(db.connection, "NOTIFY report_change");
    timeouts_of_the_role("2s", "3s"); /* of later connections */
    assert_true(test_wait_text(db.connection, waiting, "1", SOON_MS));
    proxy_set(proxy, PROXY_REFUSE);
    instant cut = clock_now();
    assert_true(in_state(&a, LIFECYCLE_SUSPENDED, SOON_MS));
    int64_t took = instant_ms_between(cut, clock_now());
    print_message("suspended, statement cancelled, %lld ms after the cut\n", (long long)took);
    assert_int_equal(test_int(db.connection, waiting), 0);
    test_run(blocker, "ROLLBACK");
    proxy_set(proxy, PROXY_PASS);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, EXPIRY_MS));
    assert_true(generation_of(&a) >= generation);
    replica_stop(&a);
}

static void test_lost_database_connection_is_replaced_without_losing_leadership(void **state)
{
    (void)state;
    const struct places usual = {0};
    const char *backend = "SELECT count(*) FROM pg_stat_activity WHERE datname = "
                          "current_database() AND application_name = 'report-scheduler:main'";
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    int64_t generation = generation_of(&a);
    int64_t pid = test_int(db.connection, "SELECT pid FROM reports.backend WHERE purpose = "
                                          "'scope' ORDER BY registered_at DESC LIMIT 1");
    char sql[256];
    (void)snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%lld)", (long long)pid);
    assert_string_equal(test_text(db.connection, sql), "t");
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) > 0 FROM reports.backend WHERE purpose = 'scope' AND "
                   "generation = %lld AND pid <> %lld",
                   (long long)generation, (long long)pid);
    assert_true(test_wait_text(db.connection, sql, "t", SOON_MS));
    assert_true(test_wait_text(db.connection, backend, "1", SOON_MS));
    assert_int_equal(scope_read(a.scope).state, LIFECYCLE_ACTIVE);
    assert_int_equal(generation_of(&a), generation);
    replica_stop(&a);
}

static void test_leader_without_a_database_steps_down_and_another_leads(void **state)
{
    (void)state;
    char server[64];
    char proxied[1200];
    (void)snprintf(server, sizeof server, "%s:%s", test_environment("RS_PG_HOST"),
                   test_environment("RS_PG_PORT"));
    proxy = proxy_start(server);
    (void)snprintf(proxied, sizeof proxied, "%s port=%s", db.scheduler,
                   strchr(proxy_address(proxy), ':') + 1);
    const struct places cut_off = {.database = proxied, .statement_ms = 1000, .unhealthy_ms = 2000};
    const struct places usual = {0};
    replica_start(&a, "a", &cut_off);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    int64_t generation = generation_of(&a);
    replica_start(&b, "b", &usual);
    assert_true(in_state(&b, LIFECYCLE_FOLLOWING, SOON_MS));
    proxy_set(proxy, PROXY_REFUSE);
    proxy_cut(proxy);
    assert_true(in_state(&b, LIFECYCLE_ACTIVE, 30000));
    assert_true(generation_of(&b) > generation);
    assert_int_equal(scope_read(a.scope).reason, LIFECYCLE_REASON_DATABASE_UNHEALTHY);
    /* Without a database it does not even stand in line. */
    assert_true(in_state(&a, LIFECYCLE_ENROLLING, SOON_MS));
    proxy_set(proxy, PROXY_PASS);
    assert_true(in_state(&a, LIFECYCLE_FOLLOWING, SOON_MS));
    replica_stop(&b);
    replica_stop(&a);
}

static void test_fenced_leader_steps_down_and_comes_back_with_a_higher_generation(void **state)
{
    (void)state;
    const struct places usual = {0};
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    int64_t generation = generation_of(&a);
    test_run(db.connection, "UPDATE reports.fence SET generation = generation + 1, owner = "
                            "gen_random_uuid() WHERE scope = 'main'");
    assert_true(leads_anew(&a, generation + 1, SOON_MS));
    assert_true(diary_says("stepped_down", "fenced", generation));
    replica_stop(&a);
}

static void test_only_a_leader_shows_a_relay_and_its_counters(void **state)
{
    (void)state;
    const struct places usual = {0};
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    replica_start(&b, "b", &usual);
    assert_true(in_state(&b, LIFECYCLE_FOLLOWING, SOON_MS));
    instant end = instant_add_ms(clock_now(), 15000);
    while (scope_read(a.scope).relay.producers_made == 0 && instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, 5);
    }
    assert_true(scope_read(a.scope).has_relay && scope_read(a.scope).relay.producers_made > 0);
    assert_false(scope_read(b.scope).has_relay);
    replica_stop(&b);
    replica_stop(&a);
}

static void test_repeated_failure_to_prepare_releases_leadership_and_shows(void **state)
{
    (void)state;
    const struct places usual = {0};
    const char *grant = "GRANT EXECUTE ON FUNCTION reports.tend TO report_scheduler";
    test_run(db.connection, "REVOKE EXECUTE ON FUNCTION reports.tend FROM report_scheduler");
    replica_start(&a, "a", &usual);
    assert_true(test_wait_text(db.connection,
                               "SELECT count(*) > 1 FROM reports.leadership_event WHERE "
                               "event = 'released' AND reason = 'prepare_failed'",
                               "t", 30000));
    struct scope_snapshot view = scope_read(a.scope);
    assert_true(view.failures >= 1);
    assert_int_equal(test_int(db.connection,
                              "SELECT count(*) FROM reports.leadership_event e WHERE event = "
                              "'activated' AND generation = (SELECT generation FROM "
                              "reports.fence WHERE scope = 'main')"),
                     0);
    test_run(db.connection, grant);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, 30000));
    assert_string_equal(scope_read(a.scope).problem, "");
    replica_stop(&a);
}

static int database_make(void **state)
{
    (void)state;
    test_database_create(&db);
    test_root(ensemble_root);
    replica_places(&db, ensemble_root);
    return 0;
}

static int database_drop(void **state)
{
    (void)state;
    test_database_drop(&db);
    return 0;
}

#define whole(test) cmocka_unit_test_teardown(test, stop_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        whole(test_first_leads_second_follows_and_takes_over_at_an_ordered_stop),
        whole(test_hold_raised_while_leading_releases_and_its_lifting_leads_anew),
        whole(test_short_disconnection_establishes_again_under_the_same_generation),
        whole(test_leader_in_a_black_hole_releases_at_its_lease_and_another_leads),
        whole(test_edit_made_during_a_statement_of_the_leader_is_taken_in_at_once),
        whole(test_suspension_cancels_the_running_statement),
        whole(test_lost_database_connection_is_replaced_without_losing_leadership),
        whole(test_leader_without_a_database_steps_down_and_another_leads),
        whole(test_fenced_leader_steps_down_and_comes_back_with_a_higher_generation),
        whole(test_only_a_leader_shows_a_relay_and_its_counters),
        whole(test_repeated_failure_to_prepare_releases_leadership_and_shows),
    };
    (void)test_environment("RS_ZK");
    (void)test_environment("RS_KAFKA");
    log_open("test_scope", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, database_make, database_drop);
}
