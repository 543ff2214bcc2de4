/* The relay between a real PostgreSQL and a real Kafka, and its faults; the broker's own death is
 * in test_relay_broker.c. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "fixture_relay.h"

#define ROWS 500

static instant in_ms(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

struct counted {
    struct relay *relay;
    uint64_t published, buried;
};

static bool is_counted(void *argument)
{
    const struct counted *want = argument;
    struct relay_snapshot s = relay_read(want->relay);
    return s.published == want->published && s.buried == want->buried;
}

/* What it has done stands in the snapshot a moment after it stands in the database. */
static bool comes_to_count(struct relay *r, uint64_t published, uint64_t buried)
{
    struct counted want = {r, published, buried};
    return fixture_wait(is_counted, &want, 30000);
}

static void test_rows_are_published_exactly_and_deleted(void **state)
{
    (void)state;
    struct relay_place where = {fixture_environment("RS_KAFKA"), fixture_topic("relay", 0), NULL};
    relay_rows(ROWS, "k");
    (void)fixture_sql("CREATE TABLE public.sent AS SELECT job_id, 'main/' || id AS ce_id FROM "
                      "reports.outbox");
    struct relay *r = relay_run(fixture_lead(), where);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    /* A later row, with a wake-up: published within the idle interval by far. */
    relay_rows(1, "later");
    instant begin = clock_now();
    relay_wake(r);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    assert_true(instant_ms_between(begin, clock_now()) < 5000); /* of ten */
    assert_int_equal(relay_read_back(where.topic, ROWS + 1), ROWS + 1);
    assert_string_equal(fixture_sql("SELECT count(*) || ' ' || count(DISTINCT s.job_id) FROM "
                                    "public.sent s JOIN public.came c USING (job_id, ce_id)"),
                        "500 500");
    relay_stop(r, in_ms(5000));
    (void)fixture_sql("DROP TABLE public.sent");
}

/* A broker measures whole batches: one that is too large is refused with all its messages. */
static void test_a_long_backlog_goes_in_batches_that_the_broker_takes(void **state)
{
    (void)state;
    struct relay_place where = {fixture_environment("RS_KAFKA"), fixture_topic("relay", 0), NULL};
    relay_rows(5000, "k");
    struct relay *r = relay_run(fixture_lead(), where);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    assert_true(comes_to_count(r, 5000, 0));
    assert_int_equal(relay_read(r).failed, 0);
    relay_stop(r, in_ms(5000));
}

static bool one_row_is_left(void *argument)
{
    (void)argument;
    return fixture_count("SELECT count(*) FROM reports.outbox") == 1;
}

static void test_a_row_that_a_session_holds_keeps_no_other_from_being_deleted(void **state)
{
    (void)state;
    struct relay_place where = {fixture_environment("RS_KAFKA"), fixture_topic("relay-held", 0),
                                NULL};
    struct authority a = fixture_lead();
    relay_rows(ROWS, "held");
    (void)fixture_sql("BEGIN; SELECT id FROM reports.outbox ORDER BY id LIMIT 1 FOR UPDATE");
    struct relay *r = relay_run(a, where);
    assert_true(fixture_wait(one_row_is_left, NULL, 30000));
    (void)fixture_sql("ROLLBACK");
    relay_rows(1, "later");
    relay_wake(r);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    assert_true(comes_to_count(r, ROWS + 1, 0)); /* none of them twice */
    relay_stop(r, in_ms(5000));
}

static void test_rows_that_appear_below_the_bound_are_found(void **state)
{
    (void)state;
    struct relay_place where = {fixture_environment("RS_KAFKA"), fixture_topic("late", 0), NULL};
    struct relay *r = relay_run(fixture_lead(), where);
    /* An id drawn early and committed late. */
    PGconn *slow = fixture_plan_second();
    PQclear(PQexec(slow, "BEGIN; INSERT INTO reports.outbox (scope, job_id, dispatch_number, "
                         "schedule, occurrence_key, queue, scheduled_for, generation) VALUES "
                         "('main', gen_random_uuid(), 1, 'daily', 'slow', 'default', now(), 1)"));
    relay_rows(20, "fast");
    relay_wake(r);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    PQclear(PQexec(slow, "COMMIT"));
    PQfinish(slow);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    assert_true(comes_to_count(r, 21, 0));
    relay_stop(r, in_ms(5000));
}

static void test_a_fenced_relay_stops_and_its_rows_stay(void **state)
{
    (void)state;
    struct relay_place where = {fixture_environment("RS_KAFKA"), fixture_topic("fenced", 0), NULL};
    struct authority old = fixture_lead();
    struct relay *r = relay_run(old, where);
    assert_true(fixture_wait(relay_has_kafka, r, 30000));
    struct authority newer = fixture_lead();
    relay_rows(10, "k");
    relay_wake(r);
    assert_true(fixture_wait(relay_says_fenced, r, 30000));
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.outbox"), 10);
    assert_true(fixture_count("SELECT count(*) FROM reports.fence_rejection WHERE generation = "
                              "%lld AND operation = 'outbox_ack'",
                              (long long)old.generation) >= 1);
    relay_stop(r, in_ms(5000));
    /* The successor's relay publishes them: at worst twice, never not at all. */
    r = relay_run(newer, where);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    relay_stop(r, in_ms(5000));
    assert_true(relay_read_jobs(where.topic, 10));
}

