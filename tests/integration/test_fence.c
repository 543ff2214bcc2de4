/* The fence on a real PostgreSQL: who may write, who is refused, who is ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "fixture_database.h"
#include "store_fence.h"

static struct test_database db;
static int64_t next_generation = 100; /* of scope main; every test goes on from the last */

static instant soon(void)
{
    return instant_add_ms(clock_now(), 20000);
}

static struct store *connect(void)
{
    struct error err = {.text = ""};
    struct store *store = NULL;
    const struct store_options options = {
        .conninfo = db.scheduler, .application_name = "test_fence", .role = STORE_SCHEDULER};
    enum status s = store_open(&options, soon(), &store, &err);
    if (s != STATUS_OK) {
        fail_msg("connect: %s %s", status_name(s), err.text);
    }
    return store;
}

static const struct fence_member tester = {.name = "test", .url = "http://127.0.0.1:1"};

static struct authority candidate(void)
{
    struct authority a = {.scope = "main", .incarnation = 1, .generation = next_generation++};
    uuid_random(a.owner);
    return a;
}

static enum status establish(struct store *store, const struct authority *a)
{
    struct error err = {.text = ""};
    enum status s = fence_establish(store, a, &tester, soon(), &err);
    if (s != STATUS_OK) {
        print_message("establish: %s %s\n", status_name(s), err.text);
    }
    return s;
}

static struct fence_row stored(struct store *store)
{
    struct fence_row row = {0};
    assert_int_equal(fence_read(store, "main", soon(), &row, NULL), STATUS_OK);
    return row;
}

static int64_t rejections(void)
{
    return test_int(db.connection, "SELECT count(*) FROM reports.fence_rejection");
}

static void test_database_that_does_not_know_a_job_is_held_and_not_established(void **state)
{
    (void)state;
    struct store *store = connect();
    struct authority old = candidate();
    struct authority new = candidate();
    struct error err = {.text = ""};
    static const char unknown[] = "01890000-0001-7000-8000-000000000000";
    const struct fence_member marked = {.name = "test", .mark = unknown};
    const struct fence_member remembering = {.name = "test", .acknowledged = unknown};
    assert_int_equal(establish(store, &old), STATUS_OK);
    assert_int_equal(fence_register(store, &old, "", soon(), NULL), STATUS_OK);
    assert_int_equal(fence_register(store, &old, unknown, soon(), NULL), STATUS_CONFLICT);
    assert_int_equal(fence_establish(store, &new, &marked, soon(), &err), STATUS_HELD);
    assert_int_equal(stored(store).generation, old.generation);
    assert_true(stored(store).held);
    assert_non_null(strstr(stored(store).hold, unknown));
    test_run(db.connection, "DELETE FROM reports.hold");
    assert_int_equal(fence_establish(store, &new, &remembering, soon(), &err), STATUS_HELD);
    test_run(db.connection, "SELECT reports.lift_hold(id) FROM reports.hold");
    assert_int_equal(fence_establish(store, &new, &marked, soon(), &err), STATUS_OK);
    assert_int_equal(fence_register(store, &new, unknown, soon(), NULL), STATUS_OK);
    store_close(store);
}

static void test_restored_ensemble_is_recorded_only_with_a_proof(void **state)
{
    (void)state;
    struct store *store = connect();
    struct authority low = candidate();
    struct authority high = candidate();
    struct fence_proof proof = {.member = "test"};
    assert_int_equal(establish(store, &high), STATUS_OK);
    proof.read = low.generation - 1;
    assert_int_equal(fence_prove_regressed(store, &low, &proof, soon(), NULL), STATUS_CONFLICT);
    assert_false(stored(store).held);
    proof.read = high.generation;
    assert_int_equal(fence_prove_regressed(store, &low, &proof, soon(), NULL), STATUS_OK);
    assert_non_null(strstr(stored(store).hold, "zxid_regressed"));
    test_run(db.connection, "DELETE FROM reports.hold");
    store_close(store);
}

