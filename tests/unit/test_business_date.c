/* What firings are about: dates and periods, and their names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "business_date.h"
#include "fixture_business.h"
#include "fixture_calendar.h"
#include "fixture_zone.h"
#include "key.h"

static void test_a_text_is_one_of_the_list_and_is_refused_otherwise_with_it(void **state)
{
    (void)state;
    static const char *const good[] = {"run_date",
                                       "t_minus(1)",
                                       "t_minus(31)",
                                       "previous_week",
                                       "current_week",
                                       "previous_month",
                                       "current_month",
                                       "previous_quarter",
                                       "current_quarter",
                                       "fiscal_period(a)",
                                       "run_date cutoff 06:00",
                                       "fiscal_period(acme.4-4-5_x) cutoff 23:59"};
    static const char *const bad[] = {"t_minus(0)",
                                      "t_minus(32)",
                                      "t_minus(01)",
                                      "t_minus(-1)",
                                      "t_minus()",
                                      "t_minus",
                                      "t_minus(1",
                                      "t_minus(1) ",
                                      "Previous_month",
                                      "previous_day",
                                      "previous_year",
                                      "fiscal_period",
                                      "fiscal_period()",
                                      "fiscal_period(A)",
                                      " run_date",
                                      "fiscal_period(-a)",
                                      "cutoff 06:00",
                                      "run_date cutoff",
                                      "run_date cutoff 6:00",
                                      "run_date cutoff 00:00",
                                      "run_date cutoff 24:00",
                                      "run_date cutoff 06:60",
                                      "run_date  cutoff 06:00",
                                      "run_date cutoff 06:00 cutoff 07:00"};
    struct business_date b;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_int_equal(business_date_parse(good[i], &b, NULL), STATUS_OK);
    }
    assert_int_equal(b.kind, BUSINESS_FISCAL_PERIOD);
    assert_string_equal(b.fiscal, "acme.4-4-5_x");
    assert_int_equal(b.cutoff_s, 23 * 3600 + 59 * 60);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct error err = {.text = ""};
        b.kind = BUSINESS_T_MINUS;
        if (business_date_parse(bad[i], &b, &err) != STATUS_INVALID) {
            fail_msg("\"%s\" is not refused", bad[i]);
        }
        assert_int_equal(b.kind, BUSINESS_T_MINUS); /* untouched */
        assert_non_null(strstr(err.text, "write"));
    }
}

/* "first..last key" of what a firing with a local time is about. */
static const char *about_of(const struct business_date *b, enum key_form form, const char *local)
{
    static char told[200];
    char first[DATE_TEXT_MAX];
    char last[DATE_TEXT_MAX];
    char key[KEY_MAX_BYTES];
    struct firing f = {.found = true, .nominal = local_of(local)};
    struct error err = {.text = ""};
    if (business_date_of(b, f.nominal, &f.about, &err) != STATUS_OK) {
        (void)snprintf(told, sizeof told, "%.190s", err.text);
        return told;
    }
    date_format(f.about.first, first);
    date_format(f.about.last, last);
    key_format(form, &f, key);
    (void)snprintf(told, sizeof told, "%s..%s %.30s", first, last, key);
    return told;
}

static void check(const char *text, enum key_form form, const char *local, const char *want)
{
    struct fiscal_period list[3];
    const struct fiscal_periods periods = fiscal_of(list);
    struct business_date b;
    assert_int_equal(business_date_parse(text, &b, NULL), STATUS_OK);
    b.periods = &periods;
    assert_string_equal(about_of(&b, form, local), want);
}

