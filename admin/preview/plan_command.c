/* reportctl plan: what an edit of a schedule would do, without making it. */
#include "commands.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "plan_trial.h"
#include "session.h"

static enum exit_code memory_fail(struct plan_trial *p)
{
    return command_fail(p->s.in, EXIT_FAILED, "out of memory");
}

static bool local_add(struct table *t, const struct preview_firing *f)
{
    char local[RFC3339_TEXT_MAX];
    if (f == NULL) {
        return table_cell_add(t, NULL);
    }
    rfc3339_format(f->at, f->offset_s, local);
    return table_cell_add(t, local);
}

static bool date_add(struct table *t, const struct preview_firing *f)
{
    char date[DATE_TEXT_MAX];
    if (f == NULL || f->about == PREVIEW_NO_DATE) {
        return table_cell_add(t, NULL);
    }
    date_format(f->about, date);
    return table_cell_add(t, date);
}

static bool pair_add(struct table *t, const struct preview_pair *pair)
{
    const struct preview_firing *b = pair->before;
    const struct preview_firing *a = pair->after;
    return table_cell_add(t, preview_change_name(pair->change)) &&
           table_cell_add(t, b != NULL ? b->key : a->key) && local_add(t, b) && local_add(t, a) &&
           date_add(t, b) && date_add(t, a) &&
           (b != NULL ? cell_instant_add(t, b->at) : table_cell_add(t, NULL)) &&
           (a != NULL ? cell_instant_add(t, a->at) : table_cell_add(t, NULL));
}

static struct preview_walk walk_of(const struct plan_trial *p)
{
    return (struct preview_walk){.before = &p->before, .after = &p->after, .until = p->until};
}

static void changes_count(struct plan_trial *p)
{
    struct preview_walk walk = walk_of(p);
    struct preview_pair pair;
    while (preview_walk_next(&walk, &pair)) {
        p->counts[pair.change]++;
    }
}

/* As many as --limit are told, and one more; dates where one changes, else they are not worth their
 * room. */
static enum exit_code rows_make(struct plan_trial *p)
{
    const enum column_show dates = p->counts[PREVIEW_REDATED] > 0 ? SHOW_ALWAYS : SHOW_PROGRAMS;
    const struct column columns[] = {
        {.name = "change", .kind = COLUMN_TEXT},
        {.name = "occurrence_key", .kind = COLUMN_TEXT},
        {.name = "now_local", .title = "AS IT IS", .kind = COLUMN_TEXT},
        {.name = "then_local", .title = "WITH THE EDIT", .kind = COLUMN_TEXT},
        {.name = "now_about", .title = "BUSINESS DATE", .kind = COLUMN_TEXT, .show = dates},
        {.name = "then_about", .title = "DATE THEN", .kind = COLUMN_TEXT, .show = dates},
        {.name = "now_at", .kind = COLUMN_INSTANT, .show = SHOW_PROGRAMS},
        {.name = "then_at", .kind = COLUMN_INSTANT, .show = SHOW_PROGRAMS},
    };
    struct preview_walk walk = walk_of(p);
    struct preview_pair pair;
    size_t most = (size_t)command_int(p->s.in, "--limit") + 1;
    p->rows = table_make(columns, sizeof columns / sizeof columns[0]);
    if (p->rows == NULL) {
        return memory_fail(p);
    }
    while (table_rows(p->rows) < most && preview_walk_next(&walk, &pair)) {
        if (pair.change != PREVIEW_KEPT && !pair_add(p->rows, &pair)) {
            return memory_fail(p);
        }
    }
    return EXIT_DONE;
}

static bool int_add(struct table *t, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    return table_cell_add(t, text);
}

