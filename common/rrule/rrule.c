#include "rrule_inside.h"

#include "value_set.h"

#define CYCLE_DAYS ((int64_t)146097) /* of 400 years */

struct rrule_search rrule_search_from(const struct rrule *r, int64_t from)
{
    int64_t first = from > r->start.s ? from : r->start.s;
    int64_t last_day = floor_divide(first, SECONDS_A_DAY) + CYCLE_DAYS;
    int64_t end = civil_days_of(CIVIL_YEAR_MAX, 12, 31);
    return (struct rrule_search){.rule = r, .last_day = last_day < end ? last_day : end};
}

/* Elements of the unit's set that lie before a local time. */
static int64_t unit_count_below(const struct rrule *r, const struct rrule_unit *u, int64_t below)
{
    int64_t day = floor_divide(below, SECONDS_A_DAY);
    int64_t index = day - u->first;
    if (index < 0) {
        return 0;
    }
    int64_t a_day = r->times_a_day;
    if (index >= u->days) {
        return u->size * a_day;
    }
    int64_t days = 0;
    for (int word = 0; word * 64 < index; word++) {
        days += set_size(set_below(u->mask[word], (int)(index - 64 * word)));
    }
    int64_t n = days * a_day;
    if (set_has(u->mask[index / 64], (int)(index % 64))) {
        n += rrule_product_count_below(r, (int32_t)(below - day * SECONDS_A_DAY));
    }
    return n;
}

static int64_t unit_nth(const struct rrule *r, const struct rrule_unit *u, int64_t index)
{
    int day = (int)(index / r->times_a_day);
    int word = 0;
    for (; day >= set_size(u->mask[word]); word++) {
        day -= set_size(u->mask[word]);
    }
    int64_t date = u->first + (int64_t)word * 64 + set_nth(u->mask[word], day);
    return date * SECONDS_A_DAY + rrule_product_nth(r, (int32_t)(index % r->times_a_day));
}

/* BYSETPOS picks from whole weeks, months or years; of a shorter unit it picks in rrule_clock.c. */
static bool picks_from_units(const struct rrule *r)
{
    return r->by_position && r->frequency >= RRULE_WEEKLY;
}

static int64_t unit_in_step(const struct rrule *r, int64_t day)
{
    int64_t unit = rrule_unit_of(r, day);
    return unit + rrule_ahead(unit, r->start_unit, r->interval);
}

static bool first_of_units(struct rrule_search *s, int64_t from, int64_t *ret_time)
{
    const struct rrule *r = s->rule;
    int64_t unit = unit_in_step(r, floor_divide(from, SECONDS_A_DAY));
    for (; rrule_unit_first_day(r, unit) <= s->last_day; unit += r->interval) {
        struct rrule_unit u;
        s->steps++;
        rrule_unit_fill(r, unit, &u);
        int64_t index = rrule_position_first_from(&r->positions, (int64_t)u.size * r->times_a_day,
                                                  unit_count_below(r, &u, from));
        if (index >= 0) {
            *ret_time = unit_nth(r, &u, index);
            return floor_divide(*ret_time, SECONDS_A_DAY) <= s->last_day;
        }
    }
    return false;
}

static bool first_of_days(struct rrule_search *s, int64_t from, int64_t *ret_time)
{
    const struct rrule *r = s->rule;
    int64_t day = floor_divide(from, SECONDS_A_DAY);
    int32_t low = (int32_t)(from - day * SECONDS_A_DAY);
    struct civil_date d = civil_date_of(day);
    struct rrule_month m = {.year = d.year, .month = d.month};
    int next = d.day;
    for (; rrule_month_first_from(s, &m); rrule_month_advance(&m), next = 1) {
        next = m.year == d.year && m.month == d.month ? next : 1;
        for (next = set_first_from(m.mask, next); next > 0;
             next = rrule_month_in_step(r, &m, next + 1)) {
            int64_t date = m.first + next - 1;
            s->steps++;
            if (date > s->last_day) {
                return false;
            }
            int32_t clock = rrule_clock_first_from(r, date, date == day ? low : 0);
            if (clock >= 0) {
                *ret_time = date * SECONDS_A_DAY + clock;
                return true;
            }
        }
    }
    return false;
}

bool rrule_nominal_from(struct rrule_search *s, int64_t from, int64_t *ret_time)
{
    const struct rrule *r = s->rule;
    int64_t n = 0;
    if (from < r->start.s) {
        from = r->start.s;
    }
    if (from > r->last.s || floor_divide(from, SECONDS_A_DAY) > s->last_day) {
        return false;
    }
    bool found = picks_from_units(r) ? first_of_units(s, from, &n) : first_of_days(s, from, &n);
    if (!found || n > r->last.s) {
        return false;
    }
    *ret_time = n;
    return true;
}

