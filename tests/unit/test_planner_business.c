/* Rules whose firings are about dates and periods: which are refused, and how they are planned. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_business.h"
#include "fixture_subject.h"
#include "fixture_zone.h"
#include "key.h"

static struct rule rule_of(const char *text, const char *zone, const char *business_date,
                           const struct fiscal_periods *periods)
{
    const struct rule_source source = {.kind = "cron",
                                       .text = text,
                                       .zone = zone,
                                       .business_date = business_date,
                                       .periods = periods};
    struct error err = {.text = ""};
    struct rule r = {.zone = NULL};
    if (rule_parse(&source, fixture_zones(), &r, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return r;
}

static void test_periods_go_with_no_interval_and_no_time_that_runs_twice(void **state)
{
    (void)state;
    struct rule r;
    struct error err = {.text = ""};
    struct rule_source source = {
        .kind = "interval", .text = "30 days", .zone = "UTC", .business_date = "previous_month"};
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "write kind = 'cron'"));
    source.kind = "cron";
    source.text = "0 6 1 * *";
    source.overlap = DST_OVERLAP_BOTH;
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "write dst_overlap = 'first'"));
    source.business_date = "t_minus(1)";
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, &err), STATUS_OK);
}

static struct plan_edit edit_of(const struct rule *r, const char *at)
{
    return (struct plan_edit){.rule = r,
                              .effective_from = fixture_instant(at),
                              .last_fire_at = UTC_NONE,
                              .starts_at = UTC_NONE,
                              .ends_at = UTC_NONE};
}

static void check_refused(const char *text, const char *business_date, const char *part)
{
    struct fiscal_period list[3];
    const struct fiscal_periods periods = fiscal_of(list);
    struct rule r = rule_of(text, "Europe/Berlin", business_date, &periods);
    struct plan_edit e = edit_of(&r, "2030-02-26T00:00:00Z");
    struct plan_switch w;
    struct error err = {.text = ""};
    enum status s = plan_switch_find(&e, &w, &err);
    if (part == NULL) {
        assert_string_equal(err.text, "");
        assert_int_equal(s, STATUS_OK);
        assert_true(w.next.found);
    } else {
        assert_int_equal(s, STATUS_INVALID);
        assert_false(w.next.found);
        if (strstr(err.text, part) == NULL) {
            fail_msg("%s", err.text);
        }
    }
}

static void test_a_rule_that_would_report_a_period_twice_is_refused(void **state)
{
    (void)state;
    check_refused("0 6 * * *", "previous_month",
                  "fires twice for 2030-01, at 2030-02-26T06:00:00+01:00 and at "
                  "2030-02-27T06:00:00+01:00, and a period is reported once; write a rule");
    check_refused("0 6 * * 1", "current_quarter", "fires twice for 2030-Q1");
    check_refused("0 6 1 * 1", "previous_month", "fires twice for 2030-");
    check_refused("0 6 * * 1,5", "previous_week", "fires twice for 2030-W");
    check_refused("0 6 * * *", "fiscal_period(acme)", "fires twice for FY2030-P01");
    check_refused("* * 1 * *", "previous_month", "fires twice for 2030-02");
    /* A leap day comes years later. */
    check_refused("0 6 1 1 *", "current_month", NULL);
    check_refused("0 6 28,29 2 *", "current_month", "fires twice for 2032-02");
    check_refused("0 6 1 * *", "previous_month", NULL);
    check_refused("0 6 L * *", "current_month", NULL);
    check_refused("0 6 5 1,4,7,10 *", "previous_quarter", NULL);
    check_refused("0 6 * * 1", "previous_week", NULL);
    check_refused("0 6 * * *", "t_minus(1)", NULL);
}

static void test_the_form_of_keys_cannot_change_between_periods_and_dates(void **state)
{
    (void)state;
    static const struct {
        enum key_form form;
        const char *business_date;
        const char *part; /* NULL: taken in */
    } edits[] = {
        {KEY_MONTH, "previous_month", NULL},
        {KEY_MONTH, "current_month", NULL},
        {KEY_MONTH, "run_date", "known by their month, and by the new business_date"},
        {KEY_MONTH, "previous_quarter", "known by their month, and by the new business_date"},
        {KEY_FISCAL, "previous_month", "known by their fiscal period, and by the new"},
        {KEY_DATE, "previous_month", "known by their date, and by the new business_date"},
        {KEY_SECOND, "previous_month", "known by their second, and by the new business_date"},
        {KEY_DATE, "t_minus(5)", NULL},
        {KEY_SECOND, "t_minus(5)", NULL},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        struct rule r = rule_of("0 6 1 1,4,7,10 *", "UTC", edits[i].business_date, NULL);
        struct plan_edit e = edit_of(&r, "2030-02-26T00:00:00Z");
        struct plan_switch w;
        struct error err = {.text = ""};
        e.has_form = true;
        e.form = edits[i].form;
        enum status s = plan_switch_find(&e, &w, &err);
        assert_int_equal(s, edits[i].part == NULL ? STATUS_OK : STATUS_INVALID);
        assert_true(edits[i].part == NULL || strstr(err.text, edits[i].part) != NULL);
        assert_true(w.has_form && w.form == edits[i].form);
    }
}

