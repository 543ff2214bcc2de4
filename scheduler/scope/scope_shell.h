/* Inside of a scope's thread. Included by scope*.c only. */
#ifndef RS_SCOPE_SHELL_H
#define RS_SCOPE_SHELL_H

#include <pthread.h>
#include <stdatomic.h>

#include "authority.h"
#include "backoff.h"
#include "inbox.h"
#include "lease.h"
#include "planning.h"
#include "relay.h"
#include "scope.h"
#include "stall.h"
#include "store.h"
#include "store_candidate.h"
#include "store_fence.h"

struct scope {
    struct scope_options options;
    char application_name[64], relay_name[64];
    struct store_identity identity; /* of the database: the scope's and the relay's connections */
    unsigned number;                /* at coord */
    struct inbox *events;           /* struct coord_event */
    struct inbox *control;          /* int: a wake-up, nothing more */
    const struct lease *lease;
    pthread_t thread;
    bool started;
    atomic_bool stop_asked, stuck_told;
    _Atomic int64_t establish_ms, unhealthy_ms, drain_ms; /* in force; the options' at first */
    _Atomic int64_t turned_ns;
    struct stall stall; /* of the loop */

    pthread_mutex_t store_mutex; /* protects `store`: replaced by the owner, cancelled by others.
                                    Held across the cancel, since the connection must stay. */
    struct store *store;

    pthread_mutex_t view_mutex; /* protects the two below */
    struct scope_snapshot view;
    struct relay *relay; /* replaced by the owner, read by others: held while they do */

    /* Below: scope thread only. */
    struct lifecycle life;
    enum lifecycle_event follow_up; /* an event that carrying out a command produced */
    bool has_follow_up;
    uint32_t session; /* coord's number; 0: none */
    bool suspended;   /* ZooKeeper does not answer; the session may live or not */
    char ensemble[COORD_ENSEMBLE_MAX];
    uint32_t attempt;
    bool meet_wanted, withdraw_sent;
    struct authority authority;
    bool established; /* the fence row accepted `authority` at least once: there is something to
                         release */
    unsigned ahead;
    struct fence_row read;               /* the fence row before the own node was asked for */
    bool root_asked, root_here;          /* whose the root is, for this look */
    char root_owner[COORD_ENSEMBLE_MAX]; /* as told last in this session; "": not yet */
    bool mark_asked, mark_here;
    char mark[UUID_TEXT_MAX];         /* ZooKeeper's, when mark_here; "": none */
    char acknowledged[UUID_TEXT_MAX]; /* the newest job that this process was told is written */
    char remembered[UUID_TEXT_MAX];   /* the same at the last look at the fence row; "": none */
    bool moved; /* the connection leads to another server than the one established on */
    struct planning *planning;
    bool notified;

    unsigned failures, store_failures, prepare_failures;
    instant backoff_until;
    instant store_retry_at;
    struct error store_trouble; /* why there is no connection */
    instant healthy_at;         /* last successful statement, or when we began to care */
    instant work_at;            /* the state's own next wish */
    instant state_since;        /* entering the state */
    instant state_until;        /* bound of the state's work, where it has one */
    instant prepare_began;
    instant look_at; /* when to look at the fence row again */
    instant ping_at;
    bool leave; /* a handoff: the successor is ready */
    enum candidate_wish wish;
    bool wish_confirmed;   /* that we can take over, as far as we know */
    instant warmed_at;     /* planning, for a successor; 0: not */
    instant wish_lease;    /* its end when we were named */
    unsigned follow_ahead; /* what was told last */
    bool follow_suspended; /* the same */
    instant follow_at;     /* when to tell again */
    char problem[SCOPE_PROBLEM_MAX];
};

/* scope.c */
void scope_feed(struct scope *s, enum lifecycle_event event);
void scope_mark_turn(struct scope *s);
void scope_set_problem(struct scope *s, const char *what, const struct error *err);

/* scope_store.c */
#define SCOPE_RETRY_MS 200
#define SCOPE_PING_MS  5000 /* a follower's connection is tried this often */

instant scope_in_ms(int64_t ms);
instant scope_statement_deadline(const struct scope *s);
/* Does the lease hold now? Asked before each statement that leads (I8). */
bool scope_may_decide(const struct scope *s);
/* Have a working connection, opening one when it is time to (store_retry_at).
 * Returns: OK; FENCED: ours is not the accepted generation any more; others: not now. err, always:
 * why the last try failed. */
MUST_USE enum status scope_have_store(struct scope *s, struct error *err);
void scope_close_store(struct scope *s);
void scope_database_works(struct scope *s);
/* A statement failed: remember why; the caller decides by the status. */
void scope_statement_failed(struct scope *s, const char *what, const struct error *err);
/* No success for longer than the bound: fed DATABASE_UNHEALTHY. */
bool scope_gave_database_up(struct scope *s);

/* scope_guard.c: what tells a restored ensemble, a database that forgot something, and a clock that
 * cannot be trusted. */
/* Before the database is asked: is it known whose zookeeper_root is? False: the answer comes. */
bool scope_knows_root(struct scope *s);
void scope_take_root(struct scope *s, const struct coord_event *e);
/* Another installation's? *err says so then, and it is recorded for people. Returns: OK; AGAIN,
 * TIMEOUT. */
MUST_USE enum status scope_root_is_taken(struct scope *s, bool *ret_taken, struct error *err);
/* The own node's number is known: is it one that a restored ensemble gives? True: it was proved,
 * and recorded. */
bool scope_prove_regressed(struct scope *s);
void scope_ask_mark(struct scope *s);
void scope_take_mark(struct scope *s, const char *mark);
/* Leading: does the database still know what was planned before the last look? Returns: OK;
 * FENCED; AGAIN, with `moved` set when it does not; others: as fence_register. */
MUST_USE enum status scope_look_back(struct scope *s, struct error *err);
/* Before planning_prepare: what establish has found there, planning asks for. */
void scope_tell_planning(struct scope *s);
/* Planning was refused since the database has forgotten what it knew: sets `moved`. */
void scope_planning_forgot(struct scope *s);
/* A batch is written: remember it, here and in ZooKeeper. */
void scope_acknowledge(struct scope *s, const char *job);
/* Another server answered: fed DATABASE_MOVED. */
bool scope_has_moved(struct scope *s);
/* The database's clock is suspect: fed CLOCK_SUSPECT. */
bool scope_distrusts_clock(struct scope *s);
/* Before the first write of a leadership: read the clock. Returns: as store_clock; AGAIN: it is
 * suspect. */
MUST_USE enum status scope_compare_clock(struct scope *s, struct error *err);

/* scope_handoff.c: what a replica that does not lead tells the others, and is asked. */
/* FOLLOWING, with a store. Returns when it wants to be called again; now: an event was fed. */
instant scope_follow(struct scope *s);
/* FOLLOWING begins. */
void scope_follow_anew(struct scope *s);
void scope_tell_held(struct scope *s, const char *why);

/* scope_work.c: what each state does in one turn; returns when it wants the next. */
instant scope_work(struct scope *s);

/* scope_command.c */
void scope_carry_out(struct scope *s, const struct lifecycle_outcome *outcome);
void scope_begin_relay(struct scope *s);
void scope_warm_planning(struct scope *s); /* of one that is to lead soon */
void scope_end_relay(struct scope *s, instant deadline);

#endif
