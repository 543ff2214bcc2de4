/* Jobs, claims and messages: I4 to I7, overlap, capacity, holds. */
#include <inttypes.h>
#include <string.h>

#include "checker_state.h"

#define MINUTE_US INT64_C(60000000)

/* What each function may make of a job -----------------------------------------------------------
 */

static bool is_claim(enum call_op op)
{
    return op == OP_CLAIM_IDS || op == OP_CLAIM_READY;
}

static void judge_claim(struct checker *c, const struct transaction *x, const struct fact *f,
                        const struct job_row *j)
{
    c->tally.claims++;
    if (j == NULL || j->state != JOB_QUEUED) {
        blame(c, "I6", "job %" PRIx64 " was claimed while it was %s", f->job,
              j == NULL ? "not there" : job_state_name(j->state));
        return;
    }
    if (f->token == 0 || f->token == j->token || f->attempt != j->attempt + 1) {
        blame(c, "I6", "the claim of job %" PRIx64 " has no new token or attempt", f->job);
    }
    if (j->run_after_us > x->call->db_us) {
        blame(c, "I9", "job %" PRIx64 " was claimed %" PRId64 " us before its time", f->job,
              j->run_after_us - x->call->db_us);
    }
    if (scope_held(&c->tables, j->scope)) {
        blame(c, "hold", "job %" PRIx64 " of a held scope was claimed", f->job);
    }
}

/* The attempt row says which token ended. */
static const struct fact *attempt_of(const struct checker *c, const struct transaction *x,
                                     uint64_t job)
{
    size_t position = 0;
    const struct fact *row = NULL;
    while ((row = transaction_row(c, x, &position)) != NULL) {
        if (row->kind == FACT_ROW_ATTEMPT && row->job == job) {
            return row;
        }
    }
    return NULL;
}

/* A stopped process cannot end its runs, and has a moment for it when it goes on. */
static bool cannot_react(const struct checker *c, int node, int64_t at_us)
{
    const struct node *n = &c->nodes[node];
    return n->paused || (n->woke_us != HISTORY_NONE && at_us - n->woke_us < INT64_C(1000000));
}

static void judge_reap(struct checker *c, const struct transaction *x, const struct job_row *j)
{
    int64_t now = x->call->db_us;
    c->tally.reaps++;
    if (j->lease_us + c->setup->reap_grace_us >= now) {
        blame(c, "I6", "job %" PRIx64 " was reaped %" PRId64 " us before its lease and grace ended",
              j->job, j->lease_us + c->setup->reap_grace_us - now);
    }
    if (c->tables.reap_not_before[j->scope] > now) {
        blame(c, "I6", "job %" PRIx64 " was reaped before reap_not_before", j->job);
    }
    for (size_t i = 0; i < c->run_count; i++) {
        if (c->runs[i].job == j->job && c->runs[i].token == j->token && !c->runs[i].excused &&
            !cannot_react(c, c->runs[i].node, x->call->at_us)) {
            blame(c, "I6", "job %" PRIx64 " was reaped while node %d still runs it", j->job,
                  c->runs[i].node);
        }
    }
}

static void judge_running_left(struct checker *c, const struct transaction *x, const struct fact *f,
                               const struct job_row *j)
{
    enum call_op op = x->call->op;
    const struct fact *attempt = attempt_of(c, x, f->job);
    if (op != OP_RECORD_OUTCOMES && op != OP_TEND && op != OP_RELEASE_CLAIMS) {
        blame(c, "I6", "%s moves job %" PRIx64 " out of running", call_op_name(op), f->job);
        return;
    }
    if (attempt == NULL || attempt->token != j->token) {
        blame(c, "I6",
              "job %" PRIx64 " is closed by token %" PRIx64 ", and claimed by token %" PRIx64,
              f->job, attempt == NULL ? 0 : attempt->token, j->token);
    }
    if (op == OP_TEND) {
        judge_reap(c, x, j);
    }
}

