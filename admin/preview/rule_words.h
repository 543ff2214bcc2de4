/* What the rule of a stored schedule says, for people: in words, with what surrounds it, and with
 * notes on what is easily misread (rule_text.h, rule_notes.h). */
#ifndef RS_RULE_WORDS_H
#define RS_RULE_WORDS_H

#include "session.h"

/* Of which schedule, and how much. */
struct rule_words_about {
    const char *schedule;
    utc_us shown_to;  /* the last of the firings that stand above the words; else 0 */
    bool latest_only; /* not the rule in force until an announced one */
};

/* Rows of (about, text): `rule` in words, `std` (its text there, of another dialect), `days` (what
 * its calendar does), `bounds` (start and end), `delay` (jitter), `clock` (what becomes of its
 * times when the clock changes) and any number of `note`, from the database's clock on. Where an
 * edit is announced that says something else: first the rule in force, then the announced one, each
 * behind a row `version`. No rows: the schedule is not there, or its rule cannot be computed, which
 * firing_list.h tells. A failure has been reported. Owns: *ret_table, table_free. */
enum exit_code rule_words_make(struct session *s, const struct rule_words_about *about,
                               struct table **ret_table);

/* The rows as sentences, one a line. */
void rule_words_print(const struct table *t, FILE *out);

#endif
