/* Cron against the slow evaluator: random expressions, zones, instants near their transitions, and
 * policies. The number of cases is the argument (20 000 without one); RS_TEST_SEED is printed and
 * repeats a run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cron_search.h"
#include "cron_slow.h"
#include "fixture_cron.h"
#include "fixture_zone.h"

#define FIRINGS_MAX 40000

static long cases_wanted = 20000;

static struct {
    long cases, firings, in_changes, never, refused;
    int most_steps;
} seen;

static struct slow_firing expected[FIRINGS_MAX];

/* A case as it can be repeated by hand. */
struct fuzz_case {
    char text[CRON_TEXT_MAX];
    struct slow_question q;
    struct cron cron;
};

static void case_fail(const struct fuzz_case *f, const char *what, int64_t wanted, int64_t got)
{
    fail_msg("\"%s\" in %s, gap %d, overlap %d, after %lld: %s: slow %lld, ours %lld", f->text,
             zone_name(f->q.zone), (int)f->q.gap, (int)f->q.overlap, (long long)f->q.after, what,
             (long long)wanted, (long long)got);
}

/* The window: about a transition if there is one, and no longer than what the slow one can do. */
static void window_choose(struct fuzz_case *f, int times_a_day)
{
    const struct zone *z = f->q.zone;
    int64_t length = times_a_day <= 4      ? fixture_random_in(2, 500) * SECONDS_A_DAY
                     : times_a_day <= 100  ? fixture_random_in(1, 6) * SECONDS_A_DAY
                     : times_a_day <= 2000 ? fixture_random_in(3, 30) * (int64_t)3600
                                           : fixture_random_in(1, 4) * (int64_t)1800;
    int64_t begin = civil_days_of(1971, 1, 1) * SECONDS_A_DAY;
    int64_t end = civil_days_of(2120, 1, 1) * SECONDS_A_DAY;
    int64_t t = begin + (int64_t)(fixture_random() % (uint64_t)(end - begin));
    struct zone_change change;
    f->q.reach = 15 * 3600 + 3 * 3600; /* offsets lie within 15 h of UTC */
    if (fixture_random_in(0, 9) > 0 && zone_change_after(z, t, &change)) {
        int64_t before = (int64_t)(fixture_random() % (uint64_t)(length + 1));
        t = change.at - before + fixture_random_in(-2, 2);
        int64_t jump = llabs((int64_t)change.after - change.before);
        f->q.reach += jump > 3 * 3600 ? jump : 0;
    }
    f->q.after = t;
    f->q.until = t + length;
}

static bool case_make(struct fuzz_case *f, struct cron_slow *slow)
{
    struct error err = {.text = ""};
    fixture_cron_text(f->text);
    cron_slow_open(slow, f->text);
    if (cron_parse(f->text, &f->cron, &err) != STATUS_OK) {
        if (strstr(err.text, "crons disagree") != NULL) {
            seen.refused++;
            return false;
        }
        if (strstr(err.text, "never fires") == NULL) {
            fail_msg("\"%s\" was refused: %s", f->text, err.text);
        }
        /* Believed after a look at some years of the cycle, a few of them leap years. */
        int64_t day = civil_days_of(fixture_random_in(1970, 2190), 1, 1);
        for (int64_t end = day + 9 * 366; day < end; day++) {
            if (cron_slow_has_date(slow, day)) {
                fail_msg("\"%s\" does fire on day %lld", f->text, (long long)day);
            }
        }
        seen.never++;
        return false;
    }
    bool follows = cron_slow_follows_clock(slow);
    f->q.cron = slow;
    f->q.zone = fixture_zone(
        zone_set_name(fixture_zones(), fixture_random() % zone_set_count(fixture_zones())));
    enum dst_gap_policy gap = (enum dst_gap_policy)fixture_random_in(DST_GAP_AUTO, DST_GAP_SKIP);
    enum dst_overlap_policy overlap =
        (enum dst_overlap_policy)fixture_random_in(DST_OVERLAP_AUTO, DST_OVERLAP_BOTH);
    cron_set_policies(&f->cron, gap, overlap);
    f->q.gap = gap != DST_GAP_AUTO ? gap : follows ? DST_GAP_SKIP : DST_GAP_AFTER;
    f->q.overlap = overlap != DST_OVERLAP_AUTO ? overlap
                   : follows                   ? DST_OVERLAP_BOTH
                                               : DST_OVERLAP_FIRST;
    window_choose(f, cron_slow_times(slow));
    return true;
}