static void test_first_ensemble_is_adopted_and_another_is_unknown(void **state)
{
    (void)state;
    struct store *store = connect();
    enum fence_ensemble meeting = FENCE_ENSEMBLE_UNKNOWN;
    int64_t incarnation = 0;
    assert_int_equal(fence_meet(store, "e-one", "test", soon(), &meeting, &incarnation, NULL),
                     STATUS_OK);
    assert_int_equal(meeting, FENCE_ENSEMBLE_ADOPTED);
    assert_int_equal(incarnation, 1);
    assert_int_equal(fence_meet(store, "e-one", "test", soon(), &meeting, &incarnation, NULL),
                     STATUS_OK);
    assert_int_equal(meeting, FENCE_ENSEMBLE_KNOWN);
    incarnation = 77;
    assert_int_equal(fence_meet(store, "e-two", "test", soon(), &meeting, &incarnation, NULL),
                     STATUS_OK);
    assert_int_equal(meeting, FENCE_ENSEMBLE_UNKNOWN);
    assert_int_equal(incarnation, 77); /* none is given to it */
    store_close(store);
}

static void test_establishing_again_with_the_same_owner_changes_nothing(void **state)
{
    (void)state;
    struct store *store = connect();
    struct authority a = candidate();
    assert_int_equal(establish(store, &a), STATUS_OK);
    char since[64];
    (void)snprintf(since, sizeof since, "%s",
                   test_text(db.connection, "SELECT established_at FROM reports.fence "
                                            "WHERE scope = 'main'"));
    assert_int_equal(establish(store, &a), STATUS_OK);
    assert_string_equal(since, test_text(db.connection, "SELECT established_at FROM reports.fence "
                                                        "WHERE scope = 'main'"));
    assert_int_equal(stored(store).generation, a.generation);
    store_close(store);
}

static void test_lower_generation_and_equal_one_of_another_owner_are_superseded(void **state)
{
    (void)state;
    struct store *store = connect();
    struct authority older = candidate();
    struct authority a = candidate();
    assert_int_equal(establish(store, &a), STATUS_OK);
    assert_int_equal(establish(store, &older), STATUS_FENCED);
    struct authority twin = a; /* a rebuilt ensemble hands the same czxid out again */
    uuid_random(twin.owner);
    assert_int_equal(establish(store, &twin), STATUS_FENCED);
    assert_int_equal(stored(store).generation, a.generation);
    assert_int_equal(fence_activated(store, &a, 1, soon(), NULL), STATUS_OK);
    store_close(store);
}

static void test_superseded_one_is_told_by_which_member(void **state)
{
    (void)state;
    struct store *store = connect();
    struct authority older = candidate();
    struct authority a = candidate();
    const struct fence_member boss = {.name = "boss"};
    const struct fence_member me = {.name = "me"};
    struct error err = {.text = ""};
    assert_int_equal(fence_establish(store, &a, &boss, soon(), NULL), STATUS_OK);
    assert_int_equal(fence_establish(store, &older, &me, soon(), &err), STATUS_FENCED);
    assert_non_null(strstr(err.text, "is held by member boss, generation "));
    store_close(store);
}

static void test_stale_write_changes_nothing_and_is_recorded(void **state)
{
    (void)state;
    struct store *old_store = connect();
    struct store *new_store = connect();
    struct authority old = candidate();
    struct authority new = candidate();
    struct error err = {.text = ""};
    assert_int_equal(establish(old_store, &old), STATUS_OK);
    assert_int_equal(establish(new_store, &new), STATUS_OK);
    int64_t before = rejections();
    assert_int_equal(fence_activated(old_store, &old, 1, soon(), &err), STATUS_FENCED);
    assert_non_null(strstr(err.text, "main"));
    assert_int_equal(rejections(), before + 1);
    char sql[512];
    (void)snprintf(sql, sizeof sql,
                   "SELECT (operation, generation, stored_generation)::text FROM "
                   "reports.fence_rejection ORDER BY id DESC LIMIT 1");
    char expect[128];
    (void)snprintf(expect, sizeof expect, "(activated,%lld,%lld)", (long long)old.generation,
                   (long long)new.generation);
    assert_string_equal(test_text(db.connection, sql), expect);
    assert_string_equal(test_text(db.connection, "SELECT activated_at IS NULL FROM reports.fence "
                                                 "WHERE scope = 'main'"),
                        "t");
    store_close(old_store);
    store_close(new_store);
}

