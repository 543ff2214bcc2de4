#include "claim_list.h"

#include "claims.h"

void claim_list_append(struct claim_list *list, struct claim *e)
{
    e->own.before = list->last;
    e->own.behind = NULL;
    if (list->last == NULL) {
        list->first = e;
    } else {
        list->last->own.behind = e;
    }
    list->last = e;
    list->count++;
}

void claim_list_remove(struct claim_list *list, struct claim *e)
{
    if (e->own.before == NULL) {
        list->first = e->own.behind;
    } else {
        e->own.before->own.behind = e->own.behind;
    }
    if (e->own.behind == NULL) {
        list->last = e->own.before;
    } else {
        e->own.behind->own.before = e->own.before;
    }
    list->count--;
}
