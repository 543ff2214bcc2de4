#include "plan_trial.h"

#include "cell.h"
#include "rule_words.h"

#define LOCK_WAIT "1s" /* for the schedule's row, which somebody may be editing */

static enum exit_code statement_run(struct session *s, const char *sql)
{
    struct table *t = NULL;
    enum exit_code code = session_select(s, sql, 0, NULL, &t);
    table_free(t);
    return code;
}

/* The rule of the row as it stands in the transaction. */
static enum exit_code words_make(struct plan_trial *p, struct table **ret_words)
{
    int64_t days = command_int(p->s.in, "--days");
    const struct rule_words_about about = {
        .schedule = p->name,
        .shown_to = {p->s.now.us + days * SECONDS_A_DAY * MICROS_A_SECOND},
        .latest_only = true,
    };
    return rule_words_make(&p->s, &about, ret_words);
}

/* All that needs the database, in one transaction that leaves nothing. */
static enum exit_code edit_try(struct plan_trial *p)
{
    enum exit_code code = statement_run(&p->s, "BEGIN");
    if (code == EXIT_DONE) {
        code = statement_run(&p->s, "SET LOCAL lock_timeout = '" LOCK_WAIT "'");
    }
    if (code == EXIT_DONE) {
        code = schedule_course_open(&p->s, p->name, &p->course);
    }
    if (code == EXIT_DONE) {
        code = words_make(p, &p->words_before);
    }
    if (code == EXIT_DONE) {
        code = plan_edit_row_write(&p->s, p->name, &p->edit);
    }
    if (code == EXIT_DONE) {
        code = schedule_course_read(&p->course, &p->then);
    }
    if (code == EXIT_DONE) {
        code = session_select(&p->s, "SELECT paused_until FROM reports.v_schedule WHERE name = $1",
                              1, &p->name, &p->pause);
    }
    if (code == EXIT_DONE) {
        code = words_make(p, &p->words);
    }
    return code == EXIT_DONE ? statement_run(&p->s, "ROLLBACK") : code;
}

/* What a leader would refuse an edit for is the version's problem: then nothing fires. */
static enum exit_code problem_fail(struct plan_trial *p, const char *why)
{
    return command_fail(p->s.in, EXIT_USAGE,
                        "schedule \"%s\": the tables would take this edit, but nothing would fire "
                        "any more, for the leader would refuse it: %s",
                        p->name, why);
}

static enum exit_code switch_find(struct plan_trial *p)
{
    const struct schedule_versions *then = &p->then;
    struct error why = then->why[then->rows.count - 1];
    enum status status = p->next->rule == NULL
                             ? STATUS_INVALID
                             : schedule_course_settle(&p->course, p->next, &p->where, &why);
    if (status == STATUS_INVALID) {
        return problem_fail(p, why.text);
    }
    return status == STATUS_OK ? EXIT_DONE : session_fail(&p->s, status, &why);
}

/* A pause with an end is followed by the same version, not paused. It is taken in behind a version
 * that fires nothing. */
static enum exit_code resumption_find(struct plan_trial *p)
{
    const char *until = table_rows(p->pause) > 0 ? table_value(p->pause, 0, "paused_until") : NULL;
    const struct preview_version *in_force = p->course.base;
    struct error why = {.text = ""};
    utc_us at;
    if (!p->next->paused || until == NULL || !cell_instant_parse(until, &at)) {
        return EXIT_DONE;
    }
    p->resumed = *p->next;
    p->resumed.paused = p->resumed.withheld = false;
    p->resumed.begins = at;
    p->course.base = p->next;
    enum status status = schedule_course_settle(&p->course, &p->resumed, &p->resumed_at, &why);
    p->course.base = in_force;
    if (status == STATUS_INVALID) {
        return problem_fail(p, why.text);
    }
    return status == STATUS_OK ? EXIT_DONE : session_fail(&p->s, status, &why);
}

