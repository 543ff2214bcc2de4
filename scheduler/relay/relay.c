#include "relay.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"
#include "relay_work.h"
#include "relay_metrics.h"
#include "stall.h"
#include "thread_join.h"

struct relay {
    struct relay_options options;
    pthread_t thread;
    int wake_fd; /* eventfd: rows were committed, or stop */
    atomic_bool stop, fenced;
    _Atomic int64_t stop_deadline_ns;
    pthread_mutex_t mutex; /* protects snapshot */
    struct relay_snapshot snapshot;
    struct stall stall;
};

static void snapshot_write(struct relay *r, const struct relay_work *w)
{
    /* Only this thread writes it. */
    relay_metrics_add(r->options.authority.scope, &r->snapshot, &w->counters);
    (void)pthread_mutex_lock(&r->mutex);
    r->snapshot = w->counters;
    (void)pthread_mutex_unlock(&r->mutex);
}

/* Wait for a wake-up, a delivery report, the database's answer or the time. True: woken. */
static bool turn_wait(struct relay *r, const struct relay_work *w, instant until)
{
    struct relay_fds work = relay_work_fds(w);
    struct pollfd fds[3] = {
        {.fd = r->wake_fd, .events = POLLIN},
        {.fd = work.publisher, .events = POLLIN}, /* -1 is ignored by poll */
        {.fd = work.store, .events = POLLIN},
    };
    stall_wait(&r->stall, clock_now(), until);
    int n = poll(fds, 3, instant_poll_timeout(clock_now(), until));
    stall_turn(&r->stall, clock_now());
    if (n <= 0 || (fds[0].revents & POLLIN) == 0) {
        return false; /* EINTR too: the turn that follows costs nothing */
    }
    uint64_t ignored = 0;
    ssize_t got = read(r->wake_fd, &ignored, sizeof ignored);
    (void)got;
    return true;
}

static void *relay_run(void *argument)
{
    struct relay *r = argument;
    struct relay_work w;
    struct error err = {.text = ""};
    thread_name("relay");
    if (relay_work_begin(&w, &r->options, &err) != STATUS_OK) {
        log_event(LOG_LEVEL_ERROR, "relay cannot run", "scope=%s error=%s",
                  r->options.authority.scope, log_quote(err.text).text);
        return NULL;
    }
    bool woken = true;
    stall_turn(&r->stall, clock_now());
    while (!atomic_load(&r->stop) && !w.fenced) {
        instant next = relay_work_turn(&w, woken);
        snapshot_write(r, &w);
        woken = !w.fenced && turn_wait(r, &w, next);
    }
    if (w.fenced) {
        atomic_store(&r->fenced, true);
        log_event(LOG_LEVEL_WARN, "relay was refused: a newer generation leads", "scope=%s",
                  r->options.authority.scope);
    }
    instant deadline = {atomic_load(&r->stop_deadline_ns)};
    relay_work_end(&w, w.fenced ? clock_now() : deadline);
    snapshot_write(r, &w);
    relay_metrics_end(r->options.authority.scope);
    return NULL;
}

enum status relay_start(const struct relay_options *options, struct relay **ret_relay,
                        struct error *err)
{
    struct relay *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    r->options = *options;
    r->options.window = options->window > 0 ? options->window : 1;
    (void)pthread_mutex_init(&r->mutex, NULL);
    stall_init(&r->stall);
    r->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (r->wake_fd < 0 || pthread_create(&r->thread, NULL, relay_run, r) != 0) {
        if (r->wake_fd >= 0) {
            (void)close(r->wake_fd);
        }
        (void)pthread_mutex_destroy(&r->mutex);
        free(r);
        return error_set(err, STATUS_FATAL, "the relay thread could not be started");
    }
    *ret_relay = r;
    return STATUS_OK;
}

void relay_wake(struct relay *relay)
{
    uint64_t one = 1;
    ssize_t ignored = write(relay->wake_fd, &one, sizeof one); /* full: it is awake anyway */
    (void)ignored;
}

bool relay_is_fenced(const struct relay *relay)
{
    return atomic_load(&relay->fenced);
}

struct relay_snapshot relay_read(const struct relay *relay)
{
    /* The mutex is the reader's business, not part of what the relay is. */
    pthread_mutex_t *mutex = (pthread_mutex_t *)(uintptr_t)&relay->mutex;
    (void)pthread_mutex_lock(mutex);
    struct relay_snapshot copy = relay->snapshot;
    (void)pthread_mutex_unlock(mutex);
    return copy;
}

double relay_stall_s(struct relay *relay)
{
    return stall_longest_s(&relay->stall, clock_now());
}

void relay_stop(struct relay *relay, instant deadline)
{
    atomic_store(&relay->stop_deadline_ns, deadline.ns);
    atomic_store(&relay->stop, true);
    relay_wake(relay);
    (void)pthread_join(relay->thread, NULL);
    (void)close(relay->wake_fd);
    (void)pthread_mutex_destroy(&relay->mutex);
    free(relay);
}
