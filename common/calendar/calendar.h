/* Business calendars: which days are business days, and how a date is moved to one. Pure: no I/O,
 * no clock, no names.
 *
 * Days are day numbers of civil.h. A day is a business day when it is in no weekend, unless its own
 * entry says otherwise (a holiday; a working day that makes up for one). What a calendar says holds
 * from valid_from to valid_through; outside, days without an entry are judged by the weekend alone
 * and the answer says so, or there is no answer (`hold`). Every search is bounded: a calendar
 * without business days answers NOT_FOUND. */
#ifndef RS_CALENDAR_H
#define RS_CALENDAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "status.h"

#define CALENDAR_DAYS_MAX     20000
#define CALENDAR_WEEKENDS_MAX 32
#define CALENDAR_PARTS_MAX    16
#define CALENDAR_YEAR_MIN     1900 /* of entries and weekend changes; questions may lie outside */
#define CALENDAR_YEAR_MAX     2299
#define CALENDAR_CLOSED_MAX   366 /* days a search goes without meeting a business day */
#define CALENDAR_ADD_MAX      10000
#define CALENDAR_ALWAYS       INT64_MIN /* valid_from, and a weekend's `from`: since ever */
#define CALENDAR_FOREVER      INT64_MAX /* valid_through: no end */

/* The weekend from a day on; bit n of `days` is weekday n of civil.h (0 = Sunday). */
struct calendar_weekend {
    int64_t from;
    uint8_t days;
};

/* One day that differs from the weekend rule. */
struct calendar_special {
    int64_t day;
    bool business; /* false: holiday; true: working day */
};

enum calendar_beyond {
    CALENDAR_BEYOND_WEEKENDS, /* outside validity the weekend decides; the answer says `beyond` */
    CALENDAR_BEYOND_HOLD,     /* outside validity there is no answer: HELD */
};

/* What a calendar is made from. Arrays are borrowed for the call only. */
struct calendar_rules {
    const struct calendar_weekend *weekends; /* ascending by `from`, the first CALENDAR_ALWAYS */
    size_t weekend_count;                    /* 0: no weekends */
    const struct calendar_special *days;     /* any order; of one day the last entry holds */
    size_t day_count;
    int64_t valid_from, valid_through; /* both included */
    enum calendar_beyond beyond;
};

enum calendar_combination {
    CALENDAR_UNION,        /* union of the holidays: a business day is one of all parts */
    CALENDAR_INTERSECTION, /* a business day is one of any part */
};

/* A calendar made of others. Borrowed for the call only. */
struct calendar_joint {
    enum calendar_combination combination;
    const struct calendar *const *parts;
    size_t part_count;                   /* 1 to CALENDAR_PARTS_MAX */
    const struct calendar_special *days; /* entries of its own, which overrule the parts */
    size_t day_count;
};

struct calendar;

/* Owns: calendar_free (NULL is fine); immutable, so any thread may ask.
 * Returns: OK; INVALID (an entry out of the years or bounds above); FATAL (out of memory). */
MUST_USE enum status calendar_new(const struct calendar_rules *rules, struct calendar **ret,
                                  struct error *err);
MUST_USE enum status calendar_combine(const struct calendar_joint *joint, struct calendar **ret,
                                      struct error *err);
void calendar_free(struct calendar *c);

/* What to do with a date that is no business day. The words are the names in lower case without
 * ROLL_; they mean what QuantLib's conventions of the same names mean, `run` its Unadjusted. */
enum roll_convention {
    ROLL_RUN,                           /* stay */
    ROLL_SKIP,                          /* drop the date */
    ROLL_FOLLOWING,                     /* the next business day */
    ROLL_MODIFIED_FOLLOWING,            /* the next; the one before if that is in another month */
    ROLL_PRECEDING,                     /* the one before */
    ROLL_MODIFIED_PRECEDING,            /* the one before; the next if that is in another month */
    ROLL_HALF_MONTH_MODIFIED_FOLLOWING, /* modified_following that does not cross the 15th either */
    ROLL_NEAREST,                       /* the nearer one; the next if both are as near */
};

/* Returns: OK; INVALID (the text lists the words). */
MUST_USE enum status roll_convention_parse(const char *word, enum roll_convention *ret,
                                           struct error *err);
const char *roll_convention_name(enum roll_convention convention);

struct calendar_answer {
    int64_t day;
    bool skipped; /* ROLL_SKIP, and the date is no business day: there is no day */
    bool beyond;  /* a day outside validity was judged by the weekend alone */
};

/* True for a business day; outside validity by the weekend and the entries there are. */
bool calendar_is_business_day(const struct calendar *c, int64_t day);

/* The first and the last day it vouches for; of a combination, that all its parts vouch for. */
int64_t calendar_valid_from(const struct calendar *c);
int64_t calendar_valid_through(const struct calendar *c);

/* The longest run of days without a business day, at most CALENDAR_CLOSED_MAX + 1: how far a roll
 * can move a date, and so how far ahead a search for rolled dates must look. */
int32_t calendar_longest_closed(const struct calendar *c);

/* The questions below return: OK; HELD (a day that matters is outside the validity of a calendar
 * that holds there); NOT_FOUND (no business day within CALENDAR_CLOSED_MAX days, or in the month).
 * Thread: any. */

/* A date by a convention; a business day stays. Only days that decide are looked at: for the last
 * day of a month modified_following asks nothing about the next month. */
MUST_USE enum status calendar_roll(const struct calendar *c, enum roll_convention convention,
                                   int64_t day, struct calendar_answer *ret, struct error *err);

/* The n-th business day after (n < 0: before) a day, which itself is not counted. INVALID: n is 0
 * or beyond CALENDAR_ADD_MAX. */
MUST_USE enum status calendar_add(const struct calendar *c, int64_t day, int32_t n,
                                  struct calendar_answer *ret, struct error *err);

/* The first and the last business day of the month that a day is in. */
MUST_USE enum status calendar_first_of_month(const struct calendar *c, int64_t day,
                                             struct calendar_answer *ret, struct error *err);
MUST_USE enum status calendar_last_of_month(const struct calendar *c, int64_t day,
                                            struct calendar_answer *ret, struct error *err);

#endif
