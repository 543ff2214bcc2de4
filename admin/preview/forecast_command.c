/* reportctl forecast: how much is due when, over all schedules. */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cell.h"
#include "forecast.h"
#include "known_names.h"
#include "schedule_course.h"

#define PAGE_SCHEDULES 2000
#define PAGE_ROWS      ((size_t)2 * PAGE_SCHEDULES) /* the version in force and one announced */
#define PEAKS_MAX      1000

struct forecast_run {
    struct session s;
    struct zone_set *zones;
    struct forecast forecast;
    struct due_rows rows;
    struct definition_more more[PAGE_ROWS];
    int64_t paused, problem, unreadable; /* schedules of which nothing is told */
    struct plan_candidates candidates;
    struct forecast_peak peaks[PEAKS_MAX];
    size_t peak_most;
    struct table *facts, *days, *queues, *minutes, *seconds, *all;
};

static enum exit_code memory_fail(struct forecast_run *r)
{
    return command_fail(r->s.in, EXIT_FAILED, "out of memory");
}

/* The row that a schedule begins with says what becomes of it now. */
static bool row_fires(struct forecast_run *r, size_t i, bool first, struct rule *rule)
{
    const struct due_row *row = &r->rows.rows[i];
    if (row->paused || row->ended) { /* one that is paused until an instant is counted among them */
        r->paused += first ? 1 : 0;
        return false;
    }
    if (r->more[i].problem) {
        r->problem += first ? 1 : 0;
        return false;
    }
    enum status status = stored_rule_parse(&row->rule, r->zones, rule, NULL);
    r->problem += status == STATUS_INVALID && first ? 1 : 0;
    r->unreadable += status != STATUS_OK && status != STATUS_INVALID && first ? 1 : 0;
    return status == STATUS_OK;
}

/* The instant after which an announced version fires, as it will be taken in. Occurrences that
 * there are today are not looked up: nothing of the past is. False: it fires nothing. */
static bool announced_find(struct forecast_run *r, const struct due_row *before,
                           const struct due_row *row, const struct rule *rule, utc_us *ret_after)
{
    struct rule old;
    struct preview_version base = {.rule = NULL};
    struct preview_version next = schedule_version_view(row, rule);
    struct preview_progress p = {.planned_to = r->s.now, .last_fire_at = row->last_fire_at};
    struct plan_switch where;
    p.has_form = key_form_parse(row->key_form, &p.form);
    if (before != NULL) {
        bool parsed = stored_rule_parse(&before->rule, r->zones, &old, NULL) == STATUS_OK;
        base = schedule_version_view(before, parsed ? &old : NULL);
        base.withheld = base.withheld || r->more[before - r->rows.rows].problem;
    }
    struct plan_edit edit = preview_edit_of(&base, &next, &p);
    enum status status = plan_switch_find(&edit, &where, NULL);
    if (status == STATUS_OK && where.doubtful) {
        plan_candidates_fill(&edit, &where, &r->candidates);
        preview_candidates_mark(&base, &next, &p, &r->candidates);
        status = plan_candidates_settle(&edit, &r->candidates, &where, NULL);
    }
    if (status == STATUS_OK && where.next.found) {
        *ret_after = (utc_us){where.next.at.us - 1};
    }
    return status == STATUS_OK && where.next.found;
}

/* A pause with an end: it goes on then as if that had been announced. */
static enum status resumed_add(struct forecast_run *r, size_t i, struct forecast_subject *subject)
{
    const struct due_row *row = &r->rows.rows[i];
    struct due_row resumed = *row;
    struct rule rule;
    if (!row->paused || row->ended || r->more[i].problem || utc_is_none(r->more[i].paused_until) ||
        utc_is_finite(subject->before)) {
        return STATUS_OK;
    }
    resumed.paused = false;
    resumed.effective_from = r->more[i].paused_until;
    if (stored_rule_parse(&row->rule, r->zones, &rule, NULL) != STATUS_OK ||
        !announced_find(r, row, &resumed, &rule, &subject->after)) {
        return STATUS_OK;
    }
    subject->rule = &rule;
    return forecast_add(&r->forecast, subject);
}

