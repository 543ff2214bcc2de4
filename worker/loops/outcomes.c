#include "outcomes.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "loop_name.h"
#include "worker.h"
#include "worker_metrics.h"
#include "thread_join.h"

#define BATCH     200
#define LINGER_MS 10  /* holds up no slot: a job that waits here has left its own */
#define SLICE_MS  200 /* how soon a stop is seen */
#define RETRY_MS  50
/* A row is often held for a moment: by the own heartbeat, by who cancels. After so many rests (a
 * second, about) it is told. */
#define LOCKED_TELL 10

struct writer {
    struct worker *w;
    struct connection connection;
    struct trouble trouble;
};

static void artifact_drop(struct worker *w, const struct outcome *o)
{
    const struct worker_settings *settings = settings_take(w->now, NULL);
    const struct artifact_store *store =
        o->has_artifact ? artifact_store_find(settings, o->artifact.store) : NULL;
    if (store != NULL) {
        artifact_remove(store, o->artifact.path);
    }
    settings_give(w->now, settings);
}

static enum counter counter_of(enum outcome_kind kind)
{
    switch (kind) {
    case OUTCOME_SUCCEEDED:
        return COUNT_SUCCEEDED;
    case OUTCOME_FAILED:
    case OUTCOME_TIMEOUT:
        return COUNT_FAILED;
    case OUTCOME_CANCELLED:
        return COUNT_CANCELLED;
    case OUTCOME_HANDED_BACK:
        return COUNT_HANDED_BACK;
    }
    return COUNT_FAILED;
}

/* Only this one waits, and is kept: the file is made, and the token guards the row. */
static void outcome_rest(struct worker *w, struct claim *claim)
{
    if (++claim->locked == LOCKED_TELL) {
        log_event(LOG_LEVEL_WARN,
                  "outcome waits to be recorded, another session has its job row locked",
                  "job=%s attempt=%lld", claim->job->id, (long long)claim->job->attempt);
    }
    claims_put_back(w->claims, claim, true);
}

static void outcome_measure(const struct claim *claim, instant now)
{
    metric_observe(worker_metric(WORKER_OUTCOME_SECONDS, NULL, NULL),
                   metric_seconds_since(claim->reported_at, now));
    if (claim->outcome.has_artifact) {
        metric_add(worker_metric(WORKER_ARTIFACTS, NULL, NULL), 1);
        metric_add(worker_metric(WORKER_ARTIFACT_BYTES, NULL, NULL),
                   (double)claim->outcome.artifact.size_bytes);
    }
}

static void verdict_apply(struct worker *w, struct claim *claim, enum outcome_verdict verdict)
{
    const struct outcome *o = &claim->outcome;
    switch (verdict) {
    case VERDICT_DONE:
        outcome_measure(claim, clock_now());
        counter_add(&w->counters, counter_of(o->kind), 1);
        break;
    case VERDICT_ALREADY:
        outcome_measure(claim, clock_now());
        counter_add(&w->counters, counter_of(o->kind), 1);
        counter_add(&w->counters, COUNT_OUTCOME_REPEATS, 1);
        break;
    case VERDICT_OTHERWISE:
        counter_add(&w->counters, COUNT_CANCELLED, 1);
        artifact_drop(w, o);
        break;
    case VERDICT_LOST:
        counter_add(&w->counters, COUNT_LOST, 1);
        log_event(LOG_LEVEL_WARN, "outcome refused, the claim had moved on; its file is dropped",
                  "job=%s attempt=%lld outcome=%s", claim->job->id, (long long)claim->job->attempt,
                  outcome_name(o->kind));
        artifact_drop(w, o);
        break;
    case VERDICT_LOCKED:
        outcome_rest(w, claim);
        return;
    }
    claims_close(w->claims, claim);
}

/* The database takes this one outcome in no form we can give it; the claim lapses then. */
static void give_up(struct worker *w, struct claim *claim, const char *text)
{
    log_event(LOG_LEVEL_ERROR, "outcome cannot be recorded, the claim is left to lapse",
              "job=%s attempt=%lld error=%s", claim->job->id, (long long)claim->job->attempt,
              log_quote(text).text);
    artifact_drop(w, &claim->outcome);
    claims_close(w->claims, claim);
}

