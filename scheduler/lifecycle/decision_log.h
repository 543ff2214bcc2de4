/* Leader work as it is decided, told at log level debug: what a checker apart from this code needs
 * to see that nothing was decided after the lease (invariant I8). Two instants of one clock, so
 * that pauses between the decision and the line do not matter. */
#ifndef RS_DECISION_LOG_H
#define RS_DECISION_LOG_H

#include "authority.h"
#include "lease.h"

/* `what` is a word. `at`: when the lease was looked at. Thread: any. Blocks: as log_event. */
void decision_tell(const char *what, const struct authority *authority, instant at,
                   const struct lease *lease);

#endif
