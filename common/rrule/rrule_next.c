/* Firings of a recurrence rule: its nominal times without EXDATE and with RDATE, in a zone. */
#include "rrule_inside.h"

#include <stdlib.h>

#include "nominal.h"

#define NO_LIMIT INT64_MAX

/* How many of an ascending list lie before a local time. */
static size_t list_count_below(const struct local_time *list, size_t count, int64_t below)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list[middle].s < below) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_excluded(const struct rrule *r, int64_t time)
{
    size_t i = list_count_below(r->exdates, r->exdate_count, time);
    return i < r->exdate_count && r->exdates[i].s == time;
}

bool rrule_kept_from(void *search, int64_t from, int64_t *ret_time)
{
    struct rrule_search *s = search;
    int64_t n = 0;
    bool found = rrule_nominal_from(s, from, &n);
    while (found && is_excluded(s->rule, n)) {
        found = rrule_nominal_from(s, n + 1, &n);
    }
    if (found) {
        *ret_time = n;
    }
    return found;
}

bool rrule_added_from(void *search, int64_t from, int64_t *ret_time)
{
    const struct rrule *r = ((struct rrule_search *)search)->rule;
    size_t i = list_count_below(r->rdates, r->rdate_count, from);
    while (i < r->rdate_count && is_excluded(r, r->rdates[i].s)) {
        i++;
    }
    if (i == r->rdate_count) {
        return false;
    }
    *ret_time = r->rdates[i].s;
    return true;
}

static int64_t kept_count(void *search, int64_t from, int64_t below)
{
    const struct rrule *r = ((struct rrule_search *)search)->rule;
    struct rrule_search counting = {.rule = r};
    const struct rrule_tally t = {
        .from = from, .below = below, .limit = NO_LIMIT, .steps_max = INT32_MAX};
    int64_t last = 0;
    int64_t n = rrule_nominal_count(&counting, &t, &last);
    for (size_t i = list_count_below(r->exdates, r->exdate_count, from);
         i < r->exdate_count && r->exdates[i].s < below; i++) {
        struct rrule_search s = rrule_search_from(r, r->exdates[i].s);
        int64_t named = 0;
        if (rrule_nominal_from(&s, r->exdates[i].s, &named) && named == r->exdates[i].s) {
            n--;
        }
    }
    return n;
}

static int64_t added_count(void *search, int64_t from, int64_t below)
{
    int64_t n = 0;
    int64_t time = 0;
    for (; rrule_added_from(search, from, &time) && time < below; from = time + 1) {
        n++;
    }
    return n;
}

static struct nominal_rule nominal_of(struct rrule_search *s, bool added)
{
    return (struct nominal_rule){
        .first_from = added ? rrule_added_from : rrule_kept_from,
        .count_in = added ? added_count : kept_count,
        .rule = s,
        .gap = s->rule->gap,
        .overlap = s->rule->overlap,
    };
}

static struct firing kept_next(const struct rrule *r, const struct zone *z, utc_us after,
                               int *steps)
{
    struct rrule_search s = rrule_search_from(r, utc_seconds(after));
    struct nominal_rule kept = nominal_of(&s, false);
    struct firing f = nominal_next(&kept, z, after, &s.steps);
    *steps += s.steps;
    if (f.found && r->has_until && f.at.us > r->until.us) {
        return (struct firing){.found = false};
    }
    return f;
}

static struct firing added_next(const struct rrule *r, const struct zone *z, utc_us after)
{
    struct rrule_search s = {.rule = r};
    struct nominal_rule added = nominal_of(&s, true);
    return nominal_next(&added, z, after, &s.steps);
}

struct firing rrule_next_counting(const struct rrule *r, const struct zone *z, utc_us after,
                                  int *steps)
{
    struct firing kept = kept_next(r, z, after, steps);
    if (r->rdate_count == 0) {
        return kept;
    }
    struct firing added = added_next(r, z, after);
    bool earlier = added.found && (!kept.found || added.at.us < kept.at.us ||
                                   (added.at.us == kept.at.us && added.nominal.s > kept.nominal.s));
    return earlier ? added : kept;
}

struct firing rrule_next(const struct rrule *r, const struct zone *z, utc_us after)
{
    int steps = 0;
    return rrule_next_counting(r, z, after, &steps);
}

int64_t rrule_count(const struct rrule *r, const struct zone *z, utc_us after, utc_us before)
{
    struct rrule_search s = {.rule = r};
    struct nominal_rule kept = nominal_of(&s, false);
    struct nominal_rule added = nominal_of(&s, true);
    utc_us end = utc_from_seconds(civil_days_of(CIVIL_YEAR_MAX + 1, 1, 2) * SECONDS_A_DAY);
    before = before.us < end.us ? before : end;
    s = rrule_search_from(r, utc_seconds(before));
    utc_us last = before;
    if (r->has_until && r->until.us < before.us) {
        last.us = r->until.us + 1;
    }
    int64_t n = nominal_count(&kept, z, after, last);
    if (r->rdate_count == 0) {
        return n;
    }
    n += nominal_count(&added, z, after, before);
    /* What both name is one firing. */
    struct firing f = added_next(r, z, after);
    for (; f.found && f.at.us < before.us; f = added_next(r, z, f.at)) {
        int steps = 0;
        struct firing same = kept_next(r, z, (utc_us){f.at.us - 1}, &steps);
        n -= same.found && same.at.us == f.at.us ? 1 : 0;
    }
    return n;
}

bool rrule_is_at_most_daily(const struct rrule *r)
{
    return r->at_most_daily;
}

bool rrule_has_seconds(const struct rrule *r)
{
    bool has = r->seconds != 1;
    for (size_t i = 0; i < r->rdate_count && !has; i++) {
        has = r->rdates[i].s % 60 != 0;
    }
    return has;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = ((const struct local_time *)a)->s;
    int64_t y = ((const struct local_time *)b)->s;
    return x < y ? -1 : x > y;
}

size_t local_times_sort(struct local_time *times, size_t count)
{
    if (count == 0) {
        return 0;
    }
    qsort(times, count, sizeof times[0], compare_times);
    size_t kept = 1;
    for (size_t i = 1; i < count; i++) {
        if (times[i].s != times[kept - 1].s) {
            times[kept++] = times[i];
        }
    }
    return kept;
}
