/* The pages about settings are what the tables say now. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "configuration_page.h"

static char *printed(void (*print)(FILE *to))
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    print(to);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void assert_fresh(const char *path, void (*print)(FILE *to), const char *command)
{
    static char stored[1 << 20];
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        fail_msg("%s is missing: %s > %s", path, command, path);
    }
    size_t n = fread(stored, 1, sizeof stored - 1, f);
    assert_int_equal(fclose(f), 0);
    stored[n] = '\0';
    char *now = printed(print);
    bool fresh = strcmp(stored, now) == 0;
    free(now);
    if (!fresh) {
        fail_msg("%s is stale: %s > %s", path, command, path);
    }
}

static void man_of_scheduler(FILE *to)
{
    configuration_print_man(&configuration_of_scheduler, to);
}

static void man_of_worker(FILE *to)
{
    configuration_print_man(&configuration_of_worker, to);
}

static void test_pages_about_settings_are_fresh(void **state)
{
    (void)state;
    assert_fresh(TEST_SOURCE_DIR "/../docs/configuration.md", configuration_print_all,
                 "reportctl config-reference all");
    assert_fresh(TEST_SOURCE_DIR "/../docs/man/scheduler.conf.5", man_of_scheduler,
                 "reportctl config-reference scheduler --man");
    assert_fresh(TEST_SOURCE_DIR "/../docs/man/worker.conf.5", man_of_worker,
                 "reportctl config-reference worker --man");
}

/* What the table cannot enforce by its type: every row can be understood, and no key is twice. */
static void rows_check(const struct setting *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct setting *s = &table[i];
        bool file = strstr(s->key, "_file") != NULL && s->type == SETTING_TEXT;
        if (s->why == NULL || strlen(s->why) < 20 || s->unit == NULL ||
            (s->type == SETTING_INT && s->min >= s->max) ||
            (strlen(s->key) > 3 && strcmp(s->key + strlen(s->key) - 3, "_ms") == 0 &&
             strcmp(s->unit, "ms") != 0) ||
            (file && s->form == NULL)) {
            fail_msg("the row of %s lacks a reason, a unit, bounds or a form", s->key);
        }
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(table[k].key, s->key);
        }
        if (s->type == SETTING_GROUPS) {
            rows_check(s->fields, s->field_count);
        }
    }
}

static void test_every_row_has_a_reason_a_unit_and_bounds(void **state)
{
    (void)state;
    rows_check(configuration_of_scheduler.spec->table, configuration_of_scheduler.spec->count);
    rows_check(configuration_of_worker.spec->table, configuration_of_worker.spec->count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_about_settings_are_fresh),
        cmocka_unit_test(test_every_row_has_a_reason_a_unit_and_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
