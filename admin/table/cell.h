/* How one value looks to people: pure text functions. */
#ifndef RS_CELL_H
#define RS_CELL_H

#include <stddef.h>

#include "table.h"

#define CELL_TEXT_MAX 2304 /* an error text (2 000 bytes) and a little more; longer text is cut */

/* The canonical cell as people see it; "-" for no value. Control characters become blanks, so that
 * an error text can neither break a line nor send escape sequences to the terminal. */
void cell_format(const struct column *column, const char *cell, utc_us now,
                 char ret_text[CELL_TEXT_MAX]);

/* "-" or "3.2s", "45s", "2m 5s", "3h 20m", "12d 4h". */
void cell_duration_format(double seconds, char *ret_text, size_t size);

/* PostgreSQL's UTC text to microseconds; false when it is something else (infinity). */
bool cell_instant_parse(const char *text, utc_us *ret);

/* RFC 3339 with Z and as many fraction digits as there are. */
void cell_instant_format(const char *cell, char *ret_text, size_t size);

/* Add the cell of an instant, as cell_instant_parse reads it, to the row being made; one that is
 * not finite is no value. Returns: as table_cell_add. */
bool cell_instant_add(struct table *t, utc_us at);

/* Numbers stand right-aligned. */
bool column_is_right(const struct column *column);

/* "next_fire_at" -> "NEXT FIRE"; "started_at" shown as age -> "STARTED". */
void column_heading(const struct column *column, char ret_text[64]);

#endif
