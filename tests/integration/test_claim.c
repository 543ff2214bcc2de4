/* Claims: the statements one by one, and whole workers against a real database. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "claims.h"
#include "fixture_worker.h"
#include "store_claim.h"

static struct test_database db;
static struct store *store;
static char me[UUID_TEXT_MAX];
static struct setting_list queues = {.count = 1, .items = {"default"}};

static instant soon(void)
{
    return instant_add_ms(clock_now(), WORKER_LIMIT_MS);
}

static void registered(char id[UUID_TEXT_MAX])
{
    struct worker_agreement agreement;
    struct error err;
    uuid_random(id);
    struct worker_identity w = {
        .id = id, .name = "test", .pid = 1, .version = "0", .queues = &queues, .slots = 4};
    if (store_worker_register(store, &w, soon(), &agreement, &err) != STATUS_OK) {
        print_error("%s\n", err.text);
        fail();
    }
    assert_int_equal(agreement.lease_ms, 60000);
    assert_true(uuid_is_valid(agreement.installation));
}

static int group_setup(void **state)
{
    (void)state;
    struct error err;
    test_database_create(&db);
    test_run(db.connection,
             "INSERT INTO reports.scope (name) VALUES ('main') ON CONFLICT DO NOTHING;"
             "INSERT INTO reports.report (name, kind) VALUES ('noop', 'noop');"
             "INSERT INTO reports.report (name, kind, program, format)"
             " VALUES ('hangs', 'program', 'hangs', 'txt')");
    struct store_options options = {
        .conninfo = db.worker, .application_name = "test_claim", .role = STORE_WORKER};
    if (store_open(&options, soon(), &store, &err) != STATUS_OK) {
        print_error("%s\n", err.text);
        return -1;
    }
    registered(me);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    store_close(store);
    test_database_drop(&db);
    return 0;
}

/* Between tests: no job is left to claim. */
static int close_jobs(void **state)
{
    (void)state;
    test_run(db.connection,
             "UPDATE reports.job SET state = 'failed', finished_at = clock_timestamp(),"
             " attempt_token = NULL, worker = NULL, lease_until = NULL"
             " WHERE state NOT IN ('succeeded', 'failed', 'cancelled')");
    return 0;
}

static void copy_id(char to[UUID_TEXT_MAX], const char *from)
{
    memcpy(to, from, UUID_TEXT_MAX);
}

static size_t claim_as(const char *worker, const char (*ids)[UUID_TEXT_MAX], size_t count,
                       struct job_list *list)
{
    struct claim_request request = {
        .worker = worker, .queues = &queues, .ids = ids, .count = count};
    struct error err;
    if (store_claim_ids(store, &request, soon(), list, &err) != STATUS_OK) {
        print_error("%s\n", err.text);
        fail();
    }
    return list->count;
}

static const char *about(const char *column, const char *job)
{
    static char sql[512];
    (void)snprintf(sql, sizeof sql, "SELECT %s FROM reports.job WHERE id = '%s'", column, job);
    return sql;
}

/* A claim as the outcome writer holds it. */
static struct claim claim_of(struct job *job, enum outcome_kind kind)
{
    struct claim c = {.job = job};
    c.outcome = (struct outcome){.kind = kind, .rows = -1};
    return c;
}

static enum outcome_verdict record_one(struct claim *c)
{
    enum outcome_verdict verdict = VERDICT_LOST;
    struct error err;
    const struct outcome_report report = {c->job->id, c->job->token, &c->outcome};
    if (store_record_outcomes(store, &report, 1, soon(), &verdict, &err) != STATUS_OK) {
        print_error("%s\n", err.text);
        fail();
    }
    return verdict;
}

