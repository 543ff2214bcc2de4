/* Recurrence rules: their bounds, and what they say of themselves. What they fire is compared in
 * tests/time/test_rrule_fuzz.c and test_rrule_cases.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_rrule.h"
#include "fixture_zone.h"
#include "rrule_inside.h"

static struct local_time local(const char *text)
{
    struct date_time t;
    struct error err;
    if (date_time_parse(text, &t, &err) != STATUS_OK) {
        fail_msg("%s: %s", text, err.text);
    }
    return t.local;
}

static struct rrule parsed(const char *text, const char *start)
{
    const struct rrule_source source = {.text = text, .start = local(start)};
    struct rrule r;
    struct error err = {.text = ""};
    if (rrule_parse(&source, &r, &err) != STATUS_OK) {
        fail_msg("%s: %s", text, err.text);
    }
    return r;
}

static void assert_refused(const struct rrule_source *source, const char *why)
{
    struct rrule r;
    struct error err = {.text = ""};
    enum status wanted = strcmp(why, "never fires") == 0 ? STATUS_NOT_FOUND : STATUS_INVALID;
    assert_int_equal(rrule_parse(source, &r, &err), wanted);
    if (strstr(err.text, why) == NULL) {
        fail_msg("%s: \"%s\" says nothing of \"%s\"", source->text, err.text, why);
    }
}

/* ---- bounds ---- */

static void test_next_far_from_the_start_costs_no_more_than_near_it(void **state)
{
    (void)state;
    static const char *const rules[] = {
        "FREQ=MINUTELY",
        "FREQ=MINUTELY;INTERVAL=7",
        "FREQ=MINUTELY;INTERVAL=1441",
        "FREQ=HOURLY;INTERVAL=5;BYHOUR=1,17",
        "FREQ=HOURLY;INTERVAL=25",
        "FREQ=DAILY;INTERVAL=3",
        "FREQ=DAILY;INTERVAL=2;BYHOUR=1,2,3;BYMINUTE=5,10;BYSETPOS=-1",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,WE",
        "FREQ=WEEKLY;BYDAY=MO,WE,FR;BYSETPOS=-1",
        "FREQ=MONTHLY;INTERVAL=5;BYDAY=-1FR",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-2",
        "FREQ=YEARLY;INTERVAL=3;BYMONTH=5",
        "FREQ=YEARLY;INTERVAL=2;BYWEEKNO=20;BYDAY=MO",
    };
    const struct zone *z = fixture_zone("America/New_York");
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct rrule r = parsed(rules[i], "1971-01-04T09:00:00");
        int steps = 0;
        struct firing f =
            rrule_next_counting(&r, z, fixture_instant("2190-06-01T00:00:00Z"), &steps);
        assert_true(f.found);
        if (steps > 150) {
            fail_msg("%s took %d steps", rules[i], steps);
        }
    }
}

/* A rule that fires, changed so that it never does: the search goes all the way. */
static int steps_to_never(struct rrule r)
{
    struct rrule_search s = rrule_search_from(&r, r.start.s);
    int64_t n = 0;
    if (rrule_nominal_from(&s, r.start.s, &n)) {
        fail_msg("it fires");
    }
    return s.steps;
}

