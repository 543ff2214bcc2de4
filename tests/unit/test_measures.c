/* What daemons measure: names of statements, counting of transitions, and the reference page. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "process_metrics.h"
#include "relay_metrics.h"
#include "scheduler_metrics.h"
#include "scope_metrics.h"
#include "worker_metrics.h"

static int set_up(void **state)
{
    (void)state;
    metrics_reset();
    return 0;
}

static char *page(void)
{
    char *text = NULL;
    size_t size = 0;
    struct error err = {.text = ""};
    assert_int_equal(metrics_render(&text, &size, &err), STATUS_OK);
    return text;
}

static void assert_shown(const char *line)
{
    char *text = page();
    if (strstr(text, line) == NULL) {
        fail_msg("not on the page: %s\n%s", line, text);
    }
    free(text);
}

static void assert_not_shown(const char *part)
{
    char *text = page();
    if (strstr(text, part) != NULL) {
        fail_msg("on the page: %s\n%s", part, text);
    }
    free(text);
}

/* Statements ----------------------------------------------------------------------------------- */

static void assert_statement(const char *sql, const char *expected)
{
    char name[STATEMENT_NAME_MAX];
    statement_name(sql, name);
    assert_string_equal(name, expected);
}

static void test_statement_is_named_by_the_function_it_calls(void **state)
{
    (void)state;
    assert_statement("SELECT verdict, planned FROM reports.plan_batch($1, $2)", "plan_batch");
    assert_statement("SELECT j.x FROM reports.job j, reports.claim_ids($1) c", "claim_ids");
    assert_statement("SELECT reports.worker_leave($1, $2)", "worker_leave");
}

static void test_statement_without_a_function_is_named_by_its_table_or_is_other(void **state)
{
    (void)state;
    assert_statement("SELECT id FROM reports.outbox WHERE scope = $1", "read_outbox");
    assert_statement("SELECT to_regclass('reports.fence') IS NOT NULL", "other");
    assert_statement("LISTEN report_change", "listen");
    assert_statement("SELECT clock_timestamp()", "other");
}

static void test_failed_call_is_measured_and_counted_by_status(void **state)
{
    (void)state;
    process_database_call("SELECT reports.tend($1)", clock_now(), STATUS_TIMEOUT);
    process_database_call("SELECT reports.tend($1)", clock_now(), STATUS_OK);
    assert_shown("report_database_call_seconds_count{statement=\"tend\"} 2\n");
    assert_shown("report_database_call_failures_total{statement=\"tend\",status=\"timeout\"} 1\n");
}

static void test_process_tells_of_itself(void **state)
{
    (void)state;
    process_metrics_collect(NULL);
    assert_true(metric_read(metric_get(&PROCESS_FAMILIES[PROCESS_RESIDENT_BYTES], NULL, NULL)) >
                1000000);
    assert_true(metric_read(metric_get(&PROCESS_FAMILIES[PROCESS_START_TIME], NULL, NULL)) > 1.5e9);
    assert_true(metric_read(metric_get(&PROCESS_FAMILIES[PROCESS_OPEN_FDS], NULL, NULL)) >= 3);
    assert_shown("report_build_info{version=\"");
}

/* Transitions ---------------------------------------------------------------------------------- */

static void step(struct lifecycle *l, enum lifecycle_event event, double stayed_s)
{
    struct lifecycle_outcome outcome = lifecycle_step(l, event);
    assert_non_null(outcome.row);
    scope_metrics_step("main", outcome.row, stayed_s);
}

static void lead(struct lifecycle *l)
{
    step(l, LIFECYCLE_EV_BACKOFF_OVER, 1);
    step(l, LIFECYCLE_EV_SESSION_UP, 1);
    step(l, LIFECYCLE_EV_ENSEMBLE_KNOWN, 1);
    (void)lifecycle_step(l, LIFECYCLE_EV_ENROLLED);
    step(l, LIFECYCLE_EV_RANK_FIRST, 1);
    step(l, LIFECYCLE_EV_ESTABLISHED, 1);
    step(l, LIFECYCLE_EV_PREPARED, 0.25);
}

