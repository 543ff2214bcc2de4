/* How many firings there are; and what an expression is, apart from when it fires. */
#include "cron_search.h"

#include <string.h>

static int64_t set_size(uint64_t set)
{
    return __builtin_popcountll(set);
}

static uint64_t set_below(uint64_t set, int below)
{
    return below > 63 ? set : set & (((uint64_t)1 << below) - 1);
}

/* Times of day < below (seconds, at most a day). */
static int64_t clock_count_below(const struct cron *c, int32_t below)
{
    int hour = below / 3600;
    int minute = below / 60 % 60;
    int64_t in_minute = set_size(c->seconds);
    int64_t n = set_size(set_below(c->hours, hour)) * set_size(c->minutes) * in_minute;
    if (hour < 24 && (c->hours >> hour & 1) != 0) {
        n += set_size(set_below(c->minutes, minute)) * in_minute;
        if ((c->minutes >> minute & 1) != 0) {
            n += set_size(set_below(c->seconds, below % 60));
        }
    }
    return n;
}

int64_t cron_nominal_count(const struct cron *c, int64_t from, int64_t below)
{
    int64_t n = 0;
    while (from < below) {
        int64_t day = floor_divide(from, SECONDS_A_DAY);
        int64_t end = (day + 1) * SECONDS_A_DAY;
        end = end < below ? end : below;
        if (cron_date_matches(c, day)) {
            n += clock_count_below(c, (int32_t)(end - day * SECONDS_A_DAY)) -
                 clock_count_below(c, (int32_t)(from - day * SECONDS_A_DAY));
        }
        from = end;
    }
    return n;
}

void cron_set_policies(struct cron *c, enum dst_gap_policy gap, enum dst_overlap_policy overlap)
{
    if (gap == DST_GAP_AUTO) {
        gap = c->follows_clock ? DST_GAP_SKIP : DST_GAP_AFTER;
    }
    if (overlap == DST_OVERLAP_AUTO) {
        overlap = c->follows_clock ? DST_OVERLAP_BOTH : DST_OVERLAP_FIRST;
    }
    c->gap = gap;
    c->overlap = overlap;
}

bool dst_gap_policy_parse(const char *word, enum dst_gap_policy *ret_policy)
{
    static const char *const words[] = {"auto", "after", "shift", "skip"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0) {
            *ret_policy = (enum dst_gap_policy)i;
            return true;
        }
    }
    return false;
}

bool dst_overlap_policy_parse(const char *word, enum dst_overlap_policy *ret_policy)
{
    static const char *const words[] = {"auto", "first", "second", "both"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(word, words[i]) == 0) {
            *ret_policy = (enum dst_overlap_policy)i;
            return true;
        }
    }
    return false;
}

static bool set_has_one(uint64_t set)
{
    return set != 0 && (set & (set - 1)) == 0;
}

bool cron_is_at_most_daily(const struct cron *c)
{
    return set_has_one(c->seconds) && set_has_one(c->minutes) && set_has_one(c->hours);
}

bool cron_has_seconds(const struct cron *c)
{
    return c->seconds != 1;
}
