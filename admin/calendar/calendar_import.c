/* `calendar import`: a file, or a shipped calendar, into reports.calendar and its rows; one
 * statement, so that a leader sees all of it or nothing. */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calendar_file.h"
#include "civil.h"
#include "session.h"

/* The parameters of reports.calendar_import, in its order. */
enum {
    P_CALENDAR,
    P_DESCRIPTION,
    P_SOURCE,
    P_WEEKEND_DAYS,
    P_VALID_FROM,
    P_VALID_THROUGH,
    P_BEYOND,
    P_WEEKEND_FROM,
    P_WEEKENDS,
    P_DAYS,
    P_KINDS,
    P_LABELS,
    P_REPLACE,
    P_DRY_RUN,
    PARAMETERS
};

struct import {
    struct calendar_definition d;
    char source[2 * CALENDAR_TEXT_MAX + 16];
    char weekend_days[32];
    char valid_from[DATE_TEXT_MAX], valid_through[DATE_TEXT_MAX];
    char *weekend_from, *weekends, *days, *kinds, *labels; /* array literals */
    const char *values[PARAMETERS];
};

static void import_done(struct import *i)
{
    calendar_definition_done(&i->d);
    free(i->weekend_from);
    free(i->weekends);
    free(i->days);
    free(i->kinds);
    free(i->labels);
}

/* ---- the definition as PostgreSQL writes it ---- */

/* ISO weekdays, 1 Monday to 7 Sunday, of bits from Sunday on. */
static void weekdays_write(FILE *to, uint8_t days)
{
    const char *comma = "";
    (void)fputc('{', to);
    for (int iso = 1; iso <= 7; iso++) {
        if (((unsigned)days >> iso % 7 & 1U) != 0) {
            (void)fprintf(to, "%s%d", comma, iso);
            comma = ",";
        }
    }
    (void)fputc('}', to);
}

static void label_write(FILE *to, const char *label)
{
    (void)fputc('"', to);
    for (const char *p = label; *p != '\0'; p++) {
        if (*p == '"' || *p == '\\') {
            (void)fputc('\\', to);
        }
        (void)fputc(*p, to);
    }
    (void)fputc('"', to);
}

static void day_write(FILE *to, int64_t day)
{
    char text[DATE_TEXT_MAX];
    date_format(day, text);
    (void)fputs(text, to);
}

enum part {
    PART_WEEKEND_FROM,
    PART_WEEKENDS,
    PART_DAYS,
    PART_KINDS,
    PART_LABELS,
};

static void part_write(FILE *to, const struct calendar_definition *d, enum part part, size_t i)
{
    switch (part) {
    case PART_WEEKEND_FROM:
        day_write(to, d->weekends[i].from);
        return;
    case PART_WEEKENDS:
        (void)fputc('"', to);
        weekdays_write(to, d->weekends[i].days);
        (void)fputc('"', to);
        return;
    case PART_DAYS:
        day_write(to, d->entries[i].day);
        return;
    case PART_KINDS:
        (void)fputs(d->entries[i].business ? "working" : "holiday", to);
        return;
    case PART_LABELS:
        label_write(to, d->entries[i].label);
        return;
    }
}

