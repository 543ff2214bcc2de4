#include "table_fit.h"

#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "ident.h"

#define PROSE_EASY 36 /* prose is not narrower than this while a spare column could give way */

#define SHORT_TEXT 20 /* a word of a list, such as a reason: half of it says nothing */

/* How narrow columns are made before anything worse is done. */
struct squeeze {
    size_t prose; /* and its longest word, unless words are broken */
    size_t text;
    size_t fixed; /* ids and times, and short text */
    bool breaks;  /* words */
};

/* Prose that wraps loses nothing, so it goes first; then long names are cut. */
static const struct squeeze squeezes[] = {
    {.prose = PROSE_EASY, .text = SIZE_MAX, .fixed = SIZE_MAX},
    {.prose = TABLE_PROSE_MIN, .text = 36, .fixed = SIZE_MAX},
    {.prose = 16, .text = 36, .fixed = SIZE_MAX, .breaks = true},
    {.prose = 16, .text = 16, .fixed = SIZE_MAX, .breaks = true},
    {.prose = 16, .text = 8, .fixed = SIZE_MAX, .breaks = true},
};

/* When columns have gone and the first ones still do not fit. */
static const struct squeeze last_squeeze = {.prose = 8, .text = 8, .fixed = 10, .breaks = true};
#define COLUMNS_KEPT 2

size_t text_span_width(const char *text, const char *ends)
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
    return text_span_width(text, "");
}

static size_t longest_word(const char *text)
{
    size_t longest = 0;
    while (*text != '\0') {
        size_t n = text_span_width(text, " ");
        longest = n > longest ? n : longest;
        text += strcspn(text, " ");
        text += strspn(text, " ");
    }
    return longest;
}

static bool is_dated(const char *text)
{
    static const char form[] = "dddd-dd-dd";
    for (size_t i = 0; form[i] != '\0'; i++) {
        bool digit = text[i] >= '0' && text[i] <= '9';
        if (form[i] == 'd' ? !digit : text[i] != form[i]) {
            return false;
        }
    }
    return true;
}

static void column_measure(const struct table *t, const struct table_view *view, size_t c,
                           struct table_layout *layout)
{
    const struct column *column = table_column(t, c);
    char text[CELL_TEXT_MAX];
    column_heading(column, text);
    size_t widest = text_width(text);
    size_t longest = longest_word(text);
    bool words = false;
    bool empty = true;
    bool fixed = true;
    bool ids = true;
    for (size_t r = 0; r < table_rows(t); r++) {
        const char *cell = table_cell(t, r, c);
        cell_format(column, cell, view->now, text);
        size_t n = text_width(text);
        size_t word = longest_word(text);
        widest = n > widest ? n : widest;
        longest = word > longest ? word : longest;
        words = words || strchr(text, ' ') != NULL;
        bool none = cell == NULL || *cell == '\0';
        empty = empty && none;
        bool id = uuid_is_valid(text);
        fixed = fixed && (none || is_dated(text) || id);
        ids = ids && (none || id);
    }
    layout->widths[c] = layout->full[c] = widest;
    layout->words[c] = longest;
    layout->text[c] = column->kind == COLUMN_TEXT || column->kind == COLUMN_JSON;
    layout->ids[c] = ids && !empty;
    layout->fixed[c] = (fixed && !empty) || widest <= SHORT_TEXT;
    layout->prose[c] =
        words && column->kind == COLUMN_TEXT && widest > TABLE_PROSE_MIN && !layout->fixed[c];
    layout->empty[c] = empty;
}

/* How narrow a column may become; where it is narrower already, its width. */
static size_t narrowest(const struct table_layout *layout, size_t c, const struct squeeze *s)
{
    size_t least = SIZE_MAX;
    if (layout->prose[c]) {
        least = !s->breaks && layout->words[c] > s->prose ? layout->words[c] : s->prose;
    } else if (layout->text[c]) {
        least = layout->fixed[c] ? s->fixed : s->text;
    }
    return least < layout->widths[c] ? least : layout->widths[c];
}

/* Width of a line as it is. */
static size_t layout_total(const struct table_layout *layout, size_t columns)
{
    size_t total = 0;
    for (size_t c = 0; c < columns; c++) {
        total += layout->widths[c] > 0 ? TABLE_GAP + layout->widths[c] : 0;
    }
    return total > TABLE_GAP ? total - TABLE_GAP : 0;
}

/* With prose narrow, but easy to read; column `last`, which comes in addition, as narrow as it may
 * be. */
static size_t easy_total(const struct table_layout *layout, size_t columns, size_t last)
{
    static const struct squeeze easy = {.prose = PROSE_EASY, .text = SIZE_MAX, .fixed = SIZE_MAX};
    static const struct squeeze least = {
        .prose = TABLE_PROSE_MIN, .text = SIZE_MAX, .fixed = SIZE_MAX};
    size_t total = 0;
    for (size_t c = 0; c < columns; c++) {
        if (layout->widths[c] > 0) {
            total += TABLE_GAP + narrowest(layout, c, c == last ? &least : &easy);
        }
    }
    return total > TABLE_GAP ? total - TABLE_GAP : 0;
}

/* Of the spare columns take those that there is room for, what comes first first, and those without
 * a value last of all. */
