/* Data source adapter: PostgreSQL. The query runs in single-row mode, so that libpq holds one row
 * at a time, and by the extended protocol, so that the server itself refuses a second statement. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "bytes.h"
#include "query.h"
#include "settings.h"
#include "source.h"
#include "store_pg.h"
#include "store_pg_cancel.h"
#include "store_pg_connect.h"

#define ROWS_PER_LOOK 256
#define CANCEL_MS     1000 /* for a cancel request to be taken; a hung server takes none */
#define END_MS        3000 /* for the end of a query: cancel, ROLLBACK, DISCARD ALL */

struct source {
    PGconn *connection;
    int64_t statement_timeout_ms;
    bool running; /* a query was sent and its last result not taken yet */
    bool begun;   /* a transaction is open */
    bool broken;
    PGresult *row; /* the row the cells point into; the first one waits here for source_next */
    bool row_waits;
    uint64_t rows;
    size_t column_count;
    struct source_column *columns;
    struct source_cell *cells;
    PGresult *shape; /* keeps the column names alive */
};

/* True when the socket is ready; false when the owner is woken or the deadline has passed. */
static bool wait_for(int fd, short events, const struct source_wait *wait)
{
    for (;;) {
        struct pollfd p[2] = {{.fd = fd, .events = events},
                              {.fd = wait->wake_fd, .events = POLLIN}};
        int n = poll(p, 2, instant_poll_timeout(clock_now(), wait->deadline));
        if (n > 0) {
            return p[1].revents == 0;
        }
        if ((n == 0 && !instant_before(clock_now(), wait->deadline)) || (n < 0 && errno != EINTR)) {
            return false;
        }
    }
}

static enum status gave_up(struct error *err)
{
    return error_set(err, STATUS_TIMEOUT, "stopped waiting for the data source");
}

static enum status failed(struct source *s, const PGresult *result, struct error *err)
{
    enum status status = store_pg_verdict(s->connection, result, err);
    s->broken = s->broken || PQstatus(s->connection) != CONNECTION_OK;
    return status;
}

static enum status connect_bounded(const struct source_options *options, const char *password,
                                   const struct source_wait *wait, PGconn **ret_connection,
                                   struct error *err)
{
    /* fallback_application_name and no `options`: what the conninfo says stands. */
    const char *keys[] = {"dbname", "fallback_application_name", "client_encoding", "password",
                          NULL};
    const char *values[] = {options->conninfo, options->application, "UTF8",
                            password[0] == '\0' ? NULL : password, NULL};
    const struct store_pg_target target = {
        .keys = keys, .values = values, .deadline = wait->deadline, .wake_fd = wait->wake_fd};
    enum status s = store_pg_connect(&target, ret_connection, err);
    return s == STATUS_OK && PQstatus(*ret_connection) != CONNECTION_OK
               ? store_pg_verdict(*ret_connection, NULL, err)
               : s;
}

static void take_notice(void *argument, const PGresult *result)
{
    (void)argument;
    (void)result; /* a report's NOTICEs are nobody's business; libpq would print them */
}

