/* The base every other part stands on: statuses, clock arithmetic, inbox, identities, log lines. */
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "ident.h"
#include "inbox.h"
#include "log.h"
#include "status.h"

static void test_error_text_is_cut_on_a_character_boundary(void **state)
{
    (void)state;
    struct error err;
    char longer[2 * ERROR_TEXT_MAX];
    memset(longer, 'x', sizeof longer);
    /* A two-byte character straddles the bound. */
    memcpy(longer + ERROR_TEXT_MAX - 2, "\xc3\xa9", 2);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(error_set(&err, STATUS_INVALID, "%s", longer), STATUS_INVALID);
    assert_int_equal(strlen(err.text), ERROR_TEXT_MAX - 2);
    assert_int_equal(err.text[ERROR_TEXT_MAX - 3], 'x');
}

static void test_logged_value_is_cut_on_a_character_boundary(void **state)
{
    (void)state;
    char longer[2 * sizeof(struct log_quoted)];
    for (size_t shift = 0; shift < 2; shift++) {
        longer[0] = 'x';
        for (size_t i = shift; i + 2 < sizeof longer; i += 2) {
            memcpy(longer + i, "\xc3\xa9", 3);
        }
        struct log_quoted q = log_quote(longer);
        size_t n = strlen(q.text);
        assert_true(n > sizeof q.text - 8);
        assert_memory_equal(q.text + n - 3, "\xc3\xa9\"", 3);
    }
}

static void test_error_prefix_keeps_the_first_text(void **state)
{
    (void)state;
    struct error err;
    (void)error_set(&err, STATUS_AGAIN, "no route");
    assert_int_equal(error_prefix(&err, STATUS_AGAIN, "database %s", "a"), STATUS_AGAIN);
    assert_string_equal(err.text, "database a: no route");
}

static void test_setting_an_error_nobody_reads_is_harmless(void **state)
{
    (void)state;
    assert_int_equal(error_set(NULL, STATUS_FULL, "x"), STATUS_FULL);
    assert_int_equal(error_prefix(NULL, STATUS_FULL, "x"), STATUS_FULL);
}

static void test_instants_saturate_instead_of_wrapping(void **state)
{
    (void)state;
    instant late = instant_add_ms((instant){INT64_MAX - 5}, 1);
    assert_int_equal(late.ns, INT64_MAX);
    assert_int_equal(instant_add_ms((instant){0}, INT64_MAX).ns, INT64_MAX);
    assert_int_equal(instant_add_ms((instant){0}, INT64_MIN).ns, INT64_MIN);
}

static void test_milliseconds_between_round_down_in_both_directions(void **state)
{
    (void)state;
    instant a = {0};
    instant b = {1500000};
    assert_int_equal(instant_ms_between(a, b), 1);
    assert_int_equal(instant_ms_between(b, a), -2);
}

static void test_poll_timeout_never_wakes_early_and_never_overflows(void **state)
{
    (void)state;
    assert_int_equal(instant_poll_timeout((instant){0}, (instant){1}), 1);
    assert_int_equal(instant_poll_timeout((instant){5}, (instant){5}), 0);
    assert_int_equal(instant_poll_timeout((instant){9}, (instant){5}), 0);
    assert_int_equal(instant_poll_timeout((instant){0}, INSTANT_NEVER), INT_MAX / 2);
    assert_int_equal(instant_poll_wait((instant){9}, (instant){5}).tv_nsec, 0);
    assert_int_equal(instant_poll_wait((instant){5}, (instant){1000000012}).tv_sec, 1);
    assert_int_equal(instant_poll_wait((instant){5}, (instant){1000000012}).tv_nsec, 7);
    assert_int_equal(instant_poll_wait((instant){0}, INSTANT_NEVER).tv_sec, INT_MAX / 2 / 1000);
}

static void test_the_clock_does_not_go_backwards(void **state)
{
    (void)state;
    instant before = clock_now();
    for (int i = 0; i < 1000; i++) {
        instant now = clock_now();
        assert_false(instant_before(now, before));
        before = now;
    }
}

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void test_inbox_keeps_order_and_is_readable_while_not_empty(void **state)
{
    (void)state;
    struct inbox *in = inbox_new(sizeof(int), 4);
    assert_non_null(in);
    assert_false(readable(inbox_fd(in)));
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(inbox_post(in, &i), STATUS_OK);
    }
    for (int i = 1; i <= 3; i++) {
        int got = 0;
        assert_true(readable(inbox_fd(in)));
        assert_true(inbox_take(in, &got));
        assert_int_equal(got, i);
    }
    int none = 0;
    assert_false(readable(inbox_fd(in)));
    assert_false(inbox_take(in, &none));
    inbox_free(in);
}

static void test_a_full_inbox_refuses_and_counts(void **state)
{
    (void)state;
    struct inbox *in = inbox_new(sizeof(int), 2);
    int v = 7;
    assert_int_equal(inbox_post(in, &v), STATUS_OK);
    assert_int_equal(inbox_post(in, &v), STATUS_OK);
    assert_int_equal(inbox_post(in, &v), STATUS_FULL);
    assert_int_equal(inbox_take_dropped(in), 1);
    assert_int_equal(inbox_take_dropped(in), 0);
    assert_true(inbox_take(in, &v));
    assert_int_equal(inbox_post(in, &v), STATUS_OK);
    inbox_free(in);
}

#define POSTERS        4
#define POSTS_A_THREAD 5000

static void *post_many(void *argument)
{
    struct inbox *in = argument;
    for (int i = 0; i < POSTS_A_THREAD; i++) {
        while (inbox_post(in, &i) != STATUS_OK) {
        }
    }
    return NULL;
}

