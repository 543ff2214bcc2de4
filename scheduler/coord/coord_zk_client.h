/* Inside of the ZooKeeper adapter: the C client as messages. Only coord_zk_client.c includes the
 * library's header.
 *
 * The asynchronous API only: synchronous calls can hang for ever when the session expires
 * (ZOOKEEPER-2802). Completions and watches run on the library's threads and do nothing but post.
 * Its sockets are not close-on-exec: this process starts no programs. */
#ifndef RS_COORD_ZK_CLIENT_H
#define RS_COORD_ZK_CLIENT_H

#include <stdint.h>

#include "coord.h"
#include "election.h"

struct zk_client;

/* What an answer means for the caller. */
enum zk_answer {
    ZK_OK,
    ZK_NO_NODE,
    ZK_NODE_EXISTS,
    ZK_UNSURE,    /* connection lost or timed out: it may or may not have happened */
    ZK_ENDED,     /* the session is over */
    ZK_FORBIDDEN, /* the node's access list does not admit our identity */
    ZK_REFUSED,   /* anything else; rc names it */
};

enum zk_link {
    ZK_LINK_DOWN, /* connecting: the session's fate is unknown */
    ZK_LINK_UP,
    ZK_LINK_ENDED,   /* expired: the handle is dead */
    ZK_LINK_REFUSED, /* the servers did not take our identity: the handle is dead */
};

/* Children of a node. Owned by whoever took the message; free with free(). */
struct zk_names {
    size_t count;                                   /* all there are */
    char names[CANDIDATES_MAX][CANDIDATE_NAME_MAX]; /* the first CANDIDATES_MAX */
};

enum zk_message_type {
    ZK_MESSAGE_REPLY,  /* ticket, answer, ... */
    ZK_MESSAGE_LINK,   /* the link changed to `link` */
    ZK_MESSAGE_WATCH,  /* something about a node of `scope` changed */
    ZK_MESSAGE_ENROLL, /* commands of the scope threads; not from the library */
    ZK_MESSAGE_WITHDRAW,
    ZK_MESSAGE_MARK_READ,
    ZK_MESSAGE_MARK_WRITE, /* text: the mark */
    ZK_MESSAGE_ROOT,       /* text: the installation */
    ZK_MESSAGE_STOP,
};

/* Message of the coordination thread's inbox. */
struct zk_message {
    enum zk_message_type type;
    uint32_t session; /* number of the session it belongs to; others are ignored */
    unsigned scope;   /* WATCH and commands */
    uint32_t attempt; /* commands */
    uint32_t op;      /* REPLY */
    enum zk_link link;
    enum zk_answer answer;
    int rc;
    bool open;                     /* REPLY of access: others may change the node */
    int64_t czxid, owner;          /* REPLY of create and get */
    int32_t version;               /* REPLY of create, get and set */
    char text[COORD_ENSEMBLE_MAX]; /* created: last part of the path; get: the data */
    struct zk_names *names;        /* children; NULL otherwise, or when out of memory */
};

/* Names one pending operation to the callback. Must stay as it is until the reply was taken or the
 * client is closed. */
struct zk_ticket {
    struct inbox *inbox;
    uint32_t session;
    uint32_t op;
};

/* What a session is taken up again with. The password is a secret: whoever has it can end the
 * session. */
#define ZK_PASSWORD_BYTES 16
struct zk_session {
    int64_t id;
    unsigned char password[ZK_PASSWORD_BYTES];
};

struct zk_client_options {
    const char *servers;
    int session_ms;
    uint32_t session; /* number put on every message */
    struct inbox *inbox;
    /* NULL: a new session. Otherwise this one, of a process that is proved dead (two handles on one
     * session throw each other out); ENDED when it is over already. */
    const struct zk_session *attach;
};

/* A new handle: a new session, or the one to attach to. Blocks: in name resolution only.
 * Returns: OK; AGAIN (nothing resolves); FATAL (no memory). Owns: zk_client_close. */
MUST_USE enum status zk_client_open(const struct zk_client_options *options,
                                    struct zk_client **ret_client, struct error *err);

/* End the session if connected, and the library's threads. A pending operation is answered once
 * or never, and nothing comes after it returns: the library's completion thread may end while
 * zookeeper_close still queues answers (seen in 3.8 and in its newest source), so who closes
 * forgets what was pending. Blocks: up to 4.5 s on a black-holed connection. NULL is fine. */
void zk_client_close(struct zk_client *client);

enum zk_link zk_client_link(const struct zk_client *client);
int64_t zk_client_session_id(const struct zk_client *client);
int64_t zk_client_session_ms(const struct zk_client *client); /* negotiated; valid once up */
/* The session itself, once up. */
void zk_client_session(const struct zk_client *client, struct zk_session *ret_session);

/* Say who we are: "user:password", by ZooKeeper's scheme digest, in clear text on the wire. Once
 * per client and only while the link is up; the library keeps a copy and repeats it on each
 * connection. Nodes made from now on are ours to change; everybody may read them. Any pair is
 * taken: a wrong one shows as FORBIDDEN at the first node that belongs to another. */
MUST_USE enum status zk_client_identify(struct zk_client *client, const struct zk_ticket *ticket,
                                        const char *digest);

enum zk_node_kind {
    ZK_SHARED, /* persistent, and everybody's whoever we are: a parent of several installations */
    ZK_PERSISTENT,
    ZK_EPHEMERAL,
    ZK_CANDIDATE, /* ephemeral sequential */
};

/* Requests. Each is answered by one REPLY with the ticket's op, unless the call itself fails:
 * AGAIN, nothing was sent. */
MUST_USE enum status zk_client_create(struct zk_client *client, const struct zk_ticket *ticket,
                                      const char *path, const char *data, enum zk_node_kind kind);
MUST_USE enum status zk_client_get(struct zk_client *client, const struct zk_ticket *ticket,
                                   const char *path);
/* Get, and a WATCH message for `scope` when the node changes or goes. One-shot. */
MUST_USE enum status zk_client_get_and_watch(struct zk_client *client,
                                             const struct zk_ticket *ticket, const char *path,
                                             unsigned scope);
MUST_USE enum status zk_client_children(struct zk_client *client, const struct zk_ticket *ticket,
                                        const char *path);
MUST_USE enum status zk_client_set(struct zk_client *client, const struct zk_ticket *ticket,
                                   const char *path, const char *data);
/* The same if the node has that version still, otherwise REFUSED. */
MUST_USE enum status zk_client_set_version(struct zk_client *client, const struct zk_ticket *ticket,
                                           const char *path, const char *data, int32_t version);
MUST_USE enum status zk_client_delete(struct zk_client *client, const struct zk_ticket *ticket,
                                      const char *path);
/* The node's access list: `open` in the reply. */
MUST_USE enum status zk_client_access(struct zk_client *client, const struct zk_ticket *ticket,
                                      const char *path);
/* Let the server we are connected to catch up with the leader. */
MUST_USE enum status zk_client_sync(struct zk_client *client, const struct zk_ticket *ticket,
                                    const char *path);

/* The library's name of a result code, for people. */
const char *zk_client_rc_name(int rc);

#endif
