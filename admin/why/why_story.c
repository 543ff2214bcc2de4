#include "why_story.h"

#include <stdlib.h>
#include <string.h>

#define AROUND_US                                                                                  \
    ((int64_t)27 * 3600 * MICROS_A_SECOND) /* local times are not further from UTC                 \
                                            */
#define LOOK_MAX 100000                    /* firings looked at: those of a day each second */

static bool names(const struct ledger_version *v)
{
    return v->namer->parsed == STATUS_OK && !v->ended;
}

static struct firing next_of(const struct ledger_version *v, int64_t after_us)
{
    return rule_next_within(&v->namer->rule, (utc_us){after_us}, v->namer->bounds);
}

const struct ledger_version *why_version_at(const struct ledger_subject *s, utc_us at)
{
    const struct ledger_version *found = NULL;
    for (size_t i = 0; i < s->version_count; i++) {
        const struct ledger_version *v = &s->versions[i];
        /* What the leader has marked waits under it. */
        int64_t end = v->version != s->version || !s->has_problem ? v->end.us
                      : i + 1 < s->version_count                  ? v[1].effective_from.us
                                                                  : INT64_MAX;
        bool here = at.us > v->base.us && at.us < end;
        /* An edit may call for a firing before it: the version that names it has it. */
        if (here && (found == NULL || v->effective_from.us <= at.us ||
                     (names(v) && next_of(v, at.us - 1).at.us == at.us))) {
            found = v;
        }
    }
    return found;
}

/* How far from its nominal time a firing may run: a roll, and each day of an offset, passes over
 * one closure at most. */
static int64_t reach_us(const struct rule *r)
{
    if (!rule_moves_dates(r)) {
        return 0;
    }
    int64_t closed = calendar_longest_closed(r->calendar) + 1;
    return closed * (1 + llabs(r->business_day_offset)) * SECONDS_A_DAY * MICROS_A_SECOND;
}

/* What the zone's clock shows when it runs, without the delay. */
static int64_t clock_of(const struct rule *r, const struct firing *f)
{
    return floor_divide(f->at.us - r->jitter_us, MICROS_A_SECOND) + f->offset_s;
}

/* The first firing at a local time, or on its date: that runs then (`runs`) or has it as its
 * nominal one. */
static struct firing local_find(const struct ledger_version *v, const struct why_ask *ask,
                                utc_us near, bool runs, int64_t *ret_count)
{
    const struct rule *r = &v->namer->rule;
    int64_t unit = ask->form == WHY_DATE ? SECONDS_A_DAY : 1;
    int64_t wanted = floor_divide(ask->local.s, unit);
    int64_t reach = runs ? 0 : reach_us(r);
    struct firing first = {.found = false};
    struct firing f = next_of(v, near.us - AROUND_US - reach);
    *ret_count = 0;
    for (int i = 0; i < LOOK_MAX && f.found && f.at.us <= near.us + 2 * AROUND_US + reach; i++) {
        if (floor_divide(runs ? clock_of(r, &f) : f.nominal.s, unit) == wanted) {
            first = *ret_count == 0 ? f : first;
            ++*ret_count;
        }
        f = next_of(v, f.at.us);
    }
    return first;
}

/* Of a rule whose dates move one date may mean two firings: what runs then is meant, and the other
 * is named. */
static struct firing moved_find(const struct ledger_version *v, const struct why_ask *ask,
                                struct why_story *w)
{
    int64_t count = 0;
    struct firing nominal = local_find(v, ask, w->at, false, &count);
    if (ask->of_key) {
        w->on_date = count;
        return nominal;
    }
    struct firing f = local_find(v, ask, w->at, true, &w->on_date);
    if (!f.found) {
        w->on_date = count;
        return nominal;
    }
    if (nominal.found && nominal.at.us != f.at.us) {
        key_format(v->form, &nominal, w->namesake);
        w->namesake_at = nominal.at;
    }
    return f;
}

static const struct zone *zone_of(const struct ledger_subject *s, utc_us near)
{
    const struct ledger_version *v = why_version_at(s, near);
    const struct zone *z = v != NULL && v->parsed == STATUS_OK ? v->rule.zone : NULL;
    for (size_t i = s->version_count; z == NULL && i-- > 0;) {
        z = s->versions[i].parsed == STATUS_OK ? s->versions[i].rule.zone : NULL;
    }
    return z;
}

/* Where to look: the asked time as an instant. */
static utc_us instant_of(const struct ledger_subject *s, const struct why_ask *ask,
                         struct why_story *w)
{
    const struct zone *z = zone_of(s, utc_from_seconds(ask->local.s));
    utc_us at = utc_from_seconds(ask->local.s);
    w->clock = LOCAL_UNIQUE;
    if (ask->form == WHY_INSTANT) {
        return ask->at;
    }
    if (z != NULL) {
        w->clock = why_instants(z, ask->local, &at, &w->twin);
    }
    if (ask->form == WHY_DATE) {
        w->clock = LOCAL_UNIQUE;
    }
    return at;
}

