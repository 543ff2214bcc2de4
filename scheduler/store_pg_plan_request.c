/* PostgreSQL adapter of store_plan.h: requests. */
#include "store_pg_plan.h"

#include <stdio.h>
#include <string.h>

#define TEXT_OF(number)  TEXT_OF_(number)
#define TEXT_OF_(number) #number

enum status store_pending_requests(const struct store_call *call, struct request_rows *ret_rows,
                                   struct error *err)
{
    static const char sql[] = "SELECT id, kind, schedule, expired, database_now "
                              "FROM reports.pending_requests($1, " TEXT_OF(REQUESTS_MAX) ")";
    const char *values[] = {call->authority->scope};
    PGresult *r = NULL;
    enum status s = store_pg_query(call->store, sql, 1, values, call->deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    ret_rows->count = 0;
    for (int i = 0; i < PQntuples(r) && ret_rows->count < REQUESTS_MAX; i++) {
        struct request_row *q = &ret_rows->rows[ret_rows->count++];
        store_pg_text(r, i, 0, q->id, sizeof q->id);
        store_pg_text(r, i, 1, q->kind, sizeof q->kind);
        store_pg_text(r, i, 2, q->schedule, sizeof q->schedule);
        q->expired = store_pg_bool(r, i, 3);
        q->now = cell_time(r, i, 4, NULL);
    }
    PQclear(r);
    return s;
}

enum status store_answer_trigger(const struct store_call *call, const char *request,
                                 const char *job_id, struct error *err)
{
    static const char sql[] =
        "SELECT CASE verdict WHEN 'skipped' THEN 'ok' ELSE verdict END FROM "
        "reports.answer_trigger($1, $2::bigint, $3::bigint, $4::uuid, $5::uuid, $6::uuid)";
    struct authority_text text;
    const char *values[AUTHORITY_VALUES + 2];
    authority_values(call->authority, &text, values);
    values[4] = request;
    values[5] = job_id;
    return verdict_query(call, sql, 6, values, err);
}

enum status store_expire_request(const struct store_call *call, const char *request,
                                 struct error *err)
{
    static const char sql[] =
        "SELECT reports.expire_request($1, $2::bigint, $3::bigint, $4::uuid, $5::uuid)";
    struct authority_text text;
    const char *values[AUTHORITY_VALUES + 1];
    authority_values(call->authority, &text, values);
    values[4] = request;
    return verdict_query(call, sql, 5, values, err);
}
