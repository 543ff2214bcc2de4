/* Recurrence rules against an evaluator that shares no code with them (fixture_rrule.h), in zones
 * and near changes of the clock.
 *
 * Usage: unit_test_rrule_fuzz [CASES]        (RS_TEST_SEED: another seed than the fixed one) */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_rrule.h"
#include "fixture_zone.h"
#include "rrule_inside.h"

#define TIMES_MAX   1500
#define DATES_MAX   4
#define FIRINGS_MAX (2 * (TIMES_MAX + DATES_MAX))
#define CATCH_UP_S  (3 * 3600)

static long walked_cases = 20000;

/* A firing as the slow side sees it. */
struct slow_firing {
    int64_t at, nominal;
    bool both;
};

/* One case: the rule, its lists and zone, and what comes of them before `cutoff`. */
struct walk {
    struct slow_rule rule;
    char text[SLOW_TEXT_MAX + 32];
    const struct zone *zone;
    struct rrule_source source;
    struct local_time exdates[DATES_MAX], rdates[DATES_MAX];
    bool has_until_at;
    int64_t until_at; /* utc_s */
    int64_t times[TIMES_MAX];
    size_t time_count;
    struct slow_firing firings[FIRINGS_MAX];
    size_t firing_count;
    int64_t cutoff; /* utc_s: the list is whole before it */
};

static const char *const ZONES[] = {"America/New_York", "Europe/Berlin",    "Australia/Lord_Howe",
                                    "America/St_Johns", "Pacific/Apia",     "UTC",
                                    "Africa/Cairo",     "America/Santiago", "Europe/Dublin",
                                    "Asia/Kathmandu"};
#define ZONE_COUNT ((int)(sizeof ZONES / sizeof ZONES[0]))

static int64_t random_from(int64_t low, int64_t high)
{
    return low + (int64_t)(fixture_random() % (uint64_t)(high - low + 1));
}

/* ---- the slow side ---- */

static void firing_add(struct walk *w, int64_t at, int64_t nominal, bool both, bool ends)
{
    if (ends && w->has_until_at && at > w->until_at) {
        return;
    }
    assert_true(w->firing_count < FIRINGS_MAX);
    w->firings[w->firing_count++] = (struct slow_firing){at, nominal, both};
}

/* `ends`: UNTIL is for it. */
static void nominal_fire(struct walk *w, int64_t t, bool ends)
{
    struct zone_span span = zone_resolve(w->zone, (struct local_time){t});
    enum dst_overlap_policy overlap = w->source.overlap;
    bool both = overlap == DST_OVERLAP_BOTH;
    switch (span.kind) {
    case LOCAL_UNIQUE:
        firing_add(w, t - span.before, t, false, ends);
        return;
    case LOCAL_GAP:
        if (w->source.gap == DST_GAP_SKIP || span.after - span.before > CATCH_UP_S) {
            return;
        }
        firing_add(w, w->source.gap == DST_GAP_AFTER ? span.transition : t - span.before, t, false,
                   ends);
        return;
    case LOCAL_OVERLAP:
        if (overlap != DST_OVERLAP_SECOND) {
            firing_add(w, t - span.before, t, both, ends);
        }
        if (both || overlap == DST_OVERLAP_SECOND) {
            firing_add(w, t - span.after, t, both, ends);
        }
        return;
    }
}

/* By instant; of one instant the latest nominal time first. */
static int compare_firings(const void *a, const void *b)
{
    const struct slow_firing *x = a;
    const struct slow_firing *y = b;
    if (x->at != y->at) {
        return x->at < y->at ? -1 : 1;
    }
    return x->nominal > y->nominal ? -1 : x->nominal < y->nominal;
}

static bool is_in(const struct local_time *list, size_t count, int64_t t)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].s == t) {
            return true;
        }
    }
    return false;
}

static void firings_make(struct walk *w)
{
    const struct rrule_source *s = &w->source;
    w->firing_count = 0;
    for (size_t i = 0; i < w->time_count; i++) {
        if (!is_in(s->exdates, s->exdate_count, w->times[i])) {
            nominal_fire(w, w->times[i], true);
        }
    }
    for (size_t i = 0; i < s->rdate_count; i++) {
        if (!is_in(s->exdates, s->exdate_count, s->rdates[i].s)) {
            nominal_fire(w, s->rdates[i].s, false);
        }
    }
    qsort(w->firings, w->firing_count, sizeof w->firings[0], compare_firings);
    size_t kept = 0;
    for (size_t i = 0; i < w->firing_count; i++) {
        bool fresh = kept == 0 || w->firings[kept - 1].at != w->firings[i].at;
        if (fresh && w->firings[i].at < w->cutoff) {
            w->firings[kept++] = w->firings[i];
        }
    }
    w->firing_count = kept;
}

/* ---- cases ---- */

