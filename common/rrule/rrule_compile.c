/* The parts of a recurrence rule judged together, and what the start fills in. */
#include "rrule_inside.h"

#include <inttypes.h>

#include "rrule_parts.h"
#include "value_set.h"

#define BIT(value)      ((uint64_t)1 << (value))
#define ALL_MONTHS      0x1ffe
#define ALL_HOURS       (BIT(24) - 1)
#define ALL_MINUTES     (BIT(60) - 1)
#define COUNT_STEPS_MAX 1000000 /* of finding the end that COUNT means; some 50 ms */

static bool have_any(const struct rrule_parts *p, uint32_t parts)
{
    return (p->seen & parts) != 0;
}

#define DATE_PARTS                                                                                 \
    (BIT(PART_BYDAY) | BIT(PART_BYMONTHDAY) | BIT(PART_BYYEARDAY) | BIT(PART_BYWEEKNO))
#define BY_PARTS                                                                                   \
    (DATE_PARTS | BIT(PART_BYMONTH) | BIT(PART_BYHOUR) | BIT(PART_BYMINUTE) | BIT(PART_BYSECOND))

/* ---- the table of RFC 5545, section 3.3.10 ---- */

static enum status days_judge(const struct rrule_parts *p, struct error *err)
{
    const char *frequency = RRULE_FREQUENCY_NAMES[p->frequency];
    if (parts_have(p, PART_BYWEEKNO) && p->frequency != RRULE_YEARLY) {
        return error_set(err, STATUS_INVALID,
                         "BYWEEKNO in a %s rule: weeks are numbered in years; write FREQ=YEARLY",
                         frequency);
    }
    if (parts_have(p, PART_BYYEARDAY) && p->frequency >= RRULE_DAILY &&
        p->frequency <= RRULE_MONTHLY) {
        return error_set(
            err, STATUS_INVALID,
            "BYYEARDAY in a %s rule: RFC 5545 does not allow it; write FREQ=YEARLY, or "
            "BYMONTH with BYMONTHDAY",
            frequency);
    }
    if (parts_have(p, PART_BYMONTHDAY) && p->frequency == RRULE_WEEKLY) {
        return error_set(
            err, STATUS_INVALID,
            "BYMONTHDAY in a WEEKLY rule: RFC 5545 does not allow it; write FREQ=DAILY "
            "with BYDAY and BYMONTHDAY");
    }
    if (parts_have(p, PART_BYWEEKNO) &&
        !have_any(p, BIT(PART_BYDAY) | BIT(PART_BYMONTHDAY) | BIT(PART_BYYEARDAY))) {
        return error_set(err, STATUS_INVALID,
                         "BYWEEKNO without BYDAY: some programs take one day of the week, others "
                         "all seven; write which, such as BYDAY=MO");
    }
    return STATUS_OK;
}

static enum status ordinals_judge(const struct rrule_parts *p, struct error *err)
{
    if (!p->has_ordinals) {
        return STATUS_OK;
    }
    if (p->frequency != RRULE_MONTHLY && p->frequency != RRULE_YEARLY) {
        return error_set(err, STATUS_INVALID,
                         "BYDAY with a number in a %s rule: weekdays are numbered in months and "
                         "years; write FREQ=MONTHLY or YEARLY, or the weekdays alone",
                         RRULE_FREQUENCY_NAMES[p->frequency]);
    }
    if (parts_have(p, PART_BYWEEKNO)) {
        return error_set(err, STATUS_INVALID,
                         "BYDAY with a number beside BYWEEKNO: RFC 5545 does not allow it; write "
                         "the weekdays alone");
    }
    bool of_month = p->frequency == RRULE_MONTHLY || parts_have(p, PART_BYMONTH);
    if (of_month && p->largest_ordinal > 5) {
        return error_set(err, STATUS_INVALID,
                         "BYDAY with the number %d: a month has each weekday five times at most; "
                         "write 1 to 5%s",
                         p->largest_ordinal,
                         p->frequency == RRULE_YEARLY ? ", or leave out BYMONTH" : "");
    }
    return STATUS_OK;
}

static enum status parts_judge(const struct rrule_parts *p, struct error *err)
{
    if (parts_have(p, PART_COUNT) && parts_have(p, PART_UNTIL)) {
        return error_set(err, STATUS_INVALID, "COUNT and UNTIL together; write one of them");
    }
    enum status s = days_judge(p, err);
    if (s == STATUS_OK) {
        s = ordinals_judge(p, err);
    }
    if (s == STATUS_OK && parts_have(p, PART_BYSETPOS) && !have_any(p, BY_PARTS)) {
        s = error_set(err, STATUS_INVALID,
                      "BYSETPOS alone picks from nothing; write another BY part with it, or remove "
                      "it");
    }
    return s;
}

