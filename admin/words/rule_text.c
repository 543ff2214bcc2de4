#include "rule_text.h"

#include <inttypes.h>
#include <string.h>

#include "cron_text.h"

const char *rule_sentence_name(enum rule_sentence which)
{
    switch (which) {
    case SENTENCE_RULE:
        return "rule";
    case SENTENCE_DAYS:
        return "days";
    case SENTENCE_BOUNDS:
        return "bounds";
    case SENTENCE_DELAY:
        return "delay";
    case SENTENCE_CLOCK:
        return "clock";
    }
    return "unknown";
}

/* ---- the rule ---- */

/* "every 1 hour 30 minutes", "every 15 minutes", "every day of 24 hours" */
static void add_length(struct plain *t, int64_t length_s)
{
    static const struct {
        const char *name;
        int64_t seconds;
    } units[] = {{"day", SECONDS_A_DAY}, {"hour", 3600}, {"minute", 60}, {"second", 1}};
    bool days = length_s >= SECONDS_A_DAY;
    plain_add(t, "every");
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        int64_t n = length_s / units[i].seconds;
        length_s -= n * units[i].seconds;
        if (n > 0) {
            plain_add(t, " %" PRId64 " %s%s", n, units[i].name, n == 1 ? "" : "s");
        }
    }
    plain_add(t, "%s", days ? " (a day is 24 hours)" : "");
}

static void add_instant(struct plain *t, utc_us at, int32_t offset_s)
{
    char text[RFC3339_TEXT_MAX];
    rfc3339_format(at, offset_s, text);
    plain_add(t, "%s", text);
}

static void add_utc(struct plain *t, utc_us at)
{
    char text[RFC3339_TEXT_MAX];
    rfc3339_format_utc(at, text);
    plain_add(t, "%s", text);
}

static void add_rule(struct plain *t, const struct rule *r)
{
    char cron[CRON_PLAIN_MAX];
    switch (r->kind) {
    case RULE_CRON:
        cron_text_write(&r->cron, cron);
        plain_add(t, "%s", cron);
        break;
    case RULE_RRULE:
        rrule_text_add(t, &r->rrule);
        break;
    case RULE_INTERVAL:
        add_length(t, r->length_s);
        plain_add(t, ", counted from ");
        add_utc(t, r->anchor);
        plain_add(t, ", whatever the clocks do; its dates are those of %s", zone_name(r->zone));
        return;
    case RULE_ONCE:
        plain_add(t, "once, at ");
        add_instant(t, r->once_at, zone_offset_at(r->zone, utc_seconds(r->once_at)));
        break;
    }
    plain_add(t, ", by the clock of %s", zone_name(r->zone));
}

/* ---- what surrounds it ---- */

static const char *convention_words(enum roll_convention convention)
{
    switch (convention) {
    case ROLL_RUN:
        return "stays";
    case ROLL_SKIP:
        return "is left out";
    case ROLL_FOLLOWING:
        return "moves to the next business day";
    case ROLL_MODIFIED_FOLLOWING:
        return "moves to the next business day, or to the one before if that is in another month";
    case ROLL_PRECEDING:
        return "moves to the business day before";
    case ROLL_MODIFIED_PRECEDING:
        return "moves to the business day before, or to the next if that is in another month";
    case ROLL_HALF_MONTH_MODIFIED_FOLLOWING:
        return "moves to the next business day, or to the one before if that is in another month "
               "or behind the 15th";
    case ROLL_NEAREST:
        return "moves to the nearest business day, of two to the later one";
    }
    return "";
}

static void add_days(struct plain *t, const struct rule *r, const char *calendar)
{
    int32_t n = r->business_day_offset;
    const char *name = calendar != NULL ? calendar : "";
    if (r->calendar == NULL && calendar == NULL) {
        return;
    }
    if (r->calendar == NULL) {
        plain_add(t, "calendar \"%s\" changes nothing: nonbusiness is run, and there is no offset",
                  name);
        return;
    }
    if (r->nonbusiness != ROLL_RUN) {
        plain_add(t, "a date that is no business day of calendar \"%s\" %s", name,
                  convention_words(r->nonbusiness));
    }
    if (n != 0) {
        int32_t days = n < 0 ? -n : n;
        plain_add(t, "%s%" PRId32 " business day%s %s its date",
                  r->nonbusiness != ROLL_RUN ? "; it fires " : "it fires ", days,
                  days == 1 ? "" : "s", n < 0 ? "before" : "after");
        if (r->nonbusiness == ROLL_RUN) {
            plain_add(t, ", by calendar \"%s\"", name);
        }
    }
    if (n != 0 || r->nonbusiness != ROLL_SKIP) {
        plain_add(t, "; of dates that come to one instant %s",
                  r->run_all ? "each runs, a second apart" : "only the latest runs");
    }
}

static void add_bounds(struct plain *t, struct rule_bounds b)
{
    if (b.starts_at.us == UTC_UNBOUNDED.us) {
        plain_add(t, "it never starts (starts_at infinity)");
    } else if (utc_is_finite(b.starts_at)) {
        plain_add(t, "nothing fires before ");
        add_utc(t, b.starts_at);
    }
    if (b.ends_at.us == UTC_PAST.us) {
        plain_add(t, "%sit has ended since ever (ends_at -infinity)", t->used > 0 ? "; " : "");
    } else if (utc_is_finite(b.ends_at)) {
        plain_add(t, "%s", t->used > 0 ? ", nor from " : "nothing fires from ");
        add_utc(t, b.ends_at);
        plain_add(t, " on");
    }
}

static void add_delay(struct plain *t, const struct rule *r)
{
    int64_t delay_s = r->jitter_us / MICROS_A_SECOND;
    if (delay_s > 0) {
        plain_add(t, "each firing is due %" PRId64 " second%s later than the rule says (jitter_s)",
                  delay_s, delay_s == 1 ? "" : "s");
    }
}

static void add_clock(struct plain *t, const struct rule *r, utc_us from)
{
    struct zone_change change;
    bool recurs = r->kind == RULE_RRULE;
    if ((r->kind != RULE_CRON && !recurs) ||
        !zone_change_after(r->zone, utc_seconds(from), &change)) {
        return;
    }
    if (rule_moves_dates(r)) {
        plain_add_policies(t, r->moved_gap, r->moved_overlap);
    } else {
        plain_add_policies(t, recurs ? r->rrule.gap : r->cron.gap,
                           recurs ? r->rrule.overlap : r->cron.overlap);
    }
}

bool rule_sentence_write(const struct rule *r, const struct rule_around *around,
                         enum rule_sentence which, utc_us from, char ret_text[RULE_PLAIN_MAX])
{
    struct plain t = plain_of(ret_text, RULE_PLAIN_MAX);
    switch (which) {
    case SENTENCE_RULE:
        add_rule(&t, r);
        break;
    case SENTENCE_DAYS:
        add_days(&t, r, around->calendar);
        break;
    case SENTENCE_BOUNDS:
        add_bounds(&t, around->bounds);
        break;
    case SENTENCE_DELAY:
        add_delay(&t, r);
        break;
    case SENTENCE_CLOCK:
        add_clock(&t, r, from);
        break;
    }
    return t.used > 0;
}
