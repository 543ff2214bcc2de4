/* When each version was in force, found as the leader finds it when it takes an edit in. */
#include "ledger.h"

#include <stdio.h>
#include <string.h>

/* What the edits before have left, as schedule_progress had it. */
struct reign_walk {
    struct ledger_subject *s;
    struct plan_candidates *candidates;
    utc_us dealt; /* the latest firing that a version before dealt with; UTC_NONE: none */
    struct local_time dealt_nominal;
    int64_t jitter_us; /* of the version before */
    bool has_next;     /* the version before would have fired again */
    struct local_time next_nominal;
    struct plan_period last_about, next_about; /* by the version before */
    bool carrying; /* the version before was broken and no rule named what it withheld */
    utc_us carried_base;
};

struct ledger_version *ledger_version_find(const struct ledger_subject *s, int32_t version)
{
    size_t low = 0;
    size_t high = s->version_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (s->versions[middle].version < version) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < s->version_count && s->versions[low].version == version ? &s->versions[low] : NULL;
}

static utc_us later(utc_us a, utc_us b)
{
    return a.us > b.us ? a : b;
}

/* Each version's first firing behind its edit into `last`, for the moment. */
static void firsts_find(struct ledger_subject *s)
{
    for (size_t i = 0; i < s->version_count; i++) {
        s->versions[i].last = UTC_UNBOUNDED;
        s->versions[i].runs = 0;
    }
    for (size_t i = 0; i < s->firing_count; i++) {
        const struct ledger_firing *f = &s->firings[i];
        struct ledger_version *v = f->by_hand ? NULL : ledger_version_find(s, f->version);
        if (v != NULL) {
            v->runs++;
        }
        if (v != NULL && f->at.us >= v->effective_from.us && f->at.us < v->last.us) {
            v->last = f->at;
        }
    }
    for (size_t i = 0; i < s->gap_count; i++) {
        struct ledger_version *v = ledger_version_find(s, s->gaps[i].version);
        if (v != NULL && s->gaps[i].from.us >= v->effective_from.us &&
            s->gaps[i].from.us < v->last.us) {
            v->last = s->gaps[i].from;
        }
    }
}

/* The latest firing of each version. One behind the first of a newer version is an intruder: no
 * leader goes back. */
static void lasts_find(struct ledger_subject *s)
{
    firsts_find(s);
    utc_us newer = UTC_UNBOUNDED;
    for (size_t i = s->version_count; i-- > 0;) {
        utc_us first = s->versions[i].last;
        s->versions[i].end = newer;
        s->versions[i].last = UTC_NONE;
        newer = first.us < newer.us ? first : newer;
    }
    for (size_t i = 0; i < s->firing_count; i++) {
        const struct ledger_firing *f = &s->firings[i];
        struct ledger_version *v = f->by_hand ? NULL : ledger_version_find(s, f->version);
        if (v != NULL && f->at.us < v->end.us) {
            v->last = later(v->last, f->at);
        }
    }
    for (size_t i = 0; i < s->gap_count; i++) {
        struct ledger_version *v = ledger_version_find(s, s->gaps[i].version);
        if (v != NULL && s->gaps[i].to.us < v->end.us) {
            v->last = later(v->last, s->gaps[i].to);
        }
    }
}

static void highest_key_find(const struct ledger_subject *s, int32_t before,
                             char ret_key[KEY_MAX_BYTES])
{
    const char *highest = "";
    for (size_t i = 0; i < s->firing_count; i++) {
        const struct ledger_firing *f = &s->firings[i];
        if (!f->by_hand && f->version < before && strcmp(f->key, highest) > 0) {
            highest = f->key;
        }
    }
    (void)snprintf(ret_key, KEY_MAX_BYTES, "%s", highest);
}

static void candidates_mark(const struct ledger_subject *s, int32_t before,
                            struct plan_candidates *c)
{
    for (size_t i = 0; i < s->firing_count; i++) {
        const struct ledger_firing *f = &s->firings[i];
        for (size_t k = 0; (f->by_hand || f->version < before) && k < c->count; k++) {
            c->taken[k] = c->taken[k] || strcmp(c->keys[k], f->key) == 0;
        }
    }
}

/* Does the rule name firings that keys of the schedule's form tell apart? */
static bool version_names(const struct ledger_subject *s, const struct ledger_version *v)
{
    return v->parsed == STATUS_OK && !v->ended &&
           (!s->has_form || !v->form_fixed ||
            key_form_serves(s->form, key_form_of_rule(&v->rule))) &&
           rule_keeps_periods(&v->rule, v->bounds, (utc_us){v->effective_from.us - 1});
}

/* Take the edit in. False: the version cannot be planned. */
static bool version_switch(struct reign_walk *w, const struct ledger_version *v,
                           struct plan_switch *ret_switch)
{
    const struct ledger_subject *s = w->s;
    struct plan_edit edit = {
        .rule = v->parsed == STATUS_OK && !v->ended ? &v->rule : NULL,
        .once = v->once,
        .paused = v->paused,
        .has_form = v->form_fixed && s->has_form,
        .form = s->form,
        .effective_from = v->effective_from,
        .last_fire_at = w->dealt,
        .has_last = !utc_is_none(w->dealt),
        .last_nominal = w->dealt_nominal,
        .starts_at = v->bounds.starts_at,
        .ends_at = v->bounds.ends_at,
        .has_next = w->has_next,
        .next_nominal = w->next_nominal,
        .last_about = w->last_about,
        .next_about = w->next_about,
        .shift_us = v->ended ? 0 : v->jitter_us - w->jitter_us,
    };
    highest_key_find(s, v->version, edit.highest_key);
    enum status status = plan_switch_find(&edit, ret_switch, NULL);
    if (status == STATUS_OK && ret_switch->doubtful) {
        plan_candidates_fill(&edit, ret_switch, w->candidates);
        candidates_mark(s, v->version, w->candidates);
        status = plan_candidates_settle(&edit, w->candidates, ret_switch, NULL);
    }
    return status == STATUS_OK && (v->ended || v->parsed == STATUS_OK);
}

