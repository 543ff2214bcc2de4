/* The firings a recipe names, by this file's own arithmetic: nothing of the product's rule, cron,
 * zone or key code is used. Pure. */
#ifndef RS_ENUMERATE_H
#define RS_ENUMERATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "history.h"

struct due {
    int64_t fire_us;
    char key[HISTORY_KEY_MAX];
};

/* The first firing strictly after `after_us` and before the recipe's end; false: there is none
 * within forty days. What is paused or ended fires all the same here: the caller decides what it
 * means. */
bool due_after(const struct recipe *r, int64_t after_us, struct due *ret_due);

/* How many firings lie in [from_us, to_us]; counts at most `most`. */
int64_t due_count(const struct recipe *r, int64_t from_us, int64_t to_us, int64_t most);

/* Does the recipe name exactly this firing? With its key. */
bool due_at(const struct recipe *r, int64_t fire_us, struct due *ret_due);

#endif
