/* What a running process takes of a file that was read again, and how long what it had stays. */
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
#include "log.h"
#include "metrics.h"
#include "reload.h"
#include "settings_now.h"

#define BASE                                                                                       \
    "database = \"host=127.0.0.1 dbname=x\";\n"                                                    \
    "artifact_stores = ( { name = \"local\"; directory = \"/var/tmp\"; } );\n"

static const struct metric_family counted = {.name = "report_worker_settings_reloads_total",
                                             .kind = METRIC_COUNTER,
                                             .help = "Of this test.",
                                             .labels = {"result"}};

static struct worker_settings *loaded(const char *text)
{
    void *settings = NULL;
    struct error err = {.text = ""};
    if (settings_file_read(&worker_spec, text, &settings, &err) != STATUS_OK) {
        fail_msg("%s", err.text);
    }
    return settings;
}

static const struct settings_change *change_of(const struct settings_change *changes, size_t n,
                                               const char *key)
{
    for (size_t i = 0; i < n; i++) {
        if (strcmp(changes[i].row->key, key) == 0) {
            return &changes[i];
        }
    }
    return NULL;
}

static void test_reloadable_keys_are_taken_and_all_others_stay(void **state)
{
    (void)state;
    struct settings_change changes[SETTINGS_CHANGES_MAX];
    struct worker_settings *current = loaded(BASE "slots = 4; drain_ms = 1000;\n");
    struct worker_settings *fresh =
        loaded(BASE "slots = 9; drain_ms = 2000; queues = [\"default\", \"slow\"];\n"
                    "programs = ( { name = \"p\"; arguments = [\"/bin/true\"]; } );\n");
    size_t n = settings_merge(&worker_spec, current, fresh, changes);
    assert_int_equal(n, 4);
    assert_int_equal(fresh->slots, 4);
    assert_int_equal(fresh->queues.count, 1);
    assert_int_equal(fresh->drain_ms, 2000);
    assert_int_equal(fresh->program_count, 1);
    assert_true(change_of(changes, n, "drain_ms")->applied);
    assert_true(change_of(changes, n, "programs")->applied);
    assert_false(change_of(changes, n, "slots")->applied);
    assert_false(change_of(changes, n, "queues")->applied);
    free(current);
    free(fresh);
}

static void test_a_default_that_is_written_out_is_no_change(void **state)
{
    (void)state;
    struct settings_change changes[SETTINGS_CHANGES_MAX];
    struct worker_settings *current = loaded(BASE);
    struct worker_settings *fresh = loaded(BASE "slots = 8; log_level = \"info\";\n"
                                                "queues = [\"default\"]; data_sources = ();\n");
    assert_int_equal(settings_merge(&worker_spec, current, fresh, changes), 0);
    free(current);
    free(fresh);
}

static void test_a_change_deep_in_a_group_is_seen(void **state)
{
    (void)state;
    struct settings_change changes[SETTINGS_CHANGES_MAX];
    struct worker_settings *current =
        loaded(BASE "programs = ( { name = \"p\"; arguments = [\"/bin/true\", \"a\"]; } );\n");
    struct worker_settings *fresh =
        loaded(BASE "programs = ( { name = \"p\"; arguments = [\"/bin/true\", \"b\"]; } );\n");
    assert_int_equal(settings_merge(&worker_spec, current, fresh, changes), 1);
    assert_string_equal(changes[0].row->key, "programs");
    free(current);
    free(fresh);
}

static void test_a_file_with_faults_is_refused_whole_and_counted(void **state)
{
    (void)state;
    const struct reload reload = {.spec = &worker_spec, .path = settings_path, .counted = &counted};
    struct worker_settings *current = loaded(BASE "drain_ms = 1000;\n");
    void *fresh = NULL;
    metrics_reset();
    settings_file_write(BASE "drain_ms = 2000; slots = 0; pull_idle_ms = \"soon\";\n");
    assert_int_equal(reload_read(&reload, current, &fresh), STATUS_INVALID);
    assert_null(fresh);
    assert_int_equal(unlink(settings_path), 0);
    assert_int_equal(reload_read(&reload, current, &fresh), STATUS_NOT_FOUND);
    assert_true(metric_read(metric_get(&counted, "refused", NULL)) > 1.5);
    settings_file_write(BASE "drain_ms = 2000;\n");
    assert_int_equal(reload_read(&reload, current, &fresh), STATUS_OK);
    assert_int_equal(((struct worker_settings *)fresh)->drain_ms, 2000);
    assert_true(metric_read(metric_get(&counted, "applied", NULL)) > 0.5);
    free(fresh);
    free(current);
}

