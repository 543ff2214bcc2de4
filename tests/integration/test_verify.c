/* The ledger verified on a real PostgreSQL: every story that is legal proves, and whatever is
 * tampered with is found and named. The stories of edits at random prove in test_planning_stories.
 */
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

/* Each of the lines begins one finding, in any order, and there is no other. */
static void check_found(int days, const char *const *lines, size_t count)
{
    const char *found = fixture_verify(days);
    size_t rows = found[0] != '\0' ? 1 : 0;
    for (const char *p = found; *p != '\0'; p++) {
        rows += *p == '\n' ? 1 : 0;
    }
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(found, lines[i]);
        if (at == NULL || (at != found && at[-1] != '\n')) {
            fail_msg("not found: %s\n in: %s", lines[i], found);
        }
    }
    if (rows != count) {
        fail_msg("%zu findings, not %zu: %s", rows, count, found);
    }
}

#define CHECK_FOUND(days, ...)                                                                     \
    check_found(days, (const char *const[]){__VA_ARGS__},                                          \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* Ten days of a daily schedule, all run, none of it touched. */
static void ten_days(void)
{
    fixture_schedule("daily", "cron", "0 6 * * *", "10 days", "misfire_age = '30 days'");
    fixture_lead_once();
    (void)fixture_sql(
        "UPDATE reports.job SET state = 'succeeded', attempt = 1, claimed_at = now(), "
        "finished_at = now()");
    (void)fixture_sql("INSERT INTO reports.job_attempt (job_id, attempt, token, worker, outcome, "
                      "started_at) SELECT id, 1, gen_random_uuid(), gen_random_uuid(), "
                      "'succeeded', now() FROM reports.job");
}

/* "wrong daily:2030-04-12 " of the day so many days ago, with more behind it. */
static const char *line(const char *verdict, int days_ago, const char *more)
{
    static char lines[8][200];
    static unsigned next;
    char *text = lines[next++ % 8];
    (void)snprintf(text, sizeof lines[0], "%s daily:%s %s", verdict,
                   fixture_sql("SELECT to_char(now() - interval '%d days', "
                               "'YYYY-MM-DD')",
                               days_ago),
                   more);
    return text;
}

/* The occurrence of so many days ago, as a WHERE. */
#define DAY(n)                                                                                     \
    "schedule = 'daily' AND "                                                                      \
    "occurrence_key = to_char(now() - interval '" #n " days', 'YYYY-MM-DD')"

/* ---- what is legal ---- */

static void test_outages_under_every_misfire_policy_prove(void **state)
{
    (void)state;
    fixture_schedule("all", "cron", "*/7 * * * *", "2 days",
                     "misfire = 'run_all', misfire_max = 20");
    fixture_schedule("latest", "cron", "* * * * *", "2 days", NULL);
    fixture_schedule("skip", "cron", "30 * * * *", "2 days", "misfire = 'skip'");
    fixture_schedule("age", "cron", "0 * * * *", "9 days",
                     "misfire = 'run_all', misfire_age = '1 day'");
    fixture_schedule("pulse", "interval", "90 s", "2 days", "anchor = '2026-01-01T00:00:00.25Z'");
    fixture_schedule("single", "once", "2026-11-01T06:00", "400 days", NULL);
    fixture_lead_once();
    fixture_proved(400, 2 * 1440 + 2 * 1440 / 7 + 40 + 9 * 24 - 10);
}

static void test_a_year_with_both_changes_of_the_clock_proves(void **state)
{
    (void)state;
    fixture_schedule("gap", "cron", "30 2 * * *", "380 days",
                     "time_zone = 'Europe/Berlin', misfire_max = 1000, misfire_age = '3660 days'");
    fixture_schedule("clock", "cron", "*/30 * * * *", "380 days",
                     "time_zone = 'America/New_York', misfire = 'skip'");
    fixture_schedule("last", "cron", "15 1 L * *", "380 days", "time_zone = 'Europe/Dublin'");
    fixture_lead_once();
    fixture_proved(400, 379 + 379 * 48 + 12);
    assert_true(fixture_verified()->planned >= 379);
}

static void test_what_happens_to_a_schedule_in_its_life_proves(void **state)
{
    (void)state;
    fixture_insert("often", "*/5 * * * *", "9 hours");
    fixture_edit("often", "paused = true", "8 hours");
    fixture_edit("often", "paused = false", "7 hours");
    fixture_edit("often", "rule = '0 0 31 2 *'", "6 hours"); /* no such day: a problem */
    fixture_edit("often", "rule = '0 0 30 2 *'", "330 minutes");
    fixture_edit("often", "rule = '*/3 * * * *'", "5 hours");
    fixture_edit("often", "kind = 'interval', rule = '4 min', anchor = '2026-01-01'", "4 hours");
    fixture_delete("often", "3 hours");
    fixture_insert("often", "*/2 * * * *", "2 hours");
    fixture_edit("often",
                 "starts_at = now() - interval '90 min', ends_at = now() - interval '50 "
                 "min'",
                 "100 minutes");
    fixture_edit("often", "ends_at = NULL, misfire = 'skip'", "30 minutes");
    fixture_lead_once();
    assert_string_equal(fixture_problem("often"), "");
    fixture_proved(2, 12 + 12 + 12 + 20 + 20 + 15 + 10 + 20 + 14);
    /* Paused and broken now: nothing is expected of them. */
    fixture_edit("often", "paused = true", "20 minutes");
    fixture_insert("broken", "0 0 31 2 *", "3 hours");
    fixture_lead_once();
    fixture_proved(2, 1);
    assert_int_equal(fixture_verified()->withheld, 2);
}

static void test_a_date_that_an_edit_moves_proves(void **state)
{
    (void)state;
    /* Ahead of UTC and back: the same dates come again; and a time moved into today's past. */
    fixture_insert("daily", "0 0 * * *", "9 days");
    fixture_lead_once();
    fixture_edit("daily", "time_zone = 'Pacific/Kiritimati'", "0 seconds");
    fixture_lead_once();
    fixture_edit("daily", "time_zone = 'Pacific/Pago_Pago'", "0 seconds");
    fixture_lead_once();
    fixture_proved(20, 8);
    fixture_insert("moved", "59 23 * * *", "3 days");
    fixture_lead_once();
    fixture_edit("moved", "rule = '0 0 * * *'", "0 seconds");
    fixture_lead_once();
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence WHERE schedule = "
                                   "'moved' AND cause = 'edit'"),
                     1);
    fixture_proved(20, 8 + 4);
}

