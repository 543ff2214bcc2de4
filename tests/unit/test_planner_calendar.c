/* Where a schedule goes on when its calendar, or what it makes of it, has changed: a date that was
 * still to come is not lost (I3). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_calendar.h"
#include "fixture_pass.h"
#include "fixture_subject.h"
#include "fixture_zone.h"
#include "planner.h"

/* Weekends, and every day from one to another closed. */
static struct calendar *calendar_closed(const char *first, const char *last)
{
    struct calendar_special days[40];
    size_t count = 0;
    for (int64_t d = day_of(first); d <= day_of(last); d++) {
        assert_true(count < sizeof days / sizeof days[0]);
        days[count++] = (struct calendar_special){.day = d};
    }
    struct calendar_rules rules = rules_of(days, count);
    return calendar_of(&rules);
}

/* What the schedule comes to be at an instant, when `next` (a local time) was what would come. */
struct story {
    const char *rule;
    enum roll_convention nonbusiness;
    int32_t offset;
    const char *first_closed, *last_closed;
    const char *at, *last, *last_nominal, *next;
};

static enum status switch_of(const struct story *s, struct plan_switch *ret, struct error *err)
{
    struct calendar *c = calendar_closed(s->first_closed, s->last_closed);
    const struct rule_source source = {.kind = "cron",
                                       .text = s->rule,
                                       .zone = "UTC",
                                       .calendar = c,
                                       .nonbusiness = s->nonbusiness,
                                       .business_day_offset = s->offset};
    struct rule r = {.zone = NULL};
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, err), STATUS_OK);
    struct plan_edit e = {
        .rule = &r,
        .has_form = true,
        .form = KEY_DATE,
        .effective_from = fixture_instant(s->at),
        .last_fire_at = fixture_instant(s->last),
        .has_last = true,
        .last_nominal = {utc_seconds(fixture_instant(s->last_nominal))},
        .starts_at = UTC_NONE,
        .ends_at = UTC_NONE,
        .has_next = true,
        .next_nominal = {utc_seconds(fixture_instant(s->next))},
    };
    enum status status = plan_switch_find(&e, ret, err);
    calendar_free(c);
    return status;
}

static void test_a_date_that_a_long_closure_moves_far_back_is_due_at_once(void **state)
{
    (void)state;
    static const struct story s = {
        .rule = "0 18 L * *",
        .nonbusiness = ROLL_PRECEDING,
        .first_closed = "2030-12-23",
        .last_closed = "2030-12-31",
        .at = "2030-12-30T12:00:00Z",
        .last = "2030-11-29T18:00:00Z",
        .last_nominal = "2030-11-30T18:00:00Z",
        .next = "2030-12-31T18:00:00Z",
    };
    struct plan_switch w;
    assert_int_equal(switch_of(&s, &w, NULL), STATUS_OK);
    assert_true(w.switched_at.us == fixture_instant("2030-12-20T18:00:00Z").us);
    assert_true(w.next.found && w.next.at.us == w.switched_at.us);
}

static void test_a_date_that_a_lifted_closure_leaves_behind_is_due_at_once(void **state)
{
    (void)state;
    static const struct story s = {
        .rule = "0 6 1 * *",
        .nonbusiness = ROLL_FOLLOWING,
        .first_closed = "2030-07-01",
        .last_closed = "2030-07-01",
        .at = "2030-05-07T12:00:00Z",
        .last = "2030-04-01T06:00:00Z",
        .last_nominal = "2030-04-01T06:00:00Z",
        .next = "2030-05-01T06:00:00Z",
    };
    struct plan_switch w;
    assert_int_equal(switch_of(&s, &w, NULL), STATUS_OK);
    assert_true(w.switched_at.us == fixture_instant("2030-05-01T06:00:00Z").us);
}

static void test_a_business_day_that_would_come_before_what_has_run_is_told_by_name(void **state)
{
    (void)state;
    static const struct story s = {
        .rule = "0 6 * * 1-5",
        .offset = -2,
        .first_closed = "2030-10-23",
        .last_closed = "2030-10-23",
        .at = "2030-10-23T05:00:00Z",
        .last = "2030-10-22T06:00:00Z",
        .last_nominal = "2030-10-24T06:00:00Z",
        .next = "2030-10-25T06:00:00Z",
    };
    struct plan_switch w;
    struct error err = {.text = ""};
    assert_int_equal(switch_of(&s, &w, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "passes over 2030-10-25, which was still to come"));
    assert_non_null(strstr(err.text, "reportctl backfill"));
    assert_false(w.next.found);
    assert_true(w.behind.found);
    assert_int_equal(w.behind.nominal.s, utc_seconds(fixture_instant("2030-10-28T06:00:00Z")));
}

