/* Rows that somebody holds, and calls that last too long: they delay themselves and nothing else.
 */
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture_edits.h"

/* Steps, with a new connection when the last one broke, as the scope thread takes them. */
static bool steps_until(struct leader *l, const char *sql, const char *want, int64_t ms)
{
    instant end = instant_add_ms(clock_now(), ms);
    bool ok = false;
    bool notified = true;
    while (!ok && instant_before(clock_now(), end)) {
        struct planning_result r = {.wake_at = clock_now()};
        if (store_is_broken(l->store)) {
            store_close(l->store);
            l->store = fixture_plan_store();
            notified = true;
        }
        if (leader_step(l, notified, &r) == STATUS_OK && !r.more) {
            (void)poll(NULL, 0, instant_poll_timeout(clock_now(), instant_min(r.wake_at, end)));
        }
        notified = false;
        ok = strcmp(fixture_sql("%s", sql), want) == 0;
    }
    if (!ok) {
        print_error("%s: %s instead of %s\n", sql, fixture_sql("%s", sql), want);
    }
    return ok;
}

/* How many steps it takes for `ms`, each when the one before wants it. */
static unsigned steps_as_woken(struct leader *l, int64_t ms)
{
    instant end = instant_add_ms(clock_now(), ms);
    unsigned steps = 0;
    while (instant_before(clock_now(), end)) {
        struct planning_result r;
        assert_int_equal(leader_step(l, false, &r), STATUS_OK);
        steps++;
        (void)poll(NULL, 0, r.more ? 0 : instant_poll_timeout(clock_now(), r.wake_at));
    }
    return steps;
}

static PGconn *hold(const char *sql)
{
    PGconn *other = fixture_plan_second();
    /* Not beyond the test, should that fail. */
    PQclear(PQexec(other, "SET idle_in_transaction_session_timeout = '25s'"));
    PQclear(PQexec(other, "BEGIN"));
    PGresult *r = PQexec(other, sql);
    assert_int_equal(PQresultStatus(r), PGRES_TUPLES_OK);
    assert_true(PQntuples(r) > 0);
    PQclear(r);
    return other;
}

/* `culprit` and five others, each with an open job and its next firing a day from now. */
static void leader_of_six(struct leader *l, int64_t statement_ms)
{
    char name[32];
    fixture_schedule("culprit", "cron", "0 0 * * *", "1 day", NULL);
    for (int i = 0; i < 5; i++) {
        (void)snprintf(name, sizeof name, "other%d", i);
        fixture_schedule(name, "cron", "0 0 * * *", "1 day", NULL);
    }
    *l = leader_make();
    l->statement_ms = statement_ms;
    leader_prepare(l);
    assert_int_equal(leader_settle(l), 6);
}

static const char changed[] =
    "SELECT string_agg(schedule, ' ' ORDER BY schedule) FROM reports.schedule_change";

static void test_an_edit_whose_open_job_is_held_stops_neither_other_edits_nor_firings(void **state)
{
    (void)state;
    struct leader l;
    leader_of_six(&l, 5000);
    PGconn *other = hold("SELECT FROM reports.job WHERE schedule = 'culprit' FOR UPDATE");
    (void)fixture_sql("UPDATE reports.schedule SET overlap = 'queue', priority = 5");
    fixture_schedule("new", "cron", "0 0 * * *", "1 day", NULL);
    assert_int_equal(leader_settle(&l), 1); /* nobody waited: each step went well */
    assert_string_equal(fixture_sql("%s", changed), "culprit");
    assert_string_equal(fixture_sql("SELECT string_agg(DISTINCT overlap, ' ') FROM reports.job "
                                    "WHERE schedule = 'culprit'"),
                        "allow");
    PQfinish(other);
    assert_true(steps_until(&l, changed, "", 20000));
    assert_string_equal(fixture_sql("SELECT overlap FROM reports.job WHERE schedule = 'culprit'"),
                        "queue");
    leader_leave(&l);
}

