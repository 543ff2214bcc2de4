#include "scope_metrics.h"

#include "loop_name.h"
#include "planner.h"
#include "scheduler_metrics.h"

void scope_metrics_begin(const char *scope)
{
    static const enum scheduler_metric counters[] = {
        SCHEDULER_ELECTIONS,        SCHEDULER_LEADERSHIPS,    SCHEDULER_LEADERSHIP_SECONDS,
        SCHEDULER_PREPARE_SECONDS,  SCHEDULER_PLANNED,        SCHEDULER_EDITS,
        SCHEDULER_RETRIES_RELEASED, SCHEDULER_REAPED,         SCHEDULER_PUBLISHED,
        SCHEDULER_PUBLISH_FAILURES, SCHEDULER_OUTBOX_DELETED, SCHEDULER_OUTBOX_BURIED,
        SCHEDULER_OUTBOX_TRIMMED,   SCHEDULER_PRODUCERS,      SCHEDULER_ZONE_RELOADS,
        SCHEDULER_ZONE_MOVES};
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        (void)scheduler_metric(counters[i], scope, NULL);
    }
    for (size_t i = LIFECYCLE_REASON_STOPPED; i < LIFECYCLE_REASONS; i++) {
        (void)scheduler_metric(SCHEDULER_STEP_DOWNS, scope,
                               lifecycle_reason_name((enum lifecycle_reason)i));
    }
    for (size_t i = GAP_MISFIRE_SKIP; i <= GAP_PASSED_OVER; i++) {
        (void)scheduler_metric(SCHEDULER_GAPS, scope, gap_reason_name((enum gap_reason)i));
    }
    (void)scheduler_metric(SCHEDULER_SESSIONS, NULL, NULL);
    (void)scheduler_metric(SCHEDULER_HEARTBEAT_SECONDS, NULL, NULL);
}

void scope_metrics_step(const char *scope, const struct lifecycle_row *row, double stayed_s)
{
    if (row->next == row->state) {
        return;
    }
    if (row->next == LIFECYCLE_ESTABLISHING) {
        metric_add(scheduler_metric(SCHEDULER_ELECTIONS, scope, NULL), 1);
    }
    if (row->next == LIFECYCLE_ACTIVE) {
        metric_add(scheduler_metric(SCHEDULER_LEADERSHIPS, scope, NULL), 1);
        metric_observe(scheduler_metric(SCHEDULER_PREPARE_SECONDS, scope, NULL), stayed_s);
    }
    if (row->state == LIFECYCLE_ACTIVE) {
        metric_observe(scheduler_metric(SCHEDULER_LEADERSHIP_SECONDS, scope, NULL), stayed_s);
        metric_clear(
            scheduler_metric(SCHEDULER_ZONE_FAULTS, scope, NULL)); /* the leader's to tell */
    }
    if (row->state >= LIFECYCLE_ESTABLISHING && row->state <= LIFECYCLE_DRAINING &&
        row->reason != LIFECYCLE_REASON_NONE) {
        metric_add(
            scheduler_metric(SCHEDULER_STEP_DOWNS, scope, lifecycle_reason_name(row->reason)), 1);
    }
}

static void set_or_clear(struct metric *m, bool known, double value)
{
    if (known) {
        metric_set(m, value);
    } else {
        metric_clear(m);
    }
}

void scope_metrics_set(const struct scope_snapshot *view, instant now)
{
    const char *scope = view->name;
    for (size_t i = 0; i < LIFECYCLE_STATES; i++) {
        enum lifecycle_state state = (enum lifecycle_state)i;
        metric_set(scheduler_metric(SCHEDULER_STATE, scope, lifecycle_state_name(state)),
                   state == view->state);
    }
    metric_set(scheduler_metric(SCHEDULER_LEADER, scope, NULL), view->state == LIFECYCLE_ACTIVE);
    metric_set(scheduler_metric(SCHEDULER_STATE_SECONDS, scope, NULL),
               view->since.ns == 0 ? 0 : metric_seconds_since(view->since, now));
    set_or_clear(scheduler_metric(SCHEDULER_GENERATION, scope, NULL), view->generation != 0,
                 (double)view->generation);
    set_or_clear(scheduler_metric(SCHEDULER_INCARNATION, scope, NULL), view->incarnation != 0,
                 (double)view->incarnation);
    set_or_clear(scheduler_metric(SCHEDULER_AHEAD, scope, NULL), view->state == LIFECYCLE_FOLLOWING,
                 view->ahead);
    metric_set(scheduler_metric(SCHEDULER_FAILURES, scope, NULL), view->failures);
    metric_set(scheduler_metric(SCHEDULER_STALL, LOOP_SCOPE, scope), view->stall_s);
    set_or_clear(scheduler_metric(SCHEDULER_STALL, LOOP_RELAY, scope), view->has_relay,
                 view->relay_stall_s);
}
