/* What firings are about is planned, proved by the ledger, and the same in SQL and in C, on a real
 * PostgreSQL. The stories lie at fixed times in the past. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "business_date.h"
#include "fixture_edits.h"
#include "fixture_verify.h"
#include "ledger.h"

struct story {
    const char *name, *rule, *zone, *business_date;
    const char *since, *until; /* it is in force from, and ends at */
    const char *more;          /* ", column = value" in the form of SET, or "" */
};

/* As if it had been written when it came into force; whatever it missed since is run. */
static void write_story(const struct story *t)
{
    (void)fixture_sql("INSERT INTO reports.schedule (name, report, kind, rule, time_zone) "
                      "VALUES ('%s', 'nothing', 'cron', '%s', '%s')",
                      t->name, t->rule, t->zone);
    (void)fixture_sql("UPDATE reports.schedule SET misfire = 'run_all', misfire_max = 1000, "
                      "misfire_age = '3660 days', ends_at = '%s', business_date = '%s' %s "
                      "WHERE name = '%s'",
                      t->until, t->business_date, t->more, t->name);
    fixture_written_at(t->name, t->since);
}

static void write_calendars(void)
{
    (void)fixture_sql("INSERT INTO reports.calendar (name) VALUES ('office'), ('works')");
    (void)fixture_sql("INSERT INTO reports.calendar (name, combine) VALUES ('both', 'union')");
    (void)fixture_sql("INSERT INTO reports.calendar_day (calendar, day, kind) VALUES "
                      "('office', '2026-04-03', 'holiday'), ('office', '2026-04-06', 'holiday'), "
                      "('works', '2026-04-11', 'working'), ('works', '2026-04-09', 'holiday')");
    (void)fixture_sql("INSERT INTO reports.calendar_part VALUES ('both', 'office'), "
                      "('both', 'works')");
    (void)fixture_sql("INSERT INTO reports.fiscal_period VALUES "
                      "('acme', 'FY2026-P01', '2026-01-26', '2026-02-22'), "
                      "('acme', 'FY2026-P02', '2026-02-23', '2026-03-22'), "
                      "('acme', 'FY2026-P03', '2026-03-23', '2026-04-26')");
}

/* "key date" of all occurrences, by time. */
static const char *firings(const char *schedule)
{
    return fixture_sql("SELECT string_agg(occurrence_key || ' ' || business_date, ', ' ORDER BY "
                       "scheduled_for) FROM reports.occurrence WHERE schedule = '%s'",
                       schedule);
}

static void check_proved(void)
{
    int days = (int)fixture_count("SELECT now()::date - '2025-12-01'::date");
    fixture_proved(days, 1);
    assert_int_equal(fixture_verified()->not_yet, 0);
}

/* For each occurrence that the planner made SQL says the same days, key and window. */
static void check_sql_agrees(void)
{
    assert_string_equal(
        fixture_sql(
            "SELECT string_agg(format('%%s:%%s %%s..%%s %%s', o.schedule, o.occurrence_key, "
            "a.first_day, a.last_day, a.label), ', ') FROM reports.occurrence o JOIN "
            "reports.schedule_version v USING (schedule, version) JOIN reports.schedule_progress p "
            "USING (schedule) CROSS JOIN LATERAL reports.business_about(v, o.nominal_local) a "
            "CROSS JOIN LATERAL reports.manual_about(v, o.occurrence_key, o.scheduled_for) m "
            "WHERE a.last_day IS DISTINCT FROM o.business_date OR m.business_date IS DISTINCT FROM "
            "o.business_date OR CASE WHEN reports.key_form_of_periods(v.business_date) IS NULL "
            "THEN a.label IS NOT NULL OR p.key_form NOT IN ('date', 'minute') "
            "ELSE (a.label, m.window_start, m.window_end, reports.key_form_of_periods("
            "v.business_date)) IS DISTINCT FROM (o.occurrence_key, o.window_start, o.window_end, "
            "p.key_form) END"),
        "");
}

