/* A schedule's rule: one type over the kinds `cron`, `rrule`, `interval` and `once`, and its next
 * firing.
 *
 * cron      an expression in a zone (cron.h).
 * rrule     a recurrence rule of RFC 5545 in a zone (rrule.h).
 * interval  elapsed time from an anchor instant: "15 minutes", "1 hour 30 minutes", "2 days",
 *           "90 s"; a day is 24 hours whatever the clocks do. At least 1 second.
 * once      "YYYY-MM-DDTHH:MM[:SS]" in the zone; with an offset or Z behind it, that instant. A
 *           local time in a gap or an overlap is refused with the two instants it could mean.
 *
 * Jitter spreads the firings of many schedules: each schedule has one delay, which never changes
 * while its name and jitter_s do not. It is added when all else is settled: a firing keeps its
 * nominal time, its offset, its key and its window, and is due later. All instants that go in or
 * come out here have it in them, except start and end, which bound the rule. Since it is the same
 * for all firings of a schedule it changes neither their order nor their number.
 * A calendar says what becomes of nominal dates that are no business days (calendar.h): the date is
 * rolled by the convention and moved by the offset, the local time of day of that date follows the
 * DST policies, and then there is jitter. The firing keeps its nominal time, by which it is known,
 * whichever day it comes to; firings are ordered by instant. Of several nominal dates that come to
 * one instant the latest fires; with run_all each, a second apart. Only rules that fire at most
 * once a local date can be moved; finer ones may skip days.
 *
 * rule_next is pure; rule_parse may read the zone's file through the set. */
#ifndef RS_RULE_H
#define RS_RULE_H

#include "business_date.h"
#include "calendar.h"
#include "clock.h"
#include "cron.h"
#include "firing.h"
#include "rrule.h"
#include "status.h"
#include "zone_file.h"

#define INTERVAL_MAX_S    ((int64_t)36525 * SECONDS_A_DAY) /* a hundred years */
#define RULE_JITTER_MAX_S 3600

#define BUSINESS_DAY_OFFSET_MAX 31 /* as in SQL: work grows with it */

enum rule_kind {
    RULE_CRON,
    RULE_RRULE,
    RULE_INTERVAL,
    RULE_ONCE,
};

/* A rule as it stands in a schedule row. Zero policies are AUTO. */
struct rule_source {
    const char *kind; /* "cron", "rrule", "interval", "once" */
    const char *text;
    const char *dialect; /* cron: "std" or NULL; "quartz": the text is converted first */
    const char *zone;    /* IANA name; for an interval it only says what local date a firing has */
    utc_us anchor;       /* interval: its first firing and the phase of all others; finite */
    enum dst_gap_policy gap;         /* cron, rrule */
    enum dst_overlap_policy overlap; /* cron, rrule */
    bool has_start;
    struct local_time start;                   /* rrule: DTSTART */
    const struct local_time *exdates, *rdates; /* rrule: as local_times_sort leaves them */
    size_t exdate_count, rdate_count;
    int64_t jitter_us;               /* rule_jitter_us */
    const struct calendar *calendar; /* must live as long as the rule; NULL: none */
    enum roll_convention nonbusiness;
    int32_t business_day_offset;
    bool run_all;                         /* of dates that come to one instant */
    const char *business_date;            /* NULL: run_date; t_minus counts by `calendar` */
    const struct fiscal_periods *periods; /* of its fiscal calendar; must live as long */
};

struct rule {
    enum rule_kind kind;
    const struct zone *zone;        /* borrowed from the zone set, which must live longer */
    struct cron cron;               /* CRON */
    struct rrule rrule;             /* RRULE: its lists are those of the source */
    utc_us anchor;                  /* INTERVAL */
    int64_t length_s;               /* INTERVAL */
    utc_us once_at;                 /* ONCE */
    struct local_time once_nominal; /* ONCE: what the zone's clock shows then */
    int64_t jitter_us;
    const struct calendar *calendar; /* NULL: none, or it changes nothing */
    enum roll_convention nonbusiness;
    int32_t business_day_offset;
    bool run_all;
    enum dst_gap_policy moved_gap; /* of a date that moves; never AUTO */
    enum dst_overlap_policy moved_overlap;
    struct business_date business; /* what its firings are about */
};

