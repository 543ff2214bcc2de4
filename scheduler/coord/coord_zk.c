/* The coordination thread: one readable loop over an inbox and timers. Sessions are in
 * coord_zk_session.c, candidates in coord_zk_seat.c. */
#include "coord.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coord_zk.h"
#include "crash_point.h"
#include "log.h"
#include "mutant.h"
#include "loop_name.h"
#include "thread_join.h"

#define INBOX_MESSAGES 1024
#define TURN_MS        1000 /* the loop turns at least this often, so that the watchdog sees it */

/* Operations ------------------------------------------------------------------------------ */

struct op *coord_op_new(struct coord *c, enum op_kind kind, unsigned scope)
{
    for (uint32_t i = 0; i < OPS_MAX; i++) {
        struct op *op = &c->ops[i];
        if (op->used) {
            continue;
        }
        instant now = clock_now();
        *op = (struct op){.used = true, .kind = kind, .scope = scope, .sent_at = now};
        op->deadline = instant_add_ms(now, c->negotiated_ms);
        op->ticket = (struct zk_ticket){.inbox = c->inbox, .session = c->session, .op = i};
        return op;
    }
    return NULL;
}

void coord_op_drop(struct op *op)
{
    op->used = false;
}

/* Telling the scopes ----------------------------------------------------------------------- */

void coord_tell(struct coord *c, unsigned scope, const struct coord_event *event)
{
    struct seat *seat = &c->seats[scope];
    if (seat->overflow) {
        return; /* SESSION_LOST is owed first; anything else would be out of order */
    }
    struct coord_event e = *event;
    e.session = c->session;
    if (inbox_post(seat->events, &e) != STATUS_OK) {
        seat->overflow = true;
    }
    if (c->urgent != NULL && (e.type == COORD_SUSPENDED || e.type == COORD_SESSION_LOST)) {
        enum status counted = inbox_post(c->urgent, &e); /* full: a cancel is under way anyway */
        (void)counted;
    }
}

void coord_tell_all(struct coord *c, enum coord_event_type type, const char *text)
{
    struct coord_event e = {.type = type, .session_ms = c->negotiated_ms};
    (void)snprintf(e.ensemble, sizeof e.ensemble, "%s", c->ensemble);
    (void)snprintf(e.text, sizeof e.text, "%s", text);
    for (unsigned i = 0; i < c->seat_count; i++) {
        coord_tell(c, i, &e);
    }
}

/* A scope that missed an event is told that the session is lost, so that it stops its work and
 * starts over; its node stays until it enrolls again, which is after its work has stopped (I11). */
static void tell_overflowed(struct coord *c, unsigned scope)
{
    struct seat *seat = &c->seats[scope];
    struct coord_event e = {.type = COORD_SESSION_LOST, .session = c->session};
    (void)snprintf(e.text, sizeof e.text, "events were lost, starting over");
    if (!seat->overflow || inbox_post(seat->events, &e) != STATUS_OK) {
        return;
    }
    seat->overflow = false;
    seat->told = false;
    if (c->told_up && c->phase == PHASE_READY) {
        struct coord_event up = {.type = COORD_SESSION_UP, .session_ms = c->negotiated_ms};
        (void)snprintf(up.ensemble, sizeof up.ensemble, "%s", c->ensemble);
        coord_tell(c, scope, &up);
    }
}

/* The loop --------------------------------------------------------------------------------- */

static void take_reply(struct coord *c, const struct zk_message *m, instant now)
{
    if (m->session != c->session || m->op >= OPS_MAX || !c->ops[m->op].used) {
        return;
    }
    struct op op = c->ops[m->op];
    c->ops[m->op].used = false;
    if (op.kind == OP_HEARTBEAT) {
        CRASH_POINT("quorum_write.answered");
    }
    switch (op.kind) {
    case OP_AUDIT:
        access_on_audit(c, m);
        return;
    case OP_SETUP_IDENTIFY:
    case OP_SETUP_CREATE:
    case OP_SETUP_ENSEMBLE:
    case OP_SETUP_READ:
    case OP_SETUP_MEMBER:
    case OP_HEARTBEAT:
        session_on_reply(c, &op, m, now);
        return;
    case OP_SEAT_READ:
    case OP_SEAT_CREATE:
    case OP_SEAT_SYNC:
    case OP_SEAT_LIST:
    case OP_SEAT_STAT:
    case OP_SEAT_WATCH:
    case OP_SEAT_DELETE:
        seat_on_reply(c, &op, m, now);
        return;
    case OP_MARK_READ:
    case OP_MARK_WRITE:
        mark_on_reply(c, &op, m, now);
        return;
    case OP_ROOT_READ:
    case OP_ROOT_CREATE:
        root_on_reply(c, &op, m, now);
        return;
    }
}

