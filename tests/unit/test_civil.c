#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "civil.h"

static void test_every_day_of_ten_thousand_years_follows_the_one_before(void **state)
{
    (void)state;
    int64_t days = civil_days_of(0, 1, 1);
    int32_t weekday = civil_weekday(days);
    for (int32_t year = 0; year <= 9999; year++) {
        for (int32_t month = 1; month <= 12; month++) {
            int32_t last = civil_days_in_month(year, month);
            for (int32_t day = 1; day <= last; day++, days++) {
                struct civil_date d = civil_date_of(days);
                if (d.year != year || d.month != month || d.day != day ||
                    civil_days_of(year, month, day) != days || civil_weekday(days) != weekday) {
                    fail_msg("day %d-%d-%d", year, month, day);
                }
                weekday = (weekday + 1) % 7;
            }
        }
    }
}

static void test_day_numbers_agree_with_timegm(void **state)
{
    (void)state;
    for (int year = 1; year <= 9999; year += 7) {
        struct tm tm = {.tm_year = year - 1900, .tm_mon = year % 12, .tm_mday = 1 + year % 28};
        time_t expected = timegm(&tm);
        assert_int_equal(civil_days_of(year, 1 + year % 12, 1 + year % 28) * SECONDS_A_DAY,
                         expected);
        assert_int_equal(civil_weekday(expected / SECONDS_A_DAY - (expected % SECONDS_A_DAY < 0)),
                         tm.tm_wday);
    }
}

static void test_day_zero_is_the_last_of_the_month_before(void **state)
{
    (void)state;
    assert_int_equal(civil_days_of(2028, 3, 0), civil_days_of(2028, 2, 29));
    assert_true(civil_year_is_leap(2000));
    assert_false(civil_year_is_leap(2100));
    assert_int_equal(civil_days_in_month(2100, 2), 28);
}

static void test_division_and_seconds_round_down_before_1970(void **state)
{
    (void)state;
    assert_int_equal(floor_divide(-1, 86400), -1);
    assert_int_equal(floor_divide(-86400, 86400), -1);
    assert_int_equal(floor_divide(-86401, 86400), -2);
    assert_int_equal(utc_seconds((utc_us){-1}), -1);
    assert_int_equal(utc_seconds((utc_us){1999999}), 1);
    assert_int_equal(utc_from_seconds(-2).us, -2000000);
}

static void check_instant(const char *text, int64_t us, int32_t offset_s, const char *printed)
{
    utc_us t = {INT64_MIN};
    struct error err = {.text = ""};
    if (rfc3339_parse(text, &t, &err) != STATUS_OK) {
        fail_msg("%s: %s", text, err.text);
    }
    assert_int_equal(t.us, us);
    char back[RFC3339_TEXT_MAX];
    rfc3339_format(t, offset_s, back);
    assert_string_equal(back, printed);
}

static void test_instants_are_read_and_printed_back(void **state)
{
    (void)state;
    check_instant("1970-01-01T00:00:00Z", 0, 0, "1970-01-01T00:00:00+00:00");
    check_instant("1969-12-31T23:59:59Z", -1000000, 0, "1969-12-31T23:59:59+00:00");
    check_instant("2025-03-09T03:00:00-07:00", 1741514400000000, -25200,
                  "2025-03-09T03:00:00-07:00");
    check_instant("2026-01-01T05:45:00+05:45", 1767225600000000, 20700,
                  "2026-01-01T05:45:00+05:45");
    check_instant("2026-01-01t00:00:00.25z", 1767225600250000, 0,
                  "2026-01-01T00:00:00.250000+00:00");
    check_instant("2026-01-01T00:00:00.123456789Z", 1767225600123456, 0,
                  "2026-01-01T00:00:00.123456+00:00");
    check_instant("1970-01-01T00:00:00Z", 0, -2670, "1969-12-31T23:15:30-00:44:30");
    check_instant("0001-01-01T00:00:00-00:00", -62135596800000000, 0, "0001-01-01T00:00:00+00:00");
    check_instant("9999-12-31T23:59:59.999999Z", 253402300799999999, 0,
                  "9999-12-31T23:59:59.999999+00:00");
    char utc[RFC3339_TEXT_MAX];
    rfc3339_format_utc((utc_us){1741514400000000}, utc);
    assert_string_equal(utc, "2025-03-09T10:00:00Z");
}