static enum status list_judge(const char *name, const struct local_time *list, size_t count,
                              struct error *err)
{
    if (count > RRULE_DATES_MAX) {
        return error_set(err, STATUS_INVALID, "%zu %s; write at most %d", count, name,
                         RRULE_DATES_MAX);
    }
    for (size_t i = 1; i < count; i++) {
        if (list[i - 1].s >= list[i].s) {
            return error_set(
                err, STATUS_INVALID,
                "%s: number %zu is not later than the one before; write them in order, "
                "each once",
                name, i + 1);
        }
    }
    return STATUS_OK;
}

static enum status source_judge(const struct rrule_source *source, struct error *err)
{
    enum status s = list_judge("exdates", source->exdates, source->exdate_count, err);
    if (s == STATUS_OK) {
        s = list_judge("rdates", source->rdates, source->rdate_count, err);
    }
    if (s == STATUS_OK && source->rdate_count > 0 && source->rdates[0].s < source->start.s) {
        s = error_set(err, STATUS_INVALID,
                      "rdates: the first lies before the start; write an earlier start, or leave "
                      "it out");
    }
    return s;
}

/* ---- what the rule leaves to the start ---- */

static void fill_days(struct rrule *r, const struct rrule_parts *p)
{
    int64_t day = floor_divide(r->start.s, SECONDS_A_DAY);
    struct civil_date start = civil_date_of(day);
    r->by_day = parts_have(p, PART_BYMONTHDAY);
    r->by_weekday = parts_have(p, PART_BYDAY);
    r->by_yearday = parts_have(p, PART_BYYEARDAY);
    r->by_weekno = parts_have(p, PART_BYWEEKNO);
    r->months =
        parts_have(p, PART_BYMONTH) ? (uint16_t)p->lists[PART_BYMONTH].from_first[0] : ALL_MONTHS;
    r->days = (uint32_t)p->lists[PART_BYMONTHDAY].from_first[0];
    r->days_from_last = (uint32_t)p->lists[PART_BYMONTHDAY].from_last[0];
    r->yeardays = p->lists[PART_BYYEARDAY];
    r->weeks = p->lists[PART_BYWEEKNO].from_first[0];
    r->weeks_from_last = p->lists[PART_BYWEEKNO].from_last[0];
    r->weekdays = p->weekdays;
    if (have_any(p, DATE_PARTS) || r->frequency <= RRULE_DAILY) {
        return;
    }
    if (r->frequency == RRULE_WEEKLY) {
        r->by_weekday = true;
        r->weekdays = (uint8_t)BIT(civil_weekday(day));
        return;
    }
    r->by_day = true;
    r->days = (uint32_t)BIT(start.day);
    if (r->frequency == RRULE_YEARLY && !parts_have(p, PART_BYMONTH)) {
        r->months = (uint16_t)BIT(start.month);
    }
}

static void fill_ordinals(struct rrule *r, const struct rrule_parts *p)
{
    r->by_nth = p->has_ordinals;
    r->by_nth_of_year =
        p->has_ordinals && r->frequency == RRULE_YEARLY && !parts_have(p, PART_BYMONTH);
    for (int weekday = 0; weekday < 7; weekday++) {
        r->nth_of_year[weekday] = p->nth[weekday];
        r->nth_of_year_from_last[weekday] = p->nth_from_last[weekday];
        for (int n = 1; n <= 5; n++) {
            r->nth_weekdays[n - 1] |= (uint8_t)(set_has(p->nth[weekday], n) << weekday);
            r->nth_from_last[n - 1] |= (uint8_t)(set_has(p->nth_from_last[weekday], n) << weekday);
        }
    }
}

