#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "message.h"

static const struct message sample = {
    .job_id = "0192a4c5-1b2c-7d3e-8f40-112233445566",
    .dispatch_number = 2,
    .schedule = "sales-daily",
    .occurrence_key = "2030-04-12T06:00+02:00",
    .scheduled_for = {INT64_C(1902196800000000)},
    .scope = "main",
    .generation = INT64_C(9007199254740993), /* does not fit a double */
    .queue = "default",
};

static const char *header_of(const struct message_text *t, const char *name)
{
    for (size_t i = 0; i < t->header_count; i++) {
        if (strcmp(t->headers[i].name, name) == 0) {
            return t->headers[i].value;
        }
    }
    fail_msg("no header %s", name);
    return NULL;
}

static void check_equal(const struct message *a, const struct message *b)
{
    assert_string_equal(a->job_id, b->job_id);
    assert_int_equal(a->dispatch_number, b->dispatch_number);
    assert_string_equal(a->schedule, b->schedule);
    assert_string_equal(a->occurrence_key, b->occurrence_key);
    assert_true(a->scheduled_for.us == b->scheduled_for.us);
    assert_string_equal(a->scope, b->scope);
    assert_true(a->generation == b->generation);
    assert_string_equal(a->queue, b->queue);
}

static enum status decode_text(const char *json, struct message *m, struct error *err)
{
    return message_decode(json, strlen(json), NULL, 0, m, err);
}

static void test_what_is_encoded_is_read_back(void **state)
{
    (void)state;
    struct message_text t;
    struct message back;
    assert_int_equal(message_encode(&sample, 77, (utc_us){1000000}, &t, NULL), STATUS_OK);
    assert_int_equal(message_decode(t.value, t.value_size, t.headers, t.header_count, &back, NULL),
                     STATUS_OK);
    check_equal(&back, &sample);
}

static void test_attributes_are_cloudevents_headers(void **state)
{
    (void)state;
    struct message_text t;
    assert_int_equal(message_encode(&sample, 77, (utc_us){1000000}, &t, NULL), STATUS_OK);
    assert_string_equal(header_of(&t, "content-type"), "application/json");
    assert_string_equal(header_of(&t, "ce_specversion"), "1.0");
    assert_string_equal(header_of(&t, "ce_id"), "main/77");
    assert_string_equal(header_of(&t, "ce_source"), "/report-scheduler/scopes/main");
    assert_string_equal(header_of(&t, "ce_type"), "report.job.dispatch.v1");
    assert_string_equal(header_of(&t, "ce_time"), "1970-01-01T00:00:01Z");
    assert_string_equal(header_of(&t, "ce_subject"), sample.job_id);
}

static void test_trace_id_is_the_job_id_and_span_differs_by_dispatch(void **state)
{
    (void)state;
    char first[MESSAGE_TRACEPARENT_MAX];
    char second[MESSAGE_TRACEPARENT_MAX];
    message_traceparent(sample.job_id, 1, first);
    message_traceparent(sample.job_id, 2, second);
    assert_int_equal(strlen(first), 55);
    assert_memory_equal(first, "00-0192a4c51b2c7d3e8f40112233445566-", 36);
    assert_string_equal(first + 52, "-01");
    assert_memory_equal(first, second, 36);
    assert_memory_not_equal(first + 36, second + 36, 16);
}

static void test_the_longest_names_fit(void **state)
{
    (void)state;
    struct message m = sample;
    struct message back;
    struct message_text t;
    memset(m.schedule, 'a', sizeof m.schedule - 1);
    memset(m.scope, 'b', sizeof m.scope - 1);
    memset(m.queue, 'c', sizeof m.queue - 1);
    memset(m.occurrence_key, '9', sizeof m.occurrence_key - 1);
    m.generation = INT64_MAX;
    m.dispatch_number = INT32_MAX;
    assert_int_equal(message_encode(&m, INT64_MAX, (utc_us){0}, &t, NULL), STATUS_OK);
    assert_int_equal(message_decode(t.value, t.value_size, NULL, 0, &back, NULL), STATUS_OK);
    check_equal(&back, &m);
}

static void test_encoding_refuses_what_no_row_can_hold(void **state)
{
    (void)state;
    struct message_text t;
    struct error err;
    struct message m = sample;
    (void)snprintf(m.schedule, sizeof m.schedule, "with \"quote");
    assert_int_equal(message_encode(&m, 1, (utc_us){0}, &t, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "schedule"));
    m = sample;
    m.dispatch_number = 0;
    assert_int_equal(message_encode(&m, 1, (utc_us){0}, &t, &err), STATUS_INVALID);
    m = sample;
    m.job_id[0] = 'x';
    assert_int_equal(message_encode(&m, 1, (utc_us){0}, &t, &err), STATUS_INVALID);
}

#define FIELDS                                                                                     \
    "\"job_id\":\"0192A4C5-1b2c-7d3e-8f40-112233445566\",\"dispatch_number\":2,"                   \
    "\"schedule\":\"sales-daily\",\"occurrence_key\":\"2030-04-12T06:00+02:00\","                  \
    "\"scheduled_for\":\"2030-04-12T08:00:00+00:00\",\"scope\":\"main\","                          \
    "\"generation\":\"9007199254740993\",\"queue\":\"default\""

