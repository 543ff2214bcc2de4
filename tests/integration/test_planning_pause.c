/* Pausing on a real PostgreSQL: nothing runs meanwhile, and one gap says what did not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_edits.h"
#include "planning_state.h"

/* The gap's count and keys against the calendar: the days from `from` to before `to` days ago. */
static void check_days_paused(int from, int to)
{
    char want[200];
    (void)snprintf(
        want, sizeof want, "paused %d %s", from - to,
        fixture_sql("SELECT (current_date - %d) || '..' || (current_date - %d)", from - 1, to));
    assert_string_equal(fixture_gaps("daily"), want);
}

static void test_a_paused_schedule_plans_nothing_and_resuming_records_one_gap(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "10 days", "misfire_age = '30 days'");
    struct leader l = leader_make();
    leader_prepare(&l);
    fixture_edit("daily", "paused = true", "8 days");
    assert_int_equal(leader_settle(&l), 2);
    assert_string_equal(
        fixture_sql("SELECT format('%%s %%s %%s', p.next_fire_at IS NULL, p.problem IS NULL, "
                    "p.switched_at = v.effective_from) FROM reports.schedule_progress p JOIN "
                    "reports.schedule_version v USING (schedule, version) WHERE v.paused"),
        "t t t");
    assert_string_equal(fixture_gaps("daily"), "");
    leader_leave(&l);
    l = leader_make(); /* by the next leader, too */
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 0);
    fixture_edit("daily", "paused = false", "3 days");
    assert_int_equal(leader_settle(&l), 3);
    check_days_paused(8, 3);
    check_nothing_lost(&l, "daily", 10);
    leader_leave(&l);
}

static void test_a_pause_and_its_end_in_one_outage_are_told_from_the_versions(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "10 days", "misfire_age = '30 days'");
    fixture_edit("daily", "paused = true", "8 days");
    fixture_edit("daily", "description = 'still'", "6 days");
    fixture_edit("daily", "paused = false", "3 days");
    struct leader l = leader_make();
    leader_prepare(&l);
    check_nothing_lost(&l, "daily", 10);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence WHERE cause = "
                                   "'misfire'"),
                     5);
    /* One gap a version: the edit between has its own. */
    assert_string_equal(fixture_sql("SELECT string_agg(format('%%s:%%s', version, firings), ' ' "
                                    "ORDER BY version) FROM reports.schedule_gap"),
                        "3:2 4:3");
    leader_leave(&l);
}

/* Asked for by a request that many days ago, when nobody was there. */
static void ask(const char *kind, int days)
{
    (void)fixture_sql("SELECT state FROM reports.ask(gen_random_uuid(), '%s', 'daily', 'audit', "
                      "'1 hour')",
                      kind);
    (void)fixture_sql("UPDATE reports.request SET requested_at = clock_timestamp() - interval '%d "
                      "days' WHERE kind = '%s'",
                      days, kind);
}

static void test_a_pause_asked_for_in_an_outage_begins_when_it_was_asked(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "10 days", "misfire_age = '30 days'");
    ask("pause", 8);
    ask("resume", 3);
    struct leader l = leader_make();
    leader_prepare(&l);
    check_nothing_lost(&l, "daily", 10);
    check_days_paused(8, 3);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 5);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_version WHERE "
                                   "change_reason LIKE '%%audit'"),
                     2);
    leader_leave(&l);
}

static void test_a_pause_of_a_year_costs_no_more_than_one_of_an_hour(void **state)
{
    (void)state;
    fixture_schedule("minutely", "cron", "* * * * *", "366 days", "misfire_grace = '1 second'");
    fixture_edit("minutely", "paused = true", "365 days 23 hours");
    fixture_edit("minutely", "paused = false", "30 minutes");
    struct leader l = leader_make();
    leader_prepare(&l);
    instant begin = clock_now();
    (void)leader_settle(&l);
    assert_true(instant_ms_between(begin, clock_now()) < 15000);
    assert_string_equal(
        fixture_sql("SELECT format('%%s %%s', count(*), sum(firings) = (SELECT count(*) FROM "
                    "generate_series(min(g.from_fire_at), max(g.to_fire_at), '1 minute'))) FROM "
                    "reports.schedule_gap g WHERE reason = 'paused'"),
        "1 t");
    assert_true(fixture_count("SELECT sum(firings) FROM reports.schedule_gap WHERE reason = "
                              "'paused'") > 525000);
    check_nothing_lost(&l, "minutely", 527000);
    leader_leave(&l);
}

