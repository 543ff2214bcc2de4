/* "Did you mean": the known word that a mistyped one is nearest to. Pure; used for settings,
 * command words and options. */
#ifndef RS_NEAREST_H
#define RS_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *typed; /* borrowed; the first 63 bytes count */
    const char *best;  /* NULL: nothing is near enough to be worth saying */
    size_t distance;
};

struct nearest nearest_start(const char *typed);
void nearest_offer(struct nearest *n, const char *known);

#endif
