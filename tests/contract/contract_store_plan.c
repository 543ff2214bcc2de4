/* store_plan.h: firings, edits, overlap and capacity. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store_steps.h"

/* Planning ------------------------------------------------------------------------------------- */

static void test_a_firing_becomes_job_and_message_once(void **state)
{
    (void)state;
    char first[UUID_TEXT_MAX], second[UUID_TEXT_MAX];
    bool written = true;
    schedule_new(0, "allow", 0);
    int64_t step = progress_of(0).step;
    step_plan(0, "a", first);
    assert_string_equal(contract_db_state(first), "queued");
    assert_int_equal(contract_db_outbox(first), 1);
    assert_int_equal(progress_of(0).step, step + 1);
    /* As one that repeats what it read before. */
    assert_int_equal(plan_as(&leader, (struct plan){.schedule = 0, .key = "b", .step_off = -1},
                             second, &written, NULL),
                     STATUS_OK);
    assert_false(written);
    assert_string_equal(contract_db_state(second), "");
    assert_int_equal(progress_of(0).step, step + 1);
}

static void test_a_key_that_exists_becomes_a_gap_and_no_second_job(void **state)
{
    (void)state;
    char first[UUID_TEXT_MAX], second[UUID_TEXT_MAX];
    schedule_new(0, "allow", 0);
    step_plan(0, "a", first);
    int64_t before = contract_db_gap_firings(0);
    step_plan(0, "a", second);
    assert_string_equal(contract_db_state(second), "");
    assert_int_equal(contract_db_gap_firings(0), before + 1);
}

static void test_nothing_is_planned_before_its_time(void **state)
{
    (void)state;
    char job[UUID_TEXT_MAX];
    bool written = true;
    struct error err = {.text = ""};
    schedule_new(0, "allow", 0);
    int64_t step = progress_of(0).step;
    assert_int_equal(plan_as(&leader,
                             (struct plan){.schedule = 0, .key = "a", .ago_us = -MINUTE_US}, job,
                             &written, &err),
                     STATUS_INVALID);
    assert_string_equal(err.code, "RS004");
    assert_string_equal(contract_db_state(job), "");
    assert_int_equal(progress_of(0).step, step);
}

static void test_nothing_is_planned_by_a_database_that_forgot_the_job_before(void **state)
{
    (void)state;
    char first[UUID_TEXT_MAX], second[UUID_TEXT_MAX];
    char forgotten[UUID_TEXT_MAX];
    bool written = true;
    schedule_new(0, "allow", 0);
    step_plan(0, "a", first);
    int64_t step = progress_of(0).step;
    uuid_time_ordered(now_there(), forgotten);
    struct plan p = {.schedule = 0, .key = "b", .known = forgotten};
    assert_int_equal(plan_as(&leader, p, second, &written, NULL), STATUS_CONFLICT);
    assert_string_equal(contract_db_state(second), "");
    assert_int_equal(progress_of(0).step, step);
    p.known = first;
    assert_int_equal(plan_as(&leader, p, second, &written, NULL), STATUS_OK);
    assert_true(written);
}

static void test_a_problem_is_marked_only_on_what_was_read(void **state)
{
    (void)state;
    schedule_new(0, "allow", 0);
    struct due_row row = progress_of(0);
    struct store_call call = by(&leader);
    assert_int_equal(store_mark_problem(&call, row.schedule, row.step + 1, "because", NULL),
                     STATUS_CONFLICT);
    assert_int_equal(store_mark_problem(&call, row.schedule, row.step, "because", NULL), STATUS_OK);
    assert_int_equal(store_mark_problem(&call, row.schedule, row.step, "because", NULL),
                     STATUS_CONFLICT);
    assert_true(utc_is_none(progress_of(0).next_fire_at));
}

static void test_an_edit_is_taken_in_once_and_what_was_read_before_is_stale(void **state)
{
    (void)state;
    struct change_row change, first;
    char job[UUID_TEXT_MAX];
    bool written = false;
    schedule_new(0, "allow", 0);
    assert_false(change_find(0, &change));
    contract_db_edit(&(struct contract_schedule){.number = 0, .overlap = "queue"});
    contract_db_edit(&(struct contract_schedule){.number = 0, .overlap = "queue", .paused = true});
    assert_true(change_find(0, &first)); /* the older of the two */
    assert_int_equal(first.version, 2);
    assert_true(first.has_progress && !first.paused);
    assert_int_equal(take_in_as(&leader, &first, &written), STATUS_OK);
    assert_true(written);
    assert_int_equal(take_in_as(&leader, &first, &written), STATUS_OK);
    assert_false(written);
    assert_int_equal(progress_of(0).version, 2);
    assert_int_equal(plan_as(&leader, (struct plan){.schedule = 0, .key = "a", .step_off = -1}, job,
                             &written, NULL),
                     STATUS_OK);
    assert_false(written);
    assert_true(change_find(0, &change));
    assert_int_equal(change.version, 3);
    assert_true(change.paused);
    schedule_take_in(0);
    assert_true(utc_is_none(progress_of(0).next_fire_at)); /* paused: nothing comes next */
}

