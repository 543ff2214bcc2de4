/* Taking edits in. The old version first plans everything that was due under it, so that an edit
 * made while nobody led loses nothing; what was due while a version had a problem becomes a gap. */
#include "planning_state.h"

#include <stdio.h>
#include <string.h>

/* Newest versions of a schedule that are asked what they run. Of one that has more PLAN_AHEAD_MAX
 * are asked, and a few such schedules in one pass: a call each. */
#define AHEAD_VERSIONS  20
#define AHEAD_SCHEDULES (PLAN_AHEAD_MAX / AHEAD_VERSIONS)
#define AHEAD_DEEP      10
#define DOUBTS_MAX      64 /* edits whose keys are looked up in one pass: a call each */

enum change_course {
    CHANGE_TAKE, /* nothing due is left under the old version */
    CHANGE_PLAN, /* the old version plans up to effective_from first */
    CHANGE_GAP,  /* it was paused or had a problem: its due firings become a gap first */
    CHANGE_WAIT, /* not in this pass */
};

/* One pass over the edits. */
struct change_pass {
    enum change_course courses[PLAN_SCHEDULES_MAX];
    struct plan_later later[PLAN_SCHEDULES_MAX]; /* PLAN: what runs under the versions behind */
    bool deep[PLAN_SCHEDULES_MAX];               /* PLAN: those are more than AHEAD_VERSIONS */
    unsigned doubts;
};

static enum change_course course_of(const struct planning *p, const struct change_row *c,
                                    instant now)
{
    if (rest_is_on(&p->rest, c->schedule, now) ||
        (!c->ended && rest_is_on(&p->zone_rest, c->rule.time_zone, now))) {
        return CHANGE_WAIT;
    }
    if (c->has_progress && (c->has_problem || c->was_paused)) {
        return CHANGE_GAP;
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

/* As many as were asked for: what the others run is not known. */
static void ahead_cut(struct change_pass *pass, size_t c, size_t limit)
{
    if (limit < PLAN_AHEAD_MAX) {
        pass->deep[c] = true;
        pass->later[c] = (struct plan_later){0};
    } else {
        /* All that may run: rather a gap too long, which says so, than more than misfire_max. */
        pass->later[c].missed += PLANNER_MISSED_MAX;
    }
}

/* Fold the versions ahead of each schedule, which come newest first. */
static void ahead_fold(struct planning *p, struct change_pass *pass, size_t limit)
{
    const struct due_rows *rows = &p->ahead;
    size_t nth = 0;
    for (size_t i = 0; i < rows->count; i++) {
        const struct due_row *row = &rows->rows[i];
        bool newest = i == 0 || strcmp(rows->rows[i - 1].schedule, row->schedule) != 0;
        utc_us until = newest ? UTC_UNBOUNDED : rows->rows[i - 1].effective_from;
        size_t c = change_find(&p->changes, row->schedule);
        nth = newest ? 1 : nth + 1;
        if (c == p->changes.count) {
            continue;
        }
        pass->later[c] = plan_later_add_row(row, p->changes.now, until, p->zones, pass->later[c]);
        if (nth == limit) {
            ahead_cut(pass, c, limit);
        }
    }
}

static enum status ahead_ask(struct planning *p, struct change_pass *pass,
                             const struct versions_wanted *wanted, struct error *err)
{
    struct store_call call;
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_versions(&call, wanted, &p->ahead, err);
    }
    if (s == STATUS_OK) {
        ahead_fold(p, pass, wanted->limit);
    }
    return s;
}

static enum status ahead_read_deep(struct planning *p, struct change_pass *pass, struct error *err)
{
    enum status s = STATUS_OK;
    unsigned asked = 0;
    for (size_t i = 0; s == STATUS_OK && i < p->changes.count; i++) {
        if (!pass->deep[i]) {
            continue;
        }
        if (asked == AHEAD_DEEP) {
            pass->courses[i] = CHANGE_WAIT;
            p->result.more = true;
            continue;
        }
        const char *names[] = {p->changes.rows[i].schedule};
        struct versions_wanted wanted = {
            .names = names, .count = 1, .ahead = true, .limit = PLAN_AHEAD_MAX};
        s = ahead_ask(p, pass, &wanted, err);
        asked++;
    }
    return s;
}

static enum status ahead_read(struct planning *p, struct change_pass *pass, struct error *err)
{
    enum status s = STATUS_OK;
    size_t i = 0;
    while (s == STATUS_OK && i < p->changes.count) {
        const char *names[AHEAD_SCHEDULES];
        size_t count = 0;
        for (; i < p->changes.count && count < AHEAD_SCHEDULES; i++) {
            if (pass->courses[i] == CHANGE_PLAN) {
                names[count++] = p->changes.rows[i].schedule;
            }
        }
        struct versions_wanted wanted = {
            .names = names, .count = count, .ahead = true, .limit = AHEAD_VERSIONS};
        if (count > 0) {
            s = ahead_ask(p, pass, &wanted, err);
        }
    }
    return s == STATUS_OK ? ahead_read_deep(p, pass, err) : s;
}

static struct plan_edit edit_of(const struct change_row *c)
{
    struct plan_edit edit = {
        .once = strcmp(c->rule.kind, "once") == 0,
        .paused = c->paused,
        .effective_from = c->effective_from,
        .last_fire_at = c->last_fire_at,
        .starts_at = c->rule.starts_at,
        .ends_at = c->rule.ends_at,
        .has_last = c->has_progress && c->has_last,
        .last_nominal = c->last_nominal,
        .has_next = c->has_next,
        .next_nominal = c->next_nominal,
        .last_about = c->last_about,
        .next_about = c->next_about,
        .shift_us = c->ended ? 0 : c->rule.jitter_us - (c->has_progress ? c->was_jitter_us : 0),
    };
    if (!c->has_progress) {
        edit.last_fire_at = UTC_NONE;
    }
    edit.has_form = key_form_parse(c->key_form, &edit.form);
    memcpy(edit.highest_key, c->highest_key, sizeof edit.highest_key);
    return edit;
}

/* The first firings of the version may repeat keys. Returns: as plan_candidates_settle; FULL (not
 * in this pass); else as store_keys_taken, which never is the schedule's fault. */
static enum status doubt_settle(struct planning *p, struct change_pass *pass,
                                const struct plan_edit *edit, struct take_in_row *row,
                                struct error *err)
{
    struct store_call call;
    if (pass->doubts == DOUBTS_MAX) {
        return error_set(err, STATUS_FULL, "enough for one pass");
    }
    pass->doubts++;
    plan_candidates_fill(edit, &row->where, p->candidates);
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_keys_taken(&call, row->change->schedule, p->candidates, err);
    }
    if (s != STATUS_OK) {
        return s == STATUS_INVALID ? STATUS_AGAIN : s;
    }
    return plan_candidates_settle(edit, p->candidates, &row->where, err);
}