static void test_an_edit_whose_change_row_is_held_stops_no_other(void **state)
{
    (void)state;
    struct leader l;
    leader_of_six(&l, 5000);
    (void)fixture_sql("UPDATE reports.schedule SET priority = 5");
    PGconn *other =
        hold("SELECT FROM reports.schedule_change WHERE schedule = 'culprit' FOR UPDATE");
    (void)leader_settle(&l);
    assert_string_equal(fixture_sql("%s", changed), "culprit");
    PQfinish(other);
    assert_true(steps_until(&l, changed, "", 20000));
    leader_leave(&l);
}

/* What the progress row of `culprit` does to whoever takes its edit in. */
static void progress_spoil(void)
{
    (void)fixture_sql(
        "CREATE OR REPLACE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM pg_sleep(30); RETURN NEW; END $$; CREATE TRIGGER slow BEFORE UPDATE OF version ON "
        "reports.schedule_progress FOR EACH ROW WHEN (NEW.schedule = 'culprit') EXECUTE FUNCTION "
        "public.slow()");
}

static void test_an_edit_that_is_slow_to_take_in_is_found_and_the_others_go_on(void **state)
{
    (void)state;
    struct leader l;
    leader_of_six(&l, 1000);
    fixture_schedule("ticking", "interval", "1 second", "10 milliseconds", NULL);
    (void)leader_settle(&l);
    progress_spoil();
    (void)fixture_sql("UPDATE reports.schedule SET priority = 5 WHERE name <> 'ticking'");
    assert_true(steps_until(&l, changed, "culprit", 30000));
    /* While it is tried again and again firings are planned, requests answered and jobs tended. */
    (void)fixture_sql("SELECT reports.ask('11111111-1111-4111-8111-111111111111', 'pause', "
                      "'other1', NULL, '1 minute')");
    (void)fixture_sql("TRUNCATE reports.queue_load");
    (void)fixture_sql("UPDATE reports.queue SET max_outstanding = 100");
    (void)fixture_sql("DELETE FROM reports.occurrence WHERE schedule = 'ticking'");
    assert_true(steps_until(&l,
                            "SELECT (SELECT state FROM reports.request) || ' ' || (SELECT count(*) "
                            "FROM reports.queue_load) || ' ' || (SELECT count(*) >= 2 FROM "
                            "reports.occurrence WHERE schedule = 'ticking')",
                            "done 1 true", 30000));
    leader_leave(&l);
}

static void test_a_successor_leads_although_an_edit_is_slow_to_take_in(void **state)
{
    (void)state;
    struct leader l;
    leader_of_six(&l, 1000);
    leader_leave(&l);
    progress_spoil();
    (void)fixture_sql("UPDATE reports.schedule SET priority = 5");
    fixture_schedule("new", "cron", "0 0 * * *", "1 day", NULL);
    struct leader next = leader_make();
    next.statement_ms = 1000;
    leader_prepare(&next);
    assert_true(steps_until(&next, changed, "culprit", 30000));
    assert_true(steps_until(&next, "SELECT count(*) FROM reports.occurrence WHERE schedule = 'new'",
                            "1", 30000));
    leader_leave(&next);
}

static void test_edits_in_an_outage_of_which_one_is_slow_to_plan_lose_nothing_else(void **state)
{
    (void)state;
    char name[32];
    for (int i = 0; i < 7; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        fixture_schedule(name, "cron", "0 0 * * *", "3 days", NULL);
    }
    struct leader l = leader_make();
    l.statement_ms = 1000;
    leader_prepare(&l);
    leader_leave(&l);
    for (int i = 0; i < 7; i++) {
        (void)snprintf(name, sizeof name, "s%d", i);
        fixture_edit(name, "priority = 5", "1 hour");
    }
    (void)fixture_sql(
        "CREATE OR REPLACE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM pg_sleep(30); RETURN NEW; END $$; CREATE TRIGGER slow BEFORE INSERT ON "
        "reports.occurrence FOR EACH ROW WHEN (NEW.schedule = 's3') EXECUTE FUNCTION "
        "public.slow()");
    l = leader_make();
    l.statement_ms = 1000;
    leader_prepare(&l);
    assert_true(steps_until(&l,
                            "SELECT string_agg(schedule || count, ' ' ORDER BY schedule) FROM "
                            "(SELECT schedule, count(*) FROM reports.occurrence GROUP BY 1) x",
                            "s03 s13 s23 s43 s53 s63", 30000));
    leader_leave(&l);
}

