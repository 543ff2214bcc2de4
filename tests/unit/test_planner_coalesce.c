/* misfire = coalesce: one run for all that was missed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_pass.h"
#include "fixture_subject.h"
#include "fixture_zone.h"
#include "planner.h"

/* Gaps, then runs with the window's start: "gap A..B n reason, late K from T, run K from T". */
static const char *outcomes(void)
{
    static char text[2000];
    text[0] = '\0';
    for (size_t i = 0; i < sink.gap_count; i++) {
        const struct planned_gap *g = &gaps[i];
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%sgap %s..%s %lld %s",
                       text[0] != '\0' ? ", " : "", g->from_key, g->to_key, (long long)g->firings,
                       gap_reason_name(g->reason));
    }
    for (size_t i = 0; i < sink.firing_count; i++) {
        const struct planned_firing *f = &firings[i];
        char from[RFC3339_TEXT_MAX] = "ever";
        if (!utc_is_none(f->window_start)) {
            rfc3339_format_utc(f->window_start, from);
        }
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s %s from %.16s",
                       text[0] != '\0' ? ", " : "", f->cause == PLAN_MISFIRE ? "late" : "run",
                       f->key, from);
    }
    return text;
}

static struct plan_subject subject_of(const struct rule *r, const char *last)
{
    struct plan_subject s = fixture_subject(r, last);
    s.misfire = MISFIRE_COALESCE;
    s.last_fire_at = fixture_instant(last);
    return s;
}

static void test_one_run_covers_what_was_missed(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    struct plan_subject s = subject_of(&r, "2030-04-12T01:00:00Z");
    struct plan_result result = plan_at(&s, "2030-04-12T06:30:00Z");
    assert_string_equal(outcomes(), "gap 2030-04-12T02:00..2030-04-12T05:00 4 coalesced, "
                                    "late 2030-04-12T06:00 from 2030-04-12T01:00");
    assert_int_equal(result.last.at.us, fixture_instant("2030-04-12T06:00:00Z").us);
    assert_int_equal(result.next.at.us, fixture_instant("2030-04-12T07:00:00Z").us);
    assert_false(result.more);
}

static void test_a_firing_that_is_on_time_covers_those_before_it(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    struct plan_subject s = subject_of(&r, "2030-04-12T01:00:00Z");
    (void)plan_at(&s, "2030-04-12T06:00:30Z");
    assert_string_equal(outcomes(), "gap 2030-04-12T02:00..2030-04-12T05:00 4 coalesced, "
                                    "run 2030-04-12T06:00 from 2030-04-12T01:00");
    /* Only the first of several covers. */
    s.misfire_grace_us = INT64_C(7200) * MICROS_A_SECOND;
    (void)plan_at(&s, "2030-04-12T06:00:30Z");
    assert_string_equal(outcomes(), "gap 2030-04-12T02:00..2030-04-12T04:00 3 coalesced, "
                                    "run 2030-04-12T05:00 from 2030-04-12T01:00, "
                                    "run 2030-04-12T06:00 from 2030-04-12T05:00");
}

static void test_one_missed_firing_runs_without_a_gap(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 6 * * *", "UTC");
    struct plan_subject s = subject_of(&r, "2030-04-11T06:00:00Z");
    (void)plan_at(&s, "2030-04-12T09:00:00Z");
    assert_string_equal(outcomes(), "late 2030-04-12 from 2030-04-11T06:00");
    (void)plan_at(&s, "2030-04-12T06:01:00Z");
    assert_string_equal(outcomes(), "run 2030-04-12 from 2030-04-11T06:00");
    s.last_fire_at = UTC_NONE;
    (void)plan_at(&s, "2030-04-13T09:00:00Z");
    assert_string_equal(outcomes(), "gap 2030-04-12..2030-04-12 1 coalesced, "
                                    "late 2030-04-13 from ever");
}

static void test_what_is_older_than_the_age_is_not_covered(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 6 * * *", "UTC");
    struct plan_subject s = subject_of(&r, "2030-04-01T06:00:00Z");
    (void)plan_at(&s, "2030-04-12T09:00:00Z");
    assert_string_equal(outcomes(), "gap 2030-04-02..2030-04-05 4 misfire_age, "
                                    "gap 2030-04-06..2030-04-11 6 coalesced, "
                                    "late 2030-04-12 from 2030-04-05T06:00");
}

static void test_a_year_of_minutes_is_one_pass(void **state)
{
    (void)state;
    struct rule r = fixture_cron("* * * * *", "Europe/Berlin");
    struct plan_subject s = subject_of(&r, "2029-04-12T06:00:00Z");
    s.misfire_age_us = INT64_C(3660) * 86400 * MICROS_A_SECOND;
    struct plan_result result = plan_at(&s, "2030-04-12T06:00:30Z");
    assert_string_equal(outcomes(), "gap 2029-04-12T08:01..2030-04-12T07:59 525599 coalesced, "
                                    "run 2030-04-12T08:00 from 2029-04-12T06:00");
    assert_false(result.more);
    assert_in_range(result.work, 1, 10);
}

static void test_a_version_that_an_edit_ends_covers_its_own(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    struct plan_subject s = subject_of(&r, "2030-04-12T01:00:00Z");
    s.until = fixture_instant("2030-04-12T04:30:00Z");
    s.later = (struct plan_later){.missed = 3, .live = 2};
    struct plan_result result = plan_at(&s, "2030-04-12T09:30:00Z");
    assert_string_equal(outcomes(), "gap 2030-04-12T02:00..2030-04-12T03:00 2 coalesced, "
                                    "late 2030-04-12T04:00 from 2030-04-12T01:00");
    assert_true(result.reached_until);
    struct plan_later later =
        plan_later_add(&s, fixture_instant("2030-04-12T09:30:00Z"), (struct plan_later){0});
    assert_int_equal(later.missed, 1);
    assert_int_equal(later.live, 0);
}

static void test_windows_do_not_move_with_jitter(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    r.jitter_us = INT64_C(600) * MICROS_A_SECOND;
    struct plan_subject s = subject_of(&r, "2030-04-12T01:10:00Z");
    (void)plan_at(&s, "2030-04-12T06:30:00Z");
    assert_string_equal(outcomes(), "gap 2030-04-12T02:00..2030-04-12T05:00 4 coalesced, "
                                    "late 2030-04-12T06:00 from 2030-04-12T01:00");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_run_covers_what_was_missed),
        cmocka_unit_test(test_a_firing_that_is_on_time_covers_those_before_it),
        cmocka_unit_test(test_one_missed_firing_runs_without_a_gap),
        cmocka_unit_test(test_what_is_older_than_the_age_is_not_covered),
        cmocka_unit_test(test_a_year_of_minutes_is_one_pass),
        cmocka_unit_test(test_a_version_that_an_edit_ends_covers_its_own),
        cmocka_unit_test(test_windows_do_not_move_with_jitter),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