static void test_second_claim_of_a_job_gets_nothing(void **state)
{
    (void)state;
    char ids[2][UUID_TEXT_MAX];
    struct job_list first = {0};
    struct job_list second = {0};
    struct claim_leftovers left;
    copy_id(ids[0], test_job(&db, "noop", "twice"));
    uuid_random(ids[1]);
    const char(*wanted)[UUID_TEXT_MAX] = (const char(*)[UUID_TEXT_MAX])ids;
    assert_int_equal(claim_as(me, wanted, 2, &first), 1);
    assert_string_equal(first.jobs[0]->id, ids[0]);
    assert_int_equal(first.jobs[0]->attempt, 1);
    assert_string_equal(first.jobs[0]->scheduled_for, "2030-04-12T06:00:00Z");
    assert_string_equal(first.jobs[0]->business_date, "2030-04-12");
    assert_int_equal(first.jobs[0]->timeout_ms, 3600000);
    assert_int_equal(claim_as(me, wanted, 2, &second), 0);
    assert_int_equal(store_claim_leftovers(store, wanted, 2, soon(), &left, NULL), STATUS_OK);
    assert_int_equal(left.duplicate, 1);
    assert_int_equal(left.unknown, 1);
    job_list_free(&first);
    job_list_free(&second);
}

static void test_job_that_is_not_due_or_in_another_queue_is_not_claimed(void **state)
{
    (void)state;
    char ids[2][UUID_TEXT_MAX];
    struct job_list list = {0};
    copy_id(ids[0], test_job(&db, "noop", "early"));
    copy_id(ids[1], test_job(&db, "noop", "foreign"));
    test_run(db.connection, "UPDATE reports.job SET run_after = clock_timestamp() + '1 hour' WHERE"
                            " occurrence_key = 'early';"
                            "UPDATE reports.job SET queue = 'other' WHERE occurrence_key ="
                            " 'foreign'");
    assert_int_equal(claim_as(me, (const char(*)[UUID_TEXT_MAX])ids, 2, &list), 0);
    job_list_free(&list);
}

static void test_lost_answer_is_found_again_by_asking_what_is_mine(void **state)
{
    (void)state;
    char id[1][UUID_TEXT_MAX];
    struct job_list claimed = {0};
    struct job_list found = {0};
    copy_id(id[0], test_job(&db, "noop", "adopt"));
    assert_int_equal(claim_as(me, (const char(*)[UUID_TEXT_MAX])id, 1, &claimed), 1);
    assert_int_equal(store_claims_of(store, me, soon(), &found, NULL), STATUS_OK);
    assert_int_equal(found.count, 1);
    assert_string_equal(found.jobs[0]->id, claimed.jobs[0]->id);
    assert_string_equal(found.jobs[0]->token, claimed.jobs[0]->token);
    job_list_free(&claimed);
    job_list_free(&found);
}

static void test_repeated_outcome_is_already_recorded_and_counts_once(void **state)
{
    (void)state;
    char id[1][UUID_TEXT_MAX];
    struct job_list list = {0};
    copy_id(id[0], test_job(&db, "noop", "repeat"));
    assert_int_equal(claim_as(me, (const char(*)[UUID_TEXT_MAX])id, 1, &list), 1);
    struct claim c = claim_of(list.jobs[0], OUTCOME_SUCCEEDED);
    assert_int_equal(record_one(&c), VERDICT_DONE);
    assert_int_equal(record_one(&c), VERDICT_ALREADY);
    assert_string_equal(test_text(db.connection, about("state", id[0])), "succeeded");
    job_list_free(&list);
}

static void test_outcome_under_an_old_token_changes_nothing(void **state)
{
    (void)state;
    char id[1][UUID_TEXT_MAX];
    struct job_list list = {0};
    copy_id(id[0], test_job(&db, "noop", "moved-on"));
    assert_int_equal(claim_as(me, (const char(*)[UUID_TEXT_MAX])id, 1, &list), 1);
    test_run(db.connection, "UPDATE reports.job SET attempt_token = gen_random_uuid(), attempt = 2"
                            " WHERE occurrence_key = 'moved-on'");
    struct claim c = claim_of(list.jobs[0], OUTCOME_SUCCEEDED);
    c.outcome.has_artifact = true;
    c.outcome.artifact = (struct artifact_record){.store = "main", .path = "x"};
    memset(c.outcome.artifact.sha256, 'a', DIGEST_TEXT_MAX - 1);
    assert_int_equal(record_one(&c), VERDICT_LOST);
    assert_string_equal(test_text(db.connection, about("state", id[0])), "running");
    assert_string_equal(test_text(db.connection, "SELECT count(*) FROM reports.artifact"), "0");
    job_list_free(&list);
}