static void zone_random(struct walk *w, int64_t *ret_near)
{
    w->zone = fixture_zone(ZONES[fixture_random_in(0, ZONE_COUNT - 1)]);
    int64_t at = random_from(631152000, 2524608000); /* 1990 to 2050 */
    struct zone_change change;
    if (zone_change_after(w->zone, at, &change) && fixture_random_in(0, 3) > 0) {
        at = change.at;
    }
    *ret_near = at + zone_offset_at(w->zone, at);
    w->source.gap = (enum dst_gap_policy)fixture_random_in(DST_GAP_AUTO, DST_GAP_SKIP);
    w->source.overlap =
        (enum dst_overlap_policy)fixture_random_in(DST_OVERLAP_AUTO, DST_OVERLAP_BOTH);
}

/* A time that the rule names, or one near it. */
static int64_t time_near(const struct walk *w)
{
    int64_t t = w->rule.start + random_from(0, 40 * SECONDS_A_DAY);
    if (w->time_count > 0) {
        t = w->times[fixture_random_in(0, (int)(w->time_count < 30 ? w->time_count : 30) - 1)];
    }
    static const int64_t off[] = {0, 0, 0, -1, 1, 1800, -3600, SECONDS_A_DAY};
    t += off[fixture_random_in(0, 7)];
    return t < w->rule.start ? w->rule.start : t;
}

static size_t dates_random(const struct walk *w, struct local_time list[DATES_MAX])
{
    size_t count = fixture_random_in(0, 2) == 0 ? (size_t)fixture_random_in(1, DATES_MAX) : 0;
    for (size_t i = 0; i < count; i++) {
        list[i].s = time_near(w);
    }
    return local_times_sort(list, count);
}

enum until_form {
    FORM_DATE,
    FORM_LOCAL,
    FORM_UTC,
};

static void until_write(struct walk *w, int64_t seconds, enum until_form form)
{
    struct civil_date d = civil_date_of(floor_divide(seconds, SECONDS_A_DAY));
    int clock = (int)(seconds - floor_divide(seconds, SECONDS_A_DAY) * SECONDS_A_DAY);
    char of_day[16] = "";
    if (form != FORM_DATE) {
        (void)snprintf(of_day, sizeof of_day, "T%02d%02d%02d%s", clock / 3600, clock / 60 % 60,
                       clock % 60, form == FORM_UTC ? "Z" : "");
    }
    size_t used = strlen(w->text);
    (void)snprintf(w->text + used, sizeof w->text - used, ";UNTIL=%04d%02d%02d%s", d.year, d.month,
                   d.day, of_day);
}

static void end_random(struct walk *w)
{
    int kind = fixture_random_in(0, 7);
    int64_t t = time_near(w);
    w->has_until_at = false;
    switch (kind) {
    case 0:
        w->rule.count = fixture_random_in(1, 20);
        break;
    case 1:
        w->rule.has_until = true;
        w->rule.until = t;
        break;
    case 2:
        w->rule.has_until = true;
        w->rule.until = (floor_divide(t, SECONDS_A_DAY) + 1) * SECONDS_A_DAY - 1;
        break;
    case 3:
        w->has_until_at = true;
        w->until_at = t - zone_offset_at(w->zone, t);
        break;
    default:
        break;
    }
    slow_rule_write(&w->rule, w->text);
    if (kind == 1) {
        until_write(w, t, FORM_LOCAL);
    } else if (kind == 2) {
        until_write(w, t, FORM_DATE);
    } else if (kind == 3) {
        until_write(w, w->until_at, FORM_UTC);
    }
}

static void walk_make(struct walk *w)
{
    static const int days[] = {3, 20, 150, 300, 750, 2300};
    int64_t near = 0;
    int64_t whole = 0;
    zone_random(w, &near);
    slow_rule_random(&w->rule, near);
    int64_t below = w->rule.start + days[w->rule.frequency] * (int64_t)SECONDS_A_DAY;
    w->time_count = slow_rule_list(&w->rule, below, w->times, TIMES_MAX, &whole);
    w->source.text = w->text;
    w->source.start.s = w->rule.start;
    w->source.exdates = w->exdates;
    w->source.rdates = w->rdates;
    w->source.exdate_count = dates_random(w, w->exdates);
    w->source.rdate_count = dates_random(w, w->rdates);
    end_random(w);
    if (w->rule.count > 0 || w->rule.has_until) {
        w->time_count = slow_rule_list(&w->rule, below, w->times, TIMES_MAX, &whole);
    }
    /* No clock is more than a day off UTC, nor behind the beginning of an overlap. */
    w->cutoff = whole - 2 * (int64_t)SECONDS_A_DAY;
    firings_make(w);
}

static void walk_fail(const struct walk *w, const char *what, int64_t after,
                      const struct slow_firing *want, const struct firing *got)
{
    print_error("%s in %s, gap %d, overlap %d, start %" PRId64 "\n", w->text, zone_name(w->zone),
                (int)w->source.gap, (int)w->source.overlap, w->rule.start);
    for (size_t i = 0; i < w->source.exdate_count; i++) {
        print_error("exdate %" PRId64 "\n", w->exdates[i].s);
    }
    for (size_t i = 0; i < w->source.rdate_count; i++) {
        print_error("rdate %" PRId64 "\n", w->rdates[i].s);
    }
    fail_msg("%s after %" PRId64 ": wanted %" PRId64 " (%" PRId64 "), got %d %" PRId64 " (%" PRId64
             ")",
             what, after, want != NULL ? want->at : -1, want != NULL ? want->nominal : -1,
             got->found, got->found ? utc_seconds(got->at) : -1, got->nominal.s);
}

