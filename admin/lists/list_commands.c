/* Commands that are one SELECT on a view. The SQL of the views is in sql/0012_views.sql. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "known_names.h"
#include "list_command.h"
#include "occurrence_list.h"
#include "schedule_names.h"
#include "session.h"

enum exit_code leaders_command(struct invocation *in)
{
    static const char sql[] =
        "SELECT scope, state, leader, incarnation AS \"incarnation-\","
        " since_at AS \"since_at~\", beat_at AS \"beat_at~\", held, release_reason,"
        " generation AS \"generation?\", refused_writes AS \"refused_writes|REFUSED?\""
        " FROM reports.v_scope ORDER BY scope LIMIT $1";
    char limit[24];
    session_limit(in, limit);
    const char *values[] = {limit};
    return list_command_run(
        in, &(struct list_command){.sql = sql,
                                   .count = 1,
                                   .values = values,
                                   .empty = "There is no scope: insert one into reports.scope."});
}

enum exit_code schedules_command(struct invocation *in)
{
    static const char all[] =
        "SELECT name, rule, next_fire_at AS \"next_fire_at~\", last_state, paused, problem,"
        " circuit AS \"circuit?\", circuit_opened_at AS \"circuit_opened_at-\","
        " circuit_probe_at AS \"circuit_probe_at-\","
        " time_zone AS \"time_zone?\", scope AS \"scope?\", last_key AS \"last_key?\","
        " report AS \"report?\", next_nominal AS \"next_local?\", kind AS \"kind?\","
        " paused_since_at AS \"paused_since_at-\", pause_reason AS \"pause_reason-\","
        " paused_until AS \"paused_until-\","
        " queue AS \"queue-\", owner AS \"owner-\", version AS \"version-\","
        " last_fire_at AS \"last_fire_at-\", problem_since_at AS \"problem_since_at-\""
        " FROM reports.v_schedule WHERE ($2::text IS NULL OR scope = $2)"
        " ORDER BY name LIMIT $1";
    static const char resting[] =
        "SELECT name, paused_since_at AS \"paused_since_at~\", paused_until AS "
        "\"paused_until~|UNTIL\","
        " pause_reason, last_state, rule,"
        " paused AS \"paused-\", owner AS \"owner?\", scope AS \"scope?\","
        " time_zone AS \"time_zone?\", last_key AS \"last_key?\", report AS \"report?\","
        " kind AS \"kind?\" FROM reports.v_schedule WHERE ($2::text IS NULL OR scope = $2) AND "
        "paused"
        " ORDER BY name LIMIT $1";
    /* Through the progress rows' own index: among a million schedules the broken ones are few. */
    static const char broken[] =
        "SELECT v.name, v.problem_since_at AS \"since_at~\", v.problem, v.owner AS \"owner?\","
        " v.rule AS \"rule?\", v.time_zone AS \"time_zone?\", v.scope AS \"scope?\","
        " v.kind AS \"kind?\", v.report AS \"report-\" FROM (SELECT p.schedule FROM "
        "reports.schedule_progress p"
        "  WHERE p.problem IS NOT NULL AND ($2::text IS NULL OR p.scope = $2)"
        "  UNION SELECT c.schedule FROM reports.schedule_change c"
        "  WHERE c.made_at < now() - interval '5 seconds' AND ($2::text IS NULL OR c.scope = $2)) x"
        " JOIN reports.v_schedule v ON v.name = x.schedule"
        " WHERE v.problem IS NOT NULL ORDER BY v.name LIMIT $1";
    char limit[24];
    session_limit(in, limit);
    bool problem = command_flag(in, "--problem");
    bool paused = command_flag(in, "--paused");
    const char *values[] = {limit, command_text(in, "--scope")};
    const char *empty = "No schedules: insert one into reports.schedule (docs/schedules.md).";
    if (problem && paused) {
        return command_fail(in, EXIT_USAGE, "schedules takes --problem or --paused, not both");
    }
    empty = problem ? "No schedule has a problem." : paused ? "No schedule is paused." : empty;
    return list_command_run(in, &(struct list_command){.sql = problem  ? broken
                                                              : paused ? resting
                                                                       : all,
                                                       .count = 2,
                                                       .values = values,
                                                       .empty = empty,
                                                       .scope = values[1]});
}

