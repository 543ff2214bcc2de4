/* Jitter: firings are due later, and are otherwise what they were. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_pass.h"
#include "fixture_subject.h"
#include "fixture_zone.h"
#include "planner.h"

#define MINUTES_US(n) ((int64_t)(n)*60 * MICROS_A_SECOND)

static void test_the_delay_is_the_published_hash_of_the_name(void **state)
{
    (void)state;
    /* FNV-1a of "" is its offset basis, of "a" the value its authors publish. */
    assert_int_equal(rule_jitter_us("", 3600),
                     (int64_t)(UINT64_C(0xcbf29ce484222325) % 3600) * MICROS_A_SECOND);
    assert_int_equal(rule_jitter_us("a", 3600),
                     (int64_t)(UINT64_C(0xaf63dc4c8601ec8c) % 3600) * MICROS_A_SECOND);
    assert_int_equal(rule_jitter_us("foobar", 7),
                     (int64_t)(UINT64_C(0x85944171f73967e8) % 7) * MICROS_A_SECOND);
    assert_int_equal(rule_jitter_us("a", 0), 0);
    assert_int_equal(rule_jitter_us("a", 1), 0);
}

static void test_the_delays_of_many_schedules_are_spread_evenly(void **state)
{
    (void)state;
    int of_minute[60] = {0};
    for (int i = 0; i < 6000; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "sales-%d", i);
        of_minute[rule_jitter_us(name, 3600) / MINUTES_US(1)]++;
    }
    for (int m = 0; m < 60; m++) {
        assert_in_range(of_minute[m], 50, 150); /* 100 each, five times its deviation */
    }
}

static void test_firings_are_later_and_keep_time_offset_and_key(void **state)
{
    (void)state;
    static const char *const kinds[][2] = {{"cron", "30 1,2 * * *"},
                                           {"cron", "*/20 * * * *"},
                                           {"interval", "90 minutes"},
                                           {"once", "2026-10-25T04:00"}};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct rule plain =
            fixture_rule(kinds[k][0], kinds[k][1], "Europe/Berlin", "2026-01-01T00:00:00Z");
        struct rule late = plain;
        late.jitter_us = MINUTES_US(50);
        utc_us t = fixture_instant("2026-10-24T12:00:00Z");
        utc_us u = {t.us + late.jitter_us};
        for (int i = 0; i < 60; i++) {
            struct firing f = rule_next(&plain, t);
            struct firing g = rule_next(&late, u);
            char key[2][KEY_MAX_BYTES] = {"", ""};
            assert_int_equal(f.found, g.found);
            if (!f.found) {
                break;
            }
            key_format(key_form_of_rule(&plain), &f, key[0]);
            key_format(key_form_of_rule(&late), &g, key[1]);
            assert_string_equal(key[0], key[1]);
            assert_int_equal(g.at.us, f.at.us + late.jitter_us);
            assert_int_equal(g.nominal.s, f.nominal.s);
            assert_int_equal(g.offset_s, f.offset_s);
            assert_int_equal(rule_plain_instant(&late, &g).us, f.at.us);
            t = f.at;
            u = g.at;
        }
    }
}

static void test_start_and_end_bound_the_rule_not_the_delay(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    r.jitter_us = MINUTES_US(40);
    struct rule_bounds bounds = {fixture_instant("2030-04-12T01:00:00Z"),
                                 fixture_instant("2030-04-12T03:00:00Z")};
    utc_us after = fixture_instant("2030-04-11T00:00:00Z");
    utc_us before = fixture_instant("2030-04-13T00:00:00Z");
    check_instant(rule_next_within(&r, after, bounds).at, "2030-04-12T01:40:00Z");
    check_instant(rule_last_within(&r, after, before, bounds).at, "2030-04-12T02:40:00Z");
    assert_int_equal(rule_count_within(&r, after, before, bounds), 2);
    /* Counted are those due in between. */
    assert_int_equal(rule_count_within(&r, fixture_instant("2030-04-12T01:39:59Z"),
                                       fixture_instant("2030-04-12T02:40:00Z"), bounds),
                     1);
    assert_int_equal(rule_count_within(&r, fixture_instant("2030-04-12T01:40:00Z"),
                                       fixture_instant("2030-04-12T02:40:00Z"), bounds),
                     0);
}

static void test_infinite_bounds_mean_the_same_with_jitter(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    r.jitter_us = MINUTES_US(40);
    utc_us after = fixture_instant("2030-04-11T00:00:00Z");
    assert_true(rule_next_within(&r, after, (struct rule_bounds){UTC_PAST, UTC_UNBOUNDED}).found);
    assert_false(rule_next_within(&r, after, (struct rule_bounds){UTC_UNBOUNDED, UTC_NONE}).found);
    assert_false(rule_next_within(&r, after, (struct rule_bounds){UTC_NONE, UTC_PAST}).found);
    assert_true(rule_next(&r, UTC_NONE).found);
    assert_false(rule_next(&r, UTC_UNBOUNDED).found);
}