static void test_a_pause_of_a_schedule_with_a_problem_splits_the_gap(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "6 days", NULL);
    fixture_edit("daily", "rule = '0 0 31 2 *'", "5 days");
    fixture_edit("daily", "paused = true", "4 days");
    fixture_edit("daily", "rule = '0 0 * * *'", "3 days");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    assert_string_equal(fixture_problem("daily"), "");
    assert_string_equal(fixture_sql("SELECT reason || ' ' || firings FROM reports.schedule_gap"),
                        "problem_mended 2");
    fixture_edit("daily", "paused = false", "1 day");
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("SELECT string_agg(reason || ' ' || firings, ', ' ORDER BY "
                                    "from_fire_at) FROM reports.schedule_gap"),
                        "problem_mended 2, paused 2");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 2);
    leader_leave(&l);
}

static void test_a_schedule_deleted_while_paused_has_its_gap_and_may_come_back(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "10 days", "misfire_age = '30 days'");
    fixture_edit("daily", "paused = true", "8 days");
    fixture_delete("daily", "5 days");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    check_days_paused(8, 5);
    /* The deletion itself is no gap: nobody wanted it to fire. */
    fixture_insert("daily", "0 0 * * *", "2 days");
    check_nothing_lost(&l, "daily", 7);
    check_days_paused(8, 5);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 4);
    leader_leave(&l);
}

static void
test_a_schedule_deleted_with_a_problem_has_the_gap_its_last_good_rule_names(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "10 days", "misfire_age = '30 days'");
    fixture_edit("daily", "rule = '0 0 31 2 *'", "6 days");
    fixture_delete("daily", "2 days");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("SELECT reason || ' ' || firings || ' ' || version FROM "
                                    "reports.schedule_gap"),
                        "problem_mended 4 3");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 4);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_change"), 0);
    leader_leave(&l);
}

static void test_a_schedule_written_paused_may_still_change_its_form(void **state)
{
    (void)state;
    fixture_schedule("draft", "cron", "0 0 * * *", "2 days", "paused = true");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    fixture_edit("draft", "rule = '*/30 * * * *'", "1 day");
    fixture_edit("draft", "paused = false", "2 hours");
    (void)leader_settle(&l);
    assert_string_equal(fixture_problem("draft"), "");
    assert_string_equal(fixture_sql("SELECT key_form FROM reports.schedule_progress"), "minute");
    check_nothing_lost(&l, "draft", 45);
    leader_leave(&l);
}

static void test_a_gap_that_cannot_be_recorded_holds_its_edit_back_and_says_so(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "10 days", NULL);
    fixture_schedule("other", "cron", "0 0 * * *", "1 day", NULL);
    fixture_edit("daily", "paused = true", "8 days");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    (void)fixture_sql(
        "CREATE FUNCTION public.no_gap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE "
        "EXCEPTION 'no gap for %%', NEW.schedule USING ERRCODE = '23514'; END $$; CREATE TRIGGER "
        "no_gap BEFORE INSERT ON reports.schedule_gap FOR EACH ROW EXECUTE FUNCTION "
        "public.no_gap()");
    fixture_edit("daily", "paused = false", "3 days");
    (void)leader_settle(&l);
    assert_non_null(strstr(fixture_problem("daily"), "the gap up to the edit cannot be recorded"));
    assert_non_null(strstr(fixture_problem("daily"), "no gap for daily"));
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_change"), 1);
    (void)fixture_sql("DROP TRIGGER no_gap ON reports.schedule_gap");
    assert_true(leader_step_until(&l, "SELECT count(*) FROM reports.schedule_change", "0", 20000));
    (void)leader_settle(&l);
    assert_string_equal(fixture_problem("daily"), "");
    check_nothing_lost(&l, "daily", 10);
    leader_leave(&l);
}

