/* What stands beside a rule (policies for changes of the clock, jitter, dates, dialect) is planned
 * by on a real PostgreSQL, and the ledger proves it. The stories lie at fixed times in the past. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_edits.h"
#include "fixture_verify.h"
#include "ledger.h"
#include "rule.h"

struct story {
    const char *name, *kind, *rule, *zone;
    const char *since, *until; /* it is in force from, and ends at */
    const char *more;          /* ", column = value" in the form of SET, or NULL */
};

/* As if it had been written when it came into force; whatever it missed since is run. */
static void write_story(const struct story *t)
{
    (void)fixture_sql(
        "INSERT INTO reports.schedule (name, report, kind, rule, time_zone, start_local) "
        "VALUES ('%s', 'nothing', '%s', '%s', '%s', %s)",
        t->name, t->kind, t->rule, t->zone,
        strcmp(t->kind, "rrule") == 0 ? "'2026-01-05 06:00'" : "NULL");
    (void)fixture_sql("UPDATE reports.schedule SET misfire = 'run_all', misfire_max = 1000, "
                      "misfire_age = '3660 days', ends_at = '%s' %s WHERE name = '%s'",
                      t->until, t->more != NULL ? t->more : "", t->name);
    fixture_written_at(t->name, t->since);
}

/* "key@instant" of all occurrences, by time. */
static const char *firings(const char *schedule)
{
    return fixture_sql(
        "SELECT string_agg(occurrence_key || '@' || to_char(scheduled_for AT TIME ZONE 'UTC', "
        "'MM-DD\"T\"HH24:MI:SS'), ' ' ORDER BY scheduled_for) FROM reports.occurrence "
        "WHERE schedule = '%s'",
        schedule);
}

static void check_proved(void)
{
    int days = (int)fixture_count("SELECT now()::date - '2026-01-01'::date");
    fixture_proved(days, 1);
    assert_int_equal(fixture_verified()->not_yet, 0);
}

struct told {
    struct story story;
    const char *want; /* firings */
};

static void check_stories(const struct told *told, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        write_story(&told[i].story);
    }
    fixture_lead_once();
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(fixture_problem(told[i].story.name), "");
        assert_string_equal(firings(told[i].story.name), told[i].want);
    }
    check_proved();
}

#define CHECK_STORIES(...)                                                                         \
    check_stories((const struct told[]){__VA_ARGS__},                                              \
                  sizeof((const struct told[]){__VA_ARGS__}) / sizeof(struct told))

#define GAP_STORY     "2026-03-28T00:00:00Z", "2026-03-31T00:00:00Z"
#define OVERLAP_STORY "2026-10-24T00:00:00Z", "2026-10-26T00:00:00Z"

static void test_a_time_that_the_clock_jumps_over_follows_the_rows_policy(void **state)
{
    (void)state;
    CHECK_STORIES(
        {{"auto", "cron", "30 2 * * *", "Europe/Berlin", GAP_STORY, NULL},
         "2026-03-28@03-28T01:30:00 2026-03-29@03-29T01:00:00 2026-03-30@03-30T00:30:00"},
        {{"shift", "cron", "30 2 * * *", "Europe/Berlin", GAP_STORY, ", dst_gap = 'shift'"},
         "2026-03-28@03-28T01:30:00 2026-03-29@03-29T01:30:00 2026-03-30@03-30T00:30:00"},
        {{"skip", "cron", "30 2 * * *", "Europe/Berlin", GAP_STORY, ", dst_gap = 'skip'"},
         "2026-03-28@03-28T01:30:00 2026-03-30@03-30T00:30:00"});
}

static void test_a_time_that_the_clock_shows_twice_follows_the_rows_policy(void **state)
{
    (void)state;
    CHECK_STORIES(
        {{"first", "cron", "30 2 * * *", "Europe/Berlin", OVERLAP_STORY, NULL},
         "2026-10-24@10-24T00:30:00 2026-10-25@10-25T00:30:00"},
        {{"second", "cron", "30 2 * * *", "Europe/Berlin", OVERLAP_STORY,
          ", dst_overlap = 'second'"},
         "2026-10-24@10-24T00:30:00 2026-10-25@10-25T01:30:00"},
        {{"twice", "cron", "30 2 * * *", "Europe/Berlin", OVERLAP_STORY, ", dst_overlap = 'both'"},
         "2026-10-24@10-24T00:30:00 2026-10-25+02:00@10-25T00:30:00 "
         "2026-10-25+01:00@10-25T01:30:00"});
}

