/* PostgreSQL adapter of reportctl. */
#include "store_admin.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "store_pg.h"

/* Object ids of built-in types are fixed in PostgreSQL's catalogue (pg_type.dat). */
enum {
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_JSON = 114,
    OID_FLOAT4 = 700,
    OID_FLOAT8 = 701,
    OID_TIMESTAMP = 1114,
    OID_TIMESTAMPTZ = 1184,
    OID_NUMERIC = 1700,
    OID_JSONB = 3802,
};

static bool name_ends(const char *name, const char *end)
{
    size_t n = strlen(name);
    size_t m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static enum column_kind kind_of(Oid type, const char *name)
{
    switch (type) {
    case OID_BOOL:
        return COLUMN_BOOL;
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
        return name_ends(name, "_bytes") ? COLUMN_BYTES : COLUMN_INT;
    case OID_FLOAT4:
    case OID_FLOAT8:
    case OID_NUMERIC:
        return name_ends(name, "_s") ? COLUMN_SECONDS : COLUMN_NUMBER;
    case OID_TIMESTAMPTZ:
        return COLUMN_INSTANT;
    case OID_TIMESTAMP:
        return COLUMN_LOCAL;
    case OID_JSON:
    case OID_JSONB:
        return COLUMN_JSON;
    default:
        return COLUMN_TEXT;
    }
}

#define MARKS "~!-#?" /* store_admin.h */

static struct column column_of(const PGresult *r, int c)
{
    struct column column = {.show = SHOW_ALWAYS};
    const char *name = PQfname(r, c);
    size_t n = strcspn(name, "|");
    if (name[n] == '|') {
        size_t title = strcspn(name + n + 1, MARKS);
        (void)snprintf(column.title, sizeof column.title, "%.*s", (int)title, name + n + 1);
        (void)snprintf(column.name, sizeof column.name, "%.*s%s", (int)n, name,
                       name + n + 1 + title);
    } else {
        (void)snprintf(column.name, sizeof column.name, "%s", name);
    }
    n = strlen(column.name);
    bool number = false;
    for (; n > 1 && strchr(MARKS, column.name[n - 1]) != NULL; n--) {
        switch (column.name[n - 1]) {
        case '~':
            column.show = SHOW_AGE;
            break;
        case '!':
            column.show = SHOW_PEOPLE;
            break;
        case '-':
            column.show = SHOW_PROGRAMS;
            break;
        case '?':
            column.spare = true;
            break;
        default:
            number = true;
            break;
        }
        column.name[n - 1] = '\0';
    }
    column.kind = number ? COLUMN_INT : kind_of(PQftype(r, c), column.name);
    return column;
}

static bool table_fill(struct table *t, const PGresult *r)
{
    for (int c = 0; c < PQnfields(r); c++) {
        struct column column = column_of(r, c);
        if (!table_column_add(t, &column)) {
            return false;
        }
    }
    for (int row = 0; row < PQntuples(r); row++) {
        for (int c = 0; c < PQnfields(r); c++) {
            if (!table_cell_add(t, PQgetisnull(r, row, c) ? NULL : PQgetvalue(r, row, c))) {
                return false;
            }
        }
    }
    return true;
}

enum status store_admin_select(struct store *store, const char *sql, int count,
                               const char *const *values, instant deadline,
                               struct table **ret_table, struct error *err)
{
    PGresult *r = NULL;
    enum status s = store_pg_query(store, sql, count, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    struct table *t = table_new();
    bool filled = t != NULL && table_fill(t, r);
    PQclear(r);
    if (!filled) {
        table_free(t);
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    *ret_table = t;
    return STATUS_OK;
}

enum status store_admin_identify(struct store *store, struct store_identity *known,
                                 instant deadline, struct error *err)
{
    return store_pg_identify(store, known, deadline, err);
}

/* ---- scripts ---- */

/* Wait for the socket. False: the deadline passed, or the descriptor is gone. */
static bool socket_wait(PGconn *c, bool writing, instant deadline)
{
    for (;;) {
        struct pollfd p = {.fd = PQsocket(c),
                           .events = (short)(writing ? POLLIN | POLLOUT : POLLIN)};
        int n = poll(&p, 1, instant_poll_timeout(clock_now(), deadline));
        if (n > 0) {
            return true;
        }
        if ((n == 0 && !instant_before(clock_now(), deadline)) || (n < 0 && errno != EINTR)) {
            return false;
        }
    }
}

/* Next result of the script; *ret_result NULL at its end. False: lost or out of time. */
static bool result_await(PGconn *c, instant deadline, PGresult **ret_result)
{
    int left = PQflush(c);
    while (left > 0) {
        if (!socket_wait(c, true, deadline) || PQconsumeInput(c) == 0) {
            return false;
        }
        left = PQflush(c);
    }
    if (left < 0) {
        return false;
    }
    while (PQisBusy(c) != 0) {
        if (!socket_wait(c, false, deadline) || PQconsumeInput(c) == 0) {
            return false;
        }
    }
    *ret_result = PQgetResult(c);
    return true;
}

static bool result_is_failure(const PGresult *r)
{
    ExecStatusType type = PQresultStatus(r);
    return type != PGRES_TUPLES_OK && type != PGRES_COMMAND_OK && type != PGRES_EMPTY_QUERY;
}

/* The server counts characters from 1; a script in UTF-8 has fewer of them than bytes. */
static long byte_position(const PGresult *r, const char *script)
{
    const char *text = PQresultErrorField(r, PG_DIAG_STATEMENT_POSITION);
    if (text == NULL) {
        return -1;
    }
    long characters = strtol(text, NULL, 10);
    long at = 0;
    for (; script[at] != '\0' && characters > 1; at++) {
        characters -= ((unsigned char)script[at + 1] & 0xc0) != 0x80 ? 1 : 0;
    }
    return at;
}

enum status store_admin_script(struct store *store, const char *script, instant deadline,
                               long *ret_position, struct error *err)
{
    PGconn *c = store_pg_connection(store);
    *ret_position = -1;
    if (PQsendQuery(c, script) == 0) {
        return store_pg_verdict(c, NULL, err);
    }
    enum status s = STATUS_OK;
    for (;;) {
        PGresult *r = NULL;
        if (!result_await(c, deadline, &r)) {
            bool lost = PQstatus(c) != CONNECTION_OK;
            store_cancel(store);
            return lost ? store_pg_verdict(c, NULL, err)
                        : error_set(err, STATUS_TIMEOUT, "no answer within the deadline");
        }
        if (r == NULL) {
            return s;
        }
        if (s == STATUS_OK && result_is_failure(r)) {
            s = store_pg_verdict(c, r, err);
            *ret_position = byte_position(r, script);
        }
        PQclear(r);
    }
}
