#include "enumerate.h"

#include <inttypes.h>
#include <stdio.h>

#define SECOND   INT64_C(1000000)
#define MINUTE   (60 * SECOND)
#define HOUR     (60 * MINUTE)
#define DAY      (24 * HOUR)
#define DAYS_MAX 40

static int64_t floor_to(int64_t t, int64_t unit)
{
    int64_t rest = t % unit;
    return t - (rest < 0 ? rest + unit : rest);
}

struct date {
    int64_t year;
    int month, day; /* from 1 */
};

/* Days since 1970-01-01 of a date, by counting years and months: slow, and plainly right. */
static bool leaps(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in(int64_t year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && leaps(year) ? 29 : days[month - 1];
}

static int64_t year_begins(int64_t year) /* 1970 or later */
{
    int64_t y = year - 1;
    return (year - 1970) * 365 + (y / 4 - y / 100 + y / 400) - (1969 / 4 - 1969 / 100 + 1969 / 400);
}

static struct date date_of(int64_t day)
{
    struct date d = {.year = 1970 + day / 366, .month = 1, .day = 1};
    while (year_begins(d.year + 1) <= day) {
        d.year++;
    }
    int64_t rest = day - year_begins(d.year);
    while (rest >= days_in(d.year, d.month)) {
        rest -= days_in(d.year, d.month);
        d.month++;
    }
    d.day = (int)rest + 1;
    return d;
}

static int weekday_of(int64_t day) /* 0: Sunday; 1970-01-01 was a Thursday */
{
    return (int)((day + 4) % 7);
}

/* The instant 01:00 UTC on the last Sunday of March or October. */
static int64_t change_of(int64_t year, int month)
{
    int64_t day = year_begins(year);
    for (int m = 1; m <= month; m++) {
        day += days_in(year, m);
    }
    day--; /* the last day of the month */
    return (day - weekday_of(day)) * DAY + HOUR;
}

static int64_t offset_at(enum recipe_zone zone, int64_t t)
{
    if (zone == ZONE_UTC) {
        return 0;
    }
    int64_t year = date_of(floor_to(t, DAY) / DAY).year;
    return t >= change_of(year, 3) && t < change_of(year, 10) ? 2 * HOUR : HOUR;
}

/* The instant of a wall time on a day: in a gap the first instant after it, in an overlap the
 * first. */
static int64_t instant_of(enum recipe_zone zone, int64_t wall)
{
    if (zone == ZONE_UTC) {
        return wall;
    }
    int64_t summer = wall - 2 * HOUR, winter = wall - HOUR;
    if (offset_at(zone, summer) == 2 * HOUR) {
        return summer;
    }
    if (offset_at(zone, winter) == HOUR) {
        return winter;
    }
    return floor_to(winter, HOUR); /* the gap is the hour that begins with the change */
}

static bool in_bounds(const struct recipe *r, int64_t t)
{
    return (r->starts_at == HISTORY_NONE || t >= r->starts_at) &&
           (r->ends_at == HISTORY_NONE || t < r->ends_at);
}

static void key_of_wall(const struct recipe *r, int64_t wall, int64_t fire_us, struct due *ret)
{
    struct date d = date_of(floor_to(wall, DAY) / DAY);
    int64_t rest = wall - floor_to(wall, DAY);
    int n = snprintf(ret->key, sizeof ret->key, "%04" PRId64 "-%02d-%02d", d.year, d.month, d.day);
    if (r->kind == RECIPE_DAILY || r->kind == RECIPE_WEEKLY) {
        return;
    }
    size_t used = (size_t)n;
    n = snprintf(ret->key + used, sizeof ret->key - used, "T%02d:%02d", (int)(rest / HOUR),
                 (int)(rest % HOUR / MINUTE));
    used += (size_t)n;
    if (r->kind == RECIPE_INTERVAL) {
        if (r->every_us % MINUTE != 0 || r->anchor_us % MINUTE != 0) {
            n = snprintf(ret->key + used, sizeof ret->key - used, ":%02d",
                         (int)(rest % MINUTE / SECOND));
            used += (size_t)n;
        }
        (void)snprintf(ret->key + used, sizeof ret->key - used, "Z");
        return;
    }
    /* The wall time comes twice: both fire, so the offset tells them apart. */
    int64_t offset = offset_at(r->zone, fire_us);
    if (r->zone == ZONE_BERLIN && (offset_at(r->zone, fire_us - HOUR) == offset + HOUR ||
                                   offset_at(r->zone, fire_us + HOUR) == offset - HOUR)) {
        (void)snprintf(ret->key + used, sizeof ret->key - used, "+%02d:00", (int)(offset / HOUR));
    }
}

static bool interval_after(const struct recipe *r, int64_t after, struct due *ret)
{
    int64_t from = after + 1;
    if (r->starts_at != HISTORY_NONE && r->starts_at > from) {
        from = r->starts_at;
    }
    int64_t n = from <= r->anchor_us ? 0 : (from - r->anchor_us + r->every_us - 1) / r->every_us;
    ret->fire_us = r->anchor_us + n * r->every_us;
    key_of_wall(r, ret->fire_us, ret->fire_us, ret);
    return in_bounds(r, ret->fire_us);
}

/* Offsets are whole hours, so minutes of the local hour are minutes of the UTC hour. */
static bool minutes_after(const struct recipe *r, int64_t after, struct due *ret)
{
    int64_t unit = r->step * MINUTE;
    int64_t t = floor_to(after, unit) + unit;
    if (r->starts_at != HISTORY_NONE && t < r->starts_at) {
        t = floor_to(r->starts_at - 1, unit) + unit;
    }
    ret->fire_us = t;
    key_of_wall(r, t + offset_at(r->zone, t), t, ret);
    return in_bounds(r, t);
}

static bool daily_after(const struct recipe *r, int64_t after, struct due *ret)
{
    int64_t from =
        r->starts_at != HISTORY_NONE && r->starts_at > after + 1 ? r->starts_at : after + 1;
    int64_t first = floor_to(from + offset_at(r->zone, from), DAY) / DAY - 1;
    for (int64_t day = first; day < first + DAYS_MAX; day++) {
        if (r->kind == RECIPE_WEEKLY && weekday_of(day) != r->weekday) {
            continue;
        }
        int64_t wall = day * DAY + r->hour * HOUR + r->minute * MINUTE;
        int64_t t = instant_of(r->zone, wall);
        if (t >= from) {
            ret->fire_us = t;
            key_of_wall(r, wall, t, ret);
            return in_bounds(r, t);
        }
    }
    return false;
}

bool due_after(const struct recipe *r, int64_t after_us, struct due *ret_due)
{
    struct due due = {.fire_us = 0};
    bool found = false;
    switch (r->kind) {
    case RECIPE_INTERVAL:
        found = interval_after(r, after_us, &due);
        break;
    case RECIPE_MINUTES:
        found = minutes_after(r, after_us, &due);
        break;
    case RECIPE_DAILY:
    case RECIPE_WEEKLY:
        found = daily_after(r, after_us, &due);
        break;
    }
    if (found) {
        *ret_due = due;
    }
    return found;
}

int64_t due_count(const struct recipe *r, int64_t from_us, int64_t to_us, int64_t most)
{
    struct due due = {.fire_us = from_us - 1};
    int64_t count = 0;
    while (count < most && due_after(r, due.fire_us, &due) && due.fire_us <= to_us) {
        count++;
    }
    return count;
}

bool due_at(const struct recipe *r, int64_t fire_us, struct due *ret_due)
{
    struct due due = {.fire_us = 0};
    if (!due_after(r, fire_us - 1, &due) || due.fire_us != fire_us) {
        return false;
    }
    *ret_due = due;
    return true;
}
