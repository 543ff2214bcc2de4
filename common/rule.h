/* A schedule's rule: one type over the kinds `cron`, `interval` and `once`, and its next firing.
 *
 * cron      an expression in a zone (cron.h).
 * interval  elapsed time from an anchor instant: "15 minutes", "1 hour 30 minutes", "2 days",
 *           "90 s"; a day is 24 hours whatever the clocks do. At least 1 second.
 * once      "YYYY-MM-DDTHH:MM[:SS]" in the zone; with an offset or Z behind it, that instant. A
 *           local time in a gap or an overlap is refused with the two instants it could mean.
 * The kind `rrule` is not there yet.
 * rule_next is pure; rule_parse may read the zone's file through the set. */
#ifndef RS_RULE_H
#define RS_RULE_H

#include "clock.h"
#include "cron.h"
#include "status.h"
#include "zone_file.h"

#define INTERVAL_MAX_S ((int64_t)36525 * SECONDS_A_DAY) /* a hundred years */

enum rule_kind {
    RULE_CRON,
    RULE_INTERVAL,
    RULE_ONCE,
};

/* A rule as it stands in a schedule row. Zero policies are AUTO. */
struct rule_source {
    const char *kind; /* "cron", "interval", "once" */
    const char *text;
    const char *zone; /* IANA name; for an interval it only says what local date a firing has */
    utc_us anchor;    /* interval: its first firing and the phase of all others; finite */
    enum dst_gap_policy gap;         /* cron */
    enum dst_overlap_policy overlap; /* cron */
};

struct rule {
    enum rule_kind kind;
    const struct zone *zone;        /* borrowed from the zone set, which must live longer */
    struct cron cron;               /* CRON */
    utc_us anchor;                  /* INTERVAL */
    int64_t length_s;               /* INTERVAL */
    utc_us once_at;                 /* ONCE */
    struct local_time once_nominal; /* ONCE: what the zone's clock shows then */
};

/* Returns: OK; INVALID (one line that says what to write instead); else as zone_set_find.
 * Thread: the zone set's owner. */
MUST_USE enum status rule_parse(const struct rule_source *source, struct zone_set *zones,
                                struct rule *ret_rule, struct error *err);

/* The first firing strictly after an instant; an interval has none before its anchor.
 * Thread: any. */
struct firing rule_next(const struct rule *r, utc_us after);

/* A schedule's start and end. A start of UTC_UNBOUNDED and an end of UTC_PAST mean never. */
struct rule_bounds {
    utc_us starts_at; /* no firing before; UTC_NONE: open */
    utc_us ends_at;   /* no firing at or after; UTC_NONE: open */
};

/* The first firing strictly after an instant that start and end allow: what is planned and what is
 * foretold. Thread: any. */
struct firing rule_next_within(const struct rule *r, utc_us after, struct rule_bounds bounds);

/* How many firings that start and end allow lie strictly between two instants, and the last of
 * them. Work is in proportion to the days in between at most, not to the firings: a rule that fires
 * each minute may be asked about a year. `before` must be finite. Thread: any. */
int64_t rule_count_within(const struct rule *r, utc_us after, utc_us before,
                          struct rule_bounds bounds);
struct firing rule_last_within(const struct rule *r, utc_us after, utc_us before,
                               struct rule_bounds bounds);

/* True for a cron with one time of day, and for once: the local date then names the firing. */
bool rule_fires_at_most_once_a_local_day(const struct rule *r);

bool rule_kind_parse(const char *word, enum rule_kind *ret_kind);

/* The length of an interval's text in seconds. Returns: OK, INVALID. */
MUST_USE enum status interval_parse(const char *text, int64_t *ret_length_s, struct error *err);

#endif
