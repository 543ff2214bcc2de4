#include "backfill_span.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "civil.h"
#include "key.h"

#define MARGIN_DAYS 2    /* a local date is less than that from the same date in UTC */
#define ROLL_DAYS   31   /* a convention moves a firing less far from the date of its key */
#define BEFORE_DAYS 3300 /* the firing before the first is looked for: a leap day comes by then */
#define DAY_US      ((int64_t)SECONDS_A_DAY * MICROS_A_SECOND)
#define DATE_BYTES  10 /* of 2030-04-12 */
#define MONTH_BYTES 7
#define MONTH_DAYS  31

static enum status bound_refuse(const char *name, const char *text, struct error *err)
{
    return error_set(err, STATUS_INVALID,
                     "%s \"%s\" is no key of a firing; write a month, 2030-04, a date, "
                     "2030-04-12, more of a key, 2030-04-12T06:00, or a period, 2030-W15, "
                     "2030-Q1 or the label of a fiscal one",
                     name, text);
}

enum bound {
    BOUND_DAY,   /* a key of a firing, or the beginning of one, at least its month */
    BOUND_LABEL, /* perhaps of a fiscal period: the rule knows */
    BOUND_WRONG,
};

static enum bound bound_parse(const char *text, int64_t *ret_day)
{
    char date[DATE_BYTES + 1];
    int64_t last = 0;
    bool month = strlen(text) == MONTH_BYTES;
    (void)snprintf(date, sizeof date, "%.*s%s", month ? MONTH_BYTES : DATE_BYTES, text,
                   month ? "-01" : "");
    bool shaped = strlen(text) < KEY_MAX_BYTES && strspn(text, "0123456789-T:Z+") == strlen(text);
    if ((shaped && date_parse(date, ret_day, NULL) == STATUS_OK) ||
        business_period_parse(text, ret_day, &last)) {
        return BOUND_DAY;
    }
    return strlen(text) < FISCAL_LABEL_MAX ? BOUND_LABEL : BOUND_WRONG;
}

enum status backfill_span_read(struct backfill_span *span, struct error *err)
{
    struct backfill_span s = *span;
    int64_t first = 0;
    int64_t last = 0;
    enum bound from = bound_parse(s.from, &first);
    enum bound to = bound_parse(s.to, &last);
    if (from == BOUND_WRONG || to == BOUND_WRONG) {
        return from == BOUND_WRONG ? bound_refuse(s.from_name, s.from, err)
                                   : bound_refuse(s.to_name, s.to, err);
    }
    s.label_from = from == BOUND_LABEL;
    s.label_to = to == BOUND_LABEL;
    if (!s.label_from && !s.label_to && strncmp(s.from, s.to, strlen(s.to)) > 0) {
        return error_set(err, STATUS_INVALID, "%s %s comes after %s %s", s.from_name, s.from,
                         s.to_name, s.to);
    }
    s.begin = utc_from_seconds((first - MARGIN_DAYS) * SECONDS_A_DAY);
    s.end = utc_from_seconds((last + MONTH_DAYS + MARGIN_DAYS) * SECONDS_A_DAY);
    *span = s;
    return STATUS_OK;
}

/* When firings of periods are due lies in the rule alone; there is one for each. */
static enum status span_widen(struct backfill_span *span, const struct rule *rule,
                              struct error *err)
{
    const struct fiscal_periods *p = rule->business.periods;
    if ((span->label_from || span->label_to) && (p == NULL || p->count == 0)) {
        return span->label_from ? bound_refuse(span->from_name, span->from, err)
                                : bound_refuse(span->to_name, span->to, err);
    }
    if (p != NULL && p->count > 0) {
        span->begin = utc_from_seconds(p->list[0].first * SECONDS_A_DAY);
        span->end = utc_from_seconds(p->list[p->count - 1].last * SECONDS_A_DAY);
    }
    if (rule_is_of_periods(rule)) {
        span->begin.us -= 2 * BUSINESS_PERIOD_MAX_DAYS * DAY_US;
        span->end.us += 2 * BUSINESS_PERIOD_MAX_DAYS * DAY_US;
    }
    return STATUS_OK;
}

static struct backfill_window window_of(const struct rule *r, const struct firing *before,
                                        const struct firing *f)
{
    if (rule_is_of_periods(r)) {
        struct instant_range own = rule_period_window(r, &f->about);
        return (struct backfill_window){.start = own.from, .end = own.to};
    }
    return (struct backfill_window){
        .start = before->found ? rule_plain_instant(r, before) : UTC_NONE,
        .end = rule_plain_instant(r, f),
    };
}

