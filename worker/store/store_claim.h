/* What a worker asks of the database (sql/0008_claims.sql): register, claim, renew, report, and
 * what became of files. Each call is one statement on a connection of store.h, with its deadline.
 * Thread: the connection's owner. Blocks: until the deadline.
 *
 * Returns, each: OK; and besides what it names: AGAIN (transient), TIMEOUT (effect unknown),
 * INVALID with err->code "RS005" (STORE_ENDED): this worker incarnation has ended, register a new
 * one. */
#ifndef RS_STORE_CLAIM_H
#define RS_STORE_CLAIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "job.h"
#include "outcome.h"
#include "settings.h"
#include "status.h"
#include "store.h"

#define STORE_ENDED "RS005"

struct worker_identity {
    const char *id; /* random, of this incarnation */
    const char *name;
    int64_t pid;
    const char *version;
    const struct setting_list *queues;
    size_t slots;
};

/* What leader and workers must agree on. */
struct worker_agreement {
    char installation[UUID_TEXT_MAX];
    int64_t lease_ms;
};

/* Begin an incarnation; may be repeated after a lost answer. INVALID also for an unknown queue. */
MUST_USE enum status store_worker_register(struct store *store, const struct worker_identity *w,
                                           instant deadline, struct worker_agreement *ret_agreement,
                                           struct error *err);

/* state: "draining" or "stopped". */
MUST_USE enum status store_worker_leave(struct store *store, const char *worker, const char *state,
                                        instant deadline, struct error *err);

/* Claimed jobs. Owns: each job, and free(jobs). A job that cannot be read whole has a problem. */
struct job_list {
    struct job **jobs;
    size_t count;
};
void job_list_free(struct job_list *list); /* with the jobs that are still in it */

struct claim_request {
    const char *worker;
    const struct setting_list *queues;
    const char (*ids)[UUID_TEXT_MAX]; /* claim_ids: the candidates */
    size_t count;                     /* of ids; claim_ready: the limit */
};

/* Claim the listed jobs that are queued and due; the others are simply not returned. */
MUST_USE enum status store_claim_ids(struct store *store, const struct claim_request *request,
                                     instant deadline, struct job_list *ret_jobs,
                                     struct error *err);

/* Claim ready jobs by queue, priority, age. */
MUST_USE enum status store_claim_ready(struct store *store, const struct claim_request *request,
                                       instant deadline, struct job_list *ret_jobs,
                                       struct error *err);

/* What this incarnation holds now: after a claim whose answer was lost. Those under a hold come
 * without their tokens (""): they are not to be begun now. */
MUST_USE enum status store_claims_of(struct store *store, const char *worker, instant deadline,
                                     struct job_list *ret_jobs, struct error *err);

/* Why ids of a claim did not come back; for counters only. */
struct claim_leftovers {
    int64_t duplicate; /* running or succeeded: the message came twice or late */
    int64_t stale;     /* waiting, retry_wait, failed, cancelled, quarantined */
    int64_t unclaimed; /* queued: another worker has it locked, other queue, not due, held */
    int64_t unknown;   /* no such job: evidence of a rewound database */
};
MUST_USE enum status store_claim_leftovers(struct store *store, const char (*ids)[UUID_TEXT_MAX],
                                           size_t count, instant deadline,
                                           struct claim_leftovers *ret_leftovers,
                                           struct error *err);

/* Scopes of which nothing is claimed because no leader has looked at this server since it started;
 * "": none. Cut at `size`. */
MUST_USE enum status store_moved_scopes(struct store *store, instant deadline, char *ret_scopes,
                                        size_t size, struct error *err);

/* Renew the pairs. replies[i]: what became of pairs[i]; job ids must differ. */
struct heartbeat_reply {
    bool held;
    bool renewed; /* held, but not renewed: another session holds the job's row */
    bool cancel;
};
MUST_USE enum status store_heartbeat(struct store *store, const char *worker,
                                     const struct claim_pair *pairs, size_t count, instant deadline,
                                     struct heartbeat_reply *replies, struct error *err);

/* Record the outcomes of claims (job ids differ); verdicts[i] belongs to reports[i]. */
struct outcome_report {
    const char *job_id, *token;    /* borrowed for the call */
    const struct outcome *outcome; /* borrowed for the call */
};
enum outcome_verdict {
    VERDICT_DONE,      /* recorded as reported */
    VERDICT_ALREADY,   /* it was recorded before: the repeat of a lost answer */
    VERDICT_OTHERWISE, /* recorded, but the job was cancelled meanwhile: no artifact */
    VERDICT_LOST,      /* the claim moved on: nothing was changed */
    VERDICT_LOCKED,    /* another session holds the job's row: report it again */
};
MUST_USE enum status store_record_outcomes(struct store *store,
                                           const struct outcome_report *reports, size_t count,
                                           instant deadline, enum outcome_verdict *ret_verdicts,
                                           struct error *err);

/* A file found in a store; may it be removed? Only when the attempt is closed in the database and
 * no artifact row names the path (invariant I7). */
struct artifact_file {
    char job_id[UUID_TEXT_MAX];
    char token[UUID_TEXT_MAX];
    char path[ARTIFACT_PATH_MAX];
    bool removable; /* the answer */
};
MUST_USE enum status store_unreferenced(struct store *store, struct artifact_file *files,
                                        size_t count, instant deadline, struct error *err);

#endif
