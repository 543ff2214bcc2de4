/* Any bytes as a recurrence rule: lines of start, rule, EXDATE and RDATE. Refused with one line, or
 * a rule whose times increase at a bounded cost and whose firings are as they should be. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "rrule_inside.h"
#include "rule.h"

#define TIMES 8

static struct firing next_of(const struct fuzz_rule *r, utc_us after)
{
    int steps = 0;
    const struct firing f = rrule_next_counting(r->rule, r->zone, after, &steps);
    MUST_HOLD(steps <= RRULE_STEPS_MAX);
    return f;
}

static int64_t count_of(const struct fuzz_rule *r, utc_us after, utc_us before)
{
    return rrule_count(r->rule, r->zone, after, before);
}

/* Of the rule without EXDATE, or of RDATE. */
static bool named_by(const struct fuzz_rule *r, int64_t from, int64_t *ret_time)
{
    struct rrule_search s = rrule_search_from(r->rule, from);
    int64_t kept = INT64_MAX;
    int64_t added = INT64_MAX;
    const bool keeps = rrule_kept_from(&s, from, &kept);
    const bool adds = rrule_added_from(&s, from, &added);
    *ret_time = kept < added ? kept : added;
    return keeps || adds;
}

/* The times that the rule itself names. */
static void nominal_check(const struct rrule *r)
{
    struct rrule_search s = rrule_search_from(r, r->start.s);
    int64_t from = r->start.s;
    int64_t n = 0;
    for (int i = 0; i < TIMES && rrule_nominal_from(&s, from, &n); i++) {
        const struct rrule_tally t = {
            .from = from, .below = n + 1, .limit = INT64_MAX, .steps_max = INT32_MAX};
        struct rrule_search counting = {.rule = r};
        int64_t last = 0;
        MUST_HOLD(n >= from && n <= r->last.s && s.steps <= RRULE_STEPS_MAX * (i + 1));
        MUST_HOLD(rrule_nominal_count(&counting, &t, &last) == 1);
        from = n + 1;
    }
    /* It should have been refused: it never fires. Unless RDATE names times. */
    MUST_HOLD(from != r->start.s || r->rdate_count > 0);
}

static void firings_check(const struct rrule *r, const struct zone *z)
{
    struct zone_change change = {.at = r->start.s};
    const struct fuzz_rule rule = {
        .rule = r,
        .zone = z,
        .next = next_of,
        .count = count_of,
        .named = r->has_until ? NULL : named_by, /* that end is an instant */
        .gap = r->gap,
        .overlap = r->overlap,
    };
    fuzz_follow(&rule, utc_from_seconds(r->start.s - 2 * SECONDS_A_DAY), 12);
    for (int i = 0; i < 2 && zone_change_after(z, change.at, &change); i++) {
        fuzz_follow(&rule, utc_from_seconds(change.at - 7200), 8);
    }
}

/* A line of the input as a list; without one, or when it is refused, it is empty. */
static size_t list_take(const char *text, struct local_time *times)
{
    size_t count = 0;
    if (text != NULL &&
        local_times_parse(text, times, RRULE_DATES_MAX, &count, NULL) != STATUS_OK) {
        return 0;
    }
    return count;
}

static void rule_try(char *const lines[FUZZ_LINES_MAX], struct local_time *times, uint32_t number)
{
    struct date_time start = {.local = {1900000000}};
    struct error err = {.text = ""};
    struct rrule r;
    if (lines[1] != NULL && date_time_parse(lines[0], &start, &err) != STATUS_OK) {
        return;
    }
    const struct rrule_source source = {
        .text = lines[1] != NULL ? lines[1] : lines[0],
        .start = start.local,
        .exdates = times,
        .exdate_count = lines[1] != NULL ? list_take(lines[2], times) : 0,
        .rdates = times + RRULE_DATES_MAX,
        .rdate_count =
            lines[1] != NULL && lines[2] != NULL ? list_take(lines[3], times + RRULE_DATES_MAX) : 0,
        .gap = (enum dst_gap_policy)(number % 4),
        .overlap = (enum dst_overlap_policy)(number / 4 % 4),
    };
    if (rrule_parse(&source, &r, &err) != STATUS_OK) {
        fuzz_refusal(&err);
        return;
    }
    const struct rule rule = {.kind = RULE_RRULE, .zone = fuzz_zone(number / 16), .rrule = r};
    fuzz_words(&rule);
    nominal_check(&r);
    firings_check(&r, fuzz_zone(number / 16));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *lines[FUZZ_LINES_MAX];
    char *text = fuzz_lines(data, size, lines);
    struct local_time *times = calloc(2 * (size_t)RRULE_DATES_MAX, sizeof *times);
    MUST_HOLD(times != NULL);
    rule_try(lines, times, fuzz_number(data, size));
    free(times);
    free(text);
    return 0;
}
