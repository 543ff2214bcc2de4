/* Times of day of a recurrence rule. */
#include "rrule_inside.h"

#include "value_set.h"

#define HOUR_S 3600

int64_t rrule_ahead(int64_t value, int64_t origin, int64_t step)
{
    int64_t over = (value - origin) % step;
    if (over < 0) {
        over += step;
    }
    return over == 0 ? 0 : step - over;
}

/* The hours of BYHOUR that an interval of hours ends at on this day. */
static uint32_t hours_on(const struct rrule *r, int64_t day)
{
    if (r->frequency != RRULE_HOURLY || r->interval == 1) {
        return r->hours;
    }
    int64_t ahead = rrule_ahead(day * 24, floor_divide(r->start.s, HOUR_S), r->interval);
    return ahead > 23 ? 0 : r->hours & (uint32_t)(r->steps_pattern << ahead);
}

static uint64_t minutes_in(const struct rrule *r, int64_t day, int hour)
{
    if (r->frequency != RRULE_MINUTELY || r->interval == 1) {
        return r->minutes;
    }
    int64_t minute = day * 1440 + (int64_t)hour * 60;
    int64_t ahead = rrule_ahead(minute, floor_divide(r->start.s, 60), r->interval);
    return ahead > 59 ? 0 : r->minutes & r->steps_pattern << ahead;
}

/* ---- within an hour, whose minutes are given ---- */

static int32_t hour_count_below(const struct rrule *r, uint64_t minutes, int32_t below)
{
    int minute = below / 60;
    int32_t n = set_size(set_below(minutes, minute)) * set_size(r->seconds);
    if (minute < 60 && set_has(minutes, minute)) {
        n += set_size(set_below(r->seconds, below % 60));
    }
    return n;
}

static int32_t hour_first_from(const struct rrule *r, uint64_t minutes, int32_t from)
{
    int minute = from / 60;
    if (set_has(minutes, minute)) {
        int second = set_first_from(r->seconds, from % 60);
        if (second >= 0) {
            return minute * 60 + second;
        }
    }
    minute = set_first_from(minutes, minute + 1);
    return minute < 0 ? -1 : minute * 60 + set_first_from(r->seconds, 0);
}

static int32_t hour_nth(const struct rrule *r, uint64_t minutes, int32_t index)
{
    int32_t in_minute = set_size(r->seconds);
    return set_nth(minutes, index / in_minute) * 60 + set_nth(r->seconds, index % in_minute);
}

/* BYSETPOS of an HOURLY rule picks the same ones of every hour. */
static bool hour_has_positions(const struct rrule *r)
{
    return r->by_position && r->frequency == RRULE_HOURLY;
}

static int32_t hour_picked_from(const struct rrule *r, uint64_t minutes, int32_t from)
{
    if (!hour_has_positions(r)) {
        return hour_first_from(r, minutes, from);
    }
    int32_t size = hour_count_below(r, minutes, HOUR_S);
    int64_t index =
        rrule_position_first_from(&r->positions, size, hour_count_below(r, minutes, from));
    return index < 0 ? -1 : hour_nth(r, minutes, (int32_t)index);
}

static int32_t hour_picked_below(const struct rrule *r, uint64_t minutes, int32_t below)
{
    int32_t n = hour_count_below(r, minutes, below);
    if (!hour_has_positions(r)) {
        return n;
    }
    int32_t size = hour_count_below(r, minutes, HOUR_S);
    return (int32_t)rrule_position_count_below(&r->positions, size, n);
}

/* ---- within a day ---- */

int32_t rrule_product_count_below(const struct rrule *r, int32_t below)
{
    int hour = below / HOUR_S;
    int32_t in_hour = set_size(r->minutes) * set_size(r->seconds);
    int32_t n = set_size(set_below(r->hours, hour)) * in_hour;
    if (hour < 24 && set_has(r->hours, hour)) {
        n += hour_count_below(r, r->minutes, below % HOUR_S);
    }
    return n;
}

int32_t rrule_product_nth(const struct rrule *r, int32_t index)
{
    int32_t in_hour = set_size(r->minutes) * set_size(r->seconds);
    return set_nth(r->hours, index / in_hour) * HOUR_S + hour_nth(r, r->minutes, index % in_hour);
}

static bool day_has_positions(const struct rrule *r)
{
    return r->by_position && r->frequency == RRULE_DAILY;
}

int32_t rrule_clock_first_from(const struct rrule *r, int64_t day, int32_t from)
{
    if (day_has_positions(r)) {
        int32_t size = rrule_product_count_below(r, SECONDS_A_DAY);
        int64_t index =
            rrule_position_first_from(&r->positions, size, rrule_product_count_below(r, from));
        return index < 0 ? -1 : rrule_product_nth(r, (int32_t)index);
    }
    uint32_t hours = hours_on(r, day);
    int32_t second = from % HOUR_S;
    int first = from / HOUR_S;
    for (int hour = set_first_from(hours, first); hour >= 0;
         hour = set_first_from(hours, hour + 1)) {
        int32_t in_hour = hour_picked_from(r, minutes_in(r, day, hour), hour == first ? second : 0);
        if (in_hour >= 0) {
            return hour * HOUR_S + in_hour;
        }
    }
    return -1;
}

int32_t rrule_clock_count_below(const struct rrule *r, int64_t day, int32_t below)
{
    if (day_has_positions(r)) {
        int32_t size = rrule_product_count_below(r, SECONDS_A_DAY);
        return (int32_t)rrule_position_count_below(&r->positions, size,
                                                   rrule_product_count_below(r, below));
    }
    if (r->frequency > RRULE_HOURLY) {
        return rrule_product_count_below(r, below);
    }
    uint32_t hours = hours_on(r, day);
    int32_t n = 0;
    for (int hour = set_first_from(hours, 0); hour >= 0 && hour * HOUR_S < below;
         hour = set_first_from(hours, hour + 1)) {
        int32_t part = below - hour * HOUR_S;
        n += hour_picked_below(r, minutes_in(r, day, hour), part < HOUR_S ? part : HOUR_S);
    }
    return n;
}

int32_t rrule_clock_nth(const struct rrule *r, int64_t day, int32_t index)
{
    /* `index` or fewer lie below `low`, more below `high`. */
    int32_t low = 0;
    int32_t high = SECONDS_A_DAY;
    while (high - low > 1) {
        int32_t middle = low + (high - low) / 2;
        if (rrule_clock_count_below(r, day, middle) <= index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
