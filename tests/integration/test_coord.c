/* Election and lease on a real ensemble of three. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "fixture_coord.h"
#include "fixture_database.h"
#include "log.h"

#define SOON_MS   15000                                    /* no expiry involved */
#define EXPIRY_MS (TEST_SESSION_MS + TEST_TICK_MS + 15000) /* and a loaded machine */

static void enroll(struct member *m, uint32_t attempt)
{
    assert_int_equal(coord_enroll(m->coord, m->scope, m->last.session, attempt), STATUS_OK);
    assert_true(expect_event(m, COORD_ENROLLED, SOON_MS));
    assert_int_equal(m->last.attempt, attempt);
    assert_true(m->last.generation > 0);
}

static bool lease_is_held(const struct member *m)
{
    return lease_holds(coord_lease(m->coord), clock_now());
}

static void own_path(const struct member *m, const char *root, char ret_path[256])
{
    (void)snprintf(ret_path, 256, "%s/scopes/main/candidates/%.100s", root, m->last.text);
}

static void test_session_comes_with_a_lease_and_one_ensemble_identity(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    struct member b;
    test_root(root);
    member_join(&a, root, NULL);
    assert_int_equal(a.last.session, 1);
    assert_int_equal(a.last.session_ms, TEST_SESSION_MS);
    assert_true(uuid_is_valid(a.last.ensemble));
    assert_true(lease_is_held(&a));
    /* Never beyond what the formula gives for a write sent now. */
    instant most = lease_after_write(clock_now(), TEST_SESSION_MS, TEST_TICK_MS, TEST_MARGIN_MS);
    assert_false(instant_before(most, lease_until(coord_lease(a.coord))));
    member_join(&b, root, NULL);
    assert_string_equal(a.last.ensemble, b.last.ensemble);
    member_leave(&a);
    member_leave(&b);
}

static void test_lease_is_renewed_by_every_heartbeat(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    test_root(root);
    member_join_for_long(&a, root, NULL);
    instant first = lease_until(coord_lease(a.coord));
    instant end = instant_add_ms(first, 2 * LONG_SESSION_MS);
    unsigned renewals = 0;
    instant last = first;
    while (renewals < 3 && instant_before(clock_now(), end)) {
        assert_true(lease_is_held(&a));
        instant now = lease_until(coord_lease(a.coord));
        renewals += now.ns != last.ns ? 1 : 0;
        last = now;
        (void)poll(NULL, 0, 5);
    }
    assert_int_equal(renewals, 3);
    member_leave(&a);
}

static void test_only_one_is_first_and_closing_it_lets_the_second_in(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    struct member b;
    test_root(root);
    member_join(&a, root, NULL);
    member_join(&b, root, NULL);
    enroll(&a, 1);
    int64_t generation = a.last.generation;
    assert_true(expect_rank(&a, 0, SOON_MS));
    enroll(&b, 1);
    assert_true(b.last.generation > generation);
    assert_true(expect_rank(&b, 1, SOON_MS));
    assert_false(event_comes(&a, COORD_RANK, 500));
    instant closed = clock_now();
    member_leave(&a);
    assert_true(expect_rank(&b, 0, TEST_SESSION_MS - 100)); /* without a close: by expiry */
    print_message("first %lld ms after the close began\n",
                  (long long)instant_ms_between(closed, clock_now()));
    member_leave(&b);
}

static void test_follower_lists_again_when_its_predecessor_is_gone(void **state)
{
    (void)state;
    char root[64];
    struct member m[3];
    test_root(root);
    for (unsigned i = 0; i < 3; i++) {
        member_join(&m[i], root, NULL);
        enroll(&m[i], 1);
        assert_true(expect_rank(&m[i], i, SOON_MS));
    }
    assert_int_equal(coord_withdraw(m[1].coord, m[1].scope, 1), STATUS_OK);
    assert_true(expect_event(&m[1], COORD_WITHDRAWN, SOON_MS));
    /* Its predecessor died, yet it is not first: it must watch the next one ahead now. */
    assert_true(expect_rank(&m[2], 1, SOON_MS));
    assert_int_equal(coord_withdraw(m[0].coord, m[0].scope, 1), STATUS_OK);
    assert_true(expect_rank(&m[2], 0, SOON_MS));
    for (unsigned i = 0; i < 3; i++) {
        member_leave(&m[i]);
    }
}

