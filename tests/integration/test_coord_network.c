/* Election and lease when the network between one member and the ensemble is in trouble. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>

#include "fixture_coord.h"
#include "fixture_database.h"
#include "fixture_proxy.h"
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

static void
test_short_disconnection_suspends_and_a_quorum_write_resumes_the_same_session(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    struct proxy *p = proxy_start(test_environment("RS_ZK"));
    test_root(root);
    member_join_for_long(&a, root, proxy_address(p));
    enroll(&a, 1);
    assert_true(expect_rank(&a, 0, SOON_MS));
    proxy_cut(p);
    assert_true(expect_event(&a, COORD_SUSPENDED, SOON_MS));
    assert_true(expect_event(&a, COORD_RESUMED, SOON_MS));
    assert_int_equal(a.last.session, 1);
    assert_true(lease_is_held(&a));
    assert_true(expect_rank(&a, 0, SOON_MS)); /* told again */
    member_leave(&a);
    proxy_stop(p);
}

static void test_lease_is_gone_while_suspended(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    struct proxy *p = proxy_start(test_environment("RS_ZK"));
    test_root(root);
    member_join(&a, root, proxy_address(p));
    assert_true(lease_is_held(&a));
    proxy_set(p, PROXY_REFUSE);
    assert_true(expect_event(&a, COORD_SUSPENDED, SOON_MS));
    assert_int_equal(lease_until(coord_lease(a.coord)).ns, 0);
    assert_false(event_comes(&a, COORD_RESUMED, 300));
    assert_int_equal(lease_until(coord_lease(a.coord)).ns, 0);
    proxy_set(p, PROXY_PASS);
    member_leave(&a);
    proxy_stop(p);
}

static void test_black_hole_ends_the_lease_by_itself_before_anybody_says_so(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    struct member b;
    struct proxy *p = proxy_start(test_environment("RS_ZK"));
    test_root(root);
    member_join(&a, root, proxy_address(p));
    enroll(&a, 1);
    assert_true(expect_rank(&a, 0, SOON_MS));
    member_join(&b, root, NULL);
    enroll(&b, 1);
    assert_true(expect_rank(&b, 1, SOON_MS));
    proxy_set(p, PROXY_HOLE);
    assert_true(expect_rank(&b, 0, EXPIRY_MS));
    assert_false(lease_is_held(&a));
    proxy_set(p, PROXY_PASS);
    assert_true(expect_event(&a, COORD_SESSION_LOST, EXPIRY_MS));
    assert_true(expect_event(&a, COORD_SESSION_UP, 15000));
    assert_int_equal(a.last.session, 2);
    member_leave(&a);
    member_leave(&b);
    proxy_stop(p);
}

static void test_leader_confirmed_after_its_lease_gives_the_session_up(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    struct proxy *p = proxy_start(test_environment("RS_ZK"));
    test_root(root);
    member_join(&a, root, proxy_address(p));
    enroll(&a, 1);
    assert_true(expect_rank(&a, 0, SOON_MS));
    instant until = lease_until(coord_lease(a.coord));
    proxy_set(p, PROXY_REFUSE);
    assert_true(expect_event(&a, COORD_SUSPENDED, SOON_MS));
    /* Lease: at most T - 0.5 - 0.375 - 0.5 s after the last write; the session: T after it. */
    until = instant_max(until, lease_until(coord_lease(a.coord)));
    while (instant_before(clock_now(), instant_add_ms(until, 300))) {
        (void)poll(NULL, 0, 5);
    }
    proxy_set(p, PROXY_PASS);
    assert_true(expect_event(&a, COORD_SESSION_LOST, EXPIRY_MS));
    assert_true(expect_event(&a, COORD_SESSION_UP, 15000));
    assert_int_equal(a.last.session, 2);
    member_leave(&a);
    proxy_stop(p);
}

/* Its thread may still be at the work of the session that ended: that one's leadership is over
 * (I8). */
