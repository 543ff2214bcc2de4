#include "request_run.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cell.h"
#include "cut_off.h"
#include "schedule_names.h"
#include "store_admin.h"

#define LOOK_MS   100  /* between two looks at the request */
#define AGAIN_MS  200  /* before the connection is opened again; doubles */
#define AGAIN_MAX 2000 /* up to here */
#define CALL_MS   5000 /* a statement without an answer: the connection is given up */
#define MARGIN_S  2    /* the leader may have decided at the very deadline */
#define SLACK_MS  300  /* so that the last look is not a hair before the request has lapsed */
#define NO_WAIT_S 60   /* deadline of a request that nobody waits for */

/* Of one call: --timeout, but not so long that a dead connection takes all of it. */
static instant call_deadline(const struct session *s)
{
    int64_t ms = s->in->timeout_s * 1000;
    return instant_add_ms(clock_now(), ms < CALL_MS ? ms : CALL_MS);
}

static enum status request_ask(struct session *s, const struct request *r, struct error *err)
{
    char timeout[32];
    (void)snprintf(timeout, sizeof timeout, "%lld seconds",
                   (long long)(r->wait_s > 0 ? r->wait_s : NO_WAIT_S));
    static const char usual[] = "SELECT state FROM reports.ask($1::uuid, $2, $3, $4, $5::interval)";
    static const char until[] = "SELECT state FROM reports.ask($1::uuid, $2, $3, $4, $5::interval,"
                                " $6::timestamptz)";
    const char *values[5 + REQUEST_MORE_MAX] = {r->id, r->kind, r->subject, r->argument, timeout};
    for (int i = 0; i < r->more_count; i++) {
        values[5 + i] = r->more[i];
    }
    const int more = r->until != NULL ? 1 : r->more_count;
    const char *sql = r->until != NULL ? until : usual;
    if (r->until != NULL) {
        values[5] = r->until;
    }
    struct table *answer = NULL;
    enum status status = store_admin_select(s->store, r->ask != NULL ? r->ask : sql, 5 + more,
                                            values, s->deadline, &answer, err);
    if (status == STATUS_OK) {
        table_free(answer);
    }
    return status;
}

static enum status request_read(struct session *s, struct request *r, struct error *err)
{
    /* lapsed: no leader will carry it out any more. */
    static const char sql[] =
        "SELECT r.id AS request_id, r.kind, r.subject, r.argument, r.state, r.answer, r.job_id,"
        " j.schedule, j.occurrence_key, r.scope, r.requested_by, r.requested_at, r.deadline,"
        " r.answered_at, r.generation,"
        " r.state = 'pending' AND r.deadline + make_interval(secs => $2) < clock_timestamp()"
        " AS \"lapsed-\""
        " FROM reports.v_request r LEFT JOIN reports.job j ON j.id = r.job_id WHERE r.id = $1";
    char margin[16];
    (void)snprintf(margin, sizeof margin, "%d", MARGIN_S);
    const char *values[] = {r->id, margin};
    struct table *t = NULL;
    enum status status = store_admin_select(s->store, r->read != NULL ? r->read : sql, 2, values,
                                            s->deadline, &t, err);
    if (status != STATUS_OK) {
        return status;
    }
    if (table_rows(t) == 0) {
        table_free(t);
        return error_set(err, STATUS_CONFLICT, "the request %s is gone", r->id);
    }
    table_free(r->row);
    r->row = t;
    return STATUS_OK;
}

static bool is_state(const struct request *r, const char *state)
{
    return strcmp(table_value(r->row, 0, "state"), state) == 0;
}

static bool is_lapsed(const struct request *r)
{
    return strcmp(table_value(r->row, 0, "lapsed"), "t") == 0;
}

static void wait_ms(struct session *s, int64_t ms)
{
    struct pollfd p = {.fd = s->store != NULL ? store_fd(s->store) : -1, .events = POLLIN};
    (void)poll(&p, 1, (int)ms);
}

/* On a terminal who waits is told what for, each time that it is something else. */
static void progress_tell(const struct session *s, struct request *r)
{
    const char *now = is_state(r, "pending") ? table_value(r->row, 0, "progress") : NULL;
    size_t same = now != NULL ? strcspn(now, "0123456789") : 0; /* seconds are nothing new */
    if (now != NULL && r->wait_s > 0 && isatty(fileno(s->in->errors)) == 1 &&
        strncmp(r->told, now, same) != 0) {
        (void)fprintf(s->in->errors, "reportctl: %s\n", now);
        (void)snprintf(r->told, sizeof r->told, "%s", now);
    }
}

