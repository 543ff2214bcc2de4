#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "json_rows.h"

static struct bytes out = {.most = 4096};

static const char *value(enum source_type type, const char *text)
{
    struct source_column column = {.name = "c", .type = type};
    struct source_cell cell = {.text = text, .size = text == NULL ? 0 : strlen(text)};
    bytes_clear(&out);
    json_row(&out, &column, &cell, 1, 1);
    bytes_add_char(&out, '\0');
    assert_memory_equal(out.data, ",\n{\"c\":", 7);
    out.data[strlen(out.data) - 1] = '\0';
    return out.data + 7;
}

static void test_values_keep_their_type(void **state)
{
    (void)state;
    assert_string_equal(value(SOURCE_NUMBER, "9223372036854775807"), "9223372036854775807");
    assert_string_equal(value(SOURCE_NUMBER, "-0.10"), "-0.10");
    assert_string_equal(value(SOURCE_NUMBER, "1e+20"), "1e+20");
    assert_string_equal(value(SOURCE_BOOLEAN, "t"), "true");
    assert_string_equal(value(SOURCE_BOOLEAN, "f"), "false");
    assert_string_equal(value(SOURCE_JSON, "{\"a\": [1, null]}"), "{\"a\": [1, null]}");
    assert_string_equal(value(SOURCE_TEXT, "12"), "\"12\"");
    assert_string_equal(value(SOURCE_TEXT, ""), "\"\"");
    assert_string_equal(value(SOURCE_TEXT, NULL), "null");
    assert_string_equal(value(SOURCE_NUMBER, NULL), "null");
}

static void test_numbers_json_cannot_write_become_strings(void **state)
{
    (void)state;
    assert_string_equal(value(SOURCE_NUMBER, "NaN"), "\"NaN\"");
    assert_string_equal(value(SOURCE_NUMBER, "-Infinity"), "\"-Infinity\"");
}

static void test_strings_are_escaped(void **state)
{
    (void)state;
    assert_string_equal(value(SOURCE_TEXT, "a\"b\\c\nd\re\tf\x01g"),
                        "\"a\\\"b\\\\c\\nd\\re\\tf\\u0001g\"");
    assert_string_equal(value(SOURCE_TEXT, "größe/日本"), "\"größe/日本\"");
}

static void test_rows_make_an_array(void **state)
{
    (void)state;
    struct source_column columns[] = {{.name = "a", .type = SOURCE_NUMBER},
                                      {.name = "b \"x\"", .type = SOURCE_TEXT}};
    struct source_cell cells[] = {{.text = "1", .size = 1}, {.text = "x", .size = 1}};
    bytes_clear(&out);
    json_row(&out, columns, cells, 2, 0);
    json_row(&out, columns, cells, 2, 1);
    json_end(&out, 2);
    bytes_add_char(&out, '\0');
    assert_string_equal(
        out.data, "[\n{\"a\":1,\"b \\\"x\\\"\":\"x\"},\n{\"a\":1,\"b \\\"x\\\"\":\"x\"}\n]\n");
}

static void test_no_rows_make_an_empty_array(void **state)
{
    (void)state;
    bytes_clear(&out);
    json_end(&out, 0);
    bytes_add_char(&out, '\0');
    assert_string_equal(out.data, "[]\n");
}

static void test_column_name_that_appears_twice_is_refused(void **state)
{
    (void)state;
    struct source_column columns[] = {{.name = "a"}, {.name = "b"}, {.name = "a"}};
    struct error err;
    assert_int_equal(json_columns_check(columns, 2, &err), STATUS_OK);
    assert_int_equal(json_columns_check(columns, 3, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "\"a\""));
}

static int free_out(void **state)
{
    (void)state;
    bytes_free(&out);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_keep_their_type),
        cmocka_unit_test(test_numbers_json_cannot_write_become_strings),
        cmocka_unit_test(test_strings_are_escaped),
        cmocka_unit_test(test_rows_make_an_array),
        cmocka_unit_test(test_no_rows_make_an_empty_array),
        cmocka_unit_test(test_column_name_that_appears_twice_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, free_out);
}
