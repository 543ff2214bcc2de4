/* The C client of ZooKeeper as coord_zk_client.h shows it: connects, pings, loses connections, and
 * posts answers and events to the coordination thread's inbox. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inbox.h"
#include "world.h"
#include "zk_fake_inside.h"

#define TICK      (50 * KERNEL_MS) /* the library's I/O thread looks as often */
#define CLOSE_MAX (4500 * KERNEL_MS)

static bool is_gone(const struct zk_client *c)
{
    return c->over || c->closed;
}

static void post(struct zk_client *c, struct zk_message *m)
{
    m->session = c->number;
    if (m->names != NULL) {
        /* The product frees it: it must be the process's own memory. */
        struct zk_names *names = m->names;
        unsigned before = kernel_memory_owner((unsigned)c->process->node + 1);
        m->names = malloc(sizeof *names);
        (void)kernel_memory_owner(before);
        memcpy(m->names, names, sizeof *names);
        kernel_free(names);
    }
    if (inbox_post(c->inbox, m) != STATUS_OK) {
        free(m->names);
    }
}

static void post_link(struct zk_client *c, enum zk_link link)
{
    struct zk_message m = {.type = ZK_MESSAGE_LINK, .link = link};
    c->link = link;
    post(c, &m);
}

static void answer_pending(struct zk_client *c, enum zk_answer with)
{
    for (size_t i = 0; i < ZK_PENDING_MAX; i++) {
        if (c->pending[i].used) {
            struct zk_message m = {
                .type = ZK_MESSAGE_REPLY, .op = c->pending[i].ticket.op, .answer = with};
            c->pending[i].used = false;
            post(c, &m);
        }
    }
}

/* Connecting -------------------------------------------------------------------------------------
 */

static void go_down(struct zk_client *c)
{
    c->connection++;
    c->sent_sequence = c->next_sequence = c->asked_sequence = c->asked_arrived = 0;
    post_link(c, ZK_LINK_DOWN);
    answer_pending(c, ZK_UNSURE);
}

static void on_dropped(void *context, uint64_t number)
{
    struct zk_client *c = context;
    if (!is_gone(c) && c->link == ZK_LINK_UP && c->connection == number) {
        if (c->process->paused) {
            kernel_in(5 * KERNEL_MS, on_dropped, c, number);
            return;
        }
        go_down(c);
    }
}

void zk_drop_client(struct zk_client *c)
{
    /* The server closes; whoever is not cut off sees it soon. */
    if (!is_gone(c) && c->link == ZK_LINK_UP &&
        !world_is_cut(c->process->node, SERVICE_ZOOKEEPER, CUT_FROM)) {
        kernel_in(world_latency(c->process->node, SERVICE_ZOOKEEPER), on_dropped, c, c->connection);
    }
}

void zk_drop_connections(int server)
{
    for (struct zk_client *c = zk.clients; c != NULL; c = c->next) {
        if (server < 0 || c->server == server) {
            zk_drop_client(c);
        }
    }
}

static void become_up(struct zk_client *c, int server)
{
    c->server = server;
    c->connection++;
    c->sent_sequence = c->next_sequence = c->asked_sequence = c->asked_arrived = 0;
    c->heard = c->sent = c->ready_at = kernel_now();
    int64_t seen = c->seen;
    c->seen = zk.servers[server].view > c->seen ? zk.servers[server].view : c->seen;
    zk_touch(c->session, server);
    post_link(c, ZK_LINK_UP);
    /* Watches are set anew; what has gone or changed since the client heard last is told at once.
     */
    for (size_t i = 0; i < ZK_WATCHES_MAX; i++) {
        struct zk_watch *w = &c->watches[i];
        const struct znode *n = w->set ? zk_find(w->path, zk.servers[server].view) : NULL;
        if (w->set && (n == NULL || zk_data_in_view(n, zk.servers[server].view)->zxid > seen)) {
            struct zk_message m = {.type = ZK_MESSAGE_WATCH, .scope = w->scope};
            w->set = false;
            post(c, &m);
        }
    }
}

static void try_connect(struct zk_client *c)
{
    int server = (int)chance_in(kernel_chance(), 0, ZK_SERVERS - 1);
    unsigned both = world_is_cut(c->process->node, SERVICE_ZOOKEEPER, CUT_TO) ||
                    world_is_cut(c->process->node, SERVICE_ZOOKEEPER, CUT_FROM);
    /* A server that is behind what this client has seen refuses it. */
    if (both || !zk_serves(server) || zk.servers[server].view < c->seen || !zk_has_quorum(server)) {
        return;
    }
    if (c->session == NULL) {
        c->session = zk_session_new(c->process->node, c->timeout);
        c->session_id = c->session->id;
        become_up(c, server);
        return;
    }
    struct zsession *s = zk_session_find(c->session_id);
    if (s == NULL || !s->alive) {
        post_link(c, ZK_LINK_ENDED);
        answer_pending(c, ZK_ENDED);
        return;
    }
    become_up(c, server);
}

