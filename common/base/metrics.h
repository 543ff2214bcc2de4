/* What a process counts and measures, for Prometheus: one registry a process, written by any
 * thread, rendered by the HTTP server. Base units (seconds, bytes), no ids of jobs or schedules in
 * labels: a label takes values from a small set that configuration or code names.
 *
 * A module keeps its families as static const structs beside the code that counts, and gets the
 * series once, at its start, or each time: metric_get is a look-up. Thread: any. Blocks: never for
 * long. */
#ifndef RS_METRICS_H
#define RS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "clock.h"
#include "status.h"

#define METRIC_LABELS_MAX 2
#define METRIC_BOUNDS_MAX 16
#define METRICS_MAX       8192 /* series of a process: some ninety a scope */
#define METRIC_VALUE_MAX  64   /* bytes of a label's value, with NUL; longer ones are cut */

enum metric_kind {
    METRIC_COUNTER,
    METRIC_GAUGE,
    METRIC_HISTOGRAM
};

struct metric_family {
    const char *name; /* report_scheduler_... or report_worker_...; counters end in _total */
    enum metric_kind kind;
    const char *help;                      /* one sentence */
    const char *labels[METRIC_LABELS_MAX]; /* NULL: fewer */
    const double *bounds;                  /* HISTOGRAM: upper bounds, ascending, without +Inf */
    size_t bound_count;                    /* at most METRIC_BOUNDS_MAX */
};

struct metric; /* one series */

/* The series with these label values (NULL where the family has no label), made on first use and
 * kept for the life of the process. Never NULL: when the registry is full, a spare series that is
 * not rendered, and report_metrics_dropped_total counts. `family` must stay. */
struct metric *metric_get(const struct metric_family *family, const char *first,
                          const char *second);

void metric_add(struct metric *m, double n); /* COUNTER: n >= 0; GAUGE */
void metric_set(struct metric *m, double value);
void metric_observe(struct metric *m, double seconds); /* HISTOGRAM */

/* Forget a series, e.g. a gauge that only a leader knows: it is not rendered until it is set or
 * added to again. */
void metric_clear(struct metric *m);

/* For contract tests and for alerts that a process decides itself. */
double metric_read(const struct metric *m);

/* Value of a series that is there and shown; false, and nothing is made, when it is not. */
bool metric_peek(const struct metric_family *family, const char *first, const char *second,
                 double *ret_value);
/* How many series with this first label are shown. */
size_t metric_count(const struct metric_family *family, const char *first);

/* Upper bounds for durations of calls: 0.5 ms to 10 s. */
extern const double METRIC_CALL_BOUNDS[];
extern const size_t METRIC_CALL_BOUND_COUNT;

static inline double metric_seconds_since(instant then, instant now)
{
    return (double)(now.ns - then.ns) / 1e9;
}

/* Called before each rendering, by the thread that renders, for what is counted elsewhere or is
 * true only now (an age, a state): it sets series. It must not block for long nor render. */
typedef void metrics_collector(void *context);

/* Returns: OK; FULL (METRICS_COLLECTORS_MAX are there). */
#define METRICS_COLLECTORS_MAX 4
MUST_USE enum status metrics_collect_from(metrics_collector *collector, void *context);

/* It is not called any more once this has returned. Blocks: while a rendering collects. */
void metrics_collect_no_more(metrics_collector *collector, void *context);

/* The exposition text (Prometheus text format 0.0.4), NUL-terminated; families by name, series in
 * the order they were made. Owns: free(*ret_text). Returns: OK, FATAL (memory). */
MUST_USE enum status metrics_render(char **ret_text, size_t *ret_size, struct error *err);

/* Families as a Markdown list, for docs/metrics.md. */
void metrics_print_reference(const struct metric_family *families, size_t count, FILE *to);

/* Forget everything. Tests only: series that were got before are dead. */
void metrics_reset(void);

#endif
