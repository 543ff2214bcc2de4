/* The units of time that BYSETPOS counts within, and what it picks of a set. */
#include "rrule_inside.h"

#include "value_set.h"

#define ORDINAL_MAX 366

static int64_t week_of(const struct rrule *r, int64_t day)
{
    /* Day 0 was a Thursday: weeks begin at the days that are this much more than a multiple of 7.
     */
    return floor_divide(day - (r->week_start + 3) % 7, 7);
}

static int64_t week_first_day(const struct rrule *r, int64_t week)
{
    return week * 7 + (r->week_start + 3) % 7;
}

/* The first day of week 1, the first with four days or more in the year. */
static int64_t week_year_first_day(const struct rrule *r, int64_t year)
{
    return week_first_day(r, week_of(r, civil_days_of((int32_t)year, 1, 4)));
}

int64_t rrule_unit_of(const struct rrule *r, int64_t day)
{
    switch (r->frequency) {
    case RRULE_WEEKLY:
        return week_of(r, day);
    case RRULE_MONTHLY: {
        struct civil_date d = civil_date_of(day);
        return (int64_t)d.year * 12 + d.month - 1;
    }
    case RRULE_YEARLY:
        if (r->by_weekno) {
            return civil_date_of(week_first_day(r, week_of(r, day)) + 3).year;
        }
        return civil_date_of(day).year;
    case RRULE_MINUTELY:
    case RRULE_HOURLY:
    case RRULE_DAILY:
        return day;
    }
    return day;
}

int64_t rrule_unit_first_day(const struct rrule *r, int64_t unit)
{
    switch (r->frequency) {
    case RRULE_WEEKLY:
        return week_first_day(r, unit);
    case RRULE_MONTHLY: {
        int64_t year = floor_divide(unit, 12);
        return civil_days_of((int32_t)year, (int32_t)(unit - year * 12) + 1, 1);
    }
    case RRULE_YEARLY:
        if (r->by_weekno) {
            return week_year_first_day(r, unit);
        }
        return civil_days_of((int32_t)unit, 1, 1);
    case RRULE_MINUTELY:
    case RRULE_HOURLY:
    case RRULE_DAILY:
        return unit;
    }
    return unit;
}

/* Add the days of a month, whose first lies `offset` days behind the unit's first. */
static void unit_add(struct rrule_unit *u, uint32_t month_mask, int64_t offset)
{
    uint64_t days = month_mask >> 1;
    if (offset < 0) {
        u->mask[0] |= days >> -offset;
        return;
    }
    int word = (int)(offset / 64);
    int shift = (int)(offset % 64);
    u->mask[word] |= days << shift;
    if (shift > 32 && word + 1 < RRULE_UNIT_WORDS) {
        u->mask[word + 1] |= days >> (64 - shift);
    }
}

void rrule_unit_fill(const struct rrule *r, int64_t unit, struct rrule_unit *ret_unit)
{
    int64_t first = rrule_unit_first_day(r, unit);
    struct rrule_unit u = {
        .first = first, .days = (int32_t)(rrule_unit_first_day(r, unit + 1) - first), .mask = {0}};
    struct civil_date d = civil_date_of(first);
    int64_t month_first = first - d.day + 1;
    while (month_first < first + u.days) {
        if (set_has(r->months, d.month)) {
            unit_add(&u, rrule_month_mask(r, d.year, d.month), month_first - first);
        }
        month_first += civil_days_in_month(d.year, d.month);
        d.year += d.month / 12;
        d.month = d.month % 12 + 1;
    }
    for (int word = 0; word < RRULE_UNIT_WORDS; word++) {
        int rest = u.days - 64 * word;
        u.mask[word] = rest > 0 ? set_below(u.mask[word], rest) : 0;
        u.size += set_size(u.mask[word]);
    }
    *ret_unit = u;
}

/* Lowest member >= from of a set of 1 to 366, or -1. */
static int ordinals_first_from(const uint64_t words[RRULE_ORDINAL_WORDS], int64_t from)
{
    if (from > ORDINAL_MAX) {
        return -1;
    }
    int bit = (int)(from % 64);
    for (int word = (int)(from / 64); word < RRULE_ORDINAL_WORDS; word++, bit = 0) {
        int found = set_first_from(words[word], bit);
        if (found >= 0) {
            return word * 64 + found;
        }
    }
    return -1;
}

/* Highest member <= to, or -1. */
static int ordinals_last_to(const uint64_t words[RRULE_ORDINAL_WORDS], int64_t to)
{
    int limit = to < ORDINAL_MAX ? (int)to : ORDINAL_MAX;
    for (int word = limit / 64; limit >= 0 && word >= 0; word--) {
        uint64_t part = set_below(words[word], limit - 64 * word + 1);
        if (part != 0) {
            return word * 64 + 63 - __builtin_clzll(part);
        }
    }
    return -1;
}

int64_t rrule_position_first_from(const struct rrule_ordinals *positions, int64_t size,
                                  int64_t from)
{
    if (from >= size) {
        return -1;
    }
    int64_t best = -1;
    int first = ordinals_first_from(positions->from_first, from + 1);
    if (first >= 0 && first <= size) {
        best = first - 1;
    }
    int last = ordinals_last_to(positions->from_last, size - from);
    if (last > 0 && (best < 0 || size - last < best)) {
        best = size - last;
    }
    return best;
}

int64_t rrule_position_count_below(const struct rrule_ordinals *positions, int64_t size,
                                   int64_t below)
{
    int64_t n = 0;
    for (int64_t index = rrule_position_first_from(positions, size, 0); index >= 0 && index < below;
         index = rrule_position_first_from(positions, size, index + 1)) {
        n++;
    }
    return n;
}