static void test_nothing_is_published_without_the_lease(void **state)
{
    (void)state;
    struct relay_place where = {fixture_environment("RS_KAFKA"), fixture_topic("lease", 0), NULL};
    relay_rows(10, "k");
    lease_set(&relay_lease, (instant){0});
    struct relay *r = relay_run(fixture_lead(), where);
    assert_false(fixture_wait(relay_outbox_is_empty, NULL, 1500));
    assert_int_equal(relay_read(r).published, 0);
    fixture_lease(&relay_lease, 600000);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    relay_stop(r, in_ms(5000));
}

/* A copy, or a server that failed over: its outbox is not what the leader established on, and the
 * same id may name another row there. */
static void test_nothing_is_published_from_a_server_that_no_leader_has_looked_at(void **state)
{
    (void)state;
    struct relay_place where = {fixture_environment("RS_KAFKA"), fixture_topic("moved", 0), NULL};
    struct authority a = fixture_lead();
    relay_rows(10, "k");
    (void)fixture_sql("UPDATE reports.fence SET server_started_at = server_started_at - "
                      "interval '1 hour'");
    struct relay *r = relay_run(a, where);
    assert_true(fixture_wait(relay_has_kafka, r, 30000));
    assert_false(fixture_wait(relay_outbox_is_empty, NULL, 2500)); /* some tries, by the backoff */
    assert_int_equal(relay_read(r).published, 0);
    (void)fixture_sql("UPDATE reports.fence SET server_started_at = pg_postmaster_start_time()");
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.backend WHERE purpose = 'relay'"),
                     1);
    relay_stop(r, in_ms(5000));
}

static void test_a_row_the_broker_refuses_is_buried_and_the_others_pass(void **state)
{
    (void)state;
    static const char *const properties[] = {"compression.type=none", NULL};
    struct relay_place where = {fixture_environment("RS_KAFKA"), fixture_topic("small", 760),
                                properties};
    relay_rows(30, "k");
    (void)fixture_sql("INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, "
                      "occurrence_key, queue, scheduled_for, generation) VALUES ('main', "
                      "gen_random_uuid(), 1, repeat('s', 63), repeat('k', 127), repeat('q', 63), "
                      "now(), 1)");
    relay_rows(30, "l");
    struct relay *r = relay_run(fixture_lead(), where);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    relay_stop(r, in_ms(5000));
    assert_string_equal(fixture_sql("SELECT count(*) || ' ' || min(length(schedule)) || ' ' || "
                                    "(min(reason) ILIKE '%%size%%') FROM reports.outbox_dead"),
                        "1 63 true");
    assert_true(relay_read_back(where.topic, 60) == 60);
    assert_int_equal(fixture_count("SELECT count(DISTINCT job_id) FROM public.came"), 60);
}

static void test_a_row_that_cannot_be_encoded_is_buried(void **state)
{
    (void)state;
    struct relay_place where = {fixture_environment("RS_KAFKA"), fixture_topic("odd", 0), NULL};
    (void)fixture_sql("INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, "
                      "occurrence_key, queue, scheduled_for, generation) VALUES ('main', "
                      "gen_random_uuid(), 1, 'daily', 'k', 'Not A Name', now(), 1)");
    relay_rows(5, "k");
    struct relay *r = relay_run(fixture_lead(), where);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    assert_string_equal(fixture_sql("SELECT reason FROM reports.outbox_dead"),
                        "queue is not a name");
    assert_true(comes_to_count(r, 5, 1));
    relay_stop(r, in_ms(5000));
}

static void test_a_relay_started_without_kafka_waits_calmly_and_stops_at_once(void **state)
{
    (void)state;
    struct relay_place where = {"127.0.0.1:1", "any", NULL};
    relay_rows(10, "k");
    struct relay *r = relay_run(fixture_lead(), where);
    assert_false(fixture_wait(relay_outbox_is_empty, NULL, 2500));
    struct relay_snapshot s = relay_read(r);
    assert_false(s.kafka_reachable);
    assert_int_equal(s.producers_made, 1);
    assert_int_equal(s.in_flight, 0);
    instant begin = clock_now();
    relay_stop(r, in_ms(60000));
    assert_true(instant_ms_between(begin, clock_now()) < 30000);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.outbox"), 10);
}

static void test_a_lost_connection_to_the_database_is_made_again(void **state)
{
    (void)state;
    struct relay_place where = {fixture_environment("RS_KAFKA"), fixture_topic("pg", 0), NULL};
    struct relay *r = relay_run(fixture_lead(), where);
    for (int i = 0; i < 3; i++) {
        relay_rows(50, "k");
        relay_wake(r);
        assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
        assert_true(fixture_count("SELECT count(*) FROM reports.backend WHERE purpose = 'relay'") >=
                    1);
        (void)fixture_sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                          "application_name = 'test-relay'");
    }
    assert_false(relay_is_fenced(r));
    relay_stop(r, in_ms(5000));
}

