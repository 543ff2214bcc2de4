/* One run of a command against the database: connect, ask, say what went wrong in one line.
 * Thread: main, the only one. Blocks: every call that asks, until the command's deadline. */
#ifndef RS_SESSION_H
#define RS_SESSION_H

#include "command.h"
#include "store.h"
#include "table.h"

struct session {
    struct invocation *in;
    struct store *store;
    instant deadline; /* of the whole command, by --timeout */
    utc_us now;       /* clock_timestamp() at its start, for ages */
    /* Put behind what failed without an answer, when that leaves something in the open; NULL:
     * nothing. Borrowed. */
    const char *after;
};

/* Connect. Returns: DONE, or the exit code of a failure that has been reported.
 * Owns: *ret is closed by session_close in any case. */
MUST_USE enum exit_code session_open(struct invocation *in, struct session *ret);
void session_close(struct session *s);

/* Connect again, after the connection broke, until s->deadline; reports nothing.
 * Returns: as store_open, with AGAIN for TIMEOUT. */
MUST_USE enum status session_connect(struct session *s, struct error *err);

/* Run one SELECT; see store_admin_select for column names. A failure has been reported. */
MUST_USE enum exit_code session_select(struct session *s, const char *sql, int count,
                                       const char *const *values, struct table **ret_table);

/* Say in one line what a failed call means and what to do; returns the exit code. */
enum exit_code session_fail(const struct session *s, enum status status, const struct error *err);

/* A table of a page, with a heading on a terminal and a key in JSON. */
struct section {
    const char *key;
    const char *title; /* NULL: none */
    struct table *table;
    const char *empty; /* printed when there are no rows; NULL: the section is left out then */
    bool facts;        /* the first row as name and value; a JSON object */
    bool blocks;       /* the same on a terminal for each row; a JSON array */
};

/* The whole answer of a command: one section alone is a bare array (or object) in JSON. */
void session_print(const struct session *s, const struct section *sections, size_t count);

/* --limit and one more, to know whether there are more: for the statement's own LIMIT. */
void session_limit(const struct invocation *in, char ret_text[24]);

/* Print one list and free it; rows beyond `limit` (the caller asks for one more) are cut and said.
 */
enum exit_code session_print_list(const struct session *s, struct table *t, int64_t limit,
                                  const char *empty);

/* Print what a check has found, one a row with a column `verdict`. Returns: EXIT_FAILED when one of
 * them is wrong, or with --strict when there is any; else EXIT_DONE. */
enum exit_code session_print_findings(const struct session *s, struct table *t);

#endif
