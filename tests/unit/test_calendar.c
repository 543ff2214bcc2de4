/* Business calendars: what a day is, how a date is moved, and that every search ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "civil.h"
#include "fixture_calendar.h"

static void assert_rolls(const struct calendar *c, const char *convention, const char *date,
                         const char *expected)
{
    enum roll_convention how = ROLL_RUN;
    struct calendar_answer a = {0};
    char text[DATE_TEXT_MAX];
    assert_int_equal(roll_convention_parse(convention, &how, NULL), STATUS_OK);
    assert_int_equal(calendar_roll(c, how, day_of(date), &a, NULL), STATUS_OK);
    date_format(a.day, text);
    if (strcmp(text, expected) != 0) {
        fail_msg("%s %s: %s instead of %s", convention, date, text, expected);
    }
}

static void test_a_working_day_beats_the_weekend_and_the_last_entry_of_a_day_holds(void **state)
{
    (void)state;
    const struct calendar_special days[] = {
        {day_of("2026-02-14"), true},  /* a Saturday that is worked */
        {day_of("2026-02-17"), false}, /* a Tuesday */
        {day_of("2026-02-18"), false}, /* first thought to be a holiday, */
        {day_of("2026-02-18"), true},  /* then overruled */
    };
    struct calendar_rules rules = rules_of(days, 4);
    struct calendar *c = calendar_of(&rules);
    assert_true(calendar_is_business_day(c, day_of("2026-02-14")));
    assert_false(calendar_is_business_day(c, day_of("2026-02-15")));
    assert_false(calendar_is_business_day(c, day_of("2026-02-17")));
    assert_true(calendar_is_business_day(c, day_of("2026-02-18")));
    assert_rolls(c, "following", "2026-02-14", "2026-02-14");
    assert_rolls(c, "following", "2026-02-15", "2026-02-16");
    assert_rolls(c, "nearest", "2026-02-15", "2026-02-16");
    assert_rolls(c, "preceding", "2026-02-15", "2026-02-14");
    calendar_free(c);
}

static void test_a_weekend_changes_on_its_date(void **state)
{
    (void)state;
    const struct calendar_weekend emirates[] = {{CALENDAR_ALWAYS, FRI_SAT},
                                                {day_of("2022-01-01"), SAT_SUN}};
    struct calendar_rules rules = rules_of(NULL, 0);
    rules.weekends = emirates;
    rules.weekend_count = 2;
    struct calendar *c = calendar_of(&rules);
    assert_false(calendar_is_business_day(c, day_of("2021-12-31"))); /* Friday */
    assert_true(calendar_is_business_day(c, day_of("2022-01-07")));  /* Friday */
    assert_true(calendar_is_business_day(c, day_of("1999-12-26")));  /* Sunday */
    assert_false(calendar_is_business_day(c, day_of("2022-01-02"))); /* Sunday */
    assert_false(calendar_is_business_day(c, day_of("2350-01-01"))); /* Sunday, years later */
    assert_rolls(c, "following", "2021-12-31", "2022-01-03");
    calendar_free(c);
}

static void test_a_convention_keeps_to_its_month_and_half(void **state)
{
    (void)state;
    struct calendar_rules rules = rules_of(NULL, 0);
    struct calendar *c = calendar_of(&rules);
    assert_rolls(c, "run", "2026-08-01", "2026-08-01");
    assert_rolls(c, "modified_following", "2026-01-31", "2026-01-30");
    assert_rolls(c, "modified_following", "2026-01-10", "2026-01-12");
    assert_rolls(c, "modified_preceding", "2026-08-01", "2026-08-03");
    assert_rolls(c, "modified_preceding", "2026-08-02", "2026-08-03");
    assert_rolls(c, "half_month_modified_following", "2026-02-14", "2026-02-13");
    assert_rolls(c, "half_month_modified_following", "2026-02-21", "2026-02-23");
    assert_rolls(c, "half_month_modified_following", "2026-01-31", "2026-01-30");
    assert_rolls(c, "nearest", "2026-08-02", "2026-08-03");
    calendar_free(c);
}

