#include "worker_collect.h"

#include "loop_name.h"
#include "worker_metrics.h"

/* What counters.h counts, as series: a family and its label. */
static const struct {
    enum counter counter;
    enum worker_metric metric;
    const char *label;
} rendered[] = {
    {COUNT_PULLED, WORKER_CLAIMS, "pull"},
    {COUNT_ADOPTED, WORKER_CLAIMS, "adopted"},
    {COUNT_MESSAGES, WORKER_MESSAGES_READ, NULL},
    {COUNT_DUPLICATE, WORKER_MESSAGES_LEFT, "duplicate"},
    {COUNT_STALE, WORKER_MESSAGES_LEFT, "stale"},
    {COUNT_UNCLAIMED, WORKER_MESSAGES_LEFT, "unclaimed"},
    {COUNT_UNKNOWN, WORKER_MESSAGES_LEFT, "unknown_job"},
    {COUNT_POISON, WORKER_MESSAGES_LEFT, "poison"},
    {COUNT_SHED, WORKER_MESSAGES_LEFT, "shed"},
    {COUNT_SUCCEEDED, WORKER_ATTEMPTS, "succeeded"},
    {COUNT_FAILED, WORKER_ATTEMPTS, "failed"},
    {COUNT_CANCELLED, WORKER_ATTEMPTS, "cancelled"},
    {COUNT_HANDED_BACK, WORKER_ATTEMPTS, "handed_back"},
    {COUNT_LOST, WORKER_ATTEMPTS, "lost"},
    {COUNT_OUTCOME_REPEATS, WORKER_OUTCOME_REPEATS, NULL},
    {COUNT_HEARTBEATS, WORKER_HEARTBEATS, "ok"},
    {COUNT_HEARTBEATS_FAILED, WORKER_HEARTBEATS, "failed"},
    {COUNT_INCARNATIONS, WORKER_INCARNATIONS, NULL},
};

static void counters_render(const struct counters *c)
{
    /* `claimed` includes the other two paths. It is counted before them, so it is read last. */
    uint64_t pulled = counter_read(c, COUNT_PULLED);
    uint64_t adopted = counter_read(c, COUNT_ADOPTED);
    uint64_t claimed = counter_read(c, COUNT_CLAIMED);
    struct metric *by_message = worker_metric(WORKER_CLAIMS, "message", NULL);
    double now = (double)(claimed - pulled - adopted);
    /* Between the two steps of another thread a pull looks like a message: never go back. */
    if (now >= metric_read(by_message)) {
        metric_set(by_message, now);
    }
    for (size_t i = 0; i < sizeof rendered / sizeof rendered[0]; i++) {
        metric_set(worker_metric(rendered[i].metric, rendered[i].label, NULL),
                   (double)counter_read(c, rendered[i].counter));
    }
}

void worker_metrics_start(const struct worker_settings *settings)
{
    for (size_t i = 0; i < settings->artifact_store_count; i++) {
        const char *store = settings->artifact_stores[i].name;
        (void)worker_metric(WORKER_ARTIFACT_FAILURES, store, NULL);
        (void)worker_metric(WORKER_SWEPT, store, NULL);
    }
    (void)worker_metric(WORKER_ARTIFACTS, NULL, NULL);
    (void)worker_metric(WORKER_ARTIFACT_BYTES, NULL, NULL);
}

void worker_metrics_collect(void *worker)
{
    struct worker *w = worker;
    instant now = clock_now();
    struct incarnation_copy me;
    bool registered = worker_incarnation(w, &me);
    struct claim_counts claims = claims_count(w->claims);
    instant beat = {atomic_load(&w->beat_ns)};
    counters_render(&w->counters);
    metric_set(worker_metric(WORKER_REGISTERED, NULL, NULL), registered);
    if (registered) {
        metric_set(worker_metric(WORKER_LEASE_SECONDS, NULL, NULL),
                   (double)me.agreement.lease_ms / 1000);
    }
    metric_set(worker_metric(WORKER_SLOTS, NULL, NULL), (double)w->settings->slots);
    metric_set(worker_metric(WORKER_RUNNING, NULL, NULL), (double)claims.running);
    metric_set(worker_metric(WORKER_CLAIMS_WAITING, NULL, NULL), (double)claims.waiting);
    metric_set(worker_metric(WORKER_UNRECORDED, NULL, NULL), (double)claims.unrecorded);
    if (beat.ns != 0) {
        metric_set(worker_metric(WORKER_HEARTBEAT_AGE, NULL, NULL),
                   metric_seconds_since(beat, now));
    }
    metric_set(worker_metric(WORKER_STALL, LOOP_CLAIMS, NULL),
               stall_longest_s(&w->claims_stall, now));
    metric_set(worker_metric(WORKER_STALL, LOOP_HEARTBEAT, NULL),
               stall_longest_s(&w->heartbeat_stall, now));
    metric_set(worker_metric(WORKER_STALL, LOOP_OUTCOMES, NULL),
               stall_longest_s(&w->outcomes_stall, now));
}
