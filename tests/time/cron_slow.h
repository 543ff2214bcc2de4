/* What a cron expression means, straight from its text and slowly: every question reads the text
 * again, every time of day of every date is asked, and the zone is only asked what a local time is
 * (zone_resolve). Shares nothing with common/cron*.c but the two policy enums. */
#ifndef RS_CRON_SLOW_H
#define RS_CRON_SLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "firing.h"
#include "zone.h"

#define CRON_SLOW_CATCH_UP_S 10800 /* gaps longer than this are not caught up */

struct cron_slow {
    char text[256];
    const char *words[7]; /* second ... year, in `text` or constants */
};

/* `text` must be well formed. */
void cron_slow_open(struct cron_slow *c, const char *text);

/* Does it name this local date (a day number)? This time of day? */
bool cron_slow_has_date(const struct cron_slow *c, int64_t day);
bool cron_slow_has_time(const struct cron_slow *c, int hour, int minute, int second);

/* How many times of day it names. */
int cron_slow_times(const struct cron_slow *c);

/* Do the second, the minute or the hour begin with "*"? */
bool cron_slow_follows_clock(const struct cron_slow *c);

struct slow_firing {
    int64_t at; /* utc_s */
    int64_t nominal;
    int32_t offset;
    bool offset_in_key;
};

struct slow_question {
    const struct cron_slow *cron;
    const struct zone *zone;
    enum dst_gap_policy gap;         /* not AUTO */
    enum dst_overlap_policy overlap; /* not AUTO */
    int64_t after, until;            /* utc_s: firings in (after, until] */
    int64_t
        reach; /* how far nominal times may lie from the offset-free reading of those, seconds */
};

/* All of them in order, at most `most` (more is a failure of the caller: -1). */
int cron_slow_firings(const struct slow_question *q, struct slow_firing *ret_firings, int most);

#endif
