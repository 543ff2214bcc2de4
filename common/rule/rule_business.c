/* What the firings of a rule are about. */
#include "rule_inside.h"

enum status rule_business_parse(const struct rule_source *source, struct rule *r, struct error *err)
{
    const char *text = source->business_date != NULL ? source->business_date : "";
    struct business_date b;
    enum status s = business_date_parse(text, &b, err);
    if (s != STATUS_OK) {
        return s;
    }
    if (business_date_is_period(b.kind) && r->kind == RULE_INTERVAL) {
        return error_set(err, STATUS_INVALID,
                         "an interval is elapsed time and cannot keep to periods; write "
                         "kind = 'cron' for business_date = '%s', e.g. 0 6 1 * *",
                         text);
    }
    if (business_date_is_period(b.kind) && source->overlap == DST_OVERLAP_BOTH) {
        return error_set(err, STATUS_INVALID,
                         "a period is reported once: write dst_overlap = 'first' or 'second' for "
                         "business_date = '%s'",
                         text);
    }
    b.calendar = source->calendar;
    b.periods = source->periods;
    r->business = b;
    return STATUS_OK;
}

struct firing_about rule_about(const struct rule *r, struct local_time nominal)
{
    struct firing_about about = {.state = ABOUT_RUN_DATE};
    if (r->business.kind == BUSINESS_RUN_DATE && r->business.cutoff_s == 0) {
        return about;
    }
    if (business_date_of(&r->business, nominal, &about, NULL) != STATUS_OK) {
        about = (struct firing_about){.state = ABOUT_UNKNOWN};
    }
    return about;
}

bool rule_is_of_periods(const struct rule *r)
{
    return business_date_is_period(r->business.kind);
}

struct instant_range rule_period_window(const struct rule *r, const struct firing_about *about)
{
    return (struct instant_range){
        .from = utc_from_seconds(rule_date_begins(r->zone, about->first)),
        .to = utc_from_seconds(rule_date_begins(r->zone, about->last + 1)),
    };
}

bool rule_repeats_period(const struct rule *r, struct rule_bounds bounds,
                         const struct firing *first, struct firing ret_both[2])
{
    struct firing f = *first;
    for (int i = 0; f.found && i < PERIODS_LOOK; i++) {
        struct firing next = rule_next_within(r, f.at, bounds);
        if (next.found && f.about.state == ABOUT_KNOWN && next.about.state == ABOUT_KNOWN &&
            f.about.first == next.about.first) {
            ret_both[0] = f;
            ret_both[1] = next;
            return true;
        }
        f = next;
    }
    return false;
}

bool rule_keeps_periods(const struct rule *r, struct rule_bounds bounds, utc_us after)
{
    struct firing both[2];
    if (!rule_is_of_periods(r)) {
        return true;
    }
    struct firing first = rule_next_within(r, after, bounds);
    return !rule_repeats_period(r, bounds, &first, both);
}
