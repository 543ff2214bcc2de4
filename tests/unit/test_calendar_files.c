/* Calendars as files: CSV, iCalendar, and the shipped ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calendar_csv.h"
#include "calendar_file.h"
#include "calendar_ics.h"
#include "civil.h"
#include "fixture_calendar.h"

typedef enum status parse_function(const struct calendar_source *, struct calendar_definition *,
                                   struct error *);

static struct calendar_source source_of(const char *text)
{
    return (struct calendar_source){.text = text, .size = strlen(text), .file = "own.csv"};
}

static struct calendar_definition parsed(parse_function *parse, const char *text)
{
    struct calendar_definition d;
    struct error err = {.text = ""};
    struct calendar_source source = source_of(text);
    calendar_definition_init(&d);
    enum status s = parse(&source, &d, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(s, STATUS_OK);
    return d;
}

static void assert_refused(parse_function *parse, const char *text, const char *why)
{
    struct calendar_definition d;
    struct error err = {.text = ""};
    struct calendar_source source = source_of(text);
    calendar_definition_init(&d);
    if (parse(&source, &d, &err) != STATUS_INVALID || strstr(err.text, why) == NULL) {
        fail_msg("\"%.60s\": \"%s\" instead of \"%s\"", text, err.text, why);
    }
    calendar_definition_done(&d);
}

static void assert_entry(const struct calendar_definition *d, size_t i, const char *date,
                         const char *label)
{
    char text[DATE_TEXT_MAX];
    assert_true(i < d->entry_count);
    date_format(d->entries[i].day, text);
    assert_string_equal(text, date);
    assert_string_equal(d->entries[i].label, label);
}

/* ---- CSV ---- */

static void test_a_file_with_all_settings_says_all_of_them(void **state)
{
    (void)state;
    struct calendar_definition d =
        parsed(calendar_csv_parse, "\xef\xbb\xbf# name: gulf\r\n"
                                   "# description: Offices, in the Emirates: all of them\r\n"
                                   "# source: https://example.org/days\r\n"
                                   "# attribution: nobody\r\n"
                                   "## valid_thru: a comment\r\n"
                                   "# and this: too, since it has a space\r\n"
                                   "#\r\n"
                                   "\r\n"
                                   "# weekend: Friday, sat\r\n"
                                   "# weekend from 2022-01-01: Sat Sun\r\n"
                                   "# valid_from: 2021-07-01\r\n"
                                   "# valid_through: 2022-12-31\r\n"
                                   "# beyond: hold\r\n"
                                   "date,kind,name\r\n"
                                   "2022-12-02,holiday,\"National Day, \"\"Eid Al Etihad\"\"\"\r\n"
                                   "2022-01-01,,New Year\r\n"
                                   "2021-10-09,working,\r\n");
    assert_string_equal(d.name, "gulf");
    assert_string_equal(d.description, "Offices, in the Emirates: all of them");
    assert_string_equal(d.source, "https://example.org/days");
    assert_string_equal(d.attribution, "nobody");
    assert_int_equal(d.weekend_count, 2);
    assert_int_equal(d.weekends[0].days, 0x60);
    assert_int_equal(d.weekends[1].from, day_of("2022-01-01"));
    assert_int_equal(d.weekends[1].days, 0x41);
    assert_int_equal(d.valid_from, day_of("2021-07-01"));
    assert_int_equal(d.valid_through, day_of("2022-12-31"));
    assert_int_equal(d.beyond, CALENDAR_BEYOND_HOLD);
    assert_int_equal(d.entry_count, 3);
    assert_entry(&d, 0, "2021-10-09", "");
    assert_true(d.entries[0].business);
    assert_int_equal(d.entries[0].line, 17);
    assert_entry(&d, 1, "2022-01-01", "New Year");
    assert_false(d.entries[1].business);
    assert_entry(&d, 2, "2022-12-02", "National Day, \"Eid Al Etihad\"");
    calendar_definition_done(&d);
}

