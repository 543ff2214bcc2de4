/* Cancelling a statement within a bound, for store_pg*.c. PQcancel waits for the postmaster to
 * close the connection that it makes, and a postmaster that is stopped, or whose host hangs behind
 * a live kernel, never does: the thread that gave a statement up at its deadline would hang in the
 * cancel. So the cancel has a thread of its own, which is left behind when it hangs, at most one a
 * connection. (PostgreSQL 17 has a cancel that does not block: PQcancelStart.) */
#ifndef RS_STORE_PG_CANCEL_H
#define RS_STORE_PG_CANCEL_H

#include <libpq-fe.h>

#include "clock.h"

struct store_pg_cancel;

/* Owns: store_pg_cancel_free (NULL is fine; one that is on its way stays until it has ended).
 * NULL: no memory, or not connected. */
struct store_pg_cancel *store_pg_cancel_new(PGconn *connection);
void store_pg_cancel_free(struct store_pg_cancel *c);

/* Ask the server to cancel what runs on the connection. Best effort: a statement that has ended
 * meanwhile is no error. Thread: any, while it is not freed. Blocks: until deadline. */
void store_pg_cancel_ask(struct store_pg_cancel *c, instant deadline);

#endif