static void test_a_delayed_firing_is_due_then_and_its_window_is_the_rules(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    r.jitter_us = MINUTES_US(40);
    struct plan_subject s = fixture_subject(&r, "2030-04-12T00:50:00Z");
    s.last_fire_at = fixture_instant("2030-04-12T00:40:00Z");
    struct plan_result result = plan_at(&s, "2030-04-12T01:39:59Z");
    assert_int_equal(sink.firing_count, 0);
    check_instant(result.next.at, "2030-04-12T01:40:00Z");
    result = plan_at(&s, "2030-04-12T01:40:00Z");
    assert_int_equal(sink.firing_count, 1);
    assert_string_equal(firings[0].key, "2030-04-12T01:00");
    assert_int_equal(firings[0].cause, PLAN_ON_TIME); /* not late by its delay */
    check_instant(firings[0].firing.at, "2030-04-12T01:40:00Z");
    check_instant(firings[0].window_start, "2030-04-12T00:00:00Z");
    check_instant(firings[0].window_end, "2030-04-12T01:00:00Z");
    check_instant(result.next.at, "2030-04-12T02:40:00Z");
}

/* ---- edits ---- */

/* Every firing of a day, under an old jitter until the edit and a new one from it on, in keys. */
static void keys_across(int64_t old_us, int64_t new_us, const char *rule, const char *edit_at,
                        char *ret_keys, size_t size)
{
    struct rule before = fixture_cron(rule, "UTC");
    struct rule after = before;
    before.jitter_us = old_us;
    after.jitter_us = new_us;
    struct plan_subject s = fixture_subject(&before, "2030-04-12T00:00:00Z");
    s.misfire = MISFIRE_RUN_ALL;
    s.misfire_max = 100;
    s.misfire_age_us = 10 * MINUTES_US(1440);
    s.until = fixture_instant(edit_at);
    ret_keys[0] = '\0';
    struct plan_result result = plan_at(&s, edit_at);
    for (size_t i = 0; i < sink.firing_count; i++) {
        (void)snprintf(ret_keys + strlen(ret_keys), size - strlen(ret_keys), " %.5s",
                       firings[i].key + 11);
    }
    struct plan_edit e = {
        .rule = &after,
        .has_form = true,
        .form = KEY_MINUTE,
        .effective_from = s.until,
        .last_fire_at = result.moved ? result.last.at : UTC_NONE,
        .starts_at = UTC_NONE,
        .ends_at = UTC_NONE,
        .shift_us = new_us - old_us,
    };
    if (sink.firing_count > 0) {
        memcpy(e.highest_key, firings[sink.firing_count - 1].key, sizeof e.highest_key);
    }
    struct plan_switch w;
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    assert_false(w.doubtful);
    struct plan_subject n = s;
    n.rule = &after;
    n.until = UTC_UNBOUNDED;
    n.effective_from = e.effective_from;
    n.switched_at = w.switched_at;
    n.last_fire_at = w.shifted ? w.last_fire_at : e.last_fire_at;
    (void)snprintf(ret_keys + strlen(ret_keys), size - strlen(ret_keys), " |");
    (void)plan_at(&n, "2030-04-12T08:00:00Z");
    for (size_t i = 0; i < sink.firing_count; i++) {
        (void)snprintf(ret_keys + strlen(ret_keys), size - strlen(ret_keys), " %.5s",
                       firings[i].key + 11);
    }
}

static void test_an_edit_of_the_jitter_loses_and_repeats_no_firing(void **state)
{
    (void)state;
    char keys[400];
    keys_across(MINUTES_US(50), 0, "0 4-7 * * *", "2030-04-12T06:20:00Z", keys, sizeof keys);
    assert_string_equal(keys, " 04:00 05:00 | 06:00 07:00");
    keys_across(0, MINUTES_US(50), "0 4-7 * * *", "2030-04-12T06:20:00Z", keys, sizeof keys);
    assert_string_equal(keys, " 04:00 05:00 06:00 | 07:00");
    /* Shorter steps than the delay: many wait at the time of the edit. */
    keys_across(MINUTES_US(50), MINUTES_US(10), "0,15,30,45 5,6 * * *", "2030-04-12T06:20:00Z",
                keys, sizeof keys);
    assert_string_equal(keys, " 05:00 05:15 | 05:30 05:45 06:00 06:15 06:30 06:45");
    keys_across(MINUTES_US(10), MINUTES_US(50), "0,15,30,45 5,6 * * *", "2030-04-12T06:20:00Z",
                keys, sizeof keys);
    assert_string_equal(keys, " 05:00 05:15 05:30 05:45 06:00 | 06:15 06:30 06:45");
}

static void test_a_new_schedule_does_not_fire_for_times_before_it_was_made(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    r.jitter_us = MINUTES_US(50);
    struct plan_edit e = {
        .rule = &r,
        .effective_from = fixture_instant("2030-04-12T06:20:00Z"),
        .last_fire_at = UTC_NONE,
        .starts_at = UTC_NONE,
        .ends_at = UTC_NONE,
        .shift_us = r.jitter_us,
    };
    struct plan_switch w;
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    check_instant(w.next.at, "2030-04-12T07:50:00Z");
    assert_false(w.shifted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_delay_is_the_published_hash_of_the_name),
        cmocka_unit_test(test_the_delays_of_many_schedules_are_spread_evenly),
        cmocka_unit_test(test_firings_are_later_and_keep_time_offset_and_key),
        cmocka_unit_test(test_start_and_end_bound_the_rule_not_the_delay),
        cmocka_unit_test(test_infinite_bounds_mean_the_same_with_jitter),
        cmocka_unit_test(test_a_delayed_firing_is_due_then_and_its_window_is_the_rules),
        cmocka_unit_test(test_an_edit_of_the_jitter_loses_and_repeats_no_firing),
        cmocka_unit_test(test_a_new_schedule_does_not_fire_for_times_before_it_was_made),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
