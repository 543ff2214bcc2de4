/* Rules with a calendar: what fires on which day, against hand-made cases and a slow evaluator. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_calendar.h"
#include "fixture_zone.h"
#include "key.h"

#define A_DAY_US ((int64_t)SECONDS_A_DAY * MICROS_A_SECOND)

/* Weekends, and holidays by name ("": none). */
static struct calendar *calendar_with(const char *const *holidays, size_t count,
                                      const char *valid_through)
{
    struct calendar_special days[40] = {{0}};
    for (size_t i = 0; i < count; i++) {
        days[i] = (struct calendar_special){.day = day_of(holidays[i])};
    }
    struct calendar_rules rules = rules_of(days, count);
    rules.beyond = CALENDAR_BEYOND_HOLD;
    if (valid_through != NULL) {
        rules.valid_through = day_of(valid_through);
    }
    return calendar_of(&rules);
}

static struct rule rule_of(const struct rule_source *source)
{
    struct rule r = {.zone = NULL};
    struct error err = {.text = ""};
    if (rule_parse(source, fixture_zones(), &r, &err) != STATUS_OK) {
        fail_msg("%s: %s", source->text, err.text);
    }
    return r;
}

/* "KEY at INSTANT" of the firings after an instant. */
static void check_firings(const struct rule *r, const char *after, const char *want)
{
    char all[800] = "";
    utc_us t = fixture_instant(after);
    for (int i = 0; i < 4; i++) {
        struct firing f = rule_next(r, t);
        char key[KEY_MAX_BYTES] = "none";
        char at[RFC3339_TEXT_MAX] = "";
        if (f.found || f.held) {
            key_format(key_form_of_rule(r), &f, key);
            rfc3339_format(f.at, f.offset_s, at);
            t = f.at;
        }
        size_t n = strlen(all);
        (void)snprintf(all + n, sizeof all - n, "%s%s%s%s%s", i > 0 ? ", " : "",
                       f.held ? "held " : "", key, at[0] != '\0' ? " " : "", at);
        if (!f.found) {
            break;
        }
    }
    assert_string_equal(all, want);
}

static void test_daily_rule_that_skips_fires_on_business_days_only(void **state)
{
    (void)state;
    const char *holidays[] = {"2026-01-19"};
    struct calendar *c = calendar_with(holidays, 1, NULL);
    struct rule r = rule_of(&(struct rule_source){.kind = "cron",
                                                  .text = "0 7 * * *",
                                                  .zone = "America/New_York",
                                                  .calendar = c,
                                                  .nonbusiness = ROLL_SKIP});
    check_firings(&r, "2026-01-15T13:00:00Z",
                  "2026-01-16 2026-01-16T07:00:00-05:00, 2026-01-20 2026-01-20T07:00:00-05:00, "
                  "2026-01-21 2026-01-21T07:00:00-05:00, 2026-01-22 2026-01-22T07:00:00-05:00");
    calendar_free(c);
}

static void test_several_times_a_day_may_skip_but_not_move(void **state)
{
    (void)state;
    struct calendar *c = calendar_with(NULL, 0, NULL);
    struct rule_source source = {.kind = "cron",
                                 .text = "0 6,18 * * *",
                                 .zone = "UTC",
                                 .calendar = c,
                                 .nonbusiness = ROLL_SKIP};
    struct rule r = rule_of(&source);
    check_firings(&r, "2030-04-12T06:00:00Z",
                  "2030-04-12T18:00 2030-04-12T18:00:00+00:00, 2030-04-15T06:00 "
                  "2030-04-15T06:00:00+00:00, 2030-04-15T18:00 2030-04-15T18:00:00+00:00, "
                  "2030-04-16T06:00 2030-04-16T06:00:00+00:00");
    struct error err = {.text = ""};
    source.nonbusiness = ROLL_FOLLOWING;
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "write nonbusiness = 'skip'"));
    source.kind = "interval";
    source.text = "1 day";
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "an interval is elapsed time and takes no calendar"));
    source.kind = "cron";
    source.text = "0 6 * * *";
    source.calendar = NULL;
    assert_int_equal(rule_parse(&source, fixture_zones(), &r, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "need a calendar"));
    calendar_free(c);
}