static void test_terminate_ends_backends_of_lower_generations_only(void **state)
{
    (void)state;
    struct store *old_scope = connect();
    struct store *old_relay = connect();
    struct store *new_scope = connect();
    struct store *new_relay = connect();
    struct authority old = candidate();
    struct authority new = candidate();
    int64_t ended = -1;
    assert_int_equal(establish(old_scope, &old), STATUS_OK);
    assert_int_equal(fence_register(old_relay, &old, NULL, soon(), NULL), STATUS_OK);
    assert_int_equal(establish(new_scope, &new), STATUS_OK);
    assert_int_equal(fence_register(new_relay, &new, NULL, soon(), NULL), STATUS_OK);
    /* The old one, awake again, ends nobody. */
    assert_int_equal(fence_terminate(old_scope, &old, soon(), &ended, NULL), STATUS_OK);
    assert_int_equal(ended, 0);
    assert_int_equal(fence_terminate(new_scope, &new, soon(), &ended, NULL), STATUS_OK);
    assert_int_equal(ended, 2);
    struct fence_row row;
    assert_int_equal(fence_read(old_scope, "main", soon(), &row, NULL), STATUS_AGAIN);
    assert_true(store_is_broken(old_scope));
    assert_int_equal(fence_read(old_relay, "main", soon(), &row, NULL), STATUS_AGAIN);
    assert_int_equal(fence_read(new_scope, "main", soon(), &row, NULL), STATUS_OK);
    assert_int_equal(fence_read(new_relay, "main", soon(), &row, NULL), STATUS_OK);
    store_close(old_scope);
    store_close(old_relay);
    store_close(new_scope);
    store_close(new_relay);
}

/* A leader was stopped between two statements of a transaction that holds the scope's lock. */
static void test_establish_held_up_by_an_older_writer_goes_on_after_terminate(void **state)
{
    (void)state;
    struct store *store = connect();
    struct authority old = candidate();
    struct authority new = candidate();
    struct error err = {.text = ""};
    PGconn *zombie = PQconnectdb(db.scheduler);
    assert_int_equal(PQstatus(zombie), CONNECTION_OK);
    char sql[512];
    (void)snprintf(sql, sizeof sql, "SELECT reports.establish('main', 1, %lld, '%s', 'zombie')",
                   (long long)old.generation, old.owner);
    test_run(zombie, sql);
    test_run(zombie, "SET idle_in_transaction_session_timeout = 0; BEGIN");
    (void)snprintf(sql, sizeof sql,
                   "SELECT reports.register_backend('main', 1, %lld, '%s', 'scope')",
                   (long long)old.generation, old.owner);
    test_run(zombie, sql);
    assert_int_equal(fence_establish(store, &new, &tester, soon(), &err), STATUS_AGAIN);
    assert_true(fence_is_busy(&err));
    assert_int_equal(stored(store).generation, old.generation);
    int64_t ended = 0;
    assert_int_equal(fence_terminate(store, &new, soon(), &ended, NULL), STATUS_OK);
    assert_int_equal(ended, 1);
    assert_int_equal(establish(store, &new), STATUS_OK);
    assert_int_equal(stored(store).generation, new.generation);
    PQfinish(zombie);
    store_close(store);
}

static void test_missing_fence_row_is_corrupt_and_never_no_lock(void **state)
{
    (void)state;
    struct store *store = connect();
    struct authority a = candidate();
    struct fence_row row = {.generation = 77};
    struct error err = {.text = ""};
    (void)snprintf(a.scope, sizeof a.scope, "nowhere");
    assert_int_equal(fence_read(store, "nowhere", soon(), &row, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "nowhere"));
    assert_int_equal(row.generation, 77);
    assert_int_equal(fence_establish(store, &a, &tester, soon(), &err), STATUS_CORRUPT);
    assert_int_equal(fence_activated(store, &a, 1, soon(), &err), STATUS_CORRUPT);
    assert_int_equal(fence_release(store, &a, "stopped", soon(), &err), STATUS_CORRUPT);
    assert_false(store_is_broken(store));
    store_close(store);
}

