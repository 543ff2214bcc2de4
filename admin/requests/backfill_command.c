/* reportctl backfill: have the leader run firings of a past span that have no occurrence. Only the
 * rule says which firings there are, so they are enumerated here, by the code that plans, and
 * brought with the request; sql/0020_backfill.sql judges their keys and makes the jobs. */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backfill_span.h"
#include "cell.h"
#include "civil.h"
#include "request_run.h"
#include "schedule_names.h"
#include "store_firings.h"

struct backfill {
    struct session s;
    const char *schedule;
    struct backfill_span span;
    struct due_row row[2];
    struct due_rows rows; /* the version in force, behind it one that is announced */
    struct zone_set *zones;
    struct rule rule;
    struct backfill_firings *firings;
};

static enum exit_code span_read(struct invocation *in, struct backfill_span *ret)
{
    struct backfill_span span = {.from = command_text(in, "--from"),
                                 .to = command_text(in, "--to"),
                                 .from_name = "--from",
                                 .to_name = "--to"};
    struct error err = {.text = ""};
    if (span.from == NULL || span.to == NULL) {
        return command_fail(in, EXIT_USAGE,
                            "backfill needs --from KEY and --to KEY, or --cancel REQUEST");
    }
    if (backfill_span_read(&span, &err) != STATUS_OK) {
        return command_fail(in, EXIT_USAGE, "%s", err.text);
    }
    *ret = span;
    return EXIT_DONE;
}

static enum exit_code rule_read(struct backfill *b)
{
    struct error err = {.text = ""};
    struct session *s = &b->s;
    b->rows.rows = b->row;
    b->rows.max = sizeof b->row / sizeof b->row[0];
    enum status status = store_definition(s->store, b->schedule, s->deadline, &b->rows, &err);
    if (status != STATUS_OK) {
        return session_fail(s, status, &err);
    }
    if (b->rows.count == 0) {
        return schedule_name_fail(s, b->schedule);
    }
    status = zone_set_open(NULL, &b->zones, &err);
    if (status == STATUS_OK) {
        status = stored_rule_parse(&b->row[0].rule, b->zones, &b->rule, &err);
    }
    return status == STATUS_OK
               ? EXIT_DONE
               : command_fail(s->in, EXIT_FAILED, "schedule \"%s\": %s", b->schedule, err.text);
}

static enum exit_code firings_find(struct backfill *b)
{
    const struct backfill_subject subject = {
        .row = &b->row[0], .rule = &b->rule, .span = b->span, .now = b->s.now};
    struct error err = {.text = ""};
    b->firings = calloc(1, sizeof *b->firings);
    if (b->firings == NULL) {
        return command_fail(b->s.in, EXIT_FAILED, "out of memory");
    }
    enum status status = backfill_firings_find(&subject, b->firings, &err);
    if (status == STATUS_OK) {
        return EXIT_DONE;
    }
    return command_fail(b->s.in,
                        status == STATUS_INVALID     ? EXIT_USAGE
                        : status == STATUS_NOT_FOUND ? EXIT_NOT_FOUND
                                                     : EXIT_FAILED,
                        "%s", err.text);
}

/* ---- what is asked ---- */

static void id_set(struct invocation *in, struct request *r)
{
    const char *id = command_text(in, "--request-id");
    if (id != NULL) {
        (void)snprintf(r->id, sizeof r->id, "%s", id);
    } else {
        uuid_random(r->id);
    }
    r->wait_s = command_int(in, "--wait");
}

static enum exit_code request_ask_and_free(struct session *s, struct request *r)
{
    id_set(s->in, r);
    enum exit_code code = request_run(s, r);
    table_free(r->row);
    return code;
}

static enum exit_code firings_ask(struct backfill *b)
{
    static const char ask[] =
        "SELECT a.state FROM reports.ask_backfill($1::uuid, $3, $4, $5::interval, $6::integer,"
        " $7::boolean, $8::jsonb) a WHERE $2::text = 'backfill'";
    struct invocation *in = b->s.in;
    bool beside = command_flag(in, "--beside");
    char span[2 * KEY_MAX_BYTES + 16];
    char words[2 * KEY_MAX_BYTES + 40];
    char version[16];
    char *firings = backfill_firings_json(&b->firings->list, b->firings->windows);
    if (firings == NULL) {
        return command_fail(in, EXIT_FAILED, "out of memory");
    }
    (void)snprintf(span, sizeof span, "%s to %s", b->span.from, b->span.to);
    (void)snprintf(words, sizeof words, "--from %s --to %s%s", b->span.from, b->span.to,
                   beside ? " --beside" : "");
    (void)snprintf(version, sizeof version, "%d", (int)b->row[0].version);
    const char *const more[] = {version, beside ? "t" : "f", firings};
    struct request r = {.kind = "backfill",
                        .subject = b->schedule,
                        .argument = span,
                        .words = words,
                        .ask = ask,
                        .more = more,
                        .more_count = sizeof more / sizeof more[0]};
    enum exit_code code = request_ask_and_free(&b->s, &r);
    free(firings);
    return code;
}