/* NYSE: 2024-03-29 is Good Friday. The last day of the month and the business day before it. */
static void test_firing_that_moves_to_before_its_date_is_found_in_time(void **state)
{
    (void)state;
    const char *holidays[] = {"2024-03-29"};
    struct calendar *c = calendar_with(holidays, 1, NULL);
    struct rule r = rule_of(&(struct rule_source){.kind = "cron",
                                                  .text = "0 18 L * *",
                                                  .zone = "America/New_York",
                                                  .calendar = c,
                                                  .nonbusiness = ROLL_PRECEDING});
    check_firings(&r, "2024-03-20T00:00:00Z",
                  "2024-03-31 2024-03-28T18:00:00-04:00, 2024-04-30 2024-04-30T18:00:00-04:00, "
                  "2024-05-31 2024-05-31T18:00:00-04:00, 2024-06-30 2024-06-28T18:00:00-04:00");
    /* It has fired already although its date is still to come. */
    check_firings(&r, "2024-03-28T22:00:00Z",
                  "2024-04-30 2024-04-30T18:00:00-04:00, 2024-05-31 2024-05-31T18:00:00-04:00, "
                  "2024-06-30 2024-06-28T18:00:00-04:00, 2024-07-31 2024-07-31T18:00:00-04:00");
    calendar_free(c);
}

static void test_offset_counts_business_days_behind_the_rolled_date(void **state)
{
    (void)state;
    const char *holidays[] = {"2026-04-03"};
    struct calendar *c = calendar_with(holidays, 1, NULL);
    struct rule_source source = {.kind = "cron",
                                 .text = "0 9 L 3,6,9,12 *",
                                 .zone = "America/New_York",
                                 .calendar = c,
                                 .business_day_offset = 5};
    struct rule r = rule_of(&source);
    check_firings(&r, "2026-04-01T00:00:00Z",
                  "2026-03-31 2026-04-08T09:00:00-04:00, 2026-06-30 2026-07-07T09:00:00-04:00, "
                  "2026-09-30 2026-10-07T09:00:00-04:00, 2026-12-31 2027-01-07T09:00:00-05:00");
    source.text = "0 9 1 * *";
    source.nonbusiness = ROLL_FOLLOWING;
    source.business_day_offset = -3;
    r = rule_of(&source);
    check_firings(&r, "2026-04-27T00:00:00Z",
                  "2026-05-01 2026-04-28T09:00:00-04:00, 2026-06-01 2026-05-27T09:00:00-04:00, "
                  "2026-07-01 2026-06-26T09:00:00-04:00, 2026-08-01 2026-07-29T09:00:00-04:00");
    calendar_free(c);
}

static void test_dates_that_come_to_one_day_fire_once_or_each(void **state)
{
    (void)state;
    struct calendar *c = calendar_with(NULL, 0, NULL);
    struct rule_source source = {.kind = "cron",
                                 .text = "30 2 * * *",
                                 .zone = "Europe/Berlin",
                                 .calendar = c,
                                 .nonbusiness = ROLL_FOLLOWING};
    struct rule r = rule_of(&source);
    check_firings(&r, "2030-04-12T03:00:00Z",
                  "2030-04-15 2030-04-15T02:30:00+02:00, 2030-04-16 2030-04-16T02:30:00+02:00, "
                  "2030-04-17 2030-04-17T02:30:00+02:00, 2030-04-18 2030-04-18T02:30:00+02:00");
    source.run_all = true;
    r = rule_of(&source);
    check_firings(&r, "2030-04-12T03:00:00Z",
                  "2030-04-13 2030-04-15T02:30:00+02:00, 2030-04-14 2030-04-15T02:30:01+02:00, "
                  "2030-04-15 2030-04-15T02:30:02+02:00, 2030-04-16 2030-04-16T02:30:00+02:00");
    calendar_free(c);
}

