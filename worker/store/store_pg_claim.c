/* Claims in PostgreSQL: register, claim, renew. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "civil.h"
#include "store_claim.h"
#include "store_pg.h"

/* Parameters come as [name, type, text] beside the object itself, so that a number keeps its digits
 * and its type is told by the server. */
#define CLAIMED_COLUMNS                                                                            \
    "SELECT c.job_id, c.token, c.attempt, c.scope, c.schedule, c.occurrence_key, c.revision,"      \
    " c.scheduled_for, c.business_date, c.window_start, c.window_end, c.cause, c.timeout_ms,"      \
    " c.report, c.kind, c.data_source, c.query, c.format, c.program, c.parameters,"                \
    " (SELECT coalesce(jsonb_agg(jsonb_build_array(e.key, jsonb_typeof(e.value),"                  \
    " e.value #>> '{}')), '[]') FROM jsonb_each(c.parameters) e), c.late_us, c.waited_us FROM "

enum {
    COLUMN_ID,
    COLUMN_TOKEN,
    COLUMN_ATTEMPT,
    COLUMN_SCOPE,
    COLUMN_SCHEDULE,
    COLUMN_KEY,
    COLUMN_REVISION,
    COLUMN_SCHEDULED_FOR,
    COLUMN_BUSINESS_DATE,
    COLUMN_WINDOW_START,
    COLUMN_WINDOW_END,
    COLUMN_CAUSE,
    COLUMN_TIMEOUT,
    COLUMN_REPORT,
    COLUMN_KIND,
    COLUMN_DATA_SOURCE,
    COLUMN_QUERY,
    COLUMN_FORMAT,
    COLUMN_PROGRAM,
    COLUMN_PARAMETERS,
    COLUMN_PARAMETER_LIST,
    COLUMN_LATE,
    COLUMN_WAITED,
};

static void instant_text(const PGresult *r, int row, int column, char to[JOB_TIME_MAX])
{
    utc_us t;
    to[0] = '\0';
    if (PQgetisnull(r, row, column) == 0 && store_pg_time_parse(PQgetvalue(r, row, column), &t)) {
        rfc3339_format_utc(t, to);
    }
}

static char *text_copy(const PGresult *r, int row, int column)
{
    return PQgetisnull(r, row, column) != 0 ? NULL : strdup(PQgetvalue(r, row, column));
}

static struct job *job_read(const PGresult *r, int row)
{
    struct job *j = job_new();
    if (j == NULL) {
        return NULL;
    }
    store_pg_text(r, row, COLUMN_ID, j->id, sizeof j->id);
    store_pg_text(r, row, COLUMN_TOKEN, j->token, sizeof j->token);
    j->attempt = store_pg_int(r, row, COLUMN_ATTEMPT);
    j->revision = store_pg_int(r, row, COLUMN_REVISION);
    j->timeout_ms = store_pg_int(r, row, COLUMN_TIMEOUT);
    j->late_us = store_pg_int(r, row, COLUMN_LATE);
    j->waited_us = store_pg_int(r, row, COLUMN_WAITED);
    j->received_at = clock_now();
    store_pg_text(r, row, COLUMN_SCOPE, j->scope, sizeof j->scope);
    store_pg_text(r, row, COLUMN_SCHEDULE, j->schedule, sizeof j->schedule);
    store_pg_text(r, row, COLUMN_KEY, j->occurrence_key, sizeof j->occurrence_key);
    store_pg_text(r, row, COLUMN_BUSINESS_DATE, j->business_date, sizeof j->business_date);
    store_pg_text(r, row, COLUMN_CAUSE, j->cause, sizeof j->cause);
    store_pg_text(r, row, COLUMN_REPORT, j->report, sizeof j->report);
    store_pg_text(r, row, COLUMN_KIND, j->kind, sizeof j->kind);
    store_pg_text(r, row, COLUMN_DATA_SOURCE, j->data_source, sizeof j->data_source);
    store_pg_text(r, row, COLUMN_FORMAT, j->format, sizeof j->format);
    store_pg_text(r, row, COLUMN_PROGRAM, j->program, sizeof j->program);
    instant_text(r, row, COLUMN_SCHEDULED_FOR, j->scheduled_for);
    instant_text(r, row, COLUMN_WINDOW_START, j->window_start);
    instant_text(r, row, COLUMN_WINDOW_END, j->window_end);
    j->query = text_copy(r, row, COLUMN_QUERY);
    j->parameters_json = text_copy(r, row, COLUMN_PARAMETERS);
    /* One job that cannot be read must not keep the others of the batch from running (I12). */
    struct error err;
    if (job_parameters_parse(j, PQgetvalue(r, row, COLUMN_PARAMETER_LIST), &err) != STATUS_OK) {
        (void)snprintf(j->problem, sizeof j->problem, "%.190s", err.text);
    }
    return j;
}

