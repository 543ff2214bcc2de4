/* Where an edited schedule goes on: nothing due is passed over, and no key comes twice. */
#include "planner.h"

#include <string.h>

/* Two zones show dates that are at most this far apart. */
#define ZONES_APART_US ((int64_t)3 * SECONDS_A_DAY * MICROS_A_SECOND)
#define KEPT_MAX       4000 /* firings looked at: as many minutes as two zones can be apart */

static int64_t date_of(struct local_time t)
{
    return floor_divide(t.s, SECONDS_A_DAY);
}

static struct rule_bounds bounds_of(const struct plan_edit *e)
{
    return (struct rule_bounds){e->starts_at, e->ends_at};
}

static utc_us utc_shifted(utc_us t, int64_t us)
{
    return utc_is_finite(t) ? (utc_us){t.us + us} : t;
}

/* Before it there is no firing of the new rule for a date that the old one would still have fired
 * for: a calendar moves one by a closure, an offset by business days. */
static utc_us kept_from(const struct plan_edit *e)
{
    utc_us nominal = utc_from_seconds(e->next_nominal.s);
    utc_us base = nominal.us < e->effective_from.us ? nominal : e->effective_from;
    int64_t days = rule_is_of_periods(e->rule) ? 2 * BUSINESS_PERIOD_MAX_DAYS : 0;
    if (e->rule->calendar != NULL) {
        int32_t n = e->rule->business_day_offset;
        days += calendar_longest_closed(e->rule->calendar) + 31 + 2 * (int64_t)(n < 0 ? -n : n);
    }
    return (utc_us){base.us - ZONES_APART_US - days * SECONDS_A_DAY * MICROS_A_SECOND};
}

/* What is told apart by the new rule's keys: dates, or the last days of periods. */
static int64_t day_of(const struct rule *r, struct local_time nominal)
{
    struct plan_period period = plan_period_of(r, nominal);
    return period.known ? period.last : date_of(nominal);
}

struct plan_period plan_period_of(const struct rule *r, struct local_time nominal)
{
    struct plan_period period = {.known = false};
    if (rule_is_of_periods(r)) {
        struct firing_about about = rule_about(r, nominal);
        period.known = about.state == ABOUT_KNOWN;
        period.last = period.known ? about.last : 0;
    }
    return period;
}

/* The same of a firing of the version before, which may have had another business_date. */
static int64_t day_before(const struct plan_edit *e, struct local_time nominal,
                          struct plan_period about)
{
    if (!e->next_about.known || !rule_is_of_periods(e->rule)) {
        return day_of(e->rule, nominal);
    }
    return about.known ? about.last : INT64_MIN; /* of a time before its periods begin */
}

/* The first firing of the new rule for a date that the old one would still have fired for. */
static struct firing date_kept(const struct plan_edit *e)
{
    int64_t kept = day_before(e, e->next_nominal, e->next_about);
    struct firing f = rule_next_within(e->rule, kept_from(e), bounds_of(e));
    while (f.found && f.at.us < e->effective_from.us && day_of(e->rule, f.nominal) < kept) {
        f = rule_next_within(e->rule, f.at, bounds_of(e));
    }
    return f;
}

/* A holiday that has moved to a day which has had its run: dates of one day make one run. */
static bool joins_the_last(const struct rule *r, const struct firing *f)
{
    return r->calendar != NULL && r->business_day_offset == 0 && !r->run_all &&
           !calendar_is_business_day(r->calendar, date_of(f->nominal));
}

/* Dates from `f` on would have to come before what has run. Where only the calendar may be at fault
 * the next edit goes on behind them; another rule can still be taken back. */
