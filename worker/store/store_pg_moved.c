#include "store_claim.h"
#include "store_pg.h"

enum status store_moved_scopes(struct store *store, instant deadline, char *ret_scopes, size_t size,
                               struct error *err)
{
    PGresult *r = NULL;
    enum status s = store_pg_query(store,
                                   "SELECT string_agg(scope, ' ' ORDER BY scope)"
                                   " FROM reports.v_moved_scope",
                                   0, NULL, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    store_pg_text(r, 0, 0, ret_scopes, size);
    PQclear(r);
    return STATUS_OK;
}