/* Whose rule names what a superseded version withheld: its own, the next, or, when the schedule
 * ended, the latest before. NULL: none. */
static const struct ledger_version *namer_of(const struct ledger_subject *s, size_t i)
{
    const struct ledger_version *v = &s->versions[i];
    if (version_names(s, v)) {
        return v;
    }
    if (!v[1].ended) {
        return version_names(s, &v[1]) ? &v[1] : NULL;
    }
    for (size_t k = i; k-- > 0;) {
        if (version_names(s, &s->versions[k])) {
            return &s->versions[k];
        }
    }
    return NULL;
}

static void kind_find(struct reign_walk *w, size_t i, bool broken)
{
    const struct ledger_subject *s = w->s;
    struct ledger_version *v = &s->versions[i];
    bool unreadable = v->parsed != STATUS_OK && v->parsed != STATUS_INVALID;
    /* What it was found to have run it could be planned for. */
    broken = broken && (v->parsed != STATUS_OK || v->runs == 0);
    bool withheld = v->paused || broken;
    bool in_force = !v->taken || v->version == s->version || i + 1 == s->version_count;
    v->namer = v;
    v->kind = v->ended     ? REIGN_NOTHING
              : unreadable ? REIGN_UNKNOWN
              : !withheld  ? REIGN_RUN
              : !in_force  ? REIGN_GAP
                           : REIGN_NOTHING;
    if (w->carrying && (broken || v->kind == REIGN_GAP)) {
        v->base = w->carried_base;
    }
    if (v->kind == REIGN_GAP) {
        v->namer = namer_of(s, i);
    }
    w->carrying = v->namer == NULL;
    w->carried_base = v->base;
    if (v->namer == NULL) {
        v->namer = v;
        v->kind = REIGN_NOTHING;
    }
    const struct ledger_version *n = v->namer;
    v->form = s->has_form && (v->form_fixed || !v->paused) ? s->form
              : n->parsed == STATUS_OK                     ? key_form_of_rule(&n->rule)
                                                           : KEY_DATE;
    /* The leader marked it: what is behind its progress waits to become a gap. */
    if (v->kind == REIGN_RUN && v->version == s->version && s->has_problem) {
        v->end = (utc_us){utc_is_none(s->last_fire_at) ? INT64_MIN : s->last_fire_at.us + 1};
    }
}

/* What the next edit will find. */
static void walk_on(struct reign_walk *w, size_t i)
{
    const struct ledger_subject *s = w->s;
    const struct ledger_version *v = &s->versions[i];
    const struct zone *zone = v->parsed == STATUS_OK ? v->rule.zone : NULL;
    if (!utc_is_none(v->last) && v->last.us > w->dealt.us) {
        w->dealt = v->last;
        int64_t utc_s = utc_seconds((utc_us){v->last.us - v->jitter_us});
        w->dealt_nominal.s = utc_s + (zone != NULL ? zone_offset_at(zone, utc_s) : 0);
    }
    if (v->ended || (v->kind == REIGN_GAP && v->namer != v)) {
        w->has_next = false;
    } else if (v->parsed == STATUS_OK && i + 1 < s->version_count) {
        utc_us after = later(later(w->dealt, v->base), (utc_us){v[1].effective_from.us - 1});
        struct firing f = rule_next_within(&v->rule, after, v->bounds);
        w->has_next = f.found;
        w->next_nominal = f.nominal;
        w->next_about = plan_period_of(&v->rule, f.nominal);
        w->last_about = plan_period_of(&v->rule, w->dealt_nominal);
    }
}

void ledger_reigns_find(struct ledger_subject *s, struct plan_candidates *candidates)
{
    struct reign_walk w = {.s = s, .candidates = candidates, .dealt = UTC_NONE};
    lasts_find(s);
    /* Of versions before those in sight. */
    for (size_t i = 0; i < s->firing_count && s->version_count > 0; i++) {
        const struct ledger_firing *f = &s->firings[i];
        if (!f->by_hand && f->version < s->versions[0].version) {
            w.dealt = later(w.dealt, f->at);
            w.dealt_nominal = f->nominal;
        }
    }
    for (size_t i = 0; i < s->version_count; i++) {
        struct ledger_version *v = &s->versions[i];
        struct plan_switch where;
        bool known = i == 0 && v->version > 1; /* it began long before */
        bool broken = v->parsed != STATUS_OK && !v->ended;
        v->taken = s->has_progress && v->version <= s->version;
        v->base = later((utc_us){v->effective_from.us - 1}, w.dealt);
        v->end = i + 1 == s->version_count
                     ? UTC_UNBOUNDED
                     : later(v[1].effective_from,
                             (utc_us){utc_is_none(v->last) ? INT64_MIN : v->last.us + 1});
        if (!known) {
            broken = !version_switch(&w, v, &where) || broken;
            w.dealt = where.shifted ? where.last_fire_at : w.dealt;
            v->base = later((utc_us){where.switched_at.us - 1}, w.dealt);
        }
        w.jitter_us = v->jitter_us;
        kind_find(&w, i, broken);
        walk_on(&w, i);
    }
}