static enum status passed_over_tell(const struct plan_edit *e, struct firing f,
                                    struct plan_switch *w, struct error *err)
{
    char first[KEY_MAX_BYTES];
    char last[KEY_MAX_BYTES];
    int count = 0;
    key_format(w->form, &f, first);
    for (; f.found && f.at.us <= e->last_fire_at.us; count++) {
        key_format(w->form, &f, last);
        f = rule_next_within(e->rule, f.at, bounds_of(e));
    }
    bool moves = e->rule->calendar != NULL;
    if (moves) {
        w->behind = f;
    }
    const char *rule = moves ? "the new rule or calendar" : "the new rule";
    const char *ways =
        moves ? "; to have them and go on: edit the schedule, then reportctl backfill" : "";
    return count == 1
               ? error_set(err, STATUS_INVALID,
                           "%s passes over %s, which was still to come; make a new schedule for "
                           "it, or make the edit after that date has fired%s",
                           rule, first, ways)
               : error_set(err, STATUS_INVALID,
                           "%s passes over %d dates from %s to %s, which were still to come; make "
                           "a new schedule for it, or make the edit after they have fired%s",
                           rule, count, first, last, ways);
}

static bool about_is_other(const struct plan_edit *e)
{
    return day_before(e, e->next_nominal, e->next_about) != day_of(e->rule, e->next_nominal);
}

/* Periods from `f` on would have to come before what has run: they are told as a gap. Returns: the
 * first firing behind them. */
static struct firing passed_over_note(const struct plan_edit *e, struct firing f,
                                      struct plan_switch *w)
{
    struct planned_gap *g = &w->passed;
    *g = (struct planned_gap){.from = f.at, .reason = GAP_PASSED_OVER};
    key_format(w->form, &f, g->from_key);
    for (; f.found && f.at.us <= e->last_fire_at.us; g->firings++) {
        g->to = f.at;
        key_format(w->form, &f, g->to_key);
        f = rule_next_within(e->rule, f.at, bounds_of(e));
    }
    return f;
}

/* Its time is past: it is due at once, unless it would have to come before what was planned. */
static enum status date_keep(const struct plan_edit *e, struct plan_switch *w, struct error *err)
{
    struct firing f = date_kept(e);
    if (!f.found || f.at.us >= e->effective_from.us) {
        return STATUS_OK;
    }
    if (f.at.us <= e->last_fire_at.us && e->has_last &&
        day_of(e->rule, f.nominal) <= day_before(e, e->last_nominal, e->last_about)) {
        return STATUS_OK; /* the date lies in a gap already */
    }
    if (f.at.us <= e->last_fire_at.us && about_is_other(e)) {
        f = passed_over_note(e, f, w);
        if (!f.found || f.at.us >= e->effective_from.us) {
            return STATUS_OK;
        }
    }
    if (f.at.us <= e->last_fire_at.us && joins_the_last(e->rule, &f)) {
        return STATUS_OK;
    }
    if (f.at.us <= e->last_fire_at.us) {
        return passed_over_tell(e, f, w, err);
    }
    w->switched_at = f.at;
    w->next = f;
    return STATUS_OK;
}

/* The same for finer keys, behind what has run: a firing that was still to come, and whose local
 * time an edit of the zone or of what becomes of gaps and overlaps has put into the past. */
static void time_keep(const struct plan_edit *e, struct plan_switch *w)
{
    utc_us from = kept_from(e);
    from = e->last_fire_at.us > from.us ? e->last_fire_at : from;
    struct firing f = rule_next_within(e->rule, from, bounds_of(e));
    for (int n = 0; n < KEPT_MAX && f.found && f.at.us < e->effective_from.us; n++) {
        if (f.nominal.s >= e->next_nominal.s) {
            w->switched_at = f.at;
            w->next = f;
            return;
        }
        f = rule_next_within(e->rule, f.at, bounds_of(e));
    }
}

/* Was the time that the rule names past when the edit was made, and one that the version before
 * would not have fired? Then only the jitter makes it look as if it were to come. */
static bool passed_before(const struct plan_edit *e, const struct plan_edit *edit,
                          const struct plan_switch *w)
{
    int64_t unit = key_form_is_of_days(w->form) ? SECONDS_A_DAY : 1;
    return w->next.found && rule_plain_instant(e->rule, &w->next).us < edit->effective_from.us &&
           floor_divide(w->next.nominal.s, unit) < floor_divide(e->next_nominal.s, unit);
}

/* A schedule that has not fired yet begins with the first time after it was written, whatever its
 * jitter has come to since. */