/* An array literal of the elements from `first`; NULL when out of memory. */
static char *array_make(const struct calendar_definition *d, enum part part)
{
    bool weekend = part == PART_WEEKEND_FROM || part == PART_WEEKENDS;
    size_t first = weekend ? 1 : 0; /* the first weekend stands in the calendar's own row */
    size_t count = weekend ? d->weekend_count : d->entry_count;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (to == NULL) {
        return NULL;
    }
    (void)fputc('{', to);
    for (size_t i = first; i < count; i++) {
        if (i > first) {
            (void)fputc(',', to);
        }
        part_write(to, d, part, i);
    }
    (void)fputc('}', to);
    bool failed = ferror(to) != 0;
    if (fclose(to) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}

static void texts_make(struct import *i)
{
    const struct calendar_definition *d = &i->d;
    FILE *to = fmemopen(i->weekend_days, sizeof i->weekend_days, "w");
    if (to != NULL) {
        weekdays_write(to, d->weekends[0].days);
        (void)fclose(to);
    }
    (void)snprintf(i->source, sizeof i->source, "%s%s%s", d->source,
                   d->source[0] != '\0' && d->attribution[0] != '\0' ? "; " : "", d->attribution);
    if (strlen(i->source) >= 1024) {
        i->source[1023] = '\0';
        text_trim(i->source);
    }
    if (d->valid_from != CALENDAR_ALWAYS) {
        date_format(d->valid_from, i->valid_from);
        i->values[P_VALID_FROM] = i->valid_from;
    }
    if (d->valid_through != CALENDAR_FOREVER) {
        date_format(d->valid_through, i->valid_through);
        i->values[P_VALID_THROUGH] = i->valid_through;
    }
}

static bool import_fill(struct import *i)
{
    const struct calendar_definition *d = &i->d;
    texts_make(i);
    i->weekend_from = array_make(d, PART_WEEKEND_FROM);
    i->weekends = array_make(d, PART_WEEKENDS);
    i->days = array_make(d, PART_DAYS);
    i->kinds = array_make(d, PART_KINDS);
    i->labels = array_make(d, PART_LABELS);
    i->values[P_DESCRIPTION] = d->description;
    i->values[P_SOURCE] = i->source;
    i->values[P_WEEKEND_DAYS] = i->weekend_days;
    i->values[P_BEYOND] = d->beyond == CALENDAR_BEYOND_HOLD ? "hold" : "weekends_only";
    i->values[P_WEEKEND_FROM] = i->weekend_from;
    i->values[P_WEEKENDS] = i->weekends;
    i->values[P_DAYS] = i->days;
    i->values[P_KINDS] = i->kinds;
    i->values[P_LABELS] = i->labels;
    return i->weekend_days[0] != '\0' && i->weekend_from != NULL && i->weekends != NULL &&
           i->days != NULL && i->kinds != NULL && i->labels != NULL;
}

/* ---- the command ---- */

static enum exit_code import_prepare(struct invocation *in, struct import *i)
{
    struct error err = {.text = ""};
    const char *name = command_text(in, "name");
    const char *file = command_text(in, "file");
    enum status s = calendar_file_read(file != NULL ? file : name, &i->d, &err);
    if (s != STATUS_OK) {
        return command_fail(in, s == STATUS_INVALID ? EXIT_USAGE : EXIT_FAILED, "%s", err.text);
    }
    i->values[P_CALENDAR] = name;
    i->values[P_REPLACE] = command_flag(in, "--replace") ? "true" : "false";
    i->values[P_DRY_RUN] = command_flag(in, "--dry-run") ? "true" : "false";
    return import_fill(i) ? EXIT_DONE : command_fail(in, EXIT_FAILED, "out of memory");
}

static enum exit_code import_answer(struct session *s, const struct import *i, struct table *t,
                                    struct table *days)
{
    const char *verdict = table_value(t, 0, "result");
    const char *name = i->values[P_CALENDAR];
    if (strcmp(verdict, "exists") == 0) {
        return command_fail(s->in, EXIT_USAGE,
                            "calendar \"%s\" exists; --replace takes the file's days instead of "
                            "those imported before (%s more, %s fewer, %s different), and "
                            "--replace --dry-run only shows that",
                            name, table_value(t, 0, "added"), table_value(t, 0, "removed"),
                            table_value(t, 0, "changed"));
    }
    if (strcmp(verdict, "combination") == 0) {
        return command_fail(s->in, EXIT_USAGE,
                            "calendar \"%s\" is a combination of others; import into one of its "
                            "parts, or under another name",
                            name);
    }
    struct section sections[] = {
        {.key = "import", .table = t, .facts = true},
        {.key = "days", .title = "DAYS ADDED, REMOVED AND CHANGED", .table = days, .empty = "none"},
    };
    session_print(s, sections, days != NULL ? 2 : 1);
    return EXIT_DONE;
}

/* By how much it differs from what was imported before; only what a dry run tells. */
static enum exit_code days_compare(struct session *s, const struct import *i,
                                   struct table **ret_days)
{
    static const char sql[] =
        "SELECT CASE WHEN o.day IS NULL THEN 'added' WHEN n.day IS NULL THEN 'removed' ELSE"
        " 'changed' END AS change, coalesce(n.day, o.day) AS day, to_char(coalesce(n.day, o.day),"
        " 'Dy') AS weekday, o.kind AS was, n.kind, coalesce(n.label, o.description) AS description"
        " FROM unnest($2::date[], $3::text[], $4::text[]) AS n (day, kind, label)"
        " FULL JOIN (SELECT d.day, d.kind, d.description FROM reports.calendar_day d"
        " WHERE d.calendar = $1 AND NOT d.override) o ON o.day = n.day"
        " WHERE (o.kind, o.description) IS DISTINCT FROM (n.kind, n.label) ORDER BY 2";
    const char *values[] = {i->values[P_CALENDAR], i->days, i->kinds, i->labels};
    return session_select(s, sql, 4, values, ret_days);
}

enum exit_code calendar_import_command(struct invocation *in)
{
    static const char sql[] =
        "SELECT $1::text AS calendar, CASE WHEN $14::boolean AND verdict IN ('created', 'replaced')"
        " THEN 'would be ' || verdict ELSE verdict END AS result, added, removed, changed,"
        " unchanged, overrides, $5::date AS valid_from, $6::date AS valid_through"
        " FROM reports.calendar_import($1, $2, $3, $4::integer[], $5::date, $6::date, $7,"
        " $8::date[], $9::text[], $10::date[], $11::text[], $12::text[], $13::boolean,"
        " $14::boolean)";
    struct import i = {.values = {NULL}};
    struct session s;
    struct table *t = NULL;
    struct table *days = NULL;
    calendar_definition_init(&i.d);
    enum exit_code code = import_prepare(in, &i);
    if (code == EXIT_DONE) {
        code = session_open(in, &s);
        if (code == EXIT_DONE) {
            s.after = "it may have been done all the same: reportctl calendar list shows it";
            code = session_select(&s, sql, PARAMETERS, i.values, &t);
            s.after = NULL;
        }
        if (code == EXIT_DONE && command_flag(in, "--dry-run")) {
            code = days_compare(&s, &i, &days);
        }
        if (code == EXIT_DONE) {
            code = import_answer(&s, &i, t, days);
        }
        table_free(days);
        table_free(t);
        session_close(&s);
    }
    import_done(&i);
    return code;
}
