/* The heartbeat thread at the ends of a worker's life: what a killed predecessor left, and what is
 * left to whoever comes after. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "claims.h"
#include "fixture_worker.h"
#include "heartbeat.h"
#include "incarnation_file.h"
#include "store_claim.h"
#include "store_release.h"
#include "worker.h"

#define LIMIT_MS 30000 /* for what it does soon, on a busy machine too */

static struct test_database db;
static struct store *store;
static struct worker_settings settings = {
    .name = "test", .queues = {.count = 1, .items = {"default"}}, .slots = 4};
static char file[96];

static instant soon(void)
{
    return instant_add_ms(clock_now(), LIMIT_MS);
}

static void good(enum status s, const struct error *err)
{
    if (s != STATUS_OK) {
        print_error("%s\n", err->text);
        fail();
    }
}

static int group_setup(void **state)
{
    (void)state;
    struct error err = {.text = ""};
    test_database_create(&db);
    test_run(db.connection,
             "INSERT INTO reports.scope (name) VALUES ('main') ON CONFLICT DO NOTHING;"
             "INSERT INTO reports.report (name, kind) VALUES ('noop', 'noop')");
    (void)snprintf(settings.database, sizeof settings.database, "%s", db.worker);
    (void)snprintf(file, sizeof file, "/tmp/test-heartbeat-%d", (int)getpid());
    struct store_options options = {
        .conninfo = db.worker, .application_name = "test_heartbeat", .role = STORE_WORKER};
    good(store_open(&options, soon(), &store, &err), &err);
    return 0;
}

static int group_teardown(void **state)
{
    (void)state;
    char lock[128];
    (void)snprintf(lock, sizeof lock, "%s.lock", file);
    (void)unlink(file);
    (void)unlink(lock);
    store_close(store);
    test_database_drop(&db);
    return 0;
}

/* An incarnation that has claimed a job of that key. Owns: the list. */
static struct job_list claimed(const char *key, char ret_worker[UUID_TEXT_MAX])
{
    char ids[1][UUID_TEXT_MAX];
    struct worker_agreement agreement;
    struct job_list list = {0};
    struct error err = {.text = ""};
    uuid_random(ret_worker);
    const struct worker_identity w = {.id = ret_worker,
                                      .name = "test",
                                      .pid = 1,
                                      .version = "0",
                                      .queues = &settings.queues,
                                      .slots = 4};
    memcpy(ids[0], test_job(&db, "noop", key), UUID_TEXT_MAX);
    good(store_worker_register(store, &w, soon(), &agreement, &err), &err);
    const struct claim_request request = {.worker = ret_worker,
                                          .queues = &settings.queues,
                                          .ids = (const char(*)[UUID_TEXT_MAX])ids,
                                          .count = 1};
    good(store_claim_ids(store, &request, soon(), &list, &err), &err);
    assert_int_equal(list.count, 1);
    return list;
}

/* A worker process whose file names this incarnation. */
static struct worker *worker_with(const char *incarnation)
{
    struct worker *w = calloc(1, sizeof *w);
    struct error err = {.text = ""};
    assert_non_null(w);
    good(worker_init(w, &settings, &err), &err);
    good(life_file_take(file, LIFE_BEGIN, soon(), &w->life, &err), &err);
    good(incarnation_file_write(w->life, incarnation, &err), &err);
    return w;
}

static void worker_end(struct worker *w)
{
    worker_done(w);
    free(w);
}

/* The first call is one that the server does not carry out. */
static const char fails_once[] =
    "ALTER FUNCTION reports.release_claims(uuid) RENAME TO release_claims_then;"
    "CREATE SEQUENCE public.call; GRANT USAGE ON public.call TO report_worker;"
    "CREATE FUNCTION reports.release_claims(p_worker uuid, OUT verdict text, OUT released integer,"
    " OUT remaining integer) LANGUAGE plpgsql AS $$ BEGIN"
    " IF nextval('public.call') = 1 THEN RAISE 'not now' USING ERRCODE = 'query_canceled'; END IF;"
    " SELECT r.* INTO verdict, released, remaining FROM reports.release_claims_then(p_worker) r;"
    " END $$; GRANT EXECUTE ON FUNCTION reports.release_claims(uuid) TO report_worker";

static void test_claims_of_a_killed_predecessor_are_released_although_the_first_try_fails(void **s)
{
    (void)s;
    char predecessor[UUID_TEXT_MAX];
    pthread_t thread;
    struct job_list list = claimed("left", predecessor);
    struct worker *w = worker_with(predecessor);
    test_run(db.connection, fails_once);
    assert_int_equal(pthread_create(&thread, NULL, heartbeat_main, w), 0);
    assert_true(test_wait_text(db.connection,
                               "SELECT state FROM reports.job WHERE occurrence_key = 'left'",
                               "queued", LIMIT_MS));
    assert_true(test_wait_text(
        db.connection, "SELECT count(*) FROM reports.worker WHERE state = 'alive'", "1", LIMIT_MS));
    atomic_store(&w->finishing, true);
    wake_up(w->heartbeat_wake);
    assert_int_equal(pthread_join(thread, NULL), 0);
    worker_end(w);
    job_list_free(&list);
    test_run(db.connection, "DROP FUNCTION reports.release_claims(uuid);"
                            "ALTER FUNCTION reports.release_claims_then(uuid) RENAME TO"
                            " release_claims; DROP SEQUENCE public.call");
}

/* A worker that ends while it holds `job`, or nothing (NULL). */
static bool file_is_left(const char *incarnation, struct job *job)
{
    struct worker *w = worker_with(incarnation);
    memcpy(w->incarnation.id, incarnation, UUID_TEXT_MAX);
    w->incarnation.alive = true;
    atomic_store(&w->finishing, true);
    if (job != NULL) {
        assert_int_equal(claims_add(w->claims, job, soon()), STATUS_OK);
    }
    (void)heartbeat_main(w);
    worker_end(w);
    return access(file, F_OK) == 0;
}

static void test_worker_that_stops_with_a_job_leaves_its_claim_to_be_released(void **state)
{
    (void)state;
    char me[UUID_TEXT_MAX];
    struct released_claims released;
    struct error err = {.text = ""};
    struct job_list list = claimed("does-not-end", me);
    struct job *job = list.jobs[--list.count];
    assert_true(file_is_left(me, job)); /* the worker's table has freed it */
    job_list_free(&list);
    good(store_release_claims(store, me, soon(), &released, &err), &err);
    assert_int_equal(released.jobs, 1);
    assert_true(released.ended_before);
    assert_string_equal(
        test_text(db.connection,
                  "SELECT state FROM reports.job WHERE occurrence_key = 'does-not-end'"),
        "queued");
}

static void test_worker_that_stops_without_jobs_leaves_nothing(void **state)
{
    (void)state;
    char me[UUID_TEXT_MAX];
    struct job_list list = claimed("ended", me);
    assert_false(file_is_left(me, NULL));
    job_list_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_claims_of_a_killed_predecessor_are_released_although_the_first_try_fails),
        cmocka_unit_test(test_worker_that_stops_with_a_job_leaves_its_claim_to_be_released),
        cmocka_unit_test(test_worker_that_stops_without_jobs_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
