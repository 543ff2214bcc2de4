#include "nominal.h"

/* Nominal order is not the order of instants across a transition, so a search begins this much
 * before `after` when one is near. No overlap is longer than a day (the longest, Kwajalein's of
 * 1969, has 23 h). */
#define LOOK_BACK_S (2 * SECONDS_A_DAY)
#define SPANS_MAX   2048 /* spans of local time that one search may visit; two a year are usual */

/* One search: what is asked, and the earliest instant seen so far with the latest nominal time that
 * falls on it. */
struct search {
    const struct nominal_rule *rule;
    int64_t after;
    bool found;
    int64_t at;
    int64_t nominal;
    bool offset_in_key;
};

static void offer(struct search *s, int64_t at, int64_t nominal, bool offset_in_key)
{
    if (!s->found || at < s->at || (at == s->at && nominal > s->nominal)) {
        s->found = true;
        s->at = at;
        s->nominal = nominal;
        s->offset_in_key = offset_in_key;
    }
}

static bool first_in(const struct nominal_rule *rule, int64_t from, int64_t below,
                     int64_t *ret_time)
{
    int64_t n = 0;
    if (from >= below || !rule->first_from(rule->rule, from, &n) || n >= below) {
        return false;
    }
    *ret_time = n;
    return true;
}

/* The last in [from, below), for stretches of some hours. */
static bool last_in(const struct nominal_rule *rule, int64_t from, int64_t below, int64_t *ret_time)
{
    int64_t last = 0;
    if (!first_in(rule, from, below, &last)) {
        return false;
    }
    /* One lies at `last`, none at or after `none`. */
    int64_t none = below;
    while (none - last > 1) {
        int64_t middle = last + (none - last) / 2;
        int64_t n = 0;
        if (first_in(rule, middle, none, &n)) {
            last = n;
        } else {
            none = middle;
        }
    }
    *ret_time = last;
    return true;
}

/* Within the span the clock runs at `offset`. */
static void offer_running(struct search *s, const struct zone_span *span, int32_t offset)
{
    int64_t low = s->after + 1 + offset;
    int64_t n = 0;
    if (first_in(s->rule, span->start > low ? span->start : low, span->until, &n)) {
        bool both = span->kind == LOCAL_OVERLAP && s->rule->overlap == DST_OVERLAP_BOTH;
        offer(s, n - offset, n, both);
    }
}

static void offer_gap(struct search *s, const struct zone_span *span)
{
    int64_t n = 0;
    if (span->after - span->before > NOMINAL_CATCH_UP_MAX_S) {
        return;
    }
    switch (s->rule->gap) {
    case DST_GAP_SHIFT:
        offer_running(s, span, span->before);
        return;
    case DST_GAP_AFTER:
        if (span->transition > s->after && last_in(s->rule, span->start, span->until, &n)) {
            offer(s, span->transition, n, false);
        }
        return;
    case DST_GAP_AUTO:
    case DST_GAP_SKIP:
        return;
    }
}

static void offer_span(struct search *s, const struct zone_span *span)
{
    switch (span->kind) {
    case LOCAL_UNIQUE:
        offer_running(s, span, span->before);
        return;
    case LOCAL_GAP:
        offer_gap(s, span);
        return;
    case LOCAL_OVERLAP:
        if (s->rule->overlap != DST_OVERLAP_SECOND) {
            offer_running(s, span, span->before);
        }
        if (s->rule->overlap != DST_OVERLAP_FIRST) {
            offer_running(s, span, span->after);
        }
        return;
    }
}

/* No nominal time from `n` on, which lies in `span`, fires earlier than this. */
static int64_t earliest_from(const struct zone_span *span, int64_t n)
{
    return span->kind == LOCAL_GAP ? span->transition : n - span->before;
}

static void search_spans(struct search *s, const struct zone *z, int64_t from, int *steps)
{
    for (int i = 0; i < SPANS_MAX; i++) {
        int64_t n = 0;
        ++*steps;
        if (!s->rule->first_from(s->rule->rule, from, &n)) {
            return;
        }
        struct zone_span span = zone_resolve(z, (struct local_time){n});
        if (s->found && earliest_from(&span, n) > s->at) {
            return;
        }
        offer_span(s, &span);
        if (span.until == INT64_MAX) {
            return;
        }
        from = span.until;
    }
}

struct firing nominal_next(const struct nominal_rule *rule, const struct zone *z, utc_us after,
                           int *steps)
{
    struct search s = {.rule = rule, .after = utc_seconds(after)};
    int64_t local = s.after + zone_offset_at(z, s.after);
    struct zone_span span = zone_resolve(z, (struct local_time){local});
    int64_t n = 0;
    /* Far from any transition the next nominal time is the next firing. */
    if (span.kind == LOCAL_UNIQUE && span.start <= local - NOMINAL_CATCH_UP_MAX_S &&
        first_in(rule, local + 1, span.until, &n)) {
        ++*steps;
        offer(&s, n - span.before, n, false);
    } else {
        search_spans(&s, z, local - LOOK_BACK_S, steps);
    }
    if (!s.found) {
        return (struct firing){.found = false};
    }
    return (struct firing){
        .found = true,
        .at = utc_from_seconds(s.at),
        .nominal = {s.nominal},
        .offset_s = zone_offset_at(z, s.at),
        .offset_in_key = s.offset_in_key,
    };
}

/* The next change of offset whose neighbourhood is not behind `at`, and how far that reaches to
 * either side: within it firings are not one to one with nominal times. */
static bool change_ahead(const struct zone *z, int64_t at, struct zone_change *ret_change,
                         int64_t *ret_reach)
{
    for (int64_t from = at - LOOK_BACK_S; zone_change_after(z, from, ret_change);
         from = ret_change->at) {
        int64_t jump = (int64_t)ret_change->after - ret_change->before;
        *ret_reach = jump < 0 ? -jump : jump;
        if (ret_change->at + *ret_reach > at) {
            return true;
        }
    }
    return false;
}

int64_t nominal_count(const struct nominal_rule *rule, const struct zone *z, utc_us after,
                      utc_us before)
{
    int64_t at = utc_seconds(after);                          /* counted up to and with it */
    int64_t end = -floor_divide(-before.us, MICROS_A_SECOND); /* first second behind */
    int64_t n = 0;
    while (at + 1 < end) {
        struct zone_change change;
        int64_t reach = 0;
        bool changes = change_ahead(z, at, &change, &reach);
        if (!changes || change.at - reach - 1 > at) {
            int64_t calm =
                changes && change.at - reach - 1 < end - 1 ? change.at - reach - 1 : end - 1;
            int32_t offset = zone_offset_at(z, at);
            n += rule->count_in(rule->rule, at + 1 + offset, calm + 1 + offset);
            at = calm;
            continue;
        }
        int steps = 0;
        struct firing f = nominal_next(rule, z, utc_from_seconds(at), &steps);
        if (!f.found || utc_seconds(f.at) >= end) {
            break;
        }
        n++;
        at = utc_seconds(f.at);
    }
    return n;
}
