/* Which firings a backfill is about: those of a past span of keys, by the version of the schedule
 * that is in force. reportctl and the HTTP server enumerate by the same code. Thread: any. Blocks:
 * never; computes for as long as the span is dense. */
#ifndef RS_BACKFILL_SPAN_H
#define RS_BACKFILL_SPAN_H

#include "backfill_json.h"
#include "store_plan.h"

/* Bounds as somebody wrote them: keys, or beginnings of keys. Texts are borrowed. */
struct backfill_span {
    const char *from, *to;
    const char *from_name, *to_name; /* what the two are called where they were written */
    bool label_from, label_to;       /* they may be of fiscal periods: the rule knows their days */
    utc_us begin, end;               /* no firing with a key between them is due outside of these */
};

/* From the first four members. Returns: OK; INVALID (the text names the bound and the remedy). */
MUST_USE enum status backfill_span_read(struct backfill_span *span, struct error *err);

/* Whose firings. */
struct backfill_subject {
    const struct due_row *row; /* the version in force */
    const struct rule *rule;   /* of that row */
    struct backfill_span span; /* as it was read */
    utc_us now;                /* what is to come the leader plans */
    int64_t look_max;          /* firings that are looked at; 0: all */
};

/* In order of time; half a megabyte, so that it lives on the heap. */
struct backfill_firings {
    struct plan_candidates list; /* at most BACKFILL_MAX */
    struct backfill_window windows[BACKFILL_MAX];
};

/* By the version in force, also where others were in force then: the keys are the schedule's.
 * `ret` is all zero before. Returns: OK; INVALID (a bound, or too many: ask for less); NOT_FOUND
 * (none was due with such a key); CONFLICT (what one is about cannot be told). */
MUST_USE enum status backfill_firings_find(const struct backfill_subject *subject,
                                           struct backfill_firings *ret, struct error *err);

/* What would become of the i-th one, whose `taken` is set: there, left to the leader, make. */
const char *backfill_becomes(const struct backfill_firings *f, size_t i, const struct due_row *row);

#endif
