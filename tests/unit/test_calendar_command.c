/* `reportctl roll` and `business-day`: one date, or one line of what is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calendar_command.h"
#include "fixture_csv.h"

#define OUTPUT_MAX 2048

struct output {
    int code;
    char out[OUTPUT_MAX], err[OUTPUT_MAX];
};

static struct output roll(const char *calendar, const char *convention, const char *date)
{
    struct output o = {.code = -1};
    FILE *out = fmemopen(o.out, sizeof o.out, "w");
    FILE *err = fmemopen(o.err, sizeof o.err, "w");
    assert_true(out != NULL && err != NULL);
    struct roll_arguments a = {calendar, convention, date};
    o.code = roll_command_run(&a, out, err);
    assert_int_equal(fclose(out) | fclose(err), 0);
    return o;
}

static struct output business_day(const struct business_day_arguments *a)
{
    struct output o = {.code = -1};
    FILE *out = fmemopen(o.out, sizeof o.out, "w");
    FILE *err = fmemopen(o.err, sizeof o.err, "w");
    assert_true(out != NULL && err != NULL);
    o.code = business_day_command_run(a, out, err);
    assert_int_equal(fclose(out) | fclose(err), 0);
    return o;
}

static void assert_output(const struct output *o, int code, const char *out, const char *err)
{
    bool said = err[0] == '\0' ? o->err[0] == '\0'
                               : fixture_is_one_line(o->err) && strstr(o->err, err) != NULL;
    if (o->code != code || strcmp(o->out, out) != 0 || !said) {
        fail_msg("code %d, \"%s\", \"%s\" instead of %d, \"%s\", \"%s\"", o->code, o->out, o->err,
                 code, out, err);
    }
}

static void test_roll_prints_one_date_or_one_line_of_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *calendar, *convention, *date;
        int code;
        const char *out, *err;
    } cases[] = {
        {"nyse", "run", "2026-07-04", 0, "2026-07-04\n", ""},
        {"nyse", "skip", "2026-07-06", 0, "2026-07-06\n", ""},
        {"nyse", "skip", "2026-07-04", 0, "", ""},
        {"nyse", "following", "2036-07-05", 0, "2036-07-07\n",
         "warning: calendar nyse is known from 2000-01-01 to 2035-12-31 only"},
        {"nyse", "next", "2026-07-04", 2, "", "there is no convention \"next\""},
        {"nyse", NULL, "2026-07-04", 2, "", "--convention is needed"},
        {NULL, "run", "2026-07-04", 2, "", "--calendar is needed"},
        {"nyse", "run", NULL, 2, "", "a date is needed"},
        {"nyse", "run", "2026-7-4", 2, "", "\"2026-7-4\": it does not begin with a date"},
        {"nyse", "run", "2026-07-04 ", 2, "", "there is text after the date"},
        {"nise", "run", "2026-07-04", 2, "",
         "no calendar \"nise\" is shipped (did you mean nyse?); there are de, fr, jp, nyse, "
         "target, uk, us-federal, weekends."},
        {"NYSE", "run", "2026-07-04", 2, "",
         "no calendar \"NYSE\" is shipped (did you mean nyse?)"},
        {"../nyse", "run", "2026-07-04", 2, "", "../nyse cannot be opened: No such file"},
        {"/nowhere/x.csv", "run", "2026-07-04", 2, "", "/nowhere/x.csv cannot be opened"},
        {"/", "run", "2026-07-04", 2, "", "/ cannot be read: Is a directory"},
        {"nyse", "fol\nlowing", "2026-07-04", 2, "", "there is no convention \"fol?lowing\""},
        {"a\nb\x1b.csv", "run", "2026-07-04", 2, "", "a?b?.csv cannot be opened"},
        {"weekends", "following", "9999-12-31", 0, "9999-12-31\n", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct output o = roll(cases[i].calendar, cases[i].convention, cases[i].date);
        assert_output(&o, cases[i].code, cases[i].out, cases[i].err);
    }
}

static void test_business_day_takes_one_question_and_no_zero(void **state)
{
    (void)state;
    static const struct {
        struct business_day_arguments a;
        int code;
        const char *out, *err;
    } cases[] = {
        {{"nyse", "-1", NULL, NULL, "2026-07-06"}, 0, "2026-07-02\n", ""},
        {{"nyse", "+1", NULL, NULL, "2026-07-02"}, 0, "2026-07-06\n", ""},
        {{"nyse", "0", NULL, NULL, "2026-07-02"}, 2, "", "0 business days move nothing"},
        {{"nyse", "-0", NULL, NULL, "2026-07-02"}, 2, "", "0 business days move nothing"},
        {{"nyse", "10001", NULL, NULL, "2026-07-02"}, 2, "", "write a number from -10000 to 10000"},
        {{"nyse", "4294967297", NULL, NULL, "2026-07-02"}, 2, "", "--add: \"4294967297\" is wrong"},
        {{"weekends", "1", NULL, NULL, "9999-12-31"}, 2, "", "beyond the years 1 to 9999"},
        {{"weekends", "-1", NULL, NULL, "0001-01-01"}, 2, "", "beyond the years 1 to 9999"},
        {{"nyse", "1.5", NULL, NULL, "2026-07-02"}, 2, "", "\"1.5\" is wrong"},
        {{"nyse", "", NULL, NULL, "2026-07-02"}, 2, "", "--add: \"\" is wrong"},
        {{"nyse", "1", NULL, NULL, NULL}, 2, "", "a date is needed"},
        {{"nyse", NULL, "2026-07", NULL, NULL}, 0, "2026-07-01\n", ""},
        {{"nyse", NULL, NULL, "2026-05", NULL}, 0, "2026-05-29\n", ""},
        {{"nyse", NULL, NULL, "2026-13", NULL}, 2, "", "--last: \"2026-13\" is no month"},
        {{"nyse", NULL, "2026-5", NULL, NULL}, 2, "", "--first: \"2026-5\" is no month"},
        {{"nyse", NULL, "2026-05-01", NULL, NULL}, 2, "", "is no month; write YYYY-MM"},
        {{"nyse", NULL, "2026-05", "2026-05", NULL}, 2, "", "write one of --add N DATE"},
        {{"nyse", NULL, NULL, NULL, "2026-05-01"}, 2, "", "write one of --add N DATE"},
        {{"nyse", NULL, "2026-05", NULL, "2026-05-01"}, 2, "", "a date goes with --add"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct output o = business_day(&cases[i].a);
        assert_output(&o, cases[i].code, cases[i].out, cases[i].err);
    }
}

int main(void)
{
    /* The tests lie elsewhere than reportctl, and find the calendars where the build tree has them.
     */
    (void)setenv("REPORTCTL_CALENDAR_DIR", TEST_BINARY_DIR "/calendars", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roll_prints_one_date_or_one_line_of_what_is_wrong),
        cmocka_unit_test(test_business_day_takes_one_question_and_no_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
