#include "fixture_subject.h"

#include "fixture_zone.h"

#define SECOND_US INT64_C(1000000)
#define DAY_US    (86400 * SECOND_US)

struct plan_subject fixture_subject(const struct rule *rule, const char *switched_at)
{
    return (struct plan_subject){
        .rule = rule,
        .form = key_form_of_rule(rule),
        .last_fire_at = UTC_NONE,
        .switched_at = {fixture_instant(switched_at).us + 1},
        .effective_from = UTC_NONE,
        .starts_at = UTC_NONE,
        .ends_at = UTC_NONE,
        .misfire_max = 31,
        .misfire_age_us = 7 * DAY_US,
        .misfire_grace_us = 60 * SECOND_US,
        .until = UTC_UNBOUNDED,
        .work_max = PLANNER_WORK_MAX,
    };
}

struct rule fixture_cron(const char *text, const char *zone)
{
    return fixture_rule("cron", text, zone, "2030-01-01T00:00:00Z");
}
