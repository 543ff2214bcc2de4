#include "session.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cell.h"
#include "store_admin.h"

static bool code_is(const struct error *err, const char *prefix)
{
    return strncmp(err->code, prefix, strlen(prefix)) == 0;
}

/* libpq tells the whole story of every address it tried; the cause stands at the end, a question to
 * the reader behind it. */
static void cause_take(const char *text, char *ret_text, size_t size)
{
    const char *fatal = strstr(text, "FATAL: ");
    const char *cause = fatal != NULL ? fatal + strlen("FATAL: ") : text;
    cause += strspn(cause, " ");
    const char *question = strstr(cause, " Is the server running");
    size_t length = question != NULL ? (size_t)(question - cause) : strlen(cause);
    if (length > 0 && cause[length - 1] == ';') {
        length--; /* the mark between libpq's lines */
    }
    (void)snprintf(ret_text, size, "%.*s", (int)length, cause);
}

static void describe_unreachable(const struct error *err, char *ret_text, size_t size)
{
    char cause[ERROR_TEXT_MAX];
    cause_take(err->text, cause, sizeof cause);
    (void)snprintf(ret_text, size,
                   "cannot reach the database: %s; check --database, REPORTCTL_DATABASE or PGHOST",
                   cause);
}

/* What the server said has a meaning of its own, whatever the status. */
static enum exit_code describe_code(const struct session *s, const struct error *err,
                                    char *ret_text, size_t size)
{
    const struct command *c = s->in->command;
    if (code_is(err, "42501")) {
        (void)snprintf(ret_text, size, "%s; %s needs %s: ask an administrator to GRANT it",
                       err->text, c->words, c->privilege != NULL ? c->privilege : "more rights");
        return EXIT_FAILED;
    }
    if (code_is(err, "42P01") || code_is(err, "3F000") || code_is(err, "42883") ||
        code_is(err, "42703")) {
        (void)snprintf(ret_text, size,
                       "this database has no report scheduler, or an older one (%s); run: "
                       "reportctl migrate",
                       err->text);
        return EXIT_FAILED;
    }
    if (code_is(err, "P0002")) {
        (void)snprintf(ret_text, size, "%s", err->text);
        return EXIT_NOT_FOUND;
    }
    return EXIT_DONE;
}

static enum exit_code describe_status(const struct session *s, enum status status,
                                      const struct error *err, char *ret_text, size_t size)
{
    (void)snprintf(ret_text, size, "%s", err->text);
    switch (status) {
    case STATUS_AGAIN:
        if (err->code[0] == '\0') {
            describe_unreachable(err, ret_text, size);
        } else {
            (void)snprintf(ret_text, size, "%s; try again", err->text);
        }
        break;
    case STATUS_TIMEOUT:
        (void)snprintf(ret_text, size, "%s (--timeout is %lld s)", err->text,
                       (long long)s->in->timeout_s);
        break;
    case STATUS_INVALID:
        return code_is(err, "22") || code_is(err, "23") || code_is(err, "0A") ||
                       code_is(err, "55000")
                   ? EXIT_USAGE
                   : EXIT_FAILED;
    case STATUS_NOT_FOUND:
        return EXIT_NOT_FOUND;
    case STATUS_OK:
    case STATUS_FENCED:
    case STATUS_HELD:
    case STATUS_CONFLICT:
    case STATUS_CORRUPT:
    case STATUS_FULL:
    case STATUS_FATAL:
        break;
    }
    return EXIT_FAILED;
}

enum exit_code session_fail(const struct session *s, enum status status, const struct error *err)
{
    char text[2 * ERROR_TEXT_MAX];
    enum exit_code code = describe_code(s, err, text, sizeof text);
    if (code == EXIT_DONE) {
        code = describe_status(s, status, err, text, sizeof text);
    }
    /* Otherwise the server has answered, and nothing is in the open. */
    bool open = s->after != NULL && (status == STATUS_AGAIN || status == STATUS_TIMEOUT);
    return command_fail(s->in, code, "%s%s%s", text, open ? "; " : "", open ? s->after : "");
}

enum status session_connect(struct session *s, struct error *err)
{
    struct store_options options = {
        .conninfo = s->in->database, .application_name = "reportctl", .role = STORE_ADMIN};
    store_close(s->store);
    s->store = NULL;
    enum status status = store_open(&options, s->deadline, &s->store, err);
    if (status == STATUS_TIMEOUT) {
        status = STATUS_AGAIN; /* nothing was asked yet */
    }
    return status == STATUS_OK ? store_clock(s->store, s->deadline, &s->now, err) : status;
}

enum exit_code session_open(struct invocation *in, struct session *ret)
{
    struct error err = {0};
    *ret =
        (struct session){.in = in, .deadline = instant_add_ms(clock_now(), in->timeout_s * 1000)};
    enum status s = session_connect(ret, &err);
    if (s == STATUS_INVALID && err.code[0] == '\0') {
        return command_fail(in, EXIT_FAILED, "%s", err.text); /* a pooler */
    }
    return s == STATUS_OK ? EXIT_DONE : session_fail(ret, s, &err);
}

