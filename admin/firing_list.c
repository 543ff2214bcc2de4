#include "firing_list.h"

#include <stdio.h>
#include <string.h>

#include "cell.h"
#include "civil.h"
#include "key.h"
#include "rule.h"
#include "schedule_names.h"
#include "zone_file.h"

struct definition {
    struct rule_source source;
    enum key_form form; /* fixed at the first version; has_form: the leader has fixed it */
    bool has_form;
    struct rule_bounds bounds;
};

/* As the planner reads it: NULL and the infinities have their values in clock.h. */
static bool time_read(const struct table *t, const char *name, utc_us *ret)
{
    const char *cell = table_value(t, 0, name);
    if (cell == NULL) {
        *ret = UTC_NONE;
    } else if (strcmp(cell, "-infinity") == 0) {
        *ret = UTC_PAST;
    } else if (strcmp(cell, "infinity") == 0) {
        *ret = UTC_UNBOUNDED;
    } else {
        return cell_instant_parse(cell, ret);
    }
    return true;
}

/* `t` is borrowed by the result. */
static enum status definition_read(const struct table *t, struct definition *ret, struct error *err)
{
    struct definition d = {.source = {.kind = table_value(t, 0, "kind"),
                                      .text = table_value(t, 0, "rule"),
                                      .zone = table_value(t, 0, "time_zone")}};
    const char *form = table_value(t, 0, "key_form");
    d.has_form = form != NULL && key_form_parse(form, &d.form);
    if (!time_read(t, "starts_at", &d.bounds.starts_at) ||
        !time_read(t, "ends_at", &d.bounds.ends_at) || !time_read(t, "anchor", &d.source.anchor)) {
        return error_set(err, STATUS_INVALID,
                         "anchor, starts_at and ends_at must lie in the years 1 to 9999");
    }
    if (!dst_gap_policy_parse(table_value(t, 0, "dst_gap"), &d.source.gap) ||
        !dst_overlap_policy_parse(table_value(t, 0, "dst_overlap"), &d.source.overlap)) {
        return error_set(err, STATUS_INVALID, "its DST policy is not known to this version");
    }
    *ret = d;
    return STATUS_OK;
}

static bool columns_make(struct table *t)
{
    static const struct column columns[] = {
        {.name = "local", .kind = COLUMN_TEXT},
        {.name = "fire_at", .kind = COLUMN_INSTANT},
        {.name = "due", .kind = COLUMN_INSTANT, .show = SHOW_AGE_PEOPLE},
        {.name = "occurrence_key", .kind = COLUMN_TEXT},
    };
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
        if (!table_column_add(t, &columns[i])) {
            return false;
        }
    }
    return true;
}

/* The cells of one firing, in the canonical forms of table.h. */
static bool firing_add(struct table *t, const struct firing *f, enum key_form form)
{
    char local[RFC3339_TEXT_MAX];
    char at[RFC3339_TEXT_MAX];
    char key[KEY_MAX_BYTES];
    char cell[RFC3339_TEXT_MAX + 3];
    rfc3339_format(f->at, f->offset_s, local);
    rfc3339_format_utc(f->at, at);
    key_format(form, f, key);
    (void)snprintf(cell, sizeof cell, "%.10s %.*s+00", at, (int)(strlen(at) - 12), at + 11);
    return table_cell_add(t, local) && table_cell_add(t, cell) && table_cell_add(t, cell) &&
           table_cell_add(t, key);
}

static enum status firings_compute(const struct definition *d, const struct rule *rule,
                                   utc_us after, int64_t count, struct table *t)
{
    enum key_form form = d->has_form ? d->form : key_form_of_rule(rule);
    for (int64_t i = 0; i < count; i++) {
        struct firing f = rule_next_within(rule, after, d->bounds);
        if (!f.found) {
            return STATUS_OK;
        }
        if (!firing_add(t, &f, form)) {
            return STATUS_FATAL;
        }
        after = f.at;
    }
    return STATUS_OK;
}

