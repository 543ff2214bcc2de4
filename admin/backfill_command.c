/* reportctl backfill: have the leader run firings of a past span that have no occurrence. Only the
 * rule says which firings there are, so they are enumerated here, by the code that plans, and
 * brought with the request; sql/0020_backfill.sql judges their keys and makes the jobs. */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backfill_json.h"
#include "cell.h"
#include "civil.h"
#include "key.h"
#include "request_run.h"
#include "schedule_names.h"
#include "store_firings.h"

#define MARGIN_DAYS 2    /* a local date is less than that from the same date in UTC */
#define ROLL_DAYS   31   /* a convention moves a firing less far from the date of its key */
#define BEFORE_DAYS 3300 /* the firing before the first is looked for: a leap day comes by then */
#define DAY_US      ((int64_t)SECONDS_A_DAY * MICROS_A_SECOND)
#define DATE_BYTES  10 /* of 2030-04-12 */
#define MONTH_BYTES 7
#define MONTH_DAYS  31

struct span {
    const char *from, *to;     /* keys, or beginnings of keys */
    bool label_from, label_to; /* they may be of fiscal periods: the rule knows their days */
    utc_us begin, end;         /* no firing with a key between them is due outside of these */
};

struct backfill {
    struct session s;
    const char *schedule;
    struct span span;
    struct due_row row[2];
    struct due_rows rows; /* the version in force, behind it one that is announced */
    struct zone_set *zones;
    struct rule rule;
    struct plan_candidates *list; /* at most BACKFILL_MAX */
    struct backfill_window windows[BACKFILL_MAX];
};

static enum exit_code bound_refuse(struct invocation *in, const char *option, const char *text)
{
    return command_fail(in, EXIT_USAGE,
                        "%s \"%s\" is no key of a firing; write a month, 2030-04, a date, "
                        "2030-04-12, more of a key, 2030-04-12T06:00, or a period, 2030-W15, "
                        "2030-Q1 or the label of a fiscal one",
                        option, text);
}

enum bound {
    BOUND_DAY,   /* a key of a firing, or the beginning of one, at least its month */
    BOUND_LABEL, /* perhaps of a fiscal period: the rule knows */
    BOUND_WRONG,
};

static enum bound bound_parse(const char *text, int64_t *ret_day)
{
    char date[DATE_BYTES + 1];
    int64_t last = 0;
    bool month = strlen(text) == MONTH_BYTES;
    (void)snprintf(date, sizeof date, "%.*s%s", month ? MONTH_BYTES : DATE_BYTES, text,
                   month ? "-01" : "");
    bool shaped = strlen(text) < KEY_MAX_BYTES && strspn(text, "0123456789-T:Z+") == strlen(text);
    if ((shaped && date_parse(date, ret_day, NULL) == STATUS_OK) ||
        business_period_parse(text, ret_day, &last)) {
        return BOUND_DAY;
    }
    return strlen(text) < FISCAL_LABEL_MAX ? BOUND_LABEL : BOUND_WRONG;
}

