/* The local lease and the waits between tries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "backoff.h"
#include "lease.h"

#define MS INT64_C(1000000)

static void test_lease_never_set_does_not_hold(void **state)
{
    (void)state;
    struct lease lease = {0};
    assert_false(lease_holds(&lease, (instant){0}));
    assert_false(lease_holds(&lease, clock_now()));
}

static void test_lease_holds_strictly_before_its_end(void **state)
{
    (void)state;
    struct lease lease = {0};
    lease_set(&lease, (instant){1000});
    assert_true(lease_holds(&lease, (instant){999}));
    assert_false(lease_holds(&lease, (instant){1000}));
    assert_false(lease_holds(&lease, (instant){1001}));
}

static void test_suspension_takes_the_lease_at_once(void **state)
{
    (void)state;
    struct lease lease = {0};
    lease_set(&lease, INSTANT_NEVER);
    assert_true(lease_holds(&lease, clock_now()));
    lease_set(&lease, (instant){0});
    assert_false(lease_holds(&lease, clock_now()));
}

static void test_lease_counts_from_the_sending_and_takes_tick_beat_and_margin_off(void **state)
{
    (void)state;
    /* T 10 s, tick 1 s, margin 1 s: the beat is 1 s, so 7 s are left. */
    assert_int_equal(lease_beat_ms(10000), 1000);
    assert_int_equal(lease_after_write((instant){5 * MS}, 10000, 1000, 1000).ns, 7005 * MS);
    /* T 4 s, tick 0.5 s: the beat is 0.5 s. */
    assert_int_equal(lease_beat_ms(4000), 500);
    assert_int_equal(lease_after_write((instant){0}, 4000, 500, 500).ns, 2500 * MS);
}

static void test_lease_of_a_session_too_short_has_ended_before_it_began(void **state)
{
    (void)state;
    instant sent = {100000 * MS};
    struct lease lease = {0};
    lease_set(&lease, lease_after_write(sent, 1000, 1000, 500));
    assert_false(lease_holds(&lease, sent));
}

static void test_backoff_doubles_up_to_its_bound_and_spreads_over_the_upper_half(void **state)
{
    (void)state;
    const struct backoff policy = {.base_ms = 100, .most_ms = 1000};
    const int64_t expect[] = {100, 100, 200, 400, 800, 1000, 1000};
    for (unsigned failures = 0; failures < 7; failures++) {
        int64_t least = INT64_MAX;
        int64_t most = 0;
        for (uint64_t random = 0; random < 2000; random++) {
            int64_t ms = backoff_ms(&policy, failures, random);
            least = ms < least ? ms : least;
            most = ms > most ? ms : most;
        }
        assert_int_equal(most, expect[failures]);
        assert_int_equal(least, expect[failures] / 2);
    }
    assert_in_range(backoff_ms(&policy, 4000000000U, UINT64_MAX), 500, 1000);
}

static void test_backoff_of_a_senseless_policy_still_waits_a_little(void **state)
{
    (void)state;
    const struct backoff zero = {.base_ms = 0, .most_ms = -5};
    const struct backoff huge = {.base_ms = 1, .most_ms = INT64_MAX};
    assert_in_range(backoff_ms(&zero, 9, 1), 0, 1);
    assert_true(backoff_ms(&huge, 200, UINT64_MAX) >= INT64_MAX / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lease_never_set_does_not_hold),
        cmocka_unit_test(test_lease_holds_strictly_before_its_end),
        cmocka_unit_test(test_suspension_takes_the_lease_at_once),
        cmocka_unit_test(test_lease_counts_from_the_sending_and_takes_tick_beat_and_margin_off),
        cmocka_unit_test(test_lease_of_a_session_too_short_has_ended_before_it_began),
        cmocka_unit_test(test_backoff_doubles_up_to_its_bound_and_spreads_over_the_upper_half),
        cmocka_unit_test(test_backoff_of_a_senseless_policy_still_waits_a_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
