#include "table.h"

#include <string.h>

#include "cell.h"

/* RFC 4180: CRLF line ends; a field with a comma, quote or line break stands in quotes. */
static void field_print(const char *text, FILE *to)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        (void)fputs(text, to);
        return;
    }
    (void)putc('"', to);
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '"') {
            (void)putc('"', to);
        }
        (void)putc(*at, to);
    }
    (void)putc('"', to);
}

static void value_print(const struct column *column, const char *cell, FILE *to)
{
    char text[64];
    if (cell == NULL) {
        return;
    }
    if (column->kind == COLUMN_INSTANT) {
        cell_instant_format(cell, text, sizeof text);
        field_print(text, to);
    } else if (column->kind == COLUMN_BOOL) {
        field_print(*cell == 't' ? "true" : "false", to);
    } else {
        field_print(cell, to);
    }
}

void table_print_csv(const struct table *t, FILE *to)
{
    const char *comma = "";
    for (size_t c = 0; c < table_columns(t); c++) {
        if (column_is_for_programs(table_column(t, c))) {
            (void)fputs(comma, to);
            field_print(table_column(t, c)->name, to);
            comma = ",";
        }
    }
    (void)fputs("\r\n", to);
    for (size_t r = 0; r < table_rows(t); r++) {
        comma = "";
        for (size_t c = 0; c < table_columns(t); c++) {
            if (column_is_for_programs(table_column(t, c))) {
                (void)fputs(comma, to);
                value_print(table_column(t, c), table_cell(t, r, c), to);
                comma = ",";
            }
        }
        (void)fputs("\r\n", to);
    }
}
