/* What a worker measures by looking at itself whenever somebody asks (worker_metrics.h has the
 * rest). Thread: any. Blocks: never for long. */
#ifndef RS_WORKER_COLLECT_H
#define RS_WORKER_COLLECT_H

#include "worker.h"

/* Series whose labels come from the settings begin at 0, so that the first step of each is seen. */
void worker_metrics_start(const struct worker_settings *settings);

/* Collector (metrics_collect_from) with the struct worker as its context. */
void worker_metrics_collect(void *worker);

#endif