/* The sweep from `after` to `until`, step by step. */
static void case_sweep(const struct fuzz_case *f, int count)
{
    utc_us after = {f->q.after * MICROS_A_SECOND + fixture_random_in(0, 1) * 999999};
    for (int i = 0; i <= count; i++) {
        int steps = 0;
        struct firing got = cron_search(&f->cron, f->q.zone, after, &steps);
        seen.most_steps = steps > seen.most_steps ? steps : seen.most_steps;
        int64_t at = got.found ? utc_seconds(got.at) : INT64_MAX;
        if (i == count) {
            if (at <= f->q.until) {
                case_fail(f, "one more", -1, at);
            }
            return;
        }
        const struct slow_firing *want = &expected[i];
        if (at != want->at || got.at.us % MICROS_A_SECOND != 0) {
            case_fail(f, "instant", want->at, at);
        }
        if (got.nominal.s != want->nominal) {
            case_fail(f, "nominal", want->nominal, got.nominal.s);
        }
        if (got.offset_s != want->offset || got.offset_in_key != want->offset_in_key) {
            case_fail(f, "offset", want->offset, got.offset_s);
        }
        if (got.at.us <= after.us) {
            case_fail(f, "not later", after.us, got.at.us);
        }
        seen.in_changes += want->at != want->nominal - want->offset || want->offset_in_key ? 1 : 0;
        after = got.at;
    }
}

/* The same from any instant between two firings, and the number of them. */
static void case_jumps(const struct fuzz_case *f, int count)
{
    for (int k = 0; k < 3 && count > 0; k++) {
        int i = (int)(fixture_random() % (uint64_t)count);
        int64_t low = i == 0 ? f->q.after : expected[i - 1].at;
        int64_t from = low + (int64_t)(fixture_random() % (uint64_t)(expected[i].at - low));
        struct firing got = cron_next(&f->cron, f->q.zone, utc_from_seconds(from));
        if (!got.found || utc_seconds(got.at) != expected[i].at ||
            got.nominal.s != expected[i].nominal) {
            case_fail(f, "from between", expected[i].at, got.found ? utc_seconds(got.at) : -1);
        }
    }
    int64_t counted = cron_count(&f->cron, f->q.zone, utc_from_seconds(f->q.after),
                                 utc_from_seconds(f->q.until + 1));
    if (counted != count) {
        case_fail(f, "count", count, counted);
    }
}

static void test_cron_agrees_with_the_slow_evaluator(void **state)
{
    (void)state;
    static struct cron_slow slow;
    static struct fuzz_case f;
    while (seen.cases < cases_wanted) {
        if (!case_make(&f, &slow)) {
            continue;
        }
        int count = cron_slow_firings(&f.q, expected, FIRINGS_MAX);
        assert_in_range(count, 0, FIRINGS_MAX);
        case_sweep(&f, count);
        case_jumps(&f, count);
        seen.cases++;
        seen.firings += count;
    }
    print_message(
        "%ld cases, %ld firings compared, %ld of them moved or doubled by a change of the "
        "clock; %ld texts never fire, %ld were refused; at most %d steps for one\n",
        seen.cases, seen.firings, seen.in_changes, seen.never, seen.refused, seen.most_steps);
    assert_true(seen.firings > 5 * seen.cases && seen.in_changes > seen.cases / 20);
    assert_true(seen.most_steps <= 2000);
}

int main(int count, char **arguments)
{
    if (count > 1) {
        cases_wanted = strtol(arguments[1], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cron_agrees_with_the_slow_evaluator),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
