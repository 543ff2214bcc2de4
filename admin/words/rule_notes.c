#include "rule_notes.h"

#include <inttypes.h>
#include <stdio.h>

#include "clock_notes.h"
#include "cron_notes.h"
#include "rrule_inside.h"
#include "rule_inside.h"
#include "value_set.h"

#define YEAR_US            ((int64_t)366 * SECONDS_A_DAY * MICROS_A_SECOND)
#define LONG_AGO_US        (100 * YEAR_US) /* no rule is of much older times */
#define CALENDAR_SOON_DAYS 60              /* as reports.calendar_problems has it */
#define FAR_AHEAD_US       (400 * YEAR_US) /* as far as a rule is followed */

static const struct rule_bounds OPEN = {{INT64_MIN}, {INT64_MIN}}; /* UTC_NONE */

/* "2030-04-12T06:00:00+02:00" */
struct instant_words {
    char text[RFC3339_TEXT_MAX];
};

static struct instant_words words_of(const struct firing *f)
{
    struct instant_words w;
    rfc3339_format(f->at, f->offset_s, w.text);
    return w;
}

static utc_us moved(utc_us t, int64_t us)
{
    int64_t sum = 0;
    if (__builtin_add_overflow(t.us, us, &sum)) {
        return us > 0 ? (utc_us){INT64_MAX - 1} : (utc_us){INT64_MIN + 2};
    }
    return (utc_us){sum};
}

/* ---- nothing fires ---- */

/* The nominal date that a calendar was asked about. */
static void date_words(const struct firing *f, char ret_text[DATE_TEXT_MAX])
{
    date_format(floor_divide(f->nominal.s, SECONDS_A_DAY), ret_text);
}

static void held_explain(const struct rule *r, const struct rule_around *around,
                         const struct firing *f, utc_us from, char ret_text[NOTE_TEXT_MAX])
{
    char date[DATE_TEXT_MAX];
    date_words(f, date);
    const char *calendar = around->calendar != NULL ? around->calendar : "";
    struct firing first = rule_unrolled_next(r, moved(from, -r->jitter_us));
    if (f->closed) {
        (void)snprintf(ret_text, NOTE_TEXT_MAX,
                       "calendar \"%s\" has no business day within %d days of %s: correct its "
                       "weekend or its days",
                       calendar, CALENDAR_CLOSED_MAX, date);
    } else if (r->nonbusiness == ROLL_SKIP && first.found && first.nominal.s < f->nominal.s) {
        (void)snprintf(ret_text, NOTE_TEXT_MAX,
                       "none of its dates before %s is a business day of calendar \"%s\" "
                       "(nonbusiness skip), which does not know later ones and says hold",
                       date, calendar);
    } else {
        (void)snprintf(ret_text, NOTE_TEXT_MAX,
                       "calendar \"%s\" does not know the days around %s and says hold: import "
                       "newer data",
                       calendar, date);
    }
}

/* The rule names times, and start and end leave none. */
static void bounds_explain(struct rule_bounds b, utc_us from, char ret_text[NOTE_TEXT_MAX])
{
    bool starts = utc_is_none(b.ends_at) || b.starts_at.us >= b.ends_at.us;
    utc_us bound = starts ? b.starts_at : b.ends_at;
    char at[RFC3339_TEXT_MAX];
    if (utc_is_finite(bound)) {
        rfc3339_format_utc(bound, at);
    } else {
        (void)snprintf(at, sizeof at, bound.us > 0 ? "infinity" : "-infinity");
    }
    (void)snprintf(ret_text, NOTE_TEXT_MAX, "it %s (%s %s)",
                   starts                ? "never starts"
                   : bound.us <= from.us ? "has ended"
                                         : "ends before the next one",
                   starts ? "starts_at" : "ends_at", at);
}

/* The last firing before an instant, if there was one in a hundred years. */
static struct firing last_before(const struct rule *r, utc_us before)
{
    return rule_last_within(r, moved(before, -LONG_AGO_US), before, OPEN);
}

static void rule_explain(const struct rule *r, const struct rule_around *around, utc_us from,
                         char ret_text[NOTE_TEXT_MAX])
{
    const char *calendar = around->calendar != NULL ? around->calendar : "";
    if (r->calendar != NULL && rule_unrolled_next(r, moved(from, -r->jitter_us)).found) {
        (void)snprintf(
            ret_text, NOTE_TEXT_MAX,
            "every date that it names is left out: none of them is a business day of "
            "calendar \"%s\" (nonbusiness skip); write another rule or another nonbusiness",
            calendar);
        return;
    }
    struct firing last = last_before(r, moved(from, 1));
    if (r->kind == RULE_ONCE && last.found) {
        (void)snprintf(ret_text, NOTE_TEXT_MAX, "it fires once, at %s, which is past",
                       words_of(&last).text);
    } else if (last.found) {
        (void)snprintf(ret_text, NOTE_TEXT_MAX, "its rule names no further time: the last was %s",
                       words_of(&last).text);
    } else {
        (void)snprintf(ret_text, NOTE_TEXT_MAX, "its rule names no further time");
    }
}

