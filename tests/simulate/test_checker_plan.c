/* I3, I4 and I9, failovers and the end: for each a history that breaks it and one that just does
 * not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_story.h"

/* I3, I9 --------------------------------------------------------------------------------------- */

static void test_an_occurrence_made_twice_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan(s, FIRST, 0, 0);
    send_call(s, FIRST, OP_PLAN_BATCH);
    row(s, occurrence(FIRST, 0, firing(0), 900));
    row(s, job(0, 900, JOB_QUEUED));
    row(s, message(s, 900));
    done(s, FIRST, OP_PLAN_BATCH, VERDICT_OK);
    assert_broken(s, "I3");
}

static void test_a_firing_passed_over_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    pass(s, STORY_SECOND);
    send_call(s, FIRST, OP_PLAN_BATCH);
    row(s, occurrence(FIRST, 0, firing(1), 2));
    row(s, job(0, 2, JOB_QUEUED));
    row(s, message(s, 2));
    row(s, progress(0, 2, firing(1)));
    done(s, FIRST, OP_PLAN_BATCH, VERDICT_OK);
    assert_broken(s, "I3");
}

static void plan_second_with_gap(struct story *s, int64_t firings)
{
    pass(s, 70 * STORY_SECOND);
    beat(s, 0, 1000);
    send_call(s, FIRST, OP_PLAN_BATCH);
    row(s, (struct fact){.kind = FACT_ROW_GAP,
                         .id = 1,
                         .version = 1,
                         .gap = GAP_BY_LATEST,
                         .from_us = firing(0),
                         .to_us = firing(0),
                         .firings = firings});
    row(s, occurrence(FIRST, 0, firing(1), 2));
    row(s, job(0, 2, JOB_QUEUED));
    row(s, message(s, 2));
    row(s, progress(0, 2, firing(1)));
    done(s, FIRST, OP_PLAN_BATCH, VERDICT_OK);
}

static void test_a_firing_in_a_gap_is_not_lost(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan_second_with_gap(s, 1);
    assert_broken(s, "");
}

static void test_a_gap_that_counts_wrong_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan_second_with_gap(s, 2);
    assert_broken(s, "I3");
}

static void test_a_firing_within_its_grace_is_not_put_into_a_gap(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    send_call(s, FIRST, OP_PLAN_BATCH);
    row(s, (struct fact){.kind = FACT_ROW_GAP,
                         .id = 1,
                         .version = 1,
                         .gap = GAP_BY_SKIP,
                         .from_us = firing(0),
                         .to_us = firing(0),
                         .firings = 1});
    row(s, progress(0, 2, firing(0)));
    done(s, FIRST, OP_PLAN_BATCH, VERDICT_OK);
    assert_broken(s, "I3");
}

static void test_progress_that_goes_back_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan(s, FIRST, 0, 0);
    pass(s, STORY_SECOND);
    plan(s, FIRST, 0, 1);
    send_call(s, FIRST, OP_PLAN_BATCH);
    row(s, progress(0, 4, firing(0)));
    done(s, FIRST, OP_PLAN_BATCH, VERDICT_OK);
    assert_broken(s, "I3");
}

static void test_a_firing_of_the_old_version_after_the_switch_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    send_work(s, 0, OP_EDIT);
    row(s, (struct fact){.kind = FACT_ROW_VERSION,
                         .version = 2,
                         .effective_us = story_db(s),
                         .recipe = &s->recipes[3]});
    int64_t effective = story_db(s) - 1000;
    done_work(s, 0, OP_EDIT);
    plan(s, FIRST, 0, 0);
    plan(s, FIRST, 0, 1);
    send_call(s, FIRST, OP_TAKE_IN);
    struct fact taken = progress(0, 4, firing(1));
    taken.version = 2;
    taken.switched_us = effective;
    row(s, taken);
    done(s, FIRST, OP_TAKE_IN, VERDICT_OK);
    assert_string_equal(broken(s), "");
    pass(s, STORY_SECOND);
    plan(s, FIRST, 0, 2);
    assert_broken(s, "I3");
}

static void test_a_firing_before_its_time_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan(s, FIRST, 0, 0);
    plan(s, FIRST, 0, 1);
    assert_string_equal(broken(s), "");
    plan(s, FIRST, 0, 2);
    assert_broken(s, "I9");
}

static void test_a_firing_that_the_rule_does_not_name_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    send_call(s, FIRST, OP_PLAN_BATCH);
    struct fact f = occurrence(FIRST, 0, firing(0), 1);
    f.fire_us += 1;
    row(s, f);
    row(s, job(0, 1, JOB_QUEUED));
    row(s, message(s, 1));
    done(s, FIRST, OP_PLAN_BATCH, VERDICT_OK);
    assert_broken(s, "I3");
}

/* I4 ------------------------------------------------------------------------------------------- */

static void test_an_occurrence_without_its_job_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    send_call(s, FIRST, OP_PLAN_BATCH);
    row(s, occurrence(FIRST, 0, firing(0), 1));
    row(s, progress(0, 2, firing(0)));
    done(s, FIRST, OP_PLAN_BATCH, VERDICT_OK);
    assert_broken(s, "I4");
}

static void test_a_queued_job_without_its_message_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    send_call(s, FIRST, OP_PLAN_BATCH);
    row(s, occurrence(FIRST, 0, firing(0), 1));
    row(s, job(0, 1, JOB_QUEUED));
    row(s, progress(0, 2, firing(0)));
    done(s, FIRST, OP_PLAN_BATCH, VERDICT_OK);
    assert_broken(s, "I4");
}