static struct zk_packet *packet_new(struct zk_client *c, enum zk_pending_kind kind)
{
    struct zk_packet *p = kernel_new(sizeof *p);
    *p = (struct zk_packet){
        .client = c, .connection = c->connection, .kind = kind, .slot = -1, .server = c->server};
    p->message.type = ZK_MESSAGE_REPLY;
    return p;
}

/* What is lost on the way is sent again as long as the connection holds, and arrives in order. */
static void on_arrival(void *context, uint64_t number)
{
    struct zk_packet *p = context;
    struct zk_client *c = p->client;
    (void)number;
    if (is_gone(c) || p->connection != c->connection) {
        kernel_free(p);
        return;
    }
    if (world_is_cut(c->process->node, SERVICE_ZOOKEEPER, CUT_TO) || p->asked != c->asked_arrived) {
        kernel_in(2 * KERNEL_MS, on_arrival, p, 0);
        return;
    }
    c->asked_arrived++;
    zk_arrive(p);
}

static void packet_send(struct zk_client *c, struct zk_packet *p)
{
    c->sent = kernel_now();
    p->asked = c->asked_sequence++;
    int64_t at = kernel_now() + world_latency(c->process->node, SERVICE_ZOOKEEPER);
    c->out_at = at > c->out_at ? at : c->out_at;
    kernel_at(c->out_at, on_arrival, p, 0);
}

static void on_tick(void *context, uint64_t number)
{
    struct zk_client *c = context;
    (void)number;
    if (is_gone(c)) {
        return;
    }
    if (!c->process->paused) {
        int64_t now = kernel_now();
        if (c->link == ZK_LINK_UP && now - c->heard > c->timeout * 2 / 3) {
            go_down(c);
        } else if (c->link == ZK_LINK_UP && now - c->sent > c->timeout / 3) {
            packet_send(c, packet_new(c, PENDING_PING));
        } else if (c->link == ZK_LINK_DOWN && !c->closing) {
            try_connect(c);
        }
    }
    kernel_in(TICK + chance_in(kernel_chance(), 0, 20000) * KERNEL_US, on_tick, c, 0);
}

/* Answers ----------------------------------------------------------------------------------------
 */

static void on_delivery(void *context, uint64_t number)
{
    (void)number;
    zk_deliver(context);
}

void zk_send_back(struct zk_packet *p)
{
    struct zk_client *c = p->client;
    if (is_gone(c) || p->connection != c->connection) {
        kernel_free(p->message.names);
        kernel_free(p);
        return;
    }
    p->sequence = c->sent_sequence++;
    int64_t at = kernel_now() + world_latency(c->process->node, SERVICE_ZOOKEEPER);
    c->in_at = at > c->in_at ? at : c->in_at;
    kernel_at(c->in_at, on_delivery, p, 0);
}

void zk_deliver(struct zk_packet *p)
{
    struct zk_client *c = p->client;
    if (is_gone(c) || p->connection != c->connection) {
        kernel_free(p->message.names);
        kernel_free(p);
        return;
    }
    if (c->process->paused || p->sequence != c->next_sequence ||
        world_is_cut(c->process->node, SERVICE_ZOOKEEPER, CUT_FROM)) {
        kernel_in(2 * KERNEL_MS, on_delivery, p, 0); /* it lies in the socket, or is sent again */
        return;
    }
    c->next_sequence++;
    c->heard = kernel_now();
    c->seen = zk.servers[c->server].view > c->seen ? zk.servers[c->server].view : c->seen;
    if (p->kind == PENDING_CLOSE && c->closer != NULL) {
        fiber_wake(c->closer);
    } else if (p->message.type == ZK_MESSAGE_WATCH) {
        post(c, &p->message);
    } else if (p->slot >= 0 && c->pending[p->slot].used) {
        c->pending[p->slot].used = false;
        p->message.op = c->pending[p->slot].ticket.op;
        post(c, &p->message);
    }
    kernel_free(p);
}

/* The port ---------------------------------------------------------------------------------------
 */

enum status zk_client_open(const struct zk_client_options *options, struct zk_client **ret_client,
                           struct error *err)
{
    (void)err;
    struct zk_client *c = kernel_new(sizeof *c);
    c->process = process_current();
    c->life = c->process->life;
    c->inbox = options->inbox;
    c->number = options->session;
    c->timeout = options->session_ms * KERNEL_MS;
    c->link = ZK_LINK_DOWN;
    c->next = zk.clients;
    zk.clients = c;
    kernel_in(chance_in(kernel_chance(), 1, 10) * KERNEL_MS, on_tick, c, 0);
    *ret_client = c;
    return STATUS_OK;
}

void zk_client_close(struct zk_client *client)
{
    if (client == NULL) {
        return;
    }
    client->closing = true;
    answer_pending(client, ZK_ENDED);
    if (client->link == ZK_LINK_UP) {
        client->closer = fiber_current();
        packet_send(client, packet_new(client, PENDING_CLOSE));
        (void)fiber_wait(kernel_now() + CLOSE_MAX);
        client->closer = NULL;
    }
    client->closed = true;
}

