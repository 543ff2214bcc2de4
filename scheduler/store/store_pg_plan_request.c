/* PostgreSQL adapter of store_plan.h: requests. */
#include "store_pg_plan.h"

#include <stdio.h>
#include <string.h>

enum status store_pending_requests(const struct store_call *call, size_t limit,
                                   struct request_rows *ret_rows, struct error *err)
{
    static const char sql[] = "SELECT id, kind, subject, database_now "
                              "FROM reports.pending_requests($1, $2::integer)";
    char count[24];
    (void)snprintf(count, sizeof count, "%zu", limit < REQUESTS_MAX ? limit : REQUESTS_MAX);
    const char *values[] = {call->authority->scope, count};
    PGresult *r = NULL;
    enum status s = store_pg_query(call->store, sql, 2, values, call->deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    ret_rows->count = 0;
    for (int i = 0; i < PQntuples(r) && ret_rows->count < REQUESTS_MAX; i++) {
        struct request_row *q = &ret_rows->rows[ret_rows->count++];
        store_pg_text(r, i, 0, q->id, sizeof q->id);
        store_pg_text(r, i, 1, q->kind, sizeof q->kind);
        store_pg_text(r, i, 2, q->subject, sizeof q->subject);
        q->now = cell_time(r, i, 3, NULL);
    }
    PQclear(r);
    return s;
}

enum status store_answer_request(const struct store_call *call, const char *request,
                                 const char *job_id, struct request_verdict *ret_verdict,
                                 struct error *err)
{
    static const char sql[] = "SELECT verdict, answer FROM reports.answer_request($1, $2::bigint, "
                              "$3::bigint, $4::uuid, $5::uuid, $6::uuid)";
    struct authority_text text;
    const char *values[AUTHORITY_VALUES + 2];
    authority_values(call->authority, &text, values);
    values[AUTHORITY_VALUES] = request;
    values[AUTHORITY_VALUES + 1] = job_id;
    PGresult *r = NULL;
    enum status s =
        store_pg_query(call->store, sql, AUTHORITY_VALUES + 2, values, call->deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    const char *verdict = PQgetvalue(r, 0, 0);
    const struct request_verdict answer = {.skipped = strcmp(verdict, "skipped") == 0,
                                           .waits = strcmp(verdict, "wait") == 0,
                                           .leaves = strcmp(verdict, "leave") == 0};
    bool open = answer.skipped || answer.waits || answer.leaves;
    s = open ? STATUS_OK : verdict_status(verdict, err);
    if (s == STATUS_OK) {
        *ret_verdict = answer;
        store_pg_text(r, 0, 1, ret_verdict->text, sizeof ret_verdict->text);
    }
    PQclear(r);
    return s;
}

enum status store_refuse_request(const struct store_call *call, const char *request,
                                 const char *why, struct error *err)
{
    static const char sql[] =
        "SELECT reports.refuse_request($1, $2::bigint, $3::bigint, $4::uuid, $5::uuid, $6)";
    struct authority_text text;
    const char *values[AUTHORITY_VALUES + 2];
    authority_values(call->authority, &text, values);
    values[AUTHORITY_VALUES] = request;
    values[AUTHORITY_VALUES + 1] = why;
    return verdict_query(call, sql, AUTHORITY_VALUES + 2, values, err);
}

enum status store_resume_paused(const struct store_call *call, size_t limit,
                                struct resumed *ret_resumed, struct error *err)
{
    static const char sql[] = "SELECT verdict, resumed, locked, fault FROM reports.resume_paused("
                              "$1, $2::bigint, $3::bigint, $4::uuid, $5::integer)";
    struct authority_text text;
    char count[24];
    const char *values[AUTHORITY_VALUES + 1];
    PGresult *r = NULL;
    authority_values(call->authority, &text, values);
    (void)snprintf(count, sizeof count, "%zu", limit);
    values[4] = count;
    enum status s = store_pg_query(call->store, sql, 5, values, call->deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    s = verdict_status(PQgetvalue(r, 0, 0), err);
    if (s == STATUS_OK) {
        ret_resumed->count = store_pg_int(r, 0, 1);
        store_pg_text(r, 0, 2, ret_resumed->locked, sizeof ret_resumed->locked);
        store_pg_text(r, 0, 3, ret_resumed->fault, sizeof ret_resumed->fault);
    }
    PQclear(r);
    return s;
}
