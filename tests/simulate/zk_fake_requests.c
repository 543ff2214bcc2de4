/* What the ensemble does with a request: reads by what the client's server shows, writes by the
 * leader, in one order. */
#include <stdio.h>
#include <string.h>

#include "world.h"
#include "zk_fake_inside.h"

/* Requests ---------------------------------------------------------------------------------------
 */

static void answer(struct zk_packet *p, enum zk_answer answer)
{
    p->message.answer = answer;
}

static void apply_create(struct zk_packet *p)
{
    char path[ZK_PATH_MAX];
    char parent[ZK_PATH_MAX];
    (void)snprintf(path, sizeof path, "%s", p->path);
    (void)snprintf(parent, sizeof parent, "%s", p->path);
    char *slash = strrchr(parent, '/');
    *slash = '\0';
    struct znode *above = parent[0] == '\0' ? NULL : zk_find_now(parent);
    if (parent[0] != '\0' && above == NULL) {
        answer(p, ZK_NO_NODE);
        return;
    }
    if (p->node_kind == ZK_CANDIDATE) {
        (void)snprintf(path, sizeof path, "%.200s%010d", p->path, above->sequence++);
    } else if (zk_find_now(path) != NULL) {
        answer(p, ZK_NODE_EXISTS);
        return;
    }
    struct znode *n = zk_node_new();
    bool ephemeral = p->node_kind == ZK_EPHEMERAL || p->node_kind == ZK_CANDIDATE;
    *n = (struct znode){
        .used = true, .czxid = ++zk.zxid, .session = ephemeral ? p->client->session_id : 0};
    memcpy(n->path, path, sizeof n->path);
    zk_data_put(n, p->data);
    answer(p, ZK_OK);
    p->message.czxid = n->czxid;
    p->message.owner = n->session;
    (void)snprintf(p->message.text, sizeof p->message.text, "%s", strrchr(path, '/') + 1);
    zk_tell_candidate_made(n);
}

/* Directly below. */
static bool is_child(const char *path, const char *parent)
{
    size_t n = strlen(parent);
    return strncmp(path, parent, n) == 0 && path[n] == '/' && strchr(path + n + 1, '/') == NULL;
}

static void apply_delete(struct zk_packet *p)
{
    struct znode *n = zk_find_now(p->path);
    if (n == NULL) {
        answer(p, ZK_NO_NODE);
        return;
    }
    for (size_t i = 0; i < ZK_NODES_MAX; i++) {
        if (zk_is_in_view(&zk.nodes[i], zk.zxid) && is_child(zk.nodes[i].path, p->path)) {
            answer(p, ZK_REFUSED);
            return;
        }
    }
    n->dzxid = ++zk.zxid;
    answer(p, ZK_OK);
    zk_tell_candidate_gone(n, CANDIDATE_DELETED);
}

static void apply_set(struct zk_packet *p)
{
    struct znode *n = zk_find_now(p->path);
    if (n == NULL) {
        answer(p, ZK_NO_NODE);
        return;
    }
    if (p->kind == PENDING_SET_VERSION && p->version != n->data[0].version) {
        answer(p, ZK_REFUSED);
        return;
    }
    zk.zxid++;
    zk_data_put(n, p->data);
    answer(p, ZK_OK);
    p->message.czxid = n->czxid;
    p->message.owner = n->session;
    p->message.version = n->data[0].version;
}

