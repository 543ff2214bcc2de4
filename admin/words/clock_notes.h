/* What the next changes of the clock do to a rule: for rule_notes.c. Pure. */
#ifndef RS_CLOCK_NOTES_H
#define RS_CLOCK_NOTES_H

#include "notes.h"
#include "rule.h"

#define CLOCK_NOTES_AHEAD_S ((int64_t)731 * SECONDS_A_DAY) /* how far changes are looked for */

/* The first gap and the first overlap within two years of `from`, start and end allowing, that
 * touch a rule of kind cron or rrule. Thread: any. */
void clock_notes_add(const struct rule *r, struct rule_bounds bounds, utc_us from, struct notes *n);

#endif
