/* reportctl catchup: what of the missed firings waits, and how to give it up. The SQL is in
 * sql/0021_catch_up.sql; only the leader acts. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "ask.h"
#include "civil.h"
#include "known_names.h"
#include "request_run.h"
#include "schedule_names.h"

#define REASON_BYTES   500 /* of the argument, as check_request has it */
#define DISCARD_ATONCE 5000

static const char show_scopes[] =
    "SELECT scope, waiting || CASE WHEN capped THEN '+' ELSE '' END AS \"waiting#\", outstanding,"
    " catch_up_max AS \"catch_up_max|MAX\", catch_up_per_minute AS \"catch_up_per_minute|A "
    "MINUTE\","
    " catch_up_order AS \"catch_up_order|FIRST\","
    " released_last_minute AS \"released_last_minute|LAST MINUTE\", held,"
    " expected_end_at AS \"expected_end_at~\" FROM reports.v_catch_up_scope"
    " WHERE $1::text IS NULL OR scope = $1 ORDER BY scope LIMIT 100";
static const char show_queues[] =
    "SELECT scope, queue, waiting || CASE WHEN capped THEN '+' ELSE '' END AS \"waiting#\","
    " max_outstanding AS \"max_outstanding|BOUND\","
    " catch_up_per_minute AS \"catch_up_per_minute|A MINUTE\","
    " catch_up_order AS \"catch_up_order|FIRST\","
    " released_last_minute AS \"released_last_minute|LAST MINUTE\","
    " oldest_at AS \"oldest_at~\", expected_end_at AS \"expected_end_at~\""
    " FROM reports.v_catch_up_queue"
    " WHERE $1::text IS NULL OR scope = $1 ORDER BY scope, queue LIMIT 100";
static const char show_schedules[] =
    "SELECT schedule, queue, waiting || CASE WHEN capped THEN '+' ELSE '' END AS \"waiting#\","
    " backfill, oldest_at AS \"oldest_at~\", newest_at AS \"newest_at~?\", scope AS \"scope?\""
    " FROM reports.v_catch_up"
    " WHERE $1::text IS NULL OR scope = $1 ORDER BY waiting DESC, schedule, queue LIMIT 1000";

enum exit_code catchup_show_command(struct invocation *in)
{
    static const char *const asked[] = {show_scopes, show_queues, show_schedules};
    struct section sections[] = {
        {.key = "scopes", .title = "SCOPES", .empty = "none: insert one into reports.scope"},
        {.key = "queues", .title = "QUEUES"},
        {.key = "schedules", .title = "WAITING, BY SCHEDULE", .empty = "nothing waits"},
    };
    const char *values[] = {command_text(in, "scope")};
    size_t count = sizeof sections / sizeof sections[0];
    struct session s;
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = scope_name_check(&s, values[0]);
    }
    for (size_t i = 0; i < count && code == EXIT_DONE; i++) {
        code = session_select(&s, asked[i], 1, values, &sections[i].table);
    }
    if (code == EXIT_DONE) {
        session_print(&s, sections, count);
    }
    for (size_t i = 0; i < count; i++) {
        table_free(sections[i].table);
    }
    session_close(&s);
    return code;
}

/* ---- discard ---- */

struct discard {
    struct session s;
    const char *schedule, *queue, *reason; /* schedule or queue; the other is NULL */
    char scope[NAME_MAX_BYTES];
    char before[RFC3339_TEXT_MAX]; /* "": all */
};

static enum exit_code discard_read(struct invocation *in, struct discard *d)
{
    const char *before = command_text(in, "--before");
    struct error err = {.text = ""};
    utc_us at;
    d->schedule = command_text(in, "schedule");
    d->queue = command_text(in, "--queue");
    d->reason = command_text(in, "--reason");
    if ((d->schedule == NULL) == (d->queue == NULL)) {
        return command_fail(in, EXIT_USAGE, "catchup discard takes a schedule or --queue");
    }
    if (d->schedule != NULL && command_text(in, "--scope") != NULL) {
        return command_fail(in, EXIT_USAGE, "--scope goes with --queue; a schedule has but one");
    }
    if (!command_flag(in, "--dry-run") && (d->reason == NULL || d->reason[0] == '\0')) {
        return command_fail(in, EXIT_USAGE, "catchup discard needs --reason TEXT, which is kept");
    }
    if (before != NULL && rfc3339_parse(before, &at, &err) != STATUS_OK) {
        return command_fail(in, EXIT_USAGE, "--before: %s", err.text);
    }
    if (before != NULL) {
        rfc3339_format_utc(at, d->before);
    }
    return EXIT_DONE;
}

