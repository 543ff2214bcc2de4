#include "cron_text.h"

#include "plain.h"
#include "value_set.h"

/* "day 1, the last day and the weekday (Monday to Friday) nearest to day 15 of the month" */
static void add_days(struct plain *t, const struct cron *c)
{
    struct plain_list days = plain_list_of(c->days);
    struct plain_list before = plain_list_of(c->days_before_last);
    struct plain_list nearest = plain_list_of(c->nearest_weekdays);
    int count = (days.count > 0 ? 1 : 0) + before.count + nearest.count + (c->last_weekday ? 1 : 0);
    int n = 0;
    if (days.count > 0) {
        plain_add_between(t, &n, count);
        plain_add(t, "day%s ", days.count > 1 ? "s" : "");
        plain_add_list(t, &days);
    }
    for (int i = 0; i < before.count; i++) {
        plain_add_between(t, &n, count);
        if (before.values[i] == 0) {
            plain_add(t, "the last day");
        } else {
            plain_add(t, "the %d%s day before the last", before.values[i],
                      plain_ordinal_end(before.values[i]));
        }
    }
    for (int i = 0; i < nearest.count; i++) {
        plain_add_between(t, &n, count);
        plain_add(t, "the weekday (Monday to Friday) nearest to day %d", nearest.values[i]);
    }
    if (c->last_weekday) {
        plain_add_between(t, &n, count);
        plain_add(t, "the last weekday (Monday to Friday)");
    }
    plain_add(t, " of the month");
}

/* "Monday to Friday, the 2nd Saturday and the last Sunday of the month" */
static void add_weekdays(struct plain *t, const struct cron *c)
{
    struct plain_list plain = plain_list_of(plain_monday_first(c->weekdays));
    plain.names = PLAIN_MONDAY_FIRST;
    int count = (plain.count > 0 ? 1 : 0) + set_size(c->last_weekdays);
    for (int i = 0; i < 5; i++) {
        count += set_size(c->nth_weekdays[i]);
    }
    int n = 0;
    if (plain.count > 0) {
        plain_add_between(t, &n, count);
        plain_add_list(t, &plain);
    }
    int first = n;
    for (int i = 0; i <= 5; i++) {
        struct plain_list l = plain_list_of(i < 5 ? c->nth_weekdays[i] : c->last_weekdays);
        for (int k = 0; k < l.count; k++) {
            plain_add_between(t, &n, count);
            if (i < 5) {
                plain_add(t, "the %d%s %s", i + 1, plain_ordinal_end(i + 1),
                          PLAIN_WEEKDAYS[l.values[k]]);
            } else {
                plain_add(t, "the last %s", PLAIN_WEEKDAYS[l.values[k]]);
            }
        }
    }
    plain_add(t, "%s", n > first ? " of the month" : "");
}

static void add_dates(struct plain *t, const struct cron *c)
{
    bool either = c->day_restricted && c->weekday_restricted && !c->both_days;
    plain_add(t, "%s", c->day_restricted || c->weekday_restricted ? " on " : "");
    if (c->day_restricted) {
        plain_add(t, "%s", either ? "either " : "");
        add_days(t, c);
    }
    if (c->day_restricted && c->weekday_restricted) {
        plain_add(t, "%s", either ? " or " : " if it is also ");
    }
    if (c->weekday_restricted) {
        t->before_last = c->day_restricted && c->both_days ? " or " : " and ";
        add_weekdays(t, c);
        t->before_last = " and ";
    }
    if ((c->months & 0x1ffe) != 0x1ffe) {
        struct plain_list months = plain_list_of(c->months >> 1);
        months.names = PLAIN_MONTHS;
        plain_add(t, ", in ");
        plain_add_list(t, &months);
    }
    if (c->has_years) {
        struct plain_list years = {.count = 0};
        for (int i = 0; i < 4; i++) {
            plain_list_add_bits(&years, c->years[i], CRON_YEAR_MIN + 64 * i);
        }
        plain_add(t, ", in the year%s ", years.count > 1 ? "s" : "");
        plain_add_list(t, &years);
    }
}

void cron_text_write(const struct cron *c, char ret_text[CRON_PLAIN_MAX])
{
    struct plain t = plain_of(ret_text, CRON_PLAIN_MAX);
    const struct plain_clock clock = {c->hours, c->minutes, c->seconds};
    bool any_day = !c->day_restricted && !c->weekday_restricted;
    plain_add_clock(&t, &clock);
    plain_add(&t, "%s", any_day && plain_clock_is_listed(&clock) ? " every day" : "");
    add_dates(&t, c);
}

void cron_text_write_policies(const struct cron *c, char ret_text[CRON_PLAIN_MAX])
{
    struct plain t = plain_of(ret_text, CRON_PLAIN_MAX);
    plain_add_policies(&t, c->gap, c->overlap);
}
