/* Reports of kind sql: rows stream from the data source into the artifact. */
#include <stdio.h>
#include <string.h>

#include "csv_rows.h"
#include "json_rows.h"
#include "runner.h"

#define FLUSH_BYTES 65536
#define ROW_MOST    ((size_t)256 << 20) /* one row as text; PostgreSQL's own bound is 1 GiB */
#define APPLICATION "report-worker"

enum rows_format {
    ROWS_CSV,
    ROWS_JSON
};

struct rows {
    struct runner *r;
    struct source *source;
    struct source_wait wait;
    enum rows_format format;
    struct artifact *artifact;
    struct bytes out;
    int64_t count;
};

/* Fill in the failure, unless the job was stopped: then that is the outcome. */
static void rows_fail(struct runner *r, enum status s, const struct error *err)
{
    if (runner_is_stopped(r)) {
        return;
    }
    if (strcmp(err->code, "57014") == 0) { /* query_canceled, and not by us */
        outcome_fail(&r->claim->outcome, OUTCOME_TIMEOUT, true, err->text);
        return;
    }
    /* The documentation says by SQLSTATE what is tried again. */
    struct error told = *err;
    if (err->code[0] != '\0') {
        (void)error_set(&told, s, "SQLSTATE %s: %s", err->code, err->text);
    }
    outcome_fail(&r->claim->outcome, OUTCOME_FAILED, source_failure_is_retryable(s, err->code),
                 told.text);
}

static enum status source_get(struct runner *r, const struct data_source *settings,
                              const struct source_wait *wait, struct source **ret_source,
                              struct error *err)
{
    size_t index = (size_t)(settings - r->settings->data_sources);
    enum status s = STATUS_OK;
    if (r->sources[index] == NULL) {
        struct source_options options = {.conninfo = settings->conninfo,
                                         .password_file = settings->password_file,
                                         .application = APPLICATION,
                                         .statement_timeout_ms = settings->statement_timeout_ms};
        s = source_open(&options, wait, &r->sources[index], err);
    }
    if (s != STATUS_OK) {
        return error_prefix(err, s, "data source \"%s\"", settings->name);
    }
    r->source_used[index] = clock_now();
    *ret_source = r->sources[index];
    return STATUS_OK;
}

static void source_put(struct runner *r, const struct data_source *settings)
{
    size_t index = (size_t)(settings - r->settings->data_sources);
    claims_source(r->w->claims, r->claim, -1);
    source_end(r->sources[index]);
    r->source_used[index] = clock_now();
    if (source_is_broken(r->sources[index])) {
        source_close(r->sources[index]);
        r->sources[index] = NULL;
    }
}

/* Send the query. A connection kept from an earlier job may have died since: one more try. */
static enum status query_send(struct runner *r, const struct data_source *settings,
                              const struct source_wait *wait, struct source **ret_source,
                              struct error *err)
{
    bool kept = r->sources[settings - r->settings->data_sources] != NULL;
    for (;;) {
        struct source *source = NULL;
        enum status s = source_get(r, settings, wait, &source, err);
        if (s != STATUS_OK) {
            return s;
        }
        claims_source(r->w->claims, r->claim, source_fd(source));
        s = source_query(source, r->claim->job, wait, err);
        if (s == STATUS_OK) {
            *ret_source = source;
            return STATUS_OK;
        }
        bool again = kept && s == STATUS_AGAIN && source_is_broken(source);
        source_put(r, settings);
        if (!again) {
            return s;
        }
        kept = false;
    }
}

static enum status rows_flush(struct rows *rows, size_t least, struct error *err)
{
    enum status s = STATUS_OK;
    if (rows->out.failed) {
        return error_set(err, STATUS_INVALID, "row %lld is larger than %zu bytes",
                         (long long)rows->count + 1, ROW_MOST);
    }
    if (rows->out.used >= least && rows->out.used > 0) {
        s = artifact_write(rows->artifact, rows->out.data, rows->out.used, err);
        bytes_clear(&rows->out);
    }
    return s;
}

static enum status rows_copy(struct rows *rows, struct error *err)
{
    const struct source_column *columns = NULL;
    const struct source_cell *cells = NULL;
    size_t count = source_columns(rows->source, &columns);
    enum status s = STATUS_OK;
    if (rows->format == ROWS_CSV) {
        csv_header(&rows->out, columns, count);
    } else {
        s = json_columns_check(columns, count, err);
    }
    while (s == STATUS_OK) {
        s = source_next(rows->source, &rows->wait, &cells, err);
        if (s != STATUS_OK) {
            break;
        }
        if (rows->format == ROWS_CSV) {
            csv_row(&rows->out, cells, count);
        } else {
            json_row(&rows->out, columns, cells, count, rows->count);
        }
        s = rows_flush(rows, FLUSH_BYTES, err);
        rows->count++;
    }
    if (s != STATUS_NOT_FOUND) {
        return s;
    }
    if (rows->format == ROWS_JSON) {
        json_end(&rows->out, rows->count);
    }
    return rows_flush(rows, 0, err);
}

static void rows_run(struct rows *rows, const struct artifact_store *store)
{
    struct runner *r = rows->r;
    struct error err = {0};
    struct artifact_record record;
    enum status s = artifact_create(store, r->installation, r->claim->job, &rows->artifact, &err);
    if (s == STATUS_OK) {
        s = rows_copy(rows, &err);
    }
    if (s == STATUS_OK && !runner_is_stopped(r)) {
        s = artifact_complete(rows->artifact, r->claim->job->format, &record, &err);
        if (s == STATUS_OK) {
            r->claim->outcome = (struct outcome){.kind = OUTCOME_SUCCEEDED,
                                                 .has_artifact = true,
                                                 .artifact = record,
                                                 .rows = rows->count};
        }
    }
    if (s != STATUS_OK) {
        rows_fail(r, s, &err);
    }
    artifact_abort(rows->artifact);
    bytes_free(&rows->out);
}

void runner_sql(struct runner *r)
{
    const struct job *job = r->claim->job;
    struct error err = {0};
    char text[200];
    const struct data_source *settings = data_source_find(r->settings, job->data_source);
    const struct artifact_store *store = runner_store(r);
    if (store == NULL) {
        return;
    }
    if (settings == NULL) {
        /* Another worker of this queue may know it. */
        (void)snprintf(text, sizeof text, "data source \"%s\" is not in this worker's worker.conf",
                       job->data_source);
        outcome_fail(&r->claim->outcome, OUTCOME_FAILED, true, text);
        return;
    }
    struct rows rows = {.r = r,
                        .wait = {.wake_fd = r->wake_fd, .deadline = r->timeout_at},
                        .format = strcmp(job->format, "json") == 0 ? ROWS_JSON : ROWS_CSV,
                        .out = {.most = ROW_MOST}};
    if (job->query == NULL || (rows.format == ROWS_CSV && strcmp(job->format, "csv") != 0)) {
        (void)snprintf(text, sizeof text, "format \"%s\" is not supported yet for sql",
                       job->format);
        outcome_fail(&r->claim->outcome, OUTCOME_FAILED, false, text);
        return;
    }
    enum status s = query_send(r, settings, &rows.wait, &rows.source, &err);
    if (s != STATUS_OK) {
        rows_fail(r, s, &err);
        return;
    }
    rows_run(&rows, store);
    source_put(r, settings);
}
