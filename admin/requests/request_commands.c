/* What an operator asks of the leader: trigger, pause, resume, cancel, retry. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "known_names.h"
#include "list_command.h"
#include "request_run.h"

/* The row of command_table.c has --wait and --request-id. */
static enum exit_code ask(struct session *s, struct request r)
{
    const char *id = command_text(s->in, "--request-id");
    r.wait_s = command_int(s->in, "--wait");
    if (r.option != NULL && r.words == NULL) {
        r.argument = command_text(s->in, r.option);
    }
    if (id != NULL) {
        (void)snprintf(r.id, sizeof r.id, "%s", id);
    } else {
        uuid_random(r.id);
    }
    enum exit_code code = request_run(s, &r);
    table_free(r.row);
    return code;
}

static enum exit_code schedule_ask(struct invocation *in, const char *option, const char *until)
{
    /* Kinds are one word; request_run.c makes the command of it again. */
    bool closes = strcmp(in->command->words, "breaker close") == 0;
    const char *kind = closes ? "breaker_close" : in->command->words;
    struct session s;
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = ask(&s, (struct request){.kind = kind,
                                        .subject = command_text(in, "schedule"),
                                        .until = until,
                                        .option = option});
    }
    session_close(&s);
    return code;
}

enum exit_code trigger_command(struct invocation *in)
{
    return schedule_ask(in, "--key", NULL);
}

enum exit_code pause_command(struct invocation *in)
{
    return schedule_ask(in, "--reason", command_text(in, "--until"));
}

enum exit_code resume_command(struct invocation *in)
{
    return schedule_ask(in, "--reason", NULL);
}

enum exit_code breaker_close_command(struct invocation *in)
{
    return schedule_ask(in, "--reason", NULL);
}

static enum exit_code job_ask(struct invocation *in, const char *option)
{
    struct session s;
    const char *job = command_text(in, "job");
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = job_name_check(&s, job);
    }
    if (code == EXIT_DONE) {
        bool again = option != NULL && strcmp(option, "--again") == 0;
        code = ask(&s, (struct request){.kind = in->command->words,
                                        .subject = job,
                                        .option = option,
                                        .argument = again ? "again" : NULL,
                                        .words = again ? option : NULL});
    }
    session_close(&s);
    return code;
}

enum exit_code cancel_command(struct invocation *in)
{
    return job_ask(in, "--reason");
}

/* A flag on the command line, a word in the request. */
enum exit_code retry_command(struct invocation *in)
{
    return job_ask(in, command_flag(in, "--again") ? "--again" : NULL);
}

enum exit_code requests_command(struct invocation *in)
{
    static const char sql[] =
        "SELECT id, requested_at AS \"requested_at~\", kind, subject AS \"subject-\","
        /* Jobs as people name them; ids are looked up for the rows that are shown. */
        " coalesce((SELECT j.schedule || ':' || j.occurrence_key FROM reports.v_job j"
        "  WHERE r.kind IN ('cancel', 'retry') AND j.id = r.job_id), subject) AS \"subject!\","
        " CASE WHEN lapsed THEN 'expired' ELSE state END AS state,"
        " CASE WHEN lapsed THEN 'no leader carried it out before its deadline; ask again with a"
        " fresh request id'"
        " WHEN kind = 'handoff' THEN coalesce(answer, reports.handoff_progress(r.id)) ELSE answer "
        "END"
        " AS answer, requested_by AS \"requested_by|BY?\", argument AS \"argument?\","
        " CASE WHEN state = 'pending' THEN deadline END AS \"deadline~?\","
        " scope AS \"scope?\", job_id AS \"job_id-\","
        " answered_at AS \"answered_at-\", generation AS \"generation-\" FROM reports.v_request r"
        " WHERE ($2::text IS NULL OR scope = $2) AND ($3::text IS NULL"
        " OR CASE WHEN lapsed THEN 'expired' ELSE state END = $3)"
        " ORDER BY requested_at DESC, id LIMIT $1";
    char limit[24];
    const char *values[] = {limit, command_text(in, "--scope"), command_text(in, "--state")};
    session_limit(in, limit);
    return list_command_run(in, &(struct list_command){.sql = sql,
                                                       .count = 3,
                                                       .values = values,
                                                       .empty = "No such requests.",
                                                       .scope = values[1]});
}