static struct firing asked_firing(const struct ledger_version *v, const struct why_ask *ask,
                                  struct why_story *w)
{
    struct firing f = {.found = false};
    switch (ask->form) {
    case WHY_LATEST:
    case WHY_KEY:
    case WHY_INSTANT:
        f = next_of(v, w->at.us - 1);
        if (!f.found || f.at.us != w->at.us) {
            /* The rule's own instant, which a key may name, is as good as the delayed one. */
            utc_us delayed = {w->at.us + v->namer->rule.jitter_us};
            f = next_of(v, delayed.us - 1);
            f.found = f.found && f.at.us == delayed.us;
        }
        break;
    case WHY_LOCAL:
    case WHY_DATE:
        f = rule_moves_dates(&v->namer->rule) ? moved_find(v, ask, w)
                                              : local_find(v, ask, w->at, false, &w->on_date);
        w->on_date = ask->form == WHY_DATE ? w->on_date : 0;
        break;
    }
    return f;
}

/* Would it fire without the calendar? Then what the calendar has done to its date. */
static bool calendar_explain(const struct ledger_version *v, const struct why_ask *ask,
                             struct why_story *w)
{
    const struct rule *r = &v->namer->rule;
    struct ledger_version plain = *v;
    struct calendar_answer answer = {.skipped = false};
    if (r->calendar == NULL) {
        return false;
    }
    plain.namer = &plain;
    plain.parsed = STATUS_OK;
    plain.rule = *r;
    plain.rule.calendar = NULL;
    plain.rule.nonbusiness = ROLL_RUN;
    plain.rule.business_day_offset = 0;
    plain.bounds = v->namer->bounds;
    struct why_story bare = *w;
    struct firing f = asked_firing(&plain, ask, &bare);
    if (!f.found) {
        return false;
    }
    w->date = floor_divide(f.nominal.s, SECONDS_A_DAY);
    enum status s = calendar_roll(r->calendar, r->nonbusiness, w->date, &answer, NULL);
    if (s == STATUS_OK && !answer.skipped && r->business_day_offset != 0) {
        s = calendar_add(r->calendar, answer.day, r->business_day_offset, &answer, NULL);
    }
    w->to_date = answer.day;
    w->kind = s != STATUS_OK ? WHY_UNKNOWN_DAY : answer.skipped ? WHY_SKIPPED : WHY_JOINED;
    return w->kind != WHY_JOINED || rule_moves_dates(r);
}

/* Not named: what lies nearest, and whether start, end or calendar kept it away. */
static void unnamed_explain(const struct ledger_subject *s, const struct ledger_version *v,
                            const struct why_ask *ask, struct why_story *w)
{
    struct ledger_version open = *v;
    w->kind = WHY_NOT_NAMED;
    open.namer = &open;
    open.rule = v->namer->rule;
    open.parsed = STATUS_OK;
    open.bounds = (struct rule_bounds){.starts_at = UTC_NONE, .ends_at = UTC_NONE};
    struct why_story bare = *w;
    struct firing f = asked_firing(&open, ask, &bare);
    if (f.found) {
        const struct rule_bounds *b = &v->namer->bounds;
        bool early = b->starts_at.us == UTC_UNBOUNDED.us ||
                     (!utc_is_none(b->starts_at) && f.at.us < b->starts_at.us);
        w->kind = early ? WHY_BEFORE_START : WHY_AFTER_END;
        w->firing = f;
        w->at = f.at;
        key_format(v->form, &f, w->key);
        return;
    }
    if (!calendar_explain(v, ask, w)) {
        w->kind = WHY_NOT_NAMED;
    }
    w->after = next_of(v, w->at.us - 1);
    w->before = rule_last_within(&v->namer->rule, (utc_us){w->at.us - 400 * AROUND_US},
                                 (utc_us){w->at.us}, v->namer->bounds);
    for (size_t i = 0; i < s->version_count; i++) {
        const struct ledger_version *o = &s->versions[i];
        if (o != v && names(o) && asked_firing(o, ask, &bare).found) {
            w->other = o;
        }
    }
}

static void named_explain(const struct ledger_subject *s, const struct ledger_version *v,
                          utc_us now, struct why_story *w)
{
    bool in_force = v->version == s->version;
    for (size_t i = 0; i < s->gap_count; i++) {
        const struct ledger_gap *g = &s->gaps[i];
        if (g->from.us <= w->at.us && g->to.us >= w->at.us &&
            (w->gap == NULL || strcmp(g->reason, "key_taken") == 0)) {
            w->gap = g;
        }
    }
    if (w->gap != NULL) {
        w->kind = WHY_IN_GAP;
    } else if (w->at.us > now.us) {
        w->kind = WHY_NOT_YET;
    } else if (v->taken && (v->kind == REIGN_NOTHING ||
                            (in_force && s->has_problem && w->at.us > s->last_fire_at.us))) {
        w->kind = WHY_WITHHELD;
    } else if (!v->taken || (in_force && w->at.us > s->last_fire_at.us)) {
        w->kind = WHY_WAITS;
    } else {
        w->kind = WHY_LOST;
    }
}

