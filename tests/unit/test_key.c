#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_zone.h"
#include "key.h"

/* The keys of the next firings, in the rule's own form, are these. */
static void check_keys(const char *kind, const char *text, const char *zone, const char *after,
                       const char *const *keys)
{
    struct rule r = fixture_rule(kind, text, zone, "2030-01-01T00:00:00Z");
    utc_us t = {0};
    assert_int_equal(rfc3339_parse(after, &t, NULL), STATUS_OK);
    for (; *keys != NULL; keys++) {
        struct firing f = rule_next(&r, t);
        assert_true(f.found);
        char key[KEY_MAX_BYTES];
        key_format(key_form_of_rule(&r), &f, key);
        assert_string_equal(key, *keys);
        t = f.at;
    }
}

static void test_a_daily_rule_is_known_by_its_local_date(void **state)
{
    (void)state;
    check_keys("cron", "0 6 * * *", "Pacific/Kiritimati", "2030-04-11T12:00:00Z",
               (const char *const[]){"2030-04-12", "2030-04-13", NULL});
    check_keys("once", "2030-04-12T06:00", "Europe/Berlin", "2030-01-01T00:00:00Z",
               (const char *const[]){"2030-04-12", NULL});
}

static void test_finer_rules_are_known_by_the_local_minute_or_second(void **state)
{
    (void)state;
    check_keys("cron", "0 6,18 * * *", "Europe/Berlin", "2030-04-11T12:00:00Z",
               (const char *const[]){"2030-04-11T18:00", "2030-04-12T06:00", NULL});
    check_keys("cron", "0,30 0 6 * * *", "UTC", "2030-04-12T00:00:00Z",
               (const char *const[]){"2030-04-12T06:00:00", "2030-04-12T06:00:30", NULL});
}

static void test_the_key_is_the_nominal_time_not_the_instant(void **state)
{
    (void)state;
    /* The clocks of Pyongyang jumped from 23:30 to midnight: it fires on the next date. */
    check_keys("cron", "45 23 * * *", "Asia/Pyongyang", "2018-05-04T12:00:00Z",
               (const char *const[]){"2018-05-04", "2018-05-05", NULL});
    check_keys("cron", "30 2,9 * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
               (const char *const[]){"2026-03-29T02:30", "2026-03-29T09:30", NULL});
    /* Four times of one gap are one firing, under the latest of them. */
    check_keys("cron", "0,15,30,45 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
               (const char *const[]){"2026-03-29T02:45", "2026-03-30T02:00", NULL});
}

static void test_both_passes_of_an_overlap_carry_their_offset(void **state)
{
    (void)state;
    check_keys("cron", "30 * * * *", "Europe/Berlin", "2026-10-24T23:00:00Z",
               (const char *const[]){"2026-10-25T01:30", "2026-10-25T02:30+02:00",
                                     "2026-10-25T02:30+01:00", "2026-10-25T03:30", NULL});
    check_keys("cron", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
               (const char *const[]){"2026-10-25", "2026-10-26", NULL});
    /* A daily job whose minute field begins with * follows the clock, also under date keys. */
    check_keys("cron", "*/60 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
               (const char *const[]){"2026-10-25+02:00", "2026-10-25+01:00", "2026-10-26", NULL});
}

static void test_an_interval_is_known_by_its_utc_instant(void **state)
{
    (void)state;
    check_keys("interval", "90 minutes", "Europe/Berlin", "2030-04-12T00:00:00Z",
               (const char *const[]){"2030-04-12T01:30Z", "2030-04-12T03:00Z", NULL});
    check_keys("interval", "90 s", "Europe/Berlin", "2030-04-12T00:00:00Z",
               (const char *const[]){"2030-04-12T00:01:30Z", "2030-04-12T00:03:00Z", NULL});
    struct rule r = fixture_rule("interval", "1 hour", "UTC", "2030-01-01T00:00:07.5Z");
    assert_int_equal(key_form_of_rule(&r), KEY_SECOND);
    struct firing f = rule_next(&r, r.anchor);
    char key[KEY_MAX_BYTES];
    key_format(KEY_SECOND, &f, key);
    assert_string_equal(key, "2030-01-01T01:00:07Z");
    /* A schedule that had date keys before must not get one key for a whole day. */
    key_format(KEY_DATE, &f, key);
    assert_string_equal(key, "2030-01-01T01:00:07Z");
}