static void test_new_session_gives_a_scope_no_lease_before_it_has_enrolled_again(void **state)
{
    (void)state;
    char root[64];
    struct member a;
    struct proxy *p = proxy_start(test_environment("RS_ZK"));
    test_root(root);
    member_join(&a, root, proxy_address(p));
    const struct lease *lease = coord_scope_lease(a.coord, a.scope);
    assert_true(lease_is_held(&a));
    assert_false(lease_holds(lease, clock_now()));
    enroll(&a, 1);
    assert_true(lease_holds(lease, clock_now()));
    assert_true(expect_rank(&a, 0, SOON_MS));
    proxy_set(p, PROXY_REFUSE);
    assert_true(expect_event(&a, COORD_SUSPENDED, SOON_MS));
    assert_int_equal(lease_until(lease).ns, 0);
    /* A leader that is confirmed only after its lease gives the session up. */
    instant end = instant_add_ms(clock_now(), TEST_SESSION_MS);
    while (instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, 5);
    }
    proxy_set(p, PROXY_PASS);
    assert_true(expect_event(&a, COORD_SESSION_LOST, EXPIRY_MS));
    assert_true(expect_event(&a, COORD_SESSION_UP, 15000));
    assert_int_equal(a.last.session, 2);
    /* What it still asks for in the old session makes no node: who asked has yet to hear that it
     * ended, and will then forget that it asked. */
    assert_int_equal(coord_enroll(a.coord, a.scope, 1, 2), STATUS_OK);
    /* Through a renewal: nothing but the next enroll gives it a lease. */
    instant first = lease_until(coord_lease(a.coord));
    end = instant_add_ms(clock_now(), EXPIRY_MS);
    while (lease_until(coord_lease(a.coord)).ns == first.ns && instant_before(clock_now(), end)) {
        assert_int_equal(lease_until(lease).ns, 0);
        (void)poll(NULL, 0, 5);
    }
    assert_true(lease_is_held(&a));
    assert_int_equal(lease_until(lease).ns, 0);
    enroll(&a, 3);
    assert_true(lease_holds(lease, clock_now()));
    member_leave(&a);
    proxy_stop(p);
}

static void test_create_whose_answer_was_lost_is_found_in_the_same_session(void **state)
{
    (void)state;
    char root[64];
    char parent[256];
    struct member a;
    struct proxy *p = proxy_start(test_environment("RS_ZK"));
    struct operator_link *o = operator_connect();
    test_root(root);
    (void)snprintf(parent, sizeof parent, "%s/scopes/main/candidates", root);
    member_join_for_long(&a, root, proxy_address(p));
    /* Only a create names a node that is not there yet; what it reads before is answered. */
    proxy_deafen_at(p, "-n-");
    assert_int_equal(coord_enroll(a.coord, a.scope, a.last.session, 1), STATUS_OK);
    instant end = instant_add_ms(clock_now(), SOON_MS);
    while (operator_count(o, parent) != 1 && instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, 5);
    }
    assert_int_equal(operator_count(o, parent), 1);
    assert_true(proxy_is_deaf(p));
    /* The node is there, and the member cannot know it. */
    assert_false(event_comes(&a, COORD_ENROLLED, 50));
    proxy_cut(p);
    proxy_set(p, PROXY_PASS);
    assert_true(expect_event(&a, COORD_ENROLLED, SOON_MS));
    assert_int_equal(a.last.attempt, 1);
    assert_int_equal(a.last.session, 1);
    assert_int_equal(operator_count(o, parent), 1);
    assert_true(expect_rank(&a, 0, SOON_MS));
    assert_int_equal(coord_withdraw(a.coord, a.scope, 1), STATUS_OK);
    assert_true(expect_event(&a, COORD_WITHDRAWN, SOON_MS));
    assert_int_equal(operator_count(o, parent), 0);
    member_leave(&a);
    operator_leave(o);
    proxy_stop(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_short_disconnection_suspends_and_a_quorum_write_resumes_the_same_session),
        cmocka_unit_test(test_lease_is_gone_while_suspended),
        cmocka_unit_test(test_black_hole_ends_the_lease_by_itself_before_anybody_says_so),
        cmocka_unit_test(test_leader_confirmed_after_its_lease_gives_the_session_up),
        cmocka_unit_test(test_new_session_gives_a_scope_no_lease_before_it_has_enrolled_again),
        cmocka_unit_test(test_create_whose_answer_was_lost_is_found_in_the_same_session),
    };
    (void)test_environment("RS_ZK");
    log_open("test_coord_network", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
