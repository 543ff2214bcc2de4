/* Authority for people: what the fence holds, whether it was ever wrong, and the way over to
 * another ZooKeeper ensemble. */
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include "ask.h"
#include "known_names.h"
#include "session.h"

/* ---- show ---- */

static const char show_server[] =
    "SELECT current_database() AS database, c.system_identifier::text AS server_id,"
    " CASE WHEN NOT pg_is_in_recovery() THEN"
    " ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::integer END"
    " AS timeline, pg_postmaster_start_time() AS \"started_at~\", pg_is_in_recovery() AS standby"
    " FROM pg_control_system() c";

static const char show_scopes[] =
    "SELECT scope, state, incarnation, generation, owner, member, url,"
    " established_at AS \"established_at~\", activated_at AS \"activated_at~\","
    " released_at AS \"released_at~\", release_reason, beat_at AS \"beat_at~\", mark,"
    " mark_at AS \"mark_at~\", server_id, timeline, server_started_at AS \"server_started_at~\","
    " moved, holds FROM reports.v_fence WHERE scope = $1 OR $1 IS NULL ORDER BY scope LIMIT 1000";

static const char show_ensembles[] =
    "SELECT id, incarnation, incarnation = max(incarnation) OVER () AS in_force,"
    " adopted_at AS \"adopted_at~\", adopted_by AS \"adopted_by|BY\", reason"
    " FROM reports.ensemble ORDER BY incarnation DESC LIMIT 20";

static const char show_refused[] =
    "SELECT id, member, installation, first_at AS \"first_at~\", last_at AS \"last_at~\""
    " FROM reports.ensemble_refused ORDER BY last_at DESC LIMIT 20";

static const char show_holds[] =
    "SELECT id, kind, subject, cause, since_at AS \"since_at~\", raised_by AS \"raised_by|BY\","
    " reason FROM reports.v_hold WHERE queue IS NULL AND (scope = $1 OR scope IS NULL OR $1 IS"
    " NULL) ORDER BY id LIMIT 20";

enum exit_code fence_show_command(struct invocation *in)
{
    struct session s;
    const char *values[] = {command_text(in, "--scope")};
    struct section sections[] = {
        {.key = "server", .facts = true},
        {.key = "scopes",
         .title = "SCOPES",
         .empty = "none: insert one into reports.scope",
         .blocks = true},
        {.key = "ensembles", .title = "ENSEMBLES", .empty = "none was met yet"},
        {.key = "ensembles_refused", .title = "REFUSED ENSEMBLES"},
        {.key = "holds", .title = "HOLDS", .empty = "none"},
    };
    static const struct {
        const char *sql;
        int count;
    } asked[] = {
        {show_server, 0}, {show_scopes, 1}, {show_ensembles, 0}, {show_refused, 0}, {show_holds, 1},
    };
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = scope_name_check(&s, values[0]);
    }
    for (size_t i = 0; i < sizeof asked / sizeof asked[0] && code == EXIT_DONE; i++) {
        code = session_select(&s, asked[i].sql, asked[i].count, values, &sections[i].table);
    }
    if (code == EXIT_DONE) {
        session_print(&s, sections, sizeof sections / sizeof sections[0]);
    }
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        table_free(sections[i].table);
    }
    session_close(&s);
    return code;
}

/* ---- rebase ---- */

/* What a rebase would do, before anybody is asked. */
static enum exit_code rebase_show(struct session *s, const char *ensemble)
{
    static const char sql[] =
        "SELECT t.id, (SELECT count(*) FROM reports.scope) AS scopes,"
        " (SELECT e.id || ', incarnation ' || e.incarnation FROM reports.ensemble e"
        "   ORDER BY e.incarnation DESC LIMIT 1) AS present,"
        " (SELECT string_agg(r.member, ', ' ORDER BY r.member) FROM reports.ensemble_refused r"
        "   WHERE r.id = t.id) AS met_by,"
        " (SELECT string_agg(l.scope || ' by ' || l.leader, ', ' ORDER BY l.scope)"
        "   FROM reports.v_leader l WHERE l.state = 'active') AS led"
        " FROM reports.rebase_target($1) AS t (id)";
    const char *values[] = {ensemble};
    struct table *t = NULL;
    enum exit_code code = session_select(s, sql, 1, values, &t);
    if (code == EXIT_DONE) {
        const char *present = table_value(t, 0, "present");
        const char *met_by = table_value(t, 0, "met_by");
        (void)fprintf(s->in->out,
                      "in force now:   %s\nled by it now:  %s\nto be adopted:  %s%s%s\n"
                      "scopes:         %s, all of them\n",
                      present == NULL ? "none" : present,
                      table_value(t, 0, "led") == NULL ? "no scope" : table_value(t, 0, "led"),
                      table_value(t, 0, "id"), met_by == NULL ? "" : ", met by ",
                      met_by == NULL ? "" : met_by, table_value(t, 0, "scopes"));
    }
    table_free(t);
    return code;
}

enum exit_code fence_rebase_command(struct invocation *in)
{
    struct session s;
    struct table *t = NULL;
    const char *ensemble = command_text(in, "--ensemble");
    const char *values[] = {ensemble, command_text(in, "--reason"),
                            command_flag(in, "--force") ? "true" : "false"};
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = rebase_show(&s, ensemble);
    }
    if (code == EXIT_DONE) {
        code = ask_first(&s, "The ensemble in force is given up for good: is it gone?");
    }
    if (code == EXIT_DONE) {
        s.after = "it may have been done all the same: reportctl fence show tells";
        code = session_select(&s,
                              "SELECT ensemble, incarnation, scopes"
                              " FROM reports.rebase($1, $2, $3::boolean)",
                              3, values, &t);
        s.after = NULL;
    }
    if (code == EXIT_DONE) {
        (void)fprintf(in->out,
                      "ensemble %s is adopted as incarnation %s; the schedulers that see it lead "
                      "within seconds (reportctl leaders)\n",
                      table_cell(t, 0, 0), table_cell(t, 0, 1));
    }
    table_free(t);
    session_close(&s);
    return code;
}

/* ---- audit ---- */

enum exit_code fence_audit_command(struct invocation *in)
{
    static const char sql[] = "SELECT verdict, scope, times, finding, detail"
                              " FROM reports.fence_audit(make_interval(hours => $1::integer))"
                              " ORDER BY verdict DESC, finding, scope, times DESC LIMIT 1000";
    struct session s;
    struct table *t = NULL;
    const char *values[] = {command_text(in, "--hours")};
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = session_select(&s, sql, 1, values, &t);
    }
    if (code == EXIT_DONE) {
        code = session_print_findings(&s, t);
    }
    table_free(t);
    session_close(&s);
    return code;
}
