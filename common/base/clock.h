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

/* What SQL has besides instants. NULL and '-infinity' are two: as an end, one is open and the other
 * means never. */
#define UTC_NONE      ((utc_us){INT64_MIN})     /* NULL */
#define UTC_PAST      ((utc_us){INT64_MIN + 1}) /* '-infinity': earlier than any other */
#define UTC_UNBOUNDED ((utc_us){INT64_MAX})     /* 'infinity': later than any other */

static inline bool utc_is_none(utc_us t)
{
    return t.us == INT64_MIN;
}

static inline bool utc_is_finite(utc_us t)
{
    return t.us > INT64_MIN + 1 && t.us < INT64_MAX;
}

/* Now. Thread: any. Never fails. */
instant clock_now(void);

#define CLOCK_STAMP_MAX 32

/* The local wall clock as "2030-04-12T06:00:00.123Z", for log lines and as the beginning of a
 * preview: nothing is ever decided by it (invariant I9). Thread: any. */
void clock_stamp(char ret_text[CLOCK_STAMP_MAX]);

/* The local wall clock. Evidence for the clock guard, which is the one exception that I9 names: it
 * is compared with the database's clock in scheduler/lifecycle/clock_guard.h and nowhere else. */
typedef struct {
    int64_t us; /* microseconds since 1970-01-01T00:00:00Z */
} wall_us;

/* Does a time service keep the wall clock to less than a second? The kernel says it. */
enum clock_kept {
    CLOCK_KEPT_UNKNOWN, /* it may not be asked: ProtectClock= of the systemd unit forbids it */
    CLOCK_KEPT_NOT,
    CLOCK_KEPT,
};

/* Thread: any. Never fails. */
wall_us clock_wall(enum clock_kept *ret_kept);

/* t + ms, saturating at INSTANT_NEVER. Units: milliseconds, may be negative. */
instant instant_add_ms(instant t, int64_t ms);

/* The same in microseconds. */
instant instant_add_us(instant t, int64_t us);

/* Milliseconds from a to b, rounded down; negative if b is earlier. */
int64_t instant_ms_between(instant a, instant b);

bool instant_before(instant a, instant b); /* strictly */
instant instant_min(instant a, instant b);
instant instant_max(instant a, instant b);

/* Milliseconds to wait in poll(2) until t: 0 if passed, rounded up, at most INT_MAX / 2. */
int instant_poll_timeout(instant now, instant t);

/* The same for ppoll(2), to the nanosecond. */
struct timespec instant_poll_wait(instant now, instant t);

/* `ms` (0 or more) from now by CLOCK_MONOTONIC, which is what a condition variable can wait by
 * (pthread_condattr_setclock). It stands still in suspend: wait in slices and look at clock_now. */
struct timespec clock_wait_end(int64_t ms);

#endif
