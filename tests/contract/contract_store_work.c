/* store_claim.h, store_outbox.h, and answers that do not come. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store_steps.h"

/* Claims and outcomes -------------------------------------------------------------------------- */

static void test_a_job_is_claimed_once(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX], token[UUID_TEXT_MAX], again[UUID_TEXT_MAX], other[UUID_TEXT_MAX];
    struct job_list list = {.count = 99};
    uuid_random(other);
    assert_int_equal(register_worker(other), STATUS_OK);
    schedule_new(0, "allow", 0);
    step_plan(0, "a", job);
    step_claim(job, token);
    claim_as(me, job, again);
    assert_string_equal(again, "");
    claim_as(other, job, again);
    assert_string_equal(again, "");
    uuid_random(again);
    claim_as(me, again, again); /* nobody's */
    assert_string_equal(again, "");
    assert_int_equal(store_claims_of(work, me, soon(), &list, NULL), STATUS_OK);
    assert_int_equal(list.count, 1);
    assert_string_equal(list.jobs[0]->id, job);
    assert_string_equal(list.jobs[0]->token, token);
    assert_int_equal(list.jobs[0]->attempt, 1);
    job_list_free(&list);
    assert_int_equal(store_claims_of(work, other, soon(), &list, NULL), STATUS_OK);
    assert_int_equal(list.count, 0);
    job_list_free(&list);
}

static void test_ready_jobs_are_claimed_up_to_the_limit(void **state)
{
    (void)state;
    char jobs[3][UUID_TEXT_MAX];
    static const size_t expected[] = {2, 1, 0};
    schedule_new(0, "allow", 0);
    step_plan(0, "a", jobs[0]);
    step_plan(0, "b", jobs[1]);
    step_plan(0, "c", jobs[2]);
    for (size_t i = 0; i < 3; i++) {
        struct job_list list = {.count = 99};
        const struct claim_request request = {.worker = me, .queues = &queues, .count = 2};
        assert_int_equal(store_claim_ready(work, &request, soon(), &list, NULL), STATUS_OK);
        assert_int_equal(list.count, expected[i]);
        job_list_free(&list);
    }
}

static void test_an_outcome_counts_once_and_only_under_its_token(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX], token[UUID_TEXT_MAX], wrong[UUID_TEXT_MAX];
    schedule_new(0, "allow", 0);
    step_plan(0, "a", job);
    step_claim(job, token);
    uuid_random(wrong);
    assert_int_equal(step_report(job, wrong, OUTCOME_SUCCEEDED, false), VERDICT_LOST);
    assert_string_equal(contract_db_state(job), "running");
    assert_int_equal(step_report(job, token, OUTCOME_SUCCEEDED, false), VERDICT_DONE);
    assert_string_equal(contract_db_state(job), "succeeded");
    assert_int_equal(step_report(job, token, OUTCOME_SUCCEEDED, false), VERDICT_ALREADY);
    assert_int_equal(step_report(job, token, OUTCOME_FAILED, false), VERDICT_ALREADY);
    assert_string_equal(contract_db_state(job), "succeeded");
    assert_int_equal(step_report(wrong, token, OUTCOME_SUCCEEDED, false),
                     VERDICT_LOST); /* no such job */
    assert_false(beat_as(me, job, token).held);
}

static void test_what_an_outcome_comes_to(void **state)
{
    static const struct {
        enum outcome_kind kind;
        bool retryable, cancelled;
        const char *state;
        enum outcome_verdict verdict;
    } cases[] = {
        {OUTCOME_SUCCEEDED, false, false, "succeeded", VERDICT_DONE},
        {OUTCOME_FAILED, true, false, "retry_wait", VERDICT_DONE},
        {OUTCOME_FAILED, false, false, "failed", VERDICT_DONE},
        {OUTCOME_TIMEOUT, true, false, "retry_wait", VERDICT_DONE},
        {OUTCOME_HANDED_BACK, false, false, "retry_wait", VERDICT_DONE},
        {OUTCOME_SUCCEEDED, false, true, "cancelled", VERDICT_OTHERWISE},
        {OUTCOME_CANCELLED, false, true, "cancelled", VERDICT_DONE},
        {OUTCOME_FAILED, true, true, "cancelled", VERDICT_DONE},
        {OUTCOME_HANDED_BACK, false, true, "cancelled", VERDICT_DONE},
    };
    (void)state;
    schedule_new(0, "allow", 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char job[UUID_TEXT_MAX], token[UUID_TEXT_MAX], key[16];
        print_message("%s%s%s\n", outcome_name(cases[i].kind),
                      cases[i].retryable ? " retryable" : "",
                      cases[i].cancelled ? " when asked to cancel" : "");
        (void)snprintf(key, sizeof key, "%zu", i);
        step_plan(0, key, job);
        step_claim(job, token);
        if (cases[i].cancelled) {
            contract_db_cancel(job);
            assert_true(beat_as(me, job, token).cancel);
        }
        assert_int_equal(step_report(job, token, cases[i].kind, cases[i].retryable),
                         cases[i].verdict);
        assert_string_equal(contract_db_state(job), cases[i].state);
    }
}

