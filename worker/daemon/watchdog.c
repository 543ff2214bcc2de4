#include "watchdog.h"

#include "log.h"
#include "loop_name.h"
#include "notify.h"

struct loop {
    const char *name;
    const _Atomic int64_t *turned_ns;
    bool over; /* it has ended in order */
};

static void loops_list(const struct worker *w, struct loop ret_loops[WATCHDOG_LOOPS])
{
    bool finishing = atomic_load(&w->finishing);
    ret_loops[0] = (struct loop){LOOP_CLAIMS, &w->intake_turned_ns, atomic_load(&w->draining)};
    ret_loops[1] = (struct loop){LOOP_HEARTBEAT, &w->heartbeat_turned_ns, finishing};
    ret_loops[2] = (struct loop){LOOP_OUTCOMES, &w->outcomes_turned_ns, finishing};
}

struct watchdog watchdog_start(struct worker *w)
{
    instant now = clock_now();
    atomic_store(&w->intake_turned_ns, now.ns);
    atomic_store(&w->heartbeat_turned_ns, now.ns);
    atomic_store(&w->outcomes_turned_ns, now.ns);
    return (struct watchdog){.period_ms = notify_watchdog_ms(), .fed_at = now};
}

static bool loop_turns(struct watchdog *dog, size_t i, const struct loop *loop, instant now,
                       int64_t stuck_ms)
{
    int64_t silent_ms = instant_ms_between((instant){atomic_load(loop->turned_ns)}, now);
    if (loop->over || silent_ms < stuck_ms) {
        if (dog->told[i]) {
            log_event(LOG_LEVEL_INFO, "loop turns again", "loop=%s", loop->name);
        }
        dog->told[i] = false;
        return true;
    }
    if (!dog->told[i]) {
        dog->told[i] = true;
        log_event(LOG_LEVEL_ERROR, "loop is stuck, the watchdog is not fed",
                  "loop=%s silent_ms=%lld", loop->name, (long long)silent_ms);
    }
    return false;
}

void watchdog_look(struct watchdog *dog, const struct worker *w, instant now)
{
    struct loop loops[WATCHDOG_LOOPS];
    bool all = true;
    loops_list(w, loops);
    for (size_t i = 0; i < WATCHDOG_LOOPS; i++) {
        all = loop_turns(dog, i, &loops[i], now, w->settings->stuck_ms) && all;
    }
    if (all && dog->period_ms > 0 && instant_ms_between(dog->fed_at, now) >= dog->period_ms / 3) {
        notify_watchdog();
        dog->fed_at = now;
    }
}
