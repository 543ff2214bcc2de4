#include "edit_preview.h"

#include <stdlib.h>
#include <string.h>

/* Two zones show dates that are at most so far apart. */
#define LOOK_BACK_US    ((int64_t)4 * SECONDS_A_DAY * MICROS_A_SECOND)
#define PERIODS_BACK_US ((int64_t)2 * BUSINESS_PERIOD_MAX_DAYS * SECONDS_A_DAY * MICROS_A_SECOND)

const char *preview_change_name(enum preview_change change)
{
    switch (change) {
    case PREVIEW_KEPT:
        return "kept";
    case PREVIEW_ADDED:
        return "added";
    case PREVIEW_REMOVED:
        return "removed";
    case PREVIEW_MOVED:
        return "moved";
    case PREVIEW_REDATED:
        return "redated";
    }
    return "";
}

utc_us preview_after(const struct preview_progress *p, utc_us now)
{
    return p->planned_to.us > now.us ? p->planned_to : now;
}

static enum key_form form_of(const struct preview_version *v, const struct preview_progress *p)
{
    return p->has_form ? p->form : key_form_of_rule(v->rule);
}

/* What the version in force does before the edit begins. */
static void edit_add_planned(struct plan_edit *e, const struct preview_version *base,
                             const struct preview_progress *p)
{
    struct firing last = {.found = false};
    if (p->planned_to.us < e->effective_from.us) {
        last = rule_last_within(base->rule, p->planned_to, e->effective_from, base->bounds);
    }
    if (last.found) {
        char key[KEY_MAX_BYTES];
        e->last_fire_at = last.at;
        e->last_nominal = last.nominal;
        e->has_last = true;
        key_format(form_of(base, p), &last, key);
        if (!base->withheld && strcmp(key, e->highest_key) > 0) {
            memcpy(e->highest_key, key, sizeof e->highest_key);
        }
    }
    utc_us after = {e->effective_from.us - 1};
    after = p->planned_to.us > after.us ? p->planned_to : after;
    struct firing next = rule_next_within(base->rule, after, base->bounds);
    e->has_next = next.found;
    e->next_nominal = next.nominal;
    e->next_about = plan_period_of(base->rule, next.nominal);
    if (e->has_last) {
        e->last_about = plan_period_of(base->rule, e->last_nominal);
    }
}

struct plan_edit preview_edit_of(const struct preview_version *base,
                                 const struct preview_version *next,
                                 const struct preview_progress *p)
{
    struct plan_edit e = {
        .rule = next->rule,
        .once = next->once,
        .paused = next->paused,
        .has_form = p->has_form,
        .form = p->form,
        .effective_from = next->begins,
        .last_fire_at = p->last_fire_at,
        .has_last = p->has_last,
        .last_nominal = p->last_nominal,
        .starts_at = next->bounds.starts_at,
        .ends_at = next->bounds.ends_at,
        .shift_us = next->jitter_us - base->jitter_us,
    };
    memcpy(e.highest_key, p->highest_key, sizeof e.highest_key);
    if (base->rule == NULL) {
        return e;
    }
    if (!e.has_form && !base->withheld) {
        e.has_form = true;
        e.form = key_form_of_rule(base->rule);
    }
    edit_add_planned(&e, base, p);
    return e;
}

typedef char key_text[KEY_MAX_BYTES];

static int key_texts_compare(const void *a, const void *b)
{
    return strcmp(**(const key_text *const *)a, **(const key_text *const *)b);
}

void preview_candidates_mark(const struct preview_version *base, const struct preview_version *next,
                             const struct preview_progress *p, struct plan_candidates *c)
{
    const key_text *sorted[PLAN_CANDIDATES_MAX];
    bool periods = base->rule != NULL && rule_is_of_periods(base->rule);
    utc_us after = {next->begins.us - (periods ? PERIODS_BACK_US : LOOK_BACK_US)};
    after = p->planned_to.us > after.us ? p->planned_to : after;
    if (base->rule == NULL || base->withheld) {
        return;
    }
    for (size_t i = 0; i < c->count; i++) {
        sorted[i] = (const key_text *)&c->keys[i];
    }
    qsort(sorted, c->count, sizeof sorted[0], key_texts_compare);
    struct firing f = rule_next_within(base->rule, after, base->bounds);
    for (; f.found && f.at.us < next->begins.us;
         f = rule_next_within(base->rule, f.at, base->bounds)) {
        key_text key;
        const key_text *wanted = (const key_text *)&key;
        key_format(form_of(base, p), &f, key);
        const key_text *const *found =
            bsearch(&wanted, sorted, c->count, sizeof sorted[0], key_texts_compare);
        if (found != NULL) {
            c->taken[*found - (const key_text *)c->keys] = true;
        }
    }
}

void preview_list_free(struct preview_list *l)
{
    free(l->firings);
    *l = (struct preview_list){0};
}

bool preview_key_is_used(const struct plan_candidates *used, const struct firing *f)
{
    size_t low = 0;
    size_t high = used != NULL ? used->count : 0; /* in order of time */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (used->firings[middle].at.us == f->at.us) {
            return used->taken[middle];
        }
        bool later = used->firings[middle].at.us < f->at.us;
        low = later ? middle + 1 : low;
        high = later ? high : middle;
    }
    return false;
}

static bool list_grow(struct preview_list *l)
{
    size_t max = l->max == 0 ? 1024 : 2 * l->max;
    struct preview_firing *firings = realloc(l->firings, max * sizeof firings[0]);
    if (firings != NULL) {
        l->firings = firings;
        l->max = max;
    }
    return firings != NULL;
}

