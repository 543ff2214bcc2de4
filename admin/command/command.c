#include "command.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "civil.h"
#include "ident.h"
#include "instant_text.h"
#include "nearest.h"
#include "version.h"

struct parsing {
    int argc;
    const char *const *argv;
    int at;
    struct invocation *in;
    size_t words; /* positional values taken so far */
    bool help;
    bool only_words; /* after -- */
};

enum exit_code command_fail(struct invocation *in, enum exit_code code, const char *format, ...)
{
    va_list args;
    (void)fflush(in->out);
    (void)fputs("reportctl: ", in->errors);
    va_start(args, format);
    (void)vfprintf(in->errors, format, args);
    va_end(args);
    (void)putc('\n', in->errors);
    return code;
}

static size_t parameter_count(const struct command *c)
{
    size_t n = 0;
    while (n < ARGUMENTS_MAX && c->parameters[n].name != NULL) {
        n++;
    }
    return n;
}

static size_t parameter_index(const struct command *c, const char *name)
{
    size_t n = parameter_count(c);
    for (size_t i = 0; i < n; i++) {
        if (strcmp(c->parameters[i].name, name) == 0) {
            return i;
        }
    }
    abort(); /* a command asks for a parameter that is not in its row */
}

const char *command_text(const struct invocation *in, const char *name)
{
    return in->values[parameter_index(in->command, name)];
}

int64_t command_int(const struct invocation *in, const char *name)
{
    const char *text = command_text(in, name);
    assert(text != NULL);
    return strtoll(text, NULL, 10);
}

bool command_flag(const struct invocation *in, const char *name)
{
    return command_text(in, name) != NULL;
}

/* ---- values ---- */

static bool choice_holds(const char *choices, const char *value)
{
    size_t n = strlen(value);
    for (const char *at = choices; *at != '\0';) {
        size_t length = strcspn(at, "|");
        if (length == n && strncmp(at, value, n) == 0) {
            return true;
        }
        at += length;
        at += *at == '|' ? 1 : 0;
    }
    return false;
}

static bool int_parse(const char *text, int64_t min, int64_t max)
{
    char *end = NULL;
    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    return *text != '\0' && *end == '\0' && errno == 0 && value >= min && value <= max;
}

static bool name_check(struct invocation *in, const char *what, const char *value)
{
    char small[NAME_MAX_BYTES];
    if (name_is_valid(value)) {
        return true;
    }
    (void)snprintf(small, sizeof small, "%s", value);
    for (char *c = small; *c != '\0'; c++) {
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c == ' ' ? '-' : *c);
    }
    bool serves = strlen(value) < sizeof small && name_is_valid(small);
    (void)command_fail(
        in, EXIT_USAGE,
        "%s \"%s\" is not a name; write %s%s%s1 to 63 of a-z 0-9 _ . - beginning with "
        "a letter or digit",
        what, value, serves ? "\"" : "", serves ? small : "", serves ? "\", or " : "");
    return false;
}

static bool value_check(struct invocation *in, const struct argument *p, const char *value)
{
    struct error err = {0};
    utc_us at;
    switch (p->value) {
    case VALUE_TEXT:
        if (*value == '\0') {
            (void)command_fail(in, EXIT_USAGE, "%s is empty; write a value", p->name);
            return false;
        }
        return true;
    case VALUE_NAME:
        return name_check(in, p->name, value);
    case VALUE_UUID:
        if (!uuid_is_valid(value)) {
            (void)command_fail(in, EXIT_USAGE,
                               "%s \"%s\" is not an id; write it as in "
                               "0190f0b4-7c1a-7e3b-9d5e-2f6a8c4b1d07",
                               p->name, value);
            return false;
        }
        return true;
    case VALUE_INT:
        if (!int_parse(value, p->min, p->max)) {
            (void)command_fail(in, EXIT_USAGE,
                               "%s \"%s\" is wrong; write a whole number from %" PRId64
                               " to %" PRId64,
                               p->name, value, p->min, p->max);
            return false;
        }
        return true;
    case VALUE_INSTANT:
        if (instant_text_parse(value, &at, &err) != STATUS_OK) {
            /* Its own remedy is another one. */
            char *remedy = strstr(err.text, "; write ");
            (void)command_fail(
                in, EXIT_USAGE,
                "%s: %.*s; write 2030-04-12 (in UTC) or "
                "2030-04-12T06:00:00+02:00",
                p->name, (int)(remedy != NULL ? (size_t)(remedy - err.text) : strlen(err.text)),
                err.text);
            return false;
        }
        return true;
    case VALUE_CHOICE:
        if (!choice_holds(p->choices, value)) {
            (void)command_fail(in, EXIT_USAGE, "%s \"%s\" is wrong; write one of %s", p->name,
                               value, p->choices);
            return false;
        }
        return true;
    }
    return false;
}

/* ---- options ---- */

