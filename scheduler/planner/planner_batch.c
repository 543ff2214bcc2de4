#include "planner_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "firing_move.h"

#define GAPS_MAX ((size_t)2 * PLAN_SCHEDULES_MAX + PLAN_GAPS_A_SCHEDULE)

struct plan_batch *plan_batch_new(void)
{
    struct plan_batch *b = calloc(1, sizeof *b);
    if (b == NULL) {
        return NULL;
    }
    b->sink.firing_max = PLAN_FIRINGS_MAX;
    b->sink.gap_max = GAPS_MAX;
    b->sink.firings = calloc(b->sink.firing_max, sizeof b->sink.firings[0]);
    b->sink.gaps = calloc(b->sink.gap_max, sizeof b->sink.gaps[0]);
    b->job_ids = calloc(b->sink.firing_max, sizeof b->job_ids[0]);
    if (b->sink.firings == NULL || b->sink.gaps == NULL || b->job_ids == NULL) {
        plan_batch_free(b);
        return NULL;
    }
    return b;
}

void plan_batch_free(struct plan_batch *b)
{
    if (b != NULL) {
        free(b->sink.firings);
        free(b->sink.gaps);
        free(b->job_ids);
        free(b);
    }
}

void plan_batch_clear(struct plan_batch *b)
{
    b->count = 0;
    b->work = 0;
    b->sink.firing_count = 0;
    b->sink.gap_count = 0;
}

static void calendar_drop(struct stored_calendar **c)
{
    struct stored_calendar *gone = *c;
    *c = gone->next;
    calendar_free(gone->calendar);
    free(gone);
}

/* Older versions, which no row borrows any more. */
static void calendars_sweep(struct stored_dates *d)
{
    for (struct stored_calendar *c = d->calendars; c != NULL; c = c->next) {
        struct stored_calendar **older = &c->next;
        while (*older != NULL) {
            if (strcmp((*older)->name, c->name) == 0) {
                calendar_drop(older);
            } else {
                older = &(*older)->next;
            }
        }
    }
}

static void fiscals_drop(struct stored_dates *d)
{
    while (d->fiscals != NULL) {
        struct stored_fiscal *gone = d->fiscals;
        d->fiscals = gone->next;
        free(gone);
    }
}

void stored_dates_free(struct stored_dates *d)
{
    free(d->times);
    while (d->calendars != NULL) {
        calendar_drop(&d->calendars);
    }
    fiscals_drop(d);
    *d = (struct stored_dates){0};
}

bool stored_calendar_add(struct stored_dates *d, const char *name, int64_t version,
                         struct calendar *calendar)
{
    struct stored_calendar *c = calloc(1, sizeof *c);
    if (c == NULL) {
        calendar_free(calendar);
        return false;
    }
    (void)snprintf(c->name, sizeof c->name, "%s", name);
    c->version = version;
    c->calendar = calendar;
    c->next = d->calendars;
    d->calendars = c;
    return true;
}

const struct calendar *stored_calendar_find(const struct stored_dates *d, const char *name,
                                            int64_t version)
{
    for (const struct stored_calendar *c = d->calendars; c != NULL; c = c->next) {
        if (strcmp(c->name, name) == 0 && c->version >= version) {
            return c->calendar;
        }
    }
    return NULL;
}

bool stored_dates_clear(struct stored_dates *d, size_t most)
{
    d->count = 0;
    calendars_sweep(d);
    fiscals_drop(d);
    if (most > d->max) {
        struct local_time *times = realloc(d->times, most * sizeof times[0]);
        if (times == NULL) {
            return false;
        }
        d->times = times;
        d->max = most;
    }
    return true;
}

void stored_dates_add(struct stored_dates *d, const char *text, const struct local_time **ret_times,
                      size_t *ret_count, bool *out_of_range)
{
    *ret_times = NULL;
    *ret_count = 0;
    if (text[0] == '\0') {
        return;
    }
    struct local_time *times = d->times + d->count;
    if (local_times_parse(text, times, d->max - d->count, ret_count, NULL) == STATUS_OK) {
        *ret_times = times;
        d->count += *ret_count;
    } else {
        *out_of_range = true;
    }
}

