/* The inside of the search for firings: for cron*.c and for tests that count its work. */
#ifndef RS_CRON_SEARCH_H
#define RS_CRON_SEARCH_H

#include "cron.h"

/* How far ahead one search looks: a whole cycle of the calendar. */
#define CRON_YEARS_AHEAD 400

/* What one search may cost at most, in steps: a step is a year or a month looked at, or a span of
 * local time between two changes of offset. 400 years and 4800 months are gone through once, and of
 * at most 2048 spans each asks at most five times from where it stands. Measured: 4 for a weekday,
 * 20 for a leap day, 1200 for a rule that only ever falls into gaps that it skips. */
#define CRON_STEPS_MAX 16000

/* As cron_next. *steps is raised by the steps taken. */
struct firing cron_search(const struct cron *c, const struct zone *z, utc_us after, int *steps);

/* The days of a month on which it fires, bits 1 to 31, whatever the month and year fields say. */
uint32_t cron_month_mask(const struct cron *c, int32_t year, int32_t month);

/* Does it fire on this local date (a day number), at some time? */
bool cron_date_matches(const struct cron *c, int64_t day);

/* How many nominal times lie in [from, below), in local seconds. */
int64_t cron_nominal_count(const struct cron *c, int64_t from, int64_t below);

#endif
