/* I1, I2, I8, I11 and the order of candidates: for each a history that breaks it and one that just
 * does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_story.h"

static void test_an_ordinary_life_breaks_nothing(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan(s, FIRST, 0, 0);
    claim(s, WORKER, 0, 1, 71);
    take_over(s);
    plan(s, SECOND, 0, 1);
    assert_broken(s, "");
}

/* I1, I2 --------------------------------------------------------------------------------------- */

static void test_a_write_of_the_generation_before_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    take_over(s);
    beat(s, 0, 1000);
    plan(s, FIRST, 0, 0);
    assert_broken(s, "I1");
}

static void test_a_late_write_that_is_refused_is_right(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    send_call(s, FIRST, OP_PLAN_BATCH);
    int64_t late = s->call;
    take_over(s);
    s->call = late;
    done(s, FIRST, OP_PLAN_BATCH, VERDICT_FENCED);
    assert_broken(s, "");
}

static void test_going_on_after_a_refusal_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    send_call(s, FIRST, OP_PLAN_BATCH);
    int64_t late = s->call;
    take_over(s);
    s->call = late;
    done(s, FIRST, OP_PLAN_BATCH, VERDICT_FENCED);
    s->call += 100;
    beat(s, 0, 1000);
    send_call(s, FIRST, OP_TEND);
    assert_broken(s, "I1");
}

static void test_a_refusal_that_writes_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    send_call(s, FIRST, OP_PLAN_BATCH);
    int64_t late = s->call;
    take_over(s);
    s->call = late;
    row(s, progress(0, 2, firing(0)));
    done(s, FIRST, OP_PLAN_BATCH, VERDICT_FENCED);
    assert_broken(s, "I1");
}

static void test_the_leader_that_is_refused_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    send_call(s, FIRST, OP_TEND);
    done(s, FIRST, OP_TEND, VERDICT_FENCED);
    assert_broken(s, "I1");
}

static void test_a_fence_that_goes_back_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    take_over(s);
    beat(s, 0, 1000);
    lead(s, (struct caller){.node = 0, .generation = 100});
    assert_broken(s, "I2");
}

static void test_establishing_again_with_the_same_owner_is_right(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    tell(s, (struct fact){.kind = FACT_DISCONNECTED, .node = 0});
    state(s, FIRST, STATE_ACTIVE, STATE_SUSPENDED);
    beat(s, 0, 1000);
    state(s, FIRST, STATE_SUSPENDED, STATE_ESTABLISHING);
    lead(s, FIRST);
    assert_broken(s, "");
}

/* I8 ------------------------------------------------------------------------------------------- */

static void test_a_decision_is_judged_by_the_sending_of_the_beat(void **state_)
{
    (void)state_;
    /* T 10 s - tick 1 s - beat 1 s - margin 1 s: 7 s from the sending. */
    struct story *s = two_schedulers();
    beat(s, 0, 2 * STORY_SECOND);
    pass(s, 5 * STORY_SECOND - 100000);
    send_call(s, FIRST, OP_TEND);
    done(s, FIRST, OP_TEND, VERDICT_OK);
    assert_string_equal(broken(s), "");
    pass(s, 100000);
    send_call(s, FIRST, OP_TEND);
    assert_broken(s, "I8");
}

static void count_lease(struct story *s, int64_t beyond)
{
    int64_t sent = s->now_us;
    beat(s, 0, 500000);
    tell(s, (struct fact){.kind = FACT_LEASE, .node = 0, .until_us = sent + 7000000 + beyond});
}

static void test_a_lease_counted_from_the_sending_is_right(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    count_lease(s, 0);
    assert_broken(s, "");
}

static void test_a_lease_counted_from_the_answer_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    count_lease(s, 500000);
    assert_broken(s, "I8");
}

static void test_a_decision_while_suspended_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    tell(s, (struct fact){.kind = FACT_DISCONNECTED, .node = 0});
    send_call(s, FIRST, OP_TEND);
    assert_broken(s, "I8");
}

static void test_a_session_that_expires_before_the_lease_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    tell(s, (struct fact){.kind = FACT_SESSION_ENDED,
                          .node = 0,
                          .session = 500,
                          .candidate_end = CANDIDATE_EXPIRED});
    assert_broken(s, "I8");
}

static void test_resuming_after_the_lease_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    tell(s, (struct fact){.kind = FACT_DISCONNECTED, .node = 0});
    state(s, FIRST, STATE_ACTIVE, STATE_SUSPENDED);
    pass(s, 9 * STORY_SECOND);
    beat(s, 0, 1000);
    state(s, FIRST, STATE_SUSPENDED, STATE_ESTABLISHING);
    assert_broken(s, "I8");
}

