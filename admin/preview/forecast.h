/* How much is due when, over many schedules: counts a day and a queue, the busiest minutes and
 * seconds. Pure.
 *
 * Memory is in proportion to the seconds looked at, not to the firings. Work is bounded: schedules
 * that would be too much are counted by days only (`coarse`), and are in no minute or second. */
#ifndef RS_FORECAST_H
#define RS_FORECAST_H

#include "ident.h"
#include "rule.h"
#include "status.h"

#define FORECAST_DAYS_MAX         31
#define FORECAST_SCHEDULE_FIRINGS 100000   /* of one schedule; more make it coarse */
#define FORECAST_FIRINGS_MAX      10000000 /* of all that are not coarse: seconds of work */

struct forecast_queue {
    char name[NAME_MAX_BYTES];
    int64_t schedules, firings;
};

struct forecast {
    utc_us from, until; /* firings strictly after the one and before the other */
    int64_t firings, coarse_firings;
    int64_t schedules, coarse_schedules; /* with a firing */
    int64_t first_day;                   /* days since 1970-01-01 in UTC */
    int64_t day_firings[FORECAST_DAYS_MAX + 1];
    size_t days;
    struct forecast_queue *queues; /* by name */
    size_t queue_count, queue_max;
    int64_t first_second; /* since 1970 */
    size_t seconds;
    uint32_t *due;     /* by second: schedules due in it */
    uint32_t *example; /* by second: 1 + the place in `names` of the first of them */
    char (*names)[NAME_MAX_BYTES];
    size_t name_count, name_max;
    char last[NAME_MAX_BYTES], last_queue[NAME_MAX_BYTES]; /* the latest that was counted */
    bool last_coarse;
};

/* Look `days` ahead, 1 to FORECAST_DAYS_MAX. Owns: forecast_close (all zero is fine). Returns: OK;
 * FATAL (out of memory). */
MUST_USE enum status forecast_open(utc_us from, int64_t days, struct forecast *ret);
void forecast_close(struct forecast *f);

/* One schedule under one version; those of one schedule one after the other, it counts once. */
struct forecast_subject {
    const char *schedule, *queue;
    const struct rule *rule;
    struct rule_bounds bounds;
    utc_us after, before; /* the version's firings strictly between; those of the forecast count */
};

/* Returns: OK; FATAL (out of memory; the forecast is of no use any more). */
MUST_USE enum status forecast_add(struct forecast *f, const struct forecast_subject *s);

/* A place in time and how much is due there. */
struct forecast_peak {
    int64_t at; /* its first second since 1970 */
    int64_t firings;
    int64_t most; /* in one second of it */
    const char *example;
};

/* The `most` busiest spans of `length` seconds (1, 60: aligned) with at least `least` firings, the
 * busiest first, of equal ones the earlier. Returns how many. */
size_t forecast_peaks(const struct forecast *f, int64_t length, int64_t least,
                      struct forecast_peak *ret_peaks, size_t most);

/* Seconds in which at least two schedules are due. */
int64_t forecast_collisions(const struct forecast *f);

#endif
