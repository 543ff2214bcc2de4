#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metrics.h"

static const double bounds[] = {0.1, 1};
static const struct metric_family jobs = {.name = "t_jobs_total",
                                          .kind = METRIC_COUNTER,
                                          .help = "Jobs.",
                                          .labels = {"scope", "outcome"}};
static const struct metric_family lag = {
    .name = "t_lag_seconds", .kind = METRIC_GAUGE, .help = "Lag.", .labels = {"scope"}};
static const struct metric_family calls = {.name = "t_call_seconds",
                                           .kind = METRIC_HISTOGRAM,
                                           .help = "Calls.",
                                           .bounds = bounds,
                                           .bound_count = 2};

static int set_up(void **state)
{
    (void)state;
    metrics_reset();
    return 0;
}

static void assert_page(const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    struct error err = {.text = ""};
    assert_int_equal(metrics_render(&text, &size, &err), STATUS_OK);
    assert_string_equal(text, expected);
    assert_int_equal(size, strlen(expected));
    free(text);
}

static void test_empty_registry_is_an_empty_page(void **state)
{
    (void)state;
    assert_page("");
}

static void test_same_labels_are_one_series(void **state)
{
    (void)state;
    metric_add(metric_get(&jobs, "main", "failed"), 1);
    metric_add(metric_get(&jobs, "main", "failed"), 2);
    metric_add(metric_get(&jobs, "other", "failed"), 5);
    assert_page("# HELP t_jobs_total Jobs.\n# TYPE t_jobs_total counter\n"
                "t_jobs_total{scope=\"main\",outcome=\"failed\"} 3\n"
                "t_jobs_total{scope=\"other\",outcome=\"failed\"} 5\n");
}

static void test_counter_is_shown_before_its_first_step_and_gauge_is_not(void **state)
{
    (void)state;
    (void)metric_get(&jobs, "main", "failed");
    (void)metric_get(&lag, "main", NULL);
    assert_page("# HELP t_jobs_total Jobs.\n# TYPE t_jobs_total counter\n"
                "t_jobs_total{scope=\"main\",outcome=\"failed\"} 0\n");
}

static void test_cleared_gauge_disappears_until_it_is_set_again(void **state)
{
    (void)state;
    struct metric *m = metric_get(&lag, "main", NULL);
    metric_set(m, 1.5);
    metric_clear(m);
    assert_page("");
    metric_set(m, -0.25);
    assert_page("# HELP t_lag_seconds Lag.\n# TYPE t_lag_seconds gauge\n"
                "t_lag_seconds{scope=\"main\"} -0.25\n");
}

static void test_histogram_counts_into_every_bucket_above(void **state)
{
    (void)state;
    struct metric *m = metric_get(&calls, NULL, NULL);
    metric_observe(m, 0.1); /* a bound belongs to its bucket */
    metric_observe(m, 0.5);
    metric_observe(m, 7);
    assert_page("# HELP t_call_seconds Calls.\n# TYPE t_call_seconds histogram\n"
                "t_call_seconds_bucket{le=\"0.1\"} 1\nt_call_seconds_bucket{le=\"1\"} 2\n"
                "t_call_seconds_bucket{le=\"+Inf\"} 3\nt_call_seconds_sum 7.6\n"
                "t_call_seconds_count 3\n");
}

static void test_families_stand_together_whatever_the_order_of_making(void **state)
{
    (void)state;
    metric_set(metric_get(&lag, "a", NULL), 1);
    metric_add(metric_get(&jobs, "a", "x"), 1);
    metric_set(metric_get(&lag, "b", NULL), 2);
    assert_page("# HELP t_jobs_total Jobs.\n# TYPE t_jobs_total counter\n"
                "t_jobs_total{scope=\"a\",outcome=\"x\"} 1\n"
                "# HELP t_lag_seconds Lag.\n# TYPE t_lag_seconds gauge\n"
                "t_lag_seconds{scope=\"a\"} 1\nt_lag_seconds{scope=\"b\"} 2\n");
}

static void test_large_numbers_keep_their_digits(void **state)
{
    (void)state;
    metric_set(metric_get(&lag, "a", NULL), 1796037210.25);
    metric_set(metric_get(&lag, "b", NULL), 4503599627370497.0); /* a generation, above 2^52 */
    assert_page("# HELP t_lag_seconds Lag.\n# TYPE t_lag_seconds gauge\n"
                "t_lag_seconds{scope=\"a\"} 1796037210.25\n"
                "t_lag_seconds{scope=\"b\"} 4503599627370497\n");
}

