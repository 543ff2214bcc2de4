/* What `reportctl why` is asked about, and what rule, versions, gaps and progress tell of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "why_story.h"

static struct zone_set *zones;
static struct plan_candidates candidates;

static struct why_ask ask(const char *text)
{
    struct why_ask a;
    struct error err = {.text = ""};
    if (why_ask_parse(text, &a, &err) != STATUS_OK) {
        fail_msg("%s: %s", text, err.text);
    }
    return a;
}

static utc_us utc(const char *text)
{
    utc_us t;
    assert_int_equal(rfc3339_parse(text, &t, NULL), STATUS_OK);
    return t;
}

/* A version that is in force from an instant on. */
static struct ledger_version version(int32_t number, const char *rule, const char *from)
{
    struct ledger_version v = {.version = number,
                               .effective_from = utc(from),
                               .form_fixed = number > 1,
                               .bounds = {UTC_NONE, UTC_NONE}};
    struct rule_source source = {
        .kind = "cron", .text = rule, .zone = "Europe/Berlin", .anchor = UTC_NONE};
    assert_int_equal(rule_parse(&source, zones, &v.rule, NULL), STATUS_OK);
    return v;
}

static struct ledger_subject subject(struct ledger_version *versions, size_t count,
                                     const char *last_fire_at)
{
    struct ledger_subject s = {
        .name = "daily",
        .versions = versions,
        .version_count = count,
        .has_progress = true,
        .version = versions[count - 1].version,
        .switched_at = versions[count - 1].effective_from,
        .next_fire_at = UTC_NONE,
        .last_fire_at = last_fire_at != NULL ? utc(last_fire_at) : UTC_NONE,
        .has_form = true,
        .form = key_form_of_rule(&versions[0].rule),
    };
    ledger_reigns_find(&s, &candidates);
    return s;
}

static struct why_story story(const struct ledger_subject *s, const char *text, const char *now)
{
    struct why_ask a = ask(text);
    struct why_story w;
    why_story_find(s, &a, utc(now), &w);
    return w;
}

static void test_a_subject_is_a_schedule_with_a_time_a_date_or_a_key(void **state)
{
    (void)state;
    assert_int_equal(ask("sales-daily").form, WHY_LATEST);
    assert_int_equal(ask("sales-daily@2030-04-12").form, WHY_DATE);
    assert_int_equal(ask("sales-daily@2030-04-12T06:00").form, WHY_LOCAL);
    assert_int_equal(ask("sales-daily@2030-04-12T06:00:00Z").at.us, utc("2030-04-12T06:00:00Z").us);
    assert_int_equal(ask("sales-daily@2030-04-12T06:00+02:00").at.us,
                     utc("2030-04-12T04:00:00Z").us);
    struct why_ask key = ask("sales-daily:2026-10-25T02:30+02:00");
    assert_int_equal(key.form, WHY_KEY);
    assert_string_equal(key.key, "2026-10-25T02:30+02:00");
    struct why_ask time;
    assert_true(why_ask_of_key(&key, &time));
    assert_int_equal(time.at.us, utc("2026-10-25T00:30:00Z").us);
    /* A date whose time came twice. */
    key = ask("sales-daily:2026-10-25+01:00");
    assert_true(why_ask_of_key(&key, &time));
    assert_int_equal(time.form, WHY_DATE);
    assert_int_equal(time.local.s, utc_seconds(utc("2026-10-25T00:00:00Z")));
    key = ask("sales-daily:for-the-board");
    assert_false(why_ask_of_key(&key, &time));
    static const char *const wrong[] = {
        "",       "@2030-04-12",      "Sales@2030-04-12", "sales@",
        "sales:", "sales@2030-02-30", "sales@noon",       "sales@2030-04-12T25:00"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(why_ask_parse(wrong[i], &key, NULL), STATUS_INVALID);
    }
}

static void test_a_firing_is_found_by_its_local_time_date_or_instant(void **state)
{
    (void)state;
    struct ledger_version v[] = {version(1, "30 6 * * 1-5", "2026-01-01T00:00:00Z")};
    struct ledger_subject s = subject(v, 1, "2026-06-05T04:30:00Z");
    static const char *const same[] = {"daily@2026-06-04T06:30", "daily@2026-06-04",
                                       "daily@2026-06-04T04:30:00Z",
                                       "daily@2026-06-04T06:30+02:00"};
    for (size_t i = 0; i < 4; i++) {
        struct why_story w = story(&s, same[i], "2026-06-06T00:00:00Z");
        assert_int_equal(w.kind, WHY_LOST); /* dealt with, and nothing tells of it */
        assert_string_equal(w.key, "2026-06-04");
    }
    assert_int_equal(story(&s, "daily@2026-06-08", "2026-06-06T00:00:00Z").kind, WHY_NOT_YET);
    assert_int_equal(story(&s, "daily@2026-06-08", "2026-06-09T00:00:00Z").kind, WHY_WAITS);
    assert_int_equal(story(&s, "daily@2025-12-31", "2026-06-09T00:00:00Z").kind, WHY_NOT_MADE);
}

