/* What a scheduler measures: the families in one table, which is also printed as the reference
 * (docs/metrics.md), and the small calls that count. Thread: any. Blocks: never for long. */
#ifndef RS_SCHEDULER_METRICS_H
#define RS_SCHEDULER_METRICS_H

#include <stdio.h>

#include "metrics.h"
#include "planner.h"

/* In the order of the reference. */
enum scheduler_metric {
    /* this process */
    SCHEDULER_LEADER,
    SCHEDULER_STATE,
    SCHEDULER_STATE_SECONDS,
    SCHEDULER_GENERATION,
    SCHEDULER_INCARNATION,
    SCHEDULER_AHEAD,
    SCHEDULER_FAILURES,
    SCHEDULER_ELECTIONS,
    SCHEDULER_LEADERSHIPS,
    SCHEDULER_STEP_DOWNS,
    SCHEDULER_LEADERSHIP_SECONDS,
    SCHEDULER_PREPARE_SECONDS,
    SCHEDULER_HEARTBEAT_SECONDS,
    SCHEDULER_LEASE_SECONDS,
    SCHEDULER_SESSIONS,
    SCHEDULER_STALL,
    SCHEDULER_PLANNED,
    SCHEDULER_GAPS,
    SCHEDULER_EDITS,
    SCHEDULER_RETRIES_RELEASED,
    SCHEDULER_REAPED,
    SCHEDULER_PUBLISHED,
    SCHEDULER_PUBLISH_FAILURES,
    SCHEDULER_OUTBOX_DELETED,
    SCHEDULER_OUTBOX_BURIED,
    SCHEDULER_OUTBOX_TRIMMED,
    SCHEDULER_PRODUCERS,
    SCHEDULER_IN_FLIGHT,
    SCHEDULER_KAFKA_REACHABLE,
    SCHEDULER_PRUNED,
    SCHEDULER_RELOADS,
    SCHEDULER_OBSERVATION_AGE,
    SCHEDULER_CLOCK_OFFSET,
    SCHEDULER_CLOCK_ROUND_TRIP,
    SCHEDULER_CLOCK_SUSPECT,
    SCHEDULER_CLOCK_STEPS,
    SCHEDULER_ZONE_RELOADS,
    SCHEDULER_ZONE_FAULTS,
    SCHEDULER_ZONE_MOVES,
    /* what the database says, the same from every replica: reports.scope_figures */
    SCHEDULER_OBSERVED_FIRST,
    SCHEDULER_LEADERLESS = SCHEDULER_OBSERVED_FIRST,
    SCHEDULER_BEAT_AGE,
    SCHEDULER_FENCE_INCARNATION,
    SCHEDULER_FENCE_GENERATION,
    SCHEDULER_DUE_LAG,
    SCHEDULER_RECENT_GAPS,
    SCHEDULER_OUTBOX_MESSAGES,
    SCHEDULER_OUTBOX_OLDEST,
    SCHEDULER_OUTBOX_DEAD,
    SCHEDULER_REFUSED_WRITES,
    SCHEDULER_JOBS,
    SCHEDULER_OLDEST_QUEUED,
    SCHEDULER_WORKERS,
    SCHEDULER_PROBLEMS,
    SCHEDULER_CIRCUITS_OPEN,
    SCHEDULER_ZONES_OUTDATED,
    SCHEDULER_CALENDAR_DAYS_LEFT,
    SCHEDULER_CATCH_UP_WAITING,
    SCHEDULER_EDITS_WAITING,
    SCHEDULER_EDIT_OLDEST,
    SCHEDULER_REQUESTS_WAITING,
    SCHEDULER_REQUEST_OLDEST,
    SCHEDULER_UNSERVED_SCOPES,
    SCHEDULER_HOLDS,
    SCHEDULER_HOLD_SECONDS,
    SCHEDULER_QUEUE_HOLD_SECONDS,
    SCHEDULER_GUARD_HOLDS,
    SCHEDULER_ENSEMBLES_REFUSED,
    SCHEDULER_MOVED,
    SCHEDULER_METRICS,
};
extern const struct metric_family SCHEDULER_FAMILIES[SCHEDULER_METRICS];

/* The family that a figure of the database belongs to; NULL: none that this program knows (a newer
 * schema has more). */
const struct metric_family *scheduler_figure_family(const char *figure);

/* Firings that were recorded in gaps [begin, end). */
void scope_metrics_gaps(const char *scope, const struct planned_gap *gaps, size_t begin,
                        size_t end);

/* The reference of all metrics of report-scheduler. */
void scheduler_metrics_print(FILE *to);

static inline struct metric *scheduler_metric(enum scheduler_metric which, const char *first,
                                              const char *second)
{
    return metric_get(&SCHEDULER_FAMILIES[which], first, second);
}

#endif
