/* The scheduler's database in memory: the tables of sql/ and one C function for each function
 * there, of the same name. Calls are serial, so what SQL does with locks is done by their order.
 *
 * Everything is plain data, so that the whole is copied for a standby that lags and put back when
 * it is promoted. Every change of a row is told to the history, then the call with its verdict. */
#ifndef RS_SIMULATE_DATABASE_H
#define RS_SIMULATE_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "authority.h"
#include "history.h"
#include "ident.h"
#include "planner.h"

#define VERSIONS_MAX    256
#define CHANGES_MAX     128
#define OCCURRENCES_MAX 2048
#define GAPS_MAX        2048
#define OUTBOX_MAX      4096
#define ATTEMPTS_MAX    8192
#define ARTIFACTS_MAX   4096
#define WORKERS_MAX     256
#define HOLDS_MAX       32
#define ENSEMBLES_MAX   16
#define CLAIM_QUEUES    HISTORY_QUEUES

struct db_fence {
    int64_t incarnation, generation;
    char owner[UUID_TEXT_MAX]; /* "": NULL */
    bool released;
    int64_t beat_at, reap_not_before;
    uint64_t established_on; /* the server's start; 0: nobody has looked yet */
};

struct db_version {
    int schedule, version;
    int64_t effective_from;
    struct recipe recipe;
};

struct db_change {
    bool used;
    int64_t id;
    int schedule, version;
};

struct db_progress {
    bool used;
    int version;
    int64_t step;
    int64_t next_fire_at, last_fire_at, switched_at; /* HISTORY_NONE: NULL */
    bool has_next_nominal, has_last_nominal;
    int64_t next_nominal_s, last_nominal_s;
    char key_form[8];
    bool problem;
};

struct db_occurrence {
    int schedule, version;
    char key[KEY_MAX_BYTES];
    int64_t scheduled_for;
    enum occurrence_cause cause;
};

/* Of the same index as its occurrence. */
struct db_job {
    char id[UUID_TEXT_MAX];
    int scope, queue;
    enum job_state state;
    enum job_waits waits;
    enum overlap_policy overlap;
    bool catch_up, cancel_requested;
    int64_t run_after, claimed_at, lease_until;
    int attempt, handed_back, max_attempts;
    int64_t retry_base, retry_cap, timeout;
    char token[UUID_TEXT_MAX]; /* "" unless running */
    int worker;                /* -1 unless running */
    int dispatch_number;
};

struct db_gap {
    int64_t id;
    int schedule, version;
    int64_t from, to, firings;
    enum gap_cause cause;
};

struct db_outbox {
    bool used;
    int64_t id;
    int scope;
    size_t job;
    int dispatch_number;
    int64_t generation, created_at;
};

/* catch_up_release, of all queues together: no queue has a budget of its own here. */
#define RELEASES_MAX 64
struct db_release {
    int64_t second; /* microseconds; jobs 0: free */
    int jobs;
};

struct db_attempt {
    size_t job;
    int attempt;
    char token[UUID_TEXT_MAX];
    bool lost; /* outcome = 'lost' */
};

struct db_artifact {
    size_t job;
    int attempt;
    char path[256];
};

enum db_worker_state {
    WORKER_ALIVE,
    WORKER_DRAINING,
    WORKER_STOPPED,
    WORKER_DEAD,
};

struct db_worker {
    char id[UUID_TEXT_MAX];
    enum db_worker_state state;
    int64_t claim_lease, heartbeat_at;
};

enum db_cause {
    CAUSE_OPERATOR,
    CAUSE_ZXID_REGRESSED,
    CAUSE_DATABASE_REWOUND,
};

struct db_hold {
    bool lifted;
    int scope; /* -1: the installation */
    enum db_cause cause;
    char mark[UUID_TEXT_MAX]; /* REWOUND: the job that should be known */
    int64_t since;
};

struct db_ensemble {
    char id[64];
    int64_t incarnation;
};

