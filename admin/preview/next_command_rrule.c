#include "next_command.h"

#include <stdio.h>
#include <string.h>

#include "next_arguments.h"
#include "rrule.h"

/* What the rule keeps by address. */
struct dates {
    struct local_time exdates[RRULE_DATES_MAX];
    struct local_time rdates[RRULE_DATES_MAX];
};

static enum status local_parse(const char *text, struct local_time *ret_time, struct error *err)
{
    struct date_time t;
    char typed[RFC3339_TEXT_MAX];
    /* With a blank, as the same value stands in SQL. */
    (void)snprintf(typed, sizeof typed, "%s", text);
    if (strcspn(typed, " ") == strlen("2030-04-12")) {
        *strchr(typed, ' ') = 'T';
    }
    enum status s =
        strlen(text) < sizeof typed
            ? date_time_parse(typed, &t, err)
            : error_set(err, STATUS_INVALID, "it is too long; write YYYY-MM-DDTHH:MM:SS");
    if (s != STATUS_OK) {
        return s;
    }
    if (t.has_offset || t.has_fraction) {
        return error_set(err, STATUS_INVALID,
                         "\"%s\": write local time without offset or fraction, such as "
                         "2030-04-12T06:00:00",
                         text);
    }
    *ret_time = t.local;
    return STATUS_OK;
}

/* "LOCAL,LOCAL,...", in any order; NULL: none. */
static enum status locals_parse(const char *text, struct local_time list[RRULE_DATES_MAX],
                                size_t *ret_count, struct error *err)
{
    size_t count = 0;
    for (const char *p = text; p != NULL; count++) {
        char one[RFC3339_TEXT_MAX];
        size_t length = strcspn(p, ",");
        if (count == RRULE_DATES_MAX) {
            return error_set(err, STATUS_INVALID, "more than %d; write at most that many",
                             RRULE_DATES_MAX);
        }
        if (length >= sizeof one) {
            return error_set(err, STATUS_INVALID,
                             "number %zu is no local time; write them as 2030-04-12T06:00:00 with "
                             "commas between",
                             count + 1);
        }
        memcpy(one, p, length);
        one[length] = '\0';
        enum status s = local_parse(one, &list[count], err);
        if (s != STATUS_OK) {
            return error_prefix(err, s, "number %zu", count + 1);
        }
        p = p[length] == ',' ? p + length + 1 : NULL;
    }
    *ret_count = local_times_sort(list, count);
    return STATUS_OK;
}

static enum status source_parse(const struct next_rrule_arguments *a, struct dates *dates,
                                struct rrule_source *ret_source, struct error *err)
{
    struct rrule_source source = {
        .text = a->rrule, .exdates = dates->exdates, .rdates = dates->rdates};
    enum status s = local_parse(a->start, &source.start, err);
    if (s != STATUS_OK) {
        return error_prefix(err, s, "--start");
    }
    s = locals_parse(a->exdate, dates->exdates, &source.exdate_count, err);
    if (s != STATUS_OK) {
        return error_prefix(err, s, "--exdate");
    }
    s = locals_parse(a->rdate, dates->rdates, &source.rdate_count, err);
    if (s != STATUS_OK) {
        return error_prefix(err, s, "--rdate");
    }
    s = next_policies_parse(a->dst_gap, a->dst_overlap, &source.gap, &source.overlap, err);
    if (s == STATUS_OK) {
        *ret_source = source;
    }
    return s;
}

static enum status after_parse(const char *text, struct local_time start, utc_us *ret_after,
                               struct error *err)
{
    if (text == NULL) {
        /* Nothing fires before the start, and no clock is two days off UTC. */
        *ret_after = utc_from_seconds(start.s - 2 * SECONDS_A_DAY);
        return STATUS_OK;
    }
    enum status s = rfc3339_parse(text, ret_after, err);
    return s == STATUS_OK ? s : error_prefix(err, s, "--after");
}

static enum status rrule_arguments_parse(const struct next_rrule_arguments *a, struct dates *dates,
                                         struct rrule *ret_rule, struct next_request *r,
                                         struct error *err)
{
    enum status s = next_require(a->rrule, "--rrule", "\"FREQ=MONTHLY;BYDAY=-1FR\"", err);
    if (s == STATUS_OK) {
        s = next_require(a->start, "--start", "2030-04-12T06:00:00", err);
    }
    if (s == STATUS_OK) {
        s = next_require(a->time_zone, "--time-zone", "Europe/Berlin", err);
    }
    if (s == STATUS_OK) {
        s = next_count_parse(a->count, &r->count, err);
    }
    struct rrule_source source = {.text = NULL};
    if (s == STATUS_OK) {
        s = source_parse(a, dates, &source, err);
    }
    if (s == STATUS_OK) {
        s = after_parse(a->after, source.start, &r->after, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    s = rrule_parse(&source, ret_rule, err);
    return s == STATUS_OK ? s : error_prefix(err, s, "--rrule");
}

static struct firing next_of_rrule(const void *rule, const struct zone *z, utc_us after)
{
    return rrule_next(rule, z, after);
}

static void explain_rrule(const void *rule, const struct zone *z, utc_us after, FILE *out)
{
    const struct rule r = {.kind = RULE_RRULE, .zone = z, .rrule = *(const struct rrule *)rule};
    next_explain(&r, NULL, after, out);
}

int next_command_rrule(const struct next_rrule_arguments *arguments, FILE *out, FILE *err)
{
    struct dates dates;
    struct rrule rule;
    struct next_request r = {.rule = &rule,
                             .next = next_of_rrule,
                             .time_zone = arguments->time_zone,
                             .utc = arguments->utc,
                             .explain = arguments->explain ? explain_rrule : NULL};
    struct error e = {.text = ""};
    enum status s = rrule_arguments_parse(arguments, &dates, &rule, &r, &e);
    if (s != STATUS_OK) {
        int code = next_fail(s, &e, err);
        return s == STATUS_NOT_FOUND ? 0 : code; /* there are none to print, and it says so */
    }
    return next_print(&r, out, err);
}