/* The newest version begins at that time of the day before yesterday. */
static void version_at(const char *time)
{
    (void)fixture_sql("UPDATE reports.schedule_version SET effective_from = date_trunc('day', "
                      "now()) - interval '2 days' + time '%s' WHERE version = (SELECT "
                      "max(w.version) FROM reports.schedule_version w)",
                      time);
}

static void test_a_date_that_has_fired_is_no_gap_of_a_pause_or_a_problem_behind_it(void **state)
{
    (void)state;
    for (int problem = 0; problem < 2; problem++) {
        fixture_plan_clear();
        fixture_schedule("daily", "cron", "0 0 * * *", "4 days", NULL);
        /* It fires at midnight, would fire at noon, and at noon something is in the way. */
        fixture_edit("daily",
                     problem ? "rule = '0 12 * * *'" : "rule = '0 12 * * *', paused = true",
                     "1 hour");
        version_at("06:00");
        (void)fixture_sql(
            "UPDATE reports.schedule_version SET rule = '0 12 31 2 *' WHERE version = "
            "(SELECT max(version) FROM reports.schedule_version) AND %d = 1",
            problem);
        fixture_edit("daily", "rule = '0 12 * * *', paused = false, priority = 1", "1 hour");
        version_at("18:00");
        struct leader l = leader_make();
        leader_prepare(&l);
        (void)leader_settle(&l);
        assert_int_equal(fixture_count("SELECT version FROM reports.schedule_progress"),
                         fixture_count("SELECT max(version) FROM reports.schedule_version"));
        assert_string_equal(fixture_gaps("daily"), "");
        assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence WHERE "
                                       "occurrence_key = to_char(now() - interval '2 days', "
                                       "'YYYY-MM-DD')"),
                         1);
        leader_leave(&l);
    }
}

/* The end that the pause of `daily` has; a past one, as if nobody had led since. */
static void pause_until(const char *ago)
{
    (void)fixture_sql("SET session_replication_role = replica; UPDATE reports.schedule SET "
                      "paused_until = clock_timestamp() - interval '%s' WHERE name = 'daily'; SET "
                      "session_replication_role = DEFAULT",
                      ago);
}

static void test_a_pause_with_an_end_is_over_then_whoever_leads_later(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "10 days", "misfire_age = '30 days'");
    fixture_edit("daily", "paused = true", "8 days");
    pause_until("3 days");
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_true(
        leader_step_until(&l, "SELECT count(*) FROM reports.schedule WHERE paused", "0", 20000));
    check_nothing_lost(&l, "daily", 10);
    check_days_paused(8, 3);
    assert_string_equal(fixture_sql("SELECT format('%%s %%s %%s', v.version, v.paused, "
                                    "v.change_reason) FROM reports.schedule_version v ORDER BY "
                                    "version DESC LIMIT 1"),
                        "4 f paused_until had come");
    assert_string_equal(fixture_sql("SELECT format('%%s %%s', paused, paused_until IS NULL) FROM "
                                    "reports.schedule"),
                        "f t");
    leader_leave(&l);
    l = leader_make(); /* another finds nothing to do */
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 0);
    assert_int_equal(fixture_count("SELECT max(version) FROM reports.schedule_version"), 4);
    leader_leave(&l);
}

static void test_an_edit_after_the_end_of_a_pause_is_one_of_a_schedule_that_goes_on(void **state)
{
    (void)state;
    for (int deleted = 0; deleted < 2; deleted++) {
        fixture_plan_clear();
        fixture_schedule("daily", "cron", "0 0 * * *", "10 days", "misfire_age = '30 days'");
        fixture_edit("daily", "paused = true", "8 days");
        pause_until("4 days");
        if (deleted) {
            fixture_delete("daily", "1 day");
        } else {
            fixture_edit("daily", "priority = 5", "1 day");
        }
        struct leader l = leader_make();
        leader_prepare(&l);
        check_nothing_lost(&l, "daily", 9);
        check_days_paused(8, 4);
        leader_leave(&l);
    }
}

