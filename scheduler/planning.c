#include "planning.h"

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "planning_state.h"
#include "scheduler_metrics.h"

#define WAKE_MS         30000 /* the longest sleep; changes and requests are looked at as often */
#define TEND_MS         1000  /* while something is held back or running */
#define RELEASE_MS      50 /* after a notification: an outcome may have made room for what waits */
#define TEND_IDLE_MS    5000 /* sign of life */
#define TEND_LIMIT      500
#define RESTING_WAKE_MS 200  /* a resting schedule hides when the next of the others is due */
#define PREPARE_MS      5000 /* edits taken in before ACTIVE; more follow live */
/* Of many schedules due at one instant the first few are durable, and on their way to workers,
 * while the rest is still planned. Each batch is twice as large as the one before it, so that a
 * long backlog soon goes at full size. */
#define BURST_FIRST 100

struct planning *planning_new(const struct planning_options *options)
{
    struct planning *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return NULL;
    }
    p->options = *options;
    if (p->options.batch_schedules < 1 || p->options.batch_schedules > PLAN_SCHEDULES_MAX) {
        p->options.batch_schedules = PLAN_SCHEDULES_MAX;
    }
    if (p->options.look_ms <= 0 || p->options.look_ms > WAKE_MS) {
        p->options.look_ms = WAKE_MS;
    }
    p->due.max = (size_t)PLAN_SCHEDULES_MAX + REST_MAX;
    p->changes.max = PLAN_SCHEDULES_MAX;
    p->batch = plan_batch_new();
    p->due.rows = calloc(p->due.max, sizeof p->due.rows[0]);
    p->changes.rows = calloc(p->changes.max, sizeof p->changes.rows[0]);
    p->ahead.max = PLAN_AHEAD_MAX;
    p->ahead.rows = calloc(p->ahead.max, sizeof p->ahead.rows[0]);
    p->candidates = calloc(1, sizeof *p->candidates);
    p->take_in = calloc(PLAN_SCHEDULES_MAX, sizeof p->take_in[0]);
    p->requests = calloc(1, sizeof *p->requests);
    if (p->batch == NULL || p->due.rows == NULL || p->changes.rows == NULL || p->take_in == NULL ||
        p->requests == NULL || p->ahead.rows == NULL || p->candidates == NULL) {
        planning_free(p);
        return NULL;
    }
    return p;
}

void planning_free(struct planning *p)
{
    if (p != NULL) {
        zone_set_close(p->zones);
        plan_batch_free(p->batch);
        free(p->due.rows);
        free(p->changes.rows);
        free(p->ahead.rows);
        free(p->candidates);
        free(p->take_in);
        free(p->requests);
        free(p);
    }
}

static void step_begin(struct planning *p, const struct authority *a, struct store *store)
{
    p->authority = a;
    p->store = store;
    p->calls = 0;
    p->result = (struct planning_result){.wake_at = INSTANT_NEVER};
}

/* Every reading of the database clock moves due_at: if that clock was stepped, sleeping on would
 * be wrong by the step. */
static void clock_read(struct planning *p, utc_us database_now)
{
    instant now = clock_now();
    if (!p->next_known) {
        return;
    }
    if (utc_is_none(p->next_fire_at)) {
        p->due_at = INSTANT_NEVER;
        return;
    }
    /* Never early: database_now was read before `now`, by the time its answer took. */
    int64_t us = p->next_fire_at.us - database_now.us;
    p->due_at = us <= 0 ? now : instant_add_us(now, us);
}

