/* What will be due at the next instant, read and computed a moment before it.
 *
 * At the instant itself only plan_batch is left to do, which decides as always: it moves a schedule
 * only from the step and version that were read, and refuses what is early by the database's clock
 * (I9). An edit that is not taken in yet has changed neither step nor version, so before each call
 * the server is asked whether one waits. Whatever is in doubt is dropped, and read when it is due.
 */
#include "planning_zone.h"

#define AHEAD_MS       200 /* near enough that what was read is still in the processors' caches */
#define AHEAD_LEAST_MS 20  /* later it would itself make the firing late */
/* misfire_grace is a second at least: until then a firing is on time, as it was computed to be. */
#define AHEAD_LATE_US 1000000

void planning_ahead_forget(struct planning *p)
{
    p->ahead_for = UTC_NONE;
    p->ahead_written = 0;
}

instant planning_ahead_at(const struct planning *p)
{
    instant now = clock_now();
    if (!p->next_known || utc_is_none(p->next_fire_at) || p->hidden ||
        p->next_fire_at.us == p->ahead_for.us || rest_count(&p->rest, now) > 0 ||
        !instant_before(now, instant_add_ms(p->due_at, -AHEAD_LEAST_MS))) {
        return INSTANT_NEVER;
    }
    return instant_add_ms(p->due_at, -AHEAD_MS);
}

/* Only what is plain. The others stay due, and are seen to when they are. */
static void ahead_collect(struct planning *p, utc_us at)
{
    struct plan_bounds open = {.until = UTC_UNBOUNDED};
    instant now = clock_now();
    enum status s = STATUS_OK;
    for (size_t i = 0; i < p->due.count && s != STATUS_FULL; i++) {
        const struct due_row *row = &p->due.rows[i];
        if (row->next_fire_at.us == at.us && !row->edited &&
            !rest_is_on(&p->zone_rest, row->rule.time_zone, now) &&
            zone_standing_of(row, p->zones) == ZONE_SAME) {
            s = plan_batch_add(p->batch, row, at, open, p->zones, NULL);
        }
    }
}

enum status planning_look_ahead(struct planning *p, struct error *err)
{
    struct store_call call;
    utc_us at = p->next_fire_at;
    if (instant_before(clock_now(), planning_ahead_at(p))) {
        return STATUS_OK;
    }
    planning_batch_clear(p);
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_due(&call, (struct due_page){.limit = p->options.batch_schedules, .until = at},
                      &p->due, err);
    }
    if (s == STATUS_OK) {
        ahead_collect(p, at);
        p->ahead_for = at;
    }
    return s;
}

enum status planning_ahead_check(struct planning *p, bool *ret_ready, struct error *err)
{
    struct store_call call;
    struct next_due next;
    *ret_ready = false;
    if (utc_is_none(p->ahead_for) || p->ahead_written == p->batch->count) {
        return STATUS_OK;
    }
    enum status s = planning_call(p, &call, err);
    if (s == STATUS_OK) {
        s = store_next_due(&call, &next, err);
    }
    if (s == STATUS_OK) {
        int64_t late_us = next.now.us - p->ahead_for.us;
        *ret_ready = !next.edited && late_us >= 0 && late_us < AHEAD_LATE_US;
    }
    return s;
}

enum status planning_ahead_write(struct planning *p, size_t most, bool *ret_more, struct error *err)
{
    size_t begin = p->ahead_written;
    size_t left = p->batch->count - begin;
    size_t end = begin + (left < most ? left : most);
    p->ahead_written = end;
    *ret_more = end < p->batch->count;
    return planning_write_batch(p, begin, end, err);
}
