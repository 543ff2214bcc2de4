#include "daemon.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "canceller.h"
#include "coord.h"
#include "daemon_signals.h"
#include "http_scheduler.h"
#include "log.h"
#include "loop_name.h"
#include "notify.h"
#include "observer.h"
#include "process_metrics.h"
#include "reload.h"
#include "scheduler_metrics.h"
#include "scope.h"
#include "scope_metrics.h"

#define LOOK_MS       1000 /* between two looks at the loops */
#define CLOSE_MS      6000 /* closing a black-holed session takes up to 4.5 s */
#define COORD_LATE_MS 15000
#define LIFE_MS       8000 /* longer than --close-dead-session needs as a rule */
#define URGENT_MAX    (4 * COORD_SCOPES_MAX)

struct scheduler {
    const char *path;                          /* of the settings file */
    const struct scheduler_settings *settings; /* as at the start; parts borrow from them */
    struct scheduler_settings *reloaded;       /* in force since a SIGHUP; NULL: as at the start */
    const char *kafka_properties[SETTING_LIST_MAX + 1];
    const char *kafka_secret_files[SETTING_LIST_MAX + 1];
    struct inbox *urgent;
    struct life_file *life; /* NULL: none wanted */
    struct coord *coord;
    struct scope *scopes[COORD_SCOPES_MAX];
    bool stuck[COORD_SCOPES_MAX]; /* told already */
    bool coord_stuck;             /* the same */
    bool joined[COORD_SCOPES_MAX];
    size_t count;
    struct canceller *canceller;
    struct clock_watch *watch;
    struct observer *observer;
    struct problem_board board;
    struct scheduler_http *http; /* NULL: none wanted */
    _Atomic int64_t looked_ns;   /* when the main loop last looked */
    int signals;
    bool stopping;
    instant stop_until;
    instant fed_at;
    int64_t watchdog_ms;
    char status[256];
};

/* Making and starting ------------------------------------------------------------------------ */

static enum status make_scope(struct scheduler *d, const char *name, struct error *err)
{
    const struct scheduler_settings *s = d->settings;
    const struct scope_options options = {
        .name = name,
        .member = s->name,
        .url = s->advertised_url,
        .coord = d->coord,
        .watch = d->watch,
        .conninfo = s->database,
        .password_file = s->database_password_file,
        .tz_directory = s->tz_directory[0] == '\0' ? NULL : s->tz_directory,
        .tz_poll_ms = s->tz_poll_ms,
        .statement_ms = s->database_statement_ms,
        .connect_ms = s->database_connect_ms,
        .establish_ms = s->establish_ms,
        .unhealthy_ms = s->database_unhealthy_ms,
        .drain_ms = s->drain_ms,
        .batch_schedules = (size_t)s->planner_batch,
        .brokers = s->kafka_brokers,
        .topic = s->kafka_topic,
        .properties = d->kafka_properties,
        .secret_files = d->kafka_secret_files,
        .relay_window = (size_t)s->relay_window,
    };
    enum status status = scope_new(&options, &d->scopes[d->count], err);
    if (status == STATUS_OK) {
        d->count++;
    }
    return status;
}

/* One process a file: a second one would close the first one's session when it dies. Held for a
 * moment also by whoever cleans up after a predecessor. */
static enum status begin_life(struct scheduler *d, struct error *err)
{
    const char *path = d->settings->session_file;
    if (path[0] == '\0') {
        log_event(LOG_LEVEL_INFO, "no session_file: a killed leader is replaced by expiry only",
                  NULL);
        return STATUS_OK;
    }
    enum status status =
        life_file_take(path, LIFE_BEGIN, instant_add_ms(clock_now(), LIFE_MS), &d->life, err);
    return status == STATUS_OK
               ? status
               : error_prefix(err, status == STATUS_INVALID ? status : STATUS_FATAL,
                              status == STATUS_CONFLICT
                                  ? "session_file: give each replica on one host its own"
                                  : "session_file");
}