/* As preview_after. */
static utc_us after_of(const struct due_row *row, utc_us now)
{
    utc_us switched = {utc_is_none(row->switched_at) ? INT64_MIN : row->switched_at.us - 1};
    utc_us dealt = switched.us > row->last_fire_at.us ? switched : row->last_fire_at;
    return dealt.us > now.us ? dealt : now;
}

/* Firings of one row. */
static enum status row_add(struct forecast_run *r, size_t i)
{
    const struct due_row *row = &r->rows.rows[i];
    const struct due_row *before = i > 0 ? row - 1 : NULL;
    const struct due_row *behind = i + 1 < r->rows.count ? row + 1 : NULL;
    const char *queue = command_text(r->s.in, "--queue");
    bool again = before != NULL && strcmp(before->schedule, row->schedule) == 0;
    bool announced = behind != NULL && strcmp(behind->schedule, row->schedule) == 0;
    struct rule rule;
    if (queue != NULL && strcmp(queue, r->more[i].queue) != 0) {
        return STATUS_OK;
    }
    struct forecast_subject subject = {
        .schedule = row->schedule,
        .queue = r->more[i].queue,
        .rule = &rule,
        .bounds = {row->rule.starts_at, row->rule.ends_at},
        .after = after_of(row, r->s.now),
        .before = announced ? behind->effective_from : UTC_UNBOUNDED,
    };
    if (!row_fires(r, i, !again, &rule)) {
        return resumed_add(r, i, &subject);
    }
    if (row->effective_from.us > r->s.now.us &&
        !announced_find(r, again ? before : NULL, row, &rule, &subject.after)) {
        return STATUS_OK;
    }
    return forecast_add(&r->forecast, &subject);
}

static enum exit_code schedules_read(struct forecast_run *r)
{
    char after[NAME_MAX_BYTES] = "";
    struct definition_page page = {
        .after = after, .scope = command_text(r->s.in, "--scope"), .schedules = PAGE_SCHEDULES};
    do {
        struct error err = {.text = ""};
        enum status status =
            store_definitions(r->s.store, &page, r->s.deadline, &r->rows, r->more, &err);
        if (status != STATUS_OK) {
            return session_fail(&r->s, status, &err);
        }
        for (size_t i = 0; i < r->rows.count; i++) {
            if (row_add(r, i) != STATUS_OK) {
                return memory_fail(r);
            }
        }
        if (r->rows.count > 0) {
            memcpy(after, r->rows.rows[r->rows.count - 1].schedule, sizeof after);
        }
    } while (r->rows.count >= PAGE_SCHEDULES);
    return EXIT_DONE;
}

/* ---- what is printed ---- */

static bool int_add(struct table *t, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, value);
    return table_cell_add(t, text);
}

/* For CSV, which has one table. */
static bool all_add(struct forecast_run *r, const char *about, const char *name, int64_t firings,
                    int64_t schedules)
{
    return table_cell_add(r->all, about) && table_cell_add(r->all, name) &&
           int_add(r->all, firings) &&
           (schedules < 0 ? table_cell_add(r->all, NULL) : int_add(r->all, schedules));
}

static bool days_fill(struct forecast_run *r)
{
    const struct forecast *f = &r->forecast;
    for (size_t i = 0; i < f->days; i++) {
        char at[RFC3339_TEXT_MAX];
        rfc3339_format_utc(utc_from_seconds((f->first_day + (int64_t)i) * SECONDS_A_DAY), at);
        at[strlen("2030-04-12")] = '\0';
        if (!table_cell_add(r->days, at) || !int_add(r->days, f->day_firings[i]) ||
            !all_add(r, "day", at, f->day_firings[i], -1)) {
            return false;
        }
    }
    for (size_t i = 0; i < f->queue_count; i++) {
        const struct forecast_queue *q = &f->queues[i];
        if (!table_cell_add(r->queues, q->name) || !int_add(r->queues, q->firings) ||
            !int_add(r->queues, q->schedules) ||
            !all_add(r, "queue", q->name, q->firings, q->schedules)) {
            return false;
        }
    }
    return true;
}

