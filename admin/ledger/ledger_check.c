#include "ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MOVED_US  ((int64_t)27 * 3600 * MICROS_A_SECOND) /* further no zone's clock was ever set */
#define MOVED_MAX 4000 /* firings looked at for one that a new tzdata may have moved */
#define DAY_US    ((int64_t)SECONDS_A_DAY * MICROS_A_SECOND)
#define NEAR_US   DAY_US

struct check {
    struct ledger_subject *s;
    const struct ledger_span *span;
    struct ledger_sink *sink;
    size_t firing, gap;         /* of the walk: none before them is at its time or later */
    bool missing_before;        /* the firing before was not found */
    struct ledger_finding late; /* firings that are overdue; 0 firings: none */
};

struct ledger_finding ledger_finding_of(const struct ledger_subject *s,
                                        const struct ledger_version *v, const char *what, utc_us at,
                                        const char *key)
{
    struct ledger_finding f = {
        .verdict = LEDGER_WRONG,
        .what = what,
        .schedule = s->name,
        .at = at,
        .to = at,
        .firings = 1,
        .version = v != NULL ? v->version : 0,
        .since = v != NULL ? v->effective_from : UTC_NONE,
    };
    (void)snprintf(f.key, sizeof f.key, "%s", key);
    (void)snprintf(f.to_key, sizeof f.to_key, "%s", key);
    return f;
}

static void add(struct check *c, const struct ledger_finding *f)
{
    c->sink->add(c->sink->context, f);
}

/* The occurrence at the time of the walk under the key of the firing. */
static struct ledger_firing *firing_at(struct check *c, utc_us at, const char *key)
{
    struct ledger_subject *s = c->s;
    while (c->firing < s->firing_count && s->firings[c->firing].at.us < at.us) {
        c->firing++;
    }
    struct ledger_firing *found = NULL;
    for (size_t i = c->firing; i < s->firing_count && s->firings[i].at.us == at.us; i++) {
        struct ledger_firing *f = &s->firings[i];
        if (!f->by_hand && strcmp(f->key, key) == 0) {
            found = f;
        }
    }
    return found;
}

static const struct ledger_gap *gap_at(struct check *c, utc_us at)
{
    const struct ledger_subject *s = c->s;
    while (c->gap < s->gap_count && s->gaps[c->gap].to.us < at.us) {
        c->gap++;
    }
    for (size_t i = c->gap; i < s->gap_count && s->gaps[i].from.us <= at.us; i++) {
        if (s->gaps[i].to.us >= at.us) {
            return &s->gaps[i];
        }
    }
    return NULL;
}

/* An occurrence is what its firing says. */
static void firing_compare(struct check *c, const struct ledger_version *v,
                           const struct ledger_firing *have, const struct firing *want)
{
    char date[DATE_TEXT_MAX];
    char at[RFC3339_TEXT_MAX];
    struct ledger_finding f = ledger_finding_of(c->s, v, "differs", have->at, have->key);
    business_date_format(want, date);
    if (have->planned_at.us < have->at.us) {
        rfc3339_format_utc(have->planned_at, at);
        (void)snprintf(f.detail, sizeof f.detail, "it was planned at %s, before it was due", at);
        add(c, &f);
    }
    if (have->nominal.s != want->nominal.s || have->offset_s != want->offset_s ||
        strcmp(have->business_date, date) != 0) {
        rfc3339_format(want->at, want->offset_s, at);
        (void)snprintf(f.detail, sizeof f.detail,
                       "its local time, offset or business date is not that of %s", at);
        add(c, &f);
    }
}

/* A firing that the leader has not come to. */
static void firing_wait(struct check *c, const struct ledger_version *v, const struct firing *f,
                        const char *key)
{
    if (f->at.us > c->span->now.us - c->span->grace_us) {
        c->sink->counts.not_yet++;
        return;
    }
    if (c->late.firings == 0) {
        c->late = ledger_finding_of(c->s, v, "overdue", f->at, key);
        c->late.firings = 0;
    }
    c->late.firings++;
    c->late.to = f->at;
    memcpy(c->late.to_key, key, sizeof c->late.to_key);
}

