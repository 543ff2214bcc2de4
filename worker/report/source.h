/* Port: one connection to a data source, a database that reports read. One query at a time, read
 * only, in one snapshot; rows stream, so memory does not grow with the result. Adapter:
 * store_pg_source.c (PostgreSQL). Each object belongs to one thread. */
#ifndef RS_SOURCE_H
#define RS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "job.h"
#include "status.h"

#define SOURCE_QUERY_MAX (4u << 20) /* bytes after substitution */

struct source;

/* Strings are borrowed for the call. */
struct source_options {
    const char *conninfo;
    const char *password_file; /* "": none */
    const char *application;   /* shown on the server */
    int64_t statement_timeout_ms;
};

/* When to give up waiting. */
struct source_wait {
    int wake_fd; /* readable: stop now */
    instant deadline;
};

enum source_type {
    SOURCE_TEXT,
    SOURCE_NUMBER,
    SOURCE_BOOLEAN,
    SOURCE_JSON,
};

struct source_column {
    const char *name; /* borrowed until source_end */
    enum source_type type;
};

struct source_cell {
    const char *text; /* NULL: SQL NULL; borrowed until the next source_next; has a NUL behind it */
    size_t size;
};

/* Connect. Owns: *ret_source, source_close (NULL is fine).
 * Returns: OK; AGAIN (unreachable, refused: text of the server); TIMEOUT (deadline or wake_fd);
 * INVALID (password file); FATAL (memory). Blocks: until the wait ends. */
MUST_USE enum status source_open(const struct source_options *options,
                                 const struct source_wait *wait, struct source **ret_source,
                                 struct error *err);
void source_close(struct source *s);

/* Begin a read-only snapshot, put the job's parameters into its query and send it; wait for the
 * columns. Returns: OK; NOT_FOUND, INVALID (a parameter, or the server refused the query: err->code
 * has the SQLSTATE when it was the server); AGAIN, TIMEOUT as above. After anything but OK call
 * source_end. Blocks: until the wait ends. */
MUST_USE enum status source_query(struct source *s, const struct job *job,
                                  const struct source_wait *wait, struct error *err);

/* Columns of the running query. Borrowed until source_end. */
size_t source_columns(const struct source *s, const struct source_column **ret_columns);

/* The next row. Returns: OK; NOT_FOUND (there are no more); else as source_query. */
MUST_USE enum status source_next(struct source *s, const struct source_wait *wait,
                                 const struct source_cell **ret_cells, struct error *err);

/* End the query (cancelling it if it still runs) and the snapshot and reset the session, so that
 * nothing of it shows in the next job. Blocks: a few seconds at most. A source that cannot be
 * brought back is broken: close it. */
void source_end(struct source *s);
bool source_is_broken(const struct source *s);

/* Socket, for a thread that must cut the connection when its owner hangs (shutdown(2)). */
int source_fd(const struct source *s);

/* Can the same query succeed when tried again? No for classes 22 (data), 42 (syntax, names,
 * and the like), 0A, 21, 23, 25, 2F, 34, 3B, 3F, 44: somebody has to change the query or the data
 * source first. Yes for what a load that is under way makes anew (42P01 table, 42501 right, 3F000
 * schema) and for everything else: connection trouble, serialization, resources, timeouts,
 * internal errors, and failures without a SQLSTATE that are not INVALID or NOT_FOUND. */
bool source_failure_is_retryable(enum status s, const char *sqlstate);

#endif
