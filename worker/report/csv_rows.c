#include "csv_rows.h"

#include <string.h>

/* Quoted where a reader could misread it: separators, quotes, line ends, blanks at an end, and the
 * single field `\.`, which COPY takes for the end of data. */
static bool needs_quotes(const char *text, size_t size)
{
    if (size == 0 || (size == 2 && memcmp(text, "\\.", 2) == 0) || text[0] == ' ' ||
        text[size - 1] == ' ') {
        return true;
    }
    for (size_t i = 0; i < size; i++) {
        if (text[i] == ',' || text[i] == '"' || text[i] == '\n' || text[i] == '\r') {
            return true;
        }
    }
    return false;
}

static void field_add(struct bytes *out, const char *text, size_t size)
{
    if (!needs_quotes(text, size)) {
        bytes_add(out, text, size);
        return;
    }
    bytes_add_char(out, '"');
    size_t from = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"') {
            bytes_add(out, text + from, i + 1 - from);
            bytes_add_char(out, '"');
            from = i + 1;
        }
    }
    bytes_add(out, text + from, size - from);
    bytes_add_char(out, '"');
}

void csv_header(struct bytes *out, const struct source_column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            bytes_add_char(out, ',');
        }
        field_add(out, columns[i].name, strlen(columns[i].name));
    }
    bytes_add_char(out, '\n');
}

void csv_row(struct bytes *out, const struct source_cell *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            bytes_add_char(out, ',');
        }
        if (cells[i].text != NULL) {
            field_add(out, cells[i].text, cells[i].size);
        }
    }
    bytes_add_char(out, '\n');
}
