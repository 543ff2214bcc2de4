/* How a scope carries out the commands of a transition. */
#include <stdio.h>

#include "crash_point.h"
#include "log.h"
#include "mutant.h"
#include "scope_shell.h"
#include "store_fence.h"

#define WARM_MS 10000 /* what was read ahead is of now */

static const struct backoff life_backoff = {.base_ms = 200, .most_ms = 30000};

/* Put another relay in its place; the one before is the caller's to end. */
static struct relay *relay_exchange(struct scope *s, struct relay *relay)
{
    (void)pthread_mutex_lock(&s->view_mutex);
    struct relay *before = s->relay;
    s->relay = relay;
    (void)pthread_mutex_unlock(&s->view_mutex);
    return before;
}

void scope_begin_relay(struct scope *s)
{
    struct error err = {.text = ""};
    const struct relay_options options = {
        .authority = s->authority,
        .lease = s->lease,
        .store = {.conninfo = s->options.conninfo,
                  .password_file = s->options.password_file,
                  .application_name = s->relay_name,
                  .role = STORE_SCHEDULER,
                  .identity = &s->identity},
        .brokers = s->options.brokers,
        .topic = s->options.topic,
        .properties = s->options.properties,
        .secret_files = s->options.secret_files,
        .window = s->options.relay_window,
        .statement_ms = s->options.statement_ms,
    };
    struct relay *relay = NULL;
    if (relay_start(&options, &relay, &err) == STATUS_OK) {
        (void)relay_exchange(s, relay);
    } else { /* planning goes on: the pull path serves the jobs; tried again */
        scope_set_problem(s, "no relay", &err);
    }
}

void scope_end_relay(struct scope *s, instant deadline)
{
    struct relay *relay = relay_exchange(s, NULL); /* out of sight before it is freed */
    if (relay != NULL && !MUTANT("releases_before_drain")) {
        relay_stop(relay, deadline);
        scope_mark_turn(s);
    }
}

static void follow_up(struct scope *s, enum lifecycle_event event)
{
    s->follow_up = event;
    s->has_follow_up = true;
}

static void note(struct scope *s, const struct lifecycle_outcome *outcome)
{
    struct error err = {.text = ""};
    bool held = outcome->row->next == LIFECYCLE_HELD;
    bool unheld = outcome->from == LIFECYCLE_HELD;
    const struct fence_note entry = {.member = s->options.member,
                                     .event = held     ? "held"
                                              : unheld ? "unheld"
                                                       : "stepped_down",
                                     .reason = held     ? s->problem
                                               : unheld ? "lifted"
                                                        : lifecycle_reason_name(s->life.reason)};
    /* For people only: no connection is opened for it. */
    if (s->store == NULL || store_is_broken(s->store)) {
        return;
    }
    if (fence_note(s->store, &s->authority, &entry, scope_statement_deadline(s), &err) !=
        STATUS_OK) {
        log_event(LOG_LEVEL_WARN, "diary entry not written", "scope=%s error=%s", s->options.name,
                  log_quote(err.text).text);
    }
}

static void back_off(struct scope *s)
{
    s->failures++;
    s->backoff_until = scope_in_ms(backoff_ms(&life_backoff, s->failures, random_number()));
    s->meet_wanted = false;
    s->established = false;
    planning_free(s->planning);
    s->planning = NULL;
}

static void enroll(struct scope *s)
{
    s->attempt++;
    s->withdraw_sent = false; /* a WITHDRAWN that comes now is of the node before */
    s->authority.generation = 0;
    uuid_random(s->authority.owner);
    if (coord_enroll(s->options.coord, s->number, s->session, s->attempt) != STATUS_OK) {
        follow_up(s, LIFECYCLE_EV_ENROLL_FAILED);
    }
}

static void begin_establish(struct scope *s)
{
    s->healthy_at = clock_now();
    s->state_until = scope_in_ms(atomic_load(&s->establish_ms));
    s->store_retry_at = clock_now();
    s->remembered[0] = '\0'; /* establish asks for all that is known */
    CRASH_POINT("establishing.begun");
    scope_ask_mark(s);
}

static void make_planning(struct scope *s)
{
    const struct planning_options options = {.watch = s->options.watch,
                                             .scope = s->options.name,
                                             .lease = s->lease,
                                             .tz_directory = s->options.tz_directory,
                                             .tz_poll_ms = s->options.tz_poll_ms,
                                             .statement_ms = s->options.statement_ms,
                                             .batch_schedules = s->options.batch_schedules,
                                             .look_ms = PLANNING_LOOK_MS};
    CRASH_POINT("preparing.begun");
    planning_free(s->planning);
    s->planning = planning_new(&options);
}