static void test_unknown_fields_are_ignored_and_ids_folded_to_lower_case(void **state)
{
    (void)state;
    struct message m;
    struct error err;
    enum status s = decode_text("{\"v\":1,\"x\":{\"y\":[1,2]}," FIELDS "}", &m, &err);
    if (s != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    assert_string_equal(m.job_id, sample.job_id);
}

static void test_poison_is_refused_with_a_reason_and_leaves_the_output_alone(void **state)
{
    (void)state;
    static const struct {
        const char *json, *why;
    } cases[] = {
        {"", "bytes"},
        {"{", "not JSON"},
        {"[]", "not a JSON object"},
        {"{\"v\":1," FIELDS "} x", "not JSON"},
        {"{" FIELDS "}", "v is missing"},
        {"{\"v\":\"1\"," FIELDS "}", "v is not an integer"},
        {"{\"v\":2," FIELDS "}", "major version 2"},
        {"{\"v\":1,\"v\":1," FIELDS "}", "duplicate"},
        {"{\"v\":1,\"queue\":\"b\"," FIELDS "}", "duplicate"},
        {"{\"v\":1}", "job_id is missing"},
        {"{\"v\":1,\"job_id\":7}", "job_id is not a string"},
        {"{\"v\":1,\"job_id\":\"0192a4c5-1b2c-7d3e-8f40-1122334455667\"}", "longer than"},
        {"{\"v\":1,\"job_id\":\"a\\u0000b\"}", "not JSON"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct message m;
        struct error err = {.text = ""};
        memset(&m, 0x5a, sizeof m);
        struct message untouched = m;
        assert_int_equal(decode_text(cases[i].json, &m, &err), STATUS_INVALID);
        assert_memory_equal(&m, &untouched, sizeof m);
        if (strstr(err.text, cases[i].why) == NULL) {
            fail_msg("%s: \"%s\", wanted \"%s\"", cases[i].json, err.text, cases[i].why);
        }
    }
}

static void test_each_field_of_the_wrong_type_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to, *why;
    } changes[] = {
        {"\"dispatch_number\":2", "\"dispatch_number\":\"2\"", "dispatch_number"},
        {"\"dispatch_number\":2", "\"dispatch_number\":0", "dispatch_number"},
        {"\"dispatch_number\":2", "\"dispatch_number\":2147483648", "dispatch_number"},
        {"\"sales-daily\"", "\"Sales\"", "schedule"},
        {"\"2030-04-12T06:00+02:00\"", "\"a b\"", "occurrence_key"},
        {"\"2030-04-12T08:00:00+00:00\"", "\"2030-04-12\"", "scheduled_for"},
        {"\"main\"", "\"\"", "scope"},
        {"\"9007199254740993\"", "9007199254740993", "generation"},
        {"\"9007199254740993\"", "\"9223372036854775808\"", "generation"},
        {"\"9007199254740993\"", "\"-1\"", "generation"},
        {"\"default\"", "null", "queue"},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        const char *whole = "{\"v\":1," FIELDS "}";
        const char *at = strstr(whole, changes[i].from);
        assert_non_null(at);
        char json[1024];
        (void)snprintf(json, sizeof json, "%.*s%s%s", (int)(at - whole), whole, changes[i].to,
                       at + strlen(changes[i].from));
        struct message m;
        struct error err = {.text = ""};
        assert_int_equal(decode_text(json, &m, &err), STATUS_INVALID);
        if (strstr(err.text, changes[i].why) == NULL) {
            fail_msg("%s: \"%s\", wanted \"%s\"", json, err.text, changes[i].why);
        }
    }
}

static void test_a_foreign_or_later_type_is_refused(void **state)
{
    (void)state;
    struct message_text t;
    struct message m;
    struct error err;
    assert_int_equal(message_encode(&sample, 1, (utc_us){0}, &t, NULL), STATUS_OK);
    struct message_header type = {"ce_type", "report.job.dispatch.v2", 22};
    assert_int_equal(message_decode(t.value, t.value_size, &type, 1, &m, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "major version"));
    type.value = "com.example.other";
    type.size = 17;
    assert_int_equal(message_decode(t.value, t.value_size, &type, 1, &m, &err), STATUS_INVALID);
    type.name = "ce_unknown";
    assert_int_equal(message_decode(t.value, t.value_size, &type, 1, &m, &err), STATUS_OK);
}

static void test_an_oversize_value_is_refused_before_it_is_parsed(void **state)
{
    (void)state;
    static char big[MESSAGE_READ_MAX + 1];
    struct message m;
    struct error err;
    memset(big, ' ', sizeof big);
    assert_int_equal(message_decode(big, sizeof big, NULL, 0, &m, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_encoded_is_read_back),
        cmocka_unit_test(test_attributes_are_cloudevents_headers),
        cmocka_unit_test(test_trace_id_is_the_job_id_and_span_differs_by_dispatch),
        cmocka_unit_test(test_the_longest_names_fit),
        cmocka_unit_test(test_encoding_refuses_what_no_row_can_hold),
        cmocka_unit_test(test_unknown_fields_are_ignored_and_ids_folded_to_lower_case),
        cmocka_unit_test(test_poison_is_refused_with_a_reason_and_leaves_the_output_alone),
        cmocka_unit_test(test_each_field_of_the_wrong_type_is_refused_by_name),
        cmocka_unit_test(test_a_foreign_or_later_type_is_refused),
        cmocka_unit_test(test_an_oversize_value_is_refused_before_it_is_parsed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
