/* What is said of rules of all kinds, and of what surrounds them; and what is warned of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_calendar.h"
#include "fixture_csv.h"
#include "fixture_rrule.h"
#include "fixture_zone.h"
#include "rule_notes.h"
#include "rule_text.h"

#define NOW "2030-01-01T00:00:00Z"

static const struct rule_around ALONE = {.bounds = {{INT64_MIN}, {INT64_MIN}}};

static struct rule rule_of(const struct rule_source *source)
{
    struct rule r = {.zone = NULL};
    struct error err = {.text = ""};
    if (rule_parse(source, fixture_zones(), &r, &err) != STATUS_OK) {
        fail_msg("%s \"%s\": %s", source->kind, source->text, err.text);
    }
    return r;
}

static struct rule recurrence(const char *text, const char *start)
{
    struct rule_source source = {
        .kind = "rrule", .text = text, .zone = "Europe/Berlin", .has_start = true};
    struct date_time t;
    assert_int_equal(date_time_parse(start, &t, NULL), STATUS_OK);
    source.start = t.local;
    return rule_of(&source);
}

static void check(const struct rule *r, const struct rule_around *around, enum rule_sentence which,
                  const char *wanted)
{
    static char text[RULE_PLAIN_MAX];
    bool said = rule_sentence_write(r, around, which, fixture_instant(NOW), text);
    assert_string_equal(text, wanted);
    assert_true(said == (wanted[0] != '\0'));
}

/* ---- sentences ---- */

static void test_recurrence_rules_read_as_people_say_them(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
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
        {"FREQ=YEARLY;BYDAY=20MO",
         "at 08:00 on the 20th Monday of the year, from 2030-01-07 08:00 on"},
        {"FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
         "at 08:00 on Monday, in week 20 of the year (weeks begin on Monday), from 2030-01-07 "
         "08:00 on"},
        {"FREQ=HOURLY;INTERVAL=5",
         "at minute 0 of each hour, every 5th hour of the clock counted from 2030-01-07 08:00, "
         "from 2030-01-07 08:00 on"},
        {"FREQ=MINUTELY;INTERVAL=15;BYHOUR=9",
         "at 09:00, 09:15, 09:30 and 09:45 every day, every 15th minute of the clock counted from "
         "2030-01-07 08:00, from 2030-01-07 08:00 on"},
        {"FREQ=DAILY;UNTIL=20300501", "at 08:00 every day, from 2030-01-07 08:00 on, until "
                                      "2030-05-01 23:59:59"},
        {"FREQ=DAILY;UNTIL=20300501T060000Z", "at 08:00 every day, from 2030-01-07 08:00 on, until "
                                              "2030-05-01T06:00:00Z"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char wanted[512];
        struct rule r = recurrence(cases[i][0], "2030-01-07T08:00:00");
        (void)snprintf(wanted, sizeof wanted, "%s, by the clock of Europe/Berlin", cases[i][1]);
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
    struct rule r = rule_of(&source);
    check(&r, &ALONE, SENTENCE_RULE,
          "at 08:00 every day, from 2030-01-07 08:00 on; not at 6 times from 2030-01-08 08:00 to "
          "2030-01-13 08:00; also at 2030-01-08 08:00 and 2030-01-09 08:00, by the clock of UTC");
    source.text = "FREQ=DAILY;UNTIL=20200101";
    source.exdate_count = 0;
    r = rule_of(&source);
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
    struct rule r = recurrence("FREQ=DAILY", "2030-01-07T08:00:00");
    check(&r, &ALONE, SENTENCE_CLOCK,
          "a time that the clock skips runs later by the length of the gap; one that it shows "
          "twice runs the first time only");
    struct rule tokyo = fixture_rule("cron", "0 6 * * *", "Asia/Tokyo", NOW);
    check(&tokyo, &ALONE, SENTENCE_CLOCK, "");
}

/* ---- calendars ---- */

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
    struct calendar *c = office();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct rule_source source = {.kind = "cron",
                                           .text = "0 6 * * *",
                                           .zone = "UTC",
                                           .calendar = c,
                                           .nonbusiness = cases[i].convention,
                                           .business_day_offset = cases[i].offset,
                                           .run_all = cases[i].run_all};
        struct rule r = rule_of(&source);
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

/* ---- notes ---- */

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
    struct rule r = recurrence(text, "2030-01-31T02:30:00");
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
    struct rule skipped = rule_of(&source);
    const struct rule_around ended = {.bounds = {UTC_NONE, fixture_instant("2029-01-01T00:00:00Z")},
                                      .calendar = "office"};
    notes_check(&skipped, &OFFICE,
                "nothing fires after 2030-01-01T00:00:00+00:00: none of its dates before "
                "2032-01-03 is a business day of calendar \"office\" (nonbusiness skip)",
                true);
    struct calendar_rules weekends = rules_of(NULL, 0);
    struct calendar *for_ever = calendar_of(&weekends);
    source.calendar = for_ever;
    skipped = rule_of(&source);
    notes_check(&skipped, &OFFICE,
                "nothing fires after 2030-01-01T00:00:00+00:00: every date that it names is left "
                "out: none of them is a business day of calendar \"office\"",
                true);
    calendar_free(for_ever);
    source.calendar = c;
    source.text = "0 6 * * MON";
    struct rule fine = rule_of(&source);
    notes_check(&fine, &OFFICE, "nothing fires", false);
    notes_check(&fine, &ended, "it has ended (ends_at 2029-01-01T00:00:00Z)", true);
    source.text = "0 0 6 1 1 * 2032";
    struct rule beyond = rule_of(&source);
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
    struct rule never = rule_of(&source);
    notes_check(&never, &OFFICE,
                "calendar \"office\" has no business day within 366 days of 2030-01-01: correct "
                "its weekend or its days",
                true);
    calendar_free(empty);
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
    struct rule moves = rule_of(&source);
    notes_check(&moves, &OFFICE,
                "on 2030-03-31 the clock of Europe/Berlin skips 02:30: it runs once, at 03:00",
                true);
    notes_check(&moves, &OFFICE, "on 2030-10-27 the clock of Europe/Berlin shows 02:30 twice",
                true);
    source.text = "30 2 * * SUN";
    source.business_day_offset = 1;
    struct rule away = rule_of(&source);
    notes_check(&away, &OFFICE, "the clock of", false);
    calendar_free(fridays);
    struct calendar_rules weekends = rules_of(NULL, 0);
    struct calendar *weekend = calendar_of(&weekends);
    source.calendar = weekend;
    source.text = "30 2 * * *";
    source.business_day_offset = 0;
    source.nonbusiness = ROLL_SKIP;
    struct rule weekdays = rule_of(&source);
    notes_check(&weekdays, &OFFICE, "the clock of", false);
    calendar_free(weekend);
}

