/* One scope's place in its line: enrolling and leaving. Lists are read in coord_zk_list.c. */
#include <stdio.h>
#include <string.h>

#include "coord_zk.h"
#include "crash_point.h"
#include "mutant.h"

void seat_node_path(const struct seat *seat, const char *name, char ret_path[NODE_PATH_MAX])
{
    (void)snprintf(ret_path, NODE_PATH_MAX, "%s/%s", seat->parent, name);
}

void seat_tell(struct coord *c, unsigned scope, enum coord_event_type type, const char *text)
{
    struct seat *seat = &c->seats[scope];
    struct coord_event e = {.type = type, .attempt = seat->attempt};
    if (type == COORD_ENROLLED) {
        e.generation = seat->own.czxid;
        (void)snprintf(e.ensemble, sizeof e.ensemble, "%s", c->ensemble);
    }
    (void)snprintf(e.text, sizeof e.text, "%s", text);
    coord_tell(c, scope, &e);
}

/* A scope decides by its own lease, which it has only while its node is one of this session: its
 * thread may still be at the work of a session that ended when the next one is up (I8). */
void session_lease_set(struct coord *c, instant until)
{
    lease_set(&c->lease, until);
    for (unsigned i = 0; i < c->seat_count; i++) {
        struct seat *seat = &c->seats[i];
        bool in = seat->step == SEAT_IN || MUTANT("lease_of_any_session");
        lease_set(&seat->lease, in ? until : (instant){0});
    }
}

static void leave(struct coord *c, unsigned scope);

void seat_empty(struct seat *seat)
{
    seat->step = SEAT_EMPTY;
    lease_set(&seat->lease, (instant){0});
}

static void become_in(struct coord *c, unsigned scope, const struct candidate *own)
{
    struct seat *seat = &c->seats[scope];
    seat->own = *own;
    seat->step = SEAT_IN;
    seat->told = seat->first = false;
    seat->own_watched = false;
    seat->watched[0] = '\0';
    if (seat->leaving) {
        leave(c, scope);
        return;
    }
    lease_set(&seat->lease, lease_until(&c->lease));
    seat_tell(c, scope, COORD_ENROLLED, seat->own.name);
    list_start(c, scope);
}

static void fail_enroll(struct coord *c, unsigned scope, const char *why)
{
    struct seat *seat = &c->seats[scope];
    seat_empty(seat);
    if (!seat->leaving) {
        seat_tell(c, scope, COORD_ENROLL_FAILED, why);
    }
    seat->leaving = false;
}

void seat_resolve(struct coord *c, unsigned scope)
{
    struct seat *seat = &c->seats[scope];
    size_t own = 0;
    switch (election_resolve(seat->candidates, seat->count, seat->guid, c->session_id, &own)) {
    case ELECTION_CREATED: {
        struct candidate found = seat->candidates[own];
        become_in(c, scope, &found);
        return;
    }
    case ELECTION_NOT_CREATED:
        fail_enroll(c, scope, "the connection was lost before the node was created");
        return;
    case ELECTION_FOREIGN:
        /* Our GUID in another session's hands: nothing about this session can be trusted. */
        session_abandon(c, "a node with our identity belongs to another session", clock_now());
        return;
    }
}

/* Enrolling and leaving -------------------------------------------------------------------- */

static void send_enroll_step(struct coord *c, unsigned scope, enum op_kind kind)
{
    struct seat *seat = &c->seats[scope];
    char path[NODE_PATH_MAX];
    struct op *op = coord_op_new(c, kind, scope);
    enum status s = STATUS_AGAIN;
    if (op != NULL && kind == OP_SEAT_READ) {
        (void)snprintf(path, sizeof path, "%s/ensemble-id", c->root);
        s = zk_client_get(c->client, &op->ticket, path);
        seat->step = SEAT_READING;
    } else if (op != NULL) {
        char prefix[CANDIDATE_NAME_MAX];
        (void)snprintf(prefix, sizeof prefix, "%s-n-", seat->guid);
        seat_node_path(seat, prefix, path);
        CRASH_POINT("enroll.before");
        s = zk_client_create(c->client, &op->ticket, path, c->member_data, ZK_CANDIDATE);
        CRASH_POINT("enroll.sent");
        seat->step = SEAT_CREATING;
    }
    if (s != STATUS_OK) {
        if (op != NULL) {
            coord_op_drop(op);
        }
        fail_enroll(c, scope, "the request could not be sent");
    }
}

void seat_enroll(struct coord *c, unsigned scope, uint32_t attempt)
{
    struct seat *seat = &c->seats[scope];
    if (seat->step == SEAT_IN) {
        seat_doom(c, scope, seat->own.name); /* one node, one activation */
        seat_empty(seat);
    }
    if (seat->step != SEAT_EMPTY) {
        seat->leaving = true;
        seat->enroll_next = true;
        seat->next_attempt = attempt;
        return;
    }
    seat->attempt = attempt;
    seat->leaving = false;
    if (c->phase != PHASE_READY) {
        fail_enroll(c, scope, "no connection");
        return;
    }
    uuid_random(seat->guid);
    send_enroll_step(c, scope, OP_SEAT_READ);
}

static void leave(struct coord *c, unsigned scope)
{
    struct seat *seat = &c->seats[scope];
    if (seat->step == SEAT_IN) {
        mark_leave(c, scope);
        seat_doom(c, scope, seat->own.name);
        seat_empty(seat);
    }
    seat->leaving = seat->step != SEAT_EMPTY;
}

