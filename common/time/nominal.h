/* From the nominal local times of a rule to its firings: what gaps and overlaps of a zone make of
 * them, the same for every kind of rule that names local times. Pure.
 *
 * A nominal time in a gap or an overlap fires as the two policies say. Gaps longer than three hours
 * (moves of the date line) are never caught up. Nominal times that fall on one instant are one
 * firing, known by the latest of them; so instants strictly increase. */
#ifndef RS_NOMINAL_H
#define RS_NOMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "firing.h"
#include "zone.h"

#define NOMINAL_CATCH_UP_MAX_S (3 * 3600)

/* A rule, as far as its nominal times go; they are local seconds since 1970 (struct local_time). */
struct nominal_rule {
    /* The first at or after `from`. False: there is none. */
    bool (*first_from)(void *rule, int64_t from, int64_t *ret_time);
    /* How many there are in [from, below). */
    int64_t (*count_in)(void *rule, int64_t from, int64_t below);
    void *rule;
    enum dst_gap_policy gap;         /* not AUTO */
    enum dst_overlap_policy overlap; /* not AUTO */
};

/* The first firing strictly after an instant. *steps is raised by the spans of local time (between
 * two changes of offset) that were looked at; the rule counts its own. */
struct firing nominal_next(const struct nominal_rule *rule, const struct zone *z, utc_us after,
                           int *steps);

/* How many firings lie strictly between two instants: where the clock runs evenly, the rule counts.
 * `before` must be finite. */
int64_t nominal_count(const struct nominal_rule *rule, const struct zone *z, utc_us after,
                      utc_us before);

#endif