static void test_a_plain_list_of_dates_is_a_calendar_of_those_years(void **state)
{
    (void)state;
    struct calendar_definition d = parsed(calendar_csv_parse, "2027-12-27\n2026-05-01\n");
    assert_int_equal(d.entry_count, 2);
    assert_entry(&d, 0, "2026-05-01", "");
    assert_int_equal(d.valid_from, day_of("2026-01-01"));
    assert_int_equal(d.valid_through, day_of("2027-12-31"));
    assert_int_equal(d.weekends[0].days, 0x41);
    calendar_definition_done(&d);

    d = parsed(calendar_csv_parse, "name,date\nLabour Day,2026-05-01\nalso,2026-05-02\n");
    assert_entry(&d, 0, "2026-05-01", "Labour Day");
    assert_false(d.entries[1].business);
    calendar_definition_done(&d);

    d = parsed(calendar_csv_parse, "");
    assert_int_equal(d.valid_from, CALENDAR_ALWAYS);
    assert_int_equal(d.valid_through, CALENDAR_FOREVER);
    calendar_definition_done(&d);

    d = parsed(calendar_csv_parse, "# weekend: none\n# valid_from: open\n# valid_through: open\n"
                                   "2026-05-01");
    assert_int_equal(d.weekends[0].days, 0);
    assert_int_equal(d.valid_through, CALENDAR_FOREVER);
    calendar_definition_done(&d);
}

static void test_settings_in_capitals_are_settings(void **state)
{
    (void)state;
    struct calendar_definition d =
        parsed(calendar_csv_parse, "# Name: firma\n# WEEKEND: Fri Sat\n"
                                   "# Weekend From 2022-01-01: Sat Sun\n"
                                   "# Valid_Through: 2026-12-20\n# Beyond: hold\n2026-05-01\n");
    assert_string_equal(d.name, "firma");
    assert_int_equal(d.weekend_count, 2);
    assert_int_equal(d.valid_through, day_of("2026-12-20"));
    assert_int_equal(d.beyond, CALENDAR_BEYOND_HOLD);
    calendar_definition_done(&d);
}

