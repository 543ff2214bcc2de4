/* One screen for the night: what needs somebody first, then how things stand. */
#include "commands.h"

#include "session.h"

struct part {
    const char *key;
    const char *title;
    const char *empty;
    bool facts;
    const char *sql;
};

static const struct part parts[] = {
    {"installation", NULL, NULL, true,
     "SELECT clock_timestamp() AS time_at, current_database() AS database,"
     " id AS installation FROM reports.installation"},
    {"problems", "PROBLEMS", "none", false,
     "SELECT kind, subject, since_at AS \"since_at~\", problem, remedy FROM reports.v_problem"
     " ORDER BY place, since_at LIMIT 20"},
    {"scopes", "SCOPES", "none: insert one into reports.scope", false,
     "SELECT scope, state, leader, since_at AS \"since_at~\", beat_at AS \"beat_at~\", held,"
     " due_lag_s, next_fire_at AS \"next_fire_at~\", changes_waiting AS \"edits_waiting|EDITS?\","
     " requests_waiting AS \"requests_waiting|REQUESTS?\","
     " schedules || CASE WHEN schedules = 100000 THEN '+' ELSE '' END AS \"schedules#?\","
     " nullif(paused, 0) || CASE WHEN paused = 1000 THEN '+' ELSE '' END AS \"paused#?\","
     " refused_writes AS \"refused_writes|REFUSED?\", generation AS \"generation?\" FROM "
     "reports.v_scope ORDER BY scope "
     "LIMIT 100"},
    {"jobs", "JOBS", NULL, false,
     "SELECT state, jobs || CASE WHEN capped THEN '+' ELSE '' END AS \"jobs#\","
     " lapsed, oldest_at AS \"oldest_at~\" FROM reports.v_job_state"},
    {"last_hour", "JOBS OF THE LAST HOUR", NULL, false,
     "SELECT planned || CASE WHEN capped THEN '+' ELSE '' END AS \"planned#\", succeeded, failed,"
     " cancelled, open FROM reports.v_last_hour"},
    {"outbox", "OUTBOX", NULL, false,
     "SELECT scope, messages || CASE WHEN messages = 100000 THEN '+' ELSE '' END AS \"messages#\","
     " oldest_at AS \"oldest_at~\", dead FROM reports.v_outbox_load ORDER BY scope LIMIT 100"},
    {"workers", "WORKERS", "none", false,
     "SELECT name, state, running, slots, array_to_string(queues, ' ') AS queues,"
     " heartbeat_at AS \"heartbeat_at~\", started_at AS \"started_at~\", pid AS \"pid?\" FROM "
     "reports.v_worker"
     /* Who ended in order is no news; who was found dead is, for a day. */
     " WHERE stopped_at IS NULL OR (state = 'dead' AND stopped_at > now() - interval '1 day')"
     " ORDER BY stopped_at IS NOT NULL, name, started_at DESC LIMIT 100"},
    {"holds", "HOLDS", NULL, false,
     "SELECT id, kind, subject, since_at AS \"since_at~\", raised_by AS \"raised_by|BY\", reason,"
     " scope AS \"scope-\", queue AS \"queue-\" FROM reports.v_hold ORDER BY id LIMIT 20"},
};

#define PARTS (sizeof parts / sizeof parts[0])

enum exit_code status_command(struct invocation *in)
{
    struct session s;
    struct section sections[PARTS] = {0};
    enum exit_code code = session_open(in, &s);
    for (size_t i = 0; i < PARTS && code == EXIT_DONE; i++) {
        sections[i] = (struct section){.key = parts[i].key,
                                       .title = parts[i].title,
                                       .empty = parts[i].empty,
                                       .facts = parts[i].facts};
        code = session_select(&s, parts[i].sql, 0, NULL, &sections[i].table);
    }
    if (code == EXIT_DONE) {
        session_print(&s, sections, PARTS);
    }
    for (size_t i = 0; i < PARTS; i++) {
        table_free(sections[i].table);
    }
    session_close(&s);
    return code;
}
