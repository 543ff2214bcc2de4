/* Dates of a recurrence rule: which days of a month match. */
#include "rrule_inside.h"

#include "value_set.h"

#define WEEK ((uint64_t)0x7f)

/* A month at hand. */
struct month {
    int64_t first; /* day number */
    int32_t year, month;
    int32_t first_weekday;
    int32_t last_day;
    uint32_t all; /* its days */
};

static bool ordinals_has(const uint64_t words[RRULE_ORDINAL_WORDS], int value)
{
    return value >= 0 && value < 64 * RRULE_ORDINAL_WORDS && set_has(words[value / 64], value % 64);
}

/* Seven days from a day of the month on, which may be before the first. */
static uint32_t week_mask(int64_t from)
{
    return (uint32_t)(from >= 0 ? WEEK << from : WEEK >> -from);
}

/* The days that fall on any of these weekdays: a repeated 7-bit pattern, moved so that bit 1 is the
 * weekday of the first. */
static uint32_t weekday_mask(uint8_t weekdays, int32_t first_weekday)
{
    uint64_t pattern = weekdays * (uint64_t)0x2040810204081;
    return (uint32_t)(pattern >> first_weekday << 1);
}

static uint32_t mask_by_day(const struct rrule *r, const struct month *m)
{
    uint32_t mask = r->days;
    for (int n = set_first_from(r->days_from_last, 1); n >= 0 && n <= m->last_day;
         n = set_first_from(r->days_from_last, n + 1)) {
        mask |= (uint32_t)1 << (m->last_day + 1 - n);
    }
    return mask;
}

static uint32_t mask_by_nth_of_year(const struct rrule *r, const struct month *m)
{
    int32_t before = (int32_t)(m->first - civil_days_of(m->year, 1, 1));
    int32_t year_days = civil_year_is_leap(m->year) ? 366 : 365;
    uint32_t mask = 0;
    for (int weekday = 0; weekday < 7; weekday++) {
        if (r->nth_of_year[weekday] == 0 && r->nth_of_year_from_last[weekday] == 0) {
            continue;
        }
        int32_t day = 1 + (weekday - m->first_weekday + 7) % 7;
        int32_t nth = (before + day + 6) / 7;
        int32_t from_last = (year_days - before - day) / 7 + 1;
        for (; day <= m->last_day; day += 7, nth++, from_last--) {
            bool match = set_has(r->nth_of_year[weekday], nth) ||
                         set_has(r->nth_of_year_from_last[weekday], from_last);
            mask |= match ? (uint32_t)1 << day : 0;
        }
    }
    return mask;
}

static uint32_t mask_by_weekday(const struct rrule *r, const struct month *m)
{
    uint32_t mask = weekday_mask(r->weekdays, m->first_weekday);
    if (!r->by_nth) {
        return mask;
    }
    if (r->by_nth_of_year) {
        return mask | mask_by_nth_of_year(r, m);
    }
    for (int n = 0; n < 5; n++) {
        mask |= weekday_mask(r->nth_weekdays[n], m->first_weekday) & week_mask(7 * n + 1);
        mask |= weekday_mask(r->nth_from_last[n], m->first_weekday) &
                week_mask(m->last_day - 6 - 7 * n);
    }
    return mask;
}

static uint32_t mask_by_yearday(const struct rrule *r, const struct month *m)
{
    int before = (int)(m->first - civil_days_of(m->year, 1, 1));
    int year_days = civil_year_is_leap(m->year) ? 366 : 365;
    uint32_t mask = 0;
    for (int day = 1; day <= m->last_day; day++) {
        bool match = ordinals_has(r->yeardays.from_first, before + day) ||
                     ordinals_has(r->yeardays.from_last, year_days + 1 - before - day);
        mask |= match ? (uint32_t)1 << day : 0;
    }
    return mask;
}

static int64_t week_start_of(const struct rrule *r, int64_t day)
{
    return day - (civil_weekday(day) - r->week_start + 7) % 7;
}

/* A week belongs to the year that four or more of its days lie in. */
static bool week_matches(const struct rrule *r, int64_t week_start)
{
    int64_t fourth = week_start + 3;
    int32_t year = civil_date_of(fourth).year;
    int32_t before = (int32_t)(fourth - civil_days_of(year, 1, 1));
    int32_t number = before / 7 + 1;
    int32_t weeks = number + ((civil_year_is_leap(year) ? 365 : 364) - before) / 7;
    return (set_has(r->weeks, number) || set_has(r->weeks_from_last, weeks + 1 - number)) &&
           rrule_ahead(year, r->start_unit, r->interval) == 0;
}

static uint32_t mask_by_weekno(const struct rrule *r, const struct month *m)
{
    uint32_t mask = 0;
    int64_t start = week_start_of(r, m->first);
    for (; start < m->first + m->last_day; start += 7) {
        mask |= week_matches(r, start) ? week_mask(start - m->first + 1) : 0;
    }
    return mask;
}

