/* Requests on a real PostgreSQL: each is answered once, and none stops the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_leader.h"

#define FIRST "11111111-1111-4111-8111-111111111111"

static const char *ask(const char *id, const char *kind, const char *subject, const char *argument)
{
    return fixture_sql("SELECT state || coalesce(': ' || answer, '') FROM "
                       "reports.ask('%s', '%s', '%s', %s%s%s, '1 minute')",
                       id, kind, subject, argument != NULL ? "'" : "",
                       argument != NULL ? argument : "NULL", argument != NULL ? "'" : "");
}

static const char *answer_of(const char *id)
{
    return fixture_sql("SELECT state || coalesce(': ' || answer, '') FROM reports.request "
                       "WHERE id = '%s'",
                       id);
}

static void test_a_trigger_makes_one_occurrence_however_often_it_is_asked(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 second", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    for (int i = 0; i < 2; i++) {
        (void)ask(FIRST, "trigger", "daily", NULL);
        (void)leader_settle(&l);
    }
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence WHERE cause = 'manual' "
                                   "AND occurrence_key = '%s'",
                                   FIRST),
                     1);
    /* Two requests for one key: the second is answered with the job of the first. */
    (void)fixture_sql("SELECT reports.ask(gen_random_uuid(), 'trigger', 'daily', '2020-01-01', "
                      "'1 minute') FROM generate_series(1, 2)");
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("SELECT count(*) || ' ' || count(DISTINCT job_id) || ' ' || "
                                    "count(*) FILTER (WHERE answer LIKE '%%there already') "
                                    "FROM reports.request WHERE argument = '2020-01-01' AND "
                                    "state = 'done'"),
                        "2 1 1");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.outbox x JOIN reports.job j ON "
                                   "j.id = x.job_id"),
                     2);
    leader_leave(&l);
}

static void test_the_next_leader_gives_the_first_answer(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 second", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)ask(FIRST, "trigger", "daily", "again");
    (void)leader_settle(&l);
    leader_leave(&l);
    char first[256];
    (void)snprintf(first, sizeof first, "%s", answer_of(FIRST));
    assert_string_equal(first, "done: occurrence daily:again made");

    struct leader next = leader_make();
    leader_prepare(&next);
    assert_string_equal(ask(FIRST, "trigger", "daily", "again"), first);
    (void)leader_settle(&next);
    assert_string_equal(answer_of(FIRST), first);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.job"), 1);
    leader_leave(&next);
}

static void test_a_request_past_its_deadline_expires(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 second", NULL);
    (void)fixture_sql("SELECT reports.ask('%s', 'trigger', 'daily', NULL, '1 millisecond')", FIRST);
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("SELECT state FROM reports.request"), "expired");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 0);
    leader_leave(&l);
}

/* ---- one that is locked, poisonous or slow ---- */

/* Occurrences whose key begins with `prefix` make the server do `what`. */
static void key_spoil(const char *prefix, const char *what)
{
    (void)fixture_sql("CREATE OR REPLACE FUNCTION public.spoil() RETURNS trigger LANGUAGE plpgsql "
                      "AS $$ BEGIN %s; RETURN NEW; END $$",
                      what);
    (void)fixture_sql("CREATE TRIGGER spoil BEFORE INSERT ON reports.occurrence FOR EACH ROW WHEN "
                      "(NEW.occurrence_key LIKE '%s%%') EXECUTE FUNCTION public.spoil()",
                      prefix);
}

/* Of the leaders made from now on. */
static void statement_timeout(const char *time)
{
    (void)fixture_sql("ALTER ROLE report_scheduler IN DATABASE %s SET statement_timeout = '%s'",
                      PQdb(fixture_plan_super()), time);
}

static void test_a_locked_request_stops_no_other_and_is_answered_when_it_can_be(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 second", NULL);
    fixture_schedule("other", "cron", "0 0 * * *", "1 second", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    PGconn *user = fixture_plan_second();
    PQclear(PQexec(user, "BEGIN; SELECT FROM reports.schedule WHERE name = 'daily' FOR UPDATE"));
    (void)ask(FIRST, "pause", "daily", "the source is being moved");
    (void)ask("22222222-2222-4222-8222-222222222222", "trigger", "other", "k");
    (void)leader_settle(&l);
    assert_string_equal(answer_of(FIRST), "pending");
    assert_string_equal(answer_of("22222222-2222-4222-8222-222222222222"),
                        "done: occurrence other:k made");
    PQfinish(user);
    assert_true(leader_step_until(&l, "SELECT state FROM reports.request WHERE kind = 'pause'",
                                  "done", 20000));
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.schedule WHERE name = 'daily' AND paused"), 1);
    leader_leave(&l);
}

static void test_a_poisonous_request_stops_no_other_and_is_refused_with_the_reason(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 second", NULL);
    key_spoil("poison", "RAISE division_by_zero");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)ask(FIRST, "trigger", "daily", "poison");
    (void)ask("22222222-2222-4222-8222-222222222222", "trigger", "daily", "good");
    struct planning_result r;
    assert_int_equal(leader_step(&l, true, &r), STATUS_OK);
    assert_string_equal(answer_of(FIRST), "refused: it cannot be carried out: division_by_zero");
    assert_string_equal(answer_of("22222222-2222-4222-8222-222222222222"),
                        "done: occurrence daily:good made");
    leader_leave(&l);
}

