/* sql/0007_outbox.sql and sql/0008_claims.sql. */
#include <stdio.h>
#include <string.h>

#include "database.h"
#include "mutant.h"
#include "world.h"

/* Outbox -----------------------------------------------------------------------------------------
 */

static struct db_outbox *outbox_find(int scope, int64_t id)
{
    for (size_t i = 0; i < db.outbox_count; i++) {
        struct db_outbox *o = &db.outbox[i];
        if (o->used && o->scope == scope && o->id == id) {
            return o;
        }
    }
    return NULL;
}

enum call_verdict outbox_ack(struct transaction *t, const int64_t *ids, size_t count)
{
    if (!fence_holds(t)) {
        return VERDICT_FENCED;
    }
    for (size_t i = 0; i < count; i++) {
        struct db_outbox *o = outbox_find(t->scope, ids[i]);
        if (o != NULL) {
            o->used = false;
            tell_outbox_gone(t, o);
        }
    }
    return VERDICT_OK;
}

enum call_verdict outbox_bury(struct transaction *t, int64_t id, bool *ret_buried)
{
    *ret_buried = false;
    if (!fence_holds(t)) {
        return VERDICT_FENCED;
    }
    struct db_outbox *o = outbox_find(t->scope, id);
    if (o != NULL) {
        o->used = false;
        *ret_buried = true;
        tell_outbox_gone(t, o);
    }
    return VERDICT_OK;
}

/* Workers ----------------------------------------------------------------------------------------
 */

int worker_find(const char *id)
{
    for (size_t i = 0; i < db.worker_count; i++) {
        if (strcmp(db.workers[i].id, id) == 0) {
            return (int)i;
        }
    }
    return -1;
}

bool worker_register(struct transaction *t, const char *id)
{
    int found = worker_find(id);
    if (found >= 0) {
        if (db.workers[found].state != WORKER_ALIVE) {
            return false;
        }
        db.workers[found].heartbeat_at = t->now;
        return true;
    }
    if (db.worker_count == WORKERS_MAX) {
        return false;
    }
    struct db_worker *w = &db.workers[db.worker_count++];
    *w = (struct db_worker){.claim_lease = world.setup.claim_lease_us, .heartbeat_at = t->now};
    (void)snprintf(w->id, sizeof w->id, "%s", id);
    return true;
}

void worker_leave(const char *id, bool stopped)
{
    int w = worker_find(id);
    if (w >= 0 && (db.workers[w].state == WORKER_ALIVE || db.workers[w].state == WORKER_DRAINING)) {
        db.workers[w].state = stopped ? WORKER_STOPPED : WORKER_DRAINING;
    }
}

bool claimable_worker(const char *id, bool *ret_may)
{
    int w = worker_find(id);
    *ret_may = false;
    if (w < 0 || (db.workers[w].state != WORKER_ALIVE && db.workers[w].state != WORKER_DRAINING)) {
        return false;
    }
    *ret_may = db.workers[w].state == WORKER_ALIVE;
    for (size_t i = 0; i < db.hold_count; i++) {
        *ret_may = *ret_may && (db.holds[i].lifted || db.holds[i].scope >= 0);
    }
    return true;
}

static bool scope_is_held(int scope) /* scopes_not_to_claim() */
{
    if (is_moved(scope)) {
        return true;
    }
    for (size_t i = 0; i < db.hold_count; i++) {
        if (!db.holds[i].lifted && db.holds[i].scope == scope) {
            return !MUTANT("hold_ignored");
        }
    }
    return false;
}

bool claim_is_held(int scope)
{
    for (size_t i = 0; i < db.hold_count; i++) {
        if (!db.holds[i].lifted && db.holds[i].scope < 0) {
            return true;
        }
    }
    return scope_is_held(scope);
}

static bool may_be_claimed(const struct transaction *t, size_t i)
{
    const struct db_job *j = &db.jobs[i];
    bool queued = j->state == JOB_QUEUED || MUTANT("claim_without_state");
    return queued && j->run_after <= t->now && !scope_is_held(j->scope);
}

size_t claim(struct transaction *t, int worker, const size_t *jobs, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        struct db_job *j = &db.jobs[jobs[i]];
        if (j->state != JOB_QUEUED && !MUTANT("claim_without_state")) {
            continue;
        }
        j->state = JOB_RUNNING;
        j->attempt++;
        j->worker = worker;
        j->claimed_at = t->now;
        j->lease_until = lease_clock(t, j->scope) + db.workers[worker].claim_lease;
        (void)snprintf(j->token, sizeof j->token, "%08x-0000-4000-8000-%012llx",
                       (unsigned)(chance_next(kernel_chance()) >> 32),
                       (unsigned long long)(chance_next(kernel_chance()) >> 16));
        tell_job(t, jobs[i]);
        n++;
    }
    return n;
}

