/* What happened in a simulated cluster: the only thing that the world and the checker share.
 *
 * The world (simulated shells and services around the product's pure code) adds a fact for all that
 * an all-seeing observer could see; the checker reads facts and knows nothing else. A fact says
 * what happened, never whether it was right, and never what the code under test believes about a
 * rule.
 *
 * Times. `at_us` is true time, simulated microseconds since the start, never seen by a node.
 * `node_us` is what the node's own boot-time clock shows then (skewed, drifting, going on while the
 * process is paused). `db_us` is what the database clock shows (may be stepped). A fact carries
 * those that its comment names; at_us always.
 *
 * Calls. Each call of a protected or claim-guarded function has a number of its own, also when it
 * repeats another: DECIDED, SENT, then in the store its ROW_ facts and, last, CALL with the verdict
 * (that is the commit; a call that failed has no rows), then ANSWERED. Calls of the store never
 * overlap, so the rows stand between the CALL before and their own. Calls are numbered from 1
 * without holes. db_us and all times in rows are microseconds since 1970, UTC, as the product's. */
#ifndef RS_HISTORY_H
#define RS_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HISTORY_SCHEDULERS   8 /* nodes 0 to 7 */
#define HISTORY_WORKERS      8 /* nodes 8 to 15: HISTORY_WORKERS_FROM + n */
#define HISTORY_WORKERS_FROM HISTORY_SCHEDULERS
#define HISTORY_NODES        (HISTORY_SCHEDULERS + HISTORY_WORKERS)
#define HISTORY_SCOPES       4
#define HISTORY_SCHEDULES    64
#define HISTORY_QUEUES       4
#define HISTORY_KEY_MAX      48
#define BUDGET_MOST          8         /* catch_up_per_minute */
#define HISTORY_NONE         INT64_MIN /* no time: SQL's NULL */

/* The states of docs/lifecycle.md in that order; the world maps the product's own. */
enum node_state {
    STATE_DOWN,
    STATE_CONNECTING,
    STATE_HELD,
    STATE_ENROLLING,
    STATE_FOLLOWING,
    STATE_ESTABLISHING,
    STATE_PREPARING,
    STATE_ACTIVE,
    STATE_SUSPENDED,
    STATE_DRAINING,
    STATE_RELEASING,
    STATE_STOPPED,
};

/* One C function of the fake store for each function of the same name in sql/. */
enum call_op {
    OP_NONE,
    OP_ENSEMBLE_MEET,
    OP_ESTABLISH,
    OP_ACTIVATE,
    OP_TERMINATE_OLDER,
    OP_REGISTER,
    OP_RELEASE_FENCE, /* the function that marks the fence row released */
    OP_TAKE_IN,
    OP_PLAN_BATCH,
    OP_MARK_PROBLEM,
    OP_TEND,
    OP_OUTBOX_ACK,
    OP_OUTBOX_BURY,
    OP_OUTBOX_TRIM,
    OP_ANSWER_REQUEST,
    OP_WORKER_REGISTER,
    OP_CLAIM_IDS,
    OP_CLAIM_READY,
    OP_HEARTBEAT,
    OP_RECORD_OUTCOMES,
    OP_RELEASE_CLAIMS,
    OP_RAISE_HOLD,
    OP_LIFT_HOLD,
    OP_EDIT, /* a user's INSERT, UPDATE or DELETE of a schedule */
};

enum call_verdict {
    VERDICT_OK,
    VERDICT_FENCED,     /* or superseded */
    VERDICT_HELD,       /* a hold stands */
    VERDICT_ERROR,      /* raised: nothing was written */
    VERDICT_TERMINATED, /* ended in the server (cancelled, backend ended, server died) before its
                           commit */
};

enum candidate_end {
    CANDIDATE_DELETED, /* by its owner */
    CANDIDATE_EXPIRED, /* its session ended in the ensemble */
    CANDIDATE_REMOVED, /* by an operator */
    CANDIDATE_REWOUND, /* not there any more after a rebuild or a restore of the ensemble */
};

enum job_state {
    JOB_WAITING,
    JOB_QUEUED,
    JOB_RUNNING,
    JOB_RETRY_WAIT,
    JOB_SUCCEEDED,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_QUARANTINED,
};

enum job_waits {
    WAITS_FOR_NOTHING,
    WAITS_FOR_OVERLAP,
    WAITS_FOR_CAPACITY,
};

enum overlap_policy {
    OVERLAP_ALLOW,
    OVERLAP_FORBID,
    OVERLAP_QUEUE,
    OVERLAP_REPLACE,
};

enum gap_cause {
    GAP_BY_SKIP,
    GAP_BY_LATEST,
    GAP_BY_MAX,
    GAP_BY_AGE,
    GAP_BY_PROBLEM,
    GAP_BY_PAUSE,
    GAP_BY_FORBID,    /* overlap_forbid */
    GAP_BY_TAKEN_KEY, /* key_taken */
};

