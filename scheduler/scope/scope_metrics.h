/* What a scope's lifecycle counts (scheduler_metrics.h). Thread: any. Blocks: never for long. */
#ifndef RS_SCOPE_METRICS_H
#define RS_SCOPE_METRICS_H

#include "clock.h"
#include "lifecycle.h"
#include "scope.h"

/* Series of a scope that begin at 0, so that the first step of each is seen. */
void scope_metrics_begin(const char *scope);

/* A transition: elections, leaderships, step-downs. `stayed_s`: seconds in the state that was left.
 */
void scope_metrics_step(const char *scope, const struct lifecycle_row *row, double stayed_s);

/* State, generation and the like, as people see them. */
void scope_metrics_set(const struct scope_snapshot *view, instant now);

#endif