static void test_keys_that_people_took_prove(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "5 days", "overlap = 'forbid'");
    (void)fixture_sql("INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, "
                      "scheduled_for, cause, version, incarnation, generation) SELECT 'daily', "
                      "to_char(now() - interval '2 days', 'YYYY-MM-DD'), "
                      "'main', '00000000-0000-7000-8000-000000000001', now(), 'manual', 2, 1, 1");
    (void)fixture_sql("INSERT INTO reports.job (id, schedule, occurrence_key, scope, report, "
                      "queue, priority, state, run_after, max_attempts, retry_base, retry_cap, "
                      "timeout, finished_at) SELECT job_id, schedule, occurrence_key, scope, "
                      "'nothing', 'default', 0, 'cancelled', now(), 1, '0', '0', '1 h', now() "
                      "FROM reports.occurrence");
    fixture_lead_once();
    assert_string_equal(fixture_sql("SELECT string_agg(reason || ' ' || firings, ', ' ORDER BY "
                                    "from_fire_at) FROM reports.schedule_gap"),
                        "overlap_forbid 3, key_taken 1");
    fixture_proved(20, 5);
}

static void test_an_edit_that_commits_late_proves(void **state)
{
    (void)state;
    fixture_schedule("ticking", "interval", "1 s", "5 seconds", "anchor = '2026-01-01'");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    PGconn *editor = fixture_plan_second();
    PQclear(PQexec(editor, "BEGIN"));
    PQclear(PQexec(editor, "UPDATE reports.schedule SET rule = '2 s' WHERE name = 'ticking'"));
    /* Six before the edit, as the leader came, and some behind it. */
    assert_true(leader_step_until(
        &l, "SELECT count(*) >= 10 FROM reports.occurrence WHERE version = 2", "t", 20000));
    PQclear(PQexec(editor, "COMMIT"));
    PQfinish(editor);
    assert_true(leader_step_until(
        &l, "SELECT count(*) >= 2 FROM reports.occurrence WHERE version = 3", "t", 20000));
    leader_leave(&l);
    assert_true(fixture_count("SELECT count(*) FROM reports.occurrence o JOIN "
                              "reports.schedule_version v ON v.schedule = o.schedule AND v.version "
                              "= 3 WHERE o.version = 2 AND o.scheduled_for > v.effective_from") >=
                2);
    const char *found = fixture_verify(1);
    /* What fell due since the leader went. */
    assert_true(found[0] == '\0' || strncmp(found, "wrong ticking:", 14) == 0);
    assert_true(found[0] == '\0' || strstr(found, "overdue") != NULL);
    assert_null(strstr(found, "missing"));
    assert_null(strstr(found, "unnamed"));
}

