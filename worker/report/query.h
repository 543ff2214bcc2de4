/* Where parameters stand in the text of a query: psql's own forms, found by psql's own rules. Pure.
 *
 *   :'name'   the value as a quoted literal
 *   :"name"   the value as a quoted identifier
 *   :name     in psql the bare text of the value, which cannot be made safe: reported, so that the
 *             caller can refuse it when the name is known and leave it alone otherwise
 * Nothing is found inside string literals ('…', E'…', $tag$…$tag$), quoted identifiers and comments
 * (--, nested slash-star); `::` is a cast and `:=` an assignment. A name is letters, digits, _ and
 * bytes from 128 on. */
#ifndef RS_QUERY_H
#define RS_QUERY_H

#include <stdbool.h>
#include <stddef.h>

enum query_piece_kind {
    QUERY_TEXT,       /* to be copied as it is */
    QUERY_LITERAL,    /* text is the name */
    QUERY_IDENTIFIER, /* text is the name */
    QUERY_BARE,       /* text is the name */
};

/* Borrowed from the query. */
struct query_piece {
    enum query_piece_kind kind;
    const char *text;
    size_t size;
};

struct query_scan {
    const char *at; /* "" at the end */
    char before;    /* the byte before `at`, 0 at the start */
};

struct query_scan query_scan_start(const char *query);

/* The next piece, in order, without gaps. False at the end. Never fails: an unended literal or
 * comment reaches to the end, and PostgreSQL complains about it. */
bool query_scan_next(struct query_scan *scan, struct query_piece *ret_piece);

#endif
