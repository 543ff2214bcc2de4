/* A replica testifies a step of the database's clock. That clock cannot be stepped here, so what
 * was sampled before is moved instead: to guard and database that is the same.
 * tests/system/test_clock.py steps a real one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "clock_witness.h"
#include "fixture_leader.h"
#include "planning_state.h"
#include "scheduler_metrics.h"

#define STATEMENT_MS 5000
#define STEP_US      INT64_C(60000000)

static struct clock_watch *watch;
static struct clock_witness witness;

static void set_up(void)
{
    struct error err = {.text = ""};
    metrics_reset();
    (void)fixture_sql("DELETE FROM reports.member_clock");
    (void)fixture_sql("DELETE FROM reports.hold");
    assert_int_equal(clock_watch_new(&watch, &err), STATUS_OK);
    clock_witness_begin(&witness, watch, "witness");
}

static int tear_down(void **state)
{
    (void)state;
    clock_watch_free(watch);
    return 0;
}

static void turn(struct store *store)
{
    struct error err = {.text = ""};
    clock_witness_hurry(&witness);
    if (clock_witness_turn(&witness, store, STATEMENT_MS, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
}

/* As if the database's clock had been set forward since, ten seconds ago. */
static void step(void)
{
    instant then = instant_add_ms(clock_now(), -10000);
    int64_t now_us = strtoll(
        fixture_sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"), NULL, 10);
    (void)fixture_sql("UPDATE reports.member_clock SET boot_us = boot_us - 10000000, at = at - "
                      "interval '70 seconds'");
    clock_watch_settle(watch, (struct clock_sample){.said = {now_us - 10000000 - STEP_US},
                                                    .before = then,
                                                    .after = then});
}

static double steps(const char *verdict)
{
    return metric_read(scheduler_metric(SCHEDULER_CLOCK_STEPS, verdict, NULL));
}

static void test_first_turn_shows_and_notes_how_far_the_own_clock_is(void **state)
{
    (void)state;
    struct leader l = leader_make();
    turn(l.store);
    assert_string_equal(fixture_sql("SELECT count(*) || ' ' || min(member) || ' ' || "
                                    "(min(abs(offset_us)) < 1000000)::text FROM "
                                    "reports.member_clock WHERE step_us IS NULL"),
                        "1 witness true");
    double offset = metric_read(scheduler_metric(SCHEDULER_CLOCK_OFFSET, NULL, NULL));
    assert_true(offset > -1 && offset < 1);
    turn(l.store);
    assert_string_equal(fixture_sql("SELECT count(*) FROM reports.member_clock"), "1");
    leader_leave(&l);
}

static void test_turn_asks_nothing_while_the_leader_samples(void **state)
{
    (void)state;
    struct leader l = leader_make();
    struct error err = {.text = ""};
    turn(l.store);
    store_close(l.store);
    l.store = NULL;
    assert_int_equal(clock_witness_turn(&witness, NULL, STATEMENT_MS, &err), STATUS_OK);
    assert_true(instant_before(clock_now(), witness.sample_at));
    leader_leave(&l);
}

static void test_machine_that_is_alone_holds_the_installation_by_a_step(void **state)
{
    (void)state;
    struct leader l = leader_make();
    turn(l.store);
    step();
    turn(l.store);
    assert_string_equal(fixture_sql("SELECT cause || ' ' || raised_by || ' ' || round(step_us / "
                                    "1000000.0) FROM reports.hold WHERE lifted_at IS NULL"),
                        "clock_hold witness 60");
    assert_false(clock_watch_is_suspect(watch)); /* the hold remembers it from here on */
    assert_true(steps("raised") == 1);
    turn(l.store);
    assert_true(steps("raised") == 1);
    leader_leave(&l);
}

static void
test_suspicion_stays_until_other_machines_are_heard_and_ends_when_they_refute_it(void **state)
{
    (void)state;
    struct leader l = leader_make();
    (void)fixture_sql("INSERT INTO reports.member_clock (member, boot, boot_us, offset_us, "
                      "round_trip_us) VALUES ('other', 'another boot', 1000000000, 0, 500)");
    turn(l.store);
    step();
    (void)fixture_sql("UPDATE reports.member_clock SET boot_us = boot_us - 60000000 WHERE member = "
                      "'other'");
    turn(l.store);
    assert_true(clock_watch_is_suspect(watch));
    assert_string_equal(fixture_sql("SELECT count(*) FROM reports.hold"), "0");
    assert_string_equal(
        fixture_sql("SELECT verdict FROM reports.note_clock('other', 'another boot', "
                    "clock_timestamp(), 1000000000, 0, 500, false)"),
        "noted");
    assert_true(instant_before(witness.sample_at, instant_add_ms(clock_now(), 2000)));
    (void)fixture_sql("UPDATE reports.member_clock SET boot_us = boot_us - 2000000, at = at - "
                      "interval '2 seconds'");
    turn(l.store);
    assert_false(clock_watch_is_suspect(watch));
    assert_true(steps("own") == 1);
    assert_string_equal(fixture_sql("SELECT count(*) FROM reports.hold"), "0");
    leader_leave(&l);
}

static void test_process_that_was_started_anew_learns_the_step_from_its_last_sample(void **state)
{
    (void)state;
    struct leader l = leader_make();
    turn(l.store);
    step();
    clock_watch_free(watch);
    struct error err = {.text = ""};
    assert_int_equal(clock_watch_new(&watch, &err), STATUS_OK);
    clock_witness_begin(&witness, watch, "witness");
    turn(l.store);
    assert_string_equal(fixture_sql("SELECT count(*) FROM reports.hold WHERE cause = 'clock_hold'"),
                        "1");
    leader_leave(&l);
}

static void test_leader_plans_nothing_by_a_clock_that_is_suspect(void **state)
{
    (void)state;
    struct leader l = leader_make();
    struct planning_result r;
    fixture_schedule("daily", "cron", "0 0 * * *", "1 day", NULL);
    leader_prepare(&l);
    l.planning->options.watch = watch;
    (void)clock_watch_take(watch, (utc_us){0}, clock_now()); /* 1970: everything after is a step */
    assert_int_equal(leader_step(&l, true, &r), STATUS_AGAIN);
    assert_true(clock_watch_is_suspect(watch));
    assert_string_equal(fixture_sql("SELECT count(*) FROM reports.occurrence"), "0");
    (void)fixture_sql("SELECT reports.lift_hold(id) FROM reports.hold");
    turn(l.store);
    assert_false(clock_watch_is_suspect(watch));
    assert_int_equal(leader_settle(&l), 1);
    leader_leave(&l);
}

#define TEST(function) cmocka_unit_test_teardown(function, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_first_turn_shows_and_notes_how_far_the_own_clock_is),
        TEST(test_turn_asks_nothing_while_the_leader_samples),
        TEST(test_machine_that_is_alone_holds_the_installation_by_a_step),
        TEST(test_suspicion_stays_until_other_machines_are_heard_and_ends_when_they_refute_it),
        TEST(test_process_that_was_started_anew_learns_the_step_from_its_last_sample),
        TEST(test_leader_plans_nothing_by_a_clock_that_is_suspect),
    };
    return fixture_plan_run("test_clock_witness", tests, sizeof tests / sizeof tests[0], set_up);
}