static void test_release_is_idempotent_and_ends_the_generation(void **state)
{
    (void)state;
    struct store *store = connect();
    struct authority a = candidate();
    assert_int_equal(establish(store, &a), STATUS_OK);
    assert_int_equal(fence_release(store, &a, "stopped", soon(), NULL), STATUS_OK);
    assert_true(stored(store).released);
    assert_int_equal(fence_release(store, &a, "stopped", soon(), NULL), STATUS_OK);
    assert_int_equal(fence_activated(store, &a, 1, soon(), NULL), STATUS_FENCED);
    assert_int_equal(establish(store, &a), STATUS_FENCED); /* one node, one activation */
    struct authority next = candidate();
    assert_int_equal(establish(store, &next), STATUS_OK);
    assert_false(stored(store).released);
    assert_int_equal(fence_release(store, &a, "stopped", soon(), NULL), STATUS_FENCED);
    assert_false(stored(store).released);
    store_close(store);
}

static void test_backend_of_a_stale_generation_cannot_register(void **state)
{
    (void)state;
    struct store *store = connect();
    struct authority old = candidate();
    struct authority new = candidate();
    assert_int_equal(establish(store, &old), STATUS_OK);
    assert_int_equal(establish(store, &new), STATUS_OK);
    assert_int_equal(fence_register(store, &old, NULL, soon(), NULL), STATUS_FENCED);
    store_close(store);
}

static void test_hold_is_seen_and_its_lifting_too(void **state)
{
    (void)state;
    struct store *store = connect();
    assert_false(stored(store).held);
    test_run(db.connection, "INSERT INTO reports.hold (scope, reason) VALUES (NULL, 'test')");
    assert_true(stored(store).held);
    test_run(db.connection, "UPDATE reports.hold SET lifted_at = now(), lifted_by = 'test'");
    assert_false(stored(store).held);
    store_close(store);
}

static void test_diary_takes_a_step_down_of_a_fenced_member_and_nothing_else(void **state)
{
    (void)state;
    struct store *store = connect();
    struct authority stale = {.scope = "main", .incarnation = 1, .generation = 1};
    struct fence_note note = {.member = "test", .event = "stepped_down", .reason = "fenced"};
    uuid_random(stale.owner);
    assert_int_equal(fence_note(store, &stale, &note, soon(), NULL), STATUS_OK);
    assert_string_equal(test_text(db.connection,
                                  "SELECT (event, generation, reason)::text FROM "
                                  "reports.leadership_event ORDER BY id DESC LIMIT 1"),
                        "(stepped_down,1,fenced)");
    note.event = "established";
    assert_int_equal(fence_note(store, &stale, &note, soon(), NULL), STATUS_INVALID);
    store_close(store);
}

static void test_unknown_incarnation_cannot_establish(void **state)
{
    (void)state;
    struct store *store = connect();
    struct authority a = candidate();
    a.incarnation = 9;
    assert_int_equal(establish(store, &a), STATUS_INVALID);
    store_close(store);
}

static int database_make(void **state)
{
    (void)state;
    test_database_create(&db);
    return 0;
}

static int database_drop(void **state)
{
    (void)state;
    test_database_drop(&db);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_ensemble_is_adopted_and_another_is_unknown),
        cmocka_unit_test(test_database_that_does_not_know_a_job_is_held_and_not_established),
        cmocka_unit_test(test_restored_ensemble_is_recorded_only_with_a_proof),
        cmocka_unit_test(test_establishing_again_with_the_same_owner_changes_nothing),
        cmocka_unit_test(test_lower_generation_and_equal_one_of_another_owner_are_superseded),
        cmocka_unit_test(test_superseded_one_is_told_by_which_member),
        cmocka_unit_test(test_stale_write_changes_nothing_and_is_recorded),
        cmocka_unit_test(test_terminate_ends_backends_of_lower_generations_only),
        cmocka_unit_test(test_establish_held_up_by_an_older_writer_goes_on_after_terminate),
        cmocka_unit_test(test_missing_fence_row_is_corrupt_and_never_no_lock),
        cmocka_unit_test(test_release_is_idempotent_and_ends_the_generation),
        cmocka_unit_test(test_backend_of_a_stale_generation_cannot_register),
        cmocka_unit_test(test_hold_is_seen_and_its_lifting_too),
        cmocka_unit_test(test_diary_takes_a_step_down_of_a_fenced_member_and_nothing_else),
        cmocka_unit_test(test_unknown_incarnation_cannot_establish),
    };
    return cmocka_run_group_tests(tests, database_make, database_drop);
}
