/* What the worker's settings table cannot say: a worker that could only do harm does not start. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture_settings.h"
#include "worker_settings.h"

#define REQUIRED "database = \"host=127.0.0.1 dbname=x\";\nkafka_brokers = \"127.0.0.1:9092\";\n"
#define STORE    "artifact_stores = ( { name = \"local\"; directory = \"/var/tmp\"; } );\n"

static void assert_fault(const char *text, const char *part)
{
    if (strstr(settings_said(&worker_spec, text, STATUS_INVALID), part) == NULL) {
        fail_msg("not said: %s\nbut: %s", part, settings_lines);
    }
}

static void test_smallest_settings_that_work_are_taken(void **state)
{
    (void)state;
    assert_string_equal(settings_said(&worker_spec, REQUIRED STORE, STATUS_OK), "");
}

static void test_worker_without_an_artifact_store_is_refused_with_the_line_to_write(void **state)
{
    (void)state;
    assert_fault(REQUIRED, "artifact_stores: a worker needs one; write ");
}

static void test_worker_that_serves_no_queue_is_refused(void **state)
{
    (void)state;
    assert_fault(REQUIRED STORE "queues = [];\n", "queues: ");
}

static void test_relative_paths_are_refused(void **state)
{
    (void)state;
    assert_fault(REQUIRED "artifact_stores = ( { name = \"local\"; directory = \"x\"; } );\n",
                 "absolute");
}

static void test_all_faults_are_said_at_once_each_with_its_line(void **state)
{
    (void)state;
    const char *text = "database = \"host=127.0.0.1 password=open\";\n"
                       "kafka_brokers = \"kafka\";\n"
                       "kafka_properties = [\"linger.ms=5\",\n \"acks=1\"];\n"
                       "queues = [\"default\", \"default\"];\n"
                       "programs = ( { name = \"p\"; arguments = [\"true\"]; } );\n";
    void *settings = NULL;
    struct error err = {.text = ""};
    assert_int_equal(settings_file_read(&worker_spec, text, &settings, &err), STATUS_INVALID);
    const char *const wanted[] = {
        ":1: database: has a password in it",
        ":2: kafka_brokers: \"kafka\" is no host:port",
        ":4: kafka_properties: Kafka property acks is set by this program",
        ":5: queues: \"default\" is named twice",
        ":6: programs[0].arguments: \"true\" is no absolute path",
        ": artifact_stores: a worker needs one; write artifact_stores = (",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (strstr(settings_lines, wanted[i]) == NULL) {
            fail_msg("not said: %s\nbut: %s", wanted[i], settings_lines);
        }
    }
    assert_non_null(strstr(err.text, "(the first of 6 faults)"));
    assert_null(strstr(settings_lines, "open"));
}

static void test_two_stores_in_one_directory_are_refused(void **state)
{
    (void)state;
    assert_fault(REQUIRED "artifact_stores = ( { name = \"a\"; directory = \"/var/tmp\"; },\n"
                          " { name = \"b\"; directory = \"/var/tmp\"; } );\n",
                 ":4: artifact_stores[1].directory: is the directory of store \"a\" too");
}

static void test_a_program_that_is_not_there_is_a_warning(void **state)
{
    (void)state;
    const char *said = settings_said(
        &worker_spec,
        REQUIRED STORE "programs = ( { name = \"p\"; arguments = [\"/nonexistent/p\"]; } );\n",
        STATUS_OK);
    assert_non_null(strstr(said, ":4: programs[0].arguments: warning: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smallest_settings_that_work_are_taken),
        cmocka_unit_test(test_worker_without_an_artifact_store_is_refused_with_the_line_to_write),
        cmocka_unit_test(test_worker_that_serves_no_queue_is_refused),
        cmocka_unit_test(test_relative_paths_are_refused),
        cmocka_unit_test(test_all_faults_are_said_at_once_each_with_its_line),
        cmocka_unit_test(test_two_stores_in_one_directory_are_refused),
        cmocka_unit_test(test_a_program_that_is_not_there_is_a_warning),
    };
    return cmocka_run_group_tests(tests, settings_directory_make, settings_directory_remove);
}
