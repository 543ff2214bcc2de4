/* Edits in the planner: where a version begins, what its keys are, and what runs behind it. */
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

static struct plan_candidates candidates;

/* An edit of a schedule with date keys that last fired at one time and would have at another. */
static struct plan_edit edit_of(const struct rule *r, const char *at, const char *last,
                                const char *next)
{
    struct plan_edit e = {
        .rule = r,
        .has_form = true,
        .form = KEY_DATE,
        .effective_from = fixture_instant(at),
        .last_fire_at = last != NULL ? fixture_instant(last) : UTC_NONE,
        .starts_at = UTC_NONE,
        .ends_at = UTC_NONE,
        .has_next = next != NULL,
    };
    if (next != NULL) {
        e.next_nominal.s = utc_seconds(fixture_instant(next)); /* local time, written as UTC */
    }
    return e;
}

static void test_a_firing_at_the_instant_of_the_edit_is_the_new_versions(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    struct plan_subject old = fixture_subject(&r, "2030-04-12T00:30:00Z");
    old.until = fixture_instant("2030-04-12T02:00:00Z");
    struct plan_result result = plan_at(&old, "2030-04-12T02:00:30Z");
    check_instant(result.last.at, "2030-04-12T01:00:00Z");
    struct plan_edit e = edit_of(&r, "2030-04-12T02:00:00Z", "2030-04-12T01:00:00Z", NULL);
    e.form = KEY_MINUTE;
    struct plan_switch w;
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    check_instant(w.next.at, "2030-04-12T02:00:00Z");
    struct plan_subject new = fixture_subject(&r, "2030-04-12T02:00:00Z");
    new.switched_at = w.switched_at;
    new.last_fire_at = result.last.at;
    result = plan_at(&new, "2030-04-12T02:00:30Z");
    assert_string_equal(firings[0].key, "2030-04-12T02:00");
}

static void test_a_new_schedule_whose_window_has_none_of_its_times_has_a_problem(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 8 1 1 *", "UTC");
    struct plan_edit e = edit_of(&r, "2030-04-12T12:00:00Z", NULL, NULL);
    struct error err = {.text = ""};
    struct plan_switch w;
    e.starts_at = fixture_instant("2031-02-01T00:00:00Z");
    e.ends_at = fixture_instant("2031-03-01T00:00:00Z");
    assert_int_equal(plan_switch_find(&e, &w, &err), STATUS_INVALID);
    assert_string_equal(err.text,
                        "nothing will fire: starts_at and ends_at leave none of the times "
                        "that the rule names; change them or the rule");
    e.starts_at = UTC_NONE;
    e.ends_at = fixture_instant("2029-03-01T00:00:00Z");
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_INVALID);
    /* Ended by an edit, as its author wished. */
    e = edit_of(&r, "2030-04-12T12:00:00Z", NULL, "2031-01-01T08:00:00Z");
    e.ends_at = fixture_instant("2030-04-12T12:00:00Z");
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    assert_false(w.next.found);
    /* Never, and in so many words. */
    e = edit_of(&r, "2030-04-12T12:00:00Z", NULL, NULL);
    e.starts_at = UTC_UNBOUNDED;
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    e.starts_at = UTC_NONE;
    e.ends_at = UTC_PAST;
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
}