static void take_message(struct coord *c, const struct zk_message *m, instant now)
{
    switch (m->type) {
    case ZK_MESSAGE_REPLY:
        take_reply(c, m, now);
        break;
    case ZK_MESSAGE_LINK:
        if (m->session == c->session && c->client != NULL) {
            session_on_link(c, m->link, now);
        }
        break;
    case ZK_MESSAGE_WATCH:
        if (m->session == c->session && m->scope < c->seat_count) {
            seat_on_watch(c, m->scope);
        }
        break;
    case ZK_MESSAGE_ENROLL:
        if (m->session == c->session || MUTANT("enrolls_in_any_session")) {
            seat_enroll(c, m->scope, m->attempt);
        }
        break;
    case ZK_MESSAGE_WITHDRAW:
        seat_withdraw(c, m->scope, m->attempt);
        break;
    case ZK_MESSAGE_MARK_READ:
        mark_ask(c, m->scope);
        break;
    case ZK_MESSAGE_MARK_WRITE:
        mark_want(c, m->scope, m->text);
        break;
    case ZK_MESSAGE_ROOT:
        root_ask(c, m->scope, m->text);
        break;
    case ZK_MESSAGE_STOP:
        c->stopping = true;
        break;
    }
    free(m->names);
}

static void take_messages(struct coord *c)
{
    struct zk_message m;
    for (unsigned n = 0; n < INBOX_MESSAGES && !c->stopping && inbox_take(c->inbox, &m); n++) {
        take_message(c, &m, clock_now());
    }
    if (inbox_take_dropped(c->inbox) > 0) {
        log_event(LOG_LEVEL_WARN, "coordination inbox overflowed; lists are read again", NULL);
        for (unsigned i = 0; i < c->seat_count; i++) {
            seat_on_watch(c, i);
        }
    }
}

static void *coord_run(void *argument)
{
    struct coord *c = argument;
    thread_name(LOOP_COORDINATION);
    life_close_leftover(c);
    while (!c->stopping) {
        instant now = clock_now();
        atomic_store_explicit(&c->turned_ns, now.ns, memory_order_release);
        stall_turn(&c->stall, now);
        take_messages(c);
        now = clock_now();
        session_tick(c, now);
        for (unsigned i = 0; i < c->seat_count; i++) {
            tell_overflowed(c, i);
            seat_tick(c, i, now);
            mark_tick(c, i, now);
            root_tick(c, i, now);
        }
        instant wake_at = instant_min(session_wake_at(c), instant_add_ms(now, TURN_MS));
        struct pollfd fd = {.fd = inbox_fd(c->inbox), .events = POLLIN};
        stall_wait(&c->stall, clock_now(), wake_at);
        if (poll(&fd, 1, instant_poll_timeout(clock_now(), wake_at)) < 0 && errno != EINTR) {
            log_event(LOG_LEVEL_ERROR, "coordination thread cannot poll", "errno=%d", errno);
        }
    }
    session_lease_set(c, (instant){0});
    life_end_session(c);
    return NULL;
}

/* Called by other threads ------------------------------------------------------------------- */

static bool root_is_valid(const char *root)
{
    size_t n = strlen(root);
    return n > 1 && n < COORD_PATH_MAX - 64 && root[0] == '/' && root[n - 1] != '/' &&
           strstr(root, "//") == NULL && strstr(root, "/.") == NULL;
}

static enum status check_options(const struct coord_options *o, struct error *err)
{
    if (!root_is_valid(o->root)) {
        return error_set(err, STATUS_INVALID,
                         "zookeeper_root \"%s\" is not a path: write for example "
                         "\"/report-scheduler\"",
                         o->root);
    }
    if (strchr(o->servers, '[') != NULL || o->servers[0] == '\0' ||
        strlen(o->servers) >= sizeof((struct coord *)0)->servers) {
        return error_set(err, STATUS_INVALID,
                         "zookeeper \"%s\" is not a list \"host:port,host:port\" (IPv6 "
                         "without brackets: \"::1:2181\")",
                         o->servers);
    }
    int64_t beat_ms = lease_beat_ms(o->session_ms);
    if (o->session_ms < 1000 || o->session_ms > 600000 ||
        o->session_ms - o->tick_ms - beat_ms - o->margin_ms < 2 * beat_ms) {
        return error_set(err, STATUS_INVALID,
                         "zookeeper_session_ms %lld leaves no lease after tick_ms %lld and "
                         "margin_ms %lld: raise session_ms",
                         (long long)o->session_ms, (long long)o->tick_ms, (long long)o->margin_ms);
    }
    return STATUS_OK;
}

enum status coord_new(const struct coord_options *options, struct coord **ret_coord,
                      struct error *err)
{
    enum status s = check_options(options, err);
    if (s != STATUS_OK) {
        return s;
    }
    struct coord *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory for coordination");
    }
    stall_init(&c->stall);
    (void)snprintf(c->servers, sizeof c->servers, "%s", options->servers);
    (void)snprintf(c->root, sizeof c->root, "%s", options->root);
    (void)snprintf(c->name, sizeof c->name, "%s", options->name);
    (void)snprintf(c->url, sizeof c->url, "%s", options->url == NULL ? "" : options->url);
    (void)snprintf(c->digest_file, sizeof c->digest_file, "%s",
                   options->digest_file == NULL ? "" : options->digest_file);
    c->session_ms = options->session_ms;
    c->negotiated_ms = options->session_ms;
    c->tick_ms = options->tick_ms;
    c->margin_ms = options->margin_ms;
    c->urgent = options->urgent;
    c->life = options->life;
    c->inbox = inbox_new(sizeof(struct zk_message), INBOX_MESSAGES);
    if (c->inbox == NULL) {
        coord_free(c);
        return error_set(err, STATUS_FATAL, "out of memory for coordination");
    }
    *ret_coord = c;
    return STATUS_OK;
}

