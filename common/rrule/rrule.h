/* Recurrence rules of RFC 5545 (section 3.3.10): what they say, and when they fire next in a zone.
 * Pure: no I/O, no clock.
 *
 * Taken: FREQ of MINUTELY, HOURLY, DAILY, WEEKLY, MONTHLY and YEARLY, INTERVAL, COUNT or UNTIL,
 * WKST and all BY parts as the table of the RFC allows them, in any order and either case; EXDATE
 * and RDATE as lists. Refused, with what to write instead: SECONDLY (an interval), RSCALE, SKIP,
 * EXRULE, a leap second, parts where the RFC forbids them, a part written twice, and BYWEEKNO
 * without a day, of which programs think differently.
 *
 * What the RFC leaves open is read so:
 * - The start (DTSTART) fires only if the rule names it; nothing fires before it. COUNT counts what
 *   the rule names from the start on, before EXDATE takes away and RDATE adds.
 * - INTERVAL counts calendar units (hours and minutes: of the local clock) from the one that the
 *   start lies in; with BYWEEKNO the year is that of the week numbers.
 * - BYSETPOS counts within the whole unit, also the part of it before the start.
 * - BYMONTHDAY in a YEARLY rule without BYMONTH means that day of every month.
 * - UNTIL is the last that may fire: an instant with Z, else a local time; a date includes that
 * day. Neither UNTIL nor COUNT ends RDATE.
 *
 * All this is about nominal local times; the instant follows as for cron (firing.h), by default as
 * section 3.3.5 says: a time in a gap is shifted by the length of the gap, of an overlap the first
 * counts. */
#ifndef RS_RRULE_H
#define RS_RRULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "civil.h"
#include "clock.h"
#include "firing.h"
#include "status.h"
#include "zone.h"

#define RRULE_TEXT_MAX      4096 /* bytes of a rule, with NUL */
#define RRULE_DATES_MAX     1000 /* of EXDATE, and of RDATE */
#define RRULE_COUNT_MAX     100000
#define RRULE_YEARS_AHEAD   400 /* a whole cycle of the calendar */
#define RRULE_ORDINAL_WORDS 6   /* 64-bit words of a set of 1 to 366 */

enum rrule_frequency {
    RRULE_MINUTELY,
    RRULE_HOURLY,
    RRULE_DAILY,
    RRULE_WEEKLY,
    RRULE_MONTHLY,
    RRULE_YEARLY,
};

/* A rule as it stands in a schedule row or on a command line. Zero policies are AUTO. */
struct rrule_source {
    const char *text;                 /* the value of an RRULE: "FREQ=MONTHLY;BYDAY=-1FR" */
    struct local_time start;          /* DTSTART, in the rule's zone */
    const struct local_time *exdates; /* ascending, none twice (local_times_sort) */
    size_t exdate_count;
    const struct local_time *rdates; /* likewise; none before the start */
    size_t rdate_count;
    enum dst_gap_policy gap;
    enum dst_overlap_policy overlap;
};

/* Numbers counted from the beginning and from the end; bit n of a set stands for n. */
struct rrule_ordinals {
    uint64_t from_first[RRULE_ORDINAL_WORDS];
    uint64_t from_last[RRULE_ORDINAL_WORDS]; /* bit n: -n */
};

/* A compiled rule. Bit n of a set stands for the value n; what the rule leaves to the start is
 * filled in. */
struct rrule {
    enum rrule_frequency frequency;
    uint32_t interval;
    uint8_t week_start;                                          /* 0 = Sunday */
    uint16_t months;                                             /* bits 1 to 12 */
    bool by_day, by_yearday, by_weekno, by_weekday, by_position; /* is there such a part? */
    uint32_t days, days_from_last; /* bits 1 to 31; bit n of the latter: -n */
    struct rrule_ordinals yeardays;
    uint64_t weeks, weeks_from_last;           /* bits 1 to 53 */
    uint8_t weekdays;                          /* bits 0 to 6, without ordinals */
    uint8_t nth_weekdays[5], nth_from_last[5]; /* [n - 1]: weekdays that are the n-th of a month */
    bool by_nth, by_nth_of_year;
    uint64_t nth_of_year[7], nth_of_year_from_last[7]; /* [weekday]: bits 1 to 53 */
    uint64_t seconds, minutes;
    uint32_t hours;
    struct rrule_ordinals positions;
    uint64_t steps_pattern; /* of hours or minutes: bits 0, interval, 2 interval ... */
    int32_t times_a_day;    /* how many times of day there are, when that is the same on all days */
    struct local_time start;
    struct local_time last; /* no nominal time of the rule lies behind it; INT64_MAX: open */
    int32_t count;          /* COUNT; 0: none */
    bool has_until;
    utc_us until;                              /* no firing of the rule lies behind it */
    int64_t start_unit;                        /* the week, month or year that the start lies in */
    const struct local_time *exdates, *rdates; /* the caller's */
    size_t exdate_count, rdate_count;
    bool at_most_daily;
    enum dst_gap_policy gap;         /* never AUTO */
    enum dst_overlap_policy overlap; /* never AUTO */
};

/* Compile a rule. *ret_rule keeps the two lists of the source by address: they must live as long.
 * Returns: OK; INVALID (one line that names the part and says what to write instead); NOT_FOUND (as
 * a rule it is right, and it does not fire within 400 years of its start: "never fires"). Work is
 * bounded; with
 * COUNT it is in proportion to the days until the last. Thread: any. */
MUST_USE enum status rrule_parse(const struct rrule_source *source, struct rrule *ret_rule,
                                 struct error *err);

/* The first firing strictly after an instant, looking ahead 400 years from there or from the start;
 * nothing lies beyond year 9999. Thread: any. */
struct firing rrule_next(const struct rrule *r, const struct zone *z, utc_us after);

/* How many firings lie strictly between two instants; work is in proportion to the days at most.
 * `before` must be finite. Thread: any. */
int64_t rrule_count(const struct rrule *r, const struct zone *z, utc_us after, utc_us before);

/* Can it fire more than once on one local date (apart from the passes of an overlap)? */
bool rrule_is_at_most_daily(const struct rrule *r);

/* Does it name seconds other than 0? */
bool rrule_has_seconds(const struct rrule *r);

/* Bring a list into the form that a source needs: ascending, none twice. Returns its new length. */
size_t local_times_sort(struct local_time *times, size_t count);

#endif
