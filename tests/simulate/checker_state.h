/* What the checker's files share: the rows as they should be now, what each node is known to do,
 * and where the verdict is noted. Private to checker*.c. */
#ifndef RS_CHECKER_STATE_H
#define RS_CHECKER_STATE_H

#include "checker.h"
#include "enumerate.h"

#define VERSIONS_MAX 64
#define BEATS_MAX    64
#define RUNS_MAX     256

/* Numbers to positions; a missing one is SIZE_MAX. */
struct index {
    uint64_t *keys; /* 0: free */
    size_t *values;
    size_t count, room;
};
size_t index_find(const struct index *x, uint64_t key);
void index_put(struct index *x, uint64_t key, size_t value);
void index_clear(struct index *x);
void index_free(struct index *x);
void *rows_grow(void *rows, size_t count, size_t *room, size_t size);

/* Rows ----------------------------------------------------------------------------------------- */

struct fence_row {
    int64_t incarnation, generation;
    uint64_t owner;
    bool released;
};

struct version_row {
    int version;
    int64_t effective_us, switched_us; /* switched: HISTORY_NONE until it was taken in */
    const struct recipe *recipe;
};

struct progress_row {
    bool present, problem;
    int version;
    int64_t step, last_us, next_us;
};

struct occurrence_row {
    int64_t fire_us;
    uint64_t job;
    int version;
    enum occurrence_cause cause;
    char key[HISTORY_KEY_MAX];
};

struct gap_row {
    int64_t id, from_us, to_us, firings;
    int version;
    enum gap_cause gap;
};

struct schedule_rows {
    int scope;
    struct version_row versions[VERSIONS_MAX];
    size_t version_count;
    struct progress_row progress;
    struct progress_row was; /* before the call that is judged, and up to where its version had
                              * dealt with everything (HISTORY_NONE: not known) */
    int64_t was_covered_us;
    struct occurrence_row *occurrences;
    size_t occurrence_count, occurrence_room;
    struct gap_row *gaps;
    size_t gap_count, gap_room;
};

struct job_row {
    uint64_t job, token, worker;
    int schedule, scope, queue, attempt;
    enum job_state state;
    enum job_waits waits;
    enum overlap_policy overlap;
    int64_t lease_us, run_after_us;
    bool catch_up;
    bool artifact;               /* a visible one */
    bool was_queued, was_active; /* before the call that changed it last */
    int64_t call;                /* that one */
    int64_t ready_us;            /* true time at which it was made, or left waiting */
};

struct outbox_row {
    int64_t id;
    uint64_t job;
    bool present;
};

struct hold_row {
    int64_t id;
    int scope;
    bool lifted;
};

struct tables {
    struct fence_row fences[HISTORY_SCOPES];
    int64_t reap_not_before[HISTORY_SCOPES];
    struct schedule_rows schedules[HISTORY_SCHEDULES];
    struct index keys; /* hash of (schedule, key) to position in its occurrences */
    struct job_row *jobs;
    size_t job_count, job_room;
    struct index job_index;
    struct outbox_row *outbox;
    size_t outbox_count, outbox_room;
    struct index outbox_index;
    struct hold_row holds[64];
    size_t hold_count;
    int64_t incarnations[64];
    size_t incarnation_count;
};

struct version_row *version_row_find(struct schedule_rows *s, int version);
const struct occurrence_row *occurrence_row_find(const struct tables *t, int schedule,
                                                 const char *key);
const struct gap_row *gap_over(const struct schedule_rows *s, int64_t fire_us);
struct job_row *job_row_find(const struct tables *t, uint64_t job);
struct outbox_row *outbox_row_find(const struct tables *t, int64_t id);
bool scope_held(const struct tables *t, int scope);
bool job_is_open(const struct job_row *j);
/* It occupies its schedule: open, and not waiting for the policy. */
bool job_is_active(const struct job_row *j);

/* Make the row as the fact says. */
void tables_apply(struct tables *t, const struct fact *row);
void tables_clear(struct tables *t);
void tables_free(struct tables *t);

