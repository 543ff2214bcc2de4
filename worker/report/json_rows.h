/* Rows as a JSON array of objects, one object a line. Numbers, booleans, NULL and json(b) columns
 * keep their type (by the column's type); NaN and infinities, which JSON cannot write, and all
 * else become strings. Pure. */
#ifndef RS_JSON_ROWS_H
#define RS_JSON_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "bytes.h"
#include "source.h"
#include "status.h"

/* A name that appears twice would be lost in an object. Returns: OK; INVALID: the text names it. */
MUST_USE enum status json_columns_check(const struct source_column *columns, size_t count,
                                        struct error *err);

/* Append the row with number `index` (0 for the first); the array is opened before the first. */
void json_row(struct bytes *out, const struct source_column *columns,
              const struct source_cell *cells, size_t count, int64_t index);

/* Close the array after `rows` rows. */
void json_end(struct bytes *out, int64_t rows);

#endif
