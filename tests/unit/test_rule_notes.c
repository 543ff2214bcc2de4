/* What people are warned of: each note is made when it is true, and is not when it is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_calendar.h"
#include "fixture_zone.h"
#include "rule_notes.h"

#define NOW "2030-01-01T00:00:00Z"

static const struct rule_around ALONE = {.bounds = {{INT64_MIN}, {INT64_MIN}}};

/* Weekends, and 2030-12-23 to 31; known through 2031. */
static struct calendar *office(void)
{
    struct calendar_special days[9];
    for (int i = 0; i < 9; i++) {
        days[i] = (struct calendar_special){.day = day_of("2030-12-23") + i};
    }
    struct calendar_rules rules = rules_of(days, 9);
    rules.valid_through = day_of("2031-12-31");
    rules.beyond = CALENDAR_BEYOND_HOLD;
    return calendar_of(&rules);
}

static const struct rule_around OFFICE = {.bounds = {{INT64_MIN}, {INT64_MIN}},
                                          .calendar = "office"};

static bool says(const struct notes *n, const char *words)
{
    for (int i = 0; i < n->count; i++) {
        if (strstr(n->text[i], words) != NULL) {
            return true;
        }
    }
    return false;
}

static void notes_check(const struct rule *r, const struct rule_around *around, const char *words,
                        bool wanted)
{
    struct notes n;
    rule_notes_make(r, around, fixture_instant(NOW), &n);
    if (says(&n, words) != wanted) {
        for (int i = 0; i < n.count; i++) {
            print_error("  %s\n", n.text[i]);
        }
        fail_msg("%s \"%s\"", wanted ? "it does not say" : "it says", words);
    }
}

static void recurrence_check(const char *text, const char *words, bool wanted)
{
    struct rule r = fixture_recurrence(text, "Europe/Berlin", "2030-01-31T02:30:00");
    notes_check(&r, &ALONE, words, wanted);
}

static void test_notes_on_recurrence_rules_are_made_when_they_are_true(void **state)
{
    (void)state;
    recurrence_check("FREQ=DAILY",
                     "on 2030-03-31 the clock of Europe/Berlin skips 02:30: it runs at 03:30 "
                     "(dst_gap shift)",
                     true);
    recurrence_check("FREQ=DAILY",
                     "on 2030-10-27 the clock of Europe/Berlin shows 02:30 twice: it runs the "
                     "first time only",
                     true);
    recurrence_check("FREQ=WEEKLY;BYDAY=TH", "the clock of", false);
    recurrence_check("FREQ=MONTHLY", "a day 31: those are left out, not moved", true);
    recurrence_check("FREQ=MONTHLY;BYMONTHDAY=-1", "left out", false);
    recurrence_check("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29", "leap years only", true);
    recurrence_check("FREQ=MONTHLY;BYDAY=5FR", "a 5th", true);
    recurrence_check("FREQ=MONTHLY;BYDAY=4FR", "a 5th", false);
    recurrence_check("FREQ=YEARLY;BYYEARDAY=366", "a day 366", true);
    recurrence_check("FREQ=YEARLY;BYYEARDAY=365", "a day 366", false);
    recurrence_check("FREQ=YEARLY;BYWEEKNO=53;BYDAY=MO", "a week 53", true);
    recurrence_check("FREQ=WEEKLY;BYDAY=MO",
                     "it does not fire at 2030-01-31 02:30: the first is 2030-02-04 02:30", true);
    recurrence_check("FREQ=WEEKLY", "it does not fire at", false);
    recurrence_check("FREQ=DAILY;BYHOUR=1,2,3", "it fires 3 times on each of its days", true);
    recurrence_check("FREQ=MINUTELY;INTERVAL=15",
                     "it fires 96 times in the 24 hours from 2030-01-31T02:30:00+01:00 on", true);
    recurrence_check("FREQ=DAILY", "it fires", false);
    recurrence_check("FREQ=DAILY;COUNT=3",
                     "it ends: its last firing is that of 2030-02-02T02:30:00+01:00", true);
    recurrence_check("FREQ=DAILY;UNTIL=20300401",
                     "it ends: its last firing is that of 2030-04-01T02:30:00+02:00", true);
    recurrence_check("FREQ=DAILY", "it ends", false);
}

