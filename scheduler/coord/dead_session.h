/* Ending the session of a process that is gone, so that the next candidate need not wait until it
 * expires (close_dead_session.h, coord_zk_life.c). */
#ifndef RS_DEAD_SESSION_H
#define RS_DEAD_SESSION_H

#include "session_file.h"

/* End the session, and make sure that it has ended. *ret_was_open: it was there. Only for a
 * process that is proved dead. Returns: OK; AGAIN (no server could be asked: nothing resolves);
 * TIMEOUT (it falls by expiry). Blocks: until the deadline, some 4.5 s longer on a black-holed
 * connection, and as long as name resolution takes. */
MUST_USE enum status session_close_dead(const char *servers, const struct zk_session *session,
                                        instant deadline, bool *ret_was_open, struct error *err);

#endif