static void unborn_skip(const struct plan_edit *e, const struct plan_edit *edit,
                        struct plan_switch *w)
{
    while (passed_before(e, edit, w)) {
        w->switched_at = (utc_us){w->next.at.us + 1};
        w->next = rule_next_within(e->rule, w->next.at, bounds_of(e));
    }
}

/* The firings that the version before still owed, as far as the new rule has put them back. */
static enum status owed_find(const struct plan_edit *e, const struct plan_edit *edit,
                             struct plan_switch *w, struct error *err)
{
    if (utc_is_none(e->last_fire_at)) {
        unborn_skip(e, edit, w);
    }
    if (key_form_is_of_days(w->form)) {
        return date_keep(e, w, err);
    }
    if (e->rule->kind != RULE_INTERVAL) {
        time_keep(e, w);
    }
    return STATUS_OK;
}

static bool key_in_doubt(const struct plan_edit *e, const struct plan_switch *w,
                         const struct firing *f, char ret_key[KEY_MAX_BYTES])
{
    key_format(w->form, f, ret_key);
    return strcmp(ret_key, e->highest_key) <= 0;
}

/* A period is reported once, so it has one firing: who means a day of each writes that day. */
static enum status periods_check(const struct plan_edit *e, const struct plan_switch *w,
                                 struct error *err)
{
    struct firing both[2];
    char key[KEY_MAX_BYTES];
    char at[2][RFC3339_TEXT_MAX];
    if (!rule_is_of_periods(e->rule) || !w->next.found ||
        !rule_repeats_period(e->rule, bounds_of(e), &w->next, both)) {
        return STATUS_OK;
    }
    key_format(w->form, &both[0], key);
    rfc3339_format(both[0].at, both[0].offset_s, at[0]);
    rfc3339_format(both[1].at, both[1].offset_s, at[1]);
    return error_set(err, STATUS_INVALID,
                     "the rule fires twice for %s, at %s and at %s, and a period is reported once; "
                     "write a rule that fires once for each, or business_date = 'run_date'",
                     key, at[0], at[1]);
}

static enum status form_find(const struct plan_edit *e, struct plan_switch *w, struct error *err)
{
    enum key_form needed = key_form_of_rule(e->rule);
    if (e->has_form && !key_form_serves(e->form, needed)) {
        bool periods = e->form > KEY_SECOND || needed > KEY_SECOND;
        return error_set(err, STATUS_INVALID,
                         "this schedule's firings are known by their %s, and %s; make a new "
                         "schedule for it",
                         e->form == KEY_FISCAL ? "fiscal period" : key_form_name(e->form),
                         periods ? "by the new business_date they would not be"
                                 : "the new rule fires more often than that");
    }
    /* While it is paused from the start on, its author may still try things. */
    w->has_form = e->has_form || !e->paused;
    w->form = e->has_form ? e->form : needed;
    return STATUS_OK;
}

/* No firing is to come. Of a rule that has come to its end nobody needs to be told. */
static enum status nothing_told(const struct plan_edit *e, utc_us base, struct error *err)
{
    if (e->once && utc_is_none(e->last_fire_at)) {
        return error_set(err, STATUS_INVALID,
                         "nothing will fire: the time was past when the schedule was written, or "
                         "lies outside of starts_at and ends_at");
    }
    /* What never had a firing to come was not brought to its end by its author. */
    bool unborn = utc_is_none(e->last_fire_at) && !e->has_next;
    bool meant = e->starts_at.us == UTC_UNBOUNDED.us || e->ends_at.us == UTC_PAST.us;
    if (unborn && !meant && rule_next(e->rule, base).found) {
        return error_set(
            err, STATUS_INVALID,
            "nothing will fire: starts_at and ends_at leave none of the times that the "
            "rule names; change them or the rule");
    }
    struct rule plain = *e->rule;
    plain.calendar = NULL;
    if (e->rule->calendar != NULL && !rule_next(e->rule, base).found &&
        rule_next(&plain, base).found) {
        return error_set(err, STATUS_INVALID,
                         "nothing will fire: the calendar skips every date that the rule names; "
                         "change nonbusiness, the rule or the calendar");
    }
    return STATUS_OK;
}