struct stored_fiscal *stored_fiscal_add(struct stored_dates *d, const char *name, size_t most)
{
    struct stored_fiscal *f = calloc(1, sizeof *f + most * sizeof f->list[0]);
    if (f == NULL) {
        return NULL;
    }
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    f->periods.list = f->list;
    f->next = d->fiscals;
    d->fiscals = f;
    return f;
}

const struct fiscal_periods *stored_fiscal_find(const struct stored_dates *d, const char *name)
{
    for (const struct stored_fiscal *f = d->fiscals; f != NULL; f = f->next) {
        if (strcmp(f->name, name) == 0) {
            return &f->periods;
        }
    }
    return NULL;
}

void stored_rule_std(const struct stored_rule *stored, char ret_text[PLAN_RULE_MAX])
{
    char text[CRON_TEXT_MAX];
    struct rule_source source = {.text = stored->text, .dialect = stored->dialect};
    bool converted = stored->dialect[0] != '\0' && strcmp(stored->dialect, "std") != 0 &&
                     rule_std_text(&source, text, NULL) == STATUS_OK;
    (void)snprintf(ret_text, PLAN_RULE_MAX, "%s", converted ? text : "");
}

/* What is about business days. */
static enum status stored_calendar_parse(const struct stored_rule *stored,
                                         struct rule_source *source, struct error *err)
{
    if (stored->calendar_name[0] != '\0' && stored->calendar == NULL) {
        return error_set(err, STATUS_INVALID,
                         "calendar %s is missing or has no parts; reportctl calendar check %s says "
                         "what is wrong with it",
                         stored->calendar_name, stored->calendar_name);
    }
    source->calendar = stored->calendar;
    source->business_day_offset = stored->business_day_offset;
    source->run_all = strcmp(stored->roll_collision, "run_all") == 0;
    return stored->nonbusiness[0] == '\0'
               ? STATUS_OK
               : roll_convention_parse(stored->nonbusiness, &source->nonbusiness, err);
}

enum status stored_rule_parse(const struct stored_rule *stored, struct zone_set *zones,
                              struct rule *ret_rule, struct error *err)
{
    if (stored->out_of_range) {
        return error_set(err, STATUS_INVALID,
                         "anchor, starts_at, ends_at, exdates and rdates must lie in the years 1 "
                         "to 9999");
    }
    struct rule_source source = {
        .kind = stored->kind,
        .text = stored->text,
        .dialect = stored->dialect[0] != '\0' ? stored->dialect : NULL,
        .zone = stored->time_zone,
        .anchor = stored->anchor,
        .has_start = stored->has_start,
        .start = stored->start,
        .exdates = stored->exdates,
        .exdate_count = stored->exdate_count,
        .rdates = stored->rdates,
        .rdate_count = stored->rdate_count,
        .jitter_us = stored->jitter_us,
        .business_date = stored->business_date,
        .periods = stored->periods,
    };
    if ((stored->dst_gap[0] != '\0' && !dst_gap_policy_parse(stored->dst_gap, &source.gap)) ||
        (stored->dst_overlap[0] != '\0' &&
         !dst_overlap_policy_parse(stored->dst_overlap, &source.overlap))) {
        return error_set(err, STATUS_INVALID,
                         "dst_gap %s or dst_overlap %s is not known to this version",
                         stored->dst_gap, stored->dst_overlap);
    }
    enum status s = stored_calendar_parse(stored, &source, err);
    if (s == STATUS_OK) {
        s = rule_parse(&source, zones, ret_rule, err);
    }
    /* A zone that the installed list does not know is the schedule's fault. One that is listed but
     * missing or damaged is this replica's: another may plan it, so it never becomes a problem. */
    return s == STATUS_NOT_FOUND ? STATUS_CORRUPT : s;
}

