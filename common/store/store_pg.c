/* PostgreSQL adapter: open, verify, ask, cancel. */
#include "store_pg.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crash_point.h"
#include "process_metrics.h"
#include "settings.h"
#include "store_pg_cancel.h"
#include "store_pg_connect.h"
#include "store_pg_heard.h"

#define CANCEL_MS 1000 /* for a cancel request to be taken; a hung server takes none */

struct store {
    PGconn *connection;
    pthread_mutex_t cancel_mutex; /* protects cancel: store_cancel runs on other threads */
    struct store_pg_cancel *cancel;
    bool broken;
    bool unreplicated; /* a notice said that a commit may not have been replicated */
    const char *sent;  /* what was sent last, and when */
    instant sent_at;
    struct store_pg_heard heard;
};

/* With a missing synchronous standby a cancelled COMMIT succeeds with this warning: the row is
 * there, but a failover may lose it. The caller must treat the answer as unknown. */
static void take_notice(void *argument, const PGresult *result)
{
    struct store *store = argument;
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (text != NULL && strstr(text, "might not have been replicated") != NULL) {
        store->unreplicated = true;
    }
}

/* Wait until the socket is ready. True: ready; false: the deadline passed. */
static bool wait_socket(int fd, short events, instant deadline)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        int n = poll(&p, 1, instant_poll_timeout(clock_now(), deadline));
        if (n > 0) {
            return true;
        }
        if (n == 0 && !instant_before(clock_now(), deadline)) {
            return false;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
    }
}

/* libpq's messages end in a newline and may hold several lines: keep one line for the log, with a
 * mark where one ended ("Connection refused; Is the server running ...?"). */
static void copy_one_line(char *to, size_t size, const char *from)
{
    size_t n = 0;
    bool ended = false;
    for (const char *p = from; *p != '\0' && n + 3 < size; p++) {
        char c = *p == '\t' ? ' ' : *p;
        if (c == '\n') {
            ended = true;
            continue;
        }
        if (c == ' ' && (n == 0 || ended || to[n - 1] == ' ')) {
            continue;
        }
        if (ended && n > 0) {
            if (strchr(" .:;,?!", to[n - 1]) == NULL) {
                to[n++] = ';';
            }
            to[n++] = ' ';
        }
        ended = false;
        to[n++] = c;
    }
    while (n > 0 && to[n - 1] == ' ') {
        n--;
    }
    to[n] = '\0';
    text_trim(to);
}

static enum status connection_error(PGconn *c, struct error *err)
{
    char text[ERROR_TEXT_MAX];
    copy_one_line(text, sizeof text, PQerrorMessage(c));
    return error_set(err, STATUS_AGAIN, "%s", text[0] == '\0' ? "connection lost" : text);
}

enum status store_pg_verdict(PGconn *connection, const PGresult *result, struct error *err)
{
    const char *state = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (state == NULL) {
        return connection_error(connection, err);
    }
    const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
    const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
    char text[ERROR_TEXT_MAX];
    char raw[2 * ERROR_TEXT_MAX];
    (void)snprintf(raw, sizeof raw, "%s%s%s%s%s", primary == NULL ? "error" : primary,
                   detail == NULL ? "" : ": ", detail == NULL ? "" : detail,
                   hint == NULL ? "" : ". ", hint == NULL ? "" : hint);
    copy_one_line(text, sizeof text, raw);
    enum status s = error_set(err, store_pg_sqlstate_status(state), "%s", text);
    if (err != NULL) {
        (void)snprintf(err->code, sizeof err->code, "%s", state);
    }
    return s;
}

PGconn *store_pg_connection(struct store *store)
{
    return store->connection;
}

/* Send what libpq still holds, reading on the way: a server that is blocked sending to us would
 * never take the rest. */
static bool flush_request(struct store *store, instant deadline)
{
    for (;;) {
        int left = PQflush(store->connection);
        if (left <= 0) {
            return left == 0;
        }
        if (!wait_socket(PQsocket(store->connection), POLLOUT | POLLIN, deadline)) {
            return false;
        }
        if (PQconsumeInput(store->connection) == 0) {
            return false;
        }
    }
}

