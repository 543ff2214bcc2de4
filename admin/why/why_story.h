/* What became of one firing, as far as rule, versions, gaps and progress tell. Pure. */
#ifndef RS_WHY_STORY_H
#define RS_WHY_STORY_H

#include "ledger.h"
#include "why_ask.h"

/* Of one that has its occurrence the others are not asked about. */
enum why_kind {
    WHY_NOT_YET,      /* named, and still to come */
    WHY_IN_GAP,       /* named, not run, and recorded as such */
    WHY_WAITS,        /* due, and the leader has not come to it */
    WHY_LOST,         /* due and dealt with, and nothing tells of it */
    WHY_NOT_NAMED,    /* the rule does not name the time */
    WHY_SKIPPED,      /* the rule names it, and its date is no business day: nonbusiness is skip */
    WHY_UNKNOWN_DAY,  /* the rule names it, and its calendar does not know the days */
    WHY_JOINED,       /* the rule names it, and its date comes to that of another, which fires */
    WHY_BEFORE_START, /* starts_at */
    WHY_AFTER_END,    /* ends_at */
    WHY_NOT_MADE,     /* the schedule was not there yet */
    WHY_DELETED,      /* it was deleted */
    WHY_WITHHELD,     /* paused or broken, and in force: it will become a gap */
    WHY_UNREADABLE,   /* the version's rule cannot be read here */
    WHY_SEVERAL,      /* a date on which it fires more than once */
};

struct why_story {
    enum why_kind kind;
    const struct ledger_version *version; /* in force then; NULL: none */
    const struct ledger_version *other;   /* NOT_NAMED: another one that names it; NULL: none */
    struct firing firing;                 /* when named */
    char key[KEY_MAX_BYTES];
    utc_us at;                    /* the firing's, or the one that was asked about */
    const struct ledger_gap *gap; /* IN_GAP */
    struct firing before, after;  /* NOT_NAMED, SEVERAL, SKIPPED ...: the nearest */
    int64_t date, to_date;        /* SKIPPED ...: the nominal day; JOINED: the day it comes to */
    char
        namesake[KEY_MAX_BYTES]; /* another firing, whose nominal time is the asked one; "": none */
    utc_us namesake_at;
    enum local_kind clock; /* what the asked local time was to the zone's clock */
    utc_us twin;           /* OVERLAP: the other instant */
    int64_t on_date;       /* SEVERAL: how many */
};

/* The version that planned, or plans, what is due at an instant; NULL: before the first. */
const struct ledger_version *why_version_at(const struct ledger_subject *s, utc_us at);

/* When the firing is due that has the period of a key, by the version in force when that was over,
 * or the latest one in sight. False: the schedule is about dates, or its rule names no such firing.
 */
bool why_period_find(const struct ledger_subject *s, const char *key, utc_us *ret_at);

/* Reigns must have been found. `ask` is INSTANT, LOCAL or DATE. Where a calendar moves firings, a
 * time or date means what runs then, or else what has it as its nominal one; that of a key means
 * only the latter. */
void why_story_find(const struct ledger_subject *s, const struct why_ask *ask, utc_us now,
                    struct why_story *ret);

#endif