/* A scope that waits for the database hears late that its session was confirmed in time, and
 * at once that it was lost since. */
static void test_a_resumption_heard_after_the_session_was_given_up_is_right(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    tell(s, (struct fact){.kind = FACT_DISCONNECTED, .node = 0});
    pass(s, 9 * STORY_SECOND);
    beat(s, 0, 1000);
    tell(s, (struct fact){.kind = FACT_SESSION_LOST, .node = 0, .session = 500});
    state(s, FIRST, STATE_ACTIVE, STATE_SUSPENDED);
    state(s, FIRST, STATE_SUSPENDED, STATE_ESTABLISHING);
    state(s, FIRST, STATE_ESTABLISHING, STATE_SUSPENDED);
    state(s, FIRST, STATE_SUSPENDED, STATE_DOWN);
    assert_broken(s, "");
}

static void test_a_decision_by_the_lease_of_another_session_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    tell(s, (struct fact){.kind = FACT_SESSION_LOST, .node = 0, .session = 500});
    tell(s, (struct fact){.kind = FACT_SESSION_MADE, .node = 0, .session = 600});
    tell(s, (struct fact){.kind = FACT_SESSION_UP, .node = 0, .session = 600});
    beat(s, 0, 1000);
    send_call(s, FIRST, OP_TEND);
    assert_broken(s, "I8");
}

static void test_planning_in_a_state_that_may_not_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    state(s, FIRST, STATE_ACTIVE, STATE_ENROLLING);
    send_call(s, FIRST, OP_PLAN_BATCH);
    assert_broken(s, "I8");
}

/* I11 and the order of candidates -------------------------------------------------------------- */

static void release(struct story *s)
{
    state(s, FIRST, STATE_ACTIVE, STATE_RELEASING);
    send_call(s, FIRST, OP_RELEASE_FENCE);
    row(s, (struct fact){.kind = FACT_ROW_FENCE,
                         .incarnation = 1,
                         .generation = 100,
                         .owner = 1100,
                         .released = true});
    done(s, FIRST, OP_RELEASE_FENCE, VERDICT_OK);
    tell(s, (struct fact){.kind = FACT_CANDIDATE_GONE,
                          .generation = 100,
                          .candidate_end = CANDIDATE_DELETED});
}

static void test_a_release_with_work_under_way_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    send_call(s, FIRST, OP_OUTBOX_ACK);
    release(s);
    assert_broken(s, "I11");
}

static void test_a_release_after_the_work_is_right(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan(s, FIRST, 0, 0);
    release(s);
    lead(s, SECOND);
    assert_broken(s, "");
}

static void test_publishing_after_the_release_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan(s, FIRST, 0, 0);
    release(s);
    tell(s, (struct fact){.kind = FACT_PRODUCED, .id = 1, .job = 1});
    assert_broken(s, "I11");
}

static void test_taking_the_lead_past_a_candidate_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    state(s, SECOND, STATE_FOLLOWING, STATE_ESTABLISHING);
    assert_broken(s, "order");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_ordinary_life_breaks_nothing),
        cmocka_unit_test(test_a_write_of_the_generation_before_is_seen),
        cmocka_unit_test(test_a_late_write_that_is_refused_is_right),
        cmocka_unit_test(test_going_on_after_a_refusal_is_seen),
        cmocka_unit_test(test_a_refusal_that_writes_is_seen),
        cmocka_unit_test(test_the_leader_that_is_refused_is_seen),
        cmocka_unit_test(test_a_fence_that_goes_back_is_seen),
        cmocka_unit_test(test_establishing_again_with_the_same_owner_is_right),
        cmocka_unit_test(test_a_decision_is_judged_by_the_sending_of_the_beat),
        cmocka_unit_test(test_a_lease_counted_from_the_sending_is_right),
        cmocka_unit_test(test_a_lease_counted_from_the_answer_is_seen),
        cmocka_unit_test(test_a_decision_while_suspended_is_seen),
        cmocka_unit_test(test_a_session_that_expires_before_the_lease_is_seen),
        cmocka_unit_test(test_resuming_after_the_lease_is_seen),
        cmocka_unit_test(test_a_resumption_heard_after_the_session_was_given_up_is_right),
        cmocka_unit_test(test_a_decision_by_the_lease_of_another_session_is_seen),
        cmocka_unit_test(test_planning_in_a_state_that_may_not_is_seen),
        cmocka_unit_test(test_a_release_with_work_under_way_is_seen),
        cmocka_unit_test(test_a_release_after_the_work_is_right),
        cmocka_unit_test(test_publishing_after_the_release_is_seen),
        cmocka_unit_test(test_taking_the_lead_past_a_candidate_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
