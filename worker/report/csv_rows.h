/* One CSV record, RFC 4180 with LF line ends: what psql's \copy ... csv header writes, so that
 * files compare with what people make by hand. NULL is an empty field; an empty text is "". Pure.
 */
#ifndef RS_CSV_ROWS_H
#define RS_CSV_ROWS_H

#include <stddef.h>

#include "bytes.h"
#include "source.h"

/* Append the header line. */
void csv_header(struct bytes *out, const struct source_column *columns, size_t count);

/* Append one record. */
void csv_row(struct bytes *out, const struct source_cell *cells, size_t count);

#endif
