#include "planner.h"

#include <string.h>

#include "mutant.h"
#include "planner_about.h"

bool misfire_parse(const char *word, enum misfire *ret_misfire)
{
    static const struct {
        const char *word;
        enum misfire misfire;
    } words[] = {
        {"", MISFIRE_DEFAULT},  {"run_all", MISFIRE_RUN_ALL},   {"run_latest", MISFIRE_RUN_LATEST},
        {"skip", MISFIRE_SKIP}, {"coalesce", MISFIRE_COALESCE},
    };
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i].word) == 0) {
            *ret_misfire = words[i].misfire;
            return true;
        }
    }
    return false;
}

const char *gap_reason_name(enum gap_reason reason)
{
    switch (reason) {
    case GAP_MISFIRE_SKIP:
        return "misfire_skip";
    case GAP_MISFIRE_LATEST:
        return "misfire_latest";
    case GAP_MISFIRE_MAX:
        return "misfire_max";
    case GAP_MISFIRE_AGE:
        return "misfire_age";
    case GAP_COALESCED:
        return "coalesced";
    case GAP_PROBLEM_MENDED:
        return "problem_mended";
    case GAP_PAUSED:
        return "paused";
    case GAP_PASSED_OVER:
        return "passed_over";
    }
    return "unknown";
}

const char *plan_cause_name(enum plan_cause cause)
{
    switch (cause) {
    case PLAN_ON_TIME:
        return "schedule";
    case PLAN_MISFIRE:
        return "misfire";
    case PLAN_EDIT:
        return "edit";
    }
    return "unknown";
}

static utc_us utc_later(utc_us a, utc_us b)
{
    return a.us > b.us ? a : b; /* UTC_NONE is earlier than any */
}

static utc_us utc_earlier(utc_us a, utc_us b)
{
    return a.us < b.us ? a : b;
}

/* Firings are looked for strictly after it. */
static utc_us base_of(const struct plan_subject *s)
{
    return utc_later((utc_us){s->switched_at.us - 1}, s->last_fire_at);
}

static enum misfire misfire_of(const struct plan_subject *s)
{
    if (s->misfire != MISFIRE_DEFAULT) {
        return s->misfire;
    }
    return key_form_is_of_days(s->form) ? MISFIRE_RUN_ALL : MISFIRE_RUN_LATEST;
}

/* a - b without overflow at the ends of the number line. */
static int64_t utc_us_between(utc_us b, utc_us a)
{
    int64_t d = 0;
    if (__builtin_sub_overflow(a.us, b.us, &d)) {
        return a.us > b.us ? INT64_MAX : INT64_MIN;
    }
    return d;
}

/* One pass. The window is a ring of missed firings that are still undecided. */
struct pass {
    const struct plan_subject *subject;
    utc_us now;
    size_t number;
    enum misfire misfire;
    struct plan_window *window;
    size_t window_head, window_count, window_max;
    struct plan_sink *sink;
    size_t firings_before, gaps_before; /* of this schedule: where its own begin */
    utc_us previous;                    /* the firing before the next to be emitted */
    bool coalescing;                    /* the next to run covers more than its own window: */
    utc_us window_start;                /* where it begins, */
    struct firing coalesced;            /* and the first of them */
    char previous_key[KEY_MAX_BYTES];
    struct plan_result result;
    bool full;             /* the sink took no more */
    bool duplicate;        /* a key came twice */
    bool held;             /* the calendar does not know the day of the first that is due */
    struct firing unknown; /* it was to run, and it is not known what it is about; found */
};

static void window_push(struct pass *p, const struct firing *f)
{
    size_t at = (p->window_head + p->window_count) % PLANNER_MISSED_MAX;
    p->window->slots[at] = *f;
    p->window_count++;
}

static const struct firing *window_oldest(const struct pass *p)
{
    return &p->window->slots[p->window_head];
}

static void window_pop(struct pass *p)
{
    p->window_head = (p->window_head + 1) % PLANNER_MISSED_MAX;
    p->window_count--;
}

/* What both outcomes have in common: the firing is dealt with. */
static bool firing_settle(struct pass *p, const struct firing *f, char ret_key[KEY_MAX_BYTES])
{
    key_format(p->subject->form, f, ret_key);
    if (strcmp(ret_key, p->previous_key) == 0) {
        p->duplicate = true;
        return false;
    }
    memcpy(p->previous_key, ret_key, KEY_MAX_BYTES);
    p->result.moved = true;
    p->result.last = *f;
    return true;
}

