/* The inside of the evaluator of recurrence rules: for rrule*.c and for tests that count its work.
 *
 * Three levels. The clock: times of day as seconds, on a day (a day number; it matters to HOURLY
 * and MINUTELY rules with an interval). The date: days of a month as bits 1 to 31. The unit: the
 * weeks, months or years that BYSETPOS counts within. */
#ifndef RS_RRULE_INSIDE_H
#define RS_RRULE_INSIDE_H

#include "rrule.h"

/* What one rrule_nominal_from may cost at most, in steps: a step is a year, month, day or unit
 * looked at; at worst those of 400 years. */
#define RRULE_STEPS_MAX 160000

/* One search: where it ends, and what it has cost. */
struct rrule_search {
    const struct rrule *rule;
    int64_t last_day; /* it looks at none behind */
    int steps;
};

/* A search from a local time on, as far ahead as is allowed. */
struct rrule_search rrule_search_from(const struct rrule *r, int64_t from);

/* The first nominal time at or after `from` that the rule itself names, whatever the lists say. */
bool rrule_nominal_from(struct rrule_search *s, int64_t from, int64_t *ret_time);

/* How many the rule names in [from, below), and when these are `limit` or more: `limit`, with the
 * time of the limit-th. The search's end does not matter. Steps beyond steps_max: -1. */
struct rrule_tally {
    int64_t from, below;
    int64_t limit;
    int steps_max;
};
int64_t rrule_nominal_count(struct rrule_search *s, const struct rrule_tally *t, int64_t *ret_last);

/* Without those that EXDATE takes away; RDATE's alone. The first argument is a rrule_search. */
bool rrule_kept_from(void *search, int64_t from, int64_t *ret_time);
bool rrule_added_from(void *search, int64_t from, int64_t *ret_time);

/* As rrule_next. *steps is raised by the work of the rule itself. */
struct firing rrule_next_counting(const struct rrule *r, const struct zone *z, utc_us after,
                                  int *steps);

/* ---- clock ---- */

/* First time of day >= from, or -1. */
int32_t rrule_clock_first_from(const struct rrule *r, int64_t day, int32_t from);

/* How many times of day there are below `below` (at most a day), and the one with `index` below. */
int32_t rrule_clock_count_below(const struct rrule *r, int64_t day, int32_t below);
int32_t rrule_clock_nth(const struct rrule *r, int64_t day, int32_t index);

/* The same of all times that BYHOUR, BYMINUTE and BYSECOND make up. */
int32_t rrule_product_count_below(const struct rrule *r, int32_t below);
int32_t rrule_product_nth(const struct rrule *r, int32_t index);

/* ---- date ---- */

/* The days of a month that all BY parts for days and the interval of days, weeks and weeks' years
 * allow, whatever BYMONTH and the interval of months and years say. */
uint32_t rrule_month_mask(const struct rrule *r, int32_t year, int32_t month);

/* A month with matching days. */
struct rrule_month {
    int32_t year, month;
    int64_t first; /* day number of its first day */
    uint32_t mask;
};

/* The first month with a match, from *m's year and month on. False: there is none, or the search
 * has ended. */
bool rrule_month_first_from(struct rrule_search *s, struct rrule_month *m);

/* The month behind, whose mask is not known yet. */
void rrule_month_advance(struct rrule_month *m);

/* The first matching day of the month at or after a day at which an interval of hours or minutes
 * can end, or -1. */
int rrule_month_in_step(const struct rrule *r, const struct rrule_month *m, int day);

/* How far ahead of `value` the next one is that lies a multiple of `step` from `origin`. */
int64_t rrule_ahead(int64_t value, int64_t origin, int64_t step);

/* ---- unit ---- */

#define RRULE_UNIT_WORDS 6 /* of 64 days: a year of week numbers has 371 */

struct rrule_unit {
    int64_t first; /* day number */
    int32_t days;
    uint64_t mask[RRULE_UNIT_WORDS]; /* matching days; bit 0 is the first */
    int32_t size;                    /* how many match */
};

int64_t rrule_unit_of(const struct rrule *r, int64_t day);
int64_t rrule_unit_first_day(const struct rrule *r, int64_t unit);
void rrule_unit_fill(const struct rrule *r, int64_t unit, struct rrule_unit *ret_unit);

/* Of a set of `size`: the first index >= from that BYSETPOS picks, or -1; how many it picks <
 * below. */
int64_t rrule_position_first_from(const struct rrule_ordinals *positions, int64_t size,
                                  int64_t from);
int64_t rrule_position_count_below(const struct rrule_ordinals *positions, int64_t size,
                                   int64_t below);

#endif
