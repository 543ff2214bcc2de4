#include "relay_work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "crash_point.h"
#include "decision_log.h"
#include "log.h"
#include "mutant.h"

#define LOCKED_MS     1000  /* a delivered row that another session holds is asked for again */
#define FETCH_IDLE_MS 10000 /* without a wake-up: covers a lost hint; pulling is sooner */
#define REFUSED_MS    100   /* rows that could not be handed over are fetched again */
#define LEASE_WAIT_MS 100
#define TRIM_MS       30000
#define OUTBOX_KEEP   100000 /* rows while Kafka is away; the pull path serves the rest */
#define TURN_MS       500
#define WINDOW_STEPS  4   /* fetches and deletions are of this part of the window at least */
#define PUBLISH_MAX   250 /* rows a turn: the server shall not wait for its next statement */

static const struct backoff store_backoff = {100, 5000};

enum status relay_work_begin(struct relay_work *w, const struct relay_options *options,
                             struct error *err)
{
    *w = (struct relay_work){.options = options, .ack_at = INSTANT_NEVER, .store_up = true};
    w->publisher_up = true;
    w->window = window_new(options->window);
    w->rows = calloc(OUTBOX_FETCH_MAX, sizeof w->rows[0]);
    if (w->window == NULL || w->rows == NULL) {
        window_free(w->window);
        free(w->rows);
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    return STATUS_OK;
}

/* ---- State changes, one line each ------------------------------------------------------------ */

static void store_note(struct relay_work *w, bool up, const struct error *why)
{
    if (up == w->store_up) {
        return;
    }
    w->store_up = up;
    if (up) {
        log_event(LOG_LEVEL_INFO, "relay has the database again", "scope=%s",
                  w->options->authority.scope);
    } else {
        log_event(LOG_LEVEL_WARN, "relay lost the database, retrying", "scope=%s error=%s",
                  w->options->authority.scope, log_quote(why->text).text);
    }
}

/* ---- The database -----------------------------------------------------------------------------
 */

static bool lease_is_held(const struct relay_work *w)
{
    return lease_holds(w->options->lease, clock_now());
}

static struct store_call call_make(const struct relay_work *w)
{
    decision_tell("relay", &w->options->authority, w->decided_at, w->options->lease);
    return (struct store_call){
        .store = w->store,
        .authority = &w->options->authority,
        .deadline = instant_add_ms(clock_now(), w->options->statement_ms),
    };
}

/* What a call came to: fenced is final, trouble means waiting, and a new connection if it broke. */
static bool store_went_well(struct relay_work *w, enum status s, const struct error *why)
{
    if (s == STATUS_OK) {
        w->store_failures = 0;
        store_note(w, true, NULL);
        return true;
    }
    if (s == STATUS_FENCED) {
        w->fenced = true;
        return false;
    }
    instant now = clock_now();
    w->store_failures++;
    w->store_retry_at =
        instant_add_ms(now, backoff_ms(&store_backoff, w->store_failures, random_number()));
    store_note(w, false, why);
    if (w->store != NULL && store_is_broken(w->store)) {
        store_close(w->store);
        w->store = NULL;
    }
    return false;
}

/* A connection that is not registered is not used: a successor could not end it (I11), and its
 * server may be a copy, or one that forgot, where an id names another row. */
static bool store_register(struct relay_work *w)
{
    struct error why = {0};
    w->decided_at = clock_now();
    if (lease_is_held(w)) { /* connecting took time (I8) */
        struct store_call call = call_make(w);
        if (store_went_well(w, store_outbox_register(&call, &why), &why)) {
            w->decided_at = clock_now();
            return lease_is_held(w);
        }
    }
    store_close(w->store);
    w->store = NULL;
    return false;
}

static bool store_ready(struct relay_work *w)
{
    instant now = clock_now();
    if (instant_before(now, w->store_retry_at)) {
        return false;
    }
    if (w->store != NULL) {
        w->decided_at = now;
        return true;
    }
    struct error why = {0};
    enum status s = store_open(&w->options->store, instant_add_ms(now, w->options->statement_ms),
                               &w->store, &why);
    if (s != STATUS_OK) {
        return store_went_well(w, s, &why);
    }
    return store_register(w);
}

static bool is_among(const int64_t *ids, size_t count, int64_t id)
{
    size_t i = 0;
    while (i < count && ids[i] != id) {
        i++;
    }
    return i < count;
}

/* A part of the window: small rooms in the middle of a burst would mean many small statements. */
static size_t step_size(const struct relay_work *w)
{
    size_t part = (w->options->window + WINDOW_STEPS - 1) / WINDOW_STEPS;
    return part < OUTBOX_FETCH_MAX ? part : OUTBOX_FETCH_MAX;
}

static bool ack_is_due(const struct relay_work *w)
{
    size_t delivered = window_delivered_count(w->window);
    if (delivered <= w->locked || window_sent_count(w->window) > 0) {
        return delivered >= w->locked + step_size(w) ||
               (delivered > 0 && !instant_before(clock_now(), w->ack_at));
    }
    return true; /* nothing more will come that could go with them */
}

static void ack_send(struct relay_work *w)
{
    if (!lease_is_held(w) || !store_ready(w)) {
        return;
    }
    struct error why = {0};
    struct store_call call = call_make(w);
    w->acked_count = window_deliveries(w->window, w->acked, OUTBOX_ACK_MAX);
    enum status s = store_outbox_ack_send(&call, w->acked, w->acked_count, &why);
    if (store_went_well(w, s, &why)) {
        w->flight = FLIGHT_ACK;
        w->flight_deadline = call.deadline;
    }
}

static void ack_take(struct relay_work *w, const struct store_call *call)
{
    int64_t stays[OUTBOX_ACK_MAX];
    size_t staying = w->acked_count;
    struct error why = {0};
    if (!store_went_well(w, store_outbox_ack_take(call, stays, &staying, &why), &why)) {
        return;
    }
    for (size_t i = 0; i < w->acked_count; i++) {
        if (!is_among(stays, staying, w->acked[i])) {
            window_gone(w->window, w->acked[i]);
        }
    }
    w->counters.deleted += w->acked_count - staying;
    w->locked = staying;
    w->ack_at = INSTANT_NEVER;
    if (window_delivered_count(w->window) > 0) {
        w->ack_at = instant_add_ms(clock_now(), staying > 0 ? LOCKED_MS : RELAY_ACK_WAIT_MS);
    }
}

/* Only while no statement is in flight. */
static void row_bury(struct relay_work *w, int64_t id, const char *reason)
{
    struct error why = {0};
    if (!lease_is_held(w) || !store_ready(w)) {
        return; /* it stays set aside and gets its turn alone again */
    }
    struct store_call call = call_make(w);
    bool buried = false;
    if (!store_went_well(w, store_outbox_bury(&call, id, reason, &buried, &why), &why)) {
        return;
    }
    window_gone(w->window, id);
    if (!buried) {
        return; /* if it is still there, it is fetched and refused again */
    }
    w->counters.buried++;
    log_event(LOG_LEVEL_WARN, "message buried; its job runs by pull",
              "scope=%s outbox_id=%" PRId64 " reason=%s", w->options->authority.scope, id,
              log_quote(reason).text);
}

static void outbox_trim(struct relay_work *w)
{
    instant now = clock_now();
    if (instant_before(now, w->trim_at) || !lease_is_held(w) || !store_ready(w)) {
        return;
    }
    struct store_call call = call_make(w);
    struct error why = {0};
    int64_t dropped = 0;
    bool ok = store_went_well(w, store_outbox_trim(&call, OUTBOX_KEEP, &dropped, &why), &why);
    /* A round drops a bounded number: while there are more, go on soon. */
    w->trim_at = instant_add_ms(now, ok && dropped > 0 ? TURN_MS : TRIM_MS);
    if (ok && dropped > 0) {
        w->counters.trimmed += (uint64_t)dropped;
        log_event(LOG_LEVEL_WARN, "oldest messages dropped; their jobs run by pull",
                  "scope=%s rows=%" PRId64, w->options->authority.scope, dropped);
    }
}

/* ---- Fetch and publish ------------------------------------------------------------------------
 */

static size_t rows_pending(const struct relay_work *w)
{
    return w->rows_count - w->rows_next;
}

/* The rest of the rows at hand is fetched again. */
static void rows_drop(struct relay_work *w)
{
    for (; w->rows_next < w->rows_count; w->rows_next++) {
        window_unfetch(w->window, w->rows[w->rows_next].id);
    }
    w->fetch_at = instant_min(w->fetch_at, instant_add_ms(clock_now(), REFUSED_MS));
}

/* False: stop handing over for now. */
static bool row_publish(struct relay_work *w, const struct outbox_row *row)
{
    struct message_text text;
    struct error why = {0};
    enum status s = message_encode(&row->message, row->id, row->created_at, &text, &why);
    if (s == STATUS_OK) {
        CRASH_POINT("produce.before");
        s = publisher_publish(w->publisher, row->id, row->message.job_id, &text, &why);
        CRASH_POINT("produce.after");
    }
    if (s == STATUS_OK) {
        if (MUTANT("deletes_before_report")) {
            window_delivered(w->window, row->id);
        }
        return true;
    }
    if (s == STATUS_INVALID) {
        if (window_refused(w->window, row->id)) {
            row_bury(w, row->id, why.text); /* alone: no statement is in flight */
        }
        return true;
    }
    window_unfetch(w->window, row->id);
    if (s != STATUS_FULL) {
        relay_publisher_failed(w, &why);
    }
    return false;
}

static void rows_publish(struct relay_work *w)
{
    if (rows_pending(w) > 0) {
        w->decided_at = clock_now();
    }
    for (size_t n = 0; n < PUBLISH_MAX && rows_pending(w) > 0; n++) {
        if (!w->warm || !lease_is_held(w)) {
            rows_drop(w);
            return;
        }
        if (n == 0) {
            decision_tell("publish", &w->options->authority, w->decided_at, w->options->lease);
        }
        if (!row_publish(w, &w->rows[w->rows_next])) {
            rows_drop(w);
            return;
        }
        w->rows_next++;
    }
}

/* Rows to fetch now; 0 when it is not worth it. Reports and deletions make room, and each brings a
 * turn. */
static size_t fetch_limit(const struct relay_work *w)
{
    size_t room = window_room(w->window);
    size_t limit = room < OUTBOX_FETCH_MAX ? room : OUTBOX_FETCH_MAX;
    return limit >= step_size(w) ? limit : 0;
}

static void fetch_send(struct relay_work *w)
{
    size_t limit = fetch_limit(w);
    if (limit == 0 || !relay_publisher_ready(w) || !lease_is_held(w) || !store_ready(w)) {
        return;
    }
    struct error why = {0};
    struct store_call call = call_make(w);
    int64_t low = window_low(w->window, clock_now());
    enum status s = store_outbox_fetch_send(&call, low, limit, &why);
    if (store_went_well(w, s, &why)) {
        w->flight = FLIGHT_FETCH;
        w->flight_deadline = call.deadline;
        w->fetch_limit = limit;
        /* Now, not with the answer: a wake-up in between is about rows that it does not have. */
        w->fetch_at = instant_add_ms(clock_now(), FETCH_IDLE_MS);
    }
}

static void fetch_take(struct relay_work *w, const struct store_call *call)
{
    struct error why = {0};
    size_t n = 0;
    enum status s = store_outbox_fetch_take(call, w->fetch_limit, w->rows, &n, &why);
    if (!store_went_well(w, s, &why)) {
        w->fetch_at = clock_now();
        return;
    }
    if (n == w->fetch_limit) {
        w->fetch_at = clock_now(); /* there is probably more */
    }
    w->rows_next = 0;
    w->rows_count = 0;
    for (size_t i = 0; i < n; i++) {
        if (window_fetched(w->window, w->rows[i].id)) {
            w->rows[w->rows_count++] = w->rows[i];
        }
    }
}

/* A refused row, with nothing else in flight, neither to Kafka nor to the database. */
static void suspect_publish(struct relay_work *w)
{
    int64_t id = 0;
    size_t n = 0;
    if (!window_alone(w->window, &id) || !relay_publisher_ready(w) || !lease_is_held(w) ||
        !store_ready(w)) {
        return;
    }
    struct error why = {0};
    struct store_call call = call_make(w);
    if (!store_went_well(w, store_outbox_fetch(&call, id - 1, 1, w->rows, &n, &why), &why)) {
        return;
    }
    if (n == 0 || w->rows[0].id != id) {
        window_gone(w->window, id);
        return;
    }
    if (lease_is_held(w)) {
        window_sent_alone(w->window, id);
        (void)row_publish(w, &w->rows[0]);
    }
}

/* ---- One statement at a time, and what it came to ---------------------------------------------
 */

/* Blocks until the answer is there, or the statement's deadline. */
static void answer_await(struct relay_work *w)
{
    const struct store_call call = {w->store, &w->options->authority, w->flight_deadline};
    enum flight flight = w->flight;
    w->flight = FLIGHT_NONE;
    switch (flight) {
    case FLIGHT_NONE:
        return;
    case FLIGHT_FETCH:
        fetch_take(w, &call);
        return;
    case FLIGHT_ACK:
        ack_take(w, &call);
        return;
    }
}

/* An answer that has come. Rows wait in the socket while there are others at hand. */
static void answer_take(struct relay_work *w)
{
    if (w->flight == FLIGHT_NONE || (w->flight == FLIGHT_FETCH && rows_pending(w) > 0)) {
        return;
    }
    if (store_outbox_is_answered(w->store) || !instant_before(clock_now(), w->flight_deadline)) {
        answer_await(w);
    }
}

/* The next statement. The server works on it while rows are published. */
static void statement_send(struct relay_work *w)
{
    if (w->flight != FLIGHT_NONE || w->fenced) {
        return;
    }
    if (w->bury_id != 0) {
        row_bury(w, w->bury_id, w->bury_reason);
        w->bury_id = 0;
    }
    suspect_publish(w);
    outbox_trim(w);
    if (ack_is_due(w)) {
        ack_send(w);
    } else if (!instant_before(clock_now(), w->fetch_at)) {
        fetch_send(w);
    }
}

static instant next_turn_at(const struct relay_work *w)
{
    instant now = clock_now();
    instant t = instant_add_ms(now, TURN_MS);
    if (rows_pending(w) > 0) {
        return now;
    }
    if (w->flight != FLIGHT_NONE) {
        return instant_min(t, w->flight_deadline);
    }
    if (!lease_is_held(w)) {
        return instant_add_ms(now, LEASE_WAIT_MS);
    }
    t = instant_min(t, w->ack_at);
    if (fetch_limit(w) > 0) {
        t = instant_min(t, w->fetch_at);
    }
    /* What is wanted cannot be done before the backoff is over. */
    if (w->store == NULL || instant_before(now, w->store_retry_at)) {
        t = instant_max(t, w->store_retry_at);
    }
    if (!w->warm) {
        t = instant_max(t, instant_min(w->publisher_retry_at, instant_add_ms(now, TURN_MS)));
    }
    return t;
}

instant relay_work_turn(struct relay_work *w, bool woken)
{
    if (woken) {
        w->fetch_at = (instant){0};
    }
    relay_reports_take(w);
    answer_take(w);
    statement_send(w);
    rows_publish(w);
    w->counters.in_flight = (int64_t)(window_sent_count(w->window) - rows_pending(w));
    return next_turn_at(w);
}

void relay_work_end(struct relay_work *w, instant deadline)
{
    w->rows_next = w->rows_count;
    relay_publisher_end(w, deadline);
    if (!w->fenced && window_delivered_count(w->window) > 0) {
        answer_await(w);
        /* What stays is locked by another session, or the database is away: the successor's. */
        while (!w->fenced && window_delivered_count(w->window) > w->locked) {
            ack_send(w);
            if (w->flight == FLIGHT_NONE) {
                break;
            }
            answer_await(w);
        }
    }
    w->counters.in_flight = 0;
    store_close(w->store);
    w->store = NULL;
    window_free(w->window);
    free(w->rows);
}

struct relay_fds relay_work_fds(const struct relay_work *w)
{
    return (struct relay_fds){
        .publisher = w->publisher != NULL ? publisher_fd(w->publisher) : -1,
        .store = w->flight != FLIGHT_NONE ? store_fd(w->store) : -1,
    };
}
