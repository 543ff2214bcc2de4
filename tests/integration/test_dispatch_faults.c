/* The Kafka port under faults, on librdkafka's own mock cluster. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "fixture_dispatch.h"

struct mock {
    rd_kafka_t *rk;
    rd_kafka_mock_cluster_t *cluster;
};

static struct mock mock_open(void)
{
    char why[256];
    struct mock m;
    m.rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), why, sizeof why);
    assert_non_null(m.rk);
    m.cluster = rd_kafka_mock_cluster_new(m.rk, 1);
    assert_non_null(m.cluster);
    assert_int_equal(rd_kafka_mock_topic_create(m.cluster, "mock", 4, 1), 0);
    return m;
}

static void mock_close(struct mock *m)
{
    rd_kafka_mock_cluster_destroy(m->cluster);
    rd_kafka_destroy(m->rk);
}

static struct dispatch_options mock_options(const struct mock *m)
{
    return (struct dispatch_options){.brokers = rd_kafka_mock_cluster_bootstraps(m->cluster),
                                     .client_id = "test-dispatch"};
}

static void test_stopping_without_brokers_still_reports_every_message_once(void **state)
{
    (void)state;
    struct mock m = mock_open();
    struct publisher *p = publisher_of(mock_options(&m), "mock", MESSAGES);
    unsigned char seen[MESSAGES] = {0};
    size_t counts[3] = {0};
    warm(p, 4);
    assert_int_equal(rd_kafka_mock_broker_set_down(m.cluster, 1), 0);
    publish_numbers(p);
    struct message n = message_number(0);
    struct message_text text;
    assert_int_equal(message_encode(&n, 0, (utc_us){0}, &text, NULL), STATUS_OK);
    assert_int_equal(publisher_publish(p, 0, n.job_id, &text, NULL), STATUS_FULL);
    instant begin = clock_now();
    publisher_stop(p, in_ms(500));
    assert_true(instant_ms_between(begin, clock_now()) < 15000);
    assert_int_equal(publisher_publish(p, 0, n.job_id, &text, NULL), STATUS_FATAL);
    reports_collect(p, seen, counts, 15000);
    assert_int_equal(counts[PUBLISH_FAILED], MESSAGES);
    publisher_free(p);
    mock_close(&m);
}

static void test_a_short_outage_of_the_broker_loses_and_repeats_no_report(void **state)
{
    (void)state;
    struct mock m = mock_open();
    struct publisher *p = publisher_of(mock_options(&m), "mock", MESSAGES);
    unsigned char seen[MESSAGES] = {0};
    size_t counts[3] = {0};
    warm(p, 4);
    assert_int_equal(rd_kafka_mock_broker_set_down(m.cluster, 1), 0);
    publish_numbers(p);
    struct publish_report none[1];
    assert_int_equal(publisher_poll(p, 300, none, 1), 0);
    assert_int_equal(rd_kafka_mock_broker_set_up(m.cluster, 1), 0);
    reports_collect(p, seen, counts, 60000);
    assert_int_equal(counts[PUBLISH_DELIVERED], MESSAGES);
    publisher_free(p);
    mock_close(&m);
}

static void test_a_fatal_producer_says_so_and_a_new_one_works(void **state)
{
    (void)state;
    struct mock m = mock_open();
    /* Not authorised to be idempotent: fatal at the first producer id. */
    rd_kafka_mock_push_request_errors(m.cluster, 22, 1,
                                      RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED);
    struct publisher *p = publisher_of(mock_options(&m), "mock", MESSAGES);
    struct error err = {.text = ""};
    struct publish_report r[4];
    size_t reported = 0;
    int partitions = 0;
    instant end = in_ms(60000);
    assert_int_equal(publisher_warm(p, in_ms(30000), &partitions, &err), STATUS_OK);
    struct message m1 = message_number(1);
    struct message_text text;
    assert_int_equal(message_encode(&m1, 1, (utc_us){0}, &text, NULL), STATUS_OK);
    /* It may be fatal by now already; a message that was accepted must come back all the same. */
    bool accepted = publisher_publish(p, 1, m1.job_id, &text, &err) == STATUS_OK;
    while (!publisher_is_fatal(p, &err) && instant_before(clock_now(), end)) {
        reported += publisher_poll(p, 50, r, 4);
    }
    assert_true(publisher_is_fatal(p, &err));
    assert_non_null(strstr(err.text, "CLUSTER_AUTHORIZATION_FAILED"));
    publisher_stop(p, in_ms(100));
    reported += publisher_poll(p, 0, r, 4);
    assert_int_equal(reported, accepted ? 1 : 0);
    assert_true(!accepted || r[0].result == PUBLISH_FAILED);
    publisher_free(p);
    p = publisher_of(mock_options(&m), "mock", MESSAGES);
    unsigned char seen[MESSAGES] = {0};
    size_t counts[3] = {0};
    publish_number(p, 1);
    reports_collect(p, seen, counts, 60000);
    assert_int_equal(counts[PUBLISH_DELIVERED], 1);
    publisher_free(p);
    mock_close(&m);
}

static void test_the_descriptor_becomes_readable_when_a_report_waits(void **state)
{
    (void)state;
    struct mock m = mock_open();
    struct publisher *p = publisher_of(mock_options(&m), "mock", 10);
    struct publish_report r[10];
    size_t got = 0;
    warm(p, 4);
    (void)publisher_poll(p, 0, r, 10);
    publish_number(p, 1);
    instant end = in_ms(30000);
    while (got == 0 && instant_before(clock_now(), end)) {
        struct pollfd fd = {.fd = publisher_fd(p), .events = POLLIN};
        assert_int_equal(poll(&fd, 1, instant_poll_timeout(clock_now(), end)), 1);
        got = publisher_poll(p, 0, r, 10);
    }
    assert_int_equal(got, 1);
    publisher_free(p);
    mock_close(&m);
}

static void test_closing_without_a_broker_is_bounded(void **state)
{
    (void)state;
    const char *topics[] = {"any", NULL};
    struct consumer_options options = {
        .dispatch = {.brokers = "127.0.0.1:1", .client_id = "test"},
        .group = "g",
        .topics = topics,
    };
    struct consumer *c = NULL;
    struct incoming in;
    assert_int_equal(consumer_open(&options, &c, NULL), STATUS_OK);
    assert_int_not_equal(consumer_poll(c, 200, &in, NULL), STATUS_OK);
    instant begin = clock_now();
    assert_int_equal(consumer_close(c, in_ms(3000)), STATUS_OK);
    assert_true(instant_ms_between(begin, clock_now()) < 15000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stopping_without_brokers_still_reports_every_message_once),
        cmocka_unit_test(test_a_short_outage_of_the_broker_loses_and_repeats_no_report),
        cmocka_unit_test(test_a_fatal_producer_says_so_and_a_new_one_works),
        cmocka_unit_test(test_the_descriptor_becomes_readable_when_a_report_waits),
        cmocka_unit_test(test_closing_without_a_broker_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
