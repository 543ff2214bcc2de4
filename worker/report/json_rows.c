#include "json_rows.h"

#include <stdio.h>
#include <string.h>

static void escape_add(struct bytes *out, unsigned char c)
{
    char text[8];
    switch (c) {
    case '"':
        bytes_add_text(out, "\\\"");
        break;
    case '\\':
        bytes_add_text(out, "\\\\");
        break;
    case '\n':
        bytes_add_text(out, "\\n");
        break;
    case '\r':
        bytes_add_text(out, "\\r");
        break;
    case '\t':
        bytes_add_text(out, "\\t");
        break;
    default:
        (void)snprintf(text, sizeof text, "\\u%04x", c);
        bytes_add_text(out, text);
        break;
    }
}

static void string_add(struct bytes *out, const char *text, size_t size)
{
    bytes_add_char(out, '"');
    size_t from = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == '"' || c == '\\') {
            bytes_add(out, text + from, i - from);
            escape_add(out, c);
            from = i + 1;
        }
    }
    bytes_add(out, text + from, size - from);
    bytes_add_char(out, '"');
}

/* PostgreSQL prints finite numbers as JSON does; NaN and Infinity begin with a letter. */
static bool is_finite_number(const char *text, size_t size)
{
    size_t at = size > 0 && text[0] == '-' ? 1 : 0;
    return at < size && text[at] >= '0' && text[at] <= '9';
}

static void value_add(struct bytes *out, enum source_type type, const struct source_cell *cell)
{
    if (cell->text == NULL) {
        bytes_add_text(out, "null");
        return;
    }
    switch (type) {
    case SOURCE_BOOLEAN:
        bytes_add_text(out, cell->size > 0 && cell->text[0] == 't' ? "true" : "false");
        return;
    case SOURCE_NUMBER:
        if (is_finite_number(cell->text, cell->size)) {
            bytes_add(out, cell->text, cell->size);
            return;
        }
        break;
    case SOURCE_JSON:
        bytes_add(out, cell->text, cell->size);
        return;
    case SOURCE_TEXT:
        break;
    }
    string_add(out, cell->text, cell->size);
}

enum status json_columns_check(const struct source_column *columns, size_t count, struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (strcmp(columns[i].name, columns[j].name) == 0) {
                return error_set(err, STATUS_INVALID,
                                 "the query returns two columns named \"%s\"; for json give one of "
                                 "them another name with AS",
                                 columns[i].name);
            }
        }
    }
    return STATUS_OK;
}

void json_row(struct bytes *out, const struct source_column *columns,
              const struct source_cell *cells, size_t count, int64_t index)
{
    bytes_add_text(out, index == 0 ? "[\n{" : ",\n{");
    for (size_t i = 0; i < count; i++) {
        if (i > 0) {
            bytes_add_char(out, ',');
        }
        string_add(out, columns[i].name, strlen(columns[i].name));
        bytes_add_char(out, ':');
        value_add(out, columns[i].type, &cells[i]);
    }
    bytes_add_char(out, '}');
}

void json_end(struct bytes *out, int64_t rows)
{
    bytes_add_text(out, rows == 0 ? "[]\n" : "\n]\n");
}