static void test_withdrawn_member_leaves_no_node_and_enrolls_with_a_higher_generation(void **state)
{
    (void)state;
    char root[64];
    char parent[256];
    struct member a;
    test_root(root);
    (void)snprintf(parent, sizeof parent, "%s/scopes/main/candidates", root);
    struct operator_link *o = operator_connect();
    member_join(&a, root, NULL);
    enroll(&a, 1);
    int64_t before = a.last.generation;
    assert_int_equal(coord_withdraw(a.coord, a.scope, 1), STATUS_OK);
    assert_true(expect_event(&a, COORD_WITHDRAWN, SOON_MS));
    assert_int_equal(operator_count(o, parent), 0);
    enroll(&a, 2);
    assert_true(a.last.generation > before);
    assert_true(expect_rank(&a, 0, SOON_MS));
    assert_int_equal(operator_count(o, parent), 1);
    /* Enrolling while there is a node: one node, one activation. */
    enroll(&a, 3);
    assert_true(expect_rank(&a, 0, SOON_MS));
    instant end = instant_add_ms(clock_now(), SOON_MS);
    while (operator_count(o, parent) != 1 && instant_before(clock_now(), end)) {
    }
    assert_int_equal(operator_count(o, parent), 1);
    member_leave(&a);
    operator_leave(o);
}

static void test_node_deleted_by_an_operator_is_noticed_and_made_again(void **state)
{
    (void)state;
    char root[64];
    char path[256];
    struct member a;
    test_root(root);
    struct operator_link *o = operator_connect();
    member_join(&a, root, NULL);
    enroll(&a, 1);
    int64_t before = a.last.generation;
    own_path(&a, root, path);
    assert_true(expect_rank(&a, 0, SOON_MS));
    assert_int_equal(operator_delete(o, path), ZK_OK);
    assert_true(expect_event(&a, COORD_NODE_LOST, SOON_MS));
    assert_int_equal(a.last.attempt, 1);
    enroll(&a, 2);
    assert_true(a.last.generation > before);
    assert_true(expect_rank(&a, 0, SOON_MS));
    member_leave(&a);
    operator_leave(o);
}

static void test_parent_deleted_by_an_operator_is_made_again(void **state)
{
    (void)state;
    char root[64];
    char path[256];
    char parent[256];
    struct member a;
    test_root(root);
    (void)snprintf(parent, sizeof parent, "%s/scopes/main/candidates", root);
    struct operator_link *o = operator_connect();
    member_join(&a, root, NULL);
    enroll(&a, 1);
    own_path(&a, root, path);
    assert_int_equal(operator_delete(o, path), ZK_OK);
    assert_int_equal(operator_delete(o, parent), ZK_OK);
    assert_true(expect_event(&a, COORD_NODE_LOST, SOON_MS));
    uint32_t attempt = 2;
    instant end = instant_add_ms(clock_now(), SOON_MS);
    do {
        assert_int_equal(coord_enroll(a.coord, a.scope, a.last.session, attempt), STATUS_OK);
        attempt++;
    } while (!event_comes(&a, COORD_ENROLLED, 300) && instant_before(clock_now(), end));
    assert_int_equal(a.last.type, COORD_ENROLLED);
    assert_true(expect_rank(&a, 0, SOON_MS));
    member_leave(&a);
    operator_leave(o);
}

static void test_note_left_among_the_candidates_blocks_nobody(void **state)
{
    (void)state;
    char root[64];
    char path[256];
    struct member a;
    test_root(root);
    struct operator_link *o = operator_connect();
    member_join(&a, root, NULL);
    (void)snprintf(path, sizeof path, "%s/scopes/main/candidates/do-not-touch", root);
    assert_int_equal(operator_create(o, path), ZK_OK);
    (void)snprintf(path, sizeof path,
                   "%s/scopes/main/candidates/0a000000-0000-4000-8000-000000000000-n-0000000000",
                   root);
    assert_int_equal(operator_create(o, path), ZK_OK);
    enroll(&a, 1);
    assert_true(expect_rank(&a, 0, SOON_MS));
    member_leave(&a);
    operator_leave(o);
}

static void test_successor_of_a_killed_leader_is_first_within_session_and_tick(void **state)
{
    (void)state;
    char root[64];
    struct child leader;
    struct member b;
    test_root(root);
    child_start(&leader, root);
    assert_true(child_expects(&leader, COORD_RANK, 15000));
    assert_int_equal(leader.last.ahead, 0);
    member_join(&b, root, NULL);
    enroll(&b, 1);
    assert_true(expect_rank(&b, 1, SOON_MS));
    instant killed = clock_now();
    child_end(&leader);
    assert_true(expect_rank(&b, 0, EXPIRY_MS));
    print_message("first %lld ms after kill -9, session %d ms\n",
                  (long long)instant_ms_between(killed, clock_now()), TEST_SESSION_MS);
    member_leave(&b);
}

