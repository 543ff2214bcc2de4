/* The port scheduler/store/store_plan.h on the database in memory: what is written. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store_fake.h"
#include "store_plan.h"
#include "store_retention.h"
#include "world.h"

static enum status status_of(enum call_verdict verdict, enum status error)
{
    return verdict == VERDICT_OK       ? STATUS_OK
           : verdict == VERDICT_FENCED ? STATUS_FENCED
           : verdict == VERDICT_HELD   ? STATUS_HELD
                                       : error;
}

/* plan_batch -------------------------------------------------------------------------------------
 */

struct batch_request {
    struct request q;
    struct planned p;
};

static void batch_done(struct request *q)
{
    struct planned *p = &((struct batch_request *)q)->p;
    kernel_free(p->entries);
    kernel_free(p->rows);
    kernel_free(p->holes);
}

static void batch_execute(struct request *q, struct transaction *t)
{
    struct planned *p = &((struct batch_request *)q)->p;
    enum call_verdict verdict = plan_batch(t, p);
    if (p->too_early) {
        request_fail(q, STATUS_INVALID, "RS004", "a firing in the batch is not due yet");
    } else {
        request_answer(q, verdict, status_of(verdict, p->moved ? STATUS_CONFLICT : STATUS_INVALID));
    }
}

static enum occurrence_cause cause_of(enum plan_cause cause)
{
    switch (cause) {
    case PLAN_ON_TIME:
        return CAUSE_SCHEDULE;
    case PLAN_MISFIRE:
        return CAUSE_MISFIRE;
    case PLAN_EDIT:
        return CAUSE_EDIT;
    }
    return CAUSE_SCHEDULE;
}

static enum gap_cause gap_of(enum gap_reason reason)
{
    switch (reason) {
    case GAP_MISFIRE_SKIP:
        return GAP_BY_SKIP;
    case GAP_MISFIRE_LATEST:
    case GAP_COALESCED:
        return GAP_BY_LATEST;
    case GAP_MISFIRE_MAX:
        return GAP_BY_MAX;
    case GAP_MISFIRE_AGE:
        return GAP_BY_AGE;
    case GAP_PROBLEM_MENDED:
        return GAP_BY_PROBLEM;
    case GAP_PAUSED:
        return GAP_BY_PAUSE;
    case GAP_PASSED_OVER: /* simulated schedules are about dates */
        break;
    }
    return GAP_BY_SKIP;
}

static void entry_add(struct planned *p, const struct plan_entry *e)
{
    const struct plan_result *r = &e->result;
    struct planned_entry *to = &p->entries[p->entry_count++];
    *to = (struct planned_entry){.schedule = schedule_find(e->schedule),
                                 .version = e->version,
                                 .step = e->step,
                                 .has_next = r->next.found && !e->withheld,
                                 .has_next_nominal = r->next.found,
                                 .has_last = r->moved,
                                 .next_fire_at = r->next.at.us,
                                 .next_nominal_s = r->next.nominal.s,
                                 .last_fire_at = r->last.at.us,
                                 .last_nominal_s = r->last.nominal.s};
}

static void firing_add(struct planned *p, const struct plan_batch *b, size_t i)
{
    const struct planned_firing *f = &b->sink.firings[i];
    struct planned_row *to = &p->rows[p->row_count++];
    to->schedule = schedule_find(b->entries[f->subject].schedule);
    to->fire_at = f->firing.at.us;
    to->cause = cause_of(f->cause);
    memcpy(to->key, f->key, sizeof to->key);
    memcpy(to->job, b->job_ids[i], sizeof to->job);
}

static void hole_add(struct planned *p, const struct plan_batch *b, size_t i)
{
    const struct planned_gap *g = &b->sink.gaps[i];
    p->holes[p->hole_count++] =
        (struct planned_hole){.schedule = schedule_find(b->entries[g->subject].schedule),
                              .from = g->from.us,
                              .to = g->to.us,
                              .firings = g->firings,
                              .cause = gap_of(g->reason)};
}