enum status source_open(const struct source_options *options, const struct source_wait *wait,
                        struct source **ret_source, struct error *err)
{
    char password[SETTING_TEXT_MAX] = "";
    if (options->password_file[0] != '\0') {
        enum status s = secret_read(options->password_file, password, sizeof password, err);
        if (s != STATUS_OK) {
            return s;
        }
    }
    struct source *source = calloc(1, sizeof *source);
    if (source == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    source->statement_timeout_ms = options->statement_timeout_ms;
    enum status s = connect_bounded(options, password, wait, &source->connection, err);
    explicit_bzero(password, sizeof password);
    if (s != STATUS_OK) {
        source_close(source);
        return s;
    }
    (void)PQsetNoticeReceiver(source->connection, take_notice, NULL);
    (void)PQsetnonblocking(source->connection, 1);
    *ret_source = source;
    return STATUS_OK;
}

static void result_forget(struct source *s)
{
    PQclear(s->row);
    PQclear(s->shape);
    free(s->columns);
    free(s->cells);
    s->row = NULL;
    s->shape = NULL;
    s->columns = NULL;
    s->cells = NULL;
    s->column_count = 0;
    s->row_waits = false;
}

void source_close(struct source *s)
{
    if (s == NULL) {
        return;
    }
    result_forget(s);
    PQfinish(s->connection);
    free(s);
}

bool source_is_broken(const struct source *s)
{
    return s->broken;
}

int source_fd(const struct source *s)
{
    return PQsocket(s->connection);
}

/* Send the rest of a request, reading on the way. */
static enum status flush(struct source *s, const struct source_wait *wait, struct error *err)
{
    for (;;) {
        int left = PQflush(s->connection);
        if (left == 0) {
            return STATUS_OK;
        }
        if (left < 0) {
            return failed(s, NULL, err);
        }
        if (!wait_for(PQsocket(s->connection), POLLIN | POLLOUT, wait)) {
            return gave_up(err);
        }
        if (PQconsumeInput(s->connection) == 0) {
            return failed(s, NULL, err);
        }
    }
}

/* The next result; *ret_result is NULL when the request is done. */
static enum status result_take(struct source *s, const struct source_wait *wait,
                               PGresult **ret_result, struct error *err)
{
    while (PQisBusy(s->connection) != 0) {
        if (!wait_for(PQsocket(s->connection), POLLIN, wait)) {
            return gave_up(err);
        }
        if (PQconsumeInput(s->connection) == 0) {
            return failed(s, NULL, err);
        }
    }
    *ret_result = PQgetResult(s->connection);
    return STATUS_OK;
}

/* A command without rows, by the simple protocol: several may stand in one. */
static enum status command(struct source *s, const char *sql, const struct source_wait *wait,
                           struct error *err)
{
    if (PQsendQuery(s->connection, sql) == 0) {
        return failed(s, NULL, err);
    }
    enum status status = flush(s, wait, err);
    PGresult *result = NULL;
    while (status == STATUS_OK) {
        enum status taken = result_take(s, wait, &result, err);
        if (taken != STATUS_OK || result == NULL) {
            return taken;
        }
        if (PQresultStatus(result) == PGRES_FATAL_ERROR) {
            status = failed(s, result, err);
        }
        PQclear(result);
    }
    return status;
}

/* ---- the query text ---- */

static enum status piece_add(struct source *s, const struct job *job,
                             const struct query_piece *piece, struct bytes *out, struct error *err)
{
    struct parameter_value value;
    if (piece->kind == QUERY_TEXT) {
        bytes_add(out, piece->text, piece->size);
        return STATUS_OK;
    }
    enum status status = job_parameter(job, piece->text, piece->size, &value, err);
    if (piece->kind == QUERY_BARE) {
        if (status == STATUS_NOT_FOUND) { /* as in psql: not ours, an array slice perhaps */
            bytes_add_char(out, ':');
            bytes_add(out, piece->text, piece->size);
            return STATUS_OK;
        }
        return error_set(err, STATUS_INVALID,
                         "the query names parameter \"%.*s\" without quotes; write :'%.*s' for a "
                         "value or :\"%.*s\" for a name",
                         (int)piece->size, piece->text, (int)piece->size, piece->text,
                         (int)piece->size, piece->text);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (value.text == NULL && piece->kind == QUERY_LITERAL) {
        bytes_add_text(out, "NULL");
        return STATUS_OK;
    }
    if (value.text == NULL) {
        return error_set(err, STATUS_INVALID,
                         "parameter \"%.*s\" has no value here and cannot be a name",
                         (int)piece->size, piece->text);
    }
    char *quoted = piece->kind == QUERY_LITERAL
                       ? PQescapeLiteral(s->connection, value.text, strlen(value.text))
                       : PQescapeIdentifier(s->connection, value.text, strlen(value.text));
    if (quoted == NULL) {
        return error_set(err, STATUS_INVALID, "parameter \"%.*s\" cannot be quoted: %s",
                         (int)piece->size, piece->text, PQerrorMessage(s->connection));
    }
    bytes_add_text(out, quoted);
    PQfreemem(quoted);
    return STATUS_OK;
}

static enum status query_build(struct source *s, const struct job *job, struct bytes *out,
                               struct error *err)
{
    enum status status = job_parameters_check(job, err);
    struct query_scan scan = query_scan_start(job->query);
    struct query_piece piece;
    while (status == STATUS_OK && query_scan_next(&scan, &piece)) {
        status = piece_add(s, job, &piece, out, err);
    }
    bytes_add_char(out, '\0');
    if (status == STATUS_OK && out->failed) {
        status =
            error_set(err, STATUS_INVALID, "the query with its parameters is longer than %u bytes",
                      SOURCE_QUERY_MAX);
    }
    return status;
}

/* ---- rows ---- */

static enum source_type type_of(Oid oid)
{
    switch (oid) { /* pg_type.dat; these never change */
    case 16:
        return SOURCE_BOOLEAN;
    case 20:   /* int8 */
    case 21:   /* int2 */
    case 23:   /* int4 */
    case 26:   /* oid */
    case 700:  /* float4 */
    case 701:  /* float8 */
    case 1700: /* numeric */
        return SOURCE_NUMBER;
    case 114:  /* json */
    case 3802: /* jsonb */
        return SOURCE_JSON;
    default:
        return SOURCE_TEXT;
    }
}

static enum status shape_take(struct source *s, PGresult *result, struct error *err)
{
    int n = PQnfields(result);
    s->column_count = n < 0 ? 0 : (size_t)n;
    s->columns = calloc(s->column_count + 1, sizeof *s->columns);
    s->cells = calloc(s->column_count + 1, sizeof *s->cells);
    s->shape = PQcopyResult(result, PG_COPYRES_ATTRS);
    if (s->columns == NULL || s->cells == NULL || s->shape == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    for (int i = 0; i < n; i++) {
        s->columns[i].name = PQfname(s->shape, i);
        s->columns[i].type = type_of(PQftype(s->shape, i));
    }
    return STATUS_OK;
}

/* Take one result of the running query: a row (kept in s->row), the end, or an error. */
static enum status row_take(struct source *s, const struct source_wait *wait, struct error *err)
{
    PGresult *result = NULL;
    PQclear(s->row);
    s->row = NULL;
    enum status status = result_take(s, wait, &result, err);
    if (status != STATUS_OK) {
        return status;
    }
    if (result == NULL) {
        s->running = false;
        return STATUS_NOT_FOUND;
    }
    ExecStatusType type = PQresultStatus(result);
    if (type == PGRES_SINGLE_TUPLE || type == PGRES_TUPLES_OK) {
        s->row = result; /* TUPLES_OK has no rows: it ends the query */
        return STATUS_OK;
    }
    if (type == PGRES_FATAL_ERROR) {
        status = failed(s, result, err);
    } else {
        status = error_set(err, STATUS_INVALID,
                           "the query returns no rows; write one SELECT (%s is none)",
                           PQcmdStatus(result)[0] == '\0' ? "an empty query" : PQcmdStatus(result));
    }
    PQclear(result);
    return status;
}

static enum status begin(struct source *s, const struct source_wait *wait, struct error *err)
{
    char sql[256];
    /* The formats are fixed, so that a file does not depend on a role's settings; the time zone is
     * the data source's own: `options=-c timezone=...` in its conninfo sets it. */
    (void)snprintf(sql, sizeof sql,
                   "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
                   "SET LOCAL statement_timeout = %lld; SET LOCAL DateStyle = 'ISO, YMD';"
                   "SET LOCAL IntervalStyle = 'postgres'; SET LOCAL bytea_output = 'hex';"
                   "SET LOCAL extra_float_digits = 1",
                   (long long)s->statement_timeout_ms);
    s->begun = true;
    return command(s, sql, wait, err);
}

enum status source_query(struct source *s, const struct job *job, const struct source_wait *wait,
                         struct error *err)
{
    struct bytes sql = {.most = SOURCE_QUERY_MAX};
    enum status status = query_build(s, job, &sql, err);
    if (status == STATUS_OK) {
        status = begin(s, wait, err);
    }
    if (status == STATUS_OK &&
        PQsendQueryParams(s->connection, sql.data, 0, NULL, NULL, NULL, NULL, 0) == 0) {
        status = failed(s, NULL, err);
    }
    bytes_free(&sql);
    if (status != STATUS_OK) {
        return status;
    }
    s->running = true;
    (void)PQsetSingleRowMode(s->connection);
    status = flush(s, wait, err);
    if (status == STATUS_OK) {
        status = row_take(s, wait, err);
    }
    if (status == STATUS_OK) {
        s->row_waits = true;
        status = shape_take(s, s->row, err);
    }
    return status;
}

size_t source_columns(const struct source *s, const struct source_column **ret_columns)
{
    *ret_columns = s->columns;
    return s->column_count;
}

enum status source_next(struct source *s, const struct source_wait *wait,
                        const struct source_cell **ret_cells, struct error *err)
{
    /* A server that sends faster than we write never makes wait_for wait, so look here too. */
    struct pollfd woken = {.fd = wait->wake_fd, .events = POLLIN};
    if (++s->rows % ROWS_PER_LOOK == 0 &&
        (poll(&woken, 1, 0) > 0 || !instant_before(clock_now(), wait->deadline))) {
        return gave_up(err);
    }
    if (!s->row_waits) {
        enum status status = row_take(s, wait, err);
        if (status != STATUS_OK) {
            return status;
        }
    }
    s->row_waits = false;
    if (PQntuples(s->row) == 0) {
        return row_take(s, wait, err); /* behind TUPLES_OK: NULL, or an error at the very end */
    }
    for (size_t i = 0; i < s->column_count; i++) {
        int column = (int)i;
        bool null = PQgetisnull(s->row, 0, column) != 0;
        s->cells[i].text = null ? NULL : PQgetvalue(s->row, 0, column);
        s->cells[i].size = null ? 0 : (size_t)PQgetlength(s->row, 0, column);
    }
    *ret_cells = s->cells;
    return STATUS_OK;
}

/* ---- the end ---- */

static void cancel(struct source *s)
{
    struct store_pg_cancel *c = store_pg_cancel_new(s->connection);
    if (c != NULL) {
        store_pg_cancel_ask(c, instant_add_ms(clock_now(), CANCEL_MS));
        store_pg_cancel_free(c);
    }
}

/* Read the running query to its end, which the cancel makes near. */
static bool drain(struct source *s, const struct source_wait *wait)
{
    for (;;) {
        PGresult *result = NULL;
        if (result_take(s, wait, &result, NULL) != STATUS_OK) {
            return false;
        }
        if (result == NULL) {
            return true;
        }
        ExecStatusType type = PQresultStatus(result);
        PQclear(result);
        if (type == PGRES_COPY_OUT || type == PGRES_COPY_IN || type == PGRES_COPY_BOTH) {
            return false; /* libpq would give the same result again and again */
        }
    }
}

void source_end(struct source *s)
{
    struct source_wait wait = {.wake_fd = -1, .deadline = instant_add_ms(clock_now(), END_MS)};
    result_forget(s);
    if (PQstatus(s->connection) != CONNECTION_OK) {
        s->broken = true;
    }
    if (!s->broken && s->running) {
        cancel(s);
        s->broken = !drain(s, &wait);
    }
    s->running = false;
    if (!s->broken && s->begun) {
        /* DISCARD ALL cannot stand in one request with ROLLBACK. */
        s->broken = command(s, "ROLLBACK", &wait, NULL) != STATUS_OK ||
                    command(s, "DISCARD ALL", &wait, NULL) != STATUS_OK;
    }
    s->begun = false;
}