static void test_stopped_leader_loses_its_lease_before_the_successor_is_first(void **state)
{
    (void)state;
    char root[64];
    struct child leader;
    struct member b;
    test_root(root);
    child_start(&leader, root);
    assert_true(child_expects(&leader, COORD_ENROLLED, 15000));
    int64_t generation = leader.last.generation;
    assert_true(child_expects(&leader, COORD_RANK, SOON_MS));
    member_join(&b, root, NULL);
    enroll(&b, 1);
    assert_true(expect_rank(&b, 1, SOON_MS));
    assert_int_equal(kill(leader.pid, SIGSTOP), 0);
    assert_true(expect_rank(&b, 0, EXPIRY_MS));
    instant first = clock_now();
    assert_true(lease_is_held(&b));
    assert_int_equal(kill(leader.pid, SIGCONT), 0);
    /* Awake, it finds its session gone, and comes back with another, behind. What it had told of
     * its lease before the stop is read on the way. */
    assert_true(child_expects(&leader, COORD_SESSION_LOST, 20000));
    instant until = leader.lease_until;
    assert_true(instant_before(until, first));
    assert_int_equal(leader.last.session, 1);
    assert_true(child_expects(&leader, COORD_SESSION_UP, 20000));
    assert_int_equal(leader.last.session, 2);
    assert_true(child_expects(&leader, COORD_ENROLLED, SOON_MS));
    assert_true(leader.last.generation > generation);
    assert_true(child_expects(&leader, COORD_RANK, SOON_MS));
    assert_int_equal(leader.last.ahead, 1);
    child_end(&leader);
    member_leave(&b);
}

static void test_scope_whose_inbox_was_full_starts_over(void **state)
{
    (void)state;
    char root[64];
    struct error err = {.text = ""};
    struct member m = {.events = inbox_new(sizeof(struct coord_event), 1)};
    test_root(root);
    const struct coord_options options = {.servers = test_environment("RS_ZK"),
                                          .root = root,
                                          .session_ms = TEST_SESSION_MS,
                                          .tick_ms = TEST_TICK_MS,
                                          .margin_ms = TEST_MARGIN_MS,
                                          .name = "test",
                                          .url = ""};
    assert_int_equal(coord_new(&options, &m.coord, &err), STATUS_OK);
    assert_int_equal(coord_add_scope(m.coord, "main", m.events, &m.scope, &err), STATUS_OK);
    assert_int_equal(coord_start(m.coord, &err), STATUS_OK);
    struct pollfd fd = {.fd = inbox_fd(m.events), .events = POLLIN};
    assert_int_equal(poll(&fd, 1, 15000), 1); /* SESSION_UP stands in it and is not taken */
    assert_int_equal(coord_enroll(m.coord, m.scope, 1, 1), STATUS_OK);
    instant end = instant_add_ms(clock_now(), SOON_MS);
    uint64_t dropped = 0; /* ENROLLED finds no room: its absence is what is tested */
    while (dropped == 0 && instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, 5);
        dropped = inbox_take_dropped(m.events);
    }
    assert_true(dropped > 0);
    assert_true(expect_event(&m, COORD_SESSION_UP, 0));
    assert_true(expect_event(&m, COORD_SESSION_LOST, SOON_MS));
    assert_true(expect_event(&m, COORD_SESSION_UP, SOON_MS));
    assert_int_equal(coord_enroll(m.coord, m.scope, m.last.session, 2), STATUS_OK);
    assert_true(expect_event(&m, COORD_ENROLLED, SOON_MS));
    assert_int_equal(m.last.attempt, 2);
    member_leave(&m);
}

static void test_senseless_options_are_refused_by_name(void **state)
{
    (void)state;
    struct coord *coord = NULL;
    struct error err = {.text = ""};
    const struct coord_options good = {.servers = "127.0.0.1:2181",
                                       .root = "/r",
                                       .session_ms = 4000,
                                       .tick_ms = 500,
                                       .margin_ms = 500,
                                       .name = "t",
                                       .url = ""};
    struct coord_options bad = good;
    bad.root = "r/";
    assert_int_equal(coord_new(&bad, &coord, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "root"));
    bad = good;
    bad.servers = "[::1]:2181";
    assert_int_equal(coord_new(&bad, &coord, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "zookeeper \"[::1]:2181\""));
    bad = good;
    bad.tick_ms = 3000;
    assert_int_equal(coord_new(&bad, &coord, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "session_ms"));
    assert_null(coord);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_senseless_options_are_refused_by_name),
        cmocka_unit_test(test_session_comes_with_a_lease_and_one_ensemble_identity),
        cmocka_unit_test(test_lease_is_renewed_by_every_heartbeat),
        cmocka_unit_test(test_only_one_is_first_and_closing_it_lets_the_second_in),
        cmocka_unit_test(test_follower_lists_again_when_its_predecessor_is_gone),
        cmocka_unit_test(test_withdrawn_member_leaves_no_node_and_enrolls_with_a_higher_generation),
        cmocka_unit_test(test_node_deleted_by_an_operator_is_noticed_and_made_again),
        cmocka_unit_test(test_parent_deleted_by_an_operator_is_made_again),
        cmocka_unit_test(test_note_left_among_the_candidates_blocks_nobody),
        cmocka_unit_test(test_successor_of_a_killed_leader_is_first_within_session_and_tick),
        cmocka_unit_test(test_stopped_leader_loses_its_lease_before_the_successor_is_first),
        cmocka_unit_test(test_scope_whose_inbox_was_full_starts_over),
    };
    (void)test_environment("RS_ZK");
    log_open("test_coord", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
