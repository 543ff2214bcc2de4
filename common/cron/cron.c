#include "cron_search.h"

#include "nominal.h"

/* Lowest member >= from, or -1. */
static int set_first_from(uint64_t set, int from)
{
    if (from > 63 || set >> from == 0) {
        return -1;
    }
    return from + __builtin_ctzll(set >> from);
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

uint32_t cron_month_mask(const struct cron *c, int32_t year, int32_t month)
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

/* Where a search ends, and what it has cost. */
struct effort {
    int32_t last_year;
    int steps;
};

static struct effort effort_from(int64_t day)
{
    int32_t year = civil_date_of(day).year + CRON_YEARS_AHEAD;
    return (struct effort){.last_year = year < CIVIL_YEAR_MAX ? year : CIVIL_YEAR_MAX};
}

/* The first matching date at or after a day. */
static bool date_first_from(const struct cron *c, int64_t day, struct effort *e, int64_t *ret_day)
{
    struct civil_date d = civil_date_of(day);
    int month = d.month;
    int32_t from_day = d.day;
    for (int32_t year = d.year; year <= e->last_year; year++, month = 1, e->steps++) {
        int next = year_matches(c, year) ? set_first_from(c->months, month) : -1;
        for (; next >= 0; next = set_first_from(c->months, next + 1), e->steps++) {
            bool here = year == d.year && next == d.month;
            uint32_t mask = cron_month_mask(c, year, next);
            int found = set_first_from(mask, here ? from_day : 1);
            if (found >= 0) {
                *ret_day = civil_days_of(year, next, found);
                return true;
            }
        }
    }
    return false;
}

bool cron_date_matches(const struct cron *c, int64_t day)
{
    struct civil_date d = civil_date_of(day);
    return year_matches(c, d.year) && (c->months >> d.month & 1) != 0 &&
           (cron_month_mask(c, d.year, d.month) >> d.day & 1) != 0;
}

static bool nominal_from(const struct cron *c, int64_t from, struct effort *e, int64_t *ret_time)
{
    int64_t day = floor_divide(from, SECONDS_A_DAY);
    int32_t clock = clock_first_from(c, (int32_t)(from - day * SECONDS_A_DAY));
    int64_t found = 0;
    if (!date_first_from(c, clock < 0 ? day + 1 : day, e, &found)) {
        return false;
    }
    if (found != day) {
        clock = clock_first_from(c, 0);
    }
    *ret_time = found * SECONDS_A_DAY + clock;
    return true;
}

bool cron_nominal_from(const struct cron *c, struct local_time from, struct local_time *ret_time)
{
    struct effort e = effort_from(floor_divide(from.s, SECONDS_A_DAY));
    return nominal_from(c, from.s, &e, &ret_time->s);
}

/* A rule as nominal.h asks for it. */
struct search {
    const struct cron *cron;
    struct effort effort;
};

static bool search_first_from(void *rule, int64_t from, int64_t *ret_time)
{
    struct search *s = rule;
    return nominal_from(s->cron, from, &s->effort, ret_time);
}

struct firing cron_search(const struct cron *c, const struct zone *z, utc_us after, int *steps)
{
    struct search s = {.cron = c,
                       .effort = effort_from(floor_divide(utc_seconds(after), SECONDS_A_DAY))};
    const struct nominal_rule rule = {
        .first_from = search_first_from, .rule = &s, .gap = c->gap, .overlap = c->overlap};
    struct firing f = nominal_next(&rule, z, after, steps);
    *steps += s.effort.steps;
    return f;
}

struct firing cron_next(const struct cron *c, const struct zone *z, utc_us after)
{
    int steps = 0;
    return cron_search(c, z, after, &steps);
}

static int64_t search_count_in(void *rule, int64_t from, int64_t below)
{
    const struct search *s = rule;
    return cron_nominal_count(s->cron, from, below);
}

int64_t cron_count(const struct cron *c, const struct zone *z, utc_us after, utc_us before)
{
    struct search s = {.cron = c,
                       .effort = effort_from(floor_divide(utc_seconds(before), SECONDS_A_DAY))};
    const struct nominal_rule rule = {.first_from = search_first_from,
                                      .count_in = search_count_in,
                                      .rule = &s,
                                      .gap = c->gap,
                                      .overlap = c->overlap};
    return nominal_count(&rule, z, after, before);
}
