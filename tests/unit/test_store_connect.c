/* Connecting while the resolver hangs: real libpq, a getaddrinfo of our own, no server. */
#include <dlfcn.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "source.h"
#include "store.h"
#include "store_pg_connect.h"

#define SHORT_MS 200
#define BOUND_MS 3000 /* a short deadline, and room for a slow machine */
#define HANG_MS  60000

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool hanging;     /* protected by mutex, like all below */
static unsigned lookups; /* that hang now */

/* Numbers are read as ever; names hang, and then are not known. */
__attribute__((visibility("default"))) int getaddrinfo(const char *restrict node,
                                                       const char *restrict service,
                                                       const struct addrinfo *restrict hints,
                                                       struct addrinfo **restrict res)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = NULL;
    const struct timespec end = clock_wait_end(HANG_MS);
    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (hints != NULL && (hints->ai_flags & AI_NUMERICHOST) != 0) {
        return real(node, service, hints, res);
    }
    (void)pthread_mutex_lock(&mutex);
    lookups++;
    while (hanging && pthread_cond_timedwait(&changed, &mutex, &end) == 0) {
    }
    lookups--;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&mutex);
    return EAI_AGAIN;
}

static int resolver_hangs(void **state)
{
    (void)state;
    (void)pthread_mutex_lock(&mutex);
    hanging = true;
    (void)pthread_mutex_unlock(&mutex);
    return 0;
}

static int resolver_answers(void **state)
{
    const struct timespec end = clock_wait_end(BOUND_MS);
    bool left = false;
    (void)state;
    (void)pthread_mutex_lock(&mutex);
    hanging = false;
    (void)pthread_cond_broadcast(&changed);
    while (lookups > 0 && pthread_cond_timedwait(&changed, &mutex, &end) == 0) {
    }
    left = lookups > 0;
    (void)pthread_mutex_unlock(&mutex);
    return left ? -1 : 0;
}

static instant in_ms(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

static enum status open_store(const char *conninfo, struct error *err)
{
    struct store *store = NULL;
    const struct store_options options = {
        .conninfo = conninfo, .application_name = "test", .role = STORE_SCHEDULER};
    instant began = clock_now();
    enum status s = store_open(&options, in_ms(SHORT_MS), &store, err);
    assert_null(store);
    assert_true(instant_ms_between(began, clock_now()) < BOUND_MS);
    return s;
}

static void test_name_that_is_not_looked_up_ends_at_the_deadline(void **state)
{
    struct error err = {.text = ""};
    (void)state;
    assert_int_equal(open_store("host=db.example.org dbname=reports", &err), STATUS_TIMEOUT);
    assert_non_null(strstr(err.text, "name was not looked up"));
    assert_non_null(strstr(err.text, "hostaddr"));
}

static void test_lookups_left_behind_are_bounded_for_each_target(void **state)
{
    static const char one[] = "host=one.example.org dbname=reports";
    struct error err = {.text = ""};
    (void)state;
    for (int i = 0; i < STORE_PG_HANGING_MAX; i++) {
        assert_int_equal(open_store(one, &err), STATUS_TIMEOUT);
    }
    assert_int_equal(open_store(one, &err), STATUS_AGAIN);
    assert_non_null(strstr(err.text, "still hang"));
    assert_int_equal(open_store("host=two.example.org dbname=reports", &err), STATUS_TIMEOUT);
    assert_int_equal(resolver_answers(state), 0);
    instant until = in_ms(BOUND_MS);
    do {
        assert_true(instant_before(clock_now(), until));
        assert_int_equal(open_store(one, &err), STATUS_AGAIN);
    } while (strstr(err.text, "still hang") != NULL);
    assert_non_null(strstr(err.text, "one.example.org")); /* libpq's own: not translated */
}

/* libpq repeats the name; two bytes a letter, and one of them before the bound in one of the two.
 */
static void test_server_s_words_are_cut_on_a_character_boundary(void **state)
{
    struct error err = {.text = ""};
    char conninfo[2 * ERROR_TEXT_MAX];
    (void)state;
    assert_int_equal(resolver_answers(state), 0);
    for (size_t shift = 0; shift < 2; shift++) {
        size_t n = (size_t)snprintf(conninfo, sizeof conninfo, "host=%s", shift == 0 ? "" : "x");
        while (n + 3 < sizeof conninfo) {
            memcpy(conninfo + n, "\xc3\xa9", 3);
            n += 2;
        }
        assert_int_equal(open_store(conninfo, &err), STATUS_AGAIN);
        size_t length = strlen(err.text);
        assert_true(length >= ERROR_TEXT_MAX - 8);
        assert_memory_equal(err.text + length - 2, "\xc3\xa9", 2);
    }
}

static void test_address_beside_the_name_needs_no_lookup(void **state)
{
    struct error err = {.text = ""};
    (void)state;
    assert_int_equal(open_store("host=db.example.org hostaddr=127.0.0.1 port=1", &err),
                     STATUS_AGAIN);
    assert_non_null(strstr(err.text, "refused"));
}

static void test_second_host_is_bounded_too(void **state)
{
    struct error err = {.text = ""};
    (void)state;
    assert_int_equal(open_store("host=127.0.0.1,db.example.org port=1,1", &err), STATUS_TIMEOUT);
}

static void test_report_that_is_cancelled_does_not_wait_for_a_lookup(void **state)
{
    struct error err = {.text = ""};
    struct source *source = NULL;
    const struct source_options options = {.conninfo = "host=source.example.org",
                                           .password_file = "",
                                           .application = "test",
                                           .statement_timeout_ms = 1000};
    const struct source_wait wait = {.wake_fd = eventfd(1, EFD_CLOEXEC), .deadline = in_ms(60000)};
    (void)state;
    instant began = clock_now();
    assert_int_equal(source_open(&options, &wait, &source, &err), STATUS_TIMEOUT);
    assert_true(instant_ms_between(began, clock_now()) < BOUND_MS);
    assert_null(source);
    (void)close(wait.wake_fd);
}

int main(void)
{
#define HANGING(test) cmocka_unit_test_setup_teardown(test, resolver_hangs, resolver_answers)
    const struct CMUnitTest tests[] = {
        HANGING(test_name_that_is_not_looked_up_ends_at_the_deadline),
        HANGING(test_lookups_left_behind_are_bounded_for_each_target),
        HANGING(test_server_s_words_are_cut_on_a_character_boundary),
        HANGING(test_address_beside_the_name_needs_no_lookup),
        HANGING(test_second_host_is_bounded_too),
        HANGING(test_report_that_is_cancelled_does_not_wait_for_a_lookup),
    };
    pthread_condattr_t attributes;
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&changed, &attributes);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
