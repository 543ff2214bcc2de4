/* Due schedules on a real PostgreSQL: exactness, fencing, and that one bad row stops nothing. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_leader.h"

static void test_due_firings_become_occurrences_jobs_and_messages_together(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "3 days", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 3);
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.occurrence o JOIN reports.job j ON j.id = "
                      "o.job_id AND j.state = 'queued' JOIN reports.outbox x ON x.job_id = j.id "
                      "WHERE o.schedule = 'daily' AND o.generation = %lld AND "
                      "o.occurrence_key = to_char(o.scheduled_for, 'YYYY-MM-DD') AND "
                      "o.business_date = o.scheduled_for::date AND o.window_end = o.scheduled_for",
                      (long long)l.authority.generation),
        3);
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.occurrence WHERE window_start IS NULL"), 1);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_gap"), 0);
    assert_string_equal(
        fixture_sql("SELECT key_form || ' ' || (next_fire_at = date_trunc('day', now()) + "
                    "interval '1 day') || ' ' || (last_fire_at = date_trunc('day', now())) "
                    "FROM reports.schedule_progress"),
        "date true true");
    /* Again, and by the next leader: nothing more. */
    assert_int_equal(leader_settle(&l), 0);
    leader_leave(&l);
    l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 0);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.outbox"), 3);
    leader_leave(&l);
}

/* Is it when the next firing is due, or a moment later? However long it takes to ask. */
static bool wakes_in_time(instant wake_at)
{
    int64_t left_ms = fixture_count("SELECT ceil(1000 * extract(epoch FROM min(next_fire_at) - "
                                    "clock_timestamp())) FROM reports.schedule_progress");
    return instant_before(wake_at, instant_add_ms(clock_now(), left_ms + 100));
}

static void test_live_firings_are_durable_soon_after_their_time_without_spinning(void **state)
{
    (void)state;
    fixture_schedule("often", "interval", "1 second", "10 milliseconds", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    struct planning_result r = {.wake_at = clock_now()};
    unsigned planned = 0;
    unsigned steps = 0;
    instant end = instant_add_ms(clock_now(), 30000);
    while (planned < 4 && instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, instant_poll_timeout(clock_now(), r.wake_at));
        assert_int_equal(leader_step(&l, false, &r), STATUS_OK);
        planned += r.planned;
        steps++;
        assert_true(r.more || wakes_in_time(r.wake_at));
    }
    assert_true(planned >= 4); /* more if the machine was busy for a second */
    assert_true(steps <= 30);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence WHERE cause = "
                                   "'schedule' AND planned_at BETWEEN scheduled_for AND "
                                   "scheduled_for + interval '10 seconds'"),
                     planned);
    leader_leave(&l);
}

static void test_an_outage_of_a_minute_schedule_is_one_gap_and_one_run(void **state)
{
    (void)state;
    fixture_schedule("minutely", "cron", "* * * * *", "3 hours", "misfire_grace = '1 second'");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_gap WHERE reason = "
                                   "'misfire_latest'"),
                     1);
    int64_t runs = fixture_count("SELECT count(*) FROM reports.occurrence");
    assert_true(runs >= 1 && runs <= 2); /* two if a minute began meanwhile */
    assert_int_equal(fixture_count("SELECT sum(firings) FROM reports.schedule_gap") + runs,
                     fixture_count("SELECT count(*) FROM generate_series(date_trunc('minute', "
                                   "(SELECT min(effective_from) FROM reports.schedule_version)) + "
                                   "interval '1 minute', (SELECT last_fire_at FROM "
                                   "reports.schedule_progress), '1 minute')"));
    leader_leave(&l);
}

static void test_a_stale_generation_is_refused_recorded_and_writes_nothing(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "3 days", NULL);
    struct leader old = leader_make();
    leader_prepare(&old);
    struct authority newer = fixture_lead();
    struct planning_result r;
    assert_int_equal(leader_step(&old, false, &r), STATUS_FENCED);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 0);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.fence_rejection WHERE generation "
                                   "= %lld AND stored_generation = %lld",
                                   (long long)old.authority.generation,
                                   (long long)newer.generation),
                     1);
    leader_leave(&old);
}