/* The days that an interval of days ends at. */
static uint32_t mask_by_day_step(const struct rrule *r, const struct month *m)
{
    int64_t start_day = floor_divide(r->start.s, SECONDS_A_DAY);
    uint32_t mask = 0;
    for (int64_t day = 1 + rrule_ahead(m->first, start_day, r->interval); day <= m->last_day;
         day += r->interval) {
        mask |= (uint32_t)1 << day;
    }
    return mask;
}

/* The weeks that an interval of weeks ends at. */
static uint32_t mask_by_week_step(const struct rrule *r, const struct month *m)
{
    int64_t start = week_start_of(r, m->first);
    int64_t ahead = rrule_ahead(rrule_unit_of(r, m->first), r->start_unit, r->interval);
    uint32_t mask = 0;
    for (start += 7 * ahead; start < m->first + m->last_day; start += 7 * (int64_t)r->interval) {
        mask |= week_mask(start - m->first + 1);
    }
    return mask;
}

static uint32_t month_mask(const struct rrule *r, const struct month *m)
{
    uint32_t mask = m->all;
    if (r->by_day) {
        mask &= mask_by_day(r, m);
    }
    if (r->by_weekday) {
        mask &= mask_by_weekday(r, m);
    }
    if (r->by_yearday) {
        mask &= mask_by_yearday(r, m);
    }
    if (r->by_weekno) {
        mask &= mask_by_weekno(r, m);
    }
    if (r->interval > 1 && r->frequency == RRULE_WEEKLY) {
        mask &= mask_by_week_step(r, m);
    }
    if (r->interval > 1 && r->frequency == RRULE_DAILY) {
        mask &= mask_by_day_step(r, m);
    }
    return mask;
}

static struct month month_of(int32_t year, int32_t month)
{
    int64_t first = civil_days_of(year, month, 1);
    int32_t last_day = civil_days_in_month(year, month);
    return (struct month){
        .first = first,
        .year = year,
        .month = month,
        .first_weekday = civil_weekday(first),
        .last_day = last_day,
        .all = (uint32_t)(((uint64_t)2 << last_day) - 2),
    };
}

uint32_t rrule_month_mask(const struct rrule *r, int32_t year, int32_t month)
{
    struct month m = month_of(year, month);
    return month_mask(r, &m);
}

/* How many years ahead the next is that an interval of years ends at. */
static int32_t years_ahead(const struct rrule *r, int32_t year)
{
    if (r->frequency != RRULE_YEARLY || r->interval == 1 || r->by_weekno) {
        return 0;
    }
    return (int32_t)rrule_ahead(year, r->start_unit, r->interval);
}

static bool month_in_step(const struct rrule *r, int32_t year, int32_t month)
{
    return r->frequency != RRULE_MONTHLY || r->interval == 1 ||
           rrule_ahead((int64_t)year * 12 + month - 1, r->start_unit, r->interval) == 0;
}

bool rrule_month_first_from(struct rrule_search *s, struct rrule_month *m)
{
    const struct rrule *r = s->rule;
    int32_t last_year = civil_date_of(s->last_day).year;
    int32_t year = m->year;
    int from = m->month;
    for (; year <= last_year; year++, from = 1) {
        s->steps++;
        int32_t ahead = years_ahead(r, year);
        if (ahead > 0) {
            year += ahead - 1;
            continue;
        }
        for (int month = set_first_from(r->months, from); month >= 0;
             month = set_first_from(r->months, month + 1)) {
            s->steps++;
            if (!month_in_step(r, year, month)) {
                continue;
            }
            struct month at = month_of(year, month);
            uint32_t mask = month_mask(r, &at);
            if (mask != 0) {
                *m = (struct rrule_month){
                    .year = year, .month = month, .first = at.first, .mask = mask};
                return at.first <= s->last_day;
            }
        }
    }
    return false;
}

void rrule_month_advance(struct rrule_month *m)
{
    m->year += m->month / 12;
    m->month = m->month % 12 + 1;
}

int rrule_month_in_step(const struct rrule *r, const struct rrule_month *m, int day)
{
    int64_t date = m->first + day - 1;
    int64_t ahead = 0;
    if (r->interval > 1 && r->frequency == RRULE_MINUTELY) {
        ahead = rrule_ahead(date * 1440, floor_divide(r->start.s, 60), r->interval) / 1440;
    } else if (r->interval > 1 && r->frequency == RRULE_HOURLY) {
        ahead = rrule_ahead(date * 24, floor_divide(r->start.s, 3600), r->interval) / 24;
    }
    return day + ahead > 31 ? -1 : set_first_from(m->mask, (int)(day + ahead));
}
