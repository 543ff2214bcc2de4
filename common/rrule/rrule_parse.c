/* The text of a recurrence rule: its parts, each by itself. */
#include "rrule_parts.h"

#include <string.h>
#include <strings.h>

const char *const RRULE_PART_NAMES[PART_KINDS] = {
    "FREQ",     "INTERVAL", "COUNT",      "UNTIL",     "WKST",     "BYDAY",   "BYSECOND",
    "BYMINUTE", "BYHOUR",   "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYMONTH", "BYSETPOS",
};
const char *const RRULE_FREQUENCY_NAMES[RRULE_YEARLY + 1] = {
    "MINUTELY", "HOURLY", "DAILY", "WEEKLY", "MONTHLY", "YEARLY",
};
static const char *const WEEKDAY_NAMES[7] = {"SU", "MO", "TU", "WE", "TH", "FR", "SA"};

#define ORDINAL_MAX  53
#define SHOWN_LENGTH 40 /* of a faulty value in a text */

/* A stretch of the text. */
struct slice {
    const char *text;
    size_t length;
};

#define SLICE(s) (int)((s).length < SHOWN_LENGTH ? (s).length : SHOWN_LENGTH), (s).text

static bool slice_is(struct slice s, const char *word)
{
    return strlen(word) == s.length && strncasecmp(s.text, word, s.length) == 0;
}

/* Cut what stands before `sign` off the front of *rest; all of it when there is none. */
static struct slice slice_cut(struct slice *rest, char sign)
{
    const char *end = memchr(rest->text, sign, rest->length);
    struct slice head = {rest->text, end != NULL ? (size_t)(end - rest->text) : rest->length};
    size_t used = head.length + (end != NULL ? 1 : 0);
    rest->text += used;
    rest->length -= used;
    return head;
}

static bool digits_parse(struct slice s, size_t most, int32_t *ret_number)
{
    int32_t number = 0;
    if (s.length == 0 || s.length > most) {
        return false;
    }
    for (size_t i = 0; i < s.length; i++) {
        if (s.text[i] < '0' || s.text[i] > '9') {
            return false;
        }
        number = number * 10 + (s.text[i] - '0');
    }
    *ret_number = number;
    return true;
}

/* Take a sign off the front. Returns -1 after "-", 1 after "+", 0 without. */
static int sign_cut(struct slice *s)
{
    if (s->length == 0 || (s->text[0] != '+' && s->text[0] != '-')) {
        return 0;
    }
    int sign = s->text[0] == '-' ? -1 : 1;
    s->text++;
    s->length--;
    return sign;
}

static bool weekday_parse(struct slice s, int *ret_weekday)
{
    for (int i = 0; i < 7; i++) {
        if (slice_is(s, WEEKDAY_NAMES[i])) {
            *ret_weekday = i;
            return true;
        }
    }
    return false;
}

static enum status frequency_parse(struct slice value, struct rrule_parts *p, struct error *err)
{
    for (int i = 0; i <= RRULE_YEARLY; i++) {
        if (slice_is(value, RRULE_FREQUENCY_NAMES[i])) {
            p->frequency = (enum rrule_frequency)i;
            return STATUS_OK;
        }
    }
    if (slice_is(value, "SECONDLY")) {
        return error_set(err, STATUS_INVALID,
                         "FREQ=SECONDLY is not taken; write kind interval with a text such as \"30 "
                         "seconds\", or FREQ=MINUTELY with BYSECOND");
    }
    return error_set(
        err, STATUS_INVALID,
        "FREQ \"%.*s\": unknown; write MINUTELY, HOURLY, DAILY, WEEKLY, MONTHLY or YEARLY",
        SLICE(value));
}

/* How many units of time 400 years have: a longer interval would never come again. */
static int32_t interval_max(enum rrule_frequency frequency)
{
    static const int32_t most[] = {
        [RRULE_MINUTELY] = 146097 * 1440, [RRULE_HOURLY] = 146097 * 24, [RRULE_DAILY] = 146097,
        [RRULE_WEEKLY] = 146097 / 7,      [RRULE_MONTHLY] = 4800,       [RRULE_YEARLY] = 400,
    };
    return most[frequency];
}

