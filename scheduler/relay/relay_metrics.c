#include "relay_metrics.h"

#include "loop_name.h"
#include "scheduler_metrics.h"

static void add(enum scheduler_metric which, const char *scope, uint64_t before, uint64_t after)
{
    if (after != before) {
        metric_add(scheduler_metric(which, scope, NULL), (double)(after - before));
    }
}

void relay_metrics_add(const char *scope, const struct relay_snapshot *before,
                       const struct relay_snapshot *after)
{
    add(SCHEDULER_PUBLISHED, scope, before->published, after->published);
    add(SCHEDULER_OUTBOX_DELETED, scope, before->deleted, after->deleted);
    add(SCHEDULER_PUBLISH_FAILURES, scope, before->failed, after->failed);
    add(SCHEDULER_OUTBOX_BURIED, scope, before->buried, after->buried);
    add(SCHEDULER_OUTBOX_TRIMMED, scope, before->trimmed, after->trimmed);
    add(SCHEDULER_PRODUCERS, scope, before->producers_made, after->producers_made);
    metric_set(scheduler_metric(SCHEDULER_IN_FLIGHT, scope, NULL), (double)after->in_flight);
    metric_set(scheduler_metric(SCHEDULER_KAFKA_REACHABLE, scope, NULL), after->kafka_reachable);
}

void relay_metrics_end(const char *scope)
{
    metric_clear(scheduler_metric(SCHEDULER_IN_FLIGHT, scope, NULL));
    metric_clear(scheduler_metric(SCHEDULER_KAFKA_REACHABLE, scope, NULL));
    metric_clear(scheduler_metric(SCHEDULER_STALL, LOOP_RELAY, scope));
}
