/* What the product's processes say and show to people, and nobody listens to here: log lines (in
 * the trace only), metrics, systemd, HTTP. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "http_scheduler.h"
#include "http_worker.h"
#include "log.h"
#include "metrics.h"
#include "notify.h"
#include "process_metrics.h"
#include "world.h"

/* ---- The log ---- */

void log_event(enum log_level level, const char *event, const char *fields, ...)
{
    static const char *const words[] = {"ERROR", "warn", "info", "debug"};
    const struct process *p = process_current();
    if (!world.trace || level == LOG_LEVEL_DEBUG) {
        return;
    }
    (void)printf("%12.6f  %-4s  %-5s %s", (double)world_us() / 1e6, p == NULL ? "" : p->name,
                 words[level], event);
    if (fields != NULL) {
        va_list arguments;
        (void)putchar(' ');
        va_start(arguments, fields);
        (void)vprintf(fields, arguments);
        va_end(arguments);
    }
    (void)putchar('\n');
}

struct log_quoted log_quote(const char *value)
{
    struct log_quoted q;
    q.text[0] = '\0';
    if (world.trace) {
        (void)snprintf(q.text, sizeof q.text, "\"%s\"", value == NULL ? "" : value);
    }
    return q;
}

void log_open(const char *program, enum log_level most)
{
    (void)program;
    (void)most;
}

void log_level_set(enum log_level most)
{
    (void)most;
}

bool log_level_parse(const char *word, enum log_level *ret_level)
{
    (void)word;
    *ret_level = LOG_LEVEL_INFO;
    return true;
}

uint64_t log_dropped(void)
{
    return 0;
}

/* ---- Metrics ---- */

struct metric {
    double value;
};
static struct metric only;

const double METRIC_CALL_BOUNDS[] = {1};
const size_t METRIC_CALL_BOUND_COUNT = 1;

struct metric *metric_get(const struct metric_family *family, const char *first, const char *second)
{
    (void)family;
    (void)first;
    (void)second;
    return &only;
}

void metric_add(struct metric *m, double n)
{
    (void)m;
    (void)n;
}

void metric_set(struct metric *m, double value)
{
    (void)m;
    (void)value;
}

void metric_observe(struct metric *m, double seconds)
{
    (void)m;
    (void)seconds;
}

void metric_clear(struct metric *m)
{
    (void)m;
}

double metric_read(const struct metric *m)
{
    return m->value;
}

enum status metrics_collect_from(metrics_collector *collector, void *context)
{
    (void)collector;
    (void)context;
    return STATUS_OK;
}

void metrics_collect_no_more(metrics_collector *collector, void *context)
{
    (void)collector;
    (void)context;
}

void metrics_print_reference(const struct metric_family *families, size_t count, FILE *to)
{
    (void)families;
    (void)count;
    (void)to;
}

void process_metrics_collect(void *ignored)
{
    (void)ignored;
}

/* ---- systemd ---- */

void notify_ready(void)
{
}

void notify_reloading(void)
{
}

void notify_stopping(void)
{
}

void notify_status(const char *text)
{
    (void)text;
}

void notify_watchdog(void)
{
}

int64_t notify_watchdog_ms(void)
{
    return 0;
}

/* ---- HTTP ---- */

enum status scheduler_http_start(const struct scheduler_http_options *options,
                                 struct scheduler_http **ret_http, struct error *err)
{
    (void)options;
    (void)err;
    *ret_http = NULL;
    return STATUS_OK;
}

enum status scheduler_http_stop(struct scheduler_http *http, instant deadline)
{
    (void)http;
    (void)deadline;
    return STATUS_OK;
}

enum status worker_http_start(struct worker *w, struct worker_http **ret_http, struct error *err)
{
    (void)w;
    (void)err;
    *ret_http = NULL;
    return STATUS_OK;
}

enum status worker_http_stop(struct worker_http *http, instant deadline)
{
    (void)http;
    (void)deadline;
    return STATUS_OK;
}
