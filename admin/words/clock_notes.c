#include "clock_notes.h"

#include <stdio.h>

#include "nominal.h"
#include "rrule_inside.h"
#include "value_set.h"

/* "02:30" or "02:30:15" */
struct clock_text {
    char text[16];
};

static struct clock_text clock_text(int64_t local)
{
    struct clock_text t;
    int second = (int)(local - floor_divide(local, SECONDS_A_DAY) * SECONDS_A_DAY);
    int n = snprintf(t.text, sizeof t.text, "%02d:%02d", second / 3600 % 24, second / 60 % 60);
    if (second % 60 != 0) {
        (void)snprintf(t.text + n, sizeof t.text - (size_t)n, ":%02d", second % 60);
    }
    return t;
}

/* A rule, and what becomes of its times. */
struct subject {
    const struct rule *rule;
    struct rule_bounds bounds;
    enum dst_gap_policy gap;
    enum dst_overlap_policy overlap;
};

/* One change of the clock, and the first and the last nominal time that it skips or repeats. */
struct affected {
    struct zone_change change;
    int64_t first, last;
};

/* ---- which times a change touches ---- */

static bool recurrence_from(const struct rrule *r, int64_t from, int64_t *ret_time)
{
    struct rrule_search s = rrule_search_from(r, from);
    int64_t kept = INT64_MAX;
    int64_t added = INT64_MAX;
    bool keeps = rrule_kept_from(&s, from, &kept);
    bool adds = rrule_added_from(&s, from, &added);
    *ret_time = kept < added ? kept : added;
    return keeps || adds;
}

/* The first time at or after `from` that the rule names, on a day that its calendar leaves in. */
static bool nominal_from(const struct rule *r, int64_t from, int64_t below, int64_t *ret_time)
{
    while (from < below) {
        struct local_time t = {0};
        bool there = r->kind == RULE_CRON
                         ? cron_nominal_from(&r->cron, (struct local_time){from}, &t)
                         : recurrence_from(&r->rrule, from, &t.s);
        int64_t day = floor_divide(t.s, SECONDS_A_DAY);
        if (!there || t.s >= below) {
            return false;
        }
        if (r->calendar == NULL || calendar_is_business_day(r->calendar, day)) {
            *ret_time = t.s;
            return true;
        }
        from = (day + 1) * SECONDS_A_DAY;
    }
    return false;
}

/* Of a rule that moves dates: the firing of the hours about the change, by its time of day on the
 * day it comes to. */
static bool moved_find(const struct subject *s, int64_t low, int64_t high, struct affected *a)
{
    const struct rule *r = s->rule;
    int64_t length = high - low;
    utc_us after = utc_from_seconds(a->change.at - length);
    struct firing f = rule_next_within(r, (utc_us){after.us + r->jitter_us - 1}, s->bounds);
    utc_us at = rule_plain_instant(r, &f);
    if (!f.found || utc_seconds(at) >= a->change.at + length) {
        return false;
    }
    int64_t day = floor_divide(utc_seconds(at) + f.offset_s, SECONDS_A_DAY);
    int64_t of_day = f.nominal.s - floor_divide(f.nominal.s, SECONDS_A_DAY) * SECONDS_A_DAY;
    a->first = a->last = day * SECONDS_A_DAY + of_day;
    return a->first >= low && a->first < high;
}

/* Does the local time [low, high) hold times of the rule? */
static bool affected_find(const struct subject *s, int64_t low, int64_t high, struct affected *a)
{
    if (rule_moves_dates(s->rule)) {
        return moved_find(s, low, high, a);
    }
    if (!nominal_from(s->rule, low, high, &a->first)) {
        return false;
    }
    int64_t last = 0; /* only whether there are more matters */
    a->last = nominal_from(s->rule, a->first + 1, high, &last) ? last : a->first;
    return true;
}

/* ---- what is said ---- */

