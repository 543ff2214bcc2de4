#include "worker.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "backoff.h"
#include "ident.h"
#include "log.h"

#define CONNECT_MS      5000
#define TROUBLE_MS      60000
#define OUTCOME_BACKLOG 2048 /* outcomes that may wait for the database, beyond the slots */

static const struct backoff reconnect = {.base_ms = 100, .most_ms = 3000};

enum status worker_init(struct worker *w, const struct worker_settings *settings, struct error *err)
{
    memset(w, 0, sizeof *w);
    w->settings = settings;
    w->now = settings_now_new(settings);
    atomic_init(&w->pull_idle_ms, settings->pull_idle_ms);
    (void)pthread_mutex_init(&w->incarnation.mutex, NULL);
    stall_init(&w->claims_stall);
    stall_init(&w->heartbeat_stall);
    stall_init(&w->outcomes_stall);
    w->heartbeat_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->intake_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->sweep_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    w->claims = claims_new((size_t)settings->slots, OUTCOME_BACKLOG);
    w->identity = calloc(1, sizeof *w->identity);
    (void)snprintf(w->keeper, sizeof w->keeper, "%s", settings->keeper);
    if (w->now == NULL || w->claims == NULL || w->identity == NULL || w->heartbeat_wake < 0 ||
        w->intake_wake < 0 || w->sweep_wake < 0) {
        worker_done(w);
        return error_set(err, STATUS_FATAL, "out of memory or descriptors");
    }
    return STATUS_OK;
}

static void wake_close(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

void worker_done(struct worker *w)
{
    wake_close(w->heartbeat_wake);
    wake_close(w->intake_wake);
    wake_close(w->sweep_wake);
    life_file_free(w->life);
    claims_free(w->claims);
    free(w->identity);
    settings_now_free(w->now);
    (void)pthread_mutex_destroy(&w->incarnation.mutex);
}

bool worker_incarnation(struct worker *w, struct incarnation_copy *ret_copy)
{
    (void)pthread_mutex_lock(&w->incarnation.mutex);
    bool alive = w->incarnation.alive;
    if (alive) {
        memcpy(ret_copy->id, w->incarnation.id, sizeof ret_copy->id);
        ret_copy->agreement = w->incarnation.agreement;
    }
    (void)pthread_mutex_unlock(&w->incarnation.mutex);
    return alive;
}

void worker_incarnation_ended(struct worker *w, const char *id)
{
    (void)pthread_mutex_lock(&w->incarnation.mutex);
    bool current = w->incarnation.alive && strcmp(w->incarnation.id, id) == 0;
    if (current) {
        w->incarnation.alive = false;
    }
    (void)pthread_mutex_unlock(&w->incarnation.mutex);
    if (current) {
        log_event(LOG_LEVEL_WARN, "worker incarnation was ended by others, killing its jobs",
                  "worker=%s", id);
        claims_kill_all(w->claims, KILL_LOST);
        atomic_store(&w->ended, true);
        wake_up(w->heartbeat_wake);
    }
}

void wake_up(int eventfd_number)
{
    uint64_t one = 1;
    ssize_t ignored = write(eventfd_number, &one, sizeof one);
    (void)ignored;
}

void wake_wait(int eventfd_number, int timeout_ms)
{
    struct pollfd p = {.fd = eventfd_number, .events = POLLIN};
    if (poll(&p, 1, timeout_ms) > 0) {
        uint64_t value = 0;
        ssize_t ignored = read(eventfd_number, &value, sizeof value);
        (void)ignored;
    }
}

enum status connection_ensure(struct connection *c, const struct worker *w)
{
    if (c->store != NULL && !store_is_broken(c->store)) {
        return STATUS_OK;
    }
    connection_close(c);
    if (instant_before(clock_now(), c->retry_at)) {
        return STATUS_AGAIN;
    }
    struct error err = {.text = ""};
    struct store_options options = {.conninfo = w->settings->database,
                                    .password_file = w->settings->database_password_file,
                                    .application_name = c->what,
                                    .role = STORE_WORKER,
                                    .identity = w->identity};
    enum status s = store_open(&options, instant_add_ms(clock_now(), CONNECT_MS), &c->store, &err);
    if (s == STATUS_OK) {
        if (c->failures > 0) {
            log_event(LOG_LEVEL_INFO, "database connection is back", "connection=%s",
                      log_quote(c->what).text);
        }
        c->failures = 0;
        return STATUS_OK;
    }
    /* About once a minute, and at once when it is something else. */
    if (c->failures++ % 20 == 0 || strcmp(err.text, c->why.text) != 0) {
        log_event(s == STATUS_INVALID ? LOG_LEVEL_ERROR : LOG_LEVEL_WARN,
                  "database connection failed, trying again", "connection=%s status=%s error=%s",
                  log_quote(c->what).text, status_name(s), log_quote(err.text).text);
    }
    c->why = err;
    c->retry_at = instant_add_ms(clock_now(), backoff_ms(&reconnect, c->failures, random_number()));
    return STATUS_AGAIN;
}

void connection_close(struct connection *c)
{
    store_close(c->store);
    c->store = NULL;
}

bool trouble_is_told(struct trouble *t, const char *text)
{
    instant now = clock_now();
    if (strcmp(t->text, text) == 0 && instant_before(now, t->again_at)) {
        return false;
    }
    (void)snprintf(t->text, sizeof t->text, "%s", text);
    t->again_at = instant_add_ms(now, TROUBLE_MS);
    return true;
}