static void test_a_new_holiday_that_moves_to_a_day_which_has_run_joins_it(void **state)
{
    (void)state;
    static const struct story s = {
        .rule = "0 6 * * *",
        .nonbusiness = ROLL_PRECEDING,
        .first_closed = "2030-04-15",
        .last_closed = "2030-04-15",
        .at = "2030-04-14T12:00:00Z",
        .last = "2030-04-12T06:00:00Z",
        .last_nominal = "2030-04-14T06:00:00Z",
        .next = "2030-04-15T06:00:00Z",
    };
    struct plan_switch w;
    assert_int_equal(switch_of(&s, &w, NULL), STATUS_OK);
    assert_true(w.next.at.us == fixture_instant("2030-04-16T06:00:00Z").us);
}

static enum status never(const char *rule, const char *last, enum roll_convention nonbusiness,
                         struct plan_switch *ret, struct error *err)
{
    const struct story s = {
        .rule = rule,
        .nonbusiness = nonbusiness,
        .first_closed = "2030-04-15",
        .last_closed = "2030-04-15",
        .at = "2030-05-01T12:00:00Z",
        .last = last,
        .last_nominal = last,
        .next = "2030-05-04T06:00:00Z",
    };
    return switch_of(&s, ret, err);
}

static void test_a_schedule_whose_every_date_is_skipped_is_told(void **state)
{
    (void)state;
    struct plan_switch w;
    struct error err = {.text = ""};
    assert_int_equal(never("0 6 * * SAT", "2030-04-13T06:00:00Z", ROLL_SKIP, &w, &err),
                     STATUS_INVALID);
    assert_non_null(strstr(err.text, "the calendar skips every date"));
    assert_non_null(strstr(err.text, "nonbusiness"));
    assert_false(w.next.found);
    assert_int_equal(never("0 6 * * 5-6", "2030-04-13T06:00:00Z", ROLL_SKIP, &w, &err), STATUS_OK);
    assert_int_equal(never("0 6 * * SAT", "2030-04-13T06:00:00Z", ROLL_FOLLOWING, &w, &err),
                     STATUS_OK);
}

/* A calendar that knows its days is not one that says hold, and no import would help. */
static void test_a_calendar_without_business_days_is_a_problem_that_says_so(void **state)
{
    (void)state;
    static struct plan_window window;
    const struct calendar_weekend always = {.from = CALENDAR_ALWAYS, .days = 0x7f};
    struct calendar_rules rules = rules_of(NULL, 0);
    rules.weekends = &always;
    rules.weekend_count = 1;
    struct calendar *closed = calendar_of(&rules);
    const struct rule_source source = {.kind = "cron",
                                       .text = "0 6 * * *",
                                       .zone = "UTC",
                                       .calendar = closed,
                                       .nonbusiness = ROLL_FOLLOWING};
    struct rule r = fixture_rule_of(&source);
    struct plan_subject s = fixture_subject(&r, "2030-04-12T00:00:00Z");
    struct plan_result result;
    struct error err = {.text = ""};
    sink = (struct plan_sink){firings, 0, PASS_FIRINGS_MAX, gaps, 0, PASS_GAPS_MAX};
    assert_int_equal(plan_schedule(&s, fixture_instant("2030-04-12T07:00:00Z"), 0, &window, &sink,
                                   &result, &err),
                     STATUS_INVALID);
    assert_string_equal(err.text, "its calendar has no business day within 366 days of 2030-04-12; "
                                  "correct its weekend or its days, and it goes on");
    calendar_free(closed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_date_that_a_long_closure_moves_far_back_is_due_at_once),
        cmocka_unit_test(test_a_date_that_a_lifted_closure_leaves_behind_is_due_at_once),
        cmocka_unit_test(test_a_business_day_that_would_come_before_what_has_run_is_told_by_name),
        cmocka_unit_test(test_a_new_holiday_that_moves_to_a_day_which_has_run_joins_it),
        cmocka_unit_test(test_a_schedule_whose_every_date_is_skipped_is_told),
        cmocka_unit_test(test_a_calendar_without_business_days_is_a_problem_that_says_so),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
