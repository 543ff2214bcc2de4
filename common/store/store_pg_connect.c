#include "store_pg_connect.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "thread_join.h"

#define STACK_SIZE (1u << 20) /* name services and TLS take some */
#define SLICE_MS   250        /* how soon one that nobody waits for any more ends */

/* One connection being made. It belongs to its thread and to who waits for it; the last frees. */
struct attempt {
    struct attempt *next;
    char *keys[STORE_PG_KEYS_MAX]; /* not changed after the start, like all up to done_fd */
    char *values[STORE_PG_KEYS_MAX];
    instant deadline;
    int done_fd;        /* eventfd: the thread has ended */
    PGconn *connection; /* the thread's until it has ended; NULL then: out of memory */
    /* Protected by mutex: */
    bool looked_up; /* the first lookup has ended */
    bool inside;    /* libpq, where it may hang */
    bool ended;
    bool left; /* nobody waits any more */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct attempt *attempts; /* protected by mutex */

static void attempt_free(struct attempt *a)
{
    for (size_t i = 0; i < STORE_PG_KEYS_MAX; i++) {
        if (a->values[i] != NULL) {
            explicit_bzero(a->values[i], strlen(a->values[i])); /* one is a password */
        }
        free(a->keys[i]);
        free(a->values[i]);
    }
    PQfinish(a->connection);
    if (a->done_fd >= 0) {
        (void)close(a->done_fd);
    }
    free(a);
}

static struct attempt *attempt_new(const struct store_pg_target *target)
{
    struct attempt *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return NULL;
    }
    a->deadline = target->deadline;
    a->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bool good = a->done_fd >= 0;
    for (size_t i = 0; target->keys[i] != NULL && good; i++) {
        good = i + 1 < STORE_PG_KEYS_MAX;
        if (good) {
            a->keys[i] = strdup(target->keys[i]);
            a->values[i] = target->values[i] == NULL ? NULL : strdup(target->values[i]);
            good = a->keys[i] != NULL && (target->values[i] == NULL || a->values[i] != NULL);
        }
    }
    if (!good) {
        attempt_free(a);
        return NULL;
    }
    return a;
}

/* With the mutex held. */
static void attempt_unlink(struct attempt *a)
{
    struct attempt **at = &attempts;
    while (*at != a) {
        at = &(*at)->next;
    }
    *at = a->next;
}

/* The thread's side ---------------------------------------------------------------------------- */

/* Called around each call into libpq. False: nobody waits any more. */
static bool inside_set(struct attempt *a, bool inside)
{
    (void)pthread_mutex_lock(&mutex);
    a->looked_up = a->looked_up || !inside;
    a->inside = inside;
    bool wanted = !a->left;
    (void)pthread_mutex_unlock(&mutex);
    return wanted;
}

static PostgresPollingStatusType poll_once(struct attempt *a)
{
    (void)inside_set(a, true);
    PostgresPollingStatusType polled = PQconnectPoll(a->connection);
    return inside_set(a, false) ? polled : PGRES_POLLING_FAILED;
}

/* False: the deadline passed, or nobody waits any more. */
static bool wait_socket(struct attempt *a, short events)
{
    struct pollfd p = {.fd = PQsocket(a->connection), .events = events};
    int n = 0;
    while (n <= 0 && inside_set(a, false) && instant_before(clock_now(), a->deadline)) {
        int timeout = instant_poll_timeout(clock_now(), a->deadline);
        n = poll(&p, 1, timeout < SLICE_MS ? timeout : SLICE_MS);
        if (n < 0 && errno != EINTR) {
            return false;
        }
    }
    return n > 0;
}

static void connect_run(struct attempt *a)
{
    const char *keys[STORE_PG_KEYS_MAX];
    const char *values[STORE_PG_KEYS_MAX];
    for (size_t i = 0; i < STORE_PG_KEYS_MAX; i++) {
        keys[i] = a->keys[i];
        values[i] = a->values[i];
    }
    (void)inside_set(a, true);
    a->connection = PQconnectStartParams(keys, values, 1);
    if (!inside_set(a, false) || a->connection == NULL ||
        PQstatus(a->connection) == CONNECTION_BAD) {
        return;
    }
    short events = POLLOUT; /* as libpq wants it at first */
    while (wait_socket(a, events)) {
        PostgresPollingStatusType polled = poll_once(a);
        if (polled == PGRES_POLLING_OK || polled == PGRES_POLLING_FAILED) {
            return;
        }
        events = polled == PGRES_POLLING_READING ? POLLIN : POLLOUT;
    }
}