static void late_add(struct check *c, const struct ledger_version *v)
{
    const struct ledger_subject *s = c->s;
    if (c->late.firings == 0) {
        return;
    }
    if (s->held) {
        c->late.verdict = LEDGER_LOOK;
        c->late.what = "held";
    }
    (void)snprintf(c->late.detail, sizeof c->late.detail,
                   "%s; reportctl why says what stands in the way",
                   s->held     ? "due and not planned, under a hold"
                   : !v->taken ? "due, and the edit that names it is not taken in"
                               : "due and not planned");
    add(c, &c->late);
    c->late.firings = 0;
}

static void firing_expect(struct check *c, const struct ledger_version *v, const struct firing *f)
{
    char key[KEY_MAX_BYTES];
    key_format(v->form, f, key);
    struct ledger_firing *have = firing_at(c, f->at, key);
    c->sink->counts.due++;
    if (have != NULL) {
        have->named = have->named || have->version == v->version;
        c->sink->counts.planned++;
        c->missing_before = false;
        if (v->kind == REIGN_RUN && have->version == v->version) {
            firing_compare(c, v, have, f);
        }
        return;
    }
    if (gap_at(c, f->at) != NULL) {
        c->sink->counts.in_gaps++;
        c->missing_before = false;
        return;
    }
    bool in_force = v->version == c->s->version;
    if (!v->taken ||
        (in_force && (utc_is_none(c->s->last_fire_at) || f->at.us > c->s->last_fire_at.us))) {
        firing_wait(c, v, f, key);
        return;
    }
    struct ledger_finding missing = ledger_finding_of(c->s, v, "missing", f->at, key);
    missing.doubt = DOUBT_MISSING;
    missing.follows = c->missing_before;
    missing.near = f->at.us < v->effective_from.us + NEAR_US;
    (void)snprintf(missing.detail, sizeof missing.detail, "%s",
                   v->kind == REIGN_GAP ? "due while nothing of it was run, and in no gap"
                                        : "no occurrence, and in no gap");
    add(c, &missing);
    c->missing_before = true;
}

static void reign_walk(struct check *c, const struct ledger_version *v)
{
    const struct ledger_span *span = c->span;
    const struct ledger_version *n = v->namer;
    utc_us after = {v->base.us > span->from.us - 1 ? v->base.us : span->from.us - 1};
    int64_t until = v->end.us < span->to.us ? v->end.us : span->to.us;
    if ((v->kind != REIGN_RUN && v->kind != REIGN_GAP) || n->parsed != STATUS_OK) {
        return;
    }
    c->firing = 0;
    c->gap = 0;
    c->missing_before = false;
    struct rule rule = n->rule;
    rule.jitter_us = v->jitter_us; /* when it would have been due */
    struct firing f = rule_next_within(&rule, after, n->bounds);
    while (f.found && f.at.us < until) {
        firing_expect(c, v, &f);
        f = rule_next_within(&rule, f.at, n->bounds);
    }
    late_add(c, v);
}

/* ---- occurrences that the walk did not come to ---- */

/* A firing of the same key at another time: the zone's rules were others when it was planned, and
 * what it says is right by those. */
static bool firing_has_moved(const struct ledger_version *v, const struct ledger_firing *f,
                             utc_us *ret_at)
{
    char key[KEY_MAX_BYTES];
    struct firing g = rule_next_within(&v->rule, (utc_us){f->at.us - MOVED_US}, v->bounds);
    for (unsigned i = 0; i < MOVED_MAX && g.found && g.at.us <= f->at.us + MOVED_US; i++) {
        key_format(v->form, &g, key);
        if (strcmp(key, f->key) == 0 && g.nominal.s == f->nominal.s) {
            *ret_at = g.at;
            int64_t far = f->at.us - v->jitter_us - (f->nominal.s - f->offset_s) * MICROS_A_SECOND;
            /* A calendar moves by whole days. */
            return g.offset_s != f->offset_s &&
                   (rule_moves_dates(&v->rule) ? far % DAY_US == 0 : far == 0);
        }
        g = rule_next_within(&v->rule, g.at, v->bounds);
    }
    return false;
}

