/* A gap says what it covers: first and last firing, their keys, and how many there are. */
#include "ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define GAP_TEXT_MAX 300

struct gap_check {
    const struct ledger_subject *s;
    const struct ledger_span *span;
    struct ledger_sink *sink;
    const struct ledger_gap *gap;
    const struct ledger_version *version; /* NULL: not in sight */
};

static void gap_say(const struct gap_check *c, const char *detail)
{
    const struct ledger_gap *g = c->gap;
    struct ledger_finding x = ledger_finding_of(c->s, c->version, "gap", g->from, g->from_key);
    x.to = g->to;
    x.version = g->version;
    x.firings = g->firings;
    (void)snprintf(x.to_key, sizeof x.to_key, "%s", g->to_key);
    (void)snprintf(x.detail, sizeof x.detail, "gap %s: %s", g->reason, detail);
    c->sink->add(c->sink->context, &x);
}

static bool reason_is(const struct ledger_gap *g, const char *reason)
{
    return strcmp(g->reason, reason) == 0;
}

/* Firings within a gap of forbidden ones whose key was taken have a gap of their own. */
static int64_t taken_within(const struct gap_check *c)
{
    int64_t n = 0;
    for (size_t i = 0; i < c->s->gap_count && c->s->gaps[i].from.us <= c->gap->to.us; i++) {
        const struct ledger_gap *g = &c->s->gaps[i];
        n += g != c->gap && g->version == c->gap->version && g->from.us > c->gap->from.us &&
                     reason_is(g, "key_taken")
                 ? g->firings
                 : 0;
    }
    return n;
}

/* What differs from the gap as the rule of a version names it; "": nothing. */
static void gap_compare(const struct gap_check *c, const struct ledger_version *v,
                        enum key_form form, char ret_text[GAP_TEXT_MAX])
{
    const struct ledger_gap *g = c->gap;
    struct rule rule = v->rule;
    rule.jitter_us = c->version->jitter_us; /* by which they would have been due */
    char first_key[KEY_MAX_BYTES];
    char last_key[KEY_MAX_BYTES];
    struct firing first = rule_next_within(&rule, (utc_us){g->from.us - 1}, v->bounds);
    struct firing last = rule_next_within(&rule, (utc_us){g->to.us - 1}, v->bounds);
    ret_text[0] = '\0';
    if (!first.found || first.at.us != g->from.us || !last.found || last.at.us != g->to.us) {
        (void)snprintf(ret_text, GAP_TEXT_MAX,
                       "it does not begin and end with a firing of its version");
        return;
    }
    key_format(form, &first, first_key);
    key_format(form, &last, last_key);
    if (strcmp(first_key, g->from_key) != 0 || strcmp(last_key, g->to_key) != 0) {
        (void)snprintf(ret_text, GAP_TEXT_MAX,
                       "its keys are not those of its times, %.60s and %.60s", first_key, last_key);
        return;
    }
    int64_t n =
        rule_count_within(&rule, (utc_us){g->from.us - 1}, (utc_us){g->to.us + 1}, v->bounds);
    if (n != g->firings && n != g->firings + taken_within(c)) {
        (void)snprintf(ret_text, GAP_TEXT_MAX,
                       "there are %" PRId64 " firings in it, and it says %" PRId64, n, g->firings);
    }
}

/* Of a version that could not be planned any rule that its edits had may have named it. */
static void gap_compare_any(const struct gap_check *c, char ret_text[GAP_TEXT_MAX])
{
    const struct ledger_subject *s = c->s;
    bool mended = reason_is(c->gap, "problem_mended");
    (void)snprintf(ret_text, GAP_TEXT_MAX, "no version names its firings");
    for (size_t i = 0; i < s->version_count; i++) {
        const struct ledger_version *v = &s->versions[i];
        char text[GAP_TEXT_MAX];
        if (v->parsed != STATUS_OK || v->ended || (!mended && v != c->version)) {
            continue;
        }
        gap_compare(c, v, v->form, text);
        if (text[0] != '\0' && v->kind == REIGN_GAP) {
            gap_compare(c, v, key_form_of_rule(&v->rule), text);
        }
        if (text[0] == '\0') {
            ret_text[0] = '\0';
            return;
        }
        if (v == c->version) {
            (void)snprintf(ret_text, GAP_TEXT_MAX, "%s", text);
        }
    }
}

static void gap_check_rule(const struct gap_check *c)
{
    char text[GAP_TEXT_MAX];
    const struct ledger_version *v = c->version;
    if (v == NULL) {
        bool old = c->s->version_count > 0 && c->gap->version < c->s->versions[0].version;
        gap_say(c, old ? "its version had been replaced days before" : "there was no such version");
        return;
    }
    if (v->kind == REIGN_UNKNOWN) {
        return;
    }
    if (v->ended) {
        gap_say(c, "the schedule was deleted when its version began");
        return;
    }
    gap_compare_any(c, text);
    if (text[0] != '\0') {
        gap_say(c, text);
    }
}

static void gap_check_taken(const struct gap_check *c)
{
    const struct ledger_gap *g = c->gap;
    struct ledger_finding x = ledger_finding_of(c->s, c->version, "gap", g->from, g->from_key);
    x.version = g->version;
    x.doubt = DOUBT_TAKEN;
    (void)snprintf(x.detail, sizeof x.detail,
                   "gap key_taken: no other occurrence has the key that it says was taken");
    c->sink->add(c->sink->context, &x);
}

/* What was run is in no gap of the same version. */
static void gap_check_runs(const struct gap_check *c, size_t *first)
{
    const struct ledger_subject *s = c->s;
    const struct ledger_gap *g = c->gap;
    while (*first < s->firing_count && s->firings[*first].at.us < g->from.us) {
        ++*first;
    }
    for (size_t i = *first; i < s->firing_count && s->firings[i].at.us <= g->to.us; i++) {
        const struct ledger_firing *f = &s->firings[i];
        if (!f->by_hand && f->version == g->version && !reason_is(g, "key_taken")) {
            struct ledger_finding x = ledger_finding_of(s, c->version, "both", f->at, f->key);
            (void)snprintf(x.detail, sizeof x.detail,
                           "it has an occurrence, and lies in the gap %s from %s to %s", g->reason,
                           g->from_key, g->to_key);
            c->sink->add(c->sink->context, &x);
        }
    }
}

static void gap_check_overlap(const struct gap_check *c, const struct ledger_gap **before)
{
    const struct ledger_gap *g = c->gap;
    if (reason_is(g, "key_taken")) {
        return;
    }
    if (*before != NULL && (*before)->version == g->version && g->from.us <= (*before)->to.us) {
        gap_say(c, "another gap of the version covers some of its firings");
    }
    if (*before == NULL || g->to.us > (*before)->to.us) {
        *before = g;
    }
}

void ledger_gaps_check(const struct ledger_subject *s, const struct ledger_span *span,
                       struct ledger_sink *sink)
{
    struct gap_check c = {.s = s, .span = span, .sink = sink};
    const struct ledger_gap *before = NULL;
    size_t first = 0;
    for (size_t i = 0; i < s->gap_count; i++) {
        c.gap = &s->gaps[i];
        c.version = ledger_version_find(s, c.gap->version);
        gap_check_overlap(&c, &before);
        /* Of a gap that reaches over several spans the one in which it ends. */
        if (c.gap->to.us < span->from.us || c.gap->to.us >= span->to.us) {
            continue;
        }
        gap_check_rule(&c);
        gap_check_runs(&c, &first);
        if (reason_is(c.gap, "key_taken")) {
            gap_check_taken(&c);
        }
    }
}