enum occurrence_cause {
    CAUSE_SCHEDULE,
    CAUSE_MISFIRE,
    CAUSE_EDIT,
    CAUSE_MANUAL,
    CAUSE_BACKFILL,
};

/* A schedule's rule in words that product and checker turn into firings each by its own arithmetic.
 * Times of day are of the zone; Berlin: UTC+1, from the last Sunday of March 01:00 UTC to that of
 * October 01:00 UTC UTC+2 (the world's TZif data and the checker both say so for 2000 to 2099). */
enum recipe_kind {
    RECIPE_INTERVAL, /* anchor_us + n * every_us, n >= 0; key is the UTC instant */
    RECIPE_MINUTES,  /* cron, minutes 0, step, 2 step ... of each hour, `step` a divisor of 60:
                        follows the clock */
    RECIPE_DAILY,    /* cron "minute hour * * *": once a local day, first instant after a gap,
                            first of an overlap */
    RECIPE_WEEKLY,   /* cron "minute hour * * weekday" (0 Sunday); as daily */
};
enum recipe_zone {
    ZONE_UTC,
    ZONE_BERLIN,
};
struct recipe {
    enum recipe_kind kind;
    enum recipe_zone zone;
    int64_t anchor_us, every_us; /* interval */
    int step;                    /* minutes */
    int hour, minute, weekday;   /* daily, weekly */
    int64_t starts_at, ends_at;  /* HISTORY_NONE: open */
    bool paused, ended;
    int misfire_max;
    int64_t misfire_age_us, misfire_grace_us;
    enum overlap_policy overlap;
    int queue;
};

enum fact_kind {
    /* Processes. */
    FACT_STARTED, /* node */
    FACT_CRASHED, /* node: without a word */
    FACT_STOPPED, /* node: ended in order */
    FACT_PAUSED,  /* node */
    FACT_WOKE,    /* node, node_us */

    /* ZooKeeper as the ensemble sees it. */
    FACT_SESSION_MADE,     /* node, session */
    FACT_SESSION_ENDED,    /* session, node, node_us, candidate_end: committed by the ensemble
                            * (deleted:    closed by its owner) */
    FACT_CANDIDATE_MADE,   /* node, scope, session, generation = czxid, incarnation = that of the
                            * ensemble in   the order of the ensembles' lives, from 1 */
    FACT_CANDIDATE_GONE,   /* scope, generation = czxid, candidate_end */
    FACT_ENSEMBLE_REBUILT, /* empty, of a new identity: sessions and candidates are gone with it */
    FACT_ENSEMBLE_REWOUND, /* to a snapshot: sessions and candidates are made known again as they
                              are then */

    /* ... and as a client sees it. */
    FACT_SESSION_UP,    /* node, session, node_us */
    FACT_SESSION_LOST,  /* node, node_us: expired, closed or given up, as far as the node knows */
    FACT_DISCONNECTED,  /* node, node_us: seen by the node's process */
    FACT_BEAT_SENT,     /* node, session, number, node_us: the lease's quorum write leaves */
    FACT_BEAT_ANSWERED, /* node, session, number, node_us: its success is seen by the node's process
                         */
    FACT_LEASE, /* node, node_us, until_us (node clock): the code's deadline was set; HISTORY_NONE:
                   ended */

    /* A scheduler. */
    FACT_STATE, /* node, scope, node_us, was, state, generation (of the own candidate node, 0: none)
                 */

    /* Calls. */
    /* node_us of DECIDED: the last reading of its clock by the deciding thread, which is what it
     * decided by. */
    FACT_DECIDED,  /* call, op, node, scope, node_us, incarnation, generation, owner: the step that
                    * makes the call  has begun; workers' calls have none */
    FACT_SENT,     /* call, op, node, scope, incarnation, generation, owner */
    FACT_VANISHED, /* call: it will never reach the store (connection lost on the way, process gone)
                    */
    FACT_CALL,     /* call, op, node, scope, db_us, verdict, incarnation, generation, owner (what it
                      brought) */
    FACT_ANSWERED, /* call, node, node_us, known: false: given up, the outcome is not known to the
                      node */

    /* Rows of the transaction, as they are after it. `call` in each. */
    FACT_ROW_ENSEMBLE, /* incarnation, identity: accepted by the database */
    FACT_ROW_FENCE,    /* scope, incarnation, generation, owner, released */
    FACT_ROW_VERSION,  /* schedule, version, effective_us, recipe: appended by an edit */
    FACT_ROW_PROGRESS, /* schedule, scope, version, step, last_us, next_us, switched_us, problem */
    FACT_ROW_OCCURRENCE, /* schedule, scope, key, fire_us, job, version, cause, incarnation,
                            generation */
    FACT_ROW_GAP,    /* schedule, id, from_us, to_us, firings, gap, version; an extended one again,
                        same id */
    FACT_ROW_JOB,    /* job, schedule, scope, queue, key, job_state, waits, overlap, attempt, token,
                      * worker,    lease_us, run_after_us, catch_up */
    FACT_ROW_OUTBOX, /* id, job */
    FACT_ROW_OUTBOX_GONE, /* id */
    FACT_ROW_ATTEMPT,     /* job, attempt, token, worker, job_state = what became of it (succeeded,
                           * failed,     cancelled; retry_wait: lost) */
    FACT_ROW_ARTIFACT,    /* job, attempt, token: visible from now on */
    FACT_ROW_HOLD,        /* id, scope (-1: installation), lifted */
    FACT_ROW_PULSE,       /* scope, until_us = reap_not_before, by the database clock */
    FACT_RENEWED,         /* job, token, lease_us: a heartbeat has moved it */

