/* The relay between a real PostgreSQL and a real Kafka, and its faults. */
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

#include "dispatch.h"
#include "fixture_plan.h"
#include "relay.h"

#define ROWS 500

static struct lease lease;

static instant in_ms(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

struct where {
    const char *brokers, *topic;
    const char *const *properties;
};

static struct relay *start(struct authority a, struct where where)
{
    struct relay_options options = {
        .authority = a,
        .lease = &lease,
        .store = {.conninfo = fixture_plan_conninfo(),
                  .application_name = "test-relay",
                  .role = STORE_SCHEDULER},
        .brokers = where.brokers,
        .topic = where.topic,
        .properties = where.properties,
        .window = 1000,
        .statement_ms = 3000,
    };
    struct relay *r = NULL;
    struct error err = {.text = ""};
    if (relay_start(&options, &r, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return r;
}

static void rows_add(int count, const char *key)
{
    (void)fixture_sql(
        "INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, "
        "occurrence_key, queue, scheduled_for, generation) "
        "SELECT 'main', gen_random_uuid(), 1, 'daily', '%s' || g, 'default', now(), 1 "
        "FROM generate_series(1, %d) g",
        key, count);
}

static bool outbox_is_empty(void *argument)
{
    (void)argument;
    return fixture_count("SELECT count(*) FROM reports.outbox") == 0;
}

static bool relay_says_fenced(void *argument)
{
    return relay_is_fenced(argument);
}

static bool kafka_is_unreachable(void *argument)
{
    return !relay_read(argument).kafka_reachable;
}

static bool kafka_is_reachable(void *argument)
{
    return relay_read(argument).kafka_reachable;
}

/* Read the topic from its beginning: how often each job id came, by SQL. Returns the messages. */
static int read_once(const char *topic, int want, int64_t ms)
{
    const char *topics[] = {topic, NULL};
    char group[80];
    char id[UUID_TEXT_MAX];
    uuid_random(id);
    (void)snprintf(group, sizeof group, "g-%s", id);
    struct consumer_options options = {
        .dispatch = {.brokers = fixture_environment("RS_KAFKA"), .client_id = "test"},
        .group = group,
        .topics = topics,
    };
    struct consumer *c = NULL;
    assert_int_equal(consumer_open(&options, &c, NULL), STATUS_OK);
    (void)fixture_sql("DROP TABLE IF EXISTS public.came");
    (void)fixture_sql("CREATE TABLE public.came (job_id uuid, ce_id text)");
    instant end = in_ms(ms);
    int got = 0;
    while (got < want && instant_before(clock_now(), end)) {
        struct incoming in;
        struct message m;
        struct error err = {.text = ""};
        if (consumer_poll(c, 100, &in, &err) != STATUS_OK) {
            continue;
        }
        if (message_decode(in.value, in.size, in.headers, in.header_count, &m, &err) != STATUS_OK) {
            fail_msg("%s", err.text);
        }
        (void)fixture_sql("INSERT INTO public.came VALUES ('%s', '%.*s')", m.job_id,
                          (int)in.headers[2].size, in.headers[2].value);
        got++;
    }
    assert_int_equal(consumer_close(c, in_ms(10000)), STATUS_OK);
    return got;
}

/* The topic is the question here, not the group: one that got no assignment in time on a busy
 * machine is tried again by another group, from the beginning. */
static int read_back(const char *topic, int want, int64_t ms)
{
    int got = read_once(topic, want, ms);
    if (got < want) {
        print_message("read %d of %d messages, reading again\n", got, want);
        got = read_once(topic, want, ms);
    }
    return got;
}

static void before_each(void)
{
    fixture_lease(&lease, 600000);
}

static void test_rows_are_published_exactly_and_deleted(void **state)
{
    (void)state;
    struct where where = {fixture_environment("RS_KAFKA"), fixture_topic("relay", 0), NULL};
    rows_add(ROWS, "k");
    (void)fixture_sql("CREATE TABLE public.sent AS SELECT job_id, 'main/' || id AS ce_id FROM "
                      "reports.outbox");
    struct relay *r = start(fixture_lead(), where);
    assert_true(fixture_wait(outbox_is_empty, NULL, 20000));
    /* A later row, with a wake-up: published within the idle interval by far. */
    rows_add(1, "later");
    instant begin = clock_now();
    relay_wake(r);
    assert_true(fixture_wait(outbox_is_empty, NULL, 10000));
    assert_true(instant_ms_between(begin, clock_now()) < 1500);
    assert_int_equal(read_back(where.topic, ROWS + 1, 30000), ROWS + 1);
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
    struct where where = {fixture_environment("RS_KAFKA"), fixture_topic("relay", 0), NULL};
    rows_add(5000, "k");
    struct relay *r = start(fixture_lead(), where);
    assert_true(fixture_wait(outbox_is_empty, NULL, 30000));
    assert_int_equal(relay_read(r).failed, 0);
    assert_int_equal(relay_read(r).published, 5000);
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
    struct where where = {fixture_environment("RS_KAFKA"), fixture_topic("relay-held", 0), NULL};
    struct authority a = fixture_lead();
    rows_add(ROWS, "held");
    (void)fixture_sql("BEGIN; SELECT id FROM reports.outbox ORDER BY id LIMIT 1 FOR UPDATE");
    struct relay *r = start(a, where);
    assert_true(fixture_wait(one_row_is_left, NULL, 20000));
    (void)fixture_sql("ROLLBACK");
    rows_add(1, "later");
    relay_wake(r);
    assert_true(fixture_wait(outbox_is_empty, NULL, 10000));
    assert_int_equal(relay_read(r).published, ROWS + 1); /* none of them twice */
    relay_stop(r, in_ms(5000));
}

static void test_rows_that_appear_below_the_bound_are_found(void **state)
{
    (void)state;
    struct where where = {fixture_environment("RS_KAFKA"), fixture_topic("late", 0), NULL};
    struct relay *r = start(fixture_lead(), where);
    /* An id drawn early and committed late. */
    PGconn *slow = fixture_plan_second();
    PQclear(PQexec(slow, "BEGIN; INSERT INTO reports.outbox (scope, job_id, dispatch_number, "
                         "schedule, occurrence_key, queue, scheduled_for, generation) VALUES "
                         "('main', gen_random_uuid(), 1, 'daily', 'slow', 'default', now(), 1)"));
    rows_add(20, "fast");
    relay_wake(r);
    assert_true(fixture_wait(outbox_is_empty, NULL, 10000));
    PQclear(PQexec(slow, "COMMIT"));
    PQfinish(slow);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.outbox"), 1);
    assert_true(fixture_wait(outbox_is_empty, NULL, 20000));
    relay_stop(r, in_ms(5000));
}

static void test_a_fenced_relay_stops_and_its_rows_stay(void **state)
{
    (void)state;
    struct where where = {fixture_environment("RS_KAFKA"), fixture_topic("fenced", 0), NULL};
    struct authority old = fixture_lead();
    struct relay *r = start(old, where);
    assert_true(fixture_wait(kafka_is_reachable, r, 10000));
    struct authority newer = fixture_lead();
    rows_add(10, "k");
    relay_wake(r);
    assert_true(fixture_wait(relay_says_fenced, r, 10000));
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.outbox"), 10);
    assert_true(fixture_count("SELECT count(*) FROM reports.fence_rejection WHERE generation = "
                              "%lld AND operation = 'outbox_ack'",
                              (long long)old.generation) >= 1);
    relay_stop(r, in_ms(5000));
    /* The successor's relay publishes them: at worst twice, never not at all. */
    r = start(newer, where);
    assert_true(fixture_wait(outbox_is_empty, NULL, 20000));
    relay_stop(r, in_ms(5000));
    assert_true(read_back(where.topic, 20, 4000) >= 10);
    assert_int_equal(fixture_count("SELECT count(DISTINCT job_id) FROM public.came"), 10);
}

static void test_nothing_is_published_without_the_lease(void **state)
{
    (void)state;
    struct where where = {fixture_environment("RS_KAFKA"), fixture_topic("lease", 0), NULL};
    rows_add(10, "k");
    lease_set(&lease, (instant){0});
    struct relay *r = start(fixture_lead(), where);
    assert_false(fixture_wait(outbox_is_empty, NULL, 1500));
    assert_int_equal(relay_read(r).published, 0);
    fixture_lease(&lease, 600000);
    assert_true(fixture_wait(outbox_is_empty, NULL, 10000));
    relay_stop(r, in_ms(5000));
}

/* A copy, or a server that failed over: its outbox is not what the leader established on, and the
 * same id may name another row there. */
static void test_nothing_is_published_from_a_server_that_no_leader_has_looked_at(void **state)
{
    (void)state;
    struct where where = {fixture_environment("RS_KAFKA"), fixture_topic("moved", 0), NULL};
    struct authority a = fixture_lead();
    rows_add(10, "k");
    (void)fixture_sql("UPDATE reports.fence SET server_started_at = server_started_at - "
                      "interval '1 hour'");
    struct relay *r = start(a, where);
    assert_true(fixture_wait(kafka_is_reachable, r, 10000));
    assert_false(fixture_wait(outbox_is_empty, NULL, 2500)); /* some tries, by the backoff */
    assert_int_equal(relay_read(r).published, 0);
    (void)fixture_sql("UPDATE reports.fence SET server_started_at = pg_postmaster_start_time()");
    assert_true(fixture_wait(outbox_is_empty, NULL, 15000));
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.backend WHERE purpose = 'relay'"),
                     1);
    relay_stop(r, in_ms(5000));
}

static void test_a_row_the_broker_refuses_is_buried_and_the_others_pass(void **state)
{
    (void)state;
    static const char *const properties[] = {"compression.type=none", NULL};
    struct where where = {fixture_environment("RS_KAFKA"), fixture_topic("small", 760), properties};
    rows_add(30, "k");
    (void)fixture_sql("INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, "
                      "occurrence_key, queue, scheduled_for, generation) VALUES ('main', "
                      "gen_random_uuid(), 1, repeat('s', 63), repeat('k', 127), repeat('q', 63), "
                      "now(), 1)");
    rows_add(30, "l");
    struct relay *r = start(fixture_lead(), where);
    assert_true(fixture_wait(outbox_is_empty, NULL, 30000));
    relay_stop(r, in_ms(5000));
    assert_string_equal(fixture_sql("SELECT count(*) || ' ' || min(length(schedule)) || ' ' || "
                                    "(min(reason) ILIKE '%%size%%') FROM reports.outbox_dead"),
                        "1 63 true");
    assert_true(read_back(where.topic, 60, 20000) == 60);
    assert_int_equal(fixture_count("SELECT count(DISTINCT job_id) FROM public.came"), 60);
}

static void test_a_row_that_cannot_be_encoded_is_buried(void **state)
{
    (void)state;
    struct where where = {fixture_environment("RS_KAFKA"), fixture_topic("odd", 0), NULL};
    (void)fixture_sql("INSERT INTO reports.outbox (scope, job_id, dispatch_number, schedule, "
                      "occurrence_key, queue, scheduled_for, generation) VALUES ('main', "
                      "gen_random_uuid(), 1, 'daily', 'k', 'Not A Name', now(), 1)");
    rows_add(5, "k");
    struct relay *r = start(fixture_lead(), where);
    assert_true(fixture_wait(outbox_is_empty, NULL, 20000));
    assert_string_equal(fixture_sql("SELECT reason FROM reports.outbox_dead"),
                        "queue is not a name");
    assert_int_equal(relay_read(r).buried, 1);
    relay_stop(r, in_ms(5000));
}

static void test_a_killed_broker_keeps_rows_until_it_is_back(void **state)
{
    (void)state;
    static const char *const properties[] = {"message.timeout.ms=3000", NULL};
    struct where where = {fixture_environment("RS_KAFKA"), fixture_topic("killed", 0), properties};
    struct relay *r = start(fixture_lead(), where);
    rows_add(10, "before");
    relay_wake(r);
    assert_true(fixture_wait(outbox_is_empty, NULL, 20000));
    fixture_stack("kill", "kafka");
    rows_add(100, "during");
    relay_wake(r);
    assert_true(fixture_wait(kafka_is_unreachable, r, 20000));
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.outbox"), 100);
    fixture_stack("start", "kafka");
    assert_true(fixture_wait(outbox_is_empty, NULL, 60000));
    assert_true(fixture_wait(kafka_is_reachable, r, 5000));
    relay_stop(r, in_ms(5000));
    assert_true(read_back(where.topic, 110, 30000) >= 110);
    assert_int_equal(fixture_count("SELECT count(DISTINCT job_id) FROM public.came"), 110);
}

static void test_a_relay_started_without_kafka_waits_calmly_and_stops_at_once(void **state)
{
    (void)state;
    struct where where = {"127.0.0.1:1", "any", NULL};
    rows_add(10, "k");
    struct relay *r = start(fixture_lead(), where);
    assert_false(fixture_wait(outbox_is_empty, NULL, 2500));
    struct relay_snapshot s = relay_read(r);
    assert_false(s.kafka_reachable);
    assert_int_equal(s.producers_made, 1);
    assert_int_equal(s.in_flight, 0);
    instant begin = clock_now();
    relay_stop(r, in_ms(5000));
    assert_true(instant_ms_between(begin, clock_now()) < 3000);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.outbox"), 10);
}

static void test_a_lost_connection_to_the_database_is_made_again(void **state)
{
    (void)state;
    struct where where = {fixture_environment("RS_KAFKA"), fixture_topic("pg", 0), NULL};
    struct relay *r = start(fixture_lead(), where);
    for (int i = 0; i < 3; i++) {
        rows_add(50, "k");
        relay_wake(r);
        assert_true(fixture_wait(outbox_is_empty, NULL, 15000));
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
    struct where where = {fixture_environment("RS_KAFKA"), fixture_topic("hung", 0), NULL};
    struct relay *r = start(fixture_lead(), where);
    assert_true(fixture_wait(kafka_is_reachable, r, 10000));
    rows_add(10, "k");
    PGconn *holder = fixture_plan_second();
    PQclear(PQexec(holder, "BEGIN; LOCK TABLE reports.outbox IN ACCESS EXCLUSIVE MODE"));
    relay_wake(r);
    assert_true(fixture_wait(a_statement_waits, NULL, 10000));
    assert_true(fixture_wait(no_statement_waits, NULL, 10000)); /* given up */
    assert_true(fixture_wait(a_statement_waits, NULL, 10000));  /* asked again */
    /* To stop does not wait for it: nothing was delivered that could be deleted. */
    instant begin = clock_now();
    relay_stop(r, in_ms(1000));
    assert_true(instant_ms_between(begin, clock_now()) < 2500);
    PQclear(PQexec(holder, "ROLLBACK"));
    PQfinish(holder);
    r = start(fixture_lead(), where);
    assert_true(fixture_wait(outbox_is_empty, NULL, 20000));
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
    struct where where = {rd_kafka_mock_cluster_bootstraps(cluster), "mock", NULL};
    rows_add(100, "k");
    struct relay *r = start(fixture_lead(), where);
    assert_true(fixture_wait(outbox_is_empty, NULL, 20000));
    struct relay_snapshot s = relay_read(r);
    assert_int_equal(s.producers_made, 2);
    relay_stop(r, in_ms(5000));
    rd_kafka_mock_cluster_destroy(cluster);
    rd_kafka_destroy(rk);
}

static void test_a_duplicate_carries_the_same_identity(void **state)
{
    (void)state;
    struct where where = {fixture_environment("RS_KAFKA"), fixture_topic("twice", 0), NULL};
    rows_add(3, "k");
    (void)fixture_sql("CREATE TABLE public.kept AS SELECT * FROM reports.outbox");
    struct authority a = fixture_lead();
    struct relay *r = start(a, where);
    assert_true(fixture_wait(outbox_is_empty, NULL, 20000));
    /* As after a deletion that was lost in a crash. */
    (void)fixture_sql("INSERT INTO reports.outbox OVERRIDING SYSTEM VALUE SELECT * FROM "
                      "public.kept");
    relay_wake(r);
    assert_true(fixture_wait(outbox_is_empty, NULL, 20000));
    relay_stop(r, in_ms(5000));
    assert_int_equal(read_back(where.topic, 6, 20000), 6);
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
        cmocka_unit_test(test_a_killed_broker_keeps_rows_until_it_is_back),
        cmocka_unit_test(test_a_relay_started_without_kafka_waits_calmly_and_stops_at_once),
        cmocka_unit_test(test_a_lost_connection_to_the_database_is_made_again),
        cmocka_unit_test(test_a_fetch_without_an_answer_is_given_up_and_asked_again),
        cmocka_unit_test(test_a_fatal_producer_is_replaced_and_all_rows_pass),
        cmocka_unit_test(test_a_duplicate_carries_the_same_identity),
    };
    return fixture_plan_run("test_relay", tests, sizeof tests / sizeof tests[0], before_each);
}
