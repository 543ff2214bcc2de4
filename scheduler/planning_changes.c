/* Taking edits in. The old version first plans everything that was due under it, so that an edit
 * made while nobody led loses nothing; what was due while a version had a problem becomes a gap. */
#include "planning_state.h"

#include <stdio.h>
#include <string.h>

enum change_course {
    CHANGE_TAKE, /* nothing due is left under the old version */
    CHANGE_PLAN, /* the old version plans up to effective_from first */
    CHANGE_MEND, /* the old version had a problem: its due firings become a gap first */
    CHANGE_WAIT, /* not in this pass */
};

static enum change_course course_of(const struct planning *p, const struct change_row *c,
                                    instant now)
{
    if (rest_is_on(&p->rest, c->schedule, now)) {
        return CHANGE_WAIT;
    }
    if (c->has_progress && c->has_problem) {
        const struct rest *r = rest_find(&p->rest, c->schedule);
        return r != NULL && r->failures > 0 ? CHANGE_TAKE : CHANGE_MEND;
    }
    bool due_before = c->has_progress && !utc_is_none(c->next_fire_at) &&
                      c->next_fire_at.us < c->effective_from.us;
    return due_before ? CHANGE_PLAN : CHANGE_TAKE;
}

static size_t change_find(const struct change_rows *rows, const char *schedule)
{
    size_t i = 0;
    while (i < rows->count && strcmp(rows->rows[i].schedule, schedule) != 0) {
        i++;
    }
    return i;
}

