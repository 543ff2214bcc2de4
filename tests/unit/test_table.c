#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "table.h"

/* 2030-04-12T06:00:00Z */
static const utc_us now = {INT64_C(1902204000) * 1000000};

static struct table *table_of(const struct column *columns, size_t column_count,
                              const char *const *cells, size_t cell_count)
{
    struct table *t = table_new();
    assert_non_null(t);
    for (size_t i = 0; i < column_count; i++) {
        assert_true(table_column_add(t, &columns[i]));
    }
    for (size_t i = 0; i < cell_count; i++) {
        assert_true(table_cell_add(t, cells[i]));
    }
    return t;
}

#define TABLE(columns, cells)                                                                      \
    table_of(columns, sizeof(columns) / sizeof(columns)[0], cells, sizeof(cells) / sizeof(cells)[0])

enum form {
    ROWS,
    FACTS,
    CSV,
    JSON,
    JSON_OBJECT
};

static int width;            /* of the terminal; 0: none */
static const char *left_out; /* what must be told as left out; NULL: not looked at */

static void assert_printed(struct table *t, enum form form, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    char *gone = NULL;
    size_t gone_size = 0;
    FILE *gone_to = open_memstream(&gone, &gone_size);
    assert_non_null(gone_to);
    struct table_view view = {.to = to, .now = now, .width = width, .left_out = gone_to};
    switch (form) {
    case ROWS:
        table_print_rows(t, &view);
        break;
    case FACTS:
        table_print_facts(t, &view);
        break;
    case CSV:
        table_print_csv(t, to);
        break;
    case JSON:
        table_print_json(t, false, 0, to);
        break;
    case JSON_OBJECT:
        table_print_json(t, true, 0, to);
        break;
    }
    assert_int_equal(fclose(to), 0);
    assert_int_equal(fclose(gone_to), 0);
    assert_string_equal(text, expected);
    if (left_out != NULL) {
        assert_string_equal(gone, left_out);
    }
    free(gone);
    free(text);
    table_free(t);
}

static const struct column mixed[] = {
    {.name = "name", .kind = COLUMN_TEXT},
    {.name = "jobs", .kind = COLUMN_INT},
    {.name = "due_at", .kind = COLUMN_INSTANT},
    {.name = "beat_at", .kind = COLUMN_INSTANT, .show = SHOW_AGE},
    {.name = "held", .kind = COLUMN_BOOL},
    {.name = "ran_s", .kind = COLUMN_SECONDS},
    {.name = "hidden", .kind = COLUMN_TEXT, .show = SHOW_PROGRAMS},
    {.name = "seen", .kind = COLUMN_TEXT, .show = SHOW_PEOPLE},
};

static const char *const mixed_cells[] = {"a",
                                          "7",
                                          "2030-04-12 05:00:00+00",
                                          "2030-04-12 05:59:57.5+00",
                                          "t",
                                          "0.012",
                                          "h",
                                          "s",
                                          "bb",
                                          "1200",
                                          NULL,
                                          NULL,
                                          "f",
                                          NULL,
                                          NULL,
                                          NULL};

static void test_people_see_aligned_columns_ages_and_durations(void **state)
{
    (void)state;
    assert_printed(TABLE(mixed, mixed_cells), ROWS,
                   "NAME  JOBS  DUE                   BEAT    HELD   RAN  SEEN\n"
                   "a        7  2030-04-12 05:00:00Z  2s ago  yes   12ms  s\n"
                   "bb    1200  -                     -       no       -  -\n");
}

static void test_programs_see_real_types_and_exact_instants(void **state)
{
    (void)state;
    assert_printed(TABLE(mixed, mixed_cells), JSON,
                   "[\n"
                   "  {\n"
                   "    \"name\": \"a\",\n"
                   "    \"jobs\": 7,\n"
                   "    \"due_at\": \"2030-04-12T05:00:00Z\",\n"
                   "    \"beat_at\": \"2030-04-12T05:59:57.5Z\",\n"
                   "    \"held\": true,\n"
                   "    \"ran_s\": 0.012,\n"
                   "    \"hidden\": \"h\"\n"
                   "  },\n"
                   "  {\n"
                   "    \"name\": \"bb\",\n"
                   "    \"jobs\": 1200,\n"
                   "    \"due_at\": null,\n"
                   "    \"beat_at\": null,\n"
                   "    \"held\": false,\n"
                   "    \"ran_s\": null,\n"
                   "    \"hidden\": null\n"
                   "  }\n"
                   "]");
}

