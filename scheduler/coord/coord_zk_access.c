/* Who we are to ZooKeeper, and whether the tree is ours alone.
 *
 * Nodes get an access list: everything to the identity in zookeeper_digest_file, reading to all.
 * Reading is left open since there is nothing secret in the nodes, since the protocol is clear text
 * anyway, and so that replicas that do not have the identity yet can stand in the same line while
 * it is brought in. What this protects is who may take part in the election, that is liveness; who
 * may write is the fence's (I1), whatever becomes of ZooKeeper. */
#include <stdio.h>
#include <string.h>

#include "coord_zk.h"
#include "log.h"
#include "settings.h"

enum status access_read_digest(struct coord *c, struct error *err)
{
    c->identified = c->digest_file[0] == '\0';
    if (c->identified) {
        return STATUS_OK;
    }
    enum status s = secret_read(c->digest_file, c->digest, sizeof c->digest, err);
    const char *colon = s == STATUS_OK ? strchr(c->digest, ':') : NULL;
    if (s == STATUS_OK && (colon == NULL || colon == c->digest || colon[1] == '\0')) {
        explicit_bzero(c->digest, sizeof c->digest);
        s = error_set(err, STATUS_INVALID, "%s: is not of the form user:password; write one line",
                      c->digest_file);
    }
    return s == STATUS_OK ? s : error_prefix(err, s, "zookeeper_digest_file");
}

void access_send_identity(struct coord *c)
{
    if (c->digest[0] == '\0') {
        /* Sent on this handle already: the library repeats it first thing on each connection. */
        c->identified = true;
        return;
    }
    struct op *op = coord_op_new(c, OP_SETUP_IDENTIFY, 0);
    if (op == NULL) {
        return;
    }
    if (zk_client_identify(c->client, &op->ticket, c->digest) == STATUS_OK) {
        explicit_bzero(c->digest, sizeof c->digest);
        c->setup_running = true;
    } else {
        coord_op_drop(op);
    }
}

const char *access_refusal(const struct coord *c, const struct zk_message *m, const char *node,
                           char ret_text[ACCESS_TEXT_MAX])
{
    if (m->answer != ZK_FORBIDDEN) {
        (void)snprintf(ret_text, ACCESS_TEXT_MAX, "ZooKeeper refuses node %s: %s", node,
                       zk_client_rc_name(m->rc));
    } else if (c->digest_file[0] == '\0') {
        (void)snprintf(ret_text, ACCESS_TEXT_MAX,
                       "ZooKeeper forbids node %s: its tree belongs to an identity; set "
                       "zookeeper_digest_file as on the other replicas",
                       node);
    } else {
        (void)snprintf(ret_text, ACCESS_TEXT_MAX,
                       "ZooKeeper forbids node %s: its tree belongs to another identity than "
                       "zookeeper_digest_file %s holds; write the other replicas' into it",
                       node, c->digest_file);
    }
    return ret_text;
}

/* Looking whether the tree is ours alone ----------------------------------------------------- */

/* Nodes above the root are shared with others and stay open: the root cannot be deleted while it
 * has children, and those are guarded by the root's own list. */
void access_audit_start(struct coord *c)
{
    c->audit_running = false;
    c->audit_next = 0;
    while (c->audit_next < c->setup_count &&
           strlen(c->setup_paths[c->audit_next]) < strlen(c->root)) {
        c->audit_next++;
    }
}

static bool audit_path(const struct coord *c, char *ret_path, size_t size)
{
    if (c->audit_next < c->setup_count) {
        (void)snprintf(ret_path, size, "%s", c->setup_paths[c->audit_next]);
    } else {
        (void)snprintf(ret_path, size, "%s/ensemble-id", c->root);
    }
    return c->audit_next <= c->setup_count;
}

void access_tick(struct coord *c)
{
    char path[sizeof c->setup_paths[0] + 16];
    if (c->digest_file[0] == '\0' || c->audit_running || c->phase != PHASE_READY ||
        !audit_path(c, path, sizeof path)) {
        return;
    }
    struct op *op = coord_op_new(c, OP_AUDIT, 0);
    if (op == NULL) {
        return;
    }
    if (zk_client_access(c->client, &op->ticket, path) == STATUS_OK) {
        c->audit_running = true;
    } else {
        coord_op_drop(op);
    }
}

void access_on_audit(struct coord *c, const struct zk_message *m)
{
    char path[sizeof c->setup_paths[0] + 16];
    bool asked = audit_path(c, path, sizeof path);
    c->audit_running = false;
    c->audit_next++;
    if (!asked || m->answer != ZK_OK || !m->open) {
        return;
    }
    c->audit_next = c->setup_count + 1; /* one is enough to say what to do */
    char remedy[COORD_PATH_MAX + 128];
    (void)snprintf(remedy, sizeof remedy,
                   "in zkCli.sh: addauth digest USER:PASSWORD, then setAcl -R %s "
                   "auth::cdrwa,world:anyone:r",
                   c->root);
    log_event(LOG_LEVEL_WARN, "ZooKeeper node may be changed by everybody", "node=%s remedy=%s",
              log_quote(path).text, log_quote(remedy).text);
}
