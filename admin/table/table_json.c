/* The only file that includes jansson.h here. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cell.h"

static json_t *number_of(const char *cell, bool whole)
{
    char *end = NULL;
    json_t *value = whole ? json_integer(strtoll(cell, &end, 10)) : json_real(strtod(cell, &end));
    if (value == NULL || end == cell || *end != '\0') { /* "10000+", NaN */
        json_decref(value);
        return json_string(cell);
    }
    return value;
}

static json_t *value_of(const struct column *column, const char *cell)
{
    char text[64];
    if (cell == NULL) {
        return json_null();
    }
    switch (column->kind) {
    case COLUMN_INT:
    case COLUMN_BYTES:
        return number_of(cell, true);
    case COLUMN_NUMBER:
    case COLUMN_SECONDS:
        return number_of(cell, false);
    case COLUMN_BOOL:
        return json_boolean(*cell == 't');
    case COLUMN_INSTANT:
        cell_instant_format(cell, text, sizeof text);
        return json_string(text);
    case COLUMN_LOCAL: {
        (void)snprintf(text, sizeof text, "%s", cell);
        char *blank = strchr(text, ' ');
        if (blank != NULL) {
            *blank = 'T';
        }
        return json_string(text);
    }
    case COLUMN_JSON: {
        json_t *value = json_loads(cell, JSON_DECODE_ANY, NULL);
        return value != NULL ? value : json_string(cell);
    }
    case COLUMN_TEXT:
        return json_string(cell);
    }
    return NULL;
}

/* Row by row, so that a long list needs memory for one row only. */
static void row_print(const struct table *t, size_t row, int indent, FILE *to)
{
    json_t *object = json_object();
    for (size_t c = 0; c < table_columns(t); c++) {
        const struct column *column = table_column(t, c);
        if (column_is_for_programs(column)) {
            json_t *value = value_of(column, table_cell(t, row, c));
            /* A byte string that is not UTF-8 has no JSON form. */
            (void)json_object_set_new(object, column->name, value != NULL ? value : json_null());
        }
    }
    char *text = json_dumps(object, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    json_decref(object);
    if (text == NULL) {
        return;
    }
    for (const char *at = text; *at != '\0'; at++) {
        (void)putc(*at, to);
        if (*at == '\n') {
            (void)fprintf(to, "%*s", indent, "");
        }
    }
    free(text);
}

void table_print_json(const struct table *t, bool as_object, int indent, FILE *to)
{
    size_t rows = table_rows(t);
    if (as_object) {
        if (rows == 0) {
            (void)fputs("null", to);
        } else {
            row_print(t, 0, indent, to);
        }
        return;
    }
    (void)putc('[', to);
    for (size_t r = 0; r < rows; r++) {
        (void)fprintf(to, "%s\n%*s", r > 0 ? "," : "", indent + 2, "");
        row_print(t, r, indent + 2, to);
    }
    if (rows > 0) {
        (void)fprintf(to, "\n%*s", indent, "");
    }
    (void)putc(']', to);
}
