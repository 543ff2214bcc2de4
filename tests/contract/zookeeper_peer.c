#include "zookeeper_peer.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "inbox.h"

static char root[64];

struct peer *peer_open(enum contract_side side)
{
    static uint32_t number;
    struct peer *p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->inbox = inbox_new(sizeof(struct zk_message), 256);
    assert_non_null(p->inbox);
    p->client = contract_zk_open(side, p->inbox, ++number);
    return p;
}

/* Take what comes within the time; true when something came. */
bool peer_take(struct peer *p, int64_t ms)
{
    size_t before = p->count;
    struct pollfd fd = {.fd = inbox_fd(p->inbox), .events = POLLIN};
    (void)poll(&fd, 1, (int)ms);
    while (p->count < GOT_MAX && inbox_take(p->inbox, &p->got[p->count])) {
        p->count++;
    }
    assert_true(p->count < GOT_MAX);
    return p->count > before;
}

void peer_close(struct peer *p)
{
    zk_client_close(p->client);
    (void)peer_take(p, 0);
    for (size_t i = 0; i < p->count; i++) {
        free(p->got[i].names);
    }
    inbox_free(p->inbox);
    free(p);
}

/* Where in what it was told the message is; waits for it. SIZE_MAX: it does not come. */
size_t find(struct peer *p, size_t from, bool (*is)(const struct zk_message *, int64_t),
            int64_t what, int64_t ms)
{
    instant end = instant_add_ms(clock_now(), ms);
    size_t i = from;
    for (;;) {
        for (; i < p->count; i++) {
            if (is(&p->got[i], what)) {
                return i;
            }
        }
        if (!instant_before(clock_now(), end)) {
            return SIZE_MAX;
        }
        (void)peer_take(p, instant_poll_timeout(clock_now(), end));
    }
}

bool is_reply(const struct zk_message *m, int64_t op)
{
    return m->type == ZK_MESSAGE_REPLY && m->op == (uint32_t)op;
}

bool is_link(const struct zk_message *m, int64_t link)
{
    return m->type == ZK_MESSAGE_LINK && m->link == (enum zk_link)link;
}

bool is_watch(const struct zk_message *m, int64_t scope)
{
    return m->type == ZK_MESSAGE_WATCH && m->scope == (unsigned)scope;
}

size_t replied_at(struct peer *p, uint32_t op)
{
    size_t at = find(p, 0, is_reply, op, SOON_MS);
    assert_true(at != SIZE_MAX);
    return at;
}

const struct zk_message *reply(struct peer *p, uint32_t op)
{
    return &p->got[replied_at(p, op)];
}

void expect(struct peer *p, uint32_t op, enum zk_answer answer)
{
    assert_int_equal(reply(p, op)->answer, answer);
}

size_t watches_of(const struct peer *p, unsigned scope)
{
    size_t n = 0;
    for (size_t i = 0; i < p->count; i++) {
        n += is_watch(&p->got[i], scope) ? 1 : 0;
    }
    return n;
}

/* Nothing more comes for so long. */
void let_pass(struct peer *p, int64_t ms)
{
    instant end = instant_add_ms(clock_now(), ms);
    while (instant_before(clock_now(), end)) {
        (void)peer_take(p, instant_poll_timeout(clock_now(), end));
    }
}

struct zk_ticket *ticket(struct peer *p)
{
    assert_true(p->asked < TICKETS_MAX);
    struct zk_ticket *t = &p->tickets[p->asked];
    *t = (struct zk_ticket){.inbox = p->inbox, .op = ++p->asked};
    return t;
}

/* Paths below this test's own node. */
const char *below(const char *name)
{
    static char path[PATH_MAX_];
    (void)snprintf(path, sizeof path, "%s%s%s", root, name[0] == '\0' ? "" : "/", name);
    return path;
}

uint32_t create(struct peer *p, const char *name, const char *data, enum zk_node_kind kind)
{
    struct zk_ticket *t = ticket(p);
    assert_int_equal(zk_client_create(p->client, t, below(name), data, kind), STATUS_OK);
    return t->op;
}

uint32_t get(struct peer *p, const char *name)
{
    struct zk_ticket *t = ticket(p);
    assert_int_equal(zk_client_get(p->client, t, below(name)), STATUS_OK);
    return t->op;
}

uint32_t watch(struct peer *p, const char *name, unsigned scope)
{
    struct zk_ticket *t = ticket(p);
    assert_int_equal(zk_client_get_and_watch(p->client, t, below(name), scope), STATUS_OK);
    return t->op;
}

uint32_t set(struct peer *p, const char *name, const char *data)
{
    struct zk_ticket *t = ticket(p);
    assert_int_equal(zk_client_set(p->client, t, below(name), data), STATUS_OK);
    return t->op;
}

uint32_t set_version(struct peer *p, const char *name, const char *data, int32_t version)
{
    struct zk_ticket *t = ticket(p);
    assert_int_equal(zk_client_set_version(p->client, t, below(name), data, version), STATUS_OK);
    return t->op;
}

uint32_t delete_(struct peer *p, const char *name)
{
    struct zk_ticket *t = ticket(p);
    assert_int_equal(zk_client_delete(p->client, t, below(name)), STATUS_OK);
    return t->op;
}

uint32_t children(struct peer *p, const char *name)
{
    struct zk_ticket *t = ticket(p);
    assert_int_equal(zk_client_children(p->client, t, below(name)), STATUS_OK);
    return t->op;
}

uint32_t sync_(struct peer *p, const char *name)
{
    struct zk_ticket *t = ticket(p);
    assert_int_equal(zk_client_sync(p->client, t, below(name)), STATUS_OK);
    return t->op;
}

/* Is the node there, as the leader knows it? */
bool is_there(struct peer *p, const char *name)
{
    expect(p, sync_(p, ""), ZK_OK);
    enum zk_answer answer = reply(p, get(p, name))->answer;
    assert_true(answer == ZK_OK || answer == ZK_NO_NODE);
    return answer == ZK_OK;
}

/* A and B, both up, and a node of this test's own. */
struct peer *a, *b;

int zookeeper_begin(void **state)
{
    (void)state;
    char id[UUID_TEXT_MAX];
    uuid_random(id);
    contract_zk_way(WAY_OPEN);
    (void)snprintf(root, sizeof root, "/rs-contract-%s", id);
    a = peer_open(SIDE_EXPOSED);
    b = peer_open(SIDE_SURE);
    assert_true(find(a, 0, is_link, ZK_LINK_UP, SOON_MS) != SIZE_MAX);
    assert_true(find(b, 0, is_link, ZK_LINK_UP, SOON_MS) != SIZE_MAX);
    expect(b, create(b, "", "", ZK_SHARED), ZK_OK);
    expect(a, sync_(a, ""), ZK_OK);
    return 0;
}

int zookeeper_end(void **state)
{
    (void)state;
    contract_zk_way(WAY_OPEN);
    peer_close(a);
    peer_close(b);
    return 0;
}
