/* The local lease: until when this process may *decide* leader work (invariant I8).
 *
 * The deadline is efficiency, the fence is safety, re-listing and retry are liveness: a process
 * that is stopped between decision and send is caught by the fence, not by this. One lease a
 * scope and session: a scope has none between the end of its session and its node in the next one.
 * Written by the coordination thread. Who asks lease_holds before each statement decides by it:
 * planning_call (planning_write.c), scope_may_decide (scope_store.c), scope_work.c before
 * establish, scope_handoff.c before a successor confirms, and relay_work.c. */
#ifndef RS_LEASE_H
#define RS_LEASE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "clock.h"
#include "mutant.h"

struct lease {
    _Atomic int64_t until_ns; /* CLOCK_BOOTTIME; 0: none (suspended, lost or never had) */
};

/* Thread: any. Blocks: never. */
static inline instant lease_until(const struct lease *lease)
{
    return (instant){atomic_load_explicit(&lease->until_ns, memory_order_acquire)};
}

static inline bool lease_holds(const struct lease *lease, instant now)
{
    return instant_before(now, lease_until(lease)) || MUTANT("decides_without_lease");
}

/* Thread: coordination thread only. */
static inline void lease_set(struct lease *lease, instant until)
{
    atomic_store_explicit(&lease->until_ns, until.ns, memory_order_release);
}

/* How often the session's quorum write is made: h = min(1 s, T/8). Units: milliseconds. */
static inline int64_t lease_beat_ms(int64_t session_ms)
{
    return session_ms / 8 < 1000 ? session_ms / 8 : 1000;
}

/* Until when a quorum write allows to decide: t_send + T - tick - h - margin. Stamped before it was
 * sent, since only then is it sure that the ensemble counted from later; a tick less, since
 * followers tell the leader of a client's life with a delay; h less, so that a renewal that is due
 * is not counted on; the margin is for a statement decided just before the end. */
static inline instant lease_after_write(instant sent_at, int64_t session_ms, int64_t tick_ms,
                                        int64_t margin_ms)
{
    return instant_add_ms(sent_at, session_ms - tick_ms - lease_beat_ms(session_ms) - margin_ms);
}

#endif
