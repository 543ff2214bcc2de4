/* Recurrence rules through the command that people use: the golden cases as they are, the examples
 * of RFC 5545, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_csv.h"
#include "next_command.h"

#define OUTPUT_MAX 8192

struct answer {
    int code;
    char out[OUTPUT_MAX];
    char err[OUTPUT_MAX];
};

static struct answer ask(const struct next_rrule_arguments *arguments)
{
    struct answer a = {.code = -1};
    FILE *out = fmemopen(a.out, sizeof a.out, "w");
    FILE *err = fmemopen(a.err, sizeof a.err, "w");
    assert_non_null(out);
    assert_non_null(err);
    a.code = next_command_rrule(arguments, out, err);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(fclose(err), 0);
    return a;
}

/* "a;b;c" against "a+00:00\nb+00:00\nc+00:00\n", no line more or less. */
static bool lists_agree(const char *expected, const char *printed)
{
    while (*expected != '\0') {
        size_t n = strcspn(expected, ";");
        if (strncmp(expected, printed, n) != 0 || strncmp(printed + n, "+00:00\n", 7) != 0) {
            return false;
        }
        expected += n + (expected[n] == ';' ? 1 : 0);
        printed += n + 7;
    }
    return *printed == '\0';
}

static void test_every_golden_case_gives_the_times_it_lists(void **state)
{
    (void)state;
    FILE *f = fixture_cases_open("rrule_cases.csv");
    static struct csv_row r;
    int agree = 0;
    int differ = 0;
    assert_true(fixture_csv_read(f, &r));
    assert_string_equal(r.columns[1], "dtstart_local");
    assert_string_equal(r.columns[3], "expected_first5_local");
    while (fixture_csv_read(f, &r)) {
        assert_true(r.count >= 4);
        /* 19970902T090000 as the command wants it */
        char start[32];
        const char *d = r.columns[1];
        (void)snprintf(start, sizeof start, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2s", d, d + 4, d + 6, d + 9,
                       d + 11, d + 13);
        const struct next_rrule_arguments arguments = {
            .rrule = r.columns[2], .start = start, .time_zone = "UTC", .count = "5"};
        struct answer a = ask(&arguments);
        bool never = r.columns[3][0] == '\0';
        bool agrees = never ? a.code == 0 && a.out[0] == '\0' && fixture_is_one_line(a.err) &&
                                  strstr(a.err, "never fires") != NULL
                            : a.code == 0 && a.err[0] == '\0' && lists_agree(r.columns[3], a.out);
        if (!agrees) {
            print_error("%s %s from %s: wanted %s, code %d, got\n%s%s", r.columns[0], r.columns[2],
                        start, r.columns[3], a.code, a.out, a.err);
        }
        agree += agrees ? 1 : 0;
        differ += agrees ? 0 : 1;
    }
    assert_int_equal(fclose(f), 0);
    print_message("%d rows agree, %d differ\n", agree, differ);
    assert_int_equal(differ, 0);
    assert_true(agree >= 33);
}

