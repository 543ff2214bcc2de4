/* Settings are one table a program: it parses the libconfig file, checks every value, fills a
 * struct, and prints the reference page and the defaults. A key that is not in the table, a wrong
 * type and a value out of bounds are refused as "file:line: key: what, and what to write instead",
 * all of them in one run. */
#ifndef RS_SETTINGS_H
#define RS_SETTINGS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "status.h"

#define SETTING_TEXT_MAX 1024
#define SETTING_LIST_MAX 64

enum setting_type {
    SETTING_TEXT,   /* field: char[size] */
    SETTING_INT,    /* field: int64_t, within [min, max] */
    SETTING_BOOL,   /* field: bool */
    SETTING_LIST,   /* field: struct setting_list; file: ["a", "b"] */
    SETTING_GROUPS, /* field: element[capacity]; file: ( { name = "x"; ... }, ... ) */
};

struct setting_list {
    size_t count;
    char items[SETTING_LIST_MAX][256];
};

struct setting {
    const char *key;
    enum setting_type type;
    size_t offset;    /* of the field in the program's struct (in the element, for group fields) */
    size_t size;      /* TEXT: bytes of the field, with NUL */
    int64_t min, max; /* INT */
    const char *unit; /* "ms", "rows", ...; "" when it has none */
    const char *fallback; /* default as written in the file without quotes; NULL: must be given.
                             LIST: comma-separated; GROUPS: ignored, default none */
    const char *why;      /* one or two sentences: what it does and when to change it */
    bool secret;          /* value is never printed */
    bool reloadable;      /* SIGHUP applies it */
    /* GROUPS only */
    const struct setting *fields;
    size_t field_count, element_size, capacity, count_offset; /* count_offset: a size_t field */
};

/* Fill *out (zeroed by the caller) from `path` and the defaults. Each fault is one line on
 * `faults` (may be NULL). Returns: OK; INVALID with err naming the first fault and the number of
 * faults; NOT_FOUND when the file cannot be read. *out is unspecified unless OK. */
MUST_USE enum status settings_load(const struct setting *table, size_t count, const char *path,
                                   void *out, FILE *faults, struct error *err);

/* The reference page (Markdown) of a table. */
void settings_print_reference(const struct setting *table, size_t count, FILE *to);

/* Contents of a *_file setting without trailing newline, e.g. a password. Refuses files readable
 * by others with the remedy (chmod). Returns: OK, NOT_FOUND, INVALID. */
MUST_USE enum status secret_read(const char *path, char *ret_text, size_t size, struct error *err);

#endif
