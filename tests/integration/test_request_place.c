/* Where a request goes: whom HTTP takes for the leader is whom people are shown as one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_plan.h"
#include "store_request.h"

#define JOB "aaaaaaaa-0000-4000-8000-00000000000a"

static struct store *store;

static struct request_leader leader_of_main(void)
{
    static const char scopes[][NAME_MAX_BYTES] = {"main"};
    struct request_leader leader = {.leads = false};
    struct error err = {.text = ""};
    size_t count = 0;
    assert_int_equal(request_leaders(store, scopes, 1, instant_add_ms(clock_now(), 20000), &leader,
                                     &count, &err),
                     STATUS_OK);
    assert_int_equal(count, 1);
    return leader;
}

static enum status located(const char *kind, const char *subject, struct request_place *ret_place)
{
    struct request_wish wish = {.kind = "", .has_argument = false};
    struct error err = {.text = ""};
    (void)snprintf(wish.id, sizeof wish.id, "%s", "aaaaaaaa-0000-4000-8000-000000000001");
    (void)snprintf(wish.kind, sizeof wish.kind, "%s", kind);
    (void)snprintf(wish.subject, sizeof wish.subject, "%s", subject);
    return request_locate(store, &wish, instant_add_ms(clock_now(), 20000), ret_place, &err);
}

static void beat_set(const char *ago)
{
    (void)fixture_sql("UPDATE reports.fence_pulse SET beat_at = clock_timestamp() - interval '%s' "
                      "WHERE scope = 'main'",
                      ago);
}

static void before_each(void)
{
    (void)fixture_lead();
    (void)fixture_sql("UPDATE reports.fence SET activated_at = clock_timestamp(), "
                      "url = 'http://10.0.0.1:9410' WHERE scope = 'main'");
    (void)fixture_sql("INSERT INTO reports.schedule (name, report, kind, rule) VALUES "
                      "('daily', 'nothing', 'cron', '0 6 * * *')");
    store = fixture_plan_store();
}

static int store_end(void **state)
{
    (void)state;
    store_close(store);
    return 0;
}

static void test_a_leader_is_named_with_its_place(void **state)
{
    (void)state;
    struct request_place place;
    struct request_leader leader = leader_of_main();
    assert_true(leader.leads);
    assert_string_equal(leader.member, "test");
    assert_int_equal(located("trigger", "daily", &place), STATUS_OK);
    assert_string_equal(place.scope, "main");
    assert_string_equal(place.member, "test");
    assert_string_equal(place.url, "http://10.0.0.1:9410");
}

static void test_a_leader_that_people_see_as_silent_is_sent_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *ago, *state;
    } cases[] = {{"19 seconds", "active"}, {"21 seconds", "silent"}, {"40 seconds", "silent"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct request_place place;
        bool active = strcmp(cases[i].state, "active") == 0;
        beat_set(cases[i].ago);
        assert_string_equal(fixture_sql("SELECT state FROM reports.v_leader WHERE scope = 'main'"),
                            cases[i].state);
        assert_int_equal(leader_of_main().leads, active);
        assert_int_equal(located("trigger", "daily", &place), STATUS_OK);
        assert_string_equal(place.url, active ? "http://10.0.0.1:9410" : "");
    }
    assert_string_equal(leader_of_main().member, "test"); /* who led last stays known */
}

static void test_a_leader_that_gave_up_is_none(void **state)
{
    (void)state;
    struct request_place place;
    (void)fixture_sql("UPDATE reports.fence SET released_at = clock_timestamp() "
                      "WHERE scope = 'main'");
    assert_false(leader_of_main().leads);
    assert_int_equal(located("pause", "daily", &place), STATUS_OK);
    assert_string_equal(place.member, "");
    assert_string_equal(place.url, "");
}

static void test_a_job_is_found_by_its_key_and_by_its_id(void **state)
{
    (void)state;
    struct request_place place;
    (void)fixture_sql(
        "INSERT INTO reports.job (id, schedule, occurrence_key, scope, report, queue, priority, "
        "state, run_after, max_attempts, retry_base, retry_cap, timeout) VALUES ('" JOB
        "', 'daily', '2030-04-12', 'main', 'nothing', 'default', 0, 'queued', now(), 1, '1 s', "
        "'1 s', '1 h')");
    (void)fixture_sql(
        "INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for, "
        "cause, version, incarnation, generation) VALUES ('daily', '2030-04-12', 'main', '" JOB
        "', now(), 'schedule', 1, 1, 1)");
    assert_int_equal(located("cancel", "daily:2030-04-12", &place), STATUS_OK);
    assert_string_equal(place.scope, "main");
    assert_int_equal(located("cancel", JOB, &place), STATUS_OK);
    assert_string_equal(place.scope, "main");
    assert_int_equal(located("cancel", "daily:2030-04-13", &place), STATUS_NOT_FOUND);
    assert_int_equal(located("trigger", "weekly", &place), STATUS_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_leader_is_named_with_its_place, store_end),
        cmocka_unit_test_teardown(test_a_leader_that_people_see_as_silent_is_sent_nothing,
                                  store_end),
        cmocka_unit_test_teardown(test_a_leader_that_gave_up_is_none, store_end),
        cmocka_unit_test_teardown(test_a_job_is_found_by_its_key_and_by_its_id, store_end),
    };
    return fixture_plan_run("test_request_place", tests, sizeof tests / sizeof tests[0],
                            before_each);
}
