#include "fixture_replica.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture_coord.h"

static const struct test_database *database;
static const char *usual_root;

void replica_places(const struct test_database *its_database, const char *root)
{
    database = its_database;
    usual_root = root;
}

static int64_t or_usual(int64_t ms, int64_t usual_ms)
{
    return ms != 0 ? ms : usual_ms;
}

void replica_start(struct replica *r, const char *name, const struct places *p)
{
    struct error err = {.text = ""};
    *r = (struct replica){.running = true, .urgent = inbox_new(sizeof(struct coord_event), 64)};
    const struct coord_options coord_options = {
        .servers = p->zookeeper != NULL ? p->zookeeper : test_environment("RS_ZK"),
        .root = p->root != NULL ? p->root : usual_root,
        .session_ms = or_usual(p->session_ms, LONG_SESSION_MS),
        .tick_ms = TEST_TICK_MS,
        .margin_ms = or_usual(p->margin_ms, TEST_MARGIN_MS),
        .name = name,
        .url = "",
        .urgent = r->urgent};
    assert_int_equal(coord_new(&coord_options, &r->coord, &err), STATUS_OK);
    const struct scope_options options = {.name = "main",
                                          .member = name,
                                          .coord = r->coord,
                                          .conninfo = p->database != NULL ? p->database
                                                                          : database->scheduler,
                                          .password_file = "",
                                          .statement_ms = or_usual(p->statement_ms, 5000),
                                          .connect_ms = 5000,
                                          .establish_ms = 10000,
                                          .unhealthy_ms = or_usual(p->unhealthy_ms, 15000),
                                          .drain_ms = 200,
                                          .tz_poll_ms = 60000,
                                          .batch_schedules = 1000,
                                          .brokers = test_environment("RS_KAFKA"),
                                          .topic = "rs-test-scope",
                                          .relay_window = 100};
    assert_int_equal(scope_new(&options, &r->scope, &err), STATUS_OK);
    assert_int_equal(canceller_start(r->urgent, &r->scope, 1, &r->canceller, &err), STATUS_OK);
    assert_int_equal(coord_start(r->coord, &err), STATUS_OK);
    assert_int_equal(scope_start(r->scope, &err), STATUS_OK);
}

bool in_state(struct replica *r, enum lifecycle_state state, int64_t limit_ms)
{
    instant end = instant_add_ms(clock_now(), limit_ms);
    struct scope_snapshot view = scope_read(r->scope);
    while (view.state != state) {
        if (!instant_before(clock_now(), end)) {
            print_error("after %lld ms in %s, not %s: %s\n", (long long)limit_ms,
                        lifecycle_state_name(view.state), lifecycle_state_name(state),
                        view.problem);
            return false;
        }
        (void)poll(NULL, 0, 5);
        view = scope_read(r->scope);
    }
    return true;
}

bool leads_anew(struct replica *r, int64_t old, int64_t limit_ms)
{
    instant end = instant_add_ms(clock_now(), limit_ms);
    struct scope_snapshot view = scope_read(r->scope);
    while (view.state != LIFECYCLE_ACTIVE || view.generation <= old) {
        if (!instant_before(clock_now(), end)) {
            print_error("after %lld ms in %s: %s\n", (long long)limit_ms,
                        lifecycle_state_name(view.state), view.problem);
            return false;
        }
        (void)poll(NULL, 0, 5);
        view = scope_read(r->scope);
    }
    return true;
}

void replica_stop(struct replica *r)
{
    instant end = instant_add_ms(clock_now(), 15000);
    scope_ask_stop(r->scope);
    assert_int_equal(scope_join(r->scope, end), STATUS_OK);
    assert_int_equal(scope_read(r->scope).state, LIFECYCLE_STOPPED);
    assert_int_equal(coord_stop(r->coord, end), STATUS_OK);
    assert_int_equal(canceller_stop(r->canceller, end), STATUS_OK);
    scope_free(r->scope);
    coord_free(r->coord);
    inbox_free(r->urgent);
    r->running = false;
}

int64_t generation_of(struct replica *r)
{
    return scope_read(r->scope).generation;
}
