/* PostgreSQL adapter of store_request.h. */
#include "store_request.h"

#include <stdio.h>
#include <string.h>

#include "store_pg.h"

/* v_leader has the one rule for who leads: what people are shown is where requests go. */
static const char locate_sql[] =
    "SELECT s.scope, CASE WHEN l.state = 'active' THEN f.member END, "
    "CASE WHEN l.state = 'active' THEN f.url END "
    "FROM (SELECT coalesce("
    "(SELECT r.scope FROM reports.request r WHERE r.id = $1::uuid), "
    "(SELECT d.scope FROM reports.schedule d WHERE d.name = $2::text), "
    /* Of a deleted one missed firings may wait all the same, to be discarded. */
    "(SELECT p.scope FROM reports.schedule_progress p WHERE p.schedule = $2::text), "
    "(SELECT j.scope FROM reports.job j WHERE j.id = $3::uuid), "
    "(SELECT o.scope FROM reports.occurrence o WHERE o.schedule = $4::text "
    "AND o.occurrence_key = $5::text), "
    "(SELECT x.scope FROM reports.fence x WHERE x.scope = $6::text)) AS scope) s "
    "LEFT JOIN reports.v_leader l ON l.scope = s.scope LEFT JOIN reports.fence f ON f.scope = "
    "s.scope "
    "WHERE s.scope IS NOT NULL";

static bool is_about_a_job(const char *kind)
{
    return strcmp(kind, "cancel") == 0 || strcmp(kind, "retry") == 0;
}

