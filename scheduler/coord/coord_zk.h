/* Inside of the ZooKeeper adapter: the coordination thread's state. Included by coord_zk*.c only.
 * Everything here belongs to that thread unless said otherwise. */
#ifndef RS_COORD_ZK_H
#define RS_COORD_ZK_H

#include <pthread.h>
#include <stdatomic.h>

#include "backoff.h"
#include "coord.h"
#include "coord_zk_client.h"
#include "election.h"
#include "stall.h"

#define SEAT_NODES_DOOMED_MAX 8
#define OPS_MAX               256
#define SETUP_PATHS_MAX       (16 + 3 * COORD_SCOPES_MAX)
#define NODE_PATH_MAX         (COORD_PATH_MAX + NAME_MAX_BYTES + CANDIDATE_NAME_MAX + 32)
#define RELIST_MS             3000 /* re-read the candidates although no event said so */
#define ACCESS_TEXT_MAX       (NODE_PATH_MAX + 768)

enum op_kind {
    OP_SETUP_IDENTIFY, /* say who we are */
    OP_SETUP_CREATE,   /* one persistent parent */
    OP_SETUP_ENSEMBLE, /* create /ensemble-id; it may exist */
    OP_SETUP_READ,     /* read it */
    OP_SETUP_MEMBER,   /* create the own member node */
    OP_HEARTBEAT,      /* quorum write to the own member node */
    OP_AUDIT,          /* read a node's access list */
    OP_SEAT_READ,      /* read /ensemble-id before a candidate is created */
    OP_SEAT_CREATE,
    OP_SEAT_SYNC,
    OP_SEAT_LIST,
    OP_SEAT_STAT,  /* czxid and owner of one candidate */
    OP_SEAT_WATCH, /* get with a watch */
    OP_SEAT_DELETE,
    OP_MARK_READ,
    OP_MARK_WRITE,
    OP_ROOT_READ,   /* read /installation */
    OP_ROOT_CREATE, /* create it; it may exist by now */
};

/* One request that is not answered yet. The slot is reused only after its answer was taken or the
 * session was closed, since the library keeps a pointer to the ticket. */
struct op {
    bool used;
    enum op_kind kind;
    unsigned scope;
    instant sent_at;  /* stamped before the request is sent */
    instant deadline; /* own timer: when it fires the session is given up */
    struct zk_ticket ticket;
    char node[CANDIDATE_NAME_MAX];
};

enum seat_step {
    SEAT_EMPTY,
    SEAT_READING,  /* the ensemble's identity, in this session */
    SEAT_CREATING, /* create sent */
    SEAT_UNSURE,   /* it may have happened: sync, list, look for the GUID */
    SEAT_IN,       /* node exists */
};

enum seat_list {
    SEAT_LIST_IDLE,
    SEAT_LIST_SYNCING, /* only while UNSURE */
    SEAT_LIST_NAMES,
    SEAT_LIST_STATS, /* looking at candidates not seen before */
};

struct doomed_node {
    char name[CANDIDATE_NAME_MAX]; /* "": free */
    bool asked;                    /* a delete is on its way */
};

/* The high-water mark of one scope, as this session knows it. */
struct mark {
    bool asked;      /* MARK is owed */
    bool running;    /* a request is on its way */
    bool known;      /* version is that of the node, as last read or written */
    int32_t version; /* -1: there is no node */
    char wanted[UUID_TEXT_MAX], sent[UUID_TEXT_MAX]; /* "": nothing */
    instant at;                                      /* the next request, at the earliest */
};

/* A scope's question whose the root is. */
struct root_question {
    char installation[UUID_TEXT_MAX]; /* who asks; "": nobody */
    bool running;                     /* a request is on its way */
    bool create;                      /* there was no node: make it */
    instant at;                       /* the next request, at the earliest */
};

/* One scope's place in its line. */
struct seat {
    char scope[NAME_MAX_BYTES];
    char parent[COORD_PATH_MAX + NAME_MAX_BYTES + 32];
    struct inbox *events;
    bool overflow; /* an event was lost: SESSION_LOST and SESSION_UP are owed */

