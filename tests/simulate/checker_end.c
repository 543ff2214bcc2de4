/* Liveness: what must be true when the faults have been over for long enough. */
#include <inttypes.h>

#include "checker_state.h"

#define SECOND INT64_C(1000000)

/* The longest way back, each step at its worst, one after the other:
 *   a session that nobody closed lives on for T and a tick of the ensemble's clock, and a client
 * that was refused or cut looks again after T at most (it gives its handle up then); DOWN and
 * ENROLLING wait out a backoff (30 s at most), once each; the database connection is tried again
 * after 3 s at most, and a statement under way ends after its own deadline, 5 s at most; establish
 * and prepare take one such statement each, a failed prepare is repeated; HELD looks every second.
 * Then planning has what is due. */
int64_t checker_bound(const struct setup *s)
{
    if (s->live_within_us > 0) {
        return s->live_within_us;
    }
    int64_t session = (2 * s->session_ms + s->tick_ms) * INT64_C(1000);
    return session + 2 * 30 * SECOND + 3 * SECOND + 3 * 5 * SECOND + SECOND;
}

static void judge_leader(struct checker *c, int scope)
{
    int active = 0, alive = 0;
    for (int i = 0; i < HISTORY_SCHEDULERS; i++) {
        const struct node *n = &c->nodes[i];
        alive += n->alive;
        active += n->alive && n->scopes[scope].state == STATE_ACTIVE;
    }
    if (alive > 0 && active != 1) {
        blame(c, "liveness", "scope %d has %d leaders", scope, active);
    }
}

/* Everything due, but for the last moments, has been dealt with. */
static void judge_planned(struct checker *c, const struct fact *f, int schedule)
{
    struct schedule_rows *s = &c->tables.schedules[schedule];
    int64_t until = f->db_us - 5 * SECOND;
    if (!s->progress.present && s->version_count > 0) {
        blame(c, "liveness", "schedule %d was never taken in", schedule);
    }
    const struct version_row *v = version_row_find(s, s->progress.version);
    if (!s->progress.present || v == NULL || s->progress.problem) {
        return;
    }
    const struct version_row *newest = &s->versions[s->version_count - 1];
    if (newest->version != v->version && newest->effective_us < until) {
        blame(c, "liveness", "version %d of schedule %d was not taken in", newest->version,
              schedule);
    }
    if (v->recipe->paused || v->recipe->ended || v->switched_us == HISTORY_NONE) {
        return;
    }
    struct due due = {.fire_us = s->progress.last_us > v->switched_us - 1 ? s->progress.last_us
                                                                          : v->switched_us - 1};
    if (due_after(v->recipe, due.fire_us, &due) && due.fire_us <= until) {
        blame(c, "liveness", "firing %d:%s is due since %" PRId64 " us and was not planned",
              schedule, due.key, f->db_us - due.fire_us);
    }
}

/* Of the jobs that are open: not those of a scope that is held, and not those that give way by a
 * policy: to one of their schedule, to a full queue, or, being late already, to live work. */
static bool must_end(const struct checker *c, const struct job_row *j)
{
    return job_is_open(j) && j->state != JOB_WAITING && !scope_held(&c->tables, j->scope);
}

static void judge_worked(struct checker *c, const struct fact *f)
{
    if (c->setup->work_within_us == 0) {
        return;
    }
    for (size_t i = 0; i < c->tables.job_count; i++) {
        const struct job_row *j = &c->tables.jobs[i];
        int64_t since = j->ready_us > c->faults_over_us ? j->ready_us : c->faults_over_us;
        if (must_end(c, j) && since + c->setup->work_within_us < f->at_us) {
            blame(c, "liveness", "job %" PRIx64 " of schedule %d is still %s", j->job, j->schedule,
                  job_state_name(j->state));
        }
    }
}

void end_judge(struct checker *c, const struct fact *f)
{
    if (f->db_us == 0) {
        blame(c, "liveness", "the end does not say what the database clock shows");
    }
    if (c->faults_over_us == HISTORY_NONE ||
        f->at_us < c->faults_over_us + checker_bound(c->setup)) {
        return;
    }
    for (int scope = 0; scope < c->setup->scopes; scope++) {
        if (scope_held(&c->tables, scope)) {
            continue;
        }
        judge_leader(c, scope);
        for (int i = 0; i < HISTORY_SCHEDULES; i++) {
            struct schedule_rows *s = &c->tables.schedules[i];
            if (s->version_count > 0 && (!s->progress.present || s->scope == scope)) {
                judge_planned(c, f, i);
            }
        }
    }
    judge_worked(c, f);
}
