#include "artifact_health.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "settings_form.h"

#define TELL_MS     60000
#define PROBE_BYTES 4096

static struct {
    pthread_mutex_t mutex; /* protects all below */
    bool refused;
    struct error why;
    unsigned failures; /* since the last line about it */
    instant told_at;
} health = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void artifact_health_refused(const struct artifact_store *store, const char *text)
{
    instant now = clock_now();
    (void)pthread_mutex_lock(&health.mutex);
    bool tell = !health.refused || instant_ms_between(health.told_at, now) >= TELL_MS;
    unsigned failures = ++health.failures;
    health.refused = true;
    (void)error_set(&health.why, STATUS_AGAIN, "%s", text);
    if (tell) {
        health.told_at = now;
        health.failures = 0;
    }
    (void)pthread_mutex_unlock(&health.mutex);
    if (tell) {
        log_event(LOG_LEVEL_ERROR, "artifact store refuses files, jobs fail",
                  "store=%s directory=%s failures=%u error=%s", store->name,
                  log_quote(store->directory).text, failures, log_quote(text).text);
    }
}

void artifact_health_works(const struct artifact_store *store)
{
    (void)pthread_mutex_lock(&health.mutex);
    bool was_refused = health.refused;
    health.refused = false;
    health.failures = 0;
    (void)pthread_mutex_unlock(&health.mutex);
    if (was_refused) {
        log_event(LOG_LEVEL_INFO, "artifact store takes files again", "store=%s", store->name);
    }
}

bool artifact_health_is_good(struct error *ret_why)
{
    (void)pthread_mutex_lock(&health.mutex);
    bool good = !health.refused;
    if (!good) {
        *ret_why = health.why;
    }
    (void)pthread_mutex_unlock(&health.mutex);
    return good;
}

/* False: errno says why. */
static bool probe_write(int fd)
{
    static const char zeros[PROBE_BYTES];
    ssize_t n = write(fd, zeros, sizeof zeros);
    if (n >= 0 && n < (ssize_t)sizeof zeros) {
        errno = ENOSPC;
    }
    return n == (ssize_t)sizeof zeros && fsync(fd) == 0;
}

static bool probe(const struct artifact_store *store)
{
    char name[sizeof store->directory + 48];
    (void)snprintf(name, sizeof name, "%s/.report-worker.%ld.probe", store->directory,
                   (long)getpid());
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return false;
    }
    bool good = probe_write(fd);
    int reason = errno;
    (void)close(fd);
    (void)unlink(name);
    errno = reason;
    return good;
}

void artifact_health_look(const struct artifact_store *store)
{
    struct error err = {.text = ""};
    struct error full;
    if (around_writable_directory(store->directory, &err) != STATUS_OK) {
        (void)error_set(&full, STATUS_AGAIN, "artifact store \"%s\": %s", store->name, err.text);
        artifact_health_refused(store, full.text);
    } else if (!artifact_health_is_good(&err)) {
        if (probe(store)) {
            artifact_health_works(store);
            return;
        }
        (void)error_set(&full, STATUS_AGAIN, "artifact store \"%s\" (%s): cannot write a file: %s",
                        store->name, store->directory, strerror(errno));
        artifact_health_refused(store, full.text);
    }
}