    struct lease lease; /* any thread reads; the session's while SEAT_IN */
    enum seat_step step;
    uint32_t attempt;
    bool leaving;     /* withdraw as soon as it is known what there is */
    bool enroll_next; /* enroll again when that is done */
    uint32_t next_attempt;
    bool announce; /* WITHDRAWN is owed */
    char guid[UUID_TEXT_MAX];
    struct candidate own; /* SEAT_IN */

    enum seat_list list;
    bool list_again;
    bool synced; /* UNSURE: the list being read was asked for after a sync in this connection */
    unsigned stats_pending;
    instant relist_at;
    struct candidate candidates[CANDIDATES_MAX]; /* last complete list, kept as a cache */
    size_t count;
    struct candidate next[CANDIDATES_MAX]; /* list being read; czxid 0 until known */
    size_t next_count;

    bool told; /* a rank was told since the last enroll or resume */
    unsigned told_ahead;
    bool first; /* nobody was ahead at some time: it may lead; a resume does not forget it */
    char watched[CANDIDATE_NAME_MAX]; /* predecessor with a live watch; "" none */
    bool own_watched;
    struct mark mark;
    struct root_question root;
    struct doomed_node doomed[SEAT_NODES_DOOMED_MAX];
};

enum coord_phase {
    PHASE_NONE,       /* no handle; waiting until session_at */
    PHASE_OPENING,    /* handle there, never connected yet */
    PHASE_SETUP,      /* making parents, reading the ensemble's identity, member node */
    PHASE_READY,      /* SESSION_UP told, lease renewed */
    PHASE_SUSPENDED,  /* disconnected */
    PHASE_CONFIRMING, /* connected again, quorum write on its way */
};

struct coord {
    /* Set before the thread starts. */
    char servers[1024], root[COORD_PATH_MAX], name[NAME_MAX_BYTES], url[256], digest_file[512];
    int64_t session_ms, tick_ms, margin_ms;
    struct life_file *life; /* NULL: none */
    struct inbox *urgent;
    struct inbox *inbox; /* struct zk_message; any thread posts */
    pthread_t thread;
    bool started;

    struct lease lease;        /* any thread reads */
    _Atomic int64_t turned_ns; /* any thread reads */
    struct stall stall;        /* any thread reads */

    enum coord_phase phase;
    struct zk_client *client;
    uint32_t session;   /* number of the current or last handle */
    int64_t session_id; /* ZooKeeper's */
    int64_t negotiated_ms;
    char ensemble[COORD_ENSEMBLE_MAX];
    char member[COORD_PATH_MAX + 64];
    char member_data[640];
    bool told_up;   /* scopes know the current session */
    bool was_ready; /* the session reached READY: resuming, not setting up */
    bool stopping;

    unsigned failures;  /* sessions in a row that came to nothing */
    instant session_at; /* NONE: when to open the next one */
    instant disconnected_at;
    instant heartbeat_at; /* when the next is due */
    bool heartbeat_sent;
    instant lease_before; /* what the lease was when the connection was lost */

    char setup_paths[SETUP_PATHS_MAX][COORD_PATH_MAX + NAME_MAX_BYTES + 32];
    size_t setup_count, setup_next;
    bool setup_running;
    instant setup_at; /* when to try the step again */

    char digest[512];  /* "user:password" until it was sent; then wiped */
    bool identified;   /* sent on this handle, or none is set */
    size_t audit_next; /* of setup_paths; then /ensemble-id; then done */
    bool audit_running;

    struct op ops[OPS_MAX];
    struct seat seats[COORD_SCOPES_MAX];
    unsigned seat_count;
};

/* coord_zk.c */
struct op *coord_op_new(struct coord *c, enum op_kind kind, unsigned scope);
/* After the request failed to leave: the slot is free again. */
void coord_op_drop(struct op *op);
void coord_tell(struct coord *c, unsigned scope, const struct coord_event *event);
void coord_tell_all(struct coord *c, enum coord_event_type type, const char *text);

