#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "migration.h"

static char directory[32];
static struct migration_set files, applied; /* 100 KiB each */

static void file_write(const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static enum status set_read(struct error *err)
{
    memset(&files, 0, sizeof files);
    return migration_set_read(directory, &files, err);
}

static void test_files_come_in_order_and_others_are_ignored(void **state)
{
    (void)state;
    file_write("0002_two.sql", "SELECT 2;");
    file_write("0001_one.sql", "abc");
    file_write("README.md", "no");
    file_write("001_short.sql", "no");
    file_write("0003_three.sql.orig", "no");
    assert_int_equal(set_read(NULL), STATUS_OK);
    assert_int_equal(files.count, 2);
    assert_int_equal(files.items[0].number, 1);
    assert_string_equal(files.items[0].name, "0001_one");
    assert_string_equal(files.items[0].checksum,
                        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_string_equal(files.items[1].name, "0002_two");
}

static void test_a_missing_number_is_refused_by_name(void **state)
{
    (void)state;
    struct error err = {0};
    char want[256];
    file_write("0001_one.sql", "");
    file_write("0003_three.sql", "");
    assert_int_equal(set_read(&err), STATUS_INVALID);
    (void)snprintf(want, sizeof want,
                   "%s: number 0002 is missing before 0003_three.sql; is the directory complete?",
                   directory);
    assert_string_equal(err.text, want);
}

static void test_a_number_given_twice_is_refused_by_name(void **state)
{
    (void)state;
    struct error err = {0};
    file_write("0001_one.sql", "");
    file_write("0001_uno.sql", "");
    assert_int_equal(set_read(&err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "number 0001 is given twice, by 0001_one.sql and "
                                     "0001_uno.sql; rename one"));
}

static void test_a_directory_without_migrations_names_the_option(void **state)
{
    (void)state;
    struct error err = {0};
    assert_int_equal(set_read(&err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "--dir"));
    assert_int_equal(migration_set_read("/nonexistent", &files, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "No such file or directory"));
}

static void two_files_applied(void)
{
    file_write("0001_one.sql", "1");
    file_write("0002_two.sql", "2");
    assert_int_equal(set_read(NULL), STATUS_OK);
    applied = files;
}

static void test_only_what_is_not_applied_is_left_to_do(void **state)
{
    (void)state;
    size_t first = 99;
    two_files_applied();
    assert_int_equal(migration_set_compare(&files, &applied, &first, NULL), STATUS_OK);
    assert_int_equal(first, 2);
    applied.count = 1;
    assert_int_equal(migration_set_compare(&files, &applied, &first, NULL), STATUS_OK);
    assert_int_equal(first, 1);
    applied.count = 0;
    assert_int_equal(migration_set_compare(&files, &applied, &first, NULL), STATUS_OK);
    assert_int_equal(first, 0);
}

static void test_a_changed_a_renamed_and_a_newer_one_are_refused_by_name(void **state)
{
    (void)state;
    struct error err = {0};
    size_t first = 99;
    two_files_applied();
    memset(applied.items[1].checksum, 'f', 64);
    assert_int_equal(migration_set_compare(&files, &applied, &first, &err), STATUS_CONFLICT);
    assert_int_equal(strncmp(err.text, "0002_two.sql was changed after it was applied", 45), 0);

    two_files_applied();
    (void)snprintf(applied.items[0].name, MIGRATION_NAME_MAX, "0001_eins");
    assert_int_equal(migration_set_compare(&files, &applied, &first, &err), STATUS_CONFLICT);
    assert_string_equal(err.text, "the database has migration 0001_eins where this version has "
                                  "0001_one.sql");

    two_files_applied();
    files.count = 1;
    assert_int_equal(migration_set_compare(&files, &applied, &first, &err), STATUS_CONFLICT);
    assert_non_null(strstr(err.text, "migration 0002_two, which this version does not know"));
    assert_int_equal(first, 99);
}

static void test_a_file_replaced_after_it_was_listed_does_not_run(void **state)
{
    (void)state;
    char *text = NULL;
    struct error err = {0};
    two_files_applied();
    assert_int_equal(migration_read(directory, &files.items[0], &text, NULL), STATUS_OK);
    assert_string_equal(text, "1");
    free(text);
    file_write("0001_one.sql", "other");
    assert_int_equal(migration_read(directory, &files.items[0], &text, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "changed while it was read"));
}

static void test_a_position_is_told_as_a_line(void **state)
{
    (void)state;
    const char *script = "one\ntwo\nthree";
    assert_int_equal(migration_line_at(script, 0), 1);
    assert_int_equal(migration_line_at(script, 3), 1);
    assert_int_equal(migration_line_at(script, 4), 2);
    assert_int_equal(migration_line_at(script, 12), 3);
    assert_int_equal(migration_line_at(script, 500), 3);
}

static int setup(void **state)
{
    (void)state;
    (void)snprintf(directory, sizeof directory, "/tmp/test_migration.XXXXXX");
    return mkdtemp(directory) != NULL ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    static const char *const names[] = {"0001_one.sql",   "0001_uno.sql",        "0002_two.sql",
                                        "0003_three.sql", "0003_three.sql.orig", "001_short.sql",
                                        "README.md"};
    char path[128];
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", directory, names[i]);
        (void)unlink(path);
    }
    return rmdir(directory);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(test_files_come_in_order_and_others_are_ignored),
        IN_DIRECTORY(test_a_missing_number_is_refused_by_name),
        IN_DIRECTORY(test_a_number_given_twice_is_refused_by_name),
        IN_DIRECTORY(test_a_directory_without_migrations_names_the_option),
        IN_DIRECTORY(test_only_what_is_not_applied_is_left_to_do),
        IN_DIRECTORY(test_a_changed_a_renamed_and_a_newer_one_are_refused_by_name),
        IN_DIRECTORY(test_a_file_replaced_after_it_was_listed_does_not_run),
        cmocka_unit_test(test_a_position_is_told_as_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
