#include "schedule_names.h"

#include "cell.h"
#include "nearest.h"

#define NAMES_MAX "5000" /* among more, a guess would not be worth the wait */

enum exit_code schedule_name_check(struct session *s, const char *name)
{
    struct table *t = NULL;
    const char *values[] = {name};
    enum exit_code code = session_select(
        s, "SELECT 1 FROM reports.schedule_version WHERE schedule = $1 LIMIT 1", 1, values, &t);
    bool found = code == EXIT_DONE && table_rows(t) > 0;
    table_free(t);
    if (code != EXIT_DONE || found) {
        return code;
    }
    return schedule_name_fail(s, name);
}

static enum exit_code deleted_fail(struct session *s, const char *name, bool *ret_said)
{
    struct table *t = NULL;
    const char *values[] = {name};
    char when[64];
    enum exit_code code =
        session_select(s,
                       "SELECT recorded_at AS at, recorded_by FROM reports.schedule_version"
                       " WHERE schedule = $1 AND ended ORDER BY version DESC LIMIT 1",
                       1, values, &t);
    *ret_said = code != EXIT_DONE;
    if (code == EXIT_DONE && table_rows(t) > 0) {
        cell_instant_format(table_cell(t, 0, 0), when, sizeof when);
        *ret_said = true;
        code = command_fail(s->in, EXIT_NOT_FOUND,
                            "schedule \"%s\" was deleted at %.19sZ by %s; reportctl occurrences %s "
                            "lists what it did",
                            name, when, table_cell(t, 0, 1), name);
    }
    table_free(t);
    return code;
}

enum exit_code schedule_name_fail(struct session *s, const char *name)
{
    bool said = false;
    enum exit_code code = deleted_fail(s, name, &said);
    if (said) {
        return code;
    }
    struct table *t = NULL;
    struct nearest near = nearest_start(name);
    code = session_select(s, "SELECT name FROM reports.schedule ORDER BY name LIMIT " NAMES_MAX, 0,
                          NULL, &t);
    if (code != EXIT_DONE) {
        return code;
    }
    for (size_t i = 0; i < table_rows(t); i++) {
        nearest_offer(&near, table_cell(t, i, 0));
    }
    if (near.best != NULL) {
        code = command_fail(s->in, EXIT_NOT_FOUND,
                            "schedule \"%s\" does not exist; did you mean %s?", name, near.best);
    } else {
        code = command_fail(s->in, EXIT_NOT_FOUND,
                            "schedule \"%s\" does not exist; reportctl schedules lists them", name);
    }
    table_free(t);
    return code;
}
