/* The life of a scheduler process: start coordination and scopes, watch that every loop turns,
 * stop in order.
 *
 * SIGTERM or SIGINT: every scope drains, releases and withdraws, then the session is closed; a
 * second signal, or stop_ms, ends the process at once, and its place falls by expiry. */
#ifndef RS_SCHEDULER_DAEMON_H
#define RS_SCHEDULER_DAEMON_H

#include "scheduler_settings.h"
#include "status.h"

/* Run until a stop is asked for, with daemon_signals_block done. SIGHUP reads the file at `path`
 * again. Returns: OK; INVALID, FATAL (it did not start); TIMEOUT: the stop took too long and
 * threads are left: only _exit may follow. */
MUST_USE enum status scheduler_run(const char *path, const struct scheduler_settings *settings,
                                   struct error *err);

#endif
