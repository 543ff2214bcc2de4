/* store_fence.h and the authority that every protected call carries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store_steps.h"

/* The fence ------------------------------------------------------------------------------------ */

/* Everything that carries an authority, with what else it brings in order. */
static enum status call_register(const struct store_call *c)
{
    return fence_register(c->store, c->authority, NULL, c->deadline, NULL);
}

static enum status call_activated(const struct store_call *c)
{
    return fence_activated(c->store, c->authority, 1, c->deadline, NULL);
}

static enum status call_check(const struct store_call *c)
{
    return store_authority_check(c, NULL);
}

static enum status call_plan(const struct store_call *c)
{
    char job[UUID_TEXT_MAX];
    static int number;
    char key[32];
    (void)snprintf(key, sizeof key, "fence-%d", number++);
    enum status s =
        plan_as(c->authority, (struct plan){.schedule = 0, .key = key}, job, NULL, NULL);
    assert_true((s == STATUS_OK) == (contract_db_state(job)[0] != '\0'));
    return s;
}

static enum status call_take_in(const struct store_call *c)
{
    struct change_row change;
    bool written = false;
    contract_db_edit(&(struct contract_schedule){.number = 1, .overlap = "allow"});
    assert_true(change_find(1, &change));
    enum status s = take_in_as(c->authority, &change, &written);
    assert_true((s == STATUS_OK) == written);
    if (s != STATUS_OK) {
        schedule_take_in(1);
    }
    return s;
}

static enum status call_problem(const struct store_call *c)
{
    struct due_row row = progress_of(2);
    enum status s = store_mark_problem(c, row.schedule, row.step, "because", NULL);
    assert_int_equal(progress_of(2).step, row.step + (s == STATUS_OK ? 1 : 0));
    return s;
}

static enum status call_tend(const struct store_call *c)
{
    struct tended t;
    return store_tend(c, (struct tend_terms){.limit = 10}, (struct tend_clock){UTC_NONE, UTC_NONE},
                      &t, NULL);
}

static enum status call_ack(const struct store_call *c)
{
    int64_t ids[] = {INT64_C(999999999)};
    size_t count = 1;
    return store_outbox_ack(c, ids, &count, NULL);
}

static enum status call_bury(const struct store_call *c)
{
    bool buried = true;
    enum status s = store_outbox_bury(c, INT64_C(999999999), "too large", &buried, NULL);
    assert_true(s != STATUS_OK || !buried);
    return s;
}

static enum status call_trim(const struct store_call *c)
{
    int64_t dropped = -1;
    enum status s = store_outbox_trim(c, 100000, &dropped, NULL);
    assert_true(s != STATUS_OK || dropped == 0);
    return s;
}

static void test_only_the_accepted_authority_may_do_anything(void **state)
{
    static const struct {
        const char *name;
        enum status (*make)(const struct store_call *c);
    } calls[] = {{"register", call_register},    {"activated", call_activated},
                 {"check", call_check},          {"plan_batch", call_plan},
                 {"take_in", call_take_in},      {"tend", call_tend},
                 {"mark_problem", call_problem}, {"outbox_ack", call_ack},
                 {"outbox_bury", call_bury},     {"outbox_trim", call_trim}};
    struct authority twin = leader;
    struct authority older = leader;
    struct authority newer = leader;
    struct authority elsewhere = leader;
    (void)state;
    uuid_random(twin.owner);
    older.generation--;
    newer.generation++;
    elsewhere.incarnation++;
    const struct {
        const char *name;
        const struct authority *a;
        enum status expected;
    } who[] = {{"the leader", &leader, STATUS_OK},
               {"another owner of its generation", &twin, STATUS_FENCED},
               {"a lower generation", &older, STATUS_FENCED},
               {"a higher one that has not established", &newer, STATUS_FENCED},
               {"another incarnation", &elsewhere, STATUS_FENCED}};
    for (int i = 0; i < 3; i++) {
        schedule_new(i, "allow", 0);
    }
    for (size_t w = 0; w < sizeof who / sizeof who[0]; w++) {
        for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
            struct store_call call = by(who[w].a);
            enum status s = calls[i].make(&call);
            if (s != who[w].expected) {
                fail_msg("%s by %s: %s", calls[i].name, who[w].name, status_name(s));
            }
        }
    }
    assert_int_equal(fence_release(lead, &leader, "stopped", soon(), NULL), STATUS_OK);
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct store_call call = by(&leader);
        if (i != 3 && i != 4 && calls[i].make(&call) != STATUS_FENCED) {
            fail_msg("%s after the release", calls[i].name);
        }
    }
}

