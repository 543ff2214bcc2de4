#include "plain.h"

#include <stdarg.h>
#include <stdio.h>

#include "value_set.h"

#define TIMES_MAX 6 /* up to so many times of day are listed one by one */

const char *const PLAIN_MONTHS[12] = {"January",   "February", "March",    "April",
                                      "May",       "June",     "July",     "August",
                                      "September", "October",  "November", "December"};
const char *const PLAIN_WEEKDAYS[7] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};
const char *const PLAIN_MONDAY_FIRST[8] = {"",         "Monday", "Tuesday",  "Wednesday",
                                           "Thursday", "Friday", "Saturday", "Sunday"};

struct plain plain_of(char *text, size_t max)
{
    text[0] = '\0';
    return (struct plain){.text = text, .max = max, .before_last = " and "};
}

void plain_add(struct plain *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(t->text + t->used, t->max - t->used, format, arguments);
    va_end(arguments);
    t->used += n > 0 ? (size_t)n : 0;
    t->used = t->used < t->max ? t->used : t->max - 1;
}

const char *plain_ordinal_end(int n)
{
    static const char *const ends[] = {"th", "st", "nd", "rd"};
    bool teen = n % 100 >= 11 && n % 100 <= 13;
    return n % 10 <= 3 && !teen ? ends[n % 10] : "th";
}

void plain_list_add_bits(struct plain_list *l, uint64_t bits, int base)
{
    for (; bits != 0; bits &= bits - 1) {
        if (l->count < PLAIN_LIST_MAX) {
            l->values[l->count++] = base + __builtin_ctzll(bits);
        }
    }
}

struct plain_list plain_list_of(uint64_t bits)
{
    struct plain_list l = {.count = 0};
    plain_list_add_bits(&l, bits, 0);
    return l;
}

static void add_value(struct plain *t, const struct plain_list *l, int i)
{
    if (l->names != NULL) {
        plain_add(t, "%s", l->names[l->values[i]]);
    } else if (l->ordinals) {
        plain_add(t, "%d%s", l->values[i], plain_ordinal_end(l->values[i]));
    } else {
        plain_add(t, "%d", l->values[i]);
    }
}

/* The common difference when there are at least four values and it is 2 or more, otherwise 0. */
static int list_step(const struct plain_list *l)
{
    int step = l->count >= 4 ? l->values[1] - l->values[0] : 0;
    for (int i = 2; i < l->count && step > 1; i++) {
        step = l->values[i] - l->values[i - 1] == step ? step : 0;
    }
    return step > 1 ? step : 0;
}

void plain_add_list(struct plain *t, const struct plain_list *l)
{
    int step = l->names == NULL && !l->ordinals ? list_step(l) : 0;
    if (step > 0) {
        plain_add(t, "%d to %d in steps of %d", l->values[0], l->values[l->count - 1], step);
        return;
    }
    for (int i = 0; i < l->count;) {
        int end = i;
        while (end + 1 < l->count && l->values[end + 1] == l->values[end] + 1) {
            end++;
        }
        end = end - i >= 2 ? end : i; /* two neighbours are two values */
        plain_add(t, "%s", i == 0 ? "" : end == l->count - 1 ? t->before_last : ", ");
        add_value(t, l, i);
        if (end > i) {
            plain_add(t, " to ");
            add_value(t, l, end);
        }
        i = end + 1;
    }
}

