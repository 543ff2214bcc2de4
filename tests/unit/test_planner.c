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

static struct plan_window window;

/* All outcomes of the sink as text: "run K", "late K", "gap FROM..TO N reason". */
static const char *outcomes(void)
{
    static char text[4000];
    size_t used = 0;
    size_t f = 0;
    size_t g = 0;
    text[0] = '\0';
    while ((f < sink.firing_count || g < sink.gap_count) && used < sizeof text - 300) {
        bool gap = f == sink.firing_count ||
                   (g < sink.gap_count && gaps[g].from.us < firings[f].firing.at.us);
        const char *comma = used > 0 ? ", " : "";
        int n = 0;
        if (gap) {
            n = snprintf(text + used, sizeof text - used, "%sgap %s..%s %d %s", comma,
                         gaps[g].from_key, gaps[g].to_key, (int)gaps[g].firings,
                         gap_reason_name(gaps[g].reason));
            g++;
        } else {
            n = snprintf(text + used, sizeof text - used, "%s%s %s", comma,
                         firings[f].cause == PLAN_MISFIRE ? "late"
                         : firings[f].cause == PLAN_EDIT  ? "edit"
                                                          : "run",
                         firings[f].key);
            f++;
        }
        used += (size_t)n;
    }
    return text;
}

static void check_next(const struct plan_result *r, const char *at)
{
    char text[RFC3339_TEXT_MAX] = "";
    if (r->next.found) {
        rfc3339_format_utc(r->next.at, text);
    }
    assert_string_equal(text, at);
}

#define ANY_ANCHOR "2030-01-01T00:00:00Z"

static void test_nothing_due_plans_nothing_and_names_the_next(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 6 * * *", "Europe/Berlin");
    struct plan_subject s = fixture_subject(&r, "2030-04-12T10:00:00Z");
    struct plan_result result = plan_at(&s, "2030-04-12T10:00:01Z");
    assert_false(result.moved);
    assert_false(result.more);
    assert_string_equal(outcomes(), "");
    check_next(&result, "2030-04-13T04:00:00Z");
}

static void test_a_firing_that_is_late_within_grace_is_live(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 6 * * *", "UTC");
    struct plan_subject s = fixture_subject(&r, "2030-04-12T00:00:00Z");
    struct plan_result result = plan_at(&s, "2030-04-12T06:01:00Z");
    assert_string_equal(outcomes(), "run 2030-04-12");
    check_next(&result, "2030-04-13T06:00:00Z");
    (void)plan_at(&s, "2030-04-12T06:01:00.000001Z");
    assert_string_equal(outcomes(), "late 2030-04-12");
}