/* Collect results until the statement is done; keep the first failure, otherwise the last. */
static bool collect_result(struct store *store, instant deadline, PGresult **ret_result)
{
    PGresult *kept = NULL;
    for (;;) {
        while (PQisBusy(store->connection) != 0) {
            if (!wait_socket(PQsocket(store->connection), POLLIN, deadline) ||
                PQconsumeInput(store->connection) == 0) {
                PQclear(kept);
                return false;
            }
        }
        PGresult *next = PQgetResult(store->connection);
        if (next == NULL) {
            *ret_result = kept;
            return true;
        }
        if (kept != NULL && PQresultStatus(kept) == PGRES_FATAL_ERROR) {
            PQclear(next);
        } else {
            PQclear(kept);
            kept = next;
        }
    }
}

static enum status give_up(struct store *store, struct error *err)
{
    bool lost = PQstatus(store->connection) != CONNECTION_OK;
    store->broken = true;
    if (lost) {
        (void)connection_error(store->connection, err);
        return STATUS_AGAIN;
    }
    store_cancel(store);
    return error_set(err, STATUS_TIMEOUT,
                     "no answer within the deadline; the statement was cancelled, its effect is "
                     "unknown");
}

static enum status statement_send(struct store *store, const struct store_pg_statement *q,
                                  instant deadline, struct error *err)
{
    if (PQsendQueryParams(store->connection, q->sql, q->count, NULL, q->values, NULL, NULL,
                          q->binary ? 1 : 0) == 0) {
        store->broken = true;
        return connection_error(store->connection, err);
    }
    return flush_request(store, deadline) ? STATUS_OK : give_up(store, err);
}

enum status store_pg_send(struct store *store, const struct store_pg_statement *statement,
                          instant deadline, struct error *err)
{
    if (store->broken) {
        return error_set(err, STATUS_AGAIN, "the connection is broken");
    }
    store->unreplicated = false;
    store->sent = statement->sql;
    store->sent_at = clock_now();
    CRASH_POINT_CALL("before", statement->sql);
    enum status s = statement_send(store, statement, deadline, err);
    CRASH_POINT_CALL("sent", statement->sql);
    if (s != STATUS_OK) {
        process_database_call(store->sent, store->sent_at, s);
    }
    return s;
}

bool store_pg_answered(struct store *store)
{
    return store->broken || PQconsumeInput(store->connection) == 0 ||
           PQisBusy(store->connection) == 0;
}

static enum status result_take(struct store *store, instant deadline, PGresult **ret_result,
                               struct error *err)
{
    PGresult *result = NULL;
    if (!collect_result(store, deadline, &result)) {
        return give_up(store, err);
    }
    ExecStatusType type = PQresultStatus(result);
    if (type == PGRES_TUPLES_OK || type == PGRES_COMMAND_OK) {
        if (store->unreplicated) {
            PQclear(result);
            return error_set(err, STATUS_TIMEOUT,
                             "committed, but a synchronous standby did not confirm it");
        }
        *ret_result = result;
        return STATUS_OK;
    }
    enum status s = store_pg_verdict(store->connection, result, err);
    PQclear(result);
    store->broken = store->broken || PQstatus(store->connection) != CONNECTION_OK;
    return s;
}

enum status store_pg_take(struct store *store, instant deadline, PGresult **ret_result,
                          struct error *err)
{
    enum status s = result_take(store, deadline, ret_result, err);
    CRASH_POINT_CALL("after", store->sent);
    process_database_call(store->sent, store->sent_at, s);
    return s;
}

enum status store_pg_query(struct store *store, const char *sql, int count,
                           const char *const *values, instant deadline, PGresult **ret_result,
                           struct error *err)
{
    const struct store_pg_statement statement = {sql, count, values, false};
    enum status s = store_pg_send(store, &statement, deadline, err);
    return s == STATUS_OK ? store_pg_take(store, deadline, ret_result, err) : s;
}

