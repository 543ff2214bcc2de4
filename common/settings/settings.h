/* Settings are one table a program: it parses the libconfig file, checks every value, fills a
 * struct, and prints the reference page and the values in force. A key that is not in the table, a
 * wrong type, form or value, and values that contradict each other are refused as "file:line: key:
 * what, and what to write instead", all of them in one run. What the file's surroundings lack (a
 * password file, a directory) is a warning in the same form: it may come later, or be on another
 * host. Thread: any; a struct and its judge belong to one at a time. Blocks: on the file system
 * where it says so, else never. */
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
    /* TEXT that is not empty, and each item of a LIST: its form; its surroundings. Both fill err
       with "what; write what instead", without the key. NULL: any. Never with a secret's value. */
    enum status (*form)(const char *value, struct error *err);
    enum status (*around)(const char *value, struct error *err);
    /* GROUPS only */
    const struct setting *fields;
    size_t field_count, element_size, capacity, count_offset; /* count_offset: a size_t field */
};

/* The place of a field in a row. */
#define SETTING_AT(type, member)                                                                   \
    .offset = offsetof(type, member), .size = sizeof(((type *)0)->member)

struct settings_judge; /* takes faults while one file is judged */

/* A program's settings. */
struct settings_spec {
    const struct setting *table;
    size_t count;
    size_t size; /* bytes of the program's struct */
    /* What one row cannot say: rules across keys. Asked also when other keys have faults: begin a
       rule with settings_sound for what it reads. NULL: none. */
    void (*check)(const void *settings, struct settings_judge *judge);
    void (*complete)(void *settings); /* what the host supplies, e.g. a name; NULL: nothing */
};

/* A fault, or a warning, of this key (as "programs[0].arguments"), at its line in the file. A key
 * has one fault at most: further ones are dropped. */
void settings_fault(struct settings_judge *judge, const char *key, const char *format, ...)
    PRINTF_LIKE(3, 4);
void settings_warn(struct settings_judge *judge, const char *key, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Has the key no fault so far? */
bool settings_sound(const struct settings_judge *judge, const char *key);

/* Read, judge and complete the file. Owns: free(*ret_settings). Faults and warnings are lines on
 * `lines` (may be NULL). Returns: OK; INVALID (err: the first fault and their number); NOT_FOUND
 * (cannot be read); FATAL (memory). Blocks: on the file system. */
MUST_USE enum status settings_read(const struct settings_spec *spec, const char *path,
                                   void **ret_settings, FILE *lines, struct error *err);

/* Only the rules across keys, for settings that were put together; `path` is what lines begin
 * with. Returns: OK; INVALID. */
MUST_USE enum status settings_recheck(const struct settings_spec *spec, const char *path,
                                      const void *settings, FILE *lines, struct error *err);

/* One key that differs. */
struct settings_change {
    const struct setting *row;
    bool applied; /* false: needs a restart */
};

#define SETTINGS_CHANGES_MAX 128

/* Make *fresh what a running process may go on with: reloadable keys stay as they were just read,
 * all others become again what they are in *current. Returns the number of keys that differed, at
 * most SETTINGS_CHANGES_MAX, in the table's order. */
size_t settings_merge(const struct settings_spec *spec, const void *current, void *fresh,
                      struct settings_change ret_changes[SETTINGS_CHANGES_MAX]);

/* The reference page (Markdown) of a table. */
void settings_print_reference(const struct setting *table, size_t count, FILE *to);

/* What the row says beside `why`: type, bounds, unit, default, whether SIGHUP applies it. */
void setting_facts(const struct setting *s, char *ret_text, size_t size);

/* The settings in force, in the file's form. Secrets are named, not shown. */
void settings_print_values(const struct settings_spec *spec, const void *settings, FILE *to);

/* One value as the file would say it, cut at the bound; "(not shown)" for a secret and "(...)" for
 * groups. */
void setting_format(const struct setting *s, const void *settings, char *ret_text, size_t size);

/* Contents of a *_file setting without trailing newline, e.g. a password. Refuses files readable
 * by others with the remedy (chmod). Returns: OK, NOT_FOUND, INVALID. */
MUST_USE enum status secret_read(const char *path, char *ret_text, size_t size, struct error *err);

/* May a secret lie in a file of this mode (st_mode)? Nobody else may read or change it; what
 * systemd gave as a credential lies in a directory closed to others. */
bool secret_is_private(const char *path, unsigned mode);

#endif
