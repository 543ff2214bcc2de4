/* What a schedule's part of the ledger proves, and what does not fit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_zone.h"
#include "ledger.h"

#define FIRINGS_MAX 40

/* A daily schedule at 06:00 UTC since 2030-01-01, of which all up to the tenth has run. */
struct ledger_story {
    struct ledger_version versions[3];
    struct ledger_firing firings[FIRINGS_MAX];
    char keys[FIRINGS_MAX][16];
    struct ledger_gap gaps[3];
    struct ledger_subject subject;
    struct ledger_span span;
    char found[2000]; /* "what key firings; " */
    struct ledger_counts counts;
};

static struct plan_candidates candidates;

static void note(void *context, const struct ledger_finding *f)
{
    struct ledger_story *y = context;
    size_t used = strlen(y->found);
    (void)snprintf(y->found + used, sizeof y->found - used, "%s%s%s %s %lld; ",
                   f->verdict == LEDGER_WRONG ? "" : "(", f->what,
                   f->verdict == LEDGER_WRONG ? "" : ")", f->key, (long long)f->firings);
}

static struct ledger_version version(int32_t number, const char *rule, const char *from)
{
    return (struct ledger_version){.version = number,
                                   .effective_from = fixture_instant(from),
                                   .form_fixed = number > 1,
                                   .rule =
                                       fixture_rule("cron", rule, "UTC", "2030-01-01T00:00:00Z"),
                                   .bounds = {UTC_NONE, UTC_NONE}};
}

static void firing_add(struct ledger_story *y, int32_t number, const char *at)
{
    size_t i = y->subject.firing_count++;
    struct ledger_firing *f = &y->firings[i];
    utc_us t = fixture_instant(at);
    (void)snprintf(y->keys[i], sizeof y->keys[i], "%.10s", at);
    *f = (struct ledger_firing){.at = t,
                                .version = number,
                                .nominal = {utc_seconds(t)},
                                .planned_at = t,
                                .key = y->keys[i],
                                .business_date = y->keys[i]};
}

static struct ledger_story *story(void)
{
    static struct ledger_story y;
    memset(&y, 0, sizeof y);
    y.versions[0] = version(1, "0 6 * * *", "2030-01-01T00:00:00Z");
    y.subject = (struct ledger_subject){
        .name = "daily",
        .versions = y.versions,
        .version_count = 1,
        .firings = y.firings,
        .gaps = y.gaps,
        .has_progress = true,
        .version = 1,
        .switched_at = fixture_instant("2030-01-01T00:00:00Z"),
        .next_fire_at = fixture_instant("2030-01-11T06:00:00Z"),
        .last_fire_at = fixture_instant("2030-01-10T06:00:00Z"),
        .has_form = true,
        .form = KEY_DATE,
    };
    for (int day = 1; day <= 10; day++) {
        char at[32];
        (void)snprintf(at, sizeof at, "2030-01-%02dT06:00:00Z", day);
        firing_add(&y, 1, at);
    }
    y.span = (struct ledger_span){.from = fixture_instant("2029-12-01T00:00:00Z"),
                                  .to = fixture_instant("2030-01-10T12:00:00Z"),
                                  .now = fixture_instant("2030-01-10T12:00:00Z"),
                                  .to_now = true,
                                  .grace_us = (int64_t)60 * MICROS_A_SECOND};
    return &y;
}

static const char *check(struct ledger_story *y)
{
    struct ledger_sink sink = {.add = note, .context = y};
    y->found[0] = '\0';
    ledger_check(&y->subject, &y->span, &candidates, &sink);
    y->counts = sink.counts;
    return y->found;
}

static void firing_remove(struct ledger_story *y, size_t index)
{
    y->subject.firing_count--;
    memmove(&y->firings[index], &y->firings[index + 1],
            (y->subject.firing_count - index) * sizeof y->firings[0]);
}

static void test_a_whole_ledger_proves(void **state)
{
    (void)state;
    struct ledger_story *y = story();
    assert_string_equal(check(y), "");
    assert_int_equal(y->counts.due, 10);
    assert_int_equal(y->counts.planned, 10);
}

static void test_what_is_gone_is_in_doubt_and_what_follows_says_so(void **state)
{
    (void)state;
    struct ledger_story *y = story();
    firing_remove(y, 3);
    firing_remove(y, 3);
    assert_string_equal(check(y), "missing 2030-01-04 1; missing 2030-01-05 1; ");
    struct ledger_gap gap = {.from = fixture_instant("2030-01-04T06:00:00Z"),
                             .to = fixture_instant("2030-01-05T06:00:00Z"),
                             .version = 1,
                             .firings = 2,
                             .from_key = "2030-01-04",
                             .to_key = "2030-01-05",
                             .reason = "misfire_skip"};
    y->gaps[0] = gap;
    y->subject.gap_count = 1;
    assert_string_equal(check(y), "");
    assert_int_equal(y->counts.in_gaps, 2);
    y->gaps[0].firings = 3;
    assert_string_equal(check(y), "gap 2030-01-04 3; ");
    y->gaps[0] = gap;
    y->gaps[0].to = fixture_instant("2030-01-06T06:00:00Z");
    y->gaps[0].to_key = "2030-01-06";
    y->gaps[0].firings = 3;
    assert_string_equal(check(y), "both 2030-01-06 1; ");
}

