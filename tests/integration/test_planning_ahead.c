/* What is due next is read and computed before its instant, and is planned as if it had not been.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture_leader.h"
#include "planning_state.h"

#define SCHEDULES 300 /* more than the first call of a burst takes */

#define TRIES   6 /* a busy machine may come too late for the moment before the instant */
#define SOON_MS 150
#define DAY_MS  86400000

static int64_t ms_until_the_instant(void)
{
    return fixture_count("SELECT floor(1000 * extract(epoch FROM min(next_fire_at) - "
                         "clock_timestamp())) FROM reports.schedule_progress");
}

/* Steps as the leader wants them until the instant is near and what is due then was read. False: it
 * was reached before that. */
static bool has_looked_ahead(struct leader *l)
{
    struct planning_result r = {.more = true};
    while (utc_is_none(l->planning->ahead_for)) {
        int64_t left = fixture_count("SELECT count(*) FROM reports.schedule_progress") > 0
                           ? ms_until_the_instant()
                           : SOON_MS;
        if (left <= 0 || left > DAY_MS / 2) {
            return false;
        }
        if (left > SOON_MS) {
            (void)poll(NULL, 0, r.more ? 0 : instant_poll_timeout(clock_now(), r.wake_at));
        }
        assert_int_equal(leader_step(l, false, &r), STATUS_OK);
        if (r.planned > 0) {
            return false;
        }
    }
    return l->planning->batch->count > 0;
}

/* Daily schedules, all next due at one instant, soon; taken in and read ahead: nothing of them is
 * due yet. `misfire`: policy. */
static void look_ahead(struct leader *l, int count, const char *misfire)
{
    for (int i = 1; i <= TRIES; i++) {
        fixture_plan_clear();
        (void)fixture_sql("INSERT INTO reports.schedule (name, report, kind, rule, anchor, "
                          "misfire, misfire_grace) SELECT 's' || n, 'nothing', 'interval', "
                          "'1 day', now() + interval '%d seconds', '%s', '1 second' FROM "
                          "generate_series(0, %d - 1) n",
                          3 * i, misfire, count);
        *l = leader_make();
        leader_prepare(l);
        if (has_looked_ahead(l)) {
            return;
        }
        leader_leave(l);
    }
    fail_msg("the moment before the instant was missed %d times", TRIES);
}

/* Returns when the database's clock had come there. The leader takes it for reached a little later:
 * it knows that clock as closely as its reading was quick. */
static instant wait_for_the_instant(const struct leader *l, const char *and_more)
{
    (void)fixture_sql("SELECT pg_sleep_until(min(next_fire_at) + interval '%s') FROM "
                      "reports.schedule_progress",
                      and_more);
    instant reached = clock_now();
    assert_true(instant_before(l->planning->due_at, instant_add_ms(reached, 30000)));
    (void)poll(NULL, 0, instant_poll_timeout(reached, l->planning->due_at));
    return reached;
}

/* Two steps at the instant, with nothing to be read any more; false: too late for what was read. */
static bool plans_what_was_read(struct leader *l)
{
    struct planning_result r = {.more = true};
    unsigned planned = 0;
    bool outbox = true;
    /* Who reads these now can plan nothing. */
    (void)fixture_sql("UPDATE reports.schedule_version SET rule = 'nonsense'");
    int64_t left = ms_until_the_instant();
    instant reached = wait_for_the_instant(l, "0");
    for (unsigned steps = 0; steps < 2; steps++) {
        assert_int_equal(leader_step(l, false, &r), STATUS_OK);
        planned += r.planned;
        outbox = outbox && r.outbox;
    }
    if (planned < SCHEDULES && (left < 0 || instant_ms_between(reached, clock_now()) > 500)) {
        return false;
    }
    assert_int_equal(planned, SCHEDULES);
    assert_true(outbox);
    return true;
}