static enum status jobs_read(PGresult *r, struct job_list *ret_jobs, struct error *err)
{
    int rows = PQntuples(r);
    struct job_list list = {.jobs = calloc((size_t)rows + 1, sizeof *list.jobs)};
    for (int i = 0; list.jobs != NULL && i < rows; i++) {
        struct job *j = job_read(r, i);
        if (j == NULL) {
            job_list_free(&list);
            break;
        }
        list.jobs[list.count++] = j;
    }
    PQclear(r);
    if (list.jobs == NULL) {
        /* They are claimed: whoever asks claims_of later, or the reaper, finds them. */
        return error_set(err, STATUS_TIMEOUT, "out of memory for %d claimed jobs", rows);
    }
    *ret_jobs = list;
    return STATUS_OK;
}

void job_list_free(struct job_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        job_free(list->jobs[i]);
    }
    free(list->jobs);
    *list = (struct job_list){0};
}

static void list_to_array(const struct setting_list *list, struct store_pg_array *a)
{
    store_pg_array_reset(a);
    for (size_t i = 0; i < list->count; i++) {
        store_pg_array_add(a, list->items[i]);
    }
}

static void ids_to_array(const char (*ids)[UUID_TEXT_MAX], size_t count, struct store_pg_array *a)
{
    store_pg_array_reset(a);
    for (size_t i = 0; i < count; i++) {
        store_pg_array_add(a, ids[i]);
    }
}

static enum status no_memory(struct error *err)
{
    return error_set(err, STATUS_AGAIN, "out of memory");
}

enum status store_worker_register(struct store *store, const struct worker_identity *w,
                                  instant deadline, struct worker_agreement *ret_agreement,
                                  struct error *err)
{
    char pid[24];
    char slots[24];
    struct store_pg_array queues = {0};
    PGresult *r = NULL;
    (void)snprintf(pid, sizeof pid, "%lld", (long long)w->pid);
    (void)snprintf(slots, sizeof slots, "%zu", w->slots);
    list_to_array(w->queues, &queues);
    const char *values[] = {w->id, w->name, pid, w->version, store_pg_array_text(&queues), slots};
    enum status s = values[4] == NULL
                        ? no_memory(err)
                        : store_pg_query(store,
                                         "SELECT installation, lease_us FROM"
                                         " reports.worker_register($1, $2, $3, $4, $5, $6)",
                                         6, values, deadline, &r, err);
    store_pg_array_free(&queues);
    if (s == STATUS_OK) {
        store_pg_text(r, 0, 0, ret_agreement->installation, sizeof ret_agreement->installation);
        ret_agreement->lease_ms = store_pg_int(r, 0, 1) / 1000;
        PQclear(r);
    }
    return s;
}

enum status store_worker_leave(struct store *store, const char *worker, const char *state,
                               instant deadline, struct error *err)
{
    const char *values[] = {worker, state};
    PGresult *r = NULL;
    enum status s =
        store_pg_query(store, "SELECT reports.worker_leave($1, $2)", 2, values, deadline, &r, err);
    if (s == STATUS_OK) {
        PQclear(r);
    }
    return s;
}

static enum status claim_query(struct store *store, const char *sql,
                               const struct claim_request *request, const char *third,
                               instant deadline, PGresult **ret_result, struct error *err)
{
    struct store_pg_array queues = {0};
    list_to_array(request->queues, &queues);
    const char *values[] = {request->worker, store_pg_array_text(&queues), third};
    enum status s = values[1] == NULL || third == NULL
                        ? no_memory(err)
                        : store_pg_query(store, sql, 3, values, deadline, ret_result, err);
    store_pg_array_free(&queues);
    return s;
}

enum status store_claim_ids(struct store *store, const struct claim_request *request,
                            instant deadline, struct job_list *ret_jobs, struct error *err)
{
    struct store_pg_array ids = {0};
    PGresult *r = NULL;
    ids_to_array(request->ids, request->count, &ids);
    enum status s = claim_query(store, CLAIMED_COLUMNS "reports.claim_ids($1, $2, $3) c", request,
                                store_pg_array_text(&ids), deadline, &r, err);
    store_pg_array_free(&ids);
    return s == STATUS_OK ? jobs_read(r, ret_jobs, err) : s;
}

