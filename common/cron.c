#include "cron.h"

#include <string.h>

/* Nominal order is not the order of instants across a transition, so the search begins this much
 * before `after` when one is near. No overlap is longer than a day (the longest, Kwajalein's of
 * 1969, has 23 h). */
#define LOOK_BACK_S (2 * SECONDS_A_DAY)
#define SPANS_MAX   2048 /* spans of local time that one search may visit; two a year are usual */
#define YEARS_AHEAD 400

/* Lowest member >= from, or -1. */
static int set_first_from(uint64_t set, int from)
{
    if (from > 63 || set >> from == 0) {
        return -1;
    }
    return from + __builtin_ctzll(set >> from);
}

/* Highest member < below, or -1. */
static int set_last_below(uint64_t set, int below)
{
    if (below <= 0) {
        return -1;
    }
    uint64_t part = below > 63 ? set : set & (((uint64_t)1 << below) - 1);
    return part == 0 ? -1 : 63 - __builtin_clzll(part);
}

/* First time of day >= from (seconds), or -1. */
static int32_t clock_first_from(const struct cron *c, int32_t from)
{
    int hour = from / 3600;
    int minute = from / 60 % 60;
    int first_second = set_first_from(c->seconds, 0);
    if (hour < 24 && (c->hours >> hour & 1) != 0) {
        if ((c->minutes >> minute & 1) != 0) {
            int second = set_first_from(c->seconds, from % 60);
            if (second >= 0) {
                return hour * 3600 + minute * 60 + second;
            }
        }
        int later = set_first_from(c->minutes, minute + 1);
        if (later >= 0) {
            return hour * 3600 + later * 60 + first_second;
        }
    }
    int later = set_first_from(c->hours, hour + 1);
    return later < 0 ? -1 : later * 3600 + set_first_from(c->minutes, 0) * 60 + first_second;
}

/* Last time of day < below (seconds, at most a day), or -1. */
static int32_t clock_last_below(const struct cron *c, int32_t below)
{
    int32_t last = below - 1;
    if (last < 0) {
        return -1;
    }
    int hour = last / 3600;
    int minute = last / 60 % 60;
    int last_second = set_last_below(c->seconds, 60);
    if ((c->hours >> hour & 1) != 0) {
        if ((c->minutes >> minute & 1) != 0) {
            int second = set_last_below(c->seconds, last % 60 + 1);
            if (second >= 0) {
                return hour * 3600 + minute * 60 + second;
            }
        }
        int earlier = set_last_below(c->minutes, minute);
        if (earlier >= 0) {
            return hour * 3600 + earlier * 60 + last_second;
        }
    }
    int earlier = set_last_below(c->hours, hour);
    return earlier < 0 ? -1 : earlier * 3600 + set_last_below(c->minutes, 60) * 60 + last_second;
}

/* The days of a month that fall on any of these weekdays: a repeated 7-bit pattern, moved so that
 * bit 1 is the weekday of the first. Bits beyond the month are not cleared. */
static uint32_t weekday_mask(uint8_t weekdays, int32_t first_weekday)
{
    uint64_t pattern = weekdays * (uint64_t)0x2040810204081;
    return (uint32_t)(pattern >> first_weekday << 1);
}

/* Day n, or the nearest Monday to Friday within the month. */
static int32_t nearest_weekday(int32_t day, int32_t first_weekday, int32_t last_day)
{
    int32_t weekday = (first_weekday + day - 1) % 7;
    if (weekday == 6) {
        return day > 1 ? day - 1 : day + 2;
    }
    if (weekday == 0) {
        return day < last_day ? day + 1 : day - 2;
    }
    return day;
}

static uint32_t mask_by_day(const struct cron *c, int32_t first_weekday, int32_t last_day)
{
    uint32_t mask = c->days;
    for (int n = set_first_from(c->days_before_last, 0); n >= 0;
         n = set_first_from(c->days_before_last, n + 1)) {
        mask |= n < last_day ? (uint32_t)1 << (last_day - n) : 0;
    }
    for (int n = set_first_from(c->nearest_weekdays, 0); n >= 0;
         n = set_first_from(c->nearest_weekdays, n + 1)) {
        mask |= n <= last_day ? (uint32_t)1 << nearest_weekday(n, first_weekday, last_day) : 0;
    }
    if (c->last_weekday) {
        mask |= (uint32_t)1 << nearest_weekday(last_day, first_weekday, last_day);
    }
    return mask;
}

