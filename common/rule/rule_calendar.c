/* Rules with a calendar: which of their nominal dates fire, and on what day.
 *
 * A nominal date is rolled, then moved by the offset; on the day it comes to it has its own time of
 * day, to which the policies for changes of the clock apply. All conventions and the offset keep
 * the order of dates, and a rule that moves them has at most one firing a date, so nominal times
 * are gone through in their order, beginning far enough back that nothing later is missed. */
#include "rule_inside.h"

#include <inttypes.h>

#include "civil.h"

#define ROLL_BACK_DAYS 31   /* a search begins that much and twice the offset before */
#define ROLL_BACK_MAX  6    /* doublings of it: a closure may be longer */
#define NOMINALS_MAX   5000 /* looked at in one search */
#define A_DAY_US       ((int64_t)SECONDS_A_DAY * MICROS_A_SECOND)

static int64_t date_of(struct local_time t)
{
    return floor_divide(t.s, SECONDS_A_DAY);
}

static bool convention_moves(enum roll_convention convention)
{
    return convention != ROLL_RUN && convention != ROLL_SKIP;
}

static bool rule_moves(const struct rule *r)
{
    return r->business_day_offset != 0 || convention_moves(r->nonbusiness);
}

bool rule_moves_dates(const struct rule *r)
{
    return r->calendar != NULL && rule_moves(r);
}

/* The policies for the day a firing moves to; while nominal times are listed each comes once. */
static void policies_keep(const struct rule_source *source, struct rule *r)
{
    bool recurs = r->kind == RULE_RRULE;
    r->moved_gap = recurs ? DST_GAP_SHIFT : DST_GAP_AFTER;
    r->moved_overlap = DST_OVERLAP_FIRST;
    if (source->gap != DST_GAP_AUTO) {
        r->moved_gap = source->gap;
    }
    if (source->overlap != DST_OVERLAP_AUTO) {
        r->moved_overlap = source->overlap;
    }
    cron_set_policies(&r->cron, DST_GAP_SHIFT, DST_OVERLAP_FIRST);
    r->rrule.gap = DST_GAP_SHIFT;
    r->rrule.overlap = DST_OVERLAP_FIRST;
}

static enum status moving_check(const struct rule_source *source, const struct rule *r,
                                struct error *err)
{
    if (!rule_fires_at_most_once_a_local_day(r)) {
        return error_set(err, STATUS_INVALID,
                         "a rule that fires several times a day cannot move to other days; write "
                         "nonbusiness = 'skip' without an offset, or a schedule for each time");
    }
    if (source->overlap == DST_OVERLAP_BOTH) {
        return error_set(err, STATUS_INVALID,
                         "dst_overlap = 'both' cannot stand with dates that move; write 'first' or "
                         "'second'");
    }
    return STATUS_OK;
}

enum status rule_calendar_parse(const struct rule_source *source, struct rule *r, struct error *err)
{
    int32_t offset = source->business_day_offset;
    if (source->calendar == NULL) {
        return source->nonbusiness == ROLL_RUN && offset == 0
                   ? STATUS_OK
                   : error_set(err, STATUS_INVALID,
                               "nonbusiness and business_day_offset need a calendar");
    }
    if (r->kind == RULE_INTERVAL) {
        return error_set(err, STATUS_INVALID,
                         "an interval is elapsed time and takes no calendar; use cron or rrule");
    }
    if (offset < -BUSINESS_DAY_OFFSET_MAX || offset > BUSINESS_DAY_OFFSET_MAX) {
        return error_set(err, STATUS_INVALID, "business_day_offset must lie between %d and %d",
                         -BUSINESS_DAY_OFFSET_MAX, BUSINESS_DAY_OFFSET_MAX);
    }
    r->nonbusiness = source->nonbusiness;
    r->business_day_offset = offset;
    r->run_all = source->run_all;
    if (r->nonbusiness == ROLL_RUN && offset == 0) {
        return STATUS_OK; /* the calendar changes nothing */
    }
    r->calendar = source->calendar;
    if (!rule_moves(r)) {
        return STATUS_OK;
    }
    enum status s = moving_check(source, r, err);
    if (s == STATUS_OK) {
        policies_keep(source, r);
    }
    return s;
}