/* Firings of one version. */
struct stretch {
    const struct preview_version *version;
    struct firing first;
    utc_us until;
    enum key_form form;
    const struct plan_candidates *used;
};

static enum status stretch_add(struct preview_list *l, const struct stretch *s)
{
    const struct preview_version *v = s->version;
    struct firing f = s->first;
    for (; f.found && f.at.us < s->until.us; f = rule_next_within(v->rule, f.at, v->bounds)) {
        if (preview_key_is_used(s->used, &f)) {
            continue;
        }
        if (l->count == PREVIEW_FIRINGS_MAX) {
            l->whole_to = f.at;
            return STATUS_OK;
        }
        if (l->count == l->max && !list_grow(l)) {
            return STATUS_FATAL;
        }
        struct preview_firing *to = &l->firings[l->count++];
        bool known = f.about.state != ABOUT_UNKNOWN;
        *to = (struct preview_firing){.at = f.at,
                                      .offset_s = f.offset_s,
                                      .about = known ? business_day_of(&f) : PREVIEW_NO_DATE};
        key_format(s->form, &f, to->key);
    }
    return STATUS_OK;
}

enum status preview_list_make(const struct preview_course *course, const struct preview_progress *p,
                              utc_us now, utc_us until, struct preview_list *ret_list)
{
    struct preview_list l = {.whole_to = until};
    const struct preview_version *base = course->base;
    const struct preview_version *next = course->next;
    enum status s = STATUS_OK;
    if (base->rule != NULL && !base->withheld) {
        struct stretch stretch = {
            .version = base,
            .first = rule_next_within(base->rule, preview_after(p, now), base->bounds),
            .until = next != NULL && next->begins.us < until.us ? next->begins : until,
            .form = form_of(base, p),
        };
        s = stretch_add(&l, &stretch);
    }
    bool whole = l.whole_to.us == until.us;
    if (s == STATUS_OK && whole && next != NULL && next->rule != NULL && !next->withheld) {
        struct stretch stretch = {.version = next,
                                  .first = course->where.next,
                                  .until = until,
                                  .form = course->where.form,
                                  .used = course->used};
        s = stretch_add(&l, &stretch);
    }
    whole = l.whole_to.us == until.us;
    if (s == STATUS_OK && whole && course->resumed != NULL) {
        struct stretch stretch = {.version = course->resumed,
                                  .first = course->resumed_at.next,
                                  .until = until,
                                  .form = course->resumed_at.form};
        s = stretch_add(&l, &stretch);
    }
    if (s == STATUS_OK) {
        *ret_list = l;
    } else {
        preview_list_free(&l);
    }
    return s;
}

static int firings_compare(const void *a, const void *b)
{
    return strcmp((*(struct preview_firing *const *)a)->key,
                  (*(struct preview_firing *const *)b)->key);
}

/* Its firings in the order of their keys, to be freed. */
static struct preview_firing **by_key(struct preview_list *l)
{
    struct preview_firing **sorted = malloc((l->count + 1) * sizeof(struct preview_firing *));
    if (sorted != NULL) {
        for (size_t i = 0; i < l->count; i++) {
            sorted[i] = &l->firings[i];
            sorted[i]->other = NULL;
        }
        qsort(sorted, l->count, sizeof sorted[0], firings_compare);
    }
    return sorted;
}

enum status preview_lists_pair(struct preview_list *before, struct preview_list *after)
{
    struct preview_firing **b = by_key(before);
    struct preview_firing **a = by_key(after);
    bool made = a != NULL && b != NULL;
    for (size_t i = 0, j = 0; made && i < before->count && j < after->count;) {
        int order = strcmp(b[i]->key, a[j]->key);
        if (order == 0) {
            b[i]->other = a[j];
            a[j]->other = b[i];
        }
        i += order <= 0 ? 1 : 0;
        j += order >= 0 ? 1 : 0;
    }
    free((void *)b);
    free((void *)a);
    return made ? STATUS_OK : STATUS_FATAL;
}

/* A pair is told where its earlier firing stands. */
static const struct preview_firing *list_next(const struct preview_list *l, size_t *at,
                                              utc_us until, bool first)
{
    for (; *at < l->count && l->firings[*at].at.us < until.us; (*at)++) {
        const struct preview_firing *f = &l->firings[*at];
        if (f->other == NULL || f->at.us < f->other->at.us ||
            (first && f->at.us == f->other->at.us)) {
            return f;
        }
    }
    return NULL;
}

bool preview_walk_next(struct preview_walk *w, struct preview_pair *ret_pair)
{
    const struct preview_firing *b = list_next(w->before, &w->b, w->until, true);
    const struct preview_firing *a = list_next(w->after, &w->a, w->until, false);
    if (b != NULL && (a == NULL || b->at.us <= a->at.us)) {
        w->b++;
        *ret_pair = (struct preview_pair){PREVIEW_REMOVED, b, b->other};
    } else if (a != NULL) {
        w->a++;
        *ret_pair = (struct preview_pair){PREVIEW_ADDED, a->other, a};
    } else {
        return false;
    }
    if (ret_pair->before != NULL && ret_pair->after != NULL) {
        bool same = ret_pair->before->at.us == ret_pair->after->at.us;
        bool redated = ret_pair->before->about != ret_pair->after->about;
        ret_pair->change = !same ? PREVIEW_MOVED : redated ? PREVIEW_REDATED : PREVIEW_KEPT;
    }
    return true;
}
