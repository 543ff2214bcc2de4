/* What people should know about a rule of any kind before they rely on it: that nothing of it ever
 * fires, what is easily taken for something else, what the clock changes of its zone do to it, how
 * often a day it fires, when it ends. Pure. */
#ifndef RS_RULE_NOTES_H
#define RS_RULE_NOTES_H

#include "notes.h"
#include "rule_text.h"

/* All there is to say, from an instant on. Work: a hundred searches for a firing at most. Thread:
 * any. */
void rule_notes_make(const struct rule *r, const struct rule_around *around, utc_us from,
                     struct notes *ret_notes);

/* Why no firing comes after an instant: one sentence. Returns false, and leaves the text, when one
 * does. */
bool rule_nothing_explain(const struct rule *r, const struct rule_around *around, utc_us from,
                          char ret_text[NOTE_TEXT_MAX]);

#endif
