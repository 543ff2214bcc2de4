/* PostgreSQL adapter of store_retention.h. */
#include <stdio.h>
#include <string.h>

#include "store_pg_plan.h"
#include "store_retention.h"

enum status store_prune(const struct store_call *call, size_t limit,
                        struct pruned ret_tables[RETENTION_TABLES], size_t *ret_count,
                        struct error *err)
{
    static const char sql[] = "SELECT verdict, pruned_table, pruned FROM reports.prune($1, "
                              "$2::bigint, $3::bigint, $4::uuid, $5::integer)";
    struct authority_text text;
    const char *values[AUTHORITY_VALUES + 1];
    char count[24];
    (void)snprintf(count, sizeof count, "%zu", limit);
    authority_values(call->authority, &text, values);
    values[AUTHORITY_VALUES] = count;
    PGresult *r = NULL;
    enum status s =
        store_pg_query(call->store, sql, AUTHORITY_VALUES + 1, values, call->deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    s = PQntuples(r) > 0 ? verdict_status(PQgetvalue(r, 0, 0), err)
                         : error_set(err, STATUS_CORRUPT, "prune answered nothing");
    *ret_count = 0;
    for (int i = 0; s == STATUS_OK && i < PQntuples(r) && *ret_count < RETENTION_TABLES; i++) {
        struct pruned *t = &ret_tables[(*ret_count)++];
        store_pg_text(r, i, 1, t->table, sizeof t->table);
        t->rows = (size_t)store_pg_int(r, i, 2);
    }
    PQclear(r);
    return s;
}
