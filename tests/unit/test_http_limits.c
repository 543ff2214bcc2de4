/* What bounds common/http/http.h: sizes, times, numbers. */
#include <dirent.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture_http.h"

static void test_body_up_to_the_bound_is_taken_and_one_byte_more_is_413(void **state)
{
    (void)state;
    char *body = malloc(HTTP_BODY_MAX + 1);
    assert_non_null(body);
    memset(body, 'x', HTTP_BODY_MAX + 1);
    const char *a = client_ask("POST /echo HTTP/1.1", body, HTTP_BODY_MAX);
    assert_int_equal(answer_status(a), 200);
    assert_string_equal(answer_body(a), "{\"bytes\": 65536, \"rest\": \"\"}");
    a = client_ask("POST /echo HTTP/1.1", body, HTTP_BODY_MAX + 1);
    assert_int_equal(answer_status(a), 413);
    assert_true(text_has(answer_body(a), "65536"));
    free(body);
}

/* Without a length in front, nothing can be refused before it has come. */
static void test_chunked_body_is_bounded_too(void **state)
{
    const char *answer = NULL;
    (void)state;
    static char chunk[20000];
    int fd = client_dial();
    static const char head[] = "POST /echo HTTP/1.1\r\nHost: t\r\nConnection: close\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    memset(chunk, 'y', sizeof chunk);
    client_say(fd, head, sizeof head - 1);
    for (int i = 0; i < 4; i++) {
        client_say(fd, "4e20\r\n", 6);
        client_say(fd, chunk, sizeof chunk);
        client_say(fd, "\r\n", 2);
    }
    client_say(fd, "0\r\n\r\n", 5);
    (void)client_hear(fd, SOON_MS, &answer);
    (void)close(fd);
    assert_int_equal(answer_status(answer), 413);
}

static void test_announced_flood_is_refused_before_it_comes(void **state)
{
    const char *answer = NULL;
    (void)state;
    static const char head[] =
        "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999\r\n\r\n";
    int fd = client_dial();
    client_say(fd, head, sizeof head - 1);
    (void)client_hear(fd, SOON_MS,
                      &answer); /* answered and closed, though nothing of the body was sent */
    (void)close(fd);
    assert_int_equal(answer_status(answer), 413);
}

static void test_oversized_head_is_refused(void **state)
{
    const char *answer = NULL;
    (void)state;
    static char name[HTTP_HEAD_MAX];
    int fd = client_dial();
    memset(name, 'h', sizeof name);
    client_say(fd, "GET /hello HTTP/1.1\r\nX: ", 24);
    (void)send(fd, name, sizeof name, MSG_NOSIGNAL); /* it may close while we send */
    (void)client_hear(fd, SOON_MS, &answer);
    (void)close(fd);
    assert_true(answer[0] == '\0' || answer_status(answer) == 431 || answer_status(answer) == 413);
    assert_int_equal(answer_status(client_ask("GET /hello HTTP/1.1", NULL, 0)),
                     200); /* it goes on */
}

static void test_answers_that_come_later_hold_nobody_up(void **state)
{
    static const char later[] = "GET /later HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
    int fds[LATER_MAX];
    const char *answer = NULL;
    (void)state;
    for (size_t i = 0; i < LATER_MAX; i++) {
        fds[i] = client_dial();
        client_say(fds[i], later, sizeof later - 1);
    }
    later_wait(LATER_MAX);
    assert_int_equal(answer_status(client_ask("GET /hello HTTP/1.1", NULL, 0)), 200);
    later_answer("at last");
    for (size_t i = 0; i < LATER_MAX; i++) {
        (void)client_hear(fds[i], SOON_MS, &answer);
        (void)close(fds[i]);
        assert_int_equal(answer_status(answer), 200);
        assert_string_equal(answer_body(answer), "at last");
    }
}

static void test_client_that_leaves_before_its_answer_harms_nothing(void **state)
{
    static const char later[] = "GET /later HTTP/1.1\r\nHost: t\r\n\r\n";
    (void)state;
    int fd = client_dial();
    client_say(fd, later, sizeof later - 1);
    later_wait(1);
    (void)close(fd);
    later_answer("too late");
    assert_int_equal(answer_status(client_ask("GET /hello HTTP/1.1", NULL, 0)), 200);
}

/* A byte a quarter second is never silent for long; only the whole request's time ends it. */
static void test_client_that_sends_slowly_is_cut(void **state)
{
    static const char request[] = "GET /hello HTTP/1.1\r\nHost: a-name-that-is-long-enough-for-"
                                  "more-than-ten-seconds-of-bytes\r\n\r\n";
    (void)state;
    int fd = client_dial();
    instant began = clock_now();
    bool cut = false;
    for (size_t i = 0; i < sizeof request - 1 && !cut; i++) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        cut = send(fd, request + i, 1, MSG_NOSIGNAL) != 1 || poll(&p, 1, 250) > 0;
    }
    int64_t lasted_ms = instant_ms_between(began, clock_now());
    assert_true(cut);
    assert_in_range(lasted_ms, HTTP_STEP_MS - 500, HTTP_STEP_MS + 3000);
    char byte;
    assert_true(recv(fd, &byte, 1, 0) <= 0); /* closed, not answered */
    (void)close(fd);
    assert_int_equal(answer_status(client_ask("GET /hello HTTP/1.1", NULL, 0)), 200);
}