static void test_label_value_is_escaped(void **state)
{
    (void)state;
    metric_set(metric_get(&lag, "a\"b\\c\nd", NULL), 1);
    assert_page("# HELP t_lag_seconds Lag.\n# TYPE t_lag_seconds gauge\n"
                "t_lag_seconds{scope=\"a\\\"b\\\\c\\nd\"} 1\n");
}

static void test_full_registry_keeps_what_it_has_and_counts_the_rest(void **state)
{
    (void)state;
    char value[32];
    for (int i = 0; i < METRICS_MAX + 1; i++) { /* two more than there is room for */
        (void)snprintf(value, sizeof value, "s%d", i);
        metric_set(metric_get(&lag, value, NULL), i);
    }
    assert_true(metric_read(metric_get(&lag, "s7", NULL)) == 7);
    char *text = NULL;
    size_t size = 0;
    struct error err = {.text = ""};
    assert_int_equal(metrics_render(&text, &size, &err), STATUS_OK);
    assert_non_null(strstr(text, "\nreport_metrics_dropped_total 2\n"));
    assert_null(strstr(text, value));
    free(text);
}

static void collect_lag(void *context)
{
    int *turns = context;
    metric_set(metric_get(&lag, "now", NULL), ++*turns);
}

static void test_collector_runs_before_each_page_until_it_is_taken_out(void **state)
{
    (void)state;
    int turns = 0;
    assert_int_equal(metrics_collect_from(collect_lag, &turns), STATUS_OK);
    assert_page("# HELP t_lag_seconds Lag.\n# TYPE t_lag_seconds gauge\n"
                "t_lag_seconds{scope=\"now\"} 1\n");
    assert_page("# HELP t_lag_seconds Lag.\n# TYPE t_lag_seconds gauge\n"
                "t_lag_seconds{scope=\"now\"} 2\n");
    metrics_collect_no_more(collect_lag, &turns);
    assert_page("# HELP t_lag_seconds Lag.\n# TYPE t_lag_seconds gauge\n"
                "t_lag_seconds{scope=\"now\"} 2\n");
}

static void test_peeking_makes_no_series_and_sees_only_what_is_shown(void **state)
{
    (void)state;
    double value = -1;
    assert_false(metric_peek(&lag, "main", NULL, &value));
    assert_int_equal(metric_count(&jobs, "main"), 0);
    assert_page("");
    metric_set(metric_get(&lag, "main", NULL), 7);
    metric_add(metric_get(&jobs, "main", "ok"), 1);
    metric_add(metric_get(&jobs, "main", "bad"), 1);
    metric_add(metric_get(&jobs, "other", "bad"), 1);
    assert_true(metric_peek(&lag, "main", NULL, &value));
    assert_true(value > 6.5 && value < 7.5);
    assert_int_equal(metric_count(&jobs, "main"), 2);
    metric_clear(metric_get(&lag, "main", NULL));
    metric_clear(metric_get(&jobs, "main", "ok"));
    assert_false(metric_peek(&lag, "main", NULL, &value));
    assert_int_equal(metric_count(&jobs, "main"), 1);
}

static void test_collectors_are_bounded(void **state)
{
    (void)state;
    int turns = 0;
    for (int i = 0; i < METRICS_COLLECTORS_MAX; i++) {
        assert_int_equal(metrics_collect_from(collect_lag, &turns), STATUS_OK);
    }
    assert_int_equal(metrics_collect_from(collect_lag, &turns), STATUS_FULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_empty_registry_is_an_empty_page, set_up),
        cmocka_unit_test_setup(test_same_labels_are_one_series, set_up),
        cmocka_unit_test_setup(test_counter_is_shown_before_its_first_step_and_gauge_is_not,
                               set_up),
        cmocka_unit_test_setup(test_cleared_gauge_disappears_until_it_is_set_again, set_up),
        cmocka_unit_test_setup(test_histogram_counts_into_every_bucket_above, set_up),
        cmocka_unit_test_setup(test_families_stand_together_whatever_the_order_of_making, set_up),
        cmocka_unit_test_setup(test_collector_runs_before_each_page_until_it_is_taken_out, set_up),
        cmocka_unit_test_setup(test_peeking_makes_no_series_and_sees_only_what_is_shown, set_up),
        cmocka_unit_test_setup(test_collectors_are_bounded, set_up),
        cmocka_unit_test_setup(test_large_numbers_keep_their_digits, set_up),
        cmocka_unit_test_setup(test_label_value_is_escaped, set_up),
        cmocka_unit_test_setup(test_full_registry_keeps_what_it_has_and_counts_the_rest, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