/* A schedule's delay: the 64-bit FNV-1a hash of its name modulo jitter_s, in whole seconds. It
 * depends on nothing else, so every replica and every version of this program has the same. */
int64_t rule_jitter_us(const char *schedule, int32_t jitter_s);

/* Keeps the lists of the source by address: they must live as long as the rule. Returns: OK;
 * INVALID (one line that says what to write instead); else as zone_set_find. Thread: the zone set's
 * owner. */
MUST_USE enum status rule_parse(const struct rule_source *source, struct zone_set *zones,
                                struct rule *ret_rule, struct error *err);

/* The text that a cron rule is planned by: that of another dialect in the grammar of cron.h.
 * Returns: OK; INVALID (with what to write). */
MUST_USE enum status rule_std_text(const struct rule_source *source, char ret_text[CRON_TEXT_MAX],
                                   struct error *err);

/* The first firing strictly after an instant; an interval has none before its anchor. Its instant
 * has the jitter in it. A calendar that does not know its day makes it `held`, which is not found.
 * Thread: any. */
struct firing rule_next(const struct rule *r, utc_us after);

/* What a firing with this nominal time is about. Thread: any. */
struct firing_about rule_about(const struct rule *r, struct local_time nominal);

/* Is each firing about a period, which has one firing? */
bool rule_is_of_periods(const struct rule *r);

/* The first instants of the first day and of the day behind the last, in the rule's zone. */
struct instant_range {
    utc_us from, to;
};
struct instant_range rule_period_window(const struct rule *r, const struct firing_about *about);

/* The instant that the rule itself names, without the jitter. */
utc_us rule_plain_instant(const struct rule *r, const struct firing *f);

/* A schedule's start and end. A start of UTC_UNBOUNDED and an end of UTC_PAST mean never. */
struct rule_bounds {
    utc_us starts_at; /* no firing before, jitter apart; UTC_NONE: open */
    utc_us ends_at;   /* no firing at or after, jitter apart; UTC_NONE: open */
};

/* The first firing strictly after an instant that start and end allow: what is planned and what is
 * foretold. Thread: any. */
struct firing rule_next_within(const struct rule *r, utc_us after, struct rule_bounds bounds);

/* Two firings that follow one another and have the same period, among PERIODS_LOOK from `first` on.
 * False: there are none. Thread: any. */
#define PERIODS_LOOK 400
bool rule_repeats_period(const struct rule *r, struct rule_bounds bounds,
                         const struct firing *first, struct firing ret_both[2]);

/* Is each period of the rule reported once, as far as that looks? True of rules about dates. */
bool rule_keeps_periods(const struct rule *r, struct rule_bounds bounds, utc_us after);

/* How many firings that start and end allow lie strictly between two instants, and the last of
 * them. Work is in proportion to the days in between at most, not to the firings: a rule that fires
 * each minute may be asked about a year. `before` must be finite. Thread: any. */
int64_t rule_count_within(const struct rule *r, utc_us after, utc_us before,
                          struct rule_bounds bounds);
struct firing rule_last_within(const struct rule *r, utc_us after, utc_us before,
                               struct rule_bounds bounds);

/* True for a rule with one time of day, and for once: the local date then names the firing. */
bool rule_fires_at_most_once_a_local_day(const struct rule *r);

/* Does its calendar move dates to other days? */
bool rule_moves_dates(const struct rule *r);

/* Do whole minutes tell its firings apart? */
bool rule_is_of_whole_minutes(const struct rule *r);

/* A list of local times as a database writes it: {"2030-04-12 06:00:00",...}. First how many it may
 * be at most, then the times in the form that a source needs. Returns: OK; INVALID; FULL. */
size_t local_times_most(const char *text);
MUST_USE enum status local_times_parse(const char *text, struct local_time *ret_times, size_t max,
                                       size_t *ret_count, struct error *err);

bool rule_kind_parse(const char *word, enum rule_kind *ret_kind);

/* The length of an interval's text in seconds. Returns: OK, INVALID. */
MUST_USE enum status interval_parse(const char *text, int64_t *ret_length_s, struct error *err);

#endif
