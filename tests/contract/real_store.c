#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "contract.h"
#include "fixture_database.h"
#include "fixture_proxy.h"

static struct test_database db;
static struct proxy *proxy;

void contract_db_begin(void)
{
    char server[128];
    test_database_create(&db);
    test_run(db.connection,
             "UPDATE reports.installation SET reap_grace = '10 seconds';"
             "INSERT INTO reports.scope (name) VALUES ('main') ON CONFLICT DO NOTHING;"
             "INSERT INTO reports.queue (name, max_outstanding) VALUES ('queue-0', NULL), "
             "('queue-1', 1);"
             "INSERT INTO reports.report (name, kind) VALUES ('noop', 'noop')");
    (void)snprintf(server, sizeof server, "%s:%s", test_environment("RS_PG_HOST"),
                   test_environment("RS_PG_PORT"));
    proxy = proxy_start(server);
}

void contract_db_end(void)
{
    proxy_stop(proxy);
    test_database_drop(&db);
}

struct store *contract_db_open(enum contract_side side, enum store_role role)
{
    char conninfo[1200];
    struct store *s = NULL;
    struct error err = {.text = ""};
    const char *base = role == STORE_WORKER ? db.worker : db.scheduler;
    const char *port = strchr(proxy_address(proxy), ':') + 1;
    (void)snprintf(conninfo, sizeof conninfo, "%s%s%s", base, side == SIDE_EXPOSED ? " port=" : "",
                   side == SIDE_EXPOSED ? port : "");
    const struct store_options options = {
        .conninfo = conninfo, .application_name = "contract", .role = role};
    if (store_open(&options, instant_add_ms(clock_now(), 10000), &s, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return s;
}

void contract_db_way(enum contract_way way)
{
    switch (way) {
    case WAY_OPEN:
        proxy_set(proxy, PROXY_PASS);
        return;
    case WAY_DEAF:
        proxy_set(proxy, PROXY_DEAF);
        return;
    case WAY_HOLE:
        proxy_set(proxy, PROXY_HOLE);
        return;
    case WAY_CLOSED:
        proxy_set(proxy, PROXY_REFUSE);
        proxy_cut(proxy);
        return;
    }
}

void contract_db_edit(const struct contract_schedule *schedule)
{
    char sql[1024];
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO reports.schedule (name, report, kind, rule, anchor, overlap, queue, paused,"
        " description) VALUES ('schedule-%02d', 'noop', 'interval', '1 hour', '2020-01-01',"
        " '%s', 'queue-%d', %s, '') ON CONFLICT (name) DO UPDATE SET overlap = excluded.overlap,"
        " paused = excluded.paused, misfire_max = reports.schedule.misfire_max + 1",
        schedule->number, schedule->overlap, schedule->queue, schedule->paused ? "true" : "false");
    test_run(db.connection, sql);
}

static const char *ask(const char *format, const char *value)
{
    char sql[512];
    (void)snprintf(sql, sizeof sql, "%s '%s'", format, value);
    return test_text(db.connection, sql);
}

const char *contract_db_state(const char *job)
{
    return ask("SELECT state FROM reports.job WHERE id =", job);
}

int64_t contract_db_outbox(const char *job)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM reports.outbox WHERE job_id = '%s'", job);
    return test_int(db.connection, sql);
}

int64_t contract_db_gap_firings(int schedule)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT coalesce(sum(firings), 0) FROM reports.schedule_gap WHERE schedule ="
                   " 'schedule-%02d'",
                   schedule);
    return test_int(db.connection, sql);
}

void contract_db_cancel(const char *job)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "UPDATE reports.job SET cancel_requested = true WHERE id = '%s'", job);
    test_run(db.connection, sql);
}

void contract_db_hold(void)
{
    test_run(db.connection, "SELECT reports.raise_hold('main', NULL, 'the contract')");
}

void contract_db_lift(void)
{
    test_run(db.connection,
             "SELECT reports.lift_hold(id) FROM reports.hold WHERE lifted_at IS NULL");
}

void contract_db_age(int64_t us)
{
    char sql[600];
    char by[48];
    (void)snprintf(by, sizeof by, "interval '%lld microseconds'", (long long)us);
    (void)snprintf(
        sql, sizeof sql,
        "UPDATE reports.job SET run_after = run_after - %s, lease_until = lease_until - %s;"
        "UPDATE reports.worker SET heartbeat_at = heartbeat_at - %s;"
        "UPDATE reports.fence_pulse SET reap_not_before = reap_not_before - %s",
        by, by, by, by);
    test_run(db.connection, sql);
}

void contract_db_silence(int64_t us)
{
    char sql[200];
    (void)snprintf(
        sql, sizeof sql,
        "UPDATE reports.fence_pulse SET beat_at = beat_at - interval '%lld microseconds'",
        (long long)us);
    test_run(db.connection, sql);
}