static void test_what_is_due_and_not_planned_is_not_yet_or_overdue(void **state)
{
    (void)state;
    fixture_insert("daily", "0 0 * * *", "3 days");
    CHECK_FOUND(20, line("wrong", 2, "overdue 3: due, and the edit that names it is not taken in"));
    fixture_lead_once();
    fixture_proved(20, 3);
    (void)fixture_sql("DELETE FROM reports.occurrence; DELETE FROM reports.job; UPDATE "
                      "reports.schedule_progress SET last_fire_at = NULL, next_fire_at = "
                      "date_trunc('day', now() - interval '2 days')");
    CHECK_FOUND(20, line("wrong", 2, "overdue 3: due and not planned;"));
    (void)fixture_sql("INSERT INTO reports.hold (scope, reason) VALUES ('main', 'moving house')");
    CHECK_FOUND(20, line("look", 2, "held 3: due and not planned, under a hold"));
    (void)fixture_sql("DELETE FROM reports.hold");
}

/* ---- what was tampered with ---- */

static void test_an_occurrence_that_is_gone_is_missing(void **state)
{
    (void)state;
    ten_days();
    fixture_proved(20, 9);
    (void)fixture_sql("DELETE FROM reports.occurrence WHERE " DAY(4));
    CHECK_FOUND(20, line("wrong", 4, "missing 1: no occurrence, and in no gap"),
                line("wrong", 4, "job 1: job "));
    /* Those that follow one another are one finding. */
    (void)fixture_sql("DELETE FROM reports.occurrence WHERE " DAY(3) " OR " DAY(2) " AND true");
    (void)fixture_sql("DELETE FROM reports.job j WHERE NOT EXISTS (SELECT FROM reports.occurrence "
                      "o WHERE o.job_id = j.id)");
    CHECK_FOUND(20, line("wrong", 4, "missing 3: no occurrence, and in no gap"));
}

static void test_an_occurrence_that_no_version_names_is_found(void **state)
{
    (void)state;
    ten_days();
    (void)fixture_sql("UPDATE reports.occurrence SET scheduled_for = scheduled_for + interval '1 "
                      "minute', planned_at = clock_timestamp() WHERE " DAY(4));
    CHECK_FOUND(20, line("wrong", 4, "unnamed 1: the rule of its version does not name this time"));
    (void)fixture_sql("UPDATE reports.occurrence SET scheduled_for = scheduled_for - interval '1 "
                      "minute' WHERE " DAY(4));
    fixture_proved(20, 9);
    (void)fixture_sql("UPDATE reports.occurrence SET version = 7 WHERE " DAY(4));
    CHECK_FOUND(20, line("wrong", 4, "unnamed 1: there was no such version at that time"),
                line("wrong", 4, "unnamed 1: the schedule has no version 7"));
    (void)fixture_sql("UPDATE reports.occurrence SET version = 2 WHERE " DAY(4));
    /* One more, of a time that lies before the schedule was written. */
    (void)fixture_sql(
        "WITH o AS (INSERT INTO reports.occurrence SELECT (jsonb_populate_record(o, "
        "jsonb_build_object('occurrence_key', to_char(now() - "
        "interval '15 days', 'YYYY-MM-DD'), 'scheduled_for', o.scheduled_for - "
        "interval '11 days', 'nominal_local', o.nominal_local - interval '11 days', "
        "'business_date', o.business_date - 11, 'job_id', gen_random_uuid()))).* FROM "
        "reports.occurrence o WHERE " DAY(4) " RETURNING *) SELECT 1");
    CHECK_FOUND(20, line("wrong", 15, "unnamed 1: due before its version began"),
                line("wrong", 15, "job 1: it has no job"));
}

