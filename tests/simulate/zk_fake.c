#include "zk_fake_inside.h"

#include <stdio.h>
#include <string.h>

#include "world.h"

#define SYNC_LIMIT_TICKS 4 /* a follower without its leader serves so long */
#define EPOCH_BITS       32

struct zk_ensemble zk;
static int64_t tick_ns;

/* Nodes ------------------------------------------------------------------------------------------
 */

bool zk_is_in_view(const struct znode *n, int64_t view)
{
    return n->used && n->czxid <= view && (n->dzxid == 0 || n->dzxid > view);
}

const struct znode *zk_find(const char *path, int64_t view)
{
    for (size_t i = 0; i < ZK_NODES_MAX; i++) {
        if (zk_is_in_view(&zk.nodes[i], view) && strcmp(zk.nodes[i].path, path) == 0) {
            return &zk.nodes[i];
        }
    }
    return NULL;
}

void zk_data_put(struct znode *n, const char *text)
{
    int32_t version = n->data[0].zxid == 0 ? 0 : n->data[0].version + 1;
    memmove(&n->data[1], &n->data[0], (ZK_DATA_KEPT - 1) * sizeof n->data[0]);
    n->data[0] = (struct zdata){.zxid = zk.zxid, .version = version};
    (void)snprintf(n->data[0].text, sizeof n->data[0].text, "%s", text);
}

const struct zdata *zk_data_in_view(const struct znode *n, int64_t view)
{
    const struct zdata *d = &n->data[0];
    for (size_t i = 0; i + 1 < ZK_DATA_KEPT && d->zxid > view && n->data[i + 1].zxid != 0; i++) {
        d = &n->data[i + 1];
    }
    return d;
}

struct znode *zk_find_now(const char *path)
{
    const struct znode *n = zk_find(path, zk.zxid);
    return n == NULL ? NULL : &zk.nodes[n - zk.nodes];
}

/* Scope of a candidate's path; -1: it is none. */
static int candidate_scope(const char *path)
{
    const char *at = strstr(path, "/scopes/");
    const char *rest = at == NULL ? NULL : strstr(at + 8, "/candidates/");
    char name[64];
    if (rest == NULL) {
        return -1;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)(rest - at - 8), at + 8);
    return world_scope(name);
}

void zk_tell_candidate_gone(const struct znode *n, enum candidate_end end)
{
    int scope = candidate_scope(n->path);
    const struct zsession *s = zk_session_find(n->session);
    if (scope >= 0) {
        world_fact((struct fact){.kind = FACT_CANDIDATE_GONE,
                                 .node = s == NULL ? -1 : s->node,
                                 .scope = scope,
                                 .session = n->session,
                                 .generation = n->czxid,
                                 .candidate_end = end});
    }
}

void zk_tell_candidate_made(const struct znode *n)
{
    int scope = candidate_scope(n->path);
    const struct zsession *s = zk_session_find(n->session);
    if (scope >= 0) {
        world_fact((struct fact){.kind = FACT_CANDIDATE_MADE,
                                 .node = s == NULL ? -1 : s->node,
                                 .scope = scope,
                                 .session = n->session,
                                 .generation = n->czxid,
                                 .incarnation = zk.life});
    }
}

struct znode *zk_node_new(void)
{
    int64_t oldest = zk.zxid;
    for (int i = 0; i < ZK_SERVERS; i++) {
        oldest = zk.servers[i].view < oldest ? zk.servers[i].view : oldest;
    }
    for (size_t i = 0; i < ZK_NODES_MAX; i++) {
        struct znode *n = &zk.nodes[i];
        if (!n->used || (n->dzxid != 0 && n->dzxid <= oldest)) {
            return n;
        }
    }
    (void)fprintf(stderr, "simulate: more than %d nodes\n", ZK_NODES_MAX);
    return NULL;
}

/* Applying ---------------------------------------------------------------------------------------
 */

static void fire_watch(struct zk_client *c, struct zk_watch *w)
{
    struct zk_packet *p = kernel_new(sizeof *p);
    w->set = false;
    *p = (struct zk_packet){.client = c, .connection = c->connection, .slot = -1};
    p->message =
        (struct zk_message){.type = ZK_MESSAGE_WATCH, .session = c->number, .scope = w->scope};
    zk_send_back(p);
}

/* Watches are looked at from what the server shows: a node that is gone, or was set. */
static void fire_watches(int server, const char *changed)
{
    for (struct zk_client *c = zk.clients; c != NULL; c = c->next) {
        for (size_t i = 0; i < ZK_WATCHES_MAX; i++) {
            struct zk_watch *w = &c->watches[i];
            if (!w->set || c->server != server || c->link != ZK_LINK_UP) {
                continue;
            }
            bool is_gone = zk_find(w->path, zk.servers[server].view) == NULL;
            if (is_gone || (changed != NULL && strcmp(changed, w->path) == 0)) {
                fire_watch(c, w);
            }
        }
    }
}

struct application {
    int server;
    int64_t zxid;
    uint64_t generation;
    char changed[ZK_PATH_MAX]; /* a node that was set */
    struct zk_packet *reply;   /* NULL: none */
};

static void on_applied(void *context, uint64_t number)
{
    struct application *a = context;
    (void)number;
    struct zserver *s = &zk.servers[a->server];
    if (a->generation == zk.generation && s->up) {
        s->view = a->zxid > s->view ? a->zxid : s->view;
        fire_watches(a->server, a->changed[0] == '\0' ? NULL : a->changed);
    }
    if (a->reply != NULL) {
        zk_send_back(a->reply);
    }
    kernel_free(a);
}

