/* The port scheduler/store/store_plan.h on the database in memory: what is read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_fake.h"
#include "store_plan.h"
#include "world.h"

static utc_us time_of(int64_t us)
{
    return us == HISTORY_NONE ? UTC_NONE : (utc_us){us};
}

static void rule_fill(const struct recipe *r, struct stored_rule *rule)
{
    *rule = (struct stored_rule){
        .anchor = UTC_NONE, .starts_at = time_of(r->starts_at), .ends_at = time_of(r->ends_at)};
    (void)snprintf(rule->kind, sizeof rule->kind, "cron");
    (void)snprintf(rule->time_zone, sizeof rule->time_zone, "%s",
                   r->zone == ZONE_BERLIN ? "Europe/Berlin" : "UTC");
    switch (r->kind) {
    case RECIPE_INTERVAL:
        (void)snprintf(rule->kind, sizeof rule->kind, "interval");
        (void)snprintf(rule->text, sizeof rule->text, "%lld seconds",
                       (long long)(r->every_us / 1000000));
        rule->anchor = time_of(r->anchor_us);
        break;
    case RECIPE_MINUTES:
        (void)snprintf(rule->text, sizeof rule->text, "*/%d * * * *", r->step);
        break;
    case RECIPE_DAILY:
        (void)snprintf(rule->text, sizeof rule->text, "%d %d * * *", r->minute, r->hour);
        break;
    case RECIPE_WEEKLY:
        (void)snprintf(rule->text, sizeof rule->text, "%d %d * * %d", r->minute, r->hour,
                       r->weekday);
        break;
    }
}

/* The row of one version. */
static void due_fill(int schedule, const struct db_version *v, struct due_row *d)
{
    const struct db_progress *p = &db.progress[schedule];
    const struct recipe *r = &v->recipe;
    *d = (struct due_row){.version = v->version,
                          .step = p->step,
                          .next_fire_at = time_of(p->next_fire_at),
                          .last_fire_at = time_of(p->last_fire_at),
                          .switched_at = time_of(p->switched_at),
                          .misfire_max = r->misfire_max,
                          .misfire_age_us = r->misfire_age_us,
                          .misfire_grace_us = r->misfire_grace_us,
                          .effective_from = time_of(v->effective_from),
                          .paused = r->paused,
                          .ended = r->ended};
    schedule_name(schedule, d->schedule);
    memcpy(d->key_form, p->key_form, sizeof d->key_form);
    rule_fill(r, &d->rule);
    for (size_t i = 0; i < CHANGES_MAX; i++) {
        d->edited = d->edited || (db.changes[i].used && db.changes[i].schedule == schedule);
    }
}

struct rows_request {
    struct request q;
    bool named, versions, ahead;
    size_t limit, offset, max;
    int64_t now, until;
    int names[HISTORY_SCHEDULES];
    size_t name_count;
    struct due_row *rows;
    size_t count;
};

static void rows_done(struct request *q)
{
    kernel_free(((struct rows_request *)q)->rows);
}

static struct rows_request *rows_new(const struct store_call *call,
                                     void (*execute)(struct request *, struct transaction *),
                                     size_t max)
{
    struct rows_request *r = request_new(sizeof *r, OP_NONE, execute);
    request_authority(&r->q, call->authority);
    r->max = max < 256 ? max : 256;
    r->rows = kernel_new(r->max * sizeof r->rows[0]);
    r->q.done = rows_done;
    return r;
}

static enum status rows_ask(const struct store_call *call, struct rows_request *r,
                            struct due_rows *ret_rows, struct error *err)
{
    enum status status = exchange(call->store, call->deadline, &r->q, err);
    if (status == STATUS_OK) {
        memcpy(ret_rows->rows, r->rows, r->count * sizeof r->rows[0]);
        ret_rows->count = r->count;
        ret_rows->now = r->count == 0 ? UTC_NONE : (utc_us){r->now};
    }
    request_end(&r->q);
    return status;
}