/* ---- counting ---- */

/* Add what [from, below) of one day or unit has; at the limit step to it. True: go on. */
static bool tally_add(struct rrule_search *s, const struct rrule_tally *t, int64_t more, int64_t *n)
{
    if (s->steps > t->steps_max) {
        *n = -1;
        return false;
    }
    if (*n + more >= t->limit) {
        return false;
    }
    *n += more;
    return true;
}

static int64_t count_units(struct rrule_search *s, const struct rrule_tally *t, int64_t *ret_last)
{
    const struct rrule *r = s->rule;
    int64_t n = 0;
    int64_t unit = unit_in_step(r, floor_divide(t->from, SECONDS_A_DAY));
    for (; rrule_unit_first_day(r, unit) * SECONDS_A_DAY < t->below; unit += r->interval) {
        struct rrule_unit u;
        s->steps++;
        rrule_unit_fill(r, unit, &u);
        int64_t size = (int64_t)u.size * r->times_a_day;
        int64_t before =
            rrule_position_count_below(&r->positions, size, unit_count_below(r, &u, t->from));
        int64_t more =
            rrule_position_count_below(&r->positions, size, unit_count_below(r, &u, t->below)) -
            before;
        if (tally_add(s, t, more, &n)) {
            continue;
        }
        if (n < 0) {
            return n;
        }
        int64_t index = -1;
        for (int64_t skip = before + t->limit - n; skip > 0; skip--) {
            index = rrule_position_first_from(&r->positions, size, index + 1);
        }
        *ret_last = unit_nth(r, &u, index);
        return t->limit;
    }
    return n;
}

/* Times of [from, below) on a day. */
static int32_t count_on(const struct rrule *r, const struct rrule_tally *t, int64_t day,
                        int32_t *ret_before)
{
    int64_t first = day * SECONDS_A_DAY;
    int64_t low = t->from > first ? t->from - first : 0;
    int64_t high = t->below - first < SECONDS_A_DAY ? t->below - first : SECONDS_A_DAY;
    *ret_before = low > 0 ? rrule_clock_count_below(r, day, (int32_t)low) : 0;
    if (high == SECONDS_A_DAY && r->frequency > RRULE_HOURLY) {
        return r->times_a_day - *ret_before;
    }
    return rrule_clock_count_below(r, day, (int32_t)high) - *ret_before;
}

static int64_t count_days(struct rrule_search *s, const struct rrule_tally *t, int64_t *ret_last)
{
    const struct rrule *r = s->rule;
    int64_t n = 0;
    struct civil_date d = civil_date_of(floor_divide(t->from, SECONDS_A_DAY));
    struct rrule_month m = {.year = d.year, .month = d.month};
    for (; rrule_month_first_from(s, &m) && m.first * SECONDS_A_DAY < t->below;
         rrule_month_advance(&m)) {
        bool here = m.year == d.year && m.month == d.month;
        int day = set_first_from(m.mask, here ? d.day : 1);
        for (; day > 0 && (m.first + day - 1) * SECONDS_A_DAY < t->below;
             day = rrule_month_in_step(r, &m, day + 1)) {
            int64_t date = m.first + day - 1;
            int32_t before = 0;
            int32_t more = count_on(r, t, date, &before);
            s->steps++;
            if (tally_add(s, t, more, &n)) {
                continue;
            }
            if (n < 0) {
                return n;
            }
            *ret_last = date * SECONDS_A_DAY +
                        rrule_clock_nth(r, date, (int32_t)(before + t->limit - n - 1));
            return t->limit;
        }
    }
    return n;
}

int64_t rrule_nominal_count(struct rrule_search *s, const struct rrule_tally *t, int64_t *ret_last)
{
    const struct rrule *r = s->rule;
    struct rrule_tally part = *t;
    int64_t end = (civil_days_of(CIVIL_YEAR_MAX, 12, 31) + 1) * SECONDS_A_DAY;
    if (part.from < r->start.s) {
        part.from = r->start.s;
    }
    if (part.below > end) {
        part.below = end;
    }
    if (part.below > r->last.s) {
        part.below = r->last.s + 1;
    }
    if (part.from >= part.below) {
        return 0;
    }
    s->last_day = floor_divide(part.below, SECONDS_A_DAY);
    return picks_from_units(r) ? count_units(s, &part, ret_last) : count_days(s, &part, ret_last);
}
