#include "clock_watch.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"

struct clock_watch {
    pthread_mutex_t mutex; /* protects the two below */
    struct clock_guard guard;
    instant taken_at;
    int fd;
};

enum status clock_watch_new(struct clock_watch **ret_watch, struct error *err)
{
    struct clock_watch *w = calloc(1, sizeof *w);
    int fd = w == NULL ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        free(w);
        return error_set(err, STATUS_FATAL, "no memory or descriptors for the clock guard");
    }
    w->fd = fd;
    (void)pthread_mutex_init(&w->mutex, NULL);
    *ret_watch = w;
    return STATUS_OK;
}

void clock_watch_free(struct clock_watch *watch)
{
    if (watch != NULL) {
        (void)pthread_mutex_destroy(&watch->mutex);
        (void)close(watch->fd);
        free(watch);
    }
}

static void tell(const struct clock_watch *w, int64_t step_us)
{
    uint64_t one = 1;
    ssize_t ignored = write(w->fd, &one, sizeof one);
    (void)ignored;
    log_event(LOG_LEVEL_WARN,
              "the database's clock and this machine's have not gone equally far: nothing is "
              "planned until it is judged which of them was stepped",
              "step_ms=%lld", (long long)(step_us / 1000));
}

bool clock_watch_take(struct clock_watch *watch, utc_us said, instant before)
{
    if (watch == NULL) {
        return true;
    }
    const struct clock_sample sample = {said, before, clock_now()};
    (void)pthread_mutex_lock(&watch->mutex);
    bool was = watch->guard.suspect;
    bool is = clock_guard_take(&watch->guard, sample) == CLOCK_STEPPED;
    int64_t step_us = watch->guard.step_us;
    watch->taken_at = sample.after;
    (void)pthread_mutex_unlock(&watch->mutex);
    if (is && !was) {
        tell(watch, step_us);
    }
    return !is;
}

bool clock_watch_is_suspect(struct clock_watch *watch)
{
    if (watch == NULL) {
        return false;
    }
    (void)pthread_mutex_lock(&watch->mutex);
    bool suspect = watch->guard.suspect;
    (void)pthread_mutex_unlock(&watch->mutex);
    return suspect;
}

instant clock_watch_taken_at(struct clock_watch *watch)
{
    (void)pthread_mutex_lock(&watch->mutex);
    instant at = watch->taken_at;
    (void)pthread_mutex_unlock(&watch->mutex);
    return at;
}

void clock_watch_doubt(struct clock_watch *watch, int64_t step_us)
{
    (void)pthread_mutex_lock(&watch->mutex);
    clock_guard_doubt(&watch->guard, step_us);
    (void)pthread_mutex_unlock(&watch->mutex);
}

void clock_watch_settle(struct clock_watch *watch, struct clock_sample sample)
{
    (void)pthread_mutex_lock(&watch->mutex);
    clock_guard_settle(&watch->guard, sample);
    (void)pthread_mutex_unlock(&watch->mutex);
}

int clock_watch_fd(const struct clock_watch *watch)
{
    return watch->fd;
}

void clock_watch_heard(struct clock_watch *watch)
{
    uint64_t count = 0;
    ssize_t ignored = read(watch->fd, &count, sizeof count);
    (void)ignored;
}
