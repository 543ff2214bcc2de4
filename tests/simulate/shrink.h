/* The shortest list of faults that still breaks a run: delta debugging (ddmin). Pure. */
#ifndef RS_SHRINK_H
#define RS_SHRINK_H

#include <stdbool.h>
#include <stddef.h>

/* Does the run with these of the `count` faults (keep[i]) fail in the same way as the whole list
 * did? */
typedef bool shrink_fails(void *context, const bool *keep, size_t count);

/* keep[] must be all true and fail; it is left so that it fails and that without any one more it
 * does not (or until `runs_max` runs are used up). Returns how many are kept; *ret_runs: runs made.
 */
size_t shrink_list(shrink_fails *fails, void *context, bool *keep, size_t count, size_t runs_max,
                   size_t *ret_runs);

#endif
