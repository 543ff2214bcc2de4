#include "cron_notes.h"

#include "value_set.h"

void cron_notes_add_days(const struct cron *c, struct notes *n)
{
    if (!c->day_restricted || !c->weekday_restricted || c->both_days) {
        return;
    }
    bool all = (c->days & 0xfffffffe) == 0xfffffffe || c->weekdays == 0x7f;
    notes_add(
        n,
        "both day fields are restricted: it fires on days that match either%s; with + before the "
        "day of week both must match",
        all ? ", which is every day" : "");
}

/* The shortest and the longest of the months it names; February with 29 days for `longest`. */
static int month_days(const struct cron *c, bool longest)
{
    int found = 0;
    for (int month = 1; month <= 12; month++) {
        int days = civil_days_in_month(longest ? 2028 : 2027, month);
        if ((c->months >> month & 1) != 0 &&
            (found == 0 || (longest ? days > found : days < found))) {
            found = days;
        }
    }
    return found;
}

/* Single days that some of its months do not have. A long list of days is no mistake. */
static void note_missing_days(const struct cron *c, struct notes *n)
{
    uint32_t days = set_size(c->days) <= 5 ? c->days : 0;
    days |= c->nearest_weekdays;
    int missing = 0;
    for (int day = 31; day >= 29; day--) {
        missing = (days >> day & 1) != 0 && day > month_days(c, false) ? day : missing;
    }
    if (missing == 29 && month_days(c, true) == 29) {
        notes_add(n, "day 29 of February occurs in leap years only");
    } else if (missing > 0) {
        notes_add(n,
                  "not every month that it names has a day %d: those are left out, not moved to "
                  "their end; L is the last day",
                  missing);
    }
    if (c->nth_weekdays[4] != 0) {
        notes_add(n, "not every month has a 5th of each weekday: months without are left out");
    }
    if (c->nearest_weekdays != 0 || c->last_weekday) {
        notes_add(n, "W means Monday to Friday: holidays are not known to a cron rule");
    }
}

/* The step of 0, n, 2n, ... to the end of a field, when it does not divide it; otherwise 0. */
static int uneven_step(uint64_t set, int values, int at_least)
{
    if (set_size(set) < at_least || (set & 1) == 0) {
        return 0;
    }
    int step = __builtin_ctzll(set & ~(uint64_t)1);
    uint64_t even = 0;
    for (int v = 0; v < values; v += step) {
        even |= (uint64_t)1 << v;
    }
    return set == even && values % step != 0 ? step : 0;
}

static void note_step(struct notes *n, const char *unit, const char *period, uint64_t set,
                      int values)
{
    int last = 63 - __builtin_clzll(set);
    int rest = values - last;
    notes_add(n, "steps begin again with each %s: after %s %d comes %s 0, %d %s%s later", period,
              unit, last, unit, rest, unit, rest == 1 ? "" : "s");
}

static void note_steps(const struct cron *c, struct notes *n)
{
    if (uneven_step(c->seconds, 60, 2) > 1) {
        note_step(n, "second", "minute", c->seconds, 60);
    }
    if (set_size(c->hours) > 1 && uneven_step(c->minutes, 60, 2) > 1) {
        note_step(n, "minute", "hour", c->minutes, 60);
    }
    if (uneven_step(c->hours, 24, 3) > 1) {
        note_step(n, "hour", "day", c->hours, 24);
    }
    int step = c->days_before_last == 0 ? uneven_step(c->days >> 1, 31, 3) : 0;
    if (step > 1 && !c->weekday_restricted) {
        notes_add(
            n,
            "steps begin again with each month: it is not every %d days, day 1 follows the last "
            "one of any month",
            step);
    }
    if (uneven_step((uint64_t)c->months >> 1, 12, 2) > 1) {
        notes_add(n, "steps begin again with each year: January follows whatever comes last");
    }
    if (uneven_step(c->weekdays, 7, 3) > 1) {
        notes_add(n, "steps begin again with each week: Sunday follows whatever comes last");
    }
}

static void note_often(const struct cron *c, struct notes *n)
{
    int times = set_size(c->seconds) * set_size(c->minutes) * set_size(c->hours);
    if (times > 1) {
        notes_add(n, "it fires %d times on each of its days", times);
    }
}

void cron_notes_add_rest(const struct cron *c, struct notes *n)
{
    note_missing_days(c, n);
    note_steps(c, n);
    note_often(c, n);
}
