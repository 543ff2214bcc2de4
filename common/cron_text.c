#include "cron_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define TIMES_MAX 6 /* up to so many times of day are listed one by one */

static const char *const MONTHS[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const WEEKDAYS[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};

struct plain {
    char *text;
    size_t used;
    const char *before_last; /* between the last two of a list: " and ", " or " */
};

static void add(struct plain *t, const char *format, ...) PRINTF_LIKE(2, 3);

static void add(struct plain *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(t->text + t->used, CRON_PLAIN_MAX - t->used, format, arguments);
    va_end(arguments);
    /* All sets together list fewer than 500 values of at most 14 bytes, most of them as ranges. */
    t->used += n > 0 ? (size_t)n : 0;
    t->used = t->used < CRON_PLAIN_MAX ? t->used : CRON_PLAIN_MAX - 1;
}

/* Values from `base` on, in ascending order, and what they are called. */
struct list {
    int values[256];
    int count;
    const char *const *names; /* of value 0 on; NULL: numbers */
};

static void list_add_bits(struct list *l, uint64_t bits, int base)
{
    for (; bits != 0; bits &= bits - 1) {
        l->values[l->count++] = base + __builtin_ctzll(bits);
    }
}

static struct list list_of(uint64_t bits)
{
    struct list l = {.count = 0};
    list_add_bits(&l, bits, 0);
    return l;
}

static void add_value(struct plain *t, const struct list *l, int i)
{
    if (l->names != NULL) {
        add(t, "%s", l->names[l->values[i]]);
    } else {
        add(t, "%d", l->values[i]);
    }
}

/* The common difference when there are at least four values and it is 2 or more, otherwise 0. */
static int list_step(const struct list *l)
{
    int step = l->count >= 4 ? l->values[1] - l->values[0] : 0;
    for (int i = 2; i < l->count && step > 1; i++) {
        step = l->values[i] - l->values[i - 1] == step ? step : 0;
    }
    return step > 1 ? step : 0;
}

/* "1, 5 to 8 and 12", or "0 to 22 in steps of 2". */
static void add_list(struct plain *t, const struct list *l)
{
    int step = l->names == NULL ? list_step(l) : 0;
    if (step > 0) {
        add(t, "%d to %d in steps of %d", l->values[0], l->values[l->count - 1], step);
        return;
    }
    for (int i = 0; i < l->count;) {
        int end = i;
        while (end + 1 < l->count && l->values[end + 1] == l->values[end] + 1) {
            end++;
        }
        end = end - i >= 2 ? end : i; /* two neighbours are two values */
        add(t, "%s", i == 0 ? "" : end == l->count - 1 ? t->before_last : ", ");
        add_value(t, l, i);
        if (end > i) {
            add(t, " to ");
            add_value(t, l, end);
        }
        i = end + 1;
    }
}

static bool set_is_full(uint64_t set, int count)
{
    return set == ((uint64_t)1 << count) - 1;
}

static int set_size(uint64_t set)
{
    return __builtin_popcountll(set);
}

/* n when the set is 0, n, 2n, ... below 60 and 60 is a multiple of n; 0 otherwise. */
static int set_even_step(uint64_t set)
{
    for (int n = 2; n <= 30; n++) {
        uint64_t even = 0;
        for (int v = 0; v < 60; v += n) {
            even |= (uint64_t)1 << v;
        }
        if (60 % n == 0 && set == even) {
            return n;
        }
    }
    return 0;
}

/* "at 06:30, 06:45 and 18:30" */
static void add_times(struct plain *t, const struct cron *c)
{
    struct list hours = list_of(c->hours);
    struct list minutes = list_of(c->minutes);
    struct list seconds = list_of(c->seconds);
    int count = hours.count * minutes.count * seconds.count;
    for (int i = 0; i < count; i++) {
        int in_hour = minutes.count * seconds.count;
        add(t, "%s%02d:%02d",
            i == 0           ? "at "
            : i == count - 1 ? " and "
                             : ", ",
            hours.values[i / in_hour], minutes.values[i % in_hour / seconds.count]);
        if (cron_has_seconds(c)) {
            add(t, ":%02d", seconds.values[i % seconds.count]);
        }
    }
}

/* "every 15 minutes", "at minutes 0 and 25", "at second 30". */
static void add_part(struct plain *t, uint64_t set, const char *unit)
{
    int step = set_even_step(set);
    if (set_is_full(set, 60)) {
        add(t, "every %s", unit);
    } else if (step > 0) {
        add(t, "every %d %ss", step, unit);
    } else {
        struct list l = list_of(set);
        add(t, "at %s%s ", unit, l.count > 1 ? "s" : "");
        add_list(t, &l);
    }
}

/* The hours behind minutes: nothing for all of them where the words before say so already. */
static void add_hours(struct plain *t, uint32_t hours, bool listed)
{
    struct list l = list_of(hours);
    int last = l.values[l.count - 1];
    if (l.count == 24) {
        add(t, "%s", listed ? " of each hour" : "");
    } else if (l.count == 1) {
        add(t, " from %02d:00 to %02d:59", last, last);
    } else if (last - l.values[0] + 1 == l.count) {
        add(t, "%s from %02d:00 to %02d:59", listed ? " of each hour" : "", l.values[0], last);
    } else {
        add(t, " of hours ");
        add_list(t, &l);
    }
}

static void add_clock(struct plain *t, const struct cron *c)
{
    bool minutes_listed = !set_is_full(c->minutes, 60) && set_even_step(c->minutes) == 0;
    if (set_size(c->seconds) * set_size(c->minutes) * set_size(c->hours) <= TIMES_MAX) {
        add_times(t, c);
        return;
    }
    if (!cron_has_seconds(c)) {
        add_part(t, c->minutes, "minute");
        add_hours(t, c->hours, minutes_listed);
        return;
    }
    add_part(t, c->seconds, "second");
    if (set_is_full(c->minutes, 60)) {
        add(t, "%s", set_is_full(c->seconds, 60) ? "" : " of each minute");
        add_hours(t, c->hours, false);
        return;
    }
    struct list l = list_of(c->minutes);
    add(t, " of minute%s ", l.count > 1 ? "s" : "");
    add_list(t, &l);
    add_hours(t, c->hours, true);
}

/* What stands before one of `count` phrases; *n have been written. */
static void add_between(struct plain *t, int *n, int count)
{
    add(t, "%s", *n == 0 ? "" : *n == count - 1 ? t->before_last : ", ");
    (*n)++;
}

static const char *ordinal_end(int n)
{
    static const char *const ends[] = {"th", "st", "nd", "rd"};
    return n % 10 <= 3 && (n < 10 || n > 20) ? ends[n % 10] : "th";
}

/* "day 1, the last day and the weekday (Monday to Friday) nearest to day 15 of the month" */
static void add_days(struct plain *t, const struct cron *c)
{
    struct list days = list_of(c->days);
    struct list before = list_of(c->days_before_last);
    struct list nearest = list_of(c->nearest_weekdays);
    int count = (days.count > 0 ? 1 : 0) + before.count + nearest.count + (c->last_weekday ? 1 : 0);
    int n = 0;
    if (days.count > 0) {
        add_between(t, &n, count);
        add(t, "day%s ", days.count > 1 ? "s" : "");
        add_list(t, &days);
    }
    for (int i = 0; i < before.count; i++) {
        add_between(t, &n, count);
        if (before.values[i] == 0) {
            add(t, "the last day");
        } else {
            add(t, "the %d%s day before the last", before.values[i], ordinal_end(before.values[i]));
        }
    }
    for (int i = 0; i < nearest.count; i++) {
        add_between(t, &n, count);
        add(t, "the weekday (Monday to Friday) nearest to day %d", nearest.values[i]);
    }
    if (c->last_weekday) {
        add_between(t, &n, count);
        add(t, "the last weekday (Monday to Friday)");
    }
    add(t, " of the month");
}

/* Bits 1 to 7, Monday to Sunday: a week that begins as people say it. */
static uint64_t monday_first(uint8_t weekdays)
{
    return (uint64_t)(weekdays >> 1) << 1 | (uint64_t)(weekdays & 1) << 7;
}

/* "Monday to Friday, the 2nd Saturday and the last Sunday of the month" */
static void add_weekdays(struct plain *t, const struct cron *c)
{
    static const char *const names[] = {"",         "Monday", "Tuesday",  "Wednesday",
                                        "Thursday", "Friday", "Saturday", "Sunday"};
    struct list plain = list_of(monday_first(c->weekdays));
    plain.names = names;
    int count = (plain.count > 0 ? 1 : 0) + set_size(c->last_weekdays);
    for (int i = 0; i < 5; i++) {
        count += set_size(c->nth_weekdays[i]);
    }
    int n = 0;
    if (plain.count > 0) {
        add_between(t, &n, count);
        add_list(t, &plain);
    }
    int first = n;
    for (int i = 0; i <= 5; i++) {
        struct list l = list_of(i < 5 ? c->nth_weekdays[i] : c->last_weekdays);
        for (int k = 0; k < l.count; k++) {
            add_between(t, &n, count);
            if (i < 5) {
                add(t, "the %d%s %s", i + 1, ordinal_end(i + 1), WEEKDAYS[l.values[k]]);
            } else {
                add(t, "the last %s", WEEKDAYS[l.values[k]]);
            }
        }
    }
    add(t, "%s", n > first ? " of the month" : "");
}

static void add_dates(struct plain *t, const struct cron *c)
{
    bool either = c->day_restricted && c->weekday_restricted && !c->both_days;
    add(t, "%s", c->day_restricted || c->weekday_restricted ? " on " : "");
    if (c->day_restricted) {
        add(t, "%s", either ? "either " : "");
        add_days(t, c);
    }
    if (c->day_restricted && c->weekday_restricted) {
        add(t, "%s", either ? " or " : " if it is also ");
    }
    if (c->weekday_restricted) {
        t->before_last = c->day_restricted && c->both_days ? " or " : " and ";
        add_weekdays(t, c);
        t->before_last = " and ";
    }
    if ((c->months & 0x1ffe) != 0x1ffe) {
        struct list months = list_of(c->months >> 1);
        months.names = MONTHS;
        add(t, ", in ");
        add_list(t, &months);
    }
    if (c->has_years) {
        struct list years = {.count = 0};
        for (int i = 0; i < 4; i++) {
            list_add_bits(&years, c->years[i], CRON_YEAR_MIN + 64 * i);
        }
        add(t, ", in the year%s ", years.count > 1 ? "s" : "");
        add_list(t, &years);
    }
}

void cron_text_write(const struct cron *c, char ret_text[CRON_PLAIN_MAX])
{
    struct plain t = {.text = ret_text, .before_last = " and "};
    bool any_day = !c->day_restricted && !c->weekday_restricted;
    bool times = set_size(c->seconds) * set_size(c->minutes) * set_size(c->hours) <= TIMES_MAX;
    add_clock(&t, c);
    add(&t, "%s", any_day && times ? " every day" : "");
    add_dates(&t, c);
}

void cron_text_write_policies(const struct cron *c, char ret_text[CRON_PLAIN_MAX])
{
    struct plain t = {.text = ret_text, .before_last = " and "};
    switch (c->gap) {
    case DST_GAP_AUTO: /* never, after cron_parse */
    case DST_GAP_AFTER:
        add(&t, "a time that the clock skips runs once, at the first instant after the gap");
        break;
    case DST_GAP_SHIFT:
        add(&t, "a time that the clock skips runs later by the length of the gap");
        break;
    case DST_GAP_SKIP:
        add(&t, "a time that the clock skips does not run");
        break;
    }
    switch (c->overlap) {
    case DST_OVERLAP_AUTO: /* never, after cron_parse */
    case DST_OVERLAP_FIRST:
        add(&t, "; one that it shows twice runs the first time only");
        break;
    case DST_OVERLAP_SECOND:
        add(&t, "; one that it shows twice runs the second time only");
        break;
    case DST_OVERLAP_BOTH:
        add(&t, "; one that it shows twice runs both times");
        break;
    }
}
