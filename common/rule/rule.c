#include "rule_inside.h"

#include <inttypes.h>
#include <string.h>

#include "cron_quartz.h"

static const char *const KIND_NAMES[] = {"cron", "rrule", "interval", "once"};

bool rule_kind_parse(const char *word, enum rule_kind *ret_kind)
{
    for (size_t i = 0; i < sizeof KIND_NAMES / sizeof KIND_NAMES[0]; i++) {
        if (strcmp(word, KIND_NAMES[i]) == 0) {
            *ret_kind = (enum rule_kind)i;
            return true;
        }
    }
    return false;
}

struct unit {
    const char *words[4]; /* NULL after the last */
    int64_t seconds;
};

static const struct unit UNITS[] = {
    {{"s", "sec", "second", "seconds"}, 1},
    {{"min", "mins", "minute", "minutes"}, 60},
    {{"h", "hour", "hours", NULL}, 3600},
    {{"d", "day", "days", NULL}, SECONDS_A_DAY},
    {{"week", "weeks", NULL, NULL}, 7 * SECONDS_A_DAY},
};
#define UNIT_COUNT (sizeof UNITS / sizeof UNITS[0])

static bool word_equals(const char *word, size_t length, const char *other)
{
    return strlen(other) == length && memcmp(word, other, length) == 0;
}

static enum status unit_find(const char *word, size_t length, size_t *ret_unit, struct error *err)
{
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        for (size_t k = 0; k < 4 && UNITS[i].words[k] != NULL; k++) {
            if (word_equals(word, length, UNITS[i].words[k])) {
                *ret_unit = i;
                return STATUS_OK;
            }
        }
    }
    static const char *const calendar[] = {"month", "months",  "year",
                                           "years", "quarter", "quarters"};
    for (size_t i = 0; i < sizeof calendar / sizeof calendar[0]; i++) {
        if (word_equals(word, length, calendar[i])) {
            return error_set(err, STATUS_INVALID,
                             "an interval is elapsed time; use cron for calendar %s", calendar[i]);
        }
    }
    if (length == 1 && *word == 'm') {
        return error_set(err, STATUS_INVALID, "\"m\" may be minutes or months; write \"minutes\"");
    }
    return error_set(err, STATUS_INVALID,
                     "unknown unit; write seconds, minutes, hours, days or weeks, such as \"1 hour "
                     "30 minutes\"");
}

static const char *skip_blanks(const char *p)
{
    return p + strspn(p, " \t");
}

/* Each unit at most once; the sum stays far from overflow since every part is bounded. */
static enum status interval_sum(const char *text, int64_t *ret_length_s, struct error *err)
{
    int64_t sum = 0;
    bool used[UNIT_COUNT] = {false};
    for (const char *p = skip_blanks(text); *p != '\0'; p = skip_blanks(p)) {
        int64_t number = 0;
        size_t digits = strspn(p, "0123456789");
        if (digits == 0 || digits > 10) {
            return error_set(err, STATUS_INVALID,
                             "a whole number of up to ten digits must stand before each unit; "
                             "write it as \"15 minutes\"");
        }
        for (size_t i = 0; i < digits; i++) {
            number = number * 10 + (p[i] - '0');
        }
        p = skip_blanks(p + digits);
        size_t length = strspn(p, "abcdefghijklmnopqrstuvwxyz");
        if (length == 0) {
            return error_set(err, STATUS_INVALID,
                             "a unit is missing after %" PRId64 "; write it as \"15 minutes\"",
                             number);
        }
        size_t unit = 0;
        enum status s = unit_find(p, length, &unit, err);
        if (s != STATUS_OK) {
            return s;
        }
        if (used[unit]) {
            return error_set(err, STATUS_INVALID, "two numbers for %s; add them up",
                             UNITS[unit].words[UNITS[unit].words[3] != NULL ? 3 : 1]);
        }
        used[unit] = true;
        if (number > INTERVAL_MAX_S / UNITS[unit].seconds) {
            return error_set(err, STATUS_INVALID, "it is longer than a hundred years");
        }
        sum += number * UNITS[unit].seconds;
        p += length;
    }
    *ret_length_s = sum;
    return STATUS_OK;
}

/* Text of users goes into one line of an error: cut, and without control characters. */
struct shown {
    char text[80];
};

static struct shown show(const char *text)
{
    struct shown s;
    size_t n = 0;
    for (; n < sizeof s.text - 1 && text[n] != '\0'; n++) {
        s.text[n] = text[n] >= ' ' && text[n] <= '~' ? text[n] : '?';
    }
    s.text[n] = '\0';
    return s;
}

