/* dispatch.h: what an acknowledgement means, in which order messages come, which come twice, and
 * what the loss of the topic leaves. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "contract.h"

#define SOON_MS    20000
#define TIMEOUT_MS 20000 /* of a message, where none is to be lost */
#define MOST       200

static instant in_ms_(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

static struct publisher *publisher_of(size_t window, int message_timeout_ms)
{
    struct publisher *p = NULL;
    struct error err = {.text = ""};
    const struct publisher_options options = {.dispatch =
                                                  contract_kafka_options("report-relay-main"),
                                              .topic = contract_kafka_topic(),
                                              .window = window,
                                              .message_timeout_ms = message_timeout_ms};
    if (publisher_new(&options, &p, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return p;
}

static enum status warm(struct publisher *p)
{
    int partitions = 0;
    enum status s = STATUS_AGAIN;
    instant end = in_ms_(SOON_MS);
    while (s == STATUS_AGAIN && instant_before(clock_now(), end)) {
        s = publisher_warm(p, in_ms_(2000), &partitions, NULL);
    }
    assert_true(s != STATUS_OK || partitions == 4);
    return s;
}

static struct publisher *warm_one(size_t window)
{
    struct publisher *p = publisher_of(window, TIMEOUT_MS);
    assert_int_equal(warm(p), STATUS_OK);
    return p;
}

/* Message n, of the key. */
static enum status publish(struct publisher *p, int n, int key)
{
    struct message m = {.dispatch_number = n + 1,
                        .schedule = "daily",
                        .scheduled_for = {INT64_C(1902196800000000)},
                        .scope = "main",
                        .generation = 7,
                        .queue = "default",
                        .occurrence_key = "2030-04-12"};
    struct message_text text;
    (void)snprintf(m.job_id, sizeof m.job_id, "0192a4c5-1b2c-7d3e-8f40-%012d", key);
    assert_int_equal(message_encode(&m, n, (utc_us){0}, &text, NULL), STATUS_OK);
    return publisher_publish(p, n, m.job_id, &text, NULL);
}

/* Take reports until `count` came, each of a message of its own. */
static size_t reports_take(struct publisher *p, size_t count, enum publish_result result)
{
    struct publish_report r[MOST];
    bool seen[MOST] = {false};
    size_t got = 0;
    size_t as_expected = 0;
    instant end = in_ms_(SOON_MS);
    while (got < count && instant_before(clock_now(), end)) {
        size_t n = publisher_poll(p, 20, r, MOST);
        for (size_t i = 0; i < n; i++) {
            assert_in_range(r[i].id, 0, MOST - 1);
            assert_false(seen[r[i].id]);
            seen[r[i].id] = true;
            as_expected += r[i].result == result ? 1 : 0;
            assert_true((r[i].result == PUBLISH_DELIVERED) == (r[i].reason[0] == '\0'));
        }
        got += n;
        if (n == 0) {
            (void)poll(NULL, 0, 10);
        }
    }
    assert_int_equal(got, count);
    return as_expected;
}

static struct consumer *consumer_of(const char *id)
{
    const char *topics[] = {contract_kafka_topic(), NULL};
    const struct consumer_options options = {
        .dispatch = contract_kafka_options(id), .group = contract_kafka_topic(), .topics = topics};
    struct consumer *c = NULL;
    struct error err = {.text = ""};
    if (consumer_open(&options, &c, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return c;
}

/* What came, in order. */
struct intake {
    struct message_position positions[MOST];
    int64_t numbers[MOST];
    size_t count;
};

/* Take messages for so long, or until there are `count` in all. */
static void take(struct consumer *c, struct intake *in, size_t count, int64_t ms)
{
    instant end = in_ms_(ms);
    while (in->count < count && instant_before(clock_now(), end)) {
        struct incoming m;
        enum status s = consumer_poll(c, 100, &m, NULL);
        assert_true(s != STATUS_FATAL);
        if (s == STATUS_OK) {
            assert_in_range(in->count, 0, MOST - 1);
            struct message read;
            assert_int_equal(
                message_decode(m.value, m.size, m.headers, m.header_count, &read, NULL), STATUS_OK);
            in->numbers[in->count] = read.dispatch_number - 1;
            in->positions[in->count++] = m.position;
        }
    }
}

static bool has(const struct intake *in, int64_t number)
{
    for (size_t i = 0; i < in->count; i++) {
        if (in->numbers[i] == number) {
            return true;
        }
    }
    return false;
}

static int begin(void **state)
{
    (void)state;
    contract_kafka_begin();
    return 0;
}

static void leave(struct consumer *c)
{
    assert_int_equal(consumer_close(c, in_ms_(SOON_MS)), STATUS_OK);
}

static void test_each_accepted_message_has_one_report_and_a_delivered_one_arrives(void **state)
{
    (void)state;
    struct publisher *p = warm_one(MOST);
    bool seen[MOST] = {false};
    struct intake in = {.count = 0};
    for (int i = 0; i < 40; i++) {
        assert_int_equal(publish(p, i, i), STATUS_OK);
    }
    assert_int_equal(publisher_in_flight(p), 40);
    assert_int_equal(reports_take(p, 40, PUBLISH_DELIVERED), 40);
    assert_int_equal(publisher_in_flight(p), 0);
    struct consumer *c = consumer_of("one");
    take(c, &in, 40, SOON_MS);
    assert_int_equal(in.count, 40);
    for (size_t i = 0; i < in.count; i++) {
        assert_in_range(in.numbers[i], 0, 39);
        assert_false(seen[in.numbers[i]]);
        seen[in.numbers[i]] = true;
    }
    assert_int_equal(consumer_assigned(c), 4);
    leave(c);
    publisher_free(p);
}

static void test_messages_of_one_key_come_in_the_order_they_were_sent(void **state)
{
    (void)state;
    struct publisher *p = warm_one(MOST);
    struct intake in = {.count = 0};
    for (int i = 0; i < 40; i++) {
        assert_int_equal(publish(p, i, i % 3), STATUS_OK);
    }
    assert_int_equal(reports_take(p, 40, PUBLISH_DELIVERED), 40);
    struct consumer *c = consumer_of("one");
    take(c, &in, 40, SOON_MS);
    assert_int_equal(in.count, 40);
    for (size_t i = 0; i < in.count; i++) {
        for (size_t k = 0; k < i; k++) {
            bool same_partition = in.positions[i].partition == in.positions[k].partition;
            bool same_key = in.numbers[i] % 3 == in.numbers[k] % 3;
            assert_true(!same_key || same_partition);
            assert_true(!same_partition || in.positions[i].offset > in.positions[k].offset);
            assert_true(!same_partition || in.numbers[i] > in.numbers[k]);
        }
    }
    leave(c);
    publisher_free(p);
}

static void test_a_full_window_takes_nothing_until_a_report_is_taken(void **state)
{
    (void)state;
    struct publisher *p = warm_one(2);
    assert_int_equal(publish(p, 0, 0), STATUS_OK);
    assert_int_equal(publish(p, 1, 1), STATUS_OK);
    assert_int_equal(publish(p, 2, 2), STATUS_FULL);
    assert_int_equal(reports_take(p, 2, PUBLISH_DELIVERED), 2);
    assert_int_equal(publish(p, 2, 2), STATUS_OK);
    assert_int_equal(reports_take(p, 1, PUBLISH_DELIVERED), 1);
    publisher_free(p);
}

/* Not delivered by its report, and in Kafka all the same: that is what "unknown" comes to. */
static void test_stopping_gives_every_accepted_message_its_report(void **state)
{
    (void)state;
    struct publisher *p = warm_one(MOST);
    struct intake in = {.count = 0};
    for (int i = 0; i < 20; i++) {
        assert_int_equal(publish(p, i, i), STATUS_OK);
    }
    publisher_stop(p, clock_now());
    size_t delivered = reports_take(p, 20, PUBLISH_DELIVERED);
    assert_int_equal(publisher_in_flight(p), 0);
    publisher_free(p);
    struct consumer *c = consumer_of("one");
    take(c, &in, 20, 3000);
    assert_true(in.count >= delivered);
    leave(c);
}

static void test_what_was_stored_is_not_sent_again_and_the_rest_is(void **state)
{
    (void)state;
    struct publisher *p = warm_one(MOST);
    struct intake first = {.count = 0}, second = {.count = 0};
    for (int i = 0; i < 12; i++) {
        assert_int_equal(publish(p, i, 5), STATUS_OK); /* one partition */
    }
    assert_int_equal(reports_take(p, 12, PUBLISH_DELIVERED), 12);
    struct consumer *c = consumer_of("one");
    take(c, &first, 12, SOON_MS);
    assert_int_equal(first.count, 12);
    consumer_store(c, &first.positions[6]);
    consumer_store(c, &first.positions[3]); /* a lower one is ignored */
    leave(c);
    c = consumer_of("two");
    take(c, &second, 5, SOON_MS);
    assert_int_equal(second.count, 5);
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(second.numbers[i], first.numbers[7 + i]);
    }
    leave(c);
    publisher_free(p);
}

static void test_a_paused_consumer_gets_nothing_and_misses_nothing(void **state)
{
    (void)state;
    struct publisher *p = warm_one(MOST);
    struct intake in = {.count = 0};
    bool seen[MOST] = {false};
    for (int i = 0; i < 20; i++) {
        assert_int_equal(publish(p, i, i), STATUS_OK);
    }
    assert_int_equal(reports_take(p, 20, PUBLISH_DELIVERED), 20);
    struct consumer *c = consumer_of("one");
    take(c, &in, 3, SOON_MS);
    assert_int_equal(in.count, 3);
    consumer_pause(c);
    assert_true(consumer_is_paused(c));
    take(c, &in, 20, 500);
    assert_int_equal(in.count, 3);
    consumer_resume(c);
    take(c, &in, 20, SOON_MS);
    assert_int_equal(in.count, 20);
    for (size_t i = 0; i < in.count; i++) {
        assert_false(seen[in.numbers[i]]);
        seen[in.numbers[i]] = true;
    }
    leave(c);
    publisher_free(p);
}

/* Messages that were polled and not stored come again, at whoever has the partition then. */
static void test_a_second_member_takes_its_share_and_nothing_is_lost(void **state)
{
    (void)state;
    struct publisher *p = warm_one(MOST);
    struct intake one = {.count = 0}, two = {.count = 0};
    bool seen[MOST] = {false};
    struct consumer *first = consumer_of("one");
    take(first, &one, 1, 500);
    struct consumer *second = consumer_of("two");
    instant end = in_ms_(SOON_MS);
    while ((consumer_assigned(first) != 2 || consumer_assigned(second) != 2) &&
           instant_before(clock_now(), end)) {
        take(first, &one, MOST, 100);
        take(second, &two, MOST, 100);
    }
    assert_int_equal(consumer_assigned(first), 2);
    assert_int_equal(consumer_assigned(second), 2);
    for (int i = 0; i < 40; i++) {
        assert_int_equal(publish(p, i, i), STATUS_OK);
    }
    assert_int_equal(reports_take(p, 40, PUBLISH_DELIVERED), 40);
    end = in_ms_(SOON_MS);
    while (one.count + two.count < 40 && instant_before(clock_now(), end)) {
        take(first, &one, MOST, 100);
        take(second, &two, MOST, 100);
    }
    assert_int_equal(one.count + two.count, 40);
    assert_true(one.count > 0 && two.count > 0);
    for (size_t i = 0; i < one.count; i++) {
        seen[one.numbers[i]] = true;
    }
    for (size_t i = 0; i < two.count; i++) {
        assert_false(seen[two.numbers[i]]);
    }
    leave(second); /* nothing was stored: all comes again, also what the first had */
    size_t again = 0;
    end = in_ms_(SOON_MS);
    while (again < two.count && instant_before(clock_now(), end)) {
        take(first, &one, one.count + 1, 100);
        again = 0;
        for (size_t i = 0; i < two.count; i++) {
            again += has(&one, two.numbers[i]) ? 1 : 0;
        }
    }
    assert_int_equal(again, two.count);
    leave(first);
    publisher_free(p);
}

static void test_a_lost_topic_fails_what_is_sent_and_takes_what_it_held_along(void **state)
{
    (void)state;
    struct publisher *p = publisher_of(MOST, 3000); /* its second message is to be given up */
    struct intake in = {.count = 0};
    assert_int_equal(warm(p), STATUS_OK);
    assert_int_equal(publish(p, 0, 0), STATUS_OK);
    assert_int_equal(reports_take(p, 1, PUBLISH_DELIVERED), 1);
    contract_kafka_lose_topic();
    struct publisher *late = publisher_of(MOST, TIMEOUT_MS);
    assert_int_equal(warm(late), STATUS_NOT_FOUND);
    /* Accepted or not, delivered it is not. */
    enum status s = publish(p, 1, 1);
    assert_true(s == STATUS_OK || s == STATUS_AGAIN);
    assert_true(s != STATUS_OK || reports_take(p, 1, PUBLISH_FAILED) == 1);
    publisher_free(p);
    publisher_free(late);
    contract_kafka_make_topic();
    p = warm_one(MOST);
    assert_int_equal(publish(p, 2, 2), STATUS_OK);
    assert_int_equal(reports_take(p, 1, PUBLISH_DELIVERED), 1);
    struct consumer *c = consumer_of("one");
    take(c, &in, 2, 3000);
    assert_int_equal(in.count, 1);
    assert_int_equal(in.numbers[0], 2);
    leave(c);
    publisher_free(p);
}

int contract_kafka(void)
{
#define CASE(name) cmocka_unit_test_setup(name, begin)
    const struct CMUnitTest tests[] = {
        CASE(test_each_accepted_message_has_one_report_and_a_delivered_one_arrives),
        CASE(test_messages_of_one_key_come_in_the_order_they_were_sent),
        CASE(test_a_full_window_takes_nothing_until_a_report_is_taken),
        CASE(test_stopping_gives_every_accepted_message_its_report),
        CASE(test_what_was_stored_is_not_sent_again_and_the_rest_is),
        CASE(test_a_paused_consumer_gets_nothing_and_misses_nothing),
        CASE(test_a_second_member_takes_its_share_and_nothing_is_lost),
        CASE(test_a_lost_topic_fails_what_is_sent_and_takes_what_it_held_along),
    };
    return cmocka_run_group_tests_name("kafka", tests, NULL, NULL);
}