static void test_a_date_that_an_edit_moves_into_the_past_is_due_at_once(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *zone, *at, *last, *next, *want; /* want: begins there, "" if usual */
    } cases[] = {
        /* 18:00 becomes 06:00 at noon: today's is still owed */
        {"0 6 * * *", "UTC", "2030-04-12T12:00:00Z", "2030-04-11T18:00:00Z", "2030-04-12T18:00:00Z",
         "2030-04-12T06:00:00Z"},
        /* at 19:00 it has been made, tomorrow's is what comes */
        {"0 6 * * *", "UTC", "2030-04-12T19:00:00Z", "2030-04-12T18:00:00Z", "2030-04-13T18:00:00Z",
         ""},
        /* later on the same day: it will come */
        {"0 20 * * *", "UTC", "2030-04-12T12:00:00Z", "2030-04-11T18:00:00Z",
         "2030-04-12T18:00:00Z", ""},
        /* a weekly rule that does not want today */
        {"0 6 * * 1", "UTC", "2030-04-12T12:00:00Z", "2030-04-11T18:00:00Z", "2030-04-12T18:00:00Z",
         ""},
        /* a monthly one becomes daily: nothing was owed before the first of May */
        {"0 6 * * *", "UTC", "2030-04-12T12:00:00Z", "2030-04-01T18:00:00Z", "2030-05-01T18:00:00Z",
         ""},
        /* eastward, the same local time: it is past there */
        {"0 18 * * *", "Asia/Tokyo", "2030-04-12T12:00:00Z", "2030-04-11T16:00:00Z",
         "2030-04-12T18:00:00Z", "2030-04-12T09:00:00Z"},
        /* paused, deleted or finished before: nothing was owed */
        {"0 6 * * *", "UTC", "2030-04-12T12:00:00Z", "2030-04-11T18:00:00Z", NULL, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rule r = fixture_cron(cases[i].rule, cases[i].zone);
        struct plan_edit e = edit_of(&r, cases[i].at, cases[i].last, cases[i].next);
        struct plan_switch w;
        assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
        const char *want = cases[i].want[0] != '\0' ? cases[i].want : cases[i].at;
        if (w.switched_at.us != fixture_instant(want).us) {
            fail_msg("case %zu", i);
        }
        assert_true(cases[i].want[0] == '\0' || w.next.at.us == w.switched_at.us);
    }
}

static void test_a_firing_an_edit_called_for_runs_once_whatever_the_misfire_policy(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 6 * * *", "UTC");
    struct plan_subject s = fixture_subject(&r, "2030-04-12T00:00:00Z");
    s.switched_at = fixture_instant("2030-04-12T06:00:00Z");
    s.last_fire_at = fixture_instant("2030-04-11T18:00:00Z");
    s.effective_from = fixture_instant("2030-04-12T12:00:00Z");
    s.misfire = MISFIRE_SKIP;
    struct plan_result result = plan_at(&s, "2030-04-12T12:00:01Z");
    assert_int_equal(sink.firing_count, 1);
    assert_int_equal(sink.gap_count, 0);
    assert_int_equal(firings[0].cause, PLAN_EDIT);
    assert_string_equal(firings[0].key, "2030-04-12");
    check_instant(result.next.at, "2030-04-13T06:00:00Z");
    /* Nobody was there when it was called for: now the policy says. */
    (void)plan_at(&s, "2030-04-12T13:00:00Z");
    assert_int_equal(sink.firing_count, 0);
    assert_int_equal(gaps[0].reason, GAP_MISFIRE_SKIP);
    s.misfire = MISFIRE_RUN_ALL;
    (void)plan_at(&s, "2030-04-12T13:00:00Z");
    assert_int_equal(firings[0].cause, PLAN_MISFIRE);
}

static void test_a_date_that_would_have_to_come_before_what_was_planned_is_refused(void **state)
{
    (void)state;
    /* From Honolulu, where the 12th is still to come, to Kiritimati, where 10:00 of the 12th lies
     * before the firing of the 11th. */
    struct rule r = fixture_cron("0 10 * * *", "Pacific/Kiritimati");
    struct plan_edit e =
        edit_of(&r, "2030-04-12T10:00:00Z", "2030-04-12T04:00:00Z", "2030-04-12T18:00:00Z");
    struct plan_switch w;
    struct error err = {.text = ""};
    assert_int_equal(plan_switch_find(&e, &w, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "2030-04-12"));
    assert_non_null(strstr(err.text, "make a new schedule"));
}

static void test_a_date_that_lies_in_a_gap_is_passed_over_and_the_schedule_goes_on(void **state)
{
    (void)state;
    /* 06:30 was in a pause. Then it was to be 07:30, and at 07:00 it is made 06:10. */
    struct rule r = fixture_cron("10 6 * * *", "UTC");
    struct plan_edit e =
        edit_of(&r, "2030-04-12T07:00:00Z", "2030-04-12T06:30:00Z", "2030-04-12T07:30:00Z");
    e.has_last = true;
    e.last_nominal.s = utc_seconds(fixture_instant("2030-04-12T06:30:00Z"));
    struct plan_switch w;
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    check_instant(w.next.at, "2030-04-13T06:10:00Z");
}

