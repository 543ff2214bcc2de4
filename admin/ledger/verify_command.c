/* Is the record whole? For people, cron and CI: the exit code says it. */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cell.h"
#include "civil.h"
#include "instant_text.h"
#include "ledger_verify.h"
#include "schedule_names.h"
#include "session.h"

#define SPAN_DAYS  ((int64_t)31)
#define UNVERIFIED EXIT_USAGE /* 2: it could not be checked */
#define TELL_MS    5000       /* between two lines that say how far it is */

struct verify {
    struct table *table;
    size_t rows, max;
    int64_t wrong, look, unchecked; /* findings, also those that are not shown */
    bool failed;                    /* out of memory */
};

static const char *verdict_name(enum ledger_verdict v)
{
    switch (v) {
    case LEDGER_WRONG:
        return "wrong";
    case LEDGER_LOOK:
        return "look";
    case LEDGER_UNCHECKED:
        return "unchecked";
    }
    return "wrong";
}

static bool columns_make(struct table *t)
{
    static const struct column columns[] = {
        {.name = "verdict", .kind = COLUMN_TEXT},
        {.name = "schedule", .kind = COLUMN_TEXT},
        {.name = "key", .kind = COLUMN_TEXT},
        {.name = "to_key", .kind = COLUMN_TEXT, .show = SHOW_PROGRAMS},
        {.name = "what", .kind = COLUMN_TEXT},
        {.name = "firings", .kind = COLUMN_INT},
        {.name = "at", .title = "TIME", .kind = COLUMN_INSTANT},
        {.name = "to_at", .kind = COLUMN_INSTANT, .show = SHOW_PROGRAMS},
        {.name = "version", .kind = COLUMN_INT},
        {.name = "detail", .kind = COLUMN_TEXT},
        {.name = "version_since_at", .title = "SINCE", .kind = COLUMN_INSTANT, .spare = true},
    };
    return table_columns_add(t, columns, sizeof columns / sizeof columns[0]);
}

static bool int_add(struct table *t, int64_t n)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, n);
    return table_cell_add(t, text);
}

static bool finding_row(struct table *t, const struct ledger_finding *f)
{
    return table_cell_add(t, verdict_name(f->verdict)) && table_cell_add(t, f->schedule) &&
           table_cell_add(t, f->key[0] != '\0' ? f->key : NULL) &&
           table_cell_add(t, f->to_key[0] != '\0' ? f->to_key : NULL) &&
           table_cell_add(t, f->what) && int_add(t, f->firings) && cell_instant_add(t, f->at) &&
           cell_instant_add(t, f->to) &&
           (f->version > 0 ? int_add(t, f->version) : table_cell_add(t, NULL)) &&
           table_cell_add(t, f->detail) && cell_instant_add(t, f->since);
}

static void finding_add(void *context, const struct ledger_finding *f)
{
    struct verify *v = context;
    switch (f->verdict) {
    case LEDGER_WRONG:
        v->wrong++;
        break;
    case LEDGER_LOOK:
        v->look++;
        break;
    case LEDGER_UNCHECKED:
        v->unchecked++;
        break;
    }
    if (v->rows < v->max) {
        v->rows++;
        v->failed = !finding_row(v->table, f) || v->failed;
    }
}

static struct table *summary_make(const struct verify *v, const struct ledger_verify_options *o,
                                  const struct ledger_counts *n)
{
    const struct {
        struct column column;
        const char *text;
        utc_us at;
        int64_t number;
    } cells[] = {
        {{.name = "verdict"},
         v->wrong > 0       ? "violated"
         : v->unchecked > 0 ? "not all could be checked"
                            : "proved",
         UTC_NONE,
         0},
        {{.name = "from_at", .kind = COLUMN_INSTANT}, NULL, o->from, 0},
        {{.name = "to_at", .kind = COLUMN_INSTANT}, NULL, o->to, 0},
        {{.name = "schedules", .kind = COLUMN_INT}, NULL, UTC_NONE, n->schedules},
        {{.name = "firings_due", .kind = COLUMN_INT}, NULL, UTC_NONE, n->due},
        {{.name = "have_occurrence", .kind = COLUMN_INT}, NULL, UTC_NONE, n->planned},
        {{.name = "in_gaps", .kind = COLUMN_INT}, NULL, UTC_NONE, n->in_gaps},
        {{.name = "not_yet", .kind = COLUMN_INT}, NULL, UTC_NONE, n->not_yet},
        {{.name = "withheld_schedules", .kind = COLUMN_INT}, NULL, UTC_NONE, n->withheld},
        {{.name = "wrong", .kind = COLUMN_INT}, NULL, UTC_NONE, v->wrong},
        {{.name = "look", .kind = COLUMN_INT}, NULL, UTC_NONE, v->look},
        {{.name = "unchecked", .kind = COLUMN_INT}, NULL, UTC_NONE, v->unchecked},
    };
    const size_t count = sizeof cells / sizeof cells[0];
    struct table *t = table_new();
    bool ok = t != NULL;
    for (size_t i = 0; ok && i < count; i++) {
        ok = table_column_add(t, &cells[i].column);
    }
    for (size_t i = 0; ok && i < count; i++) {
        ok = cells[i].text != NULL       ? table_cell_add(t, cells[i].text)
             : !utc_is_none(cells[i].at) ? cell_instant_add(t, cells[i].at)
                                         : int_add(t, cells[i].number);
    }
    if (!ok) {
        table_free(t);
        return NULL;
    }
    return t;
}

