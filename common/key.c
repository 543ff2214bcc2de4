#include "key.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const FORM_NAMES[] = {"date", "minute", "second"};

enum key_form key_form_of_rule(const struct rule *r)
{
    if (rule_fires_at_most_once_a_local_day(r)) {
        return KEY_DATE;
    }
    return rule_is_of_whole_minutes(r) ? KEY_MINUTE : KEY_SECOND;
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

void key_format(enum key_form form, const struct firing *f, char ret_text[KEY_MAX_BYTES])
{
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

void business_date_format(const struct firing *f, char ret_text[DATE_TEXT_MAX])
{
    date_format(floor_divide(f->nominal.s, SECONDS_A_DAY), ret_text);
}