void session_close(struct session *s)
{
    store_close(s->store);
    s->store = NULL;
}

enum exit_code session_select(struct session *s, const char *sql, int count,
                              const char *const *values, struct table **ret_table)
{
    struct error err = {0};
    enum status status =
        store_admin_select(s->store, sql, count, values, s->deadline, ret_table, &err);
    return status == STATUS_OK ? EXIT_DONE : session_fail(s, status, &err);
}

static struct table_view view_of(const struct session *s)
{
    struct winsize size = {0};
    int fd = fileno(s->in->out);
    bool terminal = !s->in->wide && isatty(fd) == 1 && ioctl(fd, TIOCGWINSZ, &size) == 0;
    return (struct table_view){
        .to = s->in->out, .now = s->now, .width = terminal ? size.ws_col : 0};
}

static void section_print_text(const struct section *c, const struct table_view *view, bool first)
{
    bool empty = table_rows(c->table) == 0;
    if (empty && c->empty == NULL) {
        return;
    }
    if (!first) {
        (void)putc('\n', view->to);
    }
    if (c->title != NULL) {
        (void)fprintf(view->to, "%s\n", c->title);
    }
    if (empty) {
        table_print_text(c->empty, view);
    } else if (c->facts || c->blocks) {
        table_print_facts(c->table, view);
    } else {
        table_print_rows(c->table, view);
    }
}

/* What the terminal was too narrow for is told, and where it can be seen. */
static void page_print_text(const struct session *s, const struct section *sections, size_t count)
{
    struct table_view view = view_of(s);
    char *left_out = NULL;
    size_t size = 0;
    bool first = true;
    view.left_out = open_memstream(&left_out, &size);
    for (size_t i = 0; i < count; i++) {
        section_print_text(&sections[i], &view, first);
        first = first && table_rows(sections[i].table) == 0 && sections[i].empty == NULL;
    }
    if (view.left_out != NULL && fclose(view.left_out) == 0 && size > 0) {
        (void)fflush(s->in->out);
        char note[CELL_TEXT_MAX];
        (void)snprintf(note, sizeof note,
                       "reportctl: left out for want of room: %s; -o wide shows all", left_out + 2);
        view.to = s->in->errors;
        table_print_text(note, &view);
    }
    free(left_out);
}

static void page_print_json(const struct section *sections, size_t count, FILE *to)
{
    (void)fputs("{\n", to);
    for (size_t i = 0; i < count; i++) {
        (void)fprintf(to, "  \"%s\": ", sections[i].key);
        table_print_json(sections[i].table, sections[i].facts, 2, to);
        (void)fputs(i + 1 < count ? ",\n" : "\n", to);
    }
    (void)fputs("}\n", to);
}

void session_print(const struct session *s, const struct section *sections, size_t count)
{
    switch (s->in->format) {
    case OUTPUT_TABLE:
        page_print_text(s, sections, count);
        break;
    case OUTPUT_JSON:
        if (count == 1) {
            table_print_json(sections[0].table, sections[0].facts, 0, s->in->out);
            (void)putc('\n', s->in->out);
        } else {
            page_print_json(sections, count, s->in->out);
        }
        break;
    case OUTPUT_CSV:
    case OUTPUT_MARKDOWN: /* not in the command's formats */
        table_print_csv(sections[0].table, s->in->out);
        break;
    }
}

void session_limit(const struct invocation *in, char ret_text[24])
{
    (void)snprintf(ret_text, 24, "%" PRId64, command_int(in, "--limit") + 1);
}

enum exit_code session_print_list(const struct session *s, struct table *t, int64_t limit,
                                  const char *empty)
{
    bool more = table_rows(t) > (size_t)limit;
    if (more) {
        table_cut(t, (size_t)limit);
    }
    struct section only = {.key = "rows", .table = t, .empty = empty};
    session_print(s, &only, 1);
    if (more) {
        (void)fflush(s->in->out);
        (void)fprintf(s->in->errors, "reportctl: only the first %lld; --limit N shows more\n",
                      (long long)limit);
    }
    table_free(t);
    return EXIT_DONE;
}

enum exit_code session_print_findings(const struct session *s, struct table *t)
{
    bool bad = command_flag(s->in, "--strict") && table_rows(t) > 0;
    for (size_t i = 0; i < table_rows(t); i++) {
        bad = bad || strcmp(table_value(t, i, "verdict"), "wrong") == 0;
    }
    const struct section section = {.key = "findings", .table = t, .empty = "Nothing is wrong."};
    session_print(s, &section, 1);
    return bad ? EXIT_FAILED : EXIT_DONE;
}
