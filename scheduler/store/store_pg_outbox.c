/* PostgreSQL adapter of store_outbox.h. */
#include "store_outbox.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store_pg_plan.h"

enum status store_outbox_register(const struct store_call *call, struct error *err)
{
    /* The outbox is empty when statistics are taken, as a rule: for "few rows" a backlog would be
     * read and sorted whole for each fetch. Its index has the rows in the order wanted. */
    static const char sql[] =
        "SELECT reports.register_backend($1, $2::bigint, $3::bigint, $4::uuid, 'relay'), "
        "set_config('enable_sort', 'off', false), set_config('enable_seqscan', 'off', false), "
        "set_config('enable_bitmapscan', 'off', false)";
    struct authority_text text;
    const char *values[AUTHORITY_VALUES];
    authority_values(call->authority, &text, values);
    return verdict_query(call, sql, AUTHORITY_VALUES, values, err);
}

/* ---- Cells in binary form: less work for the server and for us than text ----------------------
 */

#define EPOCH_S   INT64_C(946684800)    /* PostgreSQL counts from 2000-01-01 */
#define OLDEST_S  INT64_C(-62135596800) /* the years 1 to 9999 are instants of ours */
#define NEWEST_S  INT64_C(253402300799)
#define S_IN_US   INT64_C(1000000)
#define UUID_SIZE 16

static int64_t binary_int(const PGresult *r, int row, int column)
{
    uint64_t wide = 0;
    uint32_t narrow = 0;
    if (PQgetlength(r, row, column) == (int)sizeof wide) {
        memcpy(&wide, PQgetvalue(r, row, column), sizeof wide);
        return (int64_t)be64toh(wide);
    }
    if (PQgetlength(r, row, column) == (int)sizeof narrow) {
        memcpy(&narrow, PQgetvalue(r, row, column), sizeof narrow);
        return (int32_t)be32toh(narrow);
    }
    return 0;
}

static utc_us binary_time(const PGresult *r, int row, int column)
{
    int64_t us = binary_int(r, row, column);
    if (us == INT64_MAX) {
        return UTC_UNBOUNDED;
    }
    if (us == INT64_MIN) {
        return UTC_PAST;
    }
    bool ours = us >= (OLDEST_S - EPOCH_S) * S_IN_US && us < (NEWEST_S + 1 - EPOCH_S) * S_IN_US;
    return ours ? (utc_us){us + EPOCH_S * S_IN_US} : UTC_NONE;
}

static void binary_text(const PGresult *r, int row, int column, char *ret_text, size_t size)
{
    size_t n = (size_t)PQgetlength(r, row, column);
    n = n < size ? n : size - 1;
    memcpy(ret_text, PQgetvalue(r, row, column), n);
    ret_text[n] = '\0';
}

static void binary_uuid(const PGresult *r, int row, int column, char ret_text[UUID_TEXT_MAX])
{
    static const char digits[] = "0123456789abcdef";
    char *at = ret_text;
    for (int i = 0; i < UUID_SIZE && PQgetlength(r, row, column) == UUID_SIZE; i++) {
        unsigned byte = (unsigned char)PQgetvalue(r, row, column)[i];
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *at++ = '-';
        }
        *at++ = digits[byte >> 4];
        *at++ = digits[byte & 15];
    }
    *at = '\0';
}

static void row_fill(const PGresult *r, int i, struct outbox_row *row, const char *scope)
{
    struct message *m = &row->message;
    row->id = binary_int(r, i, 0);
    binary_uuid(r, i, 1, m->job_id);
    m->dispatch_number = (int32_t)binary_int(r, i, 2);
    binary_text(r, i, 3, m->schedule, sizeof m->schedule);
    binary_text(r, i, 4, m->occurrence_key, sizeof m->occurrence_key);
    binary_text(r, i, 5, m->queue, sizeof m->queue);
    m->scheduled_for = binary_time(r, i, 6);
    m->generation = binary_int(r, i, 7);
    row->created_at = binary_time(r, i, 8);
    memcpy(m->scope, scope, strlen(scope) + 1); /* of the same bound */
}

/* ---- Fetch ------------------------------------------------------------------------------------
 */

enum status store_outbox_fetch_send(const struct store_call *call, int64_t low, size_t limit,
                                    struct error *err)
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
    const struct store_pg_statement statement = {sql, 3, values, true};
    return store_pg_send(call->store, &statement, call->deadline, err);
}

enum status store_outbox_fetch_take(const struct store_call *call, size_t limit,
                                    struct outbox_row *ret_rows, size_t *ret_count,
                                    struct error *err)
{
    PGresult *r = NULL;
    enum status s = store_pg_take(call->store, call->deadline, &r, err);
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

enum status store_outbox_fetch(const struct store_call *call, int64_t low, size_t limit,
                               struct outbox_row *ret_rows, size_t *ret_count, struct error *err)
{
    enum status s = store_outbox_fetch_send(call, low, limit, err);
    return s == STATUS_OK ? store_outbox_fetch_take(call, limit, ret_rows, ret_count, err) : s;
}

bool store_outbox_is_answered(struct store *store)
{
    return store_pg_answered(store);
}

/* ---- Acknowledge ------------------------------------------------------------------------------
 */

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

enum status store_outbox_ack_send(const struct store_call *call, const int64_t *ids, size_t count,
                                  struct error *err)
{
    static const char sql[] =
        "SELECT a.verdict, s.id FROM reports.outbox_ack($1, $2::bigint, $3::bigint, $4::uuid, "
        "$5::bigint[]) a LEFT JOIN LATERAL unnest(a.stays) AS s (id) ON true";
    struct store_pg_array list = {0};
    for (size_t i = 0; i < count; i++) {
        store_pg_array_add_int(&list, ids[i]);
    }
    struct authority_text text;
    const char *values[AUTHORITY_VALUES + 1];
    authority_values(call->authority, &text, values);
    values[4] = store_pg_array_text(&list);
    const struct store_pg_statement statement = {sql, 5, values, false};
    enum status s = values[4] == NULL ? error_set(err, STATUS_AGAIN, "out of memory")
                                      : store_pg_send(call->store, &statement, call->deadline, err);
    store_pg_array_free(&list);
    return s;
}

enum status store_outbox_ack_take(const struct store_call *call, int64_t *ids, size_t *count,
                                  struct error *err)
{
    PGresult *r = NULL;
    enum status s = store_pg_take(call->store, call->deadline, &r, err);
    if (s == STATUS_OK) {
        s = verdict_status(PQgetvalue(r, 0, 0), err);
        if (s == STATUS_OK) {
            *count = stays_read(r, ids, *count);
        }
        PQclear(r);
    }
    return s;
}

enum status store_outbox_ack(const struct store_call *call, int64_t *ids, size_t *count,
                             struct error *err)
{
    enum status s = store_outbox_ack_send(call, ids, *count, err);
    return s == STATUS_OK ? store_outbox_ack_take(call, ids, count, err) : s;
}

/* ---- The rest ---------------------------------------------------------------------------------
 */

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
