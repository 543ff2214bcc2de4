#include "firing_list.h"

#include <stdio.h>
#include <string.h>

#include "cell.h"
#include "civil.h"
#include "key.h"
#include "rule_notes.h"
#include "schedule_course.h"

static bool columns_make(struct table *t)
{
    static const struct column columns[] = {
        {.name = "local", .kind = COLUMN_TEXT},
        {.name = "fire_at", .kind = COLUMN_INSTANT},
        {.name = "due", .kind = COLUMN_INSTANT, .show = SHOW_AGE_PEOPLE},
        {.name = "occurrence_key", .kind = COLUMN_TEXT},
        {.name = "business_date", .kind = COLUMN_TEXT},
    };
    return table_columns_add(t, columns, sizeof columns / sizeof columns[0]);
}

/* The cells of one firing, in the canonical forms of table.h. */
static bool firing_add(struct table *t, const struct firing *f, enum key_form form)
{
    char local[RFC3339_TEXT_MAX];
    char at[RFC3339_TEXT_MAX];
    char key[KEY_MAX_BYTES];
    char date[DATE_TEXT_MAX];
    char cell[RFC3339_TEXT_MAX + 3];
    rfc3339_format(f->at, f->offset_s, local);
    rfc3339_format_utc(f->at, at);
    /* Not known (a calendar that holds, a fiscal period that is missing): told when it is due. */
    bool known = f->about.state != ABOUT_UNKNOWN;
    bool named = known || form <= KEY_SECOND;
    key_format(form, f, key);
    business_date_format(f, date);
    (void)snprintf(cell, sizeof cell, "%.10s %.*s+00", at, (int)(strlen(at) - 12), at + 11);
    return table_cell_add(t, local) && table_cell_add(t, cell) && table_cell_add(t, cell) &&
           table_cell_add(t, named ? key : NULL) && table_cell_add(t, known ? date : NULL);
}

/* What is to be told. */
struct wanted {
    struct table *to;
    size_t count;
    const struct plan_candidates *used; /* preview_key_is_used */
};

/* Firings of a version from `f` on that are before an instant. False: out of memory. */
static bool firings_add(struct wanted w, const struct preview_version *v, struct firing f,
                        utc_us until, enum key_form form)
{
    while (f.found && f.at.us < until.us && table_rows(w.to) < w.count) {
        if (!preview_key_is_used(w.used, &f) && !firing_add(w.to, &f, form)) {
            return false;
        }
        f = rule_next_within(v->rule, f.at, v->bounds);
    }
    return true;
}

/* Why nothing comes after an instant: the end, the start, the calendar, or the rule itself. */
static void nothing_explain(const struct due_row *row, const struct preview_version *v,
                            utc_us after, struct error *ret_why)
{
    const struct rule_around around = {
        .bounds = v->bounds,
        .calendar = row->rule.calendar_name,
    };
    char why[NOTE_TEXT_MAX];
    if (rule_nothing_explain(v->rule, &around, after, why)) {
        (void)error_set(ret_why, STATUS_NOT_FOUND, "no firing is to come: %s", why);
    }
}

/* A firing that is due and has no occurrence yet is not "to come", and must not be forgotten. */
static void overdue_add(const struct session *s, const struct table *row, struct error *nothing)
{
    const char *cell = table_value(row, 0, "next_fire_at");
    char at[64];
    utc_us next;
    if (cell == NULL || !cell_instant_parse(cell, &next) || next.us > s->now.us) {
        return;
    }
    cell_instant_format(cell, at, sizeof at);
    size_t used = strlen(nothing->text);
    (void)snprintf(nothing->text + used, sizeof nothing->text - used,
                   "%sthe one of %s is due and not yet planned", used > 0 ? "; " : "", at);
}

static void pause_explain(const struct table *row, const char *schedule, struct error *ret_why)
{
    const char *since = table_value(row, 0, "paused_since_at");
    const char *reason = table_value(row, 0, "pause_reason");
    char at[64] = "";
    if (since != NULL) {
        cell_instant_format(since, at, sizeof at);
    }
    size_t whole = at[0] != '\0' ? strlen("2030-04-12T06:00:00") : 0; /* without the fraction */
    (void)error_set(
        ret_why, STATUS_NOT_FOUND,
        "no firing is to come: it is paused%s%.*s%s%s%s%s; reportctl resume %s lets it go on",
        whole > 0 ? " since " : "", (int)whole, at, whole > 0 ? "Z" : "",
        reason != NULL ? " (" : "", reason != NULL ? reason : "", reason != NULL ? ")" : "",
        schedule);
}

