#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_zone.h"
#include "rule.h"

static void check_refused(const char *kind, const char *text, const char *zone, const char *why)
{
    const struct rule_source source = {.kind = kind, .text = text, .zone = zone};
    struct rule r;
    memset(&r, 0x5a, sizeof r);
    const struct rule untouched = r;
    struct error err = {.text = ""};
    enum status s = rule_parse(&source, fixture_zones(), &r, &err);
    if (s != STATUS_INVALID || strstr(err.text, why) == NULL || strchr(err.text, '\n') != NULL) {
        fail_msg("%s \"%s\": %s \"%s\", wanted \"%s\"", kind, text, status_name(s), err.text, why);
    }
    assert_memory_equal(&r, &untouched, sizeof r);
}

/* The firing after `after` is at `at` (RFC 3339 with the zone's offset), or none when at is "". */
static void check_next(const struct rule *r, const char *after, const char *at)
{
    struct firing f = rule_next(r, fixture_instant(after));
    char text[RFC3339_TEXT_MAX] = "";
    if (f.found) {
        rfc3339_format(f.at, f.offset_s, text);
        assert_true(f.at.us > fixture_instant(after).us);
    }
    assert_string_equal(text, at);
}

static void test_an_interval_counts_from_its_anchor(void **state)
{
    (void)state;
    struct rule r = fixture_rule("interval", "15 minutes", "UTC", "2030-01-01T00:05:00Z");
    check_next(&r, "2029-06-01T00:00:00Z", "2030-01-01T00:05:00+00:00");
    check_next(&r, "2030-01-01T00:04:59.999999Z", "2030-01-01T00:05:00+00:00");
    check_next(&r, "2030-01-01T00:05:00Z", "2030-01-01T00:20:00+00:00");
    check_next(&r, "2030-01-01T00:05:00.000001Z", "2030-01-01T00:20:00+00:00");
    check_next(&r, "2030-01-01T00:19:59.999999Z", "2030-01-01T00:20:00+00:00");
    check_next(&r, "2040-07-09T03:51:00Z", "2040-07-09T04:05:00+00:00");
}

static void test_a_day_of_an_interval_is_24_hours_across_a_change_of_clocks(void **state)
{
    (void)state;
    struct rule r = fixture_rule("interval", "1 day", "Europe/Berlin", "2026-03-28T06:00:00+01:00");
    check_next(&r, "2026-03-28T06:00:00+01:00", "2026-03-29T07:00:00+02:00");
    struct firing f = rule_next(&r, fixture_instant("2026-03-28T23:00:00Z"));
    assert_int_equal(f.nominal.s, civil_days_of(2026, 3, 29) * SECONDS_A_DAY + 7 * 3600);
    assert_true(f.utc_in_key);
    assert_false(f.offset_in_key);
}

static void test_an_anchor_keeps_its_fraction_and_may_lie_before_1970(void **state)
{
    (void)state;
    struct rule r = fixture_rule("interval", "90 s", "UTC", "1969-12-31T23:59:59.250000Z");
    check_next(&r, "1970-01-01T00:00:00Z", "1970-01-01T00:01:29.250000+00:00");
    struct firing f = rule_next(&r, (utc_us){INT64_MAX - 1});
    assert_false(f.found);
}

static void test_interval_texts_say_their_length(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t seconds;
    } rows[] = {
        {"1 s", 1},
        {"90 s", 90},
        {"90s", 90},
        {"15 minutes", 900},
        {"1 minute", 60},
        {"1 hour 30 minutes", 5400},
        {"1h30min", 5400},
        {"2 days", 172800},
        {" 1  week\t", 604800},
        {"1 day 1 second", 86401},
        {"36525 days", INTERVAL_MAX_S},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t seconds = 0;
        struct error err = {.text = ""};
        if (interval_parse(rows[i].text, &seconds, &err) != STATUS_OK) {
            fail_msg("\"%s\": %s", rows[i].text, err.text);
        }
        assert_int_equal(seconds, rows[i].seconds);
    }
}