static void test_misfire_policies(void **state)
{
    (void)state;
    static const struct {
        enum misfire misfire;
        int32_t max;
        const char *rule, *since, *now, *want;
    } cases[] = {
        /* daily: the default is run_all */
        {MISFIRE_DEFAULT, 31, "0 6 * * *", "2030-04-09T07:00:00Z", "2030-04-12T07:00:00Z",
         "late 2030-04-10, late 2030-04-11, late 2030-04-12"},
        {MISFIRE_RUN_ALL, 2, "0 6 * * *", "2030-04-08T07:00:00Z", "2030-04-12T07:00:00Z",
         "gap 2030-04-09..2030-04-10 2 misfire_max, late 2030-04-11, late 2030-04-12"},
        {MISFIRE_RUN_ALL, 2, "0 6 * * *", "2030-04-01T07:00:00Z", "2030-04-12T07:00:00Z",
         "gap 2030-04-02..2030-04-05 4 misfire_age, gap 2030-04-06..2030-04-10 5 misfire_max, "
         "late 2030-04-11, late 2030-04-12"},
        {MISFIRE_RUN_ALL, 2, "0 6 * * *", "2030-04-08T07:00:00Z", "2030-04-12T06:00:30Z",
         "gap 2030-04-09..2030-04-09 1 misfire_max, late 2030-04-10, late 2030-04-11, "
         "run 2030-04-12"},
        {MISFIRE_SKIP, 31, "0 6 * * *", "2030-04-09T07:00:00Z", "2030-04-12T06:00:30Z",
         "gap 2030-04-10..2030-04-11 2 misfire_skip, run 2030-04-12"},
        {MISFIRE_SKIP, 31, "0 6 * * *", "2030-04-09T07:00:00Z", "2030-04-12T07:00:30Z",
         "gap 2030-04-10..2030-04-12 3 misfire_skip"},
        {MISFIRE_RUN_LATEST, 31, "0 6 * * *", "2030-04-09T07:00:00Z", "2030-04-12T07:00:00Z",
         "gap 2030-04-10..2030-04-11 2 misfire_latest, late 2030-04-12"},
        {MISFIRE_RUN_LATEST, 31, "0 6 * * *", "2030-04-09T07:00:00Z", "2030-04-12T06:00:00Z",
         "gap 2030-04-10..2030-04-11 2 misfire_latest, run 2030-04-12"},
        {MISFIRE_RUN_LATEST, 31, "0 6 * * *", "2030-04-11T07:00:00Z", "2030-04-12T07:00:00Z",
         "late 2030-04-12"},
        /* finer: the default is run_latest; what is within grace is live, all of it */
        {MISFIRE_DEFAULT, 31, "* * * * *", "2030-04-12T06:00:00Z", "2030-04-12T07:00:10Z",
         "gap 2030-04-12T06:01..2030-04-12T06:59 59 misfire_latest, run 2030-04-12T07:00"},
        {MISFIRE_DEFAULT, 31, "*/30 * * * *", "2030-04-12T06:00:00Z", "2030-04-12T07:20:00Z",
         "gap 2030-04-12T06:30..2030-04-12T06:30 1 misfire_latest, late 2030-04-12T07:00"},
        {MISFIRE_RUN_ALL, 3, "* * * * *", "2030-04-12T06:00:00Z", "2030-04-12T06:10:30Z",
         "gap 2030-04-12T06:01..2030-04-12T06:06 6 misfire_max, late 2030-04-12T06:07, "
         "late 2030-04-12T06:08, late 2030-04-12T06:09, run 2030-04-12T06:10"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rule r = fixture_cron(cases[i].rule, "UTC");
        struct plan_subject s = fixture_subject(&r, cases[i].since);
        s.misfire = cases[i].misfire;
        s.misfire_max = cases[i].max;
        struct plan_result result = plan_at(&s, cases[i].now);
        if (strcmp(outcomes(), cases[i].want) != 0) {
            fail_msg("case %zu: %s\nwanted %s", i, outcomes(), cases[i].want);
        }
        assert_false(result.more);
        assert_true(result.next.at.us > fixture_instant(cases[i].now).us);
    }
}

static void test_start_counts_and_end_does_not(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    struct plan_subject s = fixture_subject(&r, "2030-04-12T00:30:00Z");
    s.misfire = MISFIRE_RUN_ALL;
    s.starts_at = fixture_instant("2030-04-12T03:00:00Z");
    s.ends_at = fixture_instant("2030-04-12T05:00:00Z");
    struct plan_result result = plan_at(&s, "2030-04-12T09:00:00Z");
    assert_string_equal(outcomes(), "late 2030-04-12T03:00, late 2030-04-12T04:00");
    check_next(&result, "");
}

static void test_an_infinite_start_never_fires(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    struct plan_subject s = fixture_subject(&r, "2030-04-12T00:30:00Z");
    s.starts_at = UTC_UNBOUNDED;
    struct plan_result result = plan_at(&s, "2030-04-12T09:00:00Z");
    assert_string_equal(outcomes(), "");
    check_next(&result, "");
}

static void test_an_end_before_all_time_never_fires(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    struct plan_subject s = fixture_subject(&r, "2030-04-12T00:30:00Z");
    s.ends_at = UTC_PAST;
    struct plan_result result = plan_at(&s, "2030-04-12T09:00:00Z");
    assert_string_equal(outcomes(), "");
    assert_false(result.moved);
    check_next(&result, "");
}

static void test_the_window_begins_at_the_firing_before_even_if_that_was_a_gap(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    struct plan_subject s = fixture_subject(&r, "2030-04-12T00:30:00Z");
    (void)plan_at(&s, "2030-04-12T01:00:00Z");
    assert_true(utc_is_none(firings[0].window_start)); /* the first ever */
    s.last_fire_at = fixture_instant("2030-04-12T01:00:00Z");
    (void)plan_at(&s, "2030-04-12T04:00:00Z");
    assert_string_equal(
        outcomes(),
        "gap 2030-04-12T02:00..2030-04-12T03:00 2 misfire_latest, run 2030-04-12T04:00");
    assert_true(firings[0].window_start.us == fixture_instant("2030-04-12T03:00:00Z").us);
}

static void test_an_hourly_rule_runs_in_both_passes_of_an_overlap_under_two_keys(void **state)
{
    (void)state;
    struct rule r = fixture_cron("*/30 * * * *", "Europe/Berlin");
    struct plan_subject s = fixture_subject(&r, "2026-10-25T00:10:00Z");
    s.misfire = MISFIRE_RUN_ALL;
    struct plan_result result = plan_at(&s, "2026-10-25T02:20:00Z");
    assert_string_equal(outcomes(), "late 2026-10-25T02:30+02:00, late 2026-10-25T02:00+01:00, "
                                    "late 2026-10-25T02:30+01:00, late 2026-10-25T03:00");
    assert_false(result.more);
}

static void test_a_daily_rule_runs_once_on_the_days_the_clocks_change(void **state)
{
    (void)state;
    struct rule r = fixture_cron("30 2 * * *", "Europe/Berlin");
    struct plan_subject s = fixture_subject(&r, "2026-03-28T00:00:00Z");
    (void)plan_at(&s, "2026-03-30T12:00:00Z");
    assert_string_equal(outcomes(), "late 2026-03-28, late 2026-03-29, late 2026-03-30");
    assert_true(firings[1].firing.at.us == fixture_instant("2026-03-29T01:00:00Z").us);
    s = fixture_subject(&r, "2026-10-24T12:00:00Z");
    (void)plan_at(&s, "2026-10-26T12:00:00Z");
    assert_string_equal(outcomes(), "late 2026-10-25, late 2026-10-26");
    assert_true(firings[0].firing.at.us == fixture_instant("2026-10-25T00:30:00Z").us);
}

static void test_an_edit_leaves_what_was_due_before_it_to_the_old_version(void **state)
{
    (void)state;
    struct rule old = fixture_cron("0 * * * *", "UTC");
    struct rule new = fixture_cron("30 * * * *", "UTC");
    struct plan_subject s = fixture_subject(&old, "2030-04-12T00:30:00Z");
    s.misfire = MISFIRE_RUN_ALL;
    s.until = fixture_instant("2030-04-12T03:00:00Z"); /* edited at three, sharp */
    struct plan_result result = plan_at(&s, "2030-04-12T09:00:00Z");
    assert_string_equal(outcomes(), "late 2030-04-12T01:00, late 2030-04-12T02:00");
    assert_true(result.reached_until);
    assert_false(result.more);

    struct plan_edit e = {
        .rule = &new,
        .has_form = true,
        .form = s.form,
        .effective_from = s.until,
        .last_fire_at = result.last.at,
        .starts_at = UTC_NONE,
        .ends_at = UTC_NONE,
    };
    struct plan_switch w;
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    assert_true(w.switched_at.us == e.effective_from.us);
    assert_true(w.next.at.us == fixture_instant("2030-04-12T03:30:00Z").us);
}

static void test_a_new_version_begins_after_the_last_firing_planned(void **state)
{
    (void)state;
    struct rule new = fixture_cron("* * * * *", "UTC");
    struct plan_edit e = {
        .rule = &new,
        .has_form = true,
        .form = KEY_MINUTE,
        .effective_from = fixture_instant("2030-04-12T03:00:30Z"),
        .last_fire_at = fixture_instant("2030-04-12T03:02:00Z"), /* planned before it was seen */
        .starts_at = UTC_NONE,
        .ends_at = UTC_NONE,
    };
    struct plan_switch w;
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    assert_true(w.next.at.us == fixture_instant("2030-04-12T03:03:00Z").us);
    assert_true(w.switched_at.us == e.last_fire_at.us);
}

static void test_an_edit_to_a_finer_rule_is_refused_with_the_way_out(void **state)
{
    (void)state;
    struct rule new = fixture_cron("0 * * * *", "UTC");
    struct plan_edit e = {
        .rule = &new,
        .has_form = true,
        .form = KEY_DATE,
        .effective_from = fixture_instant("2030-04-12T03:00:30Z"),
        .last_fire_at = UTC_NONE,
        .starts_at = UTC_NONE,
        .ends_at = UTC_NONE,
    };
    struct plan_switch w;
    struct error err = {.text = ""};
    assert_int_equal(plan_switch_find(&e, &w, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "make a new schedule"));
    assert_false(w.next.found);
    assert_true(w.form == KEY_DATE);
    e.has_form = false; /* the first version: it fixes the form */
    assert_int_equal(plan_switch_find(&e, &w, &err), STATUS_OK);
    assert_true(w.form == KEY_MINUTE);
    e.has_form = true; /* coarser than the form is fine: keys stay as long as they were */
    e.form = KEY_SECOND;
    assert_int_equal(plan_switch_find(&e, &w, &err), STATUS_OK);
    assert_true(w.form == KEY_SECOND);
}

static void test_a_single_firing_in_the_past_is_a_problem_and_an_ended_version_is_none(void **state)
{
    (void)state;
    struct rule once = fixture_rule("once", "2030-04-12T06:00", "UTC", ANY_ANCHOR);
    struct plan_edit e = {
        .rule = &once,
        .once = true,
        .effective_from = fixture_instant("2030-04-12T07:00:00Z"),
        .last_fire_at = UTC_NONE,
        .starts_at = UTC_NONE,
        .ends_at = UTC_NONE,
    };
    struct plan_switch w;
    struct error err = {.text = ""};
    assert_int_equal(plan_switch_find(&e, &w, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "past"));
    e.last_fire_at = fixture_instant("2030-04-12T06:00:00Z"); /* it has fired: an edit is fine */
    assert_int_equal(plan_switch_find(&e, &w, &err), STATUS_OK);
    assert_false(w.next.found);
    e.rule = NULL;
    assert_int_equal(plan_switch_find(&e, &w, &err), STATUS_OK);
    assert_false(w.next.found);
}

static void test_what_was_due_under_a_problem_becomes_one_gap(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    struct plan_subject s = fixture_subject(&r, "2030-04-12T00:30:00Z");
    s.withheld = true;
    s.withheld_reason = GAP_PROBLEM_MENDED;
    s.until = fixture_instant("2030-04-12T04:30:00Z");
    struct plan_result result = plan_at(&s, "2030-04-12T09:00:00Z");
    assert_string_equal(outcomes(), "gap 2030-04-12T01:00..2030-04-12T04:00 4 problem_mended");
    assert_true(result.reached_until);
}

static void test_a_key_that_comes_twice_is_a_problem_and_leaves_the_sink_alone(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 6,18 * * *", "UTC");
    struct plan_subject s = fixture_subject(&r, "2030-04-12T00:30:00Z");
    s.form = KEY_DATE; /* as a row that was tampered with would say */
    struct plan_result result;
    struct error err = {.text = ""};
    sink = (struct plan_sink){firings, 0, PASS_FIRINGS_MAX, gaps, 0, PASS_GAPS_MAX};
    assert_int_equal(plan_schedule(&s, fixture_instant("2030-04-13T00:00:00Z"), 0, &window, &sink,
                                   &result, &err),
                     STATUS_INVALID);
    assert_non_null(strstr(err.text, "2030-04-12"));
    assert_int_equal(sink.firing_count, 0);
    assert_int_equal(sink.gap_count, 0);
}

static void test_a_full_sink_is_said_and_nothing_is_written(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 6 * * *", "UTC");
    struct plan_subject s = fixture_subject(&r, "2030-04-12T00:30:00Z");
    struct plan_result result;
    sink = (struct plan_sink){firings, 5, 5, gaps, 0, 1000};
    assert_int_equal(plan_schedule(&s, fixture_instant("2030-04-12T06:00:00Z"), 0, &window, &sink,
                                   &result, NULL),
                     STATUS_FULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_due_plans_nothing_and_names_the_next),
        cmocka_unit_test(test_a_firing_that_is_late_within_grace_is_live),
        cmocka_unit_test(test_misfire_policies),
        cmocka_unit_test(test_start_counts_and_end_does_not),
        cmocka_unit_test(test_an_infinite_start_never_fires),
        cmocka_unit_test(test_an_end_before_all_time_never_fires),
        cmocka_unit_test(test_the_window_begins_at_the_firing_before_even_if_that_was_a_gap),
        cmocka_unit_test(test_an_hourly_rule_runs_in_both_passes_of_an_overlap_under_two_keys),
        cmocka_unit_test(test_a_daily_rule_runs_once_on_the_days_the_clocks_change),
        cmocka_unit_test(test_an_edit_leaves_what_was_due_before_it_to_the_old_version),
        cmocka_unit_test(test_a_new_version_begins_after_the_last_firing_planned),
        cmocka_unit_test(test_an_edit_to_a_finer_rule_is_refused_with_the_way_out),
        cmocka_unit_test(
            test_a_single_firing_in_the_past_is_a_problem_and_an_ended_version_is_none),
        cmocka_unit_test(test_what_was_due_under_a_problem_becomes_one_gap),
        cmocka_unit_test(test_a_key_that_comes_twice_is_a_problem_and_leaves_the_sink_alone),
        cmocka_unit_test(test_a_full_sink_is_said_and_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
