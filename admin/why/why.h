/* Inside of why*.c: one run of `reportctl why`. Thread: main. */
#ifndef RS_WHY_H
#define RS_WHY_H

#include "session.h"
#include "store_verify.h"
#include "why_hops.h"
#include "why_story.h"

#define WHY_ANSWER_MAX 1200

struct why {
    struct session *s;
    struct why_ask ask;   /* as it was asked */
    struct why_ask asked; /* as a time */
    char scope[NAME_MAX_BYTES];
    const struct ledger_subject *subject;
    struct why_story story;
    char key[KEY_MAX_BYTES]; /* "": none */
    int32_t version;         /* 0: none */
    utc_us due;              /* UTC_NONE: none */
    char local[RFC3339_TEXT_MAX];
    char namesake[KEY_MAX_BYTES]; /* of the story */
    utc_us namesake_at;
    char answer[WHY_ANSWER_MAX];
    struct why_hops hops;
};

/* Replace the answer. */
void why_answer(struct why *w, const char *format, ...) PRINTF_LIKE(2, 3);
/* Append to it. */
void why_add(struct why *w, const char *format, ...) PRINTF_LIKE(2, 3);

/* A cell of the first row, "" for none. Borrowed. */
const char *why_value(const struct table *t, const char *name);

/* Rows of a query of places, steps, times and words as steps. */
enum exit_code why_hops_select(struct why *w, const char *sql, int count,
                               const char *const *values);

/* An instant as text: RFC 3339 in UTC, without a fraction that is zero; and as a parameter. */
struct why_text {
    char text[RFC3339_TEXT_MAX];
};
struct why_text why_utc(utc_us at);
struct why_text why_local(const struct firing *f); /* with its offset */

/* The occurrence w->key exists: answer and steps (why_chain.c). */
enum exit_code why_chain_tell(struct why *w, const struct table *occurrence);

/* None exists: the reason (why_reason.c, of one that a calendar took away why_day.c). */
enum exit_code why_day_tell(struct why *w);
enum exit_code why_reason_tell(struct why *w);

#endif
