/* What the commands behind `reportctl next --cron` and `--rrule` have in common: arguments, and the
 * printing of firings. For next_command*.c only. */
#ifndef RS_NEXT_ARGUMENTS_H
#define RS_NEXT_ARGUMENTS_H

#include <stdbool.h>
#include <stdio.h>

#include "clock.h"
#include "firing.h"
#include "rule.h"
#include "status.h"
#include "zone.h"

/* Returns: OK; INVALID when the option was not given (NULL). */
MUST_USE enum status next_require(const char *value, const char *option, const char *example,
                                  struct error *err);

/* A number from 1 to NEXT_COUNT_MAX; NULL: 1. Returns: OK, INVALID. */
MUST_USE enum status next_count_parse(const char *text, long *ret_count, struct error *err);

/* NULL: auto. Returns: OK, INVALID. */
MUST_USE enum status next_policies_parse(const char *gap, const char *overlap,
                                         enum dst_gap_policy *ret_gap,
                                         enum dst_overlap_policy *ret_overlap, struct error *err);

/* A rule and what to print of it. */
struct next_request {
    const void *rule;
    struct firing (*next)(const void *rule, const struct zone *z, utc_us after);
    const char *time_zone; /* as given */
    utc_us after;
    long count;
    bool utc;
    /* Printed below the firings, from `after` on; NULL: nothing. */
    void (*explain)(const void *rule, const struct zone *z, utc_us after, FILE *out);
};

/* Find the zone and print. Returns the exit code, as next_command.h says. */
int next_print(const struct next_request *request, FILE *out, FILE *err);

/* Print below firings what a rule says, one sentence a line, after an empty line. `std`: its text
 * in that dialect, when it was given in another; else NULL. */
void next_explain(const struct rule *r, const char *std, utc_us from, FILE *out);

/* Print the one line of an error. Returns the exit code. */
int next_fail(enum status s, const struct error *e, FILE *err);

#endif