static void test_retries_are_used_up_and_one_handed_back_is_none(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX], token[UUID_TEXT_MAX];
    static const enum outcome_kind kinds[] = {OUTCOME_FAILED, OUTCOME_HANDED_BACK, OUTCOME_FAILED,
                                              OUTCOME_TIMEOUT};
    schedule_new(0, "allow", 0);
    step_plan(0, "a", job);
    for (size_t i = 0; i < 4; i++) {
        step_claim(job, token);
        assert_int_equal(step_report(job, token, kinds[i], true), VERDICT_DONE);
        assert_string_equal(contract_db_state(job), i < 3 ? "retry_wait" : "failed");
        contract_db_age(20 * MINUTE_US);
        assert_int_equal(store_heartbeat(work, me, NULL, 0, soon(), &no_reply, NULL), STATUS_OK);
        assert_int_equal(step_tend().released, i < 3 ? 1 : 0);
    }
}

static void test_a_heartbeat_renews_the_pairs_that_hold_and_no_others(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX], token[UUID_TEXT_MAX], wrong[UUID_TEXT_MAX], other[UUID_TEXT_MAX];
    uuid_random(other);
    uuid_random(wrong);
    assert_int_equal(register_worker(other), STATUS_OK);
    schedule_new(0, "allow", 0);
    step_plan(0, "a", job);
    step_claim(job, token);
    assert_true(beat_as(me, job, token).held);
    assert_false(beat_as(me, job, wrong).held);
    assert_false(beat_as(me, wrong, token).held);
    assert_false(beat_as(other, job, token).held);
    assert_false(beat_as(me, job, token).cancel);
}

static void test_a_lapsed_claim_is_reaped_and_not_before_the_pause_is_over(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX], kept[UUID_TEXT_MAX], token[UUID_TEXT_MAX], mine[UUID_TEXT_MAX];
    schedule_new(0, "allow", 0);
    step_plan(0, "a", job);
    step_plan(0, "b", kept);
    step_claim(job, token);
    step_claim(kept, mine);
    struct authority next = candidate();
    contract_db_age(30 * MINUTE_US);
    contract_db_silence(30 * MINUTE_US);
    /* Nobody has tended for longer than a lease: workers may have had no chance to renew. */
    assert_int_equal(step_establish(lead, &next), STATUS_OK);
    leader = next;
    assert_int_equal(step_tend().reaped, 0);
    assert_true(beat_as(me, kept, mine).held);
    contract_db_age(2 * MINUTE_US);
    assert_true(beat_as(me, kept, mine).held);
    assert_int_equal(step_tend().reaped, 1);
    assert_string_equal(contract_db_state(job), "retry_wait");
    assert_string_equal(contract_db_state(kept), "running");
    assert_false(beat_as(me, job, token).held);
    assert_int_equal(step_report(job, token, OUTCOME_SUCCEEDED, false), VERDICT_LOST);
    assert_string_equal(contract_db_state(job), "retry_wait");
}

static void test_a_worker_that_left_claims_nothing_and_one_that_drains_still_renews(void **state)
{
    (void)state;
    char jobs[2][UUID_TEXT_MAX], token[UUID_TEXT_MAX], none[UUID_TEXT_MAX];
    struct error err = {.text = ""};
    struct job_list list = {.count = 99};
    schedule_new(0, "allow", 0);
    step_plan(0, "a", jobs[0]);
    step_plan(0, "b", jobs[1]);
    step_claim(jobs[0], token);
    assert_int_equal(store_worker_leave(work, me, "draining", soon(), NULL), STATUS_OK);
    claim_as(me, jobs[1], none);
    assert_string_equal(none, "");
    assert_true(beat_as(me, jobs[0], token).held);
    assert_int_equal(step_report(jobs[0], token, OUTCOME_SUCCEEDED, false), VERDICT_DONE);
    assert_int_equal(store_worker_leave(work, me, "stopped", soon(), NULL), STATUS_OK);
    const struct claim_request request = {.worker = me, .queues = &queues, .count = 1};
    assert_int_equal(store_claim_ready(work, &request, soon(), &list, &err), STATUS_INVALID);
    assert_string_equal(err.code, STORE_ENDED);
    err.code[0] = '\0';
    assert_int_equal(store_heartbeat(work, me, NULL, 0, soon(), &no_reply, &err), STATUS_INVALID);
    assert_string_equal(err.code, STORE_ENDED);
    assert_int_equal(register_worker(me), STATUS_INVALID); /* an id is never used again */
}