/* The first firing after an instant, of those that are known; the fast side may know later ones. */
static void next_check(const struct walk *w, const struct rrule *r, int64_t after)
{
    const struct slow_firing *want = NULL;
    for (size_t i = 0; i < w->firing_count && want == NULL; i++) {
        want = w->firings[i].at > after ? &w->firings[i] : NULL;
    }
    int steps = 0;
    struct firing got = rrule_next_counting(r, w->zone, utc_from_seconds(after), &steps);
    bool agrees = want == NULL
                      ? !got.found || utc_seconds(got.at) >= w->cutoff
                      : got.found && utc_seconds(got.at) == want->at &&
                            got.nominal.s == want->nominal && got.offset_in_key == want->both &&
                            got.offset_s == zone_offset_at(w->zone, want->at);
    if (!agrees) {
        walk_fail(w, "next", after, want, &got);
    }
}

static void count_check(const struct walk *w, const struct rrule *r, int64_t after, int64_t before)
{
    int64_t want = 0;
    for (size_t i = 0; i < w->firing_count; i++) {
        want += w->firings[i].at > after && w->firings[i].at < before ? 1 : 0;
    }
    int64_t got = rrule_count(r, w->zone, utc_from_seconds(after), utc_from_seconds(before));
    if (got != want) {
        print_error("counted %" PRId64 " for %" PRId64 " before %" PRId64 "\n", got, want, before);
        walk_fail(w, "count", after, NULL, &(struct firing){.found = false});
    }
}

/* What two rules say of themselves holds for what they fire. */
static void claims_check(const struct walk *w, const struct rrule *r)
{
    for (size_t i = 0; i < w->firing_count; i++) {
        const struct slow_firing *f = &w->firings[i];
        bool same_day =
            i > 0 && f->nominal != f[-1].nominal &&
            floor_divide(f->nominal, SECONDS_A_DAY) == floor_divide(f[-1].nominal, SECONDS_A_DAY);
        if ((same_day && rrule_is_at_most_daily(r)) ||
            (f->nominal % 60 != 0 && !rrule_has_seconds(r))) {
            walk_fail(w, "claim", f->at, f, &(struct firing){.found = false});
        }
    }
}

/* Does it fire within thirty years after all? */
static bool fires_late(const struct walk *w)
{
    static int64_t times[1];
    int64_t whole = 0;
    int64_t below = w->rule.start + 30 * 365 * (int64_t)SECONDS_A_DAY;
    (void)slow_rule_list(&w->rule, below, times, 1, &whole);
    return whole != below;
}

static void walk_check(struct walk *w, int *agreed, int *never)
{
    struct rrule r;
    struct error err = {.text = ""};
    if (rrule_parse(&w->source, &r, &err) != STATUS_OK) {
        size_t kept = 0;
        for (size_t i = 0; i < w->time_count; i++) {
            bool out = is_in(w->exdates, w->source.exdate_count, w->times[i]);
            kept += out || w->has_until_at ? 0 : 1;
        }
        if (strstr(err.text, "never fires") == NULL || kept > 0 ||
            (*never % 40 == 0 && strstr(err.text, "no time within") != NULL && fires_late(w))) {
            print_error("%s\n", err.text);
            walk_fail(w, "parse", 0, NULL, &(struct firing){.found = false});
        }
        ++*never;
        return;
    }
    int64_t after = w->rule.start - 2 * (int64_t)SECONDS_A_DAY;
    for (size_t i = 0; i <= w->firing_count && i < 60; i++) {
        next_check(w, &r, after);
        after = i < w->firing_count ? w->firings[i].at : after;
    }
    int64_t low = w->rule.start - 2 * (int64_t)SECONDS_A_DAY;
    if (w->cutoff > low) {
        for (int i = 0; i < 4; i++) {
            next_check(w, &r, random_from(low, w->cutoff - 1));
            int64_t from = random_from(low, w->cutoff - 1);
            count_check(w, &r, from, random_from(from, w->cutoff));
        }
        count_check(w, &r, low, w->cutoff);
    }
    claims_check(w, &r);
    ++*agreed;
}

static void test_next_and_count_agree_with_a_walk_over_every_second(void **state)
{
    (void)state;
    static struct walk w;
    int agreed = 0;
    int never = 0;
    size_t firings = 0;
    int silent = 0;
    for (long i = 0; i < walked_cases; i++) {
        memset(&w, 0, sizeof w);
        walk_make(&w);
        walk_check(&w, &agreed, &never);
        firings += w.firing_count;
        silent += w.firing_count == 0 ? 1 : 0;
    }
    print_message("%d rules agree in %zu firings, %d never fire, %d not soon\n", agreed, firings,
                  never, silent - never);
    assert_true(agreed > walked_cases / 2);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        walked_cases = strtol(argv[1], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_next_and_count_agree_with_a_walk_over_every_second),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