static enum status step_parse(struct slice value, struct rrule_parts *p, struct error *err)
{
    if (!digits_parse(value, 9, &p->interval) || p->interval < 1) {
        return error_set(err, STATUS_INVALID, "INTERVAL \"%.*s\": write a number from 1 on",
                         SLICE(value));
    }
    return STATUS_OK;
}

static enum status count_parse(struct slice value, struct rrule_parts *p, struct error *err)
{
    if (!digits_parse(value, 9, &p->count) || p->count < 1 || p->count > RRULE_COUNT_MAX) {
        return error_set(err, STATUS_INVALID,
                         "COUNT \"%.*s\": write a number from 1 to %d, or UNTIL for an end further "
                         "away",
                         SLICE(value), RRULE_COUNT_MAX);
    }
    return STATUS_OK;
}

static bool until_scan(struct slice v, struct rrule_parts *p)
{
    int32_t n[6] = {0}; /* year, month, day, hour, minute, second */
    static const size_t at[] = {0, 4, 6, 9, 11, 13};
    bool utc = v.length == 16 && (v.text[15] == 'Z' || v.text[15] == 'z');
    size_t length = utc ? 15 : v.length;
    if (length != 8 && length != 15) {
        return false;
    }
    for (size_t i = 0; i < 6 && at[i] < length; i++) {
        if (!digits_parse((struct slice){v.text + at[i], i == 0 ? 4 : 2}, 4, &n[i])) {
            return false;
        }
    }
    if (length == 15 && v.text[8] != 'T' && v.text[8] != 't') {
        return false;
    }
    if (n[0] < CIVIL_YEAR_MIN || n[1] < 1 || n[1] > 12 || n[2] < 1 ||
        n[2] > civil_days_in_month(n[0], n[1]) || n[3] > 23 || n[4] > 59 || n[5] > 59) {
        return false;
    }
    p->until = civil_days_of(n[0], n[1], n[2]) * SECONDS_A_DAY + n[3] * 3600 + n[4] * 60 + n[5];
    p->until_kind = utc ? UNTIL_UTC : length == 8 ? UNTIL_DATE : UNTIL_LOCAL;
    return true;
}

static enum status until_parse(struct slice value, struct rrule_parts *p, struct error *err)
{
    if (!until_scan(value, p)) {
        return error_set(err, STATUS_INVALID,
                         "UNTIL \"%.*s\": no date or time of its form; write 20300412T060000Z (an "
                         "instant), 20300412T060000 (local time) or 20300412 (with that day)",
                         SLICE(value));
    }
    return STATUS_OK;
}

static enum status week_start_parse(struct slice value, struct rrule_parts *p, struct error *err)
{
    int weekday = 0;
    if (!weekday_parse(value, &weekday)) {
        return error_set(err, STATUS_INVALID, "WKST \"%.*s\": write MO, TU, WE, TH, FR, SA or SU",
                         SLICE(value));
    }
    p->week_start = (uint8_t)weekday;
    return STATUS_OK;
}

static enum status weekday_item_parse(struct slice item, struct rrule_parts *p, struct error *err)
{
    struct slice rest = item;
    int sign = sign_cut(&rest);
    size_t digits = 0;
    while (digits < rest.length && rest.text[digits] >= '0' && rest.text[digits] <= '9') {
        digits++;
    }
    int32_t ordinal = 0;
    int weekday = 0;
    bool has_ordinal = sign != 0 || digits > 0;
    if ((has_ordinal && (!digits_parse((struct slice){rest.text, digits}, 2, &ordinal) ||
                         ordinal < 1 || ordinal > ORDINAL_MAX)) ||
        !weekday_parse((struct slice){rest.text + digits, rest.length - digits}, &weekday)) {
        return error_set(
            err, STATUS_INVALID,
            "BYDAY \"%.*s\": write MO, TU, WE, TH, FR, SA or SU, or with a number from "
            "1 to 53 before it, such as 2MO or -1FR",
            SLICE(item));
    }
    if (!has_ordinal) {
        p->weekdays |= (uint8_t)(1 << weekday);
        return STATUS_OK;
    }
    p->has_ordinals = true;
    p->largest_ordinal = ordinal > p->largest_ordinal ? ordinal : p->largest_ordinal;
    (sign < 0 ? p->nth_from_last : p->nth)[weekday] |= (uint64_t)1 << ordinal;
    return STATUS_OK;
}