static bool minutes_fill(struct forecast_run *r)
{
    size_t count = forecast_peaks(&r->forecast, 60, 1, r->peaks, r->peak_most);
    for (size_t i = 0; i < count; i++) {
        const struct forecast_peak *p = &r->peaks[i];
        char at[RFC3339_TEXT_MAX];
        rfc3339_format_utc(utc_from_seconds(p->at), at);
        if (!cell_instant_add(r->minutes, utc_from_seconds(p->at)) ||
            !int_add(r->minutes, p->firings) || !int_add(r->minutes, p->most) ||
            !table_cell_add(r->minutes, p->example) || !all_add(r, "minute", at, p->firings, -1)) {
            return false;
        }
    }
    return true;
}

static bool seconds_fill(struct forecast_run *r)
{
    size_t count = forecast_peaks(&r->forecast, 1, 2, r->peaks, r->peak_most);
    for (size_t i = 0; i < count; i++) {
        const struct forecast_peak *p = &r->peaks[i];
        char at[RFC3339_TEXT_MAX];
        rfc3339_format_utc(utc_from_seconds(p->at), at);
        if (!cell_instant_add(r->seconds, utc_from_seconds(p->at)) ||
            !int_add(r->seconds, p->firings) || !table_cell_add(r->seconds, p->example) ||
            !all_add(r, "second", at, p->firings, p->firings)) {
            return false;
        }
    }
    return true;
}

static bool facts_fill(struct forecast_run *r)
{
    const struct forecast *f = &r->forecast;
    struct table *t = r->facts;
    return cell_instant_add(t, f->from) && cell_instant_add(t, f->until) &&
           int_add(t, f->firings) && int_add(t, f->schedules) && int_add(t, r->paused) &&
           int_add(t, r->problem) && int_add(t, r->unreadable) && int_add(t, f->coarse_schedules) &&
           int_add(t, f->coarse_firings) && int_add(t, forecast_collisions(f));
}

static bool tables_make(struct forecast_run *r)
{
    static const struct column facts[] = {
        {.name = "after", .title = "FROM", .kind = COLUMN_INSTANT},
        {.name = "before", .title = "UNTIL", .kind = COLUMN_INSTANT},
        {.name = "firings", .kind = COLUMN_INT},
        {.name = "schedules", .title = "OF SCHEDULES", .kind = COLUMN_INT},
        {.name = "paused", .title = "PAUSED SCHEDULES", .kind = COLUMN_INT},
        {.name = "problem", .title = "WITH A PROBLEM", .kind = COLUMN_INT},
        {.name = "unreadable", .title = "ZONE UNREADABLE HERE", .kind = COLUMN_INT},
        {.name = "coarse_schedules", .title = "COUNTED BY DAYS", .kind = COLUMN_INT},
        {.name = "coarse_firings", .title = "THEIR FIRINGS", .kind = COLUMN_INT},
        {.name = "collisions", .title = "SHARED SECONDS", .kind = COLUMN_INT},
    };
    static const struct column days[] = {{.name = "day", .title = "DAY (UTC)", .kind = COLUMN_TEXT},
                                         {.name = "firings", .kind = COLUMN_INT}};
    static const struct column queues[] = {{.name = "queue", .kind = COLUMN_TEXT},
                                           {.name = "firings", .kind = COLUMN_INT},
                                           {.name = "schedules", .kind = COLUMN_INT}};
    static const struct column minutes[] = {
        {.name = "minute", .kind = COLUMN_INSTANT},
        {.name = "firings", .kind = COLUMN_INT},
        {.name = "most_in_a_second", .title = "IN ONE SECOND", .kind = COLUMN_INT},
        {.name = "example", .title = "SUCH AS", .kind = COLUMN_TEXT}};
    static const struct column seconds[] = {
        {.name = "second", .kind = COLUMN_INSTANT},
        {.name = "schedules", .kind = COLUMN_INT},
        {.name = "example", .title = "SUCH AS", .kind = COLUMN_TEXT}};
    static const struct column all[] = {{.name = "about", .kind = COLUMN_TEXT},
                                        {.name = "name", .kind = COLUMN_TEXT},
                                        {.name = "firings", .kind = COLUMN_INT},
                                        {.name = "schedules", .kind = COLUMN_INT}};
    r->facts = table_make(facts, sizeof facts / sizeof facts[0]);
    r->days = table_make(days, sizeof days / sizeof days[0]);
    r->queues = table_make(queues, sizeof queues / sizeof queues[0]);
    r->minutes = table_make(minutes, sizeof minutes / sizeof minutes[0]);
    r->seconds = table_make(seconds, sizeof seconds / sizeof seconds[0]);
    r->all = table_make(all, sizeof all / sizeof all[0]);
    return r->facts != NULL && r->days != NULL && r->queues != NULL && r->minutes != NULL &&
           r->seconds != NULL && r->all != NULL;
}

