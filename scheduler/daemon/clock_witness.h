/* A replica's witness of the database's clock: samples it, shows how far the own clock is from it,
 * testifies, and settles the clock watch by what is ruled. Part of the observer's thread. */
#ifndef RS_CLOCK_WITNESS_H
#define RS_CLOCK_WITNESS_H

#include "clock_watch.h"
#include "store.h"
#include "store_clock.h"

#define CLOCK_BOOT_MAX 64

/* Strings and the watch are borrowed. */
struct clock_witness {
    struct clock_watch *watch; /* NULL: there is no guard, and turns do nothing */
    const char *member;
    char boot[CLOCK_BOOT_MAX];
    instant sample_at; /* when it wants its next turn; INSTANT_NEVER: it wants none */
    instant note_at;
    int64_t hold;           /* that stood when last heard; 0: none */
    enum clock_ruling last; /* of the step that waits, or waited */
};

void clock_witness_begin(struct clock_witness *w, struct clock_watch *watch, const char *member);

/* Sample, and tell the database where it is time to.
 * Returns: OK; AGAIN, TIMEOUT, CORRUPT: tried again at sample_at. Blocks: two statements. */
MUST_USE enum status clock_witness_turn(struct clock_witness *w, struct store *store,
                                        int64_t statement_ms, struct error *err);

/* Something is suspect: the next turn is due now. */
void clock_witness_hurry(struct clock_witness *w);

#endif
