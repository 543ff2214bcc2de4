#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "artifact_path.h"
#include "claims.h"
#include "text.h"

static struct claims *table;
static int wake_fd;

static int setup(void **state)
{
    (void)state;
    table = claims_new(2, 2);
    wake_fd = eventfd(0, EFD_NONBLOCK);
    return table == NULL || wake_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    claims_free(table);
    (void)close(wake_fd);
    return 0;
}

static instant after_ms(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

/* Add a claim of job `id` under token `token`, held for a minute. */
static void add(const char *id, const char *token)
{
    struct job *j = job_new();
    assert_non_null(j);
    (void)snprintf(j->id, sizeof j->id, "%s", id);
    (void)snprintf(j->token, sizeof j->token, "%s", token);
    assert_int_equal(claims_add(table, j, after_ms(60000)), STATUS_OK);
}

static struct claim *take(void)
{
    struct claim *c = claims_take(table, wake_fd, after_ms(1000));
    assert_non_null(c);
    return c;
}

static bool is_woken(void)
{
    struct pollfd p = {.fd = wake_fd, .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

static void test_claims_are_taken_in_the_order_they_came(void **state)
{
    (void)state;
    add("a", "1");
    add("b", "2");
    assert_string_equal(take()->job->id, "a");
    assert_string_equal(take()->job->id, "b");
    assert_null(claims_take(table, wake_fd, after_ms(5)));
}

static void test_slots_bound_what_may_be_claimed(void **state)
{
    (void)state;
    assert_int_equal(claims_count(table).free, 2);
    add("a", "1");
    assert_int_equal(claims_count(table).free, 1);
    add("b", "2");
    assert_int_equal(claims_count(table).free, 0);
    struct claim *a = take();
    assert_int_equal(claims_count(table).free, 0);
    assert_true(claims_report(table, a));
    assert_int_equal(claims_count(table).free, 1);
}

static void test_unrecorded_outcomes_bound_what_may_be_claimed(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        char id[] = {(char)('a' + i), '\0'};
        add(id, id);
        assert_true(claims_report(table, take()));
    }
    assert_int_equal(claims_count(table).free, 0);
    assert_int_equal(claims_count(table).unrecorded, 4);
    struct job *j = job_new();
    assert_int_equal(claims_add(table, j, after_ms(1000)), STATUS_FULL);
    job_free(j);
    assert_false(claims_wait_free(table, after_ms(5)));
}

static void test_lost_claim_wakes_its_runner_and_its_outcome_is_dropped(void **state)
{
    (void)state;
    add("a", "1");
    struct claim *a = take();
    struct claim_pair pair = {.job_id = "a", .token = "1"};
    claims_lost(table, &pair);
    assert_true(is_woken());
    assert_int_equal(claims_watch(table, a).kill, KILL_LOST);
    assert_false(claims_report(table, a));
    assert_int_equal(claims_knows(table, "a", "1"), CLAIM_ENDED);
    assert_true(claims_wait_empty(table, after_ms(5)));
}

static void test_renewal_of_another_token_changes_nothing(void **state)
{
    (void)state;
    add("a", "1");
    struct claim *a = take();
    instant before = claims_watch(table, a).deadline;
    struct claim_pair other = {.job_id = "a", .token = "2"};
    claims_renewed(table, &other, after_ms(900000), true);
    claims_lost(table, &other);
    assert_int_equal(claims_watch(table, a).deadline.ns, before.ns);
    assert_int_equal(claims_watch(table, a).kill, KILL_NONE);
}

static void test_renewal_moves_the_deadline_and_brings_the_cancellation(void **state)
{
    (void)state;
    add("a", "1");
    struct claim *a = take();
    struct claim_pair pair = {.job_id = "a", .token = "1"};
    instant later = after_ms(900000);
    claims_renewed(table, &pair, later, true);
    assert_int_equal(claims_watch(table, a).deadline.ns, later.ns);
    assert_int_equal(claims_watch(table, a).kill, KILL_CANCELLED);
    assert_true(is_woken());
    claims_renewed(table, &pair, after_ms(10), false);
    assert_int_equal(claims_watch(table, a).deadline.ns, later.ns);
}

static void test_claim_that_came_after_its_deadline_does_not_begin(void **state)
{
    (void)state;
    struct job *j = job_new();
    assert_non_null(j);
    (void)snprintf(j->id, sizeof j->id, "a");
    (void)snprintf(j->token, sizeof j->token, "1");
    assert_int_equal(claims_add(table, j, clock_now()), STATUS_OK);
    struct claim *a = take();
    assert_int_equal(claims_watch(table, a).kill, KILL_EXPIRED);
    assert_true(is_woken());
}

static void test_passed_deadline_kills_without_anybodys_help(void **state)
{
    (void)state;
    int sockets[2];
    instant next;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
    add("a", "1");
    struct claim *a = take();
    claims_source(table, a, sockets[0]);
    assert_int_equal(claims_expire(table, clock_now(), &next), 0);
    assert_int_equal(next.ns, claims_watch(table, a).deadline.ns);
    assert_int_equal(claims_expire(table, next, &next), 1);
    assert_int_equal(claims_watch(table, a).kill, KILL_EXPIRED);
    assert_true(is_woken());
    /* The data source's end sees the connection end. */
    char byte;
    assert_int_equal(read(sockets[1], &byte, 1), 0);
    assert_int_equal(claims_expire(table, next, &next), 0);
    (void)close(sockets[0]);
    (void)close(sockets[1]);
}

static void test_hanging_runner_loses_its_claim_however_often_renewed(void **state)
{
    (void)state;
    instant next;
    add("a", "1");
    struct claim *a = take();
    instant end = instant_add_ms(clock_now(), a->job->timeout_ms + CLAIM_OVERTIME_MS);
    struct claim_pair pair = {.job_id = "a", .token = "1"};
    claims_renewed(table, &pair, instant_add_ms(end, 3600000), false);
    assert_int_equal(claims_expire(table, instant_add_ms(end, -1000), &next), 0);
    assert_int_equal(claims_expire(table, instant_add_ms(end, 1000), &next), 1);
    assert_int_equal(claims_watch(table, a).kill, KILL_EXPIRED);
    struct claim_pair *pairs = NULL;
    size_t count = 0;
    assert_int_equal(claims_pairs(table, &pairs, &count), STATUS_OK);
    assert_int_equal(count, 0);
    free(pairs);
}

static void test_outcome_that_waits_to_be_recorded_is_not_killed_but_renewed(void **state)
{
    (void)state;
    add("a", "1");
    struct claim *a = take();
    assert_true(claims_report(table, a));
    claims_kill_all(table, KILL_LOST);
    struct claim_pair *pairs = NULL;
    size_t count = 0;
    assert_int_equal(claims_pairs(table, &pairs, &count), STATUS_OK);
    assert_int_equal(count, 1);
    assert_string_equal(pairs[0].token, "1");
    free(pairs);
    struct claim *collected[4];
    assert_int_equal(claims_collect(table, collected, 4, 0, after_ms(1000)), 1);
    assert_ptr_equal(collected[0], a);
    claims_close(table, a);
    assert_true(claims_wait_empty(table, after_ms(5)));
}

static void test_lost_claims_are_not_renewed(void **state)
{
    (void)state;
    add("a", "1");
    (void)take();
    claims_kill_all(table, KILL_LOST);
    struct claim_pair *pairs = NULL;
    size_t count = 9;
    assert_int_equal(claims_pairs(table, &pairs, &count), STATUS_OK);
    assert_int_equal(count, 0);
    free(pairs);
}

static void test_one_statement_takes_one_outcome_of_a_job(void **state)
{
    (void)state;
    struct claim *collected[4];
    add("a", "1");
    assert_true(claims_report(table, take()));
    add("a", "2");
    assert_true(claims_report(table, take()));
    assert_int_equal(claims_collect(table, collected, 4, 0, after_ms(1000)), 1);
    assert_string_equal(collected[0]->job->token, "1");
    struct claim *second[4];
    assert_int_equal(claims_collect(table, second, 4, 0, after_ms(1000)), 1);
    assert_string_equal(second[0]->job->token, "2");
    claims_put_back(table, collected[0], false);
    assert_int_equal(claims_collect(table, collected, 4, 0, after_ms(1000)), 1);
}

static void test_outcome_whose_row_is_locked_rests_and_holds_up_no_other(void **state)
{
    (void)state;
    struct claim *collected[4];
    struct claim_pair *pairs = NULL;
    size_t count = 0;
    add("a", "1");
    assert_true(claims_report(table, take()));
    add("b", "1");
    assert_true(claims_report(table, take()));
    assert_int_equal(claims_collect(table, collected, 4, 0, after_ms(1000)), 2);
    claims_put_back(table, collected[0], true);
    claims_put_back(table, collected[1], false);
    instant begin = clock_now();
    assert_int_equal(claims_collect(table, collected, 4, 0, after_ms(1000)), 1);
    assert_string_equal(collected[0]->job->id, "b");
    claims_close(table, collected[0]);
    assert_int_equal(claims_count(table).unrecorded, 1);
    assert_int_equal(claims_pairs(table, &pairs, &count), STATUS_OK);
    assert_int_equal(count, 1); /* it is renewed meanwhile */
    free(pairs);
    while (claims_collect(table, collected, 4, 0, after_ms(20)) == 0) {
        assert_true(instant_ms_between(begin, clock_now()) < 10000);
    }
    assert_true(instant_ms_between(begin, clock_now()) >= CLAIM_REST_MS);
    assert_string_equal(collected[0]->job->id, "a");
}

/* Forgotten while the database still holds it as ours, it would be adopted and run again. */
static void test_claim_given_up_by_ourselves_is_reported_and_never_taken_for_a_new_one(void **state)
{
    (void)state;
    struct claim *collected[4];
    instant next;
    add("a", "1");
    struct claim *a = take();
    assert_int_equal(claims_expire(table, a->own.deadline, &next), 1);
    assert_int_equal(claims_knows(table, "a", "1"), CLAIM_HELD);
    assert_true(claims_report(table, a));
    assert_int_equal(claims_knows(table, "a", "1"), CLAIM_HELD);
    assert_int_equal(claims_collect(table, collected, 4, 0, after_ms(1000)), 1);
    claims_close(table, collected[0]);
    assert_true(claims_wait_empty(table, after_ms(5)));
    assert_int_equal(claims_knows(table, "a", "1"), CLAIM_ENDED);
    assert_int_equal(claims_knows(table, "a", "2"), CLAIM_UNKNOWN);
    /* The database says that it is not ours: nobody will ask. */
    add("b", "1");
    struct claim *b = take();
    struct claim_pair pair = {.job_id = "b", .token = "1"};
    assert_int_equal(claims_expire(table, b->own.deadline, &next), 1);
    claims_lost(table, &pair);
    assert_false(claims_report(table, b));
}

static void test_stop_does_not_undo_a_stronger_reason(void **state)
{
    (void)state;
    add("a", "1");
    struct claim *a = take();
    claims_kill_all(table, KILL_CANCELLED);
    claims_kill_all(table, KILL_STOPPING);
    assert_int_equal(claims_watch(table, a).kill, KILL_CANCELLED);
    claims_kill_all(table, KILL_LOST);
    assert_int_equal(claims_watch(table, a).kill, KILL_LOST);
}

static void test_stopped_table_gives_no_more_work(void **state)
{
    (void)state;
    add("a", "1");
    claims_stop(table);
    assert_null(claims_take(table, wake_fd, after_ms(60000)));
}

#define RUNNERS 4

static struct crowd {
    pthread_mutex_t mutex; /* protects all below */
    pthread_cond_t changed;
    int running;
    bool over;
} crowd = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* Runs claims, each until the test says that all may end. */
static void *run_long_jobs(void *fd)
{
    struct claim *c = NULL;
    while ((c = claims_take(table, *(int *)fd, after_ms(60000))) != NULL) {
        (void)pthread_mutex_lock(&crowd.mutex);
        crowd.running++;
        (void)pthread_cond_broadcast(&crowd.changed);
        while (!crowd.over) {
            (void)pthread_cond_wait(&crowd.changed, &crowd.mutex);
        }
        (void)pthread_mutex_unlock(&crowd.mutex);
        (void)claims_report(table, c);
    }
    return NULL;
}

/* How many run once all do, or after half a second; then they may end. */
static int crowd_count(void)
{
    struct timespec until = clock_wait_end(500);
    (void)pthread_mutex_lock(&crowd.mutex);
    while (crowd.running < RUNNERS &&
           pthread_cond_timedwait(&crowd.changed, &crowd.mutex, &until) == 0) {
    }
    int running = crowd.running;
    crowd.over = true;
    (void)pthread_cond_broadcast(&crowd.changed);
    (void)pthread_mutex_unlock(&crowd.mutex);
    return running;
}

/* Within half a second: after a whole one a waiting runner would look by itself. */
static void test_claims_that_come_together_all_begin_while_the_first_still_runs(void **state)
{
    (void)state;
    pthread_t threads[RUNNERS];
    pthread_condattr_t attributes;
    assert_int_equal(pthread_condattr_init(&attributes), 0);
    assert_int_equal(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), 0);
    assert_int_equal(pthread_cond_init(&crowd.changed, &attributes), 0);
    (void)pthread_condattr_destroy(&attributes);
    for (int round = 0; round < 20; round++) {
        claims_free(table);
        table = claims_new(RUNNERS, RUNNERS);
        assert_non_null(table);
        crowd.running = 0;
        crowd.over = false;
        for (int i = 0; i < RUNNERS; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, run_long_jobs, &wake_fd), 0);
        }
        for (int i = 0; i < RUNNERS; i++) {
            char id[8];
            (void)snprintf(id, sizeof id, "%d", i);
            add(id, id);
        }
        int running = crowd_count();
        claims_stop(table);
        for (int i = 0; i < RUNNERS; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
        }
        assert_int_equal(running, RUNNERS);
    }
    (void)pthread_cond_destroy(&crowd.changed);
}

