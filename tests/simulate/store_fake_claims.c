/* The port worker/store/store_claim.h on the database in memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "civil.h"
#include "store_claim.h"
#include "store_fake.h"
#include "store_release.h"
#include "world.h"

#define JOBS_MOST 64

/* By which name the process registered last. */
static char last_worker[HISTORY_NODES][UUID_TEXT_MAX];

struct worker_request {
    struct request q;
    char id[UUID_TEXT_MAX];
    bool stopped;
    bool is_known;
};

static void worker_fail(struct request *q)
{
    request_fail(q, STATUS_INVALID, STORE_ENDED, "worker incarnation has ended");
}

static void register_execute(struct request *q, struct transaction *t)
{
    struct worker_request *r = (struct worker_request *)q;
    if (worker_register(t, r->id)) {
        request_answer(q, VERDICT_OK, STATUS_OK);
    } else {
        worker_fail(q);
    }
}

enum status store_worker_register(struct store *store, const struct worker_identity *w,
                                  instant deadline, struct worker_agreement *ret_agreement,
                                  struct error *err)
{
    struct worker_request *r = request_new(sizeof *r, OP_WORKER_REGISTER, register_execute);
    (void)snprintf(r->id, sizeof r->id, "%s", w->id);
    (void)snprintf(last_worker[process_current()->node], UUID_TEXT_MAX, "%s", w->id);
    enum status status = exchange(store, deadline, &r->q, err);
    if (status == STATUS_OK) {
        (void)snprintf(ret_agreement->installation, sizeof ret_agreement->installation, "%s",
                       INSTALLATION);
        ret_agreement->lease_ms = world.setup.claim_lease_us / 1000;
    }
    request_end(&r->q);
    return status;
}

static void leave_execute(struct request *q, struct transaction *t)
{
    const struct worker_request *r = (struct worker_request *)q;
    (void)t;
    worker_leave(r->id, r->stopped);
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_worker_leave(struct store *store, const char *worker, const char *state,
                               instant deadline, struct error *err)
{
    struct worker_request *r = request_new(sizeof *r, OP_NONE, leave_execute);
    (void)snprintf(r->id, sizeof r->id, "%s", worker);
    r->stopped = strcmp(state, "stopped") == 0;
    enum status status = exchange(store, deadline, &r->q, err);
    request_end(&r->q);
    return status;
}

/* Claims -----------------------------------------------------------------------------------------
 */

/* A claimed job as the answer brings it: rows may change before it is read. */
struct claimed {
    char id[UUID_TEXT_MAX], token[UUID_TEXT_MAX];
    int attempt, schedule, scope;
    char key[KEY_MAX_BYTES];
    int64_t scheduled_for, timeout;
};

struct claim_call {
    struct request q;
    char worker[UUID_TEXT_MAX];
    size_t count; /* of ids; the limit */
    char (*ids)[UUID_TEXT_MAX];
    struct claimed claimed[JOBS_MOST];
    size_t claimed_count;
};

static void claim_done(struct request *q)
{
    kernel_free(((struct claim_call *)q)->ids);
}

static void claimed_fill(struct claim_call *r, const size_t *jobs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct db_job *j = &db.jobs[jobs[i]];
        const struct db_occurrence *o = &db.occurrences[jobs[i]];
        struct claimed *c = &r->claimed[r->claimed_count++];
        *c = (struct claimed){.attempt = j->attempt,
                              .schedule = o->schedule,
                              .scope = j->scope,
                              .scheduled_for = o->scheduled_for,
                              .timeout = j->timeout};
        memcpy(c->id, j->id, sizeof c->id);
        memcpy(c->token, j->token, sizeof c->token);
        memcpy(c->key, o->key, sizeof c->key);
    }
}

static void claim_execute(struct request *q, struct transaction *t)
{
    struct claim_call *r = (struct claim_call *)q;
    size_t jobs[JOBS_MOST];
    bool may = false;
    if (!claimable_worker(r->worker, &may)) {
        worker_fail(q);
        return;
    }
    int w = worker_find(r->worker);
    size_t limit = r->count < JOBS_MOST ? r->count : JOBS_MOST;
    size_t n = 0;
    if (may && q->op == OP_CLAIM_IDS) {
        n = claim_ids(t, w, (const char(*)[UUID_TEXT_MAX])r->ids, limit, jobs);
    } else if (may) {
        n = claim_ready(t, w, limit, jobs);
    }
    claimed_fill(r, jobs, n);
    request_answer(q, VERDICT_OK, STATUS_OK);
}