/* coord_zk_session.c */
void session_tick(struct coord *c, instant now); /* timers; opens, sets up, beats */
instant session_wake_at(const struct coord *c);
void session_on_link(struct coord *c, enum zk_link link, instant now);
void session_on_reply(struct coord *c, const struct op *op, const struct zk_message *m,
                      instant now);
/* Give the session up: the scopes are told, nodes go with it, a new one follows after a backoff. */
void session_abandon(struct coord *c, const char *why, instant now);

/* The lease of the session, and of each scope whose node is one of it. */
void session_lease_set(struct coord *c, instant until);
void session_setup_again(struct coord *c); /* a parent or the member node is missing */

/* coord_zk_life.c */
void life_close_leftover(struct coord *c); /* first of all; blocks, bounded */
void life_keep_session(struct coord *c);   /* before it is used */
void life_end_session(struct coord *c);    /* in order, last of all */

/* coord_zk_access.c */
/* Before a session is opened: the file is read anew, so a mended one is taken by the next. */
MUST_USE enum status access_read_digest(struct coord *c, struct error *err);
void access_send_identity(struct coord *c); /* the first step of setting up */
/* What to tell people about a refused request on a node. Returns ret_text. */
const char *access_refusal(const struct coord *c, const struct zk_message *m, const char *node,
                           char ret_text[ACCESS_TEXT_MAX]);
/* With an identity: look at the persistent nodes one by one and warn of an open one. */
void access_audit_start(struct coord *c);
void access_tick(struct coord *c);
void access_on_audit(struct coord *c, const struct zk_message *m);

/* coord_zk_seat.c */
void seat_enroll(struct coord *c, unsigned scope, uint32_t attempt);
void seat_withdraw(struct coord *c, unsigned scope, uint32_t attempt);
void seat_empty(struct seat *seat);                /* out of the line: nothing more is decided */
void seat_reset(struct seat *seat);                /* the session is gone */
void seat_resume(struct coord *c, unsigned scope); /* connected again in the same session */
void seat_tick(struct coord *c, unsigned scope, instant now);
void seat_on_watch(struct coord *c, unsigned scope);
void seat_on_reply(struct coord *c, const struct op *op, const struct zk_message *m, instant now);
/* After an ambiguous create: the list says whether it happened. */
void seat_resolve(struct coord *c, unsigned scope);
void seat_tell(struct coord *c, unsigned scope, enum coord_event_type type, const char *text);
void seat_node_path(const struct seat *seat, const char *name, char ret_path[NODE_PATH_MAX]);

/* coord_zk_mark.c */
void mark_ask(struct coord *c, unsigned scope);
void mark_want(struct coord *c, unsigned scope, const char *mark);
void mark_leave(struct coord *c, unsigned scope); /* the own node goes: write what is left */
void mark_tick(struct coord *c, unsigned scope, instant now);
void mark_on_reply(struct coord *c, const struct op *op, const struct zk_message *m, instant now);

/* coord_zk_root.c */
void root_ask(struct coord *c, unsigned scope, const char *installation);
void root_tick(struct coord *c, unsigned scope, instant now);
void root_on_reply(struct coord *c, const struct op *op, const struct zk_message *m, instant now);

/* coord_zk_list.c */
void list_start(struct coord *c, unsigned scope);
void list_on_reply(struct coord *c, const struct op *op, const struct zk_message *m);
void list_on_stat(struct coord *c, const struct op *op, const struct zk_message *m);
void list_on_watched(struct coord *c, const struct op *op, const struct zk_message *m);
void list_on_deleted(struct coord *c, const struct op *op, const struct zk_message *m);
void seat_doom(struct coord *c, unsigned scope, const char *name);
void seat_send_deletes(struct coord *c, unsigned scope);
bool seat_has_doomed(const struct seat *seat);

#endif