static void test_the_fence_goes_to_higher_generations_only(void **state)
{
    (void)state;
    struct authority twin = leader;
    struct authority older = leader;
    struct authority unknown = leader;
    struct fence_row row;
    uuid_random(twin.owner);
    uuid_random(older.owner);
    older.generation--;
    unknown.incarnation = 7;
    assert_int_equal(step_establish(lead, &leader), STATUS_OK); /* again, after a lost answer */
    assert_int_equal(step_establish(lead, &twin), STATUS_FENCED);
    assert_int_equal(step_establish(lead, &older), STATUS_FENCED);
    assert_int_equal(step_establish(lead, &unknown), STATUS_INVALID);
    struct authority next = candidate();
    assert_int_equal(step_establish(lead, &next), STATUS_OK);
    assert_int_equal(step_establish(lead, &leader), STATUS_FENCED);
    assert_int_equal(fence_release(lead, &leader, "stopped", soon(), NULL), STATUS_FENCED);
    assert_int_equal(fence_read(lead, "main", soon(), &row, NULL), STATUS_OK);
    assert_true(row.incarnation == 1 && row.generation == next.generation);
    assert_false(row.released || row.held);
}

static void test_a_release_is_repeated_without_harm_and_ends_the_generation(void **state)
{
    (void)state;
    struct fence_row row;
    assert_int_equal(fence_release(lead, &leader, "stopped", soon(), NULL), STATUS_OK);
    assert_int_equal(fence_release(lead, &leader, "stopped", soon(), NULL), STATUS_OK);
    assert_int_equal(fence_read(lead, "main", soon(), &row, NULL), STATUS_OK);
    assert_true(row.released);
    assert_int_equal(step_establish(lead, &leader), STATUS_FENCED);
    struct authority next = candidate();
    assert_int_equal(step_establish(lead, &next), STATUS_OK);
    assert_int_equal(fence_read(lead, "main", soon(), &row, NULL), STATUS_OK);
    assert_false(row.released);
}

static void test_older_backends_are_ended_only_by_a_higher_generation(void **state)
{
    (void)state;
    struct authority next = candidate();
    struct store *other = contract_db_open(SIDE_SURE, STORE_SCHEDULER);
    int64_t ended = -1;
    assert_int_equal(fence_terminate(lead, &leader, soon(), &ended, NULL), STATUS_OK);
    assert_int_equal(ended, 0);
    assert_int_equal(step_establish(other, &next), STATUS_OK);
    assert_int_equal(fence_terminate(lead, &leader, soon(), &ended, NULL), STATUS_OK);
    assert_int_equal(ended, 0); /* the old one, awake again, ends nobody */
    store_close(other);
}

static void test_the_first_ensemble_is_adopted_and_another_is_refused(void **state)
{
    (void)state;
    enum fence_ensemble meeting = FENCE_ENSEMBLE_ADOPTED;
    int64_t incarnation = 77;
    assert_int_equal(fence_meet(lead, "e-two", "contract", soon(), &meeting, &incarnation, NULL),
                     STATUS_OK);
    assert_int_equal(meeting, FENCE_ENSEMBLE_UNKNOWN);
    assert_int_equal(incarnation, 77);
    assert_int_equal(fence_meet(lead, "e-one", "contract", soon(), &meeting, &incarnation, NULL),
                     STATUS_OK);
    assert_int_equal(meeting, FENCE_ENSEMBLE_KNOWN);
    assert_int_equal(incarnation, 1);
}

