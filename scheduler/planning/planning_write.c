/* Writing batches so that one bad row stops nothing else (invariant I12). */

#include <stdio.h>
#include <string.h>

#include "decision_log.h"
#include "log.h"
#include "planning_zone.h"
#include "scheduler_metrics.h"

#define CALLS_MAX  64 /* write calls in one step: the rest is done by the next */
#define RANGES_MAX 32 /* halving 1000 rows goes 10 deep */

enum status planning_call(struct planning *p, struct store_call *ret_call, struct error *err)
{
    instant now = clock_now();
    if (!lease_holds(p->options.lease, now)) {
        return error_set(err, STATUS_AGAIN, "the lease is over");
    }
    *ret_call = (struct store_call){
        .store = p->store,
        .authority = p->authority,
        .deadline = instant_add_ms(now, p->options.statement_ms),
    };
    decision_tell("plan", p->authority, now, p->options.lease);
    return STATUS_OK;
}

void planning_cannot_here(struct planning *p, const char *zone, const char *schedule,
                          const char *why)
{
    log_event(LOG_LEVEL_ERROR, "schedules cannot be planned by this replica",
              "scope=%s time_zone=%s first=%s error=%s", p->authority->scope, log_quote(zone).text,
              schedule, log_quote(why).text);
    (void)rest_fail(&p->zone_rest, zone, clock_now(), p->writes);
}

/* The connection went down with the culprit (our own deadline breaks it): nothing can be written
 * now, so the next step begins with this. */
static void accuse(struct planning *p, const char *schedule, int64_t step, const char *problem)
{
    (void)snprintf(p->accused.schedule, sizeof p->accused.schedule, "%s", schedule);
    (void)snprintf(p->accused.problem, sizeof p->accused.problem, "%s", problem);
    p->accused.step = step;
}

enum status planning_blame_accused(struct planning *p, struct error *err)
{
    if (p->accused.schedule[0] == '\0') {
        return STATUS_OK;
    }
    struct accused a = p->accused;
    p->accused.schedule[0] = '\0';
    return planning_blame(p, a.schedule, a.step, a.problem, err);
}

enum status planning_blame(struct planning *p, const char *schedule, int64_t step,
                           const char *problem, struct error *err)
{
    struct store_call call;
    if (store_is_broken(p->store)) {
        accuse(p, schedule, step, problem);
        return STATUS_OK;
    }
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        p->calls++;
        s = store_mark_problem(&call, schedule, step, problem, err);
    }
    if (s == STATUS_OK) {
        log_event(LOG_LEVEL_WARN, "schedule has a problem", "scope=%s schedule=%s problem=%s",
                  p->authority->scope, schedule, log_quote(problem).text);
        p->next_known = false;
    }
    if (s == STATUS_CONFLICT ||
        ((s == STATUS_AGAIN || s == STATUS_TIMEOUT) && err != NULL && store_is_a_wait(err))) {
        /* Its row is locked, or it moved on: the others go on, and it is looked at again soon. */
        rest_skip(&p->rest, schedule, clock_now());
        return STATUS_OK;
    }
    return s;
}

/* What is written in ranges: how to write one, and what becomes of a culprit that stands alone. */
struct ranges {
    enum status (*write)(struct planning *p, size_t begin, size_t end, struct error *err);
    enum status (*blame)(struct planning *p, size_t index, struct error *why, struct error *err);
    const char *(*name)(const struct planning *p, size_t index);
    size_t *limit; /* rows a call: halved by a wait, doubled by a success, at most `most` */
    size_t most;
    struct {
        size_t begin, end;
    } waiting[RANGES_MAX];
    size_t count;
};

static void ranges_push(struct ranges *r, size_t begin, size_t end)
{
    if (begin < end && r->count < RANGES_MAX) {
        r->waiting[r->count].begin = begin;
        r->waiting[r->count].end = end;
        r->count++;
    }
}

static void ranges_halve(struct ranges *r, size_t begin, size_t end)
{
    size_t middle = begin + (end - begin) / 2;
    ranges_push(r, middle, end);
    ranges_push(r, begin, middle);
}

/* A wait or a timeout: never blamed on a row until it failed alone repeatedly while others were
 * written. Smaller batches find it; meanwhile it rests and the others go on. */
