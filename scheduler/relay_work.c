#include "relay_work.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backoff.h"
#include "log.h"

#define REPORTS_MAX         256
#define ACK_WAIT_MS         10   /* deliveries are collected so long, or until OUTBOX_ACK_MAX */
#define LOCKED_MS           1000 /* a delivered row that another session holds is asked for again */
#define FETCH_IDLE_MS       10000 /* without a wake-up: covers a lost hint; pulling is sooner */
#define LEASE_WAIT_MS       100
#define WARM_MS             1000
#define MESSAGE_TIMEOUT_MS  30000 /* shorter than any alarm about a stuck row */
#define PRODUCER_SILENCE_MS 60000 /* no success for so long while rows wait: a new producer */
#define TRIM_MS             30000
#define OUTBOX_KEEP         100000 /* rows while Kafka is away; the pull path serves the rest */
#define TURN_MS             500

static const struct backoff store_backoff = {100, 5000};
/* Bounded rate of new producers: about one a second at first, then one in 30 s. */
static const struct backoff publisher_backoff = {1000, 30000};

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

static void publisher_note(struct relay_work *w, bool up, const struct error *why)
{
    w->counters.kafka_reachable = up;
    if (up == w->publisher_up) {
        return;
    }
    w->publisher_up = up;
    if (up) {
        log_event(LOG_LEVEL_INFO, "relay has Kafka again", "scope=%s topic=%s",
                  w->options->authority.scope, w->options->topic);
    } else {
        log_event(LOG_LEVEL_WARN, "relay lost Kafka, retrying; jobs run by pull meanwhile",
                  "scope=%s topic=%s error=%s", w->options->authority.scope, w->options->topic,
                  log_quote(why->text).text);
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
    if (store_is_broken(w->store)) {
        store_close(w->store);
        w->store = NULL;
    }
    return false;
}

static bool store_ready(struct relay_work *w)
{
    instant now = clock_now();
    if (instant_before(now, w->store_retry_at)) {
        return false;
    }
    if (w->store != NULL) {
        return true;
    }
    struct error why = {0};
    enum status s = store_open(&w->options->store, instant_add_ms(now, w->options->statement_ms),
                               &w->store, &why);
    if (s != STATUS_OK) {
        w->store_failures++;
        w->store_retry_at =
            instant_add_ms(now, backoff_ms(&store_backoff, w->store_failures, random_number()));
        store_note(w, false, &why);
        return false;
    }
    struct store_call call = call_make(w);
    s = store_outbox_register(&call, &why);
    return store_went_well(w, s, &why);
}

static bool is_among(const int64_t *ids, size_t count, int64_t id)
{
    size_t i = 0;
    while (i < count && ids[i] != id) {
        i++;
    }
    return i < count;
}

static void acks_send(struct relay_work *w)
{
    int64_t ids[OUTBOX_ACK_MAX];
    int64_t stays[OUTBOX_ACK_MAX];
    while (window_delivered_count(w->window) > 0 && lease_is_held(w) && store_ready(w)) {
        size_t n = window_deliveries(w->window, ids, OUTBOX_ACK_MAX);
        size_t staying = n;
        memcpy(stays, ids, n * sizeof ids[0]);
        struct store_call call = call_make(w);
        struct error why = {0};
        if (!store_went_well(w, store_outbox_ack(&call, stays, &staying, &why), &why)) {
            return;
        }
        for (size_t i = 0; i < n; i++) {
            if (!is_among(stays, staying, ids[i])) {
                window_gone(w->window, ids[i]);
            }
        }
        w->counters.deleted += n - staying;
        if (staying > 0) {
            w->ack_at = instant_add_ms(clock_now(), LOCKED_MS);
            return;
        }
    }
    w->ack_at = INSTANT_NEVER;
}

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

/* ---- Kafka ------------------------------------------------------------------------------------
 */

static void publisher_failed(struct relay_work *w, const struct error *why)
{
    instant now = clock_now();
    if (w->warm || w->publisher_failures == 0 || !instant_before(now, w->publisher_retry_at)) {
        w->publisher_failures++;
        w->publisher_retry_at = instant_add_ms(
            now, backoff_ms(&publisher_backoff, w->publisher_failures, random_number()));
    }
    w->warm = false;
    publisher_note(w, false, why);
}

static void report_take(struct relay_work *w, const struct publish_report *r)
{
    struct error why;
    switch (r->result) {
    case PUBLISH_DELIVERED:
        w->counters.published++;
        window_delivered(w->window, r->id);
        w->publisher_failures = 0;
        if (w->ack_at.ns == INSTANT_NEVER.ns) {
            w->ack_at = instant_add_ms(clock_now(), ACK_WAIT_MS);
        }
        return;
    case PUBLISH_FAILED:
        w->counters.failed++;
        window_failed(w->window, r->id);
        (void)error_set(&why, STATUS_AGAIN, "%s", r->reason);
        publisher_failed(w, &why);
        return;
    case PUBLISH_REFUSED:
        w->counters.failed++;
        if (window_refused(w->window, r->id)) {
            row_bury(w, r->id, r->reason);
        }
        return;
    }
}

static void reports_take(struct relay_work *w)
{
    struct publish_report reports[REPORTS_MAX];
    size_t n = 0;
    if (w->publisher == NULL) {
        return;
    }
    do {
        n = publisher_poll(w->publisher, 0, reports, REPORTS_MAX);
        for (size_t i = 0; i < n; i++) {
            report_take(w, &reports[i]);
        }
    } while (n == REPORTS_MAX);
}

static void publisher_drop(struct relay_work *w)
{
    publisher_stop(w->publisher, clock_now());
    reports_take(w);
    publisher_free(w->publisher);
    w->publisher = NULL;
    window_forget_sent(w->window); /* by construction none is left */
    w->warm = false;
}

static bool publisher_make(struct relay_work *w, instant now)
{
    char client[DISPATCH_CLIENT_ID_MAX];
    (void)snprintf(client, sizeof client, "report-relay-%.27s", w->options->authority.scope);
    struct publisher_options options = {
        .dispatch = {.brokers = w->options->brokers,
                     .client_id = client,
                     .properties = w->options->properties,
                     .secret_files = w->options->secret_files},
        .topic = w->options->topic,
        .window = w->options->window,
        .message_timeout_ms = MESSAGE_TIMEOUT_MS,
    };
    struct error why = {0};
    if (publisher_new(&options, &w->publisher, &why) != STATUS_OK) {
        publisher_failed(w, &why);
        return false;
    }
    w->counters.producers_made++;
    w->publisher_made_at = now;
    return true;
}

/* A producer that is not fatal and knows its topic. Anything else waits for its backoff. */
static bool publisher_ready(struct relay_work *w)
{
    instant now = clock_now();
    struct error why = {0};
    if (w->publisher != NULL && publisher_is_fatal(w->publisher, &why)) {
        publisher_failed(w, &why);
        publisher_drop(w);
    }
    if (w->publisher != NULL && !publisher_is_reachable(w->publisher) && w->warm) {
        (void)error_set(&why, STATUS_AGAIN, "all brokers are down");
        publisher_failed(w, &why);
    }
    if (w->warm) {
        return true;
    }
    if (instant_before(now, w->publisher_retry_at)) {
        return false;
    }
    if (w->publisher != NULL && w->publisher_failures > 1 &&
        instant_ms_between(w->publisher_made_at, now) > PRODUCER_SILENCE_MS) {
        publisher_drop(w); /* it may be stuck on brokers that are gone for good (2.0.2) */
    }
    if (w->publisher == NULL && !publisher_make(w, now)) {
        return false;
    }
    int partitions = 0;
    if (publisher_warm(w->publisher, instant_add_ms(now, WARM_MS), &partitions, &why) !=
        STATUS_OK) {
        publisher_failed(w, &why);
        return false;
    }
    w->warm = true;
    publisher_note(w, true, NULL);
    return true;
}

/* ---- Fetch and publish ------------------------------------------------------------------------
 */

/* False: stop handing over for now. */
static bool row_publish(struct relay_work *w, const struct outbox_row *row)
{
    struct message_text text;
    struct error why = {0};
    enum status s = message_encode(&row->message, row->id, row->created_at, &text, &why);
    if (s == STATUS_OK) {
        s = publisher_publish(w->publisher, row->id, row->message.job_id, &text, &why);
    }
    if (s == STATUS_OK) {
        return true;
    }
    if (s == STATUS_INVALID) {
        (void)window_refused(w->window, row->id);
        row_bury(w, row->id, why.text);
        return true;
    }
    window_unfetch(w->window, row->id);
    if (s != STATUS_FULL) {
        publisher_failed(w, &why);
    }
    return false;
}

static bool rows_fetch(struct relay_work *w, int64_t low, size_t limit, size_t *ret_count)
{
    struct error why = {0};
    if (!lease_is_held(w) || !store_ready(w)) {
        return false;
    }
    struct store_call call = call_make(w);
    enum status s = store_outbox_fetch(&call, low, limit, w->rows, ret_count, &why);
    return store_went_well(w, s, &why);
}

static void suspect_publish(struct relay_work *w)
{
    int64_t id = 0;
    size_t n = 0;
    if (!window_alone(w->window, &id) || !publisher_ready(w) || !rows_fetch(w, id - 1, 1, &n)) {
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

/* Rows to fetch now; 0 when it is not worth it: small rooms in the middle of a burst would mean
 * many small fetches. Reports and deletions make room, and each brings a turn. */
static size_t fetch_limit(const struct relay_work *w)
{
    size_t room = window_room(w->window);
    size_t limit = room < OUTBOX_FETCH_MAX ? room : OUTBOX_FETCH_MAX;
    return limit == OUTBOX_FETCH_MAX || limit * 2 >= w->options->window ? limit : 0;
}

/* True: a full batch came back, so there is probably more. */
static bool rows_publish(struct relay_work *w)
{
    size_t limit = fetch_limit(w);
    size_t n = 0;
    if (limit == 0 || !publisher_ready(w) ||
        !rows_fetch(w, window_low(w->window, clock_now()), limit, &n)) {
        return false;
    }
    bool going = true;
    for (size_t i = 0; i < n && going && lease_is_held(w); i++) {
        if (window_fetched(w->window, w->rows[i].id)) {
            going = row_publish(w, &w->rows[i]);
        }
    }
    w->fetch_at = instant_add_ms(clock_now(), n == limit && going ? 0 : FETCH_IDLE_MS);
    return n == limit && going;
}

static instant next_turn_at(const struct relay_work *w, bool more)
{
    instant now = clock_now();
    instant t = instant_add_ms(now, TURN_MS);
    if (!lease_is_held(w)) {
        return instant_add_ms(now, LEASE_WAIT_MS);
    }
    t = instant_min(t, w->ack_at);
    if (fetch_limit(w) > 0) {
        t = instant_min(t, w->fetch_at);
    }
    if (more) {
        t = now;
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
    reports_take(w);
    instant now = clock_now();
    size_t delivered = window_delivered_count(w->window);
    if (delivered > 0 && (delivered >= OUTBOX_ACK_MAX || window_sent_count(w->window) == 0 ||
                          !instant_before(now, w->ack_at))) {
        acks_send(w);
    }
    suspect_publish(w);
    bool more = false;
    if (!instant_before(clock_now(), w->fetch_at)) {
        more = rows_publish(w);
    }
    outbox_trim(w);
    w->counters.in_flight = (int64_t)window_sent_count(w->window);
    return next_turn_at(w, more);
}

void relay_work_end(struct relay_work *w, instant deadline)
{
    if (w->publisher != NULL) {
        publisher_stop(w->publisher, deadline);
        reports_take(w);
        publisher_free(w->publisher);
        w->publisher = NULL;
    }
    if (!w->fenced && w->store != NULL) {
        acks_send(w);
    }
    w->counters.in_flight = 0;
    store_close(w->store);
    w->store = NULL;
    window_free(w->window);
    free(w->rows);
}

int relay_work_fd(const struct relay_work *w)
{
    return w->publisher != NULL ? publisher_fd(w->publisher) : -1;
}