void store_cancel(struct store *store)
{
    (void)pthread_mutex_lock(&store->cancel_mutex);
    if (store->cancel != NULL) {
        store_pg_cancel_ask(store->cancel, instant_add_ms(clock_now(), CANCEL_MS));
    }
    (void)pthread_mutex_unlock(&store->cancel_mutex);
}

bool store_is_broken(const struct store *store)
{
    return store->broken;
}

int store_fd(const struct store *store)
{
    return store->broken ? -1 : PQsocket(store->connection);
}

void store_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&store->cancel_mutex);
    store_pg_cancel_free(store->cancel);
    store->cancel = NULL;
    (void)pthread_mutex_unlock(&store->cancel_mutex);
    PQfinish(store->connection);
    (void)pthread_mutex_destroy(&store->cancel_mutex);
    free(store);
}

enum status store_listen(struct store *store, const char *channel, instant deadline,
                         struct error *err)
{
    char sql[128];
    PGresult *result = NULL;
    (void)snprintf(sql, sizeof sql, "LISTEN %s", channel);
    enum status s = store_pg_query(store, sql, 0, NULL, deadline, &result, err);
    if (s == STATUS_OK) {
        PQclear(result);
    }
    return s;
}

enum status store_take_notifications(struct store *store, unsigned *ret_count)
{
    unsigned n = 0;
    if (store->broken || PQconsumeInput(store->connection) == 0) {
        store->broken = true;
        return STATUS_AGAIN;
    }
    for (PGnotify *note = PQnotifies(store->connection); note != NULL;
         note = PQnotifies(store->connection)) {
        n++;
        store_pg_hear(&store->heard, note->relname);
        PQfreemem(note);
    }
    *ret_count = n;
    return STATUS_OK;
}

bool store_heard(struct store *store, const char *channel)
{
    return store_pg_heard_take(&store->heard, channel);
}

