#include "metrics.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const double METRIC_CALL_BOUNDS[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                     0.1,    0.25,  0.5,    1,     2.5,  5,     10};
const size_t METRIC_CALL_BOUND_COUNT = sizeof METRIC_CALL_BOUNDS / sizeof METRIC_CALL_BOUNDS[0];

struct metric {
    const struct metric_family *family;
    char values[METRIC_LABELS_MAX][METRIC_VALUE_MAX];
    atomic_bool shown;
    _Atomic double value; /* HISTOGRAM: the sum */
    atomic_uint_fast64_t buckets[METRIC_BOUNDS_MAX + 1];
};

/* Series are never moved or freed, so a pointer to one stays good; the mutex guards the count and
 * the making of new ones. */
static struct metric series[METRICS_MAX];
static size_t series_count;
static struct metric spare; /* what does not fit goes here and is not rendered */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

/* Held while collectors run, so that one that was taken out is not running any more. */
static pthread_mutex_t collectors_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    metrics_collector *collect;
    void *context;
} collectors[METRICS_COLLECTORS_MAX];
static size_t collector_count;

static const struct metric_family dropped_family = {
    .name = "report_metrics_dropped_total",
    .kind = METRIC_COUNTER,
    .help = "Look-ups of series that did not fit into the registry.",
};

static void value_copy(char to[METRIC_VALUE_MAX], const char *from)
{
    (void)snprintf(to, METRIC_VALUE_MAX, "%s", from == NULL ? "" : from);
    text_trim(to);
}

static struct metric *series_find(const struct metric_family *family,
                                  char values[METRIC_LABELS_MAX][METRIC_VALUE_MAX])
{
    for (size_t i = 0; i < series_count; i++) {
        if (series[i].family == family && strcmp(series[i].values[0], values[0]) == 0 &&
            strcmp(series[i].values[1], values[1]) == 0) {
            return &series[i];
        }
    }
    return NULL;
}

/* NULL when the registry is full. */
static struct metric *series_have(const struct metric_family *family, const char *first,
                                  const char *second)
{
    char values[METRIC_LABELS_MAX][METRIC_VALUE_MAX];
    value_copy(values[0], first);
    value_copy(values[1], second);
    struct metric *m = series_find(family, values);
    /* The last place is kept for the count of what had none. */
    size_t places = METRICS_MAX - (family == &dropped_family ? 0 : 1);
    if (m == NULL && series_count < places) {
        m = &series[series_count++];
        m->family = family;
        memcpy(m->values, values, sizeof values);
        /* A counter or histogram is there from the beginning, so that rate() sees its first step;
         * a gauge when its value is known. */
        atomic_store(&m->shown, family->kind != METRIC_GAUGE);
    }
    return m;
}

struct metric *metric_get(const struct metric_family *family, const char *first, const char *second)
{
    (void)pthread_mutex_lock(&mutex);
    struct metric *m = series_have(family, first, second);
    struct metric *dropped = m == NULL ? series_have(&dropped_family, NULL, NULL) : NULL;
    (void)pthread_mutex_unlock(&mutex);
    if (m != NULL) {
        return m;
    }
    if (dropped != NULL) {
        metric_add(dropped, 1);
    }
    return &spare;
}

