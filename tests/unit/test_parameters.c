/* Where parameters are found in a query, and what their names stand for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "job.h"
#include "query.h"

/* The query with each piece shown: L<name> literal, I<name> identifier, B<name> bare. */
static const char *shown(const char *query)
{
    static char text[1024];
    size_t used = 0;
    struct query_scan scan = query_scan_start(query);
    struct query_piece p;
    text[0] = '\0';
    while (query_scan_next(&scan, &p)) {
        const char *mark = p.kind == QUERY_TEXT      ? ""
                           : p.kind == QUERY_LITERAL ? "L<"
                           : p.kind == QUERY_BARE    ? "B<"
                                                     : "I<";
        int n = snprintf(text + used, sizeof text - used, "%s%.*s%s", mark, (int)p.size, p.text,
                         p.kind == QUERY_TEXT ? "" : ">");
        used += (size_t)n;
    }
    return text;
}

static void test_quoted_forms_are_found(void **state)
{
    (void)state;
    assert_string_equal(shown("SELECT :'day', :\"table\".x FROM :\"table\""),
                        "SELECT L<day>, I<table>.x FROM I<table>");
    assert_string_equal(shown(":'a':'b'"), "L<a>L<b>");
    assert_string_equal(shown("x=:'a'"), "x=L<a>");
    assert_string_equal(shown("date:'a'"), "dateL<a>");
}

static void test_bare_form_is_reported_as_such(void **state)
{
    (void)state;
    assert_string_equal(shown("SELECT :day"), "SELECT B<day>");
    assert_string_equal(shown("a[1:n]"), "a[1B<n>]");
}

static void test_casts_and_assignments_are_no_parameters(void **state)
{
    (void)state;
    assert_string_equal(shown("SELECT '1'::int, x::\"my type\", f(a:=1)"),
                        "SELECT '1'::int, x::\"my type\", f(a:=1)");
    assert_string_equal(shown(":'d'::date"), "L<d>::date");
    assert_string_equal(shown("x:::'d'"), "x::L<d>");
}

static void test_nothing_is_found_in_literals(void **state)
{
    (void)state;
    const char *const queries[] = {
        "SELECT 'it is :''a'' b'",   "SELECT '\\', ':x'",
        "SELECT E'\\' :x', 1",       "SELECT e'\\\\'",
        "SELECT \"col :x \"\" :y\"", "SELECT $$ :'a' $$, $t$ $$ :'a' $t$",
        "SELECT U&'d\\0061t :x'",    "SELECT 'unended :x",
        "SELECT $a$ unended :'x'",
    };
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
        assert_string_equal(shown(queries[i]), queries[i]);
    }
}

static void test_backslash_ends_no_plain_literal(void **state)
{
    (void)state;
    assert_string_equal(shown("'\\' :'a'"), "'\\' L<a>");
    /* The E must stand alone: `type'...'` is a plain literal. */
    assert_string_equal(shown("SELECT DATE'\\' :'a'"), "SELECT DATE'\\' L<a>");
}

static void test_nothing_is_found_in_comments(void **state)
{
    (void)state;
    assert_string_equal(shown("-- :'a'\n:'b'"), "-- :'a'\nL<b>");
    assert_string_equal(shown("/* /* :'a' */ ' :'b' */ :'c'"), "/* /* :'a' */ ' :'b' */ L<c>");
    assert_string_equal(shown("a - -:'c'"), "a - -L<c>");
}

static void test_dollars_in_identifiers_and_positions_quote_nothing(void **state)
{
    (void)state;
    assert_string_equal(shown("a$b$ :'c' $b$"), "a$b$ L<c> $b$");
    assert_string_equal(shown("$1 :'c' $1"), "$1 L<c> $1");
}

static void test_a_name_that_is_none_is_left_to_the_server(void **state)
{
    (void)state;
    assert_string_equal(shown(":'a b' :'c'"), ":'a b' L<c>");
    assert_string_equal(shown(":'' :"), ":'' :");
    assert_string_equal(shown(":'x\" :'c'"), ":'x\" :'c'");
}