/* 2030-03-31 is a Sunday on which 02:30 does not exist in Berlin; the Friday before has it. */
static void test_policies_for_the_clock_hold_for_the_day_it_moves_to(void **state)
{
    (void)state;
    struct calendar *c = calendar_with(NULL, 0, NULL);
    struct rule_source source = {.kind = "cron",
                                 .text = "30 2 L * *",
                                 .zone = "Europe/Berlin",
                                 .gap = DST_GAP_SKIP,
                                 .calendar = c,
                                 .nonbusiness = ROLL_PRECEDING};
    struct rule r = rule_of(&source);
    check_firings(&r, "2030-03-15T00:00:00Z",
                  "2030-03-31 2030-03-29T02:30:00+01:00, 2030-04-30 2030-04-30T02:30:00+02:00, "
                  "2030-05-31 2030-05-31T02:30:00+02:00, 2030-06-30 2030-06-28T02:30:00+02:00");
    calendar_free(c);
}

static void test_days_that_the_calendar_does_not_know_are_held(void **state)
{
    (void)state;
    struct calendar *c = calendar_with(NULL, 0, "2030-04-16");
    struct rule r = rule_of(&(struct rule_source){.kind = "cron",
                                                  .text = "0 6 * * *",
                                                  .zone = "UTC",
                                                  .calendar = c,
                                                  .nonbusiness = ROLL_FOLLOWING});
    check_firings(&r, "2030-04-14T00:00:00Z",
                  "2030-04-15 2030-04-15T06:00:00+00:00, 2030-04-16 2030-04-16T06:00:00+00:00, "
                  "held 2030-04-17 2030-04-17T06:00:00+00:00");
    const struct rule_bounds open = {UTC_NONE, UTC_NONE};
    utc_us from = fixture_instant("2030-04-14T00:00:00Z");
    utc_us to = fixture_instant("2030-06-01T00:00:00Z");
    assert_int_equal(rule_count_within(&r, from, to, open), 2);
    struct firing last = rule_last_within(&r, from, to, open);
    assert_true(last.found && last.at.us == fixture_instant("2030-04-16T06:00:00Z").us);
    calendar_free(c);
}

/* ---- a slow evaluator: every nominal date of three years, rolled, put in order ---- */

#define SLOW_MAX 1300

struct slow {
    struct firing firings[SLOW_MAX];
    size_t count;
};

static void slow_add(struct slow *s, const struct rule_source *source, struct firing f)
{
    size_t at = s->count;
    for (size_t i = 0; i < s->count; i++) {
        if (s->firings[i].at.us / 60000000 == f.at.us / 60000000) {
            if (!source->run_all) {
                s->firings[i] = f; /* later nominal dates come later */
                return;
            }
            f.at.us += MICROS_A_SECOND;
        }
    }
    while (at > 0 && s->firings[at - 1].at.us > f.at.us) {
        s->firings[at] = s->firings[at - 1];
        at--;
    }
    s->firings[at] = f;
    s->count++;
}

/* In UTC, where a nominal time is its instant. */
static void slow_fill(struct slow *s, const struct rule_source *source, utc_us from, utc_us to)
{
    struct rule_source plain = *source;
    plain.calendar = NULL;
    plain.nonbusiness = ROLL_RUN;
    plain.business_day_offset = 0;
    struct rule r = rule_of(&plain);
    s->count = 0;
    for (struct firing f = rule_next(&r, from); f.found && f.at.us < to.us;
         f = rule_next(&r, f.at)) {
        int64_t date = floor_divide(f.nominal.s, SECONDS_A_DAY);
        struct calendar_answer a;
        assert_int_equal(calendar_roll(source->calendar, source->nonbusiness, date, &a, NULL),
                         STATUS_OK);
        if (a.skipped) {
            continue;
        }
        if (source->business_day_offset != 0) {
            assert_int_equal(
                calendar_add(source->calendar, a.day, source->business_day_offset, &a, NULL),
                STATUS_OK);
        }
        struct firing moved = f;
        moved.at.us += (a.day - date) * A_DAY_US;
        slow_add(s, source, moved);
    }
}

