#include "scope.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "metrics.h"
#include "scope_metrics.h"
#include "scope_shell.h"
#include "thread_join.h"

#define EVENTS_MAX 64
#define TURN_MS    1000 /* the loop turns at least this often, so that the watchdog sees it */

/* Feeding the lifecycle --------------------------------------------------------------------- */

void scope_mark_turn(struct scope *s)
{
    atomic_store_explicit(&s->turned_ns, clock_now().ns, memory_order_release);
}

/* There is a word for every state that waits for somebody else. */
static const char *problem_now(const struct scope *s)
{
    if (s->suspended) {
        return "ZooKeeper does not answer and the session is suspended; more than half of its "
               "servers must be up and reachable";
    }
    if (s->problem[0] == '\0' && s->life.state == LIFECYCLE_CONNECTING) {
        return "no session with ZooKeeper yet";
    }
    return s->problem;
}

static void publish(struct scope *s)
{
    (void)pthread_mutex_lock(&s->view_mutex);
    s->view.state = s->life.state;
    s->view.reason = s->life.reason;
    s->view.since = s->state_since;
    s->view.incarnation = s->authority.incarnation;
    s->view.generation = s->authority.generation;
    s->view.ahead = s->ahead;
    s->view.failures = s->failures;
    s->view.suspended = s->suspended;
    (void)snprintf(s->view.problem, sizeof s->view.problem, "%s", problem_now(s));
    text_trim(s->view.problem);
    (void)pthread_mutex_unlock(&s->view_mutex);
}

/* The same trouble again and again is one fact: logged once, kept for the status. */
void scope_set_problem(struct scope *s, const char *what, const struct error *err)
{
    char text[sizeof s->problem] = "";
    if (what != NULL) {
        bool why = err != NULL && err->text[0] != '\0';
        (void)snprintf(text, sizeof text, "%s%s%.400s", what, why ? ": " : "",
                       why ? err->text : "");
    }
    if (strcmp(text, s->problem) == 0) {
        return;
    }
    memcpy(s->problem, text, sizeof text);
    if (text[0] != '\0') {
        log_event(LOG_LEVEL_WARN, "scope has a problem", "scope=%s state=%s problem=%s",
                  s->options.name, lifecycle_state_name(s->life.state), log_quote(text).text);
    } else {
        log_event(LOG_LEVEL_INFO, "scope's problem is over", "scope=%s", s->options.name);
    }
    publish(s);
}

/* The row's own reason: the one in s->life may be of an earlier leadership. */
static void log_step(const struct scope *s, const struct lifecycle_outcome *outcome)
{
    enum lifecycle_reason reason = outcome->row->reason;
    bool why = reason != LIFECYCLE_REASON_NONE;
    log_event(LOG_LEVEL_INFO, "lifecycle", "scope=%s from=%s to=%s why=%s%s%s generation=%" PRId64,
              s->options.name, lifecycle_state_name(outcome->from),
              lifecycle_state_name(s->life.state), log_quote(outcome->row->comment).text,
              why ? " reason=" : "", why ? lifecycle_reason_name(reason) : "",
              s->authority.generation);
}

static void feed_one(struct scope *s, enum lifecycle_event event)
{
    struct lifecycle_outcome outcome = lifecycle_step(&s->life, event);
    if (outcome.row == NULL) {
        return;
    }
    if (outcome.from != s->life.state) {
        instant before = s->state_since;
        s->state_since = clock_now();
        scope_metrics_step(s->options.name, outcome.row,
                           metric_seconds_since(before, s->state_since));
        s->work_at = s->state_since;
        log_step(s, &outcome);
    }
    scope_carry_out(s, &outcome);
    publish(s);
}

void scope_feed(struct scope *s, enum lifecycle_event event)
{
    feed_one(s, event);
    while (s->has_follow_up) {
        s->has_follow_up = false;
        feed_one(s, s->follow_up);
    }
}

/* Events from the coordination ---------------------------------------------------------------- */

static void on_enrolled(struct scope *s, const struct coord_event *e)
{
    s->authority.generation = e->generation;
    scope_feed(s, LIFECYCLE_EV_ENROLLED);
    if (scope_prove_regressed(s)) {
        scope_feed(s, LIFECYCLE_EV_HOLD_FOUND);
    }
}

static void on_enroll_failed(struct scope *s, const struct coord_event *e)
{
    struct error err;
    (void)error_set(&err, STATUS_AGAIN, "%s", e->text);
    scope_set_problem(s, "enrolling failed", &err);
    scope_feed(s, LIFECYCLE_EV_ENROLL_FAILED);
}

static void on_rank(struct scope *s, const struct coord_event *e)
{
    s->ahead = e->ahead;
    scope_feed(s, e->ahead == 0 ? LIFECYCLE_EV_RANK_FIRST : LIFECYCLE_EV_RANK_BEHIND);
    publish(s);
}

/* In every state: a follower stays one meanwhile, and cannot take over. */
static void suspended_set(struct scope *s, bool suspended)
{
    s->suspended = suspended;
    publish(s);
}