static enum status ranges_waited(struct planning *p, struct ranges *r, size_t begin, size_t end,
                                 struct error *why, struct error *err)
{
    size_t n = end - begin;
    *r->limit = n > 1 ? n / 2 : 1;
    p->result.more = true;
    if (n > 1) {
        return STATUS_OK;
    }
    const char *name = r->name(p, begin);
    log_event(LOG_LEVEL_WARN, "schedule cannot be written now, others go on",
              "scope=%s schedule=%s error=%s", p->authority->scope, name,
              log_quote(why->text).text);
    bool guilty = rest_fail(&p->rest, name, clock_now(), p->writes);
    if (guilty) {
        (void)error_prefix(why, STATUS_TIMEOUT,
                           "it failed alone %d times while others were planned", REST_STRIKES_MAX);
        return r->blame(p, begin, why, err);
    }
    return STATUS_OK;
}

static enum status ranges_failed(struct planning *p, struct ranges *r, enum status s, size_t begin,
                                 size_t end, struct error *err)
{
    struct error why = *err;
    if (s == STATUS_INVALID && store_blames_a_row(&why)) {
        if (end - begin == 1) {
            return r->blame(p, begin, &why, err);
        }
        ranges_halve(r, begin, end);
        return STATUS_OK;
    }
    if ((s == STATUS_AGAIN || s == STATUS_TIMEOUT) && store_is_a_wait(&why)) {
        return ranges_waited(p, r, begin, end, &why, err);
    }
    if (s == STATUS_TIMEOUT) {
        /* Our own deadline: the connection is gone, so the caller must know; remember the size. */
        enum status noted = ranges_waited(p, r, begin, end, &why, err);
        *err = why;
        return noted == STATUS_OK ? s : noted;
    }
    if (s == STATUS_INVALID) {
        *err = why;
        return error_prefix(err, STATUS_AGAIN, "planning");
    }
    return s;
}

static enum status ranges_write(struct planning *p, struct ranges *r, struct error *err)
{
    struct error local;
    struct error *why = err != NULL ? err : &local;
    while (r->count > 0) {
        r->count--;
        size_t begin = r->waiting[r->count].begin;
        size_t end = r->waiting[r->count].end;
        if (p->calls >= CALLS_MAX) {
            p->result.more = true;
            return STATUS_OK;
        }
        p->calls++;
        why->code[0] = '\0';
        enum status s = r->write(p, begin, end, why);
        if (s == STATUS_OK) {
            *r->limit = *r->limit < r->most / 2 ? *r->limit * 2 : r->most;
        } else {
            s = ranges_failed(p, r, s, begin, end, why);
        }
        if (s != STATUS_OK) {
            return s;
        }
    }
    return STATUS_OK;
}

/* Rows [begin, stop), as many a call as went well lately. */
static enum status rows_write(struct planning *p, struct ranges *r, size_t begin, size_t stop,
                              struct error *err)
{
    enum status s = STATUS_OK;
    while (s == STATUS_OK && begin < stop && p->calls < CALLS_MAX) {
        size_t end = stop - begin < *r->limit ? stop : begin + *r->limit;
        ranges_push(r, begin, end);
        s = ranges_write(p, r, err);
        begin = end;
        p->result.more = p->result.more || begin < stop;
    }
    return s;
}

/* Tells it once until it is written. */
static void row_skip(struct planning *p, const char *name)
{
    if (rest_find(&p->rest, name) == NULL) {
        log_event(LOG_LEVEL_INFO, "schedule passed over: a row of it is locked, or it moved on",
                  "scope=%s schedule=%s", p->authority->scope, name);
    }
    rest_skip(&p->rest, name, clock_now());
}

static const char *entry_name(const struct planning *p, size_t index)
{
    return p->batch->entries[index].schedule;
}

