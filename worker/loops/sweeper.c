#include "sweeper.h"

#include "artifact_health.h"
#include "artifact_sweep.h"
#include "log.h"
#include "worker.h"
#include "worker_metrics.h"
#include "thread_join.h"

#define STEP_PAUSE_MS 20
#define RETRY_MS      1000
#define LOOK_MS       10000

/* Does the store that takes new files still do so? Looked at between sweeps. */
static void store_look(struct worker *w, instant *look_at)
{
    if (instant_before(clock_now(), *look_at)) {
        return;
    }
    const struct worker_settings *settings = settings_take(w->now, NULL);
    if (settings->artifact_store_count > 0) {
        artifact_health_look(&settings->artifact_stores[0]);
    }
    settings_give(w->now, settings);
    *look_at = instant_add_ms(clock_now(), LOOK_MS);
}

/* One walk through one store. False when it was broken off. */
static bool store_sweep(struct worker *w, struct connection *c, const struct artifact_store *store,
                        const char *installation)
{
    struct sweep_counts counts = {0};
    struct error err = {0};
    enum status s = STATUS_OK;
    struct sweep *sweep = sweep_begin(store, installation);
    while (sweep != NULL && s == STATUS_OK && !atomic_load(&w->draining)) {
        s = connection_ensure(c, w);
        if (s == STATUS_OK) {
            s = sweep_step(sweep, c->store, instant_add_ms(clock_now(), STATEMENT_MS), &counts,
                           &err);
        }
        wake_wait(w->sweep_wake, STEP_PAUSE_MS);
    }
    sweep_end(sweep);
    metric_add(worker_metric(WORKER_SWEPT, store->name, NULL), (double)counts.removed);
    if (counts.removed > 0) {
        log_event(LOG_LEVEL_INFO, "removed files of crashed attempts",
                  "store=%s seen=%zu removed=%zu", store->name, counts.seen, counts.removed);
    }
    return s == STATUS_NOT_FOUND;
}

static bool all_sweep(struct worker *w, struct connection *c)
{
    struct incarnation_copy me;
    bool whole = worker_incarnation(w, &me);
    const struct worker_settings *settings = settings_take(w->now, NULL);
    for (size_t i = 0; whole && i < settings->artifact_store_count; i++) {
        whole = store_sweep(w, c, &settings->artifact_stores[i], me.agreement.installation);
    }
    settings_give(w->now, settings);
    return whole;
}

/* Of the settings in force: a change moves the next sweep at once. */
static int64_t period_ms(struct worker *w)
{
    const struct worker_settings *settings = settings_take(w->now, NULL);
    int64_t ms = settings->sweep_ms;
    settings_give(w->now, settings);
    return ms;
}

void *sweeper_main(void *worker)
{
    struct worker *w = worker;
    struct connection c = {.what = "report-worker sweep"};
    instant look_at = clock_now();
    thread_name("sweeper");
    while (!atomic_load(&w->draining)) {
        bool whole = all_sweep(w, &c);
        if (whole) {
            connection_close(&c); /* not needed for an hour */
        }
        instant ended = clock_now();
        for (;;) {
            store_look(w, &look_at);
            instant next = instant_add_ms(ended, whole ? period_ms(w) : RETRY_MS);
            if (atomic_load(&w->draining) || !instant_before(clock_now(), next)) {
                break;
            }
            next = instant_min(next, look_at);
            wake_wait(w->sweep_wake, instant_poll_timeout(clock_now(), next));
        }
    }
    connection_close(&c);
    return NULL;
}