static void on_session_up(struct scope *s, const struct coord_event *e)
{
    s->session = e->session;
    (void)snprintf(s->ensemble, sizeof s->ensemble, "%s", e->ensemble);
    s->root_owner[0] = '\0';
    s->root_asked = s->root_here = false;
    suspended_set(s, false);
}

static void take_event(struct scope *s, const struct coord_event *e)
{
    bool mine = e->session == s->session && e->attempt == s->attempt;
    switch (e->type) {
    case COORD_SESSION_UP:
        on_session_up(s, e);
        return; /* fed to the lifecycle when it awaits it, see scope_work */
    case COORD_SESSION_LOST:
        s->session = 0;
        suspended_set(s, false);
        if (e->text[0] != '\0') {
            struct error err;
            (void)error_set(&err, STATUS_AGAIN, "%s", e->text);
            scope_set_problem(s, "no session", &err);
        }
        scope_feed(s, LIFECYCLE_EV_SESSION_LOST);
        return;
    case COORD_SUSPENDED:
        suspended_set(s, true);
        scope_feed(s, LIFECYCLE_EV_SUSPENDED);
        return;
    case COORD_RESUMED:
        suspended_set(s, false);
        scope_feed(s, LIFECYCLE_EV_RESUMED);
        return;
    case COORD_ENROLLED:
        if (mine) {
            on_enrolled(s, e);
        }
        return;
    case COORD_ENROLL_FAILED:
        if (mine) {
            on_enroll_failed(s, e);
        }
        return;
    case COORD_RANK:
        if (mine) {
            on_rank(s, e);
        }
        return;
    case COORD_NODE_LOST:
        if (mine) {
            scope_feed(s, LIFECYCLE_EV_NODE_LOST);
        }
        return;
    case COORD_ROOT:
        scope_take_root(s, e);
        return;
    case COORD_MARK:
        if (mine) {
            scope_take_mark(s, e->text);
        }
        return;
    case COORD_WITHDRAWN:
        if (s->withdraw_sent && e->session == s->session) {
            scope_feed(s, LIFECYCLE_EV_RELEASED);
        }
        return;
    }
}

static bool is_leading(enum lifecycle_state state)
{
    return state == LIFECYCLE_ESTABLISHING || lifecycle_may_write(state);
}

static void take_events(struct scope *s)
{
    struct coord_event e;
    int ignored = 0;
    while (inbox_take(s->control, &ignored)) {
    }
    while (inbox_take(s->events, &e)) {
        take_event(s, &e);
    }
    if (atomic_exchange(&s->stuck_told, false)) {
        scope_feed(s, LIFECYCLE_EV_STUCK);
    }
    if (atomic_load(&s->stop_asked) && s->life.state != LIFECYCLE_DRAINING &&
        s->life.state != LIFECYCLE_RELEASING) {
        scope_feed(s, LIFECYCLE_EV_STOP);
    }
    /* 0 means suspended or lost, and the event that says which is on its way: until it is here
     * nothing is written (I8). A deadline in the past is our own to notice. */
    instant until = lease_until(s->lease);
    if (is_leading(s->life.state) && until.ns != 0 && !instant_before(clock_now(), until)) {
        scope_feed(s, LIFECYCLE_EV_LEASE_EXPIRED);
    }
}

/* The loop ------------------------------------------------------------------------------------ */

/* Notifications that came with the answer of a statement lie in the library's memory already: the
 * socket stays silent. So look there before each wait, not only when poll says so. */
static bool take_notifications(struct scope *s)
{
    unsigned count = 0;
    if (s->store == NULL || store_is_broken(s->store)) {
        return false;
    }
    if (store_take_notifications(s->store, &count) == STATUS_OK && count == 0) {
        return false;
    }
    s->notified = s->notified || count > 0;
    s->work_at = clock_now(); /* plan, or replace the lost connection */
    return true;
}

static void wait_for_events(struct scope *s, instant wake_at)
{
    instant now = clock_now();
    if (take_notifications(s)) {
        return;
    }
    wake_at = instant_min(wake_at, instant_add_ms(now, TURN_MS));
    if (is_leading(s->life.state)) {
        instant until = lease_until(s->lease);
        if (until.ns != 0) {
            wake_at = instant_min(wake_at, until);
        }
    }
    struct pollfd fds[3] = {{.fd = inbox_fd(s->events), .events = POLLIN},
                            {.fd = inbox_fd(s->control), .events = POLLIN},
                            {.fd = s->store == NULL ? -1 : store_fd(s->store), .events = POLLIN}};
    stall_wait(&s->stall, now, wake_at);
    /* To the nanosecond: a firing should not be a millisecond late by rounding. */
    struct timespec wait = instant_poll_wait(now, wake_at);
    if (ppoll(fds, 3, &wait, NULL) < 0 && errno != EINTR) {
        log_event(LOG_LEVEL_ERROR, "scope thread cannot poll", "scope=%s errno=%d", s->options.name,
                  errno);
    }
    if (fds[2].revents != 0) {
        (void)take_notifications(s);
    }
}

