/* The only file that includes libsmartcols.h. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#include <libsmartcols.h>

#include "cell.h"

#define PROSE_MIN  24 /* a column of words is not made narrower; ids and numbers never are */
#define PROSE_EASY 36 /* nor narrower than this while a spare column could give way instead */
#define GAP        2  /* blanks between columns */

struct layout {
    size_t widths[TABLE_COLUMNS_MAX]; /* 0: not shown */
    size_t words[TABLE_COLUMNS_MAX];  /* the longest word, of prose */
    bool prose[TABLE_COLUMNS_MAX];
    bool empty[TABLE_COLUMNS_MAX]; /* without any value */
};

static bool is_shown(const struct column *column)
{
    return column->show != SHOW_PROGRAMS;
}

/* Characters of UTF-8 text up to one of `ends` or the end. */
static size_t span_width(const char *text, const char *ends)
{
    size_t bytes = strcspn(text, ends);
    size_t n = 0;
    for (size_t i = 0; i < bytes; i++) {
        n += ((unsigned char)text[i] & 0xc0) != 0x80 ? 1 : 0;
    }
    return n;
}

static size_t text_width(const char *text)
{
    return span_width(text, "");
}

static size_t longest_word(const char *text)
{
    size_t longest = 0;
    while (*text != '\0') {
        size_t n = span_width(text, " ");
        longest = n > longest ? n : longest;
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
    return longest;
}

static void column_measure(const struct table *t, const struct table_view *view, size_t c,
                           struct layout *layout)
{
    const struct column *column = table_column(t, c);
    char text[CELL_TEXT_MAX];
    column_heading(column, text);
    size_t widest = text_width(text);
    size_t longest = longest_word(text);
    bool words = false;
    bool empty = true;
    for (size_t r = 0; r < table_rows(t); r++) {
        const char *cell = table_cell(t, r, c);
        cell_format(column, cell, view->now, text);
        size_t n = text_width(text);
        size_t word = longest_word(text);
        widest = n > widest ? n : widest;
        longest = word > longest ? word : longest;
        words = words || strchr(text, ' ') != NULL;
        empty = empty && (cell == NULL || *cell == '\0');
    }
    layout->widths[c] = widest;
    layout->words[c] = longest;
    layout->prose[c] = words && column->kind == COLUMN_TEXT && widest > PROSE_MIN;
    layout->empty[c] = empty;
}

static size_t narrowest(const struct layout *layout, size_t c, size_t prose_min)
{
    size_t least = layout->words[c] > prose_min ? layout->words[c] : prose_min;
    return layout->prose[c] && least < layout->widths[c] ? least : layout->widths[c];
}

/* Width of a line with prose made as narrow as that; 0: as it is. */
static size_t layout_total(const struct layout *layout, size_t columns, size_t prose_min)
{
    size_t total = 0;
    for (size_t c = 0; c < columns; c++) {
        if (layout->widths[c] > 0) {
            total += GAP + (prose_min > 0 ? narrowest(layout, c, prose_min) : layout->widths[c]);
        }
    }
    return total > GAP ? total - GAP : 0;
}

/* Of the spare columns take those that there is room for, what comes first first, and those without
 * a value last of all. */
static void layout_spare(const struct table *t, const struct table_view *view,
                         struct layout *layout)
{
    size_t columns = table_columns(t);
    size_t widths[TABLE_COLUMNS_MAX];
    char heading[64];
    memcpy(widths, layout->widths, sizeof widths);
    for (size_t c = 0; c < columns; c++) {
        layout->widths[c] = table_column(t, c)->spare ? 0 : widths[c];
    }
    for (size_t i = 0; i < 2 * columns; i++) {
        size_t c = i % columns;
        if (layout->widths[c] == 0 && layout->empty[c] == (i >= columns)) {
            layout->widths[c] = widths[c];
            bool fits = layout_total(layout, columns, PROSE_EASY) <= (size_t)view->width;
            layout->widths[c] = fits ? widths[c] : 0;
        }
    }
    for (size_t c = 0; c < columns && view->left_out != NULL; c++) {
        if (layout->widths[c] < widths[c] && !layout->empty[c]) {
            column_heading(table_column(t, c), heading);
            (void)fprintf(view->left_out, ", %s", heading);
        }
    }
}

/* Narrow the widest columns of prose, one character at a time, until a line fits. */
static void layout_fit(struct layout *layout, size_t columns, size_t width)
{
    for (size_t total = layout_total(layout, columns, 0); total > width; total--) {
        size_t widest = 0;
        size_t best = columns;
        for (size_t c = 0; c < columns; c++) {
            if (layout->widths[c] > narrowest(layout, c, PROSE_MIN) && layout->widths[c] > widest) {
                widest = layout->widths[c];
                best = c;
            }
        }
        if (best == columns) {
            return; /* the terminal breaks the lines; nothing is cut off */
        }
        layout->widths[best]--;
    }
}

static void layout_make(const struct table *t, const struct table_view *view, struct layout *layout)
{
    memset(layout, 0, sizeof *layout);
    for (size_t c = 0; c < table_columns(t); c++) {
        if (is_shown(table_column(t, c))) {
            column_measure(t, view, c, layout);
        }
    }
    if (view->width > 0) {
        layout_spare(t, view, layout);
        layout_fit(layout, table_columns(t), (size_t)view->width);
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
        if (layout->widths[c] == 0) {
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
            if (layout->widths[c] == 0) {
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

/* Lines of a text that stands behind `indent` characters; the first line's are there already. */
static void lines_print(char *text, size_t indent, const struct table_view *view)
{
    size_t width = (size_t)view->width;
    if (width > indent + PROSE_MIN) {
        text_wrap(text, width - indent);
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
        lines_print(text, (size_t)width + GAP, view);
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
        bool counts =
            is_shown(table_column(t, c)) && table_cell(t, i / table_columns(t), c) != NULL;
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
            if (is_shown(column) && cell != NULL && *cell != '\0') {
                fact_name(column, name);
                fact_print(name, width, column, cell, view);
            }
        }
    }
}
