/* Edits while somebody leads, or nobody, and the ways a leader may miss one for a while. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_edits.h"

static void test_edits_of_all_kinds_in_an_outage_lose_nothing(void **state)
{
    (void)state;
    fixture_schedule("busy", "cron", "* * * * *", "6 hours",
                     "misfire = 'run_all', misfire_max = 1000, misfire_grace = '1 second'");
    struct leader l = leader_make();
    leader_prepare(&l);
    leader_leave(&l); /* it knows the schedule and has planned nothing */
    fixture_edit("busy", "rule = '*/5 * * * *'", "5 hours");
    fixture_edit("busy", "max_attempts = 7", "4 hours");
    fixture_edit("busy", "paused = true", "3 hours");
    fixture_edit("busy", "paused = false, rule = '*/2 * * * *'", "2 hours");
    fixture_edit("busy", "retry_base = '1 minute'", "1 hour");
    fixture_edit("busy",
                 "kind = 'interval', rule = '10 minutes', anchor = now() - interval '1 day'",
                 "30 minutes");
    l = leader_make();
    leader_prepare(&l);
    check_nothing_lost(&l, "busy", 140);
    assert_string_equal(fixture_sql("SELECT reason || ' ' || (firings BETWEEN 11 AND 13) FROM "
                                    "reports.schedule_gap"),
                        "paused true");
    /* Each job has the attempts of the version its firing was due under. */
    assert_string_equal(
        fixture_sql("SELECT count(*) || ' ' || count(*) FILTER (WHERE j.max_attempts = "
                    "v.max_attempts AND j.retry_base = v.retry_base AND o.scheduled_for >= "
                    "v.effective_from) || ' ' || count(DISTINCT o.version) FROM reports.occurrence "
                    "o JOIN reports.job j ON j.id = o.job_id JOIN reports.schedule_version v ON "
                    "v.schedule = o.schedule AND v.version = o.version"),
        fixture_sql("SELECT count(*) || ' ' || count(*) || ' 6' FROM reports.occurrence"));
    leader_leave(&l);
}

static void test_an_edit_in_an_outage_of_a_run_latest_schedule_runs_one_firing(void **state)
{
    (void)state;
    fixture_schedule("latest", "cron", "0 * * * *", "12 hours",
                     "misfire = 'run_latest', misfire_grace = '1 second'");
    fixture_edit("latest", "priority = 5", "6 hours 30 minutes");
    fixture_edit("latest", "rule = '30 * * * *'", "3 hours");
    struct leader l = leader_make();
    leader_prepare(&l);
    check_nothing_lost(&l, "latest", 11);
    assert_string_equal(fixture_sql("SELECT string_agg(version || ' ' || cause, ', ') FROM "
                                    "reports.occurrence"),
                        "4 misfire");
    leader_leave(&l);
}

static bool pause_is_a_second_old(void *argument)
{
    (void)argument;
    return fixture_count("SELECT count(*) FROM reports.schedule_version WHERE paused AND "
                         "clock_timestamp() > effective_from + interval '1.1 seconds'") == 1;
}

static void test_an_edit_whose_notification_was_lost_is_seen_before_the_next_firing(void **state)
{
    (void)state;
    fixture_schedule("ticking", "interval", "1 second", "10 milliseconds", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_true(leader_step_until(&l, "SELECT count(*) >= 2 FROM reports.occurrence", "t", 30000));
    /* The backend that listens is gone when the edit is made; nobody tells the next connection. */
    (void)fixture_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
                      "current_database() AND usename = 'report_scheduler'");
    struct planning_result r;
    instant end = instant_add_ms(clock_now(), 10000);
    while (leader_step(&l, false, &r) == STATUS_OK && instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, instant_poll_timeout(clock_now(), r.wake_at));
    }
    (void)fixture_sql("UPDATE reports.schedule SET paused = true");
    assert_true(fixture_wait(pause_is_a_second_old, NULL, 30000));
    store_close(l.store);
    l.store = fixture_plan_store();
    assert_true(leader_step_until(&l, "SELECT count(*) FROM reports.schedule_change", "0", 30000));
    assert_int_equal(leader_step(&l, false, &r), STATUS_OK);
    fixture_edit("ticking", "paused = false", "0 seconds");
    check_nothing_lost(&l, "ticking", 3); /* none ran in the pause, too */
    assert_true(fixture_count("SELECT sum(firings) FROM reports.schedule_gap WHERE reason = "
                              "'paused'") >= 1);
    leader_leave(&l);
}

static void test_an_edit_with_no_firing_and_no_notification_is_seen_by_the_slow_look(void **state)
{
    (void)state;
    fixture_schedule("yearly", "cron", "0 0 1 1 *", "1 day", NULL);
    struct leader l = leader_make();
    l.look_ms = 300; /* 30 s usually */
    leader_prepare(&l);
    (void)leader_settle(&l);
    (void)fixture_sql("UPDATE reports.schedule SET rule = '0 0 2 1 *'");
    assert_true(leader_step_until(&l, "SELECT count(*) FROM reports.schedule_change", "0", 20000));
    assert_int_equal(fixture_count("SELECT extract(day FROM next_nominal) FROM "
                                   "reports.schedule_progress"),
                     2);
    leader_leave(&l);
}