static void note_gap(const struct subject *s, const struct affected *a, struct notes *n)
{
    char date[DATE_TEXT_MAX];
    const char *zone = zone_name(s->rule->zone);
    date_format(floor_divide(a->first, SECONDS_A_DAY), date);
    bool more = a->last > a->first;
    int32_t length = a->change.after - a->change.before;
    struct clock_text first = clock_text(a->first);
    const char *skipped = first.text;
    const char *others = more ? " and others" : "";
    if (length > NOMINAL_CATCH_UP_MAX_S) {
        notes_add(n,
                  "on %s the clock of %s skips more than three hours, %s%s among them: that is not "
                  "caught up",
                  date, zone, skipped, others);
        return;
    }
    switch (s->gap) {
    case DST_GAP_AUTO:
    case DST_GAP_AFTER:
        notes_add(n, "on %s the clock of %s skips %s%s: it runs once, at %s (dst_gap after)", date,
                  zone, skipped, others, clock_text(a->change.at + a->change.after).text);
        return;
    case DST_GAP_SHIFT:
        notes_add(n, "on %s the clock of %s skips %s%s: it runs at %s%s (dst_gap shift)", date,
                  zone, skipped, others, clock_text(a->first + length).text,
                  more ? " and so on" : "");
        return;
    case DST_GAP_SKIP:
        notes_add(n, "on %s the clock of %s skips %s%s: it does not run (dst_gap skip)", date, zone,
                  skipped, others);
        return;
    }
}

static void note_overlap(const struct subject *s, const struct affected *a, struct notes *n)
{
    static const char *const words[] = {
        [DST_OVERLAP_AUTO] = "first time only (dst_overlap first)",
        [DST_OVERLAP_FIRST] = "first time only (dst_overlap first)",
        [DST_OVERLAP_SECOND] = "second time only (dst_overlap second)",
        [DST_OVERLAP_BOTH] = "first and the second time (dst_overlap both)",
    };
    char date[DATE_TEXT_MAX];
    const char *zone = zone_name(s->rule->zone);
    date_format(floor_divide(a->first, SECONDS_A_DAY), date);
    notes_add(n, "on %s the clock of %s shows %s%s twice: it runs the %s", date, zone,
              clock_text(a->first).text, a->last > a->first ? " and others" : "",
              words[s->overlap]);
}

/* A job that follows the clock through all hours loses nothing and repeats nothing that anyone
 * would ask about. */
static bool follows_all_day(const struct subject *s)
{
    uint32_t hours = s->rule->kind == RULE_CRON ? s->rule->cron.hours : s->rule->rrule.hours;
    return set_size(hours) == 24 && s->gap == DST_GAP_SKIP && s->overlap == DST_OVERLAP_BOTH;
}

static void changes_note(const struct subject *s, int64_t from, int64_t end, struct notes *n)
{
    bool gap = false;
    bool overlap = false;
    struct affected a = {.change = {.at = from}};
    while (!(gap && overlap) && zone_change_after(s->rule->zone, a.change.at, &a.change) &&
           a.change.at < end) {
        int64_t before = a.change.at + a.change.before;
        int64_t after = a.change.at + a.change.after;
        if (!gap && before < after && affected_find(s, before, after, &a)) {
            note_gap(s, &a, n);
            gap = true;
        } else if (!overlap && before > after && affected_find(s, after, before, &a)) {
            note_overlap(s, &a, n);
            overlap = true;
        }
    }
}

void clock_notes_add(const struct rule *r, struct rule_bounds bounds, utc_us from, struct notes *n)
{
    bool recurs = r->kind == RULE_RRULE;
    struct subject s = {.rule = r,
                        .bounds = bounds,
                        .gap = recurs ? r->rrule.gap : r->cron.gap,
                        .overlap = recurs ? r->rrule.overlap : r->cron.overlap};
    if (rule_moves_dates(r)) {
        s.gap = r->moved_gap;
        s.overlap = r->moved_overlap;
    }
    if (!(recurs || r->kind == RULE_CRON) || follows_all_day(&s)) {
        return;
    }
    if (utc_is_finite(bounds.starts_at) && bounds.starts_at.us > from.us) {
        from = bounds.starts_at;
    }
    int64_t end = utc_seconds(from) + CLOCK_NOTES_AHEAD_S;
    if (utc_is_finite(bounds.ends_at) && utc_seconds(bounds.ends_at) < end) {
        end = utc_seconds(bounds.ends_at);
    }
    changes_note(&s, utc_seconds(from), end, n);
}