static uint32_t mask_by_weekday(const struct cron *c, int32_t first_weekday, int32_t last_day)
{
    uint32_t mask = weekday_mask(c->weekdays, first_weekday);
    for (int n = 0; n < 5; n++) {
        if (c->nth_weekdays[n] != 0) {
            mask |= weekday_mask(c->nth_weekdays[n], first_weekday) & (uint32_t)0x7f << (7 * n + 1);
        }
    }
    if (c->last_weekdays != 0) {
        mask |= weekday_mask(c->last_weekdays, first_weekday) & (uint32_t)0x7f << (last_day - 6);
    }
    return mask;
}

/* The days on which the expression fires in a month, bits 1 to 31. */
static uint32_t month_mask(const struct cron *c, int32_t year, int32_t month)
{
    int32_t last_day = civil_days_in_month(year, month);
    uint32_t all = (uint32_t)(((uint64_t)2 << last_day) - 2);
    if (!c->day_restricted && !c->weekday_restricted) {
        return all;
    }
    int32_t first_weekday = civil_weekday(civil_days_of(year, month, 1));
    uint32_t by_day = mask_by_day(c, first_weekday, last_day);
    uint32_t by_weekday = mask_by_weekday(c, first_weekday, last_day);
    if (!c->weekday_restricted) {
        return by_day & all;
    }
    if (!c->day_restricted) {
        return by_weekday & all;
    }
    return (c->both_days ? by_day & by_weekday : by_day | by_weekday) & all;
}

static bool year_matches(const struct cron *c, int32_t year)
{
    if (!c->has_years) {
        return true;
    }
    int32_t n = year - CRON_YEAR_MIN;
    return n >= 0 && year <= CRON_YEAR_MAX && (c->years[n / 64] >> (n % 64) & 1) != 0;
}

/* The first matching date at or after a day. */
static bool date_first_from(const struct cron *c, int64_t day, int64_t *ret_day)
{
    struct civil_date d = civil_date_of(day);
    int32_t last_year = d.year + YEARS_AHEAD;
    int month = d.month;
    int32_t from_day = d.day;
    for (int32_t year = d.year; year <= last_year && year <= CIVIL_YEAR_MAX; year++, month = 1) {
        int next = year_matches(c, year) ? set_first_from(c->months, month) : -1;
        for (; next >= 0; next = set_first_from(c->months, next + 1)) {
            bool here = year == d.year && next == d.month;
            uint32_t mask = month_mask(c, year, next);
            int found = set_first_from(mask, here ? from_day : 1);
            if (found >= 0) {
                *ret_day = civil_days_of(year, next, found);
                return true;
            }
        }
    }
    return false;
}

static bool date_matches(const struct cron *c, int64_t day)
{
    struct civil_date d = civil_date_of(day);
    return year_matches(c, d.year) && (c->months >> d.month & 1) != 0 &&
           (month_mask(c, d.year, d.month) >> d.day & 1) != 0;
}

bool cron_nominal_from(const struct cron *c, struct local_time from, struct local_time *ret_time)
{
    int64_t day = floor_divide(from.s, SECONDS_A_DAY);
    int32_t clock = clock_first_from(c, (int32_t)(from.s - day * SECONDS_A_DAY));
    int64_t found = 0;
    if (!date_first_from(c, clock < 0 ? day + 1 : day, &found)) {
        return false;
    }
    if (found != day) {
        clock = clock_first_from(c, 0);
    }
    ret_time->s = found * SECONDS_A_DAY + clock;
    return true;
}

/* The last nominal time in [from, below), for stretches of some hours. */
static bool nominal_last_in(const struct cron *c, int64_t from, int64_t below, int64_t *ret_time)
{
    int64_t day = floor_divide(below - 1, SECONDS_A_DAY);
    int64_t limit = below - day * SECONDS_A_DAY;
    for (; day * SECONDS_A_DAY + limit > from; day--, limit = SECONDS_A_DAY) {
        int32_t clock = date_matches(c, day) ? clock_last_below(c, (int32_t)limit) : -1;
        if (clock >= 0) {
            int64_t t = day * SECONDS_A_DAY + clock;
            *ret_time = t;
            return t >= from;
        }
    }
    return false;
}