void seat_withdraw(struct coord *c, unsigned scope, uint32_t attempt)
{
    struct seat *seat = &c->seats[scope];
    if (seat->step == SEAT_EMPTY) {
        seat->attempt = attempt;
    }
    seat->enroll_next = false;
    seat->announce = true;
    leave(c, scope);
}

static void on_read(struct coord *c, unsigned scope, const struct zk_message *m, instant now)
{
    struct seat *seat = &c->seats[scope];
    if (seat->step != SEAT_READING) {
        return;
    }
    if (seat->leaving) {
        fail_enroll(c, scope, "");
    } else if (m->answer == ZK_OK && strcmp(m->text, c->ensemble) == 0) {
        send_enroll_step(c, scope, OP_SEAT_CREATE);
    } else if (m->answer == ZK_OK || m->answer == ZK_NO_NODE) {
        session_abandon(c, "the ensemble's identity changed", now);
    } else {
        fail_enroll(c, scope, zk_client_rc_name(m->rc));
    }
}

static void on_created(struct coord *c, unsigned scope, const struct zk_message *m)
{
    struct seat *seat = &c->seats[scope];
    if (seat->step != SEAT_CREATING) {
        return;
    }
    switch (m->answer) {
    case ZK_OK: {
        struct candidate own = {.czxid = m->czxid, .owner = m->owner};
        (void)snprintf(own.name, sizeof own.name, "%.*s", CANDIDATE_NAME_MAX - 1, m->text);
        become_in(c, scope, &own);
        return;
    }
    case ZK_UNSURE:
        seat->step = SEAT_UNSURE; /* resolved once the same session is confirmed */
        seat->synced = false;
        seat->relist_at = clock_now();
        return;
    case ZK_NO_NODE:
        session_setup_again(c); /* an operator deleted the parent */
        fail_enroll(c, scope, "the candidates' parent node is missing");
        return;
    case ZK_FORBIDDEN: {
        char text[ACCESS_TEXT_MAX];
        fail_enroll(c, scope, access_refusal(c, m, seat->parent, text));
        return;
    }
    case ZK_NODE_EXISTS:
    case ZK_ENDED:
    case ZK_REFUSED:
        fail_enroll(c, scope, zk_client_rc_name(m->rc));
        return;
    }
}

/* The rest --------------------------------------------------------------------------------- */

void seat_reset(struct seat *seat)
{
    seat_empty(seat);
    seat->leaving = seat->enroll_next = seat->announce = false;
    seat->list = SEAT_LIST_IDLE;
    seat->list_again = false;
    seat->stats_pending = 0;
    seat->count = seat->next_count = 0;
    seat->told = seat->first = false;
    seat->watched[0] = '\0';
    seat->own_watched = false;
    seat->mark = (struct mark){.asked = false};
    seat->root = (struct root_question){.running = false};
    memset(seat->doomed, 0, sizeof seat->doomed);
}

void seat_resume(struct coord *c, unsigned scope)
{
    struct seat *seat = &c->seats[scope];
    seat->told = false;
    seat->first = seat->first && !MUTANT("resume_forgets_lead");
    seat->synced = false;
    if (seat->list == SEAT_LIST_IDLE) {
        seat->relist_at = clock_now();
    } else {
        seat->list_again = true; /* its answers are on their way, if only "connection lost" */
    }
}

void seat_on_reply(struct coord *c, const struct op *op, const struct zk_message *m, instant now)
{
    switch (op->kind) {
    case OP_SEAT_READ:
        on_read(c, op->scope, m, now);
        return;
    case OP_SEAT_CREATE:
        CRASH_POINT("enroll.answered");
        on_created(c, op->scope, m);
        return;
    case OP_SEAT_SYNC:
    case OP_SEAT_LIST:
        list_on_reply(c, op, m);
        return;
    case OP_SEAT_STAT:
        list_on_stat(c, op, m);
        return;
    case OP_SEAT_WATCH:
        list_on_watched(c, op, m);
        return;
    case OP_SEAT_DELETE:
        CRASH_POINT("withdraw.answered");
        list_on_deleted(c, op, m);
        return;
    case OP_AUDIT:
    case OP_SETUP_IDENTIFY:
    case OP_SETUP_CREATE:
    case OP_SETUP_ENSEMBLE:
    case OP_SETUP_READ:
    case OP_SETUP_MEMBER:
    case OP_HEARTBEAT:
    case OP_MARK_READ:
    case OP_MARK_WRITE:
    case OP_ROOT_READ:
    case OP_ROOT_CREATE:
        return; /* session_on_reply's, mark_on_reply's, root_on_reply's */
    }
}

void seat_tick(struct coord *c, unsigned scope, instant now)
{
    struct seat *seat = &c->seats[scope];
    if (c->phase != PHASE_READY) {
        return;
    }
    seat_send_deletes(c, scope);
    if (seat->step == SEAT_EMPTY && seat->announce && !seat_has_doomed(seat)) {
        seat->announce = false;
        seat_tell(c, scope, COORD_WITHDRAWN, "");
    }
    if (seat->step == SEAT_EMPTY && seat->enroll_next) {
        seat->enroll_next = false;
        seat_enroll(c, scope, seat->next_attempt);
    }
    if (seat->list == SEAT_LIST_IDLE && !instant_before(now, seat->relist_at) &&
        (seat->step == SEAT_IN || seat->step == SEAT_UNSURE)) {
        list_start(c, scope);
    }
}
