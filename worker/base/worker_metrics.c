#include "worker_metrics.h"

#include <string.h>

#include "process_metrics.h"

static const double WAIT_BOUNDS[] = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,  1,
                                     2.5,   5,    15,    60,   300, 1800, 7200, 86400};
static const double RUN_BOUNDS[] = {0.001, 0.01, 0.05, 0.1, 0.5, 1,    2.5,  5,
                                    15,    30,   60,   300, 900, 1800, 3600, 14400};

/* table: exempt from the length limit */
const struct metric_family WORKER_FAMILIES[WORKER_METRICS] = {
    [WORKER_CLAIMS] =
        {.name = "report_worker_claims_total",
         .kind = METRIC_COUNTER,
         .help = "Jobs claimed, by path: message (Kafka), pull (the ready index; its share of all "
                 "is the pull share), adopted (after a claim whose answer was lost).",
         .labels = {"path"}},
    [WORKER_MESSAGES_READ] = {.name = "report_worker_messages_total",
                              .kind = METRIC_COUNTER,
                              .help = "Messages read from Kafka."},
    [WORKER_MESSAGES_LEFT] =
        {.name = "report_worker_messages_left_total",
         .kind = METRIC_COUNTER,
         .help = "Messages that led to no claim, by verdict: duplicate, stale, unclaimed (locked, "
                 "held, not due, another queue), unknown_job (the database does not know it: "
                 "evidence of a rewound database), poison (unreadable), shed (no free slot).",
         .labels = {"verdict"}},
    [WORKER_ATTEMPTS] = {.name = "report_worker_attempts_total",
                         .kind = METRIC_COUNTER,
                         .help =
                             "Attempts that ended, by outcome: succeeded, failed (with timeouts), "
                             "cancelled, handed_back, lost (the claim had moved on).",
                         .labels = {"outcome"}},
    [WORKER_OUTCOME_REPEATS] =
        {.name = "report_worker_outcome_repeats_total",
         .kind = METRIC_COUNTER,
         .help = "Outcomes that were found recorded already, after a lost answer."},
    [WORKER_HEARTBEATS] = {.name = "report_worker_heartbeats_total",
                           .kind = METRIC_COUNTER,
                           .help = "Heartbeats by result: ok, failed.",
                           .labels = {"result"}},
    [WORKER_HEARTBEAT_AGE] =
        {.name = "report_worker_heartbeat_age_seconds",
         .kind = METRIC_GAUGE,
         .help = "Since the last heartbeat that the database answered; absent before the first."},
    [WORKER_LEASE_SECONDS] =
        {.name = "report_worker_claim_lease_seconds",
         .kind = METRIC_GAUGE,
         .help =
             "How long a claim lives without a heartbeat, as agreed when the worker registered; "
             "absent before."},
    [WORKER_INCARNATIONS] = {.name = "report_worker_incarnations_total",
                             .kind = METRIC_COUNTER,
                             .help = "Times this process registered; more than one means that it "
                                     "had been given up meanwhile."},
    [WORKER_REGISTERED] = {.name = "report_worker_registered",
                           .kind = METRIC_GAUGE,
                           .help = "1 while the database knows this worker as alive, otherwise 0."},
    [WORKER_SLOTS] = {.name = "report_worker_slots",
                      .kind = METRIC_GAUGE,
                      .help = "Jobs that may run at once."},
    [WORKER_RUNNING] = {.name = "report_worker_running",
                        .kind = METRIC_GAUGE,
                        .help = "Jobs that run now."},
    [WORKER_CLAIMS_WAITING] = {.name = "report_worker_claims_waiting",
                               .kind = METRIC_GAUGE,
                               .help = "Claimed jobs that wait for a runner."},
    [WORKER_UNRECORDED] = {.name = "report_worker_outcomes_unrecorded",
                           .kind = METRIC_GAUGE,
                           .help = "Outcomes that wait to be recorded."},
    [WORKER_START_LATE_SECONDS] =
        {.name = "report_worker_start_late_seconds",
         .kind = METRIC_HISTOGRAM,
         .help = "First attempts: from the scheduled instant to the start of the run, by "
                 "the database clock and the local wait.",
         .bounds = WAIT_BOUNDS,
         .bound_count = sizeof WAIT_BOUNDS / sizeof WAIT_BOUNDS[0]},
    [WORKER_READY_WAIT_SECONDS] = {.name = "report_worker_ready_wait_seconds",
                                   .kind = METRIC_HISTOGRAM,
                                   .help = "From the instant a job could be claimed (after "
                                           "planning, a retry's wait) to the start of the run.",
                                   .bounds = WAIT_BOUNDS,
                                   .bound_count = sizeof WAIT_BOUNDS / sizeof WAIT_BOUNDS[0]},
    [WORKER_RUN_SECONDS] = {.name = "report_worker_run_seconds",
                            .kind = METRIC_HISTOGRAM,
                            .help = "Duration of a run, by kind of report.",
                            .labels = {"kind"},
                            .bounds = RUN_BOUNDS,
                            .bound_count = sizeof RUN_BOUNDS / sizeof RUN_BOUNDS[0]},
    [WORKER_OUTCOME_SECONDS] = {.name = "report_worker_outcome_seconds",
                                .kind = METRIC_HISTOGRAM,
                                .help = "From the end of a run to its recorded outcome.",
                                .bounds = METRIC_CALL_BOUNDS,
                                .bound_count = 14},
    [WORKER_ARTIFACTS] = {.name = "report_worker_artifacts_total",
                          .kind = METRIC_COUNTER,
                          .help = "Artifacts that became visible."},
    [WORKER_ARTIFACT_BYTES] = {.name = "report_worker_artifact_bytes_total",
                               .kind = METRIC_COUNTER,
                               .help = "Bytes of them."},
    [WORKER_ARTIFACT_FAILURES] = {.name = "report_worker_artifact_failures_total",
                                  .kind = METRIC_COUNTER,
                                  .help = "Times an artifact store refused to make, write or "
                                          "publish a file: disk full, permissions.",
                                  .labels = {"store"}},
    [WORKER_SWEPT] = {.name = "report_worker_swept_files_total",
                      .kind = METRIC_COUNTER,
                      .help = "Files of crashed attempts that were removed.",
                      .labels = {"store"}},
    [WORKER_RELOADS] =
        {.name = "report_worker_settings_reloads_total",
         .kind = METRIC_COUNTER,
         .help = "Reloads of the settings file that were asked for, by result: applied or refused.",
         .labels = {"result"}},
    [WORKER_STALL] =
        {.name = "report_worker_loop_stall_seconds",
         .kind = METRIC_GAUGE,
         .help = "Longest time within the last one to two minutes that a loop (claims, heartbeat, "
                 "outcomes) did not turn although it should have, the present one included.",
         .labels = {"loop"}},
};

void run_metrics_begin(const struct job *job, instant now)
{
    double here = metric_seconds_since(job->received_at, now);
    if (job->attempt == 1) { /* a repeat is late by the failure before it and by its wait */
        metric_observe(worker_metric(WORKER_START_LATE_SECONDS, NULL, NULL),
                       (double)job->late_us / 1e6 + here);
    }
    metric_observe(worker_metric(WORKER_READY_WAIT_SECONDS, NULL, NULL),
                   (double)job->waited_us / 1e6 + here);
}

void run_metrics_end(const struct job *job, instant began, instant now)
{
    /* The kinds that SQL allows; whatever else a newer schema says is one label. */
    static const char *const kinds[] = {"sql", "program", "http", "noop"};
    const char *kind = "other";
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        kind = strcmp(job->kind, kinds[i]) == 0 ? kinds[i] : kind;
    }
    metric_observe(worker_metric(WORKER_RUN_SECONDS, kind, NULL), metric_seconds_since(began, now));
}

void worker_metrics_print(FILE *to)
{
    metrics_print_reference(WORKER_FAMILIES, WORKER_METRICS, to);
}
