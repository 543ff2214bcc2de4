/* What a schedule's rule says, of every kind, and what surrounds it, in plain English. Pure.
 *
 *   rule     at 06:30 on Monday to Friday, by the clock of Europe/Berlin
 *   days     a date that is no business day of calendar "office" moves to the next business day
 *   bounds   nothing fires from 2031-01-01T00:00:00Z on
 *   delay    each firing is due 137 seconds later than the rule says
 *   clock    a time that the clock skips runs once, at the first instant after the gap; ...
 */
#ifndef RS_RULE_TEXT_H
#define RS_RULE_TEXT_H

#include "rrule_text.h"
#include "rule.h"

#define RULE_PLAIN_MAX (RRULE_PLAIN_MAX + 256) /* with NUL; nothing is ever cut */

/* What is told of a rule besides itself. */
struct rule_around {
    struct rule_bounds bounds;
    const char *calendar; /* its name, when the schedule has one; else NULL */
    utc_us shown_to;      /* the last of the firings that stand above the words; else 0 */
};

enum rule_sentence {
    SENTENCE_RULE,
    SENTENCE_DAYS,
    SENTENCE_BOUNDS,
    SENTENCE_DELAY,
    SENTENCE_CLOCK,
};
#define RULE_SENTENCES 5

/* "rule", "days", ... */
const char *rule_sentence_name(enum rule_sentence which);

/* Write one sentence, without a capital and a full stop. `from`: changes of the clock before it do
 * not matter. Returns false, and writes "", when there is nothing to say. Thread: any. */
bool rule_sentence_write(const struct rule *r, const struct rule_around *around,
                         enum rule_sentence which, utc_us from, char ret_text[RULE_PLAIN_MAX]);

#endif