static void *connect_main(void *argument)
{
    struct attempt *a = argument;
    thread_name("connect");
    connect_run(a);
    (void)pthread_mutex_lock(&mutex);
    a->ended = true;
    bool mine = a->left;
    if (mine) {
        attempt_unlink(a);
    } else {
        (void)eventfd_write(a->done_fd, 1);
    }
    (void)pthread_mutex_unlock(&mutex);
    if (mine) {
        attempt_free(a);
    }
    return NULL;
}

/* The waiting side ----------------------------------------------------------------------------- */

/* With the mutex held. */
static size_t left_behind(const char *conninfo)
{
    size_t n = 0;
    for (const struct attempt *a = attempts; a != NULL; a = a->next) {
        n += a->left && a->inside && strcmp(a->values[0], conninfo) == 0 ? 1 : 0;
    }
    return n;
}

static int thread_start(struct attempt *a)
{
    pthread_t thread;
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    (void)pthread_attr_setstacksize(&attributes, STACK_SIZE);
    int failure = pthread_create(&thread, &attributes, connect_main, a);
    (void)pthread_attr_destroy(&attributes);
    return failure;
}

static enum status attempt_start(struct attempt *a, struct error *err)
{
    (void)pthread_mutex_lock(&mutex);
    bool full = left_behind(a->values[0]) >= STORE_PG_HANGING_MAX;
    int failure = full ? 0 : thread_start(a);
    if (!full && failure == 0) {
        a->next = attempts;
        attempts = a;
    }
    (void)pthread_mutex_unlock(&mutex);
    if (full) {
        return error_set(err, STATUS_AGAIN,
                         "earlier lookups of the server's name still hang (see resolv.conf); "
                         "hostaddr=... beside host=... needs none");
    }
    return failure == 0
               ? STATUS_OK
               : error_set(err, STATUS_FATAL, "no thread for connecting: %s", strerror(failure));
}

static void wait_end(const struct attempt *a, const struct store_pg_target *target)
{
    struct pollfd p[2] = {{.fd = a->done_fd, .events = POLLIN},
                          {.fd = target->wake_fd, .events = POLLIN}};
    int n = 0;
    do {
        n = poll(p, 2, instant_poll_timeout(clock_now(), target->deadline));
    } while ((n < 0 && errno == EINTR) ||
             (n == 0 && instant_before(clock_now(), target->deadline)));
}

enum status store_pg_connect(const struct store_pg_target *target, PGconn **ret_connection,
                             struct error *err)
{
    struct attempt *a = attempt_new(target);
    if (a == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory or descriptors");
    }
    enum status s = attempt_start(a, err);
    if (s != STATUS_OK) {
        attempt_free(a);
        return s;
    }
    wait_end(a, target);
    (void)pthread_mutex_lock(&mutex);
    bool looked_up = a->looked_up;
    bool ended = a->ended;
    a->left = !ended;
    if (ended) {
        attempt_unlink(a);
    }
    (void)pthread_mutex_unlock(&mutex);
    if (!ended) {
        return error_set(err, STATUS_TIMEOUT, "%s",
                         looked_up ? "no connection within the deadline"
                                   : "the server's name was not looked up within the deadline (see "
                                     "resolv.conf); hostaddr=... beside host=... needs no lookup");
    }
    if (a->connection == NULL) {
        s = error_set(err, STATUS_FATAL, "out of memory");
    } else if (PQstatus(a->connection) != CONNECTION_OK &&
               PQstatus(a->connection) != CONNECTION_BAD) {
        s = error_set(err, STATUS_TIMEOUT, "no connection within the deadline");
    } else {
        *ret_connection = a->connection;
        a->connection = NULL;
    }
    attempt_free(a);
    return s;
}