static bool a_statement_waits(void *argument)
{
    (void)argument;
    return fixture_count("SELECT count(*) FROM pg_stat_activity WHERE application_name = "
                         "'test-relay' AND wait_event_type = 'Lock'") > 0;
}

static bool no_statement_waits(void *argument)
{
    return !a_statement_waits(argument);
}

static void test_a_fetch_without_an_answer_is_given_up_and_asked_again(void **state)
{
    (void)state;
    struct relay_place where = {fixture_environment("RS_KAFKA"), fixture_topic("hung", 0), NULL};
    struct relay *r = relay_run(fixture_lead(), where);
    assert_true(fixture_wait(relay_has_kafka, r, 30000));
    relay_rows(10, "k");
    PGconn *holder = fixture_plan_second();
    PQclear(PQexec(holder, "BEGIN; LOCK TABLE reports.outbox IN ACCESS EXCLUSIVE MODE"));
    relay_wake(r);
    assert_true(fixture_wait(a_statement_waits, NULL, 30000));
    assert_true(fixture_wait(no_statement_waits, NULL, 30000)); /* given up */
    assert_true(fixture_wait(a_statement_waits, NULL, 30000));  /* asked again */
    /* To stop does not wait for it: nothing was delivered that could be deleted. */
    instant begin = clock_now();
    relay_stop(r, in_ms(60000));
    assert_true(instant_ms_between(begin, clock_now()) < 30000);
    PQclear(PQexec(holder, "ROLLBACK"));
    PQfinish(holder);
    r = relay_run(fixture_lead(), where);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    relay_stop(r, in_ms(5000));
}

static void test_a_fatal_producer_is_replaced_and_all_rows_pass(void **state)
{
    (void)state;
    char why[256];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why);
    rd_kafka_mock_cluster_t *cluster = rd_kafka_mock_cluster_new(rk, 1);
    assert_int_equal(rd_kafka_mock_topic_create(cluster, "mock", 4, 1), 0);
    rd_kafka_mock_push_request_errors(cluster, 22, 1,
                                      RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
    struct relay_place where = {rd_kafka_mock_cluster_bootstraps(cluster), "mock", NULL};
    relay_rows(100, "k");
    struct relay *r = relay_run(fixture_lead(), where);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    assert_true(relay_read(r).producers_made >= 2);
    relay_stop(r, in_ms(5000));
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(rk);
}

static void test_a_duplicate_carries_the_same_identity(void **state)
{
    (void)state;
    struct relay_place where = {fixture_environment("RS_KAFKA"), fixture_topic("twice", 0), NULL};
    relay_rows(3, "k");
    (void)fixture_sql("CREATE TABLE public.kept AS SELECT * FROM reports.outbox");
    struct authority a = fixture_lead();
    struct relay *r = relay_run(a, where);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    /* As after a deletion that was lost in a crash. */
    (void)fixture_sql("INSERT INTO reports.outbox OVERRIDING SYSTEM VALUE SELECT * FROM "
                      "public.kept");
    relay_wake(r);
    assert_true(fixture_wait(relay_outbox_is_empty, NULL, 30000));
    relay_stop(r, in_ms(5000));
    assert_int_equal(relay_read_back(where.topic, 6), 6);
    assert_string_equal(fixture_sql("SELECT count(DISTINCT job_id) || ' ' || count(DISTINCT ce_id) "
                                    "FROM public.came"),
                        "3 3");
    (void)fixture_sql("DROP TABLE public.kept");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_published_exactly_and_deleted),
        cmocka_unit_test(test_a_long_backlog_goes_in_batches_that_the_broker_takes),
        cmocka_unit_test(test_a_row_that_a_session_holds_keeps_no_other_from_being_deleted),
        cmocka_unit_test(test_rows_that_appear_below_the_bound_are_found),
        cmocka_unit_test(test_a_fenced_relay_stops_and_its_rows_stay),
        cmocka_unit_test(test_nothing_is_published_without_the_lease),
        cmocka_unit_test(test_nothing_is_published_from_a_server_that_no_leader_has_looked_at),
        cmocka_unit_test(test_a_row_the_broker_refuses_is_buried_and_the_others_pass),
        cmocka_unit_test(test_a_row_that_cannot_be_encoded_is_buried),
        cmocka_unit_test(test_a_relay_started_without_kafka_waits_calmly_and_stops_at_once),
        cmocka_unit_test(test_a_lost_connection_to_the_database_is_made_again),
        cmocka_unit_test(test_a_fetch_without_an_answer_is_given_up_and_asked_again),
        cmocka_unit_test(test_a_fatal_producer_is_replaced_and_all_rows_pass),
        cmocka_unit_test(test_a_duplicate_carries_the_same_identity),
    };
    return fixture_plan_run("test_relay", tests, sizeof tests / sizeof tests[0], relay_before_each);
}
