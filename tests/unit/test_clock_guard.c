/* Samples of the database's clock against CLOCK_BOOTTIME, and what the guard makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "clock_guard.h"

#define S           INT64_C(1000000) /* microseconds */
#define DATABASE_US (INT64_C(1900000000) * S)
#define BOOT_US     (INT64_C(5000) * S)
#define SAMPLES_MAX 6

/* One sample: both clocks since the beginning, and how long the question took (asked before and
 * answered after half of it). All in milliseconds. */
struct point {
    int64_t boot_ms, database_ms, trip_ms;
};

struct story {
    const char *what;
    struct point points[SAMPLES_MAX];
    size_t count;
    enum clock_verdict last;
    int64_t step_ms; /* when it is CLOCK_STEPPED */
};

static struct clock_sample sample_of(struct point p)
{
    int64_t middle_ns = (BOOT_US + p.boot_ms * 1000) * 1000;
    int64_t half_ns = p.trip_ms * 1000000 / 2;
    return (struct clock_sample){.said = {DATABASE_US + p.database_ms * 1000},
                                 .before = {middle_ns - half_ns},
                                 .after = {middle_ns + half_ns}};
}

/* table: exempt from the length limit */
static const struct story stories[] = {
    {"the first sample is the measure", {{0, 7200000, 1}}, 1, CLOCK_FIRST, 0},
    {"both clocks go on",
     {{0, 0, 1}, {5000, 5000, 1}, {10000, 10001, 1}, {15000, 14999, 1}},
     4,
     CLOCK_GOOD,
     0},
    {"two hours forward",
     {{0, 0, 1}, {5000, 5000, 1}, {10000, 7210000, 1}},
     3,
     CLOCK_STEPPED,
     7200000},
    {"two hours back",
     {{0, 0, 1}, {5000, 5000, 1}, {10000, -7190000, 1}},
     3,
     CLOCK_STEPPED,
     -7200000},
    {"just within the slack", {{0, 0, 1}, {5000, 6999, 1}}, 2, CLOCK_GOOD, 0},
    {"just beyond it", {{0, 0, 1}, {5000, 7010, 1}}, 2, CLOCK_STEPPED, 2010},
    {"the same back", {{0, 0, 1}, {5000, 2990, 1}}, 2, CLOCK_STEPPED, -2010},
    {"a suspicion stays, also when the clock is set back",
     {{0, 0, 1}, {5000, 7205000, 1}, {6000, 6000, 1}},
     3,
     CLOCK_STEPPED,
     7200000},
    {"100 ppm of drift over an hour without a sample",
     {{0, 0, 1}, {3600000, 3600360, 1}},
     2,
     CLOCK_GOOD,
     0},
    {"500 ppm over an hour", {{0, 0, 1}, {3600000, 3601800, 1}}, 2, CLOCK_GOOD, 0},
    {"twenty seconds in an hour are none",
     {{0, 0, 1}, {3600000, 3620000, 1}},
     2,
     CLOCK_STEPPED,
     20000},
    {"NTP slews at its fastest, a twelfth of the time, sample by sample",
     {{0, 0, 1},
      {5000, 5416, 1},
      {10000, 10833, 1},
      {15000, 16250, 1},
      {20000, 21666, 1},
      {25000, 27083, 1}},
     6,
     CLOCK_GOOD,
     0},
    {"a leap second smeared over a day, seen each six hours",
     {{0, 0, 1},
      {21600000, 21599750, 1},
      {43200000, 43199500, 1},
      {64800000, 64799250, 1},
      {86400000, 86399000, 1}},
     5,
     CLOCK_GOOD,
     0},
    {"a leap second stepped", {{0, 0, 1}, {5000, 4000, 1}}, 2, CLOCK_GOOD, 0},
    {"a machine that was suspended: the boot clock went on",
     {{0, 0, 1}, {7200000, 7200000, 1}},
     2,
     CLOCK_GOOD,
     0},
    {"a virtual machine that its host stopped for a minute: suspect, and for others to refute",
     {{0, 0, 1}, {5000, 65000, 1}},
     2,
     CLOCK_STEPPED,
     60000},
    {"a process that was stopped while it asked: the answer tells little",
     {{0, 0, 1}, {35000, 5000, 60000}},
     2,
     CLOCK_GOOD,
     0},
    {"and is not the measure, if another one is fresh",
     {{0, 0, 1}, {4000, 7000, 6500}, {5000, 5000, 1}},
     3,
     CLOCK_GOOD,
     0},
    {"a slow answer hides no two hours",
     {{0, 0, 1}, {35000, 7235000, 60000}},
     2,
     CLOCK_STEPPED,
     7200000},
    {"samples of two threads out of order",
     {{0, 0, 1}, {5000, 5000, 1}, {4990, 4990, 1}},
     3,
     CLOCK_GOOD,
     0},
    {"and one that is older than the step",
     {{5000, 7205000, 1}, {4990, 4990, 1}},
     2,
     CLOCK_STEPPED,
     -7200000},
};