enum status request_locate(struct store *store, const struct request_wish *wish, instant deadline,
                           struct request_place *ret_place, struct error *err)
{
    bool job = is_about_a_job(wish->kind);
    /* A discard for a queue says whose: queue:QUEUE@SCOPE (reports.discard_meant). */
    bool queue = strcmp(wish->kind, "discard") == 0 && strncmp(wish->subject, "queue:", 6) == 0;
    const char *at = queue ? strrchr(wish->subject, '@') : NULL;
    bool scope = queue || strcmp(wish->kind, "handoff") == 0;
    const char *its_scope = at != NULL ? at + 1 : wish->subject;
    const char *colon = strchr(wish->subject, ':');
    char schedule[REQUEST_SUBJECT_MAX];
    (void)snprintf(schedule, sizeof schedule, "%.*s",
                   colon == NULL ? 0 : (int)(colon - wish->subject), wish->subject);
    const char *values[] = {wish->id,
                            job || scope ? NULL : wish->subject,
                            job && uuid_is_valid(wish->subject) ? wish->subject : NULL,
                            job && colon != NULL ? schedule : NULL,
                            job && colon != NULL ? colon + 1 : NULL,
                            scope ? its_scope : NULL};
    PGresult *r = NULL;
    enum status s = store_pg_query(store, locate_sql, 6, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    if (PQntuples(r) == 0) {
        PQclear(r);
        return error_set(err, STATUS_NOT_FOUND, "%s \"%s\" does not exist; reportctl %s lists them",
                         job     ? "job"
                         : scope ? "scope"
                                 : "schedule",
                         scope ? its_scope : wish->subject,
                         job     ? "jobs"
                         : scope ? "leaders"
                                 : "schedules");
    }
    store_pg_text(r, 0, 0, ret_place->scope, sizeof ret_place->scope);
    store_pg_text(r, 0, 1, ret_place->member, sizeof ret_place->member);
    store_pg_text(r, 0, 2, ret_place->url, sizeof ret_place->url);
    PQclear(r);
    return STATUS_OK;
}

/* One statement about a list, which it frees. */
static enum status list_query(struct store *store, const char *sql, struct store_pg_array *list,
                              instant deadline, PGresult **ret_result, struct error *err)
{
    const char *values[] = {store_pg_array_text(list)};
    enum status s = values[0] == NULL
                        ? error_set(err, STATUS_AGAIN, "out of memory")
                        : store_pg_query(store, sql, 1, values, deadline, ret_result, err);
    store_pg_array_free(list);
    return s;
}

enum status request_leaders(struct store *store, const char (*scopes)[NAME_MAX_BYTES], size_t count,
                            instant deadline, struct request_leader *ret_leaders, size_t *ret_count,
                            struct error *err)
{
    static const char sql[] =
        "SELECT f.scope, f.member, f.incarnation, f.generation, l.state = 'active' "
        "FROM reports.fence f JOIN reports.v_leader l USING (scope) "
        "WHERE f.scope = ANY ($1::text[])";
    struct store_pg_array list = {0};
    PGresult *r = NULL;
    for (size_t i = 0; i < count; i++) {
        store_pg_array_add(&list, scopes[i]);
    }
    enum status s = list_query(store, sql, &list, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    *ret_count = 0;
    for (int i = 0; i < PQntuples(r) && *ret_count < count; i++) {
        struct request_leader *l = &ret_leaders[(*ret_count)++];
        store_pg_text(r, i, 0, l->scope, sizeof l->scope);
        store_pg_text(r, i, 1, l->member, sizeof l->member);
        l->incarnation = store_pg_int(r, i, 2);
        l->generation = store_pg_int(r, i, 3);
        l->leads = store_pg_bool(r, i, 4);
    }
    PQclear(r);
    return STATUS_OK;
}

static void answer_take(PGresult *r, const struct request_wish *wish,
                        struct request_standing *ret_answer)
{
    (void)snprintf(ret_answer->id, sizeof ret_answer->id, "%s", wish->id);
    store_pg_text(r, 0, 0, ret_answer->state, sizeof ret_answer->state);
    store_pg_text(r, 0, 1, ret_answer->text, sizeof ret_answer->text);
    PQclear(r);
}

enum status request_ask(struct store *store, const struct request_wish *wish, instant deadline,
                        struct request_standing *ret_answer, struct error *err)
{
    static const char sql[] = "SELECT state, answer FROM reports.ask($1::uuid, $2::text, $3::text, "
                              "$4::text, make_interval(secs => $5::double precision), "
                              "$6::timestamptz)";
    char seconds[24];
    (void)snprintf(seconds, sizeof seconds, "%lld", (long long)wish->timeout_s);
    const char *values[] = {wish->id,      wish->kind,
                            wish->subject, wish->has_argument ? wish->argument : NULL,
                            seconds,       wish->until[0] != '\0' ? wish->until : NULL};
    PGresult *r = NULL;
    enum status s = store_pg_query(store, sql, 6, values, deadline, &r, err);
    if (s == STATUS_OK) {
        answer_take(r, wish, ret_answer);
    }
    return s;
}

enum status request_ask_backfill(struct store *store, const struct request_wish *wish,
                                 const struct request_firings *firings, instant deadline,
                                 struct request_standing *ret_answer, struct error *err)
{
    static const char sql[] =
        "SELECT state, answer FROM reports.ask_backfill($1::uuid, $2::text, $3::text, "
        "make_interval(secs => $4::double precision), $5::integer, $6::boolean, $7::jsonb)";
    char seconds[24];
    char version[16];
    (void)snprintf(seconds, sizeof seconds, "%lld", (long long)wish->timeout_s);
    (void)snprintf(version, sizeof version, "%d", (int)firings->version);
    const char *values[] = {wish->id,      wish->subject, wish->argument,
                            seconds,       version,       wish->beside ? "t" : "f",
                            firings->array};
    PGresult *r = NULL;
    enum status s = store_pg_query(store, sql, 7, values, deadline, &r, err);
    if (s == STATUS_OK) {
        answer_take(r, wish, ret_answer);
    }
    return s;
}

enum status request_backfill_check(struct store *store, const struct request_wish *wish,
                                   int32_t version, instant deadline, struct error *err)
{
    static const char sql[] = "SELECT v.overlap, p.key_form FROM reports.schedule_version v LEFT "
                              "JOIN reports.schedule_progress p ON p.schedule = v.schedule "
                              "WHERE v.schedule = $1::text AND v.version = $2::integer";
    char number[16];
    char overlap[16] = "";
    (void)snprintf(number, sizeof number, "%d", (int)version);
    const char *values[] = {wish->subject, number};
    PGresult *r = NULL;
    enum status s = store_pg_query(store, sql, 2, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    bool there = PQntuples(r) > 0;
    bool no_form = there && PQgetisnull(r, 0, 1) != 0;
    if (there) {
        store_pg_text(r, 0, 0, overlap, sizeof overlap);
    }
    PQclear(r);
    if (no_form) {
        return error_set(err, STATUS_CONFLICT,
                         "no leader has taken schedule \"%s\" in, so that the form of its keys is "
                         "not fixed; ask again when its next firing is known",
                         wish->subject);
    }
    if (there && strcmp(overlap, "allow") != 0 && !wish->beside) {
        return error_set(err, STATUS_CONFLICT,
                         "schedule \"%s\" has overlap '%s', and jobs of a backfill run beside each "
                         "other and beside its own; if its report bears that, say beside",
                         wish->subject, overlap);
    }
    return STATUS_OK;
}

enum status request_states(struct store *store, const char (*ids)[UUID_TEXT_MAX], size_t count,
                           instant deadline,
                           struct request_standing ret_answers[REQUEST_WAITING_MAX],
                           size_t *ret_count, struct error *err)
{
    static const char sql[] =
        "SELECT id, state, answer FROM reports.request WHERE id = ANY ($1::uuid[])";
    struct store_pg_array list = {0};
    PGresult *r = NULL;
    for (size_t i = 0; i < count; i++) {
        store_pg_array_add(&list, ids[i]);
    }
    enum status s = list_query(store, sql, &list, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    *ret_count = 0;
    for (int i = 0; i < PQntuples(r) && *ret_count < REQUEST_WAITING_MAX; i++) {
        struct request_standing *a = &ret_answers[(*ret_count)++];
        store_pg_text(r, i, 0, a->id, sizeof a->id);
        store_pg_text(r, i, 1, a->state, sizeof a->state);
        store_pg_text(r, i, 2, a->text, sizeof a->text);
    }
    PQclear(r);
    return STATUS_OK;
}

enum status request_read(struct store *store, const char *id, instant deadline,
                         struct request_record *ret_record, struct error *err)
{
    /* Times as all JSON here has them; a request beyond its deadline is never carried out. */
    static const char sql[] =
        "SELECT id, CASE WHEN state = 'pending' AND deadline < clock_timestamp() "
        "THEN 'expired' ELSE state END, answer, kind, scope, subject, argument, "
        "to_char(requested_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), "
        "to_char(answered_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"'), job_id "
        "FROM reports.request WHERE id = $1::uuid";
    const char *values[] = {id};
    PGresult *r = NULL;
    enum status s = store_pg_query(store, sql, 1, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    if (PQntuples(r) == 0) {
        PQclear(r);
        return error_set(err, STATUS_NOT_FOUND, "request %s does not exist", id);
    }
    struct request_record *q = ret_record;
    store_pg_text(r, 0, 0, q->answer.id, sizeof q->answer.id);
    store_pg_text(r, 0, 1, q->answer.state, sizeof q->answer.state);
    store_pg_text(r, 0, 2, q->answer.text, sizeof q->answer.text);
    store_pg_text(r, 0, 3, q->kind, sizeof q->kind);
    store_pg_text(r, 0, 4, q->scope, sizeof q->scope);
    store_pg_text(r, 0, 5, q->subject, sizeof q->subject);
    store_pg_text(r, 0, 6, q->argument, sizeof q->argument);
    q->has_argument = PQgetisnull(r, 0, 6) == 0;
    store_pg_text(r, 0, 7, q->requested_at, sizeof q->requested_at);
    store_pg_text(r, 0, 8, q->answered_at, sizeof q->answered_at);
    store_pg_text(r, 0, 9, q->job_id, sizeof q->job_id);
    PQclear(r);
    return STATUS_OK;
}