static enum exit_code forecast_print(struct forecast_run *r)
{
    r->peak_most = (size_t)command_int(r->s.in, "--limit");
    if (!tables_make(r) || !facts_fill(r) || !days_fill(r) || !minutes_fill(r) ||
        !seconds_fill(r)) {
        return memory_fail(r);
    }
    if (r->unreadable == 0) {
        table_hide(r->facts, "unreadable");
    }
    if (r->forecast.coarse_schedules == 0) {
        table_hide(r->facts, "coarse_schedules");
        table_hide(r->facts, "coarse_firings");
    }
    const struct section sections[] = {
        {.key = "forecast", .table = r->facts, .facts = true},
        {.key = "days", .title = "A DAY", .table = r->days},
        {.key = "queues", .title = "A QUEUE", .table = r->queues, .empty = "none"},
        {.key = "minutes", .title = "BUSIEST MINUTES", .table = r->minutes, .empty = "none"},
        {.key = "seconds",
         .title = "SECONDS THAT SCHEDULES SHARE",
         .table = r->seconds,
         .empty = "none"},
    };
    const struct section all = {.key = "all", .table = r->all};
    if (r->s.in->format == OUTPUT_CSV) {
        session_print(&r->s, &all, 1);
    } else {
        session_print(&r->s, sections, sizeof sections / sizeof sections[0]);
    }
    return EXIT_DONE;
}

static enum exit_code forecast_make(struct forecast_run *r)
{
    struct error err = {.text = ""};
    enum exit_code code = scope_name_check(&r->s, command_text(r->s.in, "--scope"));
    if (code == EXIT_DONE) {
        code = queue_name_check(&r->s, command_text(r->s.in, "--queue"));
    }
    if (code != EXIT_DONE) {
        return code;
    }
    r->rows.max = PAGE_ROWS;
    r->rows.rows = calloc(PAGE_ROWS, sizeof r->rows.rows[0]);
    if (r->rows.rows == NULL ||
        forecast_open(r->s.now, command_int(r->s.in, "--days"), &r->forecast) != STATUS_OK) {
        return memory_fail(r);
    }
    if (zone_set_open(NULL, &r->zones, &err) != STATUS_OK) {
        return command_fail(r->s.in, EXIT_FAILED, "%s", err.text);
    }
    code = schedules_read(r);
    return code == EXIT_DONE ? forecast_print(r) : code;
}

enum exit_code forecast_command(struct invocation *in)
{
    struct forecast_run *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return command_fail(in, EXIT_FAILED, "out of memory");
    }
    enum exit_code code = session_open(in, &r->s);
    if (code == EXIT_DONE) {
        code = forecast_make(r);
    }
    session_close(&r->s);
    struct table *tables[] = {r->facts, r->days, r->queues, r->minutes, r->seconds, r->all};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        table_free(tables[i]);
    }
    forecast_close(&r->forecast);
    stored_dates_free(&r->rows.dates);
    free(r->rows.rows);
    zone_set_close(r->zones);
    free(r);
    return code;
}
