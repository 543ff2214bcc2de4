#include "firing_move.h"

/* The first instant at which a clock shows `t`, or jumps over it. */
static int64_t first_shown(const struct zone *z, struct local_time t)
{
    struct zone_span span = zone_resolve(z, t);
    return span.kind == LOCAL_GAP ? span.transition : t.s - span.before;
}

/* The first firing at or after an instant that is known by this nominal time or a later one. */
static struct firing search(const struct rule *rule, struct rule_bounds bounds, int64_t from_s,
                            struct local_time nominal)
{
    struct firing f = rule_next_within(rule, (utc_us){utc_from_seconds(from_s).us - 1}, bounds);
    for (int i = 0; f.found && f.nominal.s < nominal.s && i < FIRING_MOVE_STEPS_MAX; i++) {
        f = rule_next_within(rule, f.at, bounds);
    }
    return f;
}

struct firing firing_move(const struct rule *rule, struct rule_bounds bounds,
                          const struct firing *stored)
{
    if (rule->kind == RULE_INTERVAL) {
        return rule_next_within(rule, (utc_us){stored->at.us - 1}, bounds);
    }
    if (rule->kind == RULE_ONCE) {
        return rule_next_within(rule, UTC_PAST, bounds);
    }
    /* Two local times lead to it: the nominal one, and what the clock showed when it was to fire,
     * which is another day's for what was rolled, and a bit later for what a gap delayed. */
    struct local_time clock = {utc_seconds(stored->at) + stored->offset_s};
    int64_t from = first_shown(rule->zone, clock);
    int64_t apart = clock.s - stored->nominal.s;
    if (apart > 0 && apart < SECONDS_A_DAY) {
        int64_t earlier = first_shown(rule->zone, stored->nominal);
        from = earlier < from ? earlier : from;
    }
    struct zone_span span = zone_resolve(rule->zone, clock);
    if (span.kind == LOCAL_OVERLAP && stored->offset_s == span.after) {
        /* It may have been the second pass of the same overlap. */
        struct firing second = search(rule, bounds, clock.s - span.after, stored->nominal);
        if (second.found && second.nominal.s == stored->nominal.s) {
            return second;
        }
    }
    return search(rule, bounds, from, stored->nominal);
}