static struct job *job_make(const char *parameters)
{
    struct job *j = job_new();
    assert_non_null(j);
    (void)snprintf(j->schedule, sizeof j->schedule, "%s", "sales-daily");
    (void)snprintf(j->business_date, sizeof j->business_date, "%s", "2030-04-12");
    j->attempt = 3;
    assert_int_equal(job_parameters_parse(j, parameters, NULL), STATUS_OK);
    return j;
}

static const char *value_of(const struct job *j, const char *name)
{
    static struct parameter_value v;
    assert_int_equal(job_parameter(j, name, strlen(name), &v, NULL), STATUS_OK);
    return v.text;
}

static void test_built_ins_and_own_parameters_have_their_values(void **state)
{
    (void)state;
    struct job *j = job_make("[[\"region\",\"string\",\"north\"],"
                             "[\"limit\",\"number\",\"12345678901234567890.10\"],"
                             "[\"all\",\"boolean\",\"true\"]]");
    assert_string_equal(value_of(j, "business_date"), "2030-04-12");
    assert_string_equal(value_of(j, "schedule"), "sales-daily");
    assert_string_equal(value_of(j, "attempt"), "3");
    assert_null(value_of(j, "window_start"));
    assert_string_equal(value_of(j, "region"), "north");
    assert_string_equal(value_of(j, "limit"), "12345678901234567890.10");
    assert_string_equal(value_of(j, "all"), "true");
    assert_int_equal(job_parameters_check(j, NULL), STATUS_OK);
    job_free(j);
}

static void test_unknown_parameter_is_named_with_what_there_is(void **state)
{
    (void)state;
    struct job *j = job_make("[[\"region\",\"string\",\"north\"]]");
    struct parameter_value v;
    struct error err;
    assert_int_equal(job_parameter(j, "regoin", 6, &v, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "\"regoin\""));
    assert_non_null(strstr(err.text, "business_date, "));
    assert_non_null(strstr(err.text, ", region"));
    job_free(j);
}

static void test_lists_objects_and_nulls_are_refused_by_name(void **state)
{
    (void)state;
    struct job *j = job_make("[[\"list\",\"array\",\"[1]\"],[\"none\",\"null\",null]]");
    struct parameter_value v;
    struct error err;
    assert_int_equal(job_parameter(j, "list", 4, &v, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "\"list\""));
    assert_int_equal(job_parameter(j, "none", 4, &v, &err), STATUS_INVALID);
    assert_int_equal(job_parameters_check(j, &err), STATUS_INVALID);
    job_free(j);
}

static void test_parameter_named_like_a_built_in_is_refused(void **state)
{
    (void)state;
    struct job *j = job_make("[[\"business_date\",\"string\",\"1999-01-01\"]]");
    struct error err;
    assert_int_equal(job_parameters_check(j, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "\"business_date\" is built in"));
    job_free(j);
}

static void test_context_keeps_the_digits_of_numbers(void **state)
{
    (void)state;
    struct job *j = job_make("[]");
    j->parameters_json = strdup("{\"n\": 0.10000000000000000001}");
    char *text = job_context(j, "installation-1");
    assert_non_null(text);
    assert_non_null(strstr(text, "\"parameters\":{\"n\": 0.10000000000000000001}}\n"));
    assert_non_null(strstr(text, "\"window_start\":null"));
    assert_non_null(strstr(text, "\"installation\":\"installation-1\""));
    free(text);
    job_free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quoted_forms_are_found),
        cmocka_unit_test(test_bare_form_is_reported_as_such),
        cmocka_unit_test(test_casts_and_assignments_are_no_parameters),
        cmocka_unit_test(test_nothing_is_found_in_literals),
        cmocka_unit_test(test_backslash_ends_no_plain_literal),
        cmocka_unit_test(test_nothing_is_found_in_comments),
        cmocka_unit_test(test_dollars_in_identifiers_and_positions_quote_nothing),
        cmocka_unit_test(test_a_name_that_is_none_is_left_to_the_server),
        cmocka_unit_test(test_built_ins_and_own_parameters_have_their_values),
        cmocka_unit_test(test_unknown_parameter_is_named_with_what_there_is),
        cmocka_unit_test(test_lists_objects_and_nulls_are_refused_by_name),
        cmocka_unit_test(test_parameter_named_like_a_built_in_is_refused),
        cmocka_unit_test(test_context_keeps_the_digits_of_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
