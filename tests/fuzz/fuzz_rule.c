/* Any bytes as a schedule's rule: lines of kind, zone, text, start or anchor, EXDATE and RDATE.
 * Refused with one line, or a rule of any kind whose firings are as they should be, whose count and
 * last firing are those of one step after the other, and whose keys differ. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "key.h"

#define KEYS       24
#define SHORT_US   ((int64_t)50 * 366 * SECONDS_A_DAY * MICROS_A_SECOND)
#define JITTER_MAX 90

enum line {
    LINE_KIND,
    LINE_ZONE,
    LINE_TEXT,
    LINE_START,
    LINE_EXDATES,
    LINE_RDATES,
};

struct dates {
    struct local_time exdates[RRULE_DATES_MAX];
    struct local_time rdates[RRULE_DATES_MAX];
};

static struct firing next_of(const struct fuzz_rule *r, utc_us after)
{
    return rule_next(r->rule, after);
}

static int64_t count_of(const struct fuzz_rule *r, utc_us after, utc_us before)
{
    const struct rule_bounds open = {UTC_NONE, UTC_NONE};
    return rule_count_within(r->rule, after, before, open);
}

/* The key of a firing as long as the schedule lives. */
static void keys_check(const struct rule *r, utc_us after)
{
    char keys[KEYS][KEY_MAX_BYTES];
    const enum key_form form = key_form_of_rule(r);
    for (int i = 0; i < KEYS; i++) {
        const struct firing f = rule_next(r, after);
        if (!f.found) {
            return;
        }
        key_format(form, &f, keys[i]);
        MUST_HOLD(strlen(keys[i]) >= 10);
        for (int k = 0; k < i; k++) {
            MUST_HOLD(strcmp(keys[i], keys[k]) != 0);
        }
        after = f.at;
    }
}

/* A start at one firing and an end at a later one leave the first and take away the second. */
static void bounds_check(const struct rule *r, utc_us after)
{
    struct firing f[4] = {rule_next(r, after)};
    for (int i = 1; i < 4 && f[i - 1].found; i++) {
        f[i] = rule_next(r, f[i - 1].at);
    }
    if (!f[3].found || f[3].at.us - after.us > SHORT_US) {
        return;
    }
    const struct rule_bounds bounds = {rule_plain_instant(r, &f[1]), rule_plain_instant(r, &f[3])};
    const struct firing first = rule_next_within(r, after, bounds);
    const struct firing last =
        rule_last_within(r, after, (utc_us){f[3].at.us + MICROS_A_SECOND}, bounds);
    MUST_HOLD(first.found && first.at.us == f[1].at.us);
    MUST_HOLD(last.found && last.at.us == f[2].at.us && last.nominal.s == f[2].nominal.s);
    MUST_HOLD(!rule_next_within(r, f[2].at, bounds).found);
    MUST_HOLD(rule_count_within(r, after, (utc_us){f[3].at.us + 1}, bounds) == 2);
}

static void rule_ask(const struct rule *r, utc_us start)
{
    const struct fuzz_rule rule = {
        .rule = r,
        .zone = r->zone,
        .next = next_of,
        .count = count_of,
        .jitter_us = r->jitter_us,
    };
    const utc_us from[] = {{start.us - 1}, utc_from_seconds(0), utc_from_seconds(1767225600)};
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        fuzz_follow(&rule, from[i], 12);
        keys_check(r, from[i]);
        bounds_check(r, from[i]);
    }
}

/* Each is a whole number of lengths behind the anchor, and the anchor is the first. */
static void interval_check(const struct rule *r)
{
    struct firing f = rule_next(r, UTC_PAST);
    MUST_HOLD(f.found && f.at.us == r->anchor.us + r->jitter_us && f.utc_in_key);
    f = rule_next(r, (utc_us){f.at.us + (int64_t)400 * 366 * SECONDS_A_DAY * MICROS_A_SECOND});
    MUST_HOLD(f.found &&
              (f.at.us - r->jitter_us - r->anchor.us) % (r->length_s * MICROS_A_SECOND) == 0);
}

/* It fires once, and without an offset at the local time that is written. */
static void once_check(const struct rule *r, const char *text)
{
    struct date_time t;
    const utc_us at = {r->once_at.us + r->jitter_us};
    MUST_HOLD(rule_next(r, UTC_PAST).at.us == at.us && !rule_next(r, at).found);
    MUST_HOLD(date_time_parse(text, &t, NULL) == STATUS_OK);
    if (t.has_offset) {
        MUST_HOLD(r->once_at.us == (t.local.s - t.offset_s) * MICROS_A_SECOND);
    } else {
        MUST_HOLD(r->once_nominal.s == t.local.s);
    }
}

static struct zone_set *zones(void)
{
    static struct zone_set *set;
    if (set == NULL) {
        MUST_HOLD(zone_set_open(NULL, &set, NULL) == STATUS_OK);
    }
    return set;
}

/* A list as the database writes it; false: it is refused. */
static bool list_take(const char *text, struct local_time *times, size_t *ret_count)
{
    struct error err = {.text = ""};
    if (text == NULL || text[0] == '\0') {
        return true;
    }
    enum status s = local_times_parse(text, times, RRULE_DATES_MAX, ret_count, &err);
    MUST_HOLD(s != STATUS_OK || *ret_count <= local_times_most(text));
    if (s != STATUS_OK) {
        fuzz_refusal(&err);
    }
    return s == STATUS_OK;
}

static void rule_try(char *const lines[FUZZ_LINES_MAX], struct dates *dates, uint32_t number)
{
    struct error err = {.text = ""};
    struct date_time start = {.local = {1767225600}};
    struct rule r;
    if (lines[LINE_START] != NULL && lines[LINE_START][0] != '\0' &&
        date_time_parse(lines[LINE_START], &start, &err) != STATUS_OK) {
        fuzz_refusal(&err);
        return;
    }
    struct rule_source source = {
        .kind = lines[LINE_KIND],
        .zone = lines[LINE_ZONE],
        .text = lines[LINE_TEXT],
        .anchor = utc_from_seconds(start.local.s - start.offset_s),
        .has_start = true,
        .start = start.local,
        .exdates = dates->exdates,
        .rdates = dates->rdates,
        .gap = (enum dst_gap_policy)(number % 4),
        .overlap = (enum dst_overlap_policy)(number / 4 % 4),
        .jitter_us = number / 16 % 2 == 0 ? 0 : rule_jitter_us(lines[LINE_TEXT], JITTER_MAX),
    };
    source.anchor.us += start.micros;
    if (!list_take(lines[LINE_EXDATES], dates->exdates, &source.exdate_count) ||
        !list_take(lines[LINE_RDATES], dates->rdates, &source.rdate_count)) {
        return;
    }
    if (rule_parse(&source, zones(), &r, &err) != STATUS_OK) {
        fuzz_refusal(&err);
        return;
    }
    fuzz_words(&r);
    rule_ask(&r, r.kind == RULE_ONCE ? r.once_at : source.anchor);
    switch (r.kind) {
    case RULE_CRON:
    case RULE_RRULE:
        return;
    case RULE_INTERVAL:
        interval_check(&r);
        return;
    case RULE_ONCE:
        once_check(&r, source.text);
        return;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *lines[FUZZ_LINES_MAX];
    char *text = fuzz_lines(data, size, lines);
    struct dates *dates = calloc(1, sizeof *dates);
    MUST_HOLD(dates != NULL);
    if (lines[LINE_TEXT] != NULL) {
        rule_try(lines, dates, fuzz_number(data, size));
    }
    free(dates);
    free(text);
    return 0;
}