enum status plan_switch_find(const struct plan_edit *edit, struct plan_switch *ret_switch,
                             struct error *err)
{
    struct plan_edit shifted = *edit;
    const struct plan_edit *e = &shifted;
    shifted.effective_from = utc_shifted(edit->effective_from, edit->shift_us);
    shifted.last_fire_at = utc_shifted(edit->last_fire_at, edit->shift_us);
    bool after_last = e->last_fire_at.us > e->effective_from.us;
    struct plan_switch w = {
        .switched_at = after_last ? e->last_fire_at : e->effective_from,
        .has_form = e->has_form,
        .form = e->form,
        .shifted = edit->shift_us != 0 && !utc_is_none(e->last_fire_at),
        .last_fire_at = e->last_fire_at,
    };
    *ret_switch = w;
    if (e->rule == NULL) {
        return STATUS_OK;
    }
    enum status s = form_find(e, &w, err);
    if (s != STATUS_OK) {
        return s;
    }
    /* A firing at effective_from is the new version's: the old one plans what lies before. */
    utc_us base = {e->effective_from.us - 1};
    base = e->last_fire_at.us > base.us ? e->last_fire_at : base;
    w.next = rule_next_within(e->rule, base, bounds_of(e));
    w.next.found = w.next.found || w.next.held; /* planned when it is due: see pass_run */
    if (e->has_next) {
        s = owed_find(e, edit, &w, err);
    }
    if (s == STATUS_OK) {
        s = periods_check(e, &w, err);
    }
    if (s == STATUS_OK && !w.next.found) {
        s = nothing_told(e, base, err);
    }
    if (s != STATUS_OK) {
        ret_switch->behind = w.behind;
        return s;
    }
    char key[KEY_MAX_BYTES];
    w.doubtful = w.next.found && !e->paused && key_in_doubt(e, &w, &w.next, key);
    *ret_switch = w;
    return STATUS_OK;
}

void plan_candidates_fill(const struct plan_edit *e, const struct plan_switch *w,
                          struct plan_candidates *ret_candidates)
{
    struct plan_candidates *c = ret_candidates;
    struct firing f = w->next;
    c->count = 0;
    while (f.found && c->count < PLAN_CANDIDATES_MAX && key_in_doubt(e, w, &f, c->keys[c->count])) {
        c->taken[c->count] = false;
        c->firings[c->count++] = f;
        f = rule_next_within(e->rule, f.at, bounds_of(e));
    }
}

static enum status key_repeats(const struct plan_edit *e, const struct plan_candidates *c,
                               struct error *err)
{
    size_t first = 0;
    size_t last = c->count;
    while (!c->taken[first]) {
        first++;
    }
    while (!c->taken[last - 1]) {
        last--;
    }
    if (e->once) {
        return error_set(err, STATUS_INVALID,
                         "it has fired under the key %s already; make a new schedule for the new "
                         "time",
                         c->keys[first]);
    }
    return error_set(err, STATUS_INVALID,
                     "the new rule would fire again under keys that exist, from %s to %s; make a "
                     "new schedule for it",
                     c->keys[first], c->keys[last - 1]);
}

enum status plan_candidates_settle(const struct plan_edit *e, const struct plan_candidates *c,
                                   struct plan_switch *w, struct error *err)
{
    size_t first_free = 0;
    bool any = false;
    for (size_t i = 0; i < c->count; i++) {
        any = any || c->taken[i];
    }
    while (first_free < c->count && c->taken[first_free]) {
        first_free++;
    }
    w->doubtful = false;
    if (!any || (first_free == 0 && key_form_is_of_days(w->form))) {
        return STATUS_OK;
    }
    struct firing next =
        first_free < c->count
            ? c->firings[first_free]
            : rule_next_within(e->rule, c->firings[first_free - 1].at, bounds_of(e));
    if (!key_form_is_of_days(w->form) || (e->once && !next.found)) {
        w->next = (struct firing){.found = false};
        return key_repeats(e, c, err);
    }
    /* These dates have their occurrence: the version begins behind them. */
    w->switched_at = (utc_us){c->firings[first_free - 1].at.us + 1};
    w->next = next;
    return STATUS_OK;
}