static void due_execute(struct request *q, struct transaction *t)
{
    struct rows_request *r = (struct rows_request *)q;
    bool taken[HISTORY_SCHEDULES] = {false};
    size_t passed = 0;
    int64_t until = r->until == HISTORY_NONE ? t->now : r->until;
    r->now = t->now;
    while (r->count < r->limit && r->count < r->max) {
        int first = -1;
        for (int s = 0; s < db.schedules; s++) {
            const struct db_progress *p = &db.progress[s];
            if (p->used && db.schedule_scope[s] == q->scope && !taken[s] &&
                p->next_fire_at != HISTORY_NONE && p->next_fire_at <= until &&
                (first < 0 || p->next_fire_at < db.progress[first].next_fire_at)) {
                first = s;
            }
        }
        if (first < 0) {
            break;
        }
        taken[first] = true;
        if (passed++ >= r->offset) {
            due_fill(first, version_of(first, db.progress[first].version), &r->rows[r->count++]);
        }
    }
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_due(const struct store_call *call, struct due_page page,
                      struct due_rows *ret_rows, struct error *err)
{
    struct rows_request *r = rows_new(call, due_execute, ret_rows->max);
    r->limit = page.limit;
    r->offset = page.offset;
    r->until = utc_is_none(page.until) ? HISTORY_NONE : page.until.us;
    return rows_ask(call, r, ret_rows, err);
}

static void progress_execute(struct request *q, struct transaction *t)
{
    struct rows_request *r = (struct rows_request *)q;
    r->now = t->now;
    for (size_t i = 0; i < r->name_count && r->count < r->max; i++) {
        int s = r->names[i];
        const struct db_version *v =
            db.progress[s].used ? version_of(s, db.progress[s].version) : NULL;
        if (v != NULL && !v->recipe.ended && db.schedule_scope[s] == q->scope) {
            due_fill(s, v, &r->rows[r->count++]);
            r->rows[r->count - 1].edited = false;
        }
    }
    request_answer(q, VERDICT_OK, STATUS_OK);
}

static void names_copy(struct rows_request *r, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count && i < HISTORY_SCHEDULES; i++) {
        r->names[r->name_count++] = schedule_find(names[i]);
    }
}

enum status store_progress_of(const struct store_call *call, const char *const *names, size_t count,
                              struct due_rows *ret_rows, struct error *err)
{
    struct rows_request *r = rows_new(call, progress_execute, ret_rows->max);
    names_copy(r, names, count);
    return rows_ask(call, r, ret_rows, err);
}

