/* The worked example of docs/schedules.md: an outage, and the rows that each misfire policy makes
 * of it, by the planner's own word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_pass.h"
#include "fixture_subject.h"
#include "fixture_zone.h"
#include "planner.h"

/* "03:00" */
struct clock_text {
    char text[8];
};

static struct clock_text clock_of(utc_us t)
{
    struct clock_text c;
    char text[RFC3339_TEXT_MAX];
    rfc3339_format_utc(t, text);
    (void)snprintf(c.text, sizeof c.text, "%.5s", text + 11);
    return c;
}

static void rows_write(const char *policy, FILE *to)
{
    for (size_t i = 0; i < sink.firing_count; i++) {
        const struct planned_firing *f = &firings[i];
        (void)fprintf(to, "| `%s` | occurrence | %s | %s | %s to %s |\n", policy, f->key,
                      plan_cause_name(f->cause), clock_of(f->window_start).text,
                      clock_of(f->window_end).text);
    }
    for (size_t i = 0; i < sink.gap_count; i++) {
        const struct planned_gap *g = &gaps[i];
        (void)fprintf(to, "| `%s` | gap of %lld | %s to %s | %s | |\n", policy,
                      (long long)g->firings, g->from_key, g->to_key, gap_reason_name(g->reason));
    }
}

/* Fields of a page as a reader sees them. */
static const char *page_read(void)
{
    static char text[131072];
    FILE *f = fopen(TEST_SOURCE_DIR "/../docs/schedules.md", "r");
    assert_non_null(f);
    size_t n = fread(text, 1, sizeof text - 1, f);
    text[n] = '\0';
    assert_int_equal(fclose(f), 0);
    assert_true(n < sizeof text - 1);
    return text;
}

static void test_the_outage_of_the_guide_makes_the_rows_it_shows(void **state)
{
    (void)state;
    static const struct {
        enum misfire misfire;
        const char *name;
    } policies[] = {{MISFIRE_RUN_ALL, "run_all"},
                    {MISFIRE_RUN_LATEST, "run_latest"},
                    {MISFIRE_SKIP, "skip"},
                    {MISFIRE_COALESCE, "coalesce"}};
    char *table = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&table, &size);
    assert_non_null(to);
    struct rule r = fixture_cron("0 * * * *", "UTC");
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        struct plan_subject s = fixture_subject(&r, "2030-04-12T02:00:00Z");
        s.misfire = policies[i].misfire;
        s.last_fire_at = fixture_instant("2030-04-12T02:00:00Z");
        struct plan_result result = plan_at(&s, "2030-04-12T07:30:00Z");
        assert_int_equal(result.next.at.us, fixture_instant("2030-04-12T08:00:00Z").us);
        rows_write(policies[i].name, to);
    }
    assert_int_equal(fclose(to), 0);
    if (strstr(page_read(), table) == NULL) {
        print_error("docs/schedules.md, \"An outage, row by row\", must show:\n%s", table);
        fail();
    }
    free(table);
}

static void
test_a_firing_that_is_less_than_the_grace_late_is_on_time_under_each_policy(void **state)
{
    (void)state;
    struct rule r = fixture_cron("0 * * * *", "UTC");
    for (int misfire = MISFIRE_RUN_ALL; misfire <= MISFIRE_COALESCE; misfire++) {
        struct plan_subject s = fixture_subject(&r, "2030-04-12T02:00:00Z");
        s.misfire = (enum misfire)misfire;
        s.last_fire_at = fixture_instant("2030-04-12T02:00:00Z");
        (void)plan_at(&s, "2030-04-12T07:00:30Z");
        assert_true(sink.firing_count > 0);
        const struct planned_firing *last = &firings[sink.firing_count - 1];
        assert_string_equal(last->key, "2030-04-12T07:00");
        assert_string_equal(plan_cause_name(last->cause), "schedule");
        assert_string_equal(clock_of(last->window_start).text,
                            misfire == MISFIRE_COALESCE ? "02:00" : "06:00");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_outage_of_the_guide_makes_the_rows_it_shows),
        cmocka_unit_test(
            test_a_firing_that_is_less_than_the_grace_late_is_on_time_under_each_policy),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