static void test_bad_intervals_are_refused_with_what_to_write(void **state)
{
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "1 second"},
        {"0 s", "1 second"},
        {"0 hours 0 minutes", "1 second"},
        {"1 month", "use cron for calendar month"},
        {"3 months", "use cron for calendar months"},
        {"1 year", "use cron for calendar year"},
        {"5 m", "minutes or months"},
        {"5", "unit is missing"},
        {"minutes", "whole number"},
        {"1.5 hours", "unit is missing"},
        {"-5 minutes", "whole number"},
        {"5 minutes 10 minutes", "add them up"},
        {"1 h 2 hours", "add them up"},
        {"5 fortnights", "unknown unit"},
        {"5 Minutes", "unit is missing"},
        {"100 years", "use cron"},
        {"36526 days", "hundred years"},
        {"36525 days 1 s", "hundred years"},
        {"9999999999 weeks", "hundred years"},
        {"99999999999999999999 s", "ten digits"},
        {"5 minutes\n", "whole number"},
        {"5 minutes,", "whole number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_refused("interval", rows[i].text, "UTC", rows[i].why);
    }
}

static void test_once_fires_once_at_its_local_time(void **state)
{
    (void)state;
    struct rule r =
        fixture_rule("once", "2030-04-12T06:00", "Europe/Berlin", "1970-01-01T00:00:00Z");
    check_next(&r, "2030-04-12T03:59:59.999999Z", "2030-04-12T06:00:00+02:00");
    check_next(&r, "2030-04-12T04:00:00Z", "");
    r = fixture_rule("once", "2030-04-12T06:00:30Z", "America/New_York", "1970-01-01T00:00:00Z");
    check_next(&r, "2020-01-01T00:00:00Z", "2030-04-12T02:00:30-04:00");
    struct firing f = rule_next(&r, fixture_instant("2020-01-01T00:00:00Z"));
    assert_int_equal(f.nominal.s, civil_days_of(2030, 4, 12) * SECONDS_A_DAY + 2 * 3600 + 30);
    assert_false(f.offset_in_key);
}

static void test_once_in_a_gap_or_overlap_must_be_made_explicit(void **state)
{
    (void)state;
    check_refused("once", "2026-03-29T02:30", "Europe/Berlin",
                  "write \"2026-03-29T01:30:00+01:00\" or \"2026-03-29T03:30:00+02:00\"");
    check_refused("once", "2026-10-25T02:30", "Europe/Berlin",
                  "write \"2026-10-25T02:30:00+02:00\" or \"2026-10-25T02:30:00+01:00\"");
    /* What the message says to write works. */
    struct rule r =
        fixture_rule("once", "2026-10-25T02:30:00+01:00", "Europe/Berlin", "1970-01-01T00:00:00Z");
    check_next(&r, "2026-10-25T00:30:00Z", "2026-10-25T02:30:00+01:00");
    r = fixture_rule("once", "2026-03-29T02:30:00+01:00", "Europe/Berlin", "1970-01-01T00:00:00Z");
    check_next(&r, "2026-01-01T00:00:00Z", "2026-03-29T03:30:00+02:00");
}

static void test_bad_rules_are_refused_with_the_remedy(void **state)
{
    (void)state;
    check_refused("once", "tomorrow", "UTC", "YYYY-MM-DD");
    check_refused("once", "2030-02-30T06:00", "UTC", "no date 2030-02-30");
    check_refused("once", "2030-04-12", "UTC", "YYYY-MM-DDTHH:MM:SS");
    check_refused("once", "2030-04-12T06:00:00.5", "UTC", "fraction");
    check_refused("rrule", "FREQ=DAILY", "UTC", "needs start_local");
    check_refused("CRON", "0 6 * * *", "UTC", "write cron, rrule, interval or once");
    check_refused("cron", "0 6 * * *", "Europe/berlin", "write \"Europe/Berlin\"");
    check_refused("cron", "0 25 * * *", "UTC", "hour \"25\"");
    check_refused("cron", "0 0 30 2 *", "UTC", "never fires");
    check_refused("interval", "5 minutes", "Mars/Olympus", "unknown time zone");
}

static void test_a_cron_rule_takes_its_policies_from_the_row(void **state)
{
    (void)state;
    struct rule_source source = {.kind = "cron", .text = "30 2 * * *", .zone = "Europe/Berlin"};
    struct rule r;
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, NULL), STATUS_OK);
    check_next(&r, "2026-03-28T12:00:00Z", "2026-03-29T03:00:00+02:00");
    source.gap = DST_GAP_SKIP;
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, NULL), STATUS_OK);
    check_next(&r, "2026-03-28T12:00:00Z", "2026-03-30T02:30:00+02:00");
    source.overlap = DST_OVERLAP_BOTH;
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, NULL), STATUS_OK);
    check_next(&r, "2026-10-25T00:30:00Z", "2026-10-25T02:30:00+01:00");
}

