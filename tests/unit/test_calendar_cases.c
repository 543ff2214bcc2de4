/* The golden cases, as they are: tests/cases/business_cases.csv through the library and the
 * commands that people use; tests/cases/README.md maps each row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calendar_command.h"
#include "calendar_file.h"
#include "civil.h"
#include "fixture_calendar.h"
#include "fixture_csv.h"

#define OUTPUT_MAX 1024

struct row {
    struct csv_row csv;
    const char *id, *rule, *calendar, *input, *expected;
};

static bool row_read(FILE *f, struct row *row)
{
    if (!fixture_csv_read(f, &row->csv)) {
        return false;
    }
    assert_true(row->csv.count >= 5);
    row->id = row->csv.columns[0];
    row->rule = row->csv.columns[1];
    row->calendar = row->csv.columns[2];
    row->input = row->csv.columns[3];
    row->expected = row->csv.columns[4];
    return true;
}

static const char *name_of(const char *written)
{
    static const char *const names[][2] = {
        {"SAT-SUN only", "weekends"}, {"NYSE", "nyse"}, {"UK", "uk"}, {"TARGET", "target"}};
    for (size_t i = 0; i < 4; i++) {
        if (strcmp(written, names[i][0]) == 0) {
            return names[i][1];
        }
    }
    fail_msg("no such calendar: %s", written);
    return NULL;
}

static const char *convention_of(const char *rule)
{
    static const char *const names[][2] = {
        {"Following", "following"},
        {"Preceding", "preceding"},
        {"ModifiedFollowing", "modified_following"},
        {"ModifiedPreceding", "modified_preceding"},
        {"HalfMonthModifiedFollowing", "half_month_modified_following"},
        {"Nearest", "nearest"}};
    for (size_t i = 0; i < 6; i++) {
        if (strcmp(rule, names[i][0]) == 0) {
            return names[i][1];
        }
    }
    return NULL;
}

/* "business date + 5 BD" and "T-1 business date". */
static const char *add_of(const char *rule)
{
    return strcmp(rule, "business date + 5 BD") == 0 ? "5"
           : strcmp(rule, "T-1 business date") == 0  ? "-1"
                                                     : NULL;
}

static void library_judge(const struct row *r)
{
    struct error err = {.text = ""};
    struct calendar *c = NULL;
    struct calendar_answer a = {0};
    enum status s = calendar_file_load(name_of(r->calendar), &c, &err);
    assert_string_equal(err.text, "");
    assert_int_equal(s, STATUS_OK);
    char month[DATE_TEXT_MAX];
    (void)snprintf(month, sizeof month, "%.7s-01", r->input);
    if (convention_of(r->rule) != NULL) {
        enum roll_convention convention = ROLL_RUN;
        assert_int_equal(roll_convention_parse(convention_of(r->rule), &convention, NULL),
                         STATUS_OK);
        s = calendar_roll(c, convention, day_of(r->input), &a, &err);
    } else if (add_of(r->rule) != NULL) {
        s = calendar_add(c, day_of(r->input), (int32_t)strtol(add_of(r->rule), NULL, 10), &a, &err);
    } else if (strcmp(r->rule, "last business day of month") == 0) {
        s = calendar_last_of_month(c, day_of(month), &a, &err);
    } else {
        assert_string_equal(r->rule, "first business day of month");
        s = calendar_first_of_month(c, day_of(month), &a, &err);
    }
    assert_int_equal(s, STATUS_OK);
    char text[DATE_TEXT_MAX];
    date_format(a.day, text);
    if (strcmp(text, r->expected) != 0) {
        fail_msg("%s: %s instead of %s", r->id, text, r->expected);
    }
    assert_false(a.skipped);
    assert_false(a.beyond);
    calendar_free(c);
}

static void command_judge(const struct row *r)
{
    char out[OUTPUT_MAX] = "";
    char err[OUTPUT_MAX] = "";
    FILE *to = fmemopen(out, sizeof out, "w");
    FILE *errors = fmemopen(err, sizeof err, "w");
    assert_non_null(to);
    assert_non_null(errors);
    int code = 0;
    if (convention_of(r->rule) != NULL) {
        struct roll_arguments a = {name_of(r->calendar), convention_of(r->rule), r->input};
        code = roll_command_run(&a, to, errors);
    } else {
        struct business_day_arguments a = {.calendar = name_of(r->calendar)};
        a.add = add_of(r->rule);
        a.date = a.add != NULL ? r->input : NULL;
        a.last = strncmp(r->rule, "last", 4) == 0 ? r->input : NULL;
        a.first = strncmp(r->rule, "first", 5) == 0 ? r->input : NULL;
        code = business_day_command_run(&a, to, errors);
    }
    assert_int_equal(fclose(to), 0);
    assert_int_equal(fclose(errors), 0);
    char expected[32];
    (void)snprintf(expected, sizeof expected, "%s\n", r->expected);
    if (code != 0 || strcmp(out, expected) != 0 || err[0] != '\0') {
        fail_msg("%s: code %d, \"%s\" instead of %s, \"%s\"", r->id, code, out, r->expected, err);
    }
}

static void test_all_golden_business_cases_hold(void **state)
{
    (void)state;
    FILE *f = fixture_cases_open("business_cases.csv");
    struct row row;
    int count = 0;
    assert_true(row_read(f, &row));
    assert_string_equal(row.rule, "rule");
    while (row_read(f, &row)) {
        library_judge(&row);
        command_judge(&row);
        count++;
    }
    (void)fclose(f);
    assert_true(count >= 24);
    printf("# %d rows of business_cases.csv\n", count);
}

int main(void)
{
    /* The tests lie elsewhere than reportctl, and find the calendars where the build tree has them.
     */
    (void)setenv("REPORTCTL_CALENDAR_DIR", TEST_BINARY_DIR "/calendars", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_golden_business_cases_hold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