static enum status make_parts(struct scheduler *d, struct error *err)
{
    const struct scheduler_settings *s = d->settings;
    for (size_t i = 0; i < s->kafka_properties.count; i++) {
        d->kafka_properties[i] = s->kafka_properties.items[i];
    }
    for (size_t i = 0; i < s->kafka_secret_files.count; i++) {
        d->kafka_secret_files[i] = s->kafka_secret_files.items[i];
    }
    d->signals = daemon_signals_open();
    d->urgent = inbox_new(sizeof(struct coord_event), URGENT_MAX);
    if (d->signals < 0 || d->urgent == NULL) {
        return error_set(err, STATUS_FATAL, "no memory or descriptors to start");
    }
    enum status status = begin_life(d, err);
    if (status != STATUS_OK) {
        return status;
    }
    const struct coord_options options = {.servers = s->zookeeper,
                                          .root = s->zookeeper_root,
                                          .session_ms = s->zookeeper_session_ms,
                                          .tick_ms = s->zookeeper_tick_ms,
                                          .margin_ms = s->lease_margin_ms,
                                          .name = s->name,
                                          .url = s->advertised_url,
                                          .digest_file = s->zookeeper_digest_file,
                                          .urgent = d->urgent,
                                          .life = d->life};
    status = clock_watch_new(&d->watch, err);
    if (status == STATUS_OK) {
        status = coord_new(&options, &d->coord, err);
    }
    for (size_t i = 0; i < s->scopes.count && status == STATUS_OK; i++) {
        status = make_scope(d, s->scopes.items[i], err);
    }
    return status;
}

/* For the metrics page: what is true now. */
static void collect(void *scheduler)
{
    struct scheduler *d = scheduler;
    instant now = clock_now();
    instant until = lease_until(coord_lease(d->coord));
    for (size_t i = 0; i < d->count; i++) {
        struct scope_snapshot view = scope_read(d->scopes[i]);
        scope_metrics_set(&view, now);
    }
    metric_set(scheduler_metric(SCHEDULER_STALL, LOOP_COORDINATION, NULL), coord_stall_s(d->coord));
    metric_set(scheduler_metric(SCHEDULER_LEASE_SECONDS, NULL, NULL),
               instant_before(now, until) ? metric_seconds_since(now, until) : 0);
    observer_collect(d->observer);
}

static enum status start_metrics(struct scheduler *d, struct error *err)
{
    const struct scheduler_settings *s = d->settings;
    const struct observer_options options = {.conninfo = s->database,
                                             .password_file = s->database_password_file,
                                             .scopes = &s->scopes,
                                             .watch = d->watch,
                                             .member = s->name,
                                             .board = &d->board,
                                             .observe_ms = s->observe_ms,
                                             .connect_ms = s->database_connect_ms,
                                             .statement_ms = s->database_statement_ms};
    enum status status = observer_start(&options, &d->observer, err);
    if (status == STATUS_OK && (metrics_collect_from(process_metrics_collect, NULL) != STATUS_OK ||
                                metrics_collect_from(collect, d) != STATUS_OK)) {
        status = error_set(err, STATUS_FATAL, "too many collectors of metrics");
    }
    return status;
}

static enum status stop_metrics(struct scheduler *d, instant until)
{
    metrics_collect_no_more(collect, d);
    enum status status = observer_stop(d->observer, until);
    d->observer = status == STATUS_OK ? NULL : d->observer;
    return status;
}

static enum status start_parts(struct scheduler *d, struct error *err)
{
    enum status status = canceller_start(d->urgent, d->scopes, d->count, &d->canceller, err);
    if (status == STATUS_OK) {
        status = coord_start(d->coord, err);
    }
    for (size_t i = 0; i < d->count && status == STATUS_OK; i++) {
        status = scope_start(d->scopes[i], err);
    }
    if (status == STATUS_OK) {
        status = start_metrics(d, err);
    }
    return status;
}

/* Before the others, so that a port in use ends the start while nothing has been enrolled. */
static enum status start_http(struct scheduler *d, struct error *err)
{
    const struct scheduler_http_options options = {.settings = d->settings,
                                                   .coord = d->coord,
                                                   .board = &d->board,
                                                   .coord_late_ms = COORD_LATE_MS,
                                                   .stuck_ms = d->settings->stuck_ms,
                                                   .scopes = d->scopes,
                                                   .count = d->count,
                                                   .looked_ns = &d->looked_ns};
    atomic_store(&d->looked_ns, clock_now().ns);
    return scheduler_http_start(&options, &d->http, err);
}

/* Watching ----------------------------------------------------------------------------------- */

/* It cannot be told anything: the watchdog ends the process. */
static bool coord_turns(struct scheduler *d, instant now)
{
    int64_t silent_ms = instant_ms_between(coord_last_turn(d->coord), now);
    bool turns = silent_ms < COORD_LATE_MS || d->stopping;
    if (!turns && !d->coord_stuck) {
        log_event(LOG_LEVEL_ERROR, "loop is stuck, the watchdog is not fed",
                  "loop=" LOOP_COORDINATION " silent_ms=%lld", (long long)silent_ms);
    }
    d->coord_stuck = !turns;
    return turns;
}

/* Do all loops turn? A stuck scope is told, and its statement is cancelled so that it can hear it:
 * it then steps down by itself, since only it knows that its work has ended (I11). */