static enum status entries_write(struct planning *p, size_t begin, size_t end, struct error *err)
{
    struct store_call call;
    struct plan_written written;
    written.newest_job[0] = '\0';
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_plan_batch(&call, p->batch, begin, end, zone_set_version(p->zones), &written,
                             err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    const char *scope = p->authority->scope;
    metric_add(scheduler_metric(SCHEDULER_PLANNED, scope, NULL), written.planned);
    for (size_t i = begin; i < end; i++) {
        const struct plan_entry *e = &p->batch->entries[i];
        const char *name = e->schedule;
        if (written.rows.written[i - begin]) {
            scope_metrics_gaps(scope, p->batch->sink.gaps, e->gap_begin, e->gap_end);
            rest_forget(&p->rest, name);
        } else {
            row_skip(p, name);
        }
    }
    p->writes += written.rows.count > 0 ? 1 : 0;
    if (written.newest_job[0] != '\0') {
        memcpy(p->result.newest_job, written.newest_job, sizeof p->result.newest_job);
        planning_know(p, written.newest_job);
    }
    p->result.planned += (unsigned)written.planned;
    p->result.outbox = p->result.outbox || written.planned > 0;
    p->may_wait = p->may_wait || written.planned > 0;
    return STATUS_OK;
}

void planning_know(struct planning *p, const char *job)
{
    (void)snprintf(p->batch->known, sizeof p->batch->known, "%.*s", UUID_TEXT_MAX - 1, job);
}

const char *planning_known(const struct planning *p)
{
    return p->batch->known;
}

static enum status entry_blame(struct planning *p, size_t index, struct error *why,
                               struct error *err)
{
    const struct plan_entry *e = &p->batch->entries[index];
    if (e->withheld) {
        /* Its edit is not taken in without the gap (I3): the schedule stays out of planning, says
         * why, and is tried again, later each time. */
        (void)rest_fail(&p->rest, e->schedule, clock_now(), p->writes);
        (void)error_prefix(why, STATUS_INVALID, "the gap up to the edit cannot be recorded");
    }
    return planning_blame(p, e->schedule, e->step, why->text, err);
}

void planning_batch_clear(struct planning *p)
{
    plan_batch_clear(p->batch);
    planning_ahead_forget(p);
}

enum status planning_write_batch(struct planning *p, size_t begin, size_t end, struct error *err)
{
    struct ranges r = {.write = entries_write,
                       .blame = entry_blame,
                       .name = entry_name,
                       .limit = &p->batch_limit,
                       .most = p->options.batch_schedules};
    p->next_known = p->next_known && begin == end;
    return rows_write(p, &r, begin, end, err);
}

static const char *take_in_name(const struct planning *p, size_t index)
{
    return p->take_in[index].change->schedule;
}

static void take_in_tell_passed(const struct planning *p, const struct take_in_row *row)
{
    const struct planned_gap *g = &row->where.passed;
    if (g->firings == 0 || row->problem[0] != '\0') {
        return;
    }
    scope_metrics_gaps(p->authority->scope, g, 0, 1);
    log_event(LOG_LEVEL_WARN, "an edit of business_date passes over periods",
              "scope=%s schedule=%s from=%s to=%s firings=%lld", p->authority->scope,
              row->change->schedule, g->from_key, g->to_key, (long long)g->firings);
}

static enum status take_in_write(struct planning *p, size_t begin, size_t end, struct error *err)
{
    struct store_call call;
    struct written_rows written;
    enum status s = planning_call(p, &call, err);
    for (size_t i = begin; i < end; i++) {
        struct take_in_row *row = &p->take_in[i];
        memcpy(row->zone_digest, zone_set_digest(p->zones, row->change->rule.time_zone),
               sizeof row->zone_digest);
    }
    if (s == STATUS_OK) {
        s = store_take_in(&call, &p->take_in[begin], end - begin, zone_set_version(p->zones),
                          &written, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    for (size_t i = begin; i < end; i++) {
        const struct take_in_row *row = &p->take_in[i];
        const char *name = row->change->schedule;
        if (!written.written[i - begin]) {
            row_skip(p, name);
            continue;
        }
        rest_forget(&p->rest, name);
        planning_zones_met(p, row->change->rule.time_zone);
        take_in_tell_passed(p, row);
        if (row->problem[0] != '\0') {
            log_event(LOG_LEVEL_WARN, "schedule has a problem", "scope=%s schedule=%s problem=%s",
                      p->authority->scope, name, log_quote(row->problem).text);
        }
    }
    p->writes += written.count;
    metric_add(scheduler_metric(SCHEDULER_EDITS, p->authority->scope, NULL), (double)written.count);
    return STATUS_OK;
}

/* The server refuses the row: take it in with that as its problem, which writes less. */
static enum status take_in_blame(struct planning *p, size_t index, struct error *why,
                                 struct error *err)
{
    struct take_in_row *row = &p->take_in[index];
    if (store_is_broken(p->store)) {
        return STATUS_OK; /* it rests, and is tried and blamed again */
    }
    bool again = row->problem[0] == '\0';
    (void)snprintf(row->problem, sizeof row->problem, "%.*s", (int)sizeof row->problem - 1,
                   why->text);
    text_trim(row->problem);
    row->where.next = (struct firing){0};
    row->where.has_form = row->change->key_form[0] != '\0' && row->where.has_form;
    enum status s = again ? take_in_write(p, index, index + 1, err) : STATUS_INVALID;
    if (s != STATUS_INVALID) {
        return s;
    }
    log_event(LOG_LEVEL_ERROR, "edit cannot be taken in", "scope=%s schedule=%s error=%s",
              p->authority->scope, row->change->schedule, log_quote(why->text).text);
    (void)rest_fail(&p->rest, row->change->schedule, clock_now(), p->writes);
    return STATUS_OK;
}

enum status planning_write_take_in(struct planning *p, size_t count, size_t *ret_taken,
                                   struct error *err)
{
    struct ranges r = {.write = take_in_write,
                       .blame = take_in_blame,
                       .name = take_in_name,
                       .limit = &p->take_in_limit,
                       .most = PLAN_SCHEDULES_MAX};
    uint64_t before = p->writes;
    p->next_known = p->next_known && count == 0;
    enum status s = rows_write(p, &r, 0, count, err);
    *ret_taken = (size_t)(p->writes - before);
    return s;
}

static const char *move_name(const struct planning *p, size_t index)
{
    return planning_zone_moves(p)[index].schedule;
}

static void move_tell(const struct planning *p, const struct zone_move *m)
{
    char old[RFC3339_TEXT_MAX];
    char next[RFC3339_TEXT_MAX] = "none";
    if (m->next.found && m->next.at.us == m->old.at.us) {
        return;
    }
    rfc3339_format(m->old.at, m->old.offset_s, old);
    if (m->next.found) {
        rfc3339_format(m->next.at, m->next.offset_s, next);
    }
    metric_add(scheduler_metric(SCHEDULER_ZONE_MOVES, p->authority->scope, NULL), 1);
    log_event(LOG_LEVEL_INFO, "next firing moved by other time zone data",
              "scope=%s schedule=%s old=%s new=%s time_zone=%s tzdata_old=%s tzdata_new=%s",
              p->authority->scope, m->schedule, old, next, m->time_zone,
              m->old_tzdata[0] != '\0' ? m->old_tzdata : "unknown", zone_set_version(p->zones));
}

static enum status moves_write(struct planning *p, size_t begin, size_t end, struct error *err)
{
    struct store_call call;
    struct written_rows written;
    const struct zone_move *moves = planning_zone_moves(p);
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_rezone(&call, &moves[begin], end - begin, zone_set_version(p->zones), &written,
                         err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    for (size_t i = begin; i < end; i++) {
        if (written.written[i - begin]) {
            move_tell(p, &moves[i]);
            rest_forget(&p->rest, moves[i].schedule);
        } else {
            row_skip(p, moves[i].schedule);
        }
    }
    p->moved += written.count;
    p->writes += written.count > 0 ? 1 : 0;
    return STATUS_OK;
}

static enum status move_blame(struct planning *p, size_t index, struct error *why,
                              struct error *err)
{
    const struct zone_move *m = &planning_zone_moves(p)[index];
    return planning_blame(p, m->schedule, m->step, why->text, err);
}

enum status planning_write_moves(struct planning *p, size_t count, struct error *err)
{
    struct ranges r = {.write = moves_write,
                       .blame = move_blame,
                       .name = move_name,
                       .limit = &p->move_limit,
                       .most = PLAN_SCHEDULES_MAX};
    p->next_known = p->next_known && count == 0;
    return rows_write(p, &r, 0, count, err);
}