static void value_add(_Atomic double *to, double n)
{
    double before = atomic_load_explicit(to, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(to, &before, before + n, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
}

void metric_add(struct metric *m, double n)
{
    value_add(&m->value, n);
    atomic_store(&m->shown, true);
}

void metric_set(struct metric *m, double value)
{
    atomic_store(&m->value, value);
    atomic_store(&m->shown, true);
}

void metric_observe(struct metric *m, double seconds)
{
    size_t i = 0;
    if (m == &spare) {
        return;
    }
    while (i < m->family->bound_count && seconds > m->family->bounds[i]) {
        i++;
    }
    atomic_fetch_add_explicit(&m->buckets[i], 1, memory_order_relaxed);
    value_add(&m->value, seconds);
}

void metric_clear(struct metric *m)
{
    atomic_store(&m->shown, false);
    atomic_store(&m->value, 0);
}

double metric_read(const struct metric *m)
{
    return atomic_load(&m->value);
}

bool metric_peek(const struct metric_family *family, const char *first, const char *second,
                 double *ret_value)
{
    char values[METRIC_LABELS_MAX][METRIC_VALUE_MAX];
    value_copy(values[0], first);
    value_copy(values[1], second);
    (void)pthread_mutex_lock(&mutex);
    const struct metric *m = series_find(family, values);
    (void)pthread_mutex_unlock(&mutex);
    if (m == NULL || !atomic_load(&m->shown)) {
        return false;
    }
    *ret_value = metric_read(m);
    return true;
}

size_t metric_count(const struct metric_family *family, const char *first)
{
    size_t n = 0;
    char value[METRIC_VALUE_MAX];
    value_copy(value, first);
    (void)pthread_mutex_lock(&mutex);
    for (size_t i = 0; i < series_count; i++) {
        n += series[i].family == family && strcmp(series[i].values[0], value) == 0 &&
                     atomic_load(&series[i].shown)
                 ? 1
                 : 0;
    }
    (void)pthread_mutex_unlock(&mutex);
    return n;
}

/* Rendering ----------------------------------------------------------------------------------- */

static const char *kind_name(enum metric_kind kind)
{
    switch (kind) {
    case METRIC_COUNTER:
        return "counter";
    case METRIC_GAUGE:
        return "gauge";
    case METRIC_HISTOGRAM:
        return "histogram";
    }
    return "untyped";
}

static void print_escaped(FILE *to, const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\\' || *p == '"') {
            (void)fprintf(to, "\\%c", *p);
        } else if (*p == '\n') {
            (void)fputs("\\n", to);
        } else {
            (void)fputc(*p, to);
        }
    }
}

/* {scope="main",le="0.5"}; nothing when there is no label. `le` may be NULL. */
static void print_labels(FILE *to, const struct metric *m, const char *le)
{
    const char *before = "{";
    for (size_t i = 0; i < METRIC_LABELS_MAX && m->family->labels[i] != NULL; i++) {
        (void)fprintf(to, "%s%s=\"", before, m->family->labels[i]);
        print_escaped(to, m->values[i]);
        (void)fputc('"', to);
        before = ",";
    }
    if (le != NULL) {
        (void)fprintf(to, "%sle=\"%s\"", before, le);
        before = ",";
    }
    if (before[0] == ',') {
        (void)fputc('}', to);
    }
}

static void print_number(FILE *to, double value)
{
    if (isfinite(value) && value == floor(value) && fabs(value) < 9e15) { /* exact below 2^53 */
        (void)fprintf(to, " %" PRId64 "\n", (int64_t)value);
    } else {
        (void)fprintf(to, " %.15g\n", value);
    }
}

static void print_histogram(FILE *to, const struct metric *m)
{
    uint64_t below = 0;
    for (size_t i = 0; i <= m->family->bound_count; i++) {
        char le[32] = "+Inf";
        if (i < m->family->bound_count) {
            (void)snprintf(le, sizeof le, "%g", m->family->bounds[i]);
        }
        below += atomic_load(&m->buckets[i]);
        (void)fprintf(to, "%s_bucket", m->family->name);
        print_labels(to, m, le);
        (void)fprintf(to, " %" PRIu64 "\n", below);
    }
    (void)fprintf(to, "%s_sum", m->family->name);
    print_labels(to, m, NULL);
    print_number(to, metric_read(m));
    (void)fprintf(to, "%s_count", m->family->name);
    print_labels(to, m, NULL);
    (void)fprintf(to, " %" PRIu64 "\n", below);
}

static void print_series(FILE *to, const struct metric *m)
{
    if (m->family->kind == METRIC_HISTOGRAM) {
        print_histogram(to, m);
        return;
    }
    (void)fputs(m->family->name, to);
    print_labels(to, m, NULL);
    print_number(to, metric_read(m));
}

