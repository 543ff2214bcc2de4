/* Recurrence rules read slowly: an evaluator straight from the table of RFC 5545, section 3.3.10,
 * that tries every day, hour, minute and second, with the C library's calendar. It shares nothing
 * with common/rrule*.c; only what common/rrule/rrule.h says the RFC leaves open is read alike. */
#ifndef RS_FIXTURE_RRULE_H
#define RS_FIXTURE_RRULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOW_TEXT_MAX  1024
#define SLOW_ITEMS_MAX 12

enum slow_frequency {
    SLOW_MINUTELY,
    SLOW_HOURLY,
    SLOW_DAILY,
    SLOW_WEEKLY,
    SLOW_MONTHLY,
    SLOW_YEARLY,
};

/* A list of numbers as the rule has it; empty: the part is not there. */
struct slow_list {
    int count;
    int items[SLOW_ITEMS_MAX];
};

struct slow_rule {
    enum slow_frequency frequency;
    int interval;
    int week_start; /* 0 = Sunday */
    int64_t start;  /* local seconds since 1970 */
    struct slow_list months, weeks, yeardays, days, hours, minutes, seconds, positions;
    struct slow_list weekdays, ordinals; /* alike long; ordinal 0: each such weekday */
    int count;                           /* 0: no COUNT */
    bool has_until;
    int64_t until; /* local; has_until */
};

/* A rule at random that RFC 5545 allows, with its start near a local time; without COUNT and
 * UNTIL. */
void slow_rule_random(struct slow_rule *ret_rule, int64_t near);

/* Its text, without UNTIL. */
void slow_rule_write(const struct slow_rule *r, char ret_text[SLOW_TEXT_MAX]);

/* The times it names before `below`, in order, at most `max`. Returns their number; when that is
 * max, *ret_below is where the list is no longer whole, otherwise `below`. */
size_t slow_rule_list(const struct slow_rule *r, int64_t below, int64_t *ret_times, size_t max,
                      int64_t *ret_below);

#endif
