/* The relay's producer: made, warmed, replaced, and what it reports. */
#include "relay_work.h"

#include <stdio.h>

#include "backoff.h"
#include "crash_point.h"
#include "log.h"

#define REPORTS_MAX         256
#define WARM_MS             1000
#define MESSAGE_TIMEOUT_MS  30000 /* shorter than any alarm about a stuck row */
#define PRODUCER_SILENCE_MS 60000 /* no success for so long while rows wait: a new producer */

/* Bounded rate of new producers: about one a second at first, then one in 30 s. */
static const struct backoff publisher_backoff = {1000, 30000};

static void publisher_note(struct relay_work *w, bool up, const struct error *why)
{
    bool refused = !up && w->publisher != NULL && publisher_refusal(w->publisher)[0] != '\0';
    w->counters.kafka_reachable = up;
    /* Once more when the reason becomes known: a broker may refuse us after the first try. */
    if (up == w->publisher_up && (!refused || w->refusal_told)) {
        return;
    }
    w->publisher_up = up;
    w->refusal_told = refused;
    if (up) {
        log_event(LOG_LEVEL_INFO, "relay has Kafka again", "scope=%s topic=%s",
                  w->options->authority.scope, w->options->topic);
    } else {
        log_event(LOG_LEVEL_WARN, "relay lost Kafka, retrying; jobs run by pull meanwhile",
                  "scope=%s topic=%s error=%s", w->options->authority.scope, w->options->topic,
                  log_quote(why->text).text);
    }
}

void relay_publisher_failed(struct relay_work *w, const struct error *why)
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
        CRASH_POINT("produce.delivered");
        w->counters.published++;
        window_delivered(w->window, r->id);
        w->publisher_failures = 0;
        if (w->ack_at.ns == INSTANT_NEVER.ns) {
            w->ack_at = instant_add_ms(clock_now(), RELAY_ACK_WAIT_MS);
        }
        return;
    case PUBLISH_FAILED:
        w->counters.failed++;
        window_failed(w->window, r->id);
        (void)error_set(&why, STATUS_AGAIN, "%s", r->reason);
        relay_publisher_failed(w, &why);
        return;
    case PUBLISH_REFUSED:
        w->counters.failed++;
        if (window_refused(w->window, r->id)) {
            w->bury_id = r->id;
            (void)snprintf(w->bury_reason, sizeof w->bury_reason, "%s", r->reason);
        }
        return;
    }
}

void relay_reports_take(struct relay_work *w)
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
    relay_reports_take(w);
    publisher_free(w->publisher);
    w->publisher = NULL;
    w->rows_next = w->rows_count; /* fetched again, as those that were sent */
    window_forget_sent(w->window);
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
        relay_publisher_failed(w, &why);
        return false;
    }
    w->counters.producers_made++;
    w->publisher_made_at = now;
    return true;
}

bool relay_publisher_ready(struct relay_work *w)
{
    instant now = clock_now();
    struct error why = {0};
    if (w->publisher != NULL && publisher_is_fatal(w->publisher, &why)) {
        relay_publisher_failed(w, &why);
        publisher_drop(w);
    }
    if (w->publisher != NULL && !publisher_is_reachable(w->publisher) && w->warm) {
        (void)error_set(&why, STATUS_AGAIN, "all brokers are down");
        relay_publisher_failed(w, &why);
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
        relay_publisher_failed(w, &why);
        return false;
    }
    w->warm = true;
    publisher_note(w, true, NULL);
    return true;
}

void relay_publisher_end(struct relay_work *w, instant deadline)
{
    if (w->publisher != NULL) {
        publisher_stop(w->publisher, deadline);
        relay_reports_take(w);
        publisher_free(w->publisher);
        w->publisher = NULL;
    }
}