static void test_rules_with_seconds_and_a_year_are_planned(void **state)
{
    (void)state;
    CHECK_STORIES({{"six", "cron", "0,30 0 6 * * *", "UTC", "2026-10-24T00:00:00Z",
                    "2026-10-25T00:00:00Z", NULL},
                   "2026-10-24T06:00:00@10-24T06:00:00 2026-10-24T06:00:30@10-24T06:00:30"},
                  {{"seven", "cron", "30 0 6 24 10 * 2026", "UTC", "2026-01-01T00:00:00Z",
                    "2026-11-01T00:00:00Z", NULL},
                   "2026-10-24@10-24T06:00:30"});
}

static void test_a_recurrence_rule_is_planned_with_its_dates(void **state)
{
    (void)state;
    /* Every second Monday from 5 January on, but for 26 October; and 18 November. */
    CHECK_STORIES({{"fortnight", "rrule", "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "Europe/Berlin",
                    "2026-10-01T00:00:00Z", "2026-11-20T00:00:00Z",
                    ", exdates = '{2026-10-26 06:00}', rdates = '{2026-11-18 06:00}'"},
                   "2026-10-12@10-12T04:00:00 2026-11-09@11-09T05:00:00 2026-11-18@11-18T05:00:00"},
                  {{"hours", "rrule", "FREQ=HOURLY;INTERVAL=9", "UTC", "2026-10-24T00:00:00Z",
                    "2026-10-25T00:00:00Z", NULL},
                   "2026-10-24T00:00@10-24T00:00:00 2026-10-24T09:00@10-24T09:00:00 "
                   "2026-10-24T18:00@10-24T18:00:00"});
}

static void test_a_rule_of_quartz_is_kept_and_planned_by_what_it_means(void **state)
{
    (void)state;
    /* 2 is Monday there. */
    CHECK_STORIES({{"quartz", "cron", "0 0 6 ? * 2-3", "UTC", "2026-10-24T00:00:00Z",
                    "2026-10-31T00:00:00Z", ", dialect = 'quartz'"},
                   "2026-10-26@10-26T06:00:00 2026-10-27@10-27T06:00:00"});
    assert_string_equal(fixture_sql("SELECT rule || ' = ' || rule_std FROM "
                                    "reports.v_schedule_version WHERE in_force"),
                        "0 0 6 ? * 2-3 = 0 6 * * 1-2");
    /* Back in the other dialect nothing is left of it. */
    fixture_edit("quartz", "dialect = 'std', rule = '0 6 * * 1'", "0 seconds");
    fixture_lead_once();
    assert_string_equal(fixture_problem("quartz"), "");
    assert_string_equal(fixture_sql("SELECT rule_std IS NULL FROM reports.schedule_progress"), "t");
}

static void test_a_bad_rule_of_quartz_is_the_schedules_problem(void **state)
{
    (void)state;
    write_story(&(struct story){"quartz", "cron", "0 0 6 * * 2-3", "UTC", "2026-10-24T00:00:00Z",
                                "2026-10-31T00:00:00Z", ", dialect = 'quartz'"});
    fixture_lead_once();
    assert_non_null(strstr(fixture_problem("quartz"), "cron \"0 0 6 * * 2-3\""));
}

/* Hours of 24 October under a jitter of up to an hour. */
static const struct story SPREAD = {"spread",
                                    "cron",
                                    "0 4-7 * * *",
                                    "UTC",
                                    "2026-10-24T00:00:00Z",
                                    "2026-10-25T00:00:00Z",
                                    ", jitter_s = 3600"};