static bool set_is_full(uint64_t set, int count)
{
    return set == ((uint64_t)1 << count) - 1;
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

static bool clock_has_seconds(const struct plain_clock *c)
{
    return c->seconds != 1;
}

bool plain_clock_is_listed(const struct plain_clock *c)
{
    return set_size(c->seconds) * set_size(c->minutes) * set_size(c->hours) <= TIMES_MAX;
}

/* "at 06:30, 06:45 and 18:30" */
static void add_times(struct plain *t, const struct plain_clock *c)
{
    struct plain_list hours = plain_list_of(c->hours);
    struct plain_list minutes = plain_list_of(c->minutes);
    struct plain_list seconds = plain_list_of(c->seconds);
    int count = hours.count * minutes.count * seconds.count;
    for (int i = 0; i < count; i++) {
        int in_hour = minutes.count * seconds.count;
        plain_add(t, "%s%02d:%02d",
                  i == 0           ? "at "
                  : i == count - 1 ? " and "
                                   : ", ",
                  hours.values[i / in_hour], minutes.values[i % in_hour / seconds.count]);
        if (clock_has_seconds(c)) {
            plain_add(t, ":%02d", seconds.values[i % seconds.count]);
        }
    }
}

/* "every 15 minutes", "at minutes 0 and 25", "at second 30". */
static void add_part(struct plain *t, uint64_t set, const char *unit)
{
    int step = set_even_step(set);
    if (set_is_full(set, 60)) {
        plain_add(t, "every %s", unit);
    } else if (step > 0) {
        plain_add(t, "every %d %ss", step, unit);
    } else {
        struct plain_list l = plain_list_of(set);
        plain_add(t, "at %s%s ", unit, l.count > 1 ? "s" : "");
        plain_add_list(t, &l);
    }
}

/* The hours behind minutes: nothing for all of them where the words before say so already. */
static void add_hours(struct plain *t, uint32_t hours, bool listed)
{
    struct plain_list l = plain_list_of(hours);
    int last = l.values[l.count - 1];
    if (l.count == 24) {
        plain_add(t, "%s", listed ? " of each hour" : "");
    } else if (l.count == 1) {
        plain_add(t, " from %02d:00 to %02d:59", last, last);
    } else if (last - l.values[0] + 1 == l.count) {
        plain_add(t, "%s from %02d:00 to %02d:59", listed ? " of each hour" : "", l.values[0],
                  last);
    } else {
        plain_add(t, " of hours ");
        plain_add_list(t, &l);
    }
}

void plain_add_clock(struct plain *t, const struct plain_clock *c)
{
    bool minutes_listed = !set_is_full(c->minutes, 60) && set_even_step(c->minutes) == 0;
    if (plain_clock_is_listed(c)) {
        add_times(t, c);
        return;
    }
    if (!clock_has_seconds(c)) {
        add_part(t, c->minutes, "minute");
        add_hours(t, c->hours, minutes_listed);
        return;
    }
    add_part(t, c->seconds, "second");
    if (set_is_full(c->minutes, 60)) {
        plain_add(t, "%s", set_is_full(c->seconds, 60) ? "" : " of each minute");
        add_hours(t, c->hours, false);
        return;
    }
    struct plain_list l = plain_list_of(c->minutes);
    plain_add(t, " of minute%s ", l.count > 1 ? "s" : "");
    plain_add_list(t, &l);
    add_hours(t, c->hours, true);
}

void plain_add_between(struct plain *t, int *n, int count)
{
    plain_add(t, "%s", *n == 0 ? "" : *n == count - 1 ? t->before_last : ", ");
    (*n)++;
}

uint64_t plain_monday_first(uint8_t weekdays)
{
    return (uint64_t)(weekdays >> 1) << 1 | (uint64_t)(weekdays & 1) << 7;
}

void plain_add_local(struct plain *t, struct local_time time)
{
    char date[DATE_TEXT_MAX];
    int64_t day = floor_divide(time.s, SECONDS_A_DAY);
    int second = (int)(time.s - day * SECONDS_A_DAY);
    date_format(day, date);
    plain_add(t, "%s %02d:%02d", date, second / 3600, second / 60 % 60);
    if (second % 60 != 0) {
        plain_add(t, ":%02d", second % 60);
    }
}

void plain_add_policies(struct plain *t, enum dst_gap_policy gap, enum dst_overlap_policy overlap)
{
    switch (gap) {
    case DST_GAP_AUTO:
    case DST_GAP_AFTER:
        plain_add(t, "a time that the clock skips runs once, at the first instant after the gap");
        break;
    case DST_GAP_SHIFT:
        plain_add(t, "a time that the clock skips runs later by the length of the gap");
        break;
    case DST_GAP_SKIP:
        plain_add(t, "a time that the clock skips does not run");
        break;
    }
    switch (overlap) {
    case DST_OVERLAP_AUTO:
    case DST_OVERLAP_FIRST:
        plain_add(t, "; one that it shows twice runs the first time only");
        break;
    case DST_OVERLAP_SECOND:
        plain_add(t, "; one that it shows twice runs the second time only");
        break;
    case DST_OVERLAP_BOTH:
        plain_add(t, "; one that it shows twice runs both times");
        break;
    }
}