static void settle_with(const struct plan_edit *e, struct plan_switch *w, const char *taken,
                        enum status want, struct error *err)
{
    plan_candidates_fill(e, w, &candidates);
    assert_int_equal(candidates.count, strlen(taken));
    for (size_t i = 0; i < candidates.count; i++) {
        candidates.taken[i] = taken[i] == 'x';
    }
    assert_int_equal(plan_candidates_settle(e, &candidates, w, err), want);
}

static void test_a_date_that_has_its_occurrence_is_left_out(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 18 * * *", "UTC");
    struct plan_edit e =
        edit_of(&r, "2030-04-12T12:00:00Z", "2030-04-12T06:00:00Z", "2030-04-13T06:00:00Z");
    struct plan_switch w;
    memcpy(e.highest_key, "2030-04-12", sizeof "2030-04-12");
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    assert_true(w.doubtful);
    settle_with(&e, &w, "x", STATUS_OK, NULL);
    check_instant(w.next.at, "2030-04-13T18:00:00Z");
    assert_true(w.switched_at.us == fixture_instant("2030-04-12T18:00:00Z").us + 1);
    /* It was in a gap: the date is free, and runs at its new time. */
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    settle_with(&e, &w, "-", STATUS_OK, NULL);
    check_instant(w.next.at, "2030-04-12T18:00:00Z");
    /* A pause comes first; the edit that ends it will see. */
    e.paused = true;
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    assert_false(w.doubtful);
    assert_true(w.next.found);
}

static void test_finer_keys_that_exist_are_a_problem_with_the_way_out(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 */2 * * *", "America/New_York");
    struct plan_edit e = edit_of(&r, "2030-04-12T01:05:00Z", "2030-04-12T01:00:00Z", NULL);
    struct plan_switch w;
    struct error err = {.text = ""};
    e.form = KEY_MINUTE;
    memcpy(e.highest_key, "2030-04-12T10:00", sizeof "2030-04-12T10:00"); /* in Tokyo */
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    assert_true(w.doubtful); /* it is 21:05 of the 11th there */
    settle_with(&e, &w, "-xxx---", STATUS_INVALID, &err);
    assert_non_null(strstr(err.text, "from 2030-04-12T00:00 to 2030-04-12T04:00"));
    assert_non_null(strstr(err.text, "make a new schedule"));
    assert_false(w.next.found);
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    settle_with(&e, &w, "-------", STATUS_OK, NULL);
    assert_true(w.next.found);
}

static void test_once_moved_onto_its_own_used_date_is_a_problem(void **state)
{
    (void)state;
    struct rule r = fixture_rule("once", "2030-04-12T18:00", "UTC", "2030-01-01T00:00:00Z");
    struct plan_edit e = edit_of(&r, "2030-04-12T12:00:00Z", "2030-04-12T06:00:00Z", NULL);
    struct plan_switch w;
    struct error err = {.text = ""};
    e.once = true;
    memcpy(e.highest_key, "2030-04-12", sizeof "2030-04-12");
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    settle_with(&e, &w, "x", STATUS_INVALID, &err);
    assert_non_null(strstr(err.text, "2030-04-12 already; make a new schedule"));
}

static void test_a_schedule_that_begins_paused_fixes_no_form_yet(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 6 * * *", "UTC");
    struct plan_edit e = edit_of(&r, "2030-04-12T12:00:00Z", NULL, NULL);
    struct plan_switch w;
    e.has_form = false;
    e.paused = true;
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    assert_false(w.has_form);
    e.paused = false;
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    assert_true(w.has_form);
}

static void test_a_pause_of_a_year_is_one_gap_in_one_pass(void **state)
{
    (void)state;
    struct rule r = fixture_cron("* * * * *", "Europe/Berlin");
    struct plan_subject s = fixture_subject(&r, "2029-12-31T23:00:00Z");
    s.switched_at.us--;
    s.withheld = true;
    s.withheld_reason = GAP_PAUSED;
    s.until = fixture_instant("2030-12-31T23:00:00Z");
    struct plan_result result = plan_at(&s, "2031-01-02T00:00:00Z");
    assert_int_equal(sink.firing_count, 0);
    assert_int_equal(sink.gap_count, 1);
    assert_int_equal(gaps[0].firings, 365 * 1440);
    assert_string_equal(gaps[0].from_key, "2030-01-01T00:00");
    assert_string_equal(gaps[0].to_key, "2030-12-31T23:59");
    assert_int_equal(gaps[0].reason, GAP_PAUSED);
    assert_int_equal(result.work, 1);
    assert_false(result.more);
    check_instant(result.next.at, "2030-12-31T23:00:00Z");
}