static void test_periods_have_their_days_and_their_names(void **state)
{
    (void)state;
    check("previous_month", KEY_MONTH, "2030-04-01T06:00", "2030-03-01..2030-03-31 2030-03");
    check("previous_month", KEY_MONTH, "2030-01-31T06:00", "2029-12-01..2029-12-31 2029-12");
    check("current_month", KEY_MONTH, "2028-02-10T06:00", "2028-02-01..2028-02-29 2028-02");
    check("previous_quarter", KEY_QUARTER, "2030-04-05T06:00", "2030-01-01..2030-03-31 2030-Q1");
    check("previous_quarter", KEY_QUARTER, "2030-03-31T06:00", "2029-10-01..2029-12-31 2029-Q4");
    check("current_quarter", KEY_QUARTER, "2030-12-31T06:00", "2030-10-01..2030-12-31 2030-Q4");
    check("previous_week", KEY_WEEK, "2030-04-15T06:00", "2030-04-08..2030-04-14 2030-W15");
    check("current_week", KEY_WEEK, "2030-04-14T23:59", "2030-04-08..2030-04-14 2030-W15");
    /* The year of a week is that of its Thursday. */
    check("current_week", KEY_WEEK, "2027-01-01T06:00", "2026-12-28..2027-01-03 2026-W53");
    check("current_week", KEY_WEEK, "2025-12-29T06:00", "2025-12-29..2026-01-04 2026-W01");
    check("fiscal_period(acme)", KEY_FISCAL, "2030-03-26T06:00",
          "2030-02-25..2030-03-24 FY2030-P02");
}

static void test_a_fiscal_period_is_not_guessed(void **state)
{
    (void)state;
    check("fiscal_period(acme)", KEY_FISCAL, "2030-04-29T06:00",
          "fiscal calendar acme has no period with 2030-04-29; insert it into "
          "reports.fiscal_period, and it goes on");
    check("fiscal_period(acme)", KEY_FISCAL, "2030-02-01T06:00",
          "fiscal calendar acme has no period before that of 2030-02-01; insert it into "
          "reports.fiscal_period, and it goes on");
    struct business_date b;
    struct fiscal_period list[3];
    struct fiscal_periods periods = fiscal_of(list);
    assert_int_equal(business_date_parse("fiscal_period(acme)", &b, NULL), STATUS_OK);
    list[1] = list[2]; /* P01 is not the one before P03 */
    periods.count = 2;
    b.periods = &periods;
    assert_string_equal(about_of(&b, KEY_FISCAL, "2030-03-26T06:00"),
                        "fiscal calendar acme has no period before that of 2030-03-26; insert it "
                        "into reports.fiscal_period, and it goes on");
}

static void test_what_fires_before_the_cutoff_counts_for_the_day_before(void **state)
{
    (void)state;
    check("run_date cutoff 06:00", KEY_DATE, "2030-04-12T05:59",
          "2030-04-11..2030-04-11 2030-04-12");
    check("run_date cutoff 06:00", KEY_DATE, "2030-04-12T06:00",
          "2030-04-12..2030-04-12 2030-04-12");
    check("t_minus(1) cutoff 06:00", KEY_MINUTE, "2030-04-12T02:00",
          "2030-04-10..2030-04-10 2030-04-12T02:00");
    check("previous_month cutoff 06:00", KEY_MONTH, "2030-04-01T02:00",
          "2030-02-01..2030-02-28 2030-02");
}

static void test_t_minus_counts_business_days_or_plain_ones(void **state)
{
    (void)state;
    const struct calendar_special good_friday = {.day = day_of("2030-04-19")};
    struct calendar_rules rules = rules_of(&good_friday, 1);
    rules.valid_from = day_of("2030-01-01");
    rules.beyond = CALENDAR_BEYOND_HOLD;
    struct calendar *c = calendar_of(&rules);
    struct business_date b;
    check("t_minus(3)", KEY_DATE, "2030-04-15T06:00", "2030-04-12..2030-04-12 2030-04-15");
    assert_int_equal(business_date_parse("t_minus(1)", &b, NULL), STATUS_OK);
    b.calendar = c;
    assert_string_equal(about_of(&b, KEY_DATE, "2030-04-15T06:00"),
                        "2030-04-12..2030-04-12 2030-04-15");
    assert_string_equal(about_of(&b, KEY_DATE, "2030-04-22T06:00"),
                        "2030-04-18..2030-04-18 2030-04-22");
    assert_string_equal(about_of(&b, KEY_DATE, "2030-01-01T06:00"),
                        "nothing is known before its valid_from, 2030-01-01; import older data");
    calendar_free(c);
}