static void on_commit(void *context, uint64_t number)
{
    struct zk_packet *p = context;
    struct zk_client *c = p->client;
    if (p->connection != c->connection && c->link == ZK_LINK_UP) {
        kernel_free(p); /* the session has moved: the leader refuses stragglers of the way before */
        return;
    }
    if (!zk_has_quorum(p->server)) {
        if (number < 200 && !c->closed) {
            kernel_in(50 * KERNEL_MS, on_commit, p, number + 1); /* it waits for a leader */
        } else {
            kernel_free(p);
        }
        return;
    }
    struct zsession *s = zk_session_find(c->session_id);
    if (s == NULL || !s->alive) {
        kernel_free(p); /* the server closes the connection of an ended session */
        zk_drop_client(c);
        return;
    }
    zk_touch(s, zk.leader);
    switch (p->kind) {
    case PENDING_CREATE:
        apply_create(p);
        break;
    case PENDING_DELETE:
        apply_delete(p);
        break;
    case PENDING_SET:
    case PENDING_SET_VERSION:
        apply_set(p);
        break;
    case PENDING_CLOSE:
        zk_session_end(s, CANDIDATE_DELETED);
        break;
    case PENDING_SYNC:
    case PENDING_OTHER:
    case PENDING_GET:
    case PENDING_CHILDREN:
    case PENDING_PING:
        answer(p, ZK_OK);
        break;
    }
    char changed[ZK_PATH_MAX];
    bool sets = p->kind == PENDING_SET || p->kind == PENDING_SET_VERSION;
    (void)snprintf(changed, sizeof changed, "%s", sets ? p->path : "");
    zk_committed(changed, p);
}

static void read_children(struct zk_packet *p, int64_t view)
{
    size_t n = strlen(p->path);
    if (zk_find(p->path, view) == NULL) {
        answer(p, ZK_NO_NODE);
        return;
    }
    struct zk_names *names = kernel_new(sizeof *names);
    for (size_t i = 0; i < ZK_NODES_MAX; i++) {
        const struct znode *z = &zk.nodes[i];
        if (zk_is_in_view(z, view) && is_child(z->path, p->path)) {
            if (names->count < CANDIDATES_MAX) {
                (void)snprintf(names->names[names->count], CANDIDATE_NAME_MAX, "%.63s",
                               z->path + n + 1);
            }
            names->count++;
        }
    }
    answer(p, ZK_OK);
    p->message.names = names;
}

static void read_node(struct zk_packet *p, int64_t view)
{
    const struct znode *n = zk_find(p->path, view);
    if (n == NULL) {
        answer(p, ZK_NO_NODE);
        return;
    }
    answer(p, ZK_OK);
    p->message.czxid = n->czxid;
    p->message.owner = n->session;
    p->message.version = zk_data_in_view(n, view)->version;
    (void)snprintf(p->message.text, sizeof p->message.text, "%s", zk_data_in_view(n, view)->text);
    for (size_t i = 0; p->watch && i < ZK_WATCHES_MAX; i++) {
        struct zk_watch *w = &p->client->watches[i];
        if (!w->set || (strcmp(w->path, p->path) == 0 && w->scope == p->scope)) {
            w->set = true;
            w->scope = p->scope;
            (void)snprintf(w->path, sizeof w->path, "%s", p->path);
            break;
        }
    }
}

static void on_read(void *context, uint64_t number)
{
    struct zk_packet *p = context;
    (void)number;
    if (p->connection != p->client->connection || !zk_serves(p->server)) {
        kernel_free(p);
        return;
    }
    if (p->kind == PENDING_CHILDREN) {
        read_children(p, zk.servers[p->server].view);
    } else if (p->kind == PENDING_GET) {
        read_node(p, zk.servers[p->server].view);
    } else {
        answer(p, ZK_OK);
    }
    zk_send_back(p);
}

void zk_arrive(struct zk_packet *p)
{
    struct zk_client *c = p->client;
    if (p->connection != c->connection || !zk_serves(p->server)) {
        kernel_free(p);
        return;
    }
    struct zsession *s = zk_session_find(c->session_id);
    if (s != NULL && s->alive) {
        zk_touch(s, p->server);
    }
    bool writes = p->kind == PENDING_CREATE || p->kind == PENDING_SET ||
                  p->kind == PENDING_SET_VERSION || p->kind == PENDING_DELETE ||
                  p->kind == PENDING_SYNC || p->kind == PENDING_CLOSE;
    int64_t at = kernel_now() > c->ready_at ? kernel_now() : c->ready_at;
    if (writes) {
        at += chance_in(kernel_chance(), 1000, 9000) * KERNEL_US;
        /* The next request of this client is served when this one is applied. */
        c->ready_at = at + 3100 * KERNEL_US + zk.servers[p->server].lag;
    }
    kernel_at(at, writes ? on_commit : on_read, p, 0);
}