static void test_leadership_is_counted_with_its_preparation_and_its_end(void **state)
{
    (void)state;
    struct lifecycle l = {.node = false};
    scope_metrics_begin("main");
    assert_shown("report_scheduler_step_downs_total{scope=\"main\",reason=\"fenced\"} 0\n");
    lead(&l);
    assert_int_equal(l.state, LIFECYCLE_ACTIVE);
    assert_shown("report_scheduler_elections_total{scope=\"main\"} 1\n");
    assert_shown("report_scheduler_leaderships_total{scope=\"main\"} 1\n");
    assert_shown("report_scheduler_prepare_seconds_sum{scope=\"main\"} 0.25\n");
    assert_shown("report_scheduler_leadership_seconds_count{scope=\"main\"} 0\n");
    step(&l, LIFECYCLE_EV_FENCED, 500);
    assert_shown("report_scheduler_step_downs_total{scope=\"main\",reason=\"fenced\"} 1\n");
    assert_shown("report_scheduler_leadership_seconds_sum{scope=\"main\"} 500\n");
}

static void test_ordered_stop_is_counted_once_although_it_takes_two_steps(void **state)
{
    (void)state;
    struct lifecycle l = {.node = false};
    lead(&l);
    step(&l, LIFECYCLE_EV_STOP, 10);
    step(&l, LIFECYCLE_EV_DRAINED, 1);
    assert_shown("report_scheduler_step_downs_total{scope=\"main\",reason=\"stopped\"} 1\n");
}

static void test_follower_shows_its_state_and_no_relay(void **state)
{
    (void)state;
    struct scope_snapshot view = {.name = "main",
                                  .state = LIFECYCLE_ACTIVE,
                                  .generation = 7,
                                  .has_relay = true,
                                  .relay_stall_s = 0.5};
    scope_metrics_set(&view, clock_now());
    assert_shown("report_scheduler_leader{scope=\"main\"} 1\n");
    assert_shown("report_scheduler_loop_stall_seconds{loop=\"relay\",scope=\"main\"} 0.5\n");
    view = (struct scope_snapshot){.name = "main", .state = LIFECYCLE_FOLLOWING, .ahead = 2};
    scope_metrics_set(&view, clock_now());
    assert_shown("report_scheduler_leader{scope=\"main\"} 0\n");
    assert_shown("report_scheduler_state{scope=\"main\",state=\"FOLLOWING\"} 1\n");
    assert_shown("report_scheduler_state{scope=\"main\",state=\"ACTIVE\"} 0\n");
    assert_shown("report_scheduler_candidates_ahead{scope=\"main\"} 2\n");
    assert_not_shown("report_scheduler_generation{");
    assert_not_shown("loop=\"relay\"");
}

static void test_relays_one_after_the_other_add_up(void **state)
{
    (void)state;
    struct relay_snapshot none = {.published = 0};
    struct relay_snapshot first = {.published = 10, .deleted = 9, .in_flight = 4};
    struct relay_snapshot more = {.published = 15, .deleted = 15, .kafka_reachable = true};
    relay_metrics_add("main", &none, &first);
    assert_shown("report_scheduler_relay_in_flight{scope=\"main\"} 4\n");
    relay_metrics_add("main", &first, &more);
    relay_metrics_end("main");
    relay_metrics_add("main", &none, &first);
    assert_shown("report_scheduler_relay_published_total{scope=\"main\"} 25\n");
    relay_metrics_end("main");
    assert_not_shown("report_scheduler_relay_in_flight");
}

static void test_gap_counts_its_firings_by_reason(void **state)
{
    (void)state;
    const struct planned_gap gaps[] = {{.firings = 100, .reason = GAP_MISFIRE_AGE},
                                       {.firings = 3, .reason = GAP_MISFIRE_LATEST},
                                       {.firings = 4, .reason = GAP_MISFIRE_LATEST}};
    scope_metrics_gaps("main", gaps, 1, 3);
    assert_shown(
        "report_scheduler_gap_firings_total{scope=\"main\",reason=\"misfire_latest\"} 7\n");
    assert_not_shown("misfire_age");
}