/* Nodes ---------------------------------------------------------------------------------------- */

struct beat {
    int64_t number, sent_us;
};

struct node {
    bool alive, disconnected;
    bool paused;     /* or woke at woke_us, true time: it has not been able to react yet */
    int64_t woke_us; /* HISTORY_NONE: it was never stopped */
    bool lapsed;     /* the connection came back, and by then the lease before it had run out */
    int64_t disconnected_us;           /* node clock; when `disconnected` */
    int64_t session, session_since_us; /* 0: none; node clock: since when */
    int64_t deadline_us;               /* node clock; HISTORY_NONE: no lease */
    struct beat beats[BEATS_MAX];
    size_t beat_count; /* ever; the ring holds the last ones */
    struct {
        enum node_state state, before; /* before: until since_us of the node's clock */
        int64_t since_us;
        int64_t generation; /* of its node; 0: none */
        bool behind;        /* the mark said that the database is behind */
        int64_t withdrawn_generation;
        int64_t fenced[2]; /* generation that was told so: to the scope's thread, to its relay */
    } scopes[HISTORY_SCOPES];
};

struct candidate_row {
    int scope, node;
    int64_t session, incarnation, czxid;
    bool gone;
    bool ended;   /* it went other than by a rebuild or a rewinding of the ensemble */
    bool revived; /* ... and is back by one: who was told that it went is not wrong */
};

struct call_record {
    enum call_op op;
    int node, scope;
    int64_t incarnation, generation;
    uint64_t owner;
    bool sent, done, answered, lost, fenced;
};

struct run {
    uint64_t job, token;
    int node;
    bool excused; /* the commit it stands on was lost in a failover */
};

struct checker {
    const struct history *h;
    const struct setup *setup;
    size_t judged;    /* facts so far */
    size_t rows_from; /* where the rows of the next call begin */
    struct violation violation;
    bool failed;
    struct checker_tally tally;

    struct tables tables;
    struct node nodes[HISTORY_NODES];
    struct candidate_row *candidates;
    size_t candidate_count, candidate_room;
    struct call_record *calls; /* by number */
    size_t call_count, call_room;
    struct run runs[RUNS_MAX];
    size_t run_count;
    struct index asked_of; /* (call, job, token) of pairs to renew */
    struct index
        produced; /* (node, id) to the job of the message it published last under that id */
    struct index report_of; /* (node, id, job) of good delivery reports */
    struct index lost_tokens;
    int64_t losses_to_come;
    struct {
        int64_t at_us[BUDGET_MOST]; /* a ring: true time of the last releases of missed firings */
        int64_t count;
    } releases[HISTORY_SCOPES];
    int64_t latest_db_us;   /* the latest that the database clock ever showed */
    int64_t faults_over_us; /* true time; HISTORY_NONE: not yet */
    bool rebuilt;           /* this ensemble's life ended without expiry */
};

/* Note the first violation; later ones follow from it. */
void blame(struct checker *c, const char *invariant, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

uint64_t hash_mix(uint64_t a, uint64_t b);

struct call_record *call_find(struct checker *c, int64_t number);

/* A call with its rows, before they are applied to the tables, and after. */
struct transaction {
    const struct fact *call;
    size_t from, to; /* facts of the history: only rows of this call count */
};
/* The next row at or after *position; NULL: none. */
const struct fact *transaction_row(const struct checker *c, const struct transaction *x,
                                   size_t *position);

void authority_before(struct checker *c, const struct transaction *x);
void authority_fact(struct checker *c, const struct fact *f);
void plan_before(struct checker *c, const struct transaction *x);
void plan_after(struct checker *c, const struct transaction *x);
void work_before(struct checker *c, const struct transaction *x);
void work_after(struct checker *c, const struct transaction *x);
void work_fact(struct checker *c, const struct fact *f);
/* The database clock was set, or commits were lost: what was released counts no more. */
void work_budget_begins(struct checker *c);
void end_judge(struct checker *c, const struct fact *f);

#endif
