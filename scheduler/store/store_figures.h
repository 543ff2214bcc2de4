/* What the observer asks of the database: facts about scopes that do not depend on who leads
 * (reports.scope_figures). */
#ifndef RS_STORE_FIGURES_H
#define RS_STORE_FIGURES_H

#include <stdbool.h>
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

/* What somebody should look at (reports.problem_list), most urgent first; the texts are cut at
 * their sizes. */
#define PROBLEMS_MAX 20

struct problem {
    char kind[24];
    char subject[NAME_MAX_BYTES];
    char text[400];
    char remedy[300];
};

struct problem_list {
    struct problem rows[PROBLEMS_MAX];
    size_t count;
    bool more; /* than these */
};

/* Returns, Thread, Blocks: as store_figures. */
MUST_USE enum status store_problems(struct store *store, instant deadline,
                                    struct problem_list *ret_problems, struct error *err);

#endif