static void test_no_message_of_several_posters_is_lost(void **state)
{
    (void)state;
    struct inbox *in = inbox_new(sizeof(int), 64);
    pthread_t threads[POSTERS];
    for (int i = 0; i < POSTERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, in), 0);
    }
    int taken = 0;
    instant deadline = instant_add_ms(clock_now(), 20000);
    while (taken < POSTERS * POSTS_A_THREAD && instant_before(clock_now(), deadline)) {
        struct pollfd p = {.fd = inbox_fd(in), .events = POLLIN};
        assert_true(poll(&p, 1, 20000) >= 0);
        int v = 0;
        while (inbox_take(in, &v)) {
            taken++;
        }
    }
    assert_int_equal(taken, POSTERS * POSTS_A_THREAD);
    for (int i = 0; i < POSTERS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    inbox_free(in);
}

static void test_random_ids_are_version_4_and_differ(void **state)
{
    (void)state;
    char a[UUID_TEXT_MAX];
    char b[UUID_TEXT_MAX];
    uuid_random(a);
    uuid_random(b);
    assert_true(uuid_is_valid(a));
    assert_int_equal(a[14], '4');
    assert_non_null(strchr("89ab", a[19]));
    assert_string_not_equal(a, b);
}

static void test_time_ordered_ids_sort_by_their_time(void **state)
{
    (void)state;
    char a[UUID_TEXT_MAX];
    char b[UUID_TEXT_MAX];
    /* RFC 9562, appendix A.6: 2022-02-22T19:22:22Z is 0x017F22E279B0 ms. */
    uuid_time_ordered((utc_us){INT64_C(1645557742000) * 1000}, a);
    uuid_time_ordered((utc_us){INT64_C(1645557742001) * 1000}, b);
    assert_memory_equal(a, "017f22e2-79b0-7", 15);
    assert_true(strcmp(a, b) < 0);
}

static void test_what_is_not_a_uuid_is_refused(void **state)
{
    (void)state;
    assert_true(uuid_is_valid("017F22E2-79B0-7CC3-98C4-DC0C0C07398F"));
    assert_false(uuid_is_valid(""));
    assert_false(uuid_is_valid("017f22e279b07cc398c4dc0c0c07398f"));
    assert_false(uuid_is_valid("017f22e2-79b0-7cc3-98c4-dc0c0c07398g"));
    assert_false(uuid_is_valid("017f22e2-79b0-7cc3-98c4-dc0c0c07398f0"));
}

static void test_names_follow_the_rule_of_the_sql_domain(void **state)
{
    (void)state;
    assert_true(name_is_valid("sales-daily.2_x"));
    assert_true(name_is_valid("7"));
    assert_false(name_is_valid(""));
    assert_false(name_is_valid("-x"));
    assert_false(name_is_valid("Sales"));
    assert_false(name_is_valid("a b"));
    char longest[NAME_MAX_BYTES + 1];
    memset(longest, 'a', sizeof longest);
    longest[NAME_MAX_BYTES - 1] = '\0';
    assert_true(name_is_valid(longest));
    longest[NAME_MAX_BYTES - 1] = 'a';
    longest[NAME_MAX_BYTES] = '\0';
    assert_false(name_is_valid(longest));
}

static void test_logged_values_stay_on_one_line(void **state)
{
    (void)state;
    assert_string_equal(log_quote("a \"b\"\nc\\d\x01").text, "\"a \\\"b\\\"\\nc\\\\d \"");
    assert_string_equal(log_quote(NULL).text, "\"\"");
    char longer[4096];
    memset(longer, '"', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    struct log_quoted q = log_quote(longer);
    assert_true(strlen(q.text) < sizeof q.text);
    assert_int_equal(q.text[strlen(q.text) - 1], '"');
}

static void test_log_levels_have_one_spelling(void **state)
{
    (void)state;
    enum log_level level = LOG_LEVEL_ERROR;
    assert_true(log_level_parse("debug", &level));
    assert_int_equal(level, LOG_LEVEL_DEBUG);
    assert_false(log_level_parse("DEBUG", &level));
    assert_false(log_level_parse("trace", &level));
    assert_int_equal(level, LOG_LEVEL_DEBUG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_error_text_is_cut_on_a_character_boundary),
        cmocka_unit_test(test_logged_value_is_cut_on_a_character_boundary),
        cmocka_unit_test(test_error_prefix_keeps_the_first_text),
        cmocka_unit_test(test_setting_an_error_nobody_reads_is_harmless),
        cmocka_unit_test(test_instants_saturate_instead_of_wrapping),
        cmocka_unit_test(test_milliseconds_between_round_down_in_both_directions),
        cmocka_unit_test(test_poll_timeout_never_wakes_early_and_never_overflows),
        cmocka_unit_test(test_the_clock_does_not_go_backwards),
        cmocka_unit_test(test_inbox_keeps_order_and_is_readable_while_not_empty),
        cmocka_unit_test(test_a_full_inbox_refuses_and_counts),
        cmocka_unit_test(test_no_message_of_several_posters_is_lost),
        cmocka_unit_test(test_random_ids_are_version_4_and_differ),
        cmocka_unit_test(test_time_ordered_ids_sort_by_their_time),
        cmocka_unit_test(test_what_is_not_a_uuid_is_refused),
        cmocka_unit_test(test_names_follow_the_rule_of_the_sql_domain),
        cmocka_unit_test(test_logged_values_stay_on_one_line),
        cmocka_unit_test(test_log_levels_have_one_spelling),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
