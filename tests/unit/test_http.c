/* The contract of common/http/http.h, over real sockets: it needs no fake. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture_http.h"
#include "metrics.h"

static void test_a_route_answers_with_what_its_function_filled_in(void **state)
{
    (void)state;
    const char *a = client_ask("GET /hello?name=world HTTP/1.1", NULL, 0);
    assert_int_equal(answer_status(a), 200);
    assert_true(text_has(a, "Content-Type: text/plain\r\n"));
    assert_string_equal(answer_body(a), "hello world from hello");
    assert_string_equal(answer_body(client_ask("GET / HTTP/1.1", NULL, 0)),
                        "hello nobody from root");
}

static void test_head_has_the_same_head_and_no_body(void **state)
{
    (void)state;
    const char *a = client_ask("HEAD /hello HTTP/1.1", NULL, 0);
    assert_int_equal(answer_status(a), 200);
    assert_true(text_has(a, "Content-Length: 23\r\n"));
    assert_string_equal(answer_body(a), "");
}

static void test_unknown_path_is_404_and_says_what_there_is(void **state)
{
    (void)state;
    const char *a = client_ask("GET /nowhere HTTP/1.1", NULL, 0);
    assert_int_equal(answer_status(a), 404);
    assert_true(text_has(a, "Content-Type: application/json\r\n"));
    assert_true(text_has(answer_body(a), "\"error\""));
    assert_true(text_has(answer_body(a), "/metrics"));
    assert_int_equal(answer_status(client_ask("GET /hello/more HTTP/1.1", NULL, 0)), 404);
    assert_int_equal(answer_status(client_ask("GET /echo/ HTTP/1.1", NULL, 0)), 404);
}

static void test_path_below_a_route_is_handed_to_it(void **state)
{
    (void)state;
    const char *a = client_ask("GET /echo/a%20b/c HTTP/1.1", NULL, 0);
    assert_int_equal(answer_status(a), 200);
    assert_string_equal(answer_body(a), "{\"bytes\": 0, \"rest\": \"a b/c\"}");
}

static void test_wrong_method_is_405_with_those_allowed(void **state)
{
    (void)state;
    const char *a = client_ask("POST /hello HTTP/1.1", "", 0);
    assert_int_equal(answer_status(a), 405);
    assert_true(text_has(a, "Allow: GET, HEAD\r\n"));
    a = client_ask("GET /echo HTTP/1.1", NULL, 0);
    assert_int_equal(answer_status(a), 405);
    assert_true(text_has(a, "Allow: POST\r\n"));
    assert_int_equal(answer_status(client_ask("DELETE /echo HTTP/1.1", NULL, 0)), 405);
}

static void test_guarded_route_demands_the_token(void **state)
{
    (void)state;
    const char *a = client_ask("POST /guarded HTTP/1.1", "{}", 2);
    assert_int_equal(answer_status(a), 401);
    assert_true(text_has(a, "WWW-Authenticate: Bearer\r\n"));
    a = client_ask("POST /guarded HTTP/1.1\r\nAuthorization: Bearer wrong", "{}", 2);
    assert_int_equal(answer_status(a), 401);
    assert_false(text_has(a, "wrong")); /* what was sent is not shown around */
    assert_int_equal(
        answer_status(client_ask(
            "POST /guarded HTTP/1.1\r\nAuthorization: Bearer " SUBJECT_TOKEN "x", "{}", 2)),
        401);
    assert_int_equal(answer_status(client_ask(
                         "POST /guarded HTTP/1.1\r\nAuthorization: Basic " SUBJECT_TOKEN, "{}", 2)),
                     401);
    assert_int_equal(
        answer_status(
            client_ask("POST /guarded HTTP/1.1\r\nAuthorization: Bearer " SUBJECT_TOKEN, "{}", 2)),
        200);
}

static void test_guarded_route_is_closed_where_there_is_no_token(void **state)
{
    (void)state;
    const char *a = client_ask("POST /guarded HTTP/1.1\r\nAuthorization: Bearer ", "{}", 2);
    assert_int_equal(answer_status(a), 403);
    assert_true(text_has(answer_body(a), "http_token_file"));
    assert_int_equal(answer_status(client_ask("POST /echo HTTP/1.1", "{}", 2)), 200);
}

static void test_redirect_and_retry_after_are_headers(void **state)
{
    (void)state;
    const char *a = client_ask("GET /moved HTTP/1.1", NULL, 0);
    assert_int_equal(answer_status(a), 307);
    assert_true(text_has(a, "Location: http://other.example/requests\r\n"));
    assert_true(text_has(a, "Retry-After: 3\r\n"));
}

static void test_metrics_are_what_was_counted(void **state)
{
    static const struct metric_family family = {
        .name = "report_test_http_total", .kind = METRIC_COUNTER, .help = "Of this test."};
    (void)state;
    metric_add(metric_get(&family, NULL, NULL), 7);
    const char *a = client_ask("GET /metrics HTTP/1.1", NULL, 0);
    assert_int_equal(answer_status(a), 200);
    assert_true(text_has(a, "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
    assert_true(text_has(answer_body(a), "\nreport_test_http_total 7\n"));
}

static void expect_refusal(struct http_options o, const char *part)
{
    struct http_server *none = NULL;
    struct error err = {.text = ""};
    assert_int_equal(http_server_start(&o, &none, &err), STATUS_INVALID);
    assert_null(none);
    if (!text_has(err.text, part)) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, part);
    }
}

static void test_what_cannot_be_served_is_refused_by_the_settings_name(void **state)
{
    (void)state;
    struct http_options o = subject_options("");
    o.address = "localhost";
    expect_refusal(o, "http_address: \"localhost\"");
    o = subject_options("");
    o.port = http_server_port(subject); /* the fixture's */
    expect_refusal(o, "http_port: cannot listen on 127.0.0.1 port");
    expect_refusal(subject_options("/nowhere/token"), "http_token_file: /nowhere/token");
    o = subject_options("");
    o.certificate_file = "/nowhere/cert.pem";
    expect_refusal(o, "http_tls_key_file: is missing");
    o.key_file = "/nowhere/key.pem";
    expect_refusal(o, "http_tls_certificate_file: /nowhere/cert.pem cannot be read");
}

static void test_token_that_others_may_read_is_refused(void **state)
{
    (void)state;
    assert_int_equal(chmod(subject_token_path, 0644), 0);
    expect_refusal(subject_options(subject_token_path), "chmod 600");
}

int main(void)
{
#define WITH(test)    cmocka_unit_test_setup_teardown(test, subject_with_token, subject_end)
#define WITHOUT(test) cmocka_unit_test_setup_teardown(test, subject_without_token, subject_end)
    const struct CMUnitTest tests[] = {
        WITH(test_a_route_answers_with_what_its_function_filled_in),
        WITH(test_head_has_the_same_head_and_no_body),
        WITH(test_unknown_path_is_404_and_says_what_there_is),
        WITH(test_path_below_a_route_is_handed_to_it),
        WITH(test_wrong_method_is_405_with_those_allowed),
        WITH(test_guarded_route_demands_the_token),
        WITHOUT(test_guarded_route_is_closed_where_there_is_no_token),
        WITH(test_redirect_and_retry_after_are_headers),
        WITH(test_metrics_are_what_was_counted),
        WITH(test_what_cannot_be_served_is_refused_by_the_settings_name),
        WITH(test_token_that_others_may_read_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
