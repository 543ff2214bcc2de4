/* One schedule's part of the ledger, and what is wrong with it. Pure: no I/O, no clock.
 *
 * The rules are recomputed by the code that plans (rule, zone, plan_switch_find), so a fault in
 * that code is not found here. What is judged is the record: each firing that a version names while
 * it is in force has exactly one occurrence, or lies in a recorded gap, and no occurrence is one
 * that no version names.
 *
 * Where a version begins is recorded for the one in force only. It is recomputed from the version
 * before it and from what that one has planned: it goes on until the last firing it has dealt with,
 * also when that lies behind the edit (an edit may commit late). */
#ifndef RS_LEDGER_H
#define RS_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "ident.h"
#include "key.h"
#include "planner.h"
#include "rule.h"
#include "status.h"

enum reign_kind {
    REIGN_NOTHING, /* nothing is expected: ended, or withheld and in force */
    REIGN_RUN,     /* each firing has its occurrence or lies in a gap */
    REIGN_GAP,     /* paused, or broken: each firing lies in a gap since the next version began */
    REIGN_UNKNOWN, /* this host cannot read its rule */
};

struct ledger_version {
    int32_t version;
    utc_us effective_from;
    bool ended, paused, once;
    bool form_fixed;    /* a version before it has fixed the form of keys */
    enum status parsed; /* of its rule: OK; INVALID; other: this host cannot tell */
    struct rule rule;
    struct rule_bounds bounds;
    int64_t jitter_us; /* also when the rule cannot be read */
    char problem[200]; /* unless parsed is OK */

    /* Found by ledger_reigns_find. */
    utc_us last; /* the latest firing it dealt with; UTC_NONE: none in sight */
    size_t runs; /* occurrences it planned, in sight */
    utc_us base; /* its firings are those strictly after it */
    utc_us end;  /* and before it */
    bool taken;  /* taken in by a leader */
    enum reign_kind kind;
    const struct ledger_version *namer; /* whose rule names the firings of a GAP; else itself */
    enum key_form form;
};

struct ledger_firing {
    utc_us at;
    int32_t version;
    bool by_hand; /* manual or backfill: it only takes a key away */
    bool named;   /* found to be one that its version names */
    struct local_time nominal;
    int32_t offset_s;
    utc_us planned_at;
    const char *key;           /* borrowed */
    const char *business_date; /* borrowed; "" for NULL */
};

struct ledger_gap {
    utc_us from, to;
    int32_t version;
    int64_t firings;
    const char *from_key, *to_key, *reason; /* borrowed */
};

struct ledger_subject {
    const char *name;
    struct ledger_version *versions; /* by number; the first is in force before the span begins */
    size_t version_count;
    struct ledger_firing *firings; /* by time */
    size_t firing_count;
    const struct ledger_gap *gaps; /* by their first firing */
    size_t gap_count;
    bool has_progress;
    int32_t version; /* taken in last */
    utc_us switched_at, next_fire_at, last_fire_at;
    bool has_form, has_problem;
    enum key_form form;
    bool held; /* nothing is planned in its scope */
};

struct ledger_span {
    utc_us from, to; /* due at or after, and before */
    utc_us now;      /* of the database, when it was read */
    bool to_now;     /* the span ends with what is due now */
    int64_t grace_us;
};

enum ledger_verdict {
    LEDGER_WRONG,
    LEDGER_LOOK,      /* worth a look, no fault */
    LEDGER_UNCHECKED, /* could not be checked */
};

enum ledger_doubt {
    DOUBT_NONE,
    DOUBT_MISSING, /* unless its key has an occurrence at another time, or the version began later
                    */
    DOUBT_TAKEN,   /* a gap says that its key was taken: unless an occurrence has it */
};

/* One thing, or the same thing of firings that follow one another. */
struct ledger_finding {
    enum ledger_verdict verdict;
    enum ledger_doubt doubt; /* of one firing; the caller looks it up */
    bool follows;            /* the firing before it has a DOUBT_MISSING as well */
    bool near;               /* the version's edit was made within a day before */
    const char *what;        /* a word: missing, unnamed ... */
    const char *schedule;    /* borrowed from the subject */
    char key[KEY_MAX_BYTES], to_key[KEY_MAX_BYTES];
    utc_us at, to;
    int64_t firings;
    int32_t version;
    int32_t first_version; /* of several that it is about; 0: one */
    utc_us since;          /* of the version; UTC_NONE: not known */
    char detail[400];
};

struct ledger_counts {
    int64_t schedules, due, planned, in_gaps, not_yet, withheld;
};

struct ledger_sink {
    void (*add)(void *context, const struct ledger_finding *finding);
    void *context;
    struct ledger_counts counts;
};

/* Fill the found part of each version. `candidates` is scratch. */
void ledger_reigns_find(struct ledger_subject *s, struct plan_candidates *candidates);

/* The version of a number; NULL: not in sight. */
struct ledger_version *ledger_version_find(const struct ledger_subject *s, int32_t version);

/* Judge the firings that are due within the span. Adds findings to the sink and counts. */
void ledger_check(struct ledger_subject *s, const struct ledger_span *span,
                  struct plan_candidates *candidates, struct ledger_sink *sink);

/* The part of it about the gaps alone (ledger_gap.c). */
void ledger_gaps_check(const struct ledger_subject *s, const struct ledger_span *span,
                       struct ledger_sink *sink);

/* A finding about one firing, to be completed. */
struct ledger_finding ledger_finding_of(const struct ledger_subject *s,
                                        const struct ledger_version *v, const char *what, utc_us at,
                                        const char *key);

#endif