static void test_heartbeat_renews_only_the_pairs_that_hold(void **state)
{
    (void)state;
    char ids[2][UUID_TEXT_MAX];
    struct job_list list = {0};
    struct heartbeat_reply replies[2];
    copy_id(ids[0], test_job(&db, "noop", "held"));
    copy_id(ids[1], test_job(&db, "noop", "stolen"));
    assert_int_equal(claim_as(me, (const char(*)[UUID_TEXT_MAX])ids, 2, &list), 2);
    test_run(db.connection,
             "UPDATE reports.job SET cancel_requested = true, lease_until = clock_timestamp()"
             " WHERE occurrence_key = 'held'; UPDATE reports.job SET attempt_token ="
             " gen_random_uuid() WHERE occurrence_key = 'stolen'");
    struct claim_pair pairs[2];
    for (size_t i = 0; i < 2; i++) {
        copy_id(pairs[i].job_id, list.jobs[i]->id);
        copy_id(pairs[i].token, list.jobs[i]->token);
    }
    assert_int_equal(store_heartbeat(store, me, pairs, 2, soon(), replies, NULL), STATUS_OK);
    size_t held = strcmp(pairs[0].job_id, ids[0]) == 0 ? 0 : 1;
    assert_true(replies[held].held);
    assert_true(replies[held].cancel);
    assert_false(replies[1 - held].held);
    assert_string_equal(
        test_text(db.connection, about("lease_until > clock_timestamp() + '50 s'", ids[0])), "t");
    job_list_free(&list);
}

static void test_ended_incarnation_is_told_so(void **state)
{
    (void)state;
    char other[UUID_TEXT_MAX];
    char sql[256];
    struct error err;
    struct job_list list = {0};
    struct heartbeat_reply reply;
    registered(other);
    (void)snprintf(sql, sizeof sql, "UPDATE reports.worker SET state = 'dead' WHERE id = '%s'",
                   other);
    test_run(db.connection, sql);
    struct claim_request request = {.worker = other, .queues = &queues, .count = 1};
    assert_int_equal(store_claim_ready(store, &request, soon(), &list, &err), STATUS_INVALID);
    assert_string_equal(err.code, STORE_ENDED);
    assert_int_equal(store_heartbeat(store, other, NULL, 0, soon(), &reply, &err), STATUS_INVALID);
    assert_string_equal(err.code, STORE_ENDED);
    assert_int_equal(store_worker_leave(store, other, "stopped", soon(), &err), STATUS_OK);
}

/* ---- whole workers ---- */

static const char settings[] =
    "slots = 4;\npull_idle_ms = 50;\nheartbeat_ms = 100;\nkill_grace_ms = 200;\n"
    "programs = ( { name = \"hangs\"; arguments = [\"/bin/sh\", \"-c\", \"sleep 600\"]; } );\n";

static void wait_logged(const struct test_worker *w, const char *text)
{
    instant limit = soon();
    while (!test_worker_logged(w, text)) {
        assert_true(instant_before(clock_now(), limit));
        (void)poll(NULL, 0, 10);
    }
}

