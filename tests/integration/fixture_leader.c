#include "fixture_leader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct leader leader_make(void)
{
    struct leader l = {.store = fixture_plan_store(), .authority = fixture_lead()};
    return l;
}

static void timeouts_of_the_role(const char *lock, const char *statement)
{
    const char *name = PQdb(fixture_plan_super());
    (void)fixture_sql("ALTER ROLE report_scheduler IN DATABASE %s SET lock_timeout = '%s'", name,
                      lock);
    (void)fixture_sql("ALTER ROLE report_scheduler IN DATABASE %s SET statement_timeout = '%s'",
                      name, statement);
}

struct leader leader_make_patient(void)
{
    timeouts_of_the_role("50s", "50s"); /* of the connections made now */
    struct leader l = leader_make();
    timeouts_of_the_role("2s", "3s");
    l.statement_ms = 50000;
    return l;
}

void leader_prepare(struct leader *l)
{
    struct error err = {.text = ""};
    struct planning_options options = {.scope = "main",
                                       .lease = &l->lease,
                                       .tz_directory = l->tz_directory,
                                       .tz_poll_ms = l->tz_poll_ms > 0 ? l->tz_poll_ms : 60000,
                                       .statement_ms = l->statement_ms > 0 ? l->statement_ms : 5000,
                                       .batch_schedules = 1000,
                                       .look_ms = l->look_ms > 0 ? l->look_ms : PLANNING_LOOK_MS};
    fixture_lease(&l->lease, 60000);
    planning_free(l->planning); /* of an earlier leader_prepare, if any */
    l->planning = planning_new(&options);
    assert_non_null(l->planning);
    enum status s = planning_prepare(l->planning, &l->authority, l->store, &err);
    if (s != STATUS_OK) {
        fail_msg("prepare: %s %s", status_name(s), err.text);
    }
}

void leader_leave(struct leader *l)
{
    planning_free(l->planning);
    store_close(l->store);
}

enum status leader_step(struct leader *l, bool notified, struct planning_result *r)
{
    struct error err = {.text = ""};
    enum status s = planning_step(l->planning, &l->authority, l->store, notified, r, &err);
    if (s != STATUS_OK) {
        print_message("step: %s %s\n", status_name(s), err.text);
    }
    return s;
}

unsigned leader_settle(struct leader *l)
{
    struct planning_result r = {.more = true};
    unsigned planned = 0;
    bool notified = true;
    for (int i = 0; r.more; i++) {
        assert_true(i < 200);
        assert_int_equal(leader_step(l, notified, &r), STATUS_OK);
        planned += r.planned;
        notified = false;
    }
    return planned;
}

void fixture_lead_once(void)
{
    struct leader l = leader_make();
    leader_prepare(&l);
    (void)leader_settle(&l);
    leader_leave(&l);
}

void fixture_schedule(const char *name, const char *kind, const char *rule, const char *age,
                      const char *more)
{
    (void)fixture_sql("INSERT INTO reports.schedule (name, report, kind, rule) "
                      "VALUES ('%s', 'nothing', '%s', '%s')",
                      name, kind, rule);
    if (more != NULL) {
        (void)fixture_sql("UPDATE reports.schedule SET %s WHERE name = '%s'", more, name);
        (void)fixture_sql(
            "DELETE FROM reports.schedule_change WHERE schedule = '%s' AND version = 1", name);
    }
    (void)fixture_sql("UPDATE reports.schedule_version SET effective_from = clock_timestamp() - "
                      "interval '%s' WHERE schedule = '%s'",
                      age, name);
}

const char *fixture_problem(const char *name)
{
    return fixture_sql("SELECT problem FROM reports.schedule_progress WHERE schedule = '%s'", name);
}

bool leader_step_until(struct leader *l, const char *sql, const char *want, int64_t ms)
{
    instant end = instant_add_ms(clock_now(), ms);
    bool ok = strcmp(fixture_sql("%s", sql), want) == 0;
    while (!ok && instant_before(clock_now(), end)) {
        struct planning_result r;
        assert_int_equal(leader_step(l, false, &r), STATUS_OK);
        ok = strcmp(fixture_sql("%s", sql), want) == 0;
    }
    return ok;
}
