#include "planning.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "planning_zone.h"
#include "scheduler_metrics.h"

#define WAKE_MS         30000 /* the longest sleep */
#define TEND_MS         1000  /* while something is held back or running */
#define RELEASE_MS      50 /* after a notification: an outcome may have made room for what waits */
#define TEND_IDLE_MS    5000 /* sign of life; after four of them view v_leader says silent */
#define TEND_LIMIT      500
#define HANDOFF_LOOK_MS 200  /* while a handoff waits for its successor */
#define RESTING_WAKE_MS 200  /* a resting schedule hides when the next of the others is due */
#define DUE_PAGES_MAX   16   /* of up to 2000 that cannot be planned now, before the next step */
#define PREPARE_MS      5000 /* edits taken in before ACTIVE; more follow live */
/* Of many schedules due at one instant the first are durable, and on their way to workers, while
 * the rest is still planned. Fewer would be durable sooner, but what they set going takes the
 * processor from planning the rest (bench/README.md). Each batch is twice as large as the one
 * before it, so that a long backlog soon goes at full size. */
#define BURST_FIRST 260

struct planning *planning_new(const struct planning_options *options)
{
    assert(options->batch_schedules >= 1 && options->batch_schedules <= PLAN_SCHEDULES_MAX);
    assert(options->look_ms > 0 && options->tz_poll_ms > 0);
    struct planning *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return NULL;
    }
    p->options = *options;
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
        planning_zones_close(p);
        plan_batch_free(p->batch);
        stored_dates_free(&p->due.dates);
        stored_dates_free(&p->changes.dates);
        stored_dates_free(&p->ahead.dates);
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

/* Every reading of the database clock bounds due_at: if that clock was stepped, sleeping on would
 * be wrong by the step. A reading that took long tells less than a quick one before it. */
static void clock_read(struct planning *p, struct clock_reading read)
{
    if (!p->next_known) {
        return;
    }
    if (utc_is_none(p->next_fire_at)) {
        p->due_at = INSTANT_NEVER;
        return;
    }
    int64_t us = p->next_fire_at.us - read.said.us;
    us = us > 0 ? us : 0;
    p->due_at = instant_max(instant_add_us(read.after, us),
                            instant_min(p->due_at, instant_add_us(read.before, us)));
}

enum status planning_clock_saw(struct planning *p, utc_us said, instant before, struct error *err)
{
    return clock_watch_take(p->options.watch, said, before)
               ? STATUS_OK
               : error_set(err, STATUS_AGAIN, "the database's clock is suspect");
}

/* The leader's own clock is never stepped. The bounds are as far apart as the two calls were slow:
 * a slow database is not taken for one whose clock was stepped. */
static struct tend_clock clock_expected(const struct planning *p, instant now, instant deadline)
{
    const struct clock_reading *r = &p->beaten;
    if (utc_is_none(r->said)) {
        return (struct tend_clock){UTC_NONE, UTC_NONE};
    }
    return (struct tend_clock){
        .from = {r->said.us + (now.ns - r->before.ns) / 1000},
        .to = {r->said.us + (deadline.ns - r->after.ns) / 1000},
    };
}

static void clock_compare(struct planning *p, const struct tended *t, struct clock_reading read)
{
    if (t->stepped) {
        int64_t ms = (t->now.us - p->beaten.said.us) / 1000 -
                     instant_ms_between(p->beaten.before, read.before);
        log_event(LOG_LEVEL_WARN,
                  "the database's clock was stepped: no claim is reaped until workers have had a "
                  "lease to renew",
                  "scope=%s step_ms=%lld", p->authority->scope, (long long)ms);
    }
    if (t->beaten) {
        p->beaten = read; /* otherwise a step is not written down yet, and must be found again */
    }
}

