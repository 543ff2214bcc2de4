/* Holds: stops that operators order for the installation, a scope or a queue. Functions of the
 * database raise and lift them; no leader is needed, since a hold is what stops one. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "ask.h"
#include "due_count.h"
#include "known_names.h"
#include "list_command.h"
#include "session.h"

#define AFTER_HOLD "it may have been done all the same: reportctl holds shows it"

/* The columns of every list of holds. */
#define HOLD_COLUMNS                                                                               \
    "id, kind, subject, cause, since_at AS \"since_at~\", raised_by AS \"raised_by|BY\", reason,"  \
    " scope AS \"scope-\", queue AS \"queue-\""

enum exit_code holds_command(struct invocation *in)
{
    static const char sql[] = "SELECT " HOLD_COLUMNS " FROM reports.v_hold ORDER BY id LIMIT $1";
    static const char all[] = "SELECT " HOLD_COLUMNS ", lifted_at AS \"lifted_at~\", lifted_by"
                              " FROM reports.v_hold_history ORDER BY id DESC LIMIT $1";
    bool history = command_flag(in, "--all");
    char limit[24];
    const char *values[] = {limit};
    session_limit(in, limit);
    return list_command_run(in, &(struct list_command){.sql = history ? all : sql,
                                                       .count = 1,
                                                       .values = values,
                                                       .empty = history ? "There has been no hold."
                                                                        : "No hold stands."});
}

/* Raise one; *ret_id is its number, borrowed from *ret_table. */
static enum exit_code raise_hold(struct session *s, const char *const values[3],
                                 struct table **ret_table)
{
    s->after = AFTER_HOLD;
    enum exit_code code =
        session_select(s, "SELECT reports.raise_hold($1, $2, $3) AS id", 3, values, ret_table);
    s->after = NULL;
    return code;
}

/* As a word or as the option that others have. */
static enum exit_code reason_read(struct invocation *in, const char **ret_reason)
{
    const char *word = command_text(in, "reason");
    const char *option = command_text(in, "--reason");
    if (word != NULL && option != NULL) {
        return command_fail(in, EXIT_USAGE, "hold has two reasons; write it once");
    }
    if (word == NULL && option == NULL) {
        return command_fail(in, EXIT_USAGE, "hold needs REASON or --reason TEXT");
    }
    *ret_reason = word != NULL ? word : option;
    return EXIT_DONE;
}

enum exit_code hold_command(struct invocation *in)
{
    struct session s;
    struct table *t = NULL;
    const char *scope = command_text(in, "--scope");
    const char *values[] = {scope, NULL, NULL};
    enum exit_code code = reason_read(in, &values[2]);
    if (code != EXIT_DONE) {
        return code;
    }
    code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = scope_name_check(&s, scope);
    }
    if (code == EXIT_DONE) {
        code = raise_hold(&s, values, &t);
    }
    if (code == EXIT_DONE) {
        const char *id = table_cell(t, 0, 0);
        (void)fprintf(in->out,
                      "hold %s stands on %s%s: nothing is planned, published or claimed there; "
                      "running jobs go on. Lift it with reportctl release-hold %s\n",
                      id, scope != NULL ? "scope " : "the installation", scope != NULL ? scope : "",
                      id);
    }
    table_free(t);
    session_close(&s);
    return code;
}

/* Lift one; what it stood on, for the answer. */
static enum exit_code lift(struct session *s, const char *id)
{
    struct table *t = NULL;
    const char *values[] = {id};
    s->after = AFTER_HOLD;
    enum exit_code code = session_select(s, "SELECT reports.lift_hold($1::bigint)", 1, values, &t);
    s->after = NULL;
    table_free(t);
    return code;
}

/* What a database that forgot something may do again, once it is let go: $1 is the hold. */
static const char forgotten[] =
    "SELECT h.scope, h.mark AS forgotten_job, reports.time_of_job(h.mark) AS"
    " forgotten_job_planned_at, (SELECT max(reports.time_of_job(x.id)) FROM (SELECT j.id, j.scope"
    "   FROM reports.job j ORDER BY j.id DESC LIMIT 10000) x WHERE x.scope = h.scope) AS"
    " newest_job_here_at FROM reports.v_hold_history h WHERE h.id = $1::bigint";