enum status store_clock(struct store *store, instant deadline, utc_us *ret_now, struct error *err)
{
    PGresult *r = NULL;
    enum status s = store_pg_query(store, "SELECT clock_timestamp()", 0, NULL, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    bool parsed = store_pg_time_parse(PQgetvalue(r, 0, 0), ret_now);
    PQclear(r);
    return parsed ? STATUS_OK : error_set(err, STATUS_CORRUPT, "the server's clock is unreadable");
}

/* --- opening ------------------------------------------------------------------------------- */

static enum status pooler_refused(struct error *err)
{
    return error_set(
        err, STATUS_INVALID,
        "a connection pooler (PgBouncer or the like, whatever its mode) stands between "
        "here and PostgreSQL; LISTEN, cancelling and fencing need the server's own "
        "process: point `database` at the server itself");
}

/* PgBouncer takes few parameters at the start and says so in these words, PostgreSQL never. */
static enum status open_error(PGconn *c, struct error *err)
{
    return strstr(PQerrorMessage(c), "unsupported startup parameter") != NULL
               ? pooler_refused(err)
               : connection_error(c, err);
}

static enum status connect_bounded(const struct store_options *options, const char *password,
                                   instant deadline, PGconn **ret_connection, struct error *err)
{
    /* jit: compiling takes longer than any statement here. */
    char session[160] = "-c TimeZone=UTC -c DateStyle=ISO,YMD -c IntervalStyle=postgres -c jit=off";
    if (options->lock_timeout_ms > 0) {
        size_t used = strlen(session);
        (void)snprintf(session + used, sizeof session - used, " -c lock_timeout=%lldms",
                       (long long)options->lock_timeout_ms);
    }
    const char *keys[] = {"dbname",          "application_name", "options",
                          "client_encoding", "password",         NULL};
    const char *values[] = {options->conninfo,
                            options->application_name,
                            session,
                            "UTF8",
                            password[0] == '\0' ? NULL : password,
                            NULL};
    const struct store_pg_target target = {
        .keys = keys, .values = values, .deadline = deadline, .wake_fd = -1};
    enum status s = store_pg_connect(&target, ret_connection, err);
    return s == STATUS_OK && PQstatus(*ret_connection) != CONNECTION_OK
               ? open_error(*ret_connection, err)
               : s;
}

/* What must hold on every connection (docs/architecture.md, "A protected write"). */
static enum status verify_connection(struct store *store, enum store_role role, instant deadline,
                                     struct error *err)
{
    static const char sql[] =
        "SELECT pg_is_in_recovery(), pg_backend_pid(), to_regclass('reports.fence') IS NOT NULL,"
        " current_setting('statement_timeout') <> '0'"
        " AND current_setting('idle_in_transaction_session_timeout') <> '0'"
        " AND current_setting('lock_timeout') <> '0', current_user, current_database(),"
        " inet_server_addr() IS NOT NULL AND current_setting('tcp_user_timeout') <> '0',"
        " coalesce((SELECT pg_has_role(current_user, oid, 'USAGE') FROM pg_roles"
        " WHERE rolname = $1), false)";
    const char *ours = role == STORE_SCHEDULER ? "report_scheduler" : "report_worker";
    PGresult *r = NULL;
    enum status s = store_pg_query(store, sql, 1, &ours, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    if (store_pg_bool(r, 0, 0)) {
        s = error_set(err, STATUS_AGAIN,
                      "the server is in recovery (a standby); waiting for a primary");
    } else if (store_pg_int(r, 0, 1) != PQbackendPID(store->connection)) {
        s = pooler_refused(err);
    } else if (role != STORE_ADMIN && !store_pg_bool(r, 0, 2)) {
        s = error_set(err, STATUS_INVALID,
                      "database \"%s\" has no schema reports: run `reportctl migrate` first",
                      PQgetvalue(r, 0, 5));
    } else if (role != STORE_ADMIN && !store_pg_bool(r, 0, 7)) {
        s = error_set(err, STATUS_INVALID,
                      "role \"%s\" is not a member of %s and may not do its work; write user=%s "
                      "into `database`, or a login role that was granted it",
                      PQgetvalue(r, 0, 4), ours, ours);
    } else if (role != STORE_ADMIN && !store_pg_bool(r, 0, 3)) {
        s = error_set(err, STATUS_INVALID,
                      "role \"%s\" has no statement_timeout, lock_timeout or "
                      "idle_in_transaction_session_timeout: a paused owner could hold locks for "
                      "ever; log in as %s, or ALTER ROLE \"%s\" SET them",
                      PQgetvalue(r, 0, 4), ours, PQgetvalue(r, 0, 4));
    } else if (role != STORE_ADMIN && !store_pg_bool(r, 0, 6)) {
        s = error_set(err, STATUS_INVALID,
                      "no tcp_user_timeout bounds this connection: a server process that sends to "
                      "a paused owner would hang for ever; connect by TCP (host=...), as %s",
                      ours);
    }
    PQclear(r);
    return s;
}

enum status store_open(const struct store_options *options, instant deadline,
                       struct store **ret_store, struct error *err)
{
    char password[SETTING_TEXT_MAX] = "";
    if (options->password_file != NULL && options->password_file[0] != '\0') {
        enum status s = secret_read(options->password_file, password, sizeof password, err);
        if (s != STATUS_OK) {
            return s;
        }
    }
    struct store *store = calloc(1, sizeof *store);
    if (store == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    (void)pthread_mutex_init(&store->cancel_mutex, NULL);
    enum status s = connect_bounded(options, password, deadline, &store->connection, err);
    explicit_bzero(password, sizeof password);
    if (s == STATUS_OK) {
        (void)PQsetnonblocking(store->connection, 1);
        (void)PQsetNoticeReceiver(store->connection, take_notice, store);
        store->cancel = store_pg_cancel_new(store->connection);
        s = verify_connection(store, options->role, deadline, err);
    }
    if (s == STATUS_OK && options->identity != NULL) {
        s = store_pg_identify(store, options->identity, deadline, err);
    }
    if (s != STATUS_OK) {
        store_close(store);
        return s;
    }
    *ret_store = store;
    return STATUS_OK;
}
