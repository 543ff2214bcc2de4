/* Truncated passes have the outcome of one long pass, whatever the policy, by random cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fixture_subject.h"
#include "fixture_zone.h"
#include "planner.h"

#define SECOND_US INT64_C(1000000)
#define MANY      20000

static struct plan_window window;
static struct planned_firing firings[MANY];
static struct planned_gap gaps[1000];
static struct plan_sink sink;

/* What becomes of each due firing, straight from the definition of the policies. */
struct expected {
    struct firing firing;
    int outcome; /* 0 live, 1 missed and run, 2 + gap_reason */
};

static struct expected expected[MANY];
static int actual[MANY];

static size_t expected_fill(const struct plan_subject *s, enum misfire misfire, utc_us now)
{
    size_t n = 0;
    utc_us after = {s->switched_at.us - 1};
    for (;;) {
        struct firing f = rule_next(s->rule, after);
        if (!f.found || f.at.us > now.us || f.at.us >= s->until.us) {
            break;
        }
        assert_true(n < MANY);
        expected[n++].firing = f;
        after = f.at;
    }
    size_t live = 0;
    for (size_t i = 0; i < n; i++) {
        live += now.us - expected[i].firing.at.us <= s->misfire_grace_us ? 1 : 0;
    }
    size_t missed = n - live;
    for (size_t i = 0; i < n; i++) {
        int64_t age = now.us - expected[i].firing.at.us;
        if (i >= missed) {
            expected[i].outcome = 0;
        } else if (misfire == MISFIRE_SKIP) {
            expected[i].outcome = 2 + GAP_MISFIRE_SKIP;
        } else if (misfire == MISFIRE_RUN_LATEST) {
            expected[i].outcome = live == 0 && i + 1 == missed ? 1 : 2 + GAP_MISFIRE_LATEST;
        } else if (age > s->misfire_age_us) {
            expected[i].outcome = 2 + GAP_MISFIRE_AGE;
        } else {
            bool runs = missed - i <= (size_t)s->misfire_max;
            expected[i].outcome = runs ? 1 : 2 + GAP_MISFIRE_MAX;
        }
    }
    return n;
}

static size_t expected_index(size_t n, utc_us at)
{
    size_t low = 0;
    size_t high = n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (expected[middle].firing.at.us < at.us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    assert_true(low < n && expected[low].firing.at.us == at.us);
    return low;
}

static void outcome_put(size_t index, int outcome)
{
    assert_int_equal(actual[index], -1); /* each firing has exactly one outcome */
    actual[index] = outcome;
}

static void sink_read(size_t n)
{
    for (size_t i = 0; i < sink.firing_count; i++) {
        outcome_put(expected_index(n, firings[i].firing.at),
                    firings[i].cause == PLAN_MISFIRE ? 1 : 0);
    }
    for (size_t i = 0; i < sink.gap_count; i++) {
        size_t from = expected_index(n, gaps[i].from);
        size_t to = expected_index(n, gaps[i].to);
        assert_int_equal(gaps[i].firings, to - from + 1);
        for (size_t k = from; k <= to; k++) {
            outcome_put(k, 2 + (int)gaps[i].reason);
        }
    }
}

static void check_truncation(const struct rule *rule)
{
    static const enum misfire policies[] = {MISFIRE_RUN_ALL, MISFIRE_RUN_LATEST, MISFIRE_SKIP};
    struct plan_subject s = fixture_subject(rule, "2026-10-20T00:00:00Z");
    s.misfire = policies[fixture_random_in(0, 2)];
    s.misfire_max = fixture_random_in(1, 60);
    s.misfire_grace_us = fixture_random_in(1, 90000) * SECOND_US;
    s.misfire_age_us = s.misfire_grace_us + fixture_random_in(0, 10 * 86400) * SECOND_US;
    utc_us now = {s.switched_at.us + fixture_random_in(0, 9 * 86400) * SECOND_US};
    if (fixture_random_in(0, 3) == 0) {
        s.until = (utc_us){now.us - fixture_random_in(0, 86400) * SECOND_US};
    }
    size_t n = expected_fill(&s, s.misfire, now);
    for (size_t i = 0; i < n; i++) {
        actual[i] = -1;
    }
    struct plan_result r = {.more = true};
    for (int pass = 0; r.more; pass++) {
        assert_true(pass < 2 * MANY); /* each pass gets further */
        s.work_max = (size_t)fixture_random_in(1, 200);
        sink = (struct plan_sink){firings, 0, (size_t)fixture_random_in(1, 40),
                                  gaps,    0, PLAN_GAPS_A_SCHEDULE};
        assert_int_equal(plan_schedule(&s, now, 0, &window, &sink, &r, NULL), STATUS_OK);
        sink_read(n);
        if (r.moved) {
            s.last_fire_at = r.last.at;
        }
        assert_true(r.moved || !r.more);
        struct firing next = rule_next(rule, r.moved ? r.last.at : (utc_us){s.switched_at.us - 1});
        assert_true(r.moved || utc_is_none(s.last_fire_at) || r.next.at.us > s.last_fire_at.us);
        if (r.moved) {
            assert_true(next.found == r.next.found && next.at.us == r.next.at.us);
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (actual[i] != expected[i].outcome) {
            fail_msg("firing %zu of %zu: outcome %d, wanted %d", i, n, actual[i],
                     expected[i].outcome);
        }
    }
}

static void test_truncated_passes_have_the_outcome_of_one_long_pass(void **state)
{
    (void)state;
    struct rule rules[] = {
        fixture_cron("* * * * *", "Europe/Berlin"),
        fixture_cron("*/7 * * * *", "America/New_York"),
        fixture_cron("0 * * * *", "Australia/Lord_Howe"),
        fixture_cron("30 2 * * *", "Europe/Berlin"),
        fixture_cron("0 6 * * 1-5", "Asia/Tokyo"),
        fixture_rule("interval", "13 minutes", "UTC", "2026-10-19T23:59:30Z"),
    };
    for (int i = 0; i < 400; i++) {
        check_truncation(&rules[fixture_random_in(0, sizeof rules / sizeof rules[0] - 1)]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_truncated_passes_have_the_outcome_of_one_long_pass),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