static void test_which_rules_fire_at_most_once_a_local_day(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *text;
        bool once_a_day;
    } rows[] = {
        {"cron", "0 6 * * *", true},       {"cron", "30 0 6 * * *", true},
        {"cron", "@monthly", true},        {"cron", "0 6 L * *", true},
        {"cron", "0 6,18 * * *", false},   {"cron", "*/15 6 * * *", false},
        {"cron", "0,30 0 6 * * *", false}, {"cron", "@hourly", false},
        {"interval", "1 day", false},      {"once", "2030-04-12T06:00", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rule r = fixture_rule(rows[i].kind, rows[i].text, "UTC", "2030-01-01T00:00:00Z");
        assert_int_equal(rule_fires_at_most_once_a_local_day(&r), rows[i].once_a_day);
        enum rule_kind kind;
        assert_true(rule_kind_parse(rows[i].kind, &kind));
        assert_int_equal(kind, r.kind);
    }
}

static void check_within(const struct rule *r, utc_us starts_at, utc_us ends_at, const char *at)
{
    struct firing f = rule_next_within(r, fixture_instant("2030-04-12T00:30:00Z"),
                                       (struct rule_bounds){starts_at, ends_at});
    char text[RFC3339_TEXT_MAX] = "";
    if (f.found) {
        rfc3339_format_utc(f.at, text);
    }
    assert_string_equal(text, at);
}

static void test_start_and_end_bound_the_next_firing(void **state)
{
    (void)state;
    struct rule r = fixture_rule("cron", "0 * * * *", "UTC", "2030-01-01T00:00:00Z");
    utc_us one = fixture_instant("2030-04-12T01:00:00Z");
    utc_us three = fixture_instant("2030-04-12T03:00:00Z");
    check_within(&r, UTC_NONE, UTC_NONE, "2030-04-12T01:00:00Z");
    check_within(&r, three, UTC_NONE, "2030-04-12T03:00:00Z"); /* the start counts */
    check_within(&r, (utc_us){three.us + 1}, UTC_NONE, "2030-04-12T04:00:00Z");
    check_within(&r, UTC_NONE, one, ""); /* the end does not */
    check_within(&r, UTC_NONE, (utc_us){one.us + 1}, "2030-04-12T01:00:00Z");
    check_within(&r, three, three, "");
}

static void test_infinite_bounds_mean_always_or_never(void **state)
{
    (void)state;
    struct rule r = fixture_rule("cron", "0 * * * *", "UTC", "2030-01-01T00:00:00Z");
    check_within(&r, UTC_PAST, UTC_UNBOUNDED, "2030-04-12T01:00:00Z");
    check_within(&r, UTC_UNBOUNDED, UTC_NONE, "");
    check_within(&r, UTC_NONE, UTC_PAST, "");
}

static void test_an_interval_without_a_finite_anchor_is_refused(void **state)
{
    (void)state;
    const utc_us anchors[] = {UTC_NONE, UTC_PAST, UTC_UNBOUNDED};
    for (size_t i = 0; i < sizeof anchors / sizeof anchors[0]; i++) {
        const struct rule_source source = {
            .kind = "interval", .text = "15 minutes", .zone = "UTC", .anchor = anchors[i]};
        struct rule r;
        struct error err = {.text = ""};
        assert_int_equal(rule_parse(&source, fixture_zones(), &r, &err), STATUS_INVALID);
        assert_non_null(strstr(err.text, "finite anchor"));
    }
}

/* Count and last of a stretch against firing after firing. */
static void check_count(const struct rule *r, utc_us after, utc_us before, struct rule_bounds b)
{
    int64_t count = 0;
    struct firing last = {.found = false};
    for (struct firing f = rule_next_within(r, after, b); f.found && f.at.us < before.us;
         f = rule_next_within(r, f.at, b)) {
        last = f;
        count++;
    }
    struct firing found = rule_last_within(r, after, before, b);
    if (rule_count_within(r, after, before, b) != count || found.found != last.found ||
        found.at.us != last.at.us || found.nominal.s != last.nominal.s) {
        char from[RFC3339_TEXT_MAX];
        char to[RFC3339_TEXT_MAX];
        rfc3339_format_utc(after, from);
        rfc3339_format_utc(before, to);
        fail_msg("%s to %s: counted %lld, there are %lld", from, to,
                 (long long)rule_count_within(r, after, before, b), (long long)count);
    }
}