/* On the 3rd the 5th becomes the 2nd: the month that was still to come is reported at once. */
static void test_an_edit_passes_over_no_period(void **state)
{
    (void)state;
    struct rule r = rule_of("0 6 2 * *", "UTC", "previous_month", NULL);
    struct plan_edit e = edit_of(&r, "2030-04-03T12:00:00Z");
    struct plan_switch w;
    e.has_form = e.has_next = e.has_last = true;
    e.form = KEY_MONTH;
    e.last_fire_at = fixture_instant("2030-03-05T06:00:00Z");
    e.last_nominal = local_of("2030-03-05T06:00");
    e.next_nominal = local_of("2030-04-05T06:00");
    memcpy(e.highest_key, "2030-02", sizeof "2030-02");
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    assert_true(w.next.found && w.next.at.us == fixture_instant("2030-04-02T06:00:00Z").us);
    assert_false(w.doubtful);
    /* It had been reported: the next month. */
    e.last_fire_at = fixture_instant("2030-04-02T06:00:00Z");
    e.last_nominal = local_of("2030-04-02T06:00");
    e.next_nominal = local_of("2030-05-02T06:00");
    memcpy(e.highest_key, "2030-03", sizeof "2030-03");
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    assert_true(w.next.at.us == fixture_instant("2030-05-02T06:00:00Z").us);
}

/* The version before fires by `old` and the last time at `last`, at `at` comes the new one. */
struct about_edit {
    const char *old, *old_about, *rule, *about;
    const char *at, *last, *next; /* last: "" when nothing has run */
    const char *passed;           /* "": nothing is passed over */
    const char *first;            /* of the new version */
};

static void check_about_edit(const struct about_edit *c)
{
    struct fiscal_period list[3];
    const struct fiscal_periods periods = fiscal_of(list);
    struct rule old = rule_of(c->old, "UTC", c->old_about, &periods);
    struct rule r = rule_of(c->rule, "UTC", c->about, &periods);
    struct plan_edit e = edit_of(&r, c->at);
    struct plan_switch w;
    char at[32];
    char text[2 * KEY_MAX_BYTES + 32] = "";
    e.has_form = e.has_next = true;
    e.form = key_form_of_rule(&old);
    e.next_nominal = local_of(c->next);
    e.next_about = plan_period_of(&old, e.next_nominal);
    if (c->last[0] != '\0') {
        struct firing last = {.found = true, .nominal = local_of(c->last)};
        (void)snprintf(at, sizeof at, "%s:00Z", c->last);
        e.last_fire_at = fixture_instant(at);
        e.has_last = true;
        e.last_nominal = last.nominal;
        e.last_about = plan_period_of(&old, last.nominal);
        last.about = rule_about(&old, last.nominal);
        key_format(e.form, &last, e.highest_key);
    }
    struct error err = {.text = ""};
    if (plan_switch_find(&e, &w, &err) != STATUS_OK) {
        fail_msg("%s %s to %s %s: %s", c->old, c->old_about, c->rule, c->about, err.text);
    }
    if (w.passed.firings > 0) {
        assert_int_equal(w.passed.reason, GAP_PASSED_OVER);
        assert_true(w.passed.to.us <= e.last_fire_at.us && w.passed.from.us <= w.passed.to.us);
        (void)snprintf(text, sizeof text, "%s..%s %lld", w.passed.from_key, w.passed.to_key,
                       (long long)w.passed.firings);
    }
    char first[KEY_MAX_BYTES];
    key_format(e.form, &w.next, first);
    if (strcmp(text, c->passed) != 0 || strcmp(first, c->first) != 0) {
        fail_msg("%s %s to %s %s at %s: passed %s, then %s", c->old, c->old_about, c->rule,
                 c->about, c->at, text, first);
    }
}

