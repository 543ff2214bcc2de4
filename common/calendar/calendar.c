#include "calendar.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "civil.h"

/* Entries and weekend changes become one bit a day from the first of them to the last; before and
 * after, the weekend of that side decides. 400 years are 18 KiB. */
struct calendar {
    int64_t first; /* the day of bit 0 */
    size_t count;  /* bits */
    uint64_t *bits;
    uint8_t weekend_before, weekend_after;
    int64_t valid_from, valid_through;
    int64_t held_from, held_through; /* outside these there is no answer */
    int32_t longest_closed;
};

#define BITS_A_WORD 64U

/* ---- making ---- */

static bool in_weekend(uint8_t weekend, int64_t day)
{
    return ((unsigned)weekend >> civil_weekday(day) & 1U) != 0;
}

static void bit_put(struct calendar *c, int64_t day, bool business)
{
    size_t at = (size_t)(day - c->first);
    uint64_t bit = UINT64_C(1) << at % BITS_A_WORD;
    if (business) {
        c->bits[at / BITS_A_WORD] |= bit;
    } else {
        c->bits[at / BITS_A_WORD] &= ~bit;
    }
}

static enum status day_check(int64_t day, const char *what, struct error *err)
{
    if (day >= civil_days_of(CALENDAR_YEAR_MIN, 1, 1) &&
        day <= civil_days_of(CALENDAR_YEAR_MAX, 12, 31)) {
        return STATUS_OK;
    }
    char text[DATE_TEXT_MAX] = "it";
    if (day >= civil_days_of(CIVIL_YEAR_MIN, 1, 1) &&
        day <= civil_days_of(CIVIL_YEAR_MAX, 12, 31)) {
        date_format(day, text);
    }
    return error_set(err, STATUS_INVALID, "%s: %s is not within the years %d to %d; leave it out",
                     what, text, CALENDAR_YEAR_MIN, CALENDAR_YEAR_MAX);
}

static enum status days_check(const struct calendar_special *days, size_t count, struct error *err)
{
    if (count > CALENDAR_DAYS_MAX) {
        return error_set(err, STATUS_INVALID, "it has %zu days, at most %d are allowed", count,
                         CALENDAR_DAYS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        enum status s = day_check(days[i].day, "day", err);
        if (s != STATUS_OK) {
            return s;
        }
    }
    return STATUS_OK;
}

static enum status rules_check(const struct calendar_rules *r, struct error *err)
{
    if (r->weekend_count > CALENDAR_WEEKENDS_MAX) {
        return error_set(err, STATUS_INVALID,
                         "it changes its weekend %zu times, at most %d are "
                         "allowed",
                         r->weekend_count, CALENDAR_WEEKENDS_MAX);
    }
    for (size_t i = 0; i < r->weekend_count; i++) {
        const struct calendar_weekend *w = &r->weekends[i];
        assert(i == 0 ? w->from == CALENDAR_ALWAYS : w->from > w[-1].from);
        assert(w->days < 0x80);
        enum status s = i == 0 ? STATUS_OK : day_check(w->from, "weekend", err);
        if (s != STATUS_OK) {
            return s;
        }
    }
    return days_check(r->days, r->day_count, err);
}

/* The days that need a bit: `first` to `last`, none when first > last. */
struct span {
    int64_t first, last;
};

static void span_cover(struct span *s, int64_t first, int64_t last)
{
    s->first = first < s->first ? first : s->first;
    s->last = last > s->last ? last : s->last;
}

static void span_cover_days(struct span *s, const struct calendar_special *days, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        span_cover(s, days[i].day, days[i].day);
    }
}

static struct calendar *calendar_of_span(struct span s)
{
    struct calendar *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    c->first = s.first <= s.last ? s.first : 0;
    c->count = s.first <= s.last ? (size_t)(s.last - s.first + 1) : 0;
    c->bits = calloc(c->count / BITS_A_WORD + 1, sizeof *c->bits);
    if (c->bits == NULL) {
        free(c);
        return NULL;
    }
    return c;
}