static const char again_planned[] =
    "SELECT p.schedule, p.last_fire_at, p.next_fire_at, coalesce(v.misfire,"
    " CASE WHEN p.key_form IN ('minute', 'second') THEN 'run_latest' ELSE 'run_all' END) AS "
    "misfire,"
    " count(*) OVER () AS \"schedules-\" FROM reports.v_hold_history h"
    " JOIN reports.schedule_progress p ON p.scope = h.scope AND p.next_fire_at <= clock_timestamp()"
    " LEFT JOIN reports.schedule_version v ON v.schedule = p.schedule AND v.version = p.version"
    " WHERE h.id = $1::bigint ORDER BY p.next_fire_at LIMIT 20";
static const char again_run[] =
    "SELECT x.state, count(*) AS jobs, min(x.id::text) AS \"oldest_job-\","
    " (array_agg(x.name ORDER BY x.id))[1] AS oldest, (array_agg(x.name ORDER BY x.id DESC))[1] AS"
    " newest FROM (SELECT j.state::text, j.id, j.schedule || ':' || j.occurrence_key AS name"
    "   FROM reports.v_hold_history h JOIN reports.job j"
    "   ON j.scope = h.scope AND j.state IN ('waiting', 'queued', 'running', 'retry_wait')"
    "   WHERE h.id = $1::bigint LIMIT 10000) x GROUP BY x.state ORDER BY x.state";
static const char again_sent[] =
    "SELECT x.channel, x.state, count(*) AS deliveries FROM"
    " (SELECT d.channel, d.state FROM reports.v_hold_history h JOIN reports.delivery d"
    "   ON d.scope = h.scope AND d.state IN ('pending', 'claimed', 'sending', 'unknown')"
    "   WHERE h.id = $1::bigint LIMIT 10000) x GROUP BY x.channel, x.state ORDER BY 1, 2";

static enum exit_code show_what_may_repeat(struct session *s, const char *id)
{
    static const char *const asked[] = {forgotten, again_planned, again_run, again_sent};
    const char *values[] = {id};
    struct section sections[] = {
        {.key = "forgotten", .facts = true},
        {.key = "planned", .title = "PLANNED AGAIN, AS THE MISFIRE POLICY SAYS", .empty = "none"},
        {.key = "run", .title = "JOBS NOT FINISHED HERE, WHICH MAY HAVE RUN", .empty = "none"},
        {.key = "sent", .title = "DELIVERIES NOT DONE HERE, WHICH MAY HAVE BEEN", .empty = "none"},
    };
    enum exit_code code = EXIT_DONE;
    for (size_t i = 0; i < sizeof asked / sizeof asked[0] && code == EXIT_DONE; i++) {
        code = session_select(s, asked[i], 1, values, &sections[i].table);
    }
    char title[96];
    if (code == EXIT_DONE && table_rows(sections[1].table) > 0) {
        (void)snprintf(title, sizeof title, "%s: %zu OF %s SCHEDULES", sections[1].title,
                       table_rows(sections[1].table),
                       table_value(sections[1].table, 0, "schedules"));
        sections[1].title = title;
        code = due_count_add(s, &sections[1].table);
    }
    if (code == EXIT_DONE) {
        session_print(s, sections, sizeof sections / sizeof sections[0]);
    }
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        table_free(sections[i].table);
    }
    return code;
}

/* What stands on the same thing all the same. */
static enum exit_code others_tell(struct session *s, const char *id)
{
    static const char sql[] =
        "SELECT string_agg(format('hold %s on %s (%s)', o.id, CASE o.kind WHEN 'installation' THEN"
        " 'the installation' ELSE o.kind || ' ' || o.subject END, o.reason), ', ' ORDER BY o.id)"
        " FROM reports.v_hold_history h JOIN reports.v_hold o ON CASE h.kind WHEN 'queue' THEN"
        " o.queue = h.queue WHEN 'scope' THEN o.queue IS NULL AND (o.scope IS NULL OR o.scope ="
        " h.scope) ELSE o.queue IS NULL END WHERE h.id = $1::bigint";
    struct table *t = NULL;
    const char *values[] = {id};
    enum exit_code code = session_select(s, sql, 1, values, &t);
    if (code == EXIT_DONE && table_cell(t, 0, 0) != NULL) {
        (void)fprintf(s->in->out, "still held: %s\n", table_cell(t, 0, 0));
    }
    table_free(t);
    return code;
}

