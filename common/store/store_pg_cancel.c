#include "store_pg_cancel.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#define STACK_SIZE (256u << 10)
#define SLICE_MS   50 /* a condition variable waits by a clock that stands still in suspend */

struct store_pg_cancel {
    pthread_mutex_t mutex; /* protects all below */
    pthread_cond_t ended;
    PGcancel *request; /* not changed after it was made */
    bool asking;       /* the thread is on its way */
    bool freed;        /* by its owner: the thread frees the rest */
};

struct store_pg_cancel *store_pg_cancel_new(PGconn *connection)
{
    struct store_pg_cancel *c = calloc(1, sizeof *c);
    pthread_condattr_t attributes;
    if (c == NULL) {
        return NULL;
    }
    c->request = PQgetCancel(connection);
    if (c->request == NULL) {
        free(c);
        return NULL;
    }
    (void)pthread_mutex_init(&c->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&c->ended, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return c;
}

static void destroy(struct store_pg_cancel *c)
{
    PQfreeCancel(c->request);
    (void)pthread_cond_destroy(&c->ended);
    (void)pthread_mutex_destroy(&c->mutex);
    free(c);
}

void store_pg_cancel_free(struct store_pg_cancel *c)
{
    if (c == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&c->mutex);
    c->freed = true;
    bool mine = !c->asking;
    (void)pthread_mutex_unlock(&c->mutex);
    if (mine) {
        destroy(c);
    }
}

static void *cancel_main(void *argument)
{
    struct store_pg_cancel *c = argument;
    char ignored[256];
    (void)PQcancel(c->request, ignored, sizeof ignored);
    (void)pthread_mutex_lock(&c->mutex);
    c->asking = false;
    bool mine = c->freed;
    (void)pthread_cond_broadcast(&c->ended);
    (void)pthread_mutex_unlock(&c->mutex);
    if (mine) {
        destroy(c);
    }
    return NULL;
}

static bool cancel_start(struct store_pg_cancel *c)
{
    pthread_t thread;
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
    bool started = pthread_create(&thread, &attributes, cancel_main, c) == 0;
    (void)pthread_attr_destroy(&attributes);
    return started;
}

void store_pg_cancel_ask(struct store_pg_cancel *c, instant deadline)
{
    (void)pthread_mutex_lock(&c->mutex);
    if (!c->asking) {
        c->asking = cancel_start(c);
    }
    while (c->asking && instant_before(clock_now(), deadline)) {
        const struct timespec end = clock_wait_end(SLICE_MS);
        (void)pthread_cond_timedwait(&c->ended, &c->mutex, &end);
    }
    (void)pthread_mutex_unlock(&c->mutex);
}
