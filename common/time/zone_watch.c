#include "zone_watch.h"

#include <assert.h>
#include <string.h>

void zone_watch_begin(struct zone_watch *w, int64_t poll_ms)
{
    assert(poll_ms > 0);
    memset(w, 0, sizeof *w);
    w->poll_ms = poll_ms;
    w->settle_ms = w->poll_ms / ZONE_SETTLE_DIVIDE + 1;
}

void zone_watch_end(struct zone_watch *w)
{
    zone_set_close(w->set);
    w->set = NULL;
}

enum status zone_watch_open(struct zone_watch *w, const char *directory, instant now,
                            struct error *err)
{
    if (w->set != NULL) {
        return STATUS_OK;
    }
    w->look_at = instant_add_ms(now, w->poll_ms);
    return zone_set_open(directory, &w->set, err);
}

/* The files have stood still: read them, and look whether they did meanwhile. */
static enum status watch_reload(struct zone_watch *w, instant now, struct zone_set **ret_fresh,
                                struct error *err)
{
    struct zone_set *fresh = NULL;
    uint64_t mark = 0;
    enum status s = zone_set_reload(w->set, &fresh, err);
    w->pending = false;
    if (s != STATUS_OK) {
        w->refused = true;
        w->refusal = w->seen;
        return s;
    }
    w->refused = false;
    if (!zone_set_is_current(fresh, &mark)) {
        /* Some are newer than the list that was read with them. Kept tables are in the fresh set,
         * so it is taken all the same, and the next look finds what it lacks. */
        w->look_at = instant_add_ms(now, w->settle_ms);
    }
    *ret_fresh = fresh;
    return STATUS_OK;
}

enum status zone_watch_look(struct zone_watch *w, instant now, struct zone_set **ret_fresh,
                            struct error *err)
{
    uint64_t mark = 0;
    *ret_fresh = NULL;
    if (w->set == NULL || instant_before(now, w->look_at)) {
        return STATUS_OK;
    }
    w->look_at = instant_add_ms(now, w->poll_ms);
    if (zone_set_is_current(w->set, &mark) || (w->refused && mark == w->refusal)) {
        w->pending = false;
        return STATUS_OK;
    }
    if (!w->pending || mark != w->seen) {
        w->pending = true;
        w->seen = mark;
        w->look_at = instant_add_ms(now, w->settle_ms);
        return STATUS_OK;
    }
    return watch_reload(w, now, ret_fresh, err);
}

struct zone_set *zone_watch_refresh(struct zone_watch *w, instant now)
{
    struct zone_set *fresh = NULL;
    uint64_t mark = 0;
    if (zone_set_is_current(w->set, &mark) || zone_set_reload(w->set, &fresh, NULL) != STATUS_OK) {
        return NULL;
    }
    /* Kept tables have left the old set for the fresh one, so that it must be taken in any case. */
    w->look_at = zone_set_is_current(fresh, &mark) ? instant_add_ms(now, w->poll_ms) : now;
    return fresh;
}

void zone_watch_take(struct zone_watch *w, struct zone_set *fresh)
{
    zone_set_close(w->set);
    w->set = fresh;
}