static enum plan_cause cause_of(const struct pass *p, const struct firing *f, bool missed)
{
    if (missed) {
        return PLAN_MISFIRE;
    }
    return f->at.us < p->subject->effective_from.us ? PLAN_EDIT : PLAN_ON_TIME;
}

static bool emit_run(struct pass *p, const struct firing *f, bool missed)
{
    if (f->about.state == ABOUT_UNKNOWN) {
        p->unknown = *f;
        return false;
    }
    if (p->sink->firing_count == p->sink->firing_max) {
        p->full = true;
        return false;
    }
    struct planned_firing *out = &p->sink->firings[p->sink->firing_count];
    if (!firing_settle(p, f, out->key)) {
        return false;
    }
    out->subject = p->number;
    out->firing = *f;
    struct instant_range window =
        plan_window_of(p->subject->rule, p->coalescing ? p->window_start : p->previous,
                       p->coalescing ? &p->coalesced : f, f);
    out->window_start = window.from;
    out->window_end = window.to;
    p->coalescing = false;
    out->cause = cause_of(p, f, missed);
    p->sink->firing_count++;
    p->previous = f->at;
    return true;
}

static bool emit_gap(struct pass *p, const struct firing *f, enum gap_reason reason)
{
    if (MUTANT("planner_drops_gaps")) {
        p->previous = f->at;
        return true;
    }
    struct plan_sink *sink = p->sink;
    struct planned_gap *g =
        sink->gap_count > p->gaps_before ? &sink->gaps[sink->gap_count - 1] : NULL;
    bool touches = g != NULL && g->reason == reason && g->to.us == p->previous.us;
    if (!touches && sink->gap_count == sink->gap_max) {
        p->full = true;
        return false;
    }
    char key[KEY_MAX_BYTES];
    if (!firing_settle(p, f, key)) {
        return false;
    }
    if (!touches) {
        g = &sink->gaps[sink->gap_count++];
        *g = (struct planned_gap){.subject = p->number, .from = f->at, .reason = reason};
        memcpy(g->from_key, key, sizeof g->from_key);
    }
    g->to = f->at;
    memcpy(g->to_key, key, sizeof g->to_key);
    g->firings++;
    p->previous = f->at;
    return true;
}

static enum gap_reason overflow_reason(const struct pass *p)
{
    return p->misfire == MISFIRE_RUN_ALL ? GAP_MISFIRE_MAX : GAP_MISFIRE_LATEST;
}

/* Nothing missed can come any more: what waits is decided. `newer`: something due is not missed. */
static bool window_settle(struct pass *p, bool newer)
{
    bool run = p->misfire == MISFIRE_RUN_ALL || !newer;
    bool ok = true;
    while (p->window_count > 0 && ok) {
        const struct firing *f = window_oldest(p);
        ok = run ? emit_run(p, f, true) : emit_gap(p, f, GAP_MISFIRE_LATEST);
        if (ok) {
            window_pop(p);
        }
    }
    return ok;
}

/* Take one due firing in. False: the pass ends before it. */
static bool firing_take(struct pass *p, const struct firing *f)
{
    const struct plan_subject *s = p->subject;
    int64_t late = utc_us_between(utc_later(f->at, s->effective_from), p->now);
    if (late <= s->misfire_grace_us) {
        return window_settle(p, true) && emit_run(p, f, false);
    }
    if (p->misfire == MISFIRE_SKIP) {
        return emit_gap(p, f, GAP_MISFIRE_SKIP);
    }
    if (p->misfire == MISFIRE_RUN_ALL && late > s->misfire_age_us) {
        return emit_gap(p, f, GAP_MISFIRE_AGE);
    }
    if (p->window_max == 0) {
        return emit_gap(p, f, overflow_reason(p));
    }
    if (p->window_count == p->window_max) {
        if (!emit_gap(p, window_oldest(p), overflow_reason(p))) {
            return false;
        }
        window_pop(p);
    }
    window_push(p, f);
    return true;
}