static void test_a_refused_instant_is_shown_in_full_at_once(void **state)
{
    (void)state;
    static const char *const typed[] = {"tomorrow",      "2030-04-12",       "2030-04-12 06:00",
                                        "2030-04-12T06", "2030-04-12T06:00", "2030-04-12T06:00:00"};
    for (size_t i = 0; i < sizeof typed / sizeof typed[0]; i++) {
        utc_us t = {42};
        struct error err = {.text = ""};
        assert_int_equal(rfc3339_parse(typed[i], &t, &err), STATUS_INVALID);
        assert_non_null(
            strstr(err.text, "write 2030-04-12T06:00:00Z or 2030-04-12T06:00:00+02:00"));
    }
}

static void test_bad_instants_are_refused_and_leave_the_output_alone(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "2026",
        "2026-01-01",
        "2026-01-01 00:00:00Z",
        "2026-01-01T00:00Z",
        "2026-01-01T00:00:00",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z",
        "2026-01-32T00:00:00Z",
        "2026-01-01T24:00:00Z",
        "2026-01-01T00:60:00Z",
        "2026-01-01T00:00:60Z",
        "2026-01-01T00:00:00.Z",
        "2026-01-01T00:00:00+0100",
        "2026-01-01T00:00:00+01",
        "2026-01-01T00:00:00+24:00",
        "2026-01-01T00:00:00+01:60",
        "2026-01-01T00:00:00ZZ",
        "2026-01-01T00:00:00Z ",
        " 2026-01-01T00:00:00Z",
        "26-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "12026-01-01T00:00:00Z",
        "2026-1-1T00:00:00Z",
        "2026-01-01T0:00:00Z",
        "2026-01-01T00:00:0Z",
        "-2026-01-01T00:00:00Z",
        "now",
        "2026-01-01T",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        utc_us t = {42};
        struct error err = {.text = ""};
        if (rfc3339_parse(texts[i], &t, &err) != STATUS_INVALID) {
            fail_msg("accepted \"%s\"", texts[i]);
        }
        assert_int_equal(t.us, 42);
        assert_true(strlen(err.text) > 10);
        assert_null(strchr(err.text, '\n'));
    }
}

static void test_a_local_time_may_leave_out_seconds_and_offset(void **state)
{
    (void)state;
    struct date_time t;
    assert_int_equal(date_time_parse("2030-04-12T06:30", &t, NULL), STATUS_OK);
    assert_int_equal(t.local.s, civil_days_of(2030, 4, 12) * SECONDS_A_DAY + 6 * 3600 + 1800);
    assert_false(t.has_seconds);
    assert_false(t.has_offset);
    assert_int_equal(date_time_parse("2030-04-12T06:30-03:30", &t, NULL), STATUS_OK);
    assert_true(t.has_offset);
    assert_int_equal(t.offset_s, -12600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_day_of_ten_thousand_years_follows_the_one_before),
        cmocka_unit_test(test_day_numbers_agree_with_timegm),
        cmocka_unit_test(test_day_zero_is_the_last_of_the_month_before),
        cmocka_unit_test(test_division_and_seconds_round_down_before_1970),
        cmocka_unit_test(test_instants_are_read_and_printed_back),
        cmocka_unit_test(test_a_refused_instant_is_shown_in_full_at_once),
        cmocka_unit_test(test_bad_instants_are_refused_and_leave_the_output_alone),
        cmocka_unit_test(test_a_local_time_may_leave_out_seconds_and_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
