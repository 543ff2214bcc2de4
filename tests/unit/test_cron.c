/* Cron expressions: what is compiled, and edges of the search. What is refused is in
 * test_cron_refusals.c, the golden cases in test_cron_cases.c, the walk over every minute in
 * test_cron_walk.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cron.h"
#include "fixture_cron.h"
#include "fixture_zone.h"

/* Does the special day of this kind name this date? Written by looking at each day. */
static bool day_is_named(int kind, int n, int nth, struct civil_date d)
{
    int last = civil_days_in_month(d.year, d.month);
    int64_t first = civil_days_of(d.year, d.month, 1);
    int weekday = civil_weekday(first + d.day - 1);
    int wanted = kind == 2 ? last : n;
    int best = 0;
    switch (kind) {
    case 0: /* L */
        return d.day == last;
    case 1: /* L-n */
        return d.day == last - n;
    case 2: /* LW */
    case 3: /* nW: the nearest Monday to Friday of the month */
        if (wanted > last) {
            return false;
        }
        for (int day = 1; day <= last; day++) {
            int w = civil_weekday(first + day - 1);
            if (w != 0 && w != 6 && (best == 0 || abs(day - wanted) < abs(best - wanted))) {
                best = day;
            }
        }
        return d.day == best;
    case 4: /* d#n */
        return weekday == n % 7 && (d.day - 1) / 7 + 1 == nth;
    default: /* dL */
        return weekday == n % 7 && d.day + 7 > last;
    }
}

static void special_write(int kind, int n, int nth, char *text, size_t size)
{
    switch (kind) {
    case 0:
        (void)snprintf(text, size, "L");
        return;
    case 1:
        (void)snprintf(text, size, "L-%d", n);
        return;
    case 2:
        (void)snprintf(text, size, "LW");
        return;
    case 3:
        (void)snprintf(text, size, "%dW", n);
        return;
    case 4:
        (void)snprintf(text, size, "%d#%d", n, nth);
        return;
    default:
        (void)snprintf(text, size, "%dL", n);
        return;
    }
}

static void test_special_days_agree_with_a_calendar_that_asks_each_day(void **state)
{
    (void)state;
    for (int i = 0; i < 400; i++) {
        int kind = fixture_random_in(0, 5);
        int n = kind == 1   ? fixture_random_in(1, 30)
                : kind == 3 ? fixture_random_in(1, 31)
                            : fixture_random_in(0, 7);
        int nth = fixture_random_in(1, 5);
        char text[64];
        char item[16];
        special_write(kind, n, nth, item, sizeof item);
        (void)snprintf(text, sizeof text, "0 6 %s * %s", kind < 4 ? item : "*",
                       kind < 4 ? "*" : item);
        struct cron c = fixture_cron_parse(text);
        int64_t day = civil_days_of(fixture_random_in(1970, 2100), fixture_random_in(1, 12), 1);
        struct local_time t = {day * SECONDS_A_DAY};
        for (int64_t end = day + 800; day < end; day++) {
            assert_true(cron_nominal_from(&c, t, &t));
            bool here = t.s == day * SECONDS_A_DAY + 6 * 3600;
            if (here != day_is_named(kind, n, nth, civil_date_of(day))) {
                fail_msg("\"%s\" on day %lld", text, (long long)day);
            }
            t.s = (day + 1) * SECONDS_A_DAY;
        }
    }
}

