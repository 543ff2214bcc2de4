#include "fixture_rrule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "fixture_zone.h"

#define DAY_S     86400
#define KEPT_DAYS 47482 /* 1970 to 2099 */
#define SET_MAX   60000 /* times of one unit */

/* ---- evaluation ---- */

static bool list_has(const struct slow_list *l, int value)
{
    for (int i = 0; i < l->count; i++) {
        if (l->items[i] == value) {
            return true;
        }
    }
    return false;
}

/* Does it count from the end at all? To count there is slow. */
static bool list_turns(const struct slow_list *l)
{
    for (int i = 0; i < l->count; i++) {
        if (l->items[i] < 0) {
            return true;
        }
    }
    return false;
}

/* Is the part absent, or does it hold the value? */
static bool list_allows(const struct slow_list *l, int value)
{
    return l->count == 0 || list_has(l, value);
}

/* The C library's word on a day, kept: it is asked often. */
static const struct tm *day_at(int64_t day)
{
    static struct tm kept[KEPT_DAYS];
    struct tm *tm = &kept[day % KEPT_DAYS];
    assert_true(day > 0 && day < KEPT_DAYS);
    if (tm->tm_mday == 0) {
        time_t t = (time_t)(day * DAY_S);
        (void)gmtime_r(&t, tm);
    }
    return tm;
}

/* How many days from this one on, by steps, stay in the same month or year. */
static int steps_in_month(int64_t day, int step)
{
    const struct tm *here = day_at(day);
    int n = 0;
    for (const struct tm *tm = here; tm->tm_mon == here->tm_mon && tm->tm_year == here->tm_year;
         tm = day_at(day)) {
        n++;
        day += step;
    }
    return n;
}

static int steps_in_year(int64_t day, int step)
{
    int year = day_at(day)->tm_year;
    int n = 0;
    for (; day_at(day)->tm_year == year; day += step) {
        n++;
    }
    return n;
}

/* The fourth day of the week that a day lies in: its year is the week's year. */
static int64_t week_fourth(const struct slow_rule *r, int64_t day)
{
    int64_t first = day;
    while (day_at(first)->tm_wday != r->week_start) {
        first--;
    }
    return first + 3;
}

static bool week_allowed(const struct slow_rule *r, int64_t day)
{
    if (r->weeks.count == 0) {
        return true;
    }
    int64_t fourth = week_fourth(r, day);
    return list_has(&r->weeks, steps_in_year(fourth, -7)) ||
           (list_turns(&r->weeks) && list_has(&r->weeks, -steps_in_year(fourth, 7)));
}

static bool weekday_allowed(const struct slow_rule *r, int64_t day, const struct tm *tm)
{
    if (r->weekdays.count == 0) {
        return true;
    }
    bool of_year = r->frequency == SLOW_YEARLY && r->months.count == 0;
    for (int i = 0; i < r->weekdays.count; i++) {
        int n = r->ordinals.items[i];
        if (r->weekdays.items[i] != tm->tm_wday) {
            continue;
        }
        int step = n < 0 ? 7 : -7;
        if (n == 0 ||
            (of_year ? steps_in_year(day, step) : steps_in_month(day, step)) == (n < 0 ? -n : n)) {
            return true;
        }
    }
    return false;
}

/* What the rule does not say comes from the start. */
static bool start_allows(const struct slow_rule *r, const struct tm *tm)
{
    time_t t = (time_t)r->start;
    struct tm start;
    (void)gmtime_r(&t, &start);
    bool says_day = r->weeks.count + r->yeardays.count + r->days.count + r->weekdays.count > 0;
    if (says_day || r->frequency <= SLOW_DAILY) {
        return true;
    }
    switch (r->frequency) {
    case SLOW_WEEKLY:
        return tm->tm_wday == start.tm_wday;
    case SLOW_MONTHLY:
        return tm->tm_mday == start.tm_mday;
    case SLOW_YEARLY:
        return tm->tm_mday == start.tm_mday && (r->months.count > 0 || tm->tm_mon == start.tm_mon);
    case SLOW_MINUTELY:
    case SLOW_HOURLY:
    case SLOW_DAILY:
        return true;
    }
    return true;
}

