/* Holds: stops that operators order for the installation, a scope or a queue. Functions of the
 * database raise and lift them; no leader is needed, since a hold is what stops one. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "known_names.h"
#include "session.h"

#define AFTER_HOLD "it may have been done all the same: reportctl holds shows it"

/* The columns of every list of holds. */
#define HOLD_COLUMNS                                                                               \
    "id, kind, subject, since_at AS \"since_at~\", raised_by AS \"raised_by|BY\", reason,"         \
    " scope AS \"scope-\", queue AS \"queue-\""

enum exit_code holds_command(struct invocation *in)
{
    static const char sql[] = "SELECT " HOLD_COLUMNS " FROM reports.v_hold ORDER BY id LIMIT $1";
    static const char all[] = "SELECT " HOLD_COLUMNS ", lifted_at AS \"lifted_at~\", lifted_by"
                              " FROM reports.v_hold_history ORDER BY id DESC LIMIT $1";
    bool history = command_flag(in, "--all");
    char limit[24];
    const char *values[] = {limit};
    struct session s;
    struct table *t = NULL;
    session_limit(in, limit);
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = session_select(&s, history ? all : sql, 1, values, &t);
    }
    if (code == EXIT_DONE) {
        code = session_print_list(&s, t, command_int(in, "--limit"),
                                  history ? "There has been no hold." : "No hold stands.");
    }
    session_close(&s);
    return code;
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

enum exit_code hold_command(struct invocation *in)
{
    struct session s;
    struct table *t = NULL;
    const char *scope = command_text(in, "--scope");
    const char *values[] = {scope, NULL, command_text(in, "reason")};
    enum exit_code code = session_open(in, &s);
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

enum exit_code release_hold_command(struct invocation *in)
{
    static const char sql[] =
        "SELECT CASE kind WHEN 'installation' THEN 'the installation'"
        " ELSE kind || ' ' || subject END, reason, raised_by FROM reports.v_hold_history"
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
    if (code == EXIT_DONE) {
        code = lift(&s, id);
    }
    if (code == EXIT_DONE) {
        (void)fprintf(in->out, "hold %s on %s (%s, by %s) lifted\n", id, table_cell(t, 0, 0),
                      table_cell(t, 0, 1), table_cell(t, 0, 2));
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
        " oldest_at AS \"oldest_at~\", held, hold_reason, workers, slots, description"
        " FROM reports.v_queue ORDER BY queue LIMIT $1";
    char limit[24];
    const char *values[] = {limit};
    struct session s;
    struct table *t = NULL;
    session_limit(in, limit);
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = session_select(&s, sql, 1, values, &t);
    }
    if (code == EXIT_DONE) {
        code = session_print_list(&s, t, command_int(in, "--limit"),
                                  "There is no queue: insert one into reports.queue.");
    }
    session_close(&s);
    return code;
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