enum status store_plan_batch(const struct store_call *call, const struct plan_batch *b,
                             size_t begin, size_t end, const char *tzdata,
                             struct plan_written *ret_written, struct error *err)
{
    (void)tzdata;
    struct batch_request *r = request_new(sizeof *r, OP_PLAN_BATCH, batch_execute);
    request_authority(&r->q, call->authority);
    r->q.done = batch_done;
    r->p.entries = kernel_new((end - begin + 1) * sizeof r->p.entries[0]);
    r->p.rows = kernel_new((b->sink.firing_count + 1) * sizeof r->p.rows[0]);
    r->p.holes = kernel_new((b->sink.gap_count + 1) * sizeof r->p.holes[0]);
    memcpy(r->p.known, b->known, sizeof r->p.known);
    for (size_t i = begin; i < end; i++) {
        const struct plan_entry *e = &b->entries[i];
        entry_add(&r->p, e);
        for (size_t f = e->firing_begin; f < e->firing_end; f++) {
            firing_add(&r->p, b, f);
        }
        for (size_t g = e->gap_begin; g < e->gap_end; g++) {
            hole_add(&r->p, b, g);
        }
    }
    enum status status = exchange(call->store, call->deadline, &r->q, err);
    if (status == STATUS_OK) {
        ret_written->planned = r->p.made;
        ret_written->rows.count = 0;
        memcpy(ret_written->newest_job, r->p.newest, sizeof ret_written->newest_job);
        for (size_t i = 0; i < r->p.entry_count; i++) {
            ret_written->rows.written[i] = r->p.entries[i].advanced;
            ret_written->rows.count += r->p.entries[i].advanced ? 1 : 0;
        }
    }
    request_end(&r->q);
    return status;
}

/* take_in ----------------------------------------------------------------------------------------
 */

struct take_request {
    struct request q;
    size_t count;
    struct taken_edit rows[HISTORY_SCHEDULES];
};

static void take_execute(struct request *q, struct transaction *t)
{
    struct take_request *r = (struct take_request *)q;
    enum call_verdict verdict = take_in(t, r->rows, r->count);
    request_answer(q, verdict, status_of(verdict, STATUS_INVALID));
}

enum status store_take_in(const struct store_call *call, const struct take_in_row *rows,
                          size_t count, const char *tzdata, struct written_rows *ret_written,
                          struct error *err)
{
    (void)tzdata;
    struct take_request *r = request_new(sizeof *r, OP_TAKE_IN, take_execute);
    request_authority(&r->q, call->authority);
    r->count = count < HISTORY_SCHEDULES ? count : HISTORY_SCHEDULES;
    for (size_t i = 0; i < r->count; i++) {
        const struct change_row *c = rows[i].change;
        const struct plan_switch *w = &rows[i].where;
        const struct firing *next = w->next.found ? &w->next : &w->behind;
        r->rows[i] = (struct taken_edit){.change = c->change_id,
                                         .step = c->step,
                                         .schedule = schedule_find(c->schedule),
                                         .version = c->version,
                                         .has_progress = c->has_progress,
                                         .switched_at = w->switched_at.us,
                                         .next_fire_at = next->at.us,
                                         .has_next = next->found,
                                         .next_nominal_s = next->nominal.s,
                                         .problem = rows[i].problem[0] != '\0'};
        (void)snprintf(r->rows[i].key_form, sizeof r->rows[i].key_form, "%s",
                       w->has_form ? key_form_name(w->form) : "");
    }
    enum status status = exchange(call->store, call->deadline, &r->q, err);
    if (status == STATUS_OK) {
        ret_written->count = 0;
        for (size_t i = 0; i < r->count; i++) {
            ret_written->written[i] = r->rows[i].taken;
            ret_written->count += r->rows[i].taken ? 1 : 0;
        }
    }
    request_end(&r->q);
    return status;
}

struct problem_request {
    struct request q;
    int schedule;
    int64_t step;
};

static void problem_execute(struct request *q, struct transaction *t)
{
    struct problem_request *r = (struct problem_request *)q;
    enum call_verdict verdict = mark_problem(t, r->schedule, r->step);
    request_answer(q, verdict, status_of(verdict, STATUS_CONFLICT));
}

enum status store_mark_problem(const struct store_call *call, const char *schedule, int64_t step,
                               const char *problem, struct error *err)
{
    (void)problem;
    struct problem_request *r = request_new(sizeof *r, OP_MARK_PROBLEM, problem_execute);
    request_authority(&r->q, call->authority);
    r->schedule = schedule_find(schedule);
    r->step = step;
    enum status status = exchange(call->store, call->deadline, &r->q, err);
    request_end(&r->q);
    return status;
}