/* One connection: ask (again), then look until it is answered or the time is over. */
static enum status request_await(struct session *s, struct request *r, instant *until,
                                 struct error *err)
{
    s->deadline = call_deadline(s);
    enum status status = request_ask(s, r, err);
    if (status == STATUS_OK) {
        instant end = instant_add_ms(clock_now(), (r->wait_s + MARGIN_S) * 1000 + SLACK_MS);
        *until = instant_min(*until, end); /* from the first asking on */
    }
    for (;;) {
        s->deadline = call_deadline(s);
        if (status == STATUS_OK) {
            status = request_read(s, r, err);
        }
        if (status == STATUS_OK) {
            progress_tell(s, r);
        }
        if (status != STATUS_OK || !is_state(r, "pending") || is_lapsed(r) || r->wait_s == 0 ||
            !instant_before(clock_now(), *until)) {
            return status;
        }
        wait_ms(s, LOOK_MS);
    }
}

/* The connection broke: open it again until `end`. */
static enum status connect_again(struct session *s, instant end, struct error *err)
{
    enum status status = STATUS_AGAIN;
    for (int64_t ms = AGAIN_MS; status == STATUS_AGAIN && instant_before(clock_now(), end);
         ms = ms * 2 < AGAIN_MAX ? ms * 2 : AGAIN_MAX) {
        store_close(s->store);
        s->store = NULL;
        wait_ms(s, ms);
        s->deadline = end;
        status = session_connect(s, err);
    }
    return status;
}

/* The same request over as many connections as it takes; the database may be away for --timeout at
 * a stretch. */
static enum status request_follow(struct session *s, struct request *r, struct error *err)
{
    instant until = INSTANT_NEVER; /* not yet asked: --timeout alone bounds that */
    instant begin = clock_now();
    for (;;) {
        /* Behind the same name there may be another installation by now, which was not asked and
         * must not be. */
        enum status status = store_admin_identify(s->store, &r->asked, call_deadline(s), err);
        r->astray = status == STATUS_INVALID && err->code[0] == '\0';
        if (status == STATUS_OK) {
            status = request_await(s, r, &until, err);
        }
        instant last = instant_before(until, INSTANT_NEVER) ? until : begin;
        instant end = instant_add_ms(instant_min(clock_now(), last), s->in->timeout_s * 1000);
        bool again = (status == STATUS_AGAIN || status == STATUS_TIMEOUT) &&
                     (store_is_broken(s->store) || status == STATUS_AGAIN);
        if (!again || !instant_before(clock_now(), end)) {
            return status;
        }
        status = connect_again(s, end, err);
        if (status != STATUS_OK) {
            return status;
        }
    }
}

void request_word_add(char *text, size_t size, const char *word)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:+-@%/=";
    size_t used = strlen(text);
    bool quote = word[strspn(word, plain)] != '\0';
    (void)snprintf(text + used, size - used, quote ? " '" : " ");
    for (const char *at = word; *at != '\0'; at++) {
        used = strlen(text);
        (void)snprintf(text + used, size - used, *at == '\'' ? "'\\''" : "%c", *at);
    }
    used = strlen(text);
    (void)snprintf(text + used, size - used, quote ? "'" : "");
}

#define COMMAND_MAX 1024

/* The command line that asks the same again. */
static void same_command(const struct request *r, char ret_text[COMMAND_MAX])
{
    if (r->command != NULL) {
        (void)snprintf(ret_text, COMMAND_MAX, "reportctl %s", r->command);
    } else {
        const char *end = strchr(r->kind, '_'); /* "breaker_close" is a command of two words */
        (void)snprintf(ret_text, COMMAND_MAX, "reportctl %.*s%s%s",
                       end != NULL ? (int)(end - r->kind) : (int)strlen(r->kind), r->kind,
                       end != NULL ? " " : "", end != NULL ? end + 1 : "");
        request_word_add(ret_text, COMMAND_MAX, r->subject);
    }
    if (r->words != NULL) {
        size_t used = strlen(ret_text);
        (void)snprintf(ret_text + used, COMMAND_MAX - used, " %s", r->words);
    } else if (r->argument != NULL) {
        request_word_add(ret_text, COMMAND_MAX, r->option);
        request_word_add(ret_text, COMMAND_MAX, r->argument);
    }
    if (r->until != NULL) {
        request_word_add(ret_text, COMMAND_MAX, "--until");
        request_word_add(ret_text, COMMAND_MAX, r->until);
    }
    request_word_add(ret_text, COMMAND_MAX, "--request-id");
    request_word_add(ret_text, COMMAND_MAX, r->id);
}

/* Who should have answered, and when it was last seen, is what the operator needs to know next. */
static enum exit_code leader_describe(struct session *s, const char *scope, char *ret_text,
                                      size_t size)
{
    const char *values[] = {scope};
    struct table *leader = NULL;
    char age[32];
    enum exit_code code =
        session_select(s,
                       "SELECT state, leader, extract(epoch FROM statement_timestamp() - beat_at),"
                       " held FROM reports.v_leader WHERE scope = $1",
                       1, values, &leader);
    if (code != EXIT_DONE) {
        return code;
    }
    (void)snprintf(ret_text, size, "no such scope");
    if (table_rows(leader) > 0) {
        const char *who = table_cell(leader, 0, 1);
        const char *beat = table_cell(leader, 0, 2);
        bool held = strcmp(table_cell(leader, 0, 3), "t") == 0;
        cell_duration_format(beat != NULL ? strtod(beat, NULL) : 0, age, sizeof age);
        (void)snprintf(
            ret_text, size, "%s%s%s%s%s%s", table_cell(leader, 0, 0), who != NULL ? ": " : "",
            who != NULL ? who : "", who != NULL && beat != NULL ? ", last sign of life " : "",
            who != NULL && beat != NULL ? age : "", who != NULL && beat != NULL ? " ago" : "");
        if (held) {
            size_t used = strlen(ret_text);
            (void)snprintf(ret_text + used, size - used, "; a hold stands: reportctl holds");
        }
    }
    table_free(leader);
    return EXIT_DONE;
}