static void test_a_schedule_with_many_edits_that_is_held_hides_no_other(void **state)
{
    (void)state;
    struct leader l;
    leader_of_six(&l, 5000);
    (void)fixture_sql("DO $$ BEGIN FOR n IN 1 .. 1100 LOOP UPDATE reports.schedule SET priority = "
                      "n %% 100 + 1 WHERE name = 'culprit'; END LOOP; END $$");
    (void)fixture_sql("UPDATE reports.schedule SET priority = 5 WHERE name <> 'culprit'");
    PGconn *other =
        hold("SELECT FROM reports.schedule_progress WHERE schedule = 'culprit' FOR UPDATE");
    (void)leader_settle(&l);
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.schedule_change WHERE schedule <> 'culprit'"),
        0);
    PQfinish(other);
    leader_leave(&l);
}

static void test_a_schedule_that_cannot_be_planned_and_is_held_stops_no_other(void **state)
{
    (void)state;
    struct leader l;
    leader_of_six(&l, 5000);
    (void)fixture_sql("UPDATE reports.schedule_progress SET next_fire_at = date_trunc('day', "
                      "next_fire_at) - interval '1 day', last_fire_at = NULL, switched_at = "
                      "switched_at - interval '10 days'");
    (void)fixture_sql("TRUNCATE reports.job, reports.occurrence CASCADE");
    (void)fixture_sql("UPDATE reports.schedule_version SET time_zone = 'Nowhere/Land' WHERE "
                      "schedule = 'culprit'");
    PGconn *other =
        hold("SELECT FROM reports.schedule_progress WHERE schedule = 'culprit' FOR UPDATE");
    leader_leave(&l);
    l = leader_make();
    leader_prepare(&l);
    assert_true(leader_settle(&l) >= 5);
    assert_int_equal(fixture_count("SELECT count(DISTINCT schedule) FROM reports.occurrence"), 5);
    PQfinish(other);
    assert_true(steps_until(&l,
                            "SELECT problem IS NOT NULL FROM reports.schedule_progress WHERE "
                            "schedule = 'culprit'",
                            "t", 20000));
    leader_leave(&l);
}

static void test_rows_of_figures_that_are_held_do_not_stop_tending(void **state)
{
    (void)state;
    struct leader l;
    leader_of_six(&l, 5000);
    (void)fixture_sql("UPDATE reports.queue SET max_outstanding = 100");
    assert_true(steps_until(&l, "SELECT count(*) FROM reports.queue_load", "1", 30000));
    (void)fixture_sql("UPDATE reports.job SET state = 'retry_wait', attempt = 1, run_after = "
                      "clock_timestamp()");
    PGconn *load = hold("SELECT FROM reports.queue_load FOR UPDATE");
    PGconn *pulse = hold("SELECT FROM reports.fence_pulse FOR UPDATE");
    assert_int_equal(leader_settle(&l), 0);
    assert_true(
        steps_until(&l, "SELECT count(*) FROM reports.job WHERE state = 'queued'", "6", 20000));
    leader_leave(&l);
    l = leader_make();
    leader_prepare(&l); /* nor do they stop a successor */
    PQfinish(load);
    PQfinish(pulse);
    leader_leave(&l);
}

/* A link out of a directory of time zones is refused. */
static void file_copy(const char *from, const char *to)
{
    static char bytes[256 * 1024];
    FILE *in = fopen(from, "rb");
    FILE *out = fopen(to, "wb");
    assert_true(in != NULL && out != NULL);
    size_t n = fread(bytes, 1, sizeof bytes, in);
    assert_true(n > 0 && n < sizeof bytes);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

/* A directory of time zones in which all but UTC are listed and not installed. */
static void zones_make(char directory[64])
{
    static const char *const names[] = {"tzdata.zi", "UTC"};
    const char *usual = getenv("RS_TZDIR");
    (void)snprintf(directory, 64, "/tmp/test-zones-XXXXXX");
    assert_non_null(mkdtemp(directory));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char from[512];
        char to[128];
        (void)snprintf(from, sizeof from, "%s/%s", usual != NULL ? usual : "/usr/share/zoneinfo",
                       names[i]);
        (void)snprintf(to, sizeof to, "%s/%s", directory, names[i]);
        file_copy(from, to);
    }
}

