/* The high-water mark of a scope: a persistent node that names the newest job which was planned and
 * acknowledged. Only who is first in line writes it, with the version that it read, so one that was
 * overtaken without knowing it changes nothing. */
#include <stdio.h>
#include <string.h>

#include "coord_zk.h"
#include "crash_point.h"
#include "log.h"

static void node_path(const struct coord *c, unsigned scope, char ret_path[NODE_PATH_MAX])
{
    (void)snprintf(ret_path, NODE_PATH_MAX, "%s/scopes/%s/mark", c->root, c->seats[scope].scope);
}

static bool is_first(const struct seat *seat)
{
    return seat->step == SEAT_IN && seat->told && seat->told_ahead == 0;
}

static void tell(struct coord *c, unsigned scope, const char *text)
{
    struct mark *mark = &c->seats[scope].mark;
    if (mark->asked) {
        mark->asked = false;
        seat_tell(c, scope, COORD_MARK, text);
    }
}

static void send_read(struct coord *c, unsigned scope)
{
    struct op *op = coord_op_new(c, OP_MARK_READ, scope);
    char path[NODE_PATH_MAX];
    node_path(c, scope, path);
    if (op == NULL) {
        return;
    }
    if (zk_client_get(c->client, &op->ticket, path) == STATUS_OK) {
        c->seats[scope].mark.running = true;
    } else {
        coord_op_drop(op);
    }
}

static void send_write(struct coord *c, unsigned scope)
{
    struct mark *mark = &c->seats[scope].mark;
    struct op *op = coord_op_new(c, OP_MARK_WRITE, scope);
    char path[NODE_PATH_MAX];
    node_path(c, scope, path);
    if (op == NULL) {
        return;
    }
    memcpy(mark->sent, mark->wanted, sizeof mark->sent);
    CRASH_POINT("mark.before");
    enum status s =
        mark->version < 0
            ? zk_client_create(c->client, &op->ticket, path, mark->sent, ZK_PERSISTENT)
            : zk_client_set_version(c->client, &op->ticket, path, mark->sent, mark->version);
    CRASH_POINT("mark.sent");
    if (s == STATUS_OK) {
        mark->running = true;
        mark->wanted[0] = '\0';
    } else {
        coord_op_drop(op);
    }
}

void mark_ask(struct coord *c, unsigned scope)
{
    struct mark *mark = &c->seats[scope].mark;
    mark->asked = true;
    mark->known = false; /* an answer that is on its way may be older than the question */
    mark->at = clock_now();
}

void mark_want(struct coord *c, unsigned scope, const char *text)
{
    struct seat *seat = &c->seats[scope];
    if (is_first(seat)) {
        (void)snprintf(seat->mark.wanted, sizeof seat->mark.wanted, "%.*s", UUID_TEXT_MAX - 1,
                       text);
    }
}

void mark_leave(struct coord *c, unsigned scope)
{
    struct seat *seat = &c->seats[scope];
    if (c->phase == PHASE_READY && is_first(seat) && seat->mark.known &&
        seat->mark.wanted[0] != '\0') {
        /* Requests of a session are carried out in order: a write that is on its way (what is known
         * is not being read) comes first and makes the next version, and so does a creation. */
        seat->mark.version += seat->mark.running ? 1 : 0;
        send_write(c, scope);
    }
    seat->mark.wanted[0] = '\0';
}

void mark_tick(struct coord *c, unsigned scope, instant now)
{
    struct seat *seat = &c->seats[scope];
    struct mark *mark = &seat->mark;
    if (c->phase != PHASE_READY || mark->running || instant_before(now, mark->at)) {
        return;
    }
    if (mark->asked || (!mark->known && mark->wanted[0] != '\0' && is_first(seat))) {
        send_read(c, scope);
    } else if (mark->known && mark->wanted[0] != '\0' && is_first(seat)) {
        send_write(c, scope);
        mark->at = instant_add_ms(now, lease_beat_ms(c->negotiated_ms));
    }
}

static void on_read(struct coord *c, unsigned scope, const struct zk_message *m)
{
    struct mark *mark = &c->seats[scope].mark;
    char path[NODE_PATH_MAX];
    char text[ACCESS_TEXT_MAX];
    switch (m->answer) {
    case ZK_OK:
        mark->known = true;
        mark->version = m->version;
        /* What is no UUID is nobody's mark: it is overwritten, and asks for nothing. */
        tell(c, scope, uuid_is_valid(m->text) ? m->text : "");
        return;
    case ZK_NO_NODE:
        mark->known = true;
        mark->version = -1;
        tell(c, scope, "");
        return;
    case ZK_UNSURE: /* asked again when the session is confirmed */
    case ZK_ENDED:
        return;
    case ZK_FORBIDDEN:
    case ZK_NODE_EXISTS:
    case ZK_REFUSED:
        node_path(c, scope, path);
        log_event(LOG_LEVEL_WARN, "high-water mark cannot be read, going on without",
                  "scope=%s error=%s", c->seats[scope].scope,
                  log_quote(access_refusal(c, m, path, text)).text);
        tell(c, scope, "");
        return;
    }
}

void mark_on_reply(struct coord *c, const struct op *op, const struct zk_message *m, instant now)
{
    struct mark *mark = &c->seats[op->scope].mark;
    bool asked_since = mark->asked && op->kind == OP_MARK_WRITE;
    mark->running = false;
    if (op->kind == OP_MARK_READ) {
        on_read(c, op->scope, m);
        if (!mark->known) {
            mark->at = instant_add_ms(now, lease_beat_ms(c->negotiated_ms));
        }
        return;
    }
    CRASH_POINT("mark.answered");
    if (m->answer == ZK_OK) {
        mark->known = !asked_since;
        mark->version = m->version;
        return;
    }
    /* Somebody else wrote it, or nobody knows: look before writing again. */
    mark->known = false;
    if (mark->wanted[0] == '\0' && is_first(&c->seats[op->scope])) {
        memcpy(mark->wanted, mark->sent, sizeof mark->wanted);
    }
    log_event(LOG_LEVEL_DEBUG, "high-water mark not written, reading it again", "scope=%s error=%s",
              c->seats[op->scope].scope, log_quote(zk_client_rc_name(m->rc)).text);
}