static const char *reign_refuses(const struct ledger_version *v)
{
    if (v->ended) {
        return "the schedule was deleted when its version began";
    }
    if (v->paused) {
        return "the schedule was paused under its version";
    }
    if (v->parsed != STATUS_OK) {
        return "the rule of its version names no firing";
    }
    return v->taken ? NULL : "no leader has taken its version in";
}

static void firing_explain_time(const struct ledger_version *v, const struct ledger_firing *f,
                                struct ledger_finding *x)
{
    struct firing g = rule_next_within(&v->rule, (utc_us){f->at.us - 1}, v->bounds);
    char text[KEY_MAX_BYTES];
    utc_us moved;
    if (g.found && g.at.us == f->at.us) {
        key_format(v->form, &g, text);
        if (strcmp(text, f->key) != 0) {
            (void)snprintf(x->detail, sizeof x->detail, "its key is not that of this time, %s",
                           text);
        } else {
            (void)snprintf(x->detail, sizeof x->detail, "%s",
                           f->at.us <= v->base.us ? "due before its version began"
                                                  : "its version had been replaced by then");
        }
    } else if (firing_has_moved(v, f, &moved)) {
        rfc3339_format_utc(moved, text);
        x->verdict = LEDGER_LOOK;
        x->what = "moved";
        (void)snprintf(x->detail, sizeof x->detail,
                       "with the time zone data of this host it is due at %s", text);
    } else {
        (void)snprintf(x->detail, sizeof x->detail,
                       "the rule of its version does not name this time");
    }
}

static void firing_explain(struct check *c, const struct ledger_firing *f)
{
    const struct ledger_version *v = ledger_version_find(c->s, f->version);
    struct ledger_finding x = ledger_finding_of(c->s, v, "unnamed", f->at, f->key);
    const char *refused = v != NULL ? reign_refuses(v) : NULL;
    x.version = f->version;
    if (v == NULL) {
        bool old = c->s->version_count > 0 && f->version < c->s->versions[0].version;
        (void)snprintf(x.detail, sizeof x.detail, "%s",
                       old ? "its version had been replaced days before"
                           : "there was no such version at that time");
    } else if (v->kind == REIGN_UNKNOWN) {
        return;
    } else if (refused != NULL) {
        (void)snprintf(x.detail, sizeof x.detail, "%s", refused);
    } else {
        firing_explain_time(v, f, &x);
    }
    add(c, &x);
}

/* ---- progress ---- */

static void progress_behind(struct check *c, const struct ledger_version *v)
{
    const struct ledger_subject *s = c->s;
    if (utc_is_none(v->last) || v->last.us <= s->last_fire_at.us) {
        return;
    }
    struct ledger_finding x = ledger_finding_of(s, v, "progress", v->last, "");
    (void)snprintf(x.detail, sizeof x.detail,
                   "schedule_progress.last_fire_at is behind what the ledger has");
    add(c, &x);
}

/* Where the version in force began, and what it comes to next. Compared by the firing behind it: an
 * instant between two firings means the same. */
