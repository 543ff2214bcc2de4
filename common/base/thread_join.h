/* Threads: a name for each, and waiting for one to end, with a deadline (I10). */
#ifndef RS_THREAD_JOIN_H
#define RS_THREAD_JOIN_H

#include <pthread.h>

#include "clock.h"
#include "status.h"

/* Returns: OK, the thread has ended and is gone; TIMEOUT, it has not, ask again or leave by _exit.
 * A deadline in the past looks once. Blocks: until deadline. */
MUST_USE enum status thread_join(pthread_t thread, instant deadline);

/* Name the calling thread, as `top -H` and debuggers show it; at most 15 bytes. */
void thread_name(const char *name);

#endif
