#include "thread_join.h"

#include <poll.h>
#include <pthread.h>

#define LOOK_MS 5

/* Looks again and again instead of pthread_clockjoin_np: the deadline is CLOCK_BOOTTIME, which that
 * cannot wait by, and ThreadSanitizer of gcc 12 does not know it (it reports races with whatever
 * is freed after). */
enum status thread_join(pthread_t thread, instant deadline)
{
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        if (!instant_before(clock_now(), deadline)) {
            return STATUS_TIMEOUT;
        }
        (void)poll(NULL, 0, LOOK_MS);
    }
    return STATUS_OK;
}

void thread_name(const char *name)
{
    (void)pthread_setname_np(pthread_self(), name); /* longer ones are refused: no name then */
}
