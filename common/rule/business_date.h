/* What a firing is about: a date, or a period. Pure: no I/O, no clock.
 *
 * The text of schedule.business_date is one of
 *   run_date           the nominal date
 *   t_minus(N)         N business days before it, by the schedule's calendar; without one N days
 *   previous_week      the ISO week (Monday to Sunday) before the one that the date is in;
 *                      likewise current_week, previous_month, current_month, previous_quarter and
 *                      current_quarter
 *   fiscal_period(C)   the period before the one that the date is in, by the table
 *                      reports.fiscal_period of the fiscal calendar C
 * and may end with " cutoff HH:MM": a firing with an earlier local time counts for the day before.
 * Days are day numbers of civil.h; the date is always that of the nominal local time, whichever day
 * a calendar moves the firing to.
 *
 * sql/0023_business_date.sql knows the same words and computes the same for firings made by hand:
 * change both. test_sql_and_c_agree_on_business_dates compares them. */
#ifndef RS_BUSINESS_DATE_H
#define RS_BUSINESS_DATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calendar.h"
#include "civil.h"
#include "firing.h"
#include "status.h"

#define BUSINESS_DATE_TEXT_MAX   96
#define BUSINESS_DAYS_BACK_MAX   31
#define FISCAL_NAME_MAX          64
#define FISCAL_LABEL_MAX         32
#define FISCAL_PERIODS_MAX       4000 /* of one fiscal calendar, as in SQL */
#define BUSINESS_PERIOD_MAX_DAYS 400  /* the longest period, as in SQL */

enum business_date_kind {
    BUSINESS_RUN_DATE,
    BUSINESS_T_MINUS,
    BUSINESS_PREVIOUS_WEEK,
    BUSINESS_CURRENT_WEEK,
    BUSINESS_PREVIOUS_MONTH,
    BUSINESS_CURRENT_MONTH,
    BUSINESS_PREVIOUS_QUARTER,
    BUSINESS_CURRENT_QUARTER,
    BUSINESS_FISCAL_PERIOD,
};

struct fiscal_period {
    int64_t first, last;
    char label[FISCAL_LABEL_MAX];
};

/* Those of one fiscal calendar, ascending; no two overlap. */
struct fiscal_periods {
    size_t count;
    const struct fiscal_period *list;
};

/* All zero: run_date. What it points to is borrowed. */
struct business_date {
    enum business_date_kind kind;
    int32_t back;                         /* T_MINUS */
    int32_t cutoff_s;                     /* of the day; 0: none */
    char fiscal[FISCAL_NAME_MAX];         /* FISCAL_PERIOD: its calendar */
    const struct calendar *calendar;      /* T_MINUS: NULL counts plain days */
    const struct fiscal_periods *periods; /* FISCAL_PERIOD: NULL: there are none */
};

/* "" is run_date. The calendar and the periods are left out. Returns: OK; INVALID (the text lists
 * what there is). */
MUST_USE enum status business_date_parse(const char *text, struct business_date *ret,
                                         struct error *err);

/* Does it name a period, which is reported once? */
bool business_date_is_period(enum business_date_kind kind);

/* What a firing with this nominal time is about. Returns: OK; HELD (the calendar does not know the
 * days); NOT_FOUND (no business day for a year, or no such period). The text says the remedy. */
MUST_USE enum status business_date_of(const struct business_date *b, struct local_time nominal,
                                      struct firing_about *ret, struct error *err);

/* A sentence without its full stop, e.g. "each firing is about the month before, and known by it";
 * "" for a plain run_date. `calendar` is the schedule's, "": none. */
#define BUSINESS_DATE_WORDS_MAX 240
void business_date_words(const struct business_date *b, const char *calendar,
                         char ret_words[BUSINESS_DATE_WORDS_MAX]);

/* "2030-W15", "2030-03", "2030-Q1": the days of such a period. False: it is none. */
bool business_period_parse(const char *text, int64_t *ret_first, int64_t *ret_last);

#endif
