/* What is said of rules of all kinds, and of what surrounds them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_calendar.h"
#include "fixture_zone.h"
#include "rule_text.h"

#define NOW "2030-01-01T00:00:00Z"

static const struct rule_around ALONE = {.bounds = {{INT64_MIN}, {INT64_MIN}}};

static void check(const struct rule *r, const struct rule_around *around, enum rule_sentence which,
                  const char *wanted)
{
    static char text[RULE_PLAIN_MAX];
    bool said = rule_sentence_write(r, around, which, fixture_instant(NOW), text);
    assert_string_equal(text, wanted);
    assert_true(said == (wanted[0] != '\0'));
}

/* ---- sentences ---- */

static const char *const RECURRENCES[][2] = {
    {"FREQ=DAILY", "at 08:00 every day, from 2030-01-07 08:00 on"},
    {"FREQ=DAILY;INTERVAL=3",
     "at 08:00 every 3rd day counted from 2030-01-07, from 2030-01-07 08:00 on"},
    {"FREQ=DAILY;INTERVAL=111;BYMONTH=1,2,3",
     "at 08:00 every 111th day counted from 2030-01-07, in January to March, from 2030-01-07 "
     "08:00 on"},
    {"FREQ=WEEKLY", "at 08:00 on Monday, from 2030-01-07 08:00 on"},
    {"FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYHOUR=6,18;BYMINUTE=30",
     "at 06:30 and 18:30 on Monday to Friday, from 2030-01-07 08:00 on"},
    {"FREQ=WEEKLY;INTERVAL=2;BYDAY=MO",
     "at 08:00 on Monday, every 2nd week counted from that of 2030-01-07 (weeks begin on "
     "Monday), from 2030-01-07 08:00 on"},
    {"FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=SU,MO;COUNT=7",
     "at 08:00 on Monday and Sunday, every 2nd week counted from that of 2030-01-07 (weeks "
     "begin on Sunday), from 2030-01-07 08:00 on, 7 times in all"},
    {"FREQ=MONTHLY", "at 08:00 on day 7 of the month, from 2030-01-07 08:00 on"},
    {"FREQ=MONTHLY;INTERVAL=3;BYMONTHDAY=-1",
     "at 08:00 on the last day of the month, every 3rd month counted from January 2030, from "
     "2030-01-07 08:00 on"},
    {"FREQ=MONTHLY;BYMONTHDAY=1,15,-3",
     "at 08:00 on days 1 and 15 and the 2nd day before the last of the month, from 2030-01-07 "
     "08:00 on"},
    {"FREQ=MONTHLY;BYDAY=SU,1MO,3MO,-1FR,-2FR",
     "at 08:00 on Sunday, the 1st and 3rd Monday, the last Friday and the 1st Friday before "
     "the last of the month, from 2030-01-07 08:00 on"},
    {"FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
     "at 08:00 on Monday to Friday, of these times only the last one of each month, from "
     "2030-01-07 08:00 on"},
    {"FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR,SA",
     "at 08:00 on day 13 of the month if it is also Friday or Saturday, from 2030-01-07 08:00 "
     "on"},
    {"FREQ=YEARLY", "at 08:00 on day 7 of the month, in January, from 2030-01-07 08:00 on"},
    {"FREQ=YEARLY;INTERVAL=4;BYYEARDAY=1,100,-1",
     "at 08:00 on days 1 and 100 and the last day of the year, every 4th year counted from "
     "2030, from 2030-01-07 08:00 on"},
    {"FREQ=YEARLY;BYDAY=20MO", "at 08:00 on the 20th Monday of the year, from 2030-01-07 08:00 on"},
    {"FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
     "at 08:00 on Monday, in week 20 of the year (weeks begin on Monday), from 2030-01-07 "
     "08:00 on"},
    {"FREQ=HOURLY;INTERVAL=5", "every 5 hours, counted from 2030-01-07 08:00"},
    {"FREQ=HOURLY;INTERVAL=5;BYMINUTE=0,30",
     "every 30 minutes, every 5th hour of the clock counted from 2030-01-07 08:00, from 2030-01-07 "
     "08:00 on"},
    {"FREQ=MINUTELY;INTERVAL=90", "every 90 minutes, counted from 2030-01-07 08:00"},
    {"FREQ=MINUTELY;INTERVAL=30;COUNT=7",
     "every 30 minutes, counted from 2030-01-07 08:00, 7 times in all"},
    {"FREQ=MINUTELY;INTERVAL=7;BYDAY=MO",
     "every 7 minutes on Monday, counted from 2030-01-07 08:00"},
    {"FREQ=MINUTELY;INTERVAL=90;BYHOUR=9,10,11,12,13,14,15,16,17",
     "every 90 minutes, counted from 2030-01-07 08:00, where that comes to one of these times: "
     "every 30 minutes of hours 9, 11, 12, 14, 15 and 17"},
    {"FREQ=MINUTELY;INTERVAL=15;BYHOUR=9",
     "at 09:00, 09:15, 09:30 and 09:45 every day, every 15th minute of the clock counted from "
     "2030-01-07 08:00, from 2030-01-07 08:00 on"},
    {"FREQ=DAILY;UNTIL=20300501", "at 08:00 every day, from 2030-01-07 08:00 on, until "
                                  "2030-05-01 23:59:59"},
    {"FREQ=DAILY;UNTIL=20300501T060000Z", "at 08:00 every day, from 2030-01-07 08:00 on, until "
                                          "2030-05-01T06:00:00Z"},
};

