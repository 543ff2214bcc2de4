/* Rules across the scheduler's settings: times that hang together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fixture_settings.h"
#include "scheduler_settings.h"

#define REQUIRED                                                                                   \
    "zookeeper = \"127.0.0.1:2181\";\nkafka_brokers = \"127.0.0.1:9092\";\n"                       \
    "database = \"host=127.0.0.1 dbname=x\";\n"

static const char *judged(const char *text, enum status wanted)
{
    return settings_said(&scheduler_spec, text, wanted);
}

static void assert_fault(const char *text, const char *part)
{
    if (strstr(judged(text, STATUS_INVALID), part) == NULL) {
        fail_msg("not said: %s\nbut: %s", part, settings_lines);
    }
}

static void test_smallest_settings_that_work_are_taken_without_a_warning(void **state)
{
    (void)state;
    assert_string_equal(judged(REQUIRED, STATUS_OK), "");
}

static void test_a_session_that_the_servers_would_not_grant_is_refused(void **state)
{
    (void)state;
    assert_fault(REQUIRED "zookeeper_session_ms = 50000;\n",
                 ":4: zookeeper_session_ms: 50000 is not within 2 to 20 ticks of 2000 ms, which is "
                 "what the servers grant; write 4000 to 40000, or correct zookeeper_tick_ms");
}

static void test_a_session_that_leaves_no_lease_is_refused_with_what_would_do(void **state)
{
    (void)state;
    assert_fault(REQUIRED "zookeeper_session_ms = 4000;\n",
                 "zookeeper_session_ms: 4000 leaves no lease after zookeeper_tick_ms and "
                 "lease_margin_ms; write at least 4800");
    assert_string_equal(judged(REQUIRED "zookeeper_session_ms = 4800;\n", STATUS_OK), "");
}

static void test_a_statement_that_could_outlive_the_lease_is_refused(void **state)
{
    (void)state;
    assert_fault(REQUIRED "database_statement_ms = 2000;\n",
                 "database_statement_ms: 2000 is above lease_margin_ms");
}

static void test_times_that_contradict_each_other_are_all_said_at_once(void **state)
{
    (void)state;
    const char *text =
        REQUIRED "database_unhealthy_ms = 2000;\nstuck_ms = 10000;\ndrain_ms = 9000;\n"
                 "stop_ms = 5000;\nscopes = [\"a\", \"a\"];\n";
    assert_fault(text, ":4: database_unhealthy_ms: 2000 leaves no time to connect again and try; "
                       "write at least 6000");
    assert_fault(text, ":5: stuck_ms: 10000 is not above what one honest turn may take");
    assert_fault(text, ":7: stop_ms: 5000 is too short to drain and to release; write at least "
                       "11000");
    assert_fault(text, ":8: scopes: \"a\" is named twice; remove one");
}

static void test_a_rule_says_nothing_about_a_key_that_has_a_fault_already(void **state)
{
    (void)state;
    assert_fault(REQUIRED "zookeeper_session_ms = 1;\n", "1 is out of range");
    assert_null(strstr(settings_lines, "leaves no lease"));
}

static void test_a_watchdog_that_is_faster_than_stuck_ms_is_a_warning(void **state)
{
    (void)state;
    char pid[32];
    (void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    assert_int_equal(setenv("WATCHDOG_USEC", "20000000", 1), 0);
    assert_int_equal(setenv("WATCHDOG_PID", pid, 1), 0);
    const char *said = judged(REQUIRED "stuck_ms = 30000;\n", STATUS_OK);
    assert_int_equal(unsetenv("WATCHDOG_USEC"), 0);
    assert_int_equal(unsetenv("WATCHDOG_PID"), 0);
    assert_non_null(strstr(said, ":4: stuck_ms: warning: 30000 is not below WatchdogSec of the "
                                 "unit (20000 ms)"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_smallest_settings_that_work_are_taken_without_a_warning),
        cmocka_unit_test(test_a_session_that_the_servers_would_not_grant_is_refused),
        cmocka_unit_test(test_a_session_that_leaves_no_lease_is_refused_with_what_would_do),
        cmocka_unit_test(test_a_statement_that_could_outlive_the_lease_is_refused),
        cmocka_unit_test(test_times_that_contradict_each_other_are_all_said_at_once),
        cmocka_unit_test(test_a_rule_says_nothing_about_a_key_that_has_a_fault_already),
        cmocka_unit_test(test_a_watchdog_that_is_faster_than_stuck_ms_is_a_warning),
    };
    return cmocka_run_group_tests(tests, settings_directory_make, settings_directory_remove);
}
