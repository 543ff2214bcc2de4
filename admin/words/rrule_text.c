#include "rrule_text.h"

#include <inttypes.h>

#include "value_set.h"

#define ALL_MONTHS  0x1ffe
#define DATES_SHOWN 5 /* of exdates, and of rdates, one by one */

static struct plain_list ordinals_list(const uint64_t words[RRULE_ORDINAL_WORDS])
{
    struct plain_list l = {.count = 0};
    for (int i = 0; i < RRULE_ORDINAL_WORDS; i++) {
        plain_list_add_bits(&l, words[i], 64 * i);
    }
    return l;
}

/* Numbers of something in a period, from its beginning and from its end, and what it is called. */
struct numbered {
    struct plain_list from_first, from_last; /* the latter: 1 is the last */
    const char *noun;
    bool cardinal; /* "days 1 and 15"; otherwise "the 1st and 3rd day" */
};

/* How many phrases it makes. */
static int numbered_phrases(const struct numbered *n)
{
    int last = n->from_last.count == 0 ? 0 : n->from_last.values[0] == 1 ? 1 : 0;
    return (n->from_first.count > 0 ? 1 : 0) + last + (n->from_last.count > last ? 1 : 0);
}

/* "days 1 and 15", "the last day", "the 1st to 3rd day before the last" */
static void add_numbered(struct plain *t, const struct numbered *n, int *done, int count)
{
    if (n->from_first.count > 0) {
        struct plain_list l = n->from_first;
        plain_add_between(t, done, count);
        l.ordinals = !n->cardinal;
        plain_add(t, "%s", n->cardinal ? n->noun : "the ");
        plain_add(t, "%s", !n->cardinal ? "" : l.count > 1 ? "s " : " ");
        plain_add_list(t, &l);
        plain_add(t, "%s%s", n->cardinal ? "" : " ", n->cardinal ? "" : n->noun);
    }
    struct plain_list before = {.ordinals = true};
    for (int i = 0; i < n->from_last.count; i++) {
        if (n->from_last.values[i] == 1) {
            plain_add_between(t, done, count);
            plain_add(t, "the last %s", n->noun);
        } else {
            before.values[before.count++] = n->from_last.values[i] - 1;
        }
    }
    if (before.count > 0) {
        plain_add_between(t, done, count);
        plain_add(t, "the ");
        plain_add_list(t, &before);
        plain_add(t, " %s before the last", n->noun);
    }
}

static void add_all_numbered(struct plain *t, const struct numbered *n)
{
    int done = 0;
    add_numbered(t, n, &done, numbered_phrases(n));
}

/* ---- days ---- */

static struct numbered weekday_numbers(const struct rrule *r, int weekday)
{
    uint64_t first = 0;
    uint64_t last = 0;
    if (r->by_nth && r->by_nth_of_year) {
        first = r->nth_of_year[weekday];
        last = r->nth_of_year_from_last[weekday];
    } else if (r->by_nth) {
        for (int n = 1; n <= 5; n++) {
            first |= (uint64_t)(r->nth_weekdays[n - 1] >> weekday & 1) << n;
            last |= (uint64_t)(r->nth_from_last[n - 1] >> weekday & 1) << n;
        }
    }
    return (struct numbered){.from_first = plain_list_of(first),
                             .from_last = plain_list_of(last),
                             .noun = PLAIN_WEEKDAYS[weekday]};
}

/* "Monday to Friday, the 2nd and 4th Saturday and the last Sunday of the month" */
static void add_weekdays(struct plain *t, const struct rrule *r)
{
    struct plain_list alone = plain_list_of(plain_monday_first(r->weekdays));
    int count = alone.count > 0 ? 1 : 0;
    int done = 0;
    for (int weekday = 0; weekday < 7; weekday++) {
        struct numbered n = weekday_numbers(r, weekday);
        count += numbered_phrases(&n);
    }
    if (alone.count > 0) {
        alone.names = PLAIN_MONDAY_FIRST;
        plain_add_between(t, &done, count);
        plain_add_list(t, &alone);
    }
    for (int weekday = 0; weekday < 7; weekday++) {
        struct numbered n = weekday_numbers(r, weekday);
        add_numbered(t, &n, &done, count);
    }
    if (r->by_nth) {
        plain_add(t, " of the %s", r->by_nth_of_year ? "year" : "month");
    }
}