static void test_a_stretch_is_counted_as_if_firing_after_firing(void **state)
{
    (void)state;
    const struct rule rules[] = {
        fixture_rule("cron", "* * * * *", "Europe/Berlin", "2026-01-01T00:00:00Z"),
        fixture_rule("cron", "*/7 */3 * * 1-5", "America/New_York", "2026-01-01T00:00:00Z"),
        fixture_rule("cron", "15,45 2 * * *", "Australia/Lord_Howe", "2026-01-01T00:00:00Z"),
        fixture_rule("cron", "30 0 L * *", "Africa/Cairo", "2026-01-01T00:00:00Z"),
        fixture_rule("cron", "0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z"),
        fixture_rule("interval", "13 minutes", "UTC", "2026-05-01T00:00:00.5Z"),
        fixture_rule("once", "2026-06-01T12:00", "Asia/Tokyo", "2026-01-01T00:00:00Z"),
    };
    utc_us begin = fixture_instant("2026-01-01T00:00:00Z");
    for (int i = 0; i < 300; i++) {
        const struct rule *r = &rules[fixture_random_in(0, sizeof rules / sizeof rules[0] - 1)];
        utc_us after = {begin.us + (int64_t)fixture_random_in(0, 300 * 86400) * MICROS_A_SECOND};
        utc_us before = {after.us + (int64_t)fixture_random_in(0, 60 * 86400) * MICROS_A_SECOND};
        after.us -= fixture_random_in(0, 1);
        before.us += fixture_random_in(0, 1);
        struct rule_bounds b = {UTC_NONE, UTC_NONE};
        if (fixture_random_in(0, 3) == 0) {
            b.starts_at =
                (utc_us){after.us + (int64_t)fixture_random_in(0, 86400) * MICROS_A_SECOND};
            b.ends_at =
                (utc_us){before.us - (int64_t)fixture_random_in(0, 86400) * MICROS_A_SECOND};
        }
        check_count(r, after, before, b);
    }
}

static void test_a_year_of_minutes_is_counted_by_days(void **state)
{
    (void)state;
    struct rule r = fixture_rule("cron", "* * * * *", "Europe/Berlin", "2026-01-01T00:00:00Z");
    struct rule_bounds open = {UTC_NONE, UTC_NONE};
    utc_us after = {fixture_instant("2030-01-01T00:00:00Z").us - 1};
    assert_int_equal(rule_count_within(&r, after, fixture_instant("2031-01-01T00:00:00Z"), open),
                     365 * 1440);
    r = fixture_rule("interval", "1 second", "UTC", "2026-01-01T00:00:00Z");
    assert_int_equal(rule_count_within(&r, after, fixture_instant("2130-01-01T00:00:00Z"), open),
                     INT64_C(36524) * 86400);
    assert_int_equal(rule_count_within(&r, after, (utc_us){after.us + 1}, open), 0);
    assert_int_equal(rule_count_within(&r, after, (utc_us){after.us + 2}, open), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_interval_counts_from_its_anchor),
        cmocka_unit_test(test_a_day_of_an_interval_is_24_hours_across_a_change_of_clocks),
        cmocka_unit_test(test_an_anchor_keeps_its_fraction_and_may_lie_before_1970),
        cmocka_unit_test(test_interval_texts_say_their_length),
        cmocka_unit_test(test_bad_intervals_are_refused_with_what_to_write),
        cmocka_unit_test(test_once_fires_once_at_its_local_time),
        cmocka_unit_test(test_once_in_a_gap_or_overlap_must_be_made_explicit),
        cmocka_unit_test(test_bad_rules_are_refused_with_the_remedy),
        cmocka_unit_test(test_a_cron_rule_takes_its_policies_from_the_row),
        cmocka_unit_test(test_which_rules_fire_at_most_once_a_local_day),
        cmocka_unit_test(test_start_and_end_bound_the_next_firing),
        cmocka_unit_test(test_infinite_bounds_mean_always_or_never),
        cmocka_unit_test(test_an_interval_without_a_finite_anchor_is_refused),
        cmocka_unit_test(test_a_stretch_is_counted_as_if_firing_after_firing),
        cmocka_unit_test(test_a_year_of_minutes_is_counted_by_days),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
