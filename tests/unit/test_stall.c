#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stall.h"

static instant at_ms(int64_t ms)
{
    return instant_add_ms((instant){1}, ms);
}

static void assert_stall(struct stall *s, int64_t now_ms, double seconds)
{
    assert_true(stall_longest_s(s, at_ms(now_ms)) == seconds);
}

static void test_loop_that_never_began_has_no_stall(void **state)
{
    (void)state;
    struct stall s = STALL_INIT;
    assert_stall(&s, 1000000, 0);
}

static void test_long_turn_counts_while_it_lasts_and_after(void **state)
{
    (void)state;
    struct stall s = STALL_INIT;
    stall_turn(&s, at_ms(0));
    assert_stall(&s, 300, 0.3);
    stall_wait(&s, at_ms(400), at_ms(1400));
    assert_stall(&s, 1300, 0.4);
}

static void test_waiting_as_planned_is_no_stall_and_waking_late_is(void **state)
{
    (void)state;
    struct stall s = STALL_INIT;
    stall_turn(&s, at_ms(0));
    stall_wait(&s, at_ms(0), at_ms(1000));
    stall_turn(&s, at_ms(600)); /* woken early */
    stall_wait(&s, at_ms(600), at_ms(1600));
    assert_stall(&s, 1600, 0);
    assert_stall(&s, 6600, 5); /* it still sleeps */
    stall_turn(&s, at_ms(9600));
    stall_wait(&s, at_ms(9700), at_ms(10700));
    assert_stall(&s, 9800, 8.1); /* late by 8 s and busy for 0.1 s: one stall */
}

static void test_turn_without_a_wait_begins_a_new_measure(void **state)
{
    (void)state;
    struct stall s = STALL_INIT;
    stall_turn(&s, at_ms(0));
    stall_turn(&s, at_ms(50));
    stall_turn(&s, at_ms(100));
    stall_wait(&s, at_ms(120), at_ms(1000));
    assert_stall(&s, 130, 0.05);
}

static void test_two_readers_see_the_same_and_it_is_forgotten_after_two_minutes(void **state)
{
    (void)state;
    struct stall s = STALL_INIT;
    stall_turn(&s, at_ms(0));
    stall_wait(&s, at_ms(2000), at_ms(1000000));
    for (int64_t now = 3000; now < 60000; now += 7000) {
        assert_stall(&s, now, 2);
        assert_stall(&s, now, 2);
    }
    assert_stall(&s, 119000, 2);
    assert_stall(&s, 200000, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loop_that_never_began_has_no_stall),
        cmocka_unit_test(test_long_turn_counts_while_it_lasts_and_after),
        cmocka_unit_test(test_waiting_as_planned_is_no_stall_and_waking_late_is),
        cmocka_unit_test(test_turn_without_a_wait_begins_a_new_measure),
        cmocka_unit_test(test_two_readers_see_the_same_and_it_is_forgotten_after_two_minutes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