    /* The database as a whole. */
    FACT_FAILOVER, /* number of commits lost; their LOST facts follow, then db_us of the new primary
                      goes on */
    FACT_LOST,     /* call: its commit is not in the surviving database */
    FACT_CLOCK_STEP,  /* by_us: the database clock, which showed db_us, was stepped */
    FACT_MARK_BEHIND, /* node, scope: at a takeover the mark in ZooKeeper is ahead of the surviving
                         database */

    /* Kafka. */
    FACT_PRODUCED,   /* node, id (outbox), job */
    FACT_REPORTED,   /* node, id, job, known = delivered: the delivery report is seen by the node's
                      * process
                      */
    FACT_DELIVERED,  /* node (worker), job */
    FACT_TOPIC_LOST, /* every message in it is gone */

    /* A worker. */
    FACT_RENEW_ASKED, /* call, node, job, token: one pair of a heartbeat that is being sent */
    FACT_RUN_BEGUN,   /* node, job, token */
    FACT_RUN_ENDED,   /* node, job, token: the program and all its descendants are gone */

    /* The run. */
    FACT_FAULT_BEGUN,  /* number, name */
    FACT_FAULT_HEALED, /* number, name */
    FACT_FAULTS_OVER,  /* from now on the bound of liveness counts */
    FACT_END,          /* db_us: the run is over */
};
#define FACT_KINDS ((size_t)FACT_END + 1)

/* Which fields mean something, the kind's comment says; the others are zero. */
struct fact {
    enum fact_kind kind;
    int node, scope, schedule, queue, version;
    int64_t at_us, node_us, db_us;
    int64_t call, session, number, id;
    int64_t incarnation, generation;
    uint64_t owner, job, token, worker; /* random identities, one number each; 0: none */
    enum call_op op;
    enum call_verdict verdict;
    enum node_state was, state;
    enum candidate_end candidate_end;
    enum job_state job_state;
    enum job_waits waits;
    enum overlap_policy overlap;
    enum gap_cause gap;
    enum occurrence_cause cause;
    int64_t step, last_us, next_us, switched_us, effective_us;
    int64_t from_us, to_us, firings, fire_us, until_us, lease_us, run_after_us, by_us;
    int attempt;
    bool known, released, problem, catch_up, lifted;
    char key[HISTORY_KEY_MAX];
    const struct recipe *recipe; /* ROW_VERSION: copied by history_add */
    const char *name;            /* faults: a constant */
};

/* What the run was set up with; units as the names say. Constant for a run. */
struct setup {
    int schedulers, workers, scopes, queues;
    int64_t session_ms, tick_ms, margin_ms, beat_ms;
    int64_t claim_lease_us, reap_grace_us;
    int64_t drift_ppm;                           /* of the nodes' clocks, at most, either way */
    int64_t queue_bound[HISTORY_QUEUES];         /* max_outstanding a scope; 0: none */
    int64_t catch_up_max[HISTORY_SCOPES];        /* 0: none */
    int64_t catch_up_per_minute[HISTORY_SCOPES]; /* 0: none; at most BUDGET_MOST */
    int64_t live_within_us; /* see checker.h; 0: what checker_bound() derives */
    int64_t work_within_us; /* a job is closed within it after the later of FAULTS_OVER and its
                               run_after; 0: not judged */
    bool expect_mark;       /* the mark ("Guards", docs/architecture.md) is simulated */
};

struct history;

/* Owns: history_free (NULL is fine). Aborts when out of memory, as all here: it is a test. */
struct history *history_new(const struct setup *setup);
void history_free(struct history *h);
const struct setup *history_setup(const struct history *h);

/* Append; at_us must not go back (aborts). */
void history_add(struct history *h, const struct fact *fact);

size_t history_count(const struct history *h);
/* Valid until the next history_add. */
const struct fact *history_at(const struct history *h, size_t index);

/* One line of text without a newline, for --trace and for the tail of a failing run. */
void fact_format(const struct fact *fact, char *ret_text, size_t size);
const char *fact_kind_name(enum fact_kind kind);
const char *call_op_name(enum call_op op);
const char *node_state_name(enum node_state state);
const char *job_state_name(enum job_state state);

#endif
