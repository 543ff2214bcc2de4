/* I5 to I7, overlap, capacity and holds: for each a history that breaks it and one that just does
 * not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_story.h"

/* I5 ------------------------------------------------------------------------------------------- */

static void acknowledge(struct story *s, bool reported)
{
    plan(s, FIRST, 0, 0);
    tell(s, (struct fact){.kind = FACT_PRODUCED, .id = 1, .job = 1});
    if (reported) {
        tell(s, (struct fact){.kind = FACT_REPORTED, .id = 1, .job = 1, .known = true});
    }
    send_call(s, FIRST, OP_OUTBOX_ACK);
    row(s, (struct fact){.kind = FACT_ROW_OUTBOX_GONE, .id = 1});
    done(s, FIRST, OP_OUTBOX_ACK, VERDICT_OK);
}

static void test_a_message_deleted_before_its_report_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    acknowledge(s, false);
    assert_broken(s, "I5");
}

static void test_a_message_deleted_after_its_report_is_right(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    acknowledge(s, true);
    assert_broken(s, "");
}

/* I6, I7 --------------------------------------------------------------------------------------- */

static void test_a_job_claimed_twice_is_seen(void **state_)
{
    (void)state_;
    struct story *s = running_job();
    claim(s, OTHER_WORKER, 0, 1, 72);
    assert_broken(s, "I6");
}

static void renew(struct story *s, uint64_t asked, uint64_t renewed)
{
    send_work(s, WORKER, OP_HEARTBEAT);
    tell(s,
         (struct fact){
             .kind = FACT_RENEW_ASKED, .node = WORKER, .call = s->call, .job = 1, .token = asked});
    row(s, (struct fact){.kind = FACT_RENEWED,
                         .job = 1,
                         .token = renewed,
                         .lease_us = story_db(s) + 6 * STORY_SECOND});
    done_work(s, WORKER, OP_HEARTBEAT);
}

static void test_a_heartbeat_renews_what_it_lists(void **state_)
{
    (void)state_;
    struct story *s = running_job();
    renew(s, 71, 71);
    assert_broken(s, "");
}

static void test_a_heartbeat_that_renews_more_than_it_lists_is_seen(void **state_)
{
    (void)state_;
    struct story *s = running_job();
    renew(s, 70, 71);
    assert_broken(s, "I6");
}

static void end_by_outcome(struct story *s, uint64_t token, bool with_artifact)
{
    send_work(s, WORKER, OP_RECORD_OUTCOMES);
    row(s, (struct fact){.kind = FACT_ROW_ATTEMPT, .job = 1, .token = token, .attempt = 1});
    row(s, job(0, 1, JOB_SUCCEEDED));
    if (with_artifact) {
        row(s, (struct fact){.kind = FACT_ROW_ARTIFACT, .job = 1, .token = token, .attempt = 1});
    }
    done_work(s, WORKER, OP_RECORD_OUTCOMES);
}

static void test_an_outcome_of_the_claim_makes_its_artifact_visible(void **state_)
{
    (void)state_;
    struct story *s = running_job();
    end_by_outcome(s, 71, true);
    assert_broken(s, "");
}

static void test_an_outcome_of_another_token_is_seen(void **state_)
{
    (void)state_;
    struct story *s = running_job();
    end_by_outcome(s, 70, false);
    assert_broken(s, "I6");
}

static void test_an_artifact_of_another_token_is_seen(void **state_)
{
    (void)state_;
    struct story *s = running_job();
    send_work(s, WORKER, OP_RECORD_OUTCOMES);
    row(s, (struct fact){.kind = FACT_ROW_ARTIFACT, .job = 1, .token = 70, .attempt = 1});
    done_work(s, WORKER, OP_RECORD_OUTCOMES);
    assert_broken(s, "I7");
}

static void reap(struct story *s, int64_t after, bool run_over)
{
    pass(s, after);
    beat(s, 0, 1000);
    if (run_over) {
        tell(s, (struct fact){.kind = FACT_RUN_ENDED, .node = WORKER, .job = 1, .token = 71});
    }
    send_call(s, FIRST, OP_TEND);
    row(s, (struct fact){.kind = FACT_ROW_ATTEMPT, .job = 1, .token = 71, .attempt = 1});
    row(s, job(0, 1, JOB_RETRY_WAIT));
    done(s, FIRST, OP_TEND, VERDICT_OK);
}

static void test_a_claim_reaped_before_its_lease_and_grace_is_seen(void **state_)
{
    (void)state_;
    struct story *s = running_job();
    reap(s, 7 * STORY_SECOND, true);
    assert_broken(s, "I6");
}

static void test_a_claim_reaped_after_lease_and_grace_is_right(void **state_)
{
    (void)state_;
    struct story *s = running_job();
    reap(s, 8 * STORY_SECOND + 100000, true);
    assert_broken(s, "");
}

static void test_a_claim_reaped_while_its_job_runs_is_seen(void **state_)
{
    (void)state_;
    struct story *s = running_job();
    reap(s, 9 * STORY_SECOND, false);
    assert_broken(s, "I6");
}