/* Everything before `until` is one gap, by counting: a minute schedule may be paused for a year. */
static void pass_withhold(struct pass *p)
{
    const struct plan_subject *s = p->subject;
    struct rule_bounds bounds = {s->starts_at, s->ends_at};
    utc_us base = base_of(s);
    utc_us end = utc_is_finite(s->until) ? s->until : (utc_us){p->now.us + 1};
    struct firing first = rule_next_within(s->rule, base, bounds);
    struct firing last = rule_last_within(s->rule, base, end, bounds);
    p->result.work = 1;
    p->result.reached_until = true;
    p->result.next = first;
    if (!last.found) {
        return;
    }
    struct planned_gap *g = &p->sink->gaps[p->sink->gap_count++];
    *g = (struct planned_gap){
        .subject = p->number,
        .from = first.at,
        .to = last.at,
        .firings = rule_count_within(s->rule, base, end, bounds),
        .reason = s->withheld_reason,
    };
    key_format(s->form, &first, g->from_key);
    key_format(s->form, &last, g->to_key);
    p->result.moved = true;
    p->result.last = last;
    p->result.next = rule_next_within(s->rule, last.at, bounds);
}

/* A stretch of firings as one gap, by counting. `first` is the first after an instant that was
 * dealt with. */
static void gap_stretch(struct pass *p, const struct firing *first, const struct firing *last,
                        enum gap_reason reason)
{
    const struct plan_subject *s = p->subject;
    struct rule_bounds bounds = {s->starts_at, s->ends_at};
    struct planned_gap *g = &p->sink->gaps[p->sink->gap_count++];
    *g = (struct planned_gap){
        .subject = p->number,
        .from = first->at,
        .to = last->at,
        .firings = rule_count_within(s->rule, (utc_us){first->at.us - 1}, (utc_us){last->at.us + 1},
                                     bounds),
        .reason = reason,
    };
    key_format(s->form, first, g->from_key);
    key_format(s->form, last, g->to_key);
    memcpy(p->previous_key, g->to_key, sizeof p->previous_key);
    p->result.moved = true;
    p->result.last = *last;
    p->previous = last->at;
}

/* What is due and older than a span; effective_from: see firing_take. */
static utc_us older_than(const struct pass *p, int64_t span_us)
{
    const struct plan_subject *s = p->subject;
    utc_us limit = {p->now.us - span_us};
    return s->effective_from.us < limit.us ? utc_earlier(limit, s->until) : UTC_NONE;
}

/* Everything that was missed, without looking at each: a minute schedule may have been down for a
 * year. There is room for it: this is the first that the pass does. Returns: where the pass goes
 * on, with firings that are not missed. */
static utc_us pass_coalesce(struct pass *p, utc_us base)
{
    const struct plan_subject *s = p->subject;
    struct rule_bounds bounds = {s->starts_at, s->ends_at};
    utc_us aged = older_than(p, s->misfire_age_us);
    utc_us missed = older_than(p, s->misfire_grace_us);
    struct firing first = rule_next_within(s->rule, base, bounds);
    struct firing last = rule_last_within(s->rule, base, aged, bounds);
    if (last.found) {
        gap_stretch(p, &first, &last, GAP_MISFIRE_AGE);
        base = last.at;
        first = rule_next_within(s->rule, base, bounds);
    }
    last = rule_last_within(s->rule, base, missed, bounds);
    if (!last.found) {
        return base;
    }
    struct firing live = rule_next_within(s->rule, last.at, bounds);
    p->coalescing = true;
    p->window_start = p->previous;
    p->coalesced = first;
    p->result.work++;
    if (live.found && live.at.us <= p->now.us && live.at.us < s->until.us) {
        gap_stretch(p, &first, &last, GAP_COALESCED);
    } else {
        struct firing before = rule_last_within(s->rule, base, last.at, bounds);
        if (before.found) {
            gap_stretch(p, &first, &before, GAP_COALESCED);
        }
        (void)emit_run(p, &last, true);
    }
    return last.at;
}

/* Behind a firing that newer data computed older ones may name the same times again. */
static struct firing firing_after(const struct plan_subject *s, const struct firing *f)
{
    struct rule_bounds bounds = {s->starts_at, s->ends_at};
    struct firing next = rule_next_within(s->rule, f->at, bounds);
    for (size_t i = 0; next.found && s->stored.found && !next.utc_in_key &&
                       next.nominal.s <= s->stored.nominal.s && i < s->work_max;
         i++) {
        next = rule_next_within(s->rule, next.at, bounds);
    }
    return next;
}

