/* The Kafka port on a real broker. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_dispatch.h"
#include "fixture_plan.h"

static struct dispatch_options real(void)
{
    return (struct dispatch_options){.brokers = fixture_environment("RS_KAFKA"),
                                     .client_id = "test-dispatch"};
}

static void publish_all(const char *topic)
{
    struct publisher *p = publisher_of(real(), topic, MESSAGES);
    unsigned char seen[MESSAGES] = {0};
    size_t counts[3] = {0};
    warm(p, 6);
    publish_numbers(p);
    reports_collect(p, seen, counts, 60000);
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

static void nothing_until_assigned(struct consumer *c)
{
    unsigned char seen[MESSAGES] = {0};
    instant end = in_ms(60000);
    while (consumer_assigned(c) == 0 && instant_before(clock_now(), end)) {
        assert_int_equal(consume(c, seen, 1, false, 100), 0);
    }
    assert_int_equal(consumer_assigned(c), 6);
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
    assert_int_equal(consumer_close(c, in_ms(30000)), STATUS_OK);
    /* Stored offsets were committed at the close: the next member gets nothing. */
    c = consumer_of(topic, topic);
    nothing_until_assigned(c);
    assert_int_equal(consume(c, seen, 1, false, 1500), 0);
    assert_int_equal(consumer_close(c, in_ms(30000)), STATUS_OK);
}

static void test_a_consumer_closes_in_order_while_messages_wait_in_it(void **state)
{
    (void)state;
    unsigned char seen[MESSAGES] = {0};
    const char *topic = fixture_topic("waiting", 0);
    publish_all(topic);
    struct consumer *c = consumer_of(topic, topic);
    assert_int_equal(consume(c, seen, 10, true, 30000), 10);
    assert_int_equal(consumer_close(c, in_ms(30000)), STATUS_OK);
    /* What was fetched and not taken comes again, to the next member; nothing else does. */
    c = consumer_of(topic, topic);
    assert_int_equal(consume(c, seen, MESSAGES - 10, true, 30000), MESSAGES - 10);
    check_seen(seen, 1);
    assert_int_equal(consumer_close(c, in_ms(30000)), STATUS_OK);
}

static void test_what_was_not_stored_comes_again(void **state)
{
    (void)state;
    unsigned char seen[MESSAGES] = {0};
    const char *topic = fixture_topic("again", 0);
    publish_all(topic);
    struct consumer *c = consumer_of(topic, topic);
    assert_int_equal(consume(c, seen, MESSAGES, false, 30000), MESSAGES);
    assert_int_equal(consumer_close(c, in_ms(30000)), STATUS_OK);
    c = consumer_of(topic, topic);
    assert_int_equal(consume(c, seen, MESSAGES, false, 30000), MESSAGES);
    check_seen(seen, 2);
    assert_int_equal(consumer_close(c, in_ms(30000)), STATUS_OK);
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
    assert_int_equal(consumer_close(c, in_ms(30000)), STATUS_OK);
}

static void test_a_consumer_paused_before_it_joined_stays_paused(void **state)
{
    (void)state;
    unsigned char seen[MESSAGES] = {0};
    const char *topic = fixture_topic("early", 0);
    publish_all(topic);
    struct consumer *c = consumer_of(topic, topic);
    consumer_pause(c);
    nothing_until_assigned(c);
    assert_int_equal(consume(c, seen, 1, true, 1000), 0);
    consumer_resume(c);
    assert_int_equal(consume(c, seen, MESSAGES, true, 30000), MESSAGES);
    assert_int_equal(consumer_close(c, in_ms(30000)), STATUS_OK);
}

static void test_topics_are_made_looked_at_and_deleted_with_clear_verdicts(void **state)
{
    (void)state;
    struct dispatch_options o = real();
    const char *name = fixture_topic("admin", 0);
    struct topic_facts facts = {0, 0};
    struct error err = {.text = ""};
    assert_int_equal(topic_read(&o, name, in_ms(30000), &facts, &err), STATUS_OK);
    assert_int_equal(facts.partitions, 6);
    assert_int_equal(facts.replication, 1);
    struct topic_spec spec = {.name = name, .partitions = 6, .replication = 1};
    assert_int_equal(topic_create(&o, &spec, in_ms(30000), &err), STATUS_CONFLICT);
    assert_non_null(strstr(err.text, name));
    spec.name = "too-many-replicas";
    spec.replication = 9;
    assert_int_equal(topic_create(&o, &spec, in_ms(30000), &err), STATUS_INVALID);
    assert_int_equal(topic_delete(&o, name, in_ms(30000), &err), STATUS_OK);
    assert_int_equal(topic_delete(&o, "no-such-topic", in_ms(30000), &err), STATUS_NOT_FOUND);
    assert_int_equal(topic_read(&o, "no-such-topic", in_ms(30000), &facts, &err), STATUS_NOT_FOUND);
    o.brokers = "127.0.0.1:1";
    instant begin = clock_now();
    assert_int_not_equal(topic_create(&o, &spec, in_ms(1000), &err), STATUS_OK);
    assert_true(instant_ms_between(begin, clock_now()) < 15000);
}

static void test_a_missing_topic_and_an_absent_broker_are_told_apart(void **state)
{
    (void)state;
    int partitions = 0;
    struct error err = {.text = ""};
    struct publisher *p = publisher_of(real(), "no-such-topic", 10);
    assert_int_equal(publisher_warm(p, in_ms(30000), &partitions, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "no-such-topic"));
    publisher_free(p);
    struct dispatch_options nobody = real();
    nobody.brokers = "127.0.0.1:1";
    p = publisher_of(nobody, "any", 10);
    instant begin = clock_now();
    assert_int_equal(publisher_warm(p, in_ms(500), &partitions, &err), STATUS_AGAIN);
    assert_true(instant_ms_between(begin, clock_now()) < 15000);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_published_is_consumed_once_with_its_headers),
        cmocka_unit_test(test_a_consumer_closes_in_order_while_messages_wait_in_it),
        cmocka_unit_test(test_what_was_not_stored_comes_again),
        cmocka_unit_test(test_a_paused_consumer_gets_nothing_and_loses_nothing),
        cmocka_unit_test(test_a_consumer_paused_before_it_joined_stays_paused),
        cmocka_unit_test(test_topics_are_made_looked_at_and_deleted_with_clear_verdicts),
        cmocka_unit_test(test_a_missing_topic_and_an_absent_broker_are_told_apart),
        cmocka_unit_test(test_properties_are_checked_and_never_shown),
        cmocka_unit_test(test_a_message_beyond_what_the_client_may_send_is_invalid_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
