/* Outcomes and artifact files in PostgreSQL. */
#include <stdio.h>
#include <string.h>

#include <libpq-fe.h>

#include "store_claim.h"
#include "store_pg.h"

/* In the order of record_outcomes' parameters. */
enum {
    ARRAY_IDS,
    ARRAY_TOKENS,
    ARRAY_OUTCOMES,
    ARRAY_RETRYABLE,
    ARRAY_ERRORS,
    ARRAY_EXIT_CODES,
    ARRAY_STORES,
    ARRAY_PATHS,
    ARRAY_MEDIA_TYPES,
    ARRAY_SIZES,
    ARRAY_ROWS,
    ARRAY_SHA256,
    ARRAYS,
};

static void artifact_add(struct store_pg_array a[ARRAYS], const struct outcome *o)
{
    const struct artifact_record *r = &o->artifact;
    char sha256[DIGEST_TEXT_MAX + 2];
    (void)snprintf(sha256, sizeof sha256, "\\x%s", r->sha256);
    bool has = o->has_artifact;
    store_pg_array_add(&a[ARRAY_STORES], has ? r->store : NULL);
    store_pg_array_add(&a[ARRAY_PATHS], has ? r->path : NULL);
    store_pg_array_add(&a[ARRAY_MEDIA_TYPES], has ? r->media_type : NULL);
    store_pg_array_add(&a[ARRAY_SHA256], has ? sha256 : NULL);
    if (has) {
        store_pg_array_add_int(&a[ARRAY_SIZES], r->size_bytes);
    } else {
        store_pg_array_add(&a[ARRAY_SIZES], NULL);
    }
}

static void report_add(struct store_pg_array a[ARRAYS], const struct outcome_report *report)
{
    const struct outcome *o = report->outcome;
    store_pg_array_add(&a[ARRAY_IDS], report->job_id);
    store_pg_array_add(&a[ARRAY_TOKENS], report->token);
    store_pg_array_add(&a[ARRAY_OUTCOMES], outcome_name(o->kind));
    store_pg_array_add(&a[ARRAY_RETRYABLE], o->retryable ? "t" : "f");
    store_pg_array_add(&a[ARRAY_ERRORS], o->error[0] == '\0' ? NULL : o->error);
    if (o->has_exit_code) {
        store_pg_array_add_int(&a[ARRAY_EXIT_CODES], o->exit_code);
    } else {
        store_pg_array_add(&a[ARRAY_EXIT_CODES], NULL);
    }
    if (o->rows >= 0) {
        store_pg_array_add_int(&a[ARRAY_ROWS], o->rows);
    } else {
        store_pg_array_add(&a[ARRAY_ROWS], NULL);
    }
    artifact_add(a, o);
}

static enum outcome_verdict verdict_of(const PGresult *r, int row, const struct outcome *o)
{
    const char *word = PQgetvalue(r, row, 1);
    if (strcmp(word, "already") == 0) {
        return VERDICT_ALREADY;
    }
    if (strcmp(word, "locked") == 0) {
        return VERDICT_LOCKED;
    }
    if (strcmp(word, "done") != 0) {
        return VERDICT_LOST;
    }
    bool differs = o->kind == OUTCOME_SUCCEEDED && strcmp(PQgetvalue(r, row, 2), "succeeded") != 0;
    return differs ? VERDICT_OTHERWISE : VERDICT_DONE;
}

static void verdicts_read(const PGresult *r, const struct outcome_report *reports, size_t count,
                          enum outcome_verdict *verdicts)
{
    int rows = PQntuples(r);
    for (size_t i = 0; i < count; i++) {
        verdicts[i] = VERDICT_LOST;
        /* They come in the order in which they were given: the first look finds it. */
        for (int tried = 0; tried < rows; tried++) {
            int row = ((int)i + tried) % rows;
            if (strcmp(PQgetvalue(r, row, 0), reports[i].job_id) == 0) {
                verdicts[i] = verdict_of(r, row, reports[i].outcome);
                break;
            }
        }
    }
}

enum status store_record_outcomes(struct store *store, const struct outcome_report *reports,
                                  size_t count, instant deadline,
                                  enum outcome_verdict *ret_verdicts, struct error *err)
{
    static const char sql[] =
        "SELECT job_id, verdict, state FROM"
        " reports.record_outcomes($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    struct store_pg_array arrays[ARRAYS] = {{0}};
    const char *values[ARRAYS];
    PGresult *r = NULL;
    for (int a = 0; a < ARRAYS; a++) {
        store_pg_array_reset(&arrays[a]);
    }
    for (size_t i = 0; i < count; i++) {
        report_add(arrays, &reports[i]);
    }
    enum status s = STATUS_OK;
    for (int a = 0; a < ARRAYS; a++) {
        values[a] = store_pg_array_text(&arrays[a]);
        if (values[a] == NULL) {
            s = error_set(err, STATUS_AGAIN, "out of memory");
        }
    }
    if (s == STATUS_OK) {
        s = store_pg_query(store, sql, ARRAYS, values, deadline, &r, err);
    }
    for (int a = 0; a < ARRAYS; a++) {
        store_pg_array_free(&arrays[a]);
    }
    if (s == STATUS_OK) {
        verdicts_read(r, reports, count, ret_verdicts);
        PQclear(r);
    }
    return s;
}

enum status store_unreferenced(struct store *store, struct artifact_file *files, size_t count,
                               instant deadline, struct error *err)
{
    static const char sql[] = "SELECT reports.unreferenced_files($1, $2, $3)";
    struct store_pg_array arrays[3] = {{0}};
    PGresult *r = NULL;
    for (int a = 0; a < 3; a++) {
        store_pg_array_reset(&arrays[a]);
    }
    for (size_t i = 0; i < count; i++) {
        store_pg_array_add(&arrays[0], files[i].job_id);
        store_pg_array_add(&arrays[1], files[i].token);
        store_pg_array_add(&arrays[2], files[i].path);
        files[i].removable = false;
    }
    const char *values[] = {store_pg_array_text(&arrays[0]), store_pg_array_text(&arrays[1]),
                            store_pg_array_text(&arrays[2])};
    enum status s = values[0] == NULL || values[1] == NULL || values[2] == NULL
                        ? error_set(err, STATUS_AGAIN, "out of memory")
                        : store_pg_query(store, sql, 3, values, deadline, &r, err);
    for (int a = 0; a < 3; a++) {
        store_pg_array_free(&arrays[a]);
    }
    for (int i = 0; s == STATUS_OK && i < PQntuples(r); i++) {
        files[i].removable = store_pg_bool(r, i, 0);
    }
    if (s == STATUS_OK) {
        PQclear(r);
    }
    return s;
}
