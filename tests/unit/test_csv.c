#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "csv_rows.h"

static struct bytes out = {.most = 4096};

static const char *row(const char *const *texts, size_t count)
{
    struct source_cell cells[8];
    for (size_t i = 0; i < count; i++) {
        cells[i].text = texts[i];
        cells[i].size = texts[i] == NULL ? 0 : strlen(texts[i]);
    }
    bytes_clear(&out);
    csv_row(&out, cells, count);
    bytes_add_char(&out, '\0');
    assert_false(out.failed);
    return out.data;
}

#define ROW(...)                                                                                   \
    row((const char *const[]){__VA_ARGS__},                                                        \
        sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void test_plain_values_are_written_as_they_are(void **state)
{
    (void)state;
    assert_string_equal(ROW("1", "a b", "2030-04-12 06:00:00+00", "\\xdead"),
                        "1,a b,2030-04-12 06:00:00+00,\\xdead\n");
    assert_string_equal(ROW("größe", "日本"), "größe,日本\n");
}

static void test_null_is_an_empty_field_and_empty_text_is_quoted(void **state)
{
    (void)state;
    assert_string_equal(ROW("a", NULL, "", "b"), "a,,\"\",b\n");
    assert_string_equal(ROW(NULL), "\n");
}

static void test_separators_quotes_and_line_ends_are_quoted(void **state)
{
    (void)state;
    assert_string_equal(ROW("a,b"), "\"a,b\"\n");
    assert_string_equal(ROW("say \"hi\""), "\"say \"\"hi\"\"\"\n");
    assert_string_equal(ROW("\""), "\"\"\"\"\n");
    assert_string_equal(ROW("a\nb"), "\"a\nb\"\n");
    assert_string_equal(ROW("a\rb"), "\"a\rb\"\n");
    assert_string_equal(ROW(" a"), "\" a\"\n");
    assert_string_equal(ROW("a "), "\"a \"\n");
    assert_string_equal(ROW("\\."), "\"\\.\"\n");
}

static void test_header_quotes_like_values(void **state)
{
    (void)state;
    struct source_column columns[] = {{.name = "id"}, {.name = "sum(a,b)"}, {.name = "?column?"}};
    bytes_clear(&out);
    csv_header(&out, columns, 3);
    bytes_add_char(&out, '\0');
    assert_string_equal(out.data, "id,\"sum(a,b)\",?column?\n");
}

static void test_row_beyond_the_bound_is_noticed(void **state)
{
    (void)state;
    struct bytes small = {.most = 10};
    struct source_cell cell = {.text = "0123456789", .size = 10};
    csv_row(&small, &cell, 1);
    assert_true(small.failed);
    bytes_free(&small);
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
        cmocka_unit_test(test_plain_values_are_written_as_they_are),
        cmocka_unit_test(test_null_is_an_empty_field_and_empty_text_is_quoted),
        cmocka_unit_test(test_separators_quotes_and_line_ends_are_quoted),
        cmocka_unit_test(test_header_quotes_like_values),
        cmocka_unit_test(test_row_beyond_the_bound_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, free_out);
}