static void test_an_edit_of_business_date_tells_which_periods_it_passes_over(void **state)
{
    (void)state;
    static const struct about_edit edits[] = {
        /* The rule stays. */
        {"0 6 5 * *", "previous_month", "0 6 5 * *", "current_month", "2030-03-30T00:00:00Z",
         "2030-03-05T06:00", "2030-04-05T06:00", "2030-03..2030-03 1", "2030-04"},
        {"0 6 * * 1", "previous_week", "0 6 * * 1", "current_week", "2030-04-10T00:00:00Z",
         "2030-04-08T06:00", "2030-04-15T06:00", "2030-W15..2030-W15 1", "2030-W16"},
        {"0 6 5 1,4,7,10 *", "previous_quarter", "0 6 5 1,4,7,10 *", "current_quarter",
         "2030-02-10T00:00:00Z", "2030-01-05T06:00", "2030-04-05T06:00", "2030-Q1..2030-Q1 1",
         "2030-Q2"},
        /* A cut-off that goes moves it as well. */
        {"0 3 1 * *", "previous_month cutoff 06:00", "0 3 1 * *", "previous_month",
         "2030-03-30T00:00:00Z", "2030-03-01T03:00", "2030-04-01T03:00", "2030-02..2030-02 1",
         "2030-03"},
        /* Announced for far ahead: what was due meanwhile is the old version's. */
        {"0 6 5 * *", "previous_month", "0 6 5 * *", "current_month", "2030-09-30T00:00:00Z",
         "2030-09-05T06:00", "2030-10-05T06:00", "2030-09..2030-09 1", "2030-10"},
        /* The rule too: its time for the period is past, and behind what has run. */
        {"0 6 5 * *", "previous_month", "0 6 6 * *", "current_month", "2030-03-30T00:00:00Z",
         "2030-03-05T06:00", "2030-04-05T06:00", "", "2030-03"},
        {"0 6 5 * *", "previous_month", "0 6 2 * *", "current_month", "2030-03-30T00:00:00Z",
         "2030-03-05T06:00", "2030-04-05T06:00", "2030-03..2030-03 1", "2030-04"},
        {"0 6 5 * *", "previous_month", "0 18 L * *", "current_month", "2030-03-30T00:00:00Z",
         "2030-03-05T06:00", "2030-04-05T06:00", "", "2030-03"},
        {"0 6 5 * *", "previous_month", "0 18 L * *", "current_month", "2030-04-03T00:00:00Z",
         "2030-03-05T06:00", "2030-04-05T06:00", "", "2030-03"},
        /* Nothing has run: it is due at once, as a date is. */
        {"0 6 5 * *", "previous_month", "0 6 5 * *", "current_month", "2030-03-30T00:00:00Z", "",
         "2030-04-05T06:00", "", "2030-03"},
        /* The reverse passes nothing over; that its first key is taken is settled elsewhere. */
        {"0 6 5 * *", "current_month", "0 6 5 * *", "previous_month", "2030-03-30T00:00:00Z",
         "2030-03-05T06:00", "2030-04-05T06:00", "", "2030-03"},
        /* The same about other words: nothing changes. */
        {"0 6 5 * *", "previous_month", "0 6 5 * *", "previous_month cutoff 05:00",
         "2030-03-30T00:00:00Z", "2030-03-05T06:00", "2030-04-05T06:00", "", "2030-03"},
        {"0 3 25 2,3 *", "fiscal_period(acme) cutoff 06:00", "0 3 25 2,3 *", "fiscal_period(acme)",
         "2030-03-01T00:00:00Z", "2030-02-25T03:00", "2030-03-25T03:00", "FY2030-P01..FY2030-P01 1",
         "FY2030-P02"},
    };
    for (size_t i = 0; i < sizeof edits / sizeof edits[0]; i++) {
        check_about_edit(&edits[i]);
    }
}

/* ---- planning ---- */

static const char *planned(const struct plan_subject *s, const char *now, struct error *err)
{
    static struct plan_window window;
    static char told[600];
    struct planned_firing firings[8];
    struct planned_gap gaps[8];
    struct plan_sink sink = {.firings = firings, .firing_max = 8, .gaps = gaps, .gap_max = 8};
    struct plan_result result;
    told[0] = '\0';
    enum status status = plan_schedule(s, fixture_instant(now), 0, &window, &sink, &result, err);
    assert_true(status == STATUS_OK || (sink.firing_count == 0 && sink.gap_count == 0));
    for (size_t i = 0; i < sink.firing_count; i++) {
        const struct planned_firing *f = &firings[i];
        char date[DATE_TEXT_MAX];
        char from[RFC3339_TEXT_MAX] = "-";
        char to[RFC3339_TEXT_MAX];
        business_date_format(&f->firing, date);
        if (!utc_is_none(f->window_start)) {
            rfc3339_format_utc(f->window_start, from);
        }
        rfc3339_format_utc(f->window_end, to);
        size_t used = strlen(told);
        (void)snprintf(told + used, sizeof told - used, "%s%s %s %.13s..%.13s", i > 0 ? ", " : "",
                       f->key, date, from, to);
    }
    for (size_t i = 0; i < sink.gap_count; i++) {
        size_t used = strlen(told);
        (void)snprintf(told + used, sizeof told - used, "; %s %s..%s",
                       gap_reason_name(gaps[i].reason), gaps[i].from_key, gaps[i].to_key);
    }
    return told;
}