static void test_nothing_is_sent_after_the_lease(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "3 days", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    lease_set(&l.lease, (instant){0});
    struct planning_result r;
    assert_int_equal(leader_step(&l, true, &r), STATUS_AGAIN);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 0);
    leader_leave(&l);
}

static void test_a_hold_stops_planning(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "3 days", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)fixture_sql("INSERT INTO reports.hold (scope, reason) VALUES ('main', 'test')");
    struct planning_result r;
    assert_int_equal(leader_step(&l, false, &r), STATUS_HELD);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 0);
    leader_leave(&l);
}

static void test_a_locked_row_is_skipped_without_spinning_and_planned_when_free(void **state)
{
    (void)state;
    char name[32];
    for (int i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof name, "s%02d", i);
        fixture_schedule(name, "cron", "0 0 * * *", "1 day", NULL);
    }
    struct leader l = leader_make();
    leader_prepare(&l);
    PGconn *other = fixture_plan_second();
    PQclear(PQexec(other, "BEGIN; SELECT FROM reports.schedule_progress WHERE schedule = 's25' "
                          "FOR UPDATE"));
    assert_int_equal(leader_settle(&l), 49);
    /* It rests for a second each time. A busy machine may find the rest over already: again. */
    struct planning_result r;
    bool calm = false;
    for (int i = 0; i < 20 && !calm; i++) {
        assert_int_equal(leader_step(&l, false, &r), STATUS_OK);
        assert_false(r.more);
        int64_t ms = instant_ms_between(clock_now(), r.wake_at);
        assert_true(ms <= 1000);
        calm = ms > 20;
    }
    assert_true(calm);
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.occurrence WHERE schedule = 's25'"), 0);
    PQclear(PQexec(other, "COMMIT"));
    PQfinish(other);
    unsigned planned = 0;
    instant end = instant_add_ms(clock_now(), 15000);
    while (planned == 0 && instant_before(clock_now(), end)) {
        assert_int_equal(leader_step(&l, false, &r), STATUS_OK);
        planned += r.planned;
    }
    assert_int_equal(planned, 1);
    assert_string_equal(fixture_problem("s25"), "");
    leader_leave(&l);
}

/* A trigger that makes one schedule's occurrence fail, as bad data would. */
static void make_culprit(const char *schedule_name, const char *body)
{
    (void)fixture_sql(
        "CREATE OR REPLACE FUNCTION public.culprit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "IF NEW.schedule = '%s' THEN %s; END IF; RETURN NEW; END $$; CREATE TRIGGER culprit BEFORE "
        "INSERT ON reports.occurrence FOR EACH ROW EXECUTE FUNCTION public.culprit()",
        schedule_name, body);
}

static void remove_culprit(void)
{
    (void)fixture_sql("DROP TRIGGER culprit ON reports.occurrence");
}

static void test_a_culprit_gets_its_problem_and_the_other_49_are_planned(void **state)
{
    (void)state;
    char name[32];
    for (int i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof name, "s%02d", i);
        fixture_schedule(name, "cron", "0 0 * * *", "1 day", NULL);
    }
    make_culprit("s31", "RAISE EXCEPTION 'bad row of %', NEW.schedule USING HINT = 'mend it'");
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 49);
    assert_string_equal(fixture_problem("s31"), "bad row of s31. mend it");
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.schedule_progress WHERE problem IS NOT NULL"),
        1);
    remove_culprit();
    /* Mended by an edit: what was due meanwhile is a gap, and it goes on. */
    (void)fixture_sql("UPDATE reports.schedule SET description = 'mended' WHERE name = 's31'");
    (void)leader_settle(&l);
    assert_string_equal(fixture_problem("s31"), "");
    assert_string_equal(fixture_sql("SELECT reason || ' ' || firings FROM reports.schedule_gap"),
                        "problem_mended 1");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_progress WHERE "
                                   "next_fire_at IS NULL"),
                     0);
    leader_leave(&l);
}