/* ---- all of the grammar ---- */

static void check_form(const struct rule *r)
{
    static char text[RULE_PLAIN_MAX];
    struct notes n;
    assert_true(rule_sentence_write(r, &ALONE, SENTENCE_RULE, fixture_instant(NOW), text));
    assert_true(strlen(text) < RULE_PLAIN_MAX - 1000);
    assert_null(strpbrk(text, "\n\r\t"));
    rule_notes_make(r, &ALONE, fixture_instant(NOW), &n);
    for (int i = 0; i < n.count; i++) {
        assert_true(n.text[i][0] != '\0' && strlen(n.text[i]) < NOTE_TEXT_MAX - 1);
        assert_null(strpbrk(n.text[i], "\n\r\t"));
    }
}

static void test_every_golden_rule_has_a_text_of_one_line(void **state)
{
    (void)state;
    static struct csv_row row;
    int told = 0;
    FILE *f = fixture_cases_open("rrule_cases.csv");
    assert_true(fixture_csv_read(f, &row));
    while (fixture_csv_read(f, &row)) {
        char start[32];
        const char *d = row.columns[1];
        struct date_time t;
        (void)snprintf(start, sizeof start, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2s", d, d + 4, d + 6, d + 9,
                       d + 11, d + 13);
        assert_int_equal(date_time_parse(start, &t, NULL), STATUS_OK);
        const struct rule_source source = {.kind = "rrule",
                                           .text = row.columns[2],
                                           .zone = "Europe/Berlin",
                                           .has_start = true,
                                           .start = t.local};
        struct rule r;
        if (rule_parse(&source, fixture_zones(), &r, NULL) == STATUS_OK) {
            check_form(&r);
            told++;
        }
    }
    assert_int_equal(fclose(f), 0);
    f = fixture_cases_open("cron_cases.csv");
    assert_true(fixture_csv_read(f, &row));
    while (fixture_csv_read(f, &row)) {
        const struct rule_source source = {
            .kind = "cron",
            .text = row.columns[1],
            .dialect = strcmp(row.columns[2], "quartz6") == 0 ? "quartz" : "std",
            .zone = row.columns[3]};
        struct rule r;
        if (rule_parse(&source, fixture_zones(), &r, NULL) == STATUS_OK) {
            check_form(&r);
            told++;
        }
    }
    assert_int_equal(fclose(f), 0);
    assert_true(told > 140);
}

#define COMPARED 40

static bool firings_differ(const struct rule *a, const struct rule *b)
{
    utc_us at = fixture_instant("2029-12-01T00:00:00Z");
    for (int i = 0; i < COMPARED; i++) {
        struct firing x = rule_next(a, at);
        struct firing y = rule_next(b, at);
        if (x.found != y.found || x.at.us != y.at.us) {
            return true;
        }
        if (!x.found) {
            return false;
        }
        at = x.at;
    }
    return false;
}

