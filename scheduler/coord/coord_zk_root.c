/* Whose the root is: a persistent node with the id of an installation, made by its first candidate.
 * It is read, in the candidate's own session, before each candidate is made. */
#include <stdio.h>
#include <string.h>

#include "coord_zk.h"

#define ROOT_RETRY_MS 500

static void send_question(struct coord *c, unsigned scope)
{
    struct root_question *root = &c->seats[scope].root;
    struct op *op = coord_op_new(c, root->create ? OP_ROOT_CREATE : OP_ROOT_READ, scope);
    char path[NODE_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s/installation", c->root);
    if (op == NULL) {
        return;
    }
    enum status s = root->create ? zk_client_create(c->client, &op->ticket, path,
                                                    root->installation, ZK_PERSISTENT)
                                 : zk_client_get(c->client, &op->ticket, path);
    if (s == STATUS_OK) {
        root->running = true;
    } else {
        coord_op_drop(op);
    }
}

void root_ask(struct coord *c, unsigned scope, const char *installation)
{
    struct root_question *root = &c->seats[scope].root;
    (void)snprintf(root->installation, sizeof root->installation, "%.*s", UUID_TEXT_MAX - 1,
                   installation);
    root->at = clock_now();
}

void root_tick(struct coord *c, unsigned scope, instant now)
{
    struct root_question *root = &c->seats[scope].root;
    if (c->phase == PHASE_READY && root->installation[0] != '\0' && !root->running &&
        !instant_before(now, root->at)) {
        send_question(c, scope);
    }
}

static void tell(struct coord *c, unsigned scope, const char *owner)
{
    struct root_question *root = &c->seats[scope].root;
    root->installation[0] = '\0';
    seat_tell(c, scope, COORD_ROOT, owner);
}

void root_on_reply(struct coord *c, const struct op *op, const struct zk_message *m, instant now)
{
    struct root_question *root = &c->seats[op->scope].root;
    bool created = op->kind == OP_ROOT_CREATE;
    char path[NODE_PATH_MAX];
    char text[ACCESS_TEXT_MAX];
    root->running = root->create = false;
    root->at = now;
    switch (m->answer) {
    case ZK_OK:
        if (created) { /* its reply has no data: read what is there */
            return;
        }
        /* What is no id is nobody's that we know, so not ours. */
        tell(c, op->scope, m->text[0] != '\0' ? m->text : "(the node is empty)");
        return;
    case ZK_NO_NODE:
        root->create = !created;
        if (created) { /* an operator deleted the root */
            session_setup_again(c);
            root->at = instant_add_ms(now, ROOT_RETRY_MS);
        }
        return;
    case ZK_NODE_EXISTS:
        return; /* somebody was faster: read it */
    case ZK_UNSURE:
    case ZK_ENDED:
        root->at = instant_add_ms(now, ROOT_RETRY_MS);
        return;
    case ZK_FORBIDDEN:
    case ZK_REFUSED:
        /* As in setting up: another session, with the identity that is in the file then. */
        (void)snprintf(path, sizeof path, "%s/installation", c->root);
        session_abandon(c, access_refusal(c, m, path, text), now);
        return;
    }
}