/* The version in force until the one that is announced begins, then that, as they are planned.
 * Returns: OK; INVALID (ret->problem); FATAL (out of memory); else as schedule_course_settle. */
static enum status course_list(struct schedule_course *c, struct wanted w, struct error *problem)
{
    const struct preview_version *base = c->base;
    const struct preview_version *next = c->announced;
    const struct preview_progress *g = &c->progress;
    if (base->rule != NULL && !base->withheld) {
        enum key_form form = g->has_form ? g->form : key_form_of_rule(base->rule);
        struct firing f =
            rule_next_within(base->rule, preview_after(g, c->session->now), base->bounds);
        if (!firings_add(w, base, f, next != NULL ? next->begins : UTC_UNBOUNDED, form)) {
            return STATUS_FATAL;
        }
    }
    if (next == NULL || next->withheld || table_rows(w.to) == w.count) {
        return STATUS_OK;
    }
    struct plan_switch where;
    enum status status = schedule_course_settle(c, next, &where, problem);
    if (status != STATUS_OK) {
        return status;
    }
    w.used = c->candidates;
    return firings_add(w, next, where.next, UTC_UNBOUNDED, where.form) ? STATUS_OK : STATUS_FATAL;
}

static void nothing_tell(struct schedule_course *c, struct firing_list *ret)
{
    size_t last = c->now.rows.count - 1;
    const struct preview_version *v = &c->now.view[last];
    if (v->paused) {
        pause_explain(c->facts, c->name, &ret->nothing);
    } else {
        utc_us after = {v->begins.us - 1};
        after = after.us > c->session->now.us ? after : c->session->now;
        nothing_explain(&c->now.row[last], v, after, &ret->nothing);
    }
    overdue_add(c->session, c->facts, &ret->nothing);
}

/* A rule that cannot be computed, and the leader's word for it: nothing fires, whatever else could
 * be computed. */
static const char *problem_of(const struct schedule_course *c)
{
    if (c->problem != NULL) {
        return c->problem;
    }
    for (size_t i = 0; i < c->now.rows.count; i++) {
        if (c->now.why[i].text[0] != '\0' && !c->now.view[i].paused) {
            return c->now.why[i].text;
        }
    }
    return NULL;
}

static enum exit_code list_fill(struct schedule_course *c, size_t count, struct firing_list *ret)
{
    const char *problem = problem_of(c);
    if (problem != NULL) {
        (void)error_set(&ret->problem, STATUS_INVALID, "%s", problem);
        return EXIT_DONE;
    }
    struct error why = {.text = ""};
    struct wanted w = {.to = ret->table, .count = count};
    enum status status = course_list(c, w, &why);
    if (status == STATUS_INVALID) {
        ret->problem = why;
    } else if (status == STATUS_FATAL) {
        return command_fail(c->session->in, EXIT_FAILED, "out of memory");
    } else if (status != STATUS_OK) {
        return session_fail(c->session, status, &why);
    } else if (table_rows(ret->table) == 0) {
        nothing_tell(c, ret);
    }
    return EXIT_DONE;
}

enum exit_code firing_list_make(struct session *s, const char *schedule, int64_t count,
                                struct firing_list *ret)
{
    struct schedule_course c;
    *ret = (struct firing_list){0};
    enum exit_code code = schedule_course_open(s, schedule, &c);
    if (code == EXIT_DONE) {
        (void)schedule_course_resume(&c);
        ret->table = table_new();
        code = ret->table != NULL && columns_make(ret->table)
                   ? list_fill(&c, (size_t)count, ret)
                   : command_fail(s->in, EXIT_FAILED, "out of memory");
    }
    if (code != EXIT_DONE) {
        table_free(ret->table);
        ret->table = NULL;
    }
    schedule_course_close(&c);
    return code;
}
