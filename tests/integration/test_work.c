/* Overlap and capacity with a real leader on a real PostgreSQL: what waits goes when it may, and
 * soon. The policies themselves, and races between sessions, are tried in tests/pgtap. */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_leader.h"

#define AWAIT_MS 15000
#define WORKER   "aaaaaaaa-0000-4000-8000-000000000000"

static const char jobs[] =
    "SELECT string_agg(state || coalesce(' for ' || waits_for, ''), ', ' ORDER BY run_after) "
    "FROM reports.job WHERE state <> 'cancelled'";

/* Steps as the scope's thread would take them, woken by notifications and, where it is `usual`,
 * when the leader asked to be; until the jobs are as wanted. */
static bool leader_await(struct leader *l, const char *want, bool usual)
{
    instant end = instant_add_ms(clock_now(), AWAIT_MS);
    struct planning_result r = {.wake_at = usual ? clock_now() : end};
    while (instant_before(clock_now(), end)) {
        struct pollfd p = {.fd = store_fd(l->store), .events = POLLIN};
        (void)poll(&p, 1, instant_poll_timeout(clock_now(), instant_min(r.wake_at, end)));
        unsigned count = 0;
        assert_int_equal(store_take_notifications(l->store, &count), STATUS_OK);
        if (count > 0 || !instant_before(clock_now(), r.wake_at)) {
            assert_int_equal(leader_step(l, count > 0, &r), STATUS_OK);
            r.wake_at = usual ? r.wake_at : end;
        }
        if (strcmp(fixture_sql("%s", jobs), want) == 0) {
            return true;
        }
    }
    return false;
}

/* In place: its planning points into it. */
static void leader_begin(struct leader *l)
{
    *l = leader_make();
    leader_prepare(l);
    struct error err = {0};
    assert_int_equal(
        store_listen(l->store, "report_work", instant_add_ms(clock_now(), 20000), &err), STATUS_OK);
    (void)leader_settle(l);
}

/* Claims what is ready and ends it. */
static void work(const char *outcome)
{
    (void)fixture_sql("SELECT reports.worker_register('" WORKER "', 'w', 1, '1', "
                      "ARRAY(SELECT name::text FROM reports.queue), 4)");
    (void)fixture_sql("SELECT count(*) FROM reports.claim_ready('" WORKER "', "
                      "ARRAY(SELECT name::text FROM reports.queue), 1)");
    assert_int_equal(
        fixture_count(
            "SELECT count(*) FROM (SELECT array_agg(id) AS ids, array_agg(attempt_token) AS tokens "
            "FROM reports.job WHERE state = 'running') j, LATERAL "
            "reports.record_outcomes(j.ids, j.tokens, '{%s}', '{t}', '{NULL}', '{0}', '{NULL}', "
            "'{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}') r WHERE r.verdict = 'done'",
            outcome),
        1);
}

static void test_a_narrow_queue_is_filled_again_soon_after_a_job_has_ended(void **state)
{
    (void)state;
    (void)fixture_sql("INSERT INTO reports.queue (name, max_outstanding) VALUES ('narrow', 1) "
                      "ON CONFLICT DO NOTHING");
    fixture_schedule("daily", "cron", "0 0 * * *", "3 days", "queue = 'narrow'");
    struct leader l;
    leader_begin(&l);
    assert_string_equal(fixture_sql("%s", jobs),
                        "queued, waiting for capacity, waiting for capacity");
    const char *const after[] = {"succeeded, queued, waiting for capacity",
                                 "succeeded, succeeded, queued"};
    for (size_t i = 0; i < sizeof after / sizeof after[0]; i++) {
        work("succeeded");
        /* By notification, not by the round of each second. */
        assert_true(leader_await(&l, after[i], false));
    }
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.outbox"), 3);
    leader_leave(&l);
}

static void test_the_next_leader_goes_on_with_what_waits(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "3 days", "overlap = 'queue'");
    struct leader l;
    leader_begin(&l);
    assert_string_equal(fixture_sql("%s", jobs),
                        "queued, waiting for overlap, waiting for overlap");
    leader_leave(&l);
    work("succeeded"); /* while nobody leads */
    leader_begin(&l);
    assert_true(leader_await(&l, "succeeded, queued, waiting for overlap", true));
    leader_leave(&l);
}

static void test_firings_of_an_outage_under_forbid_are_one_job_and_one_gap(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "5 days", "overlap = 'forbid'");
    struct leader l;
    leader_begin(&l);
    assert_string_equal(fixture_sql("%s", jobs), "queued");
    assert_string_equal(fixture_sql("SELECT string_agg(reason || ' ' || firings, ', ') "
                                    "FROM reports.schedule_gap"),
                        "overlap_forbid 4");
    leader_leave(&l);
}

static void test_a_firing_that_replaces_waits_until_the_old_attempt_is_closed(void **state)
{
    (void)state;
    fixture_schedule("often", "interval", "1 second", "10 milliseconds", "overlap = 'replace'");
    struct leader l;
    leader_begin(&l);
    assert_true(leader_await(&l, "queued", true));
    (void)fixture_sql("SELECT reports.worker_register('" WORKER "', 'w', 1, '1', '{default}', 4)");
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.claim_ready('" WORKER "', '{default}', 1)"), 1);
    assert_true(leader_await(&l, "running, waiting for overlap", true));
    (void)fixture_sql("UPDATE reports.schedule SET paused = true WHERE name = 'often'");
    (void)leader_settle(&l);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.job j, reports.record_outcomes("
                                   "ARRAY[j.id], ARRAY[j.attempt_token], '{succeeded}', '{f}', "
                                   "'{NULL}', '{0}', '{main}', '{x}', '{text/csv}', '{1}', '{1}', "
                                   "ARRAY[sha256('x')]) r WHERE r.state = 'cancelled'"),
                     1);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.artifact"), 0);
    assert_true(leader_await(&l, "queued", true));
    leader_leave(&l);
}

static void test_open_jobs_follow_an_edit_of_the_policy(void **state)
{
    (void)state;
    fixture_schedule("daily", "cron", "0 0 * * *", "2 days", NULL);
    struct leader l;
    leader_begin(&l);
    assert_string_equal(fixture_sql("%s", jobs), "queued, queued");
    (void)fixture_sql("UPDATE reports.schedule SET overlap = 'forbid' WHERE name = 'daily'");
    (void)leader_settle(&l);
    (void)fixture_sql("SELECT reports.ask(gen_random_uuid(), 'trigger', 'daily', 'now', "
                      "'1 minute')");
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("SELECT state FROM reports.request"), "refused");
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.job WHERE overlap = 'forbid'"), 2);
    leader_leave(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_narrow_queue_is_filled_again_soon_after_a_job_has_ended),
        cmocka_unit_test(test_the_next_leader_goes_on_with_what_waits),
        cmocka_unit_test(test_firings_of_an_outage_under_forbid_are_one_job_and_one_gap),
        cmocka_unit_test(test_a_firing_that_replaces_waits_until_the_old_attempt_is_closed),
        cmocka_unit_test(test_open_jobs_follow_an_edit_of_the_policy),
    };
    return fixture_plan_run("rs_test_work", tests, sizeof tests / sizeof tests[0], NULL);
}
