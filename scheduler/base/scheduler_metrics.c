#include "scheduler_metrics.h"

#include <string.h>

#include "process_metrics.h"

#define PREFIX "report_scheduler_"

/* One second to thirty days. */
static const double LEADERSHIP_BOUNDS[] = {1,    10,    60,    300,    1800,
                                           3600, 21600, 86400, 604800, 2592000};

/* table: exempt from the length limit */
const struct metric_family SCHEDULER_FAMILIES[SCHEDULER_METRICS] = {
    [SCHEDULER_LEADER] =
        {.name = "report_scheduler_leader",
         .kind = METRIC_GAUGE,
         .help = "1 while this process leads the scope and plans (ACTIVE), otherwise 0.",
         .labels = {"scope"}},
    [SCHEDULER_STATE] =
        {.name = "report_scheduler_state",
         .kind = METRIC_GAUGE,
         .help = "1 for the lifecycle state the scope is in on this replica, 0 for the others.",
         .labels = {"scope", "state"}},
    [SCHEDULER_STATE_SECONDS] =
        {.name = "report_scheduler_state_seconds",
         .kind = METRIC_GAUGE,
         .help = "Time in the present lifecycle state; of a leader: how long it has led.",
         .labels = {"scope"}},
    [SCHEDULER_GENERATION] =
        {.name = "report_scheduler_generation",
         .kind = METRIC_GAUGE,
         .help =
             "Generation (czxid of the own candidate node) of this replica; only while it has one.",
         .labels = {"scope"}},
    [SCHEDULER_INCARNATION] =
        {.name = "report_scheduler_incarnation",
         .kind = METRIC_GAUGE,
         .help = "Incarnation of the ensemble as this replica has met it; only once it has.",
         .labels = {"scope"}},
    [SCHEDULER_AHEAD] = {.name = "report_scheduler_candidates_ahead",
                         .kind = METRIC_GAUGE,
                         .help =
                             "Candidates before this one in the line; only while it is FOLLOWING.",
                         .labels = {"scope"}},
    [SCHEDULER_FAILURES] =
        {.name = "report_scheduler_failures_in_a_row",
         .kind = METRIC_GAUGE,
         .help = "Fruitless tries in a row to get or keep a place; 0 when all is well.",
         .labels = {"scope"}},
    [SCHEDULER_ELECTIONS] =
        {.name = "report_scheduler_elections_total",
         .kind = METRIC_COUNTER,
         .help = "Times this replica was first in line and began to establish itself.",
         .labels = {"scope"}},
    [SCHEDULER_LEADERSHIPS] = {.name = "report_scheduler_leaderships_total",
                               .kind = METRIC_COUNTER,
                               .help = "Times this replica became the leader (ACTIVE).",
                               .labels = {"scope"}},
    [SCHEDULER_STEP_DOWNS] = {.name = "report_scheduler_step_downs_total",
                              .kind = METRIC_COUNTER,
                              .help =
                                  "Times this replica left leadership or the way to it, by reason.",
                              .labels = {"scope", "reason"}},
    [SCHEDULER_LEADERSHIP_SECONDS] = {.name = "report_scheduler_leadership_seconds",
                                      .kind = METRIC_HISTOGRAM,
                                      .help = "How long leaderships that ended had lasted.",
                                      .labels = {"scope"},
                                      .bounds = LEADERSHIP_BOUNDS,
                                      .bound_count =
                                          sizeof LEADERSHIP_BOUNDS / sizeof LEADERSHIP_BOUNDS[0]},
    [SCHEDULER_PREPARE_SECONDS] = {.name = "report_scheduler_prepare_seconds",
                                   .kind = METRIC_HISTOGRAM,
                                   .help = "Time from established to planning.",
                                   .labels = {"scope"},
                                   .bounds = METRIC_CALL_BOUNDS,
                                   .bound_count = 14},
    [SCHEDULER_HEARTBEAT_SECONDS] = {.name = "report_scheduler_heartbeat_seconds",
                                     .kind = METRIC_HISTOGRAM,
                                     .help = "Delay of the quorum write that renews the lease, "
                                             "from before it is sent to its answer.",
                                     .bounds = METRIC_CALL_BOUNDS,
                                     .bound_count = 14},
    [SCHEDULER_LEASE_SECONDS] =
        {.name = "report_scheduler_lease_seconds",
         .kind = METRIC_GAUGE,
         .help = "For how much longer this process may decide; 0: suspended, lost or run out."},
    [SCHEDULER_SESSIONS] = {.name = "report_scheduler_sessions_total",
                            .kind = METRIC_COUNTER,
                            .help = "ZooKeeper sessions that were opened and set up."},
    [SCHEDULER_STALL] =
        {.name = "report_scheduler_loop_stall_seconds",
         .kind = METRIC_GAUGE,
         .help = "Longest time within the last one to two minutes that a loop (coordination, "
                 "scope, relay) did not turn although it should have, the present one included.",
         .labels = {"loop", "scope"}},
    [SCHEDULER_PLANNED] = {.name = "report_scheduler_planned_total",
                           .kind = METRIC_COUNTER,
                           .help = "Occurrences made durable by this process.",
                           .labels = {"scope"}},
    [SCHEDULER_GAPS] =
        {.name = "report_scheduler_gap_firings_total",
         .kind = METRIC_COUNTER,
         .help =
             "Due firings that this process decided to record as a gap instead of running them, "
             "by reason. Those that the database decides (overlap_forbid, circuit_open, key_taken) "
             "are only in "
             "report_scheduler_recent_gap_firings.",
         .labels = {"scope", "reason"}},
    [SCHEDULER_EDITS] = {.name = "report_scheduler_edits_taken_total",
                         .kind = METRIC_COUNTER,
                         .help = "Edits of schedules taken in.",
                         .labels = {"scope"}},
    [SCHEDULER_RETRIES_RELEASED] = {.name = "report_scheduler_jobs_released_total",
                                    .kind = METRIC_COUNTER,
                                    .help = "Jobs whose wait was over and that were queued.",
                                    .labels = {"scope"}},
    [SCHEDULER_REAPED] = {.name = "report_scheduler_claims_reaped_total",
                          .kind = METRIC_COUNTER,
                          .help = "Lapsed claims of workers that were closed as lost.",
                          .labels = {"scope"}},
    [SCHEDULER_PUBLISHED] = {.name = "report_scheduler_relay_published_total",
                             .kind = METRIC_COUNTER,
                             .help = "Messages that Kafka acknowledged.",
                             .labels = {"scope"}},
    [SCHEDULER_PUBLISH_FAILURES] =
        {.name = "report_scheduler_relay_failed_total",
         .kind = METRIC_COUNTER,
         .help =
             "Messages that Kafka did not acknowledge or refused; they are sent again or buried.",
         .labels = {"scope"}},
    [SCHEDULER_OUTBOX_DELETED] = {.name = "report_scheduler_relay_deleted_total",
                                  .kind = METRIC_COUNTER,
                                  .help = "Outbox rows deleted after their acknowledgement.",
                                  .labels = {"scope"}},
    [SCHEDULER_OUTBOX_BURIED] =
        {.name = "report_scheduler_relay_buried_total",
         .kind = METRIC_COUNTER,
         .help = "Messages that cannot be published, moved to outbox_dead; their jobs run by pull.",
         .labels = {"scope"}},
    [SCHEDULER_OUTBOX_TRIMMED] =
        {.name = "report_scheduler_relay_trimmed_total",
         .kind = METRIC_COUNTER,
         .help = "Oldest messages dropped because the outbox was full; their jobs run by pull.",
         .labels = {"scope"}},
    [SCHEDULER_PRODUCERS] = {.name = "report_scheduler_relay_producers_total",
                             .kind = METRIC_COUNTER,
                             .help = "Kafka producers made; more than one in a leadership means "
                                     "fatal errors or long silence.",
                             .labels = {"scope"}},
    [SCHEDULER_IN_FLIGHT] =
        {.name = "report_scheduler_relay_in_flight",
         .kind = METRIC_GAUGE,
         .help = "Messages handed to Kafka and not acknowledged; only on the leader.",
         .labels = {"scope"}},
    [SCHEDULER_KAFKA_REACHABLE] = {.name = "report_scheduler_relay_kafka_reachable",
                                   .kind = METRIC_GAUGE,
                                   .help =
                                       "1: the relay has Kafka, 0: it has not; only on the leader.",
                                   .labels = {"scope"}},
    [SCHEDULER_PRUNED] = {.name = "report_scheduler_pruned_rows_total",
                          .kind = METRIC_COUNTER,
                          .help = "Rows that retention has deleted.",
                          .labels = {"table"}},
    [SCHEDULER_RELOADS] =
        {.name = "report_scheduler_settings_reloads_total",
         .kind = METRIC_COUNTER,
         .help = "Reloads of the settings file that were asked for, by result: applied or refused.",
         .labels = {"result"}},
    [SCHEDULER_OBSERVATION_AGE] =
        {.name = "report_scheduler_observation_age_seconds",
         .kind = METRIC_GAUGE,
         .help =
             "Age of what this replica last read of the facts below, or, before the first reading, "
             "of the observer. The facts vanish when they are older than three readings."},
    [SCHEDULER_CLOCK_OFFSET] =
        {.name = "report_scheduler_clock_offset_seconds",
         .kind = METRIC_GAUGE,
         .help = "This machine's wall clock minus the database's, to half a round trip. No firing "
                 "depends on the former."},
    [SCHEDULER_CLOCK_ROUND_TRIP] = {.name = "report_scheduler_clock_round_trip_seconds",
                                    .kind = METRIC_GAUGE,
                                    .help = "The round trip of that sample."},
    [SCHEDULER_CLOCK_SUSPECT] =
        {.name = "report_scheduler_clock_suspect",
         .kind = METRIC_GAUGE,
         .help = "1 while this replica leads nothing because the database's clock and this "
                 "machine's went unequally far, and it is not judged which was stepped."},
    [SCHEDULER_CLOCK_STEPS] =
        {.name = "report_scheduler_clock_steps_total",
         .kind = METRIC_COUNTER,
         .help = "Steps of the database's clock that this replica testified, by verdict: raised (a "
                 "hold), known (it stood already), own (refuted: this machine was stopped).",
         .labels = {"verdict"}},
    [SCHEDULER_ZONE_RELOADS] = {.name = "report_scheduler_tzdata_reloads_total",
                                .kind = METRIC_COUNTER,
                                .help = "Times changed time zone files were taken in.",
                                .labels = {"scope"}},
    [SCHEDULER_ZONE_FAULTS] =
        {.name = "report_scheduler_time_zone_faults",
         .kind = METRIC_GAUGE,
         .help = "Time zones whose present file is no good, so that an older one goes on counting; "
                 "only on the leader.",
         .labels = {"scope"}},
    [SCHEDULER_ZONE_MOVES] =
        {.name = "report_scheduler_firings_moved_total",
         .kind = METRIC_COUNTER,
         .help = "Next firings that other time zone data have put at another instant.",
         .labels = {"scope"}},
    [SCHEDULER_LEADERLESS] =
        {.name = "report_scheduler_leaderless_seconds",
         .kind = METRIC_GAUGE,
         .help = "How long the scope has had no active leader: none, one that prepares, or one "
                 "without a sign of life for 20 s. 0: it has one.",
         .labels = {"scope"}},
    [SCHEDULER_BEAT_AGE] =
        {.name = "report_scheduler_beat_age_seconds",
         .kind = METRIC_GAUGE,
         .help =
             "Age of the last sign of life of a leader in the database; absent before the first.",
         .labels = {"scope"}},
    [SCHEDULER_FENCE_INCARNATION] = {.name = "report_scheduler_fence_incarnation",
                                     .kind = METRIC_GAUGE,
                                     .help = "Incarnation whose writes are accepted.",
                                     .labels = {"scope"}},
    [SCHEDULER_FENCE_GENERATION] = {.name = "report_scheduler_fence_generation",
                                    .kind = METRIC_GAUGE,
                                    .help = "Generation whose writes are accepted.",
                                    .labels = {"scope"}},
    [SCHEDULER_DUE_LAG] =
        {.name = "report_scheduler_due_lag_seconds",
         .kind = METRIC_GAUGE,
         .help = "How long the oldest due firing has waited to be planned; 0: nothing is late.",
         .labels = {"scope"}},
    [SCHEDULER_RECENT_GAPS] =
        {.name = "report_scheduler_recent_gap_firings",
         .kind = METRIC_GAUGE,
         .help = "Firings of the gaps that ended within the last hour, by reason, of the newest "
                 "1000 gaps; absent without one.",
         .labels = {"scope", "reason"}},
    [SCHEDULER_OUTBOX_MESSAGES] = {.name = "report_scheduler_outbox_messages",
                                   .kind = METRIC_GAUGE,
                                   .help =
                                       "Messages that wait for Kafka; counting stops at 10 000.",
                                   .labels = {"scope"}},
    [SCHEDULER_OUTBOX_OLDEST] =
        {.name = "report_scheduler_outbox_oldest_seconds",
         .kind = METRIC_GAUGE,
         .help = "Age of the oldest message that waits for Kafka; 0: none does.",
         .labels = {"scope"}},
    [SCHEDULER_OUTBOX_DEAD] = {.name = "report_scheduler_outbox_dead",
                               .kind = METRIC_GAUGE,
                               .help = "Messages in outbox_dead; counting stops at 1000.",
                               .labels = {"scope"}},
    [SCHEDULER_REFUSED_WRITES] = {.name = "report_scheduler_refused_writes",
                                  .kind = METRIC_GAUGE,
                                  .help = "Writes of former leaders that the fence refused within "
                                          "the last 15 minutes, of the last 1000.",
                                  .labels = {"scope"}},
    [SCHEDULER_JOBS] =
        {.name = "report_scheduler_jobs",
         .kind = METRIC_GAUGE,
         .help = "Unfinished jobs by state (waiting, queued, running, retry_wait); counting stops "
                 "at 5000, for queued and running over all scopes together.",
         .labels = {"scope", "state"}},
    [SCHEDULER_OLDEST_QUEUED] = {.name = "report_scheduler_oldest_queued_seconds",
                                 .kind = METRIC_GAUGE,
                                 .help = "How long the oldest claimable job of a queue has waited; "
                                         "told by the scope whose job it is.",
                                 .labels = {"scope", "queue"}},
    [SCHEDULER_WORKERS] = {.name = "report_scheduler_workers",
                           .kind = METRIC_GAUGE,
                           .help = "Living workers that serve a queue, whatever the scope.",
                           .labels = {"scope", "queue"}},
    [SCHEDULER_PROBLEMS] =
        {.name = "report_scheduler_problem_schedules",
         .kind = METRIC_GAUGE,
         .help = "Schedules that are not planned because of a problem; counting stops at 1000.",
         .labels = {"scope"}},
    [SCHEDULER_CIRCUITS_OPEN] =
        {.name = "report_scheduler_circuits_open",
         .kind = METRIC_GAUGE,
         .help = "Schedules whose circuit breaker is open: their firings are not run; counting "
                 "stops at 1000.",
         .labels = {"scope"}},
    [SCHEDULER_ZONES_OUTDATED] =
        {.name = "report_scheduler_time_zones_outdated",
         .kind = METRIC_GAUGE,
         .help = "Time zones of which the leader has older data than one that led before.",
         .labels = {"scope"}},
    [SCHEDULER_CALENDAR_DAYS_LEFT] =
        {.name = "report_scheduler_calendar_days_left",
         .kind = METRIC_GAUGE,
         .help = "Days for which a calendar that schedules of the scope use is still known, below "
                 "0 when that is past; none beyond 60, and of the 20 that end first.",
         .labels = {"scope", "calendar"}},
    [SCHEDULER_CATCH_UP_WAITING] =
        {.name = "report_scheduler_catch_up_waiting",
         .kind = METRIC_GAUGE,
         .help = "Jobs of missed firings and backfills that wait to be caught up with; counting "
                 "stops at 5000.",
         .labels = {"scope"}},
    [SCHEDULER_EDITS_WAITING] =
        {.name = "report_scheduler_edits_waiting",
         .kind = METRIC_GAUGE,
         .help = "Edits of schedules that no leader has taken in; counting stops at 1000.",
         .labels = {"scope"}},
    [SCHEDULER_EDIT_OLDEST] = {.name = "report_scheduler_edit_oldest_seconds",
                               .kind = METRIC_GAUGE,
                               .help = "Age of the oldest of them; 0: none waits.",
                               .labels = {"scope"}},
    [SCHEDULER_REQUESTS_WAITING] =
        {.name = "report_scheduler_requests_waiting",
         .kind = METRIC_GAUGE,
         .help = "Requests of operators without an answer; counting stops at 1000.",
         .labels = {"scope"}},
    [SCHEDULER_REQUEST_OLDEST] = {.name = "report_scheduler_request_oldest_seconds",
                                  .kind = METRIC_GAUGE,
                                  .help = "Age of the oldest of them; 0: none waits.",
                                  .labels = {"scope"}},
    [SCHEDULER_UNSERVED_SCOPES] =
        {.name = "report_scheduler_unserved_scopes",
         .kind = METRIC_GAUGE,
         .help = "Scopes of the installation, whichever replica serves them, with schedules that "
                 "nobody has led for minutes; counting stops at 1000.",
         .labels = {"scope"}},
    [SCHEDULER_HOLDS] = {.name = "report_scheduler_holds",
                         .kind = METRIC_GAUGE,
                         .help = "Holds in force on the scope or the installation.",
                         .labels = {"scope"}},
    [SCHEDULER_HOLD_SECONDS] = {.name = "report_scheduler_hold_seconds",
                                .kind = METRIC_GAUGE,
                                .help = "Age of the oldest of them; 0: none stands.",
                                .labels = {"scope"}},
    [SCHEDULER_QUEUE_HOLD_SECONDS] = {.name = "report_scheduler_queue_hold_seconds",
                                      .kind = METRIC_GAUGE,
                                      .help =
                                          "Age of the hold on a queue; absent while none stands.",
                                      .labels = {"scope", "queue"}},
    [SCHEDULER_GUARD_HOLDS] =
        {.name = "report_scheduler_guard_holds",
         .kind = METRIC_GAUGE,
         .help = "Holds that schedulers raised themselves, by cause: zxid_regressed, "
                 "database_rewound, clock_hold.",
         .labels = {"scope", "cause"}},
    [SCHEDULER_ENSEMBLES_REFUSED] =
        {.name = "report_scheduler_ensembles_refused",
         .kind = METRIC_GAUGE,
         .help = "ZooKeeper ensembles that replicas are connected to now and that the database "
                 "does not take: HELD, ensemble_unknown or root_taken.",
         .labels = {"scope"}},
    [SCHEDULER_MOVED] = {.name = "report_scheduler_moved",
                         .kind = METRIC_GAUGE,
                         .help = "1 while no leader has looked at this PostgreSQL server since it "
                                 "started: nothing of the scope is claimed or sent.",
                         .labels = {"scope"}},
};

const struct metric_family *scheduler_figure_family(const char *figure)
{
    for (size_t i = SCHEDULER_OBSERVED_FIRST; i < SCHEDULER_METRICS; i++) {
        if (strcmp(SCHEDULER_FAMILIES[i].name + sizeof PREFIX - 1, figure) == 0) {
            return &SCHEDULER_FAMILIES[i];
        }
    }
    return NULL;
}

void scope_metrics_gaps(const char *scope, const struct planned_gap *gaps, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++) {
        metric_add(scheduler_metric(SCHEDULER_GAPS, scope, gap_reason_name(gaps[i].reason)),
                   (double)gaps[i].firings);
    }
}

void scheduler_metrics_print(FILE *to)
{
    metrics_print_reference(SCHEDULER_FAMILIES, SCHEDULER_OBSERVED_FIRST, to);
    (void)fputs("\nThese are facts of the database, read by every replica's observer each "
                "`observe_ms` and the same from each, whoever leads:\n\n",
                to);
    metrics_print_reference(&SCHEDULER_FAMILIES[SCHEDULER_OBSERVED_FIRST],
                            SCHEDULER_METRICS - SCHEDULER_OBSERVED_FIRST, to);
}
