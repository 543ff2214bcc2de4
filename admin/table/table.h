/* Rows of text cells with typed columns, and how people and programs see them. Knows no database.
 *
 * A cell is text in one canonical form per kind (below), or NULL for "no value". The three outputs
 * differ on purpose: a terminal gets ages, sizes and aligned numbers; JSON gets real types; CSV
 * gets the canonical text. Thread: reportctl has one. Blocks: on the stream that it prints to. */
#ifndef RS_TABLE_H
#define RS_TABLE_H

#include <stddef.h>
#include <stdio.h>

#include "clock.h"
#include "status.h"

enum column_kind {
    COLUMN_TEXT,
    COLUMN_INT,     /* decimal; a trailing + ("10000+") says "at least" and is text in JSON */
    COLUMN_NUMBER,  /* decimal with a fraction */
    COLUMN_BOOL,    /* "t" or "f" */
    COLUMN_INSTANT, /* "2030-04-12 06:00:00.123456+00", as PostgreSQL writes it in UTC */
    COLUMN_LOCAL,   /* "2030-04-12 08:00:00": nominal time of day somewhere */
    COLUMN_SECONDS, /* decimal seconds; people see "2m 5s" */
    COLUMN_BYTES,   /* decimal; people see "1.4 MiB" */
    COLUMN_JSON,    /* a JSON text */
};

enum column_show {
    SHOW_ALWAYS,
    SHOW_PEOPLE,     /* on a terminal only */
    SHOW_PROGRAMS,   /* in JSON and CSV only */
    SHOW_AGE,        /* INSTANT: on a terminal the distance from now ("3m ago", "in 2h") */
    SHOW_AGE_PEOPLE, /* the same, and on a terminal only */
};

#define OUTPUT_FORMATS 4
enum output_format {
    OUTPUT_TABLE,
    OUTPUT_JSON,
    OUTPUT_CSV,
    OUTPUT_MARKDOWN,
};

struct column {
    char name[64];  /* JSON key, CSV header */
    char title[32]; /* the terminal's heading; "": made from the name */
    enum column_kind kind;
    enum column_show show;
    bool spare; /* shown on a terminal if there is room; what comes first has it first */
};

#define TABLE_COLUMNS_MAX 64

struct table;

/* Owns: table_free (NULL is fine). NULL when out of memory. */
struct table *table_new(void);
struct table *table_make(const struct column *columns, size_t count); /* with these columns */
void table_free(struct table *t);

/* Columns first, then cells row by row. False when out of memory or columns. */
MUST_USE bool table_column_add(struct table *t, const struct column *column);
MUST_USE bool table_columns_add(struct table *t, const struct column *columns, size_t count);
MUST_USE bool table_cell_add(struct table *t, const char *text); /* copied; NULL: no value */

size_t table_rows(const struct table *t);
size_t table_columns(const struct table *t);
const struct column *table_column(const struct table *t, size_t column);
const char *table_cell(const struct table *t, size_t row,
                       size_t column); /* borrowed; may be NULL */

/* Cell of a named column in a row; NULL when it is NULL or there is no such column. */
const char *table_value(const struct table *t, size_t row, const char *name);

/* Is a column in JSON and CSV? On a terminal? */
bool column_is_for_programs(const struct column *column);
bool column_is_for_people(const struct column *column);

/* Leave a column out on a terminal. */
void table_hide(struct table *t, const char *name);

/* Forget rows beyond the first `rows`. */
void table_cut(struct table *t, size_t rows);

/* What several tables on one screen need. */
struct table_view {
    FILE *to;
    utc_us now; /* the database's clock, for ages */
    int width;  /* of the terminal, which no table exceeds (table_fit.h); 0: lines are as long as
                   they are */
    FILE *left_out; /* gets ", HEADING" for each column that gave way and had values, or is cut
                       short; may be NULL */
};

/* Aligned columns under headings. */
void table_print_rows(const struct table *t, const struct table_view *view);
/* Each row as "name   value" lines, an empty line between rows; what has no value is left out. */
void table_print_facts(const struct table *t, const struct table_view *view);
/* A sentence that stands in a table's place, wrapped to the terminal. */
void table_print_text(const char *text, const struct table_view *view);
/* RFC 4180 with a header line. */
void table_print_csv(const struct table *t, FILE *to);
/* An array of objects, or the first row as an object. */
void table_print_json(const struct table *t, bool as_object, int indent, FILE *to);

#endif