static const struct story STORIES[] = {
    {"back", "0 6 * * *", "UTC", "t_minus(1)", "2026-04-01Z", "2026-04-09Z",
     ", calendar = 'office', nonbusiness = 'skip'"},
    {"back-two", "0 6,18 * * *", "UTC", "t_minus(2) cutoff 12:00", "2026-04-11Z", "2026-04-13Z",
     ", calendar = 'both'"},
    {"plain", "30 0 * * *", "Europe/Berlin", "t_minus(1)", "2026-03-29Z", "2026-04-01Z", ""},
    {"monthly", "0 6 1 * *", "Europe/Berlin", "previous_month", "2026-02-15Z", "2026-06-15Z", ""},
    {"month-end", "0 18 L * *", "America/New_York", "current_month", "2026-01-15Z", "2026-04-15Z",
     ", calendar = 'office', nonbusiness = 'preceding'"},
    {"weekly", "0 6 * * 1", "Asia/Tokyo", "previous_week", "2026-01-01Z", "2026-01-20Z", ""},
    {"quarterly", "0 6 5 1,4,7,10 *", "UTC", "previous_quarter", "2026-01-01Z", "2026-08-01Z", ""},
    {"fiscal", "0 6 25 * *", "UTC", "fiscal_period(acme)", "2026-02-24Z", "2026-03-31Z", ""},
    /* For what SQL says of them. */
    {"days", "0 6 * * *", "UTC", "t_minus(3)", "2025-10-01Z", "2026-09-01Z", ", calendar = 'both'"},
    {"weeks", "0 1 * * 3", "UTC", "previous_week cutoff 02:00", "2019-01-01Z", "2026-11-01Z", ""},
    {"quarters", "0 6 31 3,12 *", "Asia/Tokyo", "current_quarter", "2019-01-01Z", "2026-11-01Z",
     ""},
};

static void write_stories(void)
{
    write_calendars();
    for (size_t i = 0; i < sizeof STORIES / sizeof STORIES[0]; i++) {
        write_story(&STORIES[i]);
    }
    fixture_lead_once();
    for (size_t i = 0; i < sizeof STORIES / sizeof STORIES[0]; i++) {
        assert_string_equal(fixture_problem(STORIES[i].name), "");
    }
}

static void test_business_dates_and_periods_are_planned_as_the_row_says(void **state)
{
    (void)state;
    write_stories();
    assert_string_equal(firings("back"),
                        "2026-04-01 2026-03-31, 2026-04-02 2026-04-01, 2026-04-07 2026-04-02, "
                        "2026-04-08 2026-04-07");
    assert_string_equal(firings("back-two"),
                        "2026-04-11T06:00 2026-04-07, 2026-04-11T18:00 2026-04-08, "
                        "2026-04-12T06:00 2026-04-08, 2026-04-12T18:00 2026-04-08");
    assert_string_equal(firings("plain"), "2026-03-30 2026-03-29, 2026-03-31 2026-03-30, "
                                          "2026-04-01 2026-03-31");
    assert_string_equal(firings("monthly"), "2026-02 2026-02-28, 2026-03 2026-03-31, "
                                            "2026-04 2026-04-30, 2026-05 2026-05-31");
    assert_string_equal(firings("month-end"),
                        "2026-01 2026-01-31, 2026-02 2026-02-28, 2026-03 2026-03-31");
    assert_string_equal(firings("weekly"),
                        "2026-W01 2026-01-04, 2026-W02 2026-01-11, 2026-W03 2026-01-18");
    assert_string_equal(firings("quarterly"),
                        "2025-Q4 2025-12-31, 2026-Q1 2026-03-31, 2026-Q2 2026-06-30");
    assert_string_equal(firings("fiscal"), "FY2026-P01 2026-02-22, FY2026-P02 2026-03-22");
    assert_string_equal(fixture_sql("SELECT string_agg(format('%%s %%s', window_start AT TIME ZONE "
                                    "'UTC', window_end AT TIME ZONE 'UTC'), ', ' ORDER BY "
                                    "window_end) FROM reports.occurrence WHERE schedule = "
                                    "'monthly' AND occurrence_key <= '2026-03'"),
                        "2026-01-31 23:00:00 2026-02-28 23:00:00, "
                        "2026-02-28 23:00:00 2026-03-31 22:00:00");
    check_sql_agrees();
    check_proved();
}

/* ---- edits ---- */

/* The rule from an instant on. */
static void write_edit(const char *name, const char *rule, const char *from)
{
    (void)fixture_sql("UPDATE reports.schedule SET rule = '%s' WHERE name = '%s'", rule, name);
    (void)fixture_sql("UPDATE reports.schedule_version SET effective_from = '%s' WHERE schedule = "
                      "'%s' AND version = 3",
                      from, name);
}

