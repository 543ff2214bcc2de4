#include "cron_notes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "nominal.h"

static void note(struct cron_notes *n, const char *format, ...) PRINTF_LIKE(2, 3);

static void note(struct cron_notes *n, const char *format, ...)
{
    if (n->count >= CRON_NOTES_MAX) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(n->text[n->count++], CRON_NOTE_TEXT_MAX, format, arguments);
    va_end(arguments);
}

static int set_size(uint64_t set)
{
    return __builtin_popcountll(set);
}

static void note_days(const struct cron *c, struct cron_notes *n)
{
    if (!c->day_restricted || !c->weekday_restricted || c->both_days) {
        return;
    }
    bool all = (c->days & 0xfffffffe) == 0xfffffffe || c->weekdays == 0x7f;
    note(n,
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
static void note_missing_days(const struct cron *c, struct cron_notes *n)
{
    uint32_t days = set_size(c->days) <= 5 ? c->days : 0;
    days |= c->nearest_weekdays;
    int missing = 0;
    for (int day = 31; day >= 29; day--) {
        missing = (days >> day & 1) != 0 && day > month_days(c, false) ? day : missing;
    }
    if (missing == 29 && month_days(c, true) == 29) {
        note(n, "day 29 of February occurs in leap years only");
    } else if (missing > 0) {
        note(n,
             "not every month that it names has a day %d: those are left out, not moved to "
             "their end; L is the last day",
             missing);
    }
    if (c->nth_weekdays[4] != 0) {
        note(n, "not every month has a 5th of each weekday: months without are left out");
    }
    if (c->nearest_weekdays != 0 || c->last_weekday) {
        note(n, "W means Monday to Friday: holidays are not known to a cron rule");
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

static void note_step(struct cron_notes *n, const char *unit, const char *period, uint64_t set,
                      int values)
{
    int last = 63 - __builtin_clzll(set);
    int rest = values - last;
    note(n, "steps begin again with each %s: after %s %d comes %s 0, %d %s%s later", period, unit,
         last, unit, rest, unit, rest == 1 ? "" : "s");
}

static void note_steps(const struct cron *c, struct cron_notes *n)
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
        note(n,
             "steps begin again with each month: it is not every %d days, day 1 follows the last "
             "one of any month",
             step);
    }
    if (uneven_step((uint64_t)c->months >> 1, 12, 2) > 1) {
        note(n, "steps begin again with each year: January follows whatever comes last");
    }
    if (uneven_step(c->weekdays, 7, 3) > 1) {
        note(n, "steps begin again with each week: Sunday follows whatever comes last");
    }
}

static void note_often(const struct cron *c, struct cron_notes *n)
{
    int times = set_size(c->seconds) * set_size(c->minutes) * set_size(c->hours);
    if (times > 1) {
        note(n, "it fires %d times on each of its days", times);
    }
}

/* "02:30" or "02:30:15" */
struct clock_text {
    char text[16];
};

static struct clock_text clock_text(int64_t local)
{
    struct clock_text t;
    int second = (int)(local - floor_divide(local, SECONDS_A_DAY) * SECONDS_A_DAY);
    int n = snprintf(t.text, sizeof t.text, "%02d:%02d", second / 3600 % 24, second / 60 % 60);
    if (second % 60 != 0) {
        (void)snprintf(t.text + n, sizeof t.text - (size_t)n, ":%02d", second % 60);
    }
    return t;
}

/* One change of the clock, and the first and the last nominal time that it skips or repeats. */
struct affected {
    struct zone_change change;
    int64_t first, last;
};

/* Does the local time [low, high) hold nominal times? */
static bool affected_find(const struct cron *c, int64_t low, int64_t high, struct affected *a)
{
    struct local_time t;
    if (!cron_nominal_from(c, (struct local_time){low}, &t) || t.s >= high) {
        return false;
    }
    a->first = a->last = t.s;
    /* Only whether there are more matters. */
    if (cron_nominal_from(c, (struct local_time){t.s + 1}, &t) && t.s < high) {
        a->last = t.s;
    }
    return true;
}

static void note_gap(const struct cron *c, const struct zone *z, const struct affected *a,
                     struct cron_notes *n)
{
    char date[DATE_TEXT_MAX];
    date_format(floor_divide(a->first, SECONDS_A_DAY), date);
    bool more = a->last > a->first;
    int32_t length = a->change.after - a->change.before;
    struct clock_text first = clock_text(a->first);
    const char *skipped = first.text;
    const char *others = more ? " and others" : "";
    if (length > NOMINAL_CATCH_UP_MAX_S) {
        note(n,
             "on %s the clock of %s skips more than three hours, %s%s among them: that is not "
             "caught up",
             date, zone_name(z), skipped, others);
        return;
    }
    switch (c->gap) {
    case DST_GAP_AUTO:
    case DST_GAP_AFTER:
        note(n, "on %s the clock of %s skips %s%s: it runs once, at %s (dst_gap after)", date,
             zone_name(z), skipped, others, clock_text(a->change.at + a->change.after).text);
        return;
    case DST_GAP_SHIFT:
        note(n, "on %s the clock of %s skips %s%s: it runs at %s%s (dst_gap shift)", date,
             zone_name(z), skipped, others, clock_text(a->first + length).text,
             more ? " and so on" : "");
        return;
    case DST_GAP_SKIP:
        note(n, "on %s the clock of %s skips %s%s: it does not run (dst_gap skip)", date,
             zone_name(z), skipped, others);
        return;
    }
}

static void note_overlap(const struct cron *c, const struct zone *z, const struct affected *a,
                         struct cron_notes *n)
{
    static const char *const words[] = {
        [DST_OVERLAP_AUTO] = "first time only (dst_overlap first)",
        [DST_OVERLAP_FIRST] = "first time only (dst_overlap first)",
        [DST_OVERLAP_SECOND] = "second time only (dst_overlap second)",
        [DST_OVERLAP_BOTH] = "first and the second time (dst_overlap both)",
    };
    char date[DATE_TEXT_MAX];
    date_format(floor_divide(a->first, SECONDS_A_DAY), date);
    note(n, "on %s the clock of %s shows %s%s twice: it runs the %s", date, zone_name(z),
         clock_text(a->first).text, a->last > a->first ? " and others" : "", words[c->overlap]);
}

/* The first gap and the first overlap within two years that touch it. A job that follows the clock
 * through all hours loses nothing and repeats nothing that anyone would ask about. */
static void note_changes(const struct cron *c, const struct zone *z, utc_us from,
                         struct cron_notes *n)
{
    if (set_size(c->hours) == 24 && c->gap == DST_GAP_SKIP && c->overlap == DST_OVERLAP_BOTH) {
        return;
    }
    int64_t end = utc_seconds(from) + CRON_NOTES_AHEAD_S;
    bool gap = false;
    bool overlap = false;
    struct affected a = {.change = {.at = utc_seconds(from)}};
    while (!(gap && overlap) && zone_change_after(z, a.change.at, &a.change) && a.change.at < end) {
        int64_t before = a.change.at + a.change.before;
        int64_t after = a.change.at + a.change.after;
        if (!gap && before < after && affected_find(c, before, after, &a)) {
            note_gap(c, z, &a, n);
            gap = true;
        } else if (!overlap && before > after && affected_find(c, after, before, &a)) {
            note_overlap(c, z, &a, n);
            overlap = true;
        }
    }
}

void cron_notes_make(const struct cron *c, const struct zone *z, utc_us from,
                     struct cron_notes *ret_notes)
{
    ret_notes->count = 0;
    if (!cron_next(c, z, from).found) {
        char at[RFC3339_TEXT_MAX];
        rfc3339_format(from, zone_offset_at(z, utc_seconds(from)), at);
        note(ret_notes, "it does not fire any more after %s in %s", at, zone_name(z));
        return;
    }
    note_days(c, ret_notes);
    note_changes(c, z, from, ret_notes);
    note_missing_days(c, ret_notes);
    note_steps(c, ret_notes);
    note_often(c, ret_notes);
}