static enum status outcomes_send(struct writer *x, struct claim *const *claims, size_t count,
                                 enum outcome_verdict *ret_verdicts, struct error *err)
{
    struct outcome_report reports[BATCH];
    for (size_t i = 0; i < count; i++) {
        reports[i] =
            (struct outcome_report){claims[i]->job->id, claims[i]->job->token, &claims[i]->outcome};
    }
    return store_record_outcomes(x->connection.store, reports, count,
                                 instant_add_ms(clock_now(), STATEMENT_MS), ret_verdicts, err);
}

static enum status record(struct writer *x, struct claim **claims, size_t count);

/* One bad row never stops a batch (I12): halve until the culprit stands alone, and report that one
 * as failed with the reason. */
static enum status record_refused(struct writer *x, struct claim **claims, size_t count,
                                  const struct error *why)
{
    if (count > 1) {
        enum status s = record(x, claims, count / 2);
        enum status t = record(x, claims + count / 2, count - count / 2);
        return s != STATUS_OK ? s : t;
    }
    struct claim *claim = claims[0];
    char text[ERROR_TEXT_MAX + 64];
    (void)snprintf(text, sizeof text, "the outcome was refused by the database: %s", why->text);
    artifact_drop(x->w, &claim->outcome);
    outcome_fail(&claim->outcome, OUTCOME_FAILED, true, text);
    claim->outcome.has_exit_code = false;
    enum outcome_verdict verdict;
    struct error err;
    enum status s = outcomes_send(x, claims, 1, &verdict, &err);
    if (s == STATUS_OK) {
        verdict_apply(x->w, claim, verdict);
    } else if (s == STATUS_INVALID && store_blames_a_row(&err)) {
        give_up(x->w, claim, err.text);
        s = STATUS_OK;
    } else {
        claims_put_back(x->w->claims, claim, false);
    }
    return s;
}

static enum status record(struct writer *x, struct claim **claims, size_t count)
{
    enum outcome_verdict verdicts[BATCH];
    struct error err = {0};
    enum status s = outcomes_send(x, claims, count, verdicts, &err);
    if (s == STATUS_OK) {
        for (size_t i = 0; i < count; i++) {
            verdict_apply(x->w, claims[i], verdicts[i]);
        }
        return s;
    }
    /* Otherwise the fault is the server's, however long it lasts: the report is made, so its file
     * and its claim are kept and it is tried again. */
    if (s == STATUS_INVALID && !store_is_broken(x->connection.store) && store_blames_a_row(&err)) {
        return record_refused(x, claims, count, &err);
    }
    if (trouble_is_told(&x->trouble, err.text)) {
        log_event(LOG_LEVEL_WARN, "outcomes not recorded, trying again",
                  "status=%s count=%zu error=%s", status_name(s), count, log_quote(err.text).text);
    }
    for (size_t i = 0; i < count; i++) {
        claims_put_back(x->w->claims, claims[i], false);
    }
    return s;
}

/* Record what was collected; all of it is put back when there is no connection. */
static enum status batch_record(struct writer *x, struct claim **claims, size_t count)
{
    enum status s = connection_ensure(&x->connection, x->w);
    if (s == STATUS_OK && count > 0) {
        return record(x, claims, count);
    }
    for (size_t i = 0; i < count; i++) {
        claims_put_back(x->w->claims, claims[i], false);
    }
    return s;
}

void *outcomes_main(void *worker)
{
    struct writer x = {.w = worker, .connection = {.what = "report-worker outcomes"}};
    struct claim *claims[BATCH];
    thread_name(LOOP_OUTCOMES);
    for (;;) {
        atomic_store(&x.w->outcomes_turned_ns, clock_now().ns);
        stall_turn(&x.w->outcomes_stall, clock_now());
        bool finishing = atomic_load(&x.w->finishing);
        size_t n = claims_collect(x.w->claims, claims, BATCH, LINGER_MS,
                                  instant_add_ms(clock_now(), finishing ? 0 : SLICE_MS));
        if (n == 0 && finishing) {
            break;
        }
        /* Without outcomes too: the connection is kept warm. */
        if (batch_record(&x, claims, n) == STATUS_OK) {
            continue;
        }
        if (finishing) {
            break;
        }
        (void)poll(NULL, 0, n > 0 ? RETRY_MS : 0);
    }
    size_t unrecorded = claims_count(x.w->claims).unrecorded;
    if (unrecorded > 0) {
        log_event(LOG_LEVEL_ERROR, "stopping with unrecorded outcomes; their claims lapse",
                  "count=%zu", unrecorded);
    }
    stall_wait(&x.w->outcomes_stall, clock_now(), INSTANT_NEVER);
    connection_close(&x.connection);
    return NULL;
}
