/* The only file that reads a clock. */
#include "clock.h"

#include <assert.h>
#include <stdio.h>
#include <sys/timex.h>
#include <time.h>

#define SYNCHRONISED_US 1000000 /* the kernel's bound of its error */

instant clock_now(void)
{
    struct timespec ts;
    int rc = clock_gettime(CLOCK_BOOTTIME, &ts);
    assert(rc == 0);
    (void)rc;
    return (instant){(int64_t)ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec};
}

struct timespec clock_wait_end(int64_t ms)
{
    struct timespec ts;
    int rc = clock_gettime(CLOCK_MONOTONIC, &ts);
    assert(rc == 0);
    (void)rc;
    int64_t ns = ts.tv_nsec + (ms % 1000) * INT64_C(1000000);
    ts.tv_sec += (time_t)(ms / 1000 + ns / INT64_C(1000000000));
    ts.tv_nsec = (long)(ns % INT64_C(1000000000));
    return ts;
}

wall_us clock_wall(enum clock_kept *ret_kept)
{
    struct timespec ts;
    struct timex kernel = {.modes = 0};
    int state = adjtimex(&kernel);
    bool kept = state != TIME_ERROR && (kernel.status & STA_UNSYNC) == 0 &&
                kernel.maxerror < SYNCHRONISED_US;
    *ret_kept = state < 0 ? CLOCK_KEPT_UNKNOWN : kept ? CLOCK_KEPT : CLOCK_KEPT_NOT;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (wall_us){(int64_t)ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000};
}

void clock_stamp(char ret_text[CLOCK_STAMP_MAX])
{
    struct timespec ts;
    struct tm utc;
    char seconds[24] = "";
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    (void)gmtime_r(&ts.tv_sec, &utc);
    (void)strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &utc);
    unsigned ms = (unsigned)(ts.tv_nsec / 1000000) % 1000U; /* so that its length is known */
    (void)snprintf(ret_text, CLOCK_STAMP_MAX, "%s.%03uZ", seconds, ms);
}