static void test_an_occurrence_that_says_something_else_differs(void **state)
{
    (void)state;
    ten_days();
    (void)fixture_sql(
        "UPDATE reports.occurrence SET business_date = business_date - 1 WHERE " DAY(4));
    CHECK_FOUND(20, line("wrong", 4, "differs 1: its local time, offset or business date"));
    (void)fixture_sql("UPDATE reports.occurrence SET business_date = business_date + 1, planned_at "
                      "= scheduled_for - interval '1 s' WHERE " DAY(4));
    CHECK_FOUND(20, line("wrong", 4, "differs 1: it was planned at "));
    (void)fixture_sql("UPDATE reports.occurrence SET planned_at = scheduled_for, occurrence_key = "
                      "occurrence_key || 'T06:00' WHERE " DAY(4));
    const char *found = fixture_verify(20);
    assert_non_null(strstr(found, "unnamed 1: its key is not that of this time"));
    assert_non_null(strstr(found, "missing 1"));
}

static void test_a_gap_that_was_touched_is_found(void **state)
{
    (void)state;
    fixture_schedule("often", "cron", "*/10 * * * *", "5 hours", "misfire = 'skip'");
    fixture_lead_once();
    fixture_proved(2, 29);
    int64_t firings = fixture_count("SELECT firings FROM reports.schedule_gap");
    assert_true(firings >= 28);
    (void)fixture_sql("UPDATE reports.schedule_gap SET from_fire_at = from_fire_at + interval '10 "
                      "minutes'");
    const char *found = fixture_verify(2);
    assert_non_null(strstr(found, "missing 1: no occurrence, and in no gap"));
    assert_non_null(strstr(found, "gap misfire_skip: its keys are not those of its times"));
    (void)fixture_sql("UPDATE reports.schedule_gap SET from_fire_at = from_fire_at - interval '13 "
                      "minutes'");
    found = fixture_verify(2);
    assert_non_null(strstr(found, "gap misfire_skip: it does not begin and end with a firing"));
    (void)fixture_sql("UPDATE reports.schedule_gap SET from_fire_at = from_fire_at + interval '3 "
                      "minutes', firings = firings + 1");
    found = fixture_verify(2);
    assert_non_null(strstr(found, " firings in it, and it says "));
    (void)fixture_sql("DELETE FROM reports.schedule_gap");
    found = fixture_verify(2);
    assert_non_null(strstr(found, "missing "));
    assert_int_equal(fixture_verified()->in_gaps, 0);
}

static void test_a_firing_with_an_occurrence_and_a_gap_has_both(void **state)
{
    (void)state;
    ten_days();
    (void)fixture_sql("INSERT INTO reports.schedule_gap (schedule, scope, from_fire_at, "
                      "to_fire_at, from_key, to_key, firings, reason, version, incarnation, "
                      "generation) SELECT schedule, scope, scheduled_for, scheduled_for, "
                      "occurrence_key, occurrence_key, 1, 'misfire_skip', version, 1, 1 FROM "
                      "reports.occurrence WHERE " DAY(4));
    CHECK_FOUND(20, line("wrong", 4, "both 1: it has an occurrence, and lies in the gap"));
    (void)fixture_sql("UPDATE reports.schedule_gap SET reason = 'key_taken'");
    CHECK_FOUND(20, line("wrong", 4, "gap 1: gap key_taken: no other occurrence has the key"));
}

static void test_jobs_attempts_and_files_that_do_not_fit_are_found(void **state)
{
    (void)state;
    ten_days();
    (void)fixture_sql("DELETE FROM reports.job_attempt a USING reports.job j WHERE a.job_id = j.id "
                      "AND " DAY(4));
    CHECK_FOUND(20, line("wrong", 4, "attempt 1: its job is succeeded after 1 attempt(s), and 0"));
    /* What retention may have forgotten is not missed. */
    (void)fixture_sql(
        "UPDATE reports.installation SET keep_attempts = '1 day'; UPDATE reports.job "
        "SET finished_at = now() - interval '2 days', claimed_at = now() - interval '2 "
        "days' WHERE " DAY(4));
    fixture_proved(20, 9);
    (void)fixture_sql("UPDATE reports.installation SET keep_attempts = '400 days'");
    (void)fixture_sql("INSERT INTO reports.job_attempt (job_id, attempt, token, worker, outcome, "
                      "started_at) SELECT id, 1, gen_random_uuid(), gen_random_uuid(), 'failed', "
                      "now() FROM reports.job WHERE " DAY(4));
    CHECK_FOUND(20,
                line("wrong", 4, "attempt 1: its job is succeeded, and its last attempt failed"));
    (void)fixture_sql("UPDATE reports.job_attempt SET outcome = 'succeeded'");
    /* A report that makes files. */
    (void)fixture_sql("UPDATE reports.report SET kind = 'program', program = 'x'; UPDATE "
                      "reports.job SET claimed_at = clock_timestamp(), finished_at = "
                      "clock_timestamp(); INSERT INTO reports.artifact (job_id, attempt, store, "
                      "path, media_type, size_bytes, sha256) SELECT id, 1, 'local', id::text, "
                      "'text/csv', 1, sha256('x') FROM reports.job WHERE NOT (" DAY(4) ")");
    CHECK_FOUND(20, line("wrong", 4, "artifact 1: its job has succeeded, and its file is not"));
    (void)fixture_sql("UPDATE reports.report SET kind = 'noop', program = NULL");
    (void)fixture_sql("UPDATE reports.job SET schedule = 'other' WHERE " DAY(3));
    const char *found = fixture_verify(20);
    assert_non_null(strstr(found, "is that of other:"));
    assert_non_null(strstr(found, "has no occurrence"));
}

