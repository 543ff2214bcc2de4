#include "fixture_dispatch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

instant in_ms(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

struct publisher *publisher_of(struct dispatch_options dispatch, const char *topic, size_t window)
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

void warm(struct publisher *p, int want_partitions)
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

struct message message_number(int n)
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

void publish_number(struct publisher *p, int n)
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

void publish_numbers(struct publisher *p)
{
    for (int i = 0; i < MESSAGES; i++) {
        publish_number(p, i);
    }
}

void reports_collect(struct publisher *p, unsigned char *seen, size_t counts[3], int64_t ms)
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