static void test_csv_has_a_header_crlf_and_no_values_left_empty(void **state)
{
    (void)state;
    assert_printed(TABLE(mixed, mixed_cells), CSV,
                   "name,jobs,due_at,beat_at,held,ran_s,hidden\r\n"
                   "a,7,2030-04-12T05:00:00Z,2030-04-12T05:59:57.5Z,true,0.012,h\r\n"
                   "bb,1200,,,false,,\r\n");
}

static void test_csv_quotes_what_would_break_a_line_or_field(void **state)
{
    (void)state;
    static const struct column columns[] = {{.name = "a", .kind = COLUMN_TEXT},
                                            {.name = "b,c", .kind = COLUMN_TEXT}};
    static const char *const cells[] = {"x,y", "say \"hi\"", "two\nlines", "=1+1"};
    assert_printed(TABLE(columns, cells), CSV,
                   "a,\"b,c\"\r\n\"x,y\",\"say \"\"hi\"\"\"\r\n\"two\nlines\",=1+1\r\n");
}

static void test_a_count_that_stopped_at_its_bound_stays_text_in_json(void **state)
{
    (void)state;
    static const struct column columns[] = {{.name = "n", .kind = COLUMN_INT},
                                            {.name = "p", .kind = COLUMN_JSON}};
    static const char *const cells[] = {"100000+", "{\"a\": [1, null]}"};
    assert_printed(TABLE(columns, cells), JSON_OBJECT,
                   "{\n  \"n\": \"100000+\",\n  \"p\": {\n    \"a\": [\n      1,\n      null\n"
                   "    ]\n  }\n}");
}

static void test_an_empty_table_is_an_empty_array_and_a_header(void **state)
{
    (void)state;
    assert_printed(table_of(mixed, 2, NULL, 0), JSON, "[]");
    assert_printed(table_of(mixed, 2, NULL, 0), JSON_OBJECT, "null");
    assert_printed(table_of(mixed, 2, NULL, 0), CSV, "name,jobs\r\n");
}

static void test_facts_leave_out_what_has_no_value_and_keep_lines(void **state)
{
    (void)state;
    static const struct column columns[] = {{.name = "next_fire_at", .kind = COLUMN_INSTANT},
                                            {.name = "nothing", .kind = COLUMN_TEXT},
                                            {.name = "error", .kind = COLUMN_TEXT}};
    static const char *const cells[] = {"2030-04-12 05:00:00.25+00", NULL, "one\ntwo"};
    assert_printed(TABLE(columns, cells), FACTS,
                   "next fire  2030-04-12 05:00:00Z\n"
                   "error      one\n"
                   "           two\n");
}

/* Without a terminal $COLUMNS must neither wrap nor cut. */
static void test_lines_are_as_long_as_they_are_without_a_terminal(void **state)
{
    (void)state;
    static const struct column columns[] = {{.name = "error", .kind = COLUMN_TEXT}};
    char text[301];
    char expected[320];
    memset(text, 'x', 300);
    text[300] = '\0';
    const char *cells[] = {text};
    (void)snprintf(expected, sizeof expected, "ERROR\n%s\n", text);
    assert_int_equal(setenv("COLUMNS", "40", 1), 0);
    assert_printed(TABLE(columns, cells), ROWS, expected);
    assert_int_equal(unsetenv("COLUMNS"), 0);
}

/* Ids and numbers stay whole while prose can give way. */
static void test_prose_wraps_at_words_to_fit_a_terminal(void **state)
{
    (void)state;
    static const struct column columns[] = {{.name = "id", .kind = COLUMN_TEXT},
                                            {.name = "error", .kind = COLUMN_TEXT},
                                            {.name = "n", .kind = COLUMN_INT}};
    static const char *const cells[] = {"0190f0b4-7c1a-7e3b-9d5e-2f6a8c4b1d07",
                                        "relation packages does not exist in that schema",
                                        "7",
                                        "x",
                                        "short",
                                        "8"};
    width = 66;
    assert_printed(TABLE(columns, cells), ROWS,
                   "ID                                    ERROR                     N\n"
                   "0190f0b4-7c1a-7e3b-9d5e-2f6a8c4b1d07  relation packages does    7\n"
                   "                                      not exist in that schema\n"
                   "x                                     short                     8\n");
    width = 0;
}

static const struct column with_spares[] = {
    {.name = "name", .kind = COLUMN_TEXT},
    {.name = "answer", .kind = COLUMN_TEXT},
    {.name = "asked_by", .kind = COLUMN_TEXT, .spare = true},
    {.name = "deadline", .kind = COLUMN_TEXT, .spare = true},
    {.name = "id", .kind = COLUMN_TEXT, .spare = true},
};
static const char *const spare_cells[] = {"sales", "made", "ann", NULL, "0190f0b4"};

