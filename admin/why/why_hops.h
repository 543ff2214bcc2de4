/* The steps that led from a rule to a file, or to nothing, in the order of time. Knows no database.
 */
#ifndef RS_WHY_HOPS_H
#define RS_WHY_HOPS_H

#include "clock.h"
#include "status.h"
#include "table.h"

#define WHY_HOPS_MAX  512
#define WHY_STEP_MAX  24
#define WHY_WHAT_MAX  600
#define WHY_PLACE_DUE 2 /* among steps of the same instant; those of SQL say their own */

struct why_hop {
    utc_us at; /* UTC_NONE: not known, behind all others */
    int place; /* among those of the same instant */
    char step[WHY_STEP_MAX];
    char what[WHY_WHAT_MAX];
};

struct why_hops {
    struct why_hop *hops; /* WHY_HOPS_MAX */
    size_t count;
    bool full; /* some were left out */
};

/* Owns: why_hops_done. False: out of memory. */
MUST_USE bool why_hops_init(struct why_hops *h);
void why_hops_done(struct why_hops *h);

void why_hop_add(struct why_hops *h, int place, const char *step, utc_us at, const char *format,
                 ...) PRINTF_LIKE(5, 6);

/* As a table: at, after_s (since the step before), step, what. Owns: table_free. NULL: out of
 * memory. */
struct table *why_hops_table(struct why_hops *h);

#endif