static void add_weeks(struct plain *t, const struct rrule *r)
{
    const struct numbered weeks = {.from_first = plain_list_of(r->weeks),
                                   .from_last = plain_list_of(r->weeks_from_last),
                                   .noun = "week",
                                   .cardinal = true};
    plain_add(t, ", in ");
    add_all_numbered(t, &weeks);
    plain_add(t, " of the year (weeks begin on %s)", PLAIN_WEEKDAYS[r->week_start]);
}

static void add_dates(struct plain *t, const struct rrule *r)
{
    const char *before = " on ";
    if (r->by_day) {
        const struct numbered days = {.from_first = plain_list_of(r->days),
                                      .from_last = plain_list_of(r->days_from_last),
                                      .noun = "day",
                                      .cardinal = true};
        plain_add(t, "%s", before);
        add_all_numbered(t, &days);
        plain_add(t, " of the month");
        before = " if it is also ";
        t->before_last = " or ";
    }
    if (r->by_yearday) {
        const struct numbered days = {.from_first = ordinals_list(r->yeardays.from_first),
                                      .from_last = ordinals_list(r->yeardays.from_last),
                                      .noun = "day",
                                      .cardinal = true};
        plain_add(t, "%s", before);
        add_all_numbered(t, &days);
        plain_add(t, " of the year");
        before = " if it is also ";
        t->before_last = " or ";
    }
    if (r->by_weekday) {
        plain_add(t, "%s", before);
        add_weekdays(t, r);
    }
    t->before_last = " and ";
    if (r->by_weekno) {
        add_weeks(t, r);
    }
    if (r->months != ALL_MONTHS) {
        struct plain_list months = plain_list_of((uint64_t)r->months >> 1);
        months.names = PLAIN_MONTHS;
        plain_add(t, ", in ");
        plain_add_list(t, &months);
    }
}

/* ---- units ---- */

static void add_start_date(struct plain *t, const struct rrule *r)
{
    char date[DATE_TEXT_MAX];
    date_format(floor_divide(r->start.s, SECONDS_A_DAY), date);
    plain_add(t, "%s", date);
}

static void add_interval(struct plain *t, const struct rrule *r, bool every_day)
{
    static const char *const units[] = {
        "minute of the clock", "hour of the clock", "day", "week", "month", "year"};
    struct civil_date start = civil_date_of(floor_divide(r->start.s, SECONDS_A_DAY));
    if (r->interval == 1) {
        plain_add(t, "%s", every_day ? " every day" : "");
        return;
    }
    plain_add(t, "%s every %" PRIu32 "%s %s counted from ",
              every_day && r->frequency == RRULE_DAILY ? "" : ",", r->interval,
              plain_ordinal_end((int)(r->interval % 1000)), units[r->frequency]);
    switch (r->frequency) {
    case RRULE_MINUTELY:
    case RRULE_HOURLY:
        plain_add_local(t, r->start);
        return;
    case RRULE_DAILY:
        add_start_date(t, r);
        return;
    case RRULE_WEEKLY:
        plain_add(t, "that of ");
        add_start_date(t, r);
        plain_add(t, " (weeks begin on %s)", PLAIN_WEEKDAYS[r->week_start]);
        return;
    case RRULE_MONTHLY:
        plain_add(t, "%s %" PRId32, PLAIN_MONTHS[start.month - 1], start.year);
        return;
    case RRULE_YEARLY:
        plain_add(t, "%" PRId64 "%s", r->start_unit, r->by_weekno ? " (by week numbers)" : "");
        return;
    }
}

/* BYSETPOS, which is resolved already where it picks from a minute. */
static void add_positions(struct plain *t, const struct rrule *r)
{
    static const char *const units[] = {"minute", "hour", "day", "week", "month", "year"};
    if (!r->by_position) {
        return;
    }
    const struct numbered times = {.from_first = ordinals_list(r->positions.from_first),
                                   .from_last = ordinals_list(r->positions.from_last),
                                   .noun = "one"};
    plain_add(t, ", of these times only ");
    add_all_numbered(t, &times);
    plain_add(t, " of each %s", units[r->frequency]);
    if (r->frequency == RRULE_WEEKLY && r->interval == 1) {
        plain_add(t, " (weeks begin on %s)", PLAIN_WEEKDAYS[r->week_start]);
    }
}

/* Does it name each minute, or hour, that its interval comes to, at the second, or minute, of the
 * start? Then the interval says it all. */