static enum exit_code facts_make(struct plan_trial *p)
{
    static const struct column columns[] = {
        {.name = "schedule", .kind = COLUMN_TEXT},
        {.name = "edit_begins_at", .title = "EDIT BEGINS", .kind = COLUMN_INSTANT},
        {.name = "compared_until", .kind = COLUMN_INSTANT},
        {.name = "key_form", .kind = COLUMN_TEXT},
        {.name = "firings_now", .title = "FIRINGS AS IT IS", .kind = COLUMN_INT},
        {.name = "firings_then", .title = "FIRINGS WITH THE EDIT", .kind = COLUMN_INT},
        {.name = "kept", .kind = COLUMN_INT},
        {.name = "added", .kind = COLUMN_INT},
        {.name = "removed", .kind = COLUMN_INT},
        {.name = "moved", .kind = COLUMN_INT},
        {.name = "redated", .kind = COLUMN_INT},
        {.name = "statement", .title = "TO MAKE IT", .kind = COLUMN_TEXT},
    };
    const int64_t *n = p->counts;
    int64_t both = n[PREVIEW_KEPT] + n[PREVIEW_MOVED] + n[PREVIEW_REDATED];
    char *statement = plan_edit_row_statement(p->name, &p->edit);
    struct table *t = p->facts = table_make(columns, sizeof columns / sizeof columns[0]);
    bool made = t != NULL && statement != NULL && table_cell_add(t, p->name) &&
                cell_instant_add(t, p->next->begins) && cell_instant_add(t, p->until) &&
                table_cell_add(t, p->where.has_form ? key_form_name(p->where.form) : NULL) &&
                int_add(t, both + n[PREVIEW_REMOVED]) && int_add(t, both + n[PREVIEW_ADDED]) &&
                int_add(t, n[PREVIEW_KEPT]) && int_add(t, n[PREVIEW_ADDED]) &&
                int_add(t, n[PREVIEW_REMOVED]) && int_add(t, n[PREVIEW_MOVED]) &&
                int_add(t, n[PREVIEW_REDATED]) && table_cell_add(t, statement);
    free(statement);
    return made ? EXIT_DONE : memory_fail(p);
}

static bool note_add(struct plan_trial *p, const char *format, ...) PRINTF_LIKE(2, 3);
static bool note_add(struct plan_trial *p, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return table_cell_add(p->words, "edit") && table_cell_add(p->words, text);
}

/* What else there is to know: behind the words of the rule. */
static bool notes_add_state(struct plan_trial *p)
{
    const struct schedule_course *c = &p->course;
    const struct schedule_versions *now = &c->now;
    const char *problem = c->problem;
    const char *taken = table_value(c->facts, 0, "version");
    bool ok = true;
    char at[RFC3339_TEXT_MAX];
    if (now->rows.count > 1 && !p->base_resumes) {
        rfc3339_format_utc(now->row[1].effective_from, at);
        ok = note_add(p, "the edit announced for %s gives way to this one", at);
    }
    if (ok && c->base != &c->none &&
        (taken == NULL || strtol(taken, NULL, 10) != now->row[0].version)) {
        ok = note_add(p, "the leader has not taken in version %d yet, which this is compared with",
                      now->row[0].version);
    } else if (ok && problem != NULL) {
        ok = note_add(p, "as it is nothing fires: %s", problem);
    } else if (ok && p->course.base->paused) {
        ok = note_add(p, p->base_resumes ? "as it is nothing fires until its pause ends"
                                         : "as it is nothing fires: it is paused");
    }
    at[0] = '\0';
    if (ok && p->resumed.rule != NULL) {
        rfc3339_format_utc(p->resumed.begins, at);
    }
    if (ok && p->next->paused) {
        ok = note_add(p,
                      "nothing fires while it is paused; the firings of the pause become one "
                      "gap when it goes on%s%s",
                      at[0] != '\0' ? ", at " : "", at);
    }
    return ok;
}

/* Periods that neither version reports. */
static bool notes_add_passed(struct plan_trial *p)
{
    const struct planned_gap *g = &p->where.passed;
    if (g->firings == 0) {
        return true;
    }
    return g->firings == 1
               ? note_add(
                     p,
                     "%s is passed over: it has not been reported yet, and never will be after "
                     "the edit; it becomes a gap, and reportctl backfill makes it",
                     g->from_key)
               : note_add(p,
                          "%" PRId64 " periods from %s to %s are passed over: they have not been "
                          "reported yet, and never will be after the edit; they become a gap, and "
                          "reportctl backfill makes them",
                          g->firings, g->from_key, g->to_key);
}