/* One firing, the one before it, and its key. */
struct found {
    struct firing before, f;
    char key[KEY_MAX_BYTES];
};

static enum status firing_take(const struct backfill_subject *b, const struct found *found,
                               struct backfill_firings *to, struct error *err)
{
    struct plan_candidates *list = &to->list;
    const struct firing *f = &found->f;
    struct firing_about about;
    struct error why = {.text = ""};
    if (list->count == BACKFILL_MAX) {
        return error_set(err, STATUS_INVALID,
                         "these are more than %d firings; ask for them in parts, the first one "
                         "%s %s",
                         BACKFILL_MAX, b->span.to_name, list->keys[BACKFILL_MAX - 1]);
    }
    if (f->about.state == ABOUT_UNKNOWN &&
        business_date_of(&b->rule->business, f->nominal, &about, &why) != STATUS_OK) {
        return error_set(err, STATUS_CONFLICT, "what the firing %s is about cannot be told: %s",
                         found->key, why.text);
    }
    list->firings[list->count] = *f;
    memcpy(list->keys[list->count], found->key, sizeof list->keys[0]);
    to->windows[list->count++] = window_of(b->rule, &found->before, f);
    return STATUS_OK;
}

static enum status firings_take(const struct backfill_subject *b, utc_us begin, utc_us end,
                                struct backfill_firings *to, struct error *err)
{
    const struct due_row *row = b->row;
    const struct rule_bounds bounds = {row->rule.starts_at, row->rule.ends_at};
    const struct backfill_span *span = &b->span;
    enum key_form form = KEY_DATE;
    int64_t looked = 0;
    if (!key_form_parse(row->key_form, &form)) {
        form = key_form_of_rule(b->rule);
    }
    struct found at = {
        .before =
            rule_last_within(b->rule, (utc_us){begin.us - BEFORE_DAYS * DAY_US}, begin, bounds),
        .f = rule_next_within(b->rule, (utc_us){begin.us - 1}, bounds),
    };
    for (; at.f.found && at.f.at.us < end.us;
         at.f = rule_next_within(b->rule, at.before.at, bounds)) {
        if (b->look_max > 0 && ++looked > b->look_max) {
            return error_set(err, STATUS_INVALID,
                             "schedule \"%s\" fires too often to look through so long a span here; "
                             "ask for less, or use reportctl backfill",
                             row->schedule);
        }
        key_format(form, &at.f, at.key);
        if (strcmp(at.key, span->from) >= 0 && strncmp(at.key, span->to, strlen(span->to)) <= 0) {
            enum status s = firing_take(b, &at, to, err);
            if (s != STATUS_OK) {
                return s;
            }
        }
        at.before = at.f;
    }
    return STATUS_OK;
}

enum status backfill_firings_find(const struct backfill_subject *subject,
                                  struct backfill_firings *ret, struct error *err)
{
    struct backfill_subject b = *subject;
    const struct stored_rule *rule = &b.row->rule;
    enum status s = span_widen(&b.span, b.rule, err);
    if (s != STATUS_OK) {
        return s;
    }
    /* Business days may be as rare as every other day. */
    int64_t roll_days = ROLL_DAYS + 2 * (int64_t)abs(rule->business_day_offset);
    int64_t roll_us = rule->calendar_name[0] != '\0' ? roll_days * DAY_US : 0;
    utc_us begin = {b.span.begin.us - roll_us};
    utc_us end = {b.span.end.us + roll_us};
    end = end.us < b.now.us ? end : b.now;
    s = firings_take(&b, begin, end, ret, err);
    if (s == STATUS_OK && ret->list.count == 0) {
        return error_set(err, STATUS_NOT_FOUND,
                         "the rule of schedule \"%s\" names no firing that was due with a key "
                         "from %s to %s",
                         b.row->schedule, b.span.from, b.span.to);
    }
    return s;
}

const char *backfill_becomes(const struct backfill_firings *f, size_t i, const struct due_row *row)
{
    utc_us next = row->next_fire_at;
    bool to_come = !utc_is_none(next) && f->list.firings[i].at.us >= next.us;
    return f->list.taken[i] ? "there" : to_come ? "left to the leader" : "make";
}
