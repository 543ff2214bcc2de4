#include "plan_edit_row.h"

#include <stdlib.h>
#include <string.h>

#include "nearest.h"
#include "schedule_names.h"
#include "store_admin.h"

/* These stand in SQL as they are; everything else is a literal. */
static bool value_is_word(const char *value)
{
    return strcmp(value, "NULL") == 0 || strcmp(value, "DEFAULT") == 0;
}

enum exit_code plan_edit_row_parse(struct invocation *in, struct plan_edit_row *ret_edit)
{
    struct plan_edit_row e = {.count = 0};
    for (size_t i = 0; i < in->repeated_count; i++) {
        const char *text = in->repeated[i];
        const char *equals = strchr(text, '=');
        size_t length = equals != NULL ? (size_t)(equals - text) : 0;
        if (length == 0 || length >= EDIT_COLUMN_MAX) {
            return command_fail(in, EXIT_USAGE,
                                "--set \"%s\" is wrong; write COLUMN=VALUE, e.g. "
                                "--set 'rule=30 6 * * 1-5'",
                                text);
        }
        struct plan_edit_column *c = &e.columns[e.count];
        (void)snprintf(c->name, sizeof c->name, "%.*s", (int)length, text);
        c->value = equals + 1;
        for (size_t k = 0; k < e.count; k++) {
            if (strcmp(e.columns[k].name, c->name) == 0) {
                return command_fail(in, EXIT_USAGE, "--set gives %s twice", c->name);
            }
        }
        e.count++;
    }
    *ret_edit = e;
    return EXIT_DONE;
}

/* Otherwise the server would say that the schema is old. */
static enum exit_code columns_check(struct session *s, const struct plan_edit_row *edit)
{
    static const char sql[] = "SELECT attname::text AS name FROM pg_catalog.pg_attribute WHERE"
                              " attrelid = 'reports.schedule'::regclass AND attnum > 0 AND NOT"
                              " attisdropped ORDER BY attnum";
    struct table *t = NULL;
    enum exit_code code = session_select(s, sql, 0, NULL, &t);
    for (size_t i = 0; i < edit->count && code == EXIT_DONE; i++) {
        const char *name = edit->columns[i].name;
        struct nearest near = nearest_start(name);
        bool known = false;
        for (size_t row = 0; row < table_rows(t); row++) {
            known = known || strcmp(table_cell(t, row, 0), name) == 0;
            nearest_offer(&near, table_cell(t, row, 0));
        }
        if (!known && near.best != NULL) {
            code = command_fail(s->in, EXIT_USAGE, "a schedule has no column %s; did you mean %s?",
                                name, near.best);
        } else if (!known) {
            code = command_fail(s->in, EXIT_USAGE,
                                "a schedule has no column %s; docs/schedules.md lists them", name);
        }
    }
    table_free(t);
    return code;
}

/* ` SET a = $2, b = NULL` or with literals. */
static void assignments_print(const struct plan_edit_row *edit, bool literals, FILE *to)
{
    size_t parameter = 2;
    for (size_t i = 0; i < edit->count; i++) {
        const struct plan_edit_column *c = &edit->columns[i];
        (void)fprintf(to, "%s %s = ", i == 0 ? " SET" : ",", c->name);
        if (value_is_word(c->value)) {
            (void)fputs(c->value, to);
        } else if (!literals) {
            (void)fprintf(to, "$%zu", parameter++);
        } else {
            (void)putc('\'', to);
            for (const char *at = c->value; *at != '\0'; at++) {
                (void)fputs(*at == '\'' ? "'" : "", to);
                (void)putc(*at, to);
            }
            (void)putc('\'', to);
        }
    }
}

static char *statement_make(const char *schedule, const struct plan_edit_row *edit)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (to == NULL) {
        return NULL;
    }
    (void)fputs("UPDATE reports.schedule", to);
    assignments_print(edit, schedule != NULL, to);
    if (schedule != NULL) {
        (void)fprintf(to, " WHERE name = '%s';", schedule);
    } else {
        (void)fputs(" WHERE name = $1 RETURNING name", to);
    }
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

char *plan_edit_row_statement(const char *schedule, const struct plan_edit_row *edit)
{
    return statement_make(schedule, edit);
}

enum exit_code plan_edit_row_write(struct session *s, const char *schedule,
                                   const struct plan_edit_row *edit)
{
    enum exit_code code = columns_check(s, edit);
    if (code != EXIT_DONE) {
        return code;
    }
    const char *values[1 + REPEATS_MAX] = {schedule};
    int count = 1;
    for (size_t i = 0; i < edit->count; i++) {
        if (!value_is_word(edit->columns[i].value)) {
            values[count++] = edit->columns[i].value;
        }
    }
    char *sql = statement_make(NULL, edit);
    struct table *t = NULL;
    code = sql != NULL ? session_select(s, sql, count, values, &t)
                       : command_fail(s->in, EXIT_FAILED, "out of memory");
    if (code == EXIT_DONE && table_rows(t) == 0) {
        code = schedule_name_fail(s, schedule);
    }
    table_free(t);
    free(sql);
    return code;
}