static void test_of_many_due_at_once_the_first_are_durable_while_the_rest_is_planned(void **state)
{
    (void)state;
    (void)fixture_sql("INSERT INTO reports.schedule (name, report, kind, rule) SELECT 's' || n, "
                      "'nothing', 'cron', '0 0 * * *' FROM generate_series(1, 450) n");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 0);
    (void)fixture_sql(
        "UPDATE reports.schedule_progress SET next_fire_at = date_trunc('day', now()),"
        " next_nominal = date_trunc('day', now()), "
        "switched_at = date_trunc('day', now()) - interval '1 second'");
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 450);
    assert_string_equal(
        fixture_sql("SELECT string_agg(n::text, ' ' ORDER BY n) FROM (SELECT count(*) AS n FROM "
                    "reports.occurrence GROUP BY xmin::text) batches"),
        "190 260");
    leader_leave(&l);
}

static void test_a_server_that_fails_for_all_is_not_blamed_on_rows(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 day", NULL);
    make_culprit("daily", "RAISE EXCEPTION 'disk full' USING ERRCODE = '53100'");
    struct leader l = leader_make();
    leader_prepare(&l);
    struct planning_result r;
    assert_int_equal(leader_step(&l, false, &r), STATUS_AGAIN);
    assert_string_equal(fixture_problem("daily"), "");
    remove_culprit();
    make_culprit("daily", "RAISE EXCEPTION 'internal' USING ERRCODE = 'XX000'");
    assert_int_equal(leader_step(&l, false, &r), STATUS_AGAIN);
    assert_string_equal(fixture_problem("daily"), "");
    remove_culprit();
    assert_int_equal(leader_settle(&l), 1);
    leader_leave(&l);
}

static void test_a_slow_row_is_found_rested_and_blamed_only_after_failing_alone(void **state)
{
    (void)state;
    char name[32];
    for (int i = 0; i < 8; i++) {
        (void)snprintf(name, sizeof name, "s%02d", i);
        fixture_schedule(name, "cron", "0 0 * * *", "1 day", NULL);
    }
    make_culprit("s03", "PERFORM pg_sleep(30)");
    /* Long enough for what is not slow, on a busy machine too. */
    (void)fixture_sql("ALTER ROLE report_scheduler IN DATABASE %s SET statement_timeout = '1500ms'",
                      PQdb(fixture_plan_super()));
    struct leader l = leader_make();
    leader_prepare(&l);
    struct planning_result r;
    unsigned planned = 0;
    bool blamed_early = false;
    instant end = instant_add_ms(clock_now(), 60000);
    while (fixture_problem("s03")[0] == '\0' && instant_before(clock_now(), end)) {
        assert_int_equal(leader_step(&l, false, &r), STATUS_OK);
        planned += r.planned;
        blamed_early = blamed_early || (planned < 7 && fixture_problem("s03")[0] != '\0');
    }
    assert_int_equal(planned, 7);
    assert_false(blamed_early);
    assert_non_null(strstr(fixture_problem("s03"), "timeout"));
    remove_culprit();
    (void)fixture_sql("ALTER ROLE report_scheduler IN DATABASE %s SET statement_timeout = '3s'",
                      PQdb(fixture_plan_super()));
    leader_leave(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_due_firings_become_occurrences_jobs_and_messages_together),
        cmocka_unit_test(test_live_firings_are_durable_soon_after_their_time_without_spinning),
        cmocka_unit_test(test_an_outage_of_a_minute_schedule_is_one_gap_and_one_run),
        cmocka_unit_test(test_a_stale_generation_is_refused_recorded_and_writes_nothing),
        cmocka_unit_test(test_nothing_is_sent_after_the_lease),
        cmocka_unit_test(test_a_hold_stops_planning),
        cmocka_unit_test(test_a_locked_row_is_skipped_without_spinning_and_planned_when_free),
        cmocka_unit_test(test_a_culprit_gets_its_problem_and_the_other_49_are_planned),
        cmocka_unit_test(test_of_many_due_at_once_the_first_are_durable_while_the_rest_is_planned),
        cmocka_unit_test(test_a_server_that_fails_for_all_is_not_blamed_on_rows),
        cmocka_unit_test(test_a_slow_row_is_found_rested_and_blamed_only_after_failing_alone),
    };
    return fixture_plan_run("test_planning", tests, sizeof tests / sizeof tests[0], NULL);
}
