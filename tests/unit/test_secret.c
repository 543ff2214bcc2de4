#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture_settings.h"

static void secret_write(const char *bytes, size_t n, mode_t mode)
{
    /* Only root could write over a file that the test before made read-only. */
    (void)unlink(settings_path);
    FILE *f = fopen(settings_path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(settings_path, mode), 0);
}

static void test_a_secret_is_read_without_its_line_end(void **state)
{
    (void)state;
    char text[16];
    secret_write("s3 cret\n", 8, 0600);
    assert_int_equal(secret_read(settings_path, text, sizeof text, NULL), STATUS_OK);
    assert_string_equal(text, "s3 cret");
    secret_write("s3cret\r\n", 8, 0400);
    assert_int_equal(secret_read(settings_path, text, sizeof text, NULL), STATUS_OK);
    assert_string_equal(text, "s3cret");
    secret_write("123456789012345\n", 16, 0600);
    assert_int_equal(secret_read(settings_path, text, sizeof text, NULL), STATUS_OK);
    assert_string_equal(text, "123456789012345");
}

static void test_a_secret_others_can_read_is_refused_with_the_remedy(void **state)
{
    (void)state;
    const mode_t modes[] = {0640, 0604, 0620, 0602, 0610};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        char text[16] = "untouched";
        struct error err = {0};
        char want[160];
        secret_write("s3cret\n", 7, modes[i]);
        assert_int_equal(secret_read(settings_path, text, sizeof text, &err), STATUS_INVALID);
        (void)snprintf(want, sizeof want, "run: chmod 600 %s", settings_path);
        assert_non_null(strstr(err.text, want));
        assert_string_equal(text, "untouched");
    }
}

static void test_a_systemd_credential_is_taken_whatever_its_group_bits(void **state)
{
    (void)state;
    char text[16];
    secret_write("s3cret\n", 7, 0440);
    assert_int_equal(setenv("CREDENTIALS_DIRECTORY", settings_directory, 1), 0);
    assert_int_equal(secret_read(settings_path, text, sizeof text, NULL), STATUS_OK);
    char around[sizeof settings_directory + sizeof settings_path + 4];
    (void)snprintf(around, sizeof around, "%s/../%s", settings_directory, settings_path + 1);
    assert_int_not_equal(secret_read(around, text, sizeof text, NULL), STATUS_OK);
    assert_int_equal(unsetenv("CREDENTIALS_DIRECTORY"), 0);
    assert_int_equal(secret_read(settings_path, text, sizeof text, NULL), STATUS_INVALID);
}

static void test_an_empty_oversize_or_binary_secret_is_refused(void **state)
{
    (void)state;
    char text[16];
    struct error err = {0};
    secret_write("\n", 1, 0600);
    assert_int_equal(secret_read(settings_path, text, sizeof text, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "is empty"));
    secret_write("1234567890123456\n", 17, 0600);
    assert_int_equal(secret_read(settings_path, text, sizeof text, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "at most 15 bytes"));
    secret_write("a\0b\n", 4, 0600);
    assert_int_equal(secret_read(settings_path, text, sizeof text, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "NUL"));
    assert_int_equal(secret_read("/nonexistent/s", text, sizeof text, &err), STATUS_NOT_FOUND);
    assert_int_equal(secret_read(settings_directory, text, sizeof text, &err), STATUS_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_secret_is_read_without_its_line_end),
        cmocka_unit_test(test_a_secret_others_can_read_is_refused_with_the_remedy),
        cmocka_unit_test(test_a_systemd_credential_is_taken_whatever_its_group_bits),
        cmocka_unit_test(test_an_empty_oversize_or_binary_secret_is_refused),
    };
    return cmocka_run_group_tests(tests, settings_directory_make, settings_directory_remove);
}