static void test_a_delayed_firing_is_found_by_the_rules_time_and_its_own(void **state)
{
    (void)state;
    struct ledger_version v[] = {version(1, "30 6 * * 1-5", "2026-01-01T00:00:00Z")};
    v[0].jitter_us = v[0].rule.jitter_us = INT64_C(1200) * MICROS_A_SECOND;
    struct ledger_subject s = subject(v, 1, "2026-06-05T04:50:00Z");
    static const char *const same[] = {"daily@2026-06-04T06:30", "daily@2026-06-04",
                                       "daily@2026-06-04T04:30:00Z", "daily@2026-06-04T04:50:00Z"};
    for (size_t i = 0; i < 4; i++) {
        struct why_story w = story(&s, same[i], "2026-06-06T00:00:00Z");
        assert_int_equal(w.kind, WHY_LOST);
        assert_string_equal(w.key, "2026-06-04");
        assert_int_equal(w.at.us, utc("2026-06-04T04:50:00Z").us);
    }
    assert_int_equal(story(&s, "daily@2026-06-05T04:40:00Z", "2026-06-05T04:45:00Z").kind,
                     WHY_NOT_NAMED);
}

static void test_a_time_that_the_rule_does_not_name_has_neighbours(void **state)
{
    (void)state;
    struct ledger_version v[] = {version(1, "30 6 * * 1-5", "2026-01-01T00:00:00Z"),
                                 version(2, "0 7 * * *", "2026-06-10T12:00:00Z")};
    struct ledger_subject s = subject(v, 2, NULL);
    struct why_story w = story(&s, "daily@2026-06-06", "2026-07-01T00:00:00Z"); /* a Saturday */
    assert_int_equal(w.kind, WHY_NOT_NAMED);
    assert_int_equal(w.before.at.us, utc("2026-06-05T04:30:00Z").us);
    assert_int_equal(w.after.at.us, utc("2026-06-08T04:30:00Z").us);
    assert_ptr_equal(w.other, &v[1]);
    w = story(&s, "daily@2026-06-13", "2026-07-01T00:00:00Z");
    assert_int_equal(w.kind, WHY_WAITS);
    assert_ptr_equal(w.version, &v[1]);
}

static void test_the_clock_changes_are_told(void **state)
{
    (void)state;
    struct ledger_version v[] = {version(1, "*/30 * * * *", "2026-01-01T00:00:00Z")};
    struct ledger_version fixed[] = {version(1, "30 2 * * *", "2026-01-01T00:00:00Z")};
    struct ledger_subject s = subject(v, 1, "2026-12-01T00:00:00Z");
    struct why_story w = story(&s, "often@2026-03-29T02:30", "2026-12-01T00:00:00Z");
    assert_int_equal(w.kind, WHY_NOT_NAMED);
    assert_int_equal(w.clock, LOCAL_GAP);
    w = story(&s, "often@2026-10-25T02:30", "2026-12-01T00:00:00Z");
    assert_int_equal(w.clock, LOCAL_OVERLAP);
    assert_string_equal(w.key, "2026-10-25T02:30+02:00");
    assert_int_equal(w.twin.us, utc("2026-10-25T01:30:00Z").us);
    w = story(&s, "often@2026-10-25T01:30:00Z", "2026-12-01T00:00:00Z");
    assert_string_equal(w.key, "2026-10-25T02:30+01:00");
    assert_int_equal(story(&s, "often@2026-03-29", "2026-12-01T00:00:00Z").on_date, 46);
    /* A fixed time is made up for right behind the gap, under its own name. */
    s = subject(fixed, 1, "2026-12-01T00:00:00Z");
    w = story(&s, "daily@2026-03-29T02:30", "2026-12-01T00:00:00Z");
    assert_string_equal(w.key, "2026-03-29");
    assert_int_equal(w.at.us, utc("2026-03-29T01:00:00Z").us);
}

