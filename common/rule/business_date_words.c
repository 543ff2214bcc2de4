/* What a schedule's firings are about, in words. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "business_date.h"

static void days_write(const struct business_date *b, const char *calendar,
                       char ret_words[BUSINESS_DATE_WORDS_MAX])
{
    const char *kind = calendar[0] != '\0' ? "business day" : "day";
    char by[96] = "";
    if (calendar[0] != '\0') {
        (void)snprintf(by, sizeof by, " by calendar %.63s", calendar);
    }
    if (b->back == 1) {
        (void)snprintf(ret_words, BUSINESS_DATE_WORDS_MAX, "each firing is about the %s before%s",
                       kind, by);
    } else {
        (void)snprintf(ret_words, BUSINESS_DATE_WORDS_MAX,
                       "each firing is about the date %" PRId32 " %ss before%s", b->back, kind, by);
    }
}

static const char *period_of(enum business_date_kind kind)
{
    switch (kind) {
    case BUSINESS_RUN_DATE:
    case BUSINESS_T_MINUS:
    case BUSINESS_FISCAL_PERIOD:
        break;
    case BUSINESS_PREVIOUS_WEEK:
        return "week before";
    case BUSINESS_CURRENT_WEEK:
        return "week that it is in";
    case BUSINESS_PREVIOUS_MONTH:
        return "month before";
    case BUSINESS_CURRENT_MONTH:
        return "month that it is in";
    case BUSINESS_PREVIOUS_QUARTER:
        return "quarter before";
    case BUSINESS_CURRENT_QUARTER:
        return "quarter that it is in";
    }
    return "";
}

void business_date_words(const struct business_date *b, const char *calendar,
                         char ret_words[BUSINESS_DATE_WORDS_MAX])
{
    ret_words[0] = '\0';
    if (b->kind == BUSINESS_T_MINUS) {
        days_write(b, calendar, ret_words);
    } else if (b->kind == BUSINESS_FISCAL_PERIOD) {
        (void)snprintf(ret_words, BUSINESS_DATE_WORDS_MAX,
                       "each firing is about the period before by fiscal calendar %s, and known by "
                       "its label",
                       b->fiscal);
    } else if (b->kind != BUSINESS_RUN_DATE) {
        (void)snprintf(ret_words, BUSINESS_DATE_WORDS_MAX,
                       "each firing is about the %s, and known by it", period_of(b->kind));
    }
    if (b->cutoff_s > 0) {
        size_t used = strlen(ret_words);
        (void)snprintf(ret_words + used, BUSINESS_DATE_WORDS_MAX - used,
                       "%swhat fires before %02" PRId32 ":%02" PRId32
                       " local time counts for the day before",
                       used > 0 ? "; " : "", b->cutoff_s / 3600, b->cutoff_s / 60 % 60);
    }
}
