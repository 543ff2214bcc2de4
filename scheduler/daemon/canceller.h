/* The thread that cancels running statements when the session is suspended or lost, or a scope is
 * stuck. A thread of its own, since a cancel request is a new connection to the server: it may take
 * seconds, which neither the coordination (its heartbeat) nor the watchdog can spare. */
#ifndef RS_CANCELLER_H
#define RS_CANCELLER_H

#include <stddef.h>

#include "inbox.h"
#include "scope.h"
#include "status.h"

struct canceller;

/* `urgent`: the inbox given to coord_options (messages are struct coord_event). Both are borrowed
 * until canceller_stop returned OK. Returns: OK, FATAL. Owns: canceller_stop. */
MUST_USE enum status canceller_start(struct inbox *urgent, struct scope *const *scopes,
                                     size_t count, struct canceller **ret_canceller,
                                     struct error *err);

/* Cancel the statement of scopes[index]. Thread: any. Blocks: never. */
void canceller_ask(struct canceller *c, size_t index);

/* Returns: OK; TIMEOUT: a cancel request still hangs. Blocks: until deadline. NULL is fine. */
MUST_USE enum status canceller_stop(struct canceller *c, instant deadline);

#endif