static void test_cancellation_reaches_a_running_program_through_the_heartbeat(void **state)
{
    (void)state;
    struct test_worker w;
    char id[UUID_TEXT_MAX];
    test_worker_prepare(&w, &db, settings);
    test_worker_start(&w, &db);
    copy_id(id, test_job(&db, "hangs", "cancel"));
    assert_true(test_wait_text(db.connection, about("state", id), "running", WORKER_LIMIT_MS));
    test_run(db.connection,
             "UPDATE reports.job SET cancel_requested = true WHERE occurrence_key = 'cancel'");
    assert_true(test_wait_text(db.connection, about("state", id), "cancelled", WORKER_LIMIT_MS));
    assert_int_equal(test_worker_stop(&w, SIGTERM, WORKER_LIMIT_MS), 0);
    test_worker_done(&w, false);
}

static void test_worker_whose_claim_moved_on_drops_its_work(void **state)
{
    (void)state;
    struct test_worker w;
    char id[UUID_TEXT_MAX];
    test_worker_prepare(&w, &db, settings);
    test_worker_start(&w, &db);
    copy_id(id, test_job(&db, "hangs", "fenced"));
    assert_true(test_wait_text(db.connection, about("state", id), "running", WORKER_LIMIT_MS));
    test_run(db.connection, "UPDATE reports.job SET attempt_token = gen_random_uuid(), worker ="
                            " gen_random_uuid() WHERE occurrence_key = 'fenced'");
    wait_logged(&w, "claim was lost");
    assert_false(test_worker_logged(&w, "job failed")); /* what became of it is another's to tell */
    assert_string_equal(test_text(db.connection, about("state", id)), "running");
    assert_int_equal(test_worker_stop(&w, SIGTERM, WORKER_LIMIT_MS), 0);
    test_worker_done(&w, false);
}

static void test_worker_declared_dead_begins_a_new_incarnation(void **state)
{
    (void)state;
    struct test_worker w;
    char id[UUID_TEXT_MAX];
    test_worker_prepare(&w, &db, settings);
    test_worker_start(&w, &db);
    test_run(db.connection, "UPDATE reports.worker SET state = 'dead' WHERE state = 'alive' AND"
                            " name = 'test' AND pid > 1");
    assert_true(test_wait_text(db.connection,
                               "SELECT count(*) FROM reports.worker WHERE state = 'alive' AND"
                               " pid > 1",
                               "1", WORKER_LIMIT_MS));
    copy_id(id, test_job(&db, "noop", "after-death"));
    assert_true(test_wait_text(db.connection, about("state", id), "succeeded", WORKER_LIMIT_MS));
    assert_int_equal(test_worker_stop(&w, SIGTERM, WORKER_LIMIT_MS), 0);
    test_worker_done(&w, false);
}

/* A lock stands for a database that does not answer. A quarter of the lease is left to say so. */
static void test_job_whose_claim_cannot_be_renewed_is_killed_before_the_lease_ends(void **state)
{
    (void)state;
    struct test_worker w;
    char id[UUID_TEXT_MAX];
    test_run(db.connection, "UPDATE reports.installation SET claim_lease = '8 seconds'");
    test_worker_prepare(&w, &db, settings);
    test_worker_start(&w, &db);
    copy_id(id, test_job(&db, "hangs", "cut-off"));
    assert_true(test_wait_text(db.connection, about("state", id), "running", WORKER_LIMIT_MS));
    test_run(db.connection, "BEGIN; LOCK TABLE reports.worker");
    wait_logged(&w, "job failed");
    /* By worker or keeper; it has reported: the program was gone while the lease still held. */
    char before[96];
    (void)snprintf(before, sizeof before, "lease_until > '%s'::timestamptz",
                   test_worker_log_time(&w, "job failed"));
    assert_string_equal(test_text(db.connection, about(before, id)), "t");
    test_run(db.connection, "ROLLBACK; UPDATE reports.installation SET claim_lease = '60 seconds'");
    /* It is an attempt that counts, and the reason stands there. */
    assert_true(test_wait_text(db.connection, about("state || ' ' || left(error, 47)", id),
                               "retry_wait killed: its claim could not be renewed in time,",
                               WORKER_LIMIT_MS));
    assert_int_equal(test_worker_stop(&w, SIGTERM, WORKER_LIMIT_MS), 0);
    test_worker_done(&w, false);
}