/* Failover ------------------------------------------------------------------------------------- */

static void lose_last_call(struct story *s)
{
    tell(s, (struct fact){.kind = FACT_FAILOVER, .number = 1});
    tell(s, (struct fact){.kind = FACT_LOST, .call = s->call});
}

static void test_what_a_failover_lost_may_be_made_again(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan(s, FIRST, 0, 0);
    lose_last_call(s);
    plan(s, FIRST, 0, 0);
    assert_broken(s, "");
}

static void test_what_a_failover_kept_may_not_be_made_again(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan(s, FIRST, 0, 0);
    plan(s, FIRST, 1, 0);
    lose_last_call(s);
    plan(s, FIRST, 0, 0);
    assert_broken(s, "I3");
}

static void test_a_run_whose_claim_was_lost_is_not_counted(void **state_)
{
    (void)state_;
    struct story *s = running_job();
    lose_last_call(s);
    claim(s, OTHER_WORKER, 0, 1, 72);
    assert_broken(s, "");
}

/* Liveness ------------------------------------------------------------------------------------- */

static void test_an_end_without_a_leader_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    state(s, FIRST, STATE_ACTIVE, STATE_DOWN);
    tell(s, (struct fact){.kind = FACT_FAULTS_OVER});
    pass(s, 29 * STORY_SECOND);
    tell(s, (struct fact){.kind = FACT_END}); /* too early to tell */
    assert_string_equal(broken(s), "");
    pass(s, STORY_SECOND);
    tell(s, (struct fact){.kind = FACT_END});
    assert_broken(s, "liveness");
}

static void test_an_end_with_a_due_firing_left_over_is_seen(void **state_)
{
    (void)state_;
    struct story *s = story_begin();
    begin_scheduler(s, 0);
    enroll(s, FIRST);
    lead(s, FIRST);
    make_schedule(s, FIRST, 0);
    tell(s, (struct fact){.kind = FACT_FAULTS_OVER});
    pass(s, 31 * STORY_SECOND);
    tell(s, (struct fact){.kind = FACT_END});
    assert_broken(s, "liveness");
}

/* A firing a second; each job is done at once, but for one (-1: none). */
static void work_for(struct story *s, int64_t seconds, int64_t left_out)
{
    begin_scheduler(s, 0);
    enroll(s, FIRST);
    lead(s, FIRST);
    make_schedule(s, FIRST, 0);
    tell(s, (struct fact){.kind = FACT_FAULTS_OVER});
    for (int64_t n = 0; n < seconds; n++) {
        uint64_t number = (uint64_t)n + 1, token = 1000 + number;
        pass(s, STORY_SECOND - 3000);
        beat(s, 0, 1000);
        plan(s, FIRST, 0, n);
        if (n == left_out) {
            continue;
        }
        claim(s, WORKER, 0, number, token);
        tell(s,
             (struct fact){.kind = FACT_RUN_ENDED, .node = WORKER, .job = number, .token = token});
        send_work(s, WORKER, OP_RECORD_OUTCOMES);
        row(s, (struct fact){.kind = FACT_ROW_ATTEMPT, .job = number, .token = token});
        row(s, job(0, number, JOB_SUCCEEDED));
        done_work(s, WORKER, OP_RECORD_OUTCOMES);
    }
    tell(s, (struct fact){.kind = FACT_END});
}

static void test_an_end_with_a_leader_and_nothing_due_is_right(void **state_)
{
    (void)state_;
    struct story *s = story_begin();
    work_for(s, 70, -1);
    assert_broken(s, "");
}

static void test_an_end_with_a_job_that_nobody_did_is_seen(void **state_)
{
    (void)state_;
    struct story *s = story_begin();
    work_for(s, 70, 0);
    assert_broken(s, "liveness");
}

static void test_an_end_with_a_job_that_is_young_is_right(void **state_)
{
    (void)state_;
    struct story *s = story_begin();
    work_for(s, 70, 20);
    assert_broken(s, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_occurrence_made_twice_is_seen),
        cmocka_unit_test(test_a_firing_passed_over_is_seen),
        cmocka_unit_test(test_a_firing_in_a_gap_is_not_lost),
        cmocka_unit_test(test_a_gap_that_counts_wrong_is_seen),
        cmocka_unit_test(test_a_firing_within_its_grace_is_not_put_into_a_gap),
        cmocka_unit_test(test_progress_that_goes_back_is_seen),
        cmocka_unit_test(test_a_firing_of_the_old_version_after_the_switch_is_seen),
        cmocka_unit_test(test_a_firing_before_its_time_is_seen),
        cmocka_unit_test(test_a_firing_that_the_rule_does_not_name_is_seen),
        cmocka_unit_test(test_an_occurrence_without_its_job_is_seen),
        cmocka_unit_test(test_a_queued_job_without_its_message_is_seen),
        cmocka_unit_test(test_what_a_failover_lost_may_be_made_again),
        cmocka_unit_test(test_what_a_failover_kept_may_not_be_made_again),
        cmocka_unit_test(test_a_run_whose_claim_was_lost_is_not_counted),
        cmocka_unit_test(test_an_end_without_a_leader_is_seen),
        cmocka_unit_test(test_an_end_with_a_due_firing_left_over_is_seen),
        cmocka_unit_test(test_an_end_with_a_leader_and_nothing_due_is_right),
        cmocka_unit_test(test_an_end_with_a_job_that_nobody_did_is_seen),
        cmocka_unit_test(test_an_end_with_a_job_that_is_young_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