static void judge_job(struct checker *c, const struct transaction *x, const struct fact *f)
{
    const struct job_row *j = job_row_find(&c->tables, f->job);
    enum call_op op = x->call->op;
    if (is_claim(op)) {
        judge_claim(c, x, f, j);
        return;
    }
    if (j == NULL) {
        if (op != OP_PLAN_BATCH && op != OP_ANSWER_REQUEST) {
            blame(c, "I4", "%s makes a job", call_op_name(op));
        }
        return;
    }
    if (!job_is_open(j) && f->job_state != j->state && op != OP_ANSWER_REQUEST) {
        blame(c, "I6", "%s moves job %" PRIx64 ", which is %s, to %s", call_op_name(op), f->job,
              job_state_name(j->state), job_state_name(f->job_state));
    }
    if (j->state == JOB_RUNNING && f->job_state != JOB_RUNNING) {
        judge_running_left(c, x, f, j);
    }
    if (j->state == JOB_RUNNING && f->job_state == JOB_RUNNING && f->token != j->token) {
        blame(c, "I6", "%s gives the running job %" PRIx64 " another token", call_op_name(op),
              f->job);
    }
    if (j->state != JOB_RUNNING && f->job_state == JOB_RUNNING) {
        blame(c, "I6", "%s makes job %" PRIx64 " running", call_op_name(op), f->job);
    }
    if (j->state == JOB_RETRY_WAIT && f->job_state != JOB_RETRY_WAIT &&
        f->job_state != JOB_CANCELLED && j->run_after_us > x->call->db_us) {
        blame(c, "I9", "job %" PRIx64 " is retried before its time", f->job);
    }
}

/* Before the rows are in -------------------------------------------------------------------------
 */

static uint64_t pair_key(int64_t call, uint64_t job, uint64_t token)
{
    return hash_mix(hash_mix((uint64_t)call, job), token);
}

static void judge_renewed(struct checker *c, const struct transaction *x, const struct fact *f)
{
    const struct job_row *j = job_row_find(&c->tables, f->job);
    if (j == NULL || j->state != JOB_RUNNING || j->token != f->token) {
        blame(c, "I6", "a heartbeat renewed job %" PRIx64 " by a token that is not its claim's",
              f->job);
    }
    if (index_find(&c->asked_of, pair_key(x->call->call, f->job, f->token)) == SIZE_MAX) {
        blame(c, "I6", "a heartbeat of node %d renewed job %" PRIx64 ", which it did not list",
              x->call->node, f->job);
    }
}

static void judge_artifact(struct checker *c, const struct transaction *x, const struct fact *f)
{
    const struct job_row *j = job_row_find(&c->tables, f->job);
    c->tally.artifacts++;
    if (j == NULL || x->call->op != OP_RECORD_OUTCOMES || j->state != JOB_RUNNING ||
        j->token != f->token) {
        blame(c, "I7", "an artifact of job %" PRIx64 " became visible without its outcome", f->job);
        return;
    }
    if (j->artifact) {
        blame(c, "I7", "job %" PRIx64 " has a second visible artifact", f->job);
    }
}

static uint64_t report_key(int node, int64_t id, uint64_t job)
{
    return hash_mix(hash_mix((uint64_t)node + 1, (uint64_t)id), job);
}

static void judge_outbox_gone(struct checker *c, const struct transaction *x, const struct fact *f)
{
    const struct outbox_row *o = outbox_row_find(&c->tables, f->id);
    if (o == NULL || !o->present) {
        blame(c, "I5", "outbox row %" PRId64 " went twice", f->id);
        return;
    }
    if (x->call->op == OP_OUTBOX_ACK &&
        index_find(&c->report_of, report_key(x->call->node, f->id, o->job)) == SIZE_MAX) {
        blame(c, "I5",
              "outbox row %" PRId64 " of job %" PRIx64
              " was deleted, and node %d has no report that it was delivered",
              f->id, o->job, x->call->node);
    }
}

static void judge_forbid(struct checker *c, const struct fact *f)
{
    if (f->overlap != OVERLAP_FORBID || job_row_find(&c->tables, f->job) != NULL) {
        return;
    }
    for (size_t i = 0; i < c->tables.job_count; i++) {
        const struct job_row *j = &c->tables.jobs[i];
        if (j->schedule == f->schedule && job_is_open(j) && j->overlap != OVERLAP_ALLOW) {
            blame(c, "overlap",
                  "schedule %d forbids overlap and has job %" PRIx64 " made while %" PRIx64
                  " is open",
                  f->schedule, f->job, j->job);
        }
    }
}