static enum exit_code unanswered_fail(struct session *s, const struct request *r)
{
    char who[512];
    char again[COMMAND_MAX];
    const char *scope = table_value(r->row, 0, "scope");
    s->deadline = call_deadline(s);
    enum exit_code code = leader_describe(s, scope, who, sizeof who);
    if (code != EXIT_DONE) {
        return code;
    }
    const char *progress = table_value(r->row, 0, "progress");
    if (progress != NULL) {
        same_command(r, again);
        return command_fail(s->in, EXIT_REFUSED,
                            "not answered within %lld s: %s (now: %s); see with %s",
                            (long long)r->wait_s, progress, who, again);
    }
    if (is_lapsed(r)) {
        return command_fail(s->in, EXIT_REFUSED,
                            "no leader of scope %s answered in time (%s); request %s has expired "
                            "and will not be carried out: ask anew, without its id, when "
                            "reportctl status shows a leader",
                            scope, who, r->id);
    }
    same_command(r, again);
    return command_fail(s->in, EXIT_REFUSED,
                        "no leader of scope %s has answered within %lld s (%s); it may still be "
                        "carried out: see with %s",
                        scope, (long long)r->wait_s, who, again);
}

static void answer_print(const struct session *s, const struct request *r)
{
    char again[COMMAND_MAX];
    const char *answer = table_value(r->row, 0, "answer");
    const char *job = table_value(r->row, 0, "job_id");
    answer = answer != NULL ? answer : "done";
    if (is_state(r, "pending")) {
        same_command(r, again);
        (void)fprintf(s->in->out, "asked for; see the answer with %s\n", again);
    } else if (job != NULL && strcmp(r->kind, "trigger") == 0) {
        (void)fprintf(s->in->out, "%s; job %s\n", answer, job);
    } else if (strcmp(r->kind, "backfill") == 0 && r->words != NULL) {
        (void)fprintf(s->in->out, "%s; request %s\n", answer, r->id); /* --cancel asks for it */
    } else {
        (void)fprintf(s->in->out, "%s\n", answer);
    }
}

static enum exit_code outcome_say(struct session *s, const struct request *r)
{
    const char *answer = table_value(r->row, 0, "answer");
    if (is_state(r, "refused") || is_state(r, "expired")) {
        return command_fail(s->in, EXIT_REFUSED, "%s: %s", table_value(r->row, 0, "state"),
                            answer != NULL ? answer : "");
    }
    if (is_state(r, "pending") && (r->wait_s > 0 || is_lapsed(r))) {
        return unanswered_fail(s, r);
    }
    if (s->in->format == OUTPUT_TABLE) {
        answer_print(s, r);
    } else {
        struct section only = {.key = "request", .table = r->row, .facts = true};
        session_print(s, &only, 1);
    }
    return EXIT_DONE;
}

static enum exit_code request_fail(struct session *s, const struct request *r, enum status status,
                                   const struct error *err)
{
    char again[COMMAND_MAX];
    char after[COMMAND_MAX + 64];
    bool schedule =
        r->read == NULL && strchr(r->subject, ':') == NULL && !uuid_is_valid(r->subject);
    if (strcmp(err->code, "P0002") == 0 && schedule) {
        return schedule_name_fail(s, r->subject); /* with the one that was meant */
    }
    same_command(r, again);
    if (r->astray) {
        return command_fail(s->in, EXIT_FAILED,
                            "connected again, but %.*s; the request may still be carried out in "
                            "the first: see with %s",
                            (int)strcspn(err->text, ";"), err->text, again);
    }
    (void)snprintf(after, sizeof after, "the request may still be carried out: see with %s", again);
    s->after = after;
    enum exit_code code = session_fail(s, status, err);
    s->after = NULL;
    /* A handoff is refused at once for what the leader would refuse it for a moment later. */
    return r->read != NULL && strcmp(err->code, "55000") == 0 ? EXIT_REFUSED : code;
}

enum exit_code request_run(struct session *s, struct request *r)
{
    struct error err = {0};
    char again[COMMAND_MAX];
    char text[COMMAND_MAX + 64];
    same_command(r, again);
    (void)snprintf(text, sizeof text, "it may still be carried out: see with %s", again);
    cut_off_begin(text);
    enum status status = request_follow(s, r, &err);
    cut_off_end();
    return status == STATUS_OK ? outcome_say(s, r) : request_fail(s, r, status, &err);
}
