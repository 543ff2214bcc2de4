/* A list of claims, oldest first, linked through the claims themselves: each is in one list at
 * most. No locks, no memory of its own. */
#ifndef RS_CLAIM_LIST_H
#define RS_CLAIM_LIST_H

#include <stddef.h>

struct claim;

struct claim_list {
    struct claim *first, *last;
    size_t count;
};

void claim_list_append(struct claim_list *list, struct claim *e);
void claim_list_remove(struct claim_list *list, struct claim *e);

#endif
