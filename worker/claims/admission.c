#include "admission.h"

#include "mutant.h"

struct admission admission_start(instant now, int64_t pull_idle_ms)
{
    return (struct admission){.pull_idle_ms = pull_idle_ms,
                              .full_since = INSTANT_NEVER,
                              .pull_at = now,
                              .pulled_at = now};
}

struct admission_step admission_decide(struct admission *a, instant now, size_t free_slots)
{
    if (free_slots > 0) {
        a->full_since = INSTANT_NEVER;
        instant pull_at = MUTANT("never_pulls") ? INSTANT_NEVER : a->pull_at;
        bool pull = !instant_before(now, pull_at);
        return (struct admission_step){
            .mode = ADMISSION_CLAIM, .pull = pull, .wake = pull ? now : pull_at};
    }
    if (!instant_before(a->full_since, INSTANT_NEVER)) {
        a->full_since = now;
    }
    instant pause_at = instant_add_ms(a->full_since, PAUSE_AFTER_MS);
    if (instant_before(now, pause_at)) {
        return (struct admission_step){.mode = ADMISSION_WAIT, .wake = pause_at};
    }
    instant shed_at = instant_add_ms(a->full_since, SHED_AFTER_MS);
    if (instant_before(now, shed_at)) {
        return (struct admission_step){.mode = ADMISSION_PAUSE, .wake = shed_at};
    }
    return (struct admission_step){.mode = ADMISSION_SHED, .wake = INSTANT_NEVER};
}

/* Spread over [idle, 2 idle], so that workers that idle together do not ask together. */
static instant idle_end(const struct admission *a, instant now, uint64_t random)
{
    int64_t jitter = (int64_t)(random % ((uint64_t)a->pull_idle_ms + 1));
    return instant_add_ms(now, a->pull_idle_ms + jitter);
}

void admission_took(struct admission *a, instant now, uint64_t random)
{
    /* A pull that is due stays due: something is known or likely to wait in the database. */
    if (instant_before(now, a->pull_at)) {
        instant latest = instant_add_ms(a->pulled_at, PULL_OFF_MAX * a->pull_idle_ms);
        a->pull_at = instant_min(idle_end(a, now, random), latest);
    }
}

void admission_shed(struct admission *a, instant now)
{
    a->pull_at = instant_min(a->pull_at, now);
}

void admission_pulled(struct admission *a, instant now, size_t asked, size_t got, uint64_t random)
{
    a->pulled_at = now;
    a->pull_at = asked > 0 && got >= asked ? now : idle_end(a, now, random);
}