/* The first times, as RFC 5545 section 3.8.5.3 lists them, in its zone; with ";" at the end all. */
static const struct example {
    const char *rule, *start, *expected;
} RFC_EXAMPLES[] = {
    {"FREQ=DAILY;UNTIL=19971224T000000Z", "1997-09-02T09:00:00",
     "1997-09-02T09:00:00-04:00;1997-09-03T09:00:00-04:00"},
    {"FREQ=DAILY;INTERVAL=10;COUNT=5", "1997-09-02T09:00:00",
     "1997-09-02T09:00:00-04:00;1997-09-12T09:00:00-04:00;1997-09-22T09:00:00-04:00;"
     "1997-10-02T09:00:00-04:00;1997-10-12T09:00:00-04:00;"},
    {"FREQ=WEEKLY;COUNT=10", "1997-09-02T09:00:00",
     "1997-09-02T09:00:00-04:00;1997-09-09T09:00:00-04:00;1997-09-16T09:00:00-04:00;"
     "1997-09-23T09:00:00-04:00;1997-09-30T09:00:00-04:00;1997-10-07T09:00:00-04:00;"
     "1997-10-14T09:00:00-04:00;1997-10-21T09:00:00-04:00;1997-10-28T09:00:00-05:00;"
     "1997-11-04T09:00:00-05:00;"},
    {"FREQ=WEEKLY;INTERVAL=2;WKST=SU", "1997-09-02T09:00:00",
     "1997-09-02T09:00:00-04:00;1997-09-16T09:00:00-04:00;1997-09-30T09:00:00-04:00"},
    {"FREQ=WEEKLY;UNTIL=19971007T000000Z;WKST=SU;BYDAY=TU,TH", "1997-09-02T09:00:00",
     "1997-09-02T09:00:00-04:00;1997-09-04T09:00:00-04:00;1997-09-09T09:00:00-04:00;"
     "1997-09-11T09:00:00-04:00;1997-09-16T09:00:00-04:00;1997-09-18T09:00:00-04:00;"
     "1997-09-23T09:00:00-04:00;1997-09-25T09:00:00-04:00;1997-09-30T09:00:00-04:00;"
     "1997-10-02T09:00:00-04:00;"},
    {"FREQ=WEEKLY;INTERVAL=2;UNTIL=19971224T000000Z;WKST=SU;BYDAY=MO,WE,FR", "1997-09-01T09:00:00",
     "1997-09-01T09:00:00-04:00;1997-09-03T09:00:00-04:00;1997-09-05T09:00:00-04:00;"
     "1997-09-15T09:00:00-04:00"},
    {"FREQ=WEEKLY;INTERVAL=2;COUNT=8;WKST=SU;BYDAY=TU,TH", "1997-09-02T09:00:00",
     "1997-09-02T09:00:00-04:00;1997-09-04T09:00:00-04:00;1997-09-16T09:00:00-04:00;"
     "1997-09-18T09:00:00-04:00;1997-09-30T09:00:00-04:00;1997-10-02T09:00:00-04:00;"
     "1997-10-14T09:00:00-04:00;1997-10-16T09:00:00-04:00;"},
    {"FREQ=MONTHLY;UNTIL=19971224T000000Z;BYDAY=1FR", "1997-09-05T09:00:00",
     "1997-09-05T09:00:00-04:00;1997-10-03T09:00:00-04:00;1997-11-07T09:00:00-05:00;"
     "1997-12-05T09:00:00-05:00;"},
    {"FREQ=MONTHLY;COUNT=6;BYDAY=-2MO", "1997-09-22T09:00:00",
     "1997-09-22T09:00:00-04:00;1997-10-20T09:00:00-04:00;1997-11-17T09:00:00-05:00;"
     "1997-12-22T09:00:00-05:00;1998-01-19T09:00:00-05:00;1998-02-16T09:00:00-05:00;"},
    {"FREQ=MONTHLY;COUNT=10;BYMONTHDAY=2,15", "1997-09-02T09:00:00",
     "1997-09-02T09:00:00-04:00;1997-09-15T09:00:00-04:00;1997-10-02T09:00:00-04:00"},
    {"FREQ=MONTHLY;COUNT=10;BYMONTHDAY=1,-1", "1997-09-30T09:00:00",
     "1997-09-30T09:00:00-04:00;1997-10-01T09:00:00-04:00;1997-10-31T09:00:00-05:00;"
     "1997-11-01T09:00:00-05:00"},
    {"FREQ=YEARLY;COUNT=10;BYMONTH=6,7", "1997-06-10T09:00:00",
     "1997-06-10T09:00:00-04:00;1997-07-10T09:00:00-04:00;1998-06-10T09:00:00-04:00"},
    {"FREQ=YEARLY;INTERVAL=2;COUNT=10;BYMONTH=1,2,3", "1997-03-10T09:00:00",
     "1997-03-10T09:00:00-05:00;1999-01-10T09:00:00-05:00;1999-02-10T09:00:00-05:00;"
     "1999-03-10T09:00:00-05:00"},
    {"FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO", "1997-05-12T09:00:00",
     "1997-05-12T09:00:00-04:00;1998-05-11T09:00:00-04:00;1999-05-17T09:00:00-04:00"},
    {"FREQ=YEARLY;BYMONTH=3;BYDAY=TH", "1997-03-13T09:00:00",
     "1997-03-13T09:00:00-05:00;1997-03-20T09:00:00-05:00;1997-03-27T09:00:00-05:00;"
     "1998-03-05T09:00:00-05:00"},
    {"FREQ=YEARLY;BYDAY=TH;BYMONTH=6,7,8", "1997-06-05T09:00:00",
     "1997-06-05T09:00:00-04:00;1997-06-12T09:00:00-04:00"},
    {"FREQ=MONTHLY;COUNT=3;BYDAY=TU,WE,TH;BYSETPOS=3", "1997-09-04T09:00:00",
     "1997-09-04T09:00:00-04:00;1997-10-07T09:00:00-04:00;1997-11-06T09:00:00-05:00;"},
    {"FREQ=HOURLY;INTERVAL=3;UNTIL=19970902T170000Z", "1997-09-02T09:00:00",
     "1997-09-02T09:00:00-04:00;1997-09-02T12:00:00-04:00;"},
    {"FREQ=MINUTELY;INTERVAL=15;COUNT=6", "1997-09-02T09:00:00",
     "1997-09-02T09:00:00-04:00;1997-09-02T09:15:00-04:00;1997-09-02T09:30:00-04:00;"
     "1997-09-02T09:45:00-04:00;1997-09-02T10:00:00-04:00;1997-09-02T10:15:00-04:00;"},
    {"FREQ=MINUTELY;INTERVAL=90;COUNT=4", "1997-09-02T09:00:00",
     "1997-09-02T09:00:00-04:00;1997-09-02T10:30:00-04:00;1997-09-02T12:00:00-04:00;"
     "1997-09-02T13:30:00-04:00;"},
    {"FREQ=WEEKLY;INTERVAL=2;COUNT=4;BYDAY=TU,SU;WKST=MO", "1997-08-05T09:00:00",
     "1997-08-05T09:00:00-04:00;1997-08-10T09:00:00-04:00;1997-08-19T09:00:00-04:00;"
     "1997-08-24T09:00:00-04:00;"},
};

