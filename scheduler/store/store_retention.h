/* Port: what the leader forgets (sql/0010_retention.sql). Adapter: store_pg_retention.c. Thread:
 * the connection's owner. Blocks: until call->deadline. */
#ifndef RS_STORE_RETENTION_H
#define RS_STORE_RETENTION_H

#include <stddef.h>

#include "status.h"
#include "store_call.h"

#define RETENTION_TABLES 16

struct pruned {
    char table[64];
    size_t rows;
};

/* At most `limit` rows of each table. Returns: OK; FENCED; AGAIN; TIMEOUT; INVALID. */
MUST_USE enum status store_prune(const struct store_call *call, size_t limit,
                                 struct pruned ret_tables[RETENTION_TABLES], size_t *ret_count,
                                 struct error *err);

#endif