static void test_spellings_that_mean_the_same_compile_to_the_same(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"@daily", "0 0 * * *"},
        {"@midnight", "0 0 * * *"},
        {"@weekly", "0 0 * * 0"},
        {"@monthly", "0 0 1 * *"},
        {"@yearly", "0 0 1 1 *"},
        {"@annually", "0 0 1 1 *"},
        {" @hourly\t", "0 * * * *"},
        {"0 0 * * 7", "0 0 * * 0"},
        {"0 0 * * 5-7", "0 0 * * FRI,sat,Sun"},
        {"0 0 * * 0-7", "0 0 * * 0-6"},
        {"0 0 * jan-mar,DEC *", "0 0 * 1-3,12 *"},
        {"00 08 01 * *", "0 8 1 * *"},
        {"\t 0  0\t* * *  ", "0 0 * * *"},
        {"0 0 0 * * *", "0 0 * * *"},
        {"0 0 0 * * * *", "0 0 * * *"},
        {"0 0 ? * ?", "0 0 * * *"},
        {"5-59/15 * * * *", "5,20,35,50 * * * *"},
        {"0 0 l * *", "0 0 L * *"},
        {"0 0 * * fril", "0 0 * * 5#L"},
        {"0 0 * * MON#2", "0 0 * * 1#2"},
        {"0 0 lw,15w * *", "0 0 15W,LW * *"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        struct cron a;
        struct cron b;
        memset(&a, 0, sizeof a);
        memset(&b, 0, sizeof b);
        assert_int_equal(cron_parse(pairs[i][0], &a, NULL), STATUS_OK);
        assert_int_equal(cron_parse(pairs[i][1], &b, NULL), STATUS_OK);
        a.has_years = b.has_years = false;
        memcpy(a.years, b.years, sizeof a.years);
        a.follows_clock = b.follows_clock;
        if (a.seconds != b.seconds || a.minutes != b.minutes || a.hours != b.hours ||
            a.months != b.months || a.days != b.days || a.weekdays != b.weekdays ||
            a.days_before_last != b.days_before_last || a.last_weekday != b.last_weekday ||
            a.nearest_weekdays != b.nearest_weekdays || a.last_weekdays != b.last_weekdays ||
            memcmp(a.nth_weekdays, b.nth_weekdays, sizeof a.nth_weekdays) != 0 ||
            a.day_restricted != b.day_restricted || a.weekday_restricted != b.weekday_restricted) {
            fail_msg("\"%s\" is not \"%s\"", pairs[i][0], pairs[i][1]);
        }
    }
}

static void check_next(const char *text, const char *zone, const char *after, const char *want)
{
    struct cron c = fixture_cron_parse(text);
    utc_us t = {0};
    assert_int_equal(rfc3339_parse(after, &t, NULL), STATUS_OK);
    struct firing f = cron_next(&c, fixture_zone(zone), t);
    char at[RFC3339_TEXT_MAX] = "";
    if (f.found) {
        rfc3339_format(f.at, f.offset_s, at);
    }
    if (strcmp(at, want) != 0) {
        fail_msg("\"%s\" in %s after %s: %s, wanted %s", text, zone, after, at, want);
    }
}

static void test_next_is_strictly_after_to_the_microsecond(void **state)
{
    (void)state;
    check_next("0 6 * * *", "UTC", "2030-04-12T05:59:59.999999Z", "2030-04-12T06:00:00+00:00");
    check_next("0 6 * * *", "UTC", "2030-04-12T06:00:00Z", "2030-04-13T06:00:00+00:00");
    check_next("0 0 * * *", "UTC", "1969-12-31T23:59:59.5Z", "1970-01-01T00:00:00+00:00");
    check_next("59 59 23 * * *", "UTC", "1969-12-31T00:00:00Z", "1969-12-31T23:59:59+00:00");
}

static void test_rare_dates_are_found_and_ended_years_end(void **state)
{
    (void)state;
    /* February 29 on a Monday: 28 years apart, 40 across 2100. */
    check_next("0 0 29 2 +MON", "UTC", "2072-03-01T00:00:00Z", "2112-02-29T00:00:00+00:00");
    check_next("0 0 29 2 +MON#5", "UTC", "2096-01-01T00:00:00Z", "2112-02-29T00:00:00+00:00");
    check_next("0 0 0 1 1 * 2199", "UTC", "2026-01-01T00:00:00Z", "2199-01-01T00:00:00+00:00");
    check_next("0 0 0 1 1 * 2199", "UTC", "2199-01-01T00:00:00Z", "");
    check_next("0 0 1 1 *", "UTC", "9999-06-01T00:00:00Z", "");
    check_next("0 0 1 1 *", "America/New_York", "9998-06-01T00:00:00Z",
               "9999-01-01T00:00:00-05:00");
}

static void test_a_job_that_only_ever_falls_into_gaps_ends_its_search(void **state)
{
    (void)state;
    struct cron c = fixture_cron_parse("30 2 * 3 7L");
    cron_set_policies(&c, DST_GAP_SKIP, DST_OVERLAP_FIRST);
    utc_us t = {0};
    assert_int_equal(rfc3339_parse("2026-01-01T00:00:00Z", &t, NULL), STATUS_OK);
    assert_false(cron_next(&c, fixture_zone("Europe/Berlin"), t).found);
    cron_set_policies(&c, DST_GAP_AUTO, DST_OVERLAP_AUTO);
    assert_true(cron_next(&c, fixture_zone("Europe/Berlin"), t).found);
}