/* Each firing of an outage under two versions: what runs of the first when the second is known. */
static void test_an_edit_in_an_outage_runs_no_more_than_no_edit(void **state)
{
    (void)state;
    static const struct {
        enum misfire old, new;
        int32_t max;
        const char *edit, *now;
        int runs; /* of the old version */
    } cases[] = {
        {MISFIRE_RUN_LATEST, MISFIRE_RUN_LATEST, 31, "2030-04-12T06:30:00Z", "2030-04-12T12:10:00Z",
         0},
        /* nothing was due since the edit: the latest is still the old version's */
        {MISFIRE_RUN_LATEST, MISFIRE_RUN_LATEST, 31, "2030-04-12T12:05:00Z", "2030-04-12T12:10:00Z",
         1},
        {MISFIRE_RUN_LATEST, MISFIRE_SKIP, 31, "2030-04-12T06:30:00Z", "2030-04-12T12:10:00Z", 1},
        {MISFIRE_RUN_LATEST, MISFIRE_SKIP, 31, "2030-04-12T06:30:00Z", "2030-04-12T12:00:30Z", 0},
        {MISFIRE_RUN_ALL, MISFIRE_RUN_ALL, 8, "2030-04-12T06:30:00Z", "2030-04-12T12:10:00Z", 2},
        {MISFIRE_RUN_ALL, MISFIRE_RUN_ALL, 4, "2030-04-12T06:30:00Z", "2030-04-12T12:10:00Z", 0},
        {MISFIRE_RUN_ALL, MISFIRE_RUN_LATEST, 8, "2030-04-12T06:30:00Z", "2030-04-12T12:10:00Z", 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rule r = fixture_cron("0 * * * *", "UTC");
        utc_us now = fixture_instant(cases[i].now);
        struct plan_subject new = fixture_subject(&r, cases[i].edit);
        new.misfire = cases[i].new;
        new.misfire_max = cases[i].max;
        struct plan_subject old = fixture_subject(&r, "2030-04-12T00:00:00Z");
        old.misfire = cases[i].old;
        old.misfire_max = cases[i].max;
        old.until = fixture_instant(cases[i].edit);
        old.later = plan_later_add(&new, now, (struct plan_later){0, 0});
        (void)plan_at(&old, cases[i].now);
        if (sink.firing_count != (size_t)cases[i].runs) {
            fail_msg("case %zu: %zu of the old version run", i, sink.firing_count);
        }
        int64_t all = (int64_t)sink.firing_count;
        for (size_t g = 0; g < sink.gap_count; g++) {
            all += gaps[g].firings;
        }
        struct rule_bounds open = {UTC_NONE, UTC_NONE};
        assert_int_equal(all, rule_count_within(&r, old.switched_at, old.until, open));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_firing_at_the_instant_of_the_edit_is_the_new_versions),
        cmocka_unit_test(test_a_new_schedule_whose_window_has_none_of_its_times_has_a_problem),
        cmocka_unit_test(test_a_date_that_an_edit_moves_into_the_past_is_due_at_once),
        cmocka_unit_test(test_a_firing_an_edit_called_for_runs_once_whatever_the_misfire_policy),
        cmocka_unit_test(test_a_date_that_would_have_to_come_before_what_was_planned_is_refused),
        cmocka_unit_test(test_a_date_that_lies_in_a_gap_is_passed_over_and_the_schedule_goes_on),
        cmocka_unit_test(test_a_date_that_has_its_occurrence_is_left_out),
        cmocka_unit_test(test_finer_keys_that_exist_are_a_problem_with_the_way_out),
        cmocka_unit_test(test_once_moved_onto_its_own_used_date_is_a_problem),
        cmocka_unit_test(test_a_schedule_that_begins_paused_fixes_no_form_yet),
        cmocka_unit_test(test_a_pause_of_a_year_is_one_gap_in_one_pass),
        cmocka_unit_test(test_an_edit_in_an_outage_runs_no_more_than_no_edit),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