bool rule_nothing_explain(const struct rule *r, const struct rule_around *around, utc_us from,
                          char ret_text[NOTE_TEXT_MAX])
{
    struct firing f = rule_next_within(r, from, around->bounds);
    if (f.found) {
        return false;
    }
    struct firing open = f.held ? f : rule_next_within(r, from, OPEN);
    if (f.held) {
        held_explain(r, around, &f, from, ret_text);
    } else if (open.found || open.held) {
        bounds_explain(around->bounds, from, ret_text);
    } else {
        rule_explain(r, around, from, ret_text);
    }
    return true;
}

/* ---- recurrence rules ---- */

static void start_note(const struct rrule *r, struct notes *n)
{
    struct rrule_search s = rrule_search_from(r, r->start.s);
    char text[64];
    struct plain t = plain_of(text, sizeof text);
    int64_t first = 0;
    if (r->last.s < r->start.s || !rrule_nominal_from(&s, r->start.s, &first) ||
        first == r->start.s) {
        return;
    }
    plain_add_local(&t, r->start);
    plain_add(&t, ": the first is ");
    plain_add_local(&t, (struct local_time){first});
    notes_add(n, "the start is no time that it names, so it does not fire at %s", text);
}

/* The shortest and the longest of the months it names. */
static bool days_lack(const struct rrule *r, int day)
{
    for (int month = 1; month <= 12; month++) {
        if (set_has(r->months, month) && civil_days_in_month(2027, month) < day) {
            return true;
        }
    }
    return false;
}

static void lacking_note(const struct rrule *r, struct notes *n)
{
    int lacking = 0;
    uint32_t days = set_size(r->days) <= 5 ? r->days : 0;
    for (int day = 31; day >= 29; day--) {
        lacking = set_has(days, day) && days_lack(r, day) ? day : lacking;
    }
    if (r->by_day && lacking == 29 && r->months == 1 << 2) {
        notes_add(n, "day 29 of February occurs in leap years only");
    } else if (r->by_day && lacking > 0) {
        notes_add(n,
                  "not every month that it names has a day %d: those are left out, not moved to "
                  "their end; BYMONTHDAY=-1 is the last day",
                  lacking);
    }
    if (r->by_nth && !r->by_nth_of_year && (r->nth_weekdays[4] | r->nth_from_last[4]) != 0) {
        notes_add(n, "not every month has a 5th of each weekday: months without are left out");
    }
    if (r->by_yearday && (set_has(r->yeardays.from_first[5], 366 - 320) ||
                          set_has(r->yeardays.from_last[5], 366 - 320))) {
        notes_add(n, "only leap years have a day 366: the others are left out");
    }
    if (r->by_weekno && (set_has(r->weeks, 53) || set_has(r->weeks_from_last, 53))) {
        notes_add(n, "not every year has a week 53: years without are left out");
    }
}

/* Does an exception take away what the rule names? Those before its start and behind its end may
 * stand there from other times. */
static bool exdate_is_vain(const struct rrule *r, struct local_time exdate)
{
    struct rrule_search s = rrule_search_from(r, exdate.s);
    int64_t named = 0;
    s.last_day = floor_divide(exdate.s, SECONDS_A_DAY);
    return exdate.s >= r->start.s && exdate.s <= r->last.s &&
           (!rrule_nominal_from(&s, exdate.s, &named) || named != exdate.s);
}

static void exdates_note(const struct rrule *r, struct notes *n)
{
    size_t vain = 0;
    struct local_time first = {0};
    for (size_t i = r->exdate_count; i-- > 0;) {
        if (exdate_is_vain(r, r->exdates[i])) {
            first = r->exdates[i];
            vain++;
        }
    }
    if (vain == 0) {
        return;
    }
    char at[32];
    char of_day[64] = "";
    struct plain a = plain_of(at, sizeof at);
    struct plain d = plain_of(of_day, sizeof of_day);
    int64_t day = floor_divide(first.s, SECONDS_A_DAY);
    struct rrule_search s = rrule_search_from(r, day * SECONDS_A_DAY);
    struct local_time named = {0};
    s.last_day = day;
    plain_add_local(&a, first);
    if (rrule_nominal_from(&s, day * SECONDS_A_DAY, &named.s) &&
        floor_divide(named.s, SECONDS_A_DAY) == day) {
        plain_add(&d, "; on that day it names ");
        plain_add_local(&d, named);
    }
    if (vain == 1) {
        notes_add(n, "the exdate %s is no time that it names, so it takes nothing away%s", at,
                  of_day);
    } else {
        notes_add(n,
                  "%zu of its %zu exdates are no times that it names, so they take nothing away; "
                  "the first is %s%s",
                  vain, r->exdate_count, at, of_day);
    }
}

/* ---- calendars ---- */