static void test_samples_give_the_verdict_of_their_story(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        struct clock_guard g = {0};
        enum clock_verdict v = CLOCK_FIRST;
        for (size_t k = 0; k < stories[i].count; k++) {
            v = clock_guard_take(&g, sample_of(stories[i].points[k]));
        }
        if (v != stories[i].last || g.suspect != (v == CLOCK_STEPPED) ||
            g.step_us != stories[i].step_ms * 1000) {
            fail_msg("%s: verdict %d, step %lld us", stories[i].what, (int)v, (long long)g.step_us);
        }
    }
}

static void test_wall_clock_that_is_wrong_changes_no_verdict_and_is_shown(void **state)
{
    (void)state;
    struct clock_guard g = {0};
    struct clock_sample s = sample_of((struct point){5000, 5000, 40});
    wall_us right = {DATABASE_US + 5000 * 1000 + 20000}; /* read when the answer had come */
    wall_us wrong = {right.us - 3 * 3600 * S};
    assert_int_equal(clock_guard_take(&g, s), CLOCK_FIRST);
    assert_int_equal(clock_sample_offset_us(&s, right), 0);
    assert_int_equal(clock_sample_offset_us(&s, wrong), -3 * 3600 * S);
    assert_int_equal(clock_guard_take(&g, sample_of((struct point){10000, 10000, 40})), CLOCK_GOOD);
}

static void test_settled_guard_measures_by_the_present(void **state)
{
    (void)state;
    struct clock_guard g = {0};
    (void)clock_guard_take(&g, sample_of((struct point){0, 0, 1}));
    assert_int_equal(clock_guard_take(&g, sample_of((struct point){5000, 7205000, 1})),
                     CLOCK_STEPPED);
    clock_guard_settle(&g, sample_of((struct point){6000, 7206000, 1}));
    assert_int_equal(clock_guard_take(&g, sample_of((struct point){11000, 7211000, 1})),
                     CLOCK_GOOD);
    assert_int_equal(clock_guard_take(&g, sample_of((struct point){16000, 16000, 1})),
                     CLOCK_STEPPED);
    assert_int_equal(g.step_us, -7200 * S);
}

static void test_doubt_of_an_earlier_process_is_shared(void **state)
{
    (void)state;
    struct clock_guard g = {0};
    clock_guard_doubt(&g, 60 * S);
    assert_int_equal(clock_guard_take(&g, sample_of((struct point){0, 0, 1})), CLOCK_STEPPED);
}

static void test_many_small_steps_are_followed(void **state)
{
    (void)state;
    struct clock_guard g = {0};
    for (int64_t i = 0; i < 100; i++) {
        assert_int_not_equal(clock_guard_take(&g, sample_of((struct point){i * 5000, i * 6500, 1})),
                             CLOCK_STEPPED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_give_the_verdict_of_their_story),
        cmocka_unit_test(test_wall_clock_that_is_wrong_changes_no_verdict_and_is_shown),
        cmocka_unit_test(test_settled_guard_measures_by_the_present),
        cmocka_unit_test(test_doubt_of_an_earlier_process_is_shared),
        cmocka_unit_test(test_many_small_steps_are_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
