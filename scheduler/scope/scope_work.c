/* What a scope does in each state, one turn at a time. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "crash_point.h"
#include "decision_log.h"
#include "log.h"
#include "mutant.h"
#include "scope_shell.h"
#include "store_fence.h"

#define HOLD_LOOK_MS         1000 /* HELD looks at the database every second */
#define LEADER_LOOK_MS       2000 /* an idle leader asks the server less than once a second in all */
#define PREPARE_FAILURES_MAX 5
#define TERMINATE_MS         3000

/* Without a node ------------------------------------------------------------------------------- */

/* Ask the database whether this ensemble may lead, and whether a hold stands. */
static enum status look(struct scope *s, bool *ret_held, struct error *err)
{
    enum fence_ensemble meeting = FENCE_ENSEMBLE_UNKNOWN;
    int64_t incarnation = 0;
    /* First: a database that has met no ensemble yet must not adopt another installation's. */
    enum status status = scope_root_is_taken(s, ret_held, err);
    if (status == STATUS_OK && !*ret_held) {
        status = fence_meet(s->store, s->ensemble, s->options.member, scope_statement_deadline(s),
                            &meeting, &incarnation, err);
    }
    if (status != STATUS_OK || *ret_held) {
        return status;
    }
    if (meeting == FENCE_ENSEMBLE_UNKNOWN || meeting == FENCE_ENSEMBLE_RETIRED) {
        (void)error_set(err, STATUS_HELD,
                        "ensemble_unknown: the database %s ZooKeeper ensemble \"%s\"; correct "
                        "`zookeeper`, or, if it was rebuilt, reportctl fence rebase",
                        meeting == FENCE_ENSEMBLE_RETIRED ? "has gone over to another than"
                                                          : "does not know",
                        s->ensemble);
        *ret_held = true;
        return STATUS_OK;
    }
    /* Read before a node is asked for: see scope_prove_regressed. */
    status = fence_read(s->store, s->options.name, scope_statement_deadline(s), &s->read, err);
    if (status != STATUS_OK) {
        return status;
    }
    if (meeting == FENCE_ENSEMBLE_ADOPTED) {
        log_event(LOG_LEVEL_WARN, "database adopted its first ensemble",
                  "scope=%s ensemble=%s incarnation=%" PRId64, s->options.name,
                  log_quote(s->ensemble).text, incarnation);
    }
    s->authority.incarnation = incarnation;
    if (s->read.held) {
        (void)error_set(err, STATUS_HELD, "%s", s->read.hold);
    }
    *ret_held = s->read.held;
    return STATUS_OK;
}

static instant look_again(struct scope *s)
{
    if (instant_before(clock_now(), s->work_at)) {
        return s->work_at;
    }
    struct error err = {.text = ""};
    bool held = false;
    enum status status = scope_have_store(s, &err);
    if (status != STATUS_OK) {
        return instant_max(s->store_retry_at, scope_in_ms(1));
    }
    if (!scope_knows_root(s)) {
        return scope_in_ms(SCOPE_RETRY_MS); /* sooner when it comes */
    }
    status = look(s, &held, &err);
    if (status != STATUS_OK) {
        scope_statement_failed(s, "cannot ask the database", &err);
        s->work_at = scope_in_ms(HOLD_LOOK_MS);
        return s->work_at;
    }
    if (!held && scope_distrusts_clock(s)) { /* whoever could lead only to step down does not */
        s->work_at = scope_in_ms(HOLD_LOOK_MS);
        return s->work_at;
    }
    s->meet_wanted = false;
    if (held) {
        scope_tell_held(s, err.text);
        scope_set_problem(s, "held", &err);
        s->work_at = scope_in_ms(HOLD_LOOK_MS);
        scope_feed(s, LIFECYCLE_EV_HOLD_FOUND); /* in HELD: no news */
        return s->work_at;
    }
    scope_database_works(s);
    scope_feed(s,
               s->life.state == LIFECYCLE_HELD ? LIFECYCLE_EV_LIFTED : LIFECYCLE_EV_ENSEMBLE_KNOWN);
    return clock_now();
}

static instant work_enrolling(struct scope *s)
{
    if (s->life.node) {
        return INSTANT_NEVER; /* the coordination answers every enroll, or the session is lost */
    }
    if (s->meet_wanted) {
        return look_again(s);
    }
    if (instant_before(clock_now(), s->backoff_until)) {
        return s->backoff_until;
    }
    scope_feed(s, LIFECYCLE_EV_BACKOFF_OVER);
    return clock_now();
}