enum status interval_parse(const char *text, int64_t *ret_length_s, struct error *err)
{
    int64_t length_s = 0;
    enum status s = interval_sum(text, &length_s, err);
    if (s == STATUS_OK && length_s < 1) {
        s = error_set(err, STATUS_INVALID, "the shortest is 1 second; write it as \"15 minutes\"");
    }
    if (s == STATUS_OK && length_s > INTERVAL_MAX_S) {
        s = error_set(err, STATUS_INVALID, "it is longer than a hundred years");
    }
    if (s != STATUS_OK) {
        return error_prefix(err, s, "interval \"%s\"", show(text).text);
    }
    *ret_length_s = length_s;
    return STATUS_OK;
}

/* A local time with one offset or the other, as the zone's clock shows that instant. */
static void choice_format(const struct zone *z, int64_t utc_s, char text[RFC3339_TEXT_MAX])
{
    rfc3339_format(utc_from_seconds(utc_s), zone_offset_at(z, utc_s), text);
}

static enum status once_refuse(const struct zone *z, const struct date_time *t,
                               const struct zone_span *span, struct error *err)
{
    char first[RFC3339_TEXT_MAX];
    char second[RFC3339_TEXT_MAX];
    int64_t with_before = t->local.s - span->before;
    int64_t with_after = t->local.s - span->after;
    choice_format(z, with_before < with_after ? with_before : with_after, first);
    choice_format(z, with_before < with_after ? with_after : with_before, second);
    return error_set(err, STATUS_INVALID,
                     "the clocks of %s show this time %s; write \"%s\" or \"%s\"", zone_name(z),
                     span->kind == LOCAL_GAP ? "never, it is in a gap" : "twice", first, second);
}

static enum status once_parse(const char *text, struct rule *r, struct error *err)
{
    struct date_time t;
    enum status s = date_time_parse(text, &t, err);
    if (s == STATUS_OK && t.has_fraction) {
        s = error_set(err, STATUS_INVALID, "a fraction of a second cannot be given; remove it");
    }
    if (s == STATUS_OK && !t.has_offset) {
        struct zone_span span = zone_resolve(r->zone, t.local);
        if (span.kind == LOCAL_UNIQUE) {
            t.offset_s = span.before;
        } else {
            s = once_refuse(r->zone, &t, &span, err);
        }
    }
    if (s != STATUS_OK) {
        return error_prefix(err, s, "once \"%s\"", show(text).text);
    }
    int64_t utc_s = t.local.s - t.offset_s;
    r->once_at = utc_from_seconds(utc_s);
    r->once_nominal.s = utc_s + zone_offset_at(r->zone, utc_s);
    return STATUS_OK;
}

enum status rule_std_text(const struct rule_source *source, char ret_text[CRON_TEXT_MAX],
                          struct error *err)
{
    if (source->dialect != NULL && strcmp(source->dialect, "quartz") == 0) {
        return cron_quartz_to_std(source->text, ret_text, err);
    }
    if (source->dialect != NULL && strcmp(source->dialect, "std") != 0) {
        return error_set(err, STATUS_INVALID, "unknown dialect \"%s\"; write std or quartz",
                         show(source->dialect).text);
    }
    if (strlen(source->text) >= CRON_TEXT_MAX) {
        return error_set(err, STATUS_INVALID, "a cron rule has at most %d bytes",
                         CRON_TEXT_MAX - 1);
    }
    memcpy(ret_text, source->text, strlen(source->text) + 1);
    return STATUS_OK;
}

static enum status cron_rule_parse(const struct rule_source *source, struct rule *r,
                                   struct error *err)
{
    char text[CRON_TEXT_MAX];
    enum status s = rule_std_text(source, text, err);
    if (s == STATUS_OK) {
        s = cron_parse(text, &r->cron, err);
    }
    if (s != STATUS_OK) {
        return error_prefix(err, s, "cron \"%s\"", show(source->text).text);
    }
    cron_set_policies(&r->cron, source->gap, source->overlap);
    return STATUS_OK;
}

static enum status recurrence_parse(const struct rule_source *source, struct rule *r,
                                    struct error *err)
{
    if (!source->has_start) {
        return error_set(err, STATUS_INVALID,
                         "a recurrence rule needs start_local, the local time it begins with");
    }
    struct rrule_source rrule = {
        .text = source->text,
        .start = source->start,
        .exdates = source->exdates,
        .exdate_count = source->exdate_count,
        .rdates = source->rdates,
        .rdate_count = source->rdate_count,
        .gap = source->gap,
        .overlap = source->overlap,
    };
    enum status s = rrule_parse(&rrule, &r->rrule, err);
    s = s == STATUS_NOT_FOUND ? STATUS_INVALID : s; /* a schedule that never fires is a mistake */
    return s == STATUS_OK ? s : error_prefix(err, s, "rrule \"%s\"", show(source->text).text);
}

