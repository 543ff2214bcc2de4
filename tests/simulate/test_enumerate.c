/* The checker's own enumeration of due times, and the shortening of fault lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "enumerate.h"
#include "shrink.h"

#define SECOND      INT64_C(1000000)
#define AT(seconds) (INT64_C(seconds) * SECOND)

static const struct recipe open_recipe = {.starts_at = HISTORY_NONE, .ends_at = HISTORY_NONE};

static void assert_next(const struct recipe *r, int64_t after, int64_t fire, const char *key)
{
    struct due due = {.fire_us = 0};
    assert_true(due_after(r, after, &due));
    assert_int_equal(due.fire_us, fire);
    assert_string_equal(due.key, key);
    assert_true(due_at(r, fire, &due));
    assert_false(due_at(r, fire + 1, &due));
}

static void test_an_interval_counts_from_its_anchor(void **state)
{
    (void)state;
    struct recipe r = open_recipe;
    r.kind = RECIPE_INTERVAL;
    r.anchor_us = AT(1900000000); /* 2030-03-17T17:46:40Z */
    r.every_us = 7 * SECOND;
    assert_next(&r, 0, AT(1900000000), "2030-03-17T17:46:40Z");
    assert_next(&r, AT(1900000000), AT(1900000007), "2030-03-17T17:46:47Z");
    assert_next(&r, AT(1900000006), AT(1900000007), "2030-03-17T17:46:47Z");
    assert_int_equal(due_count(&r, AT(1900000000), AT(1900000014), 100), 3);
    assert_int_equal(due_count(&r, AT(1900000000), AT(1900000014), 2), 2);
    r.starts_at = AT(1900000008);
    r.ends_at = AT(1900000021);
    assert_next(&r, 0, AT(1900000014), "2030-03-17T17:46:54Z");
    struct due due = {.fire_us = 0};
    assert_false(due_after(&r, AT(1900000014), &due));
}

static void test_minutes_follow_the_clock_and_name_the_offset_in_an_overlap(void **state)
{
    (void)state;
    struct recipe r = open_recipe;
    r.kind = RECIPE_MINUTES;
    r.zone = ZONE_BERLIN;
    r.step = 30;
    /* 2026-10-25: 02:00 to 03:00 comes twice, from 00:00Z and from 01:00Z. */
    assert_next(&r, AT(1792886400) - 1, AT(1792886400), "2026-10-25T02:00+02:00");
    assert_next(&r, AT(1792886400), AT(1792888200), "2026-10-25T02:30+02:00");
    assert_next(&r, AT(1792888200), AT(1792890000), "2026-10-25T02:00+01:00");
    assert_next(&r, AT(1792891800), AT(1792893600), "2026-10-25T03:00");
    /* 2026-03-29: 02:00 to 03:00 does not come. */
    assert_next(&r, AT(1774744200), AT(1774746000), "2026-03-29T03:00");
}

static void test_a_daily_time_in_a_gap_fires_at_its_end_and_in_an_overlap_once(void **state)
{
    (void)state;
    struct recipe r = open_recipe;
    r.kind = RECIPE_DAILY;
    r.zone = ZONE_BERLIN;
    r.hour = 2;
    r.minute = 30;
    assert_next(&r, AT(1774656000), AT(1774661400), "2026-03-28"); /* 01:30Z */
    assert_next(&r, AT(1774661400), AT(1774746000), "2026-03-29"); /* 01:00Z, 03:00 summer */
    assert_next(&r, AT(1774746000), AT(1774830600), "2026-03-30"); /* 00:30Z */
    assert_next(&r, AT(1792801800), AT(1792888200), "2026-10-25"); /* 00:30Z, the first */
    assert_next(&r, AT(1792888200), AT(1792978200), "2026-10-26"); /* 01:30Z */
}

static void test_a_weekly_time_keeps_its_weekday_and_leap_days_are_there(void **state)
{
    (void)state;
    struct recipe r = open_recipe;
    r.kind = RECIPE_WEEKLY;
    r.hour = 12;
    r.weekday = 4; /* 2028-02-24 and 2028-03-02 are Thursdays, five days either side of the 29th */
    assert_next(&r, AT(1835000000), AT(1835006400), "2028-02-24");
    assert_next(&r, AT(1835006400), AT(1835611200), "2028-03-02");
    r.kind = RECIPE_DAILY;
    assert_next(&r, AT(1835352000), AT(1835438400), "2028-02-29");
}

/* Fails as long as faults 3 and 11 are both there. */
static bool needs_two(void *context, const bool *keep, size_t count)
{
    size_t *runs = context;
    (*runs)++;
    assert_int_equal(count, 20);
    return keep[3] && keep[11];
}

static void test_a_fault_list_is_shortened_to_what_it_needs(void **state)
{
    (void)state;
    bool keep[20];
    memset(keep, true, sizeof keep);
    size_t runs = 0, told = 0;
    assert_int_equal(shrink_list(needs_two, &runs, keep, 20, 1000, &told), 2);
    assert_true(keep[3] && keep[11]);
    assert_int_equal(runs, told);
    assert_in_range(told, 1, 80);
}

static bool needs_none(void *context, const bool *keep, size_t count)
{
    (void)context;
    (void)keep;
    (void)count;
    return true;
}

static void test_a_run_that_fails_without_faults_keeps_none(void **state)
{
    (void)state;
    bool keep[5] = {true, true, true, true, true};
    size_t told = 0;
    assert_int_equal(shrink_list(needs_none, NULL, keep, 5, 1000, &told), 0);
}

static void test_shortening_stops_when_its_runs_are_used_up(void **state)
{
    (void)state;
    bool keep[20];
    memset(keep, true, sizeof keep);
    size_t runs = 0, told = 0;
    size_t left = shrink_list(needs_two, &runs, keep, 20, 3, &told);
    assert_int_equal(told, 3);
    assert_true(left >= 2 && keep[3] && keep[11]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_interval_counts_from_its_anchor),
        cmocka_unit_test(test_minutes_follow_the_clock_and_name_the_offset_in_an_overlap),
        cmocka_unit_test(test_a_daily_time_in_a_gap_fires_at_its_end_and_in_an_overlap_once),
        cmocka_unit_test(test_a_weekly_time_keeps_its_weekday_and_leap_days_are_there),
        cmocka_unit_test(test_a_fault_list_is_shortened_to_what_it_needs),
        cmocka_unit_test(test_a_run_that_fails_without_faults_keeps_none),
        cmocka_unit_test(test_shortening_stops_when_its_runs_are_used_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