static void claims_of_execute(struct request *q, struct transaction *t)
{
    struct claim_call *r = (struct claim_call *)q;
    size_t jobs[JOBS_MOST];
    (void)t;
    claimed_fill(r, jobs, claims_of(worker_find(r->worker), jobs, JOBS_MOST));
    for (size_t i = 0; i < r->claimed_count; i++) {
        if (claim_is_held(r->claimed[i].scope)) {
            r->claimed[i].token[0] = '\0';
        }
    }
    request_answer(q, VERDICT_OK, STATUS_OK);
}

static struct job *job_make(const struct claimed *c)
{
    struct job *j = job_new();
    if (j == NULL) {
        abort();
    }
    memcpy(j->id, c->id, sizeof j->id);
    memcpy(j->token, c->token, sizeof j->token);
    j->attempt = c->attempt;
    j->revision = 1;
    j->timeout_ms = c->timeout / 1000;
    j->received_at = clock_now();
    (void)snprintf(j->scope, sizeof j->scope, "%s", world_scope_name(c->scope));
    schedule_name(c->schedule, j->schedule);
    memcpy(j->occurrence_key, c->key, sizeof j->occurrence_key);
    (void)snprintf(j->scheduled_for, sizeof j->scheduled_for, "2030-01-01T00:00:00Z");
    (void)snprintf(j->cause, sizeof j->cause, "schedule");
    (void)snprintf(j->report, sizeof j->report, "report");
    (void)snprintf(j->kind, sizeof j->kind, "sql");
    (void)snprintf(j->data_source, sizeof j->data_source, "source");
    (void)snprintf(j->format, sizeof j->format, "csv");
    j->query = strdup("SELECT 1");
    j->parameters_json = strdup("{}");
    return j;
}

void job_list_free(struct job_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        job_free(list->jobs[i]);
    }
    free(list->jobs);
    *list = (struct job_list){0};
}

static enum status claim_ask(struct store *store, struct claim_call *r, const char *worker,
                             instant deadline, struct job_list *ret_jobs, struct error *err)
{
    (void)snprintf(r->worker, sizeof r->worker, "%s", worker);
    r->q.done = claim_done;
    enum status status = exchange(store, deadline, &r->q, err);
    if (status == STATUS_OK) {
        ret_jobs->jobs = calloc(r->claimed_count + 1, sizeof ret_jobs->jobs[0]);
        ret_jobs->count = r->claimed_count;
        for (size_t i = 0; i < r->claimed_count; i++) {
            ret_jobs->jobs[i] = job_make(&r->claimed[i]);
        }
    }
    request_end(&r->q);
    return status;
}

enum status store_claim_ids(struct store *store, const struct claim_request *request,
                            instant deadline, struct job_list *ret_jobs, struct error *err)
{
    struct claim_call *r = request_new(sizeof *r, OP_CLAIM_IDS, claim_execute);
    r->count = request->count;
    r->ids = kernel_new((r->count + 1) * sizeof r->ids[0]);
    memcpy(r->ids, request->ids, r->count * sizeof r->ids[0]);
    return claim_ask(store, r, request->worker, deadline, ret_jobs, err);
}

enum status store_claim_ready(struct store *store, const struct claim_request *request,
                              instant deadline, struct job_list *ret_jobs, struct error *err)
{
    struct claim_call *r = request_new(sizeof *r, OP_CLAIM_READY, claim_execute);
    r->count = request->count;
    return claim_ask(store, r, request->worker, deadline, ret_jobs, err);
}

enum status store_claims_of(struct store *store, const char *worker, instant deadline,
                            struct job_list *ret_jobs, struct error *err)
{
    struct claim_call *r = request_new(sizeof *r, OP_NONE, claims_of_execute);
    return claim_ask(store, r, worker, deadline, ret_jobs, err);
}