/* What the log says from here on can be read from the descriptor returned, by log_kept. */
static int log_keep(int *ret_stderr)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    *ret_stderr = dup(STDERR_FILENO);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    (void)close(ends[1]);
    log_open("test", LOG_LEVEL_INFO);
    return ends[0];
}

static void log_kept(int reader, int kept, char *ret_text, size_t size)
{
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    (void)close(kept);
    log_open("test", LOG_LEVEL_INFO); /* closes its own end of the pipe */
    ssize_t n = 0;
    size_t used = 0;
    while (used + 1 < size && (n = read(reader, ret_text + used, size - 1 - used)) > 0) {
        used += (size_t)n;
    }
    ret_text[used] = '\0';
    (void)close(reader);
}

static void test_a_change_is_logged_as_its_values_are_and_quoted_once(void **state)
{
    (void)state;
    const struct reload reload = {.spec = &worker_spec, .path = settings_path, .counted = &counted};
    struct worker_settings *current = loaded(BASE "drain_ms = 1000;\n");
    void *fresh = NULL;
    char text[4096];
    int kept = -1;
    settings_file_write(BASE "drain_ms = 2000; log_level = \"debug\";\n");
    int reader = log_keep(&kept);
    enum status s = reload_read(&reload, current, &fresh);
    log_kept(reader, kept, text, sizeof text);
    assert_int_equal(s, STATUS_OK);
    if (strstr(text, "key=log_level from=\"info\" to=\"debug\"\n") == NULL ||
        strstr(text, "key=drain_ms from=\"1000\" to=\"2000\"\n") == NULL) {
        fail_msg("%s", text);
    }
    free(fresh);
    free(current);
}

static void test_settings_taken_stay_alive_until_given_back(void **state)
{
    (void)state;
    uint64_t first_number = 0;
    uint64_t second_number = 0;
    struct worker_settings *first = loaded(BASE "drain_ms = 1;\n");
    struct settings_now *now = settings_now_new(first);
    assert_non_null(now);
    assert_int_equal(settings_replace(now, loaded(BASE "drain_ms = 2;\n")), STATUS_OK);
    const struct worker_settings *job = settings_take(now, &first_number);
    assert_int_equal(settings_replace(now, loaded(BASE "drain_ms = 3;\n")), STATUS_OK);
    const struct worker_settings *next = settings_take(now, &second_number);
    assert_int_equal(job->drain_ms, 2); /* the sanitizer would see it freed */
    assert_int_equal(next->drain_ms, 3);
    assert_true(second_number != first_number);
    settings_give(now, next);
    settings_give(now, job);
    assert_int_equal(settings_replace(now, loaded(BASE "drain_ms = 4;\n")), STATUS_OK);
    next = settings_take(now, NULL);
    assert_int_equal(next->drain_ms, 4);
    settings_give(now, next);
    settings_now_free(now);
    free(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reloadable_keys_are_taken_and_all_others_stay),
        cmocka_unit_test(test_a_default_that_is_written_out_is_no_change),
        cmocka_unit_test(test_a_change_deep_in_a_group_is_seen),
        cmocka_unit_test(test_a_file_with_faults_is_refused_whole_and_counted),
        cmocka_unit_test(test_a_change_is_logged_as_its_values_are_and_quoted_once),
        cmocka_unit_test(test_settings_taken_stay_alive_until_given_back),
    };
    return cmocka_run_group_tests(tests, settings_directory_make, settings_directory_remove);
}