/* What comes first stays longest; one without any value goes before those, and without a word. */
static void test_spare_columns_give_way_on_a_narrow_terminal_and_are_named(void **state)
{
    (void)state;
    width = 43;
    left_out = "";
    assert_printed(TABLE(with_spares, spare_cells), ROWS,
                   "NAME   ANSWER  ASKED BY  DEADLINE  ID\n"
                   "sales  made    ann       -         0190f0b4\n");
    width = 42;
    assert_printed(TABLE(with_spares, spare_cells), ROWS,
                   "NAME   ANSWER  ASKED BY  ID\n"
                   "sales  made    ann       0190f0b4\n");
    width = 32;
    left_out = ", ID";
    assert_printed(TABLE(with_spares, spare_cells), ROWS,
                   "NAME   ANSWER  ASKED BY\n"
                   "sales  made    ann\n");
    width = 13;
    left_out = ", ASKED BY, ID";
    assert_printed(TABLE(with_spares, spare_cells), ROWS,
                   "NAME   ANSWER\n"
                   "sales  made\n");
    width = 0;
    left_out = "";
    assert_printed(TABLE(with_spares, spare_cells), ROWS,
                   "NAME   ANSWER  ASKED BY  DEADLINE  ID\n"
                   "sales  made    ann       -         0190f0b4\n");
    left_out = NULL;
}

/* An id within prose is a word that cannot be broken: others have to give way to it. */
static void test_word_of_prose_is_not_broken_while_other_prose_can_give_way(void **state)
{
    (void)state;
    static const struct column columns[] = {{.name = "detail", .kind = COLUMN_TEXT},
                                            {.name = "reason", .kind = COLUMN_TEXT}};
    static const char *const cells[] = {"first ensemble met: 0190f0b4-7c1a-7e3b-9d5e-2f6a8c4b1d07",
                                        "the database did not answer for a long time"};
    width = 62;
    assert_printed(TABLE(columns, cells), ROWS,
                   "DETAIL                                REASON\n"
                   "first ensemble met:                   the database did not\n"
                   "0190f0b4-7c1a-7e3b-9d5e-2f6a8c4b1d07  answer for a long time\n");
    width = 0;
}

static void test_facts_wrap_prose_beside_their_names_and_show_every_row(void **state)
{
    (void)state;
    static const struct column columns[] = {{.name = "path", .kind = COLUMN_TEXT},
                                            {.name = "problem", .kind = COLUMN_TEXT}};
    static const char *const cells[] = {"a/very/long/path/that/stays/whole.csv",
                                        "never fires: no date has that day", "b", NULL};
    width = 34;
    assert_printed(TABLE(columns, cells), FACTS,
                   "path     a/very/long/path/that/stays/whole.csv\n"
                   "problem  never fires: no date has\n"
                   "         that day\n"
                   "\n"
                   "path     b\n");
    width = 0;
}

static void assert_text(const char *cell, const char *expected)
{
    const struct column column = {.name = "x", .kind = COLUMN_TEXT};
    char text[CELL_TEXT_MAX];
    cell_format(&column, cell, now, text);
    assert_string_equal(text, expected);
}

static void test_control_characters_cannot_reach_the_terminal(void **state)
{
    (void)state;
    assert_text("a\033[2Jb", "a [2Jb");
    assert_text("one\n   two\r\n\tthree", "one two three");
    assert_text("", "-");
    assert_text(NULL, "-");
    assert_text("zwei  Leerzeichen", "zwei  Leerzeichen");
}

static void test_long_text_is_cut_between_characters(void **state)
{
    (void)state;
    char cell[2 * CELL_TEXT_MAX];
    char text[CELL_TEXT_MAX];
    const struct column column = {.name = "x", .kind = COLUMN_TEXT};
    cell[0] = 'a'; /* so that two-byte characters straddle the even bound */
    for (size_t i = 1; i + 2 < sizeof cell; i += 2) {
        memcpy(cell + i, "\xc3\xa4", 2);
    }
    cell[sizeof cell - 1] = '\0';
    cell[sizeof cell - 2] = '\0';
    for (size_t skip = 0; skip < 2; skip++) {
        cell_format(&column, cell + skip, now, text);
        size_t n = strlen(text);
        assert_true(n >= CELL_TEXT_MAX - 3 && n < CELL_TEXT_MAX);
        assert_int_equal((unsigned char)text[n - 1], 0xa4);
    }
}