void work_before(struct checker *c, const struct transaction *x)
{
    size_t position = 0;
    const struct fact *row = NULL;
    while ((row = transaction_row(c, x, &position)) != NULL) {
        if (row->kind == FACT_ROW_JOB) {
            judge_job(c, x, row);
            if (x->call->op == OP_PLAN_BATCH) {
                judge_forbid(c, row);
            }
        } else if (row->kind == FACT_RENEWED) {
            judge_renewed(c, x, row);
        } else if (row->kind == FACT_ROW_ARTIFACT) {
            judge_artifact(c, x, row);
        } else if (row->kind == FACT_ROW_OUTBOX_GONE) {
            judge_outbox_gone(c, x, row);
        }
    }
    bool held = x->call->op == OP_PLAN_BATCH && scope_held(&c->tables, x->call->scope);
    position = 0;
    if (held && transaction_row(c, x, &position) != NULL) {
        blame(c, "hold", "scope %d is held and was planned", x->call->scope);
    }
}

/* With the rows in -------------------------------------------------------------------------------
 */

static bool has_message(const struct checker *c, const struct transaction *x, uint64_t job)
{
    size_t position = 0;
    const struct fact *row = NULL;
    while ((row = transaction_row(c, x, &position)) != NULL) {
        if (row->kind == FACT_ROW_OUTBOX && row->job == job) {
            return true;
        }
    }
    return false;
}

static void judge_overlap(struct checker *c, const struct job_row *j)
{
    for (size_t i = 0; i < c->tables.job_count; i++) {
        const struct job_row *o = &c->tables.jobs[i];
        if (o->job != j->job && o->schedule == j->schedule && o->overlap != OVERLAP_ALLOW &&
            job_is_active(o)) {
            blame(c, "overlap",
                  "jobs %" PRIx64 " and %" PRIx64 " of schedule %d are active at once (%s, %s)",
                  o->job, j->job, j->schedule, job_state_name(o->state), job_state_name(j->state));
        }
    }
}

static void judge_capacity(struct checker *c, const struct job_row *j)
{
    int64_t bound = c->setup->queue_bound[j->queue];
    int64_t budget = c->setup->catch_up_max[j->scope];
    int64_t in_queue = 0, catching_up = 0;
    for (size_t i = 0; i < c->tables.job_count; i++) {
        const struct job_row *o = &c->tables.jobs[i];
        if (o->scope == j->scope && (o->state == JOB_QUEUED || o->state == JOB_RUNNING)) {
            in_queue += o->queue == j->queue;
            catching_up += o->catch_up;
        }
    }
    if (bound > 0 && in_queue > bound) {
        blame(c, "capacity", "queue %d of scope %d has %" PRId64 " jobs outstanding of %" PRId64,
              j->queue, j->scope, in_queue, bound);
    }
    if (budget > 0 && j->catch_up && catching_up > budget) {
        blame(c, "capacity", "scope %d has %" PRId64 " missed firings released of %" PRId64,
              j->scope, catching_up, budget);
    }
}

void work_budget_begins(struct checker *c)
{
    memset(c->releases, 0, sizeof c->releases);
}

/* No minute has more missed firings than the budget, whoever leads. */
static void judge_budget(struct checker *c, const struct job_row *j, int64_t at_us)
{
    int64_t budget = c->setup->catch_up_per_minute[j->scope];
    if (budget == 0 || !j->catch_up) {
        return;
    }
    int64_t *count = &c->releases[j->scope].count;
    int64_t *slot = &c->releases[j->scope].at_us[*count % budget];
    if (*count >= budget && at_us < *slot + MINUTE_US) {
        blame(c, "capacity",
              "scope %d has more than %" PRId64 " missed firings released in a minute", j->scope,
              budget);
    }
    *slot = at_us;
    ++*count;
}

/* Has the job a row of this call before that position? */
static bool seen_before(const struct checker *c, const struct transaction *x, size_t until,
                        uint64_t job)
{
    size_t position = 0;
    const struct fact *row = NULL;
    while ((row = transaction_row(c, x, &position)) != NULL && position < until) {
        if (row->kind == FACT_ROW_JOB && row->job == job) {
            return true;
        }
    }
    return false;
}