static void test_the_business_date_is_the_nominal_local_date(void **state)
{
    (void)state;
    struct rule r = fixture_rule("cron", "45 23 * * *", "Asia/Pyongyang", "2030-01-01T00:00:00Z");
    utc_us after = {0};
    assert_int_equal(rfc3339_parse("2018-05-04T12:00:00Z", &after, NULL), STATUS_OK);
    struct firing f = rule_next(&r, after);
    char date[DATE_TEXT_MAX];
    business_date_format(&f, date);
    assert_string_equal(date, "2018-05-04");
    r = fixture_rule("interval", "1 hour", "Pacific/Auckland", "2030-01-01T00:00:00Z");
    assert_int_equal(rfc3339_parse("2030-04-12T11:30:00Z", &after, NULL), STATUS_OK);
    f = rule_next(&r, after);
    business_date_format(&f, date);
    assert_string_equal(date, "2030-04-13");
}

static void test_form_names_are_read_back(void **state)
{
    (void)state;
    for (int i = KEY_DATE; i <= KEY_SECOND; i++) {
        enum key_form form = KEY_DATE;
        assert_true(key_form_parse(key_form_name((enum key_form)i), &form));
        assert_int_equal(form, i);
    }
    enum key_form form = KEY_SECOND;
    assert_false(key_form_parse("hour", &form));
    assert_false(key_form_parse("", &form));
    assert_int_equal(form, KEY_SECOND);
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void test_keys_stay_unique_over_a_hundred_years_of_clock_changes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *zone;
    } rows[] = {
        {"30 2 * * *", "Europe/Berlin"},       {"*/60 1 * * *", "Australia/Lord_Howe"},
        {"1 0 * * *", "America/St_Johns"},     {"30 23 * * *", "Africa/Cairo"},
        {"0 0 * * *", "Pacific/Apia"},         {"15,45 */6 * * *", "Africa/Casablanca"},
        {"0 0,12 * * *", "Pacific/Kwajalein"}, {"30 1 * * *", "Europe/Dublin"},
    };
    enum {
        KEYS = 40000
    };
    char(*keys)[40] = calloc(KEYS, sizeof *keys);
    assert_non_null(keys);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rule r = fixture_rule("cron", rows[i].text, rows[i].zone, "1970-01-01T00:00:00Z");
        utc_us t = {-utc_from_seconds(40000000).us}; /* September 1968: Kwajalein moves in 1969 */
        size_t count = 0;
        for (; count < KEYS; count++) {
            struct firing f = rule_next(&r, t);
            assert_true(f.found && f.at.us > t.us);
            char key[KEY_MAX_BYTES];
            key_format(key_form_of_rule(&r), &f, key);
            assert_true(strlen(key) < sizeof keys[0]);
            memcpy(keys[count], key, strlen(key) + 1);
            t = f.at;
        }
        qsort(keys, count, sizeof keys[0], compare_keys);
        for (size_t k = 1; k < count; k++) {
            if (strcmp(keys[k - 1], keys[k]) == 0) {
                fail_msg("\"%s\" in %s: key %s twice", rows[i].text, rows[i].zone, keys[k]);
            }
        }
    }
    free(keys);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_daily_rule_is_known_by_its_local_date),
        cmocka_unit_test(test_finer_rules_are_known_by_the_local_minute_or_second),
        cmocka_unit_test(test_the_key_is_the_nominal_time_not_the_instant),
        cmocka_unit_test(test_both_passes_of_an_overlap_carry_their_offset),
        cmocka_unit_test(test_an_interval_is_known_by_its_utc_instant),
        cmocka_unit_test(test_the_business_date_is_the_nominal_local_date),
        cmocka_unit_test(test_form_names_are_read_back),
        cmocka_unit_test(test_keys_stay_unique_over_a_hundred_years_of_clock_changes),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