static void test_what_no_version_names_is_found(void **state)
{
    (void)state;
    struct ledger_story *y = story();
    y->firings[4].at.us += MICROS_A_SECOND;
    assert_string_equal(check(y), "missing 2030-01-05 1; unnamed 2030-01-05 1; ");
    y = story();
    y->firings[4].version = 2;
    assert_string_equal(check(y), "unnamed 2030-01-05 1; ");
    y = story();
    y->firings[4].by_hand = true; /* an operator's: the key alone counts, which is looked up */
    assert_string_equal(check(y), "missing 2030-01-05 1; ");
    y = story();
    y->versions[0].bounds.ends_at = fixture_instant("2030-01-09T00:00:00Z");
    y->subject.next_fire_at = UTC_NONE;
    assert_string_equal(check(y), "unnamed 2030-01-09 1; unnamed 2030-01-10 1; ");
}

/* A firing that other time zone data put at another instant says so itself. */
static void test_a_firing_of_other_time_zone_data_is_worth_a_look(void **state)
{
    (void)state;
    struct ledger_story *y = story();
    y->firings[4].at.us += (int64_t)3600 * MICROS_A_SECOND;
    y->firings[4].offset_s = -3600;
    assert_string_equal(check(y), "missing 2030-01-05 1; (moved) 2030-01-05 1; ");
}

static void test_an_old_version_goes_on_until_its_last_firing(void **state)
{
    (void)state;
    struct ledger_story *y = story();
    y->versions[1] = version(2, "0 6 * * *", "2030-01-07T00:00:00Z");
    y->subject.version_count = 2;
    y->subject.version = 2;
    y->subject.switched_at = fixture_instant("2030-01-08T06:00:00Z");
    y->firings[8].version = y->firings[9].version = 2;
    assert_string_equal(check(y), "");
    assert_int_equal(y->versions[1].base.us, fixture_instant("2030-01-08T06:00:00Z").us);
    /* Behind a firing of the new version it is an intruder. */
    y->firings[6].version = 2;
    y->firings[7].named = false;
    y->subject.switched_at = fixture_instant("2030-01-07T00:00:00Z");
    assert_string_equal(check(y), "unnamed 2030-01-08 1; ");
}

static void test_a_pause_that_is_over_is_in_a_gap_and_one_in_force_is_not_yet(void **state)
{
    (void)state;
    struct ledger_story *y = story();
    y->versions[1] = version(2, "0 6 * * *", "2030-01-08T12:00:00Z");
    y->versions[1].paused = true;
    y->subject.version_count = 2;
    y->subject.version = 2;
    y->subject.firing_count = 8;
    y->subject.last_fire_at = fixture_instant("2030-01-08T06:00:00Z");
    assert_string_equal(check(y), "");
    assert_int_equal(y->counts.withheld, 1);
    y->versions[2] = version(3, "0 6 * * *", "2030-01-10T11:00:00Z");
    y->subject.version_count = 3;
    y->subject.version = 3;
    y->subject.switched_at = fixture_instant("2030-01-10T11:00:00Z");
    assert_string_equal(check(y), "missing 2030-01-09 1; missing 2030-01-10 1; ");
}

static void test_what_the_leader_has_not_come_to_is_not_yet_then_overdue(void **state)
{
    (void)state;
    struct ledger_story *y = story();
    y->subject.firing_count = 9;
    y->subject.last_fire_at = fixture_instant("2030-01-09T06:00:00Z");
    y->subject.next_fire_at = fixture_instant("2030-01-10T06:00:00Z");
    assert_string_equal(check(y), "overdue 2030-01-10 1; ");
    y->subject.held = true;
    assert_string_equal(check(y), "(held) 2030-01-10 1; ");
    y->span.grace_us = (int64_t)SECONDS_A_DAY * MICROS_A_SECOND;
    assert_string_equal(check(y), "");
    assert_int_equal(y->counts.not_yet, 1);
    y->subject.next_fire_at = UTC_NONE;
    assert_string_equal(check(y), "progress  1; ");
}

static void test_a_rule_that_this_host_cannot_read_is_unchecked(void **state)
{
    (void)state;
    struct ledger_story *y = story();
    y->versions[0].parsed = STATUS_CORRUPT;
    assert_string_equal(check(y), "(unchecked)  1; ");
}

static void test_versions_whose_calendar_has_changed_are_told_once(void **state)
{
    (void)state;
    struct ledger_story *y = story();
    y->versions[1] = version(2, "0 6 * * *", "2030-01-03T12:00:00Z");
    y->versions[2] = version(3, "0 6 * * *", "2030-01-10T07:00:00Z");
    y->subject.version_count = 3;
    y->versions[0].parsed = y->versions[1].parsed = STATUS_CONFLICT;
    assert_string_equal(check(y), "(calendar)  1; ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_ledger_proves),
        cmocka_unit_test(test_what_is_gone_is_in_doubt_and_what_follows_says_so),
        cmocka_unit_test(test_what_no_version_names_is_found),
        cmocka_unit_test(test_a_firing_of_other_time_zone_data_is_worth_a_look),
        cmocka_unit_test(test_an_old_version_goes_on_until_its_last_firing),
        cmocka_unit_test(test_a_pause_that_is_over_is_in_a_gap_and_one_in_force_is_not_yet),
        cmocka_unit_test(test_what_the_leader_has_not_come_to_is_not_yet_then_overdue),
        cmocka_unit_test(test_a_rule_that_this_host_cannot_read_is_unchecked),
        cmocka_unit_test(test_versions_whose_calendar_has_changed_are_told_once),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
