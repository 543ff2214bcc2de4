/* Recurrence rules as a kind of rule, and lists of local times as a database writes them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_zone.h"
#include "key.h"

static struct local_time local(const char *text)
{
    struct date_time t = {.micros = 0};
    assert_int_equal(date_time_parse(text, &t, NULL), STATUS_OK);
    return t.local;
}

static struct rule recurrence(const char *text, const char *start, const char *zone)
{
    const struct rule_source source = {
        .kind = "rrule", .text = text, .zone = zone, .has_start = true, .start = local(start)};
    struct rule r = {.zone = NULL};
    struct error err = {.text = ""};
    if (rule_parse(&source, fixture_zones(), &r, &err) != STATUS_OK) {
        fail_msg("%s: %s", text, err.text);
    }
    return r;
}

/* Keys of the firings after an instant, in the rule's own form. */
static void check_keys(const struct rule *r, const char *after, const char *want)
{
    char keys[400] = "";
    utc_us t = fixture_instant(after);
    for (int i = 0; i < 4; i++) {
        struct firing f = rule_next(r, t);
        char key[KEY_MAX_BYTES] = "none";
        if (f.found) {
            key_format(key_form_of_rule(r), &f, key);
            t = f.at;
        }
        (void)snprintf(keys + strlen(keys), sizeof keys - strlen(keys), "%s%s", i > 0 ? " " : "",
                       key);
    }
    assert_string_equal(keys, want);
}

static void test_the_form_of_its_keys_is_that_of_the_rule(void **state)
{
    (void)state;
    struct rule r =
        recurrence("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO", "2030-01-07T08:00", "Europe/Berlin");
    check_keys(&r, "2030-03-20T00:00:00Z", "2030-04-01 2030-04-15 2030-04-29 2030-05-13");
    r = recurrence("FREQ=DAILY;BYHOUR=6,18;COUNT=3", "2030-01-07T06:00", "UTC");
    check_keys(&r, "2030-01-01T00:00:00Z",
               "2030-01-07T06:00 2030-01-07T18:00 2030-01-08T06:00 none");
    r = recurrence("FREQ=MINUTELY;BYSECOND=0,30", "2030-01-07T06:00", "UTC");
    check_keys(&r, "2030-01-01T00:00:00Z",
               "2030-01-07T06:00:00 2030-01-07T06:00:30 2030-01-07T06:01:00 2030-01-07T06:01:30");
}

static void test_dates_are_taken_away_and_added(void **state)
{
    (void)state;
    const struct local_time away[] = {local("2030-01-08T06:00"), local("2030-01-09T06:00")};
    const struct local_time added[] = {local("2030-01-20T12:00")};
    const struct rule_source source = {
        .kind = "rrule",
        .text = "FREQ=DAILY;COUNT=4",
        .zone = "UTC",
        .has_start = true,
        .start = local("2030-01-07T06:00"),
        .exdates = away,
        .exdate_count = 2,
        .rdates = added,
        .rdate_count = 1,
        .jitter_us = INT64_C(60) * MICROS_A_SECOND,
    };
    struct rule r;
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, NULL), STATUS_OK);
    struct rule_bounds open = {UTC_NONE, UTC_NONE};
    utc_us after = fixture_instant("2030-01-01T00:00:00Z");
    utc_us before = fixture_instant("2031-01-01T00:00:00Z");
    assert_int_equal(rule_count_within(&r, after, before, open), 3);
    assert_int_equal(rule_last_within(&r, after, before, open).at.us,
                     fixture_instant("2030-01-20T12:01:00Z").us);
}

static void test_policies_for_changes_of_the_clock_are_the_rows(void **state)
{
    (void)state;
    struct rule_source source = {.kind = "rrule",
                                 .text = "FREQ=DAILY",
                                 .zone = "Europe/Berlin",
                                 .has_start = true,
                                 .start = local("2026-01-01T02:30")};
    struct rule r;
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, NULL), STATUS_OK);
    utc_us gap = fixture_instant("2026-03-28T12:00:00Z");
    utc_us overlap = fixture_instant("2026-10-25T00:30:00Z");
    assert_int_equal(rule_next(&r, gap).at.us, fixture_instant("2026-03-29T01:30:00Z").us);
    assert_int_equal(rule_next(&r, overlap).at.us, fixture_instant("2026-10-26T01:30:00Z").us);
    source.gap = DST_GAP_AFTER;
    source.overlap = DST_OVERLAP_BOTH;
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, NULL), STATUS_OK);
    assert_int_equal(rule_next(&r, gap).at.us, fixture_instant("2026-03-29T01:00:00Z").us);
    struct firing second = rule_next(&r, overlap);
    char key[KEY_MAX_BYTES];
    key_format(key_form_of_rule(&r), &second, key);
    assert_string_equal(key, "2026-10-25+01:00");
}

