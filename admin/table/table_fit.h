/* How wide each column of a table is on a terminal. What gives way, in this order: spare columns;
 * prose, which wraps at words; long names, which are cut, and words of prose, which are broken; at
 * last whole columns, from the right. Numbers and ages are never cut. */
#ifndef RS_TABLE_FIT_H
#define RS_TABLE_FIT_H

#include "table.h"

#define TABLE_PROSE_MIN                                                                            \
    24              /* a column of words is not made narrower while all else can give way          \
                     */
#define TABLE_GAP 2 /* blanks between columns */

struct table_layout {
    size_t widths[TABLE_COLUMNS_MAX]; /* 0: not shown */
    size_t full[TABLE_COLUMNS_MAX];   /* what each would need */
    size_t words[TABLE_COLUMNS_MAX];  /* the longest word, of prose */
    bool prose[TABLE_COLUMNS_MAX];
    bool text[TABLE_COLUMNS_MAX];  /* may be cut */
    bool fixed[TABLE_COLUMNS_MAX]; /* ids, times, and short text: cut last */
    bool ids[TABLE_COLUMNS_MAX];   /* whole or not at all */
    bool empty[TABLE_COLUMNS_MAX]; /* without any value */
};

/* Tells view->left_out what is not shown, and what is cut. */
void table_layout_make(const struct table *t, const struct table_view *view,
                       struct table_layout *ret_layout);

/* Characters of UTF-8 text up to one of `ends` or the end. */
size_t text_span_width(const char *text, const char *ends);

/* Turn blanks into line ends so that lines have at most `width` characters; a longer word is broken
 * where `hard`, or stays whole. `text` has room for `size` bytes. */
void text_wrap(char *text, size_t size, size_t width, bool hard);

/* At most `width` characters, the last one of a longer text a mark that it goes on. `size` as
 * above. */
void text_cut(char *text, size_t size, size_t width);

#endif
