/* Connecting within a bound, for store_pg*.c. libpq looks host names up inside PQconnectStartParams
 * and PQconnectPoll, and a resolver that hangs, which by its own defaults it does for 30 s and
 * more, hangs them with it. So each connection is made on a thread of its own, which is left behind
 * when it hangs. (Passing hostaddr would mean to read service files, defaults and lists of hosts as
 * libpq does; and GSSAPI blocks there, too.) */
#ifndef RS_STORE_PG_CONNECT_H
#define RS_STORE_PG_CONNECT_H

#include <libpq-fe.h>

#include "clock.h"
#include "status.h"

#define STORE_PG_KEYS_MAX    8 /* of a connection, with the NULL behind the last */
#define STORE_PG_HANGING_MAX 4 /* lookups left behind for one target; then none is begun */

struct store_pg_target {
    const char *const *keys; /* as for PQconnectStartParams with expand_dbname; copied */
    const char *const *values;
    instant deadline;
    int wake_fd; /* -1: none; readable: give up as at the deadline */
};

/* Owns: *ret_connection, PQfinish; look at PQstatus: the server may have refused it.
 * Returns: OK; TIMEOUT (the text says whether the lookup or the server was waited for); AGAIN
 * (lookups for the same target still hang); FATAL (memory, threads, descriptors).
 * Thread: any. Blocks: until the deadline or the wake-up. */
MUST_USE enum status store_pg_connect(const struct store_pg_target *target, PGconn **ret_connection,
                                      struct error *err);

#endif
