/* Release of a killed worker's claims in PostgreSQL. */
#include <string.h>

#include <libpq-fe.h>

#include "store_pg.h"
#include "store_release.h"

enum status store_release_claims(struct store *store, const char *worker, instant deadline,
                                 struct released_claims *ret_released, struct error *err)
{
    const char *values[] = {worker};
    char verdict[16];
    PGresult *r = NULL;
    enum status s =
        store_pg_query(store, "SELECT verdict, released, remaining FROM reports.release_claims($1)",
                       1, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    store_pg_text(r, 0, 0, verdict, sizeof verdict);
    *ret_released = (struct released_claims){.known = strcmp(verdict, "unknown") != 0,
                                             .ended_before = strcmp(verdict, "ended") == 0,
                                             .jobs = store_pg_int(r, 0, 1),
                                             .remaining = store_pg_int(r, 0, 2)};
    PQclear(r);
    return STATUS_OK;
}
