/* PostgreSQL adapter of store_outbox.h. */
#include "store_outbox.h"

#include <inttypes.h>
#include <stdio.h>

#include "store_pg_plan.h"

enum status store_outbox_register(const struct store_call *call, struct error *err)
{
    struct authority_text text;
    const char *values[AUTHORITY_VALUES];
    authority_values(call->authority, &text, values);
    return verdict_query(
        call, "SELECT reports.register_backend($1, $2::bigint, $3::bigint, $4::uuid, 'relay')",
        AUTHORITY_VALUES, values, err);
}

static void row_fill(const PGresult *r, int i, struct outbox_row *row, const char *scope)
{
    struct message *m = &row->message;
    row->id = store_pg_int(r, i, 0);
    store_pg_text(r, i, 1, m->job_id, sizeof m->job_id);
    m->dispatch_number = (int32_t)store_pg_int(r, i, 2);
    store_pg_text(r, i, 3, m->schedule, sizeof m->schedule);
    store_pg_text(r, i, 4, m->occurrence_key, sizeof m->occurrence_key);
    store_pg_text(r, i, 5, m->queue, sizeof m->queue);
    m->scheduled_for = cell_time(r, i, 6, NULL);
    m->generation = store_pg_int(r, i, 7);
    row->created_at = cell_time(r, i, 8, NULL);
    (void)snprintf(m->scope, sizeof m->scope, "%s", scope);
}

enum status store_outbox_fetch(const struct store_call *call, int64_t low, size_t limit,
                               struct outbox_row *ret_rows, size_t *ret_count, struct error *err)
{
    /* `id > low` is what keeps the scan away from dead rows at the head of the index. */
    static const char sql[] =
        "SELECT id, job_id, dispatch_number, schedule, occurrence_key, queue, scheduled_for, "
        "generation, created_at FROM reports.outbox WHERE scope = $1 AND id > $2::bigint "
        "ORDER BY id LIMIT $3::integer";
    char bound[24];
    char count[24];
    (void)snprintf(bound, sizeof bound, "%" PRId64, low);
    (void)snprintf(count, sizeof count, "%zu", limit);
    const char *values[] = {call->authority->scope, bound, count};
    PGresult *r = NULL;
    enum status s = store_pg_query(call->store, sql, 3, values, call->deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    size_t n = 0;
    for (int i = 0; i < PQntuples(r) && n < limit; i++) {
        row_fill(r, i, &ret_rows[n++], call->authority->scope);
    }
    *ret_count = n;
    PQclear(r);
    return STATUS_OK;
}

static size_t stays_read(const PGresult *r, int64_t *ids, size_t most)
{
    size_t n = 0;
    for (int i = 0; i < PQntuples(r) && n < most; i++) {
        if (PQgetisnull(r, i, 1) == 0) {
            ids[n++] = store_pg_int(r, i, 1);
        }
    }
    return n;
}

enum status store_outbox_ack(const struct store_call *call, int64_t *ids, size_t *count,
                             struct error *err)
{
    static const char sql[] =
        "SELECT a.verdict, s.id FROM reports.outbox_ack($1, $2::bigint, $3::bigint, $4::uuid, "
        "$5::bigint[]) a LEFT JOIN LATERAL unnest(a.stays) AS s (id) ON true";
    struct store_pg_array list = {0};
    for (size_t i = 0; i < *count; i++) {
        store_pg_array_add_int(&list, ids[i]);
    }
    struct authority_text text;
    const char *values[AUTHORITY_VALUES + 1];
    authority_values(call->authority, &text, values);
    values[4] = store_pg_array_text(&list);
    PGresult *r = NULL;
    enum status s = values[4] == NULL
                        ? error_set(err, STATUS_AGAIN, "out of memory")
                        : store_pg_query(call->store, sql, 5, values, call->deadline, &r, err);
    store_pg_array_free(&list);
    if (s == STATUS_OK) {
        s = verdict_status(PQgetvalue(r, 0, 0), err);
        if (s == STATUS_OK) {
            *count = stays_read(r, ids, *count);
        }
        PQclear(r);
    }
    return s;
}

enum status store_outbox_bury(const struct store_call *call, int64_t id, const char *reason,
                              bool *ret_buried, struct error *err)
{
    static const char sql[] =
        "SELECT verdict, buried FROM reports.outbox_bury($1, $2::bigint, $3::bigint, $4::uuid, "
        "ARRAY[$5::bigint], ARRAY[$6::text])";
    struct authority_text text;
    char number[24];
    const char *values[AUTHORITY_VALUES + 2];
    authority_values(call->authority, &text, values);
    (void)snprintf(number, sizeof number, "%" PRId64, id);
    values[4] = number;
    values[5] = reason;
    PGresult *r = NULL;
    enum status s = store_pg_query(call->store, sql, 6, values, call->deadline, &r, err);
    if (s == STATUS_OK) {
        s = verdict_status(PQgetvalue(r, 0, 0), err);
        if (s == STATUS_OK) {
            *ret_buried = store_pg_int(r, 0, 1) > 0;
        }
        PQclear(r);
    }
    return s;
}

enum status store_outbox_trim(const struct store_call *call, int64_t keep, int64_t *ret_dropped,
                              struct error *err)
{
    struct authority_text text;
    char number[24];
    const char *values[AUTHORITY_VALUES + 1];
    authority_values(call->authority, &text, values);
    (void)snprintf(number, sizeof number, "%" PRId64, keep);
    values[4] = number;
    PGresult *r = NULL;
    enum status s = store_pg_query(call->store,
                                   "SELECT verdict, dropped FROM reports.outbox_trim($1, "
                                   "$2::bigint, $3::bigint, $4::uuid, $5::bigint)",
                                   5, values, call->deadline, &r, err);
    if (s == STATUS_OK) {
        s = verdict_status(PQgetvalue(r, 0, 0), err);
        if (s == STATUS_OK) {
            *ret_dropped = store_pg_int(r, 0, 1);
        }
        PQclear(r);
    }
    return s;
}