static void test_a_bad_one_is_refused_with_the_remedy(void **state)
{
    (void)state;
    struct rule_source source = {.kind = "rrule", .text = "FREQ=SECONDLY", .zone = "UTC"};
    struct rule r;
    struct error err = {.text = ""};
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "start_local"));
    source.has_start = true;
    source.start = local("2030-01-01T06:00");
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "rrule \"FREQ=SECONDLY\""));
    assert_non_null(strstr(err.text, "interval"));
}

static void test_a_rule_of_quartz_is_planned_by_its_std_text(void **state)
{
    (void)state;
    struct rule_source source = {
        .kind = "cron", .text = "0 30 6 ? * 2", .dialect = "quartz", .zone = "UTC"};
    struct rule r;
    char text[CRON_TEXT_MAX];
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, NULL), STATUS_OK);
    check_keys(&r, "2030-01-01T00:00:00Z", "2030-01-07 2030-01-14 2030-01-21 2030-01-28");
    assert_int_equal(rule_std_text(&source, text, NULL), STATUS_OK);
    assert_string_equal(text, "30 6 * * 1");
    source.dialect = "std";
    assert_int_equal(rule_std_text(&source, text, NULL), STATUS_OK);
    assert_string_equal(text, "0 30 6 ? * 2");
    source.dialect = "vixie";
    struct error err = {.text = ""};
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "write std or quartz"));
}

static void test_lists_are_read_sorted_and_each_once(void **state)
{
    (void)state;
    struct local_time times[4];
    size_t count = 99;
    const char *text = "{\"2030-01-02 06:00:00\",\"2030-01-01 06:00:00\",\"2030-01-02 06:00:00\"}";
    assert_int_equal(local_times_most(text), 3);
    assert_int_equal(local_times_parse(text, times, 4, &count, NULL), STATUS_OK);
    assert_int_equal(count, 2);
    assert_int_equal(times[0].s, local("2030-01-01T06:00").s);
    assert_int_equal(times[1].s, local("2030-01-02T06:00").s);
    assert_int_equal(local_times_most("{}"), 0);
    assert_int_equal(local_times_most(""), 0);
    assert_int_equal(local_times_parse("{}", times, 0, &count, NULL), STATUS_OK);
    assert_int_equal(count, 0);
}

static void test_lists_that_are_none_are_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "{",
        "2030-01-01 06:00:00",
        "{infinity}",
        "{NULL}",
        "{\"2030-01-01 06:00:00\",}x",
        "{\"2030-01-01 06:00:00.5\"}",
        "{\"2030-01-01 06:00:00+02\"}",
        "{\"0044-03-15 00:00:00 BC\"}",
        "{\"2030-01-01 06:00:00 and much more than that\"}",
        "{,}",
        "{\"2030-01-01 06:00:00\",}",
        "{\"2030-01-01 06:00:00\"}\"2030-01-02 06:00:00\"}",
    };
    struct local_time times[4];
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t count = 99;
        if (local_times_parse(bad[i], times, 4, &count, NULL) != STATUS_INVALID || count != 99) {
            fail_msg("%s", bad[i]);
        }
    }
    size_t count = 99;
    assert_int_equal(local_times_parse("{\"2030-01-01 06:00:00\",\"2030-01-02 06:00:00\"}", times,
                                       1, &count, NULL),
                     STATUS_FULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_form_of_its_keys_is_that_of_the_rule),
        cmocka_unit_test(test_dates_are_taken_away_and_added),
        cmocka_unit_test(test_policies_for_changes_of_the_clock_are_the_rows),
        cmocka_unit_test(test_a_bad_one_is_refused_with_the_remedy),
        cmocka_unit_test(test_a_rule_of_quartz_is_planned_by_its_std_text),
        cmocka_unit_test(test_lists_are_read_sorted_and_each_once),
        cmocka_unit_test(test_lists_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