/* Why nothing comes after an instant: the end, the start, or the rule itself. */
static void nothing_explain(const struct definition *d, const struct rule *rule, utc_us after,
                            struct error *ret_why)
{
    const struct rule_bounds open = {.starts_at = UTC_NONE, .ends_at = UTC_NONE};
    char at[RFC3339_TEXT_MAX];
    bool once = strcmp(d->source.kind, "once") == 0;
    if (rule_next_within(rule, after, open).found) {
        bool starts =
            utc_is_none(d->bounds.ends_at) || d->bounds.starts_at.us >= d->bounds.ends_at.us;
        utc_us bound = starts ? d->bounds.starts_at : d->bounds.ends_at;
        if (utc_is_finite(bound)) {
            rfc3339_format_utc(bound, at);
        } else {
            (void)snprintf(at, sizeof at, bound.us > 0 ? "infinity" : "-infinity");
        }
        bool past = bound.us <= after.us;
        (void)error_set(ret_why, STATUS_NOT_FOUND, "no firing is to come: it %s (%s %s)",
                        starts ? "never starts"
                        : past ? "has ended"
                               : "ends before the next one",
                        starts ? "starts_at" : "ends_at", at);
    } else if (once) {
        (void)error_set(ret_why, STATUS_NOT_FOUND,
                        "no firing is to come: it fires once, at %s (%s), which is past",
                        d->source.text, d->source.zone);
    } else {
        (void)error_set(ret_why, STATUS_NOT_FOUND,
                        "no firing is to come: its rule names no further time");
    }
}

static enum status rule_compute(const struct definition *d, utc_us after, int64_t count,
                                struct firing_list *ret)
{
    struct zone_set *zones = NULL;
    struct rule rule;
    enum status status = zone_set_open(NULL, &zones, &ret->problem);
    if (status == STATUS_OK) {
        status = rule_parse(&d->source, zones, &rule, &ret->problem);
    }
    if (status == STATUS_OK) {
        status = firings_compute(d, &rule, after, count, ret->table);
    }
    if (status == STATUS_OK && table_rows(ret->table) == 0) {
        nothing_explain(d, &rule, after, &ret->nothing);
    }
    zone_set_close(zones);
    return status;
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

static enum exit_code compute(struct session *s, const struct table *row, int64_t count,
                              const char *schedule, struct firing_list *ret)
{
    struct definition d;
    const char *problem = table_value(row, 0, "problem");
    const char *paused = table_value(row, 0, "paused");
    enum status status = definition_read(row, &d, &ret->problem);
    if (status == STATUS_OK && problem != NULL) {
        /* The leader's word for the rule as it stands: nothing fires, whatever could be computed.
         */
        status = error_set(&ret->problem, STATUS_INVALID, "%s", problem);
    }
    if (status == STATUS_OK && strcmp(paused, "t") == 0) {
        pause_explain(row, schedule, &ret->nothing);
    } else if (status == STATUS_OK) {
        status = rule_compute(&d, s->now, count, ret);
    }
    if (status == STATUS_FATAL) {
        return command_fail(s->in, EXIT_FAILED, "out of memory");
    }
    if (status == STATUS_OK && table_rows(ret->table) == 0) {
        overdue_add(s, row, &ret->nothing);
    }
    return EXIT_DONE;
}

enum exit_code firing_list_make(struct session *s, const char *schedule, int64_t count,
                                struct firing_list *ret)
{
    static const char sql[] =
        "SELECT s.kind, s.rule, s.time_zone, s.anchor, s.starts_at, s.ends_at, s.dst_gap,"
        " s.dst_overlap, v.paused, v.paused_since_at, v.pause_reason, p.next_fire_at, p.key_form,"
        " CASE WHEN NOT EXISTS (SELECT FROM reports.schedule_change c"
        " WHERE c.scope = s.scope AND c.schedule = s.name) THEN p.problem END AS problem"
        " FROM reports.schedule s JOIN reports.v_schedule v ON v.name = s.name"
        " LEFT JOIN reports.schedule_progress p ON p.schedule = s.name WHERE s.name = $1";
    const char *values[] = {schedule};
    struct table *row = NULL;
    *ret = (struct firing_list){0};
    enum exit_code code = session_select(s, sql, 1, values, &row);
    if (code == EXIT_DONE && table_rows(row) == 0) {
        code = schedule_name_fail(s, schedule);
    } else if (code == EXIT_DONE) {
        ret->table = table_new();
        code = ret->table != NULL && columns_make(ret->table)
                   ? compute(s, row, count, schedule, ret)
                   : command_fail(s->in, EXIT_FAILED, "out of memory");
    }
    if (code != EXIT_DONE) {
        table_free(ret->table);
        ret->table = NULL;
    }
    table_free(row);
    return code;
}
