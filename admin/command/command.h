/* The command line as data: each command is one row (words, parameters, privilege, help, function)
 * and parsing, --help, the manual page and docs/reportctl.md all read the same rows. Knows no
 * database. Thread: reportctl has one. Blocks: never, printing apart. */
#ifndef RS_COMMAND_H
#define RS_COMMAND_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "status.h"
#include "table.h"

/* What a script may rely on; printed in every help. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,    /* the work failed, or the database (or broker) could not be reached */
    EXIT_USAGE = 2,     /* wrong use or invalid input; nothing was done */
    EXIT_NOT_FOUND = 3, /* the named thing does not exist */
    EXIT_REFUSED = 4,   /* the leader refused, or did not answer in time */
};

/* Of a command that needs no server: it answers 0, 1 or 2. */
static inline enum exit_code exit_code_of(int code)
{
    return code == 0 ? EXIT_DONE : code == 2 ? EXIT_USAGE : EXIT_FAILED;
}

enum parameter_kind {
    PARAMETER_WORD,   /* by position: "schedule" */
    PARAMETER_OPTION, /* "--limit N" or "--limit=N" */
    PARAMETER_FLAG,   /* "--dry-run" */
};

enum value_kind {
    VALUE_TEXT,
    VALUE_NAME,    /* name_is_valid */
    VALUE_UUID,    /* uuid_is_valid */
    VALUE_INT,     /* [min, max] */
    VALUE_INSTANT, /* RFC 3339 */
    VALUE_CHOICE,  /* one of `choices`, separated by | */
};

struct argument {
    const char *name; /* "schedule", "--limit" */
    const char *placeholder;
    enum parameter_kind kind;
    enum value_kind value;
    bool required;
    int64_t min, max;
    const char *choices;
    const char *fallback; /* NULL: absent unless given */
    const char *help;
    bool repeats; /* may be given again: the values are in invocation.repeated */
};

#define ARGUMENTS_MAX  24
#define REPEATS_MAX    32
#define FORMATS_ROWS   ((1U << OUTPUT_TABLE) | (1U << OUTPUT_JSON) | (1U << OUTPUT_CSV))
#define FORMATS_PAGE   ((1U << OUTPUT_TABLE) | (1U << OUTPUT_JSON))
#define FORMATS_MARKUP ((1U << OUTPUT_TABLE) | (1U << OUTPUT_MARKDOWN))

struct invocation;
typedef enum exit_code command_function(struct invocation *in);

struct command {
    const char *words; /* "topic create" */
    const char *summary;
    const char *details;   /* paragraphs for --help; may be NULL */
    const char *example;   /* may be NULL */
    const char *privilege; /* role it needs; NULL: no database */
    const char *not_yet;   /* the verb is known but not built: what to do meanwhile */
    command_function *run;
    unsigned formats; /* 1 << OUTPUT_...: what -o may be; 0: it has no -o */
    struct argument parameters[ARGUMENTS_MAX]; /* ends at a NULL name */
};

struct invocation {
    const struct command *command;
    const char *values[ARGUMENTS_MAX]; /* by parameter; NULL: absent */
    const char *repeated[REPEATS_MAX]; /* of the one option that repeats */
    size_t repeated_count;
    const char *database; /* conninfo; never NULL */
    enum output_format format;
    bool format_given;
    bool wide; /* -o wide: a table as if there were no terminal */
    int64_t timeout_s;
    FILE *out, *errors;
};

/* The table, in the order of the help. */
extern const struct command command_table[];
extern const size_t command_count;

/* Parse argv (without the program) into *ret. Messages go to `errors`, help to `out`.
 * Returns true to go on with command->run; false: done, *ret_code is the exit code. */
bool command_parse(int argc, const char *const *argv, struct invocation *ret,
                   enum exit_code *ret_code);

/* Value of a parameter of the parsed command; NULL when absent. The name must be in its row. */
const char *command_text(const struct invocation *in, const char *name);
int64_t command_int(const struct invocation *in,
                    const char *name); /* has a fallback or is required */
bool command_flag(const struct invocation *in, const char *name);

/* One line to `errors`: "reportctl: ...", and the code back. */
enum exit_code command_fail(struct invocation *in, enum exit_code code, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* The command that the first words are, and how many these are; NULL: none. */
const struct command *command_find(int argc, const char *const *argv, size_t *ret_words);

/* Say what is meant instead of a word that is no command, or needs another: "topic" alone.
 * `second`: what stands behind it; NULL: nothing. Returns USAGE. */
enum exit_code command_unknown(struct invocation *in, const char *word, const char *second);

void command_print_overview(FILE *to);
void command_print_help(const struct command *c, FILE *to);
void command_print_markdown(FILE *to); /* docs/reportctl.md */
void command_print_manual(FILE *to);   /* docs/man/reportctl.1 */

/* "table", "json", ... */
const char *output_format_name(enum output_format format);

#endif
