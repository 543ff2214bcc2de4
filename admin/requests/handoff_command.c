/* reportctl handoff: ask the leader of a scope to pass it on, and tell how long nobody led. */
#include "commands.h"

#include <stdio.h>

#include "known_names.h"
#include "request_run.h"

/* As the usual one of request_run.c, with what is known of the handoff. */
static const char handoff_sql[] =
    "SELECT r.id AS request_id, r.kind, r.scope, r.argument AS \"to\", r.state, r.answer,"
    " h.member AS from_member, h.generation AS from_generation, h.successor, h.leader,"
    " extract(epoch FROM h.activated_at - h.released_at) * 1000 AS gap_ms,"
    " h.begun_at, h.ready_at, h.left_at, h.released_at, h.activated_at,"
    " r.requested_by, r.requested_at, r.deadline, r.answered_at, r.generation,"
    " r.state = 'pending' AND r.deadline + make_interval(secs => $2) < clock_timestamp()"
    " AS \"lapsed-\","
    " reports.handoff_progress(r.id) AS \"progress-\""
    " FROM reports.v_request r JOIN reports.handoff h ON h.request = r.id WHERE r.id = $1";

enum exit_code handoff_command(struct invocation *in)
{
    struct session s;
    const char *id = command_text(in, "--request-id");
    struct request r = {.kind = "handoff",
                        .subject = command_text(in, "scope"),
                        .argument = command_text(in, "--to"),
                        .option = "--to",
                        .read = handoff_sql,
                        .wait_s = command_int(in, "--wait")};
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = scope_name_check(&s, r.subject);
    }
    if (code == EXIT_DONE) {
        if (id != NULL) {
            (void)snprintf(r.id, sizeof r.id, "%s", id);
        } else {
            uuid_random(r.id);
        }
        code = request_run(&s, &r);
        table_free(r.row);
    }
    session_close(&s);
    return code;
}