/* "--name=value", or "--name" with the next argument. NULL: none is there. */
static const char *option_value(struct parsing *p, const char *argument)
{
    const char *equals = strchr(argument, '=');
    if (equals != NULL && argument[1] == '-') {
        return equals + 1;
    }
    if (p->at + 1 >= p->argc) {
        return NULL;
    }
    return p->argv[++p->at];
}

static bool option_is(const char *argument, const char *name)
{
    size_t n = strlen(name);
    return strncmp(argument, name, n) == 0 && (argument[n] == '\0' || argument[n] == '=');
}

static bool format_parse(struct invocation *in, const char *word)
{
    in->format_given = true;
    in->wide = strcmp(word, "wide") == 0;
    word = in->wide ? "table" : word;
    for (int i = 0; i < OUTPUT_FORMATS; i++) {
        if (strcmp(word, output_format_name((enum output_format)i)) == 0) {
            in->format = (enum output_format)i;
            return true;
        }
    }
    return false;
}

/* A format that the command does not have is refused, not replaced. */
static bool format_check(struct invocation *in)
{
    const struct command *c = in->command;
    if (!in->format_given || (c->formats & (1U << in->format)) != 0) {
        return true;
    }
    char known[64] = "";
    for (int i = 0; i < OUTPUT_FORMATS; i++) {
        size_t n = strlen(known);
        if ((c->formats & (1U << i)) != 0) {
            (void)snprintf(known + n, sizeof known - n, "%s%s", n > 0 ? " or " : "",
                           output_format_name((enum output_format)i));
        }
    }
    if (c->formats == 0) {
        (void)command_fail(in, EXIT_USAGE, "%s has no -o: its output has one form", c->words);
    } else {
        (void)command_fail(in, EXIT_USAGE, "%s cannot be shown as %s; write -o %s", c->words,
                           output_format_name(in->format), known);
    }
    return false;
}

/* Options every command has. Returns true when it was one; *ret_ok says whether it was right. */
static bool global_option(struct parsing *p, const char *argument, bool *ret_ok)
{
    struct invocation *in = p->in;
    *ret_ok = true;
    if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
        p->help = true;
        return true;
    }
    bool output = strcmp(argument, "-o") == 0 || option_is(argument, "--output");
    bool timeout = option_is(argument, "--timeout");
    if (!output && !timeout && !option_is(argument, "--database")) {
        return false;
    }
    const char *value = option_value(p, argument);
    if (value == NULL) {
        (void)command_fail(in, EXIT_USAGE, "%s needs a value", argument);
        *ret_ok = false;
    } else if (output) {
        *ret_ok = format_parse(in, value);
    } else if (timeout) {
        *ret_ok = int_parse(value, 1, 3600);
        in->timeout_s = *ret_ok ? strtoll(value, NULL, 10) : 0;
    } else {
        in->database = value;
    }
    if (value != NULL && !*ret_ok) {
        (void)command_fail(in, EXIT_USAGE,
                           output ? "-o \"%s\" is wrong; write table, wide, json or csv"
                                  : "--timeout \"%s\" is wrong; write seconds from "
                                    "1 to 3600",
                           value);
    }
    return true;
}

static bool unknown_option(struct parsing *p, const char *argument)
{
    const struct command *c = p->in->command;
    char typed[64];
    (void)snprintf(typed, sizeof typed, "%.*s", (int)strcspn(argument, "="), argument);
    struct nearest near = nearest_start(typed);
    static const char *const global[] = {"--output", "--database", "--timeout", "--help"};
    for (size_t i = 0; i < parameter_count(c); i++) {
        if (c->parameters[i].kind != PARAMETER_WORD) {
            nearest_offer(&near, c->parameters[i].name);
        }
    }
    for (size_t i = 0; i < sizeof global / sizeof global[0]; i++) {
        nearest_offer(&near, global[i]);
    }
    if (near.best != NULL) {
        (void)command_fail(p->in, EXIT_USAGE, "%s has no option %s; did you mean %s?", c->words,
                           typed, near.best);
    } else {
        (void)command_fail(p->in, EXIT_USAGE, "%s has no option %s; see reportctl %s --help",
                           c->words, typed, c->words);
    }
    return false;
}

static bool value_take(struct invocation *in, size_t i, const char *value)
{
    const struct argument *q = &in->command->parameters[i];
    size_t most = q->repeats ? REPEATS_MAX : 1;
    if ((q->repeats ? in->repeated_count : in->values[i] != NULL) == most) {
        (void)command_fail(in, EXIT_USAGE, "%s is given more than %zu time(s)", q->name, most);
        return false;
    }
    if (q->repeats) {
        in->repeated[in->repeated_count++] = value;
    }
    in->values[i] = value;
    return value_check(in, q, value);
}

