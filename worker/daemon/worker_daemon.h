/* The life of a worker process: start the threads, guard the claims' deadlines, stop in order.
 *
 * The main thread waits for signals and is the guard: it asks neither PostgreSQL nor a runner, so
 * a claim's deadline is kept whatever hangs. SIGTERM or SIGINT: claim nothing more, let jobs finish
 * for drain_ms, hand the rest back, leave; a second signal hands back at once. A thread of its own
 * ends the process when all this takes too long: then the leases lapse and the keepers end the
 * programs, which is what happens after a crash too. */
#ifndef RS_WORKER_DAEMON_H
#define RS_WORKER_DAEMON_H

#include "status.h"
#include "worker_settings.h"

/* Run until a stop is asked for, with daemon_signals_block done. SIGHUP reads the file at `path`
 * again. Returns: OK; INVALID, FATAL (it did not start). */
MUST_USE enum status worker_run(const char *path, const struct worker_settings *settings,
                                struct error *err);

#endif