/* Whose leader is asked: the schedule's, or the one there is. */
static enum exit_code scope_find(struct discard *d)
{
    const char *named = command_text(d->s.in, "--scope");
    const char *values[] = {d->schedule};
    struct table *t = NULL;
    enum exit_code code = named != NULL ? scope_name_check(&d->s, named) : EXIT_DONE;
    if (code == EXIT_DONE) {
        code = queue_name_check(&d->s, d->queue);
    }
    if (code != EXIT_DONE || named != NULL) {
        (void)snprintf(d->scope, sizeof d->scope, "%s", named != NULL ? named : "");
        return code;
    }
    code = session_select(&d->s,
                          "SELECT scope FROM reports.schedule_progress WHERE schedule = $1"
                          " UNION SELECT scope FROM reports.schedule WHERE name = $1"
                          " UNION SELECT scope FROM reports.v_scope WHERE $1 IS NULL",
                          1, values, &t);
    if (code == EXIT_DONE && table_rows(t) != 1) {
        code = d->schedule != NULL
                   ? schedule_name_fail(&d->s, d->schedule)
                   : command_fail(d->s.in, EXIT_USAGE,
                                  "a queue is served for every scope: say which with --scope");
    }
    if (code == EXIT_DONE) {
        (void)snprintf(d->scope, sizeof d->scope, "%s", table_cell(t, 0, 0));
    }
    table_free(t);
    return code;
}

/* What the leader would give up if it were asked now. */
static enum exit_code waiting_select(struct discard *d, struct table **ret_table)
{
    static const char sql[] =
        "SELECT w.schedule, w.queue, count(*) AS firings,"
        " (array_agg(w.occurrence_key ORDER BY w.scheduled_for, w.occurrence_key))[1] AS from_key,"
        " (array_agg(w.occurrence_key ORDER BY w.scheduled_for DESC, w.occurrence_key DESC))[1]"
        " AS to_key, min(w.scheduled_for) AS \"oldest_at~?\", max(w.scheduled_for) AS "
        "\"newest_at-\""
        " FROM reports.missed_waiting($1, $2, $3, $4::timestamptz, $5::integer) w"
        " GROUP BY w.schedule, w.queue ORDER BY w.schedule, w.queue";
    char limit[16];
    (void)snprintf(limit, sizeof limit, "%d", DISCARD_ATONCE);
    const char *values[] = {d->scope, d->schedule, d->queue,
                            d->before[0] != '\0' ? d->before : NULL, limit};
    return session_select(&d->s, sql, 5, values, ret_table);
}

static enum exit_code waiting_show(struct discard *d)
{
    struct table *t = NULL;
    enum exit_code code = waiting_select(d, &t);
    if (code != EXIT_DONE) {
        return code;
    }
    return session_print_list(&d->s, t, DISCARD_ATONCE, "No such missed firing waits.");
}

static enum exit_code discard_confirm(struct discard *d)
{
    if (!command_flag(d->s.in, "--yes")) {
        struct table *t = NULL;
        enum exit_code code = waiting_select(d, &t);
        if (code != EXIT_DONE) {
            return code;
        }
        struct section only = {
            .key = "discard", .title = "WAITING NOW", .table = t, .empty = "no such missed firing"};
        session_print(&d->s, &only, 1);
        table_free(t);
    }
    return ask_first(&d->s, "These firings will not be run. Discard them?");
}

static enum exit_code discard_ask(struct discard *d)
{
    struct invocation *in = d->s.in;
    const char *id = command_text(in, "--request-id");
    char subject[2 * NAME_MAX_BYTES + 16];
    char argument[RFC3339_TEXT_MAX + 2 * REASON_BYTES];
    char command[2 * NAME_MAX_BYTES + 64];
    char words[RFC3339_TEXT_MAX + 3 * REASON_BYTES] = "";
    if (d->queue != NULL) {
        (void)snprintf(subject, sizeof subject, "queue:%s@%s", d->queue, d->scope);
        (void)snprintf(command, sizeof command, "catchup discard --queue %s --scope %s", d->queue,
                       d->scope);
    } else {
        (void)snprintf(subject, sizeof subject, "%s", d->schedule);
        (void)snprintf(command, sizeof command, "catchup discard %s", d->schedule);
    }
    /* Longer ones than fit are refused by the database, cut or not. */
    (void)snprintf(argument, sizeof argument, "%s%s: %s", d->before[0] != '\0' ? "before " : "all",
                   d->before, d->reason);
    if (d->before[0] != '\0') {
        (void)snprintf(words, sizeof words, " --before %s", d->before);
    }
    request_word_add(words, sizeof words, "--reason");
    request_word_add(words, sizeof words, d->reason);
    struct request r = {.kind = "discard",
                        .subject = subject,
                        .argument = argument,
                        .command = command,
                        .words = words + 1,
                        .wait_s = command_int(in, "--wait")};
    if (id != NULL) {
        (void)snprintf(r.id, sizeof r.id, "%s", id);
    } else {
        uuid_random(r.id);
    }
    enum exit_code code = request_run(&d->s, &r);
    table_free(r.row);
    return code;
}

enum exit_code catchup_discard_command(struct invocation *in)
{
    struct discard d = {.scope = "", .before = ""};
    enum exit_code code = discard_read(in, &d);
    if (code != EXIT_DONE) {
        return code;
    }
    code = session_open(in, &d.s);
    if (code == EXIT_DONE) {
        code = scope_find(&d);
    }
    if (code == EXIT_DONE && command_flag(in, "--dry-run")) {
        code = waiting_show(&d);
    } else if (code == EXIT_DONE) {
        code = discard_confirm(&d);
        code = code == EXIT_DONE ? discard_ask(&d) : code;
    }
    session_close(&d.s);
    return code;
}
