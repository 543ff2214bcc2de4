/* The protected writes of sql/0005_planning.sql. */
#include <stdio.h>
#include <string.h>

#include "database.h"
#include "mutant.h"
#include "world.h"

#define RELEASE_LIMIT 1000

/* take_in ----------------------------------------------------------------------------------------
 */

static struct db_change *change_find(int64_t id)
{
    for (size_t i = 0; i < CHANGES_MAX; i++) {
        if (db.changes[i].used && db.changes[i].id == id) {
            return &db.changes[i];
        }
    }
    return NULL;
}

static void progress_begin(struct taken_edit *e, const struct db_version *v, struct db_progress *p)
{
    const struct recipe *r = &v->recipe;
    *p = (struct db_progress){.used = true,
                              .version = e->version,
                              .step = 1,
                              .next_fire_at = HISTORY_NONE,
                              .last_fire_at = HISTORY_NONE,
                              .switched_at = e->switched_at,
                              .has_next_nominal = e->has_next,
                              .next_nominal_s = e->next_nominal_s,
                              .problem = e->problem};
    memcpy(p->key_form, e->key_form, sizeof p->key_form);
    if (!e->problem && !r->ended && !r->paused && e->has_next) {
        p->next_fire_at = e->next_fire_at;
    }
}

static void progress_switch(struct taken_edit *e, const struct db_version *v, struct db_progress *p)
{
    const struct recipe *r = &v->recipe;
    bool fires = !e->problem && !r->ended && !r->paused && e->has_next;
    p->switched_at = p->problem && e->problem ? p->switched_at : e->switched_at;
    p->version = e->version;
    p->step++;
    p->next_fire_at = fires ? e->next_fire_at : HISTORY_NONE;
    if (!e->problem || e->has_next) {
        p->has_next_nominal = e->has_next;
        p->next_nominal_s = e->next_nominal_s;
    }
    if (p->key_form[0] == '\0') {
        memcpy(p->key_form, e->key_form, sizeof p->key_form);
    }
    p->problem = e->problem;
}

static bool take_one_in(struct transaction *t, struct taken_edit *e, bool *adopting)
{
    const struct db_version *v = version_of(e->schedule, e->version);
    struct db_progress *p = &db.progress[e->schedule];
    struct db_change *c = change_find(e->change);
    enum overlap_policy before = OVERLAP_ALLOW;
    if (v == NULL || c == NULL || db.schedule_scope[e->schedule] != t->scope) {
        return false;
    }
    if (!e->has_progress) {
        if (p->used) {
            return false;
        }
        progress_begin(e, v, p);
    } else {
        if (!p->used || p->step != e->step || p->version >= e->version) {
            return false;
        }
        before = version_of(e->schedule, p->version)->recipe.overlap;
        progress_switch(e, v, p);
    }
    c->used = false;
    tell_progress(t, e->schedule);
    if (e->has_progress && before != v->recipe.overlap) {
        adopt_overlap(t, e->schedule, v->recipe.overlap);
        *adopting = true;
    }
    return true;
}

enum call_verdict take_in(struct transaction *t, struct taken_edit *rows, size_t count)
{
    if (!fence_holds(t)) {
        return VERDICT_FENCED;
    }
    bool adopting = false;
    for (size_t i = 0; i < count; i++) {
        rows[i].taken = take_one_in(t, &rows[i], &adopting);
    }
    if (adopting && !is_held(t->scope)) {
        (void)release_waiting(t, RELEASE_LIMIT);
    }
    return VERDICT_OK;
}

/* plan_batch -------------------------------------------------------------------------------------
 */

/* What one schedule's part of the batch comes to. */
struct part {
    struct planned_entry *entry;
    const struct db_version *version;
    int64_t was_fire_at;
    bool blocked; /* forbid: a job is open */
    size_t made;
    bool some_wait;
    char newest[UUID_TEXT_MAX];
    struct db_gap *forbidden; /* the gap that is being extended */
};

