/* Occurrences, gaps and progress: I3, I4 and I9, against an enumeration of our own. */
#include <inttypes.h>
#include <string.h>

#include "checker_state.h"

#define DAY_US INT64_C(86400000000)

/* What the rows of a version must cover: from its switch on, after what was dealt with. */
static int64_t covered_until(const struct schedule_rows *s, const struct version_row *v)
{
    int64_t from = v->switched_us == HISTORY_NONE ? HISTORY_NONE : v->switched_us - 1;
    return s->progress.last_us > from ? s->progress.last_us : from;
}

static bool is_own(const struct occurrence_row *o)
{
    return o->cause != CAUSE_MANUAL && o->cause != CAUSE_BACKFILL;
}

/* Before the rows are in -------------------------------------------------------------------------
 */

static void judge_occurrence(struct checker *c, const struct transaction *x, const struct fact *f)
{
    struct schedule_rows *s = &c->tables.schedules[f->schedule];
    const struct version_row *v = version_row_find(s, f->version);
    struct due due = {.fire_us = 0};
    c->tally.occurrences++;
    if (occurrence_row_find(&c->tables, f->schedule, f->key) != NULL) {
        blame(c, "I3", "schedule %d has a second occurrence %s", f->schedule, f->key);
    }
    if (f->incarnation != x->call->incarnation || f->generation != x->call->generation) {
        blame(c, "I1", "occurrence %d:%s does not carry its writer's generation", f->schedule,
              f->key);
    }
    if (f->cause == CAUSE_MANUAL || f->cause == CAUSE_BACKFILL) {
        return;
    }
    if (v == NULL || !s->progress.present || s->progress.version != f->version) {
        blame(c, "I3", "occurrence %d:%s is of version %d, but %d is in force", f->schedule, f->key,
              f->version, s->progress.version);
        return;
    }
    if (v->recipe->paused || v->recipe->ended) {
        blame(c, "I3", "occurrence %d:%s of a version that is paused or ended", f->schedule,
              f->key);
    }
    if (!due_at(v->recipe, f->fire_us, &due)) {
        blame(c, "I3", "schedule %d names no firing at %" PRId64 " (key %s)", f->schedule,
              f->fire_us, f->key);
    } else if (strcmp(due.key, f->key) != 0) {
        blame(c, "I3", "the firing of schedule %d at %" PRId64 " is %s, not %s", f->schedule,
              f->fire_us, due.key, f->key);
    }
    if (f->fire_us <= covered_until(s, v)) {
        blame(c, "I3",
              "occurrence %d:%s was dealt with before (last %" PRId64 ", switched %" PRId64 ")",
              f->schedule, f->key, s->progress.last_us, v->switched_us);
    }
    if (f->fire_us > x->call->db_us) {
        blame(c, "I9", "occurrence %d:%s was planned %" PRId64 " us early", f->schedule, f->key,
              f->fire_us - x->call->db_us);
    }
    /* By the latest clock: it may have been stepped back since the planner read it. */
    if (f->cause == CAUSE_MISFIRE && f->fire_us + v->recipe->misfire_grace_us > c->latest_db_us) {
        blame(c, "I9", "occurrence %d:%s counts as missed and is within its grace", f->schedule,
              f->key);
    }
}

static bool is_misfire(enum gap_cause gap)
{
    return gap == GAP_BY_SKIP || gap == GAP_BY_LATEST || gap == GAP_BY_MAX || gap == GAP_BY_AGE;
}

/* Why the gap is one. */
static void judge_gap_reason(struct checker *c, const struct fact *f, const struct version_row *v)
{
    if (is_misfire(f->gap) && f->to_us + v->recipe->misfire_grace_us > c->latest_db_us) {
        blame(c, "I3", "a gap of schedule %d counts %" PRId64 " as missed within its grace",
              f->schedule, f->to_us);
    }
    if (f->gap == GAP_BY_PAUSE && !v->recipe->paused) {
        blame(c, "I3", "schedule %d has a gap for a pause and is not paused", f->schedule);
    }
    if (f->gap == GAP_BY_FORBID && v->recipe->overlap != OVERLAP_FORBID) {
        blame(c, "overlap", "schedule %d has an overlap gap and does not forbid overlap",
              f->schedule);
    }
    if (f->gap == GAP_BY_TAKEN_KEY) {
        struct due due = {.fire_us = 0};
        const struct occurrence_row *o = NULL;
        if (due_at(v->recipe, f->from_us, &due)) {
            o = occurrence_row_find(&c->tables, f->schedule, due.key);
        }
        if (o == NULL || (is_own(o) && o->version == f->version)) {
            blame(c, "I3", "the firing of schedule %d at %" PRId64 " is planned a second time",
                  f->schedule, f->from_us);
        }
    }
}

static void judge_gap(struct checker *c, const struct fact *f)
{
    struct schedule_rows *s = &c->tables.schedules[f->schedule];
    const struct version_row *v = version_row_find(s, f->version);
    c->tally.gaps++;
    if (v == NULL) {
        blame(c, "I3", "a gap of schedule %d is of version %d, which there is not", f->schedule,
              f->version);
        return;
    }
    int64_t named = due_count(v->recipe, f->from_us, f->to_us, f->firings + 1);
    if (named != f->firings || f->from_us > f->to_us) {
        blame(c, "I3",
              "a gap of schedule %d counts %" PRId64 " firings from %" PRId64 " to %" PRId64
              "; there are %" PRId64,
              f->schedule, f->firings, f->from_us, f->to_us, named);
    }
    for (size_t i = 0; i < s->gap_count; i++) {
        const struct gap_row *g = &s->gaps[i];
        if (g->id != f->id && g->from_us <= f->to_us && f->from_us <= g->to_us &&
            g->version == f->version) {
            blame(c, "I3", "gaps %" PRId64 " and %" PRId64 " of schedule %d overlap", g->id, f->id,
                  f->schedule);
        }
    }
    judge_gap_reason(c, f, v);
}