static void
test_an_occurrence_that_was_deleted_and_run_again_by_hand_is_worth_a_look_only(void **state)
{
    (void)state;
    ten_days();
    (void)fixture_sql("CREATE TABLE public.gone AS SELECT * FROM reports.occurrence WHERE " DAY(4));
    (void)fixture_sql("DELETE FROM reports.occurrence WHERE " DAY(4));
    assert_non_null(strstr(fixture_verify(20), "has no occurrence"));
    (void)fixture_sql(
        "INSERT INTO reports.job SELECT (jsonb_populate_record(j, jsonb_build_object("
        "'id', gen_random_uuid(), 'state', 'queued', 'attempt', 0, 'claimed_at', NULL,"
        " 'finished_at', NULL))).* FROM reports.job j JOIN public.gone g ON g.job_id"
        " = j.id");
    (void)fixture_sql("INSERT INTO reports.occurrence OVERRIDING SYSTEM VALUE SELECT"
                      " (jsonb_populate_record(g, jsonb_build_object('cause', 'manual', 'job_id',"
                      " (SELECT j.id FROM reports.job j WHERE j.schedule = g.schedule AND"
                      " j.occurrence_key = g.occurrence_key AND j.id <> g.job_id)))).* FROM"
                      " public.gone g");
    const char *found = fixture_verify(20);
    assert_non_null(strstr(found, " left 1: job "));
    assert_non_null(strstr(found, "its key was run again by hand, as job "));
    assert_null(strstr(found, "wrong "));
    (void)fixture_sql("DROP TABLE public.gone");
}

static void test_progress_that_would_pass_something_over_is_found(void **state)
{
    (void)state;
    ten_days();
    (void)fixture_sql("UPDATE reports.schedule_progress SET next_fire_at = NULL");
    CHECK_FOUND(20, "wrong daily: progress 1: schedule_progress.next_fire_at is not");
    (void)fixture_sql("UPDATE reports.schedule_progress SET last_fire_at = last_fire_at - interval "
                      "'1 day'");
    const char *found = fixture_verify(20);
    assert_non_null(strstr(found, "last_fire_at is behind what the ledger has"));
}

static void test_a_version_that_began_too_late_is_found(void **state)
{
    (void)state;
    ten_days();
    fixture_edit("daily", "rule = '0 7 * * *'", "5 days");
    (void)fixture_sql("UPDATE reports.schedule_progress SET version = 3, switched_at = now() - "
                      "interval '3 days'; DELETE FROM reports.schedule_change; UPDATE "
                      "reports.occurrence SET version = 3, scheduled_for = scheduled_for + "
                      "interval '1 hour', nominal_local = nominal_local + interval '1 hour' WHERE "
                      "scheduled_for > now() - interval '3 days'; DELETE FROM reports.occurrence "
                      "WHERE scheduled_for BETWEEN now() - interval '5 days' AND now() - interval "
                      "'3 days'");
    const char *found = fixture_verify(20);
    assert_non_null(strstr(found, "switch 1: its version began to plan too late"));
    assert_non_null(strstr(found, "missing 2"));
}