static const char job_list[] =
    "SELECT id AS \"id-\", schedule, occurrence_key AS key, state AS \"state-\","
    " concat_ws(' for ', state, waits_for) || CASE WHEN state = 'running' AND lease_until < now()"
    " THEN ', lapsed' ELSE '' END AS \"state!\", waits_for AS \"waits_for-\","
    " attempt || '/' || max_attempts AS \"attempt!\", attempt AS \"attempt-\", max_attempts AS "
    "\"max_attempts-\", ran_s, CASE WHEN state IN ('waiting', 'queued', 'retry_wait') THEN"
    " run_after END AS \"run_after~?\","
    " CASE WHEN state = 'succeeded' THEN NULL WHEN length(error) > 100 THEN left(error, 97) || "
    "'...' ELSE error END AS \"error!\","
    " worker AS \"worker?\", scheduled_for AS \"scheduled_for?\", id AS \"id!?\","
    " queue AS \"queue-\", priority AS \"priority-\","
    " report AS \"report-\", cause AS \"cause-\", created_at AS \"created_at-\","
    " claimed_at AS \"claimed_at-\", finished_at AS \"finished_at-\","
    " error AS \"error-\" FROM reports.v_job"
    " WHERE ($2::reports.job_state IS NULL OR state = $2)"
    /* The words of a partial index: failures are found among any number of successes. */
    " AND (NOT $3::boolean OR state IN ('failed', 'cancelled', 'quarantined'))"
    " AND ($4::text IS NULL OR queue = $4)";

/* Jobs have no index by schedule; the ledger, whose key has the schedule first, leads to them. */
static enum exit_code jobs_of_schedule(struct invocation *in, const char *values[6])
{
    static const char tail[] =
        " AND id IN (SELECT job_id FROM reports.v_occurrence WHERE schedule = $5"
        " AND scheduled_for >= $6) ORDER BY id DESC LIMIT $1";
    char sql[sizeof job_list + sizeof tail];
    struct session s;
    struct table *t = NULL;
    (void)snprintf(sql, sizeof sql, "%s%s", job_list, tail);
    const struct recent_query recent = {.sql = sql,
                                        .count = 6,
                                        .values = values,
                                        .from = 5,
                                        .limit = command_int(in, "--limit") + 1};
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = queue_name_check(&s, values[3]);
    }
    if (code == EXIT_DONE) {
        code = recent_select(&s, &recent, &t);
    }
    if (code == EXIT_DONE && table_rows(t) == 0) {
        code = schedule_name_check(&s, values[4]);
    }
    if (code == EXIT_DONE) {
        code = session_print_list(&s, t, command_int(in, "--limit"), "No such jobs.");
        t = NULL;
    }
    table_free(t);
    session_close(&s);
    return code;
}

enum exit_code jobs_command(struct invocation *in)
{
    static const char tail[] = " ORDER BY id DESC LIMIT $1";
    char sql[sizeof job_list + sizeof tail];
    char limit[24];
    const char *state = command_text(in, "--state");
    bool ended_badly =
        state != NULL && (strcmp(state, "failed") == 0 || strcmp(state, "cancelled") == 0 ||
                          strcmp(state, "quarantined") == 0);
    session_limit(in, limit);
    const char *values[6] = {limit,
                             state,
                             ended_badly ? "true" : "false",
                             command_text(in, "--queue"),
                             command_text(in, "--schedule"),
                             NULL};
    if (values[4] != NULL) {
        return jobs_of_schedule(in, values);
    }
    (void)snprintf(sql, sizeof sql, "%s%s", job_list, tail);
    return list_command_run(in, &(struct list_command){.sql = sql,
                                                       .count = 4,
                                                       .values = values,
                                                       .empty = "No such jobs.",
                                                       .queue = values[3]});
}

enum exit_code workers_command(struct invocation *in)
{
    static const char sql[] =
        "SELECT name, state, running, slots, array_to_string(queues, ' ') AS queues,"
        " heartbeat_at AS \"heartbeat_at~\", started_at AS \"started_at~\","
        " stopped_at AS \"stopped_at~?\", pid AS \"pid?\", version AS \"version?\", id AS \"id?\""
        " FROM reports.v_worker"
        " WHERE $2::boolean OR stopped_at IS NULL OR stopped_at > now() - interval '1 day'"
        " ORDER BY stopped_at IS NOT NULL, name, started_at DESC LIMIT $1";
    char limit[24];
    session_limit(in, limit);
    const char *values[] = {limit, command_flag(in, "--all") ? "true" : "false"};
    return list_command_run(
        in, &(struct list_command){.sql = sql,
                                   .count = 2,
                                   .values = values,
                                   .empty = "No worker is there: start report-worker."});
}

