/* Everything about one job: what it is for, how it stands, each attempt, the file. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "ident.h"
#include "known_names.h"
#include "session.h"

static enum exit_code job_select(struct session *s, const char *text, struct table **ret_table)
{
    static const char sql[] =
        "SELECT id, schedule, occurrence_key, scope, report, cause, scheduled_for, nominal_local,"
        " business_date::text AS business_date, window_start, window_end, state,"
        " waits_for AS \"waits_for-\", waits_on,"
        " attempt || ' of ' || max_attempts || CASE WHEN handed_back > 0 THEN ' (' || handed_back"
        " || ' handed back)' ELSE '' END AS \"attempt!\", attempt AS \"attempt-\","
        " max_attempts AS \"max_attempts-\", handed_back AS \"handed_back-\", queue, priority,"
        " extract(epoch FROM timeout) AS timeout_s, planned_at, run_after, claimed_at, finished_at,"
        " ran_s, worker, worker_id, lease_until, cancel_requested, revision,"
        " version AS schedule_version, generation, dispatch_number, error FROM reports.v_job"
        " WHERE ($1::uuid IS NULL OR id = $1)"
        " AND ($2::text IS NULL OR schedule = $2 AND occurrence_key = $3)";
    char schedule[NAME_MAX_BYTES];
    const char *values[3] = {text, NULL, NULL};
    enum exit_code code = job_name_check(s, text);
    if (job_name_split(text, schedule, &values[2])) {
        values[0] = NULL;
        values[1] = schedule;
    }
    if (code == EXIT_DONE) {
        code = session_select(s, sql, 3, values, ret_table);
    }
    if (code == EXIT_DONE && table_rows(*ret_table) == 0) {
        code = command_fail(s->in, EXIT_NOT_FOUND,
                            "job \"%s\" does not exist; reportctl jobs "
                            "lists recent ones",
                            text);
    }
    return code;
}

enum exit_code job_command(struct invocation *in)
{
    static const char attempts[] =
        "SELECT attempt, outcome, started_at, ran_s, error, exit_code AS \"exit_code?\","
        " worker AS \"worker?\", worker_id AS \"worker_id-\", ended_at AS \"ended_at-\" FROM "
        "reports.v_attempt WHERE job_id = $1"
        " ORDER BY attempt";
    static const char artifacts[] =
        "SELECT attempt, store, path, size_bytes, row_count AS rows, superseded, media_type, "
        "sha256,"
        " created_at AS \"created_at-\" FROM reports.v_artifact WHERE job_id = $1 ORDER BY attempt";
    struct session s;
    struct section sections[] = {
        {.key = "job", .facts = true},
        {.key = "attempts", .title = "FINISHED ATTEMPTS", .empty = "none"},
        {.key = "artifacts", .title = "ARTIFACTS", .empty = "none", .blocks = true},
    };
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = job_select(&s, command_text(in, "job"), &sections[0].table);
    }
    if (code == EXIT_DONE) {
        const char *id[] = {table_value(sections[0].table, 0, "id")};
        code = session_select(&s, attempts, 1, id, &sections[1].table);
        if (code == EXIT_DONE) {
            code = session_select(&s, artifacts, 1, id, &sections[2].table);
        }
    }
    if (code == EXIT_DONE) {
        session_print(&s, sections, 3);
    }
    for (size_t i = 0; i < 3; i++) {
        table_free(sections[i].table);
    }
    session_close(&s);
    return code;
}