#define STATES_OF_LOCKED                                                                           \
    "SELECT string_agg(state::text, ' ' ORDER BY occurrence_key) FROM reports.job WHERE"           \
    " occurrence_key LIKE 'locked-%'"

/* Three jobs that run, then somebody holds the row of the first, and that of the worker. */
static void three_run_and_one_is_locked(struct test_worker *w, const char *report)
{
    test_worker_start(w, &db);
    (void)test_job(&db, report, "locked-1");
    (void)test_job(&db, report, "locked-2");
    (void)test_job(&db, report, "locked-3");
    assert_true(test_wait_text(db.connection, STATES_OF_LOCKED, "running running running",
                               WORKER_LIMIT_MS));
    test_run(db.connection,
             "BEGIN; SELECT FROM reports.worker WHERE state = 'alive' FOR UPDATE;"
             " SELECT FROM reports.job WHERE occurrence_key = 'locked-1' FOR UPDATE");
}

static void test_locked_row_of_a_running_job_costs_no_other_job_its_claim(void **state)
{
    (void)state;
    struct test_worker w;
    test_run(db.connection, "UPDATE reports.installation SET claim_lease = '4 seconds'");
    test_worker_prepare(&w, &db, settings);
    three_run_and_one_is_locked(&w, "hangs");
    wait_logged(&w, "\"claims could not be renewed in time, their jobs are killed\" jobs=1");
    test_run(db.connection, "ROLLBACK; UPDATE reports.installation SET claim_lease = '60 seconds'");
    assert_string_equal(test_text(db.connection,
                                  "SELECT count(*) FROM reports.job WHERE occurrence_key IN"
                                  " ('locked-2', 'locked-3') AND lease_until > clock_timestamp()"),
                        "2");
    test_run(db.connection, "UPDATE reports.job SET cancel_requested = true WHERE state = 'running'"
                            " AND occurrence_key IN ('locked-2', 'locked-3')");
    assert_true(test_wait_text(db.connection, STATES_OF_LOCKED, "retry_wait cancelled cancelled",
                               WORKER_LIMIT_MS));
    assert_int_equal(test_worker_stop(&w, SIGTERM, WORKER_LIMIT_MS), 0);
    test_worker_done(&w, false);
    test_run(db.connection, "DELETE FROM reports.job WHERE occurrence_key LIKE 'locked-%';"
                            "DELETE FROM reports.occurrence WHERE occurrence_key LIKE 'locked-%'");
}

static void test_locked_row_of_an_ended_job_keeps_no_other_outcome_from_being_recorded(void **state)
{
    (void)state;
    struct test_worker w;
    char go[64];
    char extra[1024];
    (void)snprintf(go, sizeof go, "/tmp/test-claim-go-%d", (int)getpid());
    (void)snprintf(extra, sizeof extra,
                   "slots = 4;\npull_idle_ms = 50;\nheartbeat_ms = 100;\n"
                   "programs = ( { name = \"hangs\"; arguments = [\"/bin/sh\", \"-c\","
                   " \"until [ -e %s ]; do sleep 0.05; done; echo x\"]; } );\n",
                   go);
    test_worker_prepare(&w, &db, extra);
    three_run_and_one_is_locked(&w, "hangs");
    FILE *f = fopen(go, "w");
    assert_non_null(f);
    (void)fclose(f);
    assert_true(test_wait_text(db.connection, STATES_OF_LOCKED, "running succeeded succeeded",
                               WORKER_LIMIT_MS));
    wait_logged(&w, "outcome waits to be recorded, another session has its job row locked");
    test_run(db.connection, "ROLLBACK");
    assert_true(test_wait_text(db.connection, STATES_OF_LOCKED, "succeeded succeeded succeeded",
                               WORKER_LIMIT_MS));
    assert_int_equal(test_worker_stop(&w, SIGTERM, WORKER_LIMIT_MS), 0);
    test_worker_done(&w, false);
    (void)unlink(go);
}