static void test_recurrence_rules_read_as_people_say_them(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof RECURRENCES / sizeof RECURRENCES[0]; i++) {
        char wanted[512];
        struct rule r =
            fixture_recurrence(RECURRENCES[i][0], "Europe/Berlin", "2030-01-07T08:00:00");
        (void)snprintf(wanted, sizeof wanted, "%s, by the clock of Europe/Berlin",
                       RECURRENCES[i][1]);
        check(&r, &ALONE, SENTENCE_RULE, wanted);
    }
}

static void test_single_dates_of_a_recurrence_rule_are_named(void **state)
{
    (void)state;
    struct local_time days[6];
    for (int i = 0; i < 6; i++) {
        days[i].s = civil_days_of(2030, 1, 8 + i) * SECONDS_A_DAY + 8 * 3600;
    }
    struct rule_source source = {.kind = "rrule",
                                 .text = "FREQ=DAILY",
                                 .zone = "UTC",
                                 .has_start = true,
                                 .start = {days[0].s - SECONDS_A_DAY},
                                 .exdates = days,
                                 .exdate_count = 6,
                                 .rdates = days,
                                 .rdate_count = 2};
    struct rule r = fixture_rule_of(&source);
    check(&r, &ALONE, SENTENCE_RULE,
          "at 08:00 every day, from 2030-01-07 08:00 on; not at 6 times from 2030-01-08 08:00 to "
          "2030-01-13 08:00; also at 2030-01-08 08:00 and 2030-01-09 08:00, by the clock of UTC");
    source.text = "FREQ=DAILY;UNTIL=20200101";
    source.exdate_count = 0;
    r = fixture_rule_of(&source);
    check(&r, &ALONE, SENTENCE_RULE,
          "at no time by its parts; also at 2030-01-08 08:00 and 2030-01-09 08:00, by the clock "
          "of UTC");
}

static void test_intervals_and_single_firings_are_told(void **state)
{
    (void)state;
    static const char *const lengths[][2] = {
        {"15 minutes", "every 15 minutes"},
        {"90 minutes", "every 1 hour 30 minutes"},
        {"36 hours", "every 1 day 12 hours (a day is 24 hours)"},
        {"1 week 1 s", "every 7 days 1 second (a day is 24 hours)"},
    };
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        char wanted[256];
        struct rule r = fixture_rule("interval", lengths[i][0], "Asia/Tokyo", NOW);
        (void)snprintf(wanted, sizeof wanted,
                       "%s, counted from 2030-01-01T00:00:00Z, whatever the clocks do; its dates "
                       "are those of Asia/Tokyo",
                       lengths[i][1]);
        check(&r, &ALONE, SENTENCE_RULE, wanted);
        check(&r, &ALONE, SENTENCE_CLOCK, "");
    }
    struct rule once = fixture_rule("once", "2030-04-12T06:00", "Asia/Tokyo", NOW);
    check(&once, &ALONE, SENTENCE_RULE,
          "once, at 2030-04-12T06:00:00+09:00, by the clock of Asia/Tokyo");
}