static void versions_execute(struct request *q, struct transaction *t)
{
    struct rows_request *r = (struct rows_request *)q;
    r->now = t->now;
    for (size_t i = 0; i < r->name_count; i++) {
        int s = r->names[i];
        size_t its = 0;
        for (size_t k = db.version_count; k > 0 && its < r->limit && r->count < r->max; k--) {
            const struct db_version *v = &db.versions[k - 1];
            int present = db.progress[s].version;
            bool wanted = r->ahead ? v->version > present : v->version < present;
            if (v->schedule == s && wanted && db.progress[s].used) {
                struct due_row *d = &r->rows[r->count++];
                due_fill(s, v, d);
                d->next_fire_at = UTC_NONE;
                d->switched_at = d->effective_from;
                d->edited = false;
                its++;
            }
        }
    }
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_versions(const struct store_call *call, const struct versions_wanted *wanted,
                           struct due_rows *ret_rows, struct error *err)
{
    struct rows_request *r = rows_new(call, versions_execute, ret_rows->max);
    r->ahead = wanted->ahead;
    r->limit = wanted->limit;
    names_copy(r, wanted->names, wanted->count);
    return rows_ask(call, r, ret_rows, err);
}

struct next_request {
    struct request q;
    int64_t next, now;
    bool edited;
};

static void next_execute(struct request *q, struct transaction *t)
{
    struct next_request *r = (struct next_request *)q;
    r->now = t->now;
    r->next = HISTORY_NONE;
    for (int s = 0; s < db.schedules; s++) {
        const struct db_progress *p = &db.progress[s];
        if (p->used && db.schedule_scope[s] == q->scope && p->next_fire_at != HISTORY_NONE &&
            (r->next == HISTORY_NONE || p->next_fire_at < r->next)) {
            r->next = p->next_fire_at;
        }
    }
    for (size_t i = 0; i < CHANGES_MAX; i++) {
        const struct db_change *c = &db.changes[i];
        r->edited = r->edited || (c->used && db.schedule_scope[c->schedule] == q->scope);
    }
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_next_due(const struct store_call *call, struct next_due *ret_next,
                           struct error *err)
{
    struct next_request *r = request_new(sizeof *r, OP_NONE, next_execute);
    request_authority(&r->q, call->authority);
    enum status status = exchange(call->store, call->deadline, &r->q, err);
    if (status == STATUS_OK) {
        *ret_next = (struct next_due){.at = time_of(r->next), .now = {r->now}, .edited = r->edited};
    }
    request_end(&r->q);
    return status;
}

/* Edits ------------------------------------------------------------------------------------------
 */

struct changes_request {
    struct request q;
    int after; /* schedules with a higher number */
    struct change_row rows[HISTORY_SCHEDULES];
    size_t count;
    int64_t now;
};

static void highest_key(int schedule, char ret_key[KEY_MAX_BYTES])
{
    for (size_t i = 0; i < db.job_count; i++) {
        const struct db_occurrence *o = &db.occurrences[i];
        if (o->schedule == schedule && o->cause != CAUSE_MANUAL && strcmp(o->key, ret_key) > 0) {
            memcpy(ret_key, o->key, KEY_MAX_BYTES);
        }
    }
}

static void change_fill(const struct db_change *change, struct change_row *c)
{
    int s = change->schedule;
    const struct db_version *v = version_of(s, change->version);
    const struct db_progress *p = &db.progress[s];
    *c = (struct change_row){.change_id = change->id,
                             .version = v->version,
                             .effective_from = time_of(v->effective_from),
                             .ended = v->recipe.ended,
                             .paused = v->recipe.paused,
                             .has_progress = p->used,
                             .next_fire_at = UTC_NONE,
                             .last_fire_at = UTC_NONE};
    schedule_name(s, c->schedule);
    rule_fill(&v->recipe, &c->rule);
    if (!p->used) {
        return;
    }
    const struct recipe *present = &version_of(s, p->version)->recipe;
    c->step = p->step;
    c->next_fire_at = time_of(p->next_fire_at);
    c->last_fire_at = time_of(p->last_fire_at);
    memcpy(c->key_form, p->key_form, sizeof c->key_form);
    c->has_problem = p->problem;
    c->was_paused = present->paused && !present->ended;
    c->has_last = p->has_last_nominal;
    c->last_nominal = (struct local_time){p->last_nominal_s};
    c->has_next = p->has_next_nominal;
    c->next_nominal = (struct local_time){p->next_nominal_s};
    highest_key(s, c->highest_key);
}

static void changes_execute(struct request *q, struct transaction *t)
{
    struct changes_request *r = (struct changes_request *)q;
    r->now = t->now;
    for (int s = r->after + 1; s < db.schedules; s++) {
        const struct db_change *oldest = NULL;
        for (size_t i = 0; i < CHANGES_MAX; i++) {
            const struct db_change *c = &db.changes[i];
            if (c->used && c->schedule == s && db.schedule_scope[s] == q->scope &&
                (oldest == NULL || c->version < oldest->version)) {
                oldest = c;
            }
        }
        if (oldest != NULL) {
            change_fill(oldest, &r->rows[r->count++]);
        }
    }
    request_answer(q, VERDICT_OK, STATUS_OK);
}

enum status store_changes(const struct store_call *call, const char *after,
                          struct change_rows *ret_rows, struct error *err)
{
    struct changes_request *r = request_new(sizeof *r, OP_NONE, changes_execute);
    request_authority(&r->q, call->authority);
    r->after = after[0] == '\0' ? -1 : schedule_find(after);
    enum status status = exchange(call->store, call->deadline, &r->q, err);
    if (status == STATUS_OK) {
        ret_rows->count = r->count < ret_rows->max ? r->count : ret_rows->max;
        memcpy(ret_rows->rows, r->rows, ret_rows->count * sizeof r->rows[0]);
        ret_rows->now = r->count == 0 ? UTC_NONE : (utc_us){r->now};
    }
    request_end(&r->q);
    return status;
}

struct keys_request {
    struct request q;
    int schedule;
    size_t count;
    char (*keys)[KEY_MAX_BYTES];
    bool *taken;
};

static void keys_execute(struct request *q, struct transaction *t)
{
    struct keys_request *r = (struct keys_request *)q;
    (void)t;
    for (size_t i = 0; i < r->count; i++) {
        r->taken[i] = occurrence_find(r->schedule, r->keys[i]) < db.job_count;
    }
    request_answer(q, VERDICT_OK, STATUS_OK);
}

static void keys_done(struct request *q)
{
    struct keys_request *r = (struct keys_request *)q;
    kernel_free(r->keys);
    kernel_free(r->taken);
}

enum status store_keys_taken(const struct store_call *call, const char *schedule,
                             struct plan_candidates *c, struct error *err)
{
    struct keys_request *r = request_new(sizeof *r, OP_NONE, keys_execute);
    request_authority(&r->q, call->authority);
    r->schedule = schedule_find(schedule);
    r->count = c->count;
    r->keys = kernel_new(c->count * sizeof r->keys[0] + 1);
    r->taken = kernel_new(c->count * sizeof r->taken[0] + 1);
    r->q.done = keys_done;
    memcpy(r->keys, c->keys, c->count * sizeof r->keys[0]);
    enum status status = exchange(call->store, call->deadline, &r->q, err);
    for (size_t i = 0; status == STATUS_OK && i < r->count; i++) {
        c->taken[i] = c->taken[i] || r->taken[i];
    }
    request_end(&r->q);
    return status;
}

static void check_execute(struct request *q, struct transaction *t)
{
    bool ours = fence_holds(t);
    bool held = is_held(q->scope);
    request_answer(q, VERDICT_OK, !ours ? STATUS_FENCED : held ? STATUS_HELD : STATUS_OK);
}

enum status store_authority_check(const struct store_call *call, struct error *err)
{
    struct request *q = request_new(sizeof *q, OP_NONE, check_execute);
    request_authority(q, call->authority);
    enum status status = exchange(call->store, call->deadline, q, err);
    request_end(q);
    return status;
}