/* What a list of numbers may hold. */
struct range {
    int min, max;
    bool from_last; /* may be negative */
};

static const struct range RANGES[PART_KINDS] = {
    [PART_BYSECOND] = {0, 59, false},  [PART_BYMINUTE] = {0, 59, false},
    [PART_BYHOUR] = {0, 23, false},    [PART_BYMONTHDAY] = {1, 31, true},
    [PART_BYYEARDAY] = {1, 366, true}, [PART_BYWEEKNO] = {1, 53, true},
    [PART_BYMONTH] = {1, 12, false},   [PART_BYSETPOS] = {1, 366, true},
};

static enum status number_item_parse(enum rrule_part part, struct slice item, struct rrule_parts *p,
                                     struct error *err)
{
    const struct range *range = &RANGES[part];
    struct slice rest = item;
    int sign = range->from_last ? sign_cut(&rest) : 0;
    int32_t number = 0;
    bool is_number = digits_parse(rest, range->max > 99 ? 3 : 2, &number);
    if (part == PART_BYSECOND && is_number && number == 60) {
        return error_set(err, STATUS_INVALID,
                         "BYSECOND 60: there are no leap seconds here; write 59, or 0 of the next "
                         "minute");
    }
    if (!is_number || number < range->min || number > range->max) {
        return error_set(err, STATUS_INVALID, "%s \"%.*s\": write numbers from %d to %d%s",
                         RRULE_PART_NAMES[part], SLICE(item), range->min, range->max,
                         range->from_last ? ", or negative ones to count from the end" : "");
    }
    struct rrule_ordinals *o = &p->lists[part];
    (sign < 0 ? o->from_last : o->from_first)[number / 64] |= (uint64_t)1 << (number % 64);
    return STATUS_OK;
}

static enum status list_parse(enum rrule_part part, struct slice value, struct rrule_parts *p,
                              struct error *err)
{
    for (bool more = true; more;) {
        more = memchr(value.text, ',', value.length) != NULL;
        struct slice item = slice_cut(&value, ',');
        enum status s = part == PART_BYDAY ? weekday_item_parse(item, p, err)
                                           : number_item_parse(part, item, p, err);
        if (s != STATUS_OK) {
            return s;
        }
    }
    return STATUS_OK;
}

static enum status value_parse(enum rrule_part part, struct slice value, struct rrule_parts *p,
                               struct error *err)
{
    switch (part) {
    case PART_FREQ:
        return frequency_parse(value, p, err);
    case PART_INTERVAL:
        return step_parse(value, p, err);
    case PART_COUNT:
        return count_parse(value, p, err);
    case PART_UNTIL:
        return until_parse(value, p, err);
    case PART_WKST:
        return week_start_parse(value, p, err);
    case PART_BYDAY:
    case PART_BYSECOND:
    case PART_BYMINUTE:
    case PART_BYHOUR:
    case PART_BYMONTHDAY:
    case PART_BYYEARDAY:
    case PART_BYWEEKNO:
    case PART_BYMONTH:
    case PART_BYSETPOS:
    case PART_KINDS:
        return list_parse(part, value, p, err);
    }
    return STATUS_INVALID;
}

