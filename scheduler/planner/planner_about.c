#include "planner_about.h"

#include "key.h"

static utc_us plain_of(const struct rule *r, utc_us at)
{
    return utc_is_none(at) ? at : (utc_us){at.us - r->jitter_us};
}

struct instant_range plan_window_of(const struct rule *r, utc_us previous,
                                    const struct firing *first, const struct firing *f)
{
    if (!rule_is_of_periods(r)) {
        return (struct instant_range){.from = plain_of(r, previous), .to = plain_of(r, f->at)};
    }
    struct instant_range window = rule_period_window(r, &f->about);
    if (first->about.state == ABOUT_KNOWN) {
        window.from = rule_period_window(r, &first->about).from;
    }
    return window;
}

enum status plan_stuck_refuse(const struct rule *r, const struct firing *f, struct error *err)
{
    struct firing_about about;
    if (!f->held && business_date_of(&r->business, f->nominal, &about, err) == STATUS_NOT_FOUND) {
        return STATUS_INVALID;
    }
    char key[KEY_MAX_BYTES];
    key_format(KEY_DATE, f, key);
    if (f->closed) {
        return error_set(err, STATUS_INVALID,
                         "its calendar has no business day within %d days of %s; correct its "
                         "weekend or its days, and it goes on",
                         CALENDAR_CLOSED_MAX, key);
    }
    return error_set(err, STATUS_INVALID,
                     "its calendar does not know the days around %s and says hold; import newer "
                     "data (reportctl calendar import NAME --replace), and it goes on",
                     key);
}
