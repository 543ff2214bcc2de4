#include "observer.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "clock_witness.h"
#include "log.h"
#include "scheduler_metrics.h"
#include "store_figures.h"
#include "thread_join.h"

#define VANISH_PERIODS   3
#define WITNESS_RETRY_MS 1000 /* without a connection */

struct observer {
    struct observer_options options;
    pthread_t thread;
    int wake_fd; /* eventfd: stop */
    atomic_bool stop;
    _Atomic int64_t observed_ns; /* last reading; before the first, the start */

    /* Below: observer thread only. */
    struct store_identity identity;
    struct store *store;
    bool failing; /* as last logged */
    bool clock_failing;
    struct clock_witness witness;
    struct figure_list figures;
    struct problem_list problems;
    struct metric **shown; /* series of the reading before, figures.max of them */
    size_t shown_count;
};

static struct metric *figure_metric(const struct figure *f)
{
    const struct metric_family *family = scheduler_figure_family(f->name);
    return family == NULL
               ? NULL
               : metric_get(family, f->scope, family->labels[1] == NULL ? NULL : f->label);
}

static bool is_among(struct metric *const *list, size_t count, const struct metric *m)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == m) {
            return true;
        }
    }
    return false;
}

/* Show what was read, and take away what is not there any more: a queue that was deleted. */
static void figures_show(struct observer *o)
{
    size_t kept = 0;
    struct metric **gone = o->shown;
    size_t gone_count = o->shown_count;
    struct metric **now = calloc(o->figures.max, sizeof(struct metric *));
    if (now == NULL) {
        return;
    }
    for (size_t i = 0; i < o->figures.count; i++) {
        struct metric *m = figure_metric(&o->figures.rows[i]);
        if (m != NULL) {
            metric_set(m, o->figures.rows[i].value);
            now[kept++] = m;
        }
    }
    for (size_t i = 0; i < gone_count; i++) {
        if (!is_among(now, kept, gone[i])) {
            metric_clear(gone[i]);
        }
    }
    free(gone);
    o->shown = now;
    o->shown_count = kept;
}

static void figures_hide(struct observer *o)
{
    if (o->options.board != NULL) {
        problem_board_show(o->options.board, NULL);
    }
    for (size_t i = 0; i < o->shown_count; i++) {
        metric_clear(o->shown[i]);
    }
    o->shown_count = 0;
}

static enum status have_store(struct observer *o, struct error *err)
{
    const struct observer_options *options = &o->options;
    if (o->store != NULL && store_is_broken(o->store)) {
        store_close(o->store);
        o->store = NULL;
    }
    enum status s = STATUS_OK;
    if (o->store == NULL) {
        const struct store_options store = {.conninfo = options->conninfo,
                                            .password_file = options->password_file,
                                            .application_name = "report-observer",
                                            .role = STORE_SCHEDULER,
                                            .identity = &o->identity};
        s = store_open(&store, instant_add_ms(clock_now(), options->connect_ms), &o->store, err);
    }
    return s;
}

static enum status look(struct observer *o, struct error *err)
{
    const struct observer_options *options = &o->options;
    enum status s = have_store(o, err);
    const char *scopes[SETTING_LIST_MAX];
    for (size_t i = 0; i < options->scopes->count; i++) {
        scopes[i] = options->scopes->items[i];
    }
    const struct figure_request request = {scopes, options->scopes->count};
    if (s == STATUS_OK) {
        s = store_figures(o->store, &request, instant_add_ms(clock_now(), options->statement_ms),
                          &o->figures, err);
    }
    if (s == STATUS_OK) {
        s = store_problems(o->store, instant_add_ms(clock_now(), options->statement_ms),
                           &o->problems, err);
    }
    return s;
}