static void test_an_edit_in_the_middle_of_a_period_passes_over_none_and_repeats_none(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {"sooner", "0 6 5 * *", "UTC", "previous_month", "2026-01-15Z", "2026-06-03Z", ""},
        {"later", "0 6 2 * *", "UTC", "previous_month", "2026-01-15Z", "2026-06-03Z", ""},
        {"long-ago", "0 6 2 * *", "UTC", "previous_month", "2026-01-15Z", "2026-06-03Z", ""},
    };
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        write_story(&stories[i]);
    }
    write_edit("sooner", "0 6 2 * *", "2026-04-03 12:00Z");
    write_edit("later", "0 6 5 * *", "2026-04-03 12:00Z");
    write_edit("long-ago", "0 6 28 * *", "2026-04-20 12:00Z");
    fixture_lead_once();
    assert_string_equal(
        fixture_sql("SELECT string_agg(occurrence_key || '@' || to_char(scheduled_for, 'MM-DD') || "
                    "' v' || version, ', ' ORDER BY scheduled_for) FROM reports.occurrence WHERE "
                    "schedule = 'sooner'"),
        "2026-01@02-05 v2, 2026-02@03-05 v2, 2026-03@04-02 v3, 2026-04@05-02 v3, 2026-05@06-02 v3");
    assert_string_equal(
        fixture_sql("SELECT string_agg(occurrence_key || '@' || to_char(scheduled_for, 'MM-DD') || "
                    "' v' || version, ', ' ORDER BY scheduled_for) FROM reports.occurrence WHERE "
                    "schedule = 'later'"),
        "2026-01@02-02 v2, 2026-02@03-02 v2, 2026-03@04-02 v2, 2026-04@05-05 v3");
    assert_string_equal(
        fixture_sql("SELECT string_agg(occurrence_key || '@' || to_char(scheduled_for, 'MM-DD') || "
                    "' v' || version, ', ' ORDER BY scheduled_for) FROM reports.occurrence WHERE "
                    "schedule = 'long-ago'"),
        "2026-01@02-02 v2, 2026-02@03-02 v2, 2026-03@04-02 v2, 2026-04@05-28 v3");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_gap"), 0);
    check_proved();
    /* Also by a span that begins behind the firings that decide. */
    const char *found =
        fixture_verify((int)fixture_count("SELECT now()::date - '2026-04-19'::date"));
    assert_string_equal(found, "");
}

/* business_date, and the rule if it is not NULL, from an instant on. */
static void write_about(const char *name, const char *business_date, const char *rule,
                        const char *from)
{
    (void)fixture_sql("UPDATE reports.schedule SET business_date = '%s', rule = coalesce(%s%s%s, "
                      "rule) WHERE name = '%s'",
                      business_date, rule != NULL ? "'" : "", rule != NULL ? rule : "NULL",
                      rule != NULL ? "'" : "", name);
    (void)fixture_sql("UPDATE reports.schedule_version SET effective_from = '%s' WHERE schedule = "
                      "'%s' AND version = (SELECT max(version) FROM reports.schedule_version WHERE "
                      "schedule = '%s')",
                      from, name, name);
}

/* "key@month-day vN" of what ran and of gaps, by time. */
static const char *ledger_of(const char *schedule)
{
    return fixture_sql(
        "SELECT string_agg(what, ', ' ORDER BY at, version) FROM (SELECT occurrence_key || '@' || "
        "to_char(scheduled_for AT TIME ZONE 'UTC', 'MM-DD') || ' v' || version AS what, "
        "scheduled_for AS at, version "
        "FROM reports.occurrence WHERE schedule = '%s' UNION ALL SELECT reason || ' ' || from_key "
        "|| '..' || to_key || ' ' || firings || ' v' || version, to_fire_at, version FROM "
        "reports.schedule_gap WHERE schedule = '%s') l",
        schedule, schedule);
}

