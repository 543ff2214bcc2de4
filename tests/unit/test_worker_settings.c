/* What the worker's settings table cannot say: a worker that could only do harm does not start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker_settings.h"

#define REQUIRED "database = \"host=127.0.0.1 dbname=x\";\nkafka_brokers = \"127.0.0.1:9092\";\n"
#define STORE    "artifact_stores = ( { name = \"local\"; directory = \"/var/tmp\"; } );\n"

/* "" when the text is taken, otherwise the complaint. */
static const char *complaint(const char *text)
{
    static struct error err;
    char path[] = "/tmp/test-worker-settings-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
    struct worker_settings *settings = NULL;
    err.text[0] = '\0';
    enum status s = worker_settings_load(path, &settings, NULL, &err);
    (void)unlink(path);
    if (s == STATUS_OK) {
        free(settings);
        return "";
    }
    assert_int_equal(s, STATUS_INVALID);
    return err.text;
}

static void test_smallest_settings_that_work_are_taken(void **state)
{
    (void)state;
    assert_string_equal(complaint(REQUIRED STORE), "");
}

static void test_worker_without_an_artifact_store_is_refused_with_the_line_to_write(void **state)
{
    (void)state;
    assert_non_null(strstr(complaint(REQUIRED), "artifact_stores: a worker needs one; write "));
}

static void test_worker_that_serves_no_queue_is_refused(void **state)
{
    (void)state;
    assert_non_null(strstr(complaint(REQUIRED STORE "queues = [];\n"), "queues: "));
}

static void test_relative_paths_are_refused(void **state)
{
    (void)state;
    assert_non_null(strstr(
        complaint(REQUIRED "artifact_stores = ( { name = \"local\"; directory = \"x\"; } );\n"),
        "absolute"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smallest_settings_that_work_are_taken),
        cmocka_unit_test(test_worker_without_an_artifact_store_is_refused_with_the_line_to_write),
        cmocka_unit_test(test_worker_that_serves_no_queue_is_refused),
        cmocka_unit_test(test_relative_paths_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