enum exit_code events_command(struct invocation *in)
{
    static const char diary[] =
        "SELECT to_char(at, 'YYYY-MM-DD HH24:MI:SS.MS\"Z\"') AS \"at!\", at AS \"at-\", scope, "
        "event, member, reason, detail AS \"detail?\", incarnation AS \"incarnation-\","
        " generation AS \"generation?\" FROM reports.v_leadership_event WHERE ($2::text IS NULL OR "
        "scope = $2)"
        " ORDER BY id DESC LIMIT $1";
    static const char refused[] =
        "SELECT to_char(at, 'YYYY-MM-DD HH24:MI:SS.MS\"Z\"') AS \"at!\", at AS \"at-\", scope, "
        "operation, generation, stored_generation AS accepted_generation,"
        " application_name AS writer FROM reports.v_fence_rejection"
        " WHERE ($2::text IS NULL OR scope = $2) ORDER BY id DESC LIMIT $1";
    char limit[24];
    session_limit(in, limit);
    bool writes = command_flag(in, "--refused");
    const char *values[] = {limit, command_text(in, "--scope")};
    return list_command_run(
        in, &(struct list_command){.sql = writes ? refused : diary,
                                   .count = 2,
                                   .values = values,
                                   .empty = writes ? "No write of a former leader was refused."
                                                   : "Nothing has happened yet.",
                                   .scope = values[1]});
}

enum exit_code outbox_command(struct invocation *in)
{
    static const char load[] =
        "SELECT scope, messages || CASE WHEN messages = 100000 THEN '+' ELSE '' END"
        " AS \"messages#\", oldest_at AS \"oldest_at~\", dead FROM reports.v_outbox_load"
        " WHERE $1::text IS NULL OR scope = $1 ORDER BY scope";
    static const char waiting[] =
        "SELECT scope, schedule, occurrence_key AS key, queue, created_at AS \"created_at~\","
        " dispatch_number AS \"dispatch_number|DISPATCH?\", id AS \"id?\","
        " generation AS \"generation?\", job_id AS \"job_id?\" FROM reports.v_outbox"
        " WHERE $2::text IS NULL OR scope = $2 ORDER BY scope, id LIMIT $1";
    static const char dead[] =
        "SELECT scope, schedule, occurrence_key AS key, buried_at AS \"buried_at~\", reason,"
        " id AS \"id?\", job_id AS \"job_id?\" FROM reports.v_outbox_dead WHERE $2::text IS NULL "
        "OR scope = $2"
        " ORDER BY scope, id DESC LIMIT $1";
    const char *values[] = {command_text(in, "--limit"), command_text(in, "--scope")};
    struct session s;
    struct table *tables[2] = {NULL, NULL};
    bool buried = command_flag(in, "--dead");
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = scope_name_check(&s, values[1]);
    }
    if (code == EXIT_DONE) {
        code = session_select(&s, load, 1, &values[1], &tables[0]);
    }
    if (code == EXIT_DONE) {
        code = session_select(&s, buried ? dead : waiting, 2, values, &tables[1]);
    }
    if (code == EXIT_DONE) {
        const struct section sections[] = {
            {.key = "load", .table = tables[0], .empty = "There is no scope."},
            {.key = buried ? "dead" : "messages",
             .title = buried ? "COULD NOT BE PUBLISHED, NEWEST FIRST" : "WAITING, OLDEST FIRST",
             .table = tables[1],
             .empty = "none"},
        };
        session_print(&s, sections, 2);
    }
    table_free(tables[0]);
    table_free(tables[1]);
    session_close(&s);
    return code;
}

enum exit_code occurrences_command(struct invocation *in)
{
    struct occurrence_range range = {.schedule = command_text(in, "schedule"),
                                     .from = command_text(in, "--from"),
                                     .to = command_text(in, "--to"),
                                     .limit = command_int(in, "--limit") + 1};
    struct session s;
    struct table *t = NULL;
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = occurrence_list_make(&s, &range, &t);
    }
    if (code == EXIT_DONE && range.schedule != NULL && table_rows(t) == 0) {
        code = schedule_name_check(&s, range.schedule);
    }
    if (code == EXIT_DONE) {
        code = session_print_list(&s, t, command_int(in, "--limit"), "No such occurrences.");
        t = NULL;
    }
    table_free(t);
    session_close(&s);
    return code;
}