static enum status tend(struct planning *p, struct error *err)
{
    struct store_call call;
    struct tended t;
    if (instant_before(clock_now(), p->tend_at)) {
        return STATUS_OK;
    }
    instant sent = clock_now();
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        const struct tend_terms terms = {.limit = TEND_LIMIT, .known = planning_known(p)};
        s = store_tend(&call, terms, clock_expected(p, sent, call.deadline), &t, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    instant now = clock_now();
    struct clock_reading read = {t.now, sent, now};
    clock_compare(p, &t, read);
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
    clock_read(p, read);
    return planning_clock_saw(p, t.now, sent, err);
}

static instant look_again_at(const struct planning *p, const struct rest_table *rest, bool more)
{
    instant now = clock_now();
    return more ? now
                : instant_add_ms(now, rest_count(rest, now) > 0 ? REST_MS : p->options.look_ms);
}

static enum status take_changes(struct planning *p, struct error *err)
{
    bool more = false;
    if (instant_before(clock_now(), p->look_at)) {
        return STATUS_OK;
    }
    enum status s = planning_resume(p, err);
    s = s == STATUS_OK ? planning_take_changes(p, &more, err) : s;
    if (s == STATUS_OK) {
        p->looked_at = clock_now();
        p->look_at = look_again_at(p, &p->rest, more);
        p->result.more = p->result.more || more;
    }
    return s;
}

static enum status answer_requests(struct planning *p, struct error *err)
{
    bool more = false;
    if (instant_before(clock_now(), p->answer_at)) {
        return STATUS_OK;
    }
    enum status s = planning_answer_requests(p, &more, err);
    if (s == STATUS_OK) {
        p->answer_at = look_again_at(p, &p->request_rest, more);
        if (p->handing_over) { /* notified as a rule */
            p->answer_at = instant_min(p->answer_at, instant_add_ms(clock_now(), HANDOFF_LOOK_MS));
        }
        p->result.more = p->result.more || more;
    }
    return s;
}

/* Not now: it rests, or its zone does, or its edit comes first. */
static bool due_is_hidden(struct planning *p, const struct due_row *row, instant now)
{
    if (rest_is_on(&p->rest, row->schedule, now) ||
        rest_is_on(&p->zone_rest, row->rule.time_zone, now)) {
        return true;
    }
    if (row->edited) {
        /* A pause that begins before the firing must be seen first, also when its NOTIFY is lost:
         * the look at edits plans what still belongs to the version in force. An edit that the
         * last look left is not looked at in a busy loop. */
        p->look_at = instant_min(p->look_at, instant_add_ms(p->looked_at, REST_MS));
        p->result.more = p->result.more || !instant_before(now, p->look_at);
    }
    return row->edited;
}

/* Add what is due to the batch; a row that cannot be planned gets its problem at once. */
static enum status due_collect(struct planning *p, size_t limit, struct error *err)
{
    struct plan_bounds open = {.until = UTC_UNBOUNDED};
    instant now = clock_now();
    struct error why = {0};
    for (size_t i = 0; i < p->due.count; i++) {
        const struct due_row *row = &p->due.rows[i];
        if (due_is_hidden(p, row, now) || planning_zones_take(p, row)) {
            p->hidden = true;
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
            planning_cannot_here(p, row->rule.time_zone, row->schedule, why.text);
            p->hidden = true;
            s = STATUS_OK;
        }
        if (s != STATUS_OK) {
            return s;
        }
    }
    return STATUS_OK;
}

/* Read what is due into a batch of at most `most`; further when all that was read is hidden.
 * *ret_burst: more than was read is due. */
static enum status due_batch(struct planning *p, size_t most, bool *ret_burst, struct error *err)
{
    struct store_call call;
    size_t limit = most + rest_count(&p->rest, clock_now());
    size_t offset = 0;
    bool full = true;
    enum status s = STATUS_OK;
    p->hidden = false;
    planning_batch_clear(p);
    for (unsigned page = 0; s == STATUS_OK && full && p->batch->count == 0 && page < DUE_PAGES_MAX;
         page++) {
        instant sent = clock_now();
        s = planning_call(p, &call, err);
        if (s == STATUS_OK) {
            s = store_due(&call,
                          (struct due_page){.limit = limit, .offset = offset, .until = UTC_NONE},
                          &p->due, err);
        }
        if (s == STATUS_OK && p->due.count > 0) {
            s = planning_clock_saw(p, p->due.now, sent, err);
        }
        if (s == STATUS_OK) {
            full = p->due.count == limit;
            offset += p->due.count;
            limit = p->due.max;
            s = due_collect(p, most, err);
        }
    }
    *ret_burst = full;
    return s == STATUS_OK ? planning_zones_move(p, err) : s;
}

static enum status plan_due(struct planning *p, struct error *err)
{
    instant now = clock_now();
    bool burst = false;
    if (p->next_known && instant_before(now, p->due_at) && rest_count(&p->rest, now) == 0) {
        return STATUS_OK;
    }
    size_t most = p->batch_limit < p->burst_limit ? p->batch_limit : p->burst_limit;
    bool ready = false;
    enum status s = planning_ahead_check(p, &ready, err);
    if (s == STATUS_OK && ready) {
        s = planning_ahead_write(p, most, &burst, err);
        p->burst_limit = burst ? 2 * most : BURST_FIRST;
        p->result.more = p->result.more || burst;
        return s;
    }
    if (s == STATUS_OK) {
        s = due_batch(p, most, &burst, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    p->burst_limit = burst ? 2 * most : BURST_FIRST;
    if (p->batch->count == 0) {
        return STATUS_OK;
    }
    for (size_t i = 0; i < p->batch->count; i++) {
        p->result.more = p->result.more || p->batch->entries[i].result.more;
    }
    p->result.more = p->result.more || burst;
    return planning_write_batch(p, 0, p->batch->count, err);
}

static enum status read_next_due(struct planning *p, struct error *err)
{
    struct store_call call;
    struct next_due next;
    instant sent = clock_now();
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_next_due(&call, &next, err);
    }
    if (s == STATUS_OK) {
        p->next_fire_at = next.at;
        p->next_known = true;
        p->due_at = INSTANT_NEVER;
        clock_read(p, (struct clock_reading){next.now, sent, clock_now()});
        p->resumes = p->resumes || next.resumes;
        if (next.edited || next.resumes) { /* what was announced begins without a NOTIFY */
            p->look_at = instant_min(p->look_at, instant_add_ms(p->looked_at, REST_MS));
        }
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

/* Nothing is due, or what is can only be tried again later. */
static bool due_is_done(const struct planning *p, instant now)
{
    return instant_before(now, p->due_at) || p->hidden;
}

static void result_finish(struct planning *p, struct planning_result *ret_result)
{
    instant now = clock_now();
    instant wake = instant_min(instant_add_ms(now, WAKE_MS), p->due_at);
    if (!instant_before(now, wake) && (p->hidden || rest_count(&p->rest, now) > 0)) {
        /* What is overdue rests: do not spin on it, and do not oversleep the next of the others. */
        wake = instant_add_ms(now, RESTING_WAKE_MS);
    }
    wake = instant_min(wake, instant_min(p->look_at, p->answer_at));
    wake = instant_min(wake, instant_min(p->tend_at, planning_ahead_at(p)));
    wake = instant_min(wake, planning_zones_at(p));
    wake = due_is_done(p, now) ? instant_min(wake, p->retention.at) : wake;
    p->result.wake_at = p->result.more ? now : wake;
    *ret_result = p->result;
}

/* A slow edit keeps nobody from leading: it is found, and the others taken in, while ACTIVE. */
static enum status prepare_changes(struct planning *p, const struct authority *a,
                                   struct store *store, struct error *err)
{
    struct error local = {.text = ""};
    struct error *why = err != NULL ? err : &local;
    enum status s = STATUS_OK;
    instant end = instant_add_ms(clock_now(), PREPARE_MS);
    bool more = true;
    while (s == STATUS_OK && more && instant_before(clock_now(), end)) {
        step_begin(p, a, store);
        why->code[0] = '\0';
        s = planning_take_changes(p, &more, why);
    }
    if (s == STATUS_TIMEOUT || (s == STATUS_AGAIN && store_is_a_wait(why))) {
        log_event(LOG_LEVEL_WARN, "edits are not all taken in yet", "scope=%s error=%s", a->scope,
                  log_quote(why->text).text);
        return STATUS_OK;
    }
    return s;
}

enum status planning_prepare(struct planning *p, const struct authority *a, struct store *store,
                             struct error *err)
{
    step_begin(p, a, store);
    rest_clear(&p->rest);
    rest_clear(&p->request_rest);
    rest_clear(&p->zone_rest);
    p->changes_after[0] = '\0';
    p->hidden = false;
    planning_ahead_forget(p);
    p->batch_limit = p->options.batch_schedules;
    p->burst_limit = BURST_FIRST;
    p->take_in_limit = PLAN_SCHEDULES_MAX;
    p->move_limit = PLAN_SCHEDULES_MAX;
    p->next_known = false;
    p->resumes = false;
    p->first_part = 0;
    p->looked_at = (instant){0};
    p->due_at = p->look_at = p->answer_at = p->tend_at = p->tended_at = (instant){0};
    p->beaten.said = UTC_NONE;
    p->retention = (struct retention){.at = instant_add_ms(clock_now(), RETENTION_MORE_MS)};
    enum status s = STATUS_OK;
    if (planning_zones_open(p, err) != STATUS_OK) {
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
    if (s == STATUS_OK) {
        s = planning_zones_prepare(p, err);
    }
    if (s == STATUS_OK) {
        s = prepare_changes(p, a, store, err);
    }
    return s == STATUS_INVALID || s == STATUS_NOT_FOUND ? STATUS_CORRUPT : s;
}

/* One that fails ends the step (it may have cost the connection), and the next step begins behind
 * it: none hides the others, however often it fails (I12). The order does not matter otherwise:
 * what was edited is not planned before its edit is taken in. */
static enum status parts_run(struct planning *p, struct error *err)
{
    static enum status (*const parts[])(struct planning *, struct error *) = {
        planning_zones_step, take_changes, answer_requests, plan_due, tend};
    const size_t count = sizeof parts / sizeof parts[0];
    size_t first = p->first_part;
    p->first_part = 0;
    for (size_t i = 0; i < count; i++) {
        enum status s = parts[(first + i) % count](p, err);
        if (s != STATUS_OK) {
            p->first_part = (first + i + 1) % count;
            return s;
        }
    }
    return STATUS_OK;
}

enum status planning_step(struct planning *p, const struct authority *a, struct store *store,
                          bool notified, struct planning_result *ret_result, struct error *err)
{
    step_begin(p, a, store);
    instant now = clock_now();
    enum status s = planning_blame_accused(p, err);
    if (notified) {
        p->look_at = p->answer_at = now;
        /* Outcomes notify when something waits: a narrow queue lives on how soon it is seen to. */
        int64_t soon = p->may_wait ? RELEASE_MS : TEND_MS;
        p->tend_at = instant_min(p->tend_at, instant_add_ms(p->tended_at, soon));
    }
    if (s == STATUS_OK) {
        s = parts_run(p, err);
    }
    if (s == STATUS_OK && !p->result.more &&
        (!p->next_known || !instant_before(clock_now(), p->due_at))) {
        s = read_next_due(p, err);
    }
    if (s == STATUS_OK && !p->result.more && due_is_done(p, clock_now())) {
        s = forget(p, err);
    }
    if (s == STATUS_OK && !p->result.more) {
        s = planning_look_ahead(p, err);
    }
    if (s == STATUS_OK) {
        result_finish(p, ret_result);
    }
    return s;
}