static void progress_compare(struct check *c, const struct ledger_version *v)
{
    const struct ledger_subject *s = c->s;
    const struct ledger_span *span = c->span;
    char want[RFC3339_TEXT_MAX];
    utc_us recorded = {s->switched_at.us - 1};
    struct firing a = rule_next_within(&v->rule, v->base, v->bounds);
    struct firing b = rule_next_within(&v->rule, recorded, v->bounds);
    utc_us dealt = s->last_fire_at.us > recorded.us ? s->last_fire_at : recorded;
    bool began_here = v->effective_from.us >= span->from.us && v->effective_from.us < span->to.us;
    /* What lies behind the progress of the version before is settled by base. */
    if (began_here && a.found && a.at.us < span->to.us && recorded.us >= v->base.us &&
        (!b.found || a.at.us != b.at.us)) {
        struct ledger_finding x = ledger_finding_of(s, v, "switch", s->switched_at, "");
        rfc3339_format_utc(a.at, want);
        (void)snprintf(x.detail, sizeof x.detail,
                       "its version began to plan too late: its first firing is that of %s", want);
        add(c, &x);
    }
    struct firing next = rule_next_within(&v->rule, dealt, v->bounds);
    if (span->to_now && next.found && s->next_fire_at.us != next.at.us) {
        struct ledger_finding x = ledger_finding_of(s, v, "progress", next.at, "");
        rfc3339_format_utc(next.at, want);
        x.verdict = utc_is_none(s->next_fire_at) ? LEDGER_WRONG : LEDGER_LOOK;
        (void)snprintf(x.detail, sizeof x.detail,
                       "schedule_progress.next_fire_at is not that of its next firing, %s", want);
        add(c, &x);
    }
}

static void progress_check(struct check *c)
{
    const struct ledger_subject *s = c->s;
    const struct ledger_version *v = s->has_progress ? ledger_version_find(s, s->version) : NULL;
    if (v == NULL) {
        return;
    }
    progress_behind(c, v);
    if (v->kind == REIGN_RUN && !s->has_problem &&
        v->version == s->versions[s->version_count - 1].version) {
        progress_compare(c, v);
    }
}

/* Versions by a calendar that is another by now: nobody can tell any more what they named, and that
 * is no fault. One finding tells of all, by the latest of them. */
static void calendar_note(struct ledger_finding *f, const struct ledger_subject *s,
                          const struct ledger_version *v)
{
    int32_t first = f->firings > 0 ? f->first_version : v->version;
    *f = ledger_finding_of(s, v, "calendar", v->effective_from, "");
    f->verdict = LEDGER_LOOK;
    f->first_version = first;
    if (first == v->version) {
        (void)snprintf(f->detail, sizeof f->detail, "%s: what this version named is not told",
                       v->problem);
    } else {
        (void)snprintf(f->detail, sizeof f->detail,
                       "%s: what versions %" PRId32 " to %" PRId32 " named is not told", v->problem,
                       first, v->version);
    }
}

void ledger_check(struct ledger_subject *s, const struct ledger_span *span,
                  struct plan_candidates *candidates, struct ledger_sink *sink)
{
    struct check c = {.s = s, .span = span, .sink = sink};
    struct ledger_finding followed = {.firings = 0};
    ledger_reigns_find(s, candidates);
    for (size_t i = 0; i < s->version_count; i++) {
        struct ledger_version *v = &s->versions[i];
        bool here = v->end.us > span->from.us && v->base.us < span->to.us;
        if (v->kind == REIGN_UNKNOWN && here && v->parsed == STATUS_CONFLICT) {
            calendar_note(&followed, s, v);
        } else if (v->kind == REIGN_UNKNOWN && here) {
            struct ledger_finding x = ledger_finding_of(s, v, "unchecked", v->effective_from, "");
            x.verdict = LEDGER_UNCHECKED;
            (void)snprintf(x.detail, sizeof x.detail, "%s", v->problem);
            add(&c, &x);
        }
        sink->counts.withheld +=
            here && v->kind == REIGN_NOTHING && !v->ended && v->version == s->version ? 1 : 0;
        reign_walk(&c, v);
    }
    if (followed.firings > 0) {
        add(&c, &followed);
    }
    for (size_t i = 0; i < s->firing_count; i++) {
        const struct ledger_firing *f = &s->firings[i];
        if (!f->by_hand && !f->named && f->at.us >= span->from.us && f->at.us < span->to.us) {
            firing_explain(&c, f);
        }
    }
    ledger_gaps_check(s, span, sink);
    progress_check(&c);
}
