/* `calendar list`, `show` and `check`: the calendars in the database. */
#include "commands.h"

#include <string.h>

#include "known_names.h"
#include "list_command.h"
#include "session.h"

/* ISO weekdays as words; $$ is the array. */
#define WEEKDAYS(array)                                                                            \
    "coalesce((SELECT string_agg((ARRAY['Mon','Tue','Wed','Thu','Fri','Sat','Sun'])[w], ' '"       \
    " ORDER BY w) FROM unnest(" array ") w), 'none')"

enum exit_code calendar_list_command(struct invocation *in)
{
    static const char sql[] = "SELECT name, CASE WHEN combine IS NULL THEN " WEEKDAYS(
        "weekend_days") " END AS weekend,"
                        " imported_days + overrides AS days, overrides, combine, parts AS "
                        "\"parts?\", valid_from,"
                        " valid_through, beyond AS \"beyond?\", schedules, updated_at AS "
                        "\"updated_at~\","
                        " version AS \"version-\", description AS \"description?\""
                        " FROM reports.v_calendar ORDER BY name LIMIT $1";
    char limit[24];
    const char *values[] = {limit};
    session_limit(in, limit);
    return list_command_run(
        in,
        &(struct list_command){
            .sql = sql,
            .count = 1,
            .values = values,
            .empty = "There is no calendar; reportctl calendar import nyse makes a shipped one."});
}

/* ---- show ---- */

/* The calendar and, of a combination, all its parts. */
#define BELOW                                                                                      \
    "WITH RECURSIVE below (name) AS (SELECT $1::text UNION SELECT p.part::text FROM below b"       \
    " JOIN reports.calendar_part p ON p.calendar = b.name) "

struct query {
    const char *key, *title, *empty, *sql;
};

static const struct query queries[] = {
    {"calendar", NULL, NULL,
     "SELECT name, description, combine, parts, CASE WHEN combine IS NULL THEN " WEEKDAYS(
         "weekend_days") " END AS weekend, imported_days, overrides, valid_from, valid_through,"
                         " beyond, schedules, version, updated_at AS \"updated_at~\", source"
                         " FROM reports.v_calendar WHERE name = $1"},
    {"weekends", "CHANGES OF THE WEEKEND", NULL,
     BELOW "SELECT w.calendar, w.from_date, " WEEKDAYS(
         "w.weekend_days") " AS weekend FROM reports.calendar_weekend w"
                           " WHERE w.calendar IN (SELECT name FROM below)"
                           " ORDER BY w.from_date, w.calendar"},
    {"days", "DAYS", "none in this year",
     BELOW "SELECT d.day, to_char(d.day, 'Dy') AS weekday, d.kind,"
           " CASE WHEN d.override THEN 'override' ELSE 'import' END AS \"from\", d.calendar,"
           " d.description, d.source AS \"source?\", d.recorded_by AS \"recorded_by?|BY\","
           " d.recorded_at AS \"recorded_at~?\" FROM reports.v_calendar_day d"
           " WHERE d.calendar IN (SELECT name FROM below)"
           " AND extract(year FROM d.day) ="
           " coalesce($2::integer, extract(year FROM current_date))"
           " ORDER BY d.day, d.calendar"},
};
#define QUERIES (sizeof queries / sizeof queries[0])

static enum exit_code sections_fill(struct session *s, const char *const values[2],
                                    struct section sections[QUERIES])
{
    enum exit_code code = EXIT_DONE;
    for (size_t i = 0; i < QUERIES && code == EXIT_DONE; i++) {
        sections[i] = (struct section){.key = queries[i].key,
                                       .title = queries[i].title,
                                       .empty = queries[i].empty,
                                       .facts = i == 0};
        int count = strstr(queries[i].sql, "$2") != NULL ? 2 : 1;
        code = session_select(s, queries[i].sql, count, values, &sections[i].table);
    }
    return code;
}

enum exit_code calendar_show_command(struct invocation *in)
{
    struct session s;
    struct section sections[QUERIES] = {0};
    const char *values[] = {command_text(in, "name"), command_text(in, "--year")};
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = calendar_name_check(&s, values[0]);
    }
    if (code == EXIT_DONE) {
        code = sections_fill(&s, values, sections);
    }
    if (code == EXIT_DONE) {
        session_print(&s, sections, QUERIES);
    }
    for (size_t i = 0; i < QUERIES; i++) {
        table_free(sections[i].table);
    }
    session_close(&s);
    return code;
}

/* ---- check ---- */

enum exit_code calendar_check_command(struct invocation *in)
{
    static const char sql[] =
        "SELECT verdict, calendar, finding, detail, used_by, remedy FROM reports.v_calendar_finding"
        " WHERE $1::text IS NULL OR calendar = $1 ORDER BY verdict DESC, calendar, finding"
        " LIMIT 1000";
    struct session s;
    struct table *t = NULL;
    const char *values[] = {command_text(in, "name")};
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = calendar_name_check(&s, values[0]);
    }
    if (code == EXIT_DONE) {
        code = session_select(&s, sql, 1, values, &t);
    }
    if (code == EXIT_DONE) {
        code = session_print_findings(&s, t);
    }
    table_free(t);
    session_close(&s);
    return code;
}