static void test_claim_deadline_keeps_a_quarter_of_the_lease(void **state)
{
    (void)state;
    instant sent = {0};
    assert_int_equal(claim_deadline(sent, 60000).ns, INT64_C(45000000000));
    assert_int_equal(claim_deadline(sent, 3000).ns, INT64_C(2250000000));
}

static void test_file_names_tell_their_attempt(void **state)
{
    (void)state;
    struct job *j = job_new();
    char name[ARTIFACT_NAME_MAX];
    char directory[ARTIFACT_PATH_MAX];
    char job[UUID_TEXT_MAX];
    char token[UUID_TEXT_MAX];
    bool temporary = true;
    uuid_random(j->id);
    uuid_random(j->token);
    (void)snprintf(j->scope, sizeof j->scope, "main");
    (void)snprintf(j->schedule, sizeof j->schedule, "sales");
    (void)snprintf(j->occurrence_key, sizeof j->occurrence_key, "2026-10-25T02:30+02:00");
    artifact_name(j, "csv", name);
    assert_true(artifact_name_parse(name, job, token, &temporary));
    assert_string_equal(job, j->id);
    assert_string_equal(token, j->token);
    assert_false(temporary);
    artifact_temporary_name(j, name);
    assert_true(artifact_name_parse(name, job, token, &temporary));
    assert_true(temporary);
    assert_false(artifact_name_parse("report.csv", job, token, &temporary));
    assert_false(artifact_name_parse("..", job, token, &temporary));
    artifact_directory("inst", j, directory);
    assert_string_equal(directory, "inst/main/sales/2026-10-25T02_30p02_00");
    job_free(j);
}

