/* What a relay counts (scheduler_metrics.h). Thread: the relay's. Blocks: never for long. */
#ifndef RS_RELAY_METRICS_H
#define RS_RELAY_METRICS_H

#include "relay.h"

/* What a relay counted since it was last told; `after` is the present. */
void relay_metrics_add(const char *scope, const struct relay_snapshot *before,
                       const struct relay_snapshot *after);
void relay_metrics_end(const char *scope); /* its gauges vanish */

#endif