static void test_figure_of_a_newer_schema_has_no_family_and_no_counter_can_be_set(void **state)
{
    (void)state;
    assert_string_equal(scheduler_figure_family("due_lag_seconds")->name,
                        "report_scheduler_due_lag_seconds");
    assert_null(scheduler_figure_family("something_new"));
    assert_null(scheduler_figure_family("planned_total"));
}

/* The reference -------------------------------------------------------------------------------- */

static void blocks_print(FILE *to)
{
    (void)fputs("## Of both daemons\n\n", to);
    metrics_print_reference(PROCESS_FAMILIES, PROCESS_METRICS, to);
    (void)fputs("\n## Of report-scheduler\n\n", to);
    scheduler_metrics_print(to);
    (void)fputs("\n## Of report-worker\n\n", to);
    worker_metrics_print(to);
}

static void test_reference_page_is_what_the_code_says(void **state)
{
    (void)state;
    static char page_text[65536];
    char *expected = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&expected, &size);
    blocks_print(to);
    assert_int_equal(fclose(to), 0);
    FILE *f = fopen(TEST_SOURCE_DIR "/../docs/metrics.md", "r");
    size_t n = f == NULL ? 0 : fread(page_text, 1, sizeof page_text - 1, f);
    page_text[n] = '\0';
    if (f != NULL) {
        (void)fclose(f);
    }
    const char *tail = strstr(page_text, "## Of both daemons\n");
    if (tail == NULL || strcmp(tail, expected) != 0) {
        f = fopen(TEST_BINARY_DIR "/metrics-reference.md", "w");
        assert_non_null(f);
        (void)fputs(expected, f);
        (void)fclose(f);
        free(expected);
        fail_msg("docs/metrics.md is stale: put " TEST_BINARY_DIR "/metrics-reference.md in place "
                 "of everything from \"## Of both daemons\" on");
    }
    free(expected);
}

static void check_family(const struct metric_family *f)
{
    bool total = strlen(f->name) > 6 && strcmp(f->name + strlen(f->name) - 6, "_total") == 0;
    assert_non_null(f->help);
    if (total != (f->kind == METRIC_COUNTER)) {
        fail_msg("%s: counters, and only they, end in _total", f->name);
    }
    if ((f->kind == METRIC_HISTOGRAM) != (f->bounds != NULL)) {
        fail_msg("%s: histograms, and only they, have bounds", f->name);
    }
    for (size_t i = 1; i < f->bound_count; i++) {
        assert_true(f->bounds[i] > f->bounds[i - 1]);
    }
    assert_true(f->bound_count <= METRIC_BOUNDS_MAX);
}

static void test_families_keep_the_conventions(void **state)
{
    (void)state;
    for (size_t i = 0; i < PROCESS_METRICS; i++) {
        check_family(&PROCESS_FAMILIES[i]);
    }
    for (size_t i = 0; i < SCHEDULER_METRICS; i++) {
        check_family(&SCHEDULER_FAMILIES[i]);
    }
    for (size_t i = 0; i < WORKER_METRICS; i++) {
        check_family(&WORKER_FAMILIES[i]);
    }
}

#define TEST(function) cmocka_unit_test_setup(function, set_up)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_statement_is_named_by_the_function_it_calls),
        TEST(test_statement_without_a_function_is_named_by_its_table_or_is_other),
        TEST(test_failed_call_is_measured_and_counted_by_status),
        TEST(test_process_tells_of_itself),
        TEST(test_leadership_is_counted_with_its_preparation_and_its_end),
        TEST(test_ordered_stop_is_counted_once_although_it_takes_two_steps),
        TEST(test_follower_shows_its_state_and_no_relay),
        TEST(test_relays_one_after_the_other_add_up),
        TEST(test_gap_counts_its_firings_by_reason),
        TEST(test_figure_of_a_newer_schema_has_no_family_and_no_counter_can_be_set),
        TEST(test_reference_page_is_what_the_code_says),
        TEST(test_families_keep_the_conventions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