static bool interval_is_all(const struct rrule *r)
{
    bool minutely = r->frequency == RRULE_MINUTELY;
    int64_t of_day = r->start.s - floor_divide(r->start.s, SECONDS_A_DAY) * SECONDS_A_DAY;
    bool second = r->seconds == (uint64_t)1 << of_day % 60;
    bool minute = minutely || r->minutes == (uint64_t)1 << of_day / 60 % 60;
    if (r->frequency > RRULE_HOURLY || r->interval == 1 || r->by_position || !second || !minute) {
        return false;
    }
    int64_t unit_s = minutely ? 60 : 3600;
    int64_t day = SECONDS_A_DAY / unit_s;
    int64_t start = of_day / unit_s;
    /* Day by day the interval comes to each value that lies a common divisor away. */
    int64_t step = r->interval;
    for (int64_t a = day; a != 0;) {
        int64_t rest = step % a;
        step = a;
        a = rest;
    }
    for (int64_t at = start % step; at < day; at += step) {
        if (!set_has(r->hours, (int)(at * unit_s / 3600)) ||
            (minutely && !set_has(r->minutes, (int)(at % 60)))) {
            return false;
        }
    }
    return true;
}

/* What it says of hours and minutes, and the days. Returns whether it has named the start. */
static bool add_short_steps(struct plain *t, const struct rrule *r, const struct plain_clock *clock)
{
    bool all = interval_is_all(r);
    bool minutes = r->frequency == RRULE_MINUTELY && r->interval > 1;
    if (!all && (!minutes || plain_clock_is_listed(clock))) {
        return false;
    }
    plain_add(t, "every %" PRIu32 " %s", r->interval, minutes ? "minutes" : "hours");
    if (all) {
        add_dates(t, r);
    }
    plain_add(t, ", counted from ");
    plain_add_local(t, r->start);
    if (!all) {
        plain_add(t, ", where that comes to one of these times: ");
        plain_add_clock(t, clock);
        add_dates(t, r);
    }
    return true;
}

/* ---- beginning, end, single dates ---- */

static void add_ends(struct plain *t, const struct rrule *r, bool started)
{
    char at[RFC3339_TEXT_MAX];
    if (!started) {
        plain_add(t, ", from ");
        plain_add_local(t, r->start);
        plain_add(t, " on");
    }
    if (r->count > 0) {
        plain_add(t, ", %" PRId32 " time%s in all", r->count, r->count == 1 ? "" : "s");
    } else if (r->has_until) {
        rfc3339_format_utc(r->until, at);
        plain_add(t, ", until %s", at);
    } else if (r->last.s != INT64_MAX) {
        plain_add(t, ", until ");
        plain_add_local(t, r->last);
    }
}

static void add_locals(struct plain *t, const char *before, const struct local_time *times,
                       size_t count)
{
    if (count == 0) {
        return;
    }
    plain_add(t, "; %s at ", before);
    if (count > DATES_SHOWN) {
        plain_add(t, "%zu times from ", count);
        plain_add_local(t, times[0]);
        plain_add(t, " to ");
        plain_add_local(t, times[count - 1]);
        return;
    }
    int done = 0;
    for (size_t i = 0; i < count; i++) {
        plain_add_between(t, &done, (int)count);
        plain_add_local(t, times[i]);
    }
}

static void add_times_and_days(struct plain *t, const struct rrule *r,
                               const struct plain_clock *clock)
{
    bool any_day = !r->by_day && !r->by_yearday && !r->by_weekday && !r->by_weekno;
    plain_add_clock(t, clock);
    if (r->frequency == RRULE_DAILY && any_day) {
        add_interval(t, r, true);
        add_dates(t, r);
    } else {
        plain_add(t, "%s", any_day && plain_clock_is_listed(clock) ? " every day" : "");
        add_dates(t, r);
        add_interval(t, r, false);
    }
}

void rrule_text_add(struct plain *t, const struct rrule *r)
{
    if (r->last.s < r->start.s) {
        plain_add(t, "at no time by its parts"); /* the rdates are all there is */
    } else {
        const struct plain_clock clock = {r->hours, r->minutes, r->seconds};
        bool started = add_short_steps(t, r, &clock);
        if (!started) {
            add_times_and_days(t, r, &clock);
        }
        add_positions(t, r);
        add_ends(t, r, started);
    }
    add_locals(t, "not", r->exdates, r->exdate_count);
    add_locals(t, "also", r->rdates, r->rdate_count);
}
