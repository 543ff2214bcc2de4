/* What a worker measures: the families in one table, which is also printed as the reference
 * (docs/metrics.md), and the small calls that measure. What counters.h counts is rendered from
 * there. Thread: any. Blocks: never for long. */
#ifndef RS_WORKER_METRICS_H
#define RS_WORKER_METRICS_H

#include <stdio.h>

#include "clock.h"
#include "job.h"
#include "metrics.h"

/* In the order of the reference. */
enum worker_metric {
    WORKER_CLAIMS,
    WORKER_MESSAGES_READ,
    WORKER_MESSAGES_LEFT,
    WORKER_ATTEMPTS,
    WORKER_OUTCOME_REPEATS,
    WORKER_HEARTBEATS,
    WORKER_HEARTBEAT_AGE,
    WORKER_LEASE_SECONDS,
    WORKER_INCARNATIONS,
    WORKER_REGISTERED,
    WORKER_SLOTS,
    WORKER_RUNNING,
    WORKER_CLAIMS_WAITING,
    WORKER_UNRECORDED,
    WORKER_START_LATE_SECONDS,
    WORKER_READY_WAIT_SECONDS,
    WORKER_RUN_SECONDS,
    WORKER_OUTCOME_SECONDS,
    WORKER_ARTIFACTS,
    WORKER_ARTIFACT_BYTES,
    WORKER_ARTIFACT_FAILURES,
    WORKER_SWEPT,
    WORKER_RELOADS,
    WORKER_STALL,
    WORKER_METRICS,
};
extern const struct metric_family WORKER_FAMILIES[WORKER_METRICS];

/* A runner begins with the claim / has ended with it. */
void run_metrics_begin(const struct job *job, instant now);
void run_metrics_end(const struct job *job, instant began, instant now);

/* The reference of all metrics of report-worker. */
void worker_metrics_print(FILE *to);

static inline struct metric *worker_metric(enum worker_metric which, const char *first,
                                           const char *second)
{
    return metric_get(&WORKER_FAMILIES[which], first, second);
}

#endif