static bool rule_random(const struct slow_rule *slow, struct rule *ret_rule)
{
    static char text[SLOW_TEXT_MAX];
    slow_rule_write(slow, text);
    const struct rule_source source = {
        .kind = "rrule", .text = text, .zone = "UTC", .has_start = true, .start = {slow->start}};
    return rule_parse(&source, fixture_zones(), ret_rule, NULL) == STATUS_OK;
}

/* One part of a rule is put into another's place. */
static void part_swap(struct slow_rule *r, const struct slow_rule *other)
{
    struct slow_list *const to[] = {&r->months, &r->weeks,   &r->yeardays, &r->days,
                                    &r->hours,  &r->minutes, &r->seconds,  &r->positions};
    const struct slow_list *const from[] = {&other->months,  &other->weeks,    &other->yeardays,
                                            &other->days,    &other->hours,    &other->minutes,
                                            &other->seconds, &other->positions};
    int which = fixture_random_in(0, 12);
    if (which < 8) {
        *to[which] = *from[which];
    } else if (which == 8) {
        r->weekdays = other->weekdays;
        r->ordinals = other->ordinals;
    } else if (which == 9) {
        r->interval = other->interval;
    } else if (which == 10) {
        r->week_start = other->week_start;
    } else if (which == 11) {
        r->frequency = other->frequency;
    } else {
        r->start = other->start;
    }
}

static void test_rules_that_differ_in_a_firing_differ_in_their_text(void **state)
{
    (void)state;
    static char texts[2][RULE_PLAIN_MAX];
    int64_t near = utc_seconds(fixture_instant(NOW));
    int different = 0;
    for (int i = 0; i < 1200; i++) {
        struct slow_rule first;
        struct slow_rule other;
        struct rule a;
        struct rule b;
        slow_rule_random(&first, near);
        slow_rule_random(&other, near);
        struct slow_rule second = first;
        part_swap(&second, &other);
        if (!rule_random(&first, &a) || !rule_random(&second, &b)) {
            continue;
        }
        check_form(&a);
        assert_true(rule_sentence_write(&a, &ALONE, SENTENCE_RULE, UTC_PAST, texts[0]));
        assert_true(rule_sentence_write(&b, &ALONE, SENTENCE_RULE, UTC_PAST, texts[1]));
        if (firings_differ(&a, &b)) {
            different++;
            if (strcmp(texts[0], texts[1]) == 0) {
                char one[SLOW_TEXT_MAX];
                char two[SLOW_TEXT_MAX];
                slow_rule_write(&first, one);
                slow_rule_write(&second, two);
                fail_msg("%s and %s both are \"%s\"", one, two, texts[0]);
            }
        }
    }
    print_message("%d pairs of rules with different firings\n", different);
    assert_true(different > 200);
}

static void test_the_longest_text_is_not_cut(void **state)
{
    (void)state;
    static char text[RRULE_TEXT_MAX];
    static char words[RULE_PLAIN_MAX];
    int used = snprintf(text, sizeof text, "FREQ=YEARLY;BYMONTHDAY=1,3,5,-1,-3;BYSETPOS=1");
    for (int n = 3; n <= 365; n += 2) {
        used += snprintf(text + used, sizeof text - (size_t)used, ",%d,-%d", n, n);
    }
    used += snprintf(text + used, sizeof text - (size_t)used, ";BYYEARDAY=1");
    for (int n = 3; n <= 365; n += 2) {
        used += snprintf(text + used, sizeof text - (size_t)used, ",%d,-%d", n, n);
    }
    used += snprintf(text + used, sizeof text - (size_t)used, ";BYDAY=MO,TU,WE,TH,FR,SA,SU");
    assert_true(used < RRULE_TEXT_MAX);
    struct rule r = recurrence(text, "2030-01-07T08:00:00");
    assert_true(rule_sentence_write(&r, &ALONE, SENTENCE_RULE, UTC_PAST, words));
    assert_true(strlen(words) < RULE_PLAIN_MAX - 4000);
    assert_non_null(strstr(words, ", by the clock of Europe/Berlin"));
    struct rule long_nth = recurrence(
        "FREQ=YEARLY;BYDAY=1MO,3MO,5MO,7MO,9MO,-1MO,-3MO,-5MO,-53SU,1SU,3SU,5SU,7SU,-1TU,-9TU",
        "2030-01-07T08:00:00");
    check_form(&long_nth);
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
        cmocka_unit_test(test_notes_on_recurrence_rules_are_made_when_they_are_true),
        cmocka_unit_test(test_an_end_and_its_last_firing_are_told_of_every_kind),
        cmocka_unit_test(test_a_rule_of_which_nothing_fires_says_so_and_why),
        cmocka_unit_test(test_a_change_of_the_clock_counts_on_the_day_a_firing_comes_to),
        cmocka_unit_test(test_every_golden_rule_has_a_text_of_one_line),
        cmocka_unit_test(test_rules_that_differ_in_a_firing_differ_in_their_text),
        cmocka_unit_test(test_the_longest_text_is_not_cut),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