enum status store_claim_ready(struct store *store, const struct claim_request *request,
                              instant deadline, struct job_list *ret_jobs, struct error *err)
{
    char limit[24];
    PGresult *r = NULL;
    (void)snprintf(limit, sizeof limit, "%zu", request->count);
    enum status s = claim_query(store, CLAIMED_COLUMNS "reports.claim_ready($1, $2, $3) c", request,
                                limit, deadline, &r, err);
    return s == STATUS_OK ? jobs_read(r, ret_jobs, err) : s;
}

enum status store_claims_of(struct store *store, const char *worker, instant deadline,
                            struct job_list *ret_jobs, struct error *err)
{
    const char *values[] = {worker};
    PGresult *r = NULL;
    enum status s = store_pg_query(store, CLAIMED_COLUMNS "reports.claims_of($1) c", 1, values,
                                   deadline, &r, err);
    return s == STATUS_OK ? jobs_read(r, ret_jobs, err) : s;
}

enum status store_claim_leftovers(struct store *store, const char (*ids)[UUID_TEXT_MAX],
                                  size_t count, instant deadline,
                                  struct claim_leftovers *ret_leftovers, struct error *err)
{
    static const char sql[] =
        "SELECT count(*) FILTER (WHERE j.state IN ('running', 'succeeded')),"
        " count(*) FILTER (WHERE j.state NOT IN ('running', 'succeeded', 'queued')),"
        " count(*) FILTER (WHERE j.state = 'queued'), count(*) FILTER (WHERE j.id IS NULL)"
        " FROM unnest($1::uuid[]) AS g (id) LEFT JOIN reports.job j ON j.id = g.id";
    struct store_pg_array array = {0};
    PGresult *r = NULL;
    ids_to_array(ids, count, &array);
    const char *values[] = {store_pg_array_text(&array)};
    enum status s = values[0] == NULL ? no_memory(err)
                                      : store_pg_query(store, sql, 1, values, deadline, &r, err);
    store_pg_array_free(&array);
    if (s == STATUS_OK) {
        *ret_leftovers = (struct claim_leftovers){.duplicate = store_pg_int(r, 0, 0),
                                                  .stale = store_pg_int(r, 0, 1),
                                                  .unclaimed = store_pg_int(r, 0, 2),
                                                  .unknown = store_pg_int(r, 0, 3)};
        PQclear(r);
    }
    return s;
}

static void replies_read(const PGresult *r, const struct claim_pair *pairs, size_t count,
                         struct heartbeat_reply *replies)
{
    memset(replies, 0, count * sizeof *replies);
    /* The rows come in id order and so do the pairs, as a rule: the search starts where the last
     * one ended. */
    size_t at = 0;
    for (int row = 0; row < PQntuples(r); row++) {
        for (size_t tried = 0; tried < count; tried++, at = (at + 1) % count) {
            if (strcmp(pairs[at].job_id, PQgetvalue(r, row, 0)) == 0) {
                replies[at].held = true;
                replies[at].cancel = store_pg_bool(r, row, 1);
                replies[at].renewed = store_pg_bool(r, row, 2);
                break;
            }
        }
    }
}

enum status store_heartbeat(struct store *store, const char *worker, const struct claim_pair *pairs,
                            size_t count, instant deadline, struct heartbeat_reply *replies,
                            struct error *err)
{
    struct store_pg_array ids = {0};
    struct store_pg_array tokens = {0};
    PGresult *r = NULL;
    store_pg_array_reset(&ids);
    store_pg_array_reset(&tokens);
    for (size_t i = 0; i < count; i++) {
        store_pg_array_add(&ids, pairs[i].job_id);
        store_pg_array_add(&tokens, pairs[i].token);
    }
    const char *values[] = {worker, store_pg_array_text(&ids), store_pg_array_text(&tokens)};
    enum status s = values[1] == NULL || values[2] == NULL
                        ? no_memory(err)
                        : store_pg_query(store,
                                         "SELECT job_id, cancel_requested, renewed FROM"
                                         " reports.heartbeat($1, $2, $3) ORDER BY job_id",
                                         3, values, deadline, &r, err);
    store_pg_array_free(&ids);
    store_pg_array_free(&tokens);
    if (s == STATUS_OK) {
        replies_read(r, pairs, count, replies);
        PQclear(r);
    }
    return s;
}
