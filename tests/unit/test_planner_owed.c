/* What an edit finds that is still owed: a firing whose local time it puts into the past is not
 * lost (I3), and none is made up for a time before the schedule was there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_zone.h"
#include "planner.h"

struct terms {
    const char *rule, *zone;
    enum dst_gap_policy gap;
    enum dst_overlap_policy overlap;
    int64_t jitter_s;
};

static struct rule rule_of(const struct terms *t)
{
    const struct rule_source source = {
        .kind = "cron", .text = t->rule, .zone = t->zone, .gap = t->gap, .overlap = t->overlap};
    struct rule r = {.zone = NULL};
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, NULL), STATUS_OK);
    r.jitter_us = t->jitter_s * MICROS_A_SECOND;
    return r;
}

/* A schedule that was written at an instant and has planned all that was due since, whose terms
 * become others. Says where the new version begins. */
static struct plan_switch switch_of(const char *written, const char *edited, struct terms before,
                                    struct terms after)
{
    const struct rule_bounds open = {UTC_NONE, UTC_NONE};
    struct rule old = rule_of(&before);
    struct rule new = rule_of(&after);
    utc_us at = fixture_instant(edited);
    /* As its first version began: behind its whole jitter. */
    utc_us began = {fixture_instant(written).us + old.jitter_us - 1};
    struct firing last = {.found = false};
    struct firing next = rule_next_within(&old, began, open);
    while (next.found && next.at.us < at.us) {
        last = next;
        next = rule_next_within(&old, last.at, open);
    }
    struct plan_edit e = {
        .rule = &new,
        .has_form = true,
        .form = key_form_of_rule(&old),
        .effective_from = at,
        .last_fire_at = last.found ? last.at : UTC_NONE,
        .has_last = last.found,
        .last_nominal = last.nominal,
        .starts_at = UTC_NONE,
        .ends_at = UTC_NONE,
        .has_next = next.found,
        .next_nominal = next.nominal,
        .shift_us = new.jitter_us - old.jitter_us,
    };
    struct plan_switch w;
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    assert_true(w.next.found);
    return w;
}

static void check_first(const struct plan_switch *w, const char *key, const char *at)
{
    char text[KEY_MAX_BYTES];
    key_format(w->form, &w->next, text);
    assert_string_equal(text, key);
    assert_true(w->next.at.us == fixture_instant(at).us);
    assert_true(w->switched_at.us <= w->next.at.us);
}

static void test_a_time_that_another_gap_policy_puts_into_the_past_is_due_at_once(void **state)
{
    (void)state;
    struct terms shift = {"30 2,14 * * *", "Europe/Berlin", DST_GAP_SHIFT, DST_OVERLAP_AUTO, 0};
    struct terms after = shift;
    after.gap = DST_GAP_AFTER;
    struct plan_switch w = switch_of("2030-03-01T00:00:00Z", "2030-03-31T01:10:00Z", shift, after);
    check_first(&w, "2030-03-31T02:30", "2030-03-31T01:00:00Z");
}

static void test_a_time_that_another_overlap_policy_puts_into_the_past_is_due_at_once(void **state)
{
    (void)state;
    struct terms second = {"30 2,14 * * *", "Europe/Berlin", DST_GAP_AUTO, DST_OVERLAP_SECOND, 0};
    struct terms first = second;
    first.overlap = DST_OVERLAP_FIRST;
    struct plan_switch w = switch_of("2030-10-01T00:00:00Z", "2030-10-27T00:45:00Z", second, first);
    check_first(&w, "2030-10-27T02:30", "2030-10-27T00:30:00Z");
}

static void test_a_time_that_a_zone_to_the_east_puts_into_the_past_is_due_at_once(void **state)
{
    (void)state;
    struct terms here = {"30 6,18 * * *", "Europe/Berlin", DST_GAP_AUTO, DST_OVERLAP_AUTO, 0};
    struct terms east = here;
    east.zone = "Asia/Tokyo";
    struct plan_switch w = switch_of("2030-06-01T00:00:00Z", "2030-06-26T12:00:00Z", here, east);
    check_first(&w, "2030-06-26T18:30", "2030-06-26T09:30:00Z");
}