static enum exit_code span_read(struct invocation *in, struct span *ret)
{
    struct span span = {.from = command_text(in, "--from"), .to = command_text(in, "--to")};
    int64_t first = 0;
    int64_t last = 0;
    if (span.from == NULL || span.to == NULL) {
        return command_fail(in, EXIT_USAGE,
                            "backfill needs --from KEY and --to KEY, or --cancel REQUEST");
    }
    enum bound from = bound_parse(span.from, &first);
    enum bound to = bound_parse(span.to, &last);
    if (from == BOUND_WRONG || to == BOUND_WRONG) {
        bool at_from = from == BOUND_WRONG;
        return bound_refuse(in, at_from ? "--from" : "--to", at_from ? span.from : span.to);
    }
    span.label_from = from == BOUND_LABEL;
    span.label_to = to == BOUND_LABEL;
    if (!span.label_from && !span.label_to && strncmp(span.from, span.to, strlen(span.to)) > 0) {
        return command_fail(in, EXIT_USAGE, "--from %s comes after --to %s", span.from, span.to);
    }
    span.begin = utc_from_seconds((first - MARGIN_DAYS) * SECONDS_A_DAY);
    span.end = utc_from_seconds((last + MONTH_DAYS + MARGIN_DAYS) * SECONDS_A_DAY);
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

/* When firings of periods are due lies in the rule alone; there is one for each. */
static enum exit_code span_widen(struct backfill *b)
{
    const struct fiscal_periods *p = b->rule.business.periods;
    struct span *span = &b->span;
    if ((span->label_from || span->label_to) && (p == NULL || p->count == 0)) {
        return span->label_from ? bound_refuse(b->s.in, "--from", span->from)
                                : bound_refuse(b->s.in, "--to", span->to);
    }
    if (p != NULL && p->count > 0) {
        span->begin = utc_from_seconds(p->list[0].first * SECONDS_A_DAY);
        span->end = utc_from_seconds(p->list[p->count - 1].last * SECONDS_A_DAY);
    }
    if (rule_is_of_periods(&b->rule)) {
        span->begin.us -= 2 * BUSINESS_PERIOD_MAX_DAYS * DAY_US;
        span->end.us += 2 * BUSINESS_PERIOD_MAX_DAYS * DAY_US;
    }
    return EXIT_DONE;
}

static struct backfill_window window_of(const struct rule *r, const struct firing *before,
                                        const struct firing *f)
{
    if (rule_is_of_periods(r)) {
        struct instant_range own = rule_period_window(r, &f->about);
        return (struct backfill_window){.start = own.from, .end = own.to};
    }
    return (struct backfill_window){
        .start = before->found ? rule_plain_instant(r, before) : UTC_NONE,
        .end = rule_plain_instant(r, f),
    };
}

static enum exit_code firing_take(struct backfill *b, const char *key, const struct firing *before,
                                  const struct firing *f)
{
    struct plan_candidates *list = b->list;
    struct firing_about about;
    struct error err = {.text = ""};
    if (list->count == BACKFILL_MAX) {
        return command_fail(b->s.in, EXIT_USAGE,
                            "these are more than %d firings; ask for them in parts, the "
                            "first one --to %s",
                            BACKFILL_MAX, list->keys[BACKFILL_MAX - 1]);
    }
    if (f->about.state == ABOUT_UNKNOWN &&
        business_date_of(&b->rule.business, f->nominal, &about, &err) != STATUS_OK) {
        return command_fail(b->s.in, EXIT_FAILED, "what the firing %s is about cannot be told: %s",
                            key, err.text);
    }
    list->firings[list->count] = *f;
    memcpy(list->keys[list->count], key, sizeof list->keys[0]);
    b->windows[list->count++] = window_of(&b->rule, before, f);
    return EXIT_DONE;
}

/* By the version in force, also where others were in force then: the keys are the schedule's. */
static enum exit_code firings_find(struct backfill *b)
{
    const struct due_row *row = &b->row[0];
    /* Business days may be as rare as every other day. */
    int64_t roll_days = ROLL_DAYS + 2 * (int64_t)abs(row->rule.business_day_offset);
    int64_t roll_us = row->rule.calendar_name[0] != '\0' ? roll_days * DAY_US : 0;
    utc_us begin = {b->span.begin.us - roll_us};
    /* What is to come the leader plans. */
    utc_us end = {b->span.end.us + roll_us < b->s.now.us ? b->span.end.us + roll_us : b->s.now.us};
    const struct rule_bounds bounds = {row->rule.starts_at, row->rule.ends_at};
    struct plan_candidates *list = b->list;
    const struct span *span = &b->span;
    enum key_form form = KEY_DATE;
    if (!key_form_parse(row->key_form, &form)) {
        form = key_form_of_rule(&b->rule);
    }
    struct firing before =
        rule_last_within(&b->rule, (utc_us){begin.us - BEFORE_DAYS * DAY_US}, begin, bounds);
    struct firing f = rule_next_within(&b->rule, (utc_us){begin.us - 1}, bounds);
    for (; f.found && f.at.us < end.us; f = rule_next_within(&b->rule, f.at, bounds)) {
        char key[KEY_MAX_BYTES];
        key_format(form, &f, key);
        if (strcmp(key, span->from) >= 0 && strncmp(key, span->to, strlen(span->to)) <= 0) {
            enum exit_code code = firing_take(b, key, &before, &f);
            if (code != EXIT_DONE) {
                return code;
            }
        }
        before = f;
    }
    return list->count > 0
               ? EXIT_DONE
               : command_fail(b->s.in, EXIT_NOT_FOUND,
                              "the rule of schedule \"%s\" names no firing that was due with a key "
                              "from %s to %s",
                              b->schedule, span->from, span->to);
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
    char *firings = backfill_firings_json(b->list, b->windows);
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
    const struct firing *f = &b->list->firings[i];
    utc_us next = b->row[0].next_fire_at;
    char local[RFC3339_TEXT_MAX];
    rfc3339_format(f->at, f->offset_s, local);
    bool to_come = !utc_is_none(next) && f->at.us >= next.us;
    return table_cell_add(t, b->list->keys[i]) && table_cell_add(t, local) &&
           cell_instant_add(t, f->at) &&
           table_cell_add(t, b->list->taken[i] ? "there"
                             : to_come         ? "left to the leader"
                                               : "make");
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
    enum status status = store_keys_used(b->s.store, b->schedule, b->s.deadline, b->list, &err);
    if (status != STATUS_OK) {
        return session_fail(&b->s, status, &err);
    }
    struct table *t = table_make(columns, sizeof columns / sizeof columns[0]);
    bool ok = t != NULL;
    for (size_t i = 0; ok && i < b->list->count; i++) {
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
        code = span_widen(b);
    }
    if (code == EXIT_DONE) {
        b->list = calloc(1, sizeof *b->list);
        code =
            b->list != NULL ? firings_find(b) : command_fail(b->s.in, EXIT_FAILED, "out of memory");
    }
    if (code == EXIT_DONE) {
        code = command_flag(b->s.in, "--dry-run") ? firings_show(b) : firings_ask(b);
    }
    free(b->list);
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
