/* What every call of the leader to the database has in common. Borrowed for the call. */
#ifndef RS_STORE_CALL_H
#define RS_STORE_CALL_H

#include "authority.h"
#include "clock.h"
#include "store.h"

struct store_call {
    struct store *store;
    const struct authority *authority; /* who writes; its scope is used by reads too */
    instant deadline;
};

#endif
