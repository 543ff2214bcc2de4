/* Array literals and instants on their way to and from PostgreSQL. */
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store_pg_plan.h"

static void test_an_empty_array_is_braces(void **state)
{
    (void)state;
    struct store_pg_array a = {0};
    assert_string_equal(store_pg_array_text(&a), "{}");
    store_pg_array_free(&a);
}

static void test_elements_are_quoted_and_null_is_not(void **state)
{
    (void)state;
    struct store_pg_array a = {0};
    store_pg_array_add(&a, "plain");
    store_pg_array_add(&a, "a \"b\" \\ {c},d");
    store_pg_array_add(&a, NULL);
    store_pg_array_add(&a, "NULL");
    store_pg_array_add(&a, "");
    store_pg_array_add_int(&a, INT64_MIN);
    assert_string_equal(store_pg_array_text(&a), "{\"plain\",\"a \\\"b\\\" \\\\ {c},d\",NULL,"
                                                 "\"NULL\",\"\",-9223372036854775808}");
    store_pg_array_reset(&a);
    store_pg_array_add_int(&a, 1);
    assert_string_equal(store_pg_array_text(&a), "{1}");
    store_pg_array_add_int(&a, 2);
    assert_string_equal(store_pg_array_text(&a), "{1,2}");
    store_pg_array_free(&a);
}

static void test_an_array_grows_to_what_is_put_in(void **state)
{
    (void)state;
    struct store_pg_array a = {0};
    for (int i = 0; i < 10000; i++) {
        store_pg_array_add(&a, "0123456789");
    }
    const char *text = store_pg_array_text(&a);
    assert_non_null(text);
    assert_int_equal(strlen(text), 10000 * 13 + 1);
    store_pg_array_free(&a);
}

static void check_round_trip(int64_t us, const char *expected)
{
    char text[STORE_PG_TIME_MAX];
    utc_us back = {0};
    store_pg_time_format((utc_us){us}, text);
    assert_string_equal(text, expected);
    assert_true(store_pg_time_parse(text, &back));
    assert_int_equal(back.us, us);
}

static void test_instants_survive_the_round_trip(void **state)
{
    (void)state;
    check_round_trip(0, "1970-01-01 00:00:00.000000+00");
    check_round_trip(-1, "1969-12-31 23:59:59.999999+00");
    check_round_trip(INT64_C(1902096000000000), "2030-04-11 00:00:00.000000+00");
    check_round_trip(INT64_C(951782399123456), "2000-02-28 23:59:59.123456+00");
    check_round_trip(INT64_C(951782400000000), "2000-02-29 00:00:00.000000+00");
    check_round_trip(INT64_C(4107542400000000), "2100-03-01 00:00:00.000000+00");
}

static void test_short_fractions_are_read_as_postgresql_prints_them(void **state)
{
    (void)state;
    utc_us t = {0};
    assert_true(store_pg_time_parse("1970-01-01 00:00:01.5+00", &t));
    assert_int_equal(t.us, 1500000);
    assert_true(store_pg_time_parse("1970-01-01 00:00:01+00", &t));
    assert_int_equal(t.us, 1000000);
}

static void test_what_is_not_an_instant_in_utc_is_refused(void **state)
{
    (void)state;
    utc_us t = {42};
    assert_false(store_pg_time_parse("", &t));
    assert_false(store_pg_time_parse("infinity", &t));
    assert_false(store_pg_time_parse("1970-01-01", &t));
    assert_false(store_pg_time_parse("1970-01-01 00:00:01+02", &t));
    assert_false(store_pg_time_parse("10000-01-01 00:00:00+00", &t));
    assert_false(store_pg_time_parse("294276-12-31 23:59:59.999999+00", &t));
    assert_int_equal(t.us, 42);
    assert_true(store_pg_time_parse("9999-12-31 23:59:59.999999+00", &t));
}

static utc_us read_time(const char *text, bool *out_of_range)
{
    PGresult *r = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc column = {.name = (char[]){"ends_at"}};
    char value[64];
    int length = snprintf(value, sizeof value, "%s", text != NULL ? text : "");
    assert_non_null(r);
    assert_int_equal(PQsetResultAttrs(r, 1, &column), 1);
    assert_int_equal(PQsetvalue(r, 0, 0, text != NULL ? value : NULL, text != NULL ? length : -1),
                     1);
    utc_us t = cell_time(r, 0, 0, out_of_range);
    PQclear(r);
    return t;
}

static void test_null_and_the_two_infinities_are_three_times(void **state)
{
    (void)state;
    bool out_of_range = false;
    assert_true(utc_is_none(read_time(NULL, &out_of_range)));
    utc_us past = read_time("-infinity", &out_of_range);
    assert_false(utc_is_none(past));
    assert_int_equal(past.us, UTC_PAST.us);
    assert_int_equal(read_time("infinity", &out_of_range).us, UTC_UNBOUNDED.us);
    assert_int_equal(read_time("1970-01-01 00:00:01+00", &out_of_range).us, 1000000);
    assert_false(out_of_range);
    (void)read_time("0044-03-15 12:00:00+00 BC", &out_of_range);
    assert_true(out_of_range);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_array_is_braces),
        cmocka_unit_test(test_elements_are_quoted_and_null_is_not),
        cmocka_unit_test(test_an_array_grows_to_what_is_put_in),
        cmocka_unit_test(test_instants_survive_the_round_trip),
        cmocka_unit_test(test_short_fractions_are_read_as_postgresql_prints_them),
        cmocka_unit_test(test_what_is_not_an_instant_in_utc_is_refused),
        cmocka_unit_test(test_null_and_the_two_infinities_are_three_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