static void pass_run(struct pass *p)
{
    const struct plan_subject *s = p->subject;
    utc_us base = base_of(s);
    size_t most = s->work_max > p->window_max ? s->work_max : p->window_max + 1;
    struct rule_bounds bounds = {s->starts_at, s->ends_at};
    if (p->misfire == MISFIRE_COALESCE) {
        base = pass_coalesce(p, base);
    }
    bool stored = s->stored.found && !p->result.moved;
    struct firing f = stored ? s->stored : rule_next_within(s->rule, base, bounds);
    bool going = true;
    bool due = false;
    while (going) {
        due = f.found && f.at.us <= p->now.us && f.at.us < s->until.us;
        if (!due || p->result.work == most) {
            break;
        }
        p->result.work++;
        going = firing_take(p, &f);
        if (going) {
            f = firing_after(s, &f);
        }
    }
    if (going && !due) {
        going = window_settle(p, s->later.missed + s->later.live > 0);
    }
    bool held = f.held && f.at.us <= p->now.us && f.at.us < s->until.us;
    p->held = held && going && !p->result.moved;
    f.found = f.found || f.held; /* due at its time all the same: then it is a problem */
    /* Undecided or refused by the sink: the next pass begins with the oldest of them. */
    p->result.more = due || held || p->window_count > 0;
    p->result.next = p->window_count > 0 ? *window_oldest(p) : f;
    p->result.reached_until = !p->result.next.found || p->result.next.at.us >= s->until.us;
}

/* Of several in a pass those before it are planned first; what coalesces is planned as a whole. */
static bool pass_is_stuck(const struct pass *p)
{
    return p->held || (p->unknown.found && (!p->result.moved || p->misfire == MISFIRE_COALESCE));
}

enum status plan_schedule(const struct plan_subject *s, utc_us now, size_t subject,
                          struct plan_window *scratch, struct plan_sink *sink,
                          struct plan_result *ret_result, struct error *err)
{
    if (sink->firing_count == sink->firing_max ||
        sink->gap_max - sink->gap_count < PLAN_GAPS_A_SCHEDULE) {
        return error_set(err, STATUS_FULL, "the batch is full");
    }
    int64_t max = s->misfire_max < 1 ? 1 : s->misfire_max;
    max = max > PLANNER_MISSED_MAX ? PLANNER_MISSED_MAX : max;
    max = s->later.missed < max ? max - s->later.missed : 0;
    enum misfire misfire = misfire_of(s);
    struct pass p = {
        .subject = s,
        .now = now,
        .number = subject,
        .misfire = misfire,
        .window = scratch,
        .window_max = misfire == MISFIRE_RUN_ALL ? (size_t)max : 1,
        .sink = sink,
        .firings_before = sink->firing_count,
        .gaps_before = sink->gap_count,
        .previous = s->last_fire_at,
    };
    if (s->withheld) {
        pass_withhold(&p);
    } else {
        pass_run(&p);
    }
    bool stuck = pass_is_stuck(&p);
    if (p.duplicate || stuck) {
        sink->firing_count = p.firings_before;
        sink->gap_count = p.gaps_before;
    }
    if (p.duplicate) {
        return error_set(err, STATUS_INVALID,
                         "the rule fires twice under the key %s; make a new schedule for it",
                         p.previous_key);
    }
    if (stuck) {
        return plan_stuck_refuse(s->rule, p.unknown.found ? &p.unknown : &p.result.next, err);
    }
    *ret_result = p.result;
    return STATUS_OK;
}

struct plan_later plan_later_add(const struct plan_subject *s, utc_us now, struct plan_later newer)
{
    struct rule_bounds bounds = {s->starts_at, s->ends_at};
    utc_us base = base_of(s);
    utc_us end = utc_earlier(s->until, (utc_us){now.us + 1});
    utc_us grace = utc_later(base, (utc_us){now.us - s->misfire_grace_us - 1});
    utc_us age = utc_later(base, (utc_us){now.us - s->misfire_age_us - 1});
    if (s->withheld) {
        return newer;
    }
    int64_t live = rule_count_within(s->rule, grace, end, bounds);
    int64_t missed = rule_count_within(s->rule, base, end, bounds) - live;
    int64_t run = 0;
    switch (misfire_of(s)) {
    case MISFIRE_DEFAULT:
    case MISFIRE_SKIP:
        break;
    case MISFIRE_RUN_LATEST:
        run = missed > 0 && live == 0 && newer.missed == 0 && newer.live == 0 ? 1 : 0;
        break;
    case MISFIRE_COALESCE:
        run = live == 0 && rule_count_within(s->rule, age, end, bounds) > 0 ? 1 : 0;
        break;
    case MISFIRE_RUN_ALL:
        run = rule_count_within(s->rule, age, end, bounds) - live;
        if (run > s->misfire_max - newer.missed) {
            run = s->misfire_max > newer.missed ? s->misfire_max - newer.missed : 0;
        }
        break;
    }
    return (struct plan_later){newer.missed + run, newer.live + live};
}
