/* The parts of a recurrence rule as written, before they are judged together; for rrule_parse.c and
 * rrule_compile.c only. */
#ifndef RS_RRULE_PARTS_H
#define RS_RRULE_PARTS_H

#include "rrule.h"

enum rrule_part {
    PART_FREQ,
    PART_INTERVAL,
    PART_COUNT,
    PART_UNTIL,
    PART_WKST,
    PART_BYDAY,
    PART_BYSECOND, /* from here on lists of numbers */
    PART_BYMINUTE,
    PART_BYHOUR,
    PART_BYMONTHDAY,
    PART_BYYEARDAY,
    PART_BYWEEKNO,
    PART_BYMONTH,
    PART_BYSETPOS,
    PART_KINDS,
};

enum rrule_until {
    UNTIL_DATE,
    UNTIL_LOCAL,
    UNTIL_UTC,
};

struct rrule_parts {
    uint32_t seen; /* bit n: rrule_part n is there */
    enum rrule_frequency frequency;
    int32_t interval, count;
    uint8_t week_start;
    enum rrule_until until_kind;
    int64_t until;    /* seconds since 1970, local or UTC; the beginning of a date */
    uint8_t weekdays; /* of BYDAY without ordinal */
    bool has_ordinals;
    int largest_ordinal;
    uint64_t nth[7], nth_from_last[7]; /* [weekday]: bits 1 to 53 */
    struct rrule_ordinals lists[PART_KINDS];
};

extern const char *const RRULE_PART_NAMES[PART_KINDS];
extern const char *const RRULE_FREQUENCY_NAMES[RRULE_YEARLY + 1];

static inline bool parts_have(const struct rrule_parts *p, enum rrule_part part)
{
    return (p->seen >> part & 1) != 0;
}

/* Returns: OK, INVALID. */
MUST_USE enum status rrule_parts_parse(const char *text, struct rrule_parts *ret_parts,
                                       struct error *err);

#endif