static bool loops_turn(struct scheduler *d, instant now)
{
    bool all = coord_turns(d, now);
    for (size_t i = 0; i < d->count; i++) {
        int64_t silent_ms = instant_ms_between(scope_last_turn(d->scopes[i]), now);
        if (d->joined[i] || silent_ms < d->settings->stuck_ms) {
            d->stuck[i] = false;
            continue;
        }
        all = false;
        if (!d->stuck[i]) {
            d->stuck[i] = true;
            scope_tell_stuck(d->scopes[i]);
            canceller_ask(d->canceller, i);
            log_event(LOG_LEVEL_ERROR, "loop is stuck",
                      "loop=" LOOP_SCOPE " scope=%s silent_ms=%lld", scope_read(d->scopes[i]).name,
                      (long long)silent_ms);
        }
    }
    return all;
}

static void tell_status(struct scheduler *d)
{
    char text[sizeof d->status] = "";
    size_t used = 0;
    for (size_t i = 0; i < d->count; i++) {
        struct scope_snapshot view = scope_read(d->scopes[i]);
        int n = snprintf(text + used, sizeof text - used, "%s%s %s", i == 0 ? "" : ", ", view.name,
                         lifecycle_state_name(view.state));
        if (n < 0 || (size_t)n >= sizeof text - used) {
            break; /* as many as fit */
        }
        used += (size_t)n;
    }
    if (strcmp(text, d->status) != 0) {
        memcpy(d->status, text, sizeof text);
        notify_status(d->status);
    }
}

/* What SIGUSR1 asks for: one line a scope, and one for its relay where this process leads. */
static void log_scopes(struct scheduler *d)
{
    instant now = clock_now();
    for (size_t i = 0; i < d->count; i++) {
        struct scope_snapshot v = scope_read(d->scopes[i]);
        log_event(LOG_LEVEL_INFO, "scope",
                  "scope=%s state=%s since_ms=%lld generation=%lld ahead=%u failures=%u "
                  "problem=%s",
                  v.name, lifecycle_state_name(v.state),
                  (long long)instant_ms_between(v.since, now), (long long)v.generation, v.ahead,
                  v.failures, log_quote(v.problem[0] == '\0' ? "none" : v.problem).text);
        if (v.has_relay) {
            log_event(LOG_LEVEL_INFO, "relay",
                      "scope=%s published=%llu deleted=%llu failed=%llu buried=%llu "
                      "producers_made=%llu in_flight=%lld kafka=%s",
                      v.name, (unsigned long long)v.relay.published,
                      (unsigned long long)v.relay.deleted, (unsigned long long)v.relay.failed,
                      (unsigned long long)v.relay.buried,
                      (unsigned long long)v.relay.producers_made, (long long)v.relay.in_flight,
                      v.relay.kafka_reachable ? "reachable" : "away");
        }
    }
}

static void look(struct scheduler *d)
{
    instant now = clock_now();
    atomic_store(&d->looked_ns, now.ns);
    bool turn = loops_turn(d, now);
    if (turn && d->watchdog_ms > 0 && instant_ms_between(d->fed_at, now) >= d->watchdog_ms / 3) {
        notify_watchdog();
        d->fed_at = now;
    }
    tell_status(d);
}

/* Settings that change ----------------------------------------------------------------------- */

static const struct scheduler_settings *settings_in_force(const struct scheduler *d)
{
    return d->reloaded != NULL ? d->reloaded : d->settings;
}

static void reload(struct scheduler *d)
{
    const struct reload reload = {.spec = &scheduler_spec,
                                  .path = d->path,
                                  .counted = &SCHEDULER_FAMILIES[SCHEDULER_RELOADS]};
    void *fresh = NULL;
    if (d->stopping) {
        log_event(LOG_LEVEL_WARN, "SIGHUP: stopping, settings are not read again", NULL);
        return;
    }
    notify_reloading();
    if (reload_read(&reload, settings_in_force(d), &fresh) == STATUS_OK) {
        free(d->reloaded);
        d->reloaded = fresh;
        const struct scope_bounds bounds = {.establish_ms = d->reloaded->establish_ms,
                                            .unhealthy_ms = d->reloaded->database_unhealthy_ms,
                                            .drain_ms = d->reloaded->drain_ms};
        for (size_t i = 0; i < d->count; i++) {
            scope_set_bounds(d->scopes[i], &bounds);
        }
    }
    notify_ready();
}

/* Stopping ----------------------------------------------------------------------------------- */