static void test_a_search_for_what_never_comes_ends_within_its_bound(void **state)
{
    (void)state;
    const char *start = "2030-04-15T00:00:00"; /* a Monday */
    struct rrule r[7];
    r[0] = parsed("FREQ=MINUTELY;INTERVAL=7;BYHOUR=0;BYMINUTE=0;BYDAY=MO", start);
    r[0].weekdays = 0x7d;
    r[1] = parsed("FREQ=HOURLY;INTERVAL=168;BYDAY=MO", start);
    r[1].weekdays = 0x7d;
    r[2] = parsed("FREQ=HOURLY;INTERVAL=7;BYHOUR=0;BYDAY=MO", start);
    r[2].weekdays = 0x7d;
    r[3] = parsed("FREQ=DAILY;INTERVAL=7;BYDAY=MO", start);
    r[3].weekdays = 0x7d;
    r[4] = parsed("FREQ=WEEKLY;BYDAY=MO;BYHOUR=1;BYSETPOS=1", start);
    memset(&r[4].positions, 0, sizeof r[4].positions);
    r[4].positions.from_first[0] = 1 << 2;
    r[5] = parsed("FREQ=MONTHLY;BYMONTHDAY=31;BYSETPOS=1", start);
    memset(&r[5].positions, 0, sizeof r[5].positions);
    r[5].positions.from_first[0] = 1 << 2;
    r[6] = parsed("FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO", start);
    r[6].weekdays = 0;
    int most = 0;
    for (size_t i = 0; i < sizeof r / sizeof r[0]; i++) {
        int steps = steps_to_never(r[i]);
        most = steps > most ? steps : most;
        if (steps > RRULE_STEPS_MAX) {
            fail_msg("rule %zu took %d steps", i, steps);
        }
    }
    print_message("at most %d steps\n", most);
    assert_true(most > 10000);
}

static void test_rare_rules_are_found_within_a_cycle_of_the_calendar(void **state)
{
    (void)state;
    static const struct {
        const char *rule, *start, *after, *next;
    } rare[] = {
        {"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO", "2030-01-01T06:00:00",
         "2072-03-01T00:00:00Z", "2112-02-29T06:00:00Z"},
        {"FREQ=DAILY;BYMONTH=2;BYMONTHDAY=29", "2030-01-01T06:00:00", "2096-03-01T00:00:00Z",
         "2104-02-29T06:00:00Z"},
        {"FREQ=HOURLY;INTERVAL=36;BYHOUR=6;BYMONTH=2;BYMONTHDAY=29", "2030-01-01T06:00:00",
         "2030-01-01T00:00:00Z", "2032-02-29T06:00:00Z"},
        {"FREQ=YEARLY;INTERVAL=400;BYMONTH=1", "2000-01-05T06:00:00", "2000-01-05T06:00:00Z",
         "2400-01-05T06:00:00Z"},
        /* The last week of 2020 is its 53rd, and no part of 2021's set. */
        {"FREQ=YEARLY;BYWEEKNO=1,53;BYDAY=MO;BYSETPOS=1", "2019-12-30T06:00:00",
         "2020-06-01T00:00:00Z", "2021-01-04T06:00:00Z"},
        {"FREQ=MONTHLY", "2030-01-31T06:00:00", "2030-01-31T06:00:00Z", "2030-03-31T06:00:00Z"},
    };
    for (size_t i = 0; i < sizeof rare / sizeof rare[0]; i++) {
        struct rrule r = parsed(rare[i].rule, rare[i].start);
        struct firing f = rrule_next(&r, fixture_zone("UTC"), fixture_instant(rare[i].after));
        char text[RFC3339_TEXT_MAX] = "none";
        if (f.found) {
            rfc3339_format_utc(f.at, text);
        }
        if (strcmp(text, rare[i].next) != 0) {
            fail_msg("%s: wanted %s, got %s", rare[i].rule, rare[i].next, text);
        }
    }
}

static void test_nothing_fires_behind_the_last_year_or_from_either_end_of_time(void **state)
{
    (void)state;
    struct rrule r = parsed("FREQ=DAILY", "9999-12-30T06:00:00");
    const struct zone *z = fixture_zone("Europe/Berlin");
    struct firing f = rrule_next(&r, z, UTC_NONE);
    assert_true(f.found);
    assert_int_equal(f.nominal.s, local("9999-12-30T06:00:00").s);
    f = rrule_next(&r, z, f.at);
    assert_true(f.found);
    assert_false(rrule_next(&r, z, f.at).found);
    assert_false(rrule_next(&r, z, UTC_UNBOUNDED).found);
    assert_int_equal(rrule_count(&r, z, UTC_NONE, (utc_us){INT64_MAX - 1}), 2);
}

