/* Whole scopes on real services, held by what a guard finds: an ensemble that nobody knows or that
 * was restored, a server that is another one. */
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
#include "fixture_replica.h"
#include "log.h"

static struct test_database db;
static char ensemble_root[64];
static struct replica a, b;

static int stop_all(void **state)
{
    (void)state;
    if (a.running) {
        replica_stop(&a);
    }
    if (b.running) {
        replica_stop(&b);
    }
    return 0;
}

/* A higher number that was read after the own node was made says only that somebody was faster. */
static void test_superseded_follower_enrolls_again_and_nothing_is_held(void **state)
{
    (void)state;
    const struct places usual = {0};
    char sql[256];
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    replica_start(&b, "b", &usual);
    assert_true(in_state(&b, LIFECYCLE_FOLLOWING, SOON_MS));
    int64_t generation = generation_of(&b);
    (void)snprintf(sql, sizeof sql,
                   "UPDATE reports.fence SET generation = %lld, owner = gen_random_uuid() WHERE "
                   "scope = 'main'",
                   (long long)generation);
    test_run(db.connection, sql);
    replica_stop(&a);
    assert_true(leads_anew(&b, generation, 15000));
    assert_int_equal(test_int(db.connection, "SELECT count(*) FROM reports.hold WHERE cause = "
                                             "'zxid_regressed'"),
                     0);
    replica_stop(&b);
}

/* The connection leads to another server, as its record of the one it was established on says. */
static void test_leader_establishes_again_when_the_server_is_another(void **state)
{
    (void)state;
    const struct places usual = {0};
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    int64_t generation = generation_of(&a);
    test_run(db.connection, "UPDATE reports.fence SET server_started_at = '2001-01-01' WHERE scope "
                            "= 'main'");
    test_run(db.connection, "SELECT pg_terminate_backend(pid) FROM reports.backend WHERE purpose = "
                            "'scope'");
    assert_true(test_wait_text(db.connection,
                               "SELECT server_started_at = pg_postmaster_start_time() FROM "
                               "reports.fence WHERE scope = 'main'",
                               "t", SOON_MS));
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    assert_int_equal(generation_of(&a), generation);
    assert_int_equal(scope_read(a.scope).reason, LIFECYCLE_REASON_DATABASE_MOVED);
    replica_stop(&a);
}

static void is_held_with_nothing_planned_again(void)
{
    /* Between two of its calls: one that is under way would leave a job that it then knows. */
    test_run(db.connection, "BEGIN; LOCK TABLE reports.fence IN EXCLUSIVE MODE; "
                            "DELETE FROM reports.job; COMMIT");
    assert_true(test_wait_text(db.connection,
                               "SELECT cause FROM reports.hold WHERE lifted_at IS NULL",
                               "database_rewound", SOON_MS));
    assert_true(in_state(&a, LIFECYCLE_HELD, SOON_MS));
    assert_int_equal(test_int(db.connection, "SELECT count(*) FROM reports.job"), 0);
}

/* A dump was restored below a leader: connection, server, fence row are the same, so only what the
 * leader remembers tells. */
static void test_leader_whose_database_forgot_below_it_is_held(void **state)
{
    (void)state;
    const struct places usual = {0};
    test_run(db.connection, "INSERT INTO reports.report (name, kind) VALUES ('noop', 'noop'); "
                            "INSERT INTO reports.schedule (name, report, kind, rule, anchor) "
                            "SELECT 'often-' || n, 'noop', 'interval', '1 second', "
                            "timestamptz '2026-01-01 00:00Z' + n * interval '100 ms' "
                            "FROM generate_series(0, 9) n");
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    assert_true(
        test_wait_text(db.connection, "SELECT count(*) > 3 FROM reports.job", "t", 2 * SOON_MS));
    is_held_with_nothing_planned_again();
    /* Lifted, the same is not found again. */
    test_run(db.connection, "SELECT reports.lift_hold(id) FROM reports.hold");
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    assert_true(
        test_wait_text(db.connection, "SELECT count(*) > 1 FROM reports.job", "t", 2 * SOON_MS));
    assert_int_equal(test_int(db.connection, "SELECT count(*) FROM reports.hold"), 1);
    replica_stop(&a);
}