static int64_t local_day(const struct rule *r, utc_us t)
{
    int64_t s = utc_seconds(t);
    return floor_divide(s + zone_offset_at(r->zone, s), SECONDS_A_DAY);
}

/* The days of its calendar end soon, or among the firings that are looked at, or stop them. */
static void calendar_note(const struct rule *r, const struct rule_around *around, utc_us from,
                          const struct firing *next, struct notes *n)
{
    if (r->calendar == NULL || calendar_valid_through(r->calendar) == CALENDAR_FOREVER) {
        return;
    }
    int64_t through = calendar_valid_through(r->calendar);
    utc_us shown = around->shown_to.us > next->at.us ? around->shown_to : next->at;
    bool soon = through - local_day(r, from) <= CALENDAR_SOON_DAYS;
    if (!soon && local_day(r, shown) <= through &&
        !rule_next_within(r, shown, around->bounds).held) {
        return;
    }
    const char *calendar = around->calendar != NULL ? around->calendar : "";
    struct calendar_answer answer;
    char date[DATE_TEXT_MAX];
    date_format(through, date);
    if (calendar_roll(r->calendar, ROLL_SKIP, through + 1, &answer, NULL) == STATUS_HELD) {
        notes_add(n,
                  "calendar \"%s\" is known through %s and says hold: a firing that needs a later "
                  "day waits until newer data is imported",
                  calendar, date);
    } else if (floor_divide(next->nominal.s, SECONDS_A_DAY) > through &&
               local_day(r, from) <= through) {
        notes_add(n,
                  "calendar \"%s\" is known through %s and leaves nothing until then: later dates "
                  "fire only because its holidays are not known",
                  calendar, date);
    } else {
        notes_add(n,
                  "calendar \"%s\" is known through %s: behind that only weekends count and "
                  "holidays are taken for business days; import newer data",
                  calendar, date);
    }
}

/* ---- how often ---- */

static void often_note(const struct rule *r, const struct rule_around *around,
                       const struct firing *next, struct notes *n)
{
    bool recurs = r->kind == RULE_RRULE;
    if (recurs && r->rrule.times_a_day > 1 &&
        (!r->rrule.by_position || r->rrule.frequency == RRULE_DAILY)) {
        notes_add(n, "it fires %" PRId32 " times on each of its days", r->rrule.times_a_day);
        return;
    }
    if (r->kind != RULE_INTERVAL && !(recurs && r->rrule.frequency <= RRULE_HOURLY)) {
        return;
    }
    utc_us end = moved(next->at, (int64_t)SECONDS_A_DAY * MICROS_A_SECOND);
    int64_t count = rule_count_within(r, moved(next->at, -1), end, around->bounds);
    if (count > 1) {
        notes_add(n, "it fires %" PRId64 " times in the 24 hours from %s on", count,
                  words_of(next).text);
    }
}

/* ---- the end ---- */

static bool rule_ends(const struct rule *r, const struct rule_around *around)
{
    switch (r->kind) {
    case RULE_CRON:
        return r->cron.has_years || utc_is_finite(around->bounds.ends_at);
    case RULE_RRULE:
        return r->rrule.has_until || r->rrule.last.s != INT64_MAX ||
               utc_is_finite(around->bounds.ends_at);
    case RULE_INTERVAL:
        return utc_is_finite(around->bounds.ends_at);
    case RULE_ONCE:
        return false; /* its sentence says when */
    }
    return false;
}

static void end_note(const struct rule *r, const struct rule_around *around, utc_us from,
                     struct notes *n)
{
    utc_us far = moved(from, FAR_AHEAD_US);
    struct firing last = {.found = false};
    if (rule_ends(r, around)) {
        last = rule_last_within(r, from, far, around->bounds);
    }
    if (last.found) {
        notes_add(n, "it ends: its last firing is that of %s", words_of(&last).text);
    }
}

void rule_notes_make(const struct rule *r, const struct rule_around *around, utc_us from,
                     struct notes *ret_notes)
{
    char why[NOTE_TEXT_MAX];
    ret_notes->count = 0;
    if (rule_nothing_explain(r, around, from, why)) {
        struct instant_words at;
        rfc3339_format(from, zone_offset_at(r->zone, utc_seconds(from)), at.text);
        notes_add(ret_notes, "nothing fires after %s: %.340s", at.text, why);
        return;
    }
    struct firing next = rule_next_within(r, from, around->bounds);
    if (r->kind == RULE_CRON) {
        cron_notes_add_days(&r->cron, ret_notes);
    }
    clock_notes_add(r, around->bounds, from, ret_notes);
    if (r->kind == RULE_CRON) {
        cron_notes_add_rest(&r->cron, ret_notes);
    }
    if (r->kind == RULE_RRULE) {
        start_note(&r->rrule, ret_notes);
        lacking_note(&r->rrule, ret_notes);
        exdates_note(&r->rrule, ret_notes);
    }
    calendar_note(r, around, from, &next, ret_notes);
    often_note(r, around, &next, ret_notes);
    end_note(r, around, from, ret_notes);
}