static void test_a_period_that_an_edit_of_business_date_passes_over_is_a_gap(void **state)
{
    (void)state;
    static const struct story stories[] = {
        {"month", "0 6 5 * *", "UTC", "previous_month", "2026-01-15Z", "2026-06-03Z", ""},
        {"jittered", "0 6 5 * *", "UTC", "previous_month", "2026-01-15Z", "2026-06-03Z",
         ", jitter_s = 600"},
        {"rule-too", "0 6 5 * *", "UTC", "previous_month", "2026-01-15Z", "2026-06-03Z", ""},
        {"back", "0 6 5 * *", "UTC", "current_month", "2026-01-15Z", "2026-06-03Z", ""},
        {"unborn", "0 6 5 * *", "UTC", "previous_month", "2026-03-06Z", "2026-05-03Z", ""},
        {"twice", "0 6 5 * *", "UTC", "previous_month", "2026-01-15Z", "2026-06-03Z", ""},
    };
    for (size_t i = 0; i < sizeof stories / sizeof stories[0]; i++) {
        write_story(&stories[i]);
    }
    write_about("month", "current_month", NULL, "2026-03-30Z");
    write_about("jittered", "current_month", NULL, "2026-03-30Z");
    write_about("unborn", "current_month", NULL, "2026-03-10Z");
    write_about("rule-too", "current_month", "0 18 L * *", "2026-04-03Z");
    write_about("back", "previous_month", NULL, "2026-03-30Z");
    write_about("twice", "current_month", NULL, "2026-02-20Z");
    write_about("twice", "previous_month", NULL, "2026-02-25Z");
    fixture_lead_once();
    assert_string_equal(ledger_of("month"),
                        "2026-01@02-05 v2, 2026-02@03-05 v2, passed_over 2026-03..2026-03 1 v3, "
                        "2026-04@04-05 v3, 2026-05@05-05 v3");
    assert_string_equal(ledger_of("jittered"),
                        "2026-01@02-05 v2, 2026-02@03-05 v2, passed_over 2026-03..2026-03 1 v3, "
                        "2026-04@04-05 v3, 2026-05@05-05 v3");
    /* Before its first firing: the period that was to be the first is due at once. */
    assert_string_equal(ledger_of("unborn"), "2026-03@03-05 v3, 2026-04@04-05 v3");
    assert_string_equal(ledger_of("rule-too"), "2026-01@02-05 v2, 2026-02@03-05 v2, "
                                               "2026-03@03-31 v3, 2026-04@04-30 v3, "
                                               "2026-05@05-31 v3");
    /* The firing on the 5th of April would be about March, which has been reported. */
    assert_string_equal(ledger_of("back"), "2026-02@02-05 v2, 2026-03@03-05 v2, 2026-04@05-05 v3");
    /* Taken back before the next firing: the period is reported after all. */
    assert_string_equal(ledger_of("twice"),
                        "2026-01@02-05 v2, passed_over 2026-02..2026-02 1 v3, 2026-02@03-05 v4, "
                        "2026-03@04-05 v4, 2026-04@05-05 v4");
    check_proved();
}

/* ---- the same words on both sides ---- */

static void test_sql_and_c_agree_on_business_dates(void **state)
{
    (void)state;
    static const char *const words[] = {"run_date",        "t_minus",
                                        "previous_week",   "current_week",
                                        "previous_month",  "current_month",
                                        "current_quarter", "previous_quarter",
                                        "fiscal_period",   "current_day",
                                        "previous_year",   "fiscal",
                                        "Run_Date",        ""};
    static const char *const arguments[] = {"",          "()",   "(0)",  "(1)",  "(9)",
                                            "(10)",      "(31)", "(32)", "(01)", "(a)",
                                            "(a-b_c.4)", "(-a)", "(A)",  "(1",   "1)"};
    static const char *const cutoffs[] = {"",
                                          " cutoff 00:00",
                                          " cutoff 00:01",
                                          " cutoff 23:59",
                                          " cutoff 24:00",
                                          " cutoff 6:00",
                                          " cutoff",
                                          "cutoff 06:00",
                                          " cutoff 06:00 ",
                                          "\n"};
    int known = 0;
    for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
        for (size_t a = 0; a < sizeof arguments / sizeof arguments[0]; a++) {
            for (size_t c = 0; c < sizeof cutoffs / sizeof cutoffs[0]; c++) {
                char text[100];
                struct business_date b;
                (void)snprintf(text, sizeof text, "%s%s%s", words[w], arguments[a], cutoffs[c]);
                if (text[0] == '\0') {
                    continue; /* in C a row that says nothing */
                }
                bool here = business_date_parse(text, &b, NULL) == STATUS_OK;
                const char *there =
                    fixture_sql("SELECT concat_ws(' ', coalesce(back, 0), coalesce(fiscal, '-'), "
                                "extract(epoch FROM coalesce(cutoff, '0'))::integer, "
                                "reports.key_form_of_periods('%s') IS NOT NULL) "
                                "FROM reports.business_date_parse('%s') WHERE word IS NOT NULL",
                                text, text);
                char want[120] = "";
                if (here) {
                    (void)snprintf(want, sizeof want, "%d %s %d %c", (int)b.back,
                                   b.fiscal[0] != '\0' ? b.fiscal : "-", (int)b.cutoff_s,
                                   business_date_is_period(b.kind) ? 't' : 'f');
                }
                if (strcmp(there, want) != 0) {
                    fail_msg("\"%s\" is \"%s\" in SQL and \"%s\" in C", text, there, want);
                }
                known += here ? 1 : 0;
            }
        }
    }
    assert_true(known > 30);
}

