/* For tests of the planner: a schedule with the usual policies. */
#ifndef RS_FIXTURE_SUBJECT_H
#define RS_FIXTURE_SUBJECT_H

#include "planner.h"

/* Open bounds, the default policy, 31 firings, a week, a minute of grace. */
struct plan_subject fixture_subject(const struct rule *rule, const char *switched_at);

struct rule fixture_cron(const char *text, const char *zone);

#endif
