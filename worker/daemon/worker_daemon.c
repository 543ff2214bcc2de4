#include "worker_daemon.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "daemon_signals.h"
#include "heartbeat.h"
#include "http_worker.h"
#include "intake.h"
#include "log.h"
#include "notify.h"
#include "outcomes.h"
#include "process_metrics.h"
#include "runner.h"
#include "sweeper.h"
#include "reload.h"
#include "settings_form.h"
#include "version.h"
#include "watchdog.h"
#include "worker.h"
#include "worker_collect.h"
#include "worker_metrics.h"

/* A stop takes at most drain_ms + kill_grace_ms + the last three: worker_settings.c and the unit
 * say so, rounded up to 30 s. */
#define GUARD_MS     100   /* how late a passed deadline is noticed, at most */
#define COUNTS_MS    60000 /* between two lines of counters */
#define HAND_BACK_MS 8000  /* beyond the kill grace, for programs to be gone */
#define RECORD_MS    10000 /* for the last outcomes */
#define LEAVE_MS     10000 /* for the consumer group and the last statement */
#define HTTP_STOP_MS 2000
#define LIFE_MS      8000 /* longer than --release-claims needs as a rule */
#define STACK_BYTES  (1u << 20)
#define THREADS      4 /* threads beside the runners */

struct daemon {
    struct worker w;
    pthread_t threads[THREADS];
    size_t thread_count;
    pthread_t runners[WORKER_SLOTS_MAX];
    size_t runner_count;
    struct worker_http *http; /* NULL: none wanted */
    const char *path;         /* of the settings file */
    struct watchdog watchdog;
    int signals;
    instant counts_at;
    char counts[1024]; /* as last logged */
};

static bool is_executable(const char *path)
{
    return access(path, X_OK) == 0;
}

/* Beside the program itself (a build tree), else where `cmake --install` puts it. */
static void keeper_find(struct worker *w)
{
    if (w->keeper[0] == '\0') {
        char self[WORKER_PATH_MAX - 32];
        ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
        self[n > 0 ? n : 0] = '\0';
        char *slash = strrchr(self, '/');
        (void)snprintf(w->keeper, sizeof w->keeper, "%.*s/report-keeper",
                       slash == NULL ? 0 : (int)(slash - self), self);
        if (!is_executable(w->keeper)) {
            (void)snprintf(w->keeper, sizeof w->keeper, "%s", RS_LIBEXEC_DIR "/report-keeper");
        }
    }
}

static enum status thread_start(pthread_t *thread, void *(*function)(void *), struct worker *w,
                                struct error *err)
{
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int failure = pthread_create(thread, &attributes, function, w);
    (void)pthread_attr_destroy(&attributes);
    return failure == 0 ? STATUS_OK
                        : error_set(err, STATUS_FATAL, "no thread: %s", strerror(failure));
}

static enum status threads_start(struct daemon *d, struct error *err)
{
    void *(*const mains[THREADS])(void *) = {heartbeat_main, outcomes_main, sweeper_main,
                                             intake_main};
    enum status s = STATUS_OK;
    size_t slots = (size_t)d->w.settings->slots;
    while (s == STATUS_OK && d->runner_count < slots) {
        s = thread_start(&d->runners[d->runner_count], runner_main, &d->w, err);
        d->runner_count += s == STATUS_OK ? 1 : 0;
    }
    while (s == STATUS_OK && d->thread_count < THREADS) {
        s = thread_start(&d->threads[d->thread_count], mains[d->thread_count], &d->w, err);
        d->thread_count += s == STATUS_OK ? 1 : 0;
    }
    return s;
}

static void counts_log(struct daemon *d, bool at_once)
{
    instant now = clock_now();
    char text[sizeof d->counts];
    if (!at_once && instant_before(now, d->counts_at)) {
        return;
    }
    d->counts_at = instant_add_ms(now, COUNTS_MS);
    counters_format(&d->w.counters, text, sizeof text);
    if (at_once || strcmp(text, d->counts) != 0) {
        memcpy(d->counts, text, sizeof text);
        log_event(LOG_LEVEL_INFO, "counts", "%s", text[0] == '\0' ? "jobs=0" : text);
    }
}

/* The guard's turn. Returns how long until the next one. */
static int guard(struct daemon *d)
{
    instant now = clock_now();
    instant next;
    atomic_store(&d->w.guard_turned_ns, now.ns);
    size_t killed = claims_expire(d->w.claims, now, &next);
    if (killed > 0) {
        log_event(LOG_LEVEL_ERROR, "claims could not be renewed in time, their jobs are killed",
                  "jobs=%zu", killed);
    }
    watchdog_look(&d->watchdog, &d->w, now);
    counts_log(d, false);
    int wait = instant_poll_timeout(now, next);
    return wait < GUARD_MS ? wait : GUARD_MS;
}

/* ---- settings that change ---- */

/* The first store takes new files: without it every job would fail, and use its attempts up. It may
 * come yet (a mount), so this is no fault of the settings. */