static bool date_allowed(const struct slow_rule *r, int64_t day)
{
    const struct tm *tm = day_at(day);
    if (!list_allows(&r->months, tm->tm_mon + 1) || !start_allows(r, tm)) {
        return false;
    }
    if (r->days.count > 0 && !list_has(&r->days, tm->tm_mday) &&
        !(list_turns(&r->days) && list_has(&r->days, -steps_in_month(day, 1)))) {
        return false;
    }
    if (r->yeardays.count > 0 && !list_has(&r->yeardays, tm->tm_yday + 1) &&
        !(list_turns(&r->yeardays) && list_has(&r->yeardays, -steps_in_year(day, 1)))) {
        return false;
    }
    return weekday_allowed(r, day, tm) && week_allowed(r, day);
}

static int64_t floored(int64_t a, int64_t b)
{
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/* The number of the unit of FREQ that a time lies in. */
static int64_t unit_number(const struct slow_rule *r, int64_t t)
{
    int64_t day = floored(t, DAY_S);
    switch (r->frequency) {
    case SLOW_MINUTELY:
        return floored(t, 60);
    case SLOW_HOURLY:
        return floored(t, 3600);
    case SLOW_DAILY:
        return day;
    case SLOW_WEEKLY:
        return floored(week_fourth(r, day), 7);
    case SLOW_MONTHLY: {
        const struct tm *tm = day_at(day);
        return (int64_t)tm->tm_year * 12 + tm->tm_mon;
    }
    case SLOW_YEARLY:
        return day_at(r->weeks.count > 0 ? week_fourth(r, day) : day)->tm_year;
    }
    return 0;
}

/* A list under way: the set of the unit at hand, and what has come of the units before. */
struct listing {
    const struct slow_rule *rule;
    int64_t first_unit;
    int64_t unit;
    int64_t set[SET_MAX];
    size_t set_size;
    int64_t *times;
    size_t count, max;
    int left; /* of COUNT; negative: no COUNT */
};

static bool position_allowed(const struct listing *l, size_t index)
{
    const struct slow_list *positions = &l->rule->positions;
    return positions->count == 0 || list_has(positions, (int)index + 1) ||
           list_has(positions, (int)index - (int)l->set_size);
}

static void unit_close(struct listing *l)
{
    const struct slow_rule *r = l->rule;
    for (size_t i = 0; i < l->set_size; i++) {
        int64_t t = l->set[i];
        if (position_allowed(l, i) && t >= r->start && (!r->has_until || t <= r->until) &&
            l->left != 0 && l->count < l->max) {
            l->times[l->count++] = t;
            l->left -= l->left > 0 ? 1 : 0;
        }
    }
    l->set_size = 0;
}

static void time_add(struct listing *l, int64_t t)
{
    int64_t unit = unit_number(l->rule, t);
    if (unit != l->unit) {
        unit_close(l);
        l->unit = unit;
    }
    if ((unit - l->first_unit) % l->rule->interval == 0) {
        assert_true(l->set_size < SET_MAX);
        l->set[l->set_size++] = t;
    }
}

/* Every second of a day is tried, by hours and minutes that may be. */
static void day_add(struct listing *l, int64_t day)
{
    const struct slow_rule *r = l->rule;
    int start_s = (int)(r->start - floored(r->start, DAY_S) * DAY_S);
    for (int hour = 0; hour < 24; hour++) {
        bool of_start = r->hours.count == 0 && r->frequency > SLOW_HOURLY;
        if (!list_allows(&r->hours, hour) || (of_start && hour != start_s / 3600)) {
            continue;
        }
        for (int minute = 0; minute < 60; minute++) {
            of_start = r->minutes.count == 0 && r->frequency > SLOW_MINUTELY;
            if (!list_allows(&r->minutes, minute) || (of_start && minute != start_s / 60 % 60)) {
                continue;
            }
            int64_t t = day * DAY_S + hour * 3600 + minute * 60;
            if (r->seconds.count == 0) {
                time_add(l, t + start_s % 60);
                continue;
            }
            for (int second = 0; second < 60; second++) {
                if (list_has(&r->seconds, second)) {
                    time_add(l, t + second);
                }
            }
        }
    }
}

size_t slow_rule_list(const struct slow_rule *r, int64_t below, int64_t *ret_times, size_t max,
                      int64_t *ret_below)
{
    static struct listing l;
    static const int back[] = {0, 0, 0, 7, 31, 380}; /* to the beginning of the start's unit */
    l.rule = r;
    l.unit = l.first_unit = unit_number(r, r->start);
    l.set_size = l.count = 0;
    l.times = ret_times;
    l.max = max;
    l.left = r->count > 0 ? r->count : -1;
    int64_t day = floored(r->start, DAY_S) - back[r->frequency];
    /* Beyond `below` to the end of the unit: BYSETPOS needs all of it. */
    int64_t last = floored(below, DAY_S) + back[r->frequency];
    for (; day <= last && l.count < max && l.left != 0; day++) {
        if (date_allowed(r, day)) {
            day_add(&l, day);
        }
    }
    unit_close(&l);
    *ret_below = l.count == max ? ret_times[max - 1] : below;
    size_t n = l.count;
    while (n > 0 && ret_times[n - 1] >= *ret_below) {
        n--;
    }
    return n;
}

/* ---- text ---- */

static void text_add(char text[SLOW_TEXT_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void text_add(char text[SLOW_TEXT_MAX], const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text + used, SLOW_TEXT_MAX - used, format, args);
    va_end(args);
    assert_true(n > 0 && (size_t)n < SLOW_TEXT_MAX - used);
}

static void list_write(char text[SLOW_TEXT_MAX], const char *name, const struct slow_list *l)
{
    if (l->count > 0) {
        text_add(text, ";%s=", name);
    }
    for (int i = 0; i < l->count; i++) {
        text_add(text, "%s%d", i == 0 ? "" : ",", l->items[i]);
    }
}

void slow_rule_write(const struct slow_rule *r, char ret_text[SLOW_TEXT_MAX])
{
    static const char *const frequencies[] = {"MINUTELY", "HOURLY",  "DAILY",
                                              "WEEKLY",   "MONTHLY", "YEARLY"};
    static const char *const weekdays[] = {"SU", "MO", "TU", "WE", "TH", "FR", "SA"};
    ret_text[0] = '\0';
    text_add(ret_text, "FREQ=%s", frequencies[r->frequency]);
    if (r->interval != 1) {
        text_add(ret_text, ";INTERVAL=%d", r->interval);
    }
    if (r->week_start != 1) {
        text_add(ret_text, ";WKST=%s", weekdays[r->week_start]);
    }
    if (r->count > 0) {
        text_add(ret_text, ";COUNT=%d", r->count);
    }
    list_write(ret_text, "BYMONTH", &r->months);
    list_write(ret_text, "BYWEEKNO", &r->weeks);
    list_write(ret_text, "BYYEARDAY", &r->yeardays);
    list_write(ret_text, "BYMONTHDAY", &r->days);
    list_write(ret_text, "BYHOUR", &r->hours);
    list_write(ret_text, "BYMINUTE", &r->minutes);
    list_write(ret_text, "BYSECOND", &r->seconds);
    list_write(ret_text, "BYSETPOS", &r->positions);
    for (int i = 0; i < r->weekdays.count; i++) {
        text_add(ret_text, "%s", i == 0 ? ";BYDAY=" : ",");
        if (r->ordinals.items[i] != 0) {
            text_add(ret_text, "%d", r->ordinals.items[i]);
        }
        text_add(ret_text, "%s", weekdays[r->weekdays.items[i]]);
    }
}

/* ---- at random ---- */

static bool one_in(int n)
{
    return fixture_random_in(1, n) == 1;
}

/* Up to `most` numbers of [low, high]. */
static void list_random(struct slow_list *l, int low, int high, int most)
{
    l->count = fixture_random_in(1, most);
    for (int i = 0; i < l->count; i++) {
        l->items[i] = fixture_random_in(low, high);
    }
}

static void list_turn_some(struct slow_list *l)
{
    for (int i = 0; i < l->count; i++) {
        l->items[i] = one_in(3) ? -l->items[i] : l->items[i];
    }
}

/* Most often one is that of the start, so that something fires soon. */
static void list_anchor(struct slow_list *l, int value)
{
    if (l->count > 0 && !one_in(4)) {
        l->items[0] = value;
    }
}

static void weekdays_random(struct slow_rule *r)
{
    bool numbered = r->frequency >= SLOW_MONTHLY && r->weeks.count == 0;
    bool of_year = r->frequency == SLOW_YEARLY && r->months.count == 0;
    list_random(&r->weekdays, 0, 6, 4);
    r->ordinals.count = r->weekdays.count;
    for (int i = 0; i < r->weekdays.count; i++) {
        bool has = numbered && one_in(2);
        r->ordinals.items[i] = has ? fixture_random_in(1, of_year && one_in(2) ? 53 : 5) : 0;
    }
    list_turn_some(&r->ordinals);
    if (!numbered) {
        list_anchor(&r->weekdays, day_at(floored(r->start, DAY_S))->tm_wday);
    }
}

static void dates_random(struct slow_rule *r)
{
    enum slow_frequency f = r->frequency;
    const struct tm *start = day_at(floored(r->start, DAY_S));
    if (one_in(4)) {
        list_random(&r->months, 1, 12, 4);
        list_anchor(&r->months, start->tm_mon + 1);
    }
    if (f == SLOW_YEARLY && one_in(4)) {
        list_random(&r->weeks, one_in(4) ? 50 : 1, one_in(2) ? 53 : 50, 4);
        list_turn_some(&r->weeks);
    }
    if ((f == SLOW_YEARLY || f <= SLOW_HOURLY) && one_in(6)) {
        list_random(&r->yeardays, 1, 366, SLOW_ITEMS_MAX);
        list_turn_some(&r->yeardays);
        list_anchor(&r->yeardays, start->tm_yday + 1);
    }
    if (f != SLOW_WEEKLY && one_in(4)) {
        list_random(&r->days, 1, 31, 8);
        list_turn_some(&r->days);
        list_anchor(&r->days, start->tm_mday);
    }
    bool needs_day = r->weeks.count > 0 && r->days.count + r->yeardays.count == 0;
    if (needs_day || one_in(f >= SLOW_WEEKLY ? 2 : 4)) {
        weekdays_random(r);
    }
}

static void times_random(struct slow_rule *r)
{
    if (one_in(r->frequency <= SLOW_HOURLY ? 2 : 4)) {
        list_random(&r->hours, 0, 23, 4);
        list_anchor(&r->hours, (int)(r->start % DAY_S / 3600));
    }
    if (one_in(4)) {
        list_random(&r->minutes, 0, 59, r->frequency == SLOW_MINUTELY ? 10 : 3);
    }
    if (one_in(10)) {
        list_random(&r->seconds, 0, 59, 3);
    }
}

static bool has_by_part(const struct slow_rule *r)
{
    return r->months.count + r->weeks.count + r->yeardays.count + r->days.count +
               r->weekdays.count + r->hours.count + r->minutes.count + r->seconds.count >
           0;
}

void slow_rule_random(struct slow_rule *ret_rule, int64_t near)
{
    struct slow_rule r = {.frequency = (enum slow_frequency)fixture_random_in(0, 5)};
    static const int steps[] = {100, 30, 40, 6, 14, 4};
    r.interval = one_in(2) ? 1 : fixture_random_in(1, steps[r.frequency]);
    if (one_in(8) && r.frequency <= SLOW_HOURLY) {
        r.interval = fixture_random_in(1, 3000);
    }
    r.week_start = one_in(2) ? 1 : fixture_random_in(0, 6);
    r.start = near + fixture_random_in(-2 * DAY_S, 2 * DAY_S);
    if (one_in(2)) {
        r.start -= r.start % 1800;
    } else if (!one_in(4)) {
        r.start -= r.start % 60;
    }
    dates_random(&r);
    times_random(&r);
    if (has_by_part(&r) && one_in(4)) {
        list_random(&r.positions, 1, one_in(4) ? 366 : 5, 3);
        list_turn_some(&r.positions);
    }
    *ret_rule = r;
}