static void test_count_finds_its_end_without_walking_each_time(void **state)
{
    (void)state;
    struct rrule r = parsed("FREQ=MINUTELY;COUNT=100000", "2030-01-01T00:00:00");
    assert_int_equal(r.last.s, r.start.s + 99999 * 60);
    r = parsed("FREQ=DAILY;BYHOUR=6,18;COUNT=99999", "2030-01-01T00:00:00");
    assert_int_equal(r.last.s, r.start.s + 49999 * (int64_t)SECONDS_A_DAY + 6 * 3600);
    r = parsed("FREQ=WEEKLY;BYDAY=MO,TU;BYSETPOS=-1;COUNT=1000", "2030-01-01T06:00:00");
    assert_int_equal(r.last.s, r.start.s + 999 * 7 * (int64_t)SECONDS_A_DAY);
    /* What does not come before year 9999 has no other end. */
    r = parsed("FREQ=YEARLY;INTERVAL=400;COUNT=100", "2000-01-01T06:00:00");
    assert_int_equal(r.last.s, INT64_MAX);
    const struct rrule_source slow = {.text = "FREQ=HOURLY;INTERVAL=23;BYHOUR=0;COUNT=100000",
                                      .start = local("2030-01-01T00:00:00")};
    assert_refused(&slow, "takes too long to count");
}

static void test_lists_are_bounded_and_in_order(void **state)
{
    (void)state;
    static struct local_time many[RRULE_DATES_MAX + 1];
    for (size_t i = 0; i <= RRULE_DATES_MAX; i++) {
        many[i].s = local("2030-01-01T00:00:00").s + (int64_t)i * SECONDS_A_DAY;
    }
    struct rrule_source source = {.text = "FREQ=DAILY",
                                  .start = many[0],
                                  .exdates = many,
                                  .exdate_count = RRULE_DATES_MAX + 1};
    assert_refused(&source, "at most 1000");
    source.exdate_count = RRULE_DATES_MAX;
    struct rrule r;
    struct error err;
    assert_int_equal(rrule_parse(&source, &r, &err), STATUS_OK);
    const struct zone *z = fixture_zone("UTC");
    struct firing f = rrule_next(&r, z, UTC_NONE);
    assert_int_equal(f.nominal.s, many[RRULE_DATES_MAX].s);
    assert_int_equal(rrule_count(&r, z, UTC_NONE, (utc_us){f.at.us + 1}), 1);

    struct local_time three[] = {many[2], many[1], many[2]};
    source.rdates = three;
    source.rdate_count = 3;
    assert_refused(&source, "number 2 is not later");
    assert_int_equal(local_times_sort(three, 3), 2);
    assert_int_equal(three[0].s, many[1].s);
    assert_int_equal(three[1].s, many[2].s);
    assert_int_equal(local_times_sort(three, 0), 0);
}

/* ---- what a rule says of itself ---- */