/* The earliest instant seen so far, and the latest nominal time that falls on it. */
struct best {
    bool found;
    int64_t at;
    int64_t nominal;
    bool offset_in_key;
};

static void best_offer(struct best *b, int64_t at, int64_t nominal, bool offset_in_key)
{
    if (!b->found || at < b->at || (at == b->at && nominal > b->nominal)) {
        *b = (struct best){true, at, nominal, offset_in_key};
    }
}

/* Within [low, high) local the clock runs at `offset`: offer the first firing after `after`. */
static void offer_running(const struct cron *c, const struct zone_span *span, int32_t offset,
                          int64_t after, struct best *b)
{
    int64_t low = after + 1 + offset;
    struct local_time n;
    if (!cron_nominal_from(c, (struct local_time){span->start > low ? span->start : low}, &n) ||
        n.s >= span->until) {
        return;
    }
    bool both = span->kind == LOCAL_OVERLAP && c->overlap == DST_OVERLAP_BOTH;
    best_offer(b, n.s - offset, n.s, both);
}

static void offer_gap(const struct cron *c, const struct zone_span *span, int64_t after,
                      struct best *b)
{
    if (span->after - span->before > CRON_CATCH_UP_MAX_S) {
        return;
    }
    if (c->gap == DST_GAP_SHIFT) {
        offer_running(c, span, span->before, after, b);
        return;
    }
    int64_t nominal = 0;
    if (c->gap == DST_GAP_AFTER && span->transition > after &&
        nominal_last_in(c, span->start, span->until, &nominal)) {
        best_offer(b, span->transition, nominal, false);
    }
}

static void offer_span(const struct cron *c, const struct zone_span *span, int64_t after,
                       struct best *b)
{
    switch (span->kind) {
    case LOCAL_UNIQUE:
        offer_running(c, span, span->before, after, b);
        return;
    case LOCAL_GAP:
        offer_gap(c, span, after, b);
        return;
    case LOCAL_OVERLAP:
        if (c->overlap != DST_OVERLAP_SECOND) {
            offer_running(c, span, span->before, after, b);
        }
        if (c->overlap != DST_OVERLAP_FIRST) {
            offer_running(c, span, span->after, after, b);
        }
        return;
    }
}

/* No nominal time from `n` on, which lies in `span`, fires earlier than this. */
static int64_t earliest_from(const struct zone_span *span, int64_t n)
{
    return span->kind == LOCAL_GAP ? span->transition : n - span->before;
}

static struct best search(const struct cron *c, const struct zone *z, int64_t after, int64_t local)
{
    struct best b = {.found = false};
    struct local_time from = {local - LOOK_BACK_S};
    for (int i = 0; i < SPANS_MAX; i++) {
        struct local_time n;
        if (!cron_nominal_from(c, from, &n)) {
            break;
        }
        struct zone_span span = zone_resolve(z, n);
        if (b.found && earliest_from(&span, n.s) > b.at) {
            break;
        }
        offer_span(c, &span, after, &b);
        if (span.until == INT64_MAX) {
            break;
        }
        from.s = span.until;
    }
    return b;
}

struct firing cron_next(const struct cron *c, const struct zone *z, utc_us after)
{
    int64_t after_s = utc_seconds(after);
    int64_t local = after_s + zone_offset_at(z, after_s);
    struct zone_span span = zone_resolve(z, (struct local_time){local});
    struct local_time n;
    struct best b;
    /* Far from any transition the next nominal time is the next firing. */
    if (span.kind == LOCAL_UNIQUE && span.start <= local - CRON_CATCH_UP_MAX_S &&
        cron_nominal_from(c, (struct local_time){local + 1}, &n) && n.s < span.until) {
        b = (struct best){true, n.s - span.before, n.s, false};
    } else {
        b = search(c, z, after_s, local);
    }
    if (!b.found) {
        return (struct firing){.found = false};
    }
    return (struct firing){
        .found = true,
        .at = utc_from_seconds(b.at),
        .nominal = {b.nominal},
        .offset_s = zone_offset_at(z, b.at),
        .offset_in_key = b.offset_in_key,
    };
}

