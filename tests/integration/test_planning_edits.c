/* Edits on a real PostgreSQL: what was due before one is not lost, and what cannot be is said. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_leader.h"

static void test_a_rule_our_parser_refuses_is_a_problem_and_stops_nothing(void **state)
{
    (void)state;
    fixture_schedule("zone", "cron", "0 0 * * *", "1 day",
                     "time_zone = 'CEST'"); /* PostgreSQL takes it */
    fixture_schedule("never", "cron", "0 0 31 2 *", "1 day", NULL);
    fixture_schedule("seconds", "interval", "1 day", "36 hours", "anchor = 'infinity'");
    fixture_schedule("good", "cron", "0 0 * * *", "1 day", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 1);
    assert_non_null(strstr(fixture_problem("zone"), "CEST"));
    assert_true(fixture_problem("never")[0] != '\0');
    assert_non_null(strstr(fixture_problem("seconds"), "anchor"));
    assert_string_equal(fixture_problem("good"), "");
    /* The author mends it and it plans from then on. */
    (void)fixture_sql(
        "UPDATE reports.schedule SET time_zone = 'Europe/Berlin' WHERE name = 'zone'");
    (void)leader_settle(&l);
    assert_string_equal(fixture_problem("zone"), "");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_progress WHERE schedule "
                                   "= 'zone' AND next_fire_at > now()"),
                     1);
    leader_leave(&l);
}

static void test_an_edit_in_an_outage_splits_what_was_due_between_the_versions(void **state)
{
    (void)state;
    fixture_schedule("half", "cron", "* * * * *", "60 minutes",
                     "misfire = 'run_all', misfire_max = 1000, misfire_grace = '1 second'");
    (void)fixture_sql("UPDATE reports.schedule SET rule = '*/2 * * * *' WHERE name = 'half'");
    (void)fixture_sql("UPDATE reports.schedule_version SET effective_from = clock_timestamp() - "
                      "interval '30 minutes' WHERE version = 3");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    /* Every minute of the first half under version 2, every other one of the second under 3: what
     * is wanted and not there, and what is there and not wanted. */
    assert_string_equal(
        fixture_sql(
            "WITH e AS (SELECT min(effective_from) FILTER (WHERE version = 2) AS a, "
            "min(effective_from) FILTER (WHERE version = 3) AS b FROM reports.schedule_version), "
            "w AS (SELECT g, 2 AS version FROM e, generate_series(date_trunc('minute', a) + "
            "interval '1 minute', b - interval '1 us', '1 minute') g "
            "UNION ALL SELECT g, 3 FROM e, generate_series(date_trunc('minute', b) + "
            "interval '1 minute', clock_timestamp(), '1 minute') g "
            "WHERE extract(minute FROM g)::integer %% 2 = 0 AND g <= (SELECT last_fire_at FROM "
            "reports.schedule_progress)) "
            "SELECT (count(*) FILTER (WHERE o.schedule IS NOT NULL AND w.g IS NOT NULL) >= 44) || "
            "' ' || count(*) FILTER (WHERE o.schedule IS NULL) || ' ' || "
            "count(*) FILTER (WHERE w.g IS NULL) FROM w FULL JOIN reports.occurrence o "
            "ON o.scheduled_for = w.g AND o.version = w.version"),
        "true 0 0");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_gap"), 0);
    leader_leave(&l);
}

static void test_a_deleted_schedule_plans_what_was_due_before_and_nothing_after(void **state)
{
    (void)state;
    fixture_schedule("gone", "cron", "0 0 * * *", "3 days", NULL);
    (void)fixture_sql("DELETE FROM reports.schedule WHERE name = 'gone'");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 3);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_progress WHERE "
                                   "next_fire_at IS NULL AND version = 2"),
                     1);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_change"), 0);
    leader_leave(&l);
}

static void test_a_finer_rule_for_a_dated_schedule_is_refused_by_name(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 day", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 1);
    (void)fixture_sql("UPDATE reports.schedule SET rule = '0 * * * *'");
    (void)leader_settle(&l);
    assert_non_null(strstr(fixture_problem("daily"), "make a new schedule"));
    (void)fixture_sql("UPDATE reports.schedule SET rule = '0 5 * * *'");
    (void)leader_settle(&l);
    assert_string_equal(fixture_problem("daily"), "");
    leader_leave(&l);
}

