/* Requests, retries and lapsed claims on a real PostgreSQL. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture_leader.h"

static void test_a_trigger_makes_one_occurrence_however_often_it_is_asked(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 second", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    const char *first = "11111111-1111-4111-8111-111111111111";
    for (int i = 0; i < 2; i++) {
        (void)fixture_sql("SELECT reports.request_trigger('%s', 'daily', NULL, '1 minute')", first);
        (void)leader_settle(&l);
    }
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence WHERE cause = 'manual' "
                                   "AND occurrence_key = '%s'",
                                   first),
                     1);
    /* Two requests for one key: the second is answered with the job of the first. */
    (void)fixture_sql("SELECT reports.request_trigger(gen_random_uuid(), 'daily', '2031-01-01', "
                      "'1 minute') FROM generate_series(1, 2)");
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("SELECT count(*) || ' ' || count(DISTINCT job_id) || ' ' || "
                                    "count(*) FILTER (WHERE answer LIKE '%%there already') "
                                    "FROM reports.request WHERE argument = '2031-01-01' AND "
                                    "state = 'done'"),
                        "2 1 1");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.outbox x JOIN reports.job j ON "
                                   "j.id = x.job_id"),
                     2);
    leader_leave(&l);
}

static void test_a_request_past_its_deadline_expires(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 second", NULL);
    (void)fixture_sql("SELECT reports.request_trigger(gen_random_uuid(), 'daily', NULL, "
                      "'1 millisecond')");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("SELECT state FROM reports.request"), "expired");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 0);
    leader_leave(&l);
}

static void test_a_retry_whose_wait_is_over_is_queued_with_a_message(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 day", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 1);
    (void)fixture_sql("DELETE FROM reports.outbox");
    (void)fixture_sql("UPDATE reports.job SET state = 'retry_wait', attempt = 1, run_after = "
                      "clock_timestamp() + interval '1 second'");
    struct planning_result r;
    assert_int_equal(leader_step(&l, true, &r), STATUS_OK);
    assert_string_equal(fixture_sql("SELECT state FROM reports.job"), "retry_wait");
    assert_true(leader_step_until(&l, "SELECT state FROM reports.job", "queued", 8000));
    assert_string_equal(
        fixture_sql("SELECT x.dispatch_number || ' ' || j.dispatch_number FROM reports.outbox x "
                    "JOIN reports.job j ON j.id = x.job_id"),
        "2 2");
    leader_leave(&l);
}

static void claim_lapsed(const char *ago)
{
    (void)fixture_sql("INSERT INTO reports.worker (id, name, pid, version, queues, slots) VALUES "
                      "('22222222-2222-4222-8222-222222222222', 'w', 1, '0', '{default}', 1)");
    (void)fixture_sql("UPDATE reports.job SET state = 'running', attempt = 1, attempt_token = "
                      "gen_random_uuid(), worker = '22222222-2222-4222-8222-222222222222', "
                      "claimed_at = clock_timestamp() - interval '1 hour', lease_until = "
                      "clock_timestamp() - interval '%s'",
                      ago);
}

static void test_a_lapsed_claim_is_reaped_but_not_before_reap_not_before(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 day", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 1);
    claim_lapsed("10 minutes");
    (void)fixture_sql("UPDATE reports.fence_pulse SET beat_at = clock_timestamp(), reap_not_before "
                      "= clock_timestamp() + interval '3 seconds'");
    instant begin = clock_now();
    assert_true(leader_step_until(&l, "SELECT state FROM reports.job", "retry_wait", 15000));
    assert_true(instant_ms_between(begin, clock_now()) >= 2900);
    assert_string_equal(fixture_sql("SELECT outcome FROM reports.job_attempt"), "lost");
    leader_leave(&l);
}

static int clear(void **state)
{
    (void)state;
    fixture_plan_clear();
    return 0;
}

static int open_database(void **state)
{
    (void)state;
    return fixture_plan_open("test_planning_requests");
}

static int close_database(void **state)
{
    (void)state;
    return fixture_plan_close();
}

#define T(name) cmocka_unit_test_setup(name, clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_a_trigger_makes_one_occurrence_however_often_it_is_asked),
        T(test_a_request_past_its_deadline_expires),
        T(test_a_retry_whose_wait_is_over_is_queued_with_a_message),
        T(test_a_lapsed_claim_is_reaped_but_not_before_reap_not_before),
    };
    return cmocka_run_group_tests(tests, open_database, close_database);
}