static void test_the_examples_of_the_rfc_give_the_times_it_lists(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof RFC_EXAMPLES / sizeof RFC_EXAMPLES[0]; i++) {
        const struct example *e = &RFC_EXAMPLES[i];
        const struct next_rrule_arguments arguments = {
            .rrule = e->rule, .start = e->start, .time_zone = "America/New_York", .count = "20"};
        struct answer a = ask(&arguments);
        assert_int_equal(a.code, 0);
        for (char *p = a.out; *p != '\0'; p++) {
            *p = *p == '\n' ? ';' : *p;
        }
        size_t length = strlen(e->expected);
        bool whole = e->expected[length - 1] == ';';
        if (strncmp(a.out, e->expected, length) != 0 || (whole && a.out[length] != '\0')) {
            fail_msg("%s: wanted %s, got %s", e->rule, e->expected, a.out);
        }
    }
}

static void test_until_ends_at_the_last_one_before_christmas(void **state)
{
    (void)state;
    const struct next_rrule_arguments arguments = {.rrule = "FREQ=DAILY;UNTIL=19971224T000000Z",
                                                   .start = "1997-09-02T09:00:00",
                                                   .time_zone = "America/New_York",
                                                   .count = "1000"};
    struct answer a = ask(&arguments);
    assert_int_equal(a.code, 0);
    int lines = 0;
    for (const char *p = a.out; *p != '\0'; p++) {
        lines += *p == '\n' ? 1 : 0;
    }
    assert_int_equal(lines, 113);
    assert_string_equal(a.out + strlen(a.out) - 26, "1997-12-23T09:00:00-05:00\n");
}

