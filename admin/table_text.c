/* The only file that includes libsmartcols.h. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include <libsmartcols.h>

#include "cell.h"

#define PROSE_MIN 24 /* a column of words is not made narrower; ids and numbers never are */
#define GAP       2  /* blanks between columns */

struct layout {
    size_t widths[TABLE_COLUMNS_MAX]; /* 0: not shown */
    bool prose[TABLE_COLUMNS_MAX];
};

static bool is_shown(const struct column *column)
{
    return column->show != SHOW_PROGRAMS;
}

/* Characters of UTF-8 text. */
static size_t text_width(const char *text)
{
    size_t n = 0;
    for (; *text != '\0'; text++) {
        n += ((unsigned char)*text & 0xc0) != 0x80 ? 1 : 0;
    }
    return n;
}

static void column_measure(const struct table *t, const struct table_view *view, size_t c,
                           struct layout *layout)
{
    const struct column *column = table_column(t, c);
    char text[CELL_TEXT_MAX];
    column_heading(column, text);
    size_t widest = text_width(text);
    bool words = false;
    for (size_t r = 0; r < table_rows(t); r++) {
        cell_format(column, table_cell(t, r, c), view->now, text);
        size_t n = text_width(text);
        widest = n > widest ? n : widest;
        words = words || strchr(text, ' ') != NULL;
    }
    layout->widths[c] = widest;
    layout->prose[c] = words && column->kind == COLUMN_TEXT && widest > PROSE_MIN;
}

/* Narrow the widest columns of prose, one character at a time, until a line fits. */
static void layout_fit(struct layout *layout, size_t columns, size_t total, size_t width)
{
    while (total > width) {
        size_t widest = 0;
        size_t best = columns;
        for (size_t c = 0; c < columns; c++) {
            if (layout->prose[c] && layout->widths[c] > PROSE_MIN && layout->widths[c] > widest) {
                widest = layout->widths[c];
                best = c;
            }
        }
        if (best == columns) {
            return; /* the terminal breaks the lines; nothing is cut off */
        }
        layout->widths[best]--;
        total--;
    }
}

static void layout_make(const struct table *t, const struct table_view *view, struct layout *layout)
{
    size_t total = 0;
    memset(layout, 0, sizeof *layout);
    for (size_t c = 0; c < table_columns(t); c++) {
        if (is_shown(table_column(t, c))) {
            column_measure(t, view, c, layout);
            total += layout->widths[c] + GAP;
        }
    }
    if (view->width > 0 && total > GAP) {
        layout_fit(layout, table_columns(t), total - GAP, (size_t)view->width);
    }
}

/* Turn blanks into line ends so that lines have at most `width` characters where words allow. */
static void text_wrap(char *text, size_t width)
{
    char *blank = NULL;
    size_t used = 0;
    for (char *at = text; *at != '\0'; at++) {
        used += ((unsigned char)*at & 0xc0) != 0x80 ? 1 : 0;
        if (used > width && blank != NULL) {
            *blank = '\n';
            used = (size_t)(at - blank);
            blank = NULL;
        }
        if (*at == ' ') {
            blank = at;
        }
    }
}

static bool columns_add(const struct table *t, const struct layout *layout,
                        struct libscols_table *out)
{
    char heading[64];
    for (size_t c = 0; c < table_columns(t); c++) {
        const struct column *column = table_column(t, c);
        if (!is_shown(column)) {
            continue;
        }
        int flags = column_is_right(column) ? SCOLS_FL_RIGHT : 0;
        column_heading(column, heading);
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
                      const struct layout *layout, struct libscols_table *out)
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
            if (!is_shown(column)) {
                continue;
            }
            cell_format(column, table_cell(t, r, c), view->now, text);
            if (layout->prose[c] && view->width > 0) {
                text_wrap(text, layout->widths[c]);
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
    struct layout layout;
    struct libscols_table *out = scols_new_table();
    if (out == NULL) {
        return NULL;
    }
    (void)scols_table_set_stream(out, view->to);
    (void)scols_table_enable_colors(out, 0);
    (void)scols_table_set_column_separator(out, "  ");
    /* Lines were fitted above; libsmartcols would cut or break within words ($COLUMNS, 80). */
    (void)scols_table_set_termforce(out, SCOLS_TERMFORCE_NEVER);
    layout_make(t, view, &layout);
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
        (void)fprintf(view->to, "%-*s  %s\n", width, at == cell ? name : "", text);
        at = end != NULL ? end + 1 : NULL;
    }
}

void table_print_facts(const struct table *t, const struct table_view *view)
{
    char name[64];
    int width = 0;
    if (table_rows(t) == 0) {
        return;
    }
    for (size_t c = 0; c < table_columns(t); c++) {
        fact_name(table_column(t, c), name);
        int n = (int)strlen(name);
        width =
            is_shown(table_column(t, c)) && table_cell(t, 0, c) != NULL && n > width ? n : width;
    }
    for (size_t c = 0; c < table_columns(t); c++) {
        const struct column *column = table_column(t, c);
        const char *cell = table_cell(t, 0, c);
        if (is_shown(column) && cell != NULL && *cell != '\0') {
            fact_name(column, name);
            fact_print(name, width, column, cell, view);
        }
    }
}