/* The gap of a schedule whose firings were withheld, as `row` names them. A date that had its
 * occurrence before was not missed: the gap begins behind it. Returns: as plan_batch_add; else as
 * doubt_settle. */
static enum status gap_add(struct planning *p, struct change_pass *pass, const struct due_row *row,
                           size_t index, struct error *err)
{
    const struct change_row *change = &p->changes.rows[index];
    struct plan_bounds bounds = {
        .until = change->effective_from,
        .later = pass->later[index],
        .withheld = true,
        .reason = change->has_problem ? GAP_PROBLEM_MENDED : GAP_PAUSED,
    };
    struct due_row from = *row;
    struct take_in_row begin = {.change = change};
    struct plan_edit edit = edit_of(change);
    struct rule rule;
    if (strcmp(from.rule.calendar_name, change->rule.calendar_name) == 0) {
        from.rule.calendar = change->rule.calendar; /* as it is now: it may know more days */
    }
    enum status s = stored_rule_parse(&from.rule, p->zones, &rule, err);
    if (s != STATUS_OK) {
        return s;
    }
    if (!rule_keeps_periods(&rule, (struct rule_bounds){row->rule.starts_at, row->rule.ends_at},
                            (utc_us){row->switched_at.us - 1})) {
        return error_set(err, STATUS_INVALID, "it names periods more than once");
    }
    edit.rule = &rule;
    edit.once = strcmp(row->rule.kind, "once") == 0;
    edit.paused = edit.has_next = false;
    edit.shift_us = 0; /* switched_at is the version's own */
    edit.effective_from = row->switched_at;
    edit.starts_at = row->rule.starts_at;
    edit.ends_at = row->rule.ends_at;
    if (edit.has_form && key_form_is_of_days(edit.form) &&
        plan_switch_find(&edit, &begin.where, NULL) == STATUS_OK && begin.where.doubtful) {
        s = doubt_settle(p, pass, &edit, &begin, err);
        if (s == STATUS_OK) {
            from.switched_at = begin.where.switched_at;
        } else if (s != STATUS_INVALID) {
            return s;
        }
    }
    return plan_batch_add(p->batch, &from, p->due.now, bounds, p->zones, err);
}

/* The rule in force names no firings. What another would have fired meanwhile is what people miss:
 * that is the gap (I3). The mended rule says it, or, when the schedule ends, the latest before. */
