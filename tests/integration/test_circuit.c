/* Circuit breakers on a real PostgreSQL, by the leader's own steps, and the ledger afterwards. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "fixture_verify.h"

#define PROBE   "circuit_probe_job FROM reports.schedule_progress"
#define PROBING "SELECT circuit_probe_job IS NOT NULL FROM reports.schedule_progress"
#define OPEN    "SELECT circuit_opened_at IS NOT NULL FROM reports.schedule_progress"

#define WORKER "00000000-0000-4000-8000-0000000000b1"

/* A job is run to its end by a worker. */
static void job_ends(const char *which, const char *outcome)
{
    (void)fixture_sql("SELECT count(*) FROM reports.claim_ids('" WORKER
                      "', '{default}', ARRAY[(SELECT %s)])",
                      which);
    assert_string_equal(
        fixture_sql("SELECT r.verdict FROM reports.job j, reports.record_outcomes(ARRAY[j.id], "
                    "ARRAY[j.attempt_token], '{%s}', '{f}', '{no such table}', '{NULL}', "
                    "'{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}', '{NULL}') r WHERE j.id = "
                    "(SELECT %s)",
                    outcome, which),
        "done");
}

/* Nothing is due any more: the ledger can be told whole. */
static void schedule_end(struct leader *l)
{
    (void)fixture_sql("UPDATE reports.schedule SET ends_at = clock_timestamp()");
    (void)leader_settle(l);
    leader_leave(l);
}

static void begin(struct leader *l, const char *probe)
{
    char more[200];
    (void)snprintf(more, sizeof more,
                   "breaker_failures = 1, breaker_probe = '%s', misfire = 'run_all'", probe);
    (void)fixture_sql("SELECT reports.worker_register('" WORKER "', 'w', 1, '1', '{default}', 4)");
    fixture_schedule("ticking", "interval", "1 s", "5 seconds", more);
    *l = leader_make();
    leader_prepare(l);
    (void)leader_settle(l);
    job_ends("max(o.job_id::text)::uuid FROM reports.occurrence o", "failed");
}

static void test_a_circuit_opens_is_probed_and_closes_and_all_of_it_proves(void **state)
{
    (void)state;
    struct leader l;
    begin(&l, "1 second");
    assert_true(leader_step_until(&l, PROBING, "t", 30000));
    assert_true(leader_step_until(&l, "SELECT count(*) > 0 FROM reports.schedule_gap", "t", 30000));
    job_ends(PROBE, "failed");
    assert_true(leader_step_until(&l, PROBING, "f", 30000));
    assert_true(leader_step_until(&l, PROBING, "t", 30000));
    job_ends(PROBE, "succeeded");
    assert_true(leader_step_until(&l, OPEN, "f", 30000));
    schedule_end(&l);
    assert_string_equal(fixture_sql("SELECT string_agg(event, ' ' ORDER BY id) FROM "
                                    "reports.circuit_event"),
                        "opened probe probe_failed probe closed");
    assert_string_equal(fixture_sql("SELECT string_agg(DISTINCT reason, ' ') FROM "
                                    "reports.schedule_gap"),
                        "circuit_open");
    assert_string_equal(fixture_verify(1), "");
}

static void test_an_open_circuit_outlives_its_leader_and_grows_one_gap(void **state)
{
    (void)state;
    struct leader l;
    begin(&l, "1 hour");
    assert_true(leader_step_until(&l, OPEN, "t", 30000));
    int64_t made = fixture_count("SELECT count(*) FROM reports.occurrence");
    assert_true(leader_step_until(
        &l, "SELECT coalesce(sum(firings), 0) > 0 FROM reports.schedule_gap", "t", 30000));
    leader_leave(&l);
    int64_t before = fixture_count("SELECT sum(firings) FROM reports.schedule_gap");
    l = leader_make();
    leader_prepare(&l);
    (void)fixture_sql("CREATE OR REPLACE VIEW public.grown AS SELECT sum(firings) >= %lld AS "
                      "enough FROM reports.schedule_gap",
                      (long long)before + 2);
    assert_true(leader_step_until(&l, "SELECT enough FROM public.grown", "t", 30000));
    schedule_end(&l);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), made);
    assert_string_equal(fixture_sql("SELECT count(*) || ' ' || min(reason) FROM "
                                    "reports.schedule_gap WHERE version = 2"),
                        "1 circuit_open");
    assert_string_equal(fixture_verify(1), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_circuit_opens_is_probed_and_closes_and_all_of_it_proves),
        cmocka_unit_test(test_an_open_circuit_outlives_its_leader_and_grows_one_gap),
    };
    return fixture_plan_run("test_circuit", tests, sizeof tests / sizeof tests[0], NULL);
}