static void test_each_fault_of_a_file_names_its_line_and_the_remedy(void **state)
{
    (void)state;
    static const char *const faults[][2] = {
        {"2026-01-01\n2026-02-30\n", "own.csv:2: there is no date 2026-02-30"},
        {"1.1.2026\n", "own.csv:1: it does not begin with a date; write YYYY-MM-DD"},
        {"Datum,Art,Name\n", "own.csv:1: it does not begin with a date, nor is it a heading; write "
                             "YYYY-MM-DD, or the heading date,kind,name or date,name"},
        {"2026-12-24;Heiligabend\n", "own.csv:1: its columns are not separated by commas"},
        {"2026-12-24,Heiligabend\n", "kind \"Heiligabend\" is wrong; write holiday or working, or "
                                     "when it is a name the heading date,name above all rows"},
        {"# Valid_thru: 2026-12-31\n", "own.csv:1: valid_thru: there is no setting of this name"},
        {"# valid through: 2026-12-31\n", "own.csv:1: valid through: there is no setting of this "
                                          "name; did you mean valid_through"},
        {"# Valid-Through : 2026-12-31\n", "did you mean valid_through"},
        {"# Hint: ask us\n", "own.csv:1: hint: there is no setting of this name; begin a comment"},
        {"2026-01-01T00:00\n", "own.csv:1: there is text after the date"},
        {"date,holiday\n2026-01-01\n",
         "own.csv:1: the heading may have the columns date, kind and name"},
        {"name,date,name\n", "own.csv:1: the heading may have the columns"},
        {"date,name\n2026-01-01,x,y\n", "own.csv:2: it has 3 columns"},
        {"date\n2026-01-01\ndate\n", "own.csv:3: it does not begin with a date"},
        {"2026-01-01,Holiday,x\n", "kind \"Holiday\" is wrong; write holiday or working"},
        {"2026-01-01,holiday,a,b\n", "own.csv:1: it has 4 columns; write date,kind,name"},
        {"2026-01-01,holiday,\"a\n2026-01-02\n", "own.csv:1: the quotes do not match"},
        {"2026-01-01,holiday,\"a\"b\n", "own.csv:1: the quotes do not match"},
        {"2026-01-01\n\n2026-01-01\n", "own.csv: 2026-01-01 stands on line 1 and on line 3"},
        {"1899-12-31\n", "own.csv:1: the year is not within 1900 to 2299"},
        {"2026-01-01,holiday,caf\xe9\n", "own.csv:1: the name is not UTF-8 text"},
        {"2026-01-01,holiday,a\x01z\n", "own.csv:1: the name is not UTF-8 text"},
        {"2026-01-01,work\x12ing,x\n", "own.csv:1: the kind is not UTF-8 text"},
        {"# weekend: S\xe4t\n", "own.csv:1: weekend: it is not UTF-8 text"},
        {"# weekend \x1b[2J: Sat\n", "own.csv:1: the setting's name is not UTF-8 text"},
        {"# valid_thru: 2026-12-31\n", "own.csv:1: valid_thru: there is no setting of this name; "
                                       "did you mean valid_through; begin a comment with ##"},
        {"# weekend: Sat Sum\n", "own.csv:1: weekend: \"Sum\" is no weekday"},
        {"# weekend:\n", "own.csv:1: weekend: no weekday"},
        {"# weekend: Mon Tue Wed Thu Fri Sat Sun\n", "all seven days are weekend"},
        {"# weekend from 2022-01-01: Sat\n", "first write \"weekend: Sat Sun\""},
        {"# weekend: Sat\n# weekend from 2022-13-01: Sun\n",
         "own.csv:2: weekend from 2022-13-01: "},
        {"# weekend: Sat\n# weekend: Sun\n", "own.csv:2: weekend: first write"},
        {"# weekend: Sat\n# weekend from 1011-01-01: Sun\n",
         "own.csv:2: weekend from 1011-01-01: the year is not within 1900 to 2299"},
        {"# valid_through: 9999-12-31\n", "own.csv:1: valid_through: the year is not within"},
        {"# name: Big Bank\n", "own.csv:1: name: write 1 to 63 of a-z"},
        {"# name: a\n# name: b\n", "own.csv:2: name: it is said twice"},
        {"# beyond: guess\n", "beyond: write weekends_only or hold"},
        {"# valid_from: 2026-01-01\n# valid_from: 2026-01-01\n",
         "own.csv:2: valid_from: it is said "
         "twice"},
        {"# valid_from: 2027-01-01\n# valid_through: 2026-12-31\n",
         "valid_through 2026-12-31 is before valid_from 2027-01-01"},
        {"2026-01-01\n# weekend: Fri\n", "own.csv:2: the setting weekend stands below the days"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        assert_refused(calendar_csv_parse, faults[i][0], faults[i][1]);
    }
}

static char *repeated(const char *begin, const char *piece, size_t count)
{
    size_t n = strlen(piece);
    size_t head = strlen(begin);
    char *text = malloc(head + n * count + 1);
    assert_non_null(text);
    memcpy(text, begin, head + 1);
    for (size_t i = 0; i < count; i++) {
        memcpy(text + head + i * n, piece, n + 1);
    }
    return text;
}

static void test_what_is_too_large_is_refused_within_bounds(void **state)
{
    (void)state;
    struct {
        char *text;
        const char *why;
        parse_function *parse;
    } large[] = {
        {repeated("", "2026-01-01\n", 20001), "own.csv:20001: more than 20000 days",
         calendar_csv_parse},
        {repeated("", "2026-01-01\n", 100000), "own.csv: larger than 1048576 bytes",
         calendar_csv_parse},
        {repeated("2026-01-01,holiday,", "x", 128), "own.csv:1: a column is too long",
         calendar_csv_parse},
        {repeated("2026-01-01,holiday,", "x", 5000), "own.csv:1: longer than 4095 bytes",
         calendar_csv_parse},
        {repeated("# description: ", "x", 512),
         "description: write UTF-8 text of at most 511 bytes", calendar_csv_parse},
        {repeated("", "BEGIN:VEVENT\n", 60000), "own.csv:1: components lie more than 4 deep",
         calendar_ics_parse},
        {repeated("BEGIN:VEVENT\n", "DESCRIPTION:x\n", 10000),
         "own.csv:1: the event is larger than", calendar_ics_parse},
        {repeated("", "BEGIN:VCALENDAR\n", 100000), "own.csv: larger than 1048576 bytes",
         calendar_ics_parse},
    };
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        assert_refused(large[i].parse, large[i].text, large[i].why);
        free(large[i].text);
    }
    struct calendar_definition d;
    struct error err = {.text = ""};
    struct calendar_source nul = {.text = "2026-01-01\n2026\0-01\n", .size = 20, .file = "own.csv"};
    calendar_definition_init(&d);
    assert_int_equal(calendar_csv_parse(&nul, &d, &err), STATUS_INVALID);
    assert_string_equal(err.text, "own.csv:2: it has a NUL byte; save the file as UTF-8 text");
    calendar_definition_done(&d);
    calendar_definition_init(&d);
    assert_int_equal(calendar_ics_parse(&nul, &d, &err), STATUS_INVALID);
    calendar_definition_done(&d);
}

