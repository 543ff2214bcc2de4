/* The life of one scope in this process: a pure, table-driven machine (docs/lifecycle.md).
 *
 * The scope thread feeds it events and carries out the commands it returns; it knows no clock, no
 * thread, no library. The table in lifecycle_table.c is the only place where an edge exists: the
 * machine, `reportctl lifecycle`, docs/lifecycle.md (its output) and the tests all read it. */
#ifndef RS_LIFECYCLE_H
#define RS_LIFECYCLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum lifecycle_state {
    LIFECYCLE_DOWN,
    LIFECYCLE_CONNECTING,
    LIFECYCLE_HELD,
    LIFECYCLE_ENROLLING,
    LIFECYCLE_FOLLOWING,
    LIFECYCLE_ESTABLISHING,
    LIFECYCLE_PREPARING,
    LIFECYCLE_ACTIVE,
    LIFECYCLE_SUSPENDED,
    LIFECYCLE_DRAINING,
    LIFECYCLE_RELEASING,
    LIFECYCLE_STOPPED,
};
#define LIFECYCLE_STATES ((size_t)LIFECYCLE_STOPPED + 1)

enum lifecycle_event {
    LIFECYCLE_EV_BACKOFF_OVER,       /* the wait that LIFECYCLE_DO_BACKOFF began has ended */
    LIFECYCLE_EV_SESSION_UP,         /* a session exists and a quorum write proved it */
    LIFECYCLE_EV_SESSION_LOST,       /* it ended, or was given up */
    LIFECYCLE_EV_SUSPENDED,          /* disconnected; the session's fate is unknown */
    LIFECYCLE_EV_RESUMED,            /* same session, confirmed by a quorum write in time */
    LIFECYCLE_EV_ENSEMBLE_KNOWN,     /* the database knows (or adopted) the ensemble */
    LIFECYCLE_EV_HOLD_FOUND,         /* a durable reason forbids the work */
    LIFECYCLE_EV_LIFTED,             /* that reason is gone */
    LIFECYCLE_EV_ENROLLED,           /* the own candidate node exists */
    LIFECYCLE_EV_ENROLL_FAILED,      /* it was not made, and nothing of the try is left */
    LIFECYCLE_EV_RANK_FIRST,         /* no candidate is ahead */
    LIFECYCLE_EV_RANK_BEHIND,        /* somebody is */
    LIFECYCLE_EV_NODE_LOST,          /* the own node is gone, the session is not */
    LIFECYCLE_EV_ESTABLISHED,        /* the fence row accepted the generation */
    LIFECYCLE_EV_SUPERSEDED,         /* it holds a higher one */
    LIFECYCLE_EV_PREPARED,           /* durable state is loaded */
    LIFECYCLE_EV_PREPARE_FAILED,     /* it could not be, repeatedly */
    LIFECYCLE_EV_FENCED,             /* a protected write was refused */
    LIFECYCLE_EV_LEASE_EXPIRED,      /* the local deadline passed without a renewal */
    LIFECYCLE_EV_DATABASE_UNHEALTHY, /* no statement succeeded for longer than the bound */
    LIFECYCLE_EV_DATABASE_MOVED,     /* the server is not the one that was established on */
    LIFECYCLE_EV_CLOCK_SUSPECT,      /* its clock is not where it must be, or the own one is not */
    LIFECYCLE_EV_STUCK,              /* the scope thread made no turn for longer than the bound */
    LIFECYCLE_EV_HANDOFF,            /* another is ready to lead next, as an operator asked */
    LIFECYCLE_EV_STAND_ASIDE,        /* one behind is to lead next */
    LIFECYCLE_EV_STOP,               /* the process is asked to end; fed again until it has */
    LIFECYCLE_EV_DRAINED,            /* in-flight work is finished or abandoned */
    LIFECYCLE_EV_RELEASED,           /* fence row marked, node gone (or its session given up) */
};
#define LIFECYCLE_EVENTS ((size_t)LIFECYCLE_EV_RELEASED + 1)

enum lifecycle_guard {
    LIFECYCLE_ALWAYS,
    LIFECYCLE_WITH_NODE, /* a candidate node exists or may exist */
    LIFECYCLE_WITHOUT_NODE,
    LIFECYCLE_WITH_SESSION,
    LIFECYCLE_WITHOUT_SESSION,
    LIFECYCLE_STOPPING, /* a stop was asked for */
    LIFECYCLE_HOLDING,  /* a hold was found */
};