static void gap_add(struct transaction *t, const struct part *part, struct db_gap gap)
{
    if (db.gap_count == GAPS_MAX) {
        return;
    }
    gap.id = ++db.next_gap;
    gap.schedule = part->entry->schedule;
    gap.version = part->entry->version;
    db.gaps[db.gap_count] = gap;
    tell_gap(t, &db.gaps[db.gap_count++]);
}

/* Firings that follow one another without a job between them are one gap. */
static void forbid(struct transaction *t, struct part *part, const struct planned_row *f,
                   bool has_holes)
{
    struct db_gap *g = part->forbidden;
    for (size_t i = db.gap_count; g == NULL && i > 0; i--) {
        struct db_gap *before = &db.gaps[i - 1];
        if (before->schedule == f->schedule && before->to == part->was_fire_at &&
            before->cause == GAP_BY_FORBID && before->version == part->entry->version &&
            part->blocked && !has_holes) {
            g = before;
        }
    }
    if (g == NULL) {
        gap_add(t, part,
                (struct db_gap){
                    .from = f->fire_at, .to = f->fire_at, .firings = 1, .cause = GAP_BY_FORBID});
        part->forbidden = &db.gaps[db.gap_count - 1];
        return;
    }
    g->to = f->fire_at;
    g->firings++;
    part->forbidden = g;
    tell_gap(t, g);
}

static enum job_waits waits_for(const struct part *part, const struct planned_row *f, int scope)
{
    const struct recipe *r = &part->version->recipe;
    if (r->overlap == OVERLAP_QUEUE || r->overlap == OVERLAP_REPLACE) {
        return WAITS_FOR_OVERLAP;
    }
    bool bounded =
        world.setup.queue_bound[r->queue] > 0 ||
        ((world.setup.catch_up_max[scope] > 0 || world.setup.catch_up_per_minute[scope] > 0) &&
         f->cause == CAUSE_MISFIRE);
    return bounded ? WAITS_FOR_CAPACITY : WAITS_FOR_NOTHING;
}

static void job_make(struct transaction *t, struct part *part, const struct planned_row *f)
{
    const struct recipe *r = &part->version->recipe;
    size_t i = db.job_count++;
    struct db_job *j = &db.jobs[i];
    db.occurrences[i] = (struct db_occurrence){.schedule = f->schedule,
                                               .version = part->entry->version,
                                               .scheduled_for = f->fire_at,
                                               .cause = f->cause};
    memcpy(db.occurrences[i].key, f->key, sizeof f->key);
    *j = (struct db_job){.scope = t->scope,
                         .queue = r->queue,
                         .waits = waits_for(part, f, t->scope),
                         .overlap = r->overlap,
                         .catch_up = f->cause == CAUSE_MISFIRE,
                         .run_after = f->fire_at,
                         .max_attempts = 3,
                         .retry_base = 500000,
                         .retry_cap = 3000000,
                         .timeout = 20000000,
                         .worker = -1};
    memcpy(j->id, f->job, sizeof j->id);
    j->state = j->waits == WAITS_FOR_NOTHING ? JOB_QUEUED : JOB_WAITING;
    j->dispatch_number = j->waits == WAITS_FOR_NOTHING ? 1 : 0;
    tell_occurrence(t, i);
    tell_job(t, i);
    if (j->state == JOB_QUEUED) {
        (void)outbox_add(t, i);
    }
    (void)snprintf(part->newest, sizeof part->newest, "%s", j->id);
    part->some_wait = part->some_wait || j->state == JOB_WAITING;
    part->made++;
}

static void firing_write(struct transaction *t, struct part *part, const struct planned_row *f,
                         bool has_holes)
{
    enum overlap_policy overlap = part->version->recipe.overlap;
    bool taken = occurrence_find(f->schedule, f->key) < db.job_count;
    if (taken) {
        gap_add(t, part,
                (struct db_gap){
                    .from = f->fire_at, .to = f->fire_at, .firings = 1, .cause = GAP_BY_TAKEN_KEY});
        return;
    }
    if (overlap == OVERLAP_FORBID && (part->blocked || part->made > 0)) {
        forbid(t, part, f, has_holes);
        return;
    }
    if (db.job_count < OCCURRENCES_MAX) {
        job_make(t, part, f);
    }
}