/* ---- iCalendar ---- */

#define ICS(events)       "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//x//\r\n" events "END:VCALENDAR\r\n"
#define EVENT(properties) "BEGIN:VEVENT\r\nUID:1\r\n" properties "END:VEVENT\r\n"

static void test_all_day_events_become_holidays(void **state)
{
    (void)state;
    struct calendar_definition d = parsed(
        calendar_ics_parse,
        ICS("BEGIN:VTIMEZONE\r\nTZID:x\r\nBEGIN:STANDARD\r\nDTSTART:19700101T000000\r\n"
            "RRULE:FREQ=YEARLY\r\nEND:STANDARD\r\nEND:VTIMEZONE\r\n" EVENT(
                "DTSTART;VALUE=DATE:20261225\r\nDTEND;VALUE=DATE:20261227\r\n"
                "SUMMARY:Christmas\\, both\r\n  days\r\n")
                EVENT("DTSTART;VALUE=DATE:20260501\r\nSUMMARY;LANGUAGE=en:Labour Day\r\n"
                      "BEGIN:VALARM\r\nACTION:DISPLAY\r\nTRIGGER:-PT1H\r\nEND:VALARM\r\n")
                    EVENT("DTSTART;VALUE=DATE:20260403\r\nDTEND;VALUE=DATE:20260403\r\nSUMMARY:"
                          "Good Friday\r\n")
                        EVENT("DTSTART;VALUE=DATE:20260403\r\nSUMMARY:Karfreitag\r\n") EVENT(
                            "DTSTART;VALUE=DATE:20261226\r\nSUMMARY:Christmas\\, both days\r\n")
                            EVENT("DTSTART;VALUE=DATE:20260801\r\nDURATION:P2D\r\nSUMMARY:Two\r\n")
                                EVENT("DTSTART;VALUE=DATE:20260101\r\nSTATUS:CANCELLED\r\nSUMMARY:"
                                      "no\r\n") EVENT("DTSTART;VALUE=DATE:20260102\r\n")));
    assert_int_equal(d.entry_count, 7);
    assert_entry(&d, 0, "2026-01-02", "");
    assert_entry(&d, 1, "2026-04-03", "Good Friday; Karfreitag");
    assert_entry(&d, 2, "2026-05-01", "Labour Day");
    assert_entry(&d, 3, "2026-08-01", "Two");
    assert_entry(&d, 4, "2026-08-02", "Two");
    assert_entry(&d, 5, "2026-12-25", "Christmas, both days");
    assert_entry(&d, 6, "2026-12-26", "Christmas, both days");
    assert_int_equal(d.valid_through, day_of("2026-12-31"));
    calendar_definition_done(&d);
}

