/* Schedules that the planner leaves alone for a while, so that one that is locked, slow or
 * poisonous stops nothing else (invariant I12) and is not tried in a busy loop. Pure; bounded. */
#ifndef RS_PLANNING_REST_H
#define RS_PLANNING_REST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "ident.h"

#define REST_MAX         1000
#define REST_MS          1000  /* after a skip (locked, changed) */
#define REST_LONGEST_MS  60000 /* failures alone double it up to here */
#define REST_STRIKES_MAX 3     /* failures alone until the schedule itself is to blame */

struct rest {
    char schedule[NAME_MAX_BYTES];
    instant until;
    unsigned failures;    /* alone, in a row */
    uint64_t writes_then; /* successful writes of others before the first of them */
};

struct rest_table {
    struct rest entries[REST_MAX];
    size_t count;
};

void rest_clear(struct rest_table *t);

/* NULL when there is no entry. Borrowed until the next change. An entry whose time is over still
 * remembers its failures. */
const struct rest *rest_find(const struct rest_table *t, const char *schedule);
bool rest_is_on(const struct rest_table *t, const char *schedule, instant now);

/* Skipped: locked or changed meanwhile. */
void rest_skip(struct rest_table *t, const char *schedule, instant now);

/* Failed alone. `writes` counts all successful writes so far. True: it failed REST_STRIKES_MAX
 * times while others succeeded: not the database, the schedule is to blame. */
bool rest_fail(struct rest_table *t, const char *schedule, instant now, uint64_t writes);

/* It was written: nothing is held against it. */
void rest_forget(struct rest_table *t, const char *schedule);

/* How many rest now. */
size_t rest_count(const struct rest_table *t, instant now);

#endif
