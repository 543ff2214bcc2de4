#include "next_command.h"

#include <string.h>

#include "cron_quartz.h"
#include "next_arguments.h"

/* A rule, and its text in std. */
struct next_cron {
    struct cron cron;
    char text[CRON_TEXT_MAX];
    bool converted; /* it was given in another dialect */
};

static enum status text_parse(const struct next_cron_arguments *a, struct next_cron *ret_cron,
                              struct error *err)
{
    if (a->dialect == NULL || strcmp(a->dialect, "std") == 0) {
        return cron_parse(a->cron, &ret_cron->cron, err);
    }
    enum status s = cron_quartz_to_std(a->cron, ret_cron->text, err);
    ret_cron->converted = s == STATUS_OK;
    return s == STATUS_OK ? cron_parse(ret_cron->text, &ret_cron->cron, err) : s;
}

static enum status dialect_check(const char *dialect, struct error *err)
{
    if (dialect == NULL || strcmp(dialect, "std") == 0 || strcmp(dialect, "quartz") == 0) {
        return STATUS_OK;
    }
    return error_set(err, STATUS_INVALID, "--dialect: write std or quartz");
}

static enum status cron_arguments_parse(const struct next_cron_arguments *a,
                                        struct next_cron *ret_cron, struct next_request *r,
                                        struct error *err)
{
    enum status s = next_require(a->cron, "--cron", "\"30 6 * * 1-5\"", err);
    if (s == STATUS_OK) {
        s = next_require(a->time_zone, "--time-zone", "Europe/Berlin", err);
    }
    if (s == STATUS_OK) {
        s = next_require(a->after, "--after", "2030-04-12T00:00:00Z", err);
    }
    if (s == STATUS_OK) {
        s = dialect_check(a->dialect, err);
    }
    if (s == STATUS_OK) {
        s = next_count_parse(a->count, &r->count, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    s = rfc3339_parse(a->after, &r->after, err);
    if (s != STATUS_OK) {
        return error_prefix(err, s, "--after");
    }
    s = text_parse(a, ret_cron, err);
    if (s != STATUS_OK) {
        return error_prefix(err, s, "--cron");
    }
    enum dst_gap_policy gap = DST_GAP_AUTO;
    enum dst_overlap_policy overlap = DST_OVERLAP_AUTO;
    s = next_policies_parse(a->dst_gap, a->dst_overlap, &gap, &overlap, err);
    if (s == STATUS_OK) {
        cron_set_policies(&ret_cron->cron, gap, overlap);
    }
    return s;
}

static struct firing next_of_cron(const void *rule, const struct zone *z, utc_us after)
{
    const struct next_cron *c = rule;
    return cron_next(&c->cron, z, after);
}

static void explain_cron(const void *rule, const struct zone *z, utc_us after, FILE *out)
{
    const struct next_cron *c = rule;
    const struct rule r = {.kind = RULE_CRON, .zone = z, .cron = c->cron};
    next_explain(&r, c->converted ? c->text : NULL, after, out);
}

int next_command_cron(const struct next_cron_arguments *arguments, FILE *out, FILE *err)
{
    struct next_cron cron = {.converted = false};
    struct next_request r = {.rule = &cron,
                             .next = next_of_cron,
                             .time_zone = arguments->time_zone,
                             .utc = arguments->utc,
                             .explain = arguments->explain ? explain_cron : NULL};
    struct error e = {.text = ""};
    enum status s = cron_arguments_parse(arguments, &cron, &r, &e);
    if (s != STATUS_OK) {
        return next_fail(s, &e, err);
    }
    return next_print(&r, out, err);
}