/* Overlap, capacity, holds --------------------------------------------------------------------- */

static void test_two_active_jobs_of_a_schedule_that_queues_are_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan(s, FIRST, 2, 0);
    plan(s, FIRST, 2, 1);
    assert_broken(s, "overlap");
}

static void test_a_job_that_waits_for_the_one_before_is_right(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan(s, FIRST, 2, 0);
    send_call(s, FIRST, OP_PLAN_BATCH);
    row(s, occurrence(FIRST, 2, firing(1), 202));
    struct fact waiting = job(2, 202, JOB_WAITING);
    waiting.waits = WAITS_FOR_OVERLAP;
    row(s, waiting);
    row(s, progress(2, 3, firing(1)));
    done(s, FIRST, OP_PLAN_BATCH, VERDICT_OK);
    assert_broken(s, "");
}

static void test_a_forbidden_overlap_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan(s, FIRST, 1, 0);
    plan(s, FIRST, 1, 1);
    assert_broken(s, "overlap");
}

static void test_a_queue_beyond_its_bound_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers(); /* the bound is 3 */
    pass(s, 3 * STORY_SECOND);
    plan(s, FIRST, 0, 0);
    plan(s, FIRST, 0, 1);
    plan(s, FIRST, 0, 2);
    assert_string_equal(broken(s), "");
    plan(s, FIRST, 0, 3);
    assert_broken(s, "capacity");
}

/* A missed firing of schedule 0, which may run at once. */
static void catch_up(struct story *s, int64_t n)
{
    uint64_t number = (uint64_t)n + 1;
    struct fact queued = job(0, number, JOB_QUEUED);
    queued.run_after_us = firing(n);
    queued.catch_up = true;
    send_call(s, FIRST, OP_PLAN_BATCH);
    row(s, occurrence(FIRST, 0, firing(n), number));
    row(s, queued);
    row(s, message(s, number));
    row(s, progress(0, n + 2, firing(n)));
    done(s, FIRST, OP_PLAN_BATCH, VERDICT_OK);
}

static void test_more_missed_firings_in_a_minute_than_the_budget_are_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers(); /* the budget is 2 */
    pass(s, 3 * STORY_SECOND);
    catch_up(s, 0);
    catch_up(s, 1);
    assert_string_equal(broken(s), "");
    catch_up(s, 2);
    assert_broken(s, "capacity");
}

static void hold(struct story *s)
{
    send_work(s, 0, OP_RAISE_HOLD);
    row(s, (struct fact){.kind = FACT_ROW_HOLD, .id = 1, .scope = -1});
    done_work(s, 0, OP_RAISE_HOLD);
}

static void test_planning_while_held_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    hold(s);
    plan(s, FIRST, 0, 0);
    assert_broken(s, "hold");
}

static void test_claiming_while_held_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    plan(s, FIRST, 0, 0);
    hold(s);
    claim(s, WORKER, 0, 1, 71);
    assert_broken(s, "hold");
}

static void test_leading_on_a_database_behind_the_mark_is_seen(void **state_)
{
    (void)state_;
    struct story *s = two_schedulers();
    tell(s, (struct fact){.kind = FACT_MARK_BEHIND, .node = 0});
    state(s, FIRST, STATE_PREPARING, STATE_ACTIVE);
    assert_broken(s, "hold");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message_deleted_before_its_report_is_seen),
        cmocka_unit_test(test_a_message_deleted_after_its_report_is_right),
        cmocka_unit_test(test_a_job_claimed_twice_is_seen),
        cmocka_unit_test(test_a_heartbeat_renews_what_it_lists),
        cmocka_unit_test(test_a_heartbeat_that_renews_more_than_it_lists_is_seen),
        cmocka_unit_test(test_an_outcome_of_the_claim_makes_its_artifact_visible),
        cmocka_unit_test(test_an_outcome_of_another_token_is_seen),
        cmocka_unit_test(test_an_artifact_of_another_token_is_seen),
        cmocka_unit_test(test_a_claim_reaped_before_its_lease_and_grace_is_seen),
        cmocka_unit_test(test_a_claim_reaped_after_lease_and_grace_is_right),
        cmocka_unit_test(test_a_claim_reaped_while_its_job_runs_is_seen),
        cmocka_unit_test(test_two_active_jobs_of_a_schedule_that_queues_are_seen),
        cmocka_unit_test(test_a_job_that_waits_for_the_one_before_is_right),
        cmocka_unit_test(test_a_forbidden_overlap_is_seen),
        cmocka_unit_test(test_a_queue_beyond_its_bound_is_seen),
        cmocka_unit_test(test_more_missed_firings_in_a_minute_than_the_budget_are_seen),
        cmocka_unit_test(test_planning_while_held_is_seen),
        cmocka_unit_test(test_claiming_while_held_is_seen),
        cmocka_unit_test(test_leading_on_a_database_behind_the_mark_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