/* Plan one schedule under its old version. Says what becomes of the edit in this pass. */
static enum status old_version_plan(struct planning *p, const struct due_row *row,
                                    const struct change_row *change, enum change_course *course,
                                    struct error *err)
{
    struct plan_batch *b = p->batch;
    struct plan_bounds bounds = {change->effective_from, *course == CHANGE_MEND};
    enum status s = plan_batch_add(b, row, p->due.now, bounds, p->zones, err);
    if (s == STATUS_INVALID && *course == CHANGE_MEND && !change->ended) {
        /* The broken rule names no firings. What the mended one would have fired meanwhile is what
         * people miss: that is the gap (I3). */
        struct due_row mended = *row;
        mended.rule = change->rule;
        s = plan_batch_add(b, &mended, p->due.now, bounds, p->zones, err);
    }
    if (s == STATUS_CORRUPT) {
        *course = CHANGE_WAIT;
        planning_cannot_here(p, row->schedule, err != NULL ? err->text : "");
        return STATUS_OK;
    }
    if (s == STATUS_FULL) {
        *course = CHANGE_WAIT;
        p->result.more = b->count > 0;
        return STATUS_OK;
    }
    if (s == STATUS_INVALID) {
        /* Neither the old rule nor the new one names firings: the gap waits for one that does. */
        if (*course == CHANGE_MEND) {
            *course = CHANGE_TAKE;
            return STATUS_OK;
        }
        *course = CHANGE_WAIT;
        struct error why = {0};
        if (err != NULL) {
            why = *err;
        }
        return planning_blame(p, row->schedule, row->step, why.text, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    const struct plan_entry *e = &b->entries[b->count - 1];
    if (!e->result.moved) {
        /* Nothing to write. Not at `until` although nothing is due: the database clock went back
         * behind the edit; it waits until its time comes again. */
        *course = e->mend || e->result.reached_until ? CHANGE_TAKE : CHANGE_WAIT;
        b->count--;
    } else {
        *course = CHANGE_WAIT;
    }
    return STATUS_OK;
}

/* Read and plan the old versions of those that need it; changes courses[] accordingly. */
static enum status old_versions_plan(struct planning *p, enum change_course *courses,
                                     struct error *err)
{
    const char *names[PLAN_SCHEDULES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < p->changes.count; i++) {
        if (courses[i] == CHANGE_PLAN || courses[i] == CHANGE_MEND) {
            names[count++] = p->changes.rows[i].schedule;
        }
    }
    plan_batch_clear(p->batch);
    if (count == 0) {
        return STATUS_OK;
    }
    struct store_call call;
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_progress_of(&call, names, count, &p->due, err);
    }
    for (size_t i = 0; i < p->due.count && s == STATUS_OK; i++) {
        size_t c = change_find(&p->changes, p->due.rows[i].schedule);
        if (c < p->changes.count && p->due.rows[i].step == p->changes.rows[c].step) {
            s = old_version_plan(p, &p->due.rows[i], &p->changes.rows[c], &courses[c], err);
        }
    }
    if (s == STATUS_OK && p->batch->count > 0) {
        uint64_t before = p->writes;
        s = planning_write_batch(p, err);
        p->result.more = p->result.more || p->writes > before;
    }
    /* Not answered for or moved on since: read again in the next pass. An ended version has no
     * progress to plan from and is taken in as it is. */
    for (size_t i = 0; i < p->changes.count; i++) {
        if (courses[i] == CHANGE_PLAN) {
            courses[i] = CHANGE_WAIT;
        } else if (courses[i] == CHANGE_MEND) {
            courses[i] = CHANGE_TAKE;
        }
    }
    return s;
}

static enum status take_in_fill(struct planning *p, const struct change_row *c,
                                struct take_in_row *ret_row, struct error *err)
{
    struct take_in_row row = {.change = c};
    struct rule rule;
    struct plan_edit edit = {
        .once = strcmp(c->rule.kind, "once") == 0,
        .effective_from = c->effective_from,
        .last_fire_at = c->last_fire_at,
        .starts_at = c->rule.starts_at,
        .ends_at = c->rule.ends_at,
    };
    edit.has_form = key_form_parse(c->key_form, &edit.form);
    struct error why = {0};
    enum status s = STATUS_OK;
    if (!c->ended) {
        s = stored_rule_parse(&c->rule, p->zones, &rule, &why);
        edit.rule = s == STATUS_OK ? &rule : NULL;
    }
    if (s != STATUS_OK && s != STATUS_INVALID) {
        return error_set(err, s == STATUS_CORRUPT ? s : STATUS_AGAIN, "%s", why.text);
    }
    bool bad = s == STATUS_INVALID;
    bad = plan_switch_find(&edit, &row.where, bad ? NULL : &why) != STATUS_OK || bad;
    if (bad) {
        (void)snprintf(row.problem, sizeof row.problem, "%.*s", (int)sizeof row.problem - 1,
                       why.text);
    }
    *ret_row = row;
    return STATUS_OK;
}

enum status planning_take_changes(struct planning *p, bool *ret_more, struct error *err)
{
    struct store_call call;
    struct error why = {0};
    enum change_course courses[PLAN_SCHEDULES_MAX];
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_changes(&call, PLAN_SCHEDULES_MAX, &p->changes, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    instant now = clock_now();
    for (size_t i = 0; i < p->changes.count; i++) {
        courses[i] = course_of(p, &p->changes.rows[i], now);
    }
    s = old_versions_plan(p, courses, err);
    size_t count = 0;
    for (size_t i = 0; i < p->changes.count && s == STATUS_OK; i++) {
        if (courses[i] != CHANGE_TAKE) {
            continue;
        }
        s = take_in_fill(p, &p->changes.rows[i], &p->take_in[count], &why);
        if (s == STATUS_CORRUPT) {
            planning_cannot_here(p, p->changes.rows[i].schedule, why.text);
            s = STATUS_OK;
        } else if (s == STATUS_OK) {
            count++;
        } else {
            (void)error_set(err, s, "%s", why.text);
        }
    }
    size_t taken = 0;
    if (s == STATUS_OK && count > 0) {
        s = planning_write_take_in(p, count, &taken, err);
    }
    if (s == STATUS_OK) {
        /* Each schedule gives its oldest edit only, so look again as long as something moves. */
        *ret_more = p->result.more || taken > 0;
    }
    return s;
}