static void assert_duration(double seconds, const char *expected)
{
    char text[64];
    cell_duration_format(seconds, text, sizeof text);
    assert_string_equal(text, expected);
}

static void test_durations_name_at_most_two_units(void **state)
{
    (void)state;
    assert_duration(0, "0s");
    assert_duration(0.0004, "1ms");
    assert_duration(0.25, "250ms");
    assert_duration(3.21, "3.2s");
    assert_duration(3, "3s");
    assert_duration(59.4, "59s");
    assert_duration(60, "1m");
    assert_duration(125, "2m 05s");
    assert_duration(3600, "1h");
    assert_duration(12000, "3h 20m");
    assert_duration(86400 * 12 + 4 * 3600, "12d 04h");
    assert_duration(86400 * 364.0, "364d");
    assert_duration(86400 * (365.0 * 972 + 182), "972y 182d");
    assert_duration(-65, "-1m 05s");
}

static void assert_age(const char *cell, const char *expected)
{
    const struct column column = {.name = "x_at", .kind = COLUMN_INSTANT, .show = SHOW_AGE};
    char text[CELL_TEXT_MAX];
    cell_format(&column, cell, now, text);
    assert_string_equal(text, expected);
}

static void test_ages_count_from_the_database_clock_both_ways(void **state)
{
    (void)state;
    assert_age("2030-04-12 06:00:00.4+00", "now");
    assert_age("2030-04-12 05:59:55+00", "5s ago");
    assert_age("2030-04-12 05:57:55+00", "2m 05s ago");
    assert_age("2030-04-12 08:00:00+00", "in 2h");
    assert_age("2030-04-12 06:00:07+00", "in 7s");
    assert_age("-infinity", "never");
    assert_age("infinity", "infinity");
}

static void test_sizes_and_nominal_times_are_short(void **state)
{
    (void)state;
    char text[CELL_TEXT_MAX];
    const struct column size = {.name = "size_bytes", .kind = COLUMN_BYTES};
    const struct column local = {.name = "local", .kind = COLUMN_LOCAL};
    cell_format(&size, "1482273", now, text);
    assert_string_equal(text, "1.4 MiB");
    cell_format(&size, "1023", now, text);
    assert_string_equal(text, "1023 B");
    cell_format(&local, "2030-04-12 08:00:00", now, text);
    assert_string_equal(text, "2030-04-12 08:00");
    cell_format(&local, "2030-04-12 08:00:30.25", now, text);
    assert_string_equal(text, "2030-04-12 08:00:30");
}

static void test_rows_beyond_the_limit_can_be_cut(void **state)
{
    (void)state;
    static const struct column columns[] = {{.name = "a", .kind = COLUMN_INT}};
    static const char *const cells[] = {"1", "2", "3"};
    struct table *t = TABLE(columns, cells);
    table_cut(t, 2);
    assert_int_equal(table_rows(t), 2);
    assert_string_equal(table_value(t, 1, "a"), "2");
    assert_null(table_value(t, 1, "b"));
    table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_people_see_aligned_columns_ages_and_durations),
        cmocka_unit_test(test_programs_see_real_types_and_exact_instants),
        cmocka_unit_test(test_csv_has_a_header_crlf_and_no_values_left_empty),
        cmocka_unit_test(test_csv_quotes_what_would_break_a_line_or_field),
        cmocka_unit_test(test_a_count_that_stopped_at_its_bound_stays_text_in_json),
        cmocka_unit_test(test_an_empty_table_is_an_empty_array_and_a_header),
        cmocka_unit_test(test_facts_leave_out_what_has_no_value_and_keep_lines),
        cmocka_unit_test(test_lines_are_as_long_as_they_are_without_a_terminal),
        cmocka_unit_test(test_prose_wraps_at_words_to_fit_a_terminal),
        cmocka_unit_test(test_spare_columns_give_way_on_a_narrow_terminal_and_are_named),
        cmocka_unit_test(test_word_of_prose_is_not_broken_while_other_prose_can_give_way),
        cmocka_unit_test(test_facts_wrap_prose_beside_their_names_and_show_every_row),
        cmocka_unit_test(test_control_characters_cannot_reach_the_terminal),
        cmocka_unit_test(test_long_text_is_cut_between_characters),
        cmocka_unit_test(test_durations_name_at_most_two_units),
        cmocka_unit_test(test_ages_count_from_the_database_clock_both_ways),
        cmocka_unit_test(test_sizes_and_nominal_times_are_short),
        cmocka_unit_test(test_rows_beyond_the_limit_can_be_cut),
    };
    (void)setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
