#include "next_command.h"

#include <string.h>

#include "cron.h"
#include "zone_file.h"

/* The arguments, understood. */
struct next_request {
    struct cron cron;
    const struct zone *zone;
    utc_us after;
    long count;
};

static enum status require(const char *value, const char *option, const char *example,
                           struct error *err)
{
    if (value != NULL) {
        return STATUS_OK;
    }
    return error_set(err, STATUS_INVALID, "%s is needed; write for example %s %s", option, option,
                     example);
}

static enum status count_parse(const char *text, long *ret_count, struct error *err)
{
    long count = 0;
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < digits && count <= NEXT_COUNT_MAX; i++) {
        count = count * 10 + (text[i] - '0');
    }
    if (text[digits] != '\0' || count < 1 || count > NEXT_COUNT_MAX) {
        return error_set(err, STATUS_INVALID, "--count: write a number from 1 to %d",
                         NEXT_COUNT_MAX);
    }
    *ret_count = count;
    return STATUS_OK;
}

static enum status policies_parse(const struct next_cron_arguments *a, struct cron *c,
                                  struct error *err)
{
    enum dst_gap_policy gap = DST_GAP_AUTO;
    enum dst_overlap_policy overlap = DST_OVERLAP_AUTO;
    if (a->dst_gap != NULL && !dst_gap_policy_parse(a->dst_gap, &gap)) {
        return error_set(err, STATUS_INVALID, "--dst-gap: write auto, after, shift or skip");
    }
    if (a->dst_overlap != NULL && !dst_overlap_policy_parse(a->dst_overlap, &overlap)) {
        return error_set(err, STATUS_INVALID, "--dst-overlap: write auto, first, second or both");
    }
    cron_set_policies(c, gap, overlap);
    return STATUS_OK;
}

static enum status dialect_check(const char *dialect, struct error *err)
{
    if (dialect == NULL || strcmp(dialect, "std") == 0) {
        return STATUS_OK;
    }
    if (strcmp(dialect, "quartz") == 0) {
        return error_set(err, STATUS_INVALID,
                         "--dialect quartz is not supported yet; write the expression in std");
    }
    return error_set(err, STATUS_INVALID, "--dialect: write std");
}

static enum status request_parse(const struct next_cron_arguments *a, struct next_request *r,
                                 struct error *err)
{
    enum status s = require(a->cron, "--cron", "\"30 6 * * 1-5\"", err);
    if (s == STATUS_OK) {
        s = require(a->time_zone, "--time-zone", "Europe/Berlin", err);
    }
    if (s == STATUS_OK) {
        s = require(a->after, "--after", "2030-04-12T00:00:00Z", err);
    }
    if (s == STATUS_OK) {
        s = dialect_check(a->dialect, err);
    }
    if (s == STATUS_OK) {
        s = count_parse(a->count != NULL ? a->count : "1", &r->count, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    s = rfc3339_parse(a->after, &r->after, err);
    if (s != STATUS_OK) {
        return error_prefix(err, s, "--after");
    }
    s = cron_parse(a->cron, &r->cron, err);
    if (s != STATUS_OK) {
        return error_prefix(err, s, "--cron");
    }
    return policies_parse(a, &r->cron, err);
}

static void firings_print(const struct next_request *r, bool utc, FILE *out)
{
    utc_us after = r->after;
    for (long i = 0; i < r->count; i++) {
        struct firing f = cron_next(&r->cron, r->zone, after);
        if (!f.found) {
            return;
        }
        char text[RFC3339_TEXT_MAX];
        if (utc) {
            rfc3339_format_utc(f.at, text);
        } else {
            rfc3339_format(f.at, f.offset_s, text);
        }
        (void)fprintf(out, "%s\n", text);
        after = f.at;
    }
}

static int fail(enum status s, const struct error *e, FILE *err)
{
    (void)fprintf(err, "reportctl next: %s\n", e->text);
    return s == STATUS_INVALID ? 2 : 1;
}

int next_command_cron(const struct next_cron_arguments *arguments, FILE *out, FILE *err)
{
    struct next_request r = {.zone = NULL};
    struct error e = {.text = ""};
    enum status s = request_parse(arguments, &r, &e);
    if (s != STATUS_OK) {
        return fail(s, &e, err);
    }
    struct zone_set *zones = NULL;
    s = zone_set_open(NULL, &zones, &e);
    if (s != STATUS_OK) {
        return fail(STATUS_NOT_FOUND, &e, err);
    }
    s = zone_set_find(zones, arguments->time_zone, &r.zone, &e);
    if (s != STATUS_OK) {
        if (s == STATUS_INVALID) {
            (void)error_prefix(&e, s, "--time-zone");
        }
        zone_set_close(zones);
        return fail(s, &e, err);
    }
    firings_print(&r, arguments->utc, out);
    zone_set_close(zones);
    if (fflush(out) != 0 || ferror(out) != 0) {
        (void)fprintf(err, "reportctl next: the output could not be written\n");
        return 1;
    }
    return 0;
}