/* Without the edit: also a version that was announced before, or the end of a pause. */
static enum exit_code course_before(struct plan_trial *p, struct preview_course *ret)
{
    struct schedule_course *c = &p->course;
    struct error why = {.text = ""};
    enum status status = STATUS_OK;
    *ret = (struct preview_course){.base = c->base, .next = c->announced, .used = c->candidates};
    if (c->announced != NULL && c->announced->rule != NULL) {
        status = schedule_course_settle(c, c->announced, &ret->where, &why);
    }
    return status == STATUS_OK || status == STATUS_INVALID ? EXIT_DONE
                                                           : session_fail(&p->s, status, &why);
}

/* The firing of a period may move by its length and more. */
static int64_t margin_of(const struct preview_version *v)
{
    bool periods = v->rule != NULL && rule_is_of_periods(v->rule);
    return periods ? BUSINESS_PERIOD_MAX_DAYS * SECONDS_A_DAY * INT64_C(1000000)
                   : PREVIEW_MARGIN_US;
}

static enum exit_code lists_make(struct plan_trial *p)
{
    struct preview_course without;
    struct preview_course with = {.base = p->course.base,
                                  .next = p->next,
                                  .where = p->where,
                                  .used = p->course.candidates,
                                  .resumed = p->resumed.rule != NULL ? &p->resumed : NULL,
                                  .resumed_at = p->resumed_at};
    utc_us until = {p->until.us + margin_of(p->course.base) + margin_of(p->next)};
    /* First: the candidates are still the edit's. */
    bool made =
        preview_list_make(&with, &p->course.progress, p->s.now, until, &p->after) == STATUS_OK;
    enum exit_code code = course_before(p, &without);
    if (code != EXIT_DONE) {
        return code;
    }
    made = made &&
           preview_list_make(&without, &p->course.progress, p->s.now, until, &p->before) ==
               STATUS_OK &&
           preview_lists_pair(&p->before, &p->after) == STATUS_OK;
    if (!made) {
        return command_fail(p->s.in, EXIT_FAILED, "out of memory");
    }
    utc_us whole =
        p->before.whole_to.us < p->after.whole_to.us ? p->before.whole_to : p->after.whole_to;
    p->until = whole.us < p->until.us ? whole : p->until;
    return EXIT_DONE;
}

enum exit_code plan_trial_make(struct plan_trial *p, bool *ret_changes)
{
    enum exit_code code = edit_try(p);
    if (code == EXIT_DONE) {
        const struct due_rows *now = &p->course.now.rows;
        const struct due_rows *then = &p->then.rows;
        *ret_changes = now->rows[now->count - 1].version != then->rows[then->count - 1].version;
    }
    return code;
}

/* Where the zone's data cannot be read here there is no answer. */
static enum exit_code zones_check(struct plan_trial *p, const struct schedule_versions *v)
{
    for (size_t i = 0; i < v->rows.count; i++) {
        if (v->unreadable[i]) {
            return command_fail(p->s.in, EXIT_FAILED, "schedule \"%s\": %s", p->name,
                                v->why[i].text);
        }
    }
    return EXIT_DONE;
}

enum exit_code plan_trial_compare(struct plan_trial *p, int64_t days)
{
    p->next = &p->then.view[p->then.rows.count - 1];
    p->until = (utc_us){p->s.now.us + days * SECONDS_A_DAY * MICROS_A_SECOND};
    enum exit_code code = zones_check(p, &p->course.now);
    if (code == EXIT_DONE) {
        code = zones_check(p, &p->then);
    }
    if (code == EXIT_DONE) {
        p->base_resumes = schedule_course_resume(&p->course);
        code = resumption_find(p);
    }
    if (code == EXIT_DONE) {
        code = switch_find(p);
    }
    return code == EXIT_DONE ? lists_make(p) : code;
}

void plan_trial_close(struct plan_trial *p)
{
    table_free(p->pause);
    table_free(p->words_before);
    table_free(p->words);
    preview_list_free(&p->before);
    preview_list_free(&p->after);
    stored_dates_free(&p->then.rows.dates);
    schedule_course_close(&p->course);
}
