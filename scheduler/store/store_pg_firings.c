#include "store_firings.h"

#include <stdio.h>

#include "store_pg_plan.h"

enum status store_firings(struct store *store, const char *after, const char *time_zone,
                          instant deadline, struct due_rows *ret_rows, struct error *err)
{
    static const char sql[] =
        "SELECT " DUE_COLUMNS " FROM (SELECT p.schedule, v.version, p.step, p.next_fire_at,"
        " p.last_fire_at, p.switched_at, p.key_form, v.kind, coalesce(p.rule_std, v.rule) AS rule,"
        " v.time_zone, v.anchor, v.starts_at, v.ends_at, v.misfire, v.misfire_max,"
        " 0 AS misfire_age_us, 0 AS misfire_grace_us, clock_timestamp() AS database_now,"
        " v.effective_from, v.paused, v.ended, false AS edited,"
        " CASE WHEN p.rule_std IS NULL THEN v.dialect ELSE 'std' END AS dialect, v.dst_gap,"
        " v.dst_overlap, v.jitter_s, v.start_local, v.exdates, v.rdates,"
        " v.calendar, v.calendar_version, v.nonbusiness, v.business_day_offset, v.roll_collision, "
        "v.business_date,"
        " p.next_nominal, p.next_offset_s, p.tzdata, p.zone_digest"
        " FROM reports.schedule_progress p JOIN reports.schedule_version v"
        " ON v.schedule = p.schedule AND v.version = p.version"
        " WHERE p.next_fire_at IS NOT NULL AND p.schedule > $1"
        " AND ($2::text IS NULL OR v.time_zone = $2) ORDER BY p.schedule LIMIT $3::integer) x";
    char limit[24];
    (void)snprintf(limit, sizeof limit, "%zu", ret_rows->max);
    const char *values[] = {after, time_zone, limit};
    PGresult *r = NULL;
    enum status s = store_pg_query(store, sql, 3, values, deadline, &r, err);
    return s == STATUS_OK ? due_rows_fill(&(struct calendar_ask){store, deadline}, r, ret_rows, err)
                          : s;
}

/* Of the schedules n: the version in force and the latest, which may be announced; others that were
 * announced have given way to it. A problem is that of the
 * version in force, unless an edit waits that may mend it. */
#define DEFINITIONS                                                                                \
    "SELECT v.schedule, v.version, 0 AS step, NULL AS next_fire_at, p.last_fire_at,"               \
    " p.switched_at, p.key_form, v.kind, v.rule, v.time_zone, v.anchor, v.starts_at, v.ends_at,"   \
    " v.misfire, v.misfire_max, 0 AS misfire_age_us, 0 AS misfire_grace_us,"                       \
    " clock_timestamp() AS database_now, v.effective_from, v.paused, v.ended, false AS edited,"    \
    " v.dialect, v.dst_gap, v.dst_overlap, v.jitter_s, v.start_local, v.exdates, v.rdates,"        \
    " v.calendar, v.calendar_version, v.nonbusiness, v.business_day_offset, v.roll_collision, "    \
    "v.business_date,"                                                                             \
    " NULL AS next_nominal, NULL AS next_offset_s, p.tzdata, p.zone_digest, v.queue,"              \
    " v.paused_until, p.version = v.version AND p.problem IS NOT NULL AS problem"                  \
    " FROM n CROSS JOIN LATERAL (SELECT * FROM reports.schedule_version w"                         \
    " WHERE w.schedule = n.name AND w.version IN ((SELECT u.version"                               \
    " FROM reports.schedule_version u WHERE u.schedule = n.name"                                   \
    " AND u.effective_from <= statement_timestamp() ORDER BY u.version DESC LIMIT 1),"             \
    " (SELECT max(u.version) FROM reports.schedule_version u WHERE u.schedule = n.name))) v"       \
    " LEFT JOIN reports.schedule_progress p ON p.schedule = n.name"

enum status store_definition(struct store *store, const char *schedule, instant deadline,
                             struct due_rows *ret_rows, struct error *err)
{
    static const char sql[] = "WITH n AS (SELECT s.name FROM reports.schedule s WHERE s.name = $1)"
                              " SELECT " DUE_COLUMNS " FROM (" DEFINITIONS ") x ORDER BY version";
    const char *values[] = {schedule};
    PGresult *r = NULL;
    enum status s = store_pg_query(store, sql, 1, values, deadline, &r, err);
    return s == STATUS_OK ? due_rows_fill(&(struct calendar_ask){store, deadline}, r, ret_rows, err)
                          : s;
}

enum status store_definitions(struct store *store, const struct definition_page *page,
                              instant deadline, struct due_rows *ret_rows,
                              struct definition_more *ret_more, struct error *err)
{
    static const char sql[] =
        "WITH n AS MATERIALIZED (SELECT s.name FROM reports.schedule s WHERE s.name > $1"
        " AND ($2::text IS NULL OR s.scope = $2) ORDER BY s.name LIMIT $3::integer)"
        " SELECT " DUE_COLUMNS ", queue, problem, paused_until FROM (" DEFINITIONS
        ") x ORDER BY schedule, version";
    char limit[24];
    (void)snprintf(limit, sizeof limit, "%zu", page->schedules);
    const char *values[] = {page->after, page->scope, limit};
    PGresult *r = NULL;
    enum status s = store_pg_query(store, sql, 3, values, deadline, &r, err);
    if (s != STATUS_OK) {
        return s;
    }
    int queue = PQfnumber(r, "queue");
    for (int i = 0; i < PQntuples(r) && (size_t)i < ret_rows->max; i++) {
        store_pg_text(r, i, queue, ret_more[i].queue, sizeof ret_more[i].queue);
        ret_more[i].problem = store_pg_bool(r, i, queue + 1);
        ret_more[i].paused_until = cell_time(r, i, queue + 2, NULL);
    }
    return due_rows_fill(&(struct calendar_ask){store, deadline}, r, ret_rows, err);
}

enum status store_keys_used(struct store *store, const char *schedule, instant deadline,
                            struct plan_candidates *c, struct error *err)
{
    static const char sql[] =
        "SELECT k.number FROM unnest($2::text[]) WITH ORDINALITY AS k (key, number) WHERE EXISTS"
        " (SELECT FROM reports.occurrence o WHERE o.schedule = $1 AND o.occurrence_key = k.key)";
    return store_pg_keys_find(&(struct store_call){.store = store, .deadline = deadline}, sql,
                              schedule, c, err);
}