static void test_start_end_and_delay_are_told(void **state)
{
    (void)state;
    struct rule r = fixture_rule("cron", "0 6 * * *", "UTC", NOW);
    utc_us first = fixture_instant("2030-02-01T00:00:00Z");
    utc_us last = fixture_instant("2031-01-01T00:00:00Z");
    const struct {
        struct rule_bounds bounds;
        const char *wanted;
    } cases[] = {
        {{UTC_NONE, UTC_NONE}, ""},
        {{UTC_PAST, UTC_UNBOUNDED}, ""},
        {{first, UTC_NONE}, "nothing fires before 2030-02-01T00:00:00Z"},
        {{UTC_NONE, last}, "nothing fires from 2031-01-01T00:00:00Z on"},
        {{first, last},
         "nothing fires before 2030-02-01T00:00:00Z, nor from 2031-01-01T00:00:00Z on"},
        {{UTC_UNBOUNDED, UTC_NONE}, "it never starts (starts_at infinity)"},
        {{UTC_NONE, UTC_PAST}, "it has ended since ever (ends_at -infinity)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rule_around around = {.bounds = cases[i].bounds};
        check(&r, &around, SENTENCE_BOUNDS, cases[i].wanted);
    }
    check(&r, &ALONE, SENTENCE_DELAY, "");
    r.jitter_us = 137 * (int64_t)MICROS_A_SECOND;
    check(&r, &ALONE, SENTENCE_DELAY,
          "each firing is due 137 seconds later than the rule says (jitter_s)");
}

static void test_policies_are_told_where_the_clock_changes(void **state)
{
    (void)state;
    struct rule r = fixture_recurrence("FREQ=DAILY", "Europe/Berlin", "2030-01-07T08:00:00");
    check(&r, &ALONE, SENTENCE_CLOCK,
          "a time that the clock skips runs later by the length of the gap; one that it shows "
          "twice runs the first time only");
    struct rule tokyo = fixture_rule("cron", "0 6 * * *", "Asia/Tokyo", NOW);
    check(&tokyo, &ALONE, SENTENCE_CLOCK, "");
}

/* ---- calendars ---- */

static const struct rule_around OFFICE = {.bounds = {{INT64_MIN}, {INT64_MIN}},
                                          .calendar = "office"};

static void test_what_a_calendar_does_is_told(void **state)
{
    (void)state;
    static const struct {
        enum roll_convention convention;
        int offset;
        bool run_all;
        const char *wanted;
    } cases[] = {
        {ROLL_RUN, 0, false,
         "calendar \"office\" changes nothing: nonbusiness is run, and there is no offset"},
        {ROLL_SKIP, 0, false, "a date that is no business day of calendar \"office\" is left out"},
        {ROLL_FOLLOWING, 0, true,
         "a date that is no business day of calendar \"office\" moves to the next business day; "
         "of dates that come to one instant each runs, a second apart"},
        {ROLL_PRECEDING, -1, false,
         "a date that is no business day of calendar \"office\" moves to the business day before; "
         "it fires 1 business day before its date; of dates that come to one instant only the "
         "latest runs"},
        {ROLL_RUN, 5, false,
         "it fires 5 business days after its date, by calendar \"office\"; of dates that come to "
         "one instant only the latest runs"},
    };
    struct calendar_rules weekends = rules_of(NULL, 0);
    struct calendar *c = calendar_of(&weekends);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rule_source source = {.kind = "cron",
                                           .text = "0 6 * * *",
                                           .zone = "UTC",
                                           .calendar = c,
                                           .nonbusiness = cases[i].convention,
                                           .business_day_offset = cases[i].offset,
                                           .run_all = cases[i].run_all};
        struct rule r = fixture_rule_of(&source);
        check(&r, &OFFICE, SENTENCE_DAYS, cases[i].wanted);
        check(&r, &OFFICE, SENTENCE_RULE, "at 06:00 every day, by the clock of UTC");
    }
    for (int k = ROLL_RUN; k <= ROLL_NEAREST; k++) {
        char text[RULE_PLAIN_MAX];
        struct rule r = {.kind = RULE_CRON,
                         .calendar = c,
                         .nonbusiness = (enum roll_convention)k,
                         .business_day_offset = 1};
        assert_true(rule_sentence_write(&r, &OFFICE, SENTENCE_DAYS, UTC_PAST, text));
    }
    calendar_free(c);
    struct rule plain = fixture_rule("cron", "0 6 * * *", "UTC", NOW);
    check(&plain, &ALONE, SENTENCE_DAYS, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recurrence_rules_read_as_people_say_them),
        cmocka_unit_test(test_single_dates_of_a_recurrence_rule_are_named),
        cmocka_unit_test(test_intervals_and_single_firings_are_told),
        cmocka_unit_test(test_start_end_and_delay_are_told),
        cmocka_unit_test(test_policies_are_told_where_the_clock_changes),
        cmocka_unit_test(test_what_a_calendar_does_is_told),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
