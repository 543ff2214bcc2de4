/* Port: coordination through ZooKeeper. Who should try to lead (never who may write: that is the
 * fence), and until when this process may decide leader work (the lease).
 *
 * One session per process for all scopes, owned by one coordination thread. Scope threads send
 * commands and get events in their inbox; nobody else touches the session. Everything is told as
 * an event in order: what was told of an old session or attempt is recognised by its numbers.
 *
 * The deadline is efficiency, the fence is safety, re-listing and retry are liveness. */
#ifndef RS_COORD_H
#define RS_COORD_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "ident.h"
#include "inbox.h"
#include "lease.h"
#include "life_file.h"
#include "status.h"

#define COORD_SCOPES_MAX   64
#define COORD_PATH_MAX     256
#define COORD_ENSEMBLE_MAX 128

struct coord;

struct coord_options {
    const char *servers; /* "host:port,host:port"; IPv6 as "::1:2181", without brackets */
    const char *root;    /* "/report-scheduler": begins with '/', does not end with one */
    int64_t session_ms;  /* requested session timeout T */
    int64_t tick_ms;     /* the servers' tickTime: a client cannot see it */
    int64_t margin_ms;   /* at least the longest protected statement */
    const char *name;    /* this replica, for people */
    const char *url;     /* advertised; "" when there is none */
    /* File with "user:password" (scheme digest), read for each session; NULL or "": none, and nodes
     * are everybody's. A file that cannot be read or does not fit the tree means no session, told
     * in SESSION_LOST with the remedy, and another attempt after a backoff. */
    const char *digest_file;
    /* Gets a copy of SUSPENDED and SESSION_LOST events as they are noticed, for whoever cancels
     * running statements without waiting for the scope thread. May be NULL. Borrowed. */
    struct inbox *urgent;
    /* Keeps the session, for whoever closes it when this process was killed (session_file.h). NULL:
     * nobody. Borrowed. */
    struct life_file *life;
};

enum coord_event_type {
    COORD_SESSION_UP,    /* ensemble, session_ms */
    COORD_SESSION_LOST,  /* text: why */
    COORD_SUSPENDED,     /* disconnected; the lease is gone */
    COORD_RESUMED,       /* same session, confirmed by a quorum write before the lease ran out */
    COORD_ENROLLED,      /* generation, node, ensemble */
    COORD_ENROLL_FAILED, /* text: why; nothing of the attempt is left, or it is being deleted */
    COORD_RANK,          /* ahead: 0 is first */
    COORD_NODE_LOST,     /* the node is gone, the session is not */
    COORD_WITHDRAWN,     /* every node of this scope made by this session is gone */
    COORD_MARK,          /* text: the scope's mark, "" when there is none */
    COORD_ROOT,          /* text: the installation that the root belongs to */
};

/* Message of the scopes' inboxes: inbox_new(sizeof(struct coord_event), ...). */
struct coord_event {
    enum coord_event_type type;
    uint32_t session;                  /* number of the session in this process: 1, 2, ... */
    uint32_t attempt;                  /* of coord_enroll, for ENROLLED ... WITHDRAWN */
    unsigned ahead;                    /* RANK */
    int64_t generation;                /* ENROLLED: czxid of the node */
    int64_t session_ms;                /* SESSION_UP: negotiated */
    char ensemble[COORD_ENSEMBLE_MAX]; /* SESSION_UP, ENROLLED: the ensemble's identity */
    char text[384];                    /* reason or name of the node, for people */
};

/* Owns: coord_free. Strings are copied. Returns: OK, INVALID (the text says which option and what
 * to write instead), FATAL (no memory). Thread: main. Blocks: never; nothing is connected yet. */
MUST_USE enum status coord_new(const struct coord_options *options, struct coord **ret_coord,
                               struct error *err);