static void observe(struct observer *o)
{
    struct error err = {.text = ""};
    instant asked = clock_now();
    enum status s = look(o, &err);
    if (s == STATUS_OK) {
        figures_show(o);
        if (o->options.board != NULL) {
            problem_board_show(o->options.board, &o->problems);
        }
        atomic_store(&o->observed_ns, asked.ns);
    } else if (instant_ms_between((instant){atomic_load(&o->observed_ns)}, clock_now()) >=
               VANISH_PERIODS * o->options.observe_ms) {
        figures_hide(o);
    }
    if (s != STATUS_OK && !o->failing) {
        log_event(LOG_LEVEL_WARN, "observer cannot read the database, trying again",
                  "status=%s error=%s", status_name(s), log_quote(err.text).text);
    } else if (s == STATUS_OK && o->failing) {
        log_event(LOG_LEVEL_INFO, "observer reads the database again", NULL);
    }
    o->failing = s != STATUS_OK;
}

static void witness(struct observer *o)
{
    struct error err = {.text = ""};
    enum status s = have_store(o, &err);
    if (s == STATUS_OK) {
        s = clock_witness_turn(&o->witness, o->store, o->options.statement_ms, &err);
    } else {
        o->witness.sample_at = instant_add_ms(clock_now(), WITNESS_RETRY_MS);
    }
    if (s != STATUS_OK && !o->clock_failing) {
        log_event(LOG_LEVEL_WARN, "cannot compare the database's clock, trying again",
                  "status=%s error=%s", status_name(s), log_quote(err.text).text);
    }
    o->clock_failing = s != STATUS_OK;
}

static void wait_until(struct observer *o, instant until)
{
    struct clock_watch *watch = o->options.watch;
    struct pollfd fds[2] = {{.fd = o->wake_fd, .events = POLLIN},
                            {.fd = watch == NULL ? -1 : clock_watch_fd(watch), .events = POLLIN}};
    (void)poll(fds, 2, instant_poll_timeout(clock_now(), until));
    if (fds[1].revents != 0) {
        clock_watch_heard(watch);
        clock_witness_hurry(&o->witness);
    }
}

static void *observer_run(void *argument)
{
    struct observer *o = argument;
    instant observe_at = clock_now();
    while (!atomic_load(&o->stop)) {
        if (!instant_before(clock_now(), o->witness.sample_at)) {
            witness(o);
        }
        if (!instant_before(clock_now(), observe_at)) {
            observe_at = instant_add_ms(clock_now(), o->options.observe_ms);
            observe(o);
        }
        wait_until(o, instant_min(observe_at, o->witness.sample_at));
    }
    store_close(o->store);
    o->store = NULL;
    return NULL;
}

static void observer_free(struct observer *o)
{
    if (o->wake_fd >= 0) {
        (void)close(o->wake_fd);
    }
    free(o->figures.rows);
    free(o->shown);
    free(o);
}

enum status observer_start(const struct observer_options *options, struct observer **ret_observer,
                           struct error *err)
{
    struct observer *o = calloc(1, sizeof *o);
    if (o == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory for the observer");
    }
    o->options = *options;
    o->figures.max = FIGURES_A_SCOPE * options->scopes->count;
    o->figures.rows = calloc(o->figures.max, sizeof o->figures.rows[0]);
    o->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    atomic_store(&o->observed_ns, clock_now().ns);
    clock_witness_begin(&o->witness, options->watch, options->member);
    int rc = 0;
    if (o->figures.rows == NULL || o->wake_fd < 0 ||
        (rc = pthread_create(&o->thread, NULL, observer_run, o)) != 0) {
        observer_free(o);
        return error_set(err, STATUS_FATAL, "the observer cannot start: %s",
                         rc != 0 ? strerror(rc) : "no memory or descriptors");
    }
    *ret_observer = o;
    return STATUS_OK;
}

void observer_collect(void *observer)
{
    struct observer *o = observer;
    instant observed = {atomic_load(&o->observed_ns)};
    metric_set(scheduler_metric(SCHEDULER_OBSERVATION_AGE, NULL, NULL),
               metric_seconds_since(observed, clock_now()));
}

enum status observer_stop(struct observer *observer, instant deadline)
{
    uint64_t one = 1;
    if (observer == NULL) {
        return STATUS_OK;
    }
    atomic_store(&observer->stop, true);
    ssize_t ignored = write(observer->wake_fd, &one, sizeof one);
    (void)ignored;
    if (thread_join(observer->thread, deadline) != STATUS_OK) {
        return STATUS_TIMEOUT;
    }
    observer_free(observer);
    return STATUS_OK;
}
