/* What the clock witness tells the database, over the store port. One server function, one round
 * trip, autocommit, unfenced: who testifies need not lead. Thread: the connection's owner. Blocks:
 * until its deadline. */
#ifndef RS_STORE_CLOCK_H
#define RS_STORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "clock_guard.h"
#include "store.h"

/* Borrowed for the call. */
struct clock_note {
    const char *member;
    const char *boot; /* identity of this boot of the machine */
    struct clock_sample sample;
    int64_t offset_us;    /* clock_sample_offset_us */
    enum clock_kept kept; /* the wall clock, by the kernel */
};

enum clock_ruling {
    CLOCK_NOTED, /* no step between this member's samples */
    CLOCK_STALE, /* not taken: too late, or too soon after the last; bring another one */
    CLOCK_WAITS, /* a step, and other machines are yet to be heard */
    CLOCK_RAISED,
    CLOCK_KNOWN, /* a hold had been raised for it before */
    CLOCK_OWN,   /* refuted: it was this machine that was stopped */
};
#define CLOCK_RULINGS ((size_t)CLOCK_OWN + 1)

/* "noted", "stale" ... Never NULL. */
const char *clock_ruling_name(enum clock_ruling ruling);

struct clock_answer {
    enum clock_ruling ruling;
    int64_t step_us; /* that was ruled on; 0: none */
    int64_t hold;    /* number of the clock hold that stands; 0: none */
    bool lifted;     /* one was lifted by this */
};

/* Returns: OK; AGAIN; TIMEOUT (unknown: bring another sample); CORRUPT. */
MUST_USE enum status store_note_clock(struct store *store, const struct clock_note *note,
                                      instant deadline, struct clock_answer *ret_answer,
                                      struct error *err);

#endif