struct database {
    struct db_fence fences[HISTORY_SCOPES];
    struct db_release releases[HISTORY_SCOPES][RELEASES_MAX];
    int schedule_scope[HISTORY_SCHEDULES];
    int schedules;
    struct db_version versions[VERSIONS_MAX];
    size_t version_count;
    struct db_change changes[CHANGES_MAX];
    int64_t next_change;
    struct db_progress progress[HISTORY_SCHEDULES];
    struct db_occurrence occurrences[OCCURRENCES_MAX];
    struct db_job jobs[OCCURRENCES_MAX];
    size_t job_count;
    struct db_gap gaps[GAPS_MAX];
    size_t gap_count;
    int64_t next_gap;
    struct db_outbox outbox[OUTBOX_MAX];
    size_t outbox_count;
    int64_t next_outbox;
    struct db_attempt attempts[ATTEMPTS_MAX];
    size_t attempt_count;
    struct db_artifact artifacts[ARTIFACTS_MAX];
    size_t artifact_count;
    struct db_worker workers[WORKERS_MAX];
    size_t worker_count;
    struct db_hold holds[HOLDS_MAX];
    size_t hold_count;
    struct db_ensemble ensembles[ENSEMBLES_MAX];
    size_t ensemble_count;
    char refused[64]; /* ensemble_refused: the one met last; "": none */
};
extern struct database db;

/* One call: what it brings, and what is told of it. */
struct transaction {
    int64_t call;
    enum call_op op;
    int node;
    struct authority authority;
    int scope;   /* -1: none */
    int64_t now; /* clock_timestamp() at its begin */
};

void database_reset(void);
int64_t database_now(void); /* the server's clock, UTC microseconds */
void database_step_clock(int64_t by_us);

/* Telling (database_tell.c). */
void tell_ensemble(const struct transaction *t, const struct db_ensemble *e);
void tell_fence(const struct transaction *t, int scope);
void tell_pulse(const struct transaction *t, int scope);
void tell_version(const struct transaction *t, const struct db_version *v);
void tell_progress(const struct transaction *t, int schedule);
void tell_occurrence(const struct transaction *t, size_t i);
void tell_job(const struct transaction *t, size_t i);
void tell_gap(const struct transaction *t, const struct db_gap *g);
void tell_outbox(const struct transaction *t, const struct db_outbox *o);
void tell_outbox_gone(const struct transaction *t, const struct db_outbox *o);
void tell_attempt(const struct transaction *t, size_t job, int attempt, const char *token,
                  const char *worker, enum job_state became);
void tell_artifact(const struct transaction *t, size_t job, int attempt, const char *token);
void tell_hold(const struct transaction *t, size_t i);
void tell_call(const struct transaction *t, enum call_verdict verdict);

/* sql/0003_authority.sql (database_fence.c) */
bool fence_holds(struct transaction *t);
bool is_held(int scope);
int raise_hold(struct transaction *t, int scope);
void lift_hold(struct transaction *t, int id);
enum db_meeting {
    MEETING_KNOWN,
    MEETING_ADOPTED,
    MEETING_UNKNOWN,
    MEETING_RETIRED,
};
enum db_meeting ensemble_meet(struct transaction *t, const char *ensemble,
                              int64_t *ret_incarnation);
bool is_moved(int scope); /* v_moved_scope */
/* The newest of the jobs that this database should know and does not; NULL: none. */
const char *job_not_known(int scope, const char *const *jobs, size_t count);
bool prove_regressed(struct transaction *t, int64_t read);
/* marks: two, "" is none. */
enum call_verdict establish(struct transaction *t, const char *const *marks);
/* ERROR: moved. */
enum call_verdict register_backend(struct transaction *t, const char *mark);
enum call_verdict activated(struct transaction *t);
enum call_verdict release(struct transaction *t);
bool beat(struct transaction *t, int scope, bool stepped, bool step_known);
int64_t lease_longest(void);
int64_t lease_clock(const struct transaction *t, int scope); /* v_lease_clock */
/* An operator's rebase, by force, of what is refused or numbers from lower down; false: nothing is.
 */
bool rebase(void);
/* An operator lifts what the guard against a rewound database has raised. */
void lift_rewound(int64_t older_than_us);

/* sql/0005_planning.sql (database_plan.c, database_edit.c) */
const struct db_version *version_of(int schedule, int version);
int schedule_find(const char *name);
void schedule_name(int schedule, char ret_name[NAME_MAX_BYTES]);
size_t occurrence_find(int schedule, const char *key); /* job_count: none */
void edit(int schedule, int scope, const struct recipe *recipe);

struct taken_edit {
    int64_t change, step;
    int schedule, version;
    bool has_progress;
    int64_t switched_at, next_fire_at;
    bool has_next;
    int64_t next_nominal_s;
    char key_form[8];
    bool problem, taken;
};
enum call_verdict take_in(struct transaction *t, struct taken_edit *rows, size_t count);