static void test_two_people_editing_at_once_both_have_their_version_in_order(void **state)
{
    (void)state;
    fixture_schedule("shared", "cron", "0 0 * * *", "1 day", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    PGconn *other = fixture_plan_second();
    PQclear(PQexec(other, "BEGIN; UPDATE reports.schedule SET priority = 1 WHERE name = 'shared'"));
    PGconn *third = fixture_plan_second();
    assert_int_equal(
        PQsendQuery(third, "UPDATE reports.schedule SET queue = 'default', max_attempts = 9 WHERE "
                           "name = 'shared'"),
        1);
    assert_true(leader_step_until(&l,
                                  "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type "
                                  "= 'Lock' AND datname = current_database()",
                                  "1", 20000));
    PQclear(PQexec(other, "COMMIT"));
    PQclear(PQgetResult(third));
    PQfinish(third);
    PQfinish(other);
    (void)leader_settle(&l);
    assert_string_equal(
        fixture_sql("SELECT string_agg(format('%%s:%%s:%%s', version, priority, max_attempts), ' ' "
                    "ORDER BY effective_from, version) FROM reports.schedule_version"),
        "1:0:3 2:1:3 3:1:9");
    assert_int_equal(fixture_count("SELECT version FROM reports.schedule_progress"), 3);
    check_nothing_lost(&l, "shared", 1);
    leader_leave(&l);
}

static void *step_in_thread(void *argument)
{
    struct planning_result r;
    struct leader *l = argument;
    return leader_step(l, false, &r) == STATUS_OK ? l : NULL;
}

static bool somebody_waits_for_a_lock(void *argument)
{
    (void)argument;
    return fixture_count("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND "
                         "datname = current_database()") == 1;
}

static void test_an_edit_between_reading_and_writing_a_batch_loses_nothing(void **state)
{
    (void)state;
    fixture_schedule("edited", "cron", "0 0 * * *", "3 days", NULL);
    /* The batch waits until the edit is made, however long that takes. */
    struct leader l = leader_make_patient();
    leader_prepare(&l);
    /* The batch has been read and planned, and waits at the fence for its turn to be written. */
    PGconn *second = fixture_plan_second();
    PQclear(PQexec(second, "BEGIN; SELECT FROM reports.fence WHERE scope = 'main' FOR UPDATE"));
    pthread_t thread;
    void *ok = NULL;
    assert_int_equal(pthread_create(&thread, NULL, step_in_thread, &l), 0);
    bool waits = fixture_wait(somebody_waits_for_a_lock, NULL, 20000);
    fixture_edit("edited", "rule = '30 0 * * *'", "2 days");
    PQclear(PQexec(second, "COMMIT"));
    PQfinish(second);
    assert_int_equal(pthread_join(thread, &ok), 0);
    assert_true(waits);
    assert_non_null(ok);
    /* All were due by the version in force, under their dates; the next is the new rule's. */
    (void)leader_settle(&l);
    assert_string_equal(
        fixture_sql(
            "SELECT count(*) || ' ' || count(DISTINCT occurrence_key) || ' ' || max(version)"
            " FROM reports.occurrence"),
        "3 3 1");
    assert_string_equal(fixture_sql("SELECT next_nominal::time FROM reports.schedule_progress"),
                        "00:30:00");
    assert_string_equal(fixture_gaps("edited"), "");
    leader_leave(&l);
}

static void
test_a_schedule_that_is_locked_while_it_is_edited_is_left_out_and_lost_nothing(void **state)
{
    (void)state;
    fixture_schedule("edited", "cron", "0 0 * * *", "3 days", NULL);
    fixture_schedule("other", "cron", "0 0 * * *", "3 days", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    PGconn *second = fixture_plan_second();
    PQclear(PQexec(second, "BEGIN; SELECT FROM reports.schedule_progress WHERE schedule = "
                           "'edited' FOR UPDATE"));
    assert_int_equal(leader_settle(&l), 3);
    PQclear(PQexec(second, "UPDATE reports.schedule SET paused = true WHERE name = 'edited'; "
                           "COMMIT"));
    PQfinish(second);
    assert_string_equal(
        fixture_sql("SELECT string_agg(DISTINCT schedule, ',') FROM reports.occurrence"), "other");
    assert_true(leader_step_until(&l, "SELECT count(*) FROM reports.occurrence", "6", 30000));
    assert_true(leader_step_until(&l, "SELECT count(*) FROM reports.schedule_change", "0", 30000));
    check_nothing_lost(&l, "other", 3);
    check_nothing_lost(&l, "edited", 3);
    leader_leave(&l);
}

static void test_an_edited_overlap_reaches_the_open_jobs(void **state)
{
    (void)state;
    fixture_schedule("over", "cron", "0 0 * * *", "3 days", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 3);
    fixture_edit("over", "overlap = 'queue'", "0 seconds");
    (void)leader_settle(&l);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.job WHERE overlap = 'queue'"), 3);
    leader_leave(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edits_of_all_kinds_in_an_outage_lose_nothing),
        cmocka_unit_test(test_an_edit_in_an_outage_of_a_run_latest_schedule_runs_one_firing),
        cmocka_unit_test(test_an_edit_whose_notification_was_lost_is_seen_before_the_next_firing),
        cmocka_unit_test(test_an_edit_with_no_firing_and_no_notification_is_seen_by_the_slow_look),
        cmocka_unit_test(test_two_people_editing_at_once_both_have_their_version_in_order),
        cmocka_unit_test(test_an_edit_between_reading_and_writing_a_batch_loses_nothing),
        cmocka_unit_test(
            test_a_schedule_that_is_locked_while_it_is_edited_is_left_out_and_lost_nothing),
        cmocka_unit_test(test_an_edited_overlap_reaches_the_open_jobs),
    };
    return fixture_plan_run("test_planning_live", tests, sizeof tests / sizeof tests[0], NULL);
}