static void test_jitter_moves_when_a_firing_is_due_and_nothing_else(void **state)
{
    (void)state;
    int64_t delay_s = rule_jitter_us("spread", 3600) / MICROS_A_SECOND;
    assert_true(delay_s > 60);
    write_story(&SPREAD);
    fixture_lead_once();
    assert_string_equal(fixture_sql("SELECT string_agg(occurrence_key, ' ' ORDER BY scheduled_for) "
                                    "FROM reports.occurrence"),
                        "2026-10-24T04:00 2026-10-24T05:00 2026-10-24T06:00 2026-10-24T07:00");
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.occurrence WHERE "
                      "extract(epoch FROM scheduled_for - nominal_local AT TIME ZONE 'UTC') = %lld "
                      "AND window_end = nominal_local AT TIME ZONE 'UTC' "
                      "AND window_start IS NOT DISTINCT FROM CASE WHEN nominal_local > "
                      "'2026-10-24 04:00' THEN window_end - interval '1 hour' END",
                      (long long)delay_s),
        4);
    check_proved();
}

static void test_another_jitter_loses_and_repeats_no_firing(void **state)
{
    (void)state;
    int64_t delay_s = rule_jitter_us("spread", 3600) / MICROS_A_SECOND;
    struct story t = SPREAD;
    t.until = "2030-01-01T00:00:00Z";
    write_story(&t);
    /* While the firing of 05:00 is held back, there is none any more, and again while that of 06:00
     * would be. */
    fixture_edit("spread", "jitter_s = 0", "0 seconds");
    fixture_edit("spread", "jitter_s = 3600, ends_at = '2026-10-25T00:00:00Z'", "0 seconds");
    (void)fixture_sql("UPDATE reports.schedule_version SET effective_from = CASE version WHEN 3 "
                      "THEN timestamptz '2026-10-24T05:00:00Z' + interval '1 s' ELSE "
                      "timestamptz '2026-10-24T06:00:00Z' + %lld * interval '1 s' END "
                      "WHERE version > 2",
                      (long long)(delay_s - 1));
    fixture_lead_once();
    assert_string_equal(fixture_problem("spread"), "");
    assert_string_equal(
        fixture_sql("SELECT string_agg(right(occurrence_key, 5) || ' v' || version || ' +' || "
                    "CASE WHEN scheduled_for = nominal_local AT TIME ZONE 'UTC' THEN '0' ELSE 'j' "
                    "END, ', ' ORDER BY occurrence_key) FROM reports.occurrence"),
        "04:00 v2 +j, 05:00 v3 +0, 06:00 v3 +0, 07:00 v4 +j");
    assert_string_equal(fixture_gaps("spread"), "");
    check_proved();
}

static void test_a_gap_of_a_broken_version_has_its_delay(void **state)
{
    (void)state;
    int64_t delay_s = rule_jitter_us("spread", 3600) / MICROS_A_SECOND;
    assert_in_range(delay_s, 1, 3599);
    struct story t = SPREAD;
    t.until = "2030-01-01T00:00:00Z";
    write_story(&t);
    /* Broken while that of 05:00 is held back; mended, without a delay, while that of 06:00 is. */
    fixture_edit("spread", "rule = '0 6 30 2 *'", "0 seconds");
    fixture_edit("spread", "rule = '0 4-7 * * *', jitter_s = 0, ends_at = '2026-10-25T00:00:00Z'",
                 "0 seconds");
    (void)fixture_sql("UPDATE reports.schedule_version SET effective_from = CASE version WHEN 3 "
                      "THEN timestamptz '2026-10-24T05:00:01Z' ELSE "
                      "timestamptz '2026-10-24T06:00:00Z' + %lld * interval '1 s' END "
                      "WHERE version > 2",
                      (long long)(delay_s - 1));
    fixture_lead_once();
    assert_string_equal(
        fixture_sql("SELECT string_agg(right(occurrence_key, 5) || ' v' || version, ', ' ORDER BY "
                    "occurrence_key) FROM reports.occurrence"),
        "04:00 v2, 06:00 v4, 07:00 v4");
    assert_string_equal(fixture_gaps("spread"),
                        "problem_mended 1 2026-10-24T05:00..2026-10-24T05:00");
    check_proved();
}