static void version_explain(const struct ledger_subject *s, const struct ledger_version *v,
                            const struct why_ask *ask, utc_us now, struct why_story *w)
{
    if (v == NULL) {
        w->kind = WHY_NOT_MADE;
        return;
    }
    if (v->ended) {
        w->kind = WHY_DELETED;
        return;
    }
    if (!names(v)) {
        w->kind = v->taken && v->parsed == STATUS_INVALID ? WHY_WITHHELD : WHY_UNREADABLE;
        return;
    }
    struct firing f = asked_firing(v, ask, w);
    if (!f.found) {
        unnamed_explain(s, v, ask, w);
        return;
    }
    if (w->on_date > 1) {
        w->kind = WHY_SEVERAL;
        w->after = f;
        return;
    }
    w->firing = f;
    w->at = f.at;
    key_format(v->form, &f, w->key);
    named_explain(s, v, now, w);
}

/* The version whose rule names periods of such keys and was in force when one was over, else the
 * latest. NULL: none names periods. */
static const struct ledger_version *periods_version(const struct ledger_subject *s, utc_us over)
{
    const struct ledger_version *v = why_version_at(s, over);
    for (size_t i = s->version_count; (v == NULL || !names(v)) && i-- > 0;) {
        v = &s->versions[i];
    }
    return v != NULL && names(v) && rule_is_of_periods(&v->namer->rule) ? v : NULL;
}

/* The days of a period that a key names, by its form or the labels of the latest version. */
static bool period_days(const struct ledger_subject *s, const char *key, int64_t *ret_first,
                        int64_t *ret_last)
{
    const struct ledger_version *v = periods_version(s, UTC_PAST);
    const struct fiscal_periods *p = v != NULL ? v->namer->rule.business.periods : NULL;
    for (size_t i = 0; p != NULL && i < p->count; i++) {
        if (strcmp(p->list[i].label, key) == 0) {
            *ret_first = p->list[i].first;
            *ret_last = p->list[i].last;
            return true;
        }
    }
    return business_period_parse(key, ret_first, ret_last);
}

bool why_period_find(const struct ledger_subject *s, const char *key, utc_us *ret_at)
{
    const int64_t reach = (int64_t)2 * BUSINESS_PERIOD_MAX_DAYS * SECONDS_A_DAY;
    int64_t first = 0;
    int64_t last = 0;
    if (!period_days(s, key, &first, &last)) {
        return false;
    }
    const struct ledger_version *v =
        periods_version(s, utc_from_seconds((last + 1) * SECONDS_A_DAY));
    utc_us end = utc_from_seconds(last * SECONDS_A_DAY + reach);
    if (v == NULL) {
        return false;
    }
    struct firing f = next_of(v, utc_from_seconds(first * SECONDS_A_DAY - reach).us);
    for (; f.found && f.at.us < end.us; f = next_of(v, f.at.us)) {
        char text[KEY_MAX_BYTES];
        key_format(v->form, &f, text);
        if (strcmp(text, key) == 0) {
            *ret_at = f.at;
            return true;
        }
    }
    return false;
}

/* Nothing was in force then. What was written on that day counts, and what a calendar moves behind
 * that. */
static const struct ledger_version *
later_version(const struct ledger_subject *s, const struct why_ask *ask, const struct why_story *w)
{
    const struct ledger_version *found =
        ask->form == WHY_DATE ? why_version_at(s, (utc_us){w->at.us + AROUND_US}) : NULL;
    for (size_t i = 0; i < s->version_count && found == NULL; i++) {
        const struct ledger_version *v = &s->versions[i];
        struct why_story bare = *w;
        if (names(v) && rule_moves_dates(&v->namer->rule)) {
            struct firing f = asked_firing(v, ask, &bare);
            found = f.found ? why_version_at(s, f.at) : NULL;
        }
    }
    return found;
}

void why_story_find(const struct ledger_subject *s, const struct why_ask *ask, utc_us now,
                    struct why_story *ret)
{
    struct why_story w = {.kind = WHY_NOT_MADE, .twin = UTC_NONE};
    w.at = instant_of(s, ask, &w);
    w.version = why_version_at(s, w.at);
    if (w.version == NULL) {
        w.version = later_version(s, ask, &w);
    }
    version_explain(s, w.version, ask, now, &w);
    /* The firing of that date or time may lie on the other side of an edit. */
    bool found = w.firing.found || w.kind == WHY_SEVERAL;
    const struct ledger_version *v = found ? why_version_at(s, w.at) : w.version;
    if (v != w.version) {
        struct why_story again = {.kind = WHY_NOT_MADE, .twin = w.twin, .clock = w.clock};
        again.at = w.at;
        again.version = v;
        version_explain(s, v, ask, now, &again);
        w = again;
    }
    *ret = w;
}