enum fate {
    FATE_FIRES,
    FATE_DROPPED,
    FATE_HELD,   /* the calendar has no answer */
    FATE_CLOSED, /* nor can it have one: it has no business day near */
};

/* The instant of a local time on the day a firing has moved to. False: the clock jumps over it, and
 * such times are skipped. */
static bool moved_resolve(const struct rule *r, struct local_time t, struct firing *f)
{
    struct zone_span span = zone_resolve(r->zone, t);
    int64_t at = t.s - span.before;
    if (span.kind == LOCAL_GAP) {
        if (r->moved_gap == DST_GAP_SKIP) {
            return false;
        }
        at = r->moved_gap == DST_GAP_SHIFT ? at : span.transition;
    } else if (span.kind == LOCAL_OVERLAP && r->moved_overlap == DST_OVERLAP_SECOND) {
        at = t.s - span.after;
    }
    f->at = utc_from_seconds(at);
    f->offset_s = zone_offset_at(r->zone, at);
    return true;
}

/* What becomes of a firing that the rule names. Its nominal time stays, for it is known by it. */
static enum fate firing_roll(const struct rule *r, struct firing *f)
{
    int64_t date = date_of(f->nominal);
    struct calendar_answer answer;
    enum status s = calendar_roll(r->calendar, r->nonbusiness, date, &answer, NULL);
    if (s == STATUS_OK && answer.skipped) {
        return FATE_DROPPED;
    }
    if (s == STATUS_OK && r->business_day_offset != 0) {
        s = calendar_add(r->calendar, answer.day, r->business_day_offset, &answer, NULL);
    }
    if (s != STATUS_OK) {
        return s == STATUS_NOT_FOUND ? FATE_CLOSED : FATE_HELD;
    }
    if (!rule_moves(r)) {
        return FATE_FIRES;
    }
    struct local_time moved = {f->nominal.s + (answer.day - date) * SECONDS_A_DAY};
    return moved_resolve(r, moved, f) ? FATE_FIRES : FATE_DROPPED;
}

/* Not known: it is told by when it would fire if the day were a business day. */
static struct firing held_of(struct firing f, enum fate fate)
{
    f.found = false;
    f.held = true;
    f.closed = fate == FATE_CLOSED;
    return f;
}

int64_t rule_date_begins(const struct zone *z, int64_t date)
{
    struct local_time midnight = {date * SECONDS_A_DAY};
    struct zone_span span = zone_resolve(z, midnight);
    return span.kind == LOCAL_GAP ? span.transition : midnight.s - span.before;
}

/* Days that are no business days are passed over as a whole. */
static struct firing kept_next(const struct rule *r, utc_us after)
{
    struct firing f = rule_unrolled_next(r, after);
    for (int i = 0; f.found && i < NOMINALS_MAX; i++) {
        enum fate fate = firing_roll(r, &f);
        if (fate != FATE_DROPPED) {
            return fate == FATE_FIRES ? f : held_of(f, fate);
        }
        utc_us next = {utc_from_seconds(rule_date_begins(r->zone, date_of(f.nominal) + 1)).us - 1};
        f = rule_unrolled_next(r, next.us > f.at.us ? next : f.at);
    }
    return (struct firing){.found = false};
}

/* Nominal times in their order, each with what becomes of it. */
struct walk {
    const struct rule *rule;
    utc_us nominal_at; /* behind the last one */
    struct firing f;
    enum fate fate;
    int steps;
};