/* ---- what cannot be planned ---- */

static void test_a_rule_that_repeats_a_period_is_a_problem_with_the_remedy(void **state)
{
    (void)state;
    static const struct story daily = {"daily",       "0 6 * * *",   "UTC", "previous_month",
                                       "2026-04-01Z", "2199-04-01Z", ""};
    write_story(&daily);
    fixture_lead_once();
    assert_non_null(strstr(fixture_problem("daily"),
                           "the rule fires twice for 2026-03, at 2026-04-01T06:00:00+00:00 and at "
                           "2026-04-02T06:00:00+00:00, and a period is reported once; write a rule "
                           "that fires once for each, or business_date = 'run_date'"));
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 0);
    /* Mended: what was due meanwhile by the mended rule is a gap, by its keys. */
    (void)fixture_sql("UPDATE reports.schedule SET rule = '0 6 1 * *'");
    fixture_lead_once();
    assert_string_equal(fixture_problem("daily"), "");
    const char *months = fixture_sql(
        "SELECT format('problem_mended %%s 2026-03..%%s', count(*), to_char(max(m) - interval '1 "
        "month', 'YYYY-MM')) FROM generate_series(timestamp '2026-04-01 06:00', "
        "clock_timestamp() AT TIME ZONE 'UTC', interval '1 month') m");
    char want[60];
    (void)snprintf(want, sizeof want, "%s", months);
    assert_string_equal(fixture_gaps("daily"), want);
    check_proved();
}

static void test_a_fiscal_period_that_is_missing_is_a_problem_until_it_is_there(void **state)
{
    (void)state;
    static const struct story fiscal = {"fiscal",      "0 6 28 * *",  "UTC", "fiscal_period(acme)",
                                        "2026-02-24Z", "2026-06-01Z", ""};
    write_calendars();
    write_story(&fiscal);
    fixture_lead_once();
    assert_string_equal(firings("fiscal"), "FY2026-P01 2026-02-22, FY2026-P02 2026-03-22");
    assert_string_equal(fixture_problem("fiscal"),
                        "fiscal calendar acme has no period with 2026-04-28; insert it into "
                        "reports.fiscal_period, and it goes on");
    (void)fixture_sql("INSERT INTO reports.fiscal_period VALUES "
                      "('acme', 'FY2026-P04', '2026-04-27', '2026-05-24'), "
                      "('acme', 'FY2026-P05', '2026-05-25', '2026-06-21')");
    fixture_lead_once();
    assert_string_equal(fixture_problem("fiscal"), "");
    assert_string_equal(fixture_gaps("fiscal"), "problem_mended 2 FY2026-P03..FY2026-P04");
    check_proved();
}

static void before_each(void)
{
    (void)fixture_sql("DELETE FROM reports.fiscal_period");
    (void)fixture_sql("DELETE FROM reports.calendar_part");
    (void)fixture_sql("DELETE FROM reports.calendar");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_business_dates_and_periods_are_planned_as_the_row_says),
        cmocka_unit_test(test_an_edit_in_the_middle_of_a_period_passes_over_none_and_repeats_none),
        cmocka_unit_test(test_a_period_that_an_edit_of_business_date_passes_over_is_a_gap),
        cmocka_unit_test(test_sql_and_c_agree_on_business_dates),
        cmocka_unit_test(test_a_rule_that_repeats_a_period_is_a_problem_with_the_remedy),
        cmocka_unit_test(test_a_fiscal_period_that_is_missing_is_a_problem_until_it_is_there),
    };
    return fixture_plan_run("rs_it_planning_business", tests, sizeof tests / sizeof tests[0],
                            before_each);
}