void scope_warm_planning(struct scope *s)
{
    make_planning(s);
    if (s->planning != NULL) {
        planning_warm(s->planning);
        s->warmed_at = clock_now();
    }
}

static void begin_prepare(struct scope *s)
{
    bool warm = s->planning != NULL && s->warmed_at.ns != 0 &&
                instant_ms_between(s->warmed_at, clock_now()) < WARM_MS;
    s->prepare_began = clock_now();
    s->warmed_at = (instant){0}; /* one activation, one planning */
    if (!warm) {
        make_planning(s);
    }
}

static void lead(struct scope *s)
{
    struct error err = {.text = ""};
    int64_t prepared_ms = instant_ms_between(s->prepare_began, clock_now());
    s->failures = 0;
    s->notified = true;
    enum status status =
        fence_activated(s->store, &s->authority, prepared_ms, scope_statement_deadline(s), &err);
    if (status == STATUS_FENCED) {
        follow_up(s, LIFECYCLE_EV_FENCED);
        return;
    }
    if (status != STATUS_OK) {
        scope_statement_failed(s, "diary", &err);
    }
    scope_begin_relay(s);
    CRASH_POINT("leading.begun");
}

static void warm(struct scope *s)
{
    bool own_fault = s->life.reason == LIFECYCLE_REASON_PREPARE_FAILED ||
                     s->life.reason == LIFECYCLE_REASON_DATABASE_UNHEALTHY ||
                     s->life.reason == LIFECYCLE_REASON_STUCK;
    if (!own_fault) {
        s->failures = 0;
    }
    s->ping_at = clock_now();
    scope_follow_anew(s);
}

static void release(struct scope *s)
{
    CRASH_POINT("releasing.begun");
    s->withdraw_sent = false;
    s->state_until = scope_in_ms(2 * s->options.statement_ms);
    planning_free(s->planning);
    s->planning = NULL;
}

static void carry_out_ends(struct scope *s, const struct lifecycle_outcome *outcome)
{
    unsigned commands = outcome->commands;
    /* LIFECYCLE_DO_CANCEL: whoever reads the coordination's urgent inbox has cancelled the running
     * statement already, or this thread could not be here. */
    if ((commands & LIFECYCLE_DO_STOP_RELAY) != 0) {
        scope_end_relay(s, clock_now());
    }
    if ((commands & LIFECYCLE_DO_NOTE) != 0) {
        note(s, outcome);
    }
    if ((commands & LIFECYCLE_DO_WITHDRAW) != 0 &&
        coord_withdraw(s->options.coord, s->number, s->attempt) != STATUS_OK) {
        log_event(LOG_LEVEL_DEBUG, "withdraw left to the next enroll", "scope=%s", s->options.name);
    }
    if ((commands & LIFECYCLE_DO_BACKOFF) != 0) {
        back_off(s);
    }
}

static void carry_out_beginnings(struct scope *s, unsigned commands)
{
    /* LIFECYCLE_DO_AWAIT_SESSION: the coordination always wants one; scope_work waits for it. */
    if ((commands & LIFECYCLE_DO_MEET) != 0) {
        s->meet_wanted = true;
        s->work_at = clock_now();
    }
    if ((commands & LIFECYCLE_DO_ENROLL) != 0) {
        enroll(s);
    }
    if ((commands & LIFECYCLE_DO_WARM) != 0) {
        warm(s);
    }
    if ((commands & LIFECYCLE_DO_ESTABLISH) != 0) {
        begin_establish(s);
    }
    if ((commands & LIFECYCLE_DO_PREPARE) != 0) {
        begin_prepare(s);
    }
    if ((commands & LIFECYCLE_DO_LEAD) != 0) {
        lead(s);
    }
    if ((commands & LIFECYCLE_DO_DRAIN) != 0) {
        CRASH_POINT("draining.begun");
        s->state_until = scope_in_ms(atomic_load(&s->drain_ms));
    }
    if ((commands & LIFECYCLE_DO_RELEASE) != 0) {
        release(s);
    }
}

void scope_carry_out(struct scope *s, const struct lifecycle_outcome *outcome)
{
    carry_out_ends(s, outcome);
    carry_out_beginnings(s, outcome->commands);
}