static void test_an_end_and_its_last_firing_are_told_of_every_kind(void **state)
{
    (void)state;
    const struct rule_around around = {
        .bounds = {UTC_NONE, fixture_instant("2030-06-01T00:00:00Z")}};
    struct rule cron = fixture_rule("cron", "0 6 * * *", "UTC", NOW);
    struct rule interval = fixture_rule("interval", "7 hours", "UTC", NOW);
    struct rule once = fixture_rule("once", "2030-04-12T06:00", "UTC", NOW);
    struct rule gone = fixture_rule("once", "2020-04-12T06:00", "UTC", NOW);
    notes_check(&cron, &around, "its last firing is that of 2030-05-31T06:00:00+00:00", true);
    notes_check(&interval, &around, "it ends: its last firing is that of 2030-05-31T19:00:00",
                true);
    notes_check(&interval, &around, "it fires 4 times in the 24 hours from", true);
    notes_check(&once, &around, "it ends", false);
    notes_check(&gone, &ALONE,
                "nothing fires after 2030-01-01T00:00:00+00:00: it fires once, at "
                "2020-04-12T06:00:00+00:00, which is past",
                true);
}

static void test_a_rule_of_which_nothing_fires_says_so_and_why(void **state)
{
    (void)state;
    struct calendar *c = office();
    struct rule_source source = {.kind = "cron",
                                 .text = "0 6 * * SAT",
                                 .zone = "UTC",
                                 .calendar = c,
                                 .nonbusiness = ROLL_SKIP};
    struct rule skipped = fixture_rule_of(&source);
    const struct rule_around ended = {.bounds = {UTC_NONE, fixture_instant("2029-01-01T00:00:00Z")},
                                      .calendar = "office"};
    notes_check(&skipped, &OFFICE,
                "nothing fires after 2030-01-01T00:00:00+00:00: none of its dates before "
                "2032-01-03 is a business day of calendar \"office\" (nonbusiness skip)",
                true);
    struct calendar_rules weekends = rules_of(NULL, 0);
    struct calendar *for_ever = calendar_of(&weekends);
    source.calendar = for_ever;
    skipped = fixture_rule_of(&source);
    notes_check(&skipped, &OFFICE,
                "nothing fires after 2030-01-01T00:00:00+00:00: every date that it names is left "
                "out: none of them is a business day of calendar \"office\"",
                true);
    calendar_free(for_ever);
    source.calendar = c;
    source.text = "0 6 * * MON";
    struct rule fine = fixture_rule_of(&source);
    notes_check(&fine, &OFFICE, "nothing fires", false);
    notes_check(&fine, &ended, "it has ended (ends_at 2029-01-01T00:00:00Z)", true);
    source.text = "0 0 6 1 1 * 2032";
    struct rule beyond = fixture_rule_of(&source);
    notes_check(&beyond, &OFFICE,
                "calendar \"office\" does not know the days around 2032-01-01 and says hold: "
                "import newer data",
                true);
    calendar_free(c);
    struct calendar_rules closed = rules_of(NULL, 0);
    const struct calendar_weekend always = {.from = CALENDAR_ALWAYS, .days = 0x7f};
    closed.weekends = &always;
    closed.weekend_count = 1;
    struct calendar *empty = calendar_of(&closed);
    source.calendar = empty;
    source.text = "0 6 * * *";
    source.nonbusiness = ROLL_FOLLOWING;
    struct rule never = fixture_rule_of(&source);
    notes_check(&never, &OFFICE,
                "calendar \"office\" has no business day within 366 days of 2030-01-01: correct "
                "its weekend or its days",
                true);
    calendar_free(empty);
}

static void exdates_check(const struct local_time *exdates, size_t count, const char *words,
                          bool wanted)
{
    struct rule_source source = {.kind = "rrule",
                                 .text = "FREQ=DAILY;COUNT=300",
                                 .zone = "UTC",
                                 .has_start = true,
                                 .start = {day_of("2030-01-02") * SECONDS_A_DAY + 8 * 3600},
                                 .exdates = exdates,
                                 .exdate_count = count};
    struct rule r = fixture_rule_of(&source);
    notes_check(&r, &ALONE, words, wanted);
}

