/* Inside of rule*.c. */
#ifndef RS_RULE_INSIDE_H
#define RS_RULE_INSIDE_H

#include "rule.h"

/* What the rule itself names, without jitter and without its calendar. */
struct firing rule_unrolled_next(const struct rule *r, utc_us after);
int64_t rule_unrolled_count(const struct rule *r, utc_us after, utc_us before);

/* The part of a source that is about business days, once the rest is parsed. Returns: OK; INVALID.
 */
MUST_USE enum status rule_calendar_parse(const struct rule_source *source, struct rule *r,
                                         struct error *err);

/* The first instant at which the clock shows a date, in seconds. */
int64_t rule_date_begins(const struct zone *z, int64_t date);

/* What its firings are about. Returns: OK; INVALID. */
MUST_USE enum status rule_business_parse(const struct rule_source *source, struct rule *r,
                                         struct error *err);

/* The same of a rule with a calendar. */
struct firing rule_rolled_next(const struct rule *r, utc_us after);
int64_t rule_rolled_count(const struct rule *r, utc_us after, utc_us before);

#endif