static enum status tend(struct planning *p, struct error *err)
{
    struct store_call call;
    struct tended t;
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_tend(&call, TEND_LIMIT, &t, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    instant now = clock_now();
    metric_add(scheduler_metric(SCHEDULER_RETRIES_RELEASED, p->authority->scope, NULL),
               (double)t.released);
    metric_add(scheduler_metric(SCHEDULER_REAPED, p->authority->scope, NULL), (double)t.reaped);
    if (t.reaped > 0) {
        log_event(LOG_LEVEL_WARN, "lapsed claims reaped", "scope=%s jobs=%lld", p->authority->scope,
                  (long long)t.reaped);
    }
    p->result.outbox = p->result.outbox || t.released > 0;
    p->tended_at = now;
    p->may_wait = t.held_back > 0;
    int64_t wait = t.held_back > 0 || t.running > 0 ? TEND_MS : TEND_IDLE_MS;
    if (!utc_is_none(t.next_release) && t.next_release.us - t.now.us < wait * 1000) {
        int64_t us = t.next_release.us - t.now.us;
        /* Overdue ones were skipped by this round (locked): not in a busy loop. */
        wait = us > 0 ? us / 1000 + 1 : TEND_MS;
    }
    p->tend_at = instant_add_ms(now, wait);
    clock_read(p, t.now);
    return STATUS_OK;
}

static enum status look(struct planning *p, struct error *err)
{
    bool more = false;
    bool more_requests = false;
    enum status s = planning_take_changes(p, &more, err);
    if (s == STATUS_OK) {
        s = planning_answer_requests(p, &more_requests, err);
    }
    more = more || more_requests;
    if (s == STATUS_OK) {
        instant now = clock_now();
        bool waiting = rest_count(&p->rest, now) > 0 || rest_count(&p->request_rest, now) > 0;
        p->look_at = more ? now : instant_add_ms(now, waiting ? REST_MS : p->options.look_ms);
        p->result.more = p->result.more || more;
    }
    return s;
}

/* Add what is due to the batch; a row that cannot be planned gets its problem at once. */
static enum status due_collect(struct planning *p, size_t limit, struct error *err)
{
    struct plan_bounds open = {.until = UTC_UNBOUNDED};
    instant now = clock_now();
    struct error why = {0};
    for (size_t i = 0; i < p->due.count; i++) {
        const struct due_row *row = &p->due.rows[i];
        if (rest_is_on(&p->rest, row->schedule, now)) {
            continue;
        }
        if (row->edited) {
            /* A pause that begins before the firing must be seen first, also when its NOTIFY is
             * lost: the look at edits plans what still belongs to the version in force. */
            p->look_at = now;
            p->result.more = true;
            continue;
        }
        enum status s = p->batch->count < limit
                            ? plan_batch_add(p->batch, row, p->due.now, open, p->zones, &why)
                            : STATUS_FULL;
        if (s == STATUS_FULL) {
            p->result.more = true;
            return p->batch->count > 0 ? STATUS_OK : error_set(err, STATUS_AGAIN, "%s", why.text);
        }
        if (s == STATUS_INVALID) {
            s = planning_blame(p, row->schedule, row->step, why.text, err);
        } else if (s == STATUS_CORRUPT) {
            planning_cannot_here(p, row->schedule, why.text);
            s = STATUS_OK;
        }
        if (s != STATUS_OK) {
            return s;
        }
    }
    return STATUS_OK;
}

static enum status plan_due(struct planning *p, struct error *err)
{
    struct store_call call;
    enum status s = planning_call(p, &call, err);
    size_t most = p->batch_limit < p->burst_limit ? p->batch_limit : p->burst_limit;
    size_t limit = most + rest_count(&p->rest, clock_now());
    if (s == STATUS_OK) {
        s = store_due(&call, limit, &p->due, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    bool burst = p->due.count == limit;
    p->burst_limit = burst ? 2 * most : BURST_FIRST;
    plan_batch_clear(p->batch);
    s = due_collect(p, most, err);
    if (s != STATUS_OK || p->batch->count == 0) {
        return s;
    }
    for (size_t i = 0; i < p->batch->count; i++) {
        p->result.more = p->result.more || p->batch->entries[i].result.more;
    }
    p->result.more = p->result.more || burst;
    return planning_write_batch(p, err);
}

static enum status read_next_due(struct planning *p, struct error *err)
{
    struct store_call call;
    utc_us now;
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_next_due(&call, &p->next_fire_at, &now, err);
    }
    if (s == STATUS_OK) {
        p->next_known = true;
        clock_read(p, now);
    }
    return s;
}

/* Only when nothing waits to be planned: forgetting is never urgent. */
static enum status forget(struct planning *p, struct error *err)
{
    struct store_call call;
    if (instant_before(clock_now(), p->retention.at)) {
        return STATUS_OK;
    }
    enum status s = planning_call(p, &call, err);
    return s == STATUS_OK ? retention_round(&p->retention, &call, err) : s;
}

static void result_finish(struct planning *p, struct planning_result *ret_result)
{
    instant now = clock_now();
    instant wake = instant_min(instant_add_ms(now, WAKE_MS), p->due_at);
    if (!instant_before(now, wake) && rest_count(&p->rest, now) > 0) {
        /* What is overdue rests: do not spin on it, and do not oversleep the next of the others. */
        wake = instant_add_ms(now, RESTING_WAKE_MS);
    }
    wake = instant_min(wake, instant_min(p->look_at, p->tend_at));
    wake = instant_min(wake, p->retention.at);
    p->result.wake_at = p->result.more ? now : wake;
    *ret_result = p->result;
}

enum status planning_prepare(struct planning *p, const struct authority *a, struct store *store,
                             struct error *err)
{
    step_begin(p, a, store);
    rest_clear(&p->rest);
    rest_clear(&p->request_rest);
    p->batch_limit = p->options.batch_schedules;
    p->burst_limit = BURST_FIRST;
    p->next_known = false;
    p->due_at = p->look_at = p->tend_at = p->tended_at = (instant){0};
    p->retention = (struct retention){.at = instant_add_ms(clock_now(), RETENTION_MORE_MS)};
    enum status s = STATUS_OK;
    if (p->zones == NULL && zone_set_open(p->options.tz_directory, &p->zones, err) != STATUS_OK) {
        return error_prefix(err, STATUS_CORRUPT, "time zones");
    }
    struct store_call call;
    s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_authority_check(&call, err);
    }
    if (s == STATUS_OK) {
        s = tend(p, err);
    }
    instant end = instant_add_ms(clock_now(), PREPARE_MS);
    bool more = true;
    while (s == STATUS_OK && more && instant_before(clock_now(), end)) {
        step_begin(p, a, store);
        s = planning_take_changes(p, &more, err);
    }
    return s == STATUS_INVALID || s == STATUS_NOT_FOUND ? STATUS_CORRUPT : s;
}

enum status planning_step(struct planning *p, const struct authority *a, struct store *store,
                          bool notified, struct planning_result *ret_result, struct error *err)
{
    step_begin(p, a, store);
    instant now = clock_now();
    enum status s = planning_blame_accused(p, err);
    if (notified) {
        p->look_at = now;
        /* Outcomes notify when something waits: a narrow queue lives on how soon it is seen to. */
        int64_t soon = p->may_wait ? RELEASE_MS : TEND_MS;
        p->tend_at = instant_min(p->tend_at, instant_add_ms(p->tended_at, soon));
    }
    if (s == STATUS_OK && !instant_before(now, p->look_at)) {
        s = look(p, err);
    }
    bool resting = rest_count(&p->rest, now) > 0;
    if (s == STATUS_OK && (!p->next_known || !instant_before(clock_now(), p->due_at) || resting)) {
        s = plan_due(p, err);
    }
    if (s == STATUS_OK && !instant_before(clock_now(), p->tend_at)) {
        s = tend(p, err);
    }
    if (s == STATUS_OK && !p->result.more &&
        (!p->next_known || !instant_before(clock_now(), p->due_at))) {
        s = read_next_due(p, err);
    }
    if (s == STATUS_OK && !p->result.more && instant_before(clock_now(), p->due_at)) {
        s = forget(p, err);
    }
    if (s == STATUS_OK) {
        result_finish(p, ret_result);
    }
    return s;
}