/* Every server applies what was committed, each after a while of its own. */
void zk_committed(const char *changed, struct zk_packet *reply)
{
    for (int i = 0; i < ZK_SERVERS; i++) {
        struct application *a = kernel_new(sizeof *a);
        bool its = reply != NULL && reply->client->server == i;
        *a = (struct application){
            .server = i, .zxid = zk.zxid, .generation = zk.generation, .reply = its ? reply : NULL};
        (void)snprintf(a->changed, sizeof a->changed, "%s", changed);
        int64_t lag = i == zk.leader
                          ? 10 * KERNEL_US
                          : chance_in(kernel_chance(), 50, 3000) * KERNEL_US + zk.servers[i].lag;
        if (zk.servers[i].isolated || !zk.servers[i].up) {
            kernel_free(a); /* it learns by catching up, see zk_rejoin */
            if (its) {
                kernel_free(reply);
                reply = NULL;
            }
            continue;
        }
        kernel_in(lag, on_applied, a, 0);
        reply = its ? NULL : reply;
    }
}

/* Sessions ---------------------------------------------------------------------------------------
 */

struct zsession *zk_session_find(int64_t id)
{
    for (size_t i = 0; id != 0 && i < ZK_SESSIONS_MAX; i++) {
        if (zk.sessions[i].id == id) {
            return &zk.sessions[i];
        }
    }
    return NULL;
}

struct zsession *zk_session_new(int node, int64_t timeout)
{
    for (size_t i = 0; i < ZK_SESSIONS_MAX; i++) {
        struct zsession *s = &zk.sessions[i];
        if (s->id == 0 || (!s->alive && kernel_now() - s->touched > 60 * KERNEL_S)) {
            *s = (struct zsession){.id = ++zk.next_session,
                                   .node = node,
                                   .alive = true,
                                   .timeout = timeout,
                                   .touched = kernel_now()};
            zk.zxid++;
            world_fact((struct fact){.kind = FACT_SESSION_MADE, .node = node, .session = s->id});
            return s;
        }
    }
    (void)fprintf(stderr, "simulate: more than %d sessions\n", ZK_SESSIONS_MAX);
    return NULL;
}

void zk_session_end(struct zsession *s, enum candidate_end how)
{
    s->alive = false;
    zk.zxid++;
    for (size_t i = 0; i < ZK_NODES_MAX; i++) {
        struct znode *n = &zk.nodes[i];
        if (n->used && n->dzxid == 0 && n->session == s->id) {
            n->dzxid = zk.zxid;
            zk_tell_candidate_gone(n, CANDIDATE_EXPIRED);
        }
    }
    world_fact((struct fact){.kind = FACT_SESSION_ENDED,
                             .node = s->node,
                             .node_us = process_clock(kernel_process(s->node)) / KERNEL_US,
                             .session = s->id,
                             .candidate_end = how});
    zk_committed("", NULL);
}

void zk_end_session(int64_t id)
{
    struct zsession *s = zk_session_find(id);
    if (s != NULL && s->alive && zk.leader >= 0) {
        zk_session_end(s, CANDIDATE_REMOVED);
    }
}

void zk_touch(struct zsession *s, int server)
{
    if (server == zk.leader) {
        s->touched = kernel_now();
    } else {
        s->touched_at[server] = true;
    }
}

/* Followers tell the leader of their clients' lives every half tick; the leader ends sessions at
 * whole ticks, never early and up to one tick late. */
static void on_half_tick(void *context, uint64_t number)
{
    (void)context;
    for (size_t i = 0; i < ZK_SESSIONS_MAX && zk.leader >= 0; i++) {
        struct zsession *s = &zk.sessions[i];
        for (int server = 0; server < ZK_SERVERS && s->id != 0; server++) {
            if (s->touched_at[server] && zk_has_quorum(server)) {
                s->touched_at[server] = false;
                s->touched = kernel_now();
            }
        }
        int64_t end = (s->touched + s->timeout + tick_ns - 1) / tick_ns * tick_ns;
        if (s->id != 0 && s->alive && number % 2 == 0 && kernel_now() >= end) {
            zk_session_end(s, CANDIDATE_EXPIRED);
        }
    }
    for (int i = 0; i < ZK_SERVERS; i++) {
        if (zk.servers[i].isolated && !zk_serves(i)) {
            zk_drop_connections(i);
        }
    }
    kernel_in(tick_ns / 2, on_half_tick, NULL, number + 1);
}

bool zk_has_quorum(int server)
{
    return zk.leader >= 0 && zk.servers[server].up && !zk.servers[server].isolated;
}

bool zk_serves(int server)
{
    const struct zserver *s = &zk.servers[server];
    return s->up && (s->isolated ? kernel_now() - s->isolated_at < SYNC_LIMIT_TICKS * tick_ns
                                 : zk.leader >= 0);
}

void zk_delete_by_hand(struct znode *n)
{
    n->dzxid = ++zk.zxid;
    zk_tell_candidate_gone(n, CANDIDATE_REMOVED);
    zk_committed("", NULL);
}

/* The ensemble as a whole ------------------------------------------------------------------------
 */

void zk_reset(int64_t tick_ms)
{
    memset(&zk, 0, sizeof zk);
    zk.life = 1;
    zk.zxid = INT64_C(1) << EPOCH_BITS;
    tick_ns = tick_ms * KERNEL_MS;
    for (int i = 0; i < ZK_SERVERS; i++) {
        zk.servers[i] = (struct zserver){.up = true, .view = zk.zxid};
    }
    kernel_in(tick_ns, on_half_tick, NULL, 0);
}

const char *zk_newest(const char *path)
{
    const struct znode *n = zk_find(path, zk.zxid);
    return n == NULL ? "" : n->data[0].text;
}

const char *zk_identity(void)
{
    return zk_newest("/report-scheduler/ensemble-id");
}