static int64_t set_size(uint64_t set)
{
    return __builtin_popcountll(set);
}

static uint64_t set_below(uint64_t set, int below)
{
    return below > 63 ? set : set & (((uint64_t)1 << below) - 1);
}

/* Times of day < below (seconds, at most a day). */
static int64_t clock_count_below(const struct cron *c, int32_t below)
{
    int hour = below / 3600;
    int minute = below / 60 % 60;
    int64_t in_minute = set_size(c->seconds);
    int64_t n = set_size(set_below(c->hours, hour)) * set_size(c->minutes) * in_minute;
    if (hour < 24 && (c->hours >> hour & 1) != 0) {
        n += set_size(set_below(c->minutes, minute)) * in_minute;
        if ((c->minutes >> minute & 1) != 0) {
            n += set_size(set_below(c->seconds, below % 60));
        }
    }
    return n;
}

/* Nominal times in [from, below). */
static int64_t nominal_count(const struct cron *c, int64_t from, int64_t below)
{
    int64_t n = 0;
    while (from < below) {
        int64_t day = floor_divide(from, SECONDS_A_DAY);
        int64_t end = (day + 1) * SECONDS_A_DAY;
        end = end < below ? end : below;
        if (date_matches(c, day)) {
            n += clock_count_below(c, (int32_t)(end - day * SECONDS_A_DAY)) -
                 clock_count_below(c, (int32_t)(from - day * SECONDS_A_DAY));
        }
        from = end;
    }
    return n;
}

int64_t cron_count(const struct cron *c, const struct zone *z, utc_us after, utc_us before)
{
    int64_t at = utc_seconds(after);                          /* counted up to and with it */
    int64_t end = -floor_divide(-before.us, MICROS_A_SECOND); /* first second behind */
    int64_t n = 0;
    while (at + 1 < end) {
        struct zone_change change;
        bool changes = zone_change_after(z, at - LOOK_BACK_S, &change);
        if (!changes || change.at - LOOK_BACK_S > at) {
            /* No transition is near: each nominal time is one firing. */
            int64_t calm = changes ? change.at - LOOK_BACK_S : end - 1;
            calm = calm < end - 1 ? calm : end - 1;
            int32_t offset = zone_offset_at(z, at);
            n += nominal_count(c, at + 1 + offset, calm + 1 + offset);
            at = calm;
            continue;
        }
        struct firing f = cron_next(c, z, utc_from_seconds(at));
        if (!f.found || utc_seconds(f.at) >= end) {
            break;
        }
        n++;
        at = utc_seconds(f.at);
    }
    return n;
}

void cron_set_policies(struct cron *c, enum dst_gap_policy gap, enum dst_overlap_policy overlap)
{
    if (gap == DST_GAP_AUTO) {
        gap = c->follows_clock ? DST_GAP_SKIP : DST_GAP_AFTER;
    }
    if (overlap == DST_OVERLAP_AUTO) {
        overlap = c->follows_clock ? DST_OVERLAP_BOTH : DST_OVERLAP_FIRST;
    }
    c->gap = gap;
    c->overlap = overlap;
}

bool dst_gap_policy_parse(const char *word, enum dst_gap_policy *ret_policy)
{
    static const char *const words[] = {"auto", "after", "shift", "skip"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0) {
            *ret_policy = (enum dst_gap_policy)i;
            return true;
        }
    }
    return false;
}

bool dst_overlap_policy_parse(const char *word, enum dst_overlap_policy *ret_policy)
{
    static const char *const words[] = {"auto", "first", "second", "both"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0) {
            *ret_policy = (enum dst_overlap_policy)i;
            return true;
        }
    }
    return false;
}

static bool set_has_one(uint64_t set)
{
    return set != 0 && (set & (set - 1)) == 0;
}

bool cron_is_at_most_daily(const struct cron *c)
{
    return set_has_one(c->seconds) && set_has_one(c->minutes) && set_has_one(c->hours);
}

bool cron_has_seconds(const struct cron *c)
{
    return c->seconds != 1;
}