static instant work_following(struct scope *s)
{
    struct error err = {.text = ""};
    utc_us now = {0};
    if (scope_have_store(s, &err) != STATUS_OK) {
        return instant_max(s->store_retry_at, scope_in_ms(1));
    }
    instant wake_at = scope_follow(s);
    if (instant_before(clock_now(), s->ping_at) || s->life.state != LIFECYCLE_FOLLOWING ||
        s->store == NULL /* given up while following */) {
        return instant_min(wake_at, s->ping_at);
    }
    s->ping_at = scope_in_ms(SCOPE_PING_MS);
    if (store_clock(s->store, scope_statement_deadline(s), &now, &err) == STATUS_OK) {
        scope_database_works(s);
    } else {
        scope_statement_failed(s, "warm connection", &err);
    }
    return instant_min(wake_at, s->ping_at);
}

/* Leading -------------------------------------------------------------------------------------- */

static instant establish_busy(struct scope *s)
{
    struct error err = {.text = ""};
    int64_t ended = 0;
    /* The server waits up to a second for each backend to be gone. */
    if (fence_terminate(s->store, &s->authority, scope_in_ms(TERMINATE_MS), &ended, &err) !=
        STATUS_OK) {
        scope_statement_failed(s, "cannot end older writers", &err);
        return s->work_at;
    }
    log_event(LOG_LEVEL_WARN, "older writers hold the scope; ended theirs, trying again",
              "scope=%s ended=%" PRId64, s->options.name, ended);
    return clock_now();
}

static bool has_mark(struct scope *s)
{
    if (!s->mark_here && !s->mark_asked) {
        scope_ask_mark(s);
    }
    return s->mark_here;
}

static instant work_establishing(struct scope *s)
{
    struct error err = {.text = ""};
    if (!instant_before(clock_now(), s->state_until)) {
        scope_feed(s, LIFECYCLE_EV_DATABASE_UNHEALTHY);
        return clock_now();
    }
    if (!scope_may_decide(s)) {
        return scope_in_ms(SCOPE_RETRY_MS); /* the event that says why is on its way */
    }
    if (scope_have_store(s, &err) != STATUS_OK) {
        return instant_max(s->store_retry_at, scope_in_ms(1));
    }
    CRASH_POINT("establishing.connected");
    if (!has_mark(s)) {
        return scope_in_ms(SCOPE_RETRY_MS); /* sooner when it comes */
    }
    /* Connecting took time: what was allowed before it may not be any more (I8). */
    instant now = clock_now();
    if (!lease_holds(s->lease, now)) {
        return scope_in_ms(SCOPE_RETRY_MS);
    }
    decision_tell("establish", &s->authority, now, s->lease);
    bool before = s->established;
    s->established = true; /* from here on it may be */
    const struct fence_member me = {.name = s->options.member,
                                    .url = s->options.url,
                                    .mark = s->mark,
                                    .acknowledged = s->acknowledged};
    enum status status =
        fence_establish(s->store, &s->authority, &me, scope_statement_deadline(s), &err);
    if (status == STATUS_OK) {
        s->moved = false;
        scope_database_works(s);
        CRASH_POINT("establishing.done");
        scope_feed(s, LIFECYCLE_EV_ESTABLISHED);
        return clock_now();
    }
    if (status == STATUS_FENCED) {
        scope_set_problem(s, "superseded", &err);
        s->established = false;
        scope_feed(s, LIFECYCLE_EV_SUPERSEDED);
        return clock_now();
    }
    if (status == STATUS_HELD) {
        scope_set_problem(s, "held", &err);
        s->established = before; /* a release of what never was accepted would be a stale write */
        scope_feed(s, LIFECYCLE_EV_HOLD_FOUND);
        return clock_now();
    }
    if (status == STATUS_AGAIN && fence_is_busy(&err)) {
        return establish_busy(s);
    }
    scope_statement_failed(s, "cannot establish", &err);
    if (status == STATUS_CORRUPT) { /* no fence row is never "no lock": a human must look */
        scope_feed(s, LIFECYCLE_EV_DATABASE_UNHEALTHY);
        return clock_now();
    }
    return s->work_at;
}

/* What a failing step means for the lifecycle. True: an event was fed. */
static bool step_down_for(struct scope *s, enum status status, const struct error *err)
{
    if (status == STATUS_FENCED && !MUTANT("leads_on_when_fenced")) {
        scope_set_problem(s, "fenced", err);
        scope_feed(s, LIFECYCLE_EV_FENCED);
        return true;
    }
    if (status == STATUS_HELD) {
        scope_set_problem(s, "held", err);
        scope_feed(s, LIFECYCLE_EV_HOLD_FOUND);
        return true;
    }
    return false;
}