static int32_t longest_closed(const struct calendar *c)
{
    int32_t longest = 0;
    int32_t run = 0;
    int64_t end = c->first + (int64_t)c->count + CALENDAR_CLOSED_MAX + 1;
    for (int64_t day = c->first - CALENDAR_CLOSED_MAX - 1; day < end; day++) {
        run = calendar_is_business_day(c, day) || run > CALENDAR_CLOSED_MAX ? 0 : run + 1;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static void calendar_finish(struct calendar *c, const struct calendar_special *days, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bit_put(c, days[i].day, days[i].business);
    }
    c->longest_closed = longest_closed(c);
}

enum status calendar_new(const struct calendar_rules *rules, struct calendar **ret,
                         struct error *err)
{
    enum status s = rules_check(rules, err);
    if (s != STATUS_OK) {
        return s;
    }
    struct span span = {.first = INT64_MAX, .last = INT64_MIN};
    for (size_t i = 1; i < rules->weekend_count; i++) {
        span_cover(&span, rules->weekends[i].from, rules->weekends[i].from);
    }
    span_cover_days(&span, rules->days, rules->day_count);
    struct calendar *c = calendar_of_span(span);
    if (c == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    bool hold = rules->beyond == CALENDAR_BEYOND_HOLD;
    c->valid_from = rules->valid_from;
    c->valid_through = rules->valid_through;
    c->held_from = hold ? rules->valid_from : CALENDAR_ALWAYS;
    c->held_through = hold ? rules->valid_through : CALENDAR_FOREVER;
    size_t last = rules->weekend_count;
    c->weekend_before = last > 0 ? rules->weekends[0].days : 0;
    c->weekend_after = last > 0 ? rules->weekends[last - 1].days : 0;
    size_t at = 0;
    for (size_t i = 0; i < c->count; i++) {
        int64_t day = c->first + (int64_t)i;
        while (at + 1 < last && rules->weekends[at + 1].from <= day) {
            at++;
        }
        bit_put(c, day, last == 0 || !in_weekend(rules->weekends[at].days, day));
    }
    calendar_finish(c, rules->days, rules->day_count);
    *ret = c;
    return STATUS_OK;
}

/* Is a day a business day of all parts (union of holidays), or of any? */
static bool joint_is_business_day(const struct calendar_joint *j, int64_t day)
{
    bool all = j->combination == CALENDAR_UNION;
    for (size_t i = 0; i < j->part_count; i++) {
        if (calendar_is_business_day(j->parts[i], day) != all) {
            return !all;
        }
    }
    return all;
}

static void joint_take_part(const struct calendar_joint *j, struct calendar *c, size_t i)
{
    const struct calendar *p = j->parts[i];
    bool open = j->combination == CALENDAR_UNION;
    uint8_t before = i == 0 ? p->weekend_before : c->weekend_before;
    uint8_t after = i == 0 ? p->weekend_after : c->weekend_after;
    c->weekend_before = (uint8_t)(open ? before | p->weekend_before : before & p->weekend_before);
    c->weekend_after = (uint8_t)(open ? after | p->weekend_after : after & p->weekend_after);
    c->valid_from = p->valid_from > c->valid_from ? p->valid_from : c->valid_from;
    c->valid_through = p->valid_through < c->valid_through ? p->valid_through : c->valid_through;
    c->held_from = p->held_from > c->held_from ? p->held_from : c->held_from;
    c->held_through = p->held_through < c->held_through ? p->held_through : c->held_through;
}

enum status calendar_combine(const struct calendar_joint *joint, struct calendar **ret,
                             struct error *err)
{
    assert(joint->part_count >= 1 && joint->part_count <= CALENDAR_PARTS_MAX);
    enum status s = days_check(joint->days, joint->day_count, err);
    if (s != STATUS_OK) {
        return s;
    }
    struct span span = {.first = INT64_MAX, .last = INT64_MIN};
    for (size_t i = 0; i < joint->part_count; i++) {
        const struct calendar *p = joint->parts[i];
        if (p->count > 0) {
            span_cover(&span, p->first, p->first + (int64_t)p->count - 1);
        }
    }
    span_cover_days(&span, joint->days, joint->day_count);
    struct calendar *c = calendar_of_span(span);
    if (c == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    c->valid_from = c->held_from = CALENDAR_ALWAYS;
    c->valid_through = c->held_through = CALENDAR_FOREVER;
    for (size_t i = 0; i < joint->part_count; i++) {
        joint_take_part(joint, c, i);
    }
    for (size_t i = 0; i < c->count; i++) {
        int64_t day = c->first + (int64_t)i;
        bit_put(c, day, joint_is_business_day(joint, day));
    }
    calendar_finish(c, joint->days, joint->day_count);
    *ret = c;
    return STATUS_OK;
}

void calendar_free(struct calendar *c)
{
    if (c != NULL) {
        free(c->bits);
        free(c);
    }
}

/* ---- asking ---- */

bool calendar_is_business_day(const struct calendar *c, int64_t day)
{
    if (day < c->first) {
        return !in_weekend(c->weekend_before, day);
    }
    uint64_t at = (uint64_t)(day - c->first);
    if (at >= c->count) {
        return !in_weekend(c->weekend_after, day);
    }
    return (c->bits[at / BITS_A_WORD] >> at % BITS_A_WORD & 1U) != 0;
}

int64_t calendar_valid_from(const struct calendar *c)
{
    return c->valid_from;
}

int64_t calendar_valid_through(const struct calendar *c)
{
    return c->valid_through;
}

int32_t calendar_longest_closed(const struct calendar *c)
{
    return c->longest_closed;
}

/* From a day on in one direction as far as a limit. */
struct search {
    int64_t day, limit;
    int64_t step; /* 1 or -1 */
};

static bool find(const struct calendar *c, struct search search, int64_t *ret)
{
    int64_t steps = (search.limit - search.day) * search.step;
    for (int64_t i = 0; i <= steps; i++) {
        int64_t day = search.day + i * search.step;
        if (calendar_is_business_day(c, day)) {
            *ret = day;
            return true;
        }
    }
    return false;
}

static enum status none_near(int64_t day, struct error *err)
{
    char text[DATE_TEXT_MAX];
    date_format(day, text);
    return error_set(err, STATUS_NOT_FOUND, "no business day within %d days of %s",
                     CALENDAR_CLOSED_MAX, text);
}

/* Answer `day` after looking at the days `low` to `high`. */
static enum status answer(const struct calendar *c, struct span seen, int64_t day,
                          struct calendar_answer *ret, struct error *err)
{
    char text[DATE_TEXT_MAX];
    if (seen.last > c->held_through) {
        date_format(c->held_through, text);
        return error_set(err, STATUS_HELD,
                         "nothing is known after its valid_through, %s; import "
                         "newer data",
                         text);
    }
    if (seen.first < c->held_from) {
        date_format(c->held_from, text);
        return error_set(err, STATUS_HELD,
                         "nothing is known before its valid_from, %s; import "
                         "older data",
                         text);
    }
    *ret = (struct calendar_answer){
        .day = day,
        .beyond = seen.first < c->valid_from || seen.last > c->valid_through,
    };
    return STATUS_OK;
}

static struct span span_between(int64_t a, int64_t b)
{
    return a < b ? (struct span){a, b} : (struct span){b, a};
}

static enum status roll_straight(const struct calendar *c, int64_t day, int64_t step,
                                 struct calendar_answer *ret, struct error *err)
{
    int64_t found = 0;
    if (!find(c, (struct search){day, day + step * CALENDAR_CLOSED_MAX, step}, &found)) {
        return none_near(day, err);
    }
    return answer(c, span_between(day, found), found, ret, err);
}

/* As far as the limit; if nothing is there, the first the other way. */
static enum status roll_within(const struct calendar *c, struct search search,
                               struct calendar_answer *ret, struct error *err)
{
    int64_t found = 0;
    if (find(c, search, &found)) {
        return answer(c, span_between(search.day, found), found, ret, err);
    }
    int64_t back = search.day - search.step * CALENDAR_CLOSED_MAX;
    if (!find(c, (struct search){search.day, back, -search.step}, &found)) {
        return none_near(search.day, err);
    }
    return answer(c, span_between(search.limit, found), found, ret, err);
}

static enum status roll_nearest(const struct calendar *c, int64_t day, struct calendar_answer *ret,
                                struct error *err)
{
    for (int64_t n = 0; n <= CALENDAR_CLOSED_MAX; n++) {
        struct span seen = {day - n, day + n};
        if (calendar_is_business_day(c, day + n)) {
            return answer(c, seen, day + n, ret, err);
        }
        if (calendar_is_business_day(c, day - n)) {
            return answer(c, seen, day - n, ret, err);
        }
    }
    return none_near(day, err);
}

static int64_t month_first(int64_t day)
{
    return day - civil_date_of(day).day + 1;
}

static int64_t month_last(int64_t day)
{
    struct civil_date d = civil_date_of(day);
    return day - d.day + civil_days_in_month(d.year, d.month);
}

enum status calendar_roll(const struct calendar *c, enum roll_convention convention, int64_t day,
                          struct calendar_answer *ret, struct error *err)
{
    enum status s = STATUS_OK;
    switch (convention) {
    case ROLL_RUN:
        *ret = (struct calendar_answer){.day = day};
        return STATUS_OK;
    case ROLL_SKIP:
        s = answer(c, (struct span){day, day}, day, ret, err);
        if (s == STATUS_OK) {
            ret->skipped = !calendar_is_business_day(c, day);
        }
        return s;
    case ROLL_FOLLOWING:
        return roll_straight(c, day, 1, ret, err);
    case ROLL_PRECEDING:
        return roll_straight(c, day, -1, ret, err);
    case ROLL_MODIFIED_FOLLOWING:
        return roll_within(c, (struct search){day, month_last(day), 1}, ret, err);
    case ROLL_MODIFIED_PRECEDING:
        return roll_within(c, (struct search){day, month_first(day), -1}, ret, err);
    case ROLL_HALF_MONTH_MODIFIED_FOLLOWING: {
        int64_t half = month_first(day) + 14;
        int64_t limit = day <= half ? half : month_last(day);
        return roll_within(c, (struct search){day, limit, 1}, ret, err);
    }
    case ROLL_NEAREST:
        return roll_nearest(c, day, ret, err);
    }
    abort(); /* no such convention */
}

enum status calendar_add(const struct calendar *c, int64_t day, int32_t n,
                         struct calendar_answer *ret, struct error *err)
{
    if (n == 0 || n > CALENDAR_ADD_MAX || n < -CALENDAR_ADD_MAX) {
        return error_set(err, STATUS_INVALID,
                         "%" PRId32 " business days: write a number from -%d to %d other than 0", n,
                         CALENDAR_ADD_MAX, CALENDAR_ADD_MAX);
    }
    int64_t step = n < 0 ? -1 : 1;
    int64_t at = day;
    for (int64_t left = n * step; left > 0; left--) {
        int64_t from = at + step;
        if (!find(c, (struct search){from, from + step * CALENDAR_CLOSED_MAX, step}, &at)) {
            return none_near(at, err);
        }
    }
    return answer(c, span_between(day + step, at), at, ret, err);
}

static enum status of_month(const struct calendar *c, struct search search,
                            struct calendar_answer *ret, struct error *err)
{
    int64_t found = 0;
    if (!find(c, search, &found)) {
        struct civil_date d = civil_date_of(search.day);
        return error_set(err, STATUS_NOT_FOUND, "no business day in %04" PRId32 "-%02" PRId32,
                         d.year, d.month);
    }
    return answer(c, span_between(search.day, found), found, ret, err);
}

enum status calendar_first_of_month(const struct calendar *c, int64_t day,
                                    struct calendar_answer *ret, struct error *err)
{
    return of_month(c, (struct search){month_first(day), month_last(day), 1}, ret, err);
}

enum status calendar_last_of_month(const struct calendar *c, int64_t day,
                                   struct calendar_answer *ret, struct error *err)
{
    return of_month(c, (struct search){month_last(day), month_first(day), -1}, ret, err);
}
