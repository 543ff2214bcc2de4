/* Why a calendar lets a date that the rule names make no firing. */
#include <inttypes.h>

#include "why.h"

/* What the calendar, or a part of it, has about the day; by its number of civil.h. */
static enum exit_code day_select(struct why *w, int64_t day, struct table **ret_table)
{
    static const char sql[] =
        "WITH RECURSIVE v AS (SELECT v.calendar::text, v.nonbusiness FROM reports.schedule_version "
        "v"
        " WHERE v.schedule = $1 AND v.version = $2::integer), below (name) AS (SELECT v.calendar "
        "FROM v"
        " UNION SELECT p.part::text FROM below b JOIN reports.calendar_part p ON p.calendar = "
        "b.name)"
        " SELECT v.calendar, v.nonbusiness, to_char(d.day, 'FMDay') AS weekday, (SELECT"
        " string_agg(concat_ws(' ', 'a', c.kind, CASE WHEN c.kind = 'working' THEN 'day' END, 'of',"
        " c.calendar, '(' || nullif(c.description, '') || ')'), ', ' ORDER BY c.calendar)"
        " FROM reports.v_calendar_day c WHERE c.day = d.day AND c.calendar IN (SELECT b.name FROM "
        "below"
        " b)) AS entries FROM v, (SELECT $3::date AS day) d";
    char number[16];
    char date[DATE_TEXT_MAX];
    (void)snprintf(number, sizeof number, "%" PRId32, w->story.version->namer->version);
    date_format(day, date);
    const char *values[] = {w->ask.schedule, number, date};
    return session_select(w->s, sql, 3, values, ret_table);
}

enum exit_code why_day_tell(struct why *w)
{
    const struct why_story *y = &w->story;
    struct table *t = NULL;
    char date[DATE_TEXT_MAX];
    char to[DATE_TEXT_MAX];
    enum exit_code code = day_select(w, y->date, &t);
    if (code != EXIT_DONE) {
        return code;
    }
    const char *entries = why_value(t, "entries");
    date_format(y->date, date);
    date_format(y->to_date, to);
    why_answer(w, "The rule of version %" PRId32 " names it, and calendar %s ", y->version->version,
               why_value(t, "calendar"));
    if (y->kind == WHY_SKIPPED) {
        why_add(w, "takes it away: %s, a %s, is no business day", date, why_value(t, "weekday"));
    } else if (y->kind == WHY_JOINED) {
        why_add(w, "moves %s, a %s, to %s, where that of another date fires instead", date,
                why_value(t, "weekday"), to);
    } else {
        why_add(w, "does not know the days around %s", date);
    }
    why_add(w, "%s%s (nonbusiness %s)", entries[0] != '\0' ? ", but " : "", entries,
            why_value(t, "nonbusiness"));
    table_free(t);
    return EXIT_DONE;
}
