/* One occurrence of a rule, and what the two policies for changes of the clock are called. Shared
 * by all kinds of rule. */
#ifndef RS_FIRING_H
#define RS_FIRING_H

#include <stdbool.h>
#include <stdint.h>

#include "civil.h"
#include "clock.h"

/* What becomes of a nominal time that the clock jumps over. AUTO stands for what its kind of rule
 * says. */
enum dst_gap_policy {
    DST_GAP_AUTO,
    DST_GAP_AFTER, /* at the first instant after the gap */
    DST_GAP_SHIFT, /* later by the length of the gap (02:30 fires at 03:30) */
    DST_GAP_SKIP,  /* it does not fire */
};

/* Which of the two passes of an overlap fires. */
enum dst_overlap_policy {
    DST_OVERLAP_AUTO,
    DST_OVERLAP_FIRST,
    DST_OVERLAP_SECOND,
    DST_OVERLAP_BOTH,
};

/* What a firing is about (business_date.h). */
enum about_state {
    ABOUT_RUN_DATE, /* its nominal date; the rest is zero */
    ABOUT_KNOWN,
    ABOUT_UNKNOWN, /* a calendar does not know the days, or there is no such period */
};
struct firing_about {
    enum about_state state;
    int64_t first, last; /* day numbers, both included; of a date they are the same */
    const char *label;   /* of a fiscal period; borrowed from the rule's; else NULL */
};

struct firing {
    bool found;                /* false: there is no further one, the rest is zero */
    utc_us at;                 /* the instant */
    struct local_time nominal; /* the local time it is known by, in the rule's zone */
    int32_t offset_s;          /* the zone's offset at the instant */
    bool offset_in_key;        /* both passes of an overlap fire: the key needs the offset */
    bool utc_in_key;           /* interval: the key is the UTC instant, not a local time */
    /* Not found because the rule's calendar does not know the day of the next one: that is due at
     * `at` unless it moves. `closed`: and no data about later days would help, since there is no
     * business day near. */
    bool held, closed;
    struct firing_about about;
};

#endif