static enum exit_code options_make(struct session *s, struct ledger_verify_options *ret)
{
    struct invocation *in = s->in;
    const char *from = command_text(in, "--from");
    const char *to = command_text(in, "--to");
    struct ledger_verify_options o = {
        .to = {s->now.us + 1},
        .to_now = true,
        .schedule = command_text(in, "--schedule"),
        .grace_us = command_int(in, "--grace") * MICROS_A_SECOND,
        .statement_ms = in->timeout_s * 1000,
    };
    utc_us end;
    if (to != NULL && instant_text_parse(to, &end, NULL) == STATUS_OK && end.us < o.to.us) {
        o.to = end;
        o.to_now = false;
    }
    o.from.us = o.to.us - SPAN_DAYS * SECONDS_A_DAY * MICROS_A_SECOND;
    if (from != NULL && instant_text_parse(from, &o.from, NULL) != STATUS_OK) {
        return command_fail(in, EXIT_USAGE, "--from is no instant");
    }
    if (o.from.us >= o.to.us) {
        return command_fail(in, EXIT_USAGE, "nothing to verify: --from is not before %s",
                            to != NULL && !o.to_now ? "--to" : "now");
    }
    *ret = o;
    return EXIT_DONE;
}

static enum exit_code verify_print(struct session *s, struct verify *v,
                                   const struct ledger_verify_options *o,
                                   const struct ledger_counts *counts)
{
    struct table *summary = summary_make(v, o, counts);
    if (summary == NULL || v->failed) {
        table_free(summary);
        return command_fail(s->in, UNVERIFIED, "out of memory");
    }
    const struct section sections[] = {
        {.key = "findings", .table = v->table, .empty = "Nothing was found."},
        {.key = "summary", .title = "SUMMARY", .table = summary, .facts = true},
    };
    int64_t all = v->wrong + v->look + v->unchecked;
    session_print(s, sections, 2);
    if ((int64_t)v->rows < all) {
        (void)fflush(s->in->out);
        (void)fprintf(s->in->errors,
                      "reportctl: only the first %zu of %" PRId64
                      " findings; --limit N shows more\n",
                      v->rows, all);
    }
    table_free(summary);
    return v->wrong > 0 ? EXIT_FAILED : v->unchecked > 0 ? UNVERIFIED : EXIT_DONE;
}

struct progress {
    FILE *to;
    instant told;
};

/* On a terminal one that takes long says how far it is. */
static void looked_tell(void *context, utc_us until)
{
    struct progress *p = context;
    instant now = clock_now();
    if (isatty(fileno(p->to)) == 1 && instant_ms_between(p->told, now) >= TELL_MS) {
        char text[RFC3339_TEXT_MAX];
        rfc3339_format(until, 0, text);
        (void)fprintf(p->to, "reportctl: looked at the records until %s\n", text);
        p->told = now;
    }
}

static enum exit_code verify_run(struct session *s)
{
    struct ledger_verify_options o;
    struct error err = {0};
    struct verify v = {.table = table_new(), .max = (size_t)command_int(s->in, "--limit")};
    struct ledger_sink sink = {.add = finding_add, .context = &v};
    struct progress progress = {s->in->errors, clock_now()};
    enum exit_code code = options_make(s, &o);
    o.looked = looked_tell;
    o.looked_context = &progress;
    if (code == EXIT_DONE && (v.table == NULL || !columns_make(v.table))) {
        code = command_fail(s->in, UNVERIFIED, "out of memory");
    }
    if (code == EXIT_DONE && o.schedule != NULL) {
        code = schedule_name_check(s, o.schedule);
    }
    if (code == EXIT_DONE) {
        enum status status = ledger_verify(s->store, &o, &sink, &err);
        if (status == STATUS_OK) {
            code = verify_print(s, &v, &o, &sink.counts);
        } else {
            (void)session_fail(s, status, &err);
            code = UNVERIFIED;
        }
    }
    table_free(v.table);
    return code;
}

enum exit_code verify_command(struct invocation *in)
{
    struct session s;
    enum exit_code code = session_open(in, &s);
    if (code == EXIT_DONE) {
        code = verify_run(&s);
    } else if (code == EXIT_FAILED) {
        code = UNVERIFIED;
    }
    session_close(&s);
    return code;
}
