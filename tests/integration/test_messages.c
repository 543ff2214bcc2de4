/* Messages: whole workers, a real database, and a Kafka that librdkafka plays itself. */
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "fixture_worker.h"
#include "message.h"

static struct test_database db;

static int group_setup(void **state)
{
    (void)state;
    test_database_create(&db);
    /* The pull is out of the way: only a message can bring a job. */
    test_run(db.connection,
             "INSERT INTO reports.scope (name) VALUES ('main') ON CONFLICT DO NOTHING;"
             "INSERT INTO reports.report (name, kind) VALUES ('noop', 'noop');"
             "ALTER FUNCTION reports.claim_ready(uuid, text[], integer) RENAME TO ready_away");
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    test_database_drop(&db);
    return 0;
}

static void copy_id(char to[UUID_TEXT_MAX], const char *from)
{
    memcpy(to, from, UUID_TEXT_MAX);
}

static const char *about(const char *column, const char *job)
{
    static char sql[512];
    (void)snprintf(sql, sizeof sql, "SELECT %s FROM reports.job WHERE id = '%s'", column, job);
    return sql;
}

#define TOPIC "report.dispatch.v1"

struct kafka {
    rd_kafka_t *producer;
    rd_kafka_mock_cluster_t *cluster;
    rd_kafka_topic_t *topic;
};

static void kafka_start(struct kafka *k)
{
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    assert_int_equal(rd_kafka_conf_set(conf, "test.mock.num.brokers", "1", text, sizeof text),
                     RD_KAFKA_CONF_OK);
    k->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    assert_non_null(k->producer);
    k->cluster = rd_kafka_handle_mock_cluster(k->producer);
    assert_int_equal(rd_kafka_mock_topic_create(k->cluster, TOPIC, 4, 1), 0);
    k->topic = rd_kafka_topic_new(k->producer, TOPIC, NULL);
}

static void kafka_end(struct kafka *k)
{
    rd_kafka_topic_destroy(k->topic);
    rd_kafka_destroy(k->producer);
}

static void value_send(struct kafka *k, const char *key, const char *value, size_t size)
{
    char copy[MESSAGE_VALUE_MAX];
    char key_copy[64];
    memcpy(copy, value, size);
    (void)snprintf(key_copy, sizeof key_copy, "%s", key);
    assert_int_equal(rd_kafka_produce(k->topic, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, copy,
                                      size, key_copy, strlen(key_copy), NULL),
                     0);
}

static void message_send(struct kafka *k, const char *job)
{
    struct message m = {.dispatch_number = 1, .generation = 1};
    struct message_text text;
    struct error err;
    copy_id(m.job_id, job);
    (void)snprintf(m.schedule, sizeof m.schedule, "noop");
    (void)snprintf(m.occurrence_key, sizeof m.occurrence_key, "k");
    (void)snprintf(m.scope, sizeof m.scope, "main");
    (void)snprintf(m.queue, sizeof m.queue, "default");
    m.scheduled_for.us = INT64_C(1902204000000000);
    if (message_encode(&m, 1, m.scheduled_for, &text, &err) != STATUS_OK) {
        print_error("%s\n", err.text);
        fail();
    }
    value_send(k, job, text.value, text.value_size);
}

/* The playing broker answers a waiting fetch at its end only, and keeps a member that has left
 * until its session ends (2.0.2): both are made short; its own first rebalance takes 3 s. */
static void kafka_settings(const struct kafka *k, char *text, size_t size)
{
    (void)snprintf(text, size,
                   "slots = 4;\npull_idle_ms = 60000;\nkafka_brokers = \"%s\";\n"
                   "kafka_properties = [\"fetch.wait.max.ms=10\","
                   " \"session.timeout.ms=6000\", \"heartbeat.interval.ms=500\"];\n",
                   rd_kafka_mock_cluster_bootstraps(k->cluster));
}

static void test_message_that_comes_twice_runs_the_job_once(void **state)
{
    (void)state;
    struct kafka k;
    struct test_worker w;
    char extra[512];
    char id[UUID_TEXT_MAX];
    char last[UUID_TEXT_MAX];
    kafka_start(&k);
    kafka_settings(&k, extra, sizeof extra);
    test_worker_prepare(&w, &db, extra);
    test_worker_start(&w, &db);
    /* Rubbish and an unknown job first: they must not stand in the way. */
    char stranger[UUID_TEXT_MAX];
    uuid_random(stranger);
    value_send(&k, "x", "{no json", 8);
    message_send(&k, stranger);
    copy_id(id, test_job(&db, "noop", "message-twice"));
    message_send(&k, id);
    message_send(&k, id);
    assert_int_equal(rd_kafka_flush(k.producer, 10000), 0);
    assert_true(test_wait_text(db.connection, about("state", id), "succeeded", WORKER_LIMIT_MS));
    message_send(&k, id);
    copy_id(last, test_job(&db, "noop", "message-last"));
    message_send(&k, last);
    assert_int_equal(rd_kafka_flush(k.producer, 10000), 0);
    assert_true(test_wait_text(db.connection, about("state", last), "succeeded", WORKER_LIMIT_MS));
    assert_int_equal(test_int(db.connection, about("attempt", id)), 1);
    int stopped = test_worker_stop(&w, SIGTERM, WORKER_LIMIT_MS);
    assert_int_equal(stopped, 0);
    assert_true(test_worker_logged(&w, " poison=1 "));
    assert_true(test_worker_logged(&w, " unknown=1 "));
    assert_true(test_worker_logged(&w, " duplicate="));
    assert_true(test_worker_logged(&w, "succeeded=2"));
    test_worker_done(&w, false);
    kafka_end(&k);
}

static void test_offsets_are_stored_only_with_the_claim(void **state)
{
    (void)state;
    struct kafka k;
    struct test_worker w;
    char extra[512];
    char id[UUID_TEXT_MAX];
    kafka_start(&k);
    kafka_settings(&k, extra, sizeof extra);
    copy_id(id, test_job(&db, "noop", "redelivered"));
    /* Nobody can claim by id either, at first. */
    test_run(db.connection,
             "ALTER FUNCTION reports.claim_ids(uuid, text[], uuid[]) RENAME TO ids_away");
    test_worker_prepare(&w, &db, extra);
    test_worker_start(&w, &db);
    message_send(&k, id);
    assert_int_equal(rd_kafka_flush(k.producer, 10000), 0);
    instant limit = instant_add_ms(clock_now(), WORKER_LIMIT_MS);
    while (!test_worker_logged(&w, "claim_ids")) { /* the error that it does not exist */
        assert_true(instant_before(clock_now(), limit));
        (void)poll(NULL, 0, 10);
    }
    assert_int_equal(test_worker_stop(&w, SIGTERM, WORKER_LIMIT_MS), 0);
    assert_string_equal(test_text(db.connection, about("state", id)), "queued");
    /* The next life can: it succeeds because it is given the message again. */
    test_run(db.connection,
             "ALTER FUNCTION reports.ids_away(uuid, text[], uuid[]) RENAME TO claim_ids");
    test_worker_start(&w, &db);
    assert_true(test_wait_text(db.connection, about("state", id), "succeeded", WORKER_LIMIT_MS));
    assert_int_equal(test_worker_stop(&w, SIGTERM, WORKER_LIMIT_MS), 0);
    test_worker_done(&w, false);
    kafka_end(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message_that_comes_twice_runs_the_job_once),
        cmocka_unit_test(test_offsets_are_stored_only_with_the_claim),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