size_t claim_ids(struct transaction *t, int worker, const char (*ids)[UUID_TEXT_MAX], size_t count,
                 size_t *ret_jobs)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        size_t j = job_find(ids[i]);
        bool twice = false;
        for (size_t k = 0; k < n; k++) {
            twice = twice || ret_jobs[k] == j;
        }
        if (j < db.job_count && !twice && may_be_claimed(t, j)) {
            ret_jobs[n++] = j;
        }
    }
    return claim(t, worker, ret_jobs, n);
}

size_t claim_ready(struct transaction *t, int worker, size_t limit, size_t *ret_jobs)
{
    size_t n = 0;
    for (int queue = 0; queue < world.setup.queues; queue++) {
        for (size_t i = 0; i < db.job_count && n < limit; i++) {
            if (db.jobs[i].queue == queue && may_be_claimed(t, i)) {
                ret_jobs[n++] = i;
            }
        }
    }
    return claim(t, worker, ret_jobs, n);
}

size_t claims_of(int worker, size_t *ret_jobs, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < db.job_count && n < most; i++) {
        if (db.jobs[i].state == JOB_RUNNING && db.jobs[i].worker == worker) {
            ret_jobs[n++] = i;
        }
    }
    return n;
}

static void renew(struct transaction *t, struct db_job *j)
{
    j->lease_until = lease_clock(t, j->scope) + db.workers[j->worker].claim_lease;
    world_fact((struct fact){.kind = FACT_RENEWED,
                             .node = t->node,
                             .call = t->call,
                             .job = world_identity(j->id),
                             .token = world_identity(j->token),
                             .lease_us = j->lease_until});
}

bool heartbeat(struct transaction *t, const char *worker, const char (*ids)[UUID_TEXT_MAX],
               const char (*tokens)[UUID_TEXT_MAX], size_t count, bool *ret_held, bool *ret_cancel)
{
    int w = worker_find(worker);
    if (w < 0 || (db.workers[w].state != WORKER_ALIVE && db.workers[w].state != WORKER_DRAINING)) {
        return false;
    }
    db.workers[w].heartbeat_at = t->now;
    for (size_t i = 0; i < count; i++) {
        size_t n = job_find(ids[i]);
        struct db_job *j = n < db.job_count ? &db.jobs[n] : NULL;
        ret_held[i] = j != NULL && j->state == JOB_RUNNING && j->worker == w &&
                      strcmp(j->token, tokens[i]) == 0;
        ret_cancel[i] = ret_held[i] && j->cancel_requested;
        if (ret_held[i]) {
            renew(t, j);
        }
    }
    for (size_t i = 0; MUTANT("heartbeat_by_worker") && i < db.job_count; i++) {
        if (db.jobs[i].state == JOB_RUNNING && db.jobs[i].worker == w) {
            renew(t, &db.jobs[i]);
        }
    }
    return true;
}

/* Outcomes ---------------------------------------------------------------------------------------
 */

static enum job_state state_after(const struct db_job *j, const struct reported_outcome *o)
{
    bool used_up = j->attempt - j->handed_back >= j->max_attempts;
    if (j->cancel_requested || o->outcome == REPORTED_CANCELLED) {
        return JOB_CANCELLED;
    }
    if (o->outcome == REPORTED_SUCCEEDED) {
        return JOB_SUCCEEDED;
    }
    if (o->outcome == REPORTED_HANDED_BACK) {
        return JOB_RETRY_WAIT;
    }
    return o->retryable && !used_up ? JOB_RETRY_WAIT : JOB_FAILED;
}

static void attempt_write(struct transaction *t, size_t i, const struct reported_outcome *o,
                          enum job_state became)
{
    const struct db_job *j = &db.jobs[i];
    if (db.attempt_count < ATTEMPTS_MAX) {
        struct db_attempt *a = &db.attempts[db.attempt_count++];
        *a = (struct db_attempt){.job = i, .attempt = j->attempt};
        memcpy(a->token, o->token, sizeof a->token);
    }
    tell_attempt(t, i, j->attempt, o->token, db.workers[j->worker].id, became);
    if (became == JOB_SUCCEEDED && o->has_artifact && db.artifact_count < ARTIFACTS_MAX) {
        struct db_artifact *a = &db.artifacts[db.artifact_count++];
        *a = (struct db_artifact){.job = i, .attempt = j->attempt};
        memcpy(a->path, o->path, sizeof a->path);
        tell_artifact(t, i, j->attempt, o->token);
    }
}

