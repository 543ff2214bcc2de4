/* Removing files of attempts that crashed or were fenced, once their (job, token) is closed in the
 * database and no artifact row names them (invariant I7). Bounded steps: a walk keeps one open
 * directory a level and looks at a limited number of files a step, whatever is in the store. */
#ifndef RS_ARTIFACT_SWEEP_H
#define RS_ARTIFACT_SWEEP_H

#include <stddef.h>

#include "artifact.h"
#include "clock.h"
#include "status.h"
#include "store.h"

struct sweep;

struct sweep_counts {
    size_t seen; /* artifact files looked at */
    size_t removed;
    size_t foreign; /* names that are not of our making: left alone */
};

/* Begin a walk through one installation's part of a store; the store is borrowed.
 * Owns: sweep_end (NULL is fine). NULL when out of memory. A part that does not exist is empty. */
struct sweep *sweep_begin(const struct artifact_store *store, const char *installation);
void sweep_end(struct sweep *s);

/* Look at up to 100 more files and remove what may go; adds to *counts.
 * Returns: OK (there may be more); NOT_FOUND (the walk is over); AGAIN, TIMEOUT, INVALID as
 * store_unreferenced: nothing was removed, these files are seen again by the next walk.
 * Blocks: on the file system, and until the deadline on the database. */
MUST_USE enum status sweep_step(struct sweep *s, struct store *db, instant deadline,
                                struct sweep_counts *counts, struct error *err);

#endif