static void test_a_server_that_cannot_now_is_asked_again_and_not_in_a_busy_loop(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 second", NULL);
    /* A sequence counts what is rolled back, too. Missing rights are not the row's fault. */
    (void)fixture_sql("CREATE SEQUENCE IF NOT EXISTS public.tries");
    (void)fixture_sql("GRANT USAGE ON SEQUENCE public.tries TO report_owner");
    (void)fixture_sql("ALTER SEQUENCE public.tries RESTART");
    key_spoil("poison", "PERFORM nextval('public.tries'); RAISE insufficient_privilege");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)ask(FIRST, "trigger", "daily", "poison");
    instant begin = clock_now();
    (void)leader_settle(&l);
    assert_string_equal(answer_of(FIRST), "pending");
    /* Stepped all the time, it is tried a second later, and not before. */
    assert_true(leader_step_until(&l, "SELECT last_value FROM public.tries", "2", 20000));
    assert_true(instant_ms_between(begin, clock_now()) >= 900);
    assert_string_equal(answer_of(FIRST), "pending");
    (void)fixture_sql("UPDATE reports.request SET deadline = clock_timestamp()");
    assert_true(leader_step_until(&l, "SELECT state FROM reports.request", "expired", 20000));
    leader_leave(&l);
}

static void test_more_failing_requests_than_a_step_takes_hide_none_behind_them(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 second", NULL);
    key_spoil("poison", "RAISE insufficient_privilege");
    (void)fixture_sql("SELECT reports.ask(gen_random_uuid(), 'trigger', 'daily', 'poison-' || n, "
                      "'1 minute') FROM generate_series(1, 150) n");
    (void)ask(FIRST, "trigger", "daily", "good");
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    assert_string_equal(answer_of(FIRST), "done: occurrence daily:good made");
    leader_leave(&l);
}

static void test_a_slow_request_ends_at_the_statement_timeout_and_the_others_go_on(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 second", NULL);
    key_spoil("slow", "PERFORM pg_sleep(30)");
    statement_timeout("1s"); /* three usually */
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    (void)ask(FIRST, "trigger", "daily", "slow");
    (void)ask("22222222-2222-4222-8222-222222222222", "trigger", "daily", "good");
    struct planning_result r;
    assert_int_equal(leader_step(&l, true, &r), STATUS_OK);
    assert_true(leader_step_until(&l, "SELECT state FROM reports.request WHERE argument = 'good'",
                                  "done", 30000));
    assert_string_equal(answer_of(FIRST), "pending");
    /* Three times while others were answered: it is to blame. */
    for (int i = 0; i < 3; i++) {
        (void)fixture_sql("SELECT reports.ask(gen_random_uuid(), 'trigger', 'daily', 'more-%d', "
                          "'1 minute')",
                          i);
        assert_int_equal(leader_step(&l, true, &r), STATUS_OK);
    }
    assert_true(leader_step_until(&l, "SELECT state FROM reports.request WHERE argument = 'slow'",
                                  "refused", 30000));
    assert_non_null(strstr(answer_of(FIRST), "it cannot be carried out: canceling statement"));
    statement_timeout("3s");
    leader_leave(&l);
}

static void test_requests_of_one_schedule_are_carried_out_in_the_order_they_were_asked(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 second", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    PGconn *user = fixture_plan_second();
    PQclear(PQexec(user, "BEGIN; SELECT FROM reports.schedule WHERE name = 'daily' FOR UPDATE"));
    (void)ask(FIRST, "pause", "daily", NULL);
    (void)leader_settle(&l);
    PQfinish(user); /* the pause rests, and could be carried out */
    (void)ask("22222222-2222-4222-8222-222222222222", "resume", "daily", NULL);
    (void)leader_settle(&l);
    assert_true(leader_step_until(&l, "SELECT count(*) FROM reports.request WHERE state = 'done'",
                                  "2", 20000));
    assert_string_equal(answer_of(FIRST), "done: schedule \"daily\" is paused");
    assert_string_equal(answer_of("22222222-2222-4222-8222-222222222222"),
                        "done: schedule \"daily\" is resumed");
    assert_string_equal(fixture_sql("SELECT paused FROM reports.schedule"), "f");
    leader_leave(&l);
}