enum status rule_parse(const struct rule_source *source, struct zone_set *zones,
                       struct rule *ret_rule, struct error *err)
{
    struct rule r = {.kind = RULE_CRON, .jitter_us = source->jitter_us};
    if (!rule_kind_parse(source->kind, &r.kind)) {
        return error_set(err, STATUS_INVALID,
                         "unknown kind \"%s\"; write cron, rrule, interval or once",
                         show(source->kind).text);
    }
    enum status s = zone_set_find(zones, source->zone, &r.zone, err);
    if (s != STATUS_OK) {
        return s;
    }
    switch (r.kind) {
    case RULE_CRON:
        s = cron_rule_parse(source, &r, err);
        break;
    case RULE_RRULE:
        s = recurrence_parse(source, &r, err);
        break;
    case RULE_INTERVAL:
        if (!utc_is_finite(source->anchor)) {
            return error_set(err, STATUS_INVALID, "an interval needs a finite anchor");
        }
        s = interval_parse(source->text, &r.length_s, err);
        r.anchor = source->anchor;
        break;
    case RULE_ONCE:
        s = once_parse(source->text, &r, err);
        break;
    }
    if (s == STATUS_OK) {
        s = rule_calendar_parse(source, &r, err);
    }
    if (s == STATUS_OK) {
        s = rule_business_parse(source, &r, err);
    }
    if (s == STATUS_OK) {
        *ret_rule = r;
    }
    return s;
}

static struct firing interval_next(const struct rule *r, utc_us after)
{
    int64_t step = r->length_s * MICROS_A_SECOND;
    int64_t at = r->anchor.us;
    if (after.us >= at) {
        /* Both differences are taken unsigned: an anchor and an instant may be far apart. */
        uint64_t passed = (uint64_t)after.us - (uint64_t)at;
        uint64_t ahead = (uint64_t)step - passed % (uint64_t)step;
        if (__builtin_add_overflow(after.us, (int64_t)ahead, &at)) {
            return (struct firing){.found = false};
        }
    }
    int32_t offset = zone_offset_at(r->zone, utc_seconds((utc_us){at}));
    return (struct firing){
        .found = true,
        .at = {at},
        .nominal = {utc_seconds((utc_us){at}) + offset},
        .offset_s = offset,
        .utc_in_key = true,
    };
}

static struct firing once_next(const struct rule *r, utc_us after)
{
    if (after.us >= r->once_at.us) {
        return (struct firing){.found = false};
    }
    return (struct firing){
        .found = true,
        .at = r->once_at,
        .nominal = r->once_nominal,
        .offset_s = zone_offset_at(r->zone, utc_seconds(r->once_at)),
    };
}

/* Sums that stay at the ends of the number line, where UTC_NONE and UTC_UNBOUNDED are. */
static utc_us utc_moved(utc_us t, int64_t us)
{
    int64_t moved = 0;
    if (!utc_is_finite(t)) {
        return t;
    }
    if (__builtin_add_overflow(t.us, us, &moved)) {
        return us > 0 ? (utc_us){INT64_MAX - 1} : (utc_us){INT64_MIN + 2};
    }
    return (utc_us){moved};
}

struct firing rule_unrolled_next(const struct rule *r, utc_us after)
{
    switch (r->kind) {
    case RULE_CRON:
        return cron_next(&r->cron, r->zone, after);
    case RULE_RRULE:
        return rrule_next(&r->rrule, r->zone, after);
    case RULE_INTERVAL:
        return interval_next(r, after);
    case RULE_ONCE:
        return once_next(r, after);
    }
    return (struct firing){.found = false};
}

/* Without jitter. */
static struct firing plain_next(const struct rule *r, utc_us after)
{
    return r->calendar != NULL ? rule_rolled_next(r, after) : rule_unrolled_next(r, after);
}

/* With the jitter, and what it is about. */
static struct firing firing_finish(const struct rule *r, struct firing f)
{
    if (f.found || f.held) {
        f.at = utc_moved(f.at, r->jitter_us);
        f.about = rule_about(r, f.nominal);
    }
    return f;
}

struct firing rule_next(const struct rule *r, utc_us after)
{
    return firing_finish(r, plain_next(r, utc_moved(after, -r->jitter_us)));
}

utc_us rule_plain_instant(const struct rule *r, const struct firing *f)
{
    return utc_moved(f->at, -r->jitter_us);
}