/* What the shell must do now; a bit set, carried out in this order. */
enum lifecycle_command {
    LIFECYCLE_DO_CANCEL = 1 << 0,        /* cancel the running statement */
    LIFECYCLE_DO_STOP_RELAY = 1 << 1,    /* end the relay now */
    LIFECYCLE_DO_NOTE = 1 << 2,          /* diary entry with the reason */
    LIFECYCLE_DO_WITHDRAW = 1 << 3,      /* delete the own node, do not wait */
    LIFECYCLE_DO_BACKOFF = 1 << 4,       /* wait with jitter, then BACKOFF_OVER */
    LIFECYCLE_DO_AWAIT_SESSION = 1 << 5, /* SESSION_UP as soon as there is one */
    LIFECYCLE_DO_MEET = 1 << 6,          /* ask the database about the ensemble and holds */
    LIFECYCLE_DO_ENROLL = 1 << 7,        /* create a candidate node under a fresh GUID */
    LIFECYCLE_DO_WARM = 1 << 8,          /* keep a database connection ready */
    LIFECYCLE_DO_ESTABLISH = 1 << 9,
    LIFECYCLE_DO_PREPARE = 1 << 10,
    LIFECYCLE_DO_LEAD = 1 << 11,    /* start the relay, begin to plan */
    LIFECYCLE_DO_DRAIN = 1 << 12,   /* let the relay finish, bounded; then DRAINED */
    LIFECYCLE_DO_RELEASE = 1 << 13, /* mark the fence row if it is ours, delete the node */
};
#define LIFECYCLE_COMMANDS 14

/* Why ACTIVE (or the way to it) was left: the vocabulary of the diary. */
enum lifecycle_reason {
    LIFECYCLE_REASON_NONE,
    LIFECYCLE_REASON_STOPPED,
    LIFECYCLE_REASON_HANDOFF,
    LIFECYCLE_REASON_SUSPENDED,
    LIFECYCLE_REASON_SESSION_EXPIRED,
    LIFECYCLE_REASON_NODE_LOST,
    LIFECYCLE_REASON_LEASE_EXPIRED,
    LIFECYCLE_REASON_FENCED,
    LIFECYCLE_REASON_DATABASE_UNHEALTHY,
    LIFECYCLE_REASON_STUCK,
    LIFECYCLE_REASON_CLOCK_SUSPECT,
    LIFECYCLE_REASON_PREPARE_FAILED,
    LIFECYCLE_REASON_DATABASE_MOVED, /* restarted, failed over or replaced: established again */
    LIFECYCLE_REASON_HELD,           /* a hold row appeared while leading */
};
#define LIFECYCLE_REASONS ((size_t)LIFECYCLE_REASON_HELD + 1)

enum lifecycle_write {
    LIFECYCLE_WRITES_NOTHING,
    LIFECYCLE_WRITES_ESTABLISH, /* only the establish call */
    LIFECYCLE_WRITES_FENCED,    /* protected writes, until lease_until */
    LIFECYCLE_WRITES_RELEASE,   /* only the release of the fence row */
};

/* One edge (or, where next == state, one reaction without leaving the state). */
struct lifecycle_row {
    enum lifecycle_state state;
    enum lifecycle_event event;
    enum lifecycle_guard guard;
    enum lifecycle_state next;
    unsigned commands;            /* LIFECYCLE_DO_* */
    enum lifecycle_reason reason; /* NONE keeps the last one */
    const char *comment;          /* the log line of the transition */
};

struct lifecycle_meaning {
    enum lifecycle_state state;
    enum lifecycle_write write;
    const char *meaning;
};

/* The machine's memory. Zero-initialised it is DOWN with nothing. */
struct lifecycle {
    enum lifecycle_state state;
    bool session;
    bool node;     /* own candidate node exists or may exist */
    bool stopping; /* sticky */
    bool holding;
    enum lifecycle_reason reason;
};

struct lifecycle_outcome {
    enum lifecycle_state from;
    const struct lifecycle_row *row; /* NULL: the event means nothing in this state */
    unsigned commands;
};

/* Advance by one event. The first row whose state, event and guard fit is taken; an event without
 * a row changes at most the memory (session, node, stopping, holding). Never fails. */
struct lifecycle_outcome lifecycle_step(struct lifecycle *l, enum lifecycle_event event);

/* The table, for printing and tests: NULL past the end. */
const struct lifecycle_row *lifecycle_row_at(size_t index);
const struct lifecycle_meaning *lifecycle_meaning_of(enum lifecycle_state state);

/* May protected writes other than establish and release be made in this state (while the lease
 * holds)? */
bool lifecycle_may_write(enum lifecycle_state state);

const char *lifecycle_state_name(enum lifecycle_state state);
const char *lifecycle_event_name(enum lifecycle_event event);
const char *lifecycle_reason_name(enum lifecycle_reason reason);
const char *lifecycle_guard_name(enum lifecycle_guard guard);
const char *lifecycle_write_name(enum lifecycle_write write);

enum lifecycle_format {
    LIFECYCLE_TEXT,     /* for a terminal */
    LIFECYCLE_MARKDOWN, /* for docs/ */
};

/* The states and the edges, for people. */
void lifecycle_print(FILE *to, enum lifecycle_format format);

#endif