static void test_the_leader_wakes_for_the_end_of_a_pause(void **state)
{
    (void)state;
    fixture_schedule("daily", "interval", "1 second", "10 milliseconds", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)fixture_sql("UPDATE reports.schedule SET paused = true, paused_until = clock_timestamp() "
                      "+ interval '3 seconds'");
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("SELECT count(*) FROM reports.schedule_change"), "0");
    /* On a slow machine it may be over already: then the next look has found it. */
    int64_t end = fixture_count("SELECT extract(epoch FROM paused_until) * 1000000 FROM "
                                "reports.schedule_version WHERE paused");
    assert_true(l.planning->next_fire_at.us == end ||
                fixture_count("SELECT count(*) FROM reports.schedule WHERE paused") == 0 ||
                l.planning->resumes);
    assert_true(leader_step_until(
        &l, "SELECT count(*) > 0 FROM reports.occurrence o WHERE version > 2", "t", 20000));
    assert_string_equal(
        fixture_sql("SELECT count(*) FROM reports.schedule_version a JOIN reports.schedule_version "
                    "b USING (schedule) WHERE a.paused AND NOT b.paused AND b.version = a.version "
                    "+ 1 AND b.effective_from = a.paused_until"),
        "1");
    leader_leave(&l);
}

static void test_a_locked_schedule_goes_on_when_its_row_is_free_and_holds_up_no_other(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "10 days", "misfire_age = '30 days'");
    fixture_edit("daily", "paused = true", "8 days");
    fixture_schedule("other", "cron", "0 0 * * *", "4 days", NULL);
    pause_until("3 days");
    PGconn *second = fixture_plan_second();
    PQclear(PQexec(second, "BEGIN; SELECT FROM reports.schedule WHERE name = 'daily' FOR UPDATE"));
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.occurrence WHERE schedule = 'other'"), 4);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule WHERE paused"), 1);
    PQfinish(second);
    assert_true(
        leader_step_until(&l, "SELECT count(*) FROM reports.schedule WHERE paused", "0", 20000));
    check_nothing_lost(&l, "daily", 10);
    check_days_paused(8, 3);
    leader_leave(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_paused_schedule_plans_nothing_and_resuming_records_one_gap),
        cmocka_unit_test(test_a_pause_and_its_end_in_one_outage_are_told_from_the_versions),
        cmocka_unit_test(test_a_pause_asked_for_in_an_outage_begins_when_it_was_asked),
        cmocka_unit_test(test_a_pause_of_a_year_costs_no_more_than_one_of_an_hour),
        cmocka_unit_test(test_a_pause_of_a_schedule_with_a_problem_splits_the_gap),
        cmocka_unit_test(test_a_schedule_deleted_while_paused_has_its_gap_and_may_come_back),
        cmocka_unit_test(
            test_a_schedule_deleted_with_a_problem_has_the_gap_its_last_good_rule_names),
        cmocka_unit_test(test_a_date_that_has_fired_is_no_gap_of_a_pause_or_a_problem_behind_it),
        cmocka_unit_test(test_a_pause_with_an_end_is_over_then_whoever_leads_later),
        cmocka_unit_test(test_an_edit_after_the_end_of_a_pause_is_one_of_a_schedule_that_goes_on),
        cmocka_unit_test(test_the_leader_wakes_for_the_end_of_a_pause),
        cmocka_unit_test(test_a_locked_schedule_goes_on_when_its_row_is_free_and_holds_up_no_other),
        cmocka_unit_test(test_a_schedule_written_paused_may_still_change_its_form),
        cmocka_unit_test(test_a_gap_that_cannot_be_recorded_holds_its_edit_back_and_says_so),
    };
    return fixture_plan_run("test_planning_pause", tests, sizeof tests / sizeof tests[0], NULL);
}