/* Overlap and capacity ------------------------------------------------------------------------- */

/* What becomes of a second firing while the first one's job stands as it does. */
static void test_overlap_decides_what_becomes_of_the_next_firing(void **state)
{
    static const struct {
        const char *overlap;
        bool runs;          /* the first is claimed before the second comes */
        const char *first;  /* its state after the second was planned */
        const char *second; /* "": a gap */
        const char *then;   /* of the second when the first has ended, after tending */
    } cases[] = {
        {"allow", false, "queued", "queued", "queued"},
        {"allow", true, "running", "queued", "queued"},
        {"forbid", false, "queued", "", ""},
        {"forbid", true, "running", "", ""},
        {"queue", false, "queued", "waiting", "queued"},
        {"queue", true, "running", "waiting", "queued"},
        {"replace", false, "cancelled", "queued", "queued"},
        {"replace", true, "running", "waiting", "queued"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int schedule = (int)i;
        char first[UUID_TEXT_MAX], second[UUID_TEXT_MAX], token[UUID_TEXT_MAX] = "";
        print_message("%s, the first %s\n", cases[i].overlap, cases[i].runs ? "runs" : "is queued");
        schedule_new(schedule, cases[i].overlap, 0);
        step_plan(schedule, "a", first);
        assert_string_equal(contract_db_state(first), "queued");
        if (cases[i].runs) {
            step_claim(first, token);
        }
        step_plan(schedule, "b", second);
        assert_string_equal(contract_db_state(first), cases[i].first);
        assert_string_equal(contract_db_state(second), cases[i].second);
        assert_int_equal(contract_db_gap_firings(schedule), cases[i].second[0] == '\0' ? 1 : 0);
        assert_int_equal(contract_db_outbox(second),
                         strcmp(cases[i].second, "queued") == 0 ? 1 : 0);
        bool replaced = cases[i].runs && strcmp(cases[i].overlap, "replace") == 0;
        if (cases[i].runs) {
            assert_true(beat_as(me, first, token).cancel == replaced);
        } else if (strcmp(cases[i].first, "queued") == 0) {
            step_claim(first, token);
        }
        if (token[0] != '\0') {
            assert_int_equal(step_report(first, token, OUTCOME_SUCCEEDED, false),
                             replaced ? VERDICT_OTHERWISE : VERDICT_DONE);
            assert_string_equal(contract_db_state(first), replaced ? "cancelled" : "succeeded");
        }
        (void)step_tend();
        assert_string_equal(contract_db_state(second), cases[i].then);
        assert_int_equal(contract_db_outbox(second), cases[i].then[0] == '\0' ? 0 : 1);
    }
}

static void test_what_a_queue_has_no_room_for_waits_its_turn(void **state)
{
    (void)state;
    char jobs[3][UUID_TEXT_MAX];
    char token[UUID_TEXT_MAX];
    for (int i = 0; i < 3; i++) {
        schedule_new(i, "allow", 1);
        bool written = false;
        assert_int_equal(
            plan_as(&leader, (struct plan){.schedule = i, .key = "a", .ago_us = (3 - i) * 2000000},
                    jobs[i], &written, NULL),
            STATUS_OK);
    }
    assert_string_equal(contract_db_state(jobs[0]), "queued");
    for (int i = 0; i < 3; i++) {
        struct tended t = step_tend();
        assert_int_equal(t.held_back, 2 - i);
        for (int k = i + 1; k < 3; k++) {
            assert_string_equal(contract_db_state(jobs[k]), "waiting");
            claim_as(me, jobs[k], token);
            assert_string_equal(token, "");
        }
        step_claim(jobs[i], token);
        assert_int_equal(step_tend().released, 0); /* a running one takes the room */
        assert_int_equal(step_report(jobs[i], token, OUTCOME_SUCCEEDED, false), VERDICT_DONE);
        assert_int_equal(step_tend().released, i < 2 ? 1 : 0);
    }
}

int contract_store_plan(void)
{
    const struct CMUnitTest tests[] = {
        STORE_CASE(test_a_firing_becomes_job_and_message_once),
        STORE_CASE(test_a_key_that_exists_becomes_a_gap_and_no_second_job),
        STORE_CASE(test_nothing_is_planned_before_its_time),
        STORE_CASE(test_nothing_is_planned_by_a_database_that_forgot_the_job_before),
        STORE_CASE(test_a_problem_is_marked_only_on_what_was_read),
        STORE_CASE(test_an_edit_is_taken_in_once_and_what_was_read_before_is_stale),
        STORE_CASE(test_overlap_decides_what_becomes_of_the_next_firing),
        STORE_CASE(test_what_a_queue_has_no_room_for_waits_its_turn),
    };
    return cmocka_run_group_tests_name("contract_store_plan", tests, NULL, NULL);
}