static void fill_clock(struct rrule *r, const struct rrule_parts *p)
{
    int64_t clock = r->start.s - floor_divide(r->start.s, SECONDS_A_DAY) * SECONDS_A_DAY;
    r->hours = (uint32_t)(parts_have(p, PART_BYHOUR)     ? p->lists[PART_BYHOUR].from_first[0]
                          : r->frequency <= RRULE_HOURLY ? ALL_HOURS
                                                         : BIT(clock / 3600));
    r->minutes = parts_have(p, PART_BYMINUTE)     ? p->lists[PART_BYMINUTE].from_first[0]
                 : r->frequency == RRULE_MINUTELY ? ALL_MINUTES
                                                  : BIT(clock / 60 % 60);
    r->seconds =
        parts_have(p, PART_BYSECOND) ? p->lists[PART_BYSECOND].from_first[0] : BIT(clock % 60);
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Leave out hours, and minutes, that the interval never ends at. */
static void reach_clock(struct rrule *r)
{
    for (uint64_t bit = 0; bit < 64; bit += r->interval) {
        r->steps_pattern |= BIT(bit);
    }
    if (r->frequency == RRULE_HOURLY) {
        int64_t step = common_divisor(r->interval, 24);
        for (int hour = 0; hour < 24; hour++) {
            bool reached = rrule_ahead(hour, floor_divide(r->start.s, 3600), step) == 0;
            r->hours &= reached ? UINT32_MAX : ~(uint32_t)BIT(hour);
        }
    }
    if (r->frequency == RRULE_MINUTELY) {
        int64_t start = floor_divide(r->start.s, 60);
        int64_t step = common_divisor(r->interval, 1440);
        uint64_t minutes = 0;
        for (int hour = 0; hour < 24; hour++) {
            uint64_t here = 0;
            for (int minute = 0; minute < 60; minute++) {
                bool reached = rrule_ahead(hour * 60 + minute, start, step) == 0;
                here |= reached ? r->minutes & BIT(minute) : 0;
            }
            r->hours &= here != 0 ? UINT32_MAX : ~(uint32_t)BIT(hour);
            minutes |= set_has(r->hours, hour) ? here : 0;
        }
        r->minutes = minutes;
    }
}

/* BYSETPOS within a minute or a day picks the same every time. Returns false when it is nothing. */
static bool fill_positions(struct rrule *r, const struct rrule_parts *p)
{
    r->by_position = parts_have(p, PART_BYSETPOS);
    r->positions = p->lists[PART_BYSETPOS];
    int32_t minutes = set_size(r->minutes);
    int32_t seconds = set_size(r->seconds);
    r->times_a_day = r->frequency > RRULE_HOURLY ? set_size(r->hours) * minutes * seconds : 0;
    if (!r->by_position) {
        return true;
    }
    switch (r->frequency) {
    case RRULE_MINUTELY: {
        uint64_t picked = 0;
        for (int64_t i = rrule_position_first_from(&r->positions, seconds, 0); i >= 0;
             i = rrule_position_first_from(&r->positions, seconds, i + 1)) {
            picked |= BIT(set_nth(r->seconds, (int)i));
        }
        r->seconds = picked;
        r->by_position = false;
        return picked != 0;
    }
    case RRULE_HOURLY:
        return rrule_position_first_from(&r->positions, (int64_t)minutes * seconds, 0) >= 0;
    case RRULE_DAILY:
        r->times_a_day =
            (int32_t)rrule_position_count_below(&r->positions, r->times_a_day, r->times_a_day);
        return r->times_a_day > 0;
    case RRULE_WEEKLY:
    case RRULE_MONTHLY:
    case RRULE_YEARLY:
        return true;
    }
    return true;
}

/* ---- the end ---- */

static void fill_until(struct rrule *r, const struct rrule_parts *p)
{
    r->last.s = INT64_MAX;
    if (!parts_have(p, PART_UNTIL)) {
        return;
    }
    switch (p->until_kind) {
    case UNTIL_DATE:
        r->last.s = p->until + SECONDS_A_DAY - 1;
        return;
    case UNTIL_LOCAL:
        r->last.s = p->until;
        return;
    case UNTIL_UTC:
        r->has_until = true;
        r->until = utc_from_seconds(p->until);
        return;
    }
}

static enum status fill_count(struct rrule *r, const struct rrule_parts *p, struct error *err)
{
    if (!parts_have(p, PART_COUNT)) {
        return STATUS_OK;
    }
    const struct rrule_tally t = {
        .from = r->start.s, .below = INT64_MAX, .limit = p->count, .steps_max = COUNT_STEPS_MAX};
    struct rrule_search s = {.rule = r};
    int64_t last = 0;
    int64_t n = rrule_nominal_count(&s, &t, &last);
    if (n < 0) {
        return error_set(err, STATUS_INVALID,
                         "COUNT=%" PRId32 " of so rare a rule takes too long to count; write UNTIL "
                         "with the date of the last",
                         p->count);
    }
    r->count = p->count;
    if (n == p->count) {
        r->last.s = last;
    }
    return STATUS_OK;
}

static enum status first_find(const struct rrule *r, struct error *err)
{
    struct rrule open = *r;
    open.last.s = INT64_MAX;
    struct rrule_search s = rrule_search_from(&open, r->start.s);
    int64_t first = 0;
    if (r->hours == 0 || r->minutes == 0 || r->seconds == 0 ||
        !rrule_nominal_from(&s, r->start.s, &first)) {
        return error_set(err, STATUS_NOT_FOUND,
                         "never fires: no time within 400 years of the start has all that the "
                         "parts ask for; write fewer parts, or others");
    }
    /* No clock is more than a day and some hours off UTC (ZONE_OFFSET_MAX). */
    if (first > r->last.s || (r->has_until && first + ZONE_OFFSET_MIN > utc_seconds(r->until))) {
        return error_set(err, STATUS_NOT_FOUND,
                         "never fires: UNTIL lies before the first time; write a later UNTIL or an "
                         "earlier start");
    }
    return STATUS_OK;
}

static enum status kept_find(const struct rrule *r, struct error *err)
{
    struct rrule_search s = rrule_search_from(r, r->start.s);
    int64_t first = 0;
    if (!rrule_kept_from(&s, r->start.s, &first) && !rrule_added_from(&s, r->start.s, &first)) {
        return error_set(err, STATUS_NOT_FOUND,
                         "never fires: the exdates take away all that the rule names; write fewer "
                         "of them");
    }
    return STATUS_OK;
}

/* ---- once a day ---- */

static bool rule_is_at_most_daily(const struct rrule *r)
{
    int positions = 0;
    for (int word = 0; word < RRULE_ORDINAL_WORDS; word++) {
        positions += set_size(r->positions.from_first[word]);
        positions += set_size(r->positions.from_last[word]);
    }
    bool one_picked = r->by_position && positions == 1;
    bool one_second = set_size(r->seconds) == 1;
    bool one_hour = set_size(r->hours) == 1;
    switch (r->frequency) {
    case RRULE_MINUTELY:
        return one_second && (r->interval >= 1440 || (one_hour && set_size(r->minutes) == 1));
    case RRULE_HOURLY:
        return (one_picked || (one_second && set_size(r->minutes) == 1)) &&
               (r->interval >= 24 || one_hour);
    case RRULE_DAILY:
        return r->times_a_day == 1;
    case RRULE_WEEKLY:
    case RRULE_MONTHLY:
    case RRULE_YEARLY:
        return one_picked || r->times_a_day == 1;
    }
    return false;
}

/* Does an added time share its date with another one? */
static bool added_dates_collide(const struct rrule *r)
{
    struct rrule_search s = rrule_search_from(r, r->start.s);
    int64_t before = INT64_MIN;
    int64_t time = 0;
    for (int64_t from = r->start.s; rrule_added_from(&s, from, &time); from = time + 1) {
        int64_t day = floor_divide(time, SECONDS_A_DAY);
        int64_t other = 0;
        struct rrule_search kept = rrule_search_from(r, day * SECONDS_A_DAY);
        bool named = rrule_kept_from(&kept, day * SECONDS_A_DAY, &other);
        if (named && other == time) {
            named = rrule_kept_from(&kept, time + 1, &other);
        }
        if (day == before || (named && floor_divide(other, SECONDS_A_DAY) == day)) {
            return true;
        }
        before = day;
    }
    return false;
}

enum status rrule_parse(const struct rrule_source *source, struct rrule *ret_rule,
                        struct error *err)
{
    struct rrule_parts p;
    enum status s = rrule_parts_parse(source->text, &p, err);
    if (s == STATUS_OK) {
        s = parts_judge(&p, err);
    }
    if (s == STATUS_OK) {
        s = source_judge(source, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    struct rrule r = {
        .frequency = p.frequency,
        .interval = (uint32_t)p.interval,
        .week_start = p.week_start,
        .start = source->start,
        .exdates = source->exdates,
        .exdate_count = source->exdate_count,
        .rdates = source->rdates,
        .rdate_count = source->rdate_count,
        .gap = source->gap == DST_GAP_AUTO ? DST_GAP_SHIFT : source->gap,
        .overlap = source->overlap == DST_OVERLAP_AUTO ? DST_OVERLAP_FIRST : source->overlap,
    };
    fill_days(&r, &p);
    fill_ordinals(&r, &p);
    fill_clock(&r, &p);
    reach_clock(&r);
    if (!fill_positions(&r, &p)) {
        return error_set(err, STATUS_NOT_FOUND,
                         "never fires: BYSETPOS picks none of so few times; write smaller numbers");
    }
    r.start_unit = rrule_unit_of(&r, floor_divide(r.start.s, SECONDS_A_DAY));
    fill_until(&r, &p);
    s = first_find(&r, err);
    if (s == STATUS_OK) {
        s = fill_count(&r, &p, err);
    } else if (s == STATUS_NOT_FOUND && r.rdate_count > 0) {
        r.last.s = r.start.s - 1; /* the rule names nothing, the rdates do */
        s = STATUS_OK;
    }
    if (s == STATUS_OK) {
        s = kept_find(&r, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    r.at_most_daily = rule_is_at_most_daily(&r) && !added_dates_collide(&r);
    *ret_rule = r;
    return STATUS_OK;
}