static void test_a_hold_stops_planning_claims_and_leading_and_nothing_that_ends(void **state)
{
    (void)state;
    char running[UUID_TEXT_MAX], queued[UUID_TEXT_MAX], none[UUID_TEXT_MAX];
    char token[UUID_TEXT_MAX], other[UUID_TEXT_MAX];
    bool written = true;
    struct fence_row row;
    struct authority next = candidate();
    schedule_new(0, "allow", 0);
    step_plan(0, "a", running);
    step_plan(0, "b", queued);
    step_claim(running, token);
    contract_db_hold();
    assert_int_equal(
        plan_as(&leader, (struct plan){.schedule = 0, .key = "c"}, none, &written, NULL),
        STATUS_HELD);
    assert_string_equal(contract_db_state(none), "");
    struct store_call call = by(&leader);
    assert_int_equal(store_authority_check(&call, NULL), STATUS_HELD);
    assert_int_equal(step_establish(lead, &next), STATUS_HELD);
    assert_int_equal(fence_read(lead, "main", soon(), &row, NULL), STATUS_OK);
    assert_true(row.held && row.generation == leader.generation);
    claim_as(me, queued, other);
    assert_string_equal(other, "");
    assert_true(beat_as(me, running, token).held);
    assert_int_equal(step_report(running, token, OUTCOME_SUCCEEDED, false), VERDICT_DONE);
    (void)step_tend();
    contract_db_lift();
    claim_as(me, queued, other);
    assert_true(other[0] != '\0');
    assert_int_equal(step_establish(lead, &next), STATUS_OK);
}

static void test_a_database_that_does_not_know_a_job_is_held_until_it_is_forgiven(void **state)
{
    (void)state;
    struct authority next = candidate();
    struct fence_row row;
    char unknown[UUID_TEXT_MAX];
    uuid_time_ordered((utc_us){now_there().us - HOUR_US}, unknown);
    const struct fence_member marked = {.name = "contract", .mark = unknown};
    const struct fence_member remembering = {.name = "contract", .acknowledged = unknown};
    assert_int_equal(fence_register(lead, &leader, unknown, soon(), NULL), STATUS_CONFLICT);
    assert_int_equal(fence_establish(lead, &next, &marked, soon(), NULL), STATUS_HELD);
    assert_int_equal(fence_establish(lead, &next, &remembering, soon(), NULL), STATUS_HELD);
    assert_int_equal(fence_read(lead, "main", soon(), &row, NULL), STATUS_OK);
    assert_true(row.held && row.generation == leader.generation);
    contract_db_lift();
    assert_int_equal(fence_establish(lead, &next, &marked, soon(), NULL), STATUS_OK);
    assert_int_equal(fence_register(lead, &next, unknown, soon(), NULL), STATUS_OK);
}

static void test_a_restored_ensemble_is_recorded_only_with_a_proof(void **state)
{
    (void)state;
    struct authority low = leader;
    struct fence_proof proof = {.member = "contract"};
    struct fence_row row;
    uuid_random(low.owner);
    low.generation -= 5;
    proof.read = low.generation - 1; /* its number was above what it had read */
    assert_int_equal(fence_prove_regressed(lead, &low, &proof, soon(), NULL), STATUS_CONFLICT);
    proof.read = leader.generation + 1; /* nobody can have read that */
    assert_int_equal(fence_prove_regressed(lead, &low, &proof, soon(), NULL), STATUS_CONFLICT);
    proof.read = leader.generation;
    assert_int_equal(fence_prove_regressed(lead, &low, &proof, soon(), NULL), STATUS_OK);
    assert_int_equal(fence_read(lead, "main", soon(), &row, NULL), STATUS_OK);
    assert_true(row.held);
}

int contract_store_fence(void)
{
    const struct CMUnitTest tests[] = {
        STORE_CASE(test_only_the_accepted_authority_may_do_anything),
        STORE_CASE(test_the_fence_goes_to_higher_generations_only),
        STORE_CASE(test_a_release_is_repeated_without_harm_and_ends_the_generation),
        STORE_CASE(test_older_backends_are_ended_only_by_a_higher_generation),
        STORE_CASE(test_the_first_ensemble_is_adopted_and_another_is_refused),
        STORE_CASE(test_a_hold_stops_planning_claims_and_leading_and_nothing_that_ends),
        STORE_CASE(test_a_database_that_does_not_know_a_job_is_held_until_it_is_forgiven),
        STORE_CASE(test_a_restored_ensemble_is_recorded_only_with_a_proof),
    };
    return cmocka_run_group_tests_name("contract_store_fence", tests, NULL, NULL);
}
