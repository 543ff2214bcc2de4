/* Says once why nothing is claimed after PostgreSQL was restarted, failed over or copied: no leader
 * has looked at this server yet. The database decides that (reports.v_moved_scope); this only
 * tells. */
#ifndef RS_MOVED_H
#define RS_MOVED_H

#include "store.h"

struct moved {
    char scopes[256]; /* as last told; "" : none */
    instant ask_at;
};

/* After a claim that brought nothing. Asks every few seconds. Thread: the store's owner.
 * Blocks: until its deadline. */
void moved_tell(struct moved *m, struct store *store);

#endif