/* False: there is no further one. */
static bool walk_on(struct walk *w)
{
    do {
        w->f = rule_unrolled_next(w->rule, w->nominal_at);
        if (!w->f.found || ++w->steps > NOMINALS_MAX) {
            return false;
        }
        w->nominal_at = w->f.at;
        w->fate = firing_roll(w->rule, &w->f);
    } while (w->fate == FATE_DROPPED);
    return true;
}

/* Begin so far before an instant that the first firing found lies a day before it, or is the first
 * of all. */
static bool walk_begin(struct walk *w, const struct rule *r, utc_us after)
{
    int32_t offset = r->business_day_offset;
    int64_t back = ROLL_BACK_DAYS + 2 * (int64_t)(offset < 0 ? -offset : offset);
    bool found = false;
    for (int i = 0; i < ROLL_BACK_MAX; i++, back *= 2) {
        utc_us from = UTC_PAST;
        if (after.us > INT64_MIN + back * A_DAY_US + 2) {
            from = (utc_us){after.us - back * A_DAY_US};
        }
        *w = (struct walk){.rule = r, .nominal_at = from};
        found = walk_on(w);
        if (!found || from.us == UTC_PAST.us || w->f.at.us < after.us - A_DAY_US) {
            break;
        }
    }
    return found;
}

/* How many of the last firings came to an instant. A closure gathers no more than these. */
#define TOGETHER_MAX 512
struct together {
    int64_t at[TOGETHER_MAX];
    size_t count;
};

static int64_t together_count(struct together *t, int64_t at)
{
    int64_t same = 0;
    for (size_t i = t->count < TOGETHER_MAX ? 0 : t->count - TOGETHER_MAX; i < t->count; i++) {
        same += t->at[i % TOGETHER_MAX] == at ? 1 : 0;
    }
    t->at[t->count++ % TOGETHER_MAX] = at;
    return same;
}

/* Of those that come to one instant the latest fires, or all do, a second apart. Times of day may
 * differ (RDATE), so the day of the best is gone through to its end. */
static struct firing moved_next(const struct rule *r, utc_us after)
{
    struct walk w;
    struct together t = {.count = 0};
    struct firing best = {.found = false};
    for (bool more = walk_begin(&w, r, after); more; more = walk_on(&w)) {
        if (best.found && w.f.at.us > best.at.us + A_DAY_US) {
            break;
        }
        if (w.fate != FATE_FIRES) {
            if (!best.found && w.f.at.us > after.us) {
                return held_of(w.f, w.fate);
            }
            continue;
        }
        w.f.at.us += r->run_all ? together_count(&t, w.f.at.us) * MICROS_A_SECOND : 0;
        if (w.f.at.us > after.us && (!best.found || w.f.at.us <= best.at.us)) {
            best = w.f;
        }
    }
    return best;
}

struct firing rule_rolled_next(const struct rule *r, utc_us after)
{
    return rule_moves(r) ? moved_next(r, after) : kept_next(r, after);
}

/* One by one, for there is at most one a day; of several a day whole days at once, except around
 * changes of the clock. */
int64_t rule_rolled_count(const struct rule *r, utc_us after, utc_us before)
{
    int64_t count = 0;
    struct firing f = rule_rolled_next(r, after);
    while (f.found && f.at.us < before.us) {
        int64_t end = rule_date_begins(r->zone, date_of(f.nominal) + 1);
        bool whole = !rule_moves(r) && utc_from_seconds(end).us <= before.us &&
                     zone_offset_at(r->zone, end + SECONDS_A_DAY) == f.offset_s &&
                     zone_offset_at(r->zone, end - 2 * SECONDS_A_DAY) == f.offset_s;
        utc_us last = whole ? (utc_us){utc_from_seconds(end).us - 1} : f.at;
        count += whole ? rule_unrolled_count(r, (utc_us){f.at.us - 1}, utc_from_seconds(end)) : 1;
        f = rule_rolled_next(r, last);
    }
    return count;
}
