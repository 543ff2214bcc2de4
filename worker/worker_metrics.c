#include "worker_metrics.h"

#include <string.h>

#include "loop_name.h"
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

void outcome_metrics_add(const struct claim *claim, instant now)
{
    metric_observe(worker_metric(WORKER_OUTCOME_SECONDS, NULL, NULL),
                   metric_seconds_since(claim->reported_at, now));
    if (claim->outcome.has_artifact) {
        metric_add(worker_metric(WORKER_ARTIFACTS, NULL, NULL), 1);
        metric_add(worker_metric(WORKER_ARTIFACT_BYTES, NULL, NULL),
                   (double)claim->outcome.artifact.size_bytes);
    }
}

void worker_metrics_print(FILE *to)
{
    metrics_print_reference(WORKER_FAMILIES, WORKER_METRICS, to);
}
