/* What the observer asks of the database: facts about scopes that do not depend on who leads
 * (reports.scope_figures). */
#ifndef RS_STORE_FIGURES_H
#define RS_STORE_FIGURES_H

#include <stddef.h>

#include "clock.h"
#include "ident.h"
#include "status.h"
#include "store.h"

/* One number. `name` is that of the metric without its prefix. */
struct figure {
    char scope[NAME_MAX_BYTES];
    char name[48];
    char label[NAME_MAX_BYTES]; /* the second label's value; "" where the metric has none */
    double value;
};

#define FIGURES_A_SCOPE 280 /* two dozen, and two for each of at most 100 queues; holds */

struct figure_request {
    const char *const *scopes;
    size_t scope_count;
};

struct figure_list {
    struct figure *rows; /* room for `max`, the caller's */
    size_t count, max;   /* what does not fit is left out */
};

/* All figures of the scopes by one statement. A scope that does not exist has none.
 * Returns: OK; AGAIN; TIMEOUT; INVALID (an older schema has no such function). Thread: owner.
 * Blocks: until deadline. */
MUST_USE enum status store_figures(struct store *store, const struct figure_request *request,
                                   instant deadline, struct figure_list *ret_figures,
                                   struct error *err);

#endif