static void test_a_rule_knows_whether_a_date_names_its_firings(void **state)
{
    (void)state;
    static const struct {
        const char *rule;
        bool daily, seconds;
    } rules[] = {
        {"FREQ=DAILY", true, false},
        {"FREQ=DAILY;BYSECOND=30", true, true},
        {"FREQ=DAILY;BYSECOND=0,30", false, true},
        {"FREQ=DAILY;BYHOUR=6,18", false, false},
        {"FREQ=DAILY;BYHOUR=6,18;BYSETPOS=-1", true, false},
        {"FREQ=DAILY;BYHOUR=6,18;BYSETPOS=1,-1", false, false},
        {"FREQ=WEEKLY;BYDAY=MO,FR", true, false},
        {"FREQ=MONTHLY;BYDAY=TU;BYHOUR=0;BYMINUTE=3,11;BYSETPOS=-1", true, false},
        {"FREQ=MONTHLY;BYDAY=TU;BYHOUR=0;BYMINUTE=3,11", false, false},
        {"FREQ=HOURLY", false, false},
        {"FREQ=HOURLY;BYHOUR=6", true, false},
        {"FREQ=HOURLY;INTERVAL=24", true, false},
        {"FREQ=HOURLY;INTERVAL=12;BYHOUR=0,1,2,3,4,5,6", true, false},
        {"FREQ=MINUTELY;BYHOUR=6;BYMINUTE=30", true, false},
        {"FREQ=MINUTELY;INTERVAL=1440", true, false},
        {"FREQ=MINUTELY;INTERVAL=720", false, false},
        {"FREQ=MINUTELY;INTERVAL=720;BYHOUR=6,7,8;BYMINUTE=0", true, false},
        {"FREQ=MINUTELY;BYSECOND=0,30;BYSETPOS=1;BYHOUR=6;BYMINUTE=30", true, false},
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct rrule r = parsed(rules[i].rule, "2030-01-01T06:00:00");
        if (rrule_is_at_most_daily(&r) != rules[i].daily ||
            rrule_has_seconds(&r) != rules[i].seconds) {
            fail_msg("%s: daily %d, seconds %d", rules[i].rule, rrule_is_at_most_daily(&r),
                     rrule_has_seconds(&r));
        }
    }
}

static void test_an_added_time_on_a_date_of_the_rule_makes_two_of_a_day(void **state)
{
    (void)state;
    const struct local_time added[] = {local("2030-01-05T18:00:00"), local("2030-01-06T18:00:15")};
    const struct local_time out[] = {local("2030-01-05T06:00:00"), local("2030-01-06T06:00:00")};
    struct rrule_source source = {.text = "FREQ=DAILY",
                                  .start = local("2030-01-01T06:00:00"),
                                  .rdates = added,
                                  .rdate_count = 1};
    struct rrule r;
    struct error err;
    assert_int_equal(rrule_parse(&source, &r, &err), STATUS_OK);
    assert_false(rrule_is_at_most_daily(&r));
    assert_false(rrule_has_seconds(&r));
    /* Moved to the evening: the one is taken away, the other added. */
    source.rdate_count = 2;
    source.exdates = out;
    source.exdate_count = 2;
    assert_int_equal(rrule_parse(&source, &r, &err), STATUS_OK);
    assert_true(rrule_is_at_most_daily(&r));
    assert_true(rrule_has_seconds(&r));
}

/* ---- properties ---- */

static void sweep(const struct rrule *r, const struct zone *z, const char *text)
{
    utc_us after = UTC_NONE;
    struct firing before = {.found = false};
    for (int i = 0; i < 30; i++) {
        struct firing f = rrule_next(r, z, after);
        if (!f.found) {
            return;
        }
        bool increases = !before.found || (f.at.us > before.at.us);
        bool named_once = !before.found || f.nominal.s != before.nominal.s ||
                          (f.offset_in_key && f.offset_s != before.offset_s);
        int64_t low = before.found ? before.at.us : f.at.us - 1000000;
        int64_t between = low + (int64_t)(fixture_random() % (uint64_t)(f.at.us - low));
        struct firing same = rrule_next(r, z, (utc_us){between});
        struct firing last = rrule_next(r, z, (utc_us){f.at.us - 1});
        if (!increases || !named_once || same.at.us != f.at.us || last.at.us != f.at.us) {
            fail_msg("%s in %s at firing %d", text, zone_name(z), i);
        }
        before = f;
        after = f.at;
    }
}

