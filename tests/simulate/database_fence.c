/* sql/0003_authority.sql. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_fake.h"
#include "mutant.h"
#include "world.h"

struct database db;
static int64_t clock_step;

void database_reset(void)
{
    memset(&db, 0, sizeof db);
    clock_step = 0;
    for (int i = 0; i < HISTORY_SCOPES; i++) {
        db.fences[i].beat_at = db.fences[i].reap_not_before = INT64_MIN / 4; /* -infinity */
    }
}

int64_t database_now(void)
{
    return world.base_us + world_us() + clock_step;
}

void database_step_clock(int64_t by_us)
{
    world_fact((struct fact){
        .kind = FACT_CLOCK_STEP, .node = -1, .db_us = database_now(), .by_us = by_us});
    clock_step += by_us;
}

static int order(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* How the stored generation compares with the one that the call brings. */
static int fence_order(const struct db_fence *f, const struct authority *a)
{
    int by = order(f->incarnation, a->incarnation);
    return by != 0 ? by : order(f->generation, a->generation);
}

bool fence_holds(struct transaction *t)
{
    const struct db_fence *f = &db.fences[t->scope];
    int by = fence_order(f, &t->authority);
    if (MUTANT("fence_ge")) {
        return by >= 0 && !f->released;
    }
    return by == 0 && !f->released && strcmp(f->owner, t->authority.owner) == 0;
}

bool is_held(int scope)
{
    for (size_t i = 0; i < db.hold_count; i++) {
        const struct db_hold *h = &db.holds[i];
        if (!h->lifted && (h->scope < 0 || h->scope == scope)) {
            return !MUTANT("hold_ignored");
        }
    }
    return false;
}

int raise_hold(struct transaction *t, int scope)
{
    size_t i = db.hold_count++;
    db.holds[i] = (struct db_hold){.scope = scope, .since = t->now};
    tell_hold(t, i);
    return (int)i;
}

void lift_hold(struct transaction *t, int id)
{
    db.holds[id].lifted = true;
    tell_hold(t, (size_t)id);
}

static const struct db_ensemble *ensemble_newest(void)
{
    const struct db_ensemble *newest = NULL;
    for (size_t i = 0; i < db.ensemble_count; i++) {
        const struct db_ensemble *e = &db.ensembles[i];
        newest = newest == NULL || e->incarnation > newest->incarnation ? e : newest;
    }
    return newest;
}

static struct db_ensemble *ensemble_find(const char *id)
{
    for (size_t i = 0; i < db.ensemble_count; i++) {
        if (strcmp(db.ensembles[i].id, id) == 0) {
            return &db.ensembles[i];
        }
    }
    return NULL;
}

enum db_meeting ensemble_meet(struct transaction *t, const char *ensemble, int64_t *ret_incarnation)
{
    const struct db_ensemble *newest = ensemble_newest();
    const struct db_ensemble *its = ensemble_find(ensemble);
    if (newest == NULL) {
        struct db_ensemble *e = &db.ensembles[db.ensemble_count++];
        e->incarnation = *ret_incarnation = 1;
        (void)snprintf(e->id, sizeof e->id, "%s", ensemble);
        tell_ensemble(t, e);
        return MEETING_ADOPTED;
    }
    if (its != newest) {
        (void)snprintf(db.refused, sizeof db.refused, "%s", ensemble);
        return its == NULL ? MEETING_UNKNOWN : MEETING_RETIRED;
    }
    *ret_incarnation = its->incarnation;
    return MEETING_KNOWN;
}

static void lift_cause(struct transaction *t, enum db_cause cause, int64_t before)
{
    for (size_t i = 0; i < db.hold_count; i++) {
        struct db_hold *h = &db.holds[i];
        if (h->cause == cause && !h->lifted && h->since <= before) {
            lift_hold(t, (int)i);
        }
    }
}

/* rebase_target: what waiting candidates see, or what is in force and was restored. */
static const char *rebase_target(void)
{
    for (size_t i = 0; i < db.hold_count; i++) {
        if (db.holds[i].cause == CAUSE_ZXID_REGRESSED && !db.holds[i].lifted) {
            return ensemble_newest()->id;
        }
    }
    return db.refused;
}

bool rebase(void)
{
    struct transaction t = {
        .call = ++world.calls, .op = OP_NONE, .node = -1, .scope = -1, .now = database_now()};
    char ensemble[64];
    (void)snprintf(ensemble, sizeof ensemble, "%s", rebase_target());
    struct db_ensemble *e = ensemble_find(ensemble);
    if (ensemble[0] == '\0' || (e == NULL && db.ensemble_count == ENSEMBLES_MAX)) {
        return false;
    }
    int64_t incarnation = ensemble_newest()->incarnation;
    for (int i = 0; i < world.setup.scopes; i++) {
        int64_t its = db.fences[i].incarnation;
        incarnation = its > incarnation ? its : incarnation;
    }
    e = e == NULL ? &db.ensembles[db.ensemble_count++] : e;
    (void)snprintf(e->id, sizeof e->id, "%s", ensemble);
    e->incarnation = incarnation + 1;
    tell_ensemble(&t, e);
    for (int i = 0; i < world.setup.scopes; i++) {
        struct db_fence *f = &db.fences[i];
        f->incarnation = e->incarnation;
        f->generation = 0;
        f->owner[0] = '\0';
        f->released = true;
        tell_fence(&t, i);
    }
    lift_cause(&t, CAUSE_ZXID_REGRESSED, t.now);
    db.refused[0] = '\0';
    tell_call(&t, VERDICT_OK);
    return true;
}

void lift_rewound(int64_t older_than_us)
{
    struct transaction t = {
        .call = ++world.calls, .op = OP_LIFT_HOLD, .node = -1, .scope = -1, .now = database_now()};
    lift_cause(&t, CAUSE_DATABASE_REWOUND, t.now - older_than_us);
    tell_call(&t, VERDICT_OK);
}

/* Guards (I2, I3 relative to what this database knows) -------------------------------------------
 */

bool is_moved(int scope)
{
    uint64_t on = db.fences[scope].established_on;
    return on != 0 && on != server.epoch;
}

/* reports.time_of_job: microseconds. */
static int64_t time_of_job(const char *id)
{
    char hex[13];
    (void)snprintf(hex, sizeof hex, "%.8s%.4s", id, id + 9);
    return (int64_t)strtoull(hex, NULL, 16) * 1000;
}

const char *job_not_known(int scope, const char *const *jobs, size_t count)
{
    const char *newest = NULL;
    for (size_t i = 0; i < count; i++) {
        bool forgiven = jobs[i][0] == '\0' || job_find(jobs[i]) < db.job_count;
        for (size_t k = 0; k < db.hold_count; k++) {
            const struct db_hold *h = &db.holds[k];
            forgiven =
                forgiven || (h->scope == scope && h->cause == CAUSE_DATABASE_REWOUND && h->lifted &&
                             (strcmp(h->mark, jobs[i]) >= 0 || h->since >= time_of_job(jobs[i])));
        }
        if (!forgiven && (newest == NULL || strcmp(jobs[i], newest) > 0)) {
            newest = jobs[i];
        }
    }
    return newest;
}

static void raise_guard(struct transaction *t, enum db_cause cause, const char *mark)
{
    for (size_t i = 0; i < db.hold_count; i++) {
        const struct db_hold *h = &db.holds[i];
        if (h->scope == t->scope && h->cause == cause && !h->lifted) {
            return;
        }
    }
    if (db.hold_count < HOLDS_MAX) {
        struct db_hold *h = &db.holds[db.hold_count++];
        *h = (struct db_hold){.scope = t->scope, .cause = cause, .since = t->now};
        (void)snprintf(h->mark, sizeof h->mark, "%s", mark);
        tell_hold(t, db.hold_count - 1);
    }
}

bool prove_regressed(struct transaction *t, int64_t read)
{
    const struct db_fence *f = &db.fences[t->scope];
    if (f->incarnation != t->authority.incarnation || t->authority.generation > read ||
        read > f->generation) {
        return false;
    }
    raise_guard(t, CAUSE_ZXID_REGRESSED, "");
    return true;
}

/* The leases that live workers agreed to, and the one new ones would. */
int64_t lease_longest(void)
{
    int64_t longest = world.setup.claim_lease_us;
    for (size_t i = 0; i < db.worker_count; i++) {
        const struct db_worker *w = &db.workers[i];
        bool lives = w->state == WORKER_ALIVE || w->state == WORKER_DRAINING;
        longest = lives && w->claim_lease > longest ? w->claim_lease : longest;
    }
    return longest;
}

int64_t lease_clock(const struct transaction *t, int scope)
{
    int64_t beat_at = db.fences[scope].beat_at;
    return beat_at > t->now && !MUTANT("lease_by_clock_alone") ? beat_at : t->now;
}

bool beat(struct transaction *t, int scope, bool stepped, bool step_known)
{
    struct db_fence *f = &db.fences[scope];
    int64_t at = t->now;
    int64_t longest = lease_longest();
    int64_t spare = world.setup.claim_lease_us / 4 + world.setup.reap_grace_us;
    int64_t silent = step_known ? spare : spare / 2;
    if ((step_known && stepped) || f->beat_at > at + 1000000 || f->beat_at < at - silent) {
        f->reap_not_before = at + longest;
    }
    f->beat_at = at;
    tell_pulse(t, scope);
    return true;
}

static bool is_superseded(const struct db_fence *f, const struct authority *a)
{
    int by = order(f->incarnation, a->incarnation);
    by = by != 0 ? by : order(f->generation, a->generation);
    return by >= 0;
}

enum call_verdict establish(struct transaction *t, const char *const *marks)
{
    struct db_fence *f = &db.fences[t->scope];
    const struct authority *a = &t->authority;
    bool again = fence_holds(t);
    bool known = false;
    for (size_t i = 0; i < db.ensemble_count; i++) {
        known = known || db.ensembles[i].incarnation == a->incarnation;
    }
    if (!known) {
        return VERDICT_ERROR; /* RS003 */
    }
    if (!again && is_superseded(f, a) && !MUTANT("establish_accepts_lower")) {
        return VERDICT_FENCED;
    }
    const char *newest = job_not_known(t->scope, marks, 2);
    if (newest != NULL) {
        raise_guard(t, CAUSE_DATABASE_REWOUND, newest);
    }
    if (is_held(t->scope)) {
        return VERDICT_HELD;
    }
    if (!again) {
        f->incarnation = a->incarnation;
        f->generation = a->generation;
        f->released = false;
        memcpy(f->owner, a->owner, sizeof f->owner);
        tell_fence(t, t->scope);
    }
    f->established_on = server.epoch;
    (void)beat(t, t->scope, false, false);
    return VERDICT_OK;
}

enum call_verdict register_backend(struct transaction *t, const char *mark)
{
    const char *marks[] = {mark};
    if (!fence_holds(t)) {
        return VERDICT_FENCED;
    }
    return is_moved(t->scope) || job_not_known(t->scope, marks, 1) != NULL ? VERDICT_ERROR
                                                                           : VERDICT_OK;
}

enum call_verdict activated(struct transaction *t)
{
    return fence_holds(t) ? VERDICT_OK : VERDICT_FENCED;
}

enum call_verdict release(struct transaction *t)
{
    struct db_fence *f = &db.fences[t->scope];
    const struct authority *a = &t->authority;
    if (f->incarnation != a->incarnation || f->generation != a->generation ||
        strcmp(f->owner, a->owner) != 0) {
        return VERDICT_FENCED;
    }
    if (!f->released) {
        f->released = true;
        tell_fence(t, t->scope);
    }
    return VERDICT_OK;
}