static void zones_remove(const char *directory)
{
    static const char *const names[] = {"tzdata.zi", "UTC"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(directory), 0);
}

static void test_thousands_in_a_zone_that_cannot_be_read_stop_no_other(void **state)
{
    (void)state;
    char directory[64];
    (void)fixture_sql("INSERT INTO reports.schedule (name, report, kind, rule, time_zone) SELECT "
                      "'berlin' || n, 'nothing', 'cron', '0 0 * * *', 'Europe/Berlin' FROM "
                      "generate_series(1, 2300) n");
    struct leader l = leader_make_patient(); /* on a busy machine thousands take their time */
    leader_prepare(&l);
    assert_true(steps_until(&l, changed, "", 30000));
    leader_leave(&l);
    (void)fixture_sql("UPDATE reports.schedule_progress SET next_fire_at = now() - interval '1 "
                      "hour', switched_at = now() - interval '1 day'");
    fixture_schedule("utc", "cron", "0 0 * * *", "1 day", "time_zone = 'UTC'");
    zones_make(directory);
    l = leader_make_patient();
    l.tz_directory = directory;
    leader_prepare(&l);
    assert_true(steps_until(&l, "SELECT count(*) FROM reports.occurrence", "1", 30000));
    assert_true(steps_as_woken(&l, 3500) <= 70); /* without a busy loop */
    /* Nor their edits; and it is no problem of the schedules, since another replica may plan them.
     */
    (void)fixture_sql("UPDATE reports.schedule SET priority = 1 WHERE name LIKE 'berlin%%'");
    fixture_schedule("utc2", "cron", "0 0 * * *", "1 day", "time_zone = 'UTC'");
    assert_true(steps_until(&l, "SELECT count(*) FROM reports.occurrence", "2", 30000));
    assert_true(steps_as_woken(&l, 2500) <= 50);
    assert_int_equal(
        fixture_count("SELECT count(*) FROM reports.schedule_progress WHERE problem IS "
                      "NOT NULL"),
        0);
    leader_leave(&l);
    zones_remove(directory);
    l = leader_make_patient();
    leader_prepare(&l);
    assert_true(steps_until(&l, "SELECT count(*) FROM reports.occurrence", "2302", 90000));
    leader_leave(&l);
}

static void before_each(void)
{
    (void)fixture_sql("DROP TRIGGER IF EXISTS slow ON reports.schedule_progress");
    (void)fixture_sql("DROP TRIGGER IF EXISTS slow ON reports.occurrence");
    (void)fixture_sql("UPDATE reports.queue SET max_outstanding = NULL");
    (void)fixture_sql("TRUNCATE reports.queue_load");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_edit_whose_open_job_is_held_stops_neither_other_edits_nor_firings),
        cmocka_unit_test(test_an_edit_whose_change_row_is_held_stops_no_other),
        cmocka_unit_test(test_an_edit_that_is_slow_to_take_in_is_found_and_the_others_go_on),
        cmocka_unit_test(test_a_successor_leads_although_an_edit_is_slow_to_take_in),
        cmocka_unit_test(test_edits_in_an_outage_of_which_one_is_slow_to_plan_lose_nothing_else),
        cmocka_unit_test(test_a_schedule_with_many_edits_that_is_held_hides_no_other),
        cmocka_unit_test(test_a_schedule_that_cannot_be_planned_and_is_held_stops_no_other),
        cmocka_unit_test(test_rows_of_figures_that_are_held_do_not_stop_tending),
        cmocka_unit_test(test_thousands_in_a_zone_that_cannot_be_read_stop_no_other),
    };
    return fixture_plan_run("test_planning_waits", tests, sizeof tests / sizeof tests[0],
                            before_each);
}
