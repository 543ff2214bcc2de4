#include "known_names.h"

#include <stdio.h>
#include <string.h>

#include "ident.h"
#include "nearest.h"

#define NAMES_SHOWN 12 /* more would not be read */

struct known {
    const char *what;
    const char *sql; /* all names in order; there are few */
    const char *none;
};

static const struct known scopes = {
    .what = "scope",
    .sql = "SELECT name FROM reports.scope ORDER BY name LIMIT 1000",
    .none = "there is none: insert one into reports.scope",
};

static const struct known queues = {
    .what = "queue",
    .sql = "SELECT name FROM reports.queue ORDER BY name LIMIT 1000",
    .none = "there is none: insert one into reports.queue",
};

static const struct known calendars = {
    .what = "calendar",
    .sql = "SELECT name FROM reports.calendar ORDER BY name LIMIT 1000",
    .none = "there is none: reportctl calendar import makes one",
};

static void names_join(const struct table *t, char *ret_text, size_t size)
{
    size_t n = table_rows(t);
    size_t used = 0;
    ret_text[0] = '\0';
    for (size_t i = 0; i < n && i < NAMES_SHOWN && used < size; i++) {
        int more =
            snprintf(ret_text + used, size - used, "%s%s", i > 0 ? ", " : "", table_cell(t, i, 0));
        used += more > 0 ? (size_t)more : 0;
    }
    if (n > NAMES_SHOWN && used < size) {
        (void)snprintf(ret_text + used, size - used, " and %zu more", n - NAMES_SHOWN);
    }
}

static enum exit_code unknown_fail(struct session *s, const struct known *known, const char *name,
                                   const struct table *t)
{
    char names[NAMES_SHOWN * (NAME_MAX_BYTES + 2) + 32];
    struct nearest near = nearest_start(name);
    if (table_rows(t) == 0) {
        return command_fail(s->in, EXIT_NOT_FOUND, "%s \"%s\" does not exist; %s", known->what,
                            name, known->none);
    }
    for (size_t i = 0; i < table_rows(t); i++) {
        nearest_offer(&near, table_cell(t, i, 0));
    }
    names_join(t, names, sizeof names);
    if (near.best != NULL) {
        return command_fail(s->in, EXIT_NOT_FOUND,
                            "%s \"%s\" does not exist; did you mean %s? There are: %s", known->what,
                            name, near.best, names);
    }
    return command_fail(s->in, EXIT_NOT_FOUND, "%s \"%s\" does not exist; there are: %s",
                        known->what, name, names);
}

static enum exit_code name_check(struct session *s, const struct known *known, const char *name)
{
    struct table *t = NULL;
    if (name == NULL) {
        return EXIT_DONE;
    }
    enum exit_code code = session_select(s, known->sql, 0, NULL, &t);
    bool found = false;
    for (size_t i = 0; code == EXIT_DONE && i < table_rows(t); i++) {
        found = found || strcmp(table_cell(t, i, 0), name) == 0;
    }
    if (code == EXIT_DONE && !found) {
        code = unknown_fail(s, known, name, t);
    }
    table_free(t);
    return code;
}

enum exit_code scope_name_check(struct session *s, const char *name)
{
    return name_check(s, &scopes, name);
}

enum exit_code queue_name_check(struct session *s, const char *name)
{
    return name_check(s, &queues, name);
}

enum exit_code calendar_name_check(struct session *s, const char *name)
{
    return name_check(s, &calendars, name);
}

bool job_name_split(const char *text, char ret_schedule[NAME_MAX_BYTES], const char **ret_key)
{
    const char *colon = strchr(text, ':');
    size_t n = colon != NULL ? (size_t)(colon - text) : 0;
    if (n == 0 || n >= NAME_MAX_BYTES || colon[1] == '\0') {
        return false;
    }
    (void)snprintf(ret_schedule, NAME_MAX_BYTES, "%.*s", (int)n, text);
    *ret_key = colon + 1;
    return name_is_valid(ret_schedule);
}

enum exit_code job_name_check(struct session *s, const char *text)
{
    char schedule[NAME_MAX_BYTES];
    const char *key = NULL;
    if (uuid_is_valid(text) || job_name_split(text, schedule, &key)) {
        return EXIT_DONE;
    }
    return command_fail(s->in, EXIT_USAGE,
                        "\"%s\" is not a job; write its id or SCHEDULE:KEY, e.g. "
                        "sales-daily:2030-04-12",
                        text);
}