static void test_exception_that_is_no_time_of_the_rule_is_told(void **state)
{
    (void)state;
    const int64_t day = day_of("2030-02-02") * SECONDS_A_DAY;
    const struct local_time vain = {day};
    const struct local_time good = {day + 8 * 3600};
    const struct local_time apart[] = {{day - 40 * SECONDS_A_DAY}, {day + 400 * SECONDS_A_DAY}};
    const struct local_time mixed[] = {good, {day + SECONDS_A_DAY}, {day + 2 * SECONDS_A_DAY}};
    exdates_check(&vain, 1,
                  "the exdate 2030-02-02 00:00 is no time that it names, so it takes nothing away; "
                  "on that day it names 2030-02-02 08:00",
                  true);
    exdates_check(&good, 1, "exdate", false);
    exdates_check(apart, 2, "exdate", false); /* before the start, behind the end */
    exdates_check(mixed, 3,
                  "2 of its 3 exdates are no times that it names, so they take nothing away; the "
                  "first is 2030-02-03 00:00",
                  true);
}

static void test_end_of_a_calendar_is_told_where_it_matters(void **state)
{
    (void)state;
    struct calendar *hold = office();
    struct rule_source source = {.kind = "cron",
                                 .text = "0 6 * * *",
                                 .zone = "UTC",
                                 .calendar = hold,
                                 .nonbusiness = ROLL_SKIP};
    struct rule daily = fixture_rule_of(&source);
    struct rule_around around = OFFICE;
    const char *holds = "calendar \"office\" is known through 2031-12-31 and says hold: a firing "
                        "that needs a later day waits until newer data is imported";
    notes_check(&daily, &around, "is known through", false); /* two years ahead */
    around.shown_to = fixture_instant("2031-12-30T06:00:00Z");
    notes_check(&daily, &around, "is known through", false);
    around.shown_to = fixture_instant("2031-12-31T06:00:00Z");
    notes_check(&daily, &around, holds, true);

    struct calendar_rules rules = rules_of(NULL, 0);
    rules.valid_through = day_of("2030-02-20");
    struct calendar *soon = calendar_of(&rules);
    around.shown_to = (utc_us){0};
    source.calendar = soon;
    daily = fixture_rule_of(&source);
    notes_check(&daily, &around,
                "calendar \"office\" is known through 2030-02-20: behind that only weekends count "
                "and holidays are taken for business days",
                true);
    source.text = "0 6 25 12 *";
    struct rule christmas = fixture_rule_of(&source);
    notes_check(&christmas, &around, "leaves nothing until then: later dates fire only because",
                true);
    calendar_free(soon);
    calendar_free(hold);
}

static void test_a_change_of_the_clock_counts_on_the_day_a_firing_comes_to(void **state)
{
    (void)state;
    struct calendar_rules rules = rules_of(NULL, 0);
    const struct calendar_weekend friday = {.from = CALENDAR_ALWAYS, .days = FRI_SAT};
    rules.weekends = &friday;
    rules.weekend_count = 1;
    struct calendar *fridays = calendar_of(&rules);
    struct rule_source source = {.kind = "cron",
                                 .text = "30 2 * * SAT",
                                 .zone = "Europe/Berlin",
                                 .calendar = fridays,
                                 .nonbusiness = ROLL_FOLLOWING};
    struct rule moves = fixture_rule_of(&source);
    notes_check(&moves, &OFFICE,
                "on 2030-03-31 the clock of Europe/Berlin skips 02:30: it runs once, at 03:00",
                true);
    notes_check(&moves, &OFFICE, "on 2030-10-27 the clock of Europe/Berlin shows 02:30 twice",
                true);
    source.text = "30 2 * * SUN";
    source.business_day_offset = 1;
    struct rule away = fixture_rule_of(&source);
    notes_check(&away, &OFFICE, "the clock of", false);
    calendar_free(fridays);
    struct calendar_rules weekends = rules_of(NULL, 0);
    struct calendar *weekend = calendar_of(&weekends);
    source.calendar = weekend;
    source.text = "30 2 * * *";
    source.business_day_offset = 0;
    source.nonbusiness = ROLL_SKIP;
    struct rule weekdays = fixture_rule_of(&source);
    notes_check(&weekdays, &OFFICE, "the clock of", false);
    calendar_free(weekend);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notes_on_recurrence_rules_are_made_when_they_are_true),
        cmocka_unit_test(test_an_end_and_its_last_firing_are_told_of_every_kind),
        cmocka_unit_test(test_a_rule_of_which_nothing_fires_says_so_and_why),
        cmocka_unit_test(test_exception_that_is_no_time_of_the_rule_is_told),
        cmocka_unit_test(test_end_of_a_calendar_is_told_where_it_matters),
        cmocka_unit_test(test_a_change_of_the_clock_counts_on_the_day_a_firing_comes_to),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