/* Two days ago the rule was broken, a day ago broken otherwise, now it is mended. */
static void mend_after_two_days(const char *broken)
{
    (void)fixture_sql("UPDATE reports.schedule SET rule = '%s'", broken);
    (void)fixture_sql("UPDATE reports.schedule SET description = 'still broken'");
    (void)fixture_sql("UPDATE reports.schedule_version v SET effective_from = clock_timestamp() - "
                      "make_interval(days => 4 - v.version) WHERE v.version IN (2, 3)");
}

static void check_gap_of_two_days(void)
{
    (void)fixture_sql("UPDATE reports.schedule SET rule = '0 0 * * *'");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    assert_string_equal(fixture_problem("daily"), "");
    assert_string_equal(fixture_sql("SELECT reason || ' ' || firings || ' ' || (to_key = "
                                    "to_char(clock_timestamp(), 'YYYY-MM-DD')) FROM "
                                    "reports.schedule_gap"),
                        "problem_mended 2 true");
    leader_leave(&l);
}

static void test_firings_missed_under_a_broken_rule_are_a_gap_once_it_is_mended(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "4 days", NULL);
    mend_after_two_days("0 0 31 2 *");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 2);
    assert_true(fixture_problem("daily")[0] != '\0');
    leader_leave(&l);
    check_gap_of_two_days();
}

static void test_firings_missed_under_a_too_fine_rule_are_a_gap_once_it_is_mended(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "4 days", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    (void)fixture_sql("UPDATE reports.schedule SET rule = '0 * * * *'");
    (void)leader_settle(&l);
    assert_non_null(strstr(fixture_problem("daily"), "make a new schedule"));
    /* As if that had been half an hour before the last midnight. */
    (void)fixture_sql("UPDATE reports.schedule_progress SET switched_at = date_trunc('day', "
                      "clock_timestamp()) - interval '30 minutes', last_fire_at = "
                      "date_trunc('day', clock_timestamp()) - interval '1 day'");
    (void)fixture_sql("DELETE FROM reports.occurrence WHERE scheduled_for = date_trunc('day', "
                      "clock_timestamp())");
    leader_leave(&l);
    (void)fixture_sql("UPDATE reports.schedule SET rule = '0 0 * * *'");
    struct leader next = leader_make();
    leader_prepare(&next);
    (void)leader_settle(&next);
    assert_true(fixture_count("SELECT sum(firings) FROM reports.schedule_gap WHERE reason = "
                              "'problem_mended'") >= 1);
    leader_leave(&next);
}

static void test_a_firing_is_never_planned_early_by_the_database_clock(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 day", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 1);
    /* As if that clock had gone back: the row says due, the firing itself is in the future. */
    (void)fixture_sql("UPDATE reports.schedule_progress SET next_fire_at = clock_timestamp() - "
                      "interval '1 second', step = step + 1");
    (void)fixture_sql("UPDATE reports.schedule SET description = 'look again'");
    (void)leader_settle(&l);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 1);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_progress WHERE "
                                   "next_fire_at > clock_timestamp() AND problem IS NULL"),
                     1);
    leader_leave(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rule_our_parser_refuses_is_a_problem_and_stops_nothing),
        cmocka_unit_test(test_an_edit_in_an_outage_splits_what_was_due_between_the_versions),
        cmocka_unit_test(test_a_deleted_schedule_plans_what_was_due_before_and_nothing_after),
        cmocka_unit_test(test_a_finer_rule_for_a_dated_schedule_is_refused_by_name),
        cmocka_unit_test(test_firings_missed_under_a_broken_rule_are_a_gap_once_it_is_mended),
        cmocka_unit_test(test_firings_missed_under_a_too_fine_rule_are_a_gap_once_it_is_mended),
        cmocka_unit_test(test_a_firing_is_never_planned_early_by_the_database_clock),
    };
    return fixture_plan_run("test_planning_edits", tests, sizeof tests / sizeof tests[0], NULL);
}