static enum status gap_add_by_other(struct planning *p, struct change_pass *pass,
                                    const struct due_row *row, size_t index, struct error *err)
{
    struct due_row other = *row;
    if (!p->changes.rows[index].ended) {
        other.rule = p->changes.rows[index].rule;
        other.rule.jitter_us = row->rule.jitter_us; /* when it would have been due */
        return gap_add(p, pass, &other, index, err);
    }
    const char *names[] = {row->schedule};
    struct versions_wanted wanted = {.names = names, .count = 1, .limit = AHEAD_VERSIONS};
    struct store_call call;
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_versions(&call, &wanted, &p->ahead, err);
    }
    if (s != STATUS_OK) {
        return s == STATUS_INVALID ? STATUS_AGAIN : s;
    }
    s = STATUS_INVALID;
    for (size_t i = 0; s == STATUS_INVALID && i < p->ahead.count; i++) {
        if (!p->ahead.rows[i].ended) {
            other.rule = p->ahead.rows[i].rule;
            other.rule.jitter_us = row->rule.jitter_us;
            s = gap_add(p, pass, &other, index, err);
        }
    }
    return s;
}

/* Into the batch: what was due under the old version, or the gap of it. */
static enum status old_version_add(struct planning *p, const struct due_row *row,
                                   struct change_pass *pass, size_t index, struct error *err)
{
    struct plan_bounds bounds = {.until = p->changes.rows[index].effective_from,
                                 .later = pass->later[index]};
    if (pass->courses[index] != CHANGE_GAP) {
        return plan_batch_add(p->batch, row, p->due.now, bounds, p->zones, err);
    }
    enum status s = gap_add(p, pass, row, index, err);
    return s == STATUS_INVALID ? gap_add_by_other(p, pass, row, index, err) : s;
}

/* Plan one schedule under its old version. Says what becomes of the edit in this pass. */
static enum status old_version_plan(struct planning *p, const struct due_row *row,
                                    struct change_pass *pass, size_t index, struct error *err)
{
    enum change_course *course = &pass->courses[index];
    struct plan_batch *b = p->batch;
    if (rest_is_on(&p->zone_rest, row->rule.time_zone, clock_now())) {
        *course = CHANGE_WAIT;
        return STATUS_OK;
    }
    enum status s = old_version_add(p, row, pass, index, err);
    enum change_course was = *course;
    *course = CHANGE_WAIT;
    if (s == STATUS_CORRUPT) {
        planning_cannot_here(p, row->rule.time_zone, row->schedule, err != NULL ? err->text : "");
        return STATUS_OK;
    }
    if (s == STATUS_FULL) {
        p->result.more = p->result.more || b->count > 0;
        return STATUS_OK;
    }
    if (s == STATUS_INVALID && was == CHANGE_GAP) {
        /* No rule names firings: the gap waits for one that does. */
        *course = CHANGE_TAKE;
        return STATUS_OK;
    }
    if (s == STATUS_INVALID) {
        struct error why = {0};
        if (err != NULL) {
            why = *err;
        }
        return planning_blame(p, row->schedule, row->step, why.text, err);
    }
    if (s == STATUS_OK && !b->entries[b->count - 1].result.moved) {
        /* Nothing to write. Not at `until` although nothing is due: the database clock went back
         * behind the edit; it waits until its time comes again. */
        *course = b->entries[b->count - 1].result.reached_until ? CHANGE_TAKE : CHANGE_WAIT;
        b->count--;
    }
    return s;
}

static enum status old_versions_read(struct planning *p, struct change_pass *pass,
                                     struct error *err)
{
    const char *names[PLAN_SCHEDULES_MAX];
    size_t count = 0;
    for (size_t i = 0; i < p->changes.count; i++) {
        if (pass->courses[i] == CHANGE_PLAN || pass->courses[i] == CHANGE_GAP) {
            names[count++] = p->changes.rows[i].schedule;
        }
    }
    p->due.count = 0;
    if (count == 0) {
        return STATUS_OK;
    }
    struct store_call call;
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_progress_of(&call, names, count, &p->due, err);
    }
    return s == STATUS_OK ? ahead_read(p, pass, err) : s;
}