static void test_what_was_missed_is_one_run_with_one_window(void **state)
{
    (void)state;
    struct story t = SPREAD;
    t.more = NULL;
    write_story(&t);
    (void)fixture_sql("UPDATE reports.schedule_version SET misfire = 'coalesce'");
    fixture_lead_once();
    assert_string_equal(
        fixture_sql("SELECT string_agg(occurrence_key || ' ' || cause || ' ' || "
                    "coalesce(to_char(window_start AT TIME ZONE 'UTC', 'HH24:MI'), 'ever') || ' ' "
                    "|| to_char(window_end AT TIME ZONE 'UTC', 'HH24:MI'), ', ') "
                    "FROM reports.occurrence"),
        "2026-10-24T07:00 misfire ever 07:00");
    assert_string_equal(fixture_gaps("spread"), "coalesced 3 2026-10-24T04:00..2026-10-24T06:00");
    check_proved();
}

/* ---- edits that begin later ---- */

static void test_an_edit_may_begin_later(void **state)
{
    (void)state;
    (void)fixture_sql("INSERT INTO reports.schedule (name, report, kind, rule, misfire) VALUES "
                      "('seconds', 'nothing', 'cron', '* * * * * *', 'run_all')");
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_true(leader_step_until(&l, "SELECT count(*) > 1 FROM reports.occurrence", "t", 30000));
    /* Two seconds from now each second is followed by each other second. */
    (void)fixture_sql("UPDATE reports.schedule SET rule = '*/2 * * * * *', effective_from = "
                      "date_trunc('second', now()) + interval '2 s'");
    assert_true(leader_step_until(
        &l, "SELECT count(*) > 1 FROM reports.occurrence WHERE version = 2", "t", 30000));
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.occurrence o, reports.schedule_version v WHERE "
                      "v.version = 2 AND (o.version = 2) <> (o.scheduled_for >= v.effective_from)"),
        0);
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.occurrence o, reports.schedule_version v WHERE "
                      "v.version = 2 AND o.version = 1 AND o.scheduled_for >= v.effective_from - "
                      "interval '2 s'"),
        2);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_change"), 0);
    leader_leave(&l);
    const char *found = fixture_verify(1);
    if (strstr(found, "overdue") == NULL && found[0] != '\0') {
        fail_msg("%s", found);
    }
}

static void test_a_pause_lasts_until_an_edit_begins_and_no_longer(void **state)
{
    (void)state;
    fixture_schedule("minutes", "cron", "* * * * *", "1 hour", "paused = true");
    (void)fixture_sql("UPDATE reports.schedule SET paused = false, effective_from = "
                      "date_trunc('minute', now()) + interval '1 day'");
    fixture_lead_once();
    /* What is still to come is in no gap. */
    assert_string_equal(fixture_gaps("minutes"), "");
    assert_int_equal(fixture_count("SELECT version FROM reports.schedule_progress"), 2);
    /* An edit that begins now takes its place. */
    (void)fixture_sql("UPDATE reports.schedule SET effective_from = NULL");
    fixture_lead_once();
    fixture_lead_once();
    assert_int_equal(fixture_count("SELECT version FROM reports.schedule_progress"), 4);
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.schedule_gap WHERE reason = "
                      "'paused' AND firings BETWEEN 59 AND 62 AND to_fire_at <= now()"),
        1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_time_that_the_clock_jumps_over_follows_the_rows_policy),
        cmocka_unit_test(test_a_time_that_the_clock_shows_twice_follows_the_rows_policy),
        cmocka_unit_test(test_rules_with_seconds_and_a_year_are_planned),
        cmocka_unit_test(test_a_recurrence_rule_is_planned_with_its_dates),
        cmocka_unit_test(test_a_rule_of_quartz_is_kept_and_planned_by_what_it_means),
        cmocka_unit_test(test_a_bad_rule_of_quartz_is_the_schedules_problem),
        cmocka_unit_test(test_jitter_moves_when_a_firing_is_due_and_nothing_else),
        cmocka_unit_test(test_another_jitter_loses_and_repeats_no_firing),
        cmocka_unit_test(test_a_gap_of_a_broken_version_has_its_delay),
        cmocka_unit_test(test_what_was_missed_is_one_run_with_one_window),
        cmocka_unit_test(test_an_edit_may_begin_later),
        cmocka_unit_test(test_a_pause_lasts_until_an_edit_begins_and_no_longer),
    };
    return fixture_plan_run("rs_it_planning_rules", tests, sizeof tests / sizeof tests[0], NULL);
}
