#include "key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const FORM_NAMES[] = {"date",  "minute",  "second", "week",
                                         "month", "quarter", "fiscal"};

enum key_form key_form_of_rule(const struct rule *r)
{
    switch (r->business.kind) {
    case BUSINESS_RUN_DATE:
    case BUSINESS_T_MINUS:
        break;
    case BUSINESS_PREVIOUS_WEEK:
    case BUSINESS_CURRENT_WEEK:
        return KEY_WEEK;
    case BUSINESS_PREVIOUS_MONTH:
    case BUSINESS_CURRENT_MONTH:
        return KEY_MONTH;
    case BUSINESS_PREVIOUS_QUARTER:
    case BUSINESS_CURRENT_QUARTER:
        return KEY_QUARTER;
    case BUSINESS_FISCAL_PERIOD:
        return KEY_FISCAL;
    }
    if (rule_fires_at_most_once_a_local_day(r)) {
        return KEY_DATE;
    }
    return rule_is_of_whole_minutes(r) ? KEY_MINUTE : KEY_SECOND;
}

bool key_form_serves(enum key_form fixed, enum key_form needed)
{
    bool times = fixed <= KEY_SECOND && needed <= fixed;
    return times || needed == fixed;
}

bool key_form_is_of_days(enum key_form form)
{
    return form != KEY_MINUTE && form != KEY_SECOND;
}

const char *key_form_name(enum key_form form)
{
    return FORM_NAMES[form];
}

bool key_form_parse(const char *word, enum key_form *ret_form)
{
    for (size_t i = 0; i < sizeof FORM_NAMES / sizeof FORM_NAMES[0]; i++) {
        if (strcmp(word, FORM_NAMES[i]) == 0) {
            *ret_form = (enum key_form)i;
            return true;
        }
    }
    return false;
}

/* False: the form is not of periods, or the period is not known. */
static bool period_format(enum key_form form, const struct firing_about *a,
                          char ret_text[KEY_MAX_BYTES])
{
    if (a->state != ABOUT_KNOWN) {
        return false;
    }
    struct civil_date first = civil_date_of(a->first);
    int64_t thursday = a->first + 3;
    int32_t week_year = civil_date_of(thursday).year;
    switch (form) {
    case KEY_DATE:
    case KEY_MINUTE:
    case KEY_SECOND:
        return false;
    case KEY_WEEK:
        (void)snprintf(ret_text, KEY_MAX_BYTES, "%04" PRId32 "-W%02" PRId64, week_year,
                       (thursday - civil_days_of(week_year, 1, 1)) / 7 + 1);
        return true;
    case KEY_MONTH:
        (void)snprintf(ret_text, KEY_MAX_BYTES, "%04" PRId32 "-%02" PRId32, first.year,
                       first.month);
        return true;
    case KEY_QUARTER:
        (void)snprintf(ret_text, KEY_MAX_BYTES, "%04" PRId32 "-Q%" PRId32, first.year,
                       (first.month + 2) / 3);
        return true;
    case KEY_FISCAL:
        (void)snprintf(ret_text, KEY_MAX_BYTES, "%s", a->label != NULL ? a->label : "");
        return a->label != NULL;
    }
    return false;
}

void key_format(enum key_form form, const struct firing *f, char ret_text[KEY_MAX_BYTES])
{
    if (period_format(form, &f->about, ret_text)) {
        return;
    }
    form = form > KEY_SECOND ? KEY_DATE : form;
    /* Never `at`, which has the schedule's jitter in it. */
    int64_t s = f->utc_in_key ? f->nominal.s - f->offset_s : f->nominal.s;
    int64_t days = floor_divide(s, SECONDS_A_DAY);
    int32_t clock = (int32_t)(s - days * SECONDS_A_DAY);
    if (f->utc_in_key && form == KEY_DATE) {
        form = clock % 60 == 0 ? KEY_MINUTE : KEY_SECOND;
    }
    char date[DATE_TEXT_MAX];
    char time[24] = "";
    char suffix[OFFSET_TEXT_MAX] = "";
    date_format(days, date);
    switch (form) {
    case KEY_DATE:
    case KEY_WEEK:
    case KEY_MONTH:
    case KEY_QUARTER:
    case KEY_FISCAL:
        break;
    case KEY_MINUTE:
        (void)snprintf(time, sizeof time, "T%02" PRId32 ":%02" PRId32, clock / 3600,
                       clock / 60 % 60);
        break;
    case KEY_SECOND:
        (void)snprintf(time, sizeof time, "T%02" PRId32 ":%02" PRId32 ":%02" PRId32, clock / 3600,
                       clock / 60 % 60, clock % 60);
        break;
    }
    if (f->utc_in_key) {
        suffix[0] = 'Z';
    } else if (f->offset_in_key) {
        offset_format(f->offset_s, suffix);
    }
    (void)snprintf(ret_text, KEY_MAX_BYTES, "%s%s%s", date, time, suffix);
}

int64_t business_day_of(const struct firing *f)
{
    bool known = f->about.state == ABOUT_KNOWN;
    return known ? f->about.last : floor_divide(f->nominal.s, SECONDS_A_DAY);
}

void business_date_format(const struct firing *f, char ret_text[DATE_TEXT_MAX])
{
    date_format(business_day_of(f), ret_text);
}