static enum status prepare(struct scope *s, struct error *err)
{
    if (s->planning == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    enum status status = scope_compare_clock(s, err);
    if (status == STATUS_OK) {
        scope_tell_planning(s);
        status = planning_prepare(s->planning, &s->authority, s->store, err);
    }
    if (status == STATUS_CONFLICT) {
        scope_planning_forgot(s);
    }
    return status;
}

static instant work_preparing(struct scope *s)
{
    struct error err = {.text = ""};
    if (!scope_may_decide(s)) {
        return scope_in_ms(SCOPE_RETRY_MS);
    }
    if (instant_before(clock_now(), s->work_at)) {
        return s->work_at;
    }
    enum status status = scope_have_store(s, &err);
    if (scope_has_moved(s)) {
        return clock_now();
    }
    if (status == STATUS_OK) {
        status = prepare(s, &err);
        if (scope_has_moved(s) || scope_distrusts_clock(s)) {
            return clock_now();
        }
    } else if (status != STATUS_FENCED) {
        return scope_gave_database_up(s) ? clock_now()
                                         : instant_max(s->store_retry_at, scope_in_ms(1));
    }
    if (status == STATUS_OK && !scope_may_decide(s)) {
        return scope_in_ms(SCOPE_RETRY_MS); /* it went while the state was loaded (I8) */
    }
    if (status == STATUS_OK) {
        scope_database_works(s);
        s->prepare_failures = 0;
        CRASH_POINT("preparing.done");
        scope_feed(s, LIFECYCLE_EV_PREPARED);
        return clock_now();
    }
    if (step_down_for(s, status, &err)) {
        return clock_now();
    }
    scope_statement_failed(s, "cannot prepare", &err);
    if (!scope_may_decide(s)) {
        return s->work_at; /* refused or cancelled for want of a lease, not a failure to prepare */
    }
    s->prepare_failures++;
    if (s->prepare_failures >= PREPARE_FAILURES_MAX) {
        s->prepare_failures = 0;
        scope_feed(s, LIFECYCLE_EV_PREPARE_FAILED);
        return clock_now();
    }
    return s->work_at;
}

static void take_step_result(struct scope *s, const struct planning_result *result)
{
    scope_database_works(s);
    s->notified = false;
    s->leave = result->leave;
    s->work_at = result->more ? clock_now() : result->wake_at;
    if (result->newest_job[0] != '\0') {
        scope_acknowledge(s, result->newest_job);
    }
    if (result->outbox && s->relay != NULL) {
        relay_wake(s->relay);
    }
}

/* An idle leader writes nothing that would be refused: look at the fence row, so that a hold or a
 * newer generation does not wait for the next due schedule. */
static enum status look_at_fence(struct scope *s, struct error *err)
{
    struct fence_row row = {.held = false};
    if (instant_before(clock_now(), s->look_at)) {
        return STATUS_OK;
    }
    s->look_at = scope_in_ms(LEADER_LOOK_MS);
    enum status status =
        fence_read(s->store, s->options.name, scope_statement_deadline(s), &row, err);
    if (status != STATUS_OK) {
        return status;
    }
    if (row.incarnation != s->authority.incarnation || row.generation != s->authority.generation ||
        row.released) {
        return error_set(err, STATUS_FENCED, "the fence row holds generation %" PRId64,
                         row.generation);
    }
    if (row.held) {
        return error_set(err, STATUS_HELD, "%s", row.hold);
    }
    s->healthy_at = clock_now();
    return scope_look_back(s, err);
}

static enum status plan(struct scope *s, struct error *err)
{
    enum status status = scope_have_store(s, err);
    if (status != STATUS_OK) {
        s->work_at = instant_max(s->store_retry_at, scope_in_ms(1));
        return status;
    }
    if (s->moved) {
        return error_set(err, STATUS_AGAIN, "the server is another one");
    }
    status = look_at_fence(s, err);
    if (status != STATUS_OK || (!s->notified && instant_before(clock_now(), s->work_at))) {
        return status;
    }
    struct planning_result result = {.wake_at = scope_in_ms(SCOPE_RETRY_MS)};
    status = planning_step(s->planning, &s->authority, s->store, s->notified, &result, err);
    scope_mark_turn(s);
    if (status == STATUS_OK) {
        take_step_result(s, &result);
    }
    if (status == STATUS_CONFLICT) {
        scope_planning_forgot(s);
    }
    return status;
}

static instant work_active(struct scope *s)
{
    struct error err = {.text = ""};
    if (scope_distrusts_clock(s)) {
        return clock_now();
    }
    if (s->relay == NULL && scope_may_decide(s)) {
        scope_begin_relay(s);
    }
    if (s->relay != NULL && relay_is_fenced(s->relay)) {
        scope_feed(s, LIFECYCLE_EV_FENCED);
        return clock_now();
    }
    if (!scope_may_decide(s)) {
        return scope_in_ms(SCOPE_RETRY_MS); /* the event that says why is on its way */
    }
    enum status status = plan(s, &err);
    if (scope_has_moved(s) || (status != STATUS_OK && scope_distrusts_clock(s))) {
        return clock_now();
    }
    if (status == STATUS_OK && s->leave) {
        s->leave = false;
        scope_feed(s, LIFECYCLE_EV_HANDOFF);
        return clock_now();
    }
    if (status == STATUS_OK) {
        return instant_min(s->work_at, s->look_at);
    }
    if (step_down_for(s, status, &err)) {
        return clock_now();
    }
    bool trouble = status == STATUS_AGAIN || status == STATUS_TIMEOUT || s->store == NULL;
    if (s->store != NULL) {
        s->notified = false;
        scope_statement_failed(s, "planning", &err);
    }
    /* A statement refused or cancelled for want of a lease says nothing about the database. */
    if (trouble && scope_may_decide(s) && scope_gave_database_up(s)) {
        return clock_now();
    }
    return s->work_at;
}

static instant work_draining(struct scope *s)
{
    /* One thread: no statement of ours is in flight. The relay gets its bounded time. */
    scope_end_relay(s, s->state_until);
    CRASH_POINT("draining.drained");
    scope_feed(s, LIFECYCLE_EV_DRAINED);
    return clock_now();
}

/* Release: our work has ended (I11); the fence row first, so that a successor finds it released. */
static instant work_releasing(struct scope *s)
{
    struct error err = {.text = ""};
    if (s->established) {
        enum status status = scope_have_store(s, &err);
        if (status == STATUS_OK) {
            status = fence_release(s->store, &s->authority, lifecycle_reason_name(s->life.reason),
                                   scope_statement_deadline(s), &err);
        }
        bool over = !instant_before(clock_now(), s->state_until);
        if (status != STATUS_OK && status != STATUS_FENCED && !over) {
            scope_statement_failed(s, "cannot release", &err);
            return instant_max(s->work_at, s->store_retry_at);
        }
        if (over && status != STATUS_OK && status != STATUS_FENCED) {
            log_event(LOG_LEVEL_WARN, "fence row not marked; the successor's establish covers it",
                      "scope=%s error=%s", s->options.name, log_quote(err.text).text);
        }
        s->established = false;
    }
    if (!s->withdraw_sent) {
        s->withdraw_sent = coord_withdraw(s->options.coord, s->number, s->attempt) == STATUS_OK;
        return s->withdraw_sent ? INSTANT_NEVER : scope_in_ms(SCOPE_RETRY_MS);
    }
    return INSTANT_NEVER; /* WITHDRAWN or SESSION_LOST comes */
}

instant scope_work(struct scope *s)
{
    switch (s->life.state) {
    case LIFECYCLE_DOWN:
        if (instant_before(clock_now(), s->backoff_until)) {
            return s->backoff_until;
        }
        scope_feed(s, LIFECYCLE_EV_BACKOFF_OVER);
        return clock_now();
    case LIFECYCLE_CONNECTING:
        if (s->session == 0) {
            return INSTANT_NEVER;
        }
        scope_feed(s, LIFECYCLE_EV_SESSION_UP);
        return clock_now();
    case LIFECYCLE_HELD:
        return look_again(s);
    case LIFECYCLE_ENROLLING:
        return work_enrolling(s);
    case LIFECYCLE_FOLLOWING:
        return work_following(s);
    case LIFECYCLE_ESTABLISHING:
        return scope_distrusts_clock(s) ? clock_now() : work_establishing(s);
    case LIFECYCLE_PREPARING:
        return work_preparing(s);
    case LIFECYCLE_ACTIVE:
        return work_active(s);
    case LIFECYCLE_SUSPENDED:
        return INSTANT_NEVER;
    case LIFECYCLE_DRAINING:
        return work_draining(s);
    case LIFECYCLE_RELEASING:
        return work_releasing(s);
    case LIFECYCLE_STOPPED:
        break;
    }
    return INSTANT_NEVER;
}