/* The same below one that has not planned yet: what establish has found is asked for. */
static void test_new_leader_whose_database_forgot_below_it_plans_nothing(void **state)
{
    (void)state;
    const struct places usual = {0};
    test_run(db.connection, "UPDATE reports.schedule_progress SET step = step + 1, next_fire_at = "
                            "clock_timestamp() + interval '3 seconds'");
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    is_held_with_nothing_planned_again();
    replica_stop(&a);
    /* Another replica forgives what was lifted too, though only the mark tells it. */
    test_run(db.connection, "SELECT reports.lift_hold(id) FROM reports.v_hold");
    replica_start(&b, "b", &usual);
    assert_true(
        test_wait_text(db.connection, "SELECT count(*) > 1 FROM reports.job", "t", 2 * SOON_MS));
    assert_true(in_state(&b, LIFECYCLE_ACTIVE, SOON_MS));
    test_run(db.connection, "DELETE FROM reports.schedule");
    replica_stop(&b);
}

/* The same below one that has nothing to plan: it tends jobs, and asks then. */
static void test_leader_without_firings_whose_database_forgot_below_it_is_held(void **state)
{
    (void)state;
    const struct places usual = {0};
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    is_held_with_nothing_planned_again();
    test_run(db.connection, "SELECT reports.lift_hold(id) FROM reports.v_hold");
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    replica_stop(&a);
}

/* As if the ensemble had been restored: what was in use is far above what it gives now. */
static void test_number_below_one_that_was_in_use_is_held_without_a_node_until_rebased(void **state)
{
    (void)state;
    char parent[256];
    const struct places usual = {0};
    (void)snprintf(parent, sizeof parent, "%s/scopes/main/candidates", ensemble_root);
    struct operator_link *o = operator_connect();
    test_run(db.connection, "UPDATE reports.fence SET generation = generation + (1::bigint << 60), "
                            "owner = gen_random_uuid() WHERE scope = 'main'");
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_HELD, SOON_MS));
    assert_non_null(strstr(scope_read(a.scope).problem, "zxid_regressed"));
    assert_true(test_wait_text(db.connection,
                               "SELECT count(*) FROM reports.hold WHERE lifted_at IS NULL AND "
                               "cause = 'zxid_regressed' AND scope = 'main' AND raised_by = 'a'",
                               "1", SOON_MS));
    assert_true(test_wait_text(db.connection,
                               "SELECT count(*) FROM reports.leadership_event WHERE event = "
                               "'held' AND reason LIKE 'held: zxid_regressed%'",
                               "1", SOON_MS));
    instant end = instant_add_ms(clock_now(), SOON_MS);
    while (operator_count(o, parent) != 0 && instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, 10);
    }
    assert_int_equal(operator_count(o, parent), 0);
    test_run(db.connection, "SELECT reports.rebase(NULL, 'restored', true)");
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    assert_int_equal(scope_read(a.scope).incarnation, 2);
    replica_stop(&a);
    operator_leave(o);
}

static void test_unknown_ensemble_is_held_without_a_node_until_the_database_knows_it(void **state)
{
    (void)state;
    char root[64];
    char parent[256];
    test_root(root);
    (void)snprintf(parent, sizeof parent, "%s/scopes/main/candidates", root);
    struct operator_link *o = operator_connect();
    const struct places other = {.root = root};
    replica_start(&a, "a", &other);
    assert_true(in_state(&a, LIFECYCLE_HELD, SOON_MS));
    assert_non_null(strstr(scope_read(a.scope).problem, "ensemble_unknown"));
    assert_int_equal(operator_count(o, parent), 0);
    char sql[512];
    struct member m;
    member_join(&m, root, NULL); /* to read the ensemble's identity */
    (void)snprintf(sql, sizeof sql, "SELECT reports.rebase('%s', 'rebuilt', true)",
                   m.last.ensemble);
    member_leave(&m);
    assert_int_equal(scope_read(a.scope).state, LIFECYCLE_HELD);
    test_run(db.connection, sql); /* as an operator would adopt it; HELD looks every second */
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    assert_int_equal(scope_read(a.scope).incarnation, 3);
    replica_stop(&a);
    operator_leave(o);
}