static void test_seconds_follow_the_clock_through_both_passes(void **state)
{
    (void)state;
    check_next("*/30 59 2 * * *", "Europe/Berlin", "2026-10-25T02:59:30+02:00",
               "2026-10-25T02:59:00+01:00");
    check_next("0 59 2 * * *", "Europe/Berlin", "2026-10-25T02:59:00+02:00",
               "2026-10-26T02:59:00+01:00");
    /* Before 1972 Liberia was 44 min 30 s behind: seconds of an offset are kept. */
    check_next("0 6 * * *", "Africa/Monrovia", "1971-05-01T00:00:00Z",
               "1971-05-01T06:00:00-00:44:30");
}

static void test_policy_words_are_read(void **state)
{
    (void)state;
    enum dst_gap_policy gap = DST_GAP_AUTO;
    enum dst_overlap_policy overlap = DST_OVERLAP_AUTO;
    assert_true(dst_gap_policy_parse("shift", &gap) && gap == DST_GAP_SHIFT);
    assert_true(dst_gap_policy_parse("auto", &gap) && gap == DST_GAP_AUTO);
    assert_true(dst_gap_policy_parse("after", &gap) && gap == DST_GAP_AFTER);
    assert_true(dst_gap_policy_parse("skip", &gap) && gap == DST_GAP_SKIP);
    assert_false(dst_gap_policy_parse("first", &gap));
    assert_true(dst_overlap_policy_parse("first", &overlap) && overlap == DST_OVERLAP_FIRST);
    assert_true(dst_overlap_policy_parse("second", &overlap) && overlap == DST_OVERLAP_SECOND);
    assert_true(dst_overlap_policy_parse("both", &overlap) && overlap == DST_OVERLAP_BOTH);
    assert_false(dst_overlap_policy_parse("skip", &overlap));
}

static void test_random_texts_are_compiled_or_refused_in_one_line(void **state)
{
    (void)state;
    static const char *const pieces[] = {"*", "*", "*",   "*",   "*",   "1",  "2",    "3", "4", "6",
                                         "/", "-", ",",   "0",   "5",   "31", "2199", "L", "W", "#",
                                         "+", "?", "MON", "FRI", "JAN", "@",  "*/2",  "x"};
    int compiled = 0;
    for (int i = 0; i < 100000; i++) {
        char text[256] = "";
        size_t used = 0;
        for (int word = fixture_random_in(4, 8); word > 0; word--) {
            for (int k = fixture_random_in(0, 2) == 0 ? fixture_random_in(2, 5) : 1; k > 0; k--) {
                const char *piece = pieces[fixture_random() % (sizeof pieces / sizeof pieces[0])];
                size_t n = strlen(piece);
                memcpy(text + used, piece, n + 1);
                used += n;
            }
            text[used++] = ' ';
            text[used] = '\0';
        }
        struct cron c;
        struct error err = {.text = ""};
        if (cron_parse(text, &c, &err) == STATUS_OK) {
            compiled++;
            (void)cron_next(&c, fixture_zone("Europe/Berlin"), utc_from_seconds(1800000000));
        } else if (err.text[0] == '\0' || strchr(err.text, '\n') != NULL) {
            fail_msg("\"%s\" was refused with \"%s\"", text, err.text);
        }
    }
    print_message("%d of 100000 random texts compiled\n", compiled);
    assert_true(compiled > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_special_days_agree_with_a_calendar_that_asks_each_day),
        cmocka_unit_test(test_spellings_that_mean_the_same_compile_to_the_same),
        cmocka_unit_test(test_next_is_strictly_after_to_the_microsecond),
        cmocka_unit_test(test_rare_dates_are_found_and_ended_years_end),
        cmocka_unit_test(test_a_job_that_only_ever_falls_into_gaps_ends_its_search),
        cmocka_unit_test(test_seconds_follow_the_clock_through_both_passes),
        cmocka_unit_test(test_policy_words_are_read),
        cmocka_unit_test(test_random_texts_are_compiled_or_refused_in_one_line),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