void zk_client_forget(struct process *p)
{
    for (struct zk_client *c = zk.clients; c != NULL; c = c->next) {
        c->over = c->over || c->process == p;
    }
}

int64_t zk_session_of(const struct process *p)
{
    for (const struct zk_client *c = zk.clients; c != NULL; c = c->next) {
        if (c->process == p && !c->over && !c->closed) {
            return c->session_id;
        }
    }
    return 0;
}

enum zk_link zk_client_link(const struct zk_client *client)
{
    return client->link;
}

int64_t zk_client_session_id(const struct zk_client *client)
{
    return client->session_id;
}

/* Nobody closes a dead process's session here: options.attach is not looked at. */
void zk_client_session(const struct zk_client *client, struct zk_session *ret_session)
{
    *ret_session = (struct zk_session){.id = client->session_id};
}

int64_t zk_client_session_ms(const struct zk_client *client)
{
    return client->timeout / KERNEL_MS;
}

static enum status request(struct zk_client *c, const struct zk_ticket *ticket, struct zk_packet *p)
{
    if (c->link == ZK_LINK_ENDED || c->closing) {
        kernel_free(p);
        return STATUS_AGAIN;
    }
    for (int i = 0; i < ZK_PENDING_MAX; i++) {
        if (c->pending[i].used) {
            continue;
        }
        c->pending[i].used = true;
        c->pending[i].ticket = *ticket;
        p->slot = i;
        if (c->link == ZK_LINK_UP) {
            packet_send(c, p);
        } else { /* the library keeps it and answers "connection lost" */
            struct zk_message m = {.type = ZK_MESSAGE_REPLY, .op = ticket->op, .answer = ZK_UNSURE};
            c->pending[i].used = false;
            kernel_free(p);
            post(c, &m);
        }
        return STATUS_OK;
    }
    kernel_free(p);
    return STATUS_AGAIN;
}

static struct zk_packet *about(struct zk_client *c, enum zk_pending_kind kind, const char *path)
{
    struct zk_packet *p = packet_new(c, kind);
    (void)snprintf(p->path, sizeof p->path, "%s", path);
    return p;
}

enum status zk_client_identify(struct zk_client *client, const struct zk_ticket *ticket,
                               const char *digest)
{
    (void)digest;
    return request(client, ticket, packet_new(client, PENDING_OTHER));
}

enum status zk_client_create(struct zk_client *client, const struct zk_ticket *ticket,
                             const char *path, const char *data, enum zk_node_kind kind)
{
    struct zk_packet *p = about(client, PENDING_CREATE, path);
    p->node_kind = kind;
    (void)snprintf(p->data, sizeof p->data, "%.63s", data);
    return request(client, ticket, p);
}

enum status zk_client_get(struct zk_client *client, const struct zk_ticket *ticket,
                          const char *path)
{
    return request(client, ticket, about(client, PENDING_GET, path));
}

enum status zk_client_get_and_watch(struct zk_client *client, const struct zk_ticket *ticket,
                                    const char *path, unsigned scope)
{
    struct zk_packet *p = about(client, PENDING_GET, path);
    p->watch = true;
    p->scope = scope;
    return request(client, ticket, p);
}

enum status zk_client_children(struct zk_client *client, const struct zk_ticket *ticket,
                               const char *path)
{
    return request(client, ticket, about(client, PENDING_CHILDREN, path));
}

enum status zk_client_set(struct zk_client *client, const struct zk_ticket *ticket,
                          const char *path, const char *data)
{
    struct zk_packet *p = about(client, PENDING_SET, path);
    (void)snprintf(p->data, sizeof p->data, "%.63s", data);
    if (strstr(path, "/members/") == NULL) {
        return request(client, ticket, p);
    }
    if (client->beat == 0) { /* the first quorum write is what proves a session */
        world_own_fact((struct fact){.kind = FACT_SESSION_UP, .session = client->session_id});
    }
    client->beat = ++zk.beats;
    world_own_fact((struct fact){
        .kind = FACT_BEAT_SENT, .session = client->session_id, .number = client->beat});
    return request(client, ticket, p);
}

enum status zk_client_set_version(struct zk_client *client, const struct zk_ticket *ticket,
                                  const char *path, const char *data, int32_t version)
{
    struct zk_packet *p = about(client, PENDING_SET_VERSION, path);
    (void)snprintf(p->data, sizeof p->data, "%.63s", data);
    p->version = version;
    return request(client, ticket, p);
}

enum status zk_client_delete(struct zk_client *client, const struct zk_ticket *ticket,
                             const char *path)
{
    return request(client, ticket, about(client, PENDING_DELETE, path));
}

enum status zk_client_access(struct zk_client *client, const struct zk_ticket *ticket,
                             const char *path)
{
    return request(client, ticket, about(client, PENDING_OTHER, path));
}

enum status zk_client_sync(struct zk_client *client, const struct zk_ticket *ticket,
                           const char *path)
{
    return request(client, ticket, about(client, PENDING_SYNC, path));
}

const char *zk_client_rc_name(int rc)
{
    (void)rc;
    return "simulated";
}
