/* A planned handoff among whole scopes, where one is cut off from ZooKeeper without knowing it:
 * what processes from outside cannot be made to do (tests/system/test_handoff.py has the rest). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "fixture_coord.h"
#include "fixture_database.h"
#include "fixture_proxy.h"
#include "fixture_replica.h"
#include "log.h"

static struct test_database db;
static char ensemble_root[64]; /* one ensemble for all tests, as the database adopts the first */

/* Of the running test; what it leaves when it fails is stopped after it. */
static struct replica a, b, c;
static struct proxy *proxy;

static int stop_all(void **state)
{
    (void)state;
    struct replica *all[] = {&a, &b, &c};
    if (proxy != NULL) {
        proxy_set(proxy, PROXY_PASS);
    }
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i]->running) {
            replica_stop(all[i]);
        }
    }
    if (proxy != NULL) {
        proxy_stop(proxy);
        proxy = NULL;
    }
    return 0;
}

static bool knows(const char *member, unsigned ahead)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT count(*) FROM reports.candidate c JOIN reports.fence f USING (scope) "
                   "WHERE c.member = '%s' AND c.ahead = %u AND c.generation > f.generation",
                   member, ahead);
    return test_wait_text(db.connection, sql, "1", SOON_MS);
}

/* a leads, b is next, c is last. */
static void line_up(const struct places *of_b, const struct places *of_c)
{
    const struct places usual = {0};
    replica_start(&a, "a", &usual);
    assert_true(in_state(&a, LIFECYCLE_ACTIVE, SOON_MS));
    replica_start(&b, "b", of_b);
    assert_true(in_state(&b, LIFECYCLE_FOLLOWING, SOON_MS));
    assert_true(knows("b", 1));
    replica_start(&c, "c", of_c);
    assert_true(in_state(&c, LIFECYCLE_FOLLOWING, SOON_MS));
    assert_true(knows("c", 2));
}

static void ask(const char *to)
{
    char sql[256];
    (void)snprintf(sql, sizeof sql,
                   "SELECT state FROM reports.ask(gen_random_uuid(), 'handoff', 'main', '%s', "
                   "'20 seconds')",
                   to);
    assert_string_equal(test_text(db.connection, sql), "pending");
}

/* The last request ends so; its answer is shown. */
static bool answered(const char *state, const char *part, int64_t limit_ms)
{
    char sql[512];
    static const char last[] = "SELECT answer FROM reports.request ORDER BY requested_at DESC "
                               "LIMIT 1";
    (void)snprintf(sql, sizeof sql,
                   "SELECT state = '%s' AND answer LIKE '%%%s%%' FROM reports.request ORDER BY "
                   "requested_at DESC LIMIT 1",
                   state, part);
    bool yes = test_wait_text(db.connection, sql, "t", limit_ms);
    print_message("%s\n", test_text(db.connection, last));
    return yes;
}

static void test_last_in_line_leads_and_the_one_ahead_stands_behind_it(void **state)
{
    (void)state;
    const struct places usual = {0};
    line_up(&usual, &usual);
    int64_t before = generation_of(&b);
    int64_t successor = generation_of(&c);
    ask("c");
    assert_true(in_state(&c, LIFECYCLE_ACTIVE, SOON_MS));
    assert_int_equal(generation_of(&c), successor);
    assert_true(answered("done", "member \"c\" leads scope \"main\"", SOON_MS));
    assert_int_equal(scope_read(a.scope).reason, LIFECYCLE_REASON_HANDOFF);
    assert_true(in_state(&b, LIFECYCLE_FOLLOWING, SOON_MS));
    assert_true(generation_of(&b) > before);
    assert_true(in_state(&a, LIFECYCLE_FOLLOWING, SOON_MS));
    assert_true(generation_of(&a) > generation_of(&b));
}

/* It has a database and believes that it is next; but the leader's going would reach it only after
 * its session had expired. */
static void test_successor_cut_off_from_zookeeper_without_knowing_it_is_not_handed_to(void **state)
{
    (void)state;
    proxy = proxy_start(test_environment("RS_ZK"));
    const struct places usual = {0};
    const struct places proxied = {.zookeeper = proxy_address(proxy)};
    line_up(&proxied, &usual);
    int64_t generation = generation_of(&a);
    proxy_set(proxy, PROXY_HOLE);
    ask("b");
    assert_true(answered("refused", "member \"b\" did not confirm within 3 s", SOON_MS));
    assert_int_equal(scope_read(a.scope).state, LIFECYCLE_ACTIVE);
    assert_int_equal(generation_of(&a), generation);
}

static int database_make(void **state)
{
    (void)state;
    test_database_create(&db);
    test_root(ensemble_root);
    replica_places(&db, ensemble_root);
    return 0;
}

static int database_drop(void **state)
{
    (void)state;
    test_database_drop(&db);
    return 0;
}

#define whole(name) cmocka_unit_test_teardown(name, stop_all)

int main(void)
{
    const struct CMUnitTest tests[] = {
        whole(test_last_in_line_leads_and_the_one_ahead_stands_behind_it),
        whole(test_successor_cut_off_from_zookeeper_without_knowing_it_is_not_handed_to),
    };
    (void)test_environment("RS_ZK");
    (void)test_environment("RS_KAFKA");
    log_open("test_handoff", LOG_LEVEL_INFO);
    return cmocka_run_group_tests(tests, database_make, database_drop);
}
