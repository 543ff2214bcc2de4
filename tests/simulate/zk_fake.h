/* A ZooKeeper ensemble of three servers, as far as coord_zk*.c can tell it from a real one: zxids
 * in the order of commits, reads from whatever the client's server has applied, sessions that the
 * leader ends by its ticks, one-shot watches, lost connections that leave a write's fate unknown.
 * The port is scheduler/coord/coord_zk_client.h (zk_fake_client.c). */
#ifndef RS_SIMULATE_ZK_FAKE_H
#define RS_SIMULATE_ZK_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coord_zk_client.h"
#include "kernel.h"

#define ZK_SERVERS      3
#define ZK_NODES_MAX    512
#define ZK_SESSIONS_MAX 256
#define ZK_PATH_MAX     256
#define ZK_DATA_MAX     64 /* what of a node's data is kept: enough for /ensemble-id */
#define ZK_PENDING_MAX  256

/* What a node held from a zxid on: a server that lags shows an older one. */
struct zdata {
    int64_t zxid;
    int32_t version;
    char text[ZK_DATA_MAX];
};
#define ZK_DATA_KEPT 12

struct znode {
    bool used;
    char path[ZK_PATH_MAX];
    struct zdata data[ZK_DATA_KEPT]; /* the newest first; zxid 0: none */
    int64_t czxid, dzxid;            /* dzxid 0: it is there */
    int64_t session;                 /* 0: persistent */
    int32_t sequence;                /* of the next sequential child */
};

struct zsession {
    int64_t id; /* 0: free */
    int node;
    bool alive;
    int64_t timeout;
    int64_t touched;             /* as the leader knows */
    bool touched_at[ZK_SERVERS]; /* told to a server, not to the leader yet */
};

struct zserver {
    bool up;
    bool isolated; /* cut off from the other two */
    int64_t isolated_at;
    int64_t view; /* everything up to this zxid is applied */
    int64_t lag;  /* further delay of applying */
};

enum zk_pending_kind {
    PENDING_CREATE,
    PENDING_GET,
    PENDING_CHILDREN,
    PENDING_SET,
    PENDING_SET_VERSION,
    PENDING_DELETE,
    PENDING_SYNC,
    PENDING_OTHER, /* identify, access */
    PENDING_CLOSE,
    PENDING_PING,
};

struct zk_watch {
    bool set;
    char path[ZK_PATH_MAX];
    unsigned scope;
};
#define ZK_WATCHES_MAX 32

/* One handle, made by zk_client_open. */
struct zk_client {
    struct zk_client *next;
    struct process *process;
    unsigned life; /* of the process */
    struct inbox *inbox;
    uint32_t number; /* the handle's, for messages */
    struct zsession *session;
    int64_t session_id, timeout;
    enum zk_link link;
    int server;
    unsigned connection; /* number of the present one; what belongs to an older one is dropped */
    uint64_t sent_sequence, next_sequence;  /* of answers on this connection */
    uint64_t asked_sequence, asked_arrived; /* of requests */
    int64_t heard, sent;                    /* true time */
    int64_t out_at, in_at;                  /* first-in-first-out both ways */
    int64_t ready_at;                       /* the server answers in order */
    int64_t seen;                           /* highest zxid */
    struct {
        bool used;
        struct zk_ticket ticket;
    } pending[ZK_PENDING_MAX];
    struct zk_watch watches[ZK_WATCHES_MAX];
    bool closing, closed, over; /* over: the process is gone */
    struct fiber *closer;
    int64_t beat;     /* number of the last heartbeat */
    uint32_t beat_op; /* its slot */
};

/* A request on its way, and its answer. */
struct zk_packet {
    struct zk_client *client;
    unsigned connection;
    uint64_t asked;    /* number of the request on its connection */
    uint64_t sequence; /* of the answer */
    enum zk_pending_kind kind;
    int slot; /* in client->pending; -1: nobody waits */
    enum zk_node_kind node_kind;
    char path[ZK_PATH_MAX];
    char data[ZK_DATA_MAX];
    bool watch;
    unsigned scope;
    int32_t version; /* SET_VERSION */
    int server;
    struct zk_message message; /* the answer, or a watch event */
};

struct zk_ensemble {
    struct znode nodes[ZK_NODES_MAX];
    struct zsession sessions[ZK_SESSIONS_MAX];
    struct zserver servers[ZK_SERVERS];
    int leader; /* -1: an election goes on */
    int64_t zxid;
    int life; /* of the ensemble: 1, 2, ... */
    int64_t next_session;
    struct zk_client *clients;
    int64_t beats;       /* numbers given to leases' writes */
    uint64_t generation; /* of the ensemble's own timers */
    struct {
        bool taken;
        struct znode nodes[ZK_NODES_MAX];
        int64_t zxid;
    } snapshot;
};
extern struct zk_ensemble zk;

void zk_reset(int64_t tick_ms);
bool zk_has_quorum(int server); /* may that server take part in a write now? */
bool zk_serves(int server);     /* does it answer clients at all? */
const struct znode *zk_find(const char *path, int64_t view);

/* Faults. */
void zk_server_stop(int server);
void zk_server_start(int server);
void zk_isolate(int server);
void zk_rejoin(int server);
void zk_set_lag(int server, int64_t ns);
void zk_elect(int64_t for_ns); /* the leader is lost; no writes until another is elected */
void zk_rebuild(void);         /* empty, another ensemble */
void zk_take_snapshot(void);
void zk_rewind(void);                    /* to the snapshot; nothing if there is none */
void zk_remove_node(const char *prefix); /* an operator deletes a candidate */
const char *zk_identity(void);           /* "" when there is none */
const char *zk_newest(const char *path); /* data of a node now; "": none */
/* End what a session left; for close-dead-session. */
void zk_end_session(int64_t id);

/* Between client and ensemble (zk_fake.c <-> zk_fake_client.c). */
void zk_arrive(struct zk_packet *packet);  /* at the client's server; takes it */
void zk_deliver(struct zk_packet *packet); /* at the client; takes it */
void zk_send_back(struct zk_packet *packet);
void zk_drop_connections(int server); /* -1: all */
void zk_drop_client(struct zk_client *c);
void zk_delete_by_hand(struct znode *n);
struct zsession *zk_session_new(int node, int64_t timeout);
struct zsession *zk_session_find(int64_t id);
void zk_touch(struct zsession *s, int server);
void zk_client_forget(struct process *p);
int64_t zk_session_of(const struct process *p); /* 0: none */

#endif