static bool notes_add(struct plan_trial *p)
{
    bool ok = notes_add_state(p) && notes_add_passed(p);
    char at[RFC3339_TEXT_MAX];
    if (ok && p->course.base->rule != NULL) {
        utc_us now = {p->s.now.us + 1};
        int64_t due = rule_count_within(p->course.base->rule, p->course.progress.planned_to, now,
                                        p->course.base->bounds);
        ok = due == 0 || note_add(p,
                                  "%" PRId64 " firings are due and not planned yet; that comes "
                                  "first, as if there were no edit",
                                  due);
    }
    const struct preview_firing *first = p->after.count > 0 ? &p->after.firings[0] : NULL;
    if (ok && first != NULL && first->at.us <= p->next->begins.us && first->at.us <= p->s.now.us) {
        rfc3339_format(first->at, first->offset_s, at);
        ok = note_add(p, "%s was still to come and its new time, %s, is past: it is due at once",
                      first->key, at);
    }
    if (ok && (p->before.count == PREVIEW_FIRINGS_MAX || p->after.count == PREVIEW_FIRINGS_MAX)) {
        ok = note_add(p, "more than %zu firings are too many to compare: the days end sooner",
                      PREVIEW_FIRINGS_MAX);
    }
    return ok;
}

static bool words_are_same(const struct table *a, const struct table *b)
{
    bool same = table_rows(a) == table_rows(b);
    for (size_t i = 0; same && i < table_rows(a); i++) {
        same = strcmp(table_value(a, i, "text"), table_value(b, i, "text")) == 0;
    }
    return same;
}

static void plan_print(struct plan_trial *p, bool same_words)
{
    size_t limit = (size_t)command_int(p->s.in, "--limit");
    bool more = table_rows(p->rows) > limit;
    if (more) {
        table_cut(p->rows, limit);
    }
    struct section sections[] = {
        {.key = "plan", .table = p->facts, .facts = true},
        {.key = "rule_now", .title = "THE RULE AS IT IS", .table = p->words_before},
        {.key = "rule_then", .title = "THE RULE WITH THE EDIT", .table = p->words},
        {.key = "changes",
         .title = "FIRINGS ADDED, REMOVED, MOVED AND REDATED",
         .table = p->rows,
         .empty = "none"},
    };
    size_t count = sizeof sections / sizeof sections[0];
    if (p->s.in->format == OUTPUT_CSV) {
        session_print(&p->s, &sections[count - 1], 1);
    } else {
        if (same_words && p->s.in->format == OUTPUT_TABLE) {
            table_cut(p->words_before, 0);
        }
        session_print(&p->s, sections, count);
    }
    if (more) {
        (void)fflush(p->s.in->out);
        (void)fprintf(p->s.in->errors,
                      "reportctl: only the first %zu changes; --limit N shows more\n", limit);
    }
}

static enum exit_code plan_show(struct plan_trial *p)
{
    bool same = words_are_same(p->words_before, p->words);
    enum exit_code code = plan_trial_compare(p, command_int(p->s.in, "--days"));
    if (code == EXIT_DONE) {
        changes_count(p);
        code = rows_make(p);
    }
    if (code == EXIT_DONE) {
        code = facts_make(p);
    }
    if (code == EXIT_DONE && !notes_add(p)) {
        code = memory_fail(p);
    }
    if (code == EXIT_DONE) {
        plan_print(p, same);
    }
    return code;
}

enum exit_code plan_command(struct invocation *in)
{
    bool changes = false;
    struct plan_trial *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return command_fail(in, EXIT_FAILED, "out of memory");
    }
    p->name = command_text(in, "schedule");
    enum exit_code code = plan_edit_row_parse(in, &p->edit);
    if (code == EXIT_DONE) {
        code = session_open(in, &p->s);
        if (code == EXIT_DONE) {
            code = plan_trial_make(p, &changes);
        }
        if (code == EXIT_DONE && changes) {
            code = plan_show(p);
        } else if (code == EXIT_DONE) {
            code = command_fail(in, EXIT_DONE,
                                "schedule \"%s\": the edit changes nothing, the row has these "
                                "values",
                                p->name);
        }
        session_close(&p->s);
    }
    table_free(p->facts);
    table_free(p->rows);
    plan_trial_close(p);
    free(p);
    return code;
}
