/* Judges a history by the invariants of docs/guarantees.md, and by nothing that the product's code
 * says.
 *
 * After every step of the world: I1 to I9 and I11 (I10 and I12 are not about histories), the
 * rules of overlap and capacity (docs/architecture.md), holds, and the order of candidates. At
 * FACT_END liveness: with faults over since checker_bound(), each scope that no hold stops has one
 * ACTIVE scheduler, and every due firing has its occurrence or gap.
 *
 * A lossy failover makes the surviving database the baseline: the checker forgets the rows of
 * commits that a FACT_LOST names, and what had been done on their strength is not counted. */
#ifndef RS_CHECKER_H
#define RS_CHECKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history.h"

#define VIOLATION_TEXT_MAX 400

struct violation {
    const char *invariant; /* "I1" to "I11", "overlap", "capacity", "hold", "order", "liveness" */
    size_t fact;           /* index in the history */
    char text[VIOLATION_TEXT_MAX];
};

struct checker;

/* Borrows the history for its life. Owns: checker_free (NULL is fine). Aborts when out of memory.
 */
struct checker *checker_new(const struct history *h);
void checker_free(struct checker *c);

/* Judge the facts added since the last call. False: a violation was found, now or before;
 * *ret_violation (NULL is fine) is the first one. */
bool checker_step(struct checker *c, const struct violation **ret_violation);

/* How much the checker has judged, for the run's summary: a run that never saw a takeover proves
 * nothing about takeovers. */
struct checker_tally {
    int64_t facts, calls, fenced, establishes, takeovers, occurrences, gaps, firings_covered,
        claims, reaps, artifacts, failovers, commits_lost, resumes;
};
struct checker_tally checker_tally(const struct checker *c);

/* Within what time after the last fault there must be one leader per scope and nothing due left
 * over. Units: microseconds. */
int64_t checker_bound(const struct setup *setup);

#endif
