/* The rule at the end of a TZif file: a POSIX TZ string with the extensions of RFC 9636 (hours up
 * to 167, negative times). Pure; for zone.c only. */
#ifndef RS_ZONE_FOOTER_H
#define RS_ZONE_FOOTER_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

enum footer_day {
    FOOTER_MONTH_WEEK_DAY, /* Mm.w.d */
    FOOTER_JULIAN,         /* Jn: 1 to 365, February 29 is never counted */
    FOOTER_DAY_OF_YEAR,    /* n: 0 to 365 */
};

struct footer_date {
    enum footer_day kind;
    int32_t month, week, weekday; /* FOOTER_MONTH_WEEK_DAY; week 5 is the last */
    int32_t day;                  /* the other two */
    int32_t time_s;               /* seconds after local midnight; may be negative */
};

struct zone_footer {
    int32_t standard_s; /* offsets in seconds east of UTC */
    int32_t daylight_s;
    bool has_daylight;
    struct footer_date start, end; /* of daylight time */
};

/* Parse `size` bytes, which need no NUL. Returns: OK, INVALID. */
MUST_USE enum status zone_footer_parse(const char *text, size_t size, struct zone_footer *ret,
                                       struct error *err);

/* When the date falls in `year`, as utc_s, if the clock stood at `offset_s` until then. */
int64_t zone_footer_instant(const struct footer_date *d, int32_t year, int32_t offset_s);

#endif