/* A job that may run from now on: with its message (I4), in its turn, within the bounds. */
static void judge_queued(struct checker *c, const struct transaction *x, const struct job_row *j)
{
    if (!has_message(c, x, j->job)) {
        blame(c, "I4", "job %" PRIx64 " was queued by %s without a message", j->job,
              call_op_name(x->call->op));
    }
    if (scope_held(&c->tables, j->scope)) {
        blame(c, "hold", "job %" PRIx64 " of a held scope was released", j->job);
    }
    judge_capacity(c, j);
    judge_budget(c, j, x->call->at_us);
}

static void judge_went_on(struct checker *c, const struct transaction *x, const struct job_row *j)
{
    /* release_claims puts back what a dead worker held: it was outstanding all the time, and the
     * message that told of it is gone. Workers are told by NOTIFY and pull. */
    if (j->state == JOB_QUEUED && !j->was_queued && x->call->op != OP_RELEASE_CLAIMS) {
        judge_queued(c, x, j);
    }
    /* An edit gives several open jobs the new policy at once; it begins none. */
    if (x->call->op != OP_TAKE_IN && j->overlap != OVERLAP_ALLOW && job_is_active(j) &&
        !j->was_active) {
        judge_overlap(c, j);
    }
}

void work_after(struct checker *c, const struct transaction *x)
{
    size_t position = 0;
    const struct fact *row = NULL;
    while ((row = transaction_row(c, x, &position)) != NULL) {
        if (row->kind == FACT_ROW_JOB && !seen_before(c, x, position, row->job)) {
            const struct job_row *j = job_row_find(&c->tables, row->job);
            judge_went_on(c, x, j);
        } else if (row->kind == FACT_ROW_OUTBOX) {
            const struct job_row *j = job_row_find(&c->tables, row->job);
            if (j == NULL || j->state != JOB_QUEUED) {
                blame(c, "I4", "a message for job %" PRIx64 ", which is not queued", row->job);
            }
        }
    }
}

/* Facts outside of calls -------------------------------------------------------------------------
 */

static void run_begun(struct checker *c, const struct fact *f)
{
    struct run run = {.job = f->job, .token = f->token, .node = f->node};
    run.excused = index_find(&c->lost_tokens, f->token) != SIZE_MAX;
    for (size_t i = 0; i < c->run_count; i++) {
        if (c->runs[i].job == f->job && !c->runs[i].excused && !run.excused &&
            !cannot_react(c, c->runs[i].node, f->at_us)) {
            blame(c, "I6", "job %" PRIx64 " begins on node %d while node %d still runs it", f->job,
                  f->node, c->runs[i].node);
        }
    }
    if (c->run_count < RUNS_MAX) {
        c->runs[c->run_count++] = run;
    }
}

static void run_ended(struct checker *c, const struct fact *f)
{
    for (size_t i = 0; i < c->run_count; i++) {
        if (c->runs[i].job == f->job && c->runs[i].token == f->token &&
            c->runs[i].node == f->node) {
            c->runs[i] = c->runs[--c->run_count];
            return;
        }
    }
}

/* Keepers see the end of their worker and kill what it ran. */
static void runs_killed(struct checker *c, int node)
{
    for (size_t i = c->run_count; i-- > 0;) {
        if (c->runs[i].node == node) {
            c->runs[i] = c->runs[--c->run_count];
        }
    }
}

void work_fact(struct checker *c, const struct fact *f)
{
    if (f->kind == FACT_CRASHED || f->kind == FACT_STOPPED) {
        runs_killed(c, f->node);
    } else if (f->kind == FACT_RENEW_ASKED) {
        index_put(&c->asked_of, pair_key(f->call, f->job, f->token), 1);
    } else if (f->kind == FACT_PRODUCED) {
        index_put(&c->produced, report_key(f->node, f->id, 0), (size_t)f->job);
    } else if (f->kind == FACT_REPORTED && f->known) {
        size_t job = index_find(&c->produced, report_key(f->node, f->id, 0));
        index_put(&c->report_of, report_key(f->node, f->id, (uint64_t)job), 1);
    } else if (f->kind == FACT_RUN_BEGUN) {
        run_begun(c, f);
    } else if (f->kind == FACT_RUN_ENDED) {
        run_ended(c, f);
    }
}
