/* The database's clock is stepped under a leader. It cannot be here, so what is set back (or
 * forward) is what the leader remembers of it: to it that is the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_leader.h"
#include "planning_state.h"

#define LEASE_MS 3000

/* A leader whose rounds have begun, and a job whose claim lapsed long ago. */
static void lead_with_a_lapsed_claim(struct leader *l)
{
    (void)fixture_sql("UPDATE reports.installation SET claim_lease = '3 seconds'");
    fixture_schedule("daily", "cron", "0 0 * * *", "1 day", NULL);
    *l = leader_make();
    leader_prepare(l);
    assert_int_equal(leader_settle(l), 1);
    (void)fixture_sql("UPDATE reports.fence_pulse SET reap_not_before = '-infinity'");
    (void)fixture_sql("UPDATE reports.job SET state = 'running', attempt = 1, attempt_token = "
                      "gen_random_uuid(), worker = gen_random_uuid(), claimed_at = "
                      "clock_timestamp() - interval '1 hour', lease_until = clock_timestamp() - "
                      "interval '10 minutes'");
}

static int64_t ms_until_reaped(struct leader *l)
{
    instant begin = clock_now();
    l->planning->tend_at = (instant){0};
    assert_true(leader_step_until(l, "SELECT state FROM reports.job", "retry_wait", 20000));
    return instant_ms_between(begin, clock_now());
}

static void check_step_stops_reaping_for_one_lease(int64_t step_ms)
{
    struct leader l;
    lead_with_a_lapsed_claim(&l);
    assert_false(utc_is_none(l.planning->beaten.said));
    l.planning->beaten.said.us -= step_ms * 1000;
    int64_t ms = ms_until_reaped(&l);
    assert_true(ms >= LEASE_MS - 100);
    assert_true(ms < 2 * LEASE_MS); /* one lease, and not one after the other */
    leader_leave(&l);
}

static void test_a_step_forward_stops_reaping_for_one_lease(void **state)
{
    (void)state;
    check_step_stops_reaping_for_one_lease(51000);
}

static void test_a_step_back_stops_reaping_for_one_lease(void **state)
{
    (void)state;
    check_step_stops_reaping_for_one_lease(-3600000);
}

static void test_a_step_is_not_forgotten_while_the_sign_of_life_is_locked(void **state)
{
    (void)state;
    struct leader l;
    lead_with_a_lapsed_claim(&l);
    PGconn *holder = fixture_plan_second();
    PQclear(PQexec(holder, "BEGIN; SELECT * FROM reports.fence_pulse FOR UPDATE"));
    l.planning->beaten.said.us -= 51000000;
    for (int i = 0; i < 3; i++) {
        struct planning_result r;
        l.planning->tend_at = (instant){0};
        assert_int_equal(leader_step(&l, false, &r), STATUS_OK);
        assert_string_equal(fixture_sql("SELECT state FROM reports.job"), "running");
    }
    PQfinish(holder);
    assert_true(ms_until_reaped(&l) >= LEASE_MS - 100);
    leader_leave(&l);
}

static void test_a_slow_round_is_no_step(void **state)
{
    (void)state;
    struct leader l;
    lead_with_a_lapsed_claim(&l);
    (void)fixture_sql("ALTER FUNCTION reports.is_held(text) RENAME TO is_held_fast");
    (void)fixture_sql("CREATE FUNCTION reports.is_held(text) RETURNS boolean LANGUAGE sql AS "
                      "'SELECT pg_sleep(2) IS NULL OR reports.is_held_fast($1)'");
    (void)fixture_sql("GRANT EXECUTE ON FUNCTION reports.is_held(text) TO report_owner");
    l.planning->look_at = INSTANT_NEVER;
    for (int i = 0; i < 2; i++) {
        struct planning_result r;
        l.planning->tend_at = (instant){0};
        assert_int_equal(leader_step(&l, false, &r), STATUS_OK);
    }
    (void)fixture_sql("DROP FUNCTION reports.is_held(text)");
    (void)fixture_sql("ALTER FUNCTION reports.is_held_fast(text) RENAME TO is_held");
    assert_string_equal(fixture_sql("SELECT state FROM reports.job"), "retry_wait");
    assert_string_equal(fixture_sql("SELECT reap_not_before = '-infinity' FROM reports.fence_pulse "
                                    "WHERE scope = 'main'"),
                        "t");
    leader_leave(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_forward_stops_reaping_for_one_lease),
        cmocka_unit_test(test_a_step_back_stops_reaping_for_one_lease),
        cmocka_unit_test(test_a_step_is_not_forgotten_while_the_sign_of_life_is_locked),
        cmocka_unit_test(test_a_slow_round_is_no_step),
    };
    return fixture_plan_run("test_planning_clock", tests, sizeof tests / sizeof tests[0], NULL);
}