static void test_each_event_that_is_no_plain_holiday_is_refused_with_its_line(void **state)
{
    (void)state;
    static const char *const faults[][2] = {
        {ICS(EVENT("DTSTART;VALUE=DATE:20261225\r\nRRULE:FREQ=YEARLY\r\nSUMMARY:x\r\n")),
         "own.csv:4: the event recurs (RRULE), which is not expanded here; export it with one "
         "event "
         "for each date"},
        {ICS(EVENT("DTSTART;VALUE=DATE:20261225\r\nRDATE;VALUE=DATE:20261227\r\n")),
         "own.csv:4: the event has further dates (RDATE"},
        {ICS(EVENT("DTSTART:20261225T090000Z\r\n")), "own.csv:4: the event has a time of day"},
        {ICS(EVENT("DTSTART;VALUE=DATE:20261225\r\nDTEND:20261226T000000Z\r\n")),
         "write DTEND;VALUE=DATE:"},
        {ICS(EVENT("DTSTART;VALUE=DATE:20260230\r\n")), "own.csv:4: "},
        {ICS(EVENT("DTSTART;VALUE=DATE:18000101\r\n")), "DTSTART is no date within 1900 to 2299"},
        {ICS(EVENT("SUMMARY:x\r\n")), "own.csv:4: the event has no readable date"},
        {ICS(EVENT("DTSTART;VALUE=DATE:20261225\r\nDTEND;VALUE=DATE:20261224\r\n")),
         "the event lasts -1 days"},
        {ICS(EVENT("DTSTART;VALUE=DATE:20261225\r\nDTEND;VALUE=DATE:20281224\r\n")),
         "the event lasts 730 days"},
        {ICS(EVENT("DTSTART;VALUE=DATE:20261225\r\nDURATION:-P2D\r\n")), "the event lasts 0 days"},
        {ICS("BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261225\r\nEND:VALARM\r\n"),
         "own.csv:4: the event has an END of something else than began last"},
        {ICS("BEGIN:VEVENT\r\nDTSTART;VALUE=DATE:20261225\r\nEN\r\n D:VALARM\r\n"),
         "own.csv:4: the event has an END of something else than began last"},
        {ICS(EVENT("DTSTART;VALUE=DATE:20261225\r\nRR\r\n ULE:FREQ=YEARLY\r\n")),
         "own.csv:4: the event recurs (RRULE)"},
        {ICS(EVENT("END;X=1:VEVENT\r\n")), "own.csv:4: the event has an END of something else"},
        {ICS(""), "own.csv: it has no event"},
        {"2026-01-01\n", "own.csv: no BEGIN:VCALENDAR; it is no iCalendar file"},
        {"", "own.csv: no BEGIN:VCALENDAR"},
        {"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART;VALUE=DATE:20261225\n",
         "own.csv:2: the event does not end; is the file cut off?"},
    };
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        assert_refused(calendar_ics_parse, faults[i][0], faults[i][1]);
    }
}

/* ---- shipped calendars ---- */

/* From statutes, announcements and the exchanges' own pages; not from what generates the files. */
static void test_shipped_calendars_know_the_days_that_people_remember(void **state)
{
    (void)state;
    static const struct {
        const char *calendar;
        const char *closed; /* no business day */
        const char *open;   /* business days */
    } facts[] = {
        {"weekends", "2026-08-01 2026-08-02", "2026-12-25 2026-01-01"},
        {"us-federal", "2021-06-18 2021-12-24 2021-12-31 2026-07-03 2026-10-12",
         "2020-06-19 2018-12-05 2025-01-09 2026-04-03"},
        {"nyse",
         "2001-09-11 2001-09-12 2001-09-13 2001-09-14 2004-06-11 2007-01-02 2012-10-29 2012-10-30 "
         "2018-12-05 2022-06-20 2025-01-09 2026-04-03 2026-07-03 2026-11-26 2026-12-25",
         "2001-09-17 2010-12-31 2012-10-31 2021-06-18 2021-12-31 2026-10-12 2026-11-11 2026-11-27"},
        {"uk",
         "2002-06-03 2002-06-04 2011-04-29 2012-06-05 2020-05-08 2022-06-03 2022-09-19 2023-05-08 "
         "2021-12-27 2021-12-28 2026-08-31 2026-12-28",
         "2002-05-27 2012-05-28 2020-05-04 2022-05-30 2026-08-03"},
        {"target", "2000-04-21 2001-12-31 2026-04-03 2026-04-06 2026-05-01 2026-12-25",
         "2002-12-31 2026-05-14 2026-12-31 2026-12-24"},
        {"de", "2017-10-31 2026-05-14 2026-05-25 2028-10-03", "2018-10-31 2026-06-04 2026-01-06"},
        {"fr", "2026-05-08 2026-07-14 2026-11-11 2026-05-25", "2026-04-03 2028-12-26"},
        {"jp",
         "2019-04-29 2019-04-30 2019-05-01 2019-05-02 2019-05-03 2019-05-06 2019-10-22 2020-07-24 "
         "2021-07-23 2021-08-09 2026-05-06 2026-09-22",
         "2019-12-23 2020-10-12 2021-10-11 2026-12-31"},
    };
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        struct calendar *c = NULL;
        struct error err = {.text = ""};
        assert_int_equal(calendar_file_load(facts[i].calendar, &c, &err), STATUS_OK);
        for (int open = 0; open < 2; open++) {
            const char *at = open == 1 ? facts[i].open : facts[i].closed;
            for (; *at != '\0'; at += strspn(at, " ")) {
                char date[DATE_TEXT_MAX];
                (void)snprintf(date, sizeof date, "%.10s", at);
                if (calendar_is_business_day(c, day_of(date)) != (open == 1)) {
                    fail_msg("%s: %s is wrong", facts[i].calendar, date);
                }
                at += strlen("2026-01-01");
            }
        }
        calendar_free(c);
    }
}