static const struct {
    const char *rule, *why, *remedy;
} REFUSED[] = {
    {"FREQ=SECONDLY", "SECONDLY", "interval"},
    {"FREQ=DAYLY", "FREQ \"DAYLY\"", "DAILY"},
    {"", "empty part", "write"},
    {"INTERVAL=2", "no FREQ", "FREQ=DAILY"},
    {"RRULE:FREQ=DAILY", "RRULE:", "write only"},
    {"EXRULE:FREQ=DAILY", "EXRULE", "exdates"},
    {"DTSTART;TZID=Europe/Berlin:20300101T000000", "DTSTART", "start"},
    {"FREQ=DAILY;", "empty part", "none at the end"},
    {"FREQ=DAILY;;COUNT=2", "empty part", "one ;"},
    {"FREQ=DAILY ;COUNT=2", "byte 11", "remove"},
    {"FREQ=DAILY;FREQ=DAILY", "FREQ stands twice", "once"},
    {"FREQ=DAILY;COUNT=2;UNTIL=20300101T000000Z", "COUNT and UNTIL", "one of them"},
    {"FREQ=DAILY;COUNT=0", "COUNT \"0\"", "1 to 100000"},
    {"FREQ=DAILY;COUNT=100001", "COUNT \"100001\"", "UNTIL"},
    {"FREQ=DAILY;INTERVAL=0", "INTERVAL \"0\"", "from 1 on"},
    {"FREQ=DAILY;INTERVAL=-1", "INTERVAL \"-1\"", "from 1 on"},
    {"FREQ=YEARLY;INTERVAL=401", "INTERVAL=401", "at most 400"},
    {"FREQ=DAILY;UNTIL=2030-01-01", "UNTIL \"2030-01-01\"", "20300412T060000Z"},
    {"FREQ=DAILY;UNTIL=20300230", "UNTIL \"20300230\"", "write"},
    {"FREQ=DAILY;UNTIL=20300101T240000", "UNTIL", "write"},
    {"FREQ=DAILY;UNTIL=19800101T000000Z", "UNTIL lies before", "later UNTIL"},
    {"FREQ=DAILY;UNTIL=20300101", "UNTIL lies before", "later UNTIL"},
    {"FREQ=DAILY;BYSECOND=60", "BYSECOND 60", "59"},
    {"FREQ=DAILY;BYSECOND=61", "BYSECOND \"61\"", "0 to 59"},
    {"FREQ=DAILY;BYMINUTE=60", "BYMINUTE \"60\"", "0 to 59"},
    {"FREQ=DAILY;BYHOUR=24", "BYHOUR \"24\"", "0 to 23"},
    {"FREQ=DAILY;BYHOUR=-1", "BYHOUR \"-1\"", "0 to 23"},
    {"FREQ=DAILY;BYHOUR=", "BYHOUR \"\"", "0 to 23"},
    {"FREQ=DAILY;BYHOUR=1,,2", "BYHOUR \"\"", "0 to 23"},
    {"FREQ=DAILY;BYHOUR", "part \"BYHOUR\"", "="},
    {"FREQ=DAILY;BYMONTH=13", "BYMONTH \"13\"", "1 to 12"},
    {"FREQ=DAILY;BYMONTH=5L", "BYMONTH \"5L\"", "1 to 12"},
    {"every monday", "it has no part NAME=VALUE", "such as FREQ=WEEKLY;BYDAY=MO"},
    {"FREQ=DAILY;BYMONTHDAY=0", "BYMONTHDAY \"0\"", "1 to 31"},
    {"FREQ=DAILY;BYMONTHDAY=32", "BYMONTHDAY \"32\"", "1 to 31"},
    {"FREQ=YEARLY;BYYEARDAY=367", "BYYEARDAY \"367\"", "1 to 366"},
    {"FREQ=YEARLY;BYWEEKNO=54;BYDAY=MO", "BYWEEKNO \"54\"", "1 to 53"},
    {"FREQ=DAILY;BYDAY=MON", "BYDAY \"MON\"", "MO"},
    {"FREQ=DAILY;BYDAY=0MO", "BYDAY \"0MO\"", "1 to 53"},
    {"FREQ=YEARLY;BYDAY=54MO", "BYDAY \"54MO\"", "1 to 53"},
    {"FREQ=MONTHLY;BYDAY=6MO", "number 6", "1 to 5"},
    {"FREQ=YEARLY;BYMONTH=3;BYDAY=20MO", "number 20", "leave out BYMONTH"},
    {"FREQ=WEEKLY;BYDAY=1MO", "WEEKLY", "FREQ=MONTHLY"},
    {"FREQ=DAILY;BYDAY=-1MO", "DAILY", "FREQ=MONTHLY"},
    {"FREQ=YEARLY;BYWEEKNO=3;BYDAY=1MO", "beside BYWEEKNO", "weekdays alone"},
    {"FREQ=YEARLY;BYWEEKNO=20", "BYWEEKNO without BYDAY", "BYDAY=MO"},
    {"FREQ=MONTHLY;BYWEEKNO=20;BYDAY=MO", "BYWEEKNO in a MONTHLY", "FREQ=YEARLY"},
    {"FREQ=DAILY;BYYEARDAY=1", "BYYEARDAY in a DAILY", "BYMONTHDAY"},
    {"FREQ=WEEKLY;BYYEARDAY=1", "BYYEARDAY in a WEEKLY", "BYMONTHDAY"},
    {"FREQ=MONTHLY;BYYEARDAY=1", "BYYEARDAY in a MONTHLY", "BYMONTHDAY"},
    {"FREQ=WEEKLY;BYMONTHDAY=1", "BYMONTHDAY in a WEEKLY", "FREQ=DAILY"},
    {"FREQ=DAILY;BYSETPOS=1", "BYSETPOS alone", "another BY part"},
    {"FREQ=DAILY;BYHOUR=1;BYSETPOS=0", "BYSETPOS \"0\"", "1 to 366"},
    {"FREQ=DAILY;BYHOUR=1;BYSETPOS=2", "BYSETPOS picks none", "smaller"},
    {"FREQ=MINUTELY;BYHOUR=1;BYSETPOS=2", "BYSETPOS picks none", "smaller"},
    {"FREQ=DAILY;WKST=1", "WKST \"1\"", "MO"},
    {"FREQ=DAILY;RSCALE=GREGORIAN", "RSCALE", "remove"},
    {"FREQ=MONTHLY;SKIP=FORWARD", "SKIP", "BYMONTHDAY=-1"},
    {"FREQ=YEARLY;BYEASTER=0", "BYEASTER", "rdates"},
    {"FREQ=DAILY;X-FOO=1", "part \"X-FOO\"", "RFC 5545"},
    {"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "never fires", "write"},
    {"FREQ=DAILY;INTERVAL=7;BYDAY=TU", "never fires", "write"},
    {"FREQ=MINUTELY;INTERVAL=7;BYHOUR=0;BYMINUTE=0;BYDAY=TU", "never fires", "write"},
};

static void test_each_refused_rule_says_what_to_write(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof REFUSED / sizeof REFUSED[0]; i++) {
        const struct next_rrule_arguments arguments = {
            .rrule = REFUSED[i].rule, .start = "2030-04-12T06:00:00", .time_zone = "UTC"};
        struct answer a = ask(&arguments);
        /* A rule that is right and names no time is no mistake of the caller: nothing is printed.
         */
        int code = strstr(a.err, "never fires") != NULL ? 0 : 2;
        if (a.code != code || a.out[0] != '\0' || !fixture_is_one_line(a.err) ||
            strstr(a.err, REFUSED[i].why) == NULL || strstr(a.err, REFUSED[i].remedy) == NULL) {
            fail_msg("\"%s\": code %d, out \"%s\", err \"%s\"", REFUSED[i].rule, a.code, a.out,
                     a.err);
        }
    }
}

