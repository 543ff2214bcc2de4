/* What reportctl asks of PostgreSQL: any SELECT as a table, and the migrations. */
#ifndef RS_STORE_ADMIN_H
#define RS_STORE_ADMIN_H

#include <stddef.h>

#include "clock.h"
#include "status.h"
#include "store.h"
#include "table.h"

/* Run one SELECT and take all its rows (the statement bounds their number). Column kinds come from
 * the result's types; a name may end in marks that are not part of it:
 *   ~  shown as an age on a terminal    !  for people only    -  for programs only
 *   #  text that holds a whole number   ?  spare: a narrow terminal goes without it
 *   |HEADING  (first) what a terminal shows instead
 * A numeric column "..._s" is a duration, an integer column "..._bytes" a size.
 * Owns: *ret_table, table_free. Returns: as store_pg_query; FATAL (out of memory).
 * Blocks: until deadline. */
MUST_USE enum status store_admin_select(struct store *store, const char *sql, int count,
                                        const char *const *values, instant deadline,
                                        struct table **ret_table, struct error *err);

/* Which database is this: learn *known, or compare with it. Returns: OK; INVALID (the text names
 * both installations); as store_pg_query. Blocks: until deadline. */
MUST_USE enum status store_admin_identify(struct store *store, struct store_identity *known,
                                          instant deadline, struct error *err);

/* Run a script of statements through the simple protocol, in one transaction unless it says
 * otherwise. On a failure *ret_position is the byte of the script (from 0) at which the server
 * places the error, or -1. Returns: as store_pg_query. Blocks: until deadline. */
MUST_USE enum status store_admin_script(struct store *store, const char *script, instant deadline,
                                        long *ret_position, struct error *err);

#endif