static enum status subject_fill(const struct due_row *row, const struct rule *rule,
                                struct plan_bounds bounds, struct plan_subject *ret_subject,
                                struct error *err)
{
    struct plan_subject s = {
        .rule = rule,
        .last_fire_at = row->last_fire_at,
        .switched_at = row->switched_at,
        .starts_at = row->rule.starts_at,
        .ends_at = row->rule.ends_at,
        .misfire_max = row->misfire_max,
        .misfire_age_us = row->misfire_age_us,
        .misfire_grace_us = row->misfire_grace_us,
        .effective_from = row->effective_from,
        .until = bounds.until,
        .later = bounds.later,
        .withheld = bounds.withheld,
        .withheld_reason = bounds.reason,
        .work_max = PLANNER_WORK_MAX,
    };
    s.form = key_form_of_rule(rule);
    if (row->key_form[0] != '\0' && !key_form_parse(row->key_form, &s.form)) {
        return error_set(err, STATUS_INVALID, "unknown key form \"%s\"", row->key_form);
    }
    if (!key_form_serves(s.form, key_form_of_rule(rule))) {
        return error_set(err, STATUS_INVALID,
                         "the rule needs other keys than the schedule's, which name a %s",
                         row->key_form);
    }
    if (!misfire_parse(row->misfire, &s.misfire)) {
        return error_set(err, STATUS_INVALID, "unknown misfire policy \"%s\"", row->misfire);
    }
    *ret_subject = s;
    return STATUS_OK;
}

enum zone_standing zone_standing_of(const struct due_row *row, struct zone_set *zones)
{
    const char *digest = zone_set_digest(zones, row->rule.time_zone);
    if (row->zone_digest[0] == '\0' || digest[0] == '\0' || strcmp(row->zone_digest, digest) == 0) {
        return ZONE_SAME;
    }
    return tzdata_is_newer(row->tzdata, zone_set_version(zones)) ? ZONE_STAYS : ZONE_MOVES;
}

/* What newer time zone data computed is planned as it stands. */
static void stored_use(const struct due_row *row, struct zone_set *zones, struct plan_subject *s)
{
    if (!row->next.found || zone_standing_of(row, zones) != ZONE_STAYS) {
        return;
    }
    struct rule_bounds bounds = {s->starts_at, s->ends_at};
    struct firing here = firing_move(s->rule, bounds, &row->next);
    s->stored = row->next;
    s->stored.utc_in_key = s->rule->kind == RULE_INTERVAL;
    s->stored.offset_in_key = here.found && here.offset_in_key;
    s->stored.about = rule_about(s->rule, row->next.nominal);
}

enum status plan_batch_add(struct plan_batch *b, const struct due_row *row, utc_us now,
                           struct plan_bounds bounds, struct zone_set *zones, struct error *err)
{
    /* A schedule gets its whole bound or waits for the next batch. */
    if (b->count == PLAN_SCHEDULES_MAX || b->work + PLANNER_WORK_MAX > PLAN_BATCH_WORK_MAX) {
        return error_set(err, STATUS_FULL, "the batch is full");
    }
    struct rule rule;
    struct plan_subject subject;
    struct plan_entry e = {
        .version = row->version,
        .step = row->step,
        .withheld = bounds.withheld,
        .firing_begin = b->sink.firing_count,
        .gap_begin = b->sink.gap_count,
    };
    enum status s = stored_rule_parse(&row->rule, zones, &rule, err);
    if (s == STATUS_OK) {
        s = subject_fill(row, &rule, bounds, &subject, err);
    }
    if (s == STATUS_OK) {
        stored_use(row, zones, &subject);
        memcpy(e.zone_digest, zone_set_digest(zones, row->rule.time_zone), sizeof e.zone_digest);
        s = plan_schedule(&subject, now, b->count, &b->window, &b->sink, &e.result, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    memcpy(e.schedule, row->schedule, sizeof e.schedule);
    e.firing_end = b->sink.firing_count;
    e.gap_end = b->sink.gap_count;
    for (size_t i = e.firing_begin; i < e.firing_end; i++) {
        uuid_time_ordered(now, b->job_ids[i]); /* the database's time: no local clock (I9) */
    }
    b->work += e.result.work;
    b->entries[b->count++] = e;
    return STATUS_OK;
}

struct plan_later plan_later_add_row(const struct due_row *row, utc_us now, utc_us until,
                                     struct zone_set *zones, struct plan_later newer)
{
    struct rule rule;
    struct plan_subject subject;
    struct plan_bounds bounds = {.until = until, .withheld = row->paused || row->ended};
    enum status s = stored_rule_parse(&row->rule, zones, &rule, NULL);
    if (s == STATUS_OK) {
        s = subject_fill(row, &rule, bounds, &subject, NULL);
    }
    return s == STATUS_OK ? plan_later_add(&subject, now, newer) : newer;
}