/* An operator does so when the installation is gone for good. There may be no mark. */
static void root_give_away(struct operator_link *o)
{
    char node[256];
    (void)snprintf(node, sizeof node, "%s/scopes/main/mark", ensemble_root);
    assert_int_not_equal(operator_delete(o, node), ZK_UNSURE);
    (void)snprintf(node, sizeof node, "%s/installation", ensemble_root);
    assert_int_equal(operator_delete(o, node), ZK_OK);
}

/* The root's name is the same by default. Whoever came first goes on, the other waits in sight. */
static void test_second_installation_on_one_root_makes_no_node_and_says_so(void **state)
{
    (void)state;
    char parent[256];
    const struct places usual = {0};
    struct test_database second;
    test_database_create(&second);
    const struct places shared = {.database = second.scheduler};
    (void)snprintf(parent, sizeof parent, "%s/scopes/main/candidates", ensemble_root);
    struct operator_link *o = operator_connect();
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    replica_start(&b, "b", &shared);
    assert_true(in_state(&b, LIFECYCLE_HELD, SOON_MS));
    struct scope_snapshot view = scope_read(b.scope);
    assert_non_null(strstr(view.problem, "root_taken"));
    assert_non_null(
        strstr(view.problem, test_text(db.connection, "SELECT id FROM reports.installation")));
    assert_non_null(
        strstr(view.problem, test_text(second.connection, "SELECT id FROM reports.installation")));
    assert_non_null(strstr(view.problem, "set zookeeper_root"));
    assert_int_equal(operator_count(o, parent), 1);
    assert_int_equal(test_int(second.connection, "SELECT count(*) FROM reports.ensemble"), 0);
    assert_int_equal(test_int(second.connection, "SELECT count(*) FROM reports.v_problem WHERE "
                                                 "problem LIKE 'HELD, root_taken%'"),
                     1);
    replica_stop(&a);
    assert_int_equal(scope_read(b.scope).state, LIFECYCLE_HELD);
    root_give_away(o);
    assert_true(in_state(&b, LIFECYCLE_ACTIVE, SOON_MS));
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_HELD, SOON_MS));
    replica_stop(&b);
    root_give_away(o);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    assert_int_equal(test_int(db.connection, "SELECT count(*) FROM reports.v_hold"), 0);
    assert_int_equal(test_int(second.connection, "SELECT count(*) FROM reports.hold"), 0);
    replica_stop(&a);
    operator_leave(o);
    test_database_drop(&second);
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
        whole(test_superseded_follower_enrolls_again_and_nothing_is_held),
        whole(test_leader_establishes_again_when_the_server_is_another),
        whole(test_leader_whose_database_forgot_below_it_is_held),
        whole(test_new_leader_whose_database_forgot_below_it_plans_nothing),
        whole(test_leader_without_firings_whose_database_forgot_below_it_is_held),
        whole(test_second_installation_on_one_root_makes_no_node_and_says_so),
        /* Last: they make higher incarnations. */
        whole(test_number_below_one_that_was_in_use_is_held_without_a_node_until_rebased),
        whole(test_unknown_ensemble_is_held_without_a_node_until_the_database_knows_it),
    };
    (void)test_environment("RS_ZK");
    (void)test_environment("RS_KAFKA");
    log_open("test_scope_guards", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, database_make, database_drop);
}