static enum status store_check(const struct worker_settings *s, struct error *err)
{
    return around_writable_directory(s->artifact_stores[0].directory, err) == STATUS_OK
               ? STATUS_OK
               : error_prefix(err, STATUS_NOT_FOUND,
                              "artifact_stores[0].directory, where new files go");
}

static enum status programs_check(const struct worker *w, const struct worker_settings *s,
                                  struct error *err)
{
    if (s->program_count > 0 && !is_executable(w->keeper)) {
        return error_set(err, STATUS_INVALID,
                         "there is no report-keeper at %s, and programs need it; write its path "
                         "into worker.conf: keeper = \"...\";",
                         w->keeper);
    }
    return STATUS_OK;
}

static void settings_reload(struct daemon *d)
{
    const struct reload reload = {
        .spec = &worker_spec, .path = d->path, .counted = &WORKER_FAMILIES[WORKER_RELOADS]};
    struct error err = {.text = ""};
    void *fresh = NULL;
    notify_reloading();
    const struct worker_settings *current = settings_take(d->w.now, NULL);
    enum status s = reload_read(&reload, current, &fresh);
    settings_give(d->w.now, current);
    if (s == STATUS_OK) {
        const struct worker_settings *settings = fresh;
        atomic_store(&d->w.pull_idle_ms, settings->pull_idle_ms);
        if (programs_check(&d->w, settings, &err) != STATUS_OK ||
            store_check(settings, &err) != STATUS_OK) {
            log_event(LOG_LEVEL_ERROR, "some jobs will fail with these settings", "error=%s",
                      log_quote(err.text).text);
        }
        if (settings_replace(d->w.now, fresh) != STATUS_OK) {
            log_event(LOG_LEVEL_ERROR, "out of memory for settings, the old ones stay", NULL);
        }
    }
    wake_up(d->w.sweep_wake);
    notify_ready();
}

/* True when a stop was asked for. */
static bool stop_asked(struct daemon *d, int timeout_ms)
{
    struct pollfd p = {.fd = d->signals, .events = POLLIN};
    struct signalfd_siginfo info;
    if (poll(&p, 1, timeout_ms) <= 0 ||
        read(d->signals, &info, sizeof info) != (ssize_t)sizeof info) {
        return false;
    }
    if (info.ssi_signo == SIGHUP) {
        if (atomic_load(&d->w.draining)) {
            log_event(LOG_LEVEL_WARN, "SIGHUP: stopping, settings are not read again", NULL);
        } else {
            settings_reload(d);
        }
        return false;
    }
    if (info.ssi_signo == SIGUSR1) {
        counts_log(d, true);
        return false;
    }
    return true;
}

/* ---- stopping ---- */

/* Whatever hangs in an orderly stop (librdkafka's close may, a disk may): not for ever. */
static void *limit_main(void *argument)
{
    instant end = instant_add_ms(clock_now(), (intptr_t)argument); /* nothing that could be freed */
    while (instant_before(clock_now(), end)) {
        (void)poll(NULL, 0, instant_poll_timeout(clock_now(), end));
    }
    log_event(LOG_LEVEL_ERROR, "the stop took too long, ending at once; claims lapse", NULL);
    _exit(1);
}

static void limit_start(const struct worker_settings *settings)
{
    intptr_t ms = (intptr_t)(settings->drain_ms + settings->kill_grace_ms + HAND_BACK_MS +
                             RECORD_MS + LEAVE_MS);
    pthread_t thread;
    pthread_attr_t attributes;
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&thread, &attributes, limit_main, (void *)ms) != 0) {
        log_event(LOG_LEVEL_WARN, "the stop has no limit: no thread for it", NULL);
    }
    (void)pthread_attr_destroy(&attributes);
}

/* Wait until nothing runs and nothing more is claimed, guarding on. A further signal ends the wait.
 */
static bool drain(struct daemon *d, int64_t ms, bool hand_back)
{
    instant end = instant_add_ms(clock_now(), ms);
    while (!atomic_load(&d->w.intake_over) || !claims_wait_quiet(d->w.claims, clock_now())) {
        if (!instant_before(clock_now(), end)) {
            return false;
        }
        if (hand_back) { /* each time: a claim that was under way may have come in */
            claims_kill_all(d->w.claims, KILL_STOPPING);
        }
        int wait = guard(d);
        if (stop_asked(d, wait < 20 ? wait : 20) && !hand_back) {
            return false;
        }
    }
    return true;
}

