#include "clock_guard.h"

#define QUICK_US       50000    /* a round trip that tells enough to be the measure at once */
#define MEASURE_OLD_US 10000000 /* a slower one is the measure when the last is older */

int64_t clock_sample_round_trip_us(const struct clock_sample *sample)
{
    int64_t us = (sample->after.ns - sample->before.ns) / 1000;
    return us > 0 ? us : 0;
}

int64_t clock_sample_boot_us(const struct clock_sample *sample)
{
    return (sample->before.ns + (sample->after.ns - sample->before.ns) / 2) / 1000;
}

int64_t clock_sample_offset_us(const struct clock_sample *sample, wall_us wall)
{
    return wall.us - clock_sample_round_trip_us(sample) / 2 - sample->said.us;
}

/* How far `said` lies outside of [from, to]; 0: inside. */
static int64_t outside(int64_t said, int64_t from, int64_t to)
{
    if (said < from) {
        return said - from;
    }
    return said > to ? said - to : 0;
}

static void measure_take(struct clock_guard *g, const struct clock_sample *s)
{
    int64_t age_us = clock_sample_boot_us(s) - clock_sample_boot_us(&g->measure);
    int64_t trip_us = clock_sample_round_trip_us(s);
    bool quick = trip_us <= QUICK_US || trip_us <= clock_sample_round_trip_us(&g->measure);
    if (age_us > 0 && (quick || age_us > MEASURE_OLD_US)) {
        g->measure = *s;
    }
}

enum clock_verdict clock_guard_take(struct clock_guard *g, struct clock_sample s)
{
    const struct clock_sample *m = &g->measure;
    if (g->suspect) {
        return CLOCK_STEPPED;
    }
    if (!g->measured) {
        clock_guard_settle(g, s);
        return CLOCK_FIRST;
    }
    int64_t went_us = clock_sample_boot_us(&s) - clock_sample_boot_us(m);
    int64_t step_us = outside(s.said.us, m->said.us + (s.before.ns - m->after.ns) / 1000,
                              m->said.us + (s.after.ns - m->before.ns) / 1000);
    int64_t drift_us = (went_us < 0 ? -went_us : went_us) / 1000000 * CLOCK_GUARD_PPM;
    if ((step_us < 0 ? -step_us : step_us) > CLOCK_GUARD_SLACK_US + drift_us) {
        g->suspect = true;
        g->step_us = s.said.us - m->said.us - went_us;
        return CLOCK_STEPPED;
    }
    measure_take(g, &s);
    return CLOCK_GOOD;
}

void clock_guard_doubt(struct clock_guard *g, int64_t step_us)
{
    g->suspect = true;
    g->step_us = step_us;
}

void clock_guard_settle(struct clock_guard *g, struct clock_sample s)
{
    *g = (struct clock_guard){.measure = s, .measured = true};
}
