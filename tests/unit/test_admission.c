#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "admission.h"

static instant at(int64_t ms)
{
    return (instant){ms * 1000000};
}

static void test_first_free_slot_pulls_what_waited_before_the_start(void **state)
{
    (void)state;
    struct admission a = admission_start(at(0), 1000);
    struct admission_step step = admission_decide(&a, at(0), 4);
    assert_int_equal(step.mode, ADMISSION_CLAIM);
    assert_true(step.pull);
}

static void test_idle_worker_pulls_after_once_to_twice_the_idle_time(void **state)
{
    (void)state;
    struct admission a = admission_start(at(0), 1000);
    admission_pulled(&a, at(0), 4, 0, 0);
    assert_false(admission_decide(&a, at(999), 4).pull);
    assert_int_equal(admission_decide(&a, at(999), 4).wake.ns, at(1000).ns);
    assert_true(admission_decide(&a, at(1000), 4).pull);
    admission_pulled(&a, at(1000), 4, 0, 1000);
    assert_false(admission_decide(&a, at(2999), 4).pull);
    assert_true(admission_decide(&a, at(3000), 4).pull);
}

static void test_messages_put_the_pull_off(void **state)
{
    (void)state;
    struct admission a = admission_start(at(0), 1000);
    admission_pulled(&a, at(0), 4, 0, 0);
    admission_took(&a, at(900), 0);
    assert_false(admission_decide(&a, at(1800), 4).pull);
    assert_true(admission_decide(&a, at(1900), 4).pull);
}

/* A job whose message was lost must not wait for the others' messages to end. */
static void test_steady_messages_do_not_put_the_pull_off_for_ever(void **state)
{
    (void)state;
    struct admission a = admission_start(at(0), 1000);
    admission_pulled(&a, at(0), 4, 0, 0);
    int64_t ms = 0;
    while (!admission_decide(&a, at(ms), 4).pull && ms < 60000) {
        ms += 100;
        admission_took(&a, at(ms), 1000);
    }
    assert_int_equal(ms, PULL_OFF_MAX * 1000);
    admission_pulled(&a, at(ms), 4, 0, 0);
    admission_took(&a, at(ms + 900), 0);
    assert_false(admission_decide(&a, at(ms + 1800), 4).pull);
}

static void test_full_pull_is_followed_by_another_at_once(void **state)
{
    (void)state;
    struct admission a = admission_start(at(0), 1000);
    admission_pulled(&a, at(10), 4, 4, 0);
    assert_true(admission_decide(&a, at(10), 1).pull);
    admission_took(&a, at(11), 0);
    assert_true(admission_decide(&a, at(12), 1).pull);
}

static void test_failed_pull_for_nothing_is_not_repeated_at_once(void **state)
{
    (void)state;
    struct admission a = admission_start(at(0), 1000);
    admission_pulled(&a, at(0), 0, 0, 0);
    assert_false(admission_decide(&a, at(1), 4).pull);
}

static void test_short_lack_of_slots_leaves_the_consumer_alone(void **state)
{
    (void)state;
    struct admission a = admission_start(at(0), 1000);
    struct admission_step step = admission_decide(&a, at(100), 0);
    assert_int_equal(step.mode, ADMISSION_WAIT);
    assert_int_equal(step.wake.ns, at(100 + PAUSE_AFTER_MS).ns);
    assert_int_equal(admission_decide(&a, at(99 + PAUSE_AFTER_MS), 0).mode, ADMISSION_WAIT);
    assert_int_equal(admission_decide(&a, at(100 + PAUSE_AFTER_MS), 0).mode, ADMISSION_PAUSE);
}

static void test_no_free_slot_pauses_and_after_five_seconds_lets_messages_pass(void **state)
{
    (void)state;
    struct admission a = admission_start(at(0), 1000);
    (void)admission_decide(&a, at(100), 0);
    struct admission_step step = admission_decide(&a, at(5099), 0);
    assert_int_equal(step.mode, ADMISSION_PAUSE);
    assert_false(step.pull);
    assert_int_equal(step.wake.ns, at(5100).ns);
    assert_int_equal(admission_decide(&a, at(5100), 0).mode, ADMISSION_SHED);
    assert_int_equal(admission_decide(&a, at(9000), 0).mode, ADMISSION_SHED);
}

static void test_free_slot_begins_the_five_seconds_anew(void **state)
{
    (void)state;
    struct admission a = admission_start(at(0), 1000);
    (void)admission_decide(&a, at(0), 0);
    assert_int_equal(admission_decide(&a, at(4000), 1).mode, ADMISSION_CLAIM);
    assert_int_equal(admission_decide(&a, at(4001), 0).mode, ADMISSION_WAIT);
    assert_int_equal(admission_decide(&a, at(9000), 0).mode, ADMISSION_PAUSE);
    assert_int_equal(admission_decide(&a, at(9001), 0).mode, ADMISSION_SHED);
}

static void test_what_was_let_pass_is_pulled_with_the_next_free_slot(void **state)
{
    (void)state;
    struct admission a = admission_start(at(0), 1000);
    admission_pulled(&a, at(0), 4, 0, 1000);
    admission_shed(&a, at(10));
    assert_true(admission_decide(&a, at(10), 1).pull);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_free_slot_pulls_what_waited_before_the_start),
        cmocka_unit_test(test_idle_worker_pulls_after_once_to_twice_the_idle_time),
        cmocka_unit_test(test_messages_put_the_pull_off),
        cmocka_unit_test(test_steady_messages_do_not_put_the_pull_off_for_ever),
        cmocka_unit_test(test_full_pull_is_followed_by_another_at_once),
        cmocka_unit_test(test_failed_pull_for_nothing_is_not_repeated_at_once),
        cmocka_unit_test(test_short_lack_of_slots_leaves_the_consumer_alone),
        cmocka_unit_test(test_no_free_slot_pauses_and_after_five_seconds_lets_messages_pass),
        cmocka_unit_test(test_free_slot_begins_the_five_seconds_anew),
        cmocka_unit_test(test_what_was_let_pass_is_pulled_with_the_next_free_slot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