static void
test_what_was_read_ahead_is_planned_at_its_instant_without_reading_it_again(void **state)
{
    (void)state;
    struct leader l;
    bool in_time = false;
    for (int i = 0; i < TRIES && !in_time; i++) {
        look_ahead(&l, SCHEDULES, "run_all");
        in_time = plans_what_was_read(&l);
        if (!in_time) {
            leader_leave(&l);
        }
    }
    assert_true(in_time);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.schedule_progress WHERE problem "
                                   "IS NULL AND next_fire_at = last_fire_at + interval '1 day'"),
                     SCHEDULES);
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.occurrence o JOIN reports.outbox x USING "
                      "(job_id) WHERE o.cause = 'schedule' AND o.planned_at >= o.scheduled_for"),
        SCHEDULES);
    assert_int_equal(leader_settle(&l), 0);
    leader_leave(&l);
}

static void test_an_edit_after_the_look_ahead_is_seen_before_the_firing(void **state)
{
    (void)state;
    struct leader l;
    bool before = false;
    for (int i = 0; i < TRIES && !before; i++) {
        look_ahead(&l, 2, "run_all");
        (void)fixture_sql("UPDATE reports.schedule SET paused = true WHERE name = 's1'");
        before = ms_until_the_instant() > 0;
        if (!before) {
            leader_leave(&l);
        }
    }
    assert_true(before);
    (void)wait_for_the_instant(&l, "0"); /* and its NOTIFY is lost */
    assert_true(leader_step_until(&l, "SELECT count(*) FROM reports.schedule_change", "0", 30000));
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("SELECT string_agg(schedule, ' ') FROM reports.occurrence"),
                        "s0");
    leader_leave(&l);
}

static void test_a_schedule_that_moved_on_after_the_look_ahead_is_planned_as_it_is_now(void **state)
{
    (void)state;
    struct leader l;
    look_ahead(&l, 2, "run_all");
    (void)fixture_sql("UPDATE reports.schedule_progress SET step = step + 1, next_fire_at = "
                      "next_fire_at + interval '1 day' WHERE schedule = 's1'");
    (void)wait_for_the_instant(&l, "0");
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("SELECT string_agg(schedule, ' ') FROM reports.occurrence"),
                        "s0");
    leader_leave(&l);
}

static void
test_a_firing_that_was_missed_after_the_look_ahead_follows_the_misfire_policy(void **state)
{
    (void)state;
    struct leader l;
    look_ahead(&l, 2, "skip");
    (void)wait_for_the_instant(&l, "1100 milliseconds");
    (void)leader_settle(&l);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 0);
    assert_int_equal(
        fixture_count(
            "SELECT sum(firings) FROM reports.schedule_gap WHERE reason = 'misfire_skip'"),
        2);
    leader_leave(&l);
}

static void test_a_hold_after_the_look_ahead_stops_the_firing(void **state)
{
    (void)state;
    struct leader l;
    look_ahead(&l, 2, "run_all");
    (void)fixture_sql("INSERT INTO reports.hold (scope, reason) VALUES ('main', 'test')");
    (void)wait_for_the_instant(&l, "0");
    struct planning_result r;
    assert_int_equal(leader_step(&l, false, &r), STATUS_HELD);
    assert_int_equal(fixture_count("SELECT count(*) FROM reports.occurrence"), 0);
    leader_leave(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_what_was_read_ahead_is_planned_at_its_instant_without_reading_it_again),
        cmocka_unit_test(test_an_edit_after_the_look_ahead_is_seen_before_the_firing),
        cmocka_unit_test(
            test_a_schedule_that_moved_on_after_the_look_ahead_is_planned_as_it_is_now),
        cmocka_unit_test(
            test_a_firing_that_was_missed_after_the_look_ahead_follows_the_misfire_policy),
        cmocka_unit_test(test_a_hold_after_the_look_ahead_stops_the_firing),
    };
    return fixture_plan_run("test_planning_ahead", tests, sizeof tests / sizeof tests[0], NULL);
}