struct firing rule_next_within(const struct rule *r, utc_us after, struct rule_bounds bounds)
{
    after = utc_moved(after, -r->jitter_us);
    if (bounds.starts_at.us == UTC_UNBOUNDED.us) {
        return (struct firing){.found = false};
    }
    if (utc_is_finite(bounds.starts_at) && after.us < bounds.starts_at.us - 1) {
        after.us = bounds.starts_at.us - 1; /* a firing at the start counts */
    }
    struct firing f = plain_next(r, after);
    if ((f.found || f.held) && !utc_is_none(bounds.ends_at) && f.at.us >= bounds.ends_at.us) {
        return (struct firing){.found = false};
    }
    return firing_finish(r, f);
}

/* Intervals k >= 0 of the anchor with at < before. */
static int64_t interval_count_before(const struct rule *r, utc_us before)
{
    if (before.us <= r->anchor.us) {
        return 0;
    }
    uint64_t passed = (uint64_t)before.us - (uint64_t)r->anchor.us - 1;
    return (int64_t)(passed / (uint64_t)(r->length_s * MICROS_A_SECOND)) + 1;
}

int64_t rule_count_within(const struct rule *r, utc_us after, utc_us before,
                          struct rule_bounds bounds)
{
    after = utc_moved(after, -r->jitter_us);
    before = utc_moved(before, -r->jitter_us);
    if (!utc_is_none(bounds.ends_at) && bounds.ends_at.us < before.us) {
        before = bounds.ends_at;
    }
    if (utc_is_finite(bounds.starts_at) && after.us < bounds.starts_at.us - 1) {
        after.us = bounds.starts_at.us - 1; /* a firing at the start counts */
    }
    if (bounds.starts_at.us == UTC_UNBOUNDED.us || after.us >= before.us) {
        return 0;
    }
    return r->calendar != NULL ? rule_rolled_count(r, after, before)
                               : rule_unrolled_count(r, after, before);
}

int64_t rule_unrolled_count(const struct rule *r, utc_us after, utc_us before)
{
    switch (r->kind) {
    case RULE_CRON:
        return cron_count(&r->cron, r->zone, after, before);
    case RULE_RRULE:
        return rrule_count(&r->rrule, r->zone, after, before);
    case RULE_INTERVAL:
        return interval_count_before(r, before) - interval_count_before(r, (utc_us){after.us + 1});
    case RULE_ONCE:
        return r->once_at.us > after.us && r->once_at.us < before.us ? 1 : 0;
    }
    return 0;
}

struct firing rule_last_within(const struct rule *r, utc_us after, utc_us before,
                               struct rule_bounds bounds)
{
    struct firing last = rule_next_within(r, after, bounds);
    if (!last.found || last.at.us >= before.us) {
        return (struct firing){.found = false};
    }
    /* What follows `low` lies before `before`, what follows `high` does not. */
    int64_t low = last.at.us - 1;
    int64_t high = before.us;
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        struct firing f = rule_next_within(r, (utc_us){middle}, bounds);
        if (f.found && f.at.us < before.us) {
            last = f;
            low = f.at.us - 1 > middle ? f.at.us - 1 : middle;
        } else {
            high = middle;
        }
    }
    return last;
}

bool rule_fires_at_most_once_a_local_day(const struct rule *r)
{
    switch (r->kind) {
    case RULE_CRON:
        return cron_is_at_most_daily(&r->cron);
    case RULE_RRULE:
        return rrule_is_at_most_daily(&r->rrule);
    case RULE_INTERVAL:
        return false;
    case RULE_ONCE:
        return true;
    }
    return false;
}

bool rule_is_of_whole_minutes(const struct rule *r)
{
    switch (r->kind) {
    case RULE_CRON:
        return !cron_has_seconds(&r->cron);
    case RULE_RRULE:
        return !rrule_has_seconds(&r->rrule);
    case RULE_INTERVAL:
        return r->length_s % 60 == 0 && r->anchor.us % ((int64_t)60 * MICROS_A_SECOND) == 0;
    case RULE_ONCE:
        return r->once_nominal.s % 60 == 0;
    }
    return false;
}

int64_t rule_jitter_us(const char *schedule, int32_t jitter_s)
{
    uint64_t hash = 14695981039346656037U; /* FNV-1a: its offset basis and its prime */
    for (const char *p = schedule; *p != '\0'; p++) {
        hash = (hash ^ (unsigned char)*p) * 1099511628211U;
    }
    return jitter_s > 0 ? (int64_t)(hash % (uint64_t)jitter_s) * MICROS_A_SECOND : 0;
}
