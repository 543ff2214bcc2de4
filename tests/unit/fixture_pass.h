/* For tests of the planner: one pass of a schedule, and what came of it. */
#ifndef RS_FIXTURE_PASS_H
#define RS_FIXTURE_PASS_H

#include "planner.h"

#define PASS_FIRINGS_MAX 20000
#define PASS_GAPS_MAX    1000

/* Of the last plan_at. */
extern struct planned_firing firings[PASS_FIRINGS_MAX];
extern struct planned_gap gaps[PASS_GAPS_MAX];
extern struct plan_sink sink;

/* Plan what is due at an instant; fails the test when the schedule cannot be planned. */
struct plan_result plan_at(const struct plan_subject *s, const char *now);

void check_instant(utc_us t, const char *want);

#endif