static void test_firings_increase_and_do_not_depend_on_where_one_asks(void **state)
{
    (void)state;
    static const char *const zones[] = {"America/New_York", "Australia/Lord_Howe", "Pacific/Apia",
                                        "America/St_Johns"};
    int swept = 0;
    for (int i = 0; i < 1500; i++) {
        struct slow_rule slow;
        char text[SLOW_TEXT_MAX];
        slow_rule_random(&slow, local("2011-11-01T00:00:00").s);
        slow_rule_write(&slow, text);
        const struct rrule_source source = {
            .text = text,
            .start = {slow.start},
            .gap = (enum dst_gap_policy)fixture_random_in(DST_GAP_AUTO, DST_GAP_SKIP),
            .overlap =
                (enum dst_overlap_policy)fixture_random_in(DST_OVERLAP_AUTO, DST_OVERLAP_BOTH),
        };
        struct rrule r;
        struct error err;
        if (rrule_parse(&source, &r, &err) == STATUS_OK) {
            sweep(&r, fixture_zone(zones[i % 4]), text);
            swept++;
        }
    }
    print_message("%d rules\n", swept);
    assert_true(swept > 750);
}

static void test_nothing_of_a_week_beyond_the_last_year_is_picked(void **state)
{
    (void)state;
    /* 9999-12-31 is a Friday; the Sunday of its week has no date here. */
    const struct rrule_source source = {.text = "FREQ=WEEKLY;BYDAY=MO,SU;BYSETPOS=2",
                                        .start = local("9999-12-31T23:59:59")};
    assert_refused(&source, "never fires");
}

static void
test_of_a_rule_and_an_added_time_at_one_instant_the_latest_names_the_firing(void **state)
{
    (void)state;
    const struct local_time added = local("2026-03-29T02:45:00");
    const struct rrule_source source = {.text = "FREQ=DAILY",
                                        .start = local("2026-03-28T02:15:00"),
                                        .rdates = &added,
                                        .rdate_count = 1,
                                        .gap = DST_GAP_AFTER};
    struct rrule r;
    struct error err;
    assert_int_equal(rrule_parse(&source, &r, &err), STATUS_OK);
    const struct zone *z = fixture_zone("Europe/Berlin");
    struct firing f = rrule_next(&r, z, fixture_instant("2026-03-28T12:00:00Z"));
    assert_int_equal(f.at.us, fixture_instant("2026-03-29T01:00:00Z").us);
    assert_int_equal(f.nominal.s, added.s);
    f = rrule_next(&r, z, f.at);
    assert_int_equal(f.nominal.s, local("2026-03-30T02:15:00").s);
    assert_int_equal(rrule_count(&r, z, fixture_instant("2026-03-28T12:00:00Z"), f.at), 1);
}

static void test_a_date_that_a_zone_skips_has_no_firing(void **state)
{
    (void)state;
    struct rrule r = parsed("FREQ=WEEKLY;BYDAY=FR", "2011-12-23T09:00:00");
    const struct zone *z = fixture_zone("Pacific/Apia");
    struct firing f = rrule_next(&r, z, fixture_instant("2011-12-25T00:00:00Z"));
    assert_int_equal(f.nominal.s, local("2012-01-06T09:00:00").s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next_far_from_the_start_costs_no_more_than_near_it),
        cmocka_unit_test(test_a_search_for_what_never_comes_ends_within_its_bound),
        cmocka_unit_test(test_rare_rules_are_found_within_a_cycle_of_the_calendar),
        cmocka_unit_test(test_nothing_fires_behind_the_last_year_or_from_either_end_of_time),
        cmocka_unit_test(test_count_finds_its_end_without_walking_each_time),
        cmocka_unit_test(test_lists_are_bounded_and_in_order),
        cmocka_unit_test(test_a_rule_knows_whether_a_date_names_its_firings),
        cmocka_unit_test(test_an_added_time_on_a_date_of_the_rule_makes_two_of_a_day),
        cmocka_unit_test(test_firings_increase_and_do_not_depend_on_where_one_asks),
        cmocka_unit_test(test_nothing_of_a_week_beyond_the_last_year_is_picked),
        cmocka_unit_test(
            test_of_a_rule_and_an_added_time_at_one_instant_the_latest_names_the_firing),
        cmocka_unit_test(test_a_date_that_a_zone_skips_has_no_firing),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
