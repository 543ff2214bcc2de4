/* Tells when the database's clock was stepped. Pure: samples come in, a verdict comes out.
 *
 * A firing is due when the database's clock says so (I9), so a clock that is set two hours forward
 * plans two hours early. The guard compares that clock with CLOCK_BOOTTIME, which is never stepped:
 * between two samples both must have gone equally far. What may differ is what round trips hide,
 * CLOCK_GUARD_PPM of the time between (drift, an NTP slew, a leap smear), and CLOCK_GUARD_SLACK_US.
 *
 * Who is believed. The own wall clock accuses nobody: one that is wrong, or is set, changes no
 * verdict. What is left of a member's own faults is that its machine was stopped without its
 * CLOCK_BOOTTIME noticing (a virtual machine paused by its host). From inside that looks as if the
 * database's clock had been set forward. So a suspicion makes a member give up what it leads, which
 * is right in both cases, and testify; whether the installation is held is judged in the database
 * from what several machines testify (sql/0017_clock.sql): one that saw the same makes it a hold,
 * one that saw the same time pass without a step refutes it, and a machine that is alone is
 * believed. Once that is judged the guard is settled: the present is the new measure, and what
 * must not be forgotten stands in the database as a hold.
 *
 * Not noticed: steps below the slack; a step while nobody looks (every replica down or without the
 * database) unless a replica comes back in the same boot, whose last sample stands in the database.
 */
#ifndef RS_CLOCK_GUARD_H
#define RS_CLOCK_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

#define CLOCK_GUARD_SLACK_US 2000000
#define CLOCK_GUARD_PPM      500

/* The database's clock showed `said` at some time between two instants. */
struct clock_sample {
    utc_us said;
    instant before, after;
};

enum clock_verdict {
    CLOCK_FIRST,   /* nothing to compare with: it is the measure from now on */
    CLOCK_GOOD,    /* as far as the sample can tell */
    CLOCK_STEPPED, /* beyond all bounds, now or before: suspect until it is settled */
};

/* Zero-initialised it has seen nothing. One owner, or one mutex. */
struct clock_guard {
    struct clock_sample measure;
    bool measured;
    bool suspect;
    int64_t step_us; /* of the sample that made it so: positive is forward */
};

/* Samples of several threads may come out of order. Never fails. */
enum clock_verdict clock_guard_take(struct clock_guard *g, struct clock_sample sample);

/* It was judged: what this sample says is the measure. */
void clock_guard_settle(struct clock_guard *g, struct clock_sample sample);

/* Somebody else knows of a step. */
void clock_guard_doubt(struct clock_guard *g, int64_t step_us);

/* How far the wall clock is ahead of the database's, to half a round trip. `wall` was read when the
 * answer had come. For people and for the second source; no verdict depends on it. */
int64_t clock_sample_offset_us(const struct clock_sample *sample, wall_us wall);

int64_t clock_sample_round_trip_us(const struct clock_sample *sample);

/* CLOCK_BOOTTIME in the middle of the question, in microseconds. */
int64_t clock_sample_boot_us(const struct clock_sample *sample);

#endif
