/* Retention by a real leader: forgets what is old in bounded rounds, and never at the cost of
 * planning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_leader.h"
#include "retention.h"

#define OLD_EVENTS                                                                                 \
    "SELECT count(*) FROM reports.leadership_event WHERE at < now() - interval '100 days'"

static void old_events(int count)
{
    (void)fixture_sql("UPDATE reports.installation SET keep_leadership_events = '100 days'");
    (void)fixture_sql("DELETE FROM reports.leadership_event");
    (void)fixture_sql("INSERT INTO reports.leadership_event (scope, at, event) "
                      "SELECT 'main', now() - interval '200 days', 'established' "
                      "FROM generate_series(1, %d)",
                      count);
    (void)fixture_sql("INSERT INTO reports.leadership_event (scope, event) "
                      "VALUES ('main', 'activated')");
}

static struct store_call call_of(struct leader *l)
{
    return (struct store_call){.store = l->store,
                               .authority = &l->authority,
                               .deadline = instant_add_ms(clock_now(), 20000)};
}

static void test_leader_forgets_the_old_in_bounded_rounds_while_it_plans(void **state)
{
    (void)state;
    struct leader l = leader_make();
    old_events(RETENTION_ROWS + 10);
    leader_prepare(&l);
    fixture_schedule("daily", "cron", "0 0 * * *", "2 days", NULL);
    assert_int_equal(leader_settle(&l), 2);
    assert_true(leader_step_until(&l, OLD_EVENTS, "10", 15000)); /* one round was bounded */
    assert_true(leader_step_until(&l, OLD_EVENTS, "0", 15000));  /* and the next came soon */
    assert_true(fixture_count("SELECT count(*) FROM reports.leadership_event") == 1);
    leader_leave(&l);
}

static void test_nothing_to_forget_is_one_call_a_minute(void **state)
{
    (void)state;
    struct leader l = leader_make();
    old_events(0);
    struct retention r = {.at = {0}};
    struct error err = {.text = ""};
    struct store_call call = call_of(&l);
    assert_int_equal(retention_round(&r, &call, &err), STATUS_OK);
    int64_t wait = instant_ms_between(clock_now(), r.at);
    assert_true(wait > RETENTION_MS - 5000 && wait <= RETENTION_MS);
    leader_leave(&l);
}

static void test_superseded_leader_forgets_nothing_and_learns_it(void **state)
{
    (void)state;
    struct leader l = leader_make();
    old_events(3);
    (void)fixture_lead();
    struct retention r = {.at = {0}};
    struct error err = {.text = ""};
    struct store_call call = call_of(&l);
    assert_int_equal(retention_round(&r, &call, &err), STATUS_FENCED);
    assert_int_equal(fixture_count(OLD_EVENTS), 3);
    leader_leave(&l);
}

static void test_a_table_that_is_locked_delays_retention_and_not_the_leader(void **state)
{
    (void)state;
    struct leader l = leader_make();
    old_events(3);
    PGconn *other = fixture_plan_second();
    PQclear(PQexec(other, "BEGIN"));
    PQclear(PQexec(other, "LOCK TABLE reports.leadership_event IN SHARE MODE"));
    struct retention r = {.at = {0}};
    struct error err = {.text = ""};
    struct store_call call = call_of(&l);
    call.deadline = instant_add_ms(clock_now(), 500);
    enum status s = retention_round(&r, &call, &err);
    assert_true(s == STATUS_OK || s == STATUS_AGAIN);
    assert_true(r.rows < RETENTION_ROWS);
    assert_int_equal(fixture_count(OLD_EVENTS), 3);
    PQfinish(other);
    leader_leave(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leader_forgets_the_old_in_bounded_rounds_while_it_plans),
        cmocka_unit_test(test_nothing_to_forget_is_one_call_a_minute),
        cmocka_unit_test(test_superseded_leader_forgets_nothing_and_learns_it),
        cmocka_unit_test(test_a_table_that_is_locked_delays_retention_and_not_the_leader),
    };
    return fixture_plan_run("test_retention", tests, sizeof tests / sizeof tests[0], NULL);
}