static bool own_option(struct parsing *p, const char *argument)
{
    const struct command *c = p->in->command;
    for (size_t i = 0; i < parameter_count(c); i++) {
        const struct argument *q = &c->parameters[i];
        if (q->kind == PARAMETER_WORD || !option_is(argument, q->name)) {
            continue;
        }
        if (q->kind == PARAMETER_FLAG) {
            if (strchr(argument, '=') != NULL) {
                (void)command_fail(p->in, EXIT_USAGE, "%s takes no value", q->name);
                return false;
            }
            p->in->values[i] = "true";
            return true;
        }
        const char *value = option_value(p, argument);
        if (value == NULL) {
            (void)command_fail(p->in, EXIT_USAGE, "%s needs a value: %s %s", q->name, q->name,
                               q->placeholder);
            return false;
        }
        return value_take(p->in, i, value);
    }
    return unknown_option(p, argument);
}

static bool word_take(struct parsing *p, const char *argument)
{
    const struct command *c = p->in->command;
    size_t seen = 0;
    for (size_t i = 0; i < parameter_count(c); i++) {
        if (c->parameters[i].kind == PARAMETER_WORD && seen++ == p->words) {
            p->words++;
            p->in->values[i] = argument;
            return value_check(p->in, &c->parameters[i], argument);
        }
    }
    (void)command_fail(p->in, EXIT_USAGE,
                       "%s does not know what to do with \"%s\"; see reportctl "
                       "%s --help",
                       c->words, argument, c->words);
    return false;
}

static bool arguments_parse(struct parsing *p)
{
    for (; p->at < p->argc; p->at++) {
        const char *argument = p->argv[p->at];
        bool ok = true;
        if (p->only_words || argument[0] != '-' || argument[1] == '\0') {
            ok = word_take(p, argument);
        } else if (strcmp(argument, "--") == 0) {
            p->only_words = true;
        } else if (!global_option(p, argument, &ok)) {
            ok = own_option(p, argument);
        }
        if (!ok) {
            return false;
        }
    }
    return true;
}

/* Defaults, and what must be given. */
static bool values_complete(struct invocation *in)
{
    const struct command *c = in->command;
    for (size_t i = 0; i < parameter_count(c); i++) {
        const struct argument *q = &c->parameters[i];
        if (in->values[i] == NULL) {
            in->values[i] = q->fallback;
        }
        if (in->values[i] == NULL && q->required) {
            (void)command_fail(in, EXIT_USAGE, "%s needs %s%s%s; see reportctl %s --help", c->words,
                               q->kind == PARAMETER_WORD ? q->placeholder : q->name,
                               q->kind == PARAMETER_WORD ? "" : " ",
                               q->kind == PARAMETER_WORD ? "" : q->placeholder, c->words);
            return false;
        }
    }
    return true;
}

/* Options before the command, and requests that need none. True: the command's words follow. */
static bool leading_parse(struct parsing *p, enum exit_code *ret_code)
{
    bool ok = true;
    *ret_code = EXIT_DONE;
    while (p->at < p->argc && p->argv[p->at][0] == '-') {
        const char *argument = p->argv[p->at];
        if (strcmp(argument, "--version") == 0) {
            (void)fprintf(p->in->out, "reportctl %s\n", RS_VERSION);
            return false;
        }
        if (!global_option(p, argument, &ok)) {
            *ret_code = command_fail(p->in, EXIT_USAGE, "unknown option %s; see reportctl --help",
                                     argument);
            return false;
        }
        if (!ok) {
            *ret_code = EXIT_USAGE;
            return false;
        }
        p->at++;
    }
    /* "help next" is "next --help"; "help" alone is a command with options of its own. */
    if (p->at + 1 < p->argc && strcmp(p->argv[p->at], "help") == 0 &&
        p->argv[p->at + 1][0] != '-') {
        p->help = true;
        p->at++;
    }
    if (p->at == p->argc) {
        command_print_overview(p->help ? p->in->out : p->in->errors);
        *ret_code = p->help ? EXIT_DONE : EXIT_USAGE;
        return false;
    }
    return true;
}

bool command_parse(int argc, const char *const *argv, struct invocation *ret,
                   enum exit_code *ret_code)
{
    struct parsing p = {.argc = argc, .argv = argv, .in = ret};
    if (!leading_parse(&p, ret_code)) {
        return false;
    }
    size_t words = 0;
    ret->command = command_find(argc - p.at, argv + p.at, &words);
    if (ret->command == NULL) {
        *ret_code = command_unknown(ret, argv[p.at], p.at + 1 < argc ? argv[p.at + 1] : NULL);
        return false;
    }
    p.at += (int)words;
    if (ret->command->not_yet != NULL && !p.help) {
        *ret_code = command_fail(ret, EXIT_USAGE, "%s is not available yet in version %s; %s",
                                 ret->command->words, RS_VERSION, ret->command->not_yet);
        return false;
    }
    /* --help wins over whatever else is wrong with the line. */
    for (int i = p.at; i < argc && !p.help && strcmp(argv[i], "--") != 0; i++) {
        p.help = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
    }
    if (p.help) {
        command_print_help(ret->command, ret->out);
        *ret_code = EXIT_DONE;
        return false;
    }
    if (!arguments_parse(&p) || !values_complete(ret) || !format_check(ret)) {
        *ret_code = EXIT_USAGE;
        return false;
    }
    return true;
}
