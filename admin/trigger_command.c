/* Ask the leader for a manual firing and wait for its answer. Only the leader acts; the request row
 * outlives this process, and repeating its id gives the first answer. */
#include "commands.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "ident.h"
#include "session.h"
#include "store_admin.h"

#define LOOK_MS   150 /* between two looks at the request */
#define MARGIN_S  2   /* the leader may have decided at the very deadline */
#define NO_WAIT_S 60  /* deadline of a request that nobody waits for */

struct trigger {
    char id[UUID_TEXT_MAX];
    int64_t wait_s;
    struct table *request; /* one row: what is known of the request */
};

static enum exit_code request_put(struct session *s, struct trigger *t)
{
    char timeout[32];
    (void)snprintf(timeout, sizeof timeout, "%lld seconds",
                   (long long)(t->wait_s > 0 ? t->wait_s : NO_WAIT_S));
    const char *values[] = {t->id, command_text(s->in, "schedule"), command_text(s->in, "--key"),
                            timeout};
    struct table *answer = NULL;
    enum exit_code code = session_select(
        s, "SELECT state FROM reports.request_trigger($1::uuid, $2, $3, $4::interval)", 4, values,
        &answer);
    table_free(answer);
    return code;
}

static enum exit_code request_read(struct session *s, struct trigger *t)
{
    static const char sql[] =
        "SELECT r.id AS request_id, r.schedule, coalesce(o.occurrence_key, r.argument, r.id::text)"
        " AS occurrence_key, r.state, r.answer, r.job_id, r.scope, r.requested_at, r.deadline,"
        " r.answered_at, r.generation FROM reports.request r LEFT JOIN reports.job o"
        " ON o.id = r.job_id WHERE r.id = $1";
    const char *values[] = {t->id};
    table_free(t->request);
    t->request = NULL;
    enum exit_code code = session_select(s, sql, 1, values, &t->request);
    if (code == EXIT_DONE && table_rows(t->request) == 0) {
        code = command_fail(s->in, EXIT_FAILED, "the request %s is gone", t->id);
    }
    return code;
}

static bool is_state(const struct trigger *t, const char *state)
{
    return strcmp(table_value(t->request, 0, "state"), state) == 0;
}

/* Look until it is answered or the time is over. The socket wakes us if the server goes away. */
static enum exit_code answer_await(struct session *s, struct trigger *t)
{
    instant until = instant_add_ms(clock_now(), (t->wait_s + MARGIN_S) * 1000);
    s->deadline = instant_add_ms(until, s->in->timeout_s * 1000);
    enum exit_code code = request_read(s, t);
    while (code == EXIT_DONE && is_state(t, "pending") && t->wait_s > 0 &&
           instant_before(clock_now(), until)) {
        struct pollfd p = {.fd = store_fd(s->store), .events = POLLIN};
        (void)poll(&p, 1, LOOK_MS);
        code = request_read(s, t);
    }
    return code;
}

/* Who should have answered, and when it was last seen, is what the operator needs to know next. */
static enum exit_code unanswered_fail(struct session *s, const struct trigger *t)
{
    const char *scope = table_value(t->request, 0, "scope");
    const char *values[] = {scope};
    struct table *leader = NULL;
    char who[256] = "no such scope";
    char age[32];
    enum exit_code code =
        session_select(s,
                       "SELECT state, leader, extract(epoch FROM statement_timestamp() - beat_at)"
                       " FROM reports.v_leader WHERE scope = $1",
                       1, values, &leader);
    if (code != EXIT_DONE) {
        return code;
    }
    if (table_rows(leader) > 0 && table_cell(leader, 0, 1) != NULL) {
        const char *beat = table_cell(leader, 0, 2);
        cell_duration_format(beat != NULL ? strtod(beat, NULL) : 0, age, sizeof age);
        (void)snprintf(who, sizeof who, "%s: %s, last sign of life %s ago",
                       table_cell(leader, 0, 0), table_cell(leader, 0, 1), age);
    } else if (table_rows(leader) > 0) {
        (void)snprintf(who, sizeof who, "%s", table_cell(leader, 0, 0));
    }
    table_free(leader);
    return command_fail(s->in, EXIT_REFUSED,
                        "no leader of scope %s answered within %lld s (%s); the request has "
                        "expired and will not be carried out; see reportctl status",
                        scope, (long long)t->wait_s, who);
}

static enum exit_code outcome_say(struct session *s, const struct trigger *t)
{
    const char *answer = table_value(t->request, 0, "answer");
    if (is_state(t, "refused") || is_state(t, "expired")) {
        return command_fail(s->in, EXIT_REFUSED, "%s: %s", table_value(t->request, 0, "state"),
                            answer != NULL ? answer : "");
    }
    if (is_state(t, "pending") && t->wait_s > 0) {
        return unanswered_fail(s, t);
    }
    struct section only = {.key = "request", .table = t->request, .facts = true};
    if (s->in->format != OUTPUT_TABLE) {
        session_print(s, &only, 1);
    } else if (is_state(t, "pending")) {
        (void)fprintf(s->in->out, "asked for; repeat with --request-id %s to see the answer\n",
                      t->id);
    } else {
        const char *job = table_value(t->request, 0, "job_id");
        (void)fprintf(s->in->out, "%s; job %s\n", answer != NULL ? answer : "done",
                      job != NULL ? job : "-");
    }
    return EXIT_DONE;
}

enum exit_code trigger_command(struct invocation *in)
{
    struct session s;
    struct trigger t = {.wait_s = command_int(in, "--wait")};
    const char *id = command_text(in, "--request-id");
    if (id != NULL) {
        (void)snprintf(t.id, sizeof t.id, "%s", id);
    } else {
        uuid_random(t.id);
    }
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = request_put(&s, &t);
    }
    if (code == EXIT_DONE) {
        code = answer_await(&s, &t);
        if (code != EXIT_DONE) {
            (void)command_fail(in, code,
                               "the request may still be carried out; repeat with "
                               "--request-id %s to see",
                               t.id);
        }
    }
    if (code == EXIT_DONE) {
        code = outcome_say(&s, &t);
    }
    table_free(t.request);
    session_close(&s);
    return code;
}
