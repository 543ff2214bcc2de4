/* How many firings of schedules are due and not planned, which only the code that plans can tell.
 */
#ifndef RS_DUE_COUNT_H
#define RS_DUE_COUNT_H

#include "session.h"

/* *table has a schedule a row, in its first column; the others are last_fire_at, next_fire_at and
 * misfire. It is replaced by one that has the column firings besides: those from the next one until
 * now, by the version in force; no value where that cannot be read. Returns: EXIT_DONE; else as
 * session_select, and the table is as it was. */
MUST_USE enum exit_code due_count_add(struct session *s, struct table **table);

#endif