static void test_rules_that_go_on_by_the_clock_owe_nothing_in_another_zone(void **state)
{
    (void)state;
    static const char *const rules[] = {"*/5 * * * *", "0 8-18 * * *"};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct terms here = {rules[i], "Europe/Berlin", DST_GAP_AUTO, DST_OVERLAP_AUTO, 0};
        struct terms east = here;
        east.zone = "Asia/Tokyo";
        struct plan_switch w =
            switch_of("2030-06-01T00:00:00Z", "2030-06-26T10:02:00Z", here, east);
        assert_true(w.next.at.us >= fixture_instant("2030-06-26T10:02:00Z").us);
    }
}

static void test_an_interval_owes_nothing_in_another_zone(void **state)
{
    (void)state;
    const struct rule_source source = {.kind = "interval",
                                       .text = "10 minutes",
                                       .zone = "Asia/Tokyo",
                                       .anchor = fixture_instant("2030-06-01T00:00:00Z")};
    struct rule r = {.zone = NULL};
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, NULL), STATUS_OK);
    struct plan_edit e = {
        .rule = &r,
        .has_form = true,
        .form = KEY_MINUTE,
        .effective_from = fixture_instant("2030-06-26T06:25:00Z"),
        .last_fire_at = fixture_instant("2030-06-26T06:15:00Z"),
        .starts_at = UTC_NONE,
        .ends_at = UTC_NONE,
        .has_next = true,
        .next_nominal = {utc_seconds(fixture_instant("2030-06-26T08:30:00Z"))}, /* in Berlin */
    };
    struct plan_switch w;
    assert_int_equal(plan_switch_find(&e, &w, NULL), STATUS_OK);
    assert_true(w.next.at.us == fixture_instant("2030-06-26T06:30:00Z").us);
}

static void test_an_edit_within_the_jitter_makes_up_no_firing_from_before_the_schedule(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *zone, *key, *at;
        int64_t before_s, after_s;
    } cases[] = {
        {"0 6 * * *", "UTC", "2030-04-13", "2030-04-13T06:50:00Z", 3000, 3000},
        {"0 6 * * *", "UTC", "2030-04-13", "2030-04-13T06:00:00Z", 3000, 0},
        {"0 6 * * *", "UTC", "2030-04-13", "2030-04-13T06:50:00Z", 0, 3000},
        {"0 * * * *", "UTC", "2030-04-12T07:00", "2030-04-12T07:50:00Z", 3000, 3000},
        {"0 * * * *", "UTC", "2030-04-12T07:00", "2030-04-12T07:00:00Z", 3000, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct terms before = {cases[i].rule, cases[i].zone, DST_GAP_AUTO, DST_OVERLAP_AUTO,
                               cases[i].before_s};
        struct terms after = before;
        after.jitter_s = cases[i].after_s;
        struct plan_switch w =
            switch_of("2030-04-12T06:10:00Z", "2030-04-12T06:15:00Z", before, after);
        check_first(&w, cases[i].key, cases[i].at);
    }
}

static void test_a_rule_moved_within_the_day_of_its_writing_still_has_that_day(void **state)
{
    (void)state;
    struct terms later = {"0 8 * * *", "UTC", DST_GAP_AUTO, DST_OVERLAP_AUTO, 3000};
    struct terms sooner = later;
    sooner.rule = "0 6 * * *";
    struct plan_switch w = switch_of("2030-04-12T06:10:00Z", "2030-04-12T06:15:00Z", later, sooner);
    check_first(&w, "2030-04-12", "2030-04-12T06:50:00Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_time_that_another_gap_policy_puts_into_the_past_is_due_at_once),
        cmocka_unit_test(test_a_time_that_another_overlap_policy_puts_into_the_past_is_due_at_once),
        cmocka_unit_test(test_a_time_that_a_zone_to_the_east_puts_into_the_past_is_due_at_once),
        cmocka_unit_test(test_rules_that_go_on_by_the_clock_owe_nothing_in_another_zone),
        cmocka_unit_test(test_an_interval_owes_nothing_in_another_zone),
        cmocka_unit_test(
            test_an_edit_within_the_jitter_makes_up_no_firing_from_before_the_schedule),
        cmocka_unit_test(test_a_rule_moved_within_the_day_of_its_writing_still_has_that_day),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
