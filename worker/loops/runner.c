#include "runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "log.h"
#include "worker_metrics.h"
#include "thread_join.h"

#define IDLE_MS        1000  /* how often an idle runner looks at its idle connections */
#define SOURCE_IDLE_MS 30000 /* a data source connection unused for so long is closed */

bool runner_is_stopped(struct runner *r)
{
    struct claim_watch watch = claims_watch(r->w->claims, r->claim);
    struct outcome *o = &r->claim->outcome;
    char text[128];
    switch (watch.kill) {
    case KILL_CANCELLED:
        outcome_fail(o, OUTCOME_CANCELLED, false, "cancelled on request");
        return true;
    case KILL_STOPPING:
        outcome_fail(o, OUTCOME_HANDED_BACK, false, "the worker stopped");
        return true;
    case KILL_EXPIRED:
        outcome_fail(o, OUTCOME_FAILED, true, RUNNER_EXPIRED);
        return true;
    case KILL_LOST: /* nobody will ask: neither a success nor a failure of ours */
        outcome_fail(o, OUTCOME_HANDED_BACK, false, "its claim was lost");
        return true;
    case KILL_NONE:
        break;
    }
    if (instant_before(clock_now(), r->timeout_at)) {
        return false;
    }
    (void)snprintf(text, sizeof text, "ran longer than the schedule's timeout of %lld ms",
                   (long long)r->claim->job->timeout_ms);
    outcome_fail(o, OUTCOME_TIMEOUT, true, text);
    return true;
}

const struct artifact_store *runner_store(struct runner *r)
{
    const struct worker_settings *s = r->settings;
    if (s->artifact_store_count == 0) {
        outcome_fail(&r->claim->outcome, OUTCOME_FAILED, true,
                     "this worker has no artifact store; add artifact_stores to worker.conf");
        return NULL;
    }
    return &s->artifact_stores[0];
}

static void kind_run(struct runner *r)
{
    const struct job *job = r->claim->job;
    struct outcome *o = &r->claim->outcome;
    if (job->problem[0] != '\0') {
        outcome_fail(o, OUTCOME_FAILED, false, job->problem);
    } else if (strcmp(job->kind, "noop") == 0) {
        *o = (struct outcome){.kind = OUTCOME_SUCCEEDED, .rows = -1};
    } else if (strcmp(job->kind, "sql") == 0) {
        runner_sql(r);
    } else if (strcmp(job->kind, "program") == 0) {
        runner_program(r);
    } else if (job->kind[0] == '\0') {
        char text[160];
        (void)snprintf(text, sizeof text, "report \"%s\" does not exist any more", job->report);
        outcome_fail(o, OUTCOME_FAILED, false, text);
    } else {
        /* Somebody else may run a newer worker. */
        char text[160];
        (void)snprintf(text, sizeof text, "this worker cannot run reports of kind \"%s\"",
                       job->kind);
        outcome_fail(o, OUTCOME_FAILED, true, text);
    }
}

static void claim_run(struct runner *r)
{
    struct claim *claim = r->claim;
    struct incarnation_copy me;
    r->timeout_at = instant_add_ms(clock_now(), claim->job->timeout_ms);
    if (worker_incarnation(r->w, &me)) {
        memcpy(r->installation, me.agreement.installation, sizeof r->installation);
    }
    /* Copied: after the report the claim may be gone at any moment. */
    char id[UUID_TEXT_MAX];
    char store_name[NAME_MAX_BYTES] = "";
    char path[ARTIFACT_PATH_MAX];
    memcpy(id, claim->job->id, sizeof id);
    instant began = clock_now();
    run_metrics_begin(claim->job, began);
    if (!runner_is_stopped(r)) {
        kind_run(r);
    } else if (claim->outcome.kind == OUTCOME_FAILED) { /* given up before it began: no attempt */
        outcome_fail(&claim->outcome, OUTCOME_HANDED_BACK, false,
                     "its claim could not be renewed before it began");
    }
    claim->reported_at = clock_now();
    run_metrics_end(claim->job, began, claim->reported_at);
    if (claim->outcome.has_artifact) {
        memcpy(store_name, claim->outcome.artifact.store, sizeof store_name);
        memcpy(path, claim->outcome.artifact.path, sizeof path);
    }
    if (claim->outcome.kind == OUTCOME_FAILED || claim->outcome.kind == OUTCOME_TIMEOUT) {
        log_event(LOG_LEVEL_INFO, "job failed", "job=%s schedule=%s key=%s attempt=%lld error=%s",
                  id, claim->job->schedule, log_quote(claim->job->occurrence_key).text,
                  (long long)claim->job->attempt, log_quote(claim->outcome.error).text);
    }
    r->claim = NULL;
    if (!claims_report(r->w->claims, claim)) {
        counter_add(&r->w->counters, COUNT_LOST, 1);
        log_event(LOG_LEVEL_WARN, "claim was lost, its work is dropped", "job=%s", id);
        const struct artifact_store *store = artifact_store_find(r->settings, store_name);
        if (store != NULL) {
            artifact_remove(store, path);
        }
    }
}

static void sources_close(struct runner *r, instant unused_since)
{
    for (size_t i = 0; i < DATA_SOURCES_MAX; i++) {
        if (r->sources[i] != NULL && instant_before(r->source_used[i], unused_since)) {
            source_close(r->sources[i]);
            r->sources[i] = NULL;
        }
    }
}

/* The settings for one job. Kept connections were made by an index into older ones. */
static void settings_begin(struct runner *r)
{
    uint64_t number = 0;
    r->settings = settings_take(r->w->now, &number);
    if (number != r->settings_number) {
        sources_close(r, INSTANT_NEVER);
        r->settings_number = number;
    }
}

void *runner_main(void *worker)
{
    struct runner r = {.w = worker, .wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    thread_name("runner");
    r.buffer = malloc(RUNNER_BUFFER);
    if (r.wake_fd < 0 || r.buffer == NULL) {
        log_event(LOG_LEVEL_ERROR, "a runner cannot start, out of memory or descriptors", NULL);
    }
    while (r.wake_fd >= 0 && r.buffer != NULL) {
        instant until = instant_add_ms(clock_now(), IDLE_MS);
        r.claim = claims_take(r.w->claims, r.wake_fd, until);
        if (r.claim != NULL) {
            settings_begin(&r);
            claim_run(&r);
            settings_give(r.w->now, r.settings);
        } else if (instant_before(clock_now(), until)) {
            break; /* claims_stop */
        } else {
            sources_close(&r, instant_add_ms(until, -SOURCE_IDLE_MS));
        }
    }
    sources_close(&r, INSTANT_NEVER);
    free(r.buffer);
    if (r.wake_fd >= 0) {
        (void)close(r.wake_fd);
    }
    return NULL;
}