static bool firing_add(struct backfill *b, struct table *t, size_t i)
{
    const struct plan_candidates *list = &b->firings->list;
    const struct firing *f = &list->firings[i];
    char local[RFC3339_TEXT_MAX];
    rfc3339_format(f->at, f->offset_s, local);
    return table_cell_add(t, list->keys[i]) && table_cell_add(t, local) &&
           cell_instant_add(t, f->at) &&
           table_cell_add(t, backfill_becomes(b->firings, i, &b->row[0]));
}

/* What ask_backfill would refuse is not shown as if it would be made. */
static enum exit_code show_check(struct backfill *b)
{
    char version[16];
    (void)snprintf(version, sizeof version, "%d", (int)b->row[0].version);
    const char *values[] = {b->schedule, version};
    struct table *t = NULL;
    enum exit_code code = session_select(
        &b->s,
        "SELECT overlap FROM reports.v_schedule_version WHERE schedule = $1 AND version = "
        "$2::integer AND overlap <> 'allow'",
        2, values, &t);
    if (code == EXIT_DONE && table_rows(t) > 0 && !command_flag(b->s.in, "--beside")) {
        code = command_fail(b->s.in, EXIT_USAGE,
                            "schedule \"%s\" has overlap '%s', and jobs of a backfill run beside "
                            "each other and beside its own; if its report bears that, say --beside",
                            b->schedule, table_cell(t, 0, 0));
    } else if (code == EXIT_DONE && b->row[0].key_form[0] == '\0') {
        code = command_fail(b->s.in, EXIT_USAGE,
                            "no leader has taken schedule \"%s\" in, so that the form of its keys "
                            "is not fixed; ask again when reportctl schedule shows its next firing",
                            b->schedule);
    }
    table_free(t);
    return code;
}

/* Nothing is asked: what would be made of each firing. */
static enum exit_code firings_show(struct backfill *b)
{
    static const struct column columns[] = {
        {.name = "occurrence_key", .kind = COLUMN_TEXT},
        {.name = "local", .kind = COLUMN_TEXT},
        {.name = "fire_at", .kind = COLUMN_INSTANT},
        {.name = "becomes", .kind = COLUMN_TEXT},
    };
    struct error err = {.text = ""};
    enum exit_code code = show_check(b);
    if (code != EXIT_DONE) {
        return code;
    }
    enum status status =
        store_keys_used(b->s.store, b->schedule, b->s.deadline, &b->firings->list, &err);
    if (status != STATUS_OK) {
        return session_fail(&b->s, status, &err);
    }
    struct table *t = table_make(columns, sizeof columns / sizeof columns[0]);
    bool ok = t != NULL;
    for (size_t i = 0; ok && i < b->firings->list.count; i++) {
        ok = firing_add(b, t, i);
    }
    if (!ok) {
        table_free(t);
        return command_fail(b->s.in, EXIT_FAILED, "out of memory");
    }
    return session_print_list(&b->s, t, BACKFILL_MAX, "No firings.");
}

static enum exit_code firings_run(struct backfill *b)
{
    enum exit_code code = span_read(b->s.in, &b->span);
    if (code == EXIT_DONE) {
        code = rule_read(b);
    }
    if (code == EXIT_DONE) {
        code = firings_find(b);
    }
    if (code == EXIT_DONE) {
        code = command_flag(b->s.in, "--dry-run") ? firings_show(b) : firings_ask(b);
    }
    free(b->firings);
    stored_dates_free(&b->rows.dates);
    zone_set_close(b->zones);
    return code;
}

enum exit_code backfill_command(struct invocation *in)
{
    struct backfill *b = calloc(1, sizeof *b);
    const char *earlier = command_text(in, "--cancel");
    if (b == NULL) {
        return command_fail(in, EXIT_FAILED, "out of memory");
    }
    b->schedule = command_text(in, "schedule");
    enum exit_code code = EXIT_USAGE;
    if (earlier != NULL &&
        (command_text(in, "--from") != NULL || command_text(in, "--to") != NULL ||
         command_flag(in, "--dry-run") || command_flag(in, "--beside"))) {
        code = command_fail(in, EXIT_USAGE,
                            "--cancel ends the jobs of an earlier backfill, and goes with none of "
                            "--from, --to, --dry-run and --beside");
        free(b);
        return code;
    }
    code = session_open(in, &b->s);
    if (code == EXIT_DONE && earlier != NULL) {
        struct request r = {
            .kind = "backfill", .subject = b->schedule, .argument = earlier, .option = "--cancel"};
        code = request_ask_and_free(&b->s, &r);
    } else if (code == EXIT_DONE) {
        code = firings_run(b);
    }
    session_close(&b->s);
    free(b);
    return code;
}