static void *scope_run(void *argument)
{
    struct scope *s = argument;
    thread_name("scope");
    s->work_at = s->backoff_until = s->state_since = clock_now();
    while (s->life.state != LIFECYCLE_STOPPED) {
        scope_mark_turn(s);
        stall_turn(&s->stall, clock_now());
        take_events(s);
        if (s->life.state == LIFECYCLE_STOPPED) {
            break;
        }
        instant wake_at = scope_work(s);
        if (instant_before(clock_now(), wake_at)) {
            wait_for_events(s, wake_at);
        } else {
            (void)take_notifications(s); /* a long backlog keeps no edit or request unheard */
        }
    }
    scope_close_store(s);
    scope_mark_turn(s);
    stall_wait(&s->stall, clock_now(), INSTANT_NEVER);
    return NULL;
}

/* Called by other threads ---------------------------------------------------------------------- */

void scope_set_bounds(struct scope *scope, const struct scope_bounds *bounds)
{
    atomic_store(&scope->establish_ms, bounds->establish_ms);
    atomic_store(&scope->unhealthy_ms, bounds->unhealthy_ms);
    atomic_store(&scope->drain_ms, bounds->drain_ms);
}

enum status scope_new(const struct scope_options *options, struct scope **ret_scope,
                      struct error *err)
{
    struct scope *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory for scope \"%s\"", options->name);
    }
    s->options = *options;
    scope_set_bounds(
        s, &(struct scope_bounds){options->establish_ms, options->unhealthy_ms, options->drain_ms});
    (void)pthread_mutex_init(&s->store_mutex, NULL);
    (void)pthread_mutex_init(&s->view_mutex, NULL);
    stall_init(&s->stall);
    scope_metrics_begin(options->name);
    (void)snprintf(s->application_name, sizeof s->application_name, "report-scheduler:%.40s",
                   options->name);
    (void)snprintf(s->relay_name, sizeof s->relay_name, "report-relay:%.44s", options->name);
    (void)snprintf(s->authority.scope, sizeof s->authority.scope, "%s", options->name);
    (void)snprintf(s->view.name, sizeof s->view.name, "%s", options->name);
    s->events = inbox_new(sizeof(struct coord_event), EVENTS_MAX);
    s->control = inbox_new(sizeof(int), EVENTS_MAX);
    enum status status = STATUS_FATAL;
    if (s->events == NULL || s->control == NULL) {
        (void)error_set(err, STATUS_FATAL, "out of memory for scope \"%s\"", options->name);
    } else {
        status = coord_add_scope(options->coord, options->name, s->events, &s->number, err);
    }
    if (status != STATUS_OK) {
        scope_free(s);
        return status;
    }
    s->lease = coord_scope_lease(options->coord, s->number);
    *ret_scope = s;
    return STATUS_OK;
}

enum status scope_start(struct scope *scope, struct error *err)
{
    scope_mark_turn(scope);
    int rc = pthread_create(&scope->thread, NULL, scope_run, scope);
    if (rc != 0) {
        return error_set(err, STATUS_FATAL, "no thread for scope \"%s\": %s", scope->options.name,
                         strerror(rc));
    }
    scope->started = true;
    return STATUS_OK;
}

static void wake(struct scope *s)
{
    int one = 1;
    enum status full = inbox_post(s->control, &one); /* full: it will wake anyway */
    (void)full;
}

void scope_ask_stop(struct scope *scope)
{
    atomic_store(&scope->stop_asked, true);
    wake(scope);
}

void scope_tell_stuck(struct scope *scope)
{
    atomic_store(&scope->stuck_told, true);
    wake(scope);
}

void scope_cancel_statement(struct scope *scope)
{
    (void)pthread_mutex_lock(&scope->store_mutex);
    if (scope->store != NULL) {
        store_cancel(scope->store);
    }
    (void)pthread_mutex_unlock(&scope->store_mutex);
}

instant scope_last_turn(const struct scope *scope)
{
    return (instant){atomic_load_explicit(&scope->turned_ns, memory_order_acquire)};
}

struct scope_snapshot scope_read(struct scope *scope)
{
    (void)pthread_mutex_lock(&scope->view_mutex);
    struct scope_snapshot copy = scope->view;
    copy.has_relay = scope->relay != NULL;
    if (copy.has_relay) {
        copy.relay = relay_read(scope->relay);
        copy.relay_stall_s = relay_stall_s(scope->relay);
    }
    (void)pthread_mutex_unlock(&scope->view_mutex);
    copy.stall_s = stall_longest_s(&scope->stall, clock_now());
    return copy;
}

enum status scope_join(struct scope *scope, instant deadline)
{
    if (!scope->started) {
        return STATUS_OK;
    }
    if (thread_join(scope->thread, deadline) != STATUS_OK) {
        return STATUS_TIMEOUT;
    }
    scope->started = false;
    return STATUS_OK;
}

void scope_free(struct scope *scope)
{
    if (scope == NULL) {
        return;
    }
    planning_free(scope->planning);
    store_close(scope->store);
    inbox_free(scope->events);
    inbox_free(scope->control);
    (void)pthread_mutex_destroy(&scope->store_mutex);
    (void)pthread_mutex_destroy(&scope->view_mutex);
    free(scope);
}