static void judge_progress(struct checker *c, const struct transaction *x, const struct fact *f)
{
    struct schedule_rows *s = &c->tables.schedules[f->schedule];
    const struct progress_row *was = &s->progress;
    const struct version_row *v = version_row_find(s, f->version);
    if (v == NULL) {
        blame(c, "I3", "schedule %d goes by version %d, which there is not", f->schedule,
              f->version);
        return;
    }
    s->was = *was;
    s->was_covered_us = HISTORY_NONE;
    if (!was->present) {
        return;
    }
    const struct version_row *old = version_row_find(s, was->version);
    s->was_covered_us = old == NULL ? HISTORY_NONE : covered_until(s, old);
    if (f->step != was->step + 1 || f->last_us < was->last_us || f->version < was->version) {
        blame(c, "I3",
              "progress of schedule %d goes from step %" PRId64 ", version %d, last %" PRId64
              " to step %" PRId64 ", version %d, last %" PRId64,
              f->schedule, was->step, was->version, was->last_us, f->step, f->version, f->last_us);
    }
    if (f->version != was->version && x->call->op != OP_TAKE_IN) {
        blame(c, "I3", "%s changes the version of schedule %d", call_op_name(x->call->op),
              f->schedule);
    }
    int64_t latest = v->effective_us > was->last_us ? v->effective_us : was->last_us + 1;
    if (f->version != was->version && f->switched_us > latest + DAY_US) {
        blame(c, "I3", "version %d of schedule %d begins at %" PRId64 ", long after %" PRId64,
              f->version, f->schedule, f->switched_us, latest);
    }
}

void plan_before(struct checker *c, const struct transaction *x)
{
    size_t position = 0;
    const struct fact *row = NULL;
    while ((row = transaction_row(c, x, &position)) != NULL) {
        if (row->kind == FACT_ROW_OCCURRENCE) {
            judge_occurrence(c, x, row);
        } else if (row->kind == FACT_ROW_GAP) {
            judge_gap(c, row);
        } else if (row->kind == FACT_ROW_PROGRESS) {
            judge_progress(c, x, row);
        }
    }
}

/* With the rows in -------------------------------------------------------------------------------
 */

/* Every firing of the version in (from, to] has an occurrence or lies in a gap. */
static void judge_covered(struct checker *c, int schedule, const struct version_row *v,
                          int64_t from_us, int64_t to_us)
{
    struct schedule_rows *s = &c->tables.schedules[schedule];
    struct due due = {.fire_us = from_us};
    while (!v->recipe->ended && !c->failed && due_after(v->recipe, due.fire_us, &due) &&
           due.fire_us <= to_us) {
        const struct gap_row *gap = gap_over(s, due.fire_us);
        const struct occurrence_row *o = occurrence_row_find(&c->tables, schedule, due.key);
        if (gap == NULL && o == NULL) {
            blame(c, "I3", "firing %d:%s was passed over: it has neither an occurrence nor a gap",
                  schedule, due.key);
        }
        if (gap != NULL && o != NULL && is_own(o) && o->version == v->version &&
            gap->version == v->version) {
            blame(c, "I3", "firing %d:%s has an occurrence and lies in a gap", schedule, due.key);
        }
        c->tally.firings_covered++;
    }
}

static void judge_moved(struct checker *c, const struct transaction *x, const struct fact *f)
{
    struct schedule_rows *s = &c->tables.schedules[f->schedule];
    const struct progress_row *was = &s->was;
    const struct version_row *v = version_row_find(s, f->version);
    if (!was->present || v == NULL) {
        return;
    }
    if (f->version != was->version) {
        const struct version_row *old = version_row_find(s, was->version);
        if (old != NULL && !was->problem && s->was_covered_us != HISTORY_NONE) {
            judge_covered(c, f->schedule, old, s->was_covered_us, f->switched_us - 1);
        }
        return;
    }
    if (f->last_us != HISTORY_NONE && s->was_covered_us != HISTORY_NONE) {
        judge_covered(c, f->schedule, v, s->was_covered_us, f->last_us);
    }
    struct due due = {.fire_us = 0};
    int64_t after = f->last_us > v->switched_us - 1 ? f->last_us : v->switched_us - 1;
    bool any = !v->recipe->ended && due_after(v->recipe, after, &due);
    if (x->call->op == OP_PLAN_BATCH && !f->problem && !v->recipe->paused &&
        f->next_us != (any ? due.fire_us : HISTORY_NONE)) {
        blame(c, "I3", "schedule %d fires next at %" PRId64 ", and goes on at %" PRId64,
              f->schedule, any ? due.fire_us : 0, f->next_us);
    }
}

/* I4: an occurrence comes with its job. That a job which may run comes with its message, the rows
 * of jobs say (checker_work.c). */
static void judge_together(struct checker *c, const struct fact *f)
{
    const struct job_row *j = job_row_find(&c->tables, f->job);
    if (j == NULL || j->schedule != f->schedule) {
        blame(c, "I4", "occurrence %d:%s was committed without its job", f->schedule, f->key);
    }
}

void plan_after(struct checker *c, const struct transaction *x)
{
    size_t position = 0;
    const struct fact *row = NULL;
    while ((row = transaction_row(c, x, &position)) != NULL) {
        if (row->kind == FACT_ROW_PROGRESS) {
            judge_moved(c, x, row);
        } else if (row->kind == FACT_ROW_OCCURRENCE) {
            judge_together(c, row);
        }
    }
}
