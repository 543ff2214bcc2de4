/* No table is wider than its terminal, whatever stands in it. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "table.h"
#include "table_fit.h"

#define LONG_NAME "a-schedule-with-a-name-that-has-sixty-three-characters-in-it-ab"

static const struct column jobs[] = {{.name = "schedule", .kind = COLUMN_TEXT},
                                     {.name = "key", .kind = COLUMN_TEXT},
                                     {.name = "ran_s", .kind = COLUMN_SECONDS},
                                     {.name = "error", .kind = COLUMN_TEXT},
                                     {.name = "worker", .kind = COLUMN_TEXT, .spare = true}};
static const char *const jobs_cells[] = {LONG_NAME, "2030-04-12T06:00", "0.012",
                                         "relation \"packages\" does not exist in that schema",
                                         "worker-1"};

struct printed {
    char *text;
    char *left_out;
    size_t widest;
};

/* Owns: both texts. */
static struct printed row_print(const struct column *columns, const char *const *cells,
                                size_t count, int width)
{
    struct printed p = {0};
    size_t size = 0;
    size_t gone_size = 0;
    struct table *t = table_new();
    assert_non_null(t);
    for (size_t i = 0; i < count; i++) {
        assert_true(table_column_add(t, &columns[i]));
    }
    for (size_t i = 0; i < count; i++) {
        assert_true(table_cell_add(t, cells[i]));
    }
    struct table_view view = {.to = open_memstream(&p.text, &size),
                              .left_out = open_memstream(&p.left_out, &gone_size),
                              .width = width};
    assert_non_null(view.to);
    assert_non_null(view.left_out);
    table_print_rows(t, &view);
    assert_int_equal(fclose(view.to), 0);
    assert_int_equal(fclose(view.left_out), 0);
    table_free(t);
    for (const char *line = p.text; *line != '\0'; line += strcspn(line, "\n") + 1) {
        size_t n = text_span_width(line, "\n");
        p.widest = n > p.widest ? n : p.widest;
    }
    return p;
}

static struct printed print(int width)
{
    return row_print(jobs, jobs_cells, sizeof jobs / sizeof jobs[0], width);
}

static void printed_free(struct printed *p)
{
    free(p->text);
    free(p->left_out);
}

static void test_no_line_is_wider_than_the_terminal(void **state)
{
    (void)state;
    for (int width = 8; width <= 200; width++) {
        struct printed p = print(width);
        if (p.widest > (size_t)width) {
            fail_msg("%zu columns on a terminal of %d:\n%s", p.widest, width, p.text);
        }
        printed_free(&p);
    }
}

static void test_long_name_is_cut_and_said_to_be(void **state)
{
    (void)state;
    struct printed p = print(80);
    assert_string_equal(
        p.text, "SCHEDULE                              KEY                RAN  ERROR\n"
                "a-schedule-with-a-name-that-has-six…  2030-04-12T06:00  12ms  relation\n"
                "                                                              \"packages\" does\n"
                "                                                              not exist in that\n"
                "                                                              schema\n");
    assert_string_equal(p.left_out, ", SCHEDULE (cut short), WORKER");
    printed_free(&p);
}

static void test_name_is_whole_where_prose_can_give_way(void **state)
{
    (void)state;
    struct printed p = print(130);
    assert_non_null(strstr(p.text, LONG_NAME));
    assert_string_equal(p.left_out, ", WORKER");
    printed_free(&p);
}

/* What the line is about is the last to go. */
static void test_columns_go_from_the_right_where_nothing_can_be_cut_any_more(void **state)
{
    (void)state;
    struct printed p = print(20);
    assert_string_equal(p.text, "SCHEDULE  KEY\n"
                                "a-sched…  2030-04-1…\n");
    assert_string_equal(p.left_out, ", SCHEDULE (cut short), KEY (cut short), RAN, ERROR, WORKER");
    printed_free(&p);
}

/* Half an id is good for nothing, and an answer of seven columns is not read. */
static void test_id_is_whole_or_gives_way_to_prose(void **state)
{
    (void)state;
    static const struct column columns[] = {{.name = "id", .kind = COLUMN_TEXT},
                                            {.name = "kind", .kind = COLUMN_TEXT},
                                            {.name = "subject", .kind = COLUMN_TEXT},
                                            {.name = "answer", .kind = COLUMN_TEXT}};
    static const char *const cells[] = {
        "caa2677f-d848-48ee-b20c-0123456789ab", "backfill", "a-schedule-with-a-long-name",
        "no leader carried it out before its deadline; ask again with a fresh request id"};
    struct printed narrow = row_print(columns, cells, 4, 70);
    assert_null(strstr(narrow.text, "caa2677f"));
    assert_non_null(strstr(narrow.text, "a-schedule-with-a-long-name"));
    assert_string_equal(narrow.left_out, ", ID");
    printed_free(&narrow);
    struct printed wide = row_print(columns, cells, 4, 100);
    assert_non_null(strstr(wide.text, cells[0]));
    assert_string_equal(wide.left_out, "");
    printed_free(&wide);
}

static void test_room_of_a_column_that_went_is_used(void **state)
{
    (void)state;
    static const struct column columns[] = {{.name = "member", .kind = COLUMN_TEXT},
                                            {.name = "zone", .kind = COLUMN_TEXT},
                                            {.name = "at", .kind = COLUMN_TEXT},
                                            {.name = "verdict", .kind = COLUMN_TEXT}};
    static const char *const cells[] = {"scheduler-1", "America/New_York", "2030-04-12T06:00",
                                        "stepped-forward"};
    struct printed p = row_print(columns, cells, 4, 50);
    assert_string_equal(p.text, "MEMBER       ZONE              AT\n"
                                "scheduler-1  America/New_York  2030-04-12T06:00\n");
    assert_string_equal(p.left_out, ", VERDICT");
    printed_free(&p);
}

static void test_word_that_is_longer_than_its_column_is_broken(void **state)
{
    (void)state;
    char text[64] = "see /a/path/without/blanks now";
    text_wrap(text, sizeof text, 8, true);
    assert_string_equal(text, "see\n/a/path/\nwithout/\nblanks\nnow");
    (void)snprintf(text, sizeof text, "%s", "see /a/path/without/blanks now");
    text_wrap(text, sizeof text, 8, false);
    assert_string_equal(text, "see\n/a/path/without/blanks\nnow");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_line_is_wider_than_the_terminal),
        cmocka_unit_test(test_long_name_is_cut_and_said_to_be),
        cmocka_unit_test(test_name_is_whole_where_prose_can_give_way),
        cmocka_unit_test(test_columns_go_from_the_right_where_nothing_can_be_cut_any_more),
        cmocka_unit_test(test_id_is_whole_or_gives_way_to_prose),
        cmocka_unit_test(test_room_of_a_column_that_went_is_used),
        cmocka_unit_test(test_word_that_is_longer_than_its_column_is_broken),
    };
    if (setlocale(LC_ALL, "C.UTF-8") == NULL) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