static void test_requests_of_one_job_are_carried_out_in_order_however_it_is_named(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 day", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    assert_int_equal(leader_settle(&l), 1);
    char key[64];
    char id[64];
    (void)snprintf(key, sizeof key, "daily:%s",
                   fixture_sql("SELECT occurrence_key FROM reports.job"));
    (void)snprintf(id, sizeof id, "%s", fixture_sql("SELECT id FROM reports.job"));
    PGconn *user = fixture_plan_second();
    PQclear(PQexec(user, "BEGIN; SELECT FROM reports.job FOR UPDATE"));
    (void)ask(FIRST, "cancel", key, NULL);
    (void)leader_settle(&l);
    PQfinish(user);
    (void)ask("22222222-2222-4222-8222-222222222222", "retry", id, NULL);
    (void)leader_settle(&l);
    assert_true(leader_step_until(&l, "SELECT count(*) FROM reports.request WHERE state = 'done'",
                                  "2", 20000));
    assert_string_equal(fixture_sql("SELECT state FROM reports.job"), "queued");
    leader_leave(&l);
}

static void test_a_request_waits_for_no_older_one_that_has_expired(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 second", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    (void)fixture_sql("SELECT reports.ask('%s', 'pause', 'daily', NULL, '1 millisecond')", FIRST);
    PGconn *user = fixture_plan_second();
    PQclear(PQexec(user, "BEGIN; SELECT FROM reports.request FOR UPDATE"));
    (void)ask("22222222-2222-4222-8222-222222222222", "pause", "daily", NULL);
    (void)leader_settle(&l);
    assert_string_equal(answer_of("22222222-2222-4222-8222-222222222222"),
                        "done: schedule \"daily\" is paused");
    PQfinish(user);
    leader_leave(&l);
}

/* ---- jobs ---- */

static void test_cancel_and_retry_of_a_job_are_answered(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 second", NULL);
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)ask(FIRST, "trigger", "daily", "k");
    (void)leader_settle(&l);
    (void)ask("22222222-2222-4222-8222-222222222222", "cancel", "daily:k", NULL);
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("SELECT state FROM reports.job"), "cancelled");
    (void)ask("33333333-3333-4333-8333-333333333333", "retry", "daily:k", NULL);
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("SELECT state FROM reports.job"), "queued");
    (void)ask("44444444-4444-4444-8444-444444444444", "retry", "daily:k", NULL);
    (void)leader_settle(&l);
    assert_string_equal(
        fixture_sql("SELECT string_agg(state, ' ' ORDER BY id) FROM reports.request"),
        "done done done refused");
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
    assert_string_equal(fixture_sql("SELECT state = 'retry_wait' OR run_after <= "
                                    "clock_timestamp() FROM reports.job"),
                        "t");
    assert_true(leader_step_until(&l, "SELECT state FROM reports.job", "queued", 20000));
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
    assert_true(leader_step_until(&l, "SELECT state FROM reports.job", "retry_wait", 30000));
    assert_true(instant_ms_between(begin, clock_now()) >= 2900);
    assert_string_equal(fixture_sql("SELECT outcome FROM reports.job_attempt"), "lost");
    leader_leave(&l);
}

static void before_each(void)
{
    (void)fixture_sql("DROP TRIGGER IF EXISTS spoil ON reports.occurrence");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_trigger_makes_one_occurrence_however_often_it_is_asked),
        cmocka_unit_test(test_the_next_leader_gives_the_first_answer),
        cmocka_unit_test(test_a_request_past_its_deadline_expires),
        cmocka_unit_test(test_a_locked_request_stops_no_other_and_is_answered_when_it_can_be),
        cmocka_unit_test(test_a_poisonous_request_stops_no_other_and_is_refused_with_the_reason),
        cmocka_unit_test(test_a_server_that_cannot_now_is_asked_again_and_not_in_a_busy_loop),
        cmocka_unit_test(test_more_failing_requests_than_a_step_takes_hide_none_behind_them),
        cmocka_unit_test(test_a_slow_request_ends_at_the_statement_timeout_and_the_others_go_on),
        cmocka_unit_test(
            test_requests_of_one_schedule_are_carried_out_in_the_order_they_were_asked),
        cmocka_unit_test(test_requests_of_one_job_are_carried_out_in_order_however_it_is_named),
        cmocka_unit_test(test_a_request_waits_for_no_older_one_that_has_expired),
        cmocka_unit_test(test_cancel_and_retry_of_a_job_are_answered),
        cmocka_unit_test(test_a_retry_whose_wait_is_over_is_queued_with_a_message),
        cmocka_unit_test(test_a_lapsed_claim_is_reaped_but_not_before_reap_not_before),
    };
    return fixture_plan_run("test_planning_requests", tests, sizeof tests / sizeof tests[0],
                            before_each);
}
