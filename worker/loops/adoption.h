/* After a claim whose answer was lost: what does the database say we hold, and which of it is to be
 * begun? Only what this process has never begun, and nothing that a hold stands on: both are what a
 * restored dump may show as running. What ended here is left to lapse, what is held is asked for
 * again. For the poll thread. */
#ifndef RS_ADOPTION_H
#define RS_ADOPTION_H

#include "worker.h"

struct adoption {
    struct worker *w;
    instant look_at; /* INSTANT_NEVER: nothing was lost */
    bool look_again; /* and once more when a late one must have come or gone */
    struct trouble ended_told, held_told;
};

/* An answer may have been lost. */
void adoption_doubt(struct adoption *a);

bool adoption_is_due(const struct adoption *a);

/* The claims to be begun now; their leases begin no earlier than *ret_sent. Owns: the list, which
 * is empty when the database could not be asked; that is tried again. Blocks: up to 10 s. */
void adoption_look(struct adoption *a, struct store *store, const char *incarnation,
                   struct job_list *ret_jobs, instant *ret_sent);

/* The jobs that `count` claims are of, as "a:k,b:k", at most some of them; for the log. */
struct claim_names {
    char text[400];
};
struct claim_names claim_names(struct job *const *jobs, size_t count);

#endif
