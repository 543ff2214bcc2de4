/* Clock kinds are types, so that two of them cannot be compared by accident (invariant I9).
 *
 * `instant` is CLOCK_BOOTTIME: it runs through suspend, is never stepped, means nothing outside
 * this boot. Leases, deadlines and sleeps use it. `utc_us` is wall time as the database said it
 * (or a computed fire time): no local wall clock produces one. */
#ifndef RS_CLOCK_H
#define RS_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct {
    int64_t ns; /* nanoseconds of CLOCK_BOOTTIME */
} instant;

typedef struct {
    int64_t us; /* microseconds since 1970-01-01T00:00:00Z, proleptic Gregorian, no leap seconds */
} utc_us;

#define INSTANT_NEVER ((instant){INT64_MAX}) /* later than any other */

/* Now. Thread: any. Never fails. */
instant clock_now(void);

/* t + ms, saturating at INSTANT_NEVER. Units: milliseconds, may be negative. */
instant instant_add_ms(instant t, int64_t ms);

/* Milliseconds from a to b, rounded down; negative if b is earlier. */
int64_t instant_ms_between(instant a, instant b);

bool instant_before(instant a, instant b); /* strictly */
instant instant_min(instant a, instant b);
instant instant_max(instant a, instant b);

/* Milliseconds to wait in poll(2) until t: 0 if passed, rounded up, at most INT_MAX / 2. */
int instant_poll_timeout(instant now, instant t);

/* `ms` (0 or more) from now by CLOCK_MONOTONIC, which is what a condition variable can wait by
 * (pthread_condattr_setclock). It stands still in suspend: wait in slices and look at clock_now. */
struct timespec clock_wait_end(int64_t ms);

#endif