enum status coord_add_scope(struct coord *coord, const char *scope, struct inbox *events,
                            unsigned *ret_number, struct error *err)
{
    if (!name_is_valid(scope)) {
        return error_set(err, STATUS_INVALID, "\"%s\" is not a scope name: use a-z 0-9 _ . -",
                         scope);
    }
    for (unsigned i = 0; i < coord->seat_count; i++) {
        if (strcmp(coord->seats[i].scope, scope) == 0) {
            return error_set(err, STATUS_INVALID, "scope \"%s\" is named twice", scope);
        }
    }
    if (coord->seat_count == COORD_SCOPES_MAX) {
        return error_set(err, STATUS_FULL, "more than %d scopes in one process", COORD_SCOPES_MAX);
    }
    struct seat *seat = &coord->seats[coord->seat_count];
    (void)snprintf(seat->scope, sizeof seat->scope, "%s", scope);
    (void)snprintf(seat->parent, sizeof seat->parent, "%s/scopes/%s/candidates", coord->root,
                   scope);
    seat->events = events;
    *ret_number = coord->seat_count++;
    return STATUS_OK;
}

enum status coord_start(struct coord *coord, struct error *err)
{
    atomic_store(&coord->turned_ns, clock_now().ns);
    int rc = pthread_create(&coord->thread, NULL, coord_run, coord);
    if (rc != 0) {
        return error_set(err, STATUS_FATAL, "no coordination thread: %s", strerror(rc));
    }
    coord->started = true;
    return STATUS_OK;
}

static enum status command(struct coord *coord, enum zk_message_type type, unsigned scope,
                           uint32_t attempt)
{
    struct zk_message m = {.type = type, .scope = scope, .attempt = attempt};
    return inbox_post(coord->inbox, &m);
}

enum status coord_enroll(struct coord *coord, unsigned scope, uint32_t session, uint32_t attempt)
{
    struct zk_message m = {
        .type = ZK_MESSAGE_ENROLL, .scope = scope, .session = session, .attempt = attempt};
    return inbox_post(coord->inbox, &m);
}

enum status coord_withdraw(struct coord *coord, unsigned scope, uint32_t attempt)
{
    return command(coord, ZK_MESSAGE_WITHDRAW, scope, attempt);
}

enum status coord_read_mark(struct coord *coord, unsigned scope)
{
    return command(coord, ZK_MESSAGE_MARK_READ, scope, 0);
}

enum status coord_write_mark(struct coord *coord, unsigned scope, const char *mark)
{
    struct zk_message m = {.type = ZK_MESSAGE_MARK_WRITE, .scope = scope};
    (void)snprintf(m.text, sizeof m.text, "%s", mark);
    return inbox_post(coord->inbox, &m);
}

enum status coord_ask_root(struct coord *coord, unsigned scope, const char *installation)
{
    struct zk_message m = {.type = ZK_MESSAGE_ROOT, .scope = scope};
    (void)snprintf(m.text, sizeof m.text, "%s", installation);
    return inbox_post(coord->inbox, &m);
}

const struct lease *coord_lease(const struct coord *coord)
{
    return &coord->lease;
}

const struct lease *coord_scope_lease(const struct coord *coord, unsigned scope)
{
    return &coord->seats[scope].lease;
}

instant coord_last_turn(const struct coord *coord)
{
    return (instant){atomic_load_explicit(&coord->turned_ns, memory_order_acquire)};
}

double coord_stall_s(struct coord *coord)
{
    return stall_longest_s(&coord->stall, clock_now());
}

enum status coord_stop(struct coord *coord, instant deadline)
{
    if (!coord->started) {
        return STATUS_OK;
    }
    while (command(coord, ZK_MESSAGE_STOP, 0, 0) != STATUS_OK) {
        if (!instant_before(clock_now(), deadline)) {
            return STATUS_TIMEOUT;
        }
        (void)poll(NULL, 0, 10); /* the inbox is full: let the thread take from it */
    }
    if (thread_join(coord->thread, deadline) != STATUS_OK) {
        return STATUS_TIMEOUT;
    }
    coord->started = false;
    return STATUS_OK;
}

void coord_free(struct coord *coord)
{
    if (coord == NULL) {
        return;
    }
    struct zk_message m;
    while (coord->inbox != NULL && inbox_take(coord->inbox, &m)) {
        free(m.names);
    }
    inbox_free(coord->inbox);
    explicit_bzero(coord->digest, sizeof coord->digest);
    free(coord);
}