static void test_the_command_refuses_each_bad_argument_in_one_line(void **state)
{
    (void)state;
    const struct next_rrule_arguments good = {
        .rrule = "FREQ=DAILY", .start = "2030-04-12T06:00:00", .time_zone = "UTC"};
    struct next_rrule_arguments bad[13];
    const char *whys[13];
    for (size_t i = 0; i < 13; i++) {
        bad[i] = good;
    }
    bad[0].rrule = NULL, whys[0] = "--rrule";
    bad[1].start = NULL, whys[1] = "--start";
    bad[2].time_zone = NULL, whys[2] = "--time-zone";
    bad[3].start = "2030-04-12T06:00:00Z", whys[3] = "without offset";
    bad[4].start = "2030-04-31T06:00:00", whys[4] = "--start";
    bad[5].after = "2030-04-12", whys[5] = "--after";
    bad[6].count = "0", whys[6] = "--count";
    bad[7].exdate = "2030-04-12T06:00:00,tomorrow", whys[7] = "--exdate: number 2";
    bad[8].rdate = "2030-04-12T06:00:00,", whys[8] = "--rdate: number 2";
    bad[9].rdate = "2030-04-11T06:00:00", whys[9] = "before the start";
    bad[10].dst_gap = "sometimes", whys[10] = "--dst-gap";
    bad[11].dst_overlap = "twice", whys[11] = "--dst-overlap";
    bad[12].time_zone = "europe/berlin", whys[12] = "Europe/Berlin";
    for (size_t i = 0; i < 13; i++) {
        struct answer a = ask(&bad[i]);
        if (a.code != 2 || a.out[0] != '\0' || !fixture_is_one_line(a.err) ||
            strstr(a.err, whys[i]) == NULL) {
            fail_msg("%s: code %d, out \"%s\", err \"%s\"", whys[i], a.code, a.out, a.err);
        }
    }
}