static void ask_stop(struct scheduler *d, const char *why)
{
    log_event(LOG_LEVEL_INFO, "stopping", "reason=%s", why);
    notify_stopping();
    d->stopping = true;
    d->stop_until = instant_add_ms(clock_now(), settings_in_force(d)->stop_ms);
    for (size_t i = 0; i < d->count; i++) {
        scope_ask_stop(d->scopes[i]);
    }
}

/* Take what has arrived. TIMEOUT: leave at once. */
static enum status take_signals(struct scheduler *d, struct error *err)
{
    struct signalfd_siginfo info;
    while (read(d->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGHUP) {
            reload(d);
        } else if (info.ssi_signo == SIGUSR1) {
            log_scopes(d);
        } else if (d->stopping) {
            return error_set(err, STATUS_TIMEOUT, "a second signal ended the ordered stop");
        } else {
            ask_stop(d, info.ssi_signo == SIGTERM ? "SIGTERM" : "SIGINT");
        }
    }
    return STATUS_OK;
}

static bool all_joined(struct scheduler *d)
{
    bool all = true;
    for (size_t i = 0; i < d->count; i++) {
        if (!d->joined[i]) {
            d->joined[i] = scope_join(d->scopes[i], clock_now()) == STATUS_OK;
        }
        all = all && d->joined[i];
    }
    return all;
}

/* Wait for signals, watch, and end when every scope is STOPPED. */
static enum status main_loop(struct scheduler *d, struct error *err)
{
    for (;;) {
        struct pollfd fd = {.fd = d->signals, .events = POLLIN};
        int64_t wait_ms = d->stopping ? 20 : LOOK_MS;
        if (d->watchdog_ms > 0 && d->watchdog_ms / 3 < wait_ms) {
            wait_ms = d->watchdog_ms / 3;
        }
        (void)poll(&fd, 1, (int)wait_ms);
        enum status status = take_signals(d, err);
        if (status != STATUS_OK) {
            return status;
        }
        look(d);
        if (d->stopping && all_joined(d)) {
            return STATUS_OK;
        }
        if (d->stopping && !instant_before(clock_now(), d->stop_until)) {
            return error_set(err, STATUS_TIMEOUT, "the ordered stop took longer than stop_ms");
        }
    }
}

/* Threads end in the order of who uses whom. TIMEOUT: something hangs; nothing may be freed. */
static enum status end_parts(struct scheduler *d, struct error *err)
{
    instant until = instant_add_ms(clock_now(), CLOSE_MS);
    if (scheduler_http_stop(d->http, until) != STATUS_OK) {
        return error_set(err, STATUS_TIMEOUT, "an HTTP request did not end");
    }
    d->http = NULL;
    if (stop_metrics(d, until) != STATUS_OK) {
        return error_set(err, STATUS_TIMEOUT, "the observer did not end");
    }
    for (size_t i = 0; i < d->count; i++) {
        if (scope_join(d->scopes[i], until) != STATUS_OK) {
            return error_set(err, STATUS_TIMEOUT, "a scope thread did not end");
        }
    }
    if (coord_stop(d->coord, until) != STATUS_OK) {
        return error_set(err, STATUS_TIMEOUT, "the session could not be closed in time");
    }
    if (canceller_stop(d->canceller, until) != STATUS_OK) {
        return error_set(err, STATUS_TIMEOUT, "a cancel request did not end");
    }
    d->canceller = NULL;
    return STATUS_OK;
}

static void free_parts(struct scheduler *d)
{
    for (size_t i = 0; i < d->count; i++) {
        scope_free(d->scopes[i]);
    }
    coord_free(d->coord);
    clock_watch_free(d->watch);
    problem_board_done(&d->board);
    life_file_free(d->life);
    inbox_free(d->urgent);
    free(d->reloaded);
    if (d->signals >= 0) {
        (void)close(d->signals);
    }
    free(d);
}

enum status scheduler_run(const char *path, const struct scheduler_settings *settings,
                          struct error *err)
{
    struct scheduler *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    d->path = path;
    d->settings = settings;
    d->signals = -1;
    problem_board_init(&d->board);
    d->watchdog_ms = notify_watchdog_ms();
    enum status status = make_parts(d, err);
    if (status == STATUS_OK) {
        status = start_http(d, err);
    }
    if (status != STATUS_OK) {
        free_parts(d);
        return status;
    }
    status = start_parts(d, err);
    if (status == STATUS_OK) {
        notify_ready();
        status = main_loop(d, err);
    } else {
        ask_stop(d, "not all threads started");
    }
    if (status == STATUS_TIMEOUT) {
        return status; /* threads are left that use all this: the caller leaves by _exit */
    }
    enum status ended = end_parts(d, err);
    if (ended != STATUS_OK) {
        return ended;
    }
    free_parts(d);
    return status;
}