static void test_a_month_is_planned_with_its_local_days_as_window(void **state)
{
    (void)state;
    struct rule r = rule_of("0 6 1 * *", "Europe/Berlin", "previous_month", NULL);
    struct plan_subject s = fixture_subject(&r, "2030-03-31T00:00:00Z");
    /* The clock is put forward on its last day. */
    assert_string_equal(planned(&s, "2030-04-01T04:00:10Z", NULL),
                        "2030-03 2030-03-31 2030-02-28T23..2030-03-31T22");
    s.misfire_age_us = INT64_C(400) * 86400 * 1000000;
    assert_string_equal(planned(&s, "2030-06-20T00:00:00Z", NULL),
                        "2030-03 2030-03-31 2030-02-28T23..2030-03-31T22, "
                        "2030-04 2030-04-30 2030-03-31T22..2030-04-30T22, "
                        "2030-05 2030-05-31 2030-04-30T22..2030-05-31T22");
    s.misfire = MISFIRE_COALESCE;
    assert_string_equal(planned(&s, "2030-06-20T00:00:00Z", NULL),
                        "2030-05 2030-05-31 2030-02-28T23..2030-05-31T22; "
                        "coalesced 2030-03..2030-04");
    assert_string_equal(planned(&s, "2030-06-01T04:00:10Z", NULL),
                        "2030-05 2030-05-31 2030-02-28T23..2030-05-31T22; "
                        "coalesced 2030-03..2030-04");
}

static void test_dates_keep_their_keys_and_windows(void **state)
{
    (void)state;
    struct rule r = rule_of("0 6 * * *", "UTC", "t_minus(1)", NULL);
    struct plan_subject s = fixture_subject(&r, "2030-04-11T00:00:00Z");
    assert_string_equal(planned(&s, "2030-04-12T07:00:00Z", NULL),
                        "2030-04-11 2030-04-10 -..2030-04-11T06, "
                        "2030-04-12 2030-04-11 2030-04-11T06..2030-04-12T06");
}

static void test_what_cannot_be_told_is_a_problem_and_what_lies_before_is_planned(void **state)
{
    (void)state;
    struct fiscal_period list[3];
    const struct fiscal_periods periods = fiscal_of(list);
    struct rule r = rule_of("0 6 1 * *", "UTC", "fiscal_period(acme)", &periods);
    struct plan_subject s = fixture_subject(&r, "2030-03-20T00:00:00Z");
    struct error err = {.text = ""};
    s.misfire_age_us = INT64_C(400) * 86400 * 1000000;
    assert_string_equal(planned(&s, "2030-05-20T00:00:00Z", &err),
                        "FY2030-P02 2030-03-24 2030-02-25T00..2030-03-25T00");
    s.last_fire_at = fixture_instant("2030-04-01T06:00:00Z");
    assert_string_equal(planned(&s, "2030-05-20T00:00:00Z", &err), "");
    assert_string_equal(err.text, "fiscal calendar acme has no period with 2030-05-01; insert it "
                                  "into reports.fiscal_period, and it goes on");
    /* Several in one: all or nothing. */
    s.last_fire_at = UTC_NONE;
    s.misfire = MISFIRE_COALESCE;
    err.text[0] = '\0';
    assert_string_equal(planned(&s, "2030-05-20T00:00:00Z", &err), "");
    assert_non_null(strstr(err.text, "no period with 2030-05-01"));
    /* A gap is recorded all the same, by dates where there are no labels. */
    s.misfire = MISFIRE_DEFAULT;
    s.withheld = true;
    s.withheld_reason = GAP_PAUSED;
    assert_string_equal(planned(&s, "2030-05-20T00:00:00Z", NULL),
                        "; paused FY2030-P02..2030-05-01");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_periods_go_with_no_interval_and_no_time_that_runs_twice),
        cmocka_unit_test(test_a_rule_that_would_report_a_period_twice_is_refused),
        cmocka_unit_test(test_the_form_of_keys_cannot_change_between_periods_and_dates),
        cmocka_unit_test(test_an_edit_passes_over_no_period),
        cmocka_unit_test(test_an_edit_of_business_date_tells_which_periods_it_passes_over),
        cmocka_unit_test(test_a_month_is_planned_with_its_local_days_as_window),
        cmocka_unit_test(test_dates_keep_their_keys_and_windows),
        cmocka_unit_test(test_what_cannot_be_told_is_a_problem_and_what_lies_before_is_planned),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