static void test_start_end_pause_problem_and_deletion_are_told(void **state)
{
    (void)state;
    struct ledger_version v[] = {version(1, "0 6 * * *", "2026-01-01T00:00:00Z"),
                                 version(2, "0 6 * * *", "2026-02-01T00:00:00Z"),
                                 version(3, "0 6 * * *", "2026-03-01T00:00:00Z")};
    v[0].bounds.starts_at = utc("2026-01-10T00:00:00Z");
    v[0].bounds.ends_at = utc("2026-01-20T00:00:00Z");
    v[1].paused = true;
    v[2].ended = true;
    struct ledger_subject s = subject(v, 3, "2026-01-19T05:00:00Z");
    const char *now = "2026-04-01T00:00:00Z";
    assert_int_equal(story(&s, "daily@2026-01-05", now).kind, WHY_BEFORE_START);
    assert_int_equal(story(&s, "daily@2026-01-25", now).kind, WHY_AFTER_END);
    assert_int_equal(story(&s, "daily@2026-03-05", now).kind, WHY_DELETED);
    struct ledger_gap gap = {.from = utc("2026-02-01T05:00:00Z"),
                             .to = utc("2026-02-28T05:00:00Z"),
                             .version = 2,
                             .firings = 28,
                             .from_key = "2026-02-01",
                             .to_key = "2026-02-28",
                             .reason = "paused"};
    s.gaps = &gap;
    s.gap_count = 1;
    assert_int_equal(story(&s, "daily@2026-02-05", now).kind, WHY_IN_GAP);
    s = subject(v, 2, "2026-01-19T05:00:00Z");
    assert_int_equal(story(&s, "daily@2026-02-05", now).kind, WHY_WITHHELD);
    v[1].paused = false;
    s = subject(v, 2, "2026-02-03T05:00:00Z");
    s.has_problem = true;
    ledger_reigns_find(&s, &candidates);
    assert_int_equal(story(&s, "daily@2026-02-05", now).kind, WHY_WITHHELD);
}

/* Monday to Friday; Thursday the 4th of June is a holiday. */
static struct calendar *works(void)
{
    static const struct calendar_weekend weekend = {CALENDAR_ALWAYS, 1u << 0 | 1u << 6};
    int64_t day = 0;
    assert_int_equal(date_parse("2026-06-04", &day, NULL), STATUS_OK);
    struct calendar_special holiday = {day, false};
    struct calendar_rules rules = {.weekends = &weekend,
                                   .weekend_count = 1,
                                   .days = &holiday,
                                   .day_count = 1,
                                   .valid_from = CALENDAR_ALWAYS,
                                   .valid_through = CALENDAR_FOREVER};
    struct calendar *c = NULL;
    assert_int_equal(calendar_new(&rules, &c, NULL), STATUS_OK);
    return c;
}

static struct ledger_version moved_version(const char *rule, const struct calendar *c,
                                           enum roll_convention nonbusiness, int32_t offset)
{
    struct ledger_version v = version(1, rule, "2026-06-01T00:00:00Z");
    struct rule_source source = {.kind = "cron",
                                 .text = rule,
                                 .zone = "Europe/Berlin",
                                 .anchor = UTC_NONE,
                                 .calendar = c,
                                 .nonbusiness = nonbusiness,
                                 .business_day_offset = offset};
    assert_int_equal(rule_parse(&source, zones, &v.rule, NULL), STATUS_OK);
    return v;
}

static struct why_story key_story(const struct ledger_subject *s, const char *text, const char *now)
{
    struct why_ask key = ask(text);
    struct why_ask time;
    struct why_story w;
    assert_true(why_ask_of_key(&key, &time));
    why_story_find(s, &time, utc(now), &w);
    return w;
}

static void test_a_moved_firing_is_found_by_its_instant_its_key_and_its_nominal_date(void **state)
{
    (void)state;
    struct calendar *c = works();
    /* Sunday the 28th of June comes to Friday the 26th. */
    struct ledger_version v[] = {moved_version("0 18 28 * *", c, ROLL_PRECEDING, 0)};
    struct ledger_subject s = subject(v, 1, NULL);
    const char *now = "2026-06-20T00:00:00Z";
    static const char *const same[] = {"m@2026-06-26T18:00", "m@2026-06-26",
                                       "m@2026-06-26T16:00:00Z", "m@2026-06-28",
                                       "m@2026-06-28T18:00"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++) {
        struct why_story w = story(&s, same[i], now);
        assert_int_equal(w.kind, WHY_NOT_YET);
        assert_string_equal(w.key, "2026-06-28");
        assert_int_equal(w.at.us, utc("2026-06-26T16:00:00Z").us);
        assert_string_equal(w.namesake, "");
    }
    assert_string_equal(key_story(&s, "m:2026-06-28", now).key, "2026-06-28");
    assert_int_equal(key_story(&s, "m:2026-06-26", now).kind, WHY_NOT_NAMED);
    calendar_free(c);
}