static void jobs_many(int count)
{
    char sql[1024];
    (void)snprintf(
        sql, sizeof sql,
        "WITH j AS (SELECT gen_random_uuid() AS id, 'many-' || g AS key FROM generate_series(1, %d)"
        " g), o AS (INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id,"
        " scheduled_for, cause, version, incarnation, generation) SELECT 'noop', key, 'main', id,"
        " clock_timestamp(), 'schedule', 1, 1, 1 FROM j)"
        " INSERT INTO reports.job (id, schedule, occurrence_key, scope, report, queue, priority,"
        " state, run_after, max_attempts, retry_base, retry_cap, timeout) SELECT id, 'noop', key,"
        " 'main', 'noop', 'default', 0, 'queued', clock_timestamp(), 3, '1 s', '1 s', '1 hour'"
        " FROM j",
        count);
    test_run(db.connection, sql);
}

static void many_are_done_once(void)
{
    assert_true(test_wait_text(db.connection,
                               "SELECT count(*) FROM reports.job WHERE occurrence_key LIKE 'many-%'"
                               " AND state = 'succeeded'",
                               "600", 30000));
    assert_string_equal(test_text(db.connection,
                                  "SELECT count(*) || ' ' || max(a.attempt) FROM"
                                  " reports.job_attempt a JOIN reports.job j ON j.id = a.job_id"
                                  " WHERE j.occurrence_key LIKE 'many-%'"),
                        "600 1");
    test_run(db.connection, "DELETE FROM reports.occurrence WHERE occurrence_key LIKE 'many-%';"
                            "DELETE FROM reports.job WHERE occurrence_key LIKE 'many-%'");
}

static void test_two_workers_without_kafka_do_each_job_once(void **state)
{
    (void)state;
    struct test_worker w[2];
    for (int i = 0; i < 2; i++) {
        test_worker_prepare(&w[i], &db, settings);
        test_worker_start(&w[i], &db);
    }
    jobs_many(600);
    many_are_done_once();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(test_worker_stop(&w[i], SIGTERM, WORKER_LIMIT_MS), 0);
        test_worker_done(&w[i], false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_second_claim_of_a_job_gets_nothing, close_jobs),
        cmocka_unit_test_teardown(test_job_that_is_not_due_or_in_another_queue_is_not_claimed,
                                  close_jobs),
        cmocka_unit_test_teardown(test_lost_answer_is_found_again_by_asking_what_is_mine,
                                  close_jobs),
        cmocka_unit_test_teardown(test_repeated_outcome_is_already_recorded_and_counts_once,
                                  close_jobs),
        cmocka_unit_test_teardown(test_outcome_under_an_old_token_changes_nothing, close_jobs),
        cmocka_unit_test_teardown(test_heartbeat_renews_only_the_pairs_that_hold, close_jobs),
        cmocka_unit_test_teardown(test_ended_incarnation_is_told_so, close_jobs),
        cmocka_unit_test_teardown(test_cancellation_reaches_a_running_program_through_the_heartbeat,
                                  close_jobs),
        cmocka_unit_test_teardown(test_worker_whose_claim_moved_on_drops_its_work, close_jobs),
        cmocka_unit_test_teardown(test_worker_declared_dead_begins_a_new_incarnation, close_jobs),
        cmocka_unit_test_teardown(
            test_job_whose_claim_cannot_be_renewed_is_killed_before_the_lease_ends, close_jobs),
        cmocka_unit_test_teardown(test_locked_row_of_a_running_job_costs_no_other_job_its_claim,
                                  close_jobs),
        cmocka_unit_test_teardown(
            test_locked_row_of_an_ended_job_keeps_no_other_outcome_from_being_recorded, close_jobs),
        cmocka_unit_test_teardown(test_two_workers_without_kafka_do_each_job_once, close_jobs),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
