/* What every daemon of ours measures: the process itself, its database calls, its messages to
 * Kafka. The families in one table, for docs/metrics.md. Thread: any. Blocks: never for long. */
#ifndef RS_PROCESS_METRICS_H
#define RS_PROCESS_METRICS_H

#include "clock.h"
#include "metrics.h"
#include "status.h"

enum process_metric {
    PROCESS_BUILD_INFO,
    PROCESS_START_TIME,
    PROCESS_RESIDENT_BYTES,
    PROCESS_CPU_SECONDS,
    PROCESS_OPEN_FDS,
    PROCESS_LOG_DROPPED,
    PROCESS_DATABASE_SECONDS,
    PROCESS_DATABASE_FAILURES,
    PROCESS_KAFKA_ACK_SECONDS,
    PROCESS_METRICS,
};
extern const struct metric_family PROCESS_FAMILIES[PROCESS_METRICS];

/* Collector (metrics_collect_from): reads /proc/self; what cannot be read vanishes. */
void process_metrics_collect(void *ignored);

/* A statement was sent at `sent` and came to `s`. `sql` is text of the program: the function that
 * it calls becomes the label, so the labels are as many as the statements in the code. */
void process_database_call(const char *sql, instant sent, enum status s);

#define STATEMENT_NAME_MAX METRIC_VALUE_MAX

/* The name for the label: the first function of ours that is called ("plan_batch"), otherwise the
 * table that is read ("read_outbox"), "listen", or "other" (checks at connect, the clock). Pure. */
void statement_name(const char *sql, char ret_name[STATEMENT_NAME_MAX]);

#endif