/* Read and plan the old versions of those that need it; changes their courses accordingly. */
static enum status old_versions_plan(struct planning *p, struct change_pass *pass,
                                     struct error *err)
{
    enum status s = old_versions_read(p, pass, err);
    planning_batch_clear(p);
    for (size_t i = 0; i < p->due.count && s == STATUS_OK; i++) {
        size_t c = change_find(&p->changes, p->due.rows[i].schedule);
        if (c < p->changes.count && p->due.rows[i].step == p->changes.rows[c].step &&
            pass->courses[c] != CHANGE_WAIT) {
            s = old_version_plan(p, &p->due.rows[i], pass, c, err);
        }
    }
    if (s == STATUS_OK && p->batch->count > 0) {
        uint64_t before = p->writes;
        s = planning_write_batch(p, 0, p->batch->count, err);
        p->result.more = p->result.more || p->writes > before;
    }
    /* Not answered for or moved on since: read again in the next pass. An ended version has no
     * progress to plan from and is taken in as it is. */
    for (size_t i = 0; i < p->changes.count; i++) {
        if (pass->courses[i] == CHANGE_PLAN) {
            pass->courses[i] = CHANGE_WAIT;
        } else if (pass->courses[i] == CHANGE_GAP) {
            pass->courses[i] = CHANGE_TAKE;
        }
    }
    return s;
}

static enum status take_in_fill(struct planning *p, struct change_pass *pass,
                                const struct change_row *c, struct take_in_row *ret_row,
                                struct error *err)
{
    struct take_in_row row = {.change = c};
    struct rule rule;
    struct plan_edit edit = edit_of(c);
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
    if (!bad && row.where.doubtful) {
        s = doubt_settle(p, pass, &edit, &row, &why);
        if (s != STATUS_OK && s != STATUS_INVALID) {
            return error_set(err, s, "%s", why.text);
        }
        bad = s == STATUS_INVALID;
    }
    if (bad) {
        (void)snprintf(row.problem, sizeof row.problem, "%.*s", (int)sizeof row.problem - 1,
                       why.text);
        text_trim(row.problem);
    } else if (!c->ended) {
        stored_rule_std(&c->rule, row.rule_std);
    }
    *ret_row = row;
    return STATUS_OK;
}

/* The edits that may be taken in now. */
static enum status take_in_collect(struct planning *p, struct change_pass *pass, size_t *ret_count,
                                   struct error *err)
{
    size_t count = 0;
    for (size_t i = 0; i < p->changes.count; i++) {
        struct error why = {0};
        const struct change_row *c = &p->changes.rows[i];
        if (pass->courses[i] != CHANGE_TAKE ||
            (!c->ended && rest_is_on(&p->zone_rest, c->rule.time_zone, clock_now()))) {
            continue;
        }
        enum status s = take_in_fill(p, pass, c, &p->take_in[count], &why);
        if (s == STATUS_CORRUPT) {
            planning_cannot_here(p, c->rule.time_zone, c->schedule, why.text);
        } else if (s == STATUS_FULL) {
            p->result.more = true;
        } else if (s == STATUS_OK) {
            count++;
        } else {
            return error_set(err, s, "%s", why.text);
        }
    }
    *ret_count = count;
    return STATUS_OK;
}

/* One page: of more schedules with edits than it holds the next pass reads the next, so that those
 * that wait, however many, hide none behind them. */
static enum status changes_read(struct planning *p, struct error *err)
{
    struct store_call call;
    instant sent = clock_now();
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_changes(&call, p->changes_after, &p->changes, err);
    }
    if (s == STATUS_OK && p->changes.count > 0) {
        s = planning_clock_saw(p, p->changes.now, sent, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    const char *last = "";
    for (size_t i = 0; i < p->changes.count; i++) {
        const char *name = p->changes.rows[i].schedule;
        last = strcmp(name, last) > 0 ? name : last;
    }
    bool full = p->changes.count == p->changes.max;
    (void)snprintf(p->changes_after, sizeof p->changes_after, "%s", full ? last : "");
    p->result.more = p->result.more || full;
    return STATUS_OK;
}

enum status planning_take_changes(struct planning *p, bool *ret_more, struct error *err)
{
    struct change_pass pass = {.doubts = 0};
    enum status s = changes_read(p, err);
    if (s != STATUS_OK) {
        return s;
    }
    instant now = clock_now();
    for (size_t i = 0; i < p->changes.count; i++) {
        pass.courses[i] = course_of(p, &p->changes.rows[i], now);
    }
    size_t count = 0;
    size_t taken = 0;
    s = old_versions_plan(p, &pass, err);
    if (s == STATUS_OK) {
        s = take_in_collect(p, &pass, &count, err);
    }
    if (s == STATUS_OK && count > 0) {
        s = planning_write_take_in(p, count, &taken, err);
    }
    if (s == STATUS_OK) {
        /* Each schedule gives its oldest edit only, so look again as long as something moves. */
        *ret_more = p->result.more || taken > 0;
    }
    return s;
}
