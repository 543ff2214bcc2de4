/* Follows tzdata while a process lives. The files are looked at every `poll_ms`; once they have
 * changed, and then not changed for `settle_ms` (packages replace them one by one), another set of
 * them is made, and takes the place of the old one at a moment that the owner chooses.
 * Reads no clock: the caller says what time it is. Thread: owner. */
#ifndef RS_ZONE_WATCH_H
#define RS_ZONE_WATCH_H

#include "clock.h"
#include "zone_file.h"

#define ZONE_SETTLE_DIVIDE 12 /* settle_ms is this part of poll_ms: 5 s of a minute */

struct zone_watch {
    struct zone_set *set; /* NULL: not open */
    int64_t poll_ms, settle_ms;
    instant look_at;
    bool pending; /* the files have changed; what stands there is `seen` */
    uint64_t seen;
    bool refused; /* what stands there as `refusal` could not be taken */
    uint64_t refusal;
};

/* poll_ms: above 0; a leader's is the setting tz_poll_ms. */
void zone_watch_begin(struct zone_watch *w, int64_t poll_ms);
void zone_watch_end(struct zone_watch *w);

/* Open the set if it is not. Returns: as zone_set_open. Blocks: on the file system. */
MUST_USE enum status zone_watch_open(struct zone_watch *w, const char *directory, instant now,
                                     struct error *err);

/* Where look_at has come: look. *ret_fresh: another set, for zone_watch_take; NULL: nothing has
 * changed, or it is still changing.
 * Returns: OK; else as zone_set_reload, once for each state of the files that cannot be taken: the
 * old set goes on counting. Blocks: on the file system. */
MUST_USE enum status zone_watch_look(struct zone_watch *w, instant now, struct zone_set **ret_fresh,
                                     struct error *err);

/* At a takeover, when waiting is worse: a fresh set of what stands there now, for zone_watch_take;
 * NULL: nothing has changed, or it is no good, which zone_watch_look then says. Where the files are
 * just being replaced, the next looks find the rest. Blocks: on the file system. */
struct zone_set *zone_watch_refresh(struct zone_watch *w, instant now);

/* The fresh set takes the place of the old one, which is closed: no table of it is used any more.
 */
void zone_watch_take(struct zone_watch *w, struct zone_set *fresh);

#endif