static void test_local_times_may_have_a_blank_as_in_sql(void **state)
{
    (void)state;
    const struct next_rrule_arguments arguments = {.rrule = "FREQ=DAILY",
                                                   .start = "2030-04-12 06:00",
                                                   .time_zone = "UTC",
                                                   .count = "2",
                                                   .exdate = "2030-04-12 06:00:00"};
    struct answer a = ask(&arguments);
    assert_string_equal(a.err, "");
    assert_string_equal(a.out, "2030-04-13T06:00:00+00:00\n2030-04-14T06:00:00+00:00\n");
}

static void test_rdates_fire_where_the_rule_itself_names_nothing(void **state)
{
    (void)state;
    static const char *const rules[] = {"FREQ=DAILY;UNTIL=20290101",
                                        "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
                                        "FREQ=DAILY;INTERVAL=7;BYDAY=MO"};
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        const struct next_rrule_arguments a = {.rrule = rules[i],
                                               .start = "2030-01-01T00:00:00",
                                               .time_zone = "UTC",
                                               .rdate = "2030-02-01T00:00:00,2031-01-01T06:00:00",
                                               .count = "3"};
        struct answer got = ask(&a);
        assert_int_equal(got.code, 0);
        assert_string_equal(got.err, "");
        assert_string_equal(got.out, "2030-02-01T00:00:00+00:00\n2031-01-01T06:00:00+00:00\n");
    }
}

static void test_exdate_takes_away_and_rdate_adds_whatever_the_order(void **state)
{
    (void)state;
    struct next_rrule_arguments a = {
        .rrule = "FREQ=DAILY;COUNT=3",
        .start = "2030-04-12T06:00:00",
        .time_zone = "UTC",
        .count = "9",
        .exdate = "2030-04-14T06:00:00,2030-04-13T06:00:00,2030-04-20T12:00:00",
        .rdate = "2030-04-20T12:00:00,2030-05-01T06:00:00,2030-04-12T18:00:00,2030-04-12T06:00:00",
        .utc = true,
    };
    assert_string_equal(ask(&a).out,
                        "2030-04-12T06:00:00Z\n2030-04-12T18:00:00Z\n2030-05-01T06:00:00Z\n");
    a.exdate = "2030-04-12T06:00:00,2030-04-13T06:00:00,2030-04-14T06:00:00";
    a.rdate = NULL;
    assert_non_null(strstr(ask(&a).err, "exdates take away all"));
}

static void test_after_is_strict_and_without_it_the_start_is_included(void **state)
{
    (void)state;
    struct next_rrule_arguments a = {
        .rrule = "FREQ=DAILY", .start = "2030-04-12T06:00:00", .time_zone = "Europe/Berlin"};
    assert_string_equal(ask(&a).out, "2030-04-12T06:00:00+02:00\n");
    a.after = "2030-04-12T04:00:00Z";
    assert_string_equal(ask(&a).out, "2030-04-13T06:00:00+02:00\n");
    a.after = "2030-04-12T03:59:59.999Z";
    assert_string_equal(ask(&a).out, "2030-04-12T06:00:00+02:00\n");
    a.after = "1970-01-01T00:00:00Z";
    assert_string_equal(ask(&a).out, "2030-04-12T06:00:00+02:00\n");
}

