/* Help, docs/reportctl.md and the manual page, all from the rows of command_table.c. */
#include "command.h"

#include <string.h>

#include "version.h"

static const struct {
    const char *code;
    const char *meaning;
} exit_codes[] = {
    {"0", "done"},
    {"1", "it failed, or the database or broker could not be reached"},
    {"2", "wrong use or invalid input; nothing was done"},
    {"3", "the named thing does not exist"},
    {"4", "the leader refused, or did not answer in time"},
};

static const struct {
    const char *option;
    const char *help;
} global_options[] = {
    {"--database CONNINFO", "where PostgreSQL is, in libpq's form (\"host=db dbname=reports\" or a "
                            "postgresql:// address); otherwise $REPORTCTL_DATABASE, otherwise "
                            "libpq's own variables (PGHOST ...). Passwords belong into ~/.pgpass."},
    {"-o, --output FORMAT",
     "table for people (default), wide for all columns where a terminal has no "
     "room for them, json or csv for scripts; where a command has them."},
    {"--timeout SECONDS", "how long the database may take (default 15)."},
    {"--help", "help, also of a single command."},
    {"--version", "the version."},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Words of `text` from column `indent` on, at most 88 wide. */
static void wrapped_print(const char *text, int indent, int column, FILE *to)
{
    while (*text != '\0') {
        size_t n = strcspn(text, " \n");
        if (column > indent && column + 1 + (int)n > 88) {
            (void)fprintf(to, "\n%*s", indent, "");
            column = indent;
        } else if (column > indent) {
            (void)putc(' ', to);
            column++;
        }
        (void)fwrite(text, 1, n, to);
        column += (int)n;
        text += n;
        if (*text == '\n') {
            (void)fprintf(to, "\n%*s", indent, "");
            column = indent;
        }
        text += *text != '\0' ? 1 : 0;
    }
    (void)putc('\n', to);
}

const char *output_format_name(enum output_format format)
{
    switch (format) {
    case OUTPUT_TABLE:
        return "table";
    case OUTPUT_JSON:
        return "json";
    case OUTPUT_CSV:
        return "csv";
    case OUTPUT_MARKDOWN:
        return "markdown";
    }
    return "";
}

static void usage_print(const struct command *c, FILE *to)
{
    (void)fprintf(to, "reportctl %s", c->words);
    for (size_t i = 0; i < ARGUMENTS_MAX && c->parameters[i].name != NULL; i++) {
        const struct argument *p = &c->parameters[i];
        const char *open = p->required ? "" : "[";
        const char *close = p->required ? "" : "]";
        if (p->kind == PARAMETER_WORD) {
            (void)fprintf(to, " %s%s%s", open, p->placeholder, close);
        } else if (p->kind == PARAMETER_FLAG) {
            (void)fprintf(to, " %s%s%s", open, p->name, close);
        } else {
            (void)fprintf(to, " %s%s %s%s%s", open, p->name, p->placeholder, close,
                          p->repeats ? "..." : "");
        }
    }
}

static void parameter_left(const struct argument *p, char *text, size_t size)
{
    if (p->kind == PARAMETER_WORD) {
        (void)snprintf(text, size, "%s", p->placeholder);
    } else if (p->kind == PARAMETER_FLAG) {
        (void)snprintf(text, size, "%s", p->name);
    } else {
        (void)snprintf(text, size, "%s %s", p->name, p->placeholder);
    }
}

static void parameter_right(const struct argument *p, char *text, size_t size)
{
    bool choice = p->value == VALUE_CHOICE;
    (void)snprintf(text, size, "%s%s%s%s%s%s%s", p->help, choice ? " One of " : "",
                   choice ? p->choices : "", choice ? "." : "",
                   p->fallback != NULL ? " Default: " : "", p->fallback != NULL ? p->fallback : "",
                   p->fallback != NULL ? "." : "");
}

static void formats_print(unsigned formats, const char *between, FILE *to)
{
    const char *comma = "";
    for (int i = 0; i < OUTPUT_FORMATS; i++) {
        if ((formats & (1U << i)) != 0) {
            (void)fprintf(to, "%s%s%s%s", comma, output_format_name((enum output_format)i),
                          i == OUTPUT_TABLE ? between : "", i == OUTPUT_TABLE ? "wide" : "");
            comma = between;
        }
    }
}

void command_print_overview(FILE *to)
{
    (void)fprintf(to, "reportctl %s: look at and steer a report scheduler\n\n", RS_VERSION);
    (void)fputs("Usage: reportctl [OPTION]... COMMAND [ARGUMENT]...\n\nCommands:\n", to);
    for (size_t i = 0; i < command_count; i++) {
        const struct command *c = &command_table[i];
        if (c->not_yet == NULL) {
            int n = fprintf(to, "  %-18s ", c->words);
            wrapped_print(c->summary, 21, n > 21 ? n : 21, to);
        }
    }
    (void)fputs("\nNot available yet: ", to);
    const char *comma = "";
    for (size_t i = 0; i < command_count; i++) {
        if (command_table[i].not_yet != NULL) {
            (void)fprintf(to, "%s%s", comma, command_table[i].words);
            comma = ", ";
        }
    }
    (void)fputs("\n\nOptions:\n", to);
    for (size_t i = 0; i < COUNT(global_options); i++) {
        (void)fprintf(to, "  %-20s ", global_options[i].option);
        wrapped_print(global_options[i].help, 23, 23, to);
    }
    (void)fputs("\nExit codes:\n", to);
    for (size_t i = 0; i < COUNT(exit_codes); i++) {
        (void)fprintf(to, "  %s  %s\n", exit_codes[i].code, exit_codes[i].meaning);
    }
    (void)fputs("\nreportctl COMMAND --help says more about one.\n", to);
}

static void not_yet_print(const struct command *c, FILE *to)
{
    (void)fprintf(to, "%s\n\n%s is not available yet in version %s; %s\n", c->summary, c->words,
                  RS_VERSION, c->not_yet);
}

void command_print_help(const struct command *c, FILE *to)
{
    char left[64];
    char right[512];
    if (c->not_yet != NULL) {
        not_yet_print(c, to);
        return;
    }
    (void)fputs("Usage: ", to);
    usage_print(c, to);
    (void)fputs("\n\n", to);
    wrapped_print(c->summary, 0, 0, to);
    if (c->details != NULL) {
        (void)putc('\n', to);
        wrapped_print(c->details, 0, 0, to);
    }
    (void)fputs(c->parameters[0].name != NULL ? "\n" : "", to);
    for (size_t i = 0; i < ARGUMENTS_MAX && c->parameters[i].name != NULL; i++) {
        parameter_left(&c->parameters[i], left, sizeof left);
        parameter_right(&c->parameters[i], right, sizeof right);
        (void)fprintf(to, "  %-24s ", left);
        wrapped_print(right, 27, 27, to);
    }
    if (c->formats != 0) {
        (void)fprintf(to, "%s  %-24s ", c->parameters[0].name == NULL ? "\n" : "",
                      "-o, --output FORMAT");
        formats_print(c->formats, ", ", to);
        (void)fputs(".\n", to);
    }
    if (c->example != NULL) {
        (void)fprintf(to, "\nExample:\n  %s\n", c->example);
    }
    (void)fprintf(to, "\nNeeds: %s. Exit codes and common options: reportctl --help.\n",
                  c->privilege != NULL ? c->privilege : "no database");
}

/* ---- docs/reportctl.md ---- */

void command_print_markdown(FILE *to)
{
    char left[64];
    char right[512];
    (void)fputs("# reportctl\n\nLooks at and steers a report scheduler. This page is printed by "
                "`reportctl help --markdown` from the\ntable that also parses the command line."
                "\n\n```\nreportctl [OPTION]... COMMAND [ARGUMENT]...\n```\n\n## Options\n\n",
                to);
    for (size_t i = 0; i < COUNT(global_options); i++) {
        (void)fprintf(to, "- `%s`: %s\n", global_options[i].option, global_options[i].help);
    }
    (void)fputs("\n## Exit codes\n\n| code | meaning |\n| ---: | --- |\n", to);
    for (size_t i = 0; i < COUNT(exit_codes); i++) {
        (void)fprintf(to, "| %s | %s |\n", exit_codes[i].code, exit_codes[i].meaning);
    }
    (void)fputs("\nErrors are one line on stderr.\n\n## Commands\n", to);
    for (size_t i = 0; i < command_count; i++) {
        const struct command *c = &command_table[i];
        if (c->not_yet != NULL) {
            continue;
        }
        (void)fprintf(to, "\n### %s\n\n```\n", c->words);
        usage_print(c, to);
        (void)fprintf(to, "\n```\n\n%s\n%s%s%s\n", c->summary, c->details != NULL ? "\n" : "",
                      c->details != NULL ? c->details : "", c->details != NULL ? "\n" : "");
        for (size_t p = 0; p < ARGUMENTS_MAX && c->parameters[p].name != NULL; p++) {
            parameter_left(&c->parameters[p], left, sizeof left);
            parameter_right(&c->parameters[p], right, sizeof right);
            (void)fprintf(to, "- `%s`: %s\n", left, right);
        }
        if (c->formats != 0) {
            (void)fputs("- `-o FORMAT`: ", to);
            formats_print(c->formats, ", ", to);
            (void)fputs(".\n", to);
        }
        (void)fprintf(to, "\nNeeds: %s.\n", c->privilege != NULL ? c->privilege : "no database");
        if (c->example != NULL) {
            (void)fprintf(to, "\n```\n%s\n```\n", c->example);
        }
    }
    (void)fputs("\n## Not available yet\n\n", to);
    for (size_t i = 0; i < command_count; i++) {
        if (command_table[i].not_yet != NULL) {
            (void)fprintf(to, "- `%s`: %s\n", command_table[i].words, command_table[i].summary);
        }
    }
}

/* ---- docs/man/reportctl.1 ---- */

/* roff reads a line that begins with . or ' as a request, and \ and - as its own. */
static void roff_print(const char *text, FILE *to)
{
    bool start = true;
    for (; *text != '\0'; text++) {
        if (start && (*text == '.' || *text == '\'')) {
            (void)fputs("\\&", to);
        }
        if (*text == '\\') {
            (void)fputs("\\e", to);
        } else if (*text == '-') {
            (void)fputs("\\-", to);
        } else {
            (void)putc(*text, to);
        }
        start = *text == '\n';
    }
    (void)putc('\n', to);
}

static void roff_item(const char *term, const char *text, FILE *to)
{
    (void)fputs(".TP\n.B ", to);
    roff_print(term, to);
    roff_print(text, to);
}

static void roff_command(const struct command *c, FILE *to)
{
    char left[64];
    char right[512];
    (void)fputs(".SS ", to);
    roff_print(c->words, to);
    roff_print(c->summary, to);
    if (c->details != NULL) {
        (void)fputs(".PP\n", to);
        roff_print(c->details, to);
    }
    for (size_t p = 0; p < ARGUMENTS_MAX && c->parameters[p].name != NULL; p++) {
        parameter_left(&c->parameters[p], left, sizeof left);
        parameter_right(&c->parameters[p], right, sizeof right);
        roff_item(left, right, to);
    }
    (void)fputs(".PP\nNeeds: ", to);
    roff_print(c->privilege != NULL ? c->privilege : "no database", to);
    if (c->example != NULL) {
        (void)fputs(".PP\n.nf\n.B ", to);
        roff_print(c->example, to);
        (void)fputs(".fi\n", to);
    }
}

void command_print_manual(FILE *to)
{
    (void)fprintf(to, ".TH REPORTCTL 1 \"\" \"report\\-scheduler %s\"\n", RS_VERSION);
    (void)fputs(".SH NAME\nreportctl \\- look at and steer a report scheduler\n.SH SYNOPSIS\n"
                ".B reportctl\n[OPTION]... COMMAND [ARGUMENT]...\n.SH OPTIONS\n",
                to);
    for (size_t i = 0; i < COUNT(global_options); i++) {
        roff_item(global_options[i].option, global_options[i].help, to);
    }
    (void)fputs(".SH COMMANDS\n", to);
    for (size_t i = 0; i < command_count; i++) {
        if (command_table[i].not_yet == NULL) {
            roff_command(&command_table[i], to);
        }
    }
    (void)fputs(".SH EXIT STATUS\n", to);
    for (size_t i = 0; i < COUNT(exit_codes); i++) {
        roff_item(exit_codes[i].code, exit_codes[i].meaning, to);
    }
    (void)fputs(".SH ENVIRONMENT\n", to);
    roff_item("REPORTCTL_DATABASE", "where PostgreSQL is, unless --database says so.", to);
    roff_item("REPORTCTL_SQL_DIR", "directory of the migrations, unless --dir says so.", to);
    roff_item("REPORTCTL_CALENDAR_DIR", "directory of the shipped calendars.", to);
    (void)fputs(".SH SEE ALSO\n.BR psql (1)\n", to);
}