static void test_claims_of_a_dead_worker_are_released_at_once(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX], token[UUID_TEXT_MAX], stranger[UUID_TEXT_MAX], next[UUID_TEXT_MAX];
    struct released_claims released = {.jobs = -1};
    uuid_random(stranger);
    schedule_new(0, "allow", 0);
    step_plan(0, "a", job);
    step_claim(job, token);
    assert_int_equal(store_release_claims(work, stranger, soon(), &released, NULL), STATUS_OK);
    assert_false(released.known);
    assert_int_equal(store_release_claims(work, me, soon(), &released, NULL), STATUS_OK);
    assert_true(released.known && !released.ended_before);
    assert_int_equal(released.jobs, 1);
    assert_string_equal(contract_db_state(job), "queued");
    assert_int_equal(store_release_claims(work, me, soon(), &released, NULL), STATUS_OK);
    assert_true(released.known && released.ended_before);
    assert_int_equal(released.jobs, 0);
    assert_int_equal(step_report(job, token, OUTCOME_SUCCEEDED, false), VERDICT_LOST);
    uuid_random(next);
    assert_int_equal(register_worker(next), STATUS_OK);
    claim_as(next, job, token);
    assert_true(token[0] != '\0');
}

/* The outbox ----------------------------------------------------------------------------------- */

static void test_outbox_rows_are_read_in_order_and_go_when_acknowledged(void **state)
{
    (void)state;
    char jobs[3][UUID_TEXT_MAX];
    struct outbox_row *rows = calloc(10, sizeof rows[0]);
    struct store_call call = by(&leader);
    size_t n = 0;
    int64_t ids[4];
    bool buried = false;
    assert_non_null(rows);
    schedule_new(0, "allow", 0);
    step_plan(0, "a", jobs[0]);
    step_plan(0, "b", jobs[1]);
    step_plan(0, "c", jobs[2]);
    assert_int_equal(store_outbox_fetch(&call, 0, 10, rows, &n, NULL), STATUS_OK);
    assert_int_equal(n, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_true(i == 0 || rows[i].id > rows[i - 1].id);
        assert_string_equal(rows[i].message.job_id, jobs[i]);
        assert_int_equal(rows[i].message.dispatch_number, 1);
        ids[i] = rows[i].id;
    }
    assert_int_equal(store_outbox_fetch(&call, ids[0], 1, rows, &n, NULL), STATUS_OK);
    assert_int_equal(n, 1);
    assert_true(rows[0].id == ids[1]);
    ids[3] = ids[2] + 1000; /* gone, or never there: as good */
    int64_t acknowledged[] = {ids[0], ids[3]};
    n = 2;
    assert_int_equal(store_outbox_ack(&call, acknowledged, &n, NULL), STATUS_OK);
    assert_int_equal(n, 0);
    int64_t again[] = {ids[0]};
    n = 1;
    assert_int_equal(store_outbox_ack(&call, again, &n, NULL), STATUS_OK);
    assert_int_equal(n, 0);
    assert_int_equal(store_outbox_bury(&call, ids[1], "too large", &buried, NULL), STATUS_OK);
    assert_true(buried);
    assert_int_equal(store_outbox_bury(&call, ids[1], "too large", &buried, NULL), STATUS_OK);
    assert_false(buried);
    assert_int_equal(store_outbox_fetch(&call, 0, 10, rows, &n, NULL), STATUS_OK);
    assert_int_equal(n, 1);
    assert_true(rows[0].id == ids[2]);
    free(rows);
}

/* Answers that do not come --------------------------------------------------------------------- */

