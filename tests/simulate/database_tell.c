/* What of the database is told to the history. */
#include <string.h>

#include "store_fake.h"
#include "world.h"

static void tell(const struct transaction *t, struct fact f)
{
    f.node = t->node;
    f.call = t->call;
    world_fact(f);
}

void tell_ensemble(const struct transaction *t, const struct db_ensemble *e)
{
    tell(t, (struct fact){.kind = FACT_ROW_ENSEMBLE,
                          .incarnation = e->incarnation,
                          .id = (int64_t)(world_identity(e->id) >> 1)});
}

void tell_fence(const struct transaction *t, int scope)
{
    const struct db_fence *f = &db.fences[scope];
    tell(t, (struct fact){.kind = FACT_ROW_FENCE,
                          .scope = scope,
                          .incarnation = f->incarnation,
                          .generation = f->generation,
                          .owner = world_identity(f->owner),
                          .released = f->released});
}

void tell_pulse(const struct transaction *t, int scope)
{
    tell(t, (struct fact){.kind = FACT_ROW_PULSE,
                          .scope = scope,
                          .until_us = db.fences[scope].reap_not_before});
}

void tell_version(const struct transaction *t, const struct db_version *v)
{
    tell(t, (struct fact){.kind = FACT_ROW_VERSION,
                          .schedule = v->schedule,
                          .scope = db.schedule_scope[v->schedule],
                          .version = v->version,
                          .effective_us = v->effective_from,
                          .recipe = &v->recipe});
}

void tell_progress(const struct transaction *t, int schedule)
{
    const struct db_progress *p = &db.progress[schedule];
    tell(t, (struct fact){.kind = FACT_ROW_PROGRESS,
                          .schedule = schedule,
                          .scope = db.schedule_scope[schedule],
                          .version = p->version,
                          .step = p->step,
                          .last_us = p->last_fire_at,
                          .next_us = p->next_fire_at,
                          .switched_us = p->switched_at,
                          .problem = p->problem});
}

static void key_copy(char to[HISTORY_KEY_MAX], const char *key)
{
    size_t n = strlen(key);
    memcpy(to, key, n < HISTORY_KEY_MAX ? n : HISTORY_KEY_MAX - 1);
}

void tell_occurrence(const struct transaction *t, size_t i)
{
    const struct db_occurrence *o = &db.occurrences[i];
    struct fact f = {.kind = FACT_ROW_OCCURRENCE,
                     .schedule = o->schedule,
                     .scope = db.schedule_scope[o->schedule],
                     .fire_us = o->scheduled_for,
                     .job = world_identity(db.jobs[i].id),
                     .version = o->version,
                     .cause = o->cause,
                     .incarnation = t->authority.incarnation,
                     .generation = t->authority.generation};
    key_copy(f.key, o->key);
    tell(t, f);
}

void tell_job(const struct transaction *t, size_t i)
{
    const struct db_job *j = &db.jobs[i];
    struct fact f = {.kind = FACT_ROW_JOB,
                     .job = world_identity(j->id),
                     .schedule = db.occurrences[i].schedule,
                     .scope = j->scope,
                     .queue = j->queue,
                     .job_state = j->state,
                     .waits = j->waits,
                     .overlap = j->overlap,
                     .attempt = j->attempt,
                     .token = world_identity(j->token),
                     .worker = j->worker < 0 ? 0 : world_identity(db.workers[j->worker].id),
                     .lease_us = j->state == JOB_RUNNING ? j->lease_until : HISTORY_NONE,
                     .run_after_us = j->run_after,
                     .catch_up = j->catch_up};
    key_copy(f.key, db.occurrences[i].key);
    tell(t, f);
}

void tell_gap(const struct transaction *t, const struct db_gap *g)
{
    tell(t, (struct fact){.kind = FACT_ROW_GAP,
                          .schedule = g->schedule,
                          .scope = db.schedule_scope[g->schedule],
                          .id = g->id,
                          .from_us = g->from,
                          .to_us = g->to,
                          .firings = g->firings,
                          .gap = g->cause,
                          .version = g->version});
}

void tell_outbox(const struct transaction *t, const struct db_outbox *o)
{
    tell(t, (struct fact){.kind = FACT_ROW_OUTBOX,
                          .scope = o->scope,
                          .id = o->id,
                          .job = world_identity(db.jobs[o->job].id)});
}

void tell_outbox_gone(const struct transaction *t, const struct db_outbox *o)
{
    tell(t, (struct fact){.kind = FACT_ROW_OUTBOX_GONE, .scope = o->scope, .id = o->id});
}

void tell_attempt(const struct transaction *t, size_t job, int attempt, const char *token,
                  const char *worker, enum job_state became)
{
    tell(t, (struct fact){.kind = FACT_ROW_ATTEMPT,
                          .scope = db.jobs[job].scope,
                          .job = world_identity(db.jobs[job].id),
                          .attempt = attempt,
                          .token = world_identity(token),
                          .worker = world_identity(worker),
                          .job_state = became});
}

void tell_artifact(const struct transaction *t, size_t job, int attempt, const char *token)
{
    tell(t, (struct fact){.kind = FACT_ROW_ARTIFACT,
                          .job = world_identity(db.jobs[job].id),
                          .attempt = attempt,
                          .token = world_identity(token)});
}

void tell_hold(const struct transaction *t, size_t i)
{
    tell(t, (struct fact){.kind = FACT_ROW_HOLD,
                          .id = (int64_t)i,
                          .scope = db.holds[i].scope,
                          .lifted = db.holds[i].lifted});
}

void tell_call(const struct transaction *t, enum call_verdict verdict)
{
    tell(t, (struct fact){.kind = FACT_CALL,
                          .op = t->op,
                          .scope = t->scope,
                          .db_us = t->now,
                          .verdict = verdict,
                          .incarnation = t->authority.incarnation,
                          .generation = t->authority.generation,
                          .owner = world_identity(t->authority.owner)});
    if (verdict == VERDICT_OK) {
        server_committed(t->call);
    }
}