/* 46 000 days, of which some weeks have records. */
static void test_a_century_costs_what_its_records_cost_and_hides_nothing(void **state)
{
    (void)state;
    ten_days();
    (void)fixture_sql(
        "INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for, "
        "nominal_local, offset_s, business_date, window_end, cause, version, incarnation, "
        "generation) SELECT 'daily', '1950-04-12', o.scope, gen_random_uuid(), '1950-04-12 06:00Z',"
        " '1950-04-12 06:00', 0, '1950-04-12', '1950-04-12 06:00Z', 'schedule', 99, o.incarnation, "
        "o.generation FROM reports.occurrence o LIMIT 1");
    const char *found = fixture_verify(46000);
    assert_non_null(strstr(found, "daily:1950-04-12 unnamed"));
    assert_non_null(strstr(found, "daily:1950-04-12 job"));
    assert_true(fixture_verified()->due >= 9);
    assert_in_range(fixture_verified_parts(), 20, 400);
}

static void test_a_schedule_that_fires_each_second_is_read_in_slices(void **state)
{
    (void)state;
    fixture_schedule("ticking", "interval", "1 s", "30 hours",
                     "anchor = '2026-01-01', misfire = 'skip', time_zone = 'UTC'");
    fixture_lead_once();
    /* As if all had run. */
    (void)fixture_sql(
        "INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for, "
        "nominal_local, offset_s, business_date, cause, version, incarnation, generation) SELECT "
        "'ticking', to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), 'main', "
        "gen_random_uuid(), t, t AT TIME ZONE 'UTC', 0, (t AT TIME ZONE 'UTC')::date, 'misfire', "
        "2, 1, 1 FROM reports.schedule_gap g, generate_series(g.from_fire_at, g.to_fire_at, '1 "
        "second') t");
    (void)fixture_sql("DELETE FROM reports.schedule_gap; UPDATE reports.schedule_progress SET "
                      "next_fire_at = NULL, problem = 'stopped'");
    (void)fixture_sql("INSERT INTO reports.job (id, schedule, occurrence_key, scope, report, "
                      "queue, priority, state, run_after, max_attempts, retry_base, retry_cap, "
                      "timeout, finished_at) SELECT job_id, schedule, occurrence_key, scope, "
                      "'nothing', 'default', 0, 'cancelled', now(), 1, '0', '0', '1 h', now() "
                      "FROM reports.occurrence WHERE job_id NOT IN (SELECT id FROM reports.job)");
    fixture_proved(2, 100000);
    assert_true(fixture_verified()->planned > 100000);
    (void)fixture_sql("DELETE FROM reports.occurrence WHERE scheduled_for > now() - interval '7 "
                      "hours' AND scheduled_for <= now() - interval '6 hours'");
    (void)fixture_sql("DELETE FROM reports.job j WHERE NOT EXISTS (SELECT FROM reports.occurrence "
                      "o WHERE o.job_id = j.id)");
    const char *found = fixture_verify(2);
    assert_non_null(strstr(found, " missing 3600: "));
    assert_null(strchr(found, '\n'));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outages_under_every_misfire_policy_prove),
        cmocka_unit_test(test_a_year_with_both_changes_of_the_clock_proves),
        cmocka_unit_test(test_what_happens_to_a_schedule_in_its_life_proves),
        cmocka_unit_test(test_a_date_that_an_edit_moves_proves),
        cmocka_unit_test(test_keys_that_people_took_prove),
        cmocka_unit_test(test_an_edit_that_commits_late_proves),
        cmocka_unit_test(test_what_is_due_and_not_planned_is_not_yet_or_overdue),
        cmocka_unit_test(test_an_occurrence_that_is_gone_is_missing),
        cmocka_unit_test(test_an_occurrence_that_no_version_names_is_found),
        cmocka_unit_test(test_an_occurrence_that_says_something_else_differs),
        cmocka_unit_test(test_a_gap_that_was_touched_is_found),
        cmocka_unit_test(test_a_firing_with_an_occurrence_and_a_gap_has_both),
        cmocka_unit_test(test_jobs_attempts_and_files_that_do_not_fit_are_found),
        cmocka_unit_test(
            test_an_occurrence_that_was_deleted_and_run_again_by_hand_is_worth_a_look_only),
        cmocka_unit_test(test_progress_that_would_pass_something_over_is_found),
        cmocka_unit_test(test_a_version_that_began_too_late_is_found),
        cmocka_unit_test(test_a_century_costs_what_its_records_cost_and_hides_nothing),
        cmocka_unit_test(test_a_schedule_that_fires_each_second_is_read_in_slices),
    };
    return fixture_plan_run("test_verify", tests, sizeof tests / sizeof tests[0], NULL);
}