static void nothing_execute(struct request *q, struct transaction *t)
{
    (void)t;
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_claim_leftovers(struct store *store, const char (*ids)[UUID_TEXT_MAX],
                                  size_t count, instant deadline,
                                  struct claim_leftovers *ret_leftovers, struct error *err)
{
    (void)ids;
    struct request *q = request_new(sizeof *q, OP_NONE, nothing_execute);
    enum status status = exchange(store, deadline, q, err);
    if (status == STATUS_OK) { /* for counters only */
        *ret_leftovers = (struct claim_leftovers){.duplicate = (int64_t)count};
    }
    request_end(q);
    return status;
}

struct moved_request {
    struct request q;
    char scopes[128];
};

static void moved_execute(struct request *q, struct transaction *t)
{
    struct moved_request *r = (struct moved_request *)q;
    size_t n = 0;
    (void)t;
    for (int i = 0; i < world.setup.scopes; i++) {
        if (is_moved(i)) {
            n += (size_t)snprintf(r->scopes + n, sizeof r->scopes - n, "%s%s", n == 0 ? "" : " ",
                                  world_scope_name(i));
        }
    }
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_moved_scopes(struct store *store, instant deadline, char *ret_scopes, size_t size,
                               struct error *err)
{
    struct moved_request *r = request_new(sizeof *r, OP_NONE, moved_execute);
    enum status status = exchange(store, deadline, &r->q, err);
    if (status == STATUS_OK) {
        (void)snprintf(ret_scopes, size, "%s", r->scopes);
    }
    request_end(&r->q);
    return status;
}

/* Of a process that is proved dead. In the product a supervisor runs `report-worker
 * --release-claims`; here node.c is the supervisor. */
void store_fake_release_claims(int node)
{
    struct transaction t = {.call = ++world.calls,
                            .op = OP_RELEASE_CLAIMS,
                            .node = node,
                            .scope = -1,
                            .now = database_now()};
    if (server.up && last_worker[node][0] != '\0') {
        (void)release_all_claims(&t, last_worker[node]);
        tell_call(&t, VERDICT_OK);
        database_notify();
    }
}

struct release_request {
    struct request q;
    char worker[UUID_TEXT_MAX];
    struct released_claims released;
};

static void release_execute(struct request *q, struct transaction *t)
{
    struct release_request *r = (struct release_request *)q;
    int w = worker_find(r->worker);
    r->released.known = w >= 0;
    r->released.ended_before =
        w >= 0 && db.workers[w].state != WORKER_ALIVE && db.workers[w].state != WORKER_DRAINING;
    r->released.jobs = release_all_claims(t, r->worker);
    database_notify();
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_release_claims(struct store *store, const char *worker, instant deadline,
                                 struct released_claims *ret_released, struct error *err)
{
    struct release_request *r = request_new(sizeof *r, OP_RELEASE_CLAIMS, release_execute);
    (void)snprintf(r->worker, sizeof r->worker, "%s", worker);
    enum status status = exchange(store, deadline, &r->q, err);
    if (status == STATUS_OK) {
        *ret_released = r->released;
    }
    request_end(&r->q);
    return status;
}

/* Heartbeat --------------------------------------------------------------------------------------
 */

#define PAIRS_MOST 64

struct beat_request {
    struct request q;
    char worker[UUID_TEXT_MAX];
    size_t count;
    char ids[PAIRS_MOST][UUID_TEXT_MAX], tokens[PAIRS_MOST][UUID_TEXT_MAX];
    bool held[PAIRS_MOST], cancel[PAIRS_MOST];
};

static void beat_execute(struct request *q, struct transaction *t)
{
    struct beat_request *r = (struct beat_request *)q;
    if (heartbeat(t, r->worker, (const char(*)[UUID_TEXT_MAX])r->ids,
                  (const char(*)[UUID_TEXT_MAX])r->tokens, r->count, r->held, r->cancel)) {
        request_answer(q, VERDICT_OK, STATUS_OK);
    } else {
        worker_fail(q);
    }
}

enum status store_heartbeat(struct store *store, const char *worker, const struct claim_pair *pairs,
                            size_t count, instant deadline, struct heartbeat_reply *replies,
                            struct error *err)
{
    struct beat_request *r = request_new(sizeof *r, OP_HEARTBEAT, beat_execute);
    (void)snprintf(r->worker, sizeof r->worker, "%s", worker);
    r->count = count < PAIRS_MOST ? count : PAIRS_MOST;
    int64_t call = world.calls + 1; /* what exchange will give it */
    for (size_t i = 0; i < r->count; i++) {
        memcpy(r->ids[i], pairs[i].job_id, UUID_TEXT_MAX);
        memcpy(r->tokens[i], pairs[i].token, UUID_TEXT_MAX);
        world_own_fact((struct fact){.kind = FACT_RENEW_ASKED,
                                     .call = call,
                                     .job = world_identity(pairs[i].job_id),
                                     .token = world_identity(pairs[i].token)});
    }
    enum status status = exchange(store, deadline, &r->q, err);
    for (size_t i = 0; status == STATUS_OK && i < r->count; i++) {
        replies[i] = (struct heartbeat_reply){
            .held = r->held[i], .renewed = r->held[i], .cancel = r->cancel[i]};
    }
    request_end(&r->q);
    return status;
}

/* Outcomes ---------------------------------------------------------------------------------------
 */

struct outcomes_request {
    struct request q;
    size_t count;
    struct reported_outcome *list;
};

static void outcomes_done(struct request *q)
{
    kernel_free(((struct outcomes_request *)q)->list);
}

static void outcomes_execute(struct request *q, struct transaction *t)
{
    struct outcomes_request *r = (struct outcomes_request *)q;
    bool waits = false;
    record_outcomes(t, r->list, r->count);
    for (size_t i = 0; i < db.job_count; i++) {
        waits = waits || db.jobs[i].state == JOB_WAITING || db.jobs[i].state == JOB_RETRY_WAIT;
    }
    if (waits) {
        database_notify();
    }
    request_answer(q, VERDICT_OK, STATUS_OK);
}

static enum reported reported_of(enum outcome_kind kind)
{
    switch (kind) {
    case OUTCOME_SUCCEEDED:
        return REPORTED_SUCCEEDED;
    case OUTCOME_FAILED:
        return REPORTED_FAILED;
    case OUTCOME_TIMEOUT:
        return REPORTED_TIMEOUT;
    case OUTCOME_CANCELLED:
        return REPORTED_CANCELLED;
    case OUTCOME_HANDED_BACK:
        return REPORTED_HANDED_BACK;
    }
    return REPORTED_FAILED;
}

static enum outcome_verdict verdict_of(const struct reported_outcome *o)
{
    if (o->verdict == REPORT_ALREADY) {
        return VERDICT_ALREADY;
    }
    if (o->verdict == REPORT_LOST) {
        return VERDICT_LOST;
    }
    bool differs = o->outcome == REPORTED_SUCCEEDED && o->state != JOB_SUCCEEDED;
    return differs ? VERDICT_OTHERWISE : VERDICT_DONE;
}

enum status store_record_outcomes(struct store *store, const struct outcome_report *reports,
                                  size_t count, instant deadline,
                                  enum outcome_verdict *ret_verdicts, struct error *err)
{
    struct outcomes_request *r = request_new(sizeof *r, OP_RECORD_OUTCOMES, outcomes_execute);
    r->count = count;
    r->list = kernel_new((count + 1) * sizeof r->list[0]);
    r->q.done = outcomes_done;
    for (size_t i = 0; i < count; i++) {
        const struct outcome *o = reports[i].outcome;
        struct reported_outcome *to = &r->list[i];
        (void)snprintf(to->job, sizeof to->job, "%s", reports[i].job_id);
        (void)snprintf(to->token, sizeof to->token, "%s", reports[i].token);
        to->outcome = reported_of(o->kind);
        to->retryable = o->retryable;
        to->has_artifact = o->has_artifact;
        (void)snprintf(to->path, sizeof to->path, "%.250s",
                       o->has_artifact ? o->artifact.path : "");
    }
    enum status status = exchange(store, deadline, &r->q, err);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        ret_verdicts[i] = verdict_of(&r->list[i]);
    }
    request_end(&r->q);
    return status;
}

struct files_request {
    struct request q;
    size_t count;
    struct artifact_file *files;
};

static void files_done(struct request *q)
{
    kernel_free(((struct files_request *)q)->files);
}

static void files_execute(struct request *q, struct transaction *t)
{
    struct files_request *r = (struct files_request *)q;
    (void)t;
    for (size_t i = 0; i < r->count; i++) {
        struct artifact_file *f = &r->files[i];
        f->removable = unreferenced(f->job_id, f->token, f->path);
    }
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_unreferenced(struct store *store, struct artifact_file *files, size_t count,
                               instant deadline, struct error *err)
{
    struct files_request *r = request_new(sizeof *r, OP_NONE, files_execute);
    r->count = count;
    r->files = kernel_new((count + 1) * sizeof files[0]);
    r->q.done = files_done;
    memcpy(r->files, files, count * sizeof files[0]);
    enum status status = exchange(store, deadline, &r->q, err);
    for (size_t i = 0; i < count; i++) {
        files[i].removable = status == STATUS_OK && r->files[i].removable;
    }
    request_end(&r->q);
    return status;
}
