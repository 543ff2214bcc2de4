/* The only file that includes libsmartcols.h. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include <libsmartcols.h>

#include "cell.h"
#include "table_fit.h"

static bool columns_add(const struct table *t, const struct table_layout *layout,
                        struct libscols_table *out)
{
    char heading[64];
    for (size_t c = 0; c < table_columns(t); c++) {
        const struct column *column = table_column(t, c);
        if (layout->widths[c] == 0) {
            continue;
        }
        int flags = column_is_right(column) ? SCOLS_FL_RIGHT : 0;
        column_heading(column, heading);
        text_cut(heading, sizeof heading, layout->widths[c]);
        struct libscols_column *added =
            scols_table_new_column(out, heading, 0, flags | (layout->prose[c] ? SCOLS_FL_WRAP : 0));
        if (added == NULL) {
            return false;
        }
        if (layout->prose[c]) {
            (void)scols_column_set_wrapfunc(added, scols_wrapnl_chunksize, scols_wrapnl_nextchunk,
                                            NULL);
            (void)scols_column_set_safechars(added, "\n");
        }
    }
    return true;
}

static bool lines_add(const struct table *t, const struct table_view *view,
                      const struct table_layout *layout, struct libscols_table *out)
{
    char text[CELL_TEXT_MAX];
    for (size_t r = 0; r < table_rows(t); r++) {
        struct libscols_line *line = scols_table_new_line(out, NULL);
        if (line == NULL) {
            return false;
        }
        size_t shown = 0;
        for (size_t c = 0; c < table_columns(t); c++) {
            const struct column *column = table_column(t, c);
            if (layout->widths[c] == 0) {
                continue;
            }
            cell_format(column, table_cell(t, r, c), view->now, text);
            if (layout->prose[c] && view->width > 0) {
                text_wrap(text, sizeof text, layout->widths[c], true);
            } else {
                text_cut(text, sizeof text, layout->widths[c]);
            }
            if (scols_line_set_data(line, shown++, text) != 0) {
                return false;
            }
        }
    }
    return true;
}

static struct libscols_table *rows_new(const struct table *t, const struct table_view *view)
{
    struct table_layout layout;
    struct libscols_table *out = scols_new_table();
    if (out == NULL) {
        return NULL;
    }
    (void)scols_table_set_stream(out, view->to);
    (void)scols_table_enable_colors(out, 0);
    (void)scols_table_set_column_separator(out, "  ");
    /* Lines were fitted above; libsmartcols would cut or break within words ($COLUMNS, 80). */
    (void)scols_table_set_termforce(out, SCOLS_TERMFORCE_NEVER);
    table_layout_make(t, view, &layout);
    if (!columns_add(t, &layout, out) || !lines_add(t, view, &layout, out)) {
        scols_unref_table(out);
        return NULL;
    }
    return out;
}

/* libsmartcols pads the last column; a line that is copied should not carry the blanks. */
static void lines_print_trimmed(char *text, FILE *to)
{
    char *line = text;
    while (line != NULL && *line != '\0') {
        char *end = strchr(line, '\n');
        size_t n = end != NULL ? (size_t)(end - line) : strlen(line);
        while (n > 0 && line[n - 1] == ' ') {
            n--;
        }
        (void)fprintf(to, "%.*s\n", (int)n, line);
        line = end != NULL ? end + 1 : NULL;
    }
}

void table_print_rows(const struct table *t, const struct table_view *view)
{
    struct libscols_table *out = rows_new(t, view);
    char *text = NULL;
    if (out != NULL && scols_print_table_to_string(out, &text) == 0) {
        lines_print_trimmed(text, view->to);
    }
    free(text);
    scols_unref_table(out);
}

/* Lines of a text that stands behind `indent` characters; the first line's are there already. */
static void lines_print(char *text, size_t indent, const struct table_view *view)
{
    size_t width = (size_t)view->width;
    if (width > indent + TABLE_PROSE_MIN) {
        text_wrap(text, strlen(text) + 1, width - indent, false);
    }
    for (char *line = text; line != NULL;) {
        char *end = strchr(line, '\n');
        (void)fprintf(view->to, "%*s%.*s\n", line == text ? 0 : (int)indent, "",
                      (int)(end != NULL ? (size_t)(end - line) : strlen(line)), line);
        line = end != NULL ? end + 1 : NULL;
    }
}

void table_print_text(const char *text, const struct table_view *view)
{
    const struct column column = {.kind = COLUMN_TEXT};
    char line[CELL_TEXT_MAX];
    cell_format(&column, text, view->now, line);
    lines_print(line, 0, view);
}

static void fact_name(const struct column *column, char ret_text[64])
{
    column_heading(column, ret_text);
    for (char *at = ret_text; *at != '\0'; at++) {
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at + ('a' - 'A')) : *at;
    }
}

/* A value of several lines keeps them, each under the first. */
static void fact_print(const char *name, int width, const struct column *column, const char *cell,
                       const struct table_view *view)
{
    char text[CELL_TEXT_MAX];
    char line[CELL_TEXT_MAX];
    const char *at = cell;
    while (at != NULL && *at != '\0') {
        const char *end = column->kind == COLUMN_TEXT ? strchr(at, '\n') : NULL;
        (void)snprintf(line, sizeof line, "%.*s",
                       (int)(end != NULL ? (size_t)(end - at) : strlen(at)), at);
        cell_format(column, line, view->now, text);
        (void)fprintf(view->to, "%-*s  ", width, at == cell ? name : "");
        lines_print(text, (size_t)width + TABLE_GAP, view);
        at = end != NULL ? end + 1 : NULL;
    }
}

/* Of the names that some row has a value for. */
static int names_width(const struct table *t)
{
    char name[64];
    int width = 0;
    for (size_t i = 0; i < table_rows(t) * table_columns(t); i++) {
        size_t c = i % table_columns(t);
        fact_name(table_column(t, c), name);
        int n = (int)strlen(name);
        bool counts = column_is_for_people(table_column(t, c)) &&
                      table_cell(t, i / table_columns(t), c) != NULL;
        width = counts && n > width ? n : width;
    }
    return width;
}

void table_print_facts(const struct table *t, const struct table_view *view)
{
    char name[64];
    int width = names_width(t);
    for (size_t row = 0; row < table_rows(t); row++) {
        (void)fputs(row > 0 ? "\n" : "", view->to);
        for (size_t c = 0; c < table_columns(t); c++) {
            const struct column *column = table_column(t, c);
            const char *cell = table_cell(t, row, c);
            if (column_is_for_people(column) && cell != NULL && *cell != '\0') {
                fact_name(column, name);
                fact_print(name, width, column, cell, view);
            }
        }
    }
}
