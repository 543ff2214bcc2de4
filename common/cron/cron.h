/* Cron expressions: what they say, and when they fire next in a zone. Pure: no I/O, no clock.
 *
 * Grammar (strict; everything that other crons read differently is refused with what to write):
 *   expr  = nickname | [second] minute hour day-of-month month day-of-week [year, with second]
 *   field = item ("," item)* ; item = "*" ["/" n] | v | v "-" v ["/" n]
 *   day of month also: "?" "L" "L-" n "LW" n "W"; day of week also: "?" d "L" d "#L" d "#" 1-5,
 *   and "+" before the whole field: both day fields must match. Without it, two restricted day
 *   fields mean either. Names have three letters, in either case; weekdays are 0-7, 7 = Sunday.
 *   nickname = @yearly @annually @monthly @weekly @daily @midnight @hourly
 * Texts of the dialect `quartz` are turned into this grammar by cron_quartz.h.
 *
 * Nominal time is the local time the expression names; it is what a firing is known by. The
 * instant follows from it by the zone and two policies. Gaps longer than three hours (moves of
 * the date line) are never caught up. Nominal times that fall on one instant are one firing under
 * the latest of them. */
#ifndef RS_CRON_H
#define RS_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "civil.h"
#include "clock.h"
#include "firing.h"
#include "status.h"
#include "zone.h"

#define CRON_TEXT_MAX 256  /* bytes of an expression, with NUL */
#define CRON_YEAR_MIN 1970 /* of the year field */
#define CRON_YEAR_MAX 2199

/* A compiled expression. Bit n of a set stands for the value n. */
struct cron {
    uint64_t seconds;
    uint64_t minutes;
    uint32_t hours;
    uint16_t months;           /* bits 1 to 12 */
    uint32_t days;             /* bits 1 to 31 */
    uint32_t days_before_last; /* L-n; bit 0 is L */
    uint32_t nearest_weekdays; /* nW */
    bool last_weekday;         /* LW */
    uint8_t weekdays;          /* bits 0 to 6, 0 = Sunday */
    uint8_t nth_weekdays[5];   /* d#1 to d#5 */
    uint8_t last_weekdays;     /* dL */
    uint64_t years[4];         /* bit n: CRON_YEAR_MIN + n; when has_years */
    bool has_years;
    bool day_restricted, weekday_restricted;
    bool both_days;          /* "+": both restricted day fields must match, otherwise either */
    bool follows_clock;      /* second, minute or hour begins with "*" */
    enum dst_gap_policy gap; /* never AUTO after cron_parse */
    enum dst_overlap_policy overlap;
};

/* Compile an expression, with the policies that AUTO stands for.
 * Returns: OK; INVALID (one line that names the field and says what to write instead; also for an
 * expression whose date never comes: "never fires"). */
MUST_USE enum status cron_parse(const char *text, struct cron *ret_cron, struct error *err);

/* Choose policies. AUTO stands for the class of the job: AFTER and FIRST for fixed times, SKIP and
 * BOTH for jobs that follow the clock. */
void cron_set_policies(struct cron *c, enum dst_gap_policy gap, enum dst_overlap_policy overlap);
bool dst_gap_policy_parse(const char *word, enum dst_gap_policy *ret_policy);
bool dst_overlap_policy_parse(const char *word, enum dst_overlap_policy *ret_policy);

/* The first firing strictly after an instant. It looks ahead 400 years from there, a whole cycle
 * of the calendar; work is bounded by the calendar months in that. Thread: any. */
struct firing cron_next(const struct cron *c, const struct zone *z, utc_us after);

/* How many firings lie strictly between two instants, counted by days where the clock runs evenly:
 * work is in proportion to the days, not to the firings, but for the hours about a change of the
 * clock. `before` must be finite. Thread: any. */
int64_t cron_count(const struct cron *c, const struct zone *z, utc_us after, utc_us before);

/* The first nominal time at or after a local time, whatever the zone. False: there is none. */
bool cron_nominal_from(const struct cron *c, struct local_time from, struct local_time *ret_time);

/* Can it fire more than once on one local date (apart from the passes of an overlap)? */
bool cron_is_at_most_daily(const struct cron *c);

/* Does it name seconds other than 0? */
bool cron_has_seconds(const struct cron *c);

#endif
