/* Inside of planner.c: what a firing is about. Pure. */
#ifndef RS_PLANNER_ABOUT_H
#define RS_PLANNER_ABOUT_H

#include "rule.h"

/* The data interval of `f`, as the rule has it: jitter moves when a job runs, not what it is about.
 * Of a period its days, from those of `first` on; otherwise from the firing at `previous`
 * (UTC_NONE: there is none). */
struct instant_range plan_window_of(const struct rule *r, utc_us previous,
                                    const struct firing *first, const struct firing *f);

/* Why a firing that is due cannot be planned: its calendar or its periods end before. Always
 * INVALID. */
MUST_USE enum status plan_stuck_refuse(const struct rule *r, const struct firing *f,
                                       struct error *err);

#endif
