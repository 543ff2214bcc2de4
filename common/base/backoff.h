/* How long to wait before trying again. Pure: the caller brings the random number. */
#ifndef RS_BACKOFF_H
#define RS_BACKOFF_H

#include <stdint.h>

struct backoff {
    int64_t base_ms; /* after the first failure; at least 1 */
    int64_t most_ms; /* never longer; at least base_ms */
};

/* Milliseconds to wait after `failures` failures in a row (1 or more; 0 counts as 1): doubles from
 * base to most, then spread evenly over the upper half, [d/2, d], so that replicas that failed
 * together do not come back together. `random`: any evenly distributed 64-bit number. */
int64_t backoff_ms(const struct backoff *policy, unsigned failures, uint64_t random);

#endif
