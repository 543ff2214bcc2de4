/* Numbers of a forecast: they add up, and a schedule that fires too often costs by days only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_zone.h"
#include "forecast.h"

#define FROM "2030-04-12T12:00:00Z"

static struct forecast_subject subject_of(const char *schedule, const char *queue,
                                          const struct rule *rule)
{
    return (struct forecast_subject){.schedule = schedule,
                                     .queue = queue,
                                     .rule = rule,
                                     .bounds = {UTC_NONE, UTC_NONE},
                                     .after = fixture_instant(FROM),
                                     .before = UTC_UNBOUNDED};
}

static void add(struct forecast *f, const char *schedule, const char *queue, const char *text)
{
    struct rule r = fixture_rule("cron", text, "UTC", FROM);
    struct forecast_subject s = subject_of(schedule, queue, &r);
    assert_int_equal(forecast_add(f, &s), STATUS_OK);
}

static void assert_adds_up(const struct forecast *f)
{
    int64_t days = 0;
    int64_t queues = 0;
    int64_t seconds = 0;
    for (size_t i = 0; i < f->days; i++) {
        days += f->day_firings[i];
    }
    for (size_t i = 0; i < f->queue_count; i++) {
        queues += f->queues[i].firings;
    }
    for (size_t i = 0; i < f->seconds; i++) {
        seconds += f->due[i];
    }
    assert_int_equal(days, f->firings);
    assert_int_equal(queues, f->firings);
    assert_int_equal(seconds, f->firings - f->coarse_firings);
}

static void test_days_and_queues_add_up_and_the_window_is_open_at_both_ends(void **state)
{
    (void)state;
    struct forecast f;
    assert_int_equal(forecast_open(fixture_instant(FROM), 2, &f), STATUS_OK);
    add(&f, "noon", "default", "0 12 * * *"); /* at its begin and its end: only one between */
    add(&f, "hourly", "heavy", "30 * * * *");
    add(&f, "never", "heavy", "0 6 1 1 *");
    assert_int_equal(f.firings, 1 + 48);
    assert_int_equal(f.schedules, 2);
    assert_int_equal(f.days, 3);
    assert_int_equal(f.day_firings[0], 12);
    assert_int_equal(f.day_firings[1], 25);
    assert_int_equal(f.day_firings[2], 12);
    assert_string_equal(f.queues[0].name, "default");
    assert_int_equal(f.queues[1].firings, 48);
    assert_int_equal(f.queues[1].schedules, 1);
    assert_adds_up(&f);
    forecast_close(&f);
}

static void test_peaks_come_by_size_and_name_one_that_is_due(void **state)
{
    (void)state;
    struct forecast f;
    struct forecast_peak peaks[3];
    assert_int_equal(forecast_open(fixture_instant(FROM), 1, &f), STATUS_OK);
    add(&f, "a", "q", "0 18 * * *");
    add(&f, "b", "q", "0 18,20 * * *");
    add(&f, "c", "q", "0 20,22 * * *");
    add(&f, "d", "q", "0,30 0 20 * * *");
    assert_int_equal(forecast_peaks(&f, 1, 2, peaks, 3), 2);
    assert_int_equal(peaks[0].firings, 3);
    assert_int_equal(peaks[0].at, utc_seconds(fixture_instant("2030-04-12T20:00:00Z")));
    assert_string_equal(peaks[0].example, "b");
    assert_int_equal(peaks[1].firings, 2);
    assert_string_equal(peaks[1].example, "a");
    assert_int_equal(forecast_peaks(&f, 60, 1, peaks, 2), 2);
    assert_int_equal(peaks[0].firings, 4);
    assert_int_equal(peaks[0].most, 3);
    assert_int_equal(forecast_collisions(&f), 2);
    assert_adds_up(&f);
    forecast_close(&f);
}

/* 31 days of a firing a second are 2.7 million: counted, and in no minute. */
static void test_schedule_with_too_many_firings_is_counted_by_days(void **state)
{
    (void)state;
    struct forecast f;
    struct forecast_peak peak;
    assert_int_equal(forecast_open(fixture_instant(FROM), 31, &f), STATUS_OK);
    add(&f, "second", "q", "* * * * * *");
    assert_int_equal(f.firings, 31 * 86400 - 1);
    assert_int_equal(f.coarse_firings, f.firings);
    assert_int_equal(f.coarse_schedules, 1);
    assert_int_equal(f.day_firings[1], 86400);
    assert_int_equal(forecast_peaks(&f, 60, 1, &peak, 1), 0);
    add(&f, "minute", "q", "* * * * *");
    assert_int_equal(f.coarse_schedules, 1);
    assert_adds_up(&f);
    forecast_close(&f);
}

static void test_schedule_of_two_versions_counts_once_and_its_firings_both(void **state)
{
    (void)state;
    struct forecast f;
    struct rule r = fixture_rule("cron", "0 * * * *", "UTC", FROM);
    struct forecast_subject s = subject_of("hourly", "q", &r);
    assert_int_equal(forecast_open(fixture_instant(FROM), 1, &f), STATUS_OK);
    s.before = fixture_instant("2030-04-12T18:00:00Z");
    assert_int_equal(forecast_add(&f, &s), STATUS_OK);
    struct rule half = fixture_rule("cron", "30 * * * *", "UTC", FROM);
    s.rule = &half;
    s.after = (utc_us){s.before.us - 1};
    s.before = UTC_UNBOUNDED;
    assert_int_equal(forecast_add(&f, &s), STATUS_OK);
    assert_int_equal(f.schedules, 1);
    assert_int_equal(f.firings, 5 + 18);
    assert_adds_up(&f);
    forecast_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_days_and_queues_add_up_and_the_window_is_open_at_both_ends),
        cmocka_unit_test(test_peaks_come_by_size_and_name_one_that_is_due),
        cmocka_unit_test(test_schedule_with_too_many_firings_is_counted_by_days),
        cmocka_unit_test(test_schedule_of_two_versions_counts_once_and_its_firings_both),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