static void stop(struct daemon *d)
{
    struct worker *w = &d->w;
    const struct worker_settings *settings = settings_take(w->now, NULL);
    limit_start(settings);
    atomic_store(&w->draining, true);
    wake_up(w->heartbeat_wake);
    wake_up(w->intake_wake);
    wake_up(w->sweep_wake);
    struct claim_counts n = claims_count(w->claims);
    log_event(LOG_LEVEL_INFO, "stopping: jobs may finish", "jobs=%zu drain_ms=%lld",
              n.waiting + n.running, (long long)settings->drain_ms);
    if (!drain(d, settings->drain_ms, false)) {
        log_event(LOG_LEVEL_WARN, "stopping: the remaining jobs are handed back", "jobs=%zu",
                  claims_count(w->claims).running);
        if (!drain(d, settings->kill_grace_ms + HAND_BACK_MS, true)) {
            log_event(LOG_LEVEL_ERROR, "stopping: jobs do not end", "jobs=%zu",
                      claims_count(w->claims).running);
        }
    }
    (void)claims_wait_empty(w->claims, instant_add_ms(clock_now(), RECORD_MS));
    settings_give(w->now, settings);
}

static enum status http_begin(struct daemon *d, struct error *err)
{
    atomic_store(&d->w.guard_turned_ns, clock_now().ns); /* not late before it has begun */
    return worker_http_start(&d->w, &d->http, err);
}

static void http_end(struct daemon *d)
{
    if (worker_http_stop(d->http, instant_add_ms(clock_now(), HTTP_STOP_MS)) != STATUS_OK) {
        log_event(LOG_LEVEL_ERROR, "HTTP does not end, ending at once; claims lapse", NULL);
        _exit(1); /* its thread looks at what would be freed */
    }
    d->http = NULL;
}

static void threads_join(struct daemon *d)
{
    atomic_store(&d->w.draining, true);
    atomic_store(&d->w.finishing, true);
    wake_up(d->w.heartbeat_wake);
    wake_up(d->w.intake_wake);
    wake_up(d->w.sweep_wake);
    claims_stop(d->w.claims);
    for (size_t i = 0; i < d->runner_count; i++) {
        (void)pthread_join(d->runners[i], NULL);
    }
    for (size_t i = 0; i < d->thread_count; i++) {
        (void)pthread_join(d->threads[i], NULL);
    }
}

static enum status metrics_begin(struct daemon *d, struct error *err)
{
    worker_metrics_start(d->w.settings);
    enum status s = metrics_collect_from(process_metrics_collect, NULL);
    if (s == STATUS_OK) {
        s = metrics_collect_from(worker_metrics_collect, &d->w);
    }
    return s == STATUS_OK ? s : error_set(err, STATUS_FATAL, "too many collectors of metrics");
}

/* One process a file. A program of a killed predecessor that does not die must not keep its
 * successor from starting: that one then goes without. */
static enum status life_begin(struct daemon *d, struct error *err)
{
    const char *path = d->w.settings->incarnation_file;
    if (path[0] == '\0') {
        log_event(LOG_LEVEL_INFO, "no incarnation_file: a killed worker's claims lapse only", NULL);
        return STATUS_OK;
    }
    enum status s =
        life_file_take(path, LIFE_BEGIN, instant_add_ms(clock_now(), LIFE_MS), &d->w.life, err);
    if (s == STATUS_TIMEOUT) {
        log_event(
            LOG_LEVEL_WARN,
            "going without incarnation_file: if this process is killed, its claims lapse only",
            "error=%s", log_quote(err->text).text);
        return STATUS_OK;
    }
    return s == STATUS_OK
               ? s
               : error_prefix(err, s == STATUS_INVALID ? s : STATUS_FATAL,
                              s == STATUS_CONFLICT
                                  ? "incarnation_file: give each worker on one host its own"
                                  : "incarnation_file");
}

/* What a start needs beyond memory. */
static enum status daemon_prepare(struct daemon *d, struct error *err)
{
    d->signals = daemon_signals_open();
    d->counts_at = instant_add_ms(clock_now(), COUNTS_MS);
    if (d->signals < 0) {
        return error_set(err, STATUS_FATAL, "no descriptor for signals: %s", strerror(errno));
    }
    keeper_find(&d->w);
    enum status s = programs_check(&d->w, d->w.settings, err);
    if (s == STATUS_OK) {
        s = life_begin(d, err);
    }
    if (s == STATUS_OK) {
        s = store_check(d->w.settings, err);
    }
    return s;
}

enum status worker_run(const char *path, const struct worker_settings *settings, struct error *err)
{
    struct daemon *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    enum status s = worker_init(&d->w, settings, err);
    if (s != STATUS_OK) {
        free(d);
        return s;
    }
    d->path = path;
    d->watchdog = watchdog_start(&d->w);
    s = daemon_prepare(d, err);
    if (s == STATUS_OK) {
        s = metrics_begin(d, err);
    }
    if (s == STATUS_OK) {
        s = http_begin(d, err);
    }
    if (s == STATUS_OK) {
        s = threads_start(d, err);
    }
    if (s == STATUS_OK) {
        notify_ready();
        while (!stop_asked(d, guard(d))) {
        }
        notify_stopping();
        stop(d);
    }
    http_end(d);
    threads_join(d);
    counts_log(d, true);
    if (d->signals >= 0) {
        (void)close(d->signals);
    }
    metrics_collect_no_more(worker_metrics_collect, &d->w);
    worker_done(&d->w);
    free(d);
    return s;
}