static void slow_compare(const struct rule_source *source, const struct slow *s, utc_us from,
                         utc_us to)
{
    const struct rule_bounds open = {UTC_NONE, UTC_NONE};
    struct rule r = rule_of(source);
    utc_us t = from;
    int64_t count = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->firings[i].at.us <= from.us || s->firings[i].at.us >= to.us) {
            continue;
        }
        struct firing f = rule_next(&r, t);
        if (!f.found || f.at.us != s->firings[i].at.us || f.nominal.s != s->firings[i].nominal.s) {
            fail_msg("%s, convention %s, offset %d, firing %zu: at %lld, not %lld", source->text,
                     roll_convention_name(source->nonbusiness), source->business_day_offset, i,
                     (long long)f.at.us, (long long)s->firings[i].at.us);
        }
        count++;
        t = f.at;
    }
    assert_int_equal(rule_count_within(&r, from, to, open), count);
}

static void test_every_firing_is_that_of_a_slow_evaluator(void **state)
{
    (void)state;
    static const char *const texts[] = {"0 6 * * *", "0 6 15 * *", "0 6 L * *", "0 6 * * 1,6",
                                        "0 6 1-3,15,16 * *"};
    static const char *const closed[] = {
        "2030-01-01", "2030-04-19", "2030-04-22", "2030-05-01", "2030-05-02", "2030-05-03",
        "2030-05-06", "2030-05-07", "2030-05-08", "2030-05-09", "2030-05-10", "2030-05-31",
        "2030-06-28", "2030-07-15", "2030-12-25", "2030-12-26", "2030-12-31"};
    static struct slow slow;
    struct calendar *c = calendar_with(closed, sizeof closed / sizeof closed[0], NULL);
    for (int i = 0; i < 60; i++) {
        struct rule_source source = {
            .kind = "cron",
            .text = texts[fixture_random_in(0, 4)],
            .zone = "UTC",
            .calendar = c,
            .nonbusiness = (enum roll_convention)fixture_random_in(ROLL_RUN, ROLL_NEAREST),
            .business_day_offset = fixture_random_in(0, 1) * fixture_random_in(-31, 31),
            .run_all = fixture_random_in(0, 1) == 1,
        };
        slow_fill(&slow, &source, fixture_instant("2029-01-01T00:00:00Z"),
                  fixture_instant("2032-01-01T00:00:00Z"));
        slow_compare(&source, &slow, fixture_instant("2029-12-01T00:00:00Z"),
                     fixture_instant("2031-02-01T00:00:00Z"));
    }
    calendar_free(c);
}

/* Whole days are counted at once; the clock changes in between. */
static void test_count_of_a_minute_rule_that_skips_days_is_that_of_steps(void **state)
{
    (void)state;
    const char *holidays[] = {"2030-03-29", "2030-04-01"};
    struct calendar *c = calendar_with(holidays, 2, NULL);
    struct rule r = rule_of(&(struct rule_source){.kind = "cron",
                                                  .text = "*/7 * * * *",
                                                  .zone = "Europe/Berlin",
                                                  .calendar = c,
                                                  .nonbusiness = ROLL_SKIP});
    const struct rule_bounds open = {UTC_NONE, UTC_NONE};
    utc_us from = fixture_instant("2030-03-20T11:03:00Z");
    utc_us to = fixture_instant("2030-04-09T17:59:00Z");
    int64_t steps = 0;
    for (struct firing f = rule_next(&r, from); f.at.us < to.us; f = rule_next(&r, f.at)) {
        steps++;
    }
    assert_int_equal(rule_count_within(&r, from, to, open), steps);
    assert_true(steps > 12 * 200 && steps < 14 * 210);
    calendar_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_daily_rule_that_skips_fires_on_business_days_only),
        cmocka_unit_test(test_several_times_a_day_may_skip_but_not_move),
        cmocka_unit_test(test_firing_that_moves_to_before_its_date_is_found_in_time),
        cmocka_unit_test(test_offset_counts_business_days_behind_the_rolled_date),
        cmocka_unit_test(test_dates_that_come_to_one_day_fire_once_or_each),
        cmocka_unit_test(test_policies_for_the_clock_hold_for_the_day_it_moves_to),
        cmocka_unit_test(test_days_that_the_calendar_does_not_know_are_held),
        cmocka_unit_test(test_every_firing_is_that_of_a_slow_evaluator),
        cmocka_unit_test(test_count_of_a_minute_rule_that_skips_days_is_that_of_steps),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