static void test_skip_drops_a_date_that_is_no_business_day(void **state)
{
    (void)state;
    struct calendar_rules rules = rules_of(NULL, 0);
    struct calendar *c = calendar_of(&rules);
    struct calendar_answer a = {0};
    assert_int_equal(calendar_roll(c, ROLL_SKIP, day_of("2026-08-01"), &a, NULL), STATUS_OK);
    assert_true(a.skipped);
    assert_int_equal(calendar_roll(c, ROLL_SKIP, day_of("2026-08-03"), &a, NULL), STATUS_OK);
    assert_false(a.skipped);
    assert_int_equal(a.day, day_of("2026-08-03"));
    calendar_free(c);
}

static void test_adding_counts_business_days_after_the_date_itself(void **state)
{
    (void)state;
    const struct calendar_special days[] = {{day_of("2026-01-19"), false}};
    struct calendar_rules rules = rules_of(days, 1);
    struct calendar *c = calendar_of(&rules);
    static const struct {
        const char *date, *expected;
        int32_t n;
    } cases[] = {
        {"2026-01-16", "2026-01-20", 1},  {"2026-01-17", "2026-01-20", 1},
        {"2026-01-17", "2026-01-16", -1}, {"2026-01-20", "2026-01-16", -1},
        {"2026-01-20", "2026-01-13", -4}, {"2026-01-16", "2026-01-26", 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct calendar_answer a = {0};
        char text[DATE_TEXT_MAX];
        assert_int_equal(calendar_add(c, day_of(cases[i].date), cases[i].n, &a, NULL), STATUS_OK);
        date_format(a.day, text);
        assert_string_equal(text, cases[i].expected);
    }
    struct calendar_answer a = {.day = 7};
    assert_int_equal(calendar_add(c, 0, 0, &a, NULL), STATUS_INVALID);
    assert_int_equal(calendar_add(c, 0, CALENDAR_ADD_MAX + 1, &a, NULL), STATUS_INVALID);
    assert_int_equal(calendar_add(c, 0, INT32_MIN, &a, NULL), STATUS_INVALID);
    assert_int_equal(a.day, 7); /* untouched */
    calendar_free(c);
}

static void test_a_calendar_without_business_days_answers_an_error(void **state)
{
    (void)state;
    const struct calendar_weekend weekends[] = {{CALENDAR_ALWAYS, 0x3f}, {CALENDAR_ALWAYS, 0x40}};
    struct calendar *parts[2] = {NULL, NULL};
    for (size_t i = 0; i < 2; i++) {
        struct calendar_rules rules = rules_of(NULL, 0);
        rules.weekends = &weekends[i];
        parts[i] = calendar_of(&rules);
    }
    struct calendar *c = NULL;
    struct calendar_joint joint = {.combination = CALENDAR_UNION,
                                   .parts = (const struct calendar *const *)parts,
                                   .part_count = 2};
    assert_int_equal(calendar_combine(&joint, &c, NULL), STATUS_OK);
    for (int how = ROLL_FOLLOWING; how <= ROLL_NEAREST; how++) {
        struct calendar_answer a = {.day = 7};
        struct error err = {.text = ""};
        assert_int_equal(
            calendar_roll(c, (enum roll_convention)how, day_of("2026-08-01"), &a, &err),
            STATUS_NOT_FOUND);
        assert_string_equal(err.text, "no business day within 366 days of 2026-08-01");
        assert_int_equal(a.day, 7);
    }
    struct calendar_answer a = {0};
    assert_int_equal(calendar_add(c, 0, 1, &a, NULL), STATUS_NOT_FOUND);
    assert_int_equal(calendar_add(c, 0, -CALENDAR_ADD_MAX, &a, NULL), STATUS_NOT_FOUND);
    assert_int_equal(calendar_first_of_month(c, 0, &a, NULL), STATUS_NOT_FOUND);
    assert_int_equal(calendar_last_of_month(c, 0, &a, NULL), STATUS_NOT_FOUND);
    assert_int_equal(calendar_longest_closed(c), CALENDAR_CLOSED_MAX + 1);
    calendar_free(c);
    calendar_free(parts[0]);
    calendar_free(parts[1]);
}

static void test_a_month_without_business_days_has_no_first_and_last(void **state)
{
    (void)state;
    struct calendar_special days[31];
    for (int i = 0; i < 31; i++) {
        days[i] = (struct calendar_special){day_of("2026-05-01") + i, false};
    }
    struct calendar_rules rules = rules_of(days, 31);
    struct calendar *c = calendar_of(&rules);
    struct calendar_answer a = {0};
    struct error err = {.text = ""};
    assert_int_equal(calendar_first_of_month(c, day_of("2026-05-20"), &a, &err), STATUS_NOT_FOUND);
    assert_string_equal(err.text, "no business day in 2026-05");
    assert_int_equal(calendar_last_of_month(c, day_of("2026-05-20"), &a, &err), STATUS_NOT_FOUND);
    assert_rolls(c, "modified_following", "2026-05-20", "2026-04-30");
    assert_int_equal(calendar_longest_closed(c), 31);
    calendar_free(c);
}

/* ---- validity ---- */

static void test_beyond_validity_the_weekend_decides_and_the_answer_says_so(void **state)
{
    (void)state;
    const struct calendar_special days[] = {{day_of("2026-12-25"), false},
                                            {day_of("2027-01-01"), false}};
    struct calendar_rules rules = rules_of(days, 2);
    rules.valid_from = day_of("2026-01-01");
    rules.valid_through = day_of("2026-12-31");
    struct calendar *c = calendar_of(&rules);
    struct calendar_answer a = {0};
    assert_int_equal(calendar_roll(c, ROLL_FOLLOWING, day_of("2026-12-25"), &a, NULL), STATUS_OK);
    assert_false(a.beyond);
    /* An entry is known where it stands. */
    assert_int_equal(calendar_roll(c, ROLL_FOLLOWING, day_of("2027-01-01"), &a, NULL), STATUS_OK);
    assert_int_equal(a.day, day_of("2027-01-04"));
    assert_true(a.beyond);
    assert_int_equal(calendar_roll(c, ROLL_PRECEDING, day_of("2025-12-31"), &a, NULL), STATUS_OK);
    assert_true(a.beyond);
    assert_int_equal(calendar_add(c, day_of("2026-12-31"), 1, &a, NULL), STATUS_OK);
    assert_true(a.beyond);
    assert_int_equal(calendar_roll(c, ROLL_RUN, day_of("2030-01-01"), &a, NULL), STATUS_OK);
    assert_false(a.beyond); /* nothing was asked of the calendar */
    calendar_free(c);
}

static void test_a_calendar_that_holds_answers_only_what_it_knows(void **state)
{
    (void)state;
    const struct calendar_special days[] = {{day_of("2026-12-31"), false}};
    struct calendar_rules rules = rules_of(days, 1);
    rules.valid_from = day_of("2026-01-01");
    rules.valid_through = day_of("2026-12-31");
    rules.beyond = CALENDAR_BEYOND_HOLD;
    struct calendar *c = calendar_of(&rules);
    struct calendar_answer a = {.day = 7};
    struct error err = {.text = ""};
    assert_int_equal(calendar_roll(c, ROLL_FOLLOWING, day_of("2026-12-31"), &a, &err), STATUS_HELD);
    assert_string_equal(err.text, "nothing is known after its valid_through, 2026-12-31; import "
                                  "newer data");
    assert_int_equal(a.day, 7);
    assert_int_equal(calendar_roll(c, ROLL_NEAREST, day_of("2025-12-31"), &a, &err), STATUS_HELD);
    assert_string_equal(err.text,
                        "nothing is known before its valid_from, 2026-01-01; import older data");
    /* What the next month brings does not matter here. */
    assert_int_equal(calendar_roll(c, ROLL_MODIFIED_FOLLOWING, day_of("2026-12-31"), &a, NULL),
                     STATUS_OK);
    assert_int_equal(a.day, day_of("2026-12-30"));
    assert_int_equal(calendar_last_of_month(c, day_of("2026-12-01"), &a, NULL), STATUS_OK);
    assert_int_equal(calendar_add(c, day_of("2027-01-01"), -1, &a, NULL), STATUS_OK);
    calendar_free(c);
}

static void test_days_and_weekends_out_of_the_years_are_refused(void **state)
{
    (void)state;
    const int64_t wrong[] = {day_of("1899-12-31"), day_of("2300-01-01"), INT64_MIN, INT64_MAX};
    for (size_t i = 0; i < 4; i++) {
        struct calendar_special day = {wrong[i], false};
        struct calendar_rules rules = rules_of(&day, 1);
        struct calendar *c = NULL;
        struct error err = {.text = ""};
        assert_int_equal(calendar_new(&rules, &c, &err), STATUS_INVALID);
        assert_non_null(strstr(err.text, "is not within the years 1900 to 2299; leave it out"));
        assert_null(c);
    }
}

static void test_a_combination_vouches_for_what_all_its_parts_do(void **state)
{
    (void)state;
    struct calendar_rules a = rules_of(NULL, 0);
    struct calendar_rules b = rules_of(NULL, 0);
    a.valid_from = day_of("2020-01-01");
    a.valid_through = day_of("2030-12-31");
    b.valid_through = day_of("2028-12-31");
    b.beyond = CALENDAR_BEYOND_HOLD;
    struct calendar *parts[] = {calendar_of(&a), calendar_of(&b)};
    struct calendar *c = NULL;
    struct calendar_joint joint = {.parts = (const struct calendar *const *)parts, .part_count = 2};
    assert_int_equal(calendar_combine(&joint, &c, NULL), STATUS_OK);
    assert_int_equal(calendar_valid_from(c), a.valid_from);
    assert_int_equal(calendar_valid_through(c), b.valid_through);
    struct calendar_answer answer = {0};
    assert_int_equal(calendar_roll(c, ROLL_FOLLOWING, day_of("2019-06-03"), &answer, NULL),
                     STATUS_OK);
    assert_true(answer.beyond);
    assert_int_equal(calendar_roll(c, ROLL_FOLLOWING, day_of("2029-06-04"), &answer, NULL),
                     STATUS_HELD);
    calendar_free(c);
    calendar_free(parts[0]);
    calendar_free(parts[1]);
}

static void test_an_unknown_convention_is_answered_with_the_nearest(void **state)
{
    (void)state;
    static const char *const words[][2] = {
        {"ModifiedFollowing", "did you mean modified_following?"},
        {"modified-following", "did you mean modified_following?"},
        {"folowing", "did you mean following?"},
        {"Unadjusted", "did you mean run?"},
        {"", "write one of run, skip"},
        {"tomorrow, whatever comes", "write one of run, skip"}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        enum roll_convention how = ROLL_SKIP;
        struct error err = {.text = ""};
        assert_int_equal(roll_convention_parse(words[i][0], &how, &err), STATUS_INVALID);
        if (strstr(err.text, words[i][1]) == NULL) {
            fail_msg("%s: %s", words[i][0], err.text);
        }
        assert_int_equal(how, ROLL_SKIP);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_working_day_beats_the_weekend_and_the_last_entry_of_a_day_holds),
        cmocka_unit_test(test_a_weekend_changes_on_its_date),
        cmocka_unit_test(test_a_convention_keeps_to_its_month_and_half),
        cmocka_unit_test(test_skip_drops_a_date_that_is_no_business_day),
        cmocka_unit_test(test_adding_counts_business_days_after_the_date_itself),
        cmocka_unit_test(test_a_calendar_without_business_days_answers_an_error),
        cmocka_unit_test(test_a_month_without_business_days_has_no_first_and_last),
        cmocka_unit_test(test_beyond_validity_the_weekend_decides_and_the_answer_says_so),
        cmocka_unit_test(test_a_calendar_that_holds_answers_only_what_it_knows),
        cmocka_unit_test(test_days_and_weekends_out_of_the_years_are_refused),
        cmocka_unit_test(test_a_combination_vouches_for_what_all_its_parts_do),
        cmocka_unit_test(test_an_unknown_convention_is_answered_with_the_nearest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