struct planned_entry {
    int schedule, version;
    int64_t step;
    bool has_next, has_next_nominal, has_last, advanced;
    int64_t next_fire_at, next_nominal_s, last_fire_at, last_nominal_s;
};
struct planned_row { /* a firing */
    int schedule;
    char key[KEY_MAX_BYTES], job[UUID_TEXT_MAX];
    int64_t fire_at;
    enum occurrence_cause cause;
};
struct planned_hole { /* a gap */
    int schedule;
    int64_t from, to, firings;
    enum gap_cause cause;
};
struct planned {
    struct planned_entry *entries;
    size_t entry_count;
    struct planned_row *rows;
    size_t row_count;
    struct planned_hole *holes;
    size_t hole_count;
    char known[UUID_TEXT_MAX]; /* "": none */
    int made;                  /* answer */
    char newest[UUID_TEXT_MAX];
    bool some_wait;
    bool too_early; /* RS004 */
    bool moved;     /* `known` is forgotten */
};
enum call_verdict plan_batch(struct transaction *t, struct planned *p);
/* OK, FENCED; ERROR: changed. */
enum call_verdict mark_problem(struct transaction *t, int schedule, int64_t step);

/* sql/0006_tending.sql (database_tend.c) */
size_t open_jobs(int schedule, size_t *ret_jobs, size_t most);
void replace_jobs(struct transaction *t, size_t newest);
void adopt_overlap(struct transaction *t, int schedule, enum overlap_policy overlap);
int release_waiting(struct transaction *t, int limit);
struct tended_world {
    int64_t clock_from, clock_to; /* HISTORY_NONE: not known */
    int limit;
    int released, reaped, held_back, running;
    int64_t next_release;
    bool stepped, beaten;
    char known[UUID_TEXT_MAX]; /* "": none */
    bool moved;                /* `known` is forgotten */
};
enum call_verdict tend(struct transaction *t, struct tended_world *w);
int64_t retry_delay(int64_t base, int64_t cap, int attempt);
struct db_outbox *outbox_add(struct transaction *t, size_t job);

/* sql/0007_outbox.sql (database_claims.c) */
enum call_verdict outbox_ack(struct transaction *t, const int64_t *ids, size_t count);
enum call_verdict outbox_bury(struct transaction *t, int64_t id, bool *ret_buried);

/* sql/0008_claims.sql (database_claims.c) */
int worker_find(const char *id); /* -1: none */
bool worker_register(struct transaction *t, const char *id);
void worker_leave(const char *id, bool stopped);
/* False: the incarnation has ended (RS005). */
bool claimable_worker(const char *id, bool *ret_may);
size_t claim(struct transaction *t, int worker, const size_t *jobs, size_t count);
size_t claim_ids(struct transaction *t, int worker, const char (*ids)[UUID_TEXT_MAX], size_t count,
                 size_t *ret_jobs);
size_t claim_ready(struct transaction *t, int worker, size_t limit, size_t *ret_jobs);
size_t claims_of(int worker, size_t *ret_jobs, size_t most);
bool claim_is_held(int scope);   /* then claims_of withholds its token */
size_t job_find(const char *id); /* job_count: none */
bool heartbeat(struct transaction *t, const char *worker, const char (*ids)[UUID_TEXT_MAX],
               const char (*tokens)[UUID_TEXT_MAX], size_t count, bool *ret_held, bool *ret_cancel);
enum reported {
    REPORTED_SUCCEEDED,
    REPORTED_FAILED,
    REPORTED_TIMEOUT,
    REPORTED_CANCELLED,
    REPORTED_HANDED_BACK,
};
struct reported_outcome {
    char job[UUID_TEXT_MAX], token[UUID_TEXT_MAX];
    enum reported outcome;
    bool retryable, has_artifact;
    char path[256];
    enum {
        REPORT_DONE,
        REPORT_ALREADY,
        REPORT_LOST
    } verdict;            /* answer */
    enum job_state state; /* of a done one */
};
void record_outcomes(struct transaction *t, struct reported_outcome *list, size_t count);
/* sql/0014_release_claims.sql: release_claims, a name that the worker has. Returns how many jobs.
 */
int release_all_claims(struct transaction *t, const char *worker);

/* May the file be removed? (unreferenced) */
bool unreferenced(const char *job, const char *token, const char *path);

#endif