static int by_family(const void *a, const void *b)
{
    const struct metric *x = *(const struct metric *const *)a;
    const struct metric *y = *(const struct metric *const *)b;
    int order = strcmp(x->family->name, y->family->name);
    return order != 0 ? order : (x > y) - (x < y);
}

static void print_all(FILE *to, size_t count)
{
    static const struct metric *sorted[METRICS_MAX]; /* under the mutex */
    size_t shown = 0;
    for (size_t i = 0; i < count; i++) {
        if (atomic_load(&series[i].shown)) {
            sorted[shown++] = &series[i];
        }
    }
    qsort(sorted, shown, sizeof sorted[0], by_family);
    for (size_t i = 0; i < shown; i++) {
        const struct metric_family *f = sorted[i]->family;
        if (i == 0 || strcmp(sorted[i - 1]->family->name, f->name) != 0) {
            (void)fprintf(to, "# HELP %s %s\n# TYPE %s %s\n", f->name, f->help, f->name,
                          kind_name(f->kind));
        }
        print_series(to, sorted[i]);
    }
}

/* Collecting ---------------------------------------------------------------------------------- */

enum status metrics_collect_from(metrics_collector *collector, void *context)
{
    enum status s = STATUS_FULL;
    (void)pthread_mutex_lock(&collectors_mutex);
    if (collector_count < METRICS_COLLECTORS_MAX) {
        collectors[collector_count].collect = collector;
        collectors[collector_count++].context = context;
        s = STATUS_OK;
    }
    (void)pthread_mutex_unlock(&collectors_mutex);
    return s;
}

void metrics_collect_no_more(metrics_collector *collector, void *context)
{
    (void)pthread_mutex_lock(&collectors_mutex);
    for (size_t i = 0; i < collector_count; i++) {
        if (collectors[i].collect == collector && collectors[i].context == context) {
            collectors[i] = collectors[--collector_count];
            break;
        }
    }
    (void)pthread_mutex_unlock(&collectors_mutex);
}

static void collect_all(void)
{
    (void)pthread_mutex_lock(&collectors_mutex);
    for (size_t i = 0; i < collector_count; i++) {
        collectors[i].collect(collectors[i].context);
    }
    (void)pthread_mutex_unlock(&collectors_mutex);
}

enum status metrics_render(char **ret_text, size_t *ret_size, struct error *err)
{
    char *text = NULL;
    size_t size = 0;
    collect_all();
    FILE *to = open_memstream(&text, &size);
    if (to == NULL) {
        return error_set(err, STATUS_FATAL, "no memory for the metrics page");
    }
    (void)pthread_mutex_lock(&mutex);
    print_all(to, series_count);
    (void)pthread_mutex_unlock(&mutex);
    bool failed = ferror(to) != 0;
    if (fclose(to) != 0 || failed) {
        free(text);
        return error_set(err, STATUS_FATAL, "no memory for the metrics page");
    }
    *ret_text = text;
    *ret_size = size;
    return STATUS_OK;
}

void metrics_print_reference(const struct metric_family *families, size_t count, FILE *to)
{
    (void)fputs("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n", to);
    for (size_t i = 0; i < count; i++) {
        const struct metric_family *f = &families[i];
        (void)fprintf(to, "| `%s` | %s |", f->name, kind_name(f->kind));
        for (size_t l = 0; l < METRIC_LABELS_MAX && f->labels[l] != NULL; l++) {
            (void)fprintf(to, "%s `%s`", l == 0 ? "" : ",", f->labels[l]);
        }
        (void)fprintf(to, " | %s |\n", f->help);
    }
}

void metrics_reset(void)
{
    (void)pthread_mutex_lock(&collectors_mutex);
    collector_count = 0;
    (void)pthread_mutex_unlock(&collectors_mutex);
    (void)pthread_mutex_lock(&mutex);
    memset(series, 0, sizeof series);
    series_count = 0;
    (void)pthread_mutex_unlock(&mutex);
}