static void test_foreign_text_becomes_valid_and_is_cut_between_characters(void **state)
{
    (void)state;
    char to[16];
    text_clean("ok\xff\x00z\xc3\xa4\xc3", 8, to, sizeof to);
    assert_string_equal(to, "ok??z\xc3\xa4?");
    text_clean("\xe2\x82\xac\xe2\x82\xac", 6, to, 6);
    assert_string_equal(to, "\xe2\x82\xac");
    text_clean("\xed\xa0\x80\xc0\xaf", 5, to, sizeof to);
    assert_string_equal(to, "?????");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_claims_are_taken_in_the_order_they_came, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_slots_bound_what_may_be_claimed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unrecorded_outcomes_bound_what_may_be_claimed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_lost_claim_wakes_its_runner_and_its_outcome_is_dropped,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_renewal_of_another_token_changes_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_renewal_moves_the_deadline_and_brings_the_cancellation,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_claim_that_came_after_its_deadline_does_not_begin,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_passed_deadline_kills_without_anybodys_help, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_hanging_runner_loses_its_claim_however_often_renewed,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_outcome_that_waits_to_be_recorded_is_not_killed_but_renewed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lost_claims_are_not_renewed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_statement_takes_one_outcome_of_a_job, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            test_outcome_whose_row_is_locked_rests_and_holds_up_no_other, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_claim_given_up_by_ourselves_is_reported_and_never_taken_for_a_new_one, setup,
            teardown),
        cmocka_unit_test_setup_teardown(test_stop_does_not_undo_a_stronger_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stopped_table_gives_no_more_work, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_claims_that_come_together_all_begin_while_the_first_still_runs, setup, teardown),
        cmocka_unit_test(test_claim_deadline_keeps_a_quarter_of_the_lease),
        cmocka_unit_test(test_file_names_tell_their_attempt),
        cmocka_unit_test(test_foreign_text_becomes_valid_and_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