static void test_after_a_lost_answer_the_call_is_repeated_and_takes_effect_once(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX], token[UUID_TEXT_MAX], again[UUID_TEXT_MAX];
    enum outcome_verdict verdict = VERDICT_LOCKED;
    const struct outcome o = {.kind = OUTCOME_SUCCEEDED, .rows = -1};
    struct authority next = candidate();
    bool written = true;
    struct store *far = contract_db_open(SIDE_EXPOSED, STORE_SCHEDULER);
    schedule_new(0, "allow", 0);
    contract_db_way(WAY_DEAF);
    assert_int_equal(
        plan_over(far, &leader, (struct plan){.schedule = 0, .key = "a"}, job, NULL, NULL),
        STATUS_TIMEOUT);
    assert_true(store_is_broken(far));
    store_close(far);
    assert_string_equal(contract_db_state(job), "queued"); /* it was done all the same */
    assert_int_equal(plan_as(&leader, (struct plan){.schedule = 0, .key = "a", .step_off = -1},
                             again, &written, NULL),
                     STATUS_OK);
    assert_false(written);
    contract_db_way(WAY_OPEN);
    far = contract_db_open(SIDE_EXPOSED, STORE_WORKER);
    step_claim(job, token);
    contract_db_way(WAY_DEAF);
    assert_int_equal(report_over(far, job, token, &o, &verdict), STATUS_TIMEOUT);
    store_close(far);
    assert_int_equal(step_report(job, token, OUTCOME_SUCCEEDED, false), VERDICT_ALREADY);
    contract_db_way(WAY_OPEN);
    far = contract_db_open(SIDE_EXPOSED, STORE_SCHEDULER);
    contract_db_way(WAY_DEAF);
    static const struct fence_member member = {.name = "contract"};
    assert_int_equal(fence_establish(far, &next, &member, instant_add_ms(clock_now(), 1500), NULL),
                     STATUS_TIMEOUT);
    store_close(far);
    assert_int_equal(step_establish(lead, &leader), STATUS_FENCED);
    assert_int_equal(step_establish(lead, &next), STATUS_OK);
}

static void test_a_call_that_does_not_arrive_is_unknown_and_changes_nothing_meanwhile(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX];
    struct store *far = contract_db_open(SIDE_EXPOSED, STORE_SCHEDULER);
    schedule_new(0, "allow", 0);
    contract_db_way(WAY_HOLE);
    assert_int_equal(
        plan_over(far, &leader, (struct plan){.schedule = 0, .key = "a"}, job, NULL, NULL),
        STATUS_TIMEOUT);
    assert_true(store_is_broken(far));
    assert_string_equal(contract_db_state(job), "");
    store_close(far);
}

static void test_a_connection_that_ends_is_told_and_stays_broken(void **state)
{
    (void)state;
    utc_us now = UTC_NONE;
    struct store *far = contract_db_open(SIDE_EXPOSED, STORE_SCHEDULER);
    assert_int_equal(store_clock(far, soon(), &now, NULL), STATUS_OK);
    assert_false(store_is_broken(far));
    contract_db_way(WAY_CLOSED);
    assert_int_equal(store_clock(far, soon(), &now, NULL), STATUS_AGAIN);
    assert_true(store_is_broken(far));
    contract_db_way(WAY_OPEN);
    assert_int_equal(store_clock(far, soon(), &now, NULL), STATUS_AGAIN);
    store_close(far);
}

int contract_store_work(void)
{
    const struct CMUnitTest tests[] = {
        STORE_CASE(test_a_job_is_claimed_once),
        STORE_CASE(test_ready_jobs_are_claimed_up_to_the_limit),
        STORE_CASE(test_an_outcome_counts_once_and_only_under_its_token),
        STORE_CASE(test_what_an_outcome_comes_to),
        STORE_CASE(test_retries_are_used_up_and_one_handed_back_is_none),
        STORE_CASE(test_a_heartbeat_renews_the_pairs_that_hold_and_no_others),
        STORE_CASE(test_a_lapsed_claim_is_reaped_and_not_before_the_pause_is_over),
        STORE_CASE(test_a_worker_that_left_claims_nothing_and_one_that_drains_still_renews),
        STORE_CASE(test_claims_of_a_dead_worker_are_released_at_once),
        STORE_CASE(test_outbox_rows_are_read_in_order_and_go_when_acknowledged),
        STORE_CASE(test_after_a_lost_answer_the_call_is_repeated_and_takes_effect_once),
        STORE_CASE(test_a_call_that_does_not_arrive_is_unknown_and_changes_nothing_meanwhile),
        STORE_CASE(test_a_connection_that_ends_is_told_and_stays_broken),
    };
    return cmocka_run_group_tests_name("contract_store_work", tests, NULL, NULL);
}