static void layout_spare(const struct table *t, const struct table_view *view,
                         struct table_layout *layout)
{
    size_t columns = table_columns(t);
    for (size_t c = 0; c < columns; c++) {
        layout->widths[c] = table_column(t, c)->spare ? 0 : layout->widths[c];
    }
    for (size_t i = 0; i < 2 * columns; i++) {
        size_t c = i % columns;
        if (layout->full[c] > 0 && layout->widths[c] == 0 && layout->empty[c] == (i >= columns)) {
            layout->widths[c] = layout->full[c];
            bool fits = easy_total(layout, columns, c) <= (size_t)view->width;
            layout->widths[c] = fits ? layout->full[c] : 0;
        }
    }
}

/* Narrow the widest column that may become narrower, one character at a time, until a line fits. */
static bool layout_squeeze(struct table_layout *layout, size_t columns, size_t width,
                           const struct squeeze *s)
{
    for (size_t total = layout_total(layout, columns); total > width; total--) {
        size_t widest = 0;
        size_t best = columns;
        for (size_t c = 0; c < columns; c++) {
            if (layout->widths[c] > narrowest(layout, c, s) && layout->widths[c] > widest) {
                widest = layout->widths[c];
                best = c;
            }
        }
        if (best == columns) {
            return false;
        }
        layout->widths[best]--;
    }
    return true;
}

/* Narrow what there is, from full widths on. */
static bool layout_narrow(struct table_layout *layout, size_t columns, size_t width)
{
    for (size_t i = 0; i < sizeof squeezes / sizeof squeezes[0]; i++) {
        for (size_t c = 0; c < columns; c++) {
            layout->widths[c] = layout->widths[c] > 0 ? layout->full[c] : 0;
        }
        if (layout_squeeze(layout, columns, width, &squeezes[i])) {
            return true;
        }
    }
    return false;
}

/* A column less is better than all of them mutilated: first an id, of which a piece is good for
 * nothing, then from the right, for the first ones tell what the line is about. What remains has
 * the room of what went. */
static void layout_fit(struct table_layout *layout, size_t columns, size_t width)
{
    size_t shown = 0;
    for (size_t c = 0; c < columns; c++) {
        shown += layout->widths[c] > 0 ? 1 : 0;
    }
    bool fits = layout_narrow(layout, columns, width);
    for (size_t c = 0; c < columns && shown > COLUMNS_KEPT && !fits; c++) {
        if (layout->ids[c] && layout->widths[c] > 0) {
            shown--;
            layout->widths[c] = 0;
            fits = layout_narrow(layout, columns, width);
        }
    }
    for (size_t c = columns; c-- > 0 && shown > COLUMNS_KEPT && !fits;) {
        shown -= layout->widths[c] > 0 ? 1 : 0;
        layout->widths[c] = 0;
        fits = layout_narrow(layout, columns, width);
    }
    fits = fits || layout_squeeze(layout, columns, width, &last_squeeze);
    for (size_t c = columns; c-- > 0 && shown > 1 && !fits;) {
        shown -= layout->widths[c] > 0 ? 1 : 0;
        layout->widths[c] = 0;
        fits = layout_total(layout, columns) <= width;
    }
}

static void layout_tell(const struct table *t, const struct table_layout *layout, FILE *to)
{
    char heading[64];
    for (size_t c = 0; c < table_columns(t); c++) {
        bool gone = layout->widths[c] == 0 && layout->full[c] > 0;
        bool cut =
            layout->widths[c] > 0 && layout->widths[c] < layout->full[c] && !layout->prose[c];
        if ((gone || cut) && !layout->empty[c]) {
            column_heading(table_column(t, c), heading);
            (void)fprintf(to, ", %s%s", heading, cut ? " (cut short)" : "");
        }
    }
}

void table_layout_make(const struct table *t, const struct table_view *view,
                       struct table_layout *ret_layout)
{
    memset(ret_layout, 0, sizeof *ret_layout);
    for (size_t c = 0; c < table_columns(t); c++) {
        if (column_is_for_people(table_column(t, c))) {
            column_measure(t, view, c, ret_layout);
        }
    }
    if (view->width > 0) {
        layout_spare(t, view, ret_layout);
        layout_fit(ret_layout, table_columns(t), (size_t)view->width);
    }
    if (view->width > 0 && view->left_out != NULL) {
        layout_tell(t, ret_layout, view->left_out);
    }
}

static bool begins_character(char c)
{
    return ((unsigned char)c & 0xc0) != 0x80;
}

void text_wrap(char *text, size_t size, size_t width, bool hard)
{
    char *blank = NULL;
    size_t used = 0;
    size_t length = strlen(text);
    for (char *at = text; *at != '\0'; at++) {
        used += begins_character(*at) ? 1 : 0;
        if (used > width && blank != NULL) {
            *blank = '\n';
            used = (size_t)(at - blank);
            blank = NULL;
        } else if (used > width && hard && begins_character(*at) && *at != ' ' &&
                   length + 2 <= size) {
            memmove(at + 1, at, length - (size_t)(at - text) + 1);
            *at = '\n';
            length++;
            used = 0;
            continue;
        }
        if (*at == ' ') {
            blank = at;
        }
    }
}

void text_cut(char *text, size_t size, size_t width)
{
    const char *mark = MB_CUR_MAX > 1 ? "\xe2\x80\xa6" : "~"; /* an ellipsis */
    size_t n = 0;
    char *last = text;
    if (text_width(text) <= width) {
        return;
    }
    for (char *at = text; *at != '\0' && n < width; at++) {
        n += begins_character(*at) ? 1 : 0;
        last = begins_character(*at) ? at : last;
    }
    (void)snprintf(last, size - (size_t)(last - text), "%s", mark);
}
