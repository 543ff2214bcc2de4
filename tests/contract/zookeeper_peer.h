/* What the cases of the ZooKeeper contract are made of: two clients and all that they were told, in
 * order. Failures are the test's failures. */
#ifndef RS_CONTRACT_ZOOKEEPER_PEER_H
#define RS_CONTRACT_ZOOKEEPER_PEER_H

#include "contract.h"

#define SOON_MS     30000
#define TICKETS_MAX 512
#define GOT_MAX     1024
#define PATH_MAX_   200

/* One handle with all that it was told, in order. */
struct peer {
    struct zk_client *client;
    struct inbox *inbox;
    struct zk_ticket tickets[TICKETS_MAX];
    uint32_t asked;
    struct zk_message got[GOT_MAX];
    size_t count;
};

extern struct peer *a, *b; /* exposed and sure; both up, and a node of the case's own is there */

/* Before and after each case. */
int zookeeper_begin(void **state);
int zookeeper_end(void **state);

/* Paths are below the case's node, "" is the node. Requests return the number of their answer. */
struct peer *peer_open(enum contract_side side);
bool peer_take(struct peer *p, int64_t ms);
void peer_close(struct peer *p);
size_t find(struct peer *p, size_t from, bool (*is)(const struct zk_message *, int64_t),
            int64_t what, int64_t ms);
bool is_reply(const struct zk_message *m, int64_t op);
bool is_link(const struct zk_message *m, int64_t link);
bool is_watch(const struct zk_message *m, int64_t scope);
size_t replied_at(struct peer *p, uint32_t op);
const struct zk_message *reply(struct peer *p, uint32_t op);
void expect(struct peer *p, uint32_t op, enum zk_answer answer);
size_t watches_of(const struct peer *p, unsigned scope);
void let_pass(struct peer *p, int64_t ms);
struct zk_ticket *ticket(struct peer *p);
const char *below(const char *name);
uint32_t create(struct peer *p, const char *name, const char *data, enum zk_node_kind kind);
uint32_t get(struct peer *p, const char *name);
uint32_t watch(struct peer *p, const char *name, unsigned scope);
uint32_t set(struct peer *p, const char *name, const char *data);
uint32_t set_version(struct peer *p, const char *name, const char *data, int32_t version);
uint32_t delete_(struct peer *p, const char *name);
uint32_t children(struct peer *p, const char *name);
uint32_t sync_(struct peer *p, const char *name);
bool is_there(struct peer *p, const char *name);

#endif
