/* Crash-fast release: claims outlive their worker only because nobody gives them up.
 *
 * `report-worker --release-claims` runs after the daemon was killed (systemd's ExecStopPost=, or
 * any supervisor): it proves by the life file that the process and all programs it started are
 * gone, and returns its jobs, so that another worker has them within milliseconds. The lapse of
 * claims stays the path that must always work: every failure here costs time only. Thread: of a
 * process that does nothing else. */
#ifndef RS_RELEASE_CLAIMS_H
#define RS_RELEASE_CLAIMS_H

#include "ident.h"
#include "store_release.h"

/* Release, again while other sessions hold rows, until the deadline. ret_released->jobs: in all;
 * remaining: left to the leader. Returns: OK; AGAIN; TIMEOUT; INVALID. Blocks: until the deadline.
 */
MUST_USE enum status claims_release(struct store *store, const char *worker, instant deadline,
                                    struct released_claims *ret_released, struct error *err);

/* What --release-claims does; the exit status (after_death.h). `settings`: struct worker_settings.
 * Blocks: bounded, at most 20 s. */
int release_claims(const void *settings);

#endif