static void test_a_time_in_a_gap_is_shifted_and_of_an_overlap_the_first_fires(void **state)
{
    (void)state;
    struct next_rrule_arguments a = {.rrule = "FREQ=DAILY",
                                     .start = "2026-03-29T02:30:00",
                                     .time_zone = "Europe/Berlin",
                                     .count = "2"};
    assert_string_equal(ask(&a).out, "2026-03-29T03:30:00+02:00\n2026-03-30T02:30:00+02:00\n");
    a.dst_gap = "after";
    assert_string_equal(ask(&a).out, "2026-03-29T03:00:00+02:00\n2026-03-30T02:30:00+02:00\n");
    a.dst_gap = "skip";
    assert_string_equal(ask(&a).out, "2026-03-30T02:30:00+02:00\n2026-03-31T02:30:00+02:00\n");
    a.start = "2026-10-25T02:30:00";
    assert_string_equal(ask(&a).out, "2026-10-25T02:30:00+02:00\n2026-10-26T02:30:00+01:00\n");
    a.dst_overlap = "second";
    assert_string_equal(ask(&a).out, "2026-10-25T02:30:00+01:00\n2026-10-26T02:30:00+01:00\n");
    a.dst_overlap = "both";
    assert_string_equal(ask(&a).out, "2026-10-25T02:30:00+02:00\n2026-10-25T02:30:00+01:00\n");
}

static void test_until_with_z_is_an_instant_and_a_date_includes_its_day(void **state)
{
    (void)state;
    struct next_rrule_arguments a = {.rrule = "FREQ=DAILY;UNTIL=20300413T040000Z",
                                     .start = "2030-04-12T06:00:00",
                                     .time_zone = "Europe/Berlin",
                                     .count = "9"};
    const char *two = "2030-04-12T06:00:00+02:00\n2030-04-13T06:00:00+02:00\n";
    assert_string_equal(ask(&a).out, two);
    a.rrule = "FREQ=DAILY;UNTIL=20300413T035959Z";
    assert_string_equal(ask(&a).out, "2030-04-12T06:00:00+02:00\n");
    a.rrule = "FREQ=DAILY;UNTIL=20300413T060000";
    assert_string_equal(ask(&a).out, two);
    a.rrule = "FREQ=DAILY;UNTIL=20300413";
    assert_string_equal(ask(&a).out, two);
}

static void test_the_process_time_zone_changes_nothing(void **state)
{
    (void)state;
    const struct next_rrule_arguments a = {
        .rrule = "FREQ=DAILY", .start = "2026-03-29T02:30:00", .time_zone = "Europe/Berlin"};
    assert_int_equal(setenv("TZ", "Asia/Tokyo", 1), 0);
    assert_string_equal(ask(&a).out, "2026-03-29T03:30:00+02:00\n");
    assert_int_equal(unsetenv("TZ"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_golden_case_gives_the_times_it_lists),
        cmocka_unit_test(test_the_examples_of_the_rfc_give_the_times_it_lists),
        cmocka_unit_test(test_until_ends_at_the_last_one_before_christmas),
        cmocka_unit_test(test_each_refused_rule_says_what_to_write),
        cmocka_unit_test(test_the_command_refuses_each_bad_argument_in_one_line),
        cmocka_unit_test(test_local_times_may_have_a_blank_as_in_sql),
        cmocka_unit_test(test_rdates_fire_where_the_rule_itself_names_nothing),
        cmocka_unit_test(test_exdate_takes_away_and_rdate_adds_whatever_the_order),
        cmocka_unit_test(test_after_is_strict_and_without_it_the_start_is_included),
        cmocka_unit_test(test_a_time_in_a_gap_is_shifted_and_of_an_overlap_the_first_fires),
        cmocka_unit_test(test_until_with_z_is_an_instant_and_a_date_includes_its_day),
        cmocka_unit_test(test_the_process_time_zone_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
