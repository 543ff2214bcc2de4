#include "schedule_course.h"

#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "schedule_names.h"

static enum exit_code facts_read(struct schedule_course *c)
{
    static const char sql[] =
        "SELECT p.version, p.problem, p.last_nominal, h.occurrence_key AS highest_key,"
        " p.next_fire_at, p.next_nominal, v.paused_since_at, v.pause_reason, v.paused_until"
        " FROM "
        "reports.v_schedule v"
        " LEFT JOIN reports.schedule_progress p ON p.schedule = v.name"
        " LEFT JOIN LATERAL (SELECT o.occurrence_key FROM reports.occurrence o WHERE o.schedule = "
        "v.name AND o.cause <> 'manual' ORDER BY o.occurrence_key DESC LIMIT 1) h ON true"
        " WHERE v.name = $1";
    const char *values[] = {c->name};
    enum exit_code code = session_select(c->session, sql, 1, values, &c->facts);
    if (code == EXIT_DONE && table_rows(c->facts) == 0) {
        code = schedule_name_fail(c->session, c->name);
    }
    return code;
}

struct preview_version schedule_version_view(const struct due_row *row, const struct rule *rule)
{
    return (struct preview_version){
        .rule = row->ended ? NULL : rule,
        .jitter_us = row->ended ? 0 : row->rule.jitter_us,
        .bounds = {row->rule.starts_at, row->rule.ends_at},
        .begins = row->effective_from,
        .once = strcmp(row->rule.kind, "once") == 0,
        .paused = row->paused,
        .withheld = row->paused,
    };
}

static void version_parse(struct schedule_course *c, struct schedule_versions *v, size_t i)
{
    const struct due_row *row = &v->row[i];
    enum status status = stored_rule_parse(&row->rule, c->zones, &v->rule[i], &v->why[i]);
    v->unreadable[i] = status != STATUS_OK && status != STATUS_INVALID;
    v->view[i] = schedule_version_view(row, status == STATUS_OK ? &v->rule[i] : NULL);
}

enum exit_code schedule_course_read(struct schedule_course *c, struct schedule_versions *ret)
{
    struct error err = {.text = ""};
    struct session *s = c->session;
    ret->rows.rows = ret->row;
    ret->rows.max = 2;
    enum status status = store_definition(s->store, c->name, s->deadline, &ret->rows, &err);
    if (status != STATUS_OK) {
        return session_fail(s, status, &err);
    }
    for (size_t i = 0; i < ret->rows.count; i++) {
        version_parse(c, ret, i);
    }
    return ret->rows.count > 0 ? EXIT_DONE : schedule_name_fail(s, c->name);
}

static void progress_set(struct schedule_course *c)
{
    const struct due_row *row = &c->now.row[0]; /* the same in all: it is the schedule's */
    const char *nominal = table_value(c->facts, 0, "last_nominal");
    const char *key = table_value(c->facts, 0, "highest_key");
    struct preview_progress *g = &c->progress;
    g->has_form = key_form_parse(row->key_form, &g->form);
    g->last_fire_at = row->last_fire_at;
    utc_us as_utc;
    char cell[64];
    if (nominal != NULL) {
        (void)snprintf(cell, sizeof cell, "%.40s+00", nominal);
        g->has_last = cell_instant_parse(cell, &as_utc);
        g->last_nominal = (struct local_time){g->has_last ? utc_seconds(as_utc) : 0};
    }
    (void)snprintf(g->highest_key, sizeof g->highest_key, "%s", key != NULL ? key : "");
    g->planned_to = g->last_fire_at;
    utc_us begins = {(utc_is_none(row->switched_at) ? c->base->begins : row->switched_at).us - 1};
    if (utc_is_none(row->switched_at)) {
        begins.us += c->base->jitter_us;
    }
    if (begins.us > g->planned_to.us) {
        g->planned_to = begins;
    }
}

static void versions_set(struct schedule_course *c)
{
    struct schedule_versions *now = &c->now;
    size_t last = now->rows.count - 1;
    const char *problem = table_value(c->facts, 0, "problem");
    const char *version = table_value(c->facts, 0, "version");
    bool in_force = now->row[0].effective_from.us <= c->session->now.us;
    c->base = in_force ? &now->view[0] : &c->none;
    c->announced = c->base == &now->view[last] ? NULL : &now->view[last];
    if (in_force && problem != NULL && strtol(version, NULL, 10) == now->row[0].version) {
        now->view[0].withheld = true;
        c->problem = problem;
        if (table_value(c->facts, 0, "next_nominal") == NULL) {
            now->view[0].rule = NULL; /* it was never planned: no firing of it is passed over */
        }
    }
}

enum exit_code schedule_course_open(struct session *s, const char *schedule,
                                    struct schedule_course *ret)
{
    struct error err = {.text = ""};
    struct schedule_course *c = ret;
    memset(c, 0, sizeof *c);
    c->session = s;
    c->name = schedule;
    c->candidates = calloc(1, sizeof *c->candidates);
    if (c->candidates == NULL) {
        return command_fail(s->in, EXIT_FAILED, "out of memory");
    }
    if (zone_set_open(NULL, &c->zones, &err) != STATUS_OK) {
        return command_fail(s->in, EXIT_FAILED, "%s", err.text);
    }
    enum exit_code code = facts_read(c);
    if (code == EXIT_DONE) {
        code = schedule_course_read(c, &c->now);
    }
    if (code == EXIT_DONE) {
        versions_set(c);
        progress_set(c);
    }
    return code;
}

bool schedule_course_resume(struct schedule_course *c)
{
    struct schedule_versions *now = &c->now;
    const char *until = table_value(c->facts, 0, "paused_until");
    const size_t last = now->rows.count - 1;
    utc_us at;
    if (last > 0 || !now->row[0].paused || until == NULL || !cell_instant_parse(until, &at)) {
        return false;
    }
    now->row[1] = now->row[0];
    now->row[1].version++;
    now->row[1].paused = false;
    now->row[1].effective_from = at;
    now->rows.count = 2;
    version_parse(c, now, 1);
    versions_set(c);
    return true;
}

void schedule_course_close(struct schedule_course *c)
{
    table_free(c->facts);
    stored_dates_free(&c->now.rows.dates);
    zone_set_close(c->zones);
    free(c->candidates);
}

enum status schedule_course_settle(struct schedule_course *c, const struct preview_version *next,
                                   struct plan_switch *ret_switch, struct error *err)
{
    struct plan_edit edit = preview_edit_of(c->base, next, &c->progress);
    c->candidates->count = 0;
    enum status status = plan_switch_find(&edit, ret_switch, err);
    if (status != STATUS_OK || !ret_switch->doubtful) {
        return status;
    }
    plan_candidates_fill(&edit, ret_switch, c->candidates);
    preview_candidates_mark(c->base, next, &c->progress, c->candidates);
    status = store_keys_used(c->session->store, c->name, c->session->deadline, c->candidates, err);
    if (status != STATUS_OK) {
        return status == STATUS_INVALID ? STATUS_CORRUPT : status; /* no fault of the edit */
    }
    return plan_candidates_settle(&edit, c->candidates, ret_switch, err);
}