enum exit_code release_hold_command(struct invocation *in)
{
    static const char sql[] =
        "SELECT CASE kind WHEN 'installation' THEN 'the installation'"
        " ELSE kind || ' ' || subject END, reason, raised_by,"
        " cause = 'database_rewound' AND lifted_at IS NULL FROM reports.v_hold_history"
        " WHERE id = $1::bigint";
    struct session s;
    struct table *t = NULL;
    const char *id = command_text(in, "hold");
    const char *values[] = {id};
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = session_select(&s, sql, 1, values, &t);
    }
    if (code == EXIT_DONE && table_rows(t) == 0) {
        code = command_fail(in, EXIT_NOT_FOUND,
                            "hold %s does not exist; reportctl holds lists them", id);
    }
    if (code == EXIT_DONE && strcmp(table_cell(t, 0, 3), "t") == 0) {
        code = show_what_may_repeat(&s, id);
        if (code == EXIT_DONE) {
            code = ask_first(&s, "All this may be done a second time. Let it go on?");
        }
    }
    if (code == EXIT_DONE) {
        code = lift(&s, id);
    }
    if (code == EXIT_DONE) {
        (void)fprintf(in->out, "hold %s on %s (%s, by %s) lifted\n", id, table_cell(t, 0, 0),
                      table_cell(t, 0, 1), table_cell(t, 0, 2));
        code = others_tell(&s, id);
    }
    table_free(t);
    session_close(&s);
    return code;
}

/* ---- queues ---- */

enum exit_code queues_command(struct invocation *in)
{
    static const char sql[] =
        "SELECT queue AS \"queue|NAME\", max_outstanding AS \"max_outstanding|BOUND\","
        " queued || CASE WHEN capped THEN '+' ELSE '' END AS \"queued#\", running,"
        " waiting || CASE WHEN capped THEN '+' ELSE '' END AS \"waiting#\","
        " oldest_at AS \"oldest_at~\", held, hold_reason, workers, slots,"
        " description AS \"description?\""
        " FROM reports.v_queue ORDER BY queue LIMIT $1";
    char limit[24];
    const char *values[] = {limit};
    session_limit(in, limit);
    return list_command_run(
        in, &(struct list_command){.sql = sql,
                                   .count = 1,
                                   .values = values,
                                   .empty = "There is no queue: insert one into reports.queue."});
}

/* The holds that stand on a queue; the queue exists. */
static enum exit_code queue_holds(struct session *s, const char *queue, struct table **ret_table)
{
    const char *values[] = {queue};
    enum exit_code code = queue_name_check(s, queue);
    if (code == EXIT_DONE) {
        code = session_select(s,
                              "SELECT id, reason, raised_by FROM reports.v_hold WHERE queue = $1"
                              " ORDER BY id",
                              1, values, ret_table);
    }
    return code;
}

enum exit_code queue_hold_command(struct invocation *in)
{
    struct session s;
    struct table *standing = NULL;
    struct table *raised = NULL;
    const char *queue = command_text(in, "queue");
    const char *values[] = {NULL, queue, command_text(in, "--reason")};
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = queue_holds(&s, queue, &standing);
    }
    if (code == EXIT_DONE && table_rows(standing) > 0) {
        (void)fprintf(in->out, "queue %s is held already: hold %s by %s: %s\n", queue,
                      table_cell(standing, 0, 0), table_cell(standing, 0, 2),
                      table_cell(standing, 0, 1));
    } else if (code == EXIT_DONE) {
        code = raise_hold(&s, values, &raised);
    }
    if (code == EXIT_DONE && raised != NULL) {
        (void)fprintf(in->out,
                      "queue %s is held (hold %s): no job of it is claimed, planning goes on and "
                      "running jobs go on. Let it go with reportctl queue resume %s\n",
                      queue, table_cell(raised, 0, 0), queue);
    }
    table_free(standing);
    table_free(raised);
    session_close(&s);
    return code;
}

enum exit_code queue_resume_command(struct invocation *in)
{
    struct session s;
    struct table *standing = NULL;
    const char *queue = command_text(in, "queue");
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = queue_holds(&s, queue, &standing);
    }
    size_t n = code == EXIT_DONE ? table_rows(standing) : 0;
    for (size_t i = 0; i < n && code == EXIT_DONE; i++) {
        code = lift(&s, table_cell(standing, i, 0));
    }
    if (code == EXIT_DONE && n == 0) {
        (void)fprintf(in->out, "queue %s is not held\n", queue);
    } else if (code == EXIT_DONE) {
        (void)fprintf(in->out, "queue %s goes on; lifted: %zu\n", queue, n);
    }
    table_free(standing);
    session_close(&s);
    return code;
}
