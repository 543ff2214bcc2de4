/* What a recurrence rule says, in plain English: complete over the grammar, and never less exact
 * than the rule, but that of long lists of single dates only the ends are named. Pure.
 *
 *   FREQ=WEEKLY;INTERVAL=2;BYDAY=MO   at 08:00 on Monday, every 2nd week counted from that of
 *                                     2030-01-07 (weeks begin on Monday), from 2030-01-07 08:00 on
 *   FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=-1   at 08:00 on Monday and Tuesday, of these times only the
 *                                          last of each month, from 2030-01-07 08:00 on */
#ifndef RS_RRULE_TEXT_H
#define RS_RRULE_TEXT_H

#include "plain.h"
#include "rrule.h"

#define RRULE_PLAIN_MAX 16384 /* with NUL; nothing is ever cut */

/* Add the sentence, without a capital and a full stop; at most RRULE_PLAIN_MAX. Thread: any. */
void rrule_text_add(struct plain *t, const struct rrule *r);

#endif