/* Day by day over two centuries: periods follow one another without a gap, every day lies in the
 * one that is told, and its name is a new one, leads back to it, and sorts behind the one before.
 */
static void check_periods(const char *text, enum key_form form, int64_t days_min, int64_t days_max)
{
    struct business_date b;
    assert_int_equal(business_date_parse(text, &b, NULL), STATUS_OK);
    int64_t last = INT64_MIN;
    char before[KEY_MAX_BYTES] = "";
    for (int64_t day = day_of("1950-01-01"); day <= day_of("2150-12-31"); day++) {
        struct firing f = {.found = true, .nominal = {day * SECONDS_A_DAY + 3600}};
        char key[KEY_MAX_BYTES];
        int64_t first_day = 0;
        int64_t last_day = 0;
        assert_int_equal(business_date_of(&b, f.nominal, &f.about, NULL), STATUS_OK);
        assert_true(f.about.first <= day && day <= f.about.last);
        key_format(form, &f, key);
        if (f.about.last == last) {
            assert_string_equal(key, before);
            continue;
        }
        assert_true(last == INT64_MIN || f.about.first == last + 1);
        assert_in_range(f.about.last - f.about.first + 1, days_min, days_max);
        assert_true(strcmp(before, key) < 0);
        assert_true(business_period_parse(key, &first_day, &last_day));
        assert_true(first_day == f.about.first && last_day == f.about.last);
        memcpy(before, key, sizeof before);
        last = f.about.last;
    }
}

static void test_every_day_of_two_centuries_lies_in_one_period_with_a_name_of_its_own(void **state)
{
    (void)state;
    int64_t first = 0;
    int64_t last = 0;
    check_periods("current_week", KEY_WEEK, 7, 7);
    check_periods("current_month", KEY_MONTH, 28, 31);
    check_periods("current_quarter", KEY_QUARTER, 90, 92);
    static const char *const none[] = {"2030",     "2030-13",  "2030-00", "2030-Q0",    "2030-Q5",
                                       "2030-W00", "2030-W53", "2030-W5", "2030-04-12", "FY30-01"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_false(business_period_parse(none[i], &first, &last));
    }
    assert_true(business_period_parse("2026-W53", &first, &last));
}

static void test_it_is_told_in_words(void **state)
{
    (void)state;
    static const char *const told[][3] = {
        {"run_date", "office", ""},
        {"t_minus(1)", "office", "each firing is about the business day before by calendar office"},
        {"t_minus(3)", "", "each firing is about the date 3 days before"},
        {"previous_month", "office", "each firing is about the month before, and known by it"},
        {"current_week cutoff 06:30", "",
         "each firing is about the week that it is in, and known by it; what fires before 06:30 "
         "local time counts for the day before"},
        {"fiscal_period(acme)", "",
         "each firing is about the period before by fiscal calendar acme, and known by its label"},
        {"run_date cutoff 18:00", "",
         "what fires before 18:00 local time counts for the day before"},
    };
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        char words[BUSINESS_DATE_WORDS_MAX];
        struct business_date b;
        assert_int_equal(business_date_parse(told[i][0], &b, NULL), STATUS_OK);
        business_date_words(&b, told[i][1], words);
        assert_string_equal(words, told[i][2]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_text_is_one_of_the_list_and_is_refused_otherwise_with_it),
        cmocka_unit_test(test_periods_have_their_days_and_their_names),
        cmocka_unit_test(test_a_fiscal_period_is_not_guessed),
        cmocka_unit_test(test_what_fires_before_the_cutoff_counts_for_the_day_before),
        cmocka_unit_test(test_t_minus_counts_business_days_or_plain_ones),
        cmocka_unit_test(test_every_day_of_two_centuries_lies_in_one_period_with_a_name_of_its_own),
        cmocka_unit_test(test_it_is_told_in_words),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
