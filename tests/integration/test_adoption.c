/* What a worker takes for a claim whose answer was lost: only what it has never begun, and nothing
 * while a hold stands. A restored dump shows claims as running that have ended long ago. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_worker.h"

static struct test_database db;
static struct test_worker w;

/* The call after each restart of the sequence is one whose fate the worker is not told. */
static const char loses_an_answer[] =
    "ALTER FUNCTION reports.claim_ready(uuid, text[], integer) RENAME TO claim_ready_then;"
    "CREATE SEQUENCE public.call START 2; GRANT USAGE ON public.call TO report_worker;"
    "CREATE FUNCTION reports.claim_ready(p_worker uuid, p_queues text[], p_limit integer)"
    " RETURNS SETOF reports.claimed_job LANGUAGE plpgsql AS $$ BEGIN"
    " IF nextval('public.call') = 1 THEN RAISE 'not now' USING ERRCODE = 'query_canceled'; END IF;"
    " RETURN QUERY SELECT * FROM reports.claim_ready_then(p_worker, p_queues, p_limit);"
    " END $$; GRANT EXECUTE ON FUNCTION reports.claim_ready(uuid, text[], integer),"
    " reports.claim_ready_then(uuid, text[], integer) TO report_worker";

static int group_setup(void **state)
{
    (void)state;
    test_database_create(&db);
    test_run(db.connection,
             "INSERT INTO reports.scope (name) VALUES ('main') ON CONFLICT DO NOTHING;"
             "INSERT INTO reports.report (name, kind) VALUES ('noop', 'noop')");
    test_run(db.connection, loses_an_answer);
    test_worker_prepare(&w, &db, "slots = 4;\npull_idle_ms = 50;\nheartbeat_ms = 100;\n");
    test_worker_start(&w, &db);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    assert_int_equal(test_worker_stop(&w, SIGTERM, WORKER_LIMIT_MS), 0);
    test_worker_done(&w, false);
    test_database_drop(&db);
    return 0;
}

static void wait_logged(const char *text)
{
    instant limit = instant_add_ms(clock_now(), WORKER_LIMIT_MS);
    while (!test_worker_logged(&w, text)) {
        if (!instant_before(clock_now(), limit)) {
            test_worker_done(&w, true);
            fail_msg("not logged: %s", text);
        }
        (void)poll(NULL, 0, 10);
    }
}

static void answer_is_lost(void)
{
    test_run(db.connection, "ALTER SEQUENCE public.call RESTART WITH 1");
}

static void wait_state(const char *key, const char *state)
{
    char sql[160];
    (void)snprintf(sql, sizeof sql, "SELECT state FROM reports.job WHERE occurrence_key = '%s'",
                   key);
    assert_true(test_wait_text(db.connection, sql, state, WORKER_LIMIT_MS));
}

/* The row is as in a dump that was made while the job ran. */
static void test_claim_that_was_closed_here_is_not_run_again_when_a_dump_is_restored(void **state)
{
    (void)state;
    (void)test_job(&db, "noop", "restored");
    wait_state("restored", "succeeded");
    test_run(db.connection,
             "WITH a AS (DELETE FROM reports.job_attempt a USING reports.job j WHERE j.id ="
             " a.job_id AND j.occurrence_key = 'restored' RETURNING a.*)"
             " UPDATE reports.job j SET state = 'running', finished_at = NULL, attempt_token ="
             " a.token, worker = a.worker, lease_until = clock_timestamp() + '1 minute'"
             " FROM a WHERE j.id = a.job_id");
    answer_is_lost();
    wait_logged("left to lapse");
    assert_true(test_worker_logged(&w, "claims=noop:restored"));
    assert_false(test_worker_logged(&w, "adopted"));
    /* It goes on with others, so it would have begun this one by now. */
    (void)test_job(&db, "noop", "next");
    wait_state("next", "succeeded");
    wait_state("restored", "running");
    test_run(db.connection, "DELETE FROM reports.job WHERE occurrence_key = 'restored'");
}

static void test_lost_claim_waits_for_the_hold_to_be_lifted(void **state)
{
    (void)state;
    test_run(db.connection, "SELECT reports.raise_hold('main', NULL, 'restored')");
    (void)test_job(&db, "noop", "unheard");
    test_run(db.connection,
             "UPDATE reports.job SET state = 'running', attempt = 1, attempt_token ="
             " gen_random_uuid(), worker = (SELECT id FROM reports.worker WHERE state = 'alive'),"
             " claimed_at = clock_timestamp(), lease_until = clock_timestamp() + '1 minute'"
             " WHERE occurrence_key = 'unheard'");
    answer_is_lost();
    wait_logged("claims under a hold");
    assert_true(test_worker_logged(&w, "claims=noop:unheard"));
    wait_state("unheard", "running");
    test_run(db.connection,
             "SELECT reports.lift_hold(id) FROM reports.hold WHERE lifted_at IS NULL");
    wait_state("unheard", "succeeded");
    wait_logged("adopted claims whose answer was lost");
    assert_true(test_worker_logged(&w, "lost\" jobs=1 claims=noop:unheard"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_claim_that_was_closed_here_is_not_run_again_when_a_dump_is_restored),
        cmocka_unit_test(test_lost_claim_waits_for_the_hold_to_be_lifted),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