/* Take part in one more scope; before coord_start. `events` is borrowed until coord_free. A full
 * inbox loses no truth: the scope is then told SESSION_LOST and starts over.
 * Returns: OK with the scope's number; FULL; INVALID (not a name, or there already). */
MUST_USE enum status coord_add_scope(struct coord *coord, const char *scope, struct inbox *events,
                                     unsigned *ret_number, struct error *err);

/* Start the coordination thread. Returns: OK, FATAL. */
MUST_USE enum status coord_start(struct coord *coord, struct error *err);

/* Ask for a candidate node under a fresh GUID, in the session that the caller knows (of its last
 * SESSION_UP). Answered by ENROLLED or ENROLL_FAILED with the same attempt number, unless
 * SESSION_LOST comes first: nothing is made in a later session for a caller that has not heard of
 * it, and would forget with the old one what it asked for. An older node of the scope is deleted.
 * Thread: any. Blocks: never. Returns: OK, FULL (try again). */
MUST_USE enum status coord_enroll(struct coord *coord, unsigned scope, uint32_t session,
                                  uint32_t attempt);

/* Ask that no candidate node of this scope is left, whatever its state. Answered by WITHDRAWN once
 * the server said so, unless SESSION_LOST comes first. Returns: OK, FULL (try again). */
MUST_USE enum status coord_withdraw(struct coord *coord, unsigned scope, uint32_t attempt);

/* Whose is the root? It belongs to one installation, the first that asked: its id stands in a
 * persistent node below the root. Another one must not be a candidate there, where it would wait
 * behind a leader of other work, or lead and keep that one out. `installation`: the text of a UUID.
 * Answered by ROOT, unless SESSION_LOST comes first. Returns: OK, FULL (try again). */
MUST_USE enum status coord_ask_root(struct coord *coord, unsigned scope, const char *installation);

/* The high-water mark of a scope: the newest job that was planned and acknowledged, in a persistent
 * node beside the candidates, so that a database that forgot it is noticed. It is a guard, not a
 * lock: a mark that is missing or cannot be read stops nobody.
 *
 * Ask for it. Answered by MARK with the attempt of the last enroll, unless SESSION_LOST comes
 * first. To be asked when first in line: then all that a predecessor wrote is seen. Returns: OK,
 * FULL (try again). */
MUST_USE enum status coord_read_mark(struct coord *coord, unsigned scope);

/* Write it, at most once a heartbeat (the last one counts), while the own node is first in line and
 * once it was read; dropped otherwise. `mark`: the text of a UUID. Nothing is answered.
 * Returns: OK, FULL (the next one will do). */
MUST_USE enum status coord_write_mark(struct coord *coord, unsigned scope, const char *mark);

/* The lease of the session: it says that this process is connected, and lets nobody decide
 * anything. Borrowed until coord_free. Thread: any. */
const struct lease *coord_lease(const struct coord *coord);

/* The lease of one scope, by which its work is decided: the session's, while its candidate node is
 * one of this session; none otherwise. A scope whose thread was held up while the session ended and
 * another one came has none until it has asked to enroll again (I8). Borrowed until coord_free.
 * Thread: any. */
const struct lease *coord_scope_lease(const struct coord *coord, unsigned scope);

/* When the coordination thread last made a turn of its loop; it does at least every second.
 * Closing a black-holed session may keep it for about 5 s. Thread: any. */
instant coord_last_turn(const struct coord *coord);

/* The longest stall of that loop, see stall.h. Thread: any. */
double coord_stall_s(struct coord *coord);

/* End the session in order (ephemeral nodes go at once) and the thread.
 * Returns: OK; TIMEOUT: the thread still hangs in the library; only _exit is left, and the nodes
 * fall by expiry. Thread: main. Blocks: until deadline. */
MUST_USE enum status coord_stop(struct coord *coord, instant deadline);

/* After coord_stop returned OK, or when never started. NULL is fine. */
void coord_free(struct coord *coord);

#endif
