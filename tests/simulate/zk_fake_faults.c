/* What can happen to the ensemble. */
#include <string.h>

#include "world.h"
#include "zk_fake.h"

void zk_server_stop(int server)
{
    zk.servers[server].up = false;
    zk_drop_connections(server);
    if (zk.leader == server) {
        zk_elect(chance_in(kernel_chance(), 200, 900) * KERNEL_MS);
    }
}

static void catch_up(int server)
{
    zk.servers[server].view = zk.zxid;
}

void zk_server_start(int server)
{
    zk.servers[server].up = true;
    zk.servers[server].isolated = false;
    catch_up(server);
}

void zk_isolate(int server)
{
    zk.servers[server].isolated = true;
    zk.servers[server].isolated_at = kernel_now();
    if (zk.leader == server) {
        zk_elect(chance_in(kernel_chance(), 200, 900) * KERNEL_MS);
    }
}

void zk_rejoin(int server)
{
    if (zk.servers[server].isolated) {
        zk.servers[server].isolated = false;
        zk_drop_connections(server); /* it leaves its clients while it follows again */
        catch_up(server);
    }
}

void zk_set_lag(int server, int64_t ns)
{
    zk.servers[server].lag = ns;
}

static void on_elected(void *context, uint64_t number)
{
    (void)context;
    if (number != zk.generation || zk.leader >= 0) {
        return;
    }
    int found = -1;
    int whole = 0;
    for (int i = 0; i < ZK_SERVERS; i++) {
        bool fine = zk.servers[i].up && !zk.servers[i].isolated;
        whole += fine ? 1 : 0;
        found = fine && (found < 0 || zk.servers[i].view >= zk.servers[found].view) ? i : found;
    }
    if (whole < 2) {
        kernel_in(100 * KERNEL_MS, on_elected, NULL, number);
        return;
    }
    zk.leader = found;
    zk.zxid = ((zk.zxid >> 32) + 1) << 32; /* a new epoch */
    for (int i = 0; i < ZK_SERVERS; i++) {
        if (zk.servers[i].up && !zk.servers[i].isolated) {
            catch_up(i);
        }
    }
    for (size_t i = 0; i < ZK_SESSIONS_MAX; i++) {
        zk.sessions[i].touched = kernel_now(); /* a new leader counts every session from now */
    }
}

void zk_elect(int64_t for_ns)
{
    zk.leader = -1;
    for (int i = 0; i < ZK_SERVERS; i++) {
        if (!zk.servers[i].isolated) {
            zk_drop_connections(i);
        }
    }
    kernel_in(for_ns, on_elected, NULL, zk.generation);
}

static void end_everything(void)
{
    zk.generation++;
    zk.leader = 0;
    for (size_t i = 0; i < ZK_SESSIONS_MAX; i++) {
        zk.sessions[i].alive = false;
    }
    for (int i = 0; i < ZK_SERVERS; i++) {
        zk.servers[i] = (struct zserver){.up = true, .view = zk.zxid};
    }
}

void zk_rebuild(void)
{
    memset(zk.nodes, 0, sizeof zk.nodes);
    zk.zxid = INT64_C(1) << 32;
    zk.life++;
    zk.snapshot.taken = false;
    end_everything();
    world_fact((struct fact){.kind = FACT_ENSEMBLE_REBUILT, .node = -1});
    zk_drop_connections(-1);
}

void zk_take_snapshot(void)
{
    zk.snapshot.taken = true;
    memcpy(zk.snapshot.nodes, zk.nodes, sizeof zk.nodes);
    zk.snapshot.zxid = zk.zxid;
}

static void tell_again(const struct znode *n)
{
    const struct zsession *s = zk_session_find(n->session);
    const char *at = strstr(n->path, "/scopes/");
    const char *rest = at == NULL ? NULL : strstr(at + 8, "/candidates/");
    if (n->session == 0 || s == NULL || rest == NULL) {
        return;
    }
    char name[64] = "";
    memcpy(name, at + 8, (size_t)(rest - at - 8));
    world_fact((struct fact){.kind = FACT_CANDIDATE_MADE,
                             .node = s->node,
                             .scope = world_scope(name),
                             .session = n->session,
                             .generation = n->czxid,
                             .incarnation = zk.life});
}

void zk_rewind(void)
{
    if (!zk.snapshot.taken) {
        return;
    }
    memcpy(zk.nodes, zk.snapshot.nodes, sizeof zk.nodes);
    zk.zxid = zk.snapshot.zxid;
    end_everything();
    zk.life++; /* another life of the same ensemble */
    world_fact((struct fact){.kind = FACT_ENSEMBLE_REWOUND, .node = -1});
    for (size_t i = 0; i < ZK_NODES_MAX; i++) {
        const struct znode *n = &zk.nodes[i];
        struct zsession *s = zk_session_find(n->session);
        if (n->used && n->dzxid == 0 && s != NULL && !s->alive) {
            s->alive = true; /* known again by the nodes it has */
            s->touched = kernel_now();
            world_fact((struct fact){.kind = FACT_SESSION_MADE, .node = s->node, .session = s->id});
        }
    }
    for (size_t i = 0; i < ZK_NODES_MAX; i++) {
        if (zk.nodes[i].used && zk.nodes[i].dzxid == 0) {
            tell_again(&zk.nodes[i]);
        }
    }
    zk_drop_connections(-1);
}

/* The first candidate of any scope: what an operator may delete by mistake. */
void zk_remove_node(const char *prefix)
{
    struct znode *first = NULL;
    for (size_t i = 0; i < ZK_NODES_MAX; i++) {
        struct znode *n = &zk.nodes[i];
        if (n->used && n->dzxid == 0 && n->session != 0 && strstr(n->path, prefix) != NULL &&
            (first == NULL || n->czxid < first->czxid)) {
            first = n;
        }
    }
    if (first != NULL && zk.leader >= 0) {
        zk_delete_by_hand(first);
    }
}