/* Parts of other standards and programs, and what to write for them. */
static enum status refuse_name(struct slice name, struct error *err)
{
    static const struct {
        const char *name, *remedy;
    } known[] = {
        {"RSCALE", "only the Gregorian calendar is known; remove it"},
        {"SKIP", "short months are left out; write BYMONTHDAY=-1 for the last day"},
        {"BYEASTER", "write the dates as rdates"},
        {"EXRULE", "write the dates to leave out as exdates"},
        {"EXDATE", "it has its own column and option; write the dates as exdates"},
        {"RDATE", "it has its own column and option; write the dates as rdates"},
        {"DTSTART", "it has its own column and option; write it as the start"},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (slice_is(name, known[i].name)) {
            return error_set(err, STATUS_INVALID, "%s: %s", known[i].name, known[i].remedy);
        }
    }
    return error_set(
        err, STATUS_INVALID,
        "part \"%.*s\": unknown; write FREQ, INTERVAL, COUNT, UNTIL, WKST or a BY part "
        "of RFC 5545 with = and its value",
        SLICE(name));
}

static enum status part_parse(struct slice text, struct rrule_parts *p, struct error *err)
{
    if (text.length == 0) {
        return error_set(err, STATUS_INVALID,
                         "an empty part; write one ; between two parts and none at the end");
    }
    struct slice value = text;
    struct slice name = slice_cut(&value, '=');
    int part = 0;
    while (part < PART_KINDS && !slice_is(name, RRULE_PART_NAMES[part])) {
        part++;
    }
    if (part == PART_KINDS || name.length == text.length) {
        return refuse_name(name, err);
    }
    if (parts_have(p, (enum rrule_part)part)) {
        return error_set(err, STATUS_INVALID, "%s stands twice; write it once",
                         RRULE_PART_NAMES[part]);
    }
    p->seen |= (uint32_t)1 << part;
    return value_parse((enum rrule_part)part, value, p, err);
}

static enum status text_check(const char *text, size_t *ret_length, struct error *err)
{
    size_t length = strnlen(text, RRULE_TEXT_MAX);
    if (length >= RRULE_TEXT_MAX) {
        return error_set(err, STATUS_INVALID, "the rule is longer than %d bytes; shorten it",
                         RRULE_TEXT_MAX - 1);
    }
    if (length > 0 && memchr(text, '=', length) == NULL) {
        return error_set(err, STATUS_INVALID,
                         "it has no part NAME=VALUE; write a rule of RFC 5545 such as "
                         "FREQ=WEEKLY;BYDAY=MO");
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c <= ' ' || c > '~') {
            return error_set(err, STATUS_INVALID,
                             "byte %zu of the rule (0x%02x) is no letter, digit or sign of the "
                             "grammar; remove it",
                             i + 1, c);
        }
    }
    struct slice name = {text, strcspn(text, ":;=")};
    if (text[name.length] == ':') {
        if (slice_is(name, "RRULE")) {
            return error_set(err, STATUS_INVALID,
                             "\"RRULE:\" before the rule; write only what follows it");
        }
        return refuse_name(name, err);
    }
    *ret_length = length;
    return STATUS_OK;
}

enum status rrule_parts_parse(const char *text, struct rrule_parts *ret_parts, struct error *err)
{
    struct rrule_parts p = {.interval = 1, .week_start = 1};
    struct slice rest = {text, 0};
    enum status s = text_check(text, &rest.length, err);
    for (bool more = true; s == STATUS_OK && more;) {
        more = memchr(rest.text, ';', rest.length) != NULL;
        s = part_parse(slice_cut(&rest, ';'), &p, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    if (!parts_have(&p, PART_FREQ)) {
        return error_set(err, STATUS_INVALID, "no FREQ; write for example FREQ=DAILY");
    }
    if (p.interval > interval_max(p.frequency)) {
        return error_set(err, STATUS_INVALID,
                         "INTERVAL=%d of a %s rule is longer than 400 years; write at most %d",
                         p.interval, RRULE_FREQUENCY_NAMES[p.frequency], interval_max(p.frequency));
    }
    *ret_parts = p;
    return STATUS_OK;
}