static void test_a_date_means_what_runs_then_and_a_key_what_is_about_it(void **state)
{
    (void)state;
    struct calendar *c = works();
    struct ledger_version v[] = {moved_version("39 23 * * *", c, ROLL_SKIP, 1)};
    struct ledger_subject s = subject(v, 1, NULL);
    const char *now = "2026-06-05T00:00:00Z";
    struct why_story w = story(&s, "m@2026-06-08", now); /* a Monday */
    assert_string_equal(w.key, "2026-06-05");
    assert_string_equal(w.namesake, "2026-06-08");
    assert_int_equal(w.namesake_at.us, utc("2026-06-09T21:39:00Z").us);
    w = key_story(&s, "m:2026-06-08", now);
    assert_string_equal(w.key, "2026-06-08");
    assert_int_equal(w.at.us, utc("2026-06-09T21:39:00Z").us);
    /* Offsets add up, over a year if need be. */
    v[0] = moved_version("0 6 1 7 *", c, ROLL_FOLLOWING, 31);
    s = subject(v, 1, NULL);
    assert_int_equal(key_story(&s, "m:2026-07-01", now).at.us, utc("2026-08-13T04:00:00Z").us);
    calendar_free(c);
}

static void test_a_moved_date_before_the_schedule_has_its_firing_behind(void **state)
{
    (void)state;
    struct calendar *c = works();
    struct ledger_version v[] = {moved_version("0 6 30 5 *", c, ROLL_FOLLOWING, 0)};
    struct ledger_subject s = subject(v, 1, NULL); /* written on Monday the 1st of June */
    struct why_story w = key_story(&s, "m:2026-05-30", "2026-06-01T00:00:00Z");
    assert_int_equal(w.kind, WHY_NOT_YET);
    assert_int_equal(w.at.us, utc("2026-06-01T04:00:00Z").us);
    assert_int_equal(story(&s, "m@2026-05-20", "2026-06-01T00:00:00Z").kind, WHY_NOT_MADE);
    calendar_free(c);
}

static void test_a_day_that_the_calendar_takes_away_is_told(void **state)
{
    (void)state;
    struct calendar *c = works();
    struct ledger_version v[] = {moved_version("0 6 * * *", c, ROLL_SKIP, 0)};
    struct ledger_subject s = subject(v, 1, NULL);
    const char *now = "2026-06-20T00:00:00Z";
    static const char *const skipped[] = {"m@2026-06-04", "m@2026-06-04T06:00",
                                          "m@2026-06-04T04:00:00Z", "m@2026-06-07"};
    for (size_t i = 0; i < sizeof skipped / sizeof skipped[0]; i++) {
        assert_int_equal(story(&s, skipped[i], now).kind, WHY_SKIPPED);
    }
    assert_int_equal(story(&s, "m@2026-06-04T07:00", now).kind, WHY_NOT_NAMED);
    assert_int_equal(story(&s, "m@2026-06-05", now).kind, WHY_WAITS);
    /* Saturday and Sunday come to Monday, which fires under its own key. */
    v[0] = moved_version("0 6 * * *", c, ROLL_FOLLOWING, 0);
    s = subject(v, 1, NULL);
    struct why_story w = story(&s, "m@2026-06-06", now);
    assert_int_equal(w.kind, WHY_JOINED);
    assert_int_equal(w.to_date - w.date, 2);
    calendar_free(c);
}

static int set_up(void **state)
{
    (void)state;
    return zone_set_open(NULL, &zones, NULL) == STATUS_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    zone_set_close(zones);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_subject_is_a_schedule_with_a_time_a_date_or_a_key),
        cmocka_unit_test(test_a_firing_is_found_by_its_local_time_date_or_instant),
        cmocka_unit_test(test_a_delayed_firing_is_found_by_the_rules_time_and_its_own),
        cmocka_unit_test(test_a_time_that_the_rule_does_not_name_has_neighbours),
        cmocka_unit_test(test_the_clock_changes_are_told),
        cmocka_unit_test(test_start_end_pause_problem_and_deletion_are_told),
        cmocka_unit_test(test_a_moved_firing_is_found_by_its_instant_its_key_and_its_nominal_date),
        cmocka_unit_test(test_a_date_means_what_runs_then_and_a_key_what_is_about_it),
        cmocka_unit_test(test_a_moved_date_before_the_schedule_has_its_firing_behind),
        cmocka_unit_test(test_a_day_that_the_calendar_takes_away_is_told),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