/* Twice as many as there may be, none of which says anything or says it whole: a probe is answered
 * soon, and so is who was owed an answer before they came. */
static void test_idle_connections_in_number_give_way_soon(void **state)
{
    static const char later[] = "GET /later HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
    static const char slow[] = "POST /echo HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\n";
    const char *answer = NULL;
    int fds[2 * HTTP_CONNECTIONS_MAX];
    const size_t count = sizeof fds / sizeof fds[0];
    (void)state;
    int owed = client_dial();
    client_say(owed, later, sizeof later - 1);
    later_wait(1);
    instant began = clock_now();
    for (size_t i = 0; i < count; i++) {
        fds[i] = client_dial();
        if (i % 2 == 0) {
            (void)send(fds[i], slow, sizeof slow - 1, MSG_NOSIGNAL);
        }
        if (i % 32 == 31) {
            assert_int_equal(answer_status(client_ask("GET /hello HTTP/1.1", NULL, 0)), 200);
        }
    }
    assert_true(instant_ms_between(began, clock_now()) < HTTP_STEP_MS / 2);
    later_answer("still here");
    (void)client_hear(owed, SOON_MS, &answer);
    (void)close(owed);
    assert_int_equal(answer_status(answer), 200);
    for (size_t i = 0; i < count; i++) {
        (void)close(fds[i]);
    }
}

static void test_stop_lets_owed_answers_out_and_ends_in_time(void **state)
{
    const char *answer = NULL;
    static const char later[] = "GET /later HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
    (void)state;
    int fd = client_dial();
    client_say(fd, later, sizeof later - 1);
    later_wait(1);
    instant began = clock_now();
    assert_int_equal(http_server_stop(subject, instant_in_ms(100)),
                     STATUS_TIMEOUT); /* one is owed */
    later_answer("goodbye");
    (void)client_hear(fd, SOON_MS, &answer);
    (void)close(fd);
    assert_string_equal(answer_body(answer), "goodbye");
    assert_int_equal(http_server_stop(subject, instant_in_ms(SOON_MS)), STATUS_OK);
    assert_true(instant_ms_between(began, clock_now()) < SOON_MS);
    subject = NULL;
}

static size_t descriptors_open(void)
{
    size_t n = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        n++;
    }
    (void)closedir(directory);
    return n;
}

/* Its answer is more than the sockets hold, and it does not read. */
static void test_client_that_does_not_take_its_answer_is_cut(void **state)
{
    static const char get[] = "GET /large HTTP/1.1\r\nHost: t\r\n\r\n";
    const char *answer = NULL;
    (void)state;
    size_t before = descriptors_open();
    int fd = client_dial();
    client_say(fd, get, sizeof get - 1);
    instant until = instant_in_ms(SOON_MS);
    while (descriptors_open() < before + 2) { /* ours and the server's */
        assert_true(instant_before(clock_now(), until));
        (void)poll(NULL, 0, 2);
    }
    until = instant_in_ms(HTTP_STEP_MS + 3000);
    while (descriptors_open() > before + 1) {
        assert_true(instant_before(clock_now(), until));
        (void)poll(NULL, 0, 20);
    }
    size_t n = client_hear(fd, SOON_MS, &answer); /* what lay in the sockets, then the end */
    (void)close(fd);
    assert_int_equal(answer_status(answer), 200);
    assert_true(n < LARGE_BYTES);
    assert_int_equal(answer_status(client_ask("GET /hello HTTP/1.1", NULL, 0)), 200);
}

static void test_connection_serves_one_request_after_another(void **state)
{
    static const char two[] = "GET /hello?name=a HTTP/1.1\r\nHost: t\r\n\r\n"
                              "GET /hello?name=b HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
    const char *answer = NULL;
    (void)state;
    int fd = client_dial();
    client_say(fd, two, sizeof two - 1);
    (void)client_hear(fd, SOON_MS, &answer);
    (void)close(fd);
    assert_true(text_has(answer, "hello a from hello"));
    assert_true(text_has(answer, "hello b from hello"));
}

int main(void)
{
#define WITH(test) cmocka_unit_test_setup_teardown(test, subject_with_token, subject_end)
    const struct CMUnitTest tests[] = {
        WITH(test_body_up_to_the_bound_is_taken_and_one_byte_more_is_413),
        WITH(test_chunked_body_is_bounded_too),
        WITH(test_announced_flood_is_refused_before_it_comes),
        WITH(test_oversized_head_is_refused),
        WITH(test_answers_that_come_later_hold_nobody_up),
        WITH(test_client_that_leaves_before_its_answer_harms_nothing),
        WITH(test_client_that_sends_slowly_is_cut),
        WITH(test_idle_connections_in_number_give_way_soon),
        WITH(test_stop_lets_owed_answers_out_and_ends_in_time),
        WITH(test_client_that_does_not_take_its_answer_is_cut),
        WITH(test_connection_serves_one_request_after_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