/* tend -------------------------------------------------------------------------------------------
 */

struct tend_request {
    struct request q;
    struct tended_world w;
    int64_t now;
};

static void tend_execute(struct request *q, struct transaction *t)
{
    struct tend_request *r = (struct tend_request *)q;
    r->now = t->now;
    enum call_verdict verdict = tend(t, &r->w);
    request_answer(q, verdict, status_of(verdict, r->w.moved ? STATUS_CONFLICT : STATUS_INVALID));
}

enum status store_tend(const struct store_call *call, struct tend_terms terms,
                       struct tend_clock clock, struct tended *ret_tended, struct error *err)
{
    struct tend_request *r = request_new(sizeof *r, OP_TEND, tend_execute);
    request_authority(&r->q, call->authority);
    r->w.limit = (int)terms.limit;
    (void)snprintf(r->w.known, sizeof r->w.known, "%s", terms.known == NULL ? "" : terms.known);
    r->w.clock_from = utc_is_none(clock.from) ? HISTORY_NONE : clock.from.us;
    r->w.clock_to = utc_is_none(clock.to) ? HISTORY_NONE : clock.to.us;
    enum status status = exchange(call->store, call->deadline, &r->q, err);
    if (status == STATUS_OK) {
        *ret_tended = (struct tended){.released = r->w.released,
                                      .reaped = r->w.reaped,
                                      .held_back = r->w.held_back,
                                      .running = r->w.running,
                                      .now = {r->now},
                                      .stepped = r->w.stepped,
                                      .beaten = r->w.beaten};
        ret_tended->next_release =
            r->w.next_release == HISTORY_NONE ? UTC_NONE : (utc_us){r->w.next_release};
    }
    request_end(&r->q);
    return status;
}

/* Requests of operators are not simulated: nobody asks.
 * --------------------------------------------
 */

static void nothing_execute(struct request *q, struct transaction *t)
{
    (void)t;
    request_answer(q, VERDICT_OK, STATUS_OK);
}

static enum status ask_nothing(const struct store_call *call, struct error *err)
{
    struct request *q = request_new(sizeof *q, OP_NONE, nothing_execute);
    request_authority(q, call->authority);
    enum status status = exchange(call->store, call->deadline, q, err);
    request_end(q);
    return status;
}

enum status store_pending_requests(const struct store_call *call, size_t limit,
                                   struct request_rows *ret_rows, struct error *err)
{
    (void)limit;
    enum status status = ask_nothing(call, err);
    if (status == STATUS_OK) {
        ret_rows->count = 0;
    }
    return status;
}

enum status store_answer_request(const struct store_call *call, const char *request,
                                 const char *job_id, struct request_verdict *ret_verdict,
                                 struct error *err)
{
    (void)call;
    (void)request;
    (void)job_id;
    (void)ret_verdict;
    return error_set(err, STATUS_INVALID, "nobody has asked anything");
}

enum status store_refuse_request(const struct store_call *call, const char *request,
                                 const char *why, struct error *err)
{
    (void)call;
    (void)request;
    (void)why;
    return error_set(err, STATUS_INVALID, "nobody has asked anything");
}

enum status store_prune(const struct store_call *call, size_t limit,
                        struct pruned ret_tables[RETENTION_TABLES], size_t *ret_count,
                        struct error *err)
{
    (void)limit;
    (void)ret_tables;
    *ret_count = 0; /* a run is shorter than any time to keep */
    return ask_nothing(call, err);
}

/* No schedule here has an end of its pause: next_due never says that one is over, and nobody asks.
 */
static void resume_execute(struct request *q, struct transaction *t)
{
    request_answer(q, VERDICT_OK, fence_holds(t) ? STATUS_OK : STATUS_FENCED);
}

enum status store_resume_paused(const struct store_call *call, size_t limit,
                                struct resumed *ret_resumed, struct error *err)
{
    struct request *q = request_new(sizeof *q, OP_NONE, resume_execute);
    (void)limit;
    request_authority(q, call->authority);
    enum status status = exchange(call->store, call->deadline, q, err);
    *ret_resumed = (struct resumed){.count = 0};
    request_end(q);
    return status;
}