static void progress_move(struct transaction *t, struct planned_entry *e, struct db_progress *p)
{
    p->step++;
    p->next_fire_at = e->has_next ? e->next_fire_at : HISTORY_NONE;
    p->has_next_nominal = e->has_next_nominal;
    p->next_nominal_s = e->next_nominal_s;
    if (e->has_last) {
        p->last_fire_at = e->last_fire_at;
        p->has_last_nominal = true;
        p->last_nominal_s = e->last_nominal_s;
    }
    e->advanced = true;
    tell_progress(t, e->schedule);
}

static void entry_write(struct transaction *t, struct planned *p, struct planned_entry *e)
{
    struct db_progress *progress = &db.progress[e->schedule];
    bool as_read = progress->version == e->version && progress->step == e->step;
    if (!progress->used || db.schedule_scope[e->schedule] != t->scope ||
        (!as_read && !MUTANT("progress_without_version"))) {
        return;
    }
    size_t open[64];
    struct part part = {.entry = e,
                        .version = version_of(e->schedule, e->version),
                        .was_fire_at = progress->last_fire_at};
    enum overlap_policy overlap = part.version->recipe.overlap;
    bool has_holes = false;
    part.blocked = overlap == OVERLAP_FORBID && open_jobs(e->schedule, open, 64) > 0;
    progress_move(t, e, progress);
    for (size_t i = 0; i < p->hole_count; i++) {
        const struct planned_hole *h = &p->holes[i];
        if (h->schedule == e->schedule) {
            has_holes = true;
            gap_add(t, &part,
                    (struct db_gap){
                        .from = h->from, .to = h->to, .firings = h->firings, .cause = h->cause});
        }
    }
    for (size_t i = 0; i < p->row_count; i++) {
        if (p->rows[i].schedule == e->schedule) {
            firing_write(t, &part, &p->rows[i], has_holes);
        }
    }
    p->made += (int)part.made;
    p->some_wait = p->some_wait || part.some_wait;
    if (strcmp(part.newest, p->newest) > 0) {
        memcpy(p->newest, part.newest, sizeof p->newest);
    }
    if (overlap == OVERLAP_REPLACE && part.made > 0) {
        replace_jobs(t, db.job_count - 1);
    }
}

enum call_verdict plan_batch(struct transaction *t, struct planned *p)
{
    p->made = 0;
    if (!fence_holds(t)) {
        return VERDICT_FENCED;
    }
    if (is_held(t->scope)) {
        return VERDICT_HELD;
    }
    const char *known[] = {p->known};
    if (job_not_known(t->scope, known, 1) != NULL) {
        p->moved = true;
        return VERDICT_ERROR;
    }
    for (size_t i = 0; i < p->row_count; i++) {
        if (p->rows[i].fire_at > t->now && !MUTANT("plans_early")) {
            p->too_early = true;
            return VERDICT_ERROR;
        }
    }
    for (size_t i = 0; i < p->entry_count; i++) {
        entry_write(t, p, &p->entries[i]);
    }
    if (p->some_wait) {
        (void)release_waiting(t, RELEASE_LIMIT);
    }
    return VERDICT_OK;
}

enum call_verdict mark_problem(struct transaction *t, int schedule, int64_t step)
{
    struct db_progress *p = &db.progress[schedule];
    if (!fence_holds(t)) {
        return VERDICT_FENCED;
    }
    if (!p->used || p->step != step || db.schedule_scope[schedule] != t->scope) {
        return VERDICT_ERROR;
    }
    p->problem = true;
    p->next_fire_at = HISTORY_NONE;
    p->step++;
    tell_progress(t, schedule);
    return VERDICT_OK;
}
