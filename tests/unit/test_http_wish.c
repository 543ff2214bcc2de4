/* The JSON of requests over HTTP. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "http_wish.h"

#define ID "6f1c7d1e-5a55-4f0c-9a57-6b8f5d9a1b2c"

static enum status parse(const char *text, struct request_wish *ret_wish, struct error *err)
{
    return wish_parse(text, strlen(text), ret_wish, err);
}

static void test_whole_wish_is_taken(void **state)
{
    struct request_wish w;
    struct error err = {.text = ""};
    (void)state;
    assert_int_equal(parse("{\"id\": \"" ID "\", \"kind\": \"trigger\", \"subject\": \"sales\", "
                           "\"argument\": \"2030-04-12\", \"timeout_s\": 5}",
                           &w, &err),
                     STATUS_OK);
    assert_string_equal(w.id, ID);
    assert_string_equal(w.kind, "trigger");
    assert_string_equal(w.subject, "sales");
    assert_true(w.has_argument);
    assert_string_equal(w.argument, "2030-04-12");
    assert_int_equal(w.timeout_s, 5);
}

static void test_what_may_be_left_out_has_a_default(void **state)
{
    struct request_wish w;
    struct error err = {.text = ""};
    (void)state;
    assert_int_equal(parse("{\"id\": \"" ID "\", \"kind\": \"retry\", \"subject\": \"sales:k\", "
                           "\"argument\": null}",
                           &w, &err),
                     STATUS_OK);
    assert_false(w.has_argument);
    assert_int_equal(w.timeout_s, WISH_TIMEOUT_S);
}

static void refused(const char *text, enum status status, const char *part)
{
    struct request_wish w = {.id = "untouched"};
    struct error err = {.text = ""};
    assert_int_equal(parse(text, &w, &err), status);
    assert_string_equal(w.id, "untouched");
    if (strstr(err.text, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, part);
    }
}

#define WISH(members) "{\"id\": \"" ID "\", \"kind\": \"trigger\", " members "}"

static void test_what_is_wrong_is_named_by_its_member(void **state)
{
    (void)state;
    refused("", STATUS_INVALID, "not JSON");
    refused("nonsense", STATUS_INVALID, "line 1");
    refused("[1]", STATUS_INVALID, "object");
    refused("{}", STATUS_INVALID, "id:");
    refused("{\"id\": \"1\"}", STATUS_INVALID, "UUID");
    refused("{\"id\": null}", STATUS_INVALID, "id:");
    refused("{\"id\": \"" ID "\"}", STATUS_INVALID, "kind:");
    refused("{\"id\": \"" ID "\", \"kind\": \"drop\"}", STATUS_INVALID, "no such kind");
    refused(WISH("\"argument\": \"k\""), STATUS_INVALID, "subject:");
    refused(WISH("\"subject\": \"\""), STATUS_INVALID, "subject:");
    refused(WISH("\"subject\": \"a\\u0000b\""), STATUS_INVALID, "not JSON");
    refused(WISH("\"subject\": \"a\", \"argument\": 7"), STATUS_INVALID, "argument:");
    refused(WISH("\"subject\": \"a\", \"timeout_s\": \"5\""), STATUS_INVALID, "timeout_s:");
    refused(WISH("\"subject\": \"a\", \"timeout_s\": 86401"), STATUS_INVALID, "timeout_s:");
    refused(WISH("\"subject\": \"a\", \"timeout_s\": 1.5"), STATUS_INVALID, "timeout_s:");
    refused(WISH("\"subject\": \"a\", \"timout_s\": 5"), STATUS_INVALID, "not known");
    refused(WISH("\"subject\": \"a\", \"subject\": \"b\""), STATUS_INVALID, "not JSON");
}

#define BACKFILL(members)                                                                          \
    "{\"id\": \"" ID "\", \"kind\": \"backfill\", \"subject\": \"a\", " members "}"
#define PAUSE(members) "{\"id\": \"" ID "\", \"kind\": \"pause\", \"subject\": \"a\", " members "}"

static void test_pause_may_have_an_end_and_nothing_else_has(void **state)
{
    struct request_wish w;
    struct error err = {.text = ""};
    (void)state;
    assert_int_equal(parse(PAUSE("\"until\": \"2030-04-12T08:00:00+02:00\""), &w, &err), STATUS_OK);
    assert_string_equal(w.until, "2030-04-12T06:00:00Z");
    assert_int_equal(parse(PAUSE("\"until\": null"), &w, &err), STATUS_OK);
    assert_string_equal(w.until, "");
    refused(PAUSE("\"until\": \"tomorrow\""), STATUS_INVALID, "until:");
    refused(PAUSE("\"until\": 5"), STATUS_INVALID, "until:");
    refused(WISH("\"subject\": \"a\", \"until\": \"2030-04-12T06:00:00Z\""), STATUS_INVALID,
            "only a pause");
}

static void test_backfill_has_a_span_or_an_earlier_one_to_cancel(void **state)
{
    struct request_wish w;
    struct error err = {.text = ""};
    (void)state;
    assert_int_equal(
        parse(BACKFILL("\"from\": \"2024-01\", \"to\": \"2024-02\", \"beside\": true"), &w, &err),
        STATUS_OK);
    assert_true(w.has_span && w.beside && !w.dry_run && w.has_argument);
    assert_string_equal(w.argument, "2024-01 to 2024-02");
    assert_int_equal(parse(BACKFILL("\"cancel\": \"" ID "\""), &w, &err), STATUS_OK);
    assert_true(!w.has_span && w.has_argument);
    assert_string_equal(w.argument, ID);
    refused(BACKFILL("\"timeout_s\": 5"), STATUS_INVALID, "from and to");
    refused(BACKFILL("\"from\": \"2024-01\""), STATUS_INVALID, "from and to");
    refused(BACKFILL("\"argument\": \"2024-01 to 2024-02\""), STATUS_INVALID, "no argument");
    refused(BACKFILL("\"cancel\": \"" ID "\", \"dry_run\": true"), STATUS_INVALID, "alone");
    refused(BACKFILL("\"cancel\": \"5\""), STATUS_INVALID, "cancel:");
    refused(BACKFILL("\"from\": \"a\", \"to\": \"b\", \"dry_run\": 1"), STATUS_INVALID, "dry_run:");
    refused(WISH("\"subject\": \"a\", \"from\": \"2024-01\""), STATUS_INVALID, "only a backfill");
}

static void test_texts_are_bounded(void **state)
{
    static char text[4096];
    static char long_one[1024];
    (void)state;
    memset(long_one, 's', REQUEST_SUBJECT_MAX);
    (void)snprintf(text, sizeof text, WISH("\"subject\": \"%s\""), long_one);
    refused(text, STATUS_INVALID, "subject:");
    memset(long_one, 's', REQUEST_ARGUMENT_MAX);
    (void)snprintf(text, sizeof text, WISH("\"subject\": \"a\", \"argument\": \"%s\""), long_one);
    refused(text, STATUS_INVALID, "argument:");
}

static void answered(const char *state_word, unsigned status, const char *location)
{
    struct http_response response = {.status = 0};
    struct request_standing answer = {.id = ID};
    (void)snprintf(answer.state, sizeof answer.state, "%s", state_word);
    (void)snprintf(answer.text, sizeof answer.text, "it \"went\" so");
    wish_respond(&response, &answer);
    assert_int_equal(response.status, status);
    assert_string_equal(response.location, location);
    assert_non_null(strstr(response.body, state_word));
    assert_non_null(strstr(response.body, "it \\\"went\\\" so"));
    free(response.body);
}

static void test_state_of_the_request_is_the_status_of_the_answer(void **state)
{
    (void)state;
    answered("done", 200, "");
    answered("pending", 202, "/requests/" ID);
    answered("refused", 409, "");
    answered("expired", 409, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_wish_is_taken),
        cmocka_unit_test(test_what_may_be_left_out_has_a_default),
        cmocka_unit_test(test_what_is_wrong_is_named_by_its_member),
        cmocka_unit_test(test_pause_may_have_an_end_and_nothing_else_has),
        cmocka_unit_test(test_backfill_has_a_span_or_an_earlier_one_to_cancel),
        cmocka_unit_test(test_texts_are_bounded),
        cmocka_unit_test(test_state_of_the_request_is_the_status_of_the_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
