/* Inside of the PostgreSQL adapter: included by store_pg*.c files only. */
#ifndef RS_STORE_PG_H
#define RS_STORE_PG_H

#include <libpq-fe.h>
#include <stddef.h>

#include "store.h"

/* Run one statement with text parameters and take its result.
 * Owns: *ret_result, PQclear by the caller, only when OK. Rows arrive in text form.
 * SQLSTATEs: a lost socket -> AGAIN and broken; classes 08, 53 and 57P, 40001, 40P01, 55P03, 25006
 * -> AGAIN; 57014 -> TIMEOUT; RS001 -> CORRUPT; other RSxxx (listed in store.h) and all else ->
 * INVALID with the server's message and hint in err. A COMMIT that warns of missing
 * synchronous replication (01000 "might not have been replicated") -> TIMEOUT (unknown).
 * Thread: owner. Blocks: until deadline. */
MUST_USE enum status store_pg_query(struct store *store, const char *sql, int count,
                                    const char *const *values, instant deadline,
                                    PGresult **ret_result, struct error *err);

/* The same in two halves, for those who have other work while the server does its own. One
 * statement at a time: between the halves nothing else may be asked over the connection.
 * send: OK, or as store_pg_query, and then there is nothing to take. take: as store_pg_query. */
struct store_pg_statement {
    const char *sql; /* borrowed until it was taken */
    int count;
    const char *const *values;
    bool binary; /* rows arrive in binary form */
};
MUST_USE enum status store_pg_send(struct store *store, const struct store_pg_statement *statement,
                                   instant deadline, struct error *err);
MUST_USE enum status store_pg_take(struct store *store, instant deadline, PGresult **ret_result,
                                   struct error *err);

/* Has the answer come, or will none? Then store_pg_take does not block. Thread: owner. Blocks:
 * never. */
bool store_pg_answered(struct store *store);

/* What store_pg_query makes of an SQLSTATE. Pure. */
enum status store_pg_sqlstate_status(const char *state);

PGconn *store_pg_connection(struct store *store);

/* Learn *known, or compare with it. Returns: OK; INVALID (another installation or cluster);
 * CORRUPT; AGAIN; TIMEOUT. */
MUST_USE enum status store_pg_identify(struct store *store, struct store_identity *known,
                                       instant deadline, struct error *err);

/* The same verdict as store_pg_query would give for a failed result; for adapters that drive the
 * connection themselves (single-row mode, COPY). `result` may be NULL: reads the connection. */
enum status store_pg_verdict(PGconn *connection, const PGresult *result, struct error *err);

/* Builds one text-form array literal: {"a","b",NULL}. Grows by doubling; an allocation failure
 * sticks and store_pg_array_text returns NULL. Zero-initialise. */
struct store_pg_array {
    char *text;
    size_t used, size;
    bool failed;
};
void store_pg_array_reset(struct store_pg_array *a); /* keeps the memory for the next batch */
void store_pg_array_add(struct store_pg_array *a, const char *value); /* NULL adds NULL */
void store_pg_array_add_int(struct store_pg_array *a, int64_t value);
const char *store_pg_array_text(struct store_pg_array *a); /* valid until the next change */
void store_pg_array_free(struct store_pg_array *a);

/* utc_us as "2030-04-12 06:00:00.000000+00" and back; parse accepts what PostgreSQL prints with
 * DateStyle ISO and TimeZone UTC, which store_open sets. */
#define STORE_PG_TIME_MAX 48
void store_pg_time_format(utc_us t, char ret_text[STORE_PG_TIME_MAX]);
bool store_pg_time_parse(const char *text, utc_us *ret_time);

/* Typed cells; a NULL cell gives 0, "" or false. */
int64_t store_pg_int(const PGresult *r, int row, int column);
bool store_pg_bool(const PGresult *r, int row, int column);
void store_pg_text(const PGresult *r, int row, int column, char *ret_text, size_t size);

#endif