static void outcome_close(struct transaction *t, size_t i, struct reported_outcome *o)
{
    struct db_job *j = &db.jobs[i];
    enum job_state became = state_after(j, o);
    bool handed_back = o->outcome == REPORTED_HANDED_BACK && !j->cancel_requested;
    attempt_write(t, i, o, became);
    if (became == JOB_RETRY_WAIT && o->outcome != REPORTED_HANDED_BACK) {
        j->run_after =
            t->now + retry_delay(j->retry_base, j->retry_cap, j->attempt - j->handed_back);
    }
    j->state = became;
    j->handed_back += handed_back ? 1 : 0;
    j->token[0] = '\0';
    j->worker = -1;
    o->state = became;
    o->verdict = REPORT_DONE;
    tell_job(t, i);
}

static bool was_lost(size_t job)
{
    for (size_t i = 0; i < db.attempt_count; i++) {
        if (db.attempts[i].job == job && db.attempts[i].lost) {
            return true;
        }
    }
    return false;
}

static void claim_return(struct transaction *t, size_t i)
{
    struct db_job *j = &db.jobs[i];
    char token[UUID_TEXT_MAX];
    bool again = was_lost(i);
    bool used_up = j->attempt - j->handed_back >= j->max_attempts;
    int64_t wait = retry_delay(j->retry_base, j->retry_cap, j->attempt - j->handed_back);
    const char *worker = db.workers[j->worker].id;
    memcpy(token, j->token, sizeof token);
    if (db.attempt_count < ATTEMPTS_MAX) {
        struct db_attempt *a = &db.attempts[db.attempt_count++];
        *a = (struct db_attempt){.job = i, .attempt = j->attempt, .lost = true};
        memcpy(a->token, token, sizeof a->token);
    }
    j->state = j->cancel_requested ? JOB_CANCELLED
               : used_up           ? JOB_FAILED
               : again             ? JOB_RETRY_WAIT
                                   : JOB_QUEUED;
    j->run_after = t->now + (again ? wait : 0);
    j->token[0] = '\0';
    j->worker = -1;
    tell_attempt(t, i, j->attempt, token, worker, JOB_RETRY_WAIT);
    tell_job(t, i);
}

int release_all_claims(struct transaction *t, const char *worker)
{
    int w = worker_find(worker);
    int released = 0;
    if (w < 0) {
        return 0;
    }
    if (db.workers[w].state == WORKER_ALIVE || db.workers[w].state == WORKER_DRAINING) {
        db.workers[w].state = WORKER_DEAD;
    }
    for (size_t i = 0; i < db.job_count; i++) {
        if (db.jobs[i].state == JOB_RUNNING && db.jobs[i].worker == w) {
            claim_return(t, i);
            released++;
        }
    }
    return released;
}

static bool was_recorded(size_t job, const char *token)
{
    for (size_t i = db.attempt_count; i > 0; i--) {
        const struct db_attempt *a = &db.attempts[i - 1];
        if (a->job == job && strcmp(a->token, token) == 0 && !a->lost) {
            return true;
        }
    }
    return false;
}

void record_outcomes(struct transaction *t, struct reported_outcome *list, size_t count)
{
    for (size_t k = 0; k < count; k++) {
        struct reported_outcome *o = &list[k];
        size_t i = job_find(o->job);
        const struct db_job *j = i < db.job_count ? &db.jobs[i] : NULL;
        if (j != NULL && j->state == JOB_RUNNING &&
            (strcmp(j->token, o->token) == 0 || MUTANT("outcome_without_token"))) {
            outcome_close(t, i, o);
        } else {
            o->verdict = was_recorded(i, o->token) ? REPORT_ALREADY : REPORT_LOST;
        }
    }
}

bool unreferenced(const char *job, const char *token, const char *path)
{
    size_t i = job_find(job);
    for (size_t k = 0; k < db.artifact_count; k++) {
        if (strcmp(db.artifacts[k].path, path) == 0) {
            return false;
        }
    }
    return i < db.job_count && strcmp(db.jobs[i].token, token) != 0;
}