static void test_shipped_files_say_whence_they_come_and_how_long_they_hold(void **state)
{
    (void)state;
    static const char *const names[] = {"us-federal", "nyse", "uk", "target", "de", "fr", "jp"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct calendar_definition d;
        calendar_definition_init(&d);
        assert_int_equal(calendar_file_read(names[i], &d, NULL), STATUS_OK);
        assert_string_equal(d.name, names[i]);
        assert_non_null(strstr(d.attribution, "Vacanza Team"));
        assert_true(d.description[0] != '\0' && d.source[0] != '\0');
        assert_int_equal(d.valid_from, day_of("2000-01-01"));
        assert_true(d.valid_through >= day_of("2027-12-31"));
        assert_true(d.entries[d.entry_count - 1].day >= day_of("2035-11-23"));
        for (int year = 2000; year <= 2035; year++) {
            int count = 0;
            for (size_t j = 0; j < d.entry_count; j++) {
                count += civil_date_of(d.entries[j].day).year == year ? 1 : 0;
            }
            assert_in_range(count, 6, 25);
        }
        calendar_definition_done(&d);
    }
}

static void test_japans_ten_days_are_the_longest_closed_run(void **state)
{
    (void)state;
    struct calendar *c = NULL;
    assert_int_equal(calendar_file_load("jp", &c, NULL), STATUS_OK);
    assert_int_equal(calendar_longest_closed(c), 10);
    struct calendar_answer a = {0};
    assert_int_equal(calendar_roll(c, ROLL_FOLLOWING, day_of("2019-04-27"), &a, NULL), STATUS_OK);
    assert_int_equal(a.day, day_of("2019-05-07"));
    calendar_free(c);
}

int main(void)
{
    /* The tests lie elsewhere than reportctl, and find the calendars where the build tree has them.
     */
    (void)setenv("REPORTCTL_CALENDAR_DIR", TEST_BINARY_DIR "/calendars", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_with_all_settings_says_all_of_them),
        cmocka_unit_test(test_a_plain_list_of_dates_is_a_calendar_of_those_years),
        cmocka_unit_test(test_settings_in_capitals_are_settings),
        cmocka_unit_test(test_each_fault_of_a_file_names_its_line_and_the_remedy),
        cmocka_unit_test(test_what_is_too_large_is_refused_within_bounds),
        cmocka_unit_test(test_all_day_events_become_holidays),
        cmocka_unit_test(test_each_event_that_is_no_plain_holiday_is_refused_with_its_line),
        cmocka_unit_test(test_shipped_calendars_know_the_days_that_people_remember),
        cmocka_unit_test(test_shipped_files_say_whence_they_come_and_how_long_they_hold),
        cmocka_unit_test(test_japans_ten_days_are_the_longest_closed_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
