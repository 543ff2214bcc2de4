/* Where a stored firing goes when the data of its time zone change. Pure.
 *
 * What stays is the nominal local time and with it the key (I3); what moves is the instant. A
 * nominal time that the new data put into a gap or an overlap follows the rule's policies, as if
 * the rule had been asked anew. Elapsed time (interval) and an instant that was written with its
 * offset (once) do not move; only what the zone's clock shows then does. */
#ifndef RS_FIRING_MOVE_H
#define RS_FIRING_MOVE_H

#include "rule.h"

#define FIRING_MOVE_STEPS_MAX 100000 /* firings looked at */

/* `rule` is parsed with the new data, `stored` was computed with other ones. Not found: the new
 * data leave nothing before the end. Thread: any. */
struct firing firing_move(const struct rule *rule, struct rule_bounds bounds,
                          const struct firing *stored);

#endif
