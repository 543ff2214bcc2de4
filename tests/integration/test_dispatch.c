/* The Kafka port on a real broker, and its faults on librdkafka's mock cluster. */
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

#define MESSAGES 300

static struct dispatch_options real(void)
{
    return (struct dispatch_options){.brokers = fixture_environment("RS_KAFKA"),
                                     .client_id = "test-dispatch"};
}

static instant in_ms(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

static struct publisher *publisher_of(struct dispatch_options dispatch, const char *topic,
                                      size_t window)
{
    struct publisher_options options = {
        .dispatch = dispatch, .topic = topic, .window = window, .message_timeout_ms = 20000};
    struct publisher *p = NULL;
    struct error err = {.text = ""};
    if (publisher_new(&options, &p, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return p;
}

static void warm(struct publisher *p, int want_partitions)
{
    int partitions = 0;
    struct error err = {.text = ""};
    instant end = in_ms(15000);
    enum status s = publisher_warm(p, in_ms(2000), &partitions, &err);
    while (s != STATUS_OK && instant_before(clock_now(), end)) {
        s = publisher_warm(p, in_ms(2000), &partitions, &err);
    }
    if (s != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    assert_int_equal(partitions, want_partitions);
}

static struct message message_number(int n)
{
    struct message m = {.dispatch_number = 1,
                        .schedule = "daily",
                        .scheduled_for = {INT64_C(1902196800000000)},
                        .scope = "main",
                        .generation = 7,
                        .queue = "default"};
    (void)snprintf(m.job_id, sizeof m.job_id, "0192a4c5-1b2c-7d3e-8f40-%012d", n);
    (void)snprintf(m.occurrence_key, sizeof m.occurrence_key, "2030-04-%02d", n % 30 + 1);
    return m;
}

static void publish_number(struct publisher *p, int n)
{
    struct message m = message_number(n);
    struct message_text text;
    struct error err = {.text = ""};
    assert_int_equal(message_encode(&m, n, (utc_us){0}, &text, &err), STATUS_OK);
    enum status s = publisher_publish(p, n, m.job_id, &text, &err);
    if (s != STATUS_OK) {
        fail_msg("publish %d: %s %s", n, status_name(s), err.text);
    }
}

static void publish_numbers(struct publisher *p)
{
    for (int i = 0; i < MESSAGES; i++) {
        publish_number(p, i);
    }
}

/* Take reports until none is in flight. Each id is reported once; counts by result. */
static void reports_collect(struct publisher *p, unsigned char *seen, size_t counts[3], int64_t ms)
{
    struct publish_report reports[64];
    instant end = in_ms(ms);
    while (publisher_in_flight(p) > 0 && instant_before(clock_now(), end)) {
        size_t n = publisher_poll(p, 100, reports, 64);
        for (size_t i = 0; i < n; i++) {
            assert_in_range(reports[i].id, 0, MESSAGES - 1);
            assert_int_equal(seen[reports[i].id], 0);
            seen[reports[i].id] = 1;
            counts[reports[i].result]++;
            assert_true((reports[i].result == PUBLISH_DELIVERED) == (reports[i].reason[0] == '\0'));
        }
    }
    assert_int_equal(publisher_in_flight(p), 0);
}

static void publish_all(const char *topic)
{
    struct publisher *p = publisher_of(real(), topic, MESSAGES);
    unsigned char seen[MESSAGES] = {0};
    size_t counts[3] = {0};
    warm(p, 6);
    publish_numbers(p);
    reports_collect(p, seen, counts, 20000);
    assert_int_equal(counts[PUBLISH_DELIVERED], MESSAGES);
    assert_true(publisher_is_reachable(p));
    publisher_free(p);
}

static struct consumer *consumer_of(const char *topic, const char *group)
{
    const char *topics[] = {topic, NULL};
    struct consumer_options options = {.dispatch = real(), .group = group, .topics = topics};
    struct consumer *c = NULL;
    struct error err = {.text = ""};
    if (consumer_open(&options, &c, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return c;
}

/* Poll until `want` messages came or the time is over. Stores offsets if told. */
static int consume(struct consumer *c, unsigned char *seen, int want, bool store, int64_t ms)
{
    instant end = in_ms(ms);
    int got = 0;
    while (got < want && instant_before(clock_now(), end)) {
        struct incoming in;
        struct message m;
        struct error err = {.text = ""};
        enum status s = consumer_poll(c, 100, &in, &err);
        if (s == STATUS_FATAL) {
            fail_msg("%s", err.text);
        }
        if (s != STATUS_OK) {
            continue;
        }
        s = message_decode(in.value, in.size, in.headers, in.header_count, &m, &err);
        if (s != STATUS_OK) {
            fail_msg("%s", err.text);
        }
        assert_int_equal(in.position.topic, 0);
        assert_int_equal(in.header_count, MESSAGE_HEADERS);
        seen[strtol(m.job_id + 24, NULL, 10)]++;
        got++;
        if (store) {
            consumer_store(c, &in.position);
        }
    }
    return got;
}

static void check_seen(const unsigned char *seen, int times)
{
    for (int i = 0; i < MESSAGES; i++) {
        assert_int_equal(seen[i], times);
    }
}

static void test_what_is_published_is_consumed_once_with_its_headers(void **state)
{
    (void)state;
    unsigned char seen[MESSAGES] = {0};
    const char *topic = fixture_topic("all", 0);
    publish_all(topic);
    struct consumer *c = consumer_of(topic, topic);
    assert_int_equal(consume(c, seen, MESSAGES, true, 30000), MESSAGES);
    check_seen(seen, 1);
    assert_int_equal(consumer_assigned(c), 6);
    assert_int_equal(consumer_close(c, in_ms(10000)), STATUS_OK);
    /* Stored offsets were committed at the close: the next member gets nothing. */
    c = consumer_of(topic, topic);
    instant end = in_ms(15000);
    while (consumer_assigned(c) == 0 && instant_before(clock_now(), end)) {
        assert_int_equal(consume(c, seen, 1, false, 100), 0);
    }
    assert_int_equal(consumer_assigned(c), 6);
    assert_int_equal(consume(c, seen, 1, false, 1500), 0);
    assert_int_equal(consumer_close(c, in_ms(10000)), STATUS_OK);
}

static void test_what_was_not_stored_comes_again(void **state)
{
    (void)state;
    unsigned char seen[MESSAGES] = {0};
    const char *topic = fixture_topic("again", 0);
    publish_all(topic);
    struct consumer *c = consumer_of(topic, topic);
    assert_int_equal(consume(c, seen, MESSAGES, false, 30000), MESSAGES);
    assert_int_equal(consumer_close(c, in_ms(10000)), STATUS_OK);
    c = consumer_of(topic, topic);
    assert_int_equal(consume(c, seen, MESSAGES, false, 30000), MESSAGES);
    check_seen(seen, 2);
    assert_int_equal(consumer_close(c, in_ms(10000)), STATUS_OK);
}

static void test_a_paused_consumer_gets_nothing_and_loses_nothing(void **state)
{
    (void)state;
    unsigned char seen[MESSAGES] = {0};
    const char *topic = fixture_topic("pause", 0);
    publish_all(topic);
    struct consumer *c = consumer_of(topic, topic);
    assert_int_equal(consume(c, seen, 50, true, 30000), 50);
    consumer_pause(c);
    consumer_pause(c); /* saying it twice is harmless */
    assert_true(consumer_is_paused(c));
    assert_int_equal(consume(c, seen, 1, true, 1000), 0);
    consumer_resume(c);
    assert_int_equal(consume(c, seen, MESSAGES - 50, true, 30000), MESSAGES - 50);
    check_seen(seen, 1);
    assert_int_equal(consumer_close(c, in_ms(10000)), STATUS_OK);
}

static void test_a_consumer_paused_before_it_joined_stays_paused(void **state)
{
    (void)state;
    unsigned char seen[MESSAGES] = {0};
    const char *topic = fixture_topic("early", 0);
    publish_all(topic);
    struct consumer *c = consumer_of(topic, topic);
    consumer_pause(c);
    instant end = in_ms(15000);
    while (consumer_assigned(c) == 0 && instant_before(clock_now(), end)) {
        assert_int_equal(consume(c, seen, 1, true, 100), 0);
    }
    assert_int_equal(consumer_assigned(c), 6);
    assert_int_equal(consume(c, seen, 1, true, 1000), 0);
    consumer_resume(c);
    assert_int_equal(consume(c, seen, MESSAGES, true, 30000), MESSAGES);
    assert_int_equal(consumer_close(c, in_ms(10000)), STATUS_OK);
}

static void test_topics_are_made_looked_at_and_deleted_with_clear_verdicts(void **state)
{
    (void)state;
    struct dispatch_options o = real();
    const char *name = fixture_topic("admin", 0);
    struct topic_facts facts = {0, 0};
    struct error err = {.text = ""};
    assert_int_equal(topic_read(&o, name, in_ms(10000), &facts, &err), STATUS_OK);
    assert_int_equal(facts.partitions, 6);
    assert_int_equal(facts.replication, 1);
    struct topic_spec spec = {.name = name, .partitions = 6, .replication = 1};
    assert_int_equal(topic_create(&o, &spec, in_ms(10000), &err), STATUS_CONFLICT);
    assert_non_null(strstr(err.text, name));
    spec.name = "too-many-replicas";
    spec.replication = 9;
    assert_int_equal(topic_create(&o, &spec, in_ms(10000), &err), STATUS_INVALID);
    assert_int_equal(topic_delete(&o, name, in_ms(10000), &err), STATUS_OK);
    assert_int_equal(topic_delete(&o, "no-such-topic", in_ms(10000), &err), STATUS_NOT_FOUND);
    assert_int_equal(topic_read(&o, "no-such-topic", in_ms(10000), &facts, &err), STATUS_NOT_FOUND);
    o.brokers = "127.0.0.1:1";
    instant begin = clock_now();
    assert_int_not_equal(topic_create(&o, &spec, in_ms(1000), &err), STATUS_OK);
    assert_true(instant_ms_between(begin, clock_now()) < 5000);
}

static void test_a_missing_topic_and_an_absent_broker_are_told_apart(void **state)
{
    (void)state;
    int partitions = 0;
    struct error err = {.text = ""};
    struct publisher *p = publisher_of(real(), "no-such-topic", 10);
    assert_int_equal(publisher_warm(p, in_ms(5000), &partitions, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "no-such-topic"));
    publisher_free(p);
    struct dispatch_options nobody = real();
    nobody.brokers = "127.0.0.1:1";
    p = publisher_of(nobody, "any", 10);
    instant begin = clock_now();
    assert_int_equal(publisher_warm(p, in_ms(500), &partitions, &err), STATUS_AGAIN);
    assert_true(instant_ms_between(begin, clock_now()) < 2000);
    assert_false(publisher_is_reachable(p));
    publisher_free(p);
}

static void test_properties_are_checked_and_never_shown(void **state)
{
    (void)state;
    static const struct {
        const char *property, *why;
    } cases[] = {
        {"acks=1", "acks is set by this program"},
        {"partition.assignment.strategy=cooperative-sticky", "is set by this program"},
        {"no.such.property=secret-value", "no.such.property"},
        {"security.protocol=secret-value", "security.protocol"},
        {"=x", "name=value"},
        {"nothing", "name=value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *properties[] = {cases[i].property, NULL};
        struct publisher_options options = {
            .dispatch = real(), .topic = "t", .window = 1, .message_timeout_ms = 1000};
        options.dispatch.properties = properties;
        struct publisher *p = NULL;
        struct error err = {.text = ""};
        assert_int_equal(publisher_new(&options, &p, &err), STATUS_INVALID);
        assert_null(p);
        assert_null(strstr(err.text, "secret-value"));
        if (strstr(err.text, cases[i].why) == NULL) {
            fail_msg("%s: \"%s\"", cases[i].property, err.text);
        }
    }
}

static void test_a_message_beyond_what_the_client_may_send_is_invalid_at_once(void **state)
{
    (void)state;
    const char *properties[] = {"message.max.bytes=1000", NULL};
    struct dispatch_options o = real();
    o.properties = properties;
    struct publisher *p = publisher_of(o, "any", 10);
    struct message m = message_number(1);
    struct message_text text;
    struct error err = {.text = ""};
    assert_int_equal(message_encode(&m, 1, (utc_us){0}, &text, &err), STATUS_OK);
    memset(text.value, ' ', sizeof text.value);
    text.value_size = sizeof text.value;
    assert_int_equal(publisher_publish(p, 1, m.job_id, &text, &err), STATUS_INVALID);
    assert_int_equal(publisher_in_flight(p), 0);
    publisher_free(p);
}

/* ---- Faults, on librdkafka's own mock cluster ---- */

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
    assert_true(instant_ms_between(begin, clock_now()) < 5000);
    assert_int_equal(publisher_publish(p, 0, n.job_id, &text, NULL), STATUS_FATAL);
    reports_collect(p, seen, counts, 1000);
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
    reports_collect(p, seen, counts, 15000);
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
    instant end = in_ms(10000);
    assert_int_equal(publisher_warm(p, in_ms(5000), &partitions, &err), STATUS_OK);
    publish_number(p, 1);
    while (!publisher_is_fatal(p, &err) && instant_before(clock_now(), end)) {
        reported += publisher_poll(p, 50, r, 4);
    }
    assert_true(publisher_is_fatal(p, &err));
    assert_non_null(strstr(err.text, "CLUSTER_AUTHORIZATION_FAILED"));
    publisher_stop(p, in_ms(100));
    reported += publisher_poll(p, 0, r, 4);
    assert_int_equal(reported, 1);
    assert_int_equal(r[0].result, PUBLISH_FAILED);
    publisher_free(p);
    p = publisher_of(mock_options(&m), "mock", MESSAGES);
    unsigned char seen[MESSAGES] = {0};
    size_t counts[3] = {0};
    publish_number(p, 1);
    reports_collect(p, seen, counts, 10000);
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
    instant end = in_ms(10000);
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
    assert_true(instant_ms_between(begin, clock_now()) < 4000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_published_is_consumed_once_with_its_headers),
        cmocka_unit_test(test_what_was_not_stored_comes_again),
        cmocka_unit_test(test_a_paused_consumer_gets_nothing_and_loses_nothing),
        cmocka_unit_test(test_a_consumer_paused_before_it_joined_stays_paused),
        cmocka_unit_test(test_topics_are_made_looked_at_and_deleted_with_clear_verdicts),
        cmocka_unit_test(test_a_missing_topic_and_an_absent_broker_are_told_apart),
        cmocka_unit_test(test_properties_are_checked_and_never_shown),
        cmocka_unit_test(test_a_message_beyond_what_the_client_may_send_is_invalid_at_once),
        cmocka_unit_test(test_stopping_without_brokers_still_reports_every_message_once),
        cmocka_unit_test(test_a_short_outage_of_the_broker_loses_and_repeats_no_report),
        cmocka_unit_test(test_a_fatal_producer_says_so_and_a_new_one_works),
        cmocka_unit_test(test_the_descriptor_becomes_readable_when_a_report_waits),
        cmocka_unit_test(test_closing_without_a_broker_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
