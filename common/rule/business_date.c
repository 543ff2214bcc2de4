#include "business_date.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DAYS_A_WEEK 7
#define CUTOFF      " cutoff "

static const struct {
    const char *word;
    enum business_date_kind kind;
} WORDS[] = {
    {"run_date", BUSINESS_RUN_DATE},
    {"previous_week", BUSINESS_PREVIOUS_WEEK},
    {"current_week", BUSINESS_CURRENT_WEEK},
    {"previous_month", BUSINESS_PREVIOUS_MONTH},
    {"current_month", BUSINESS_CURRENT_MONTH},
    {"previous_quarter", BUSINESS_PREVIOUS_QUARTER},
    {"current_quarter", BUSINESS_CURRENT_QUARTER},
};

static enum status refuse(const char *text, struct error *err)
{
    return error_set(err, STATUS_INVALID,
                     "business_date \"%.40s\" is not known; write run_date, t_minus(1) to "
                     "t_minus(%d), previous_week, current_week, previous_month, current_month, "
                     "previous_quarter, current_quarter or fiscal_period(NAME), and if you want "
                     "\" cutoff 06:00\" behind it",
                     text, BUSINESS_DAYS_BACK_MAX);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HH:MM", later than 00:00, to the end. */
static bool cutoff_parse(const char *text, int32_t *ret_s)
{
    if (strlen(text) != 5 || !is_digit(text[0]) || !is_digit(text[1]) || text[2] != ':' ||
        !is_digit(text[3]) || !is_digit(text[4])) {
        return false;
    }
    int32_t hour = (text[0] - '0') * 10 + (text[1] - '0');
    int32_t minute = (text[3] - '0') * 10 + (text[4] - '0');
    *ret_s = hour * 3600 + minute * 60;
    return hour <= 23 && minute <= 59 && *ret_s > 0;
}

/* What stands in the parentheses behind a word. False: it is not of that form. */
static bool argument_of(const char *text, size_t length, const char *word, const char **ret,
                        size_t *ret_length)
{
    size_t n = strlen(word);
    if (length < n + 3 || strncmp(text, word, n) != 0 || text[n] != '(' ||
        text[length - 1] != ')') {
        return false;
    }
    *ret = text + n + 1;
    *ret_length = length - n - 2;
    return true;
}

static bool back_parse(const char *text, size_t length, int32_t *ret)
{
    int32_t n = 0;
    for (size_t i = 0; i < length && i < 3; i++) {
        if (!is_digit(text[i])) {
            return false;
        }
        n = n * 10 + (text[i] - '0');
    }
    *ret = n;
    return length <= 2 && text[0] != '0' && n <= BUSINESS_DAYS_BACK_MAX;
}

/* A name as reports.name has them. */
static bool name_copy(const char *text, size_t length, char ret[FISCAL_NAME_MAX])
{
    static const char later[] = "abcdefghijklmnopqrstuvwxyz0123456789_.-";
    if (length >= FISCAL_NAME_MAX || strspn(text, later) < length ||
        memchr("_.-", text[0], 3) != NULL) {
        return false;
    }
    memcpy(ret, text, length);
    ret[length] = '\0';
    return true;
}

static bool word_parse(const char *text, size_t length, struct business_date *b)
{
    const char *argument = NULL;
    size_t n = 0;
    for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
        if (strlen(WORDS[i].word) == length && strncmp(text, WORDS[i].word, length) == 0) {
            b->kind = WORDS[i].kind;
            return true;
        }
    }
    if (argument_of(text, length, "t_minus", &argument, &n)) {
        b->kind = BUSINESS_T_MINUS;
        return back_parse(argument, n, &b->back);
    }
    if (argument_of(text, length, "fiscal_period", &argument, &n)) {
        b->kind = BUSINESS_FISCAL_PERIOD;
        return name_copy(argument, n, b->fiscal);
    }
    return false;
}

enum status business_date_parse(const char *text, struct business_date *ret, struct error *err)
{
    struct business_date b = {.kind = BUSINESS_RUN_DATE};
    const char *cutoff = strstr(text, CUTOFF);
    size_t length = cutoff != NULL ? (size_t)(cutoff - text) : strlen(text);
    if (text[0] != '\0' && !word_parse(text, length, &b)) {
        return refuse(text, err);
    }
    if (cutoff != NULL && !cutoff_parse(cutoff + strlen(CUTOFF), &b.cutoff_s)) {
        return error_set(err, STATUS_INVALID,
                         "business_date \"%.60s\": write the cut-off as \" cutoff 06:00\", from "
                         "00:01 to 23:59",
                         text);
    }
    *ret = b;
    return STATUS_OK;
}

bool business_date_is_period(enum business_date_kind kind)
{
    return kind >= BUSINESS_PREVIOUS_WEEK;
}

/* ---- the days of periods ---- */

static struct firing_about week_of(int64_t day)
{
    int64_t monday = day - (civil_weekday(day) + 6) % DAYS_A_WEEK;
    return (struct firing_about){.state = ABOUT_KNOWN, .first = monday, .last = monday + 6};
}

/* Of `months` months, as they divide a year. */
static struct firing_about months_of(int64_t day, int32_t months)
{
    struct civil_date d = civil_date_of(day);
    int32_t begin = (d.month - 1) / months * months + 1;
    int32_t end = begin + months - 1;
    return (struct firing_about){
        .state = ABOUT_KNOWN,
        .first = civil_days_of(d.year, begin, 1),
        .last = civil_days_of(d.year, end, civil_days_in_month(d.year, end)),
    };
}

static enum status t_minus(const struct business_date *b, int64_t day, struct firing_about *ret,
                           struct error *err)
{
    struct calendar_answer answer = {.day = day - b->back};
    if (b->calendar != NULL) {
        enum status s = calendar_add(b->calendar, day, -b->back, &answer, err);
        if (s != STATUS_OK) {
            return s;
        }
    }
    *ret = (struct firing_about){.state = ABOUT_KNOWN, .first = answer.day, .last = answer.day};
    return STATUS_OK;
}

/* The period before the one that the day is in: both must be there, or a table that nobody has
 * gone on with would name its last period for ever, and one that has a hole would name the period
 * before the hole again, and never the one that is missing. */
static enum status fiscal_before(const struct business_date *b, int64_t day,
                                 struct firing_about *ret, struct error *err)
{
    const struct fiscal_periods *p = b->periods;
    size_t low = 0;
    size_t high = p != NULL ? p->count : 0;
    while (low < high) { /* the first that does not end before the day */
        size_t middle = low + (high - low) / 2;
        if (p->list[middle].last < day) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bool there = p != NULL && low < p->count && p->list[low].first <= day;
    if (!there || low == 0 || p->list[low - 1].last + 1 != p->list[low].first) {
        char date[DATE_TEXT_MAX];
        date_format(day, date);
        return error_set(err, STATUS_NOT_FOUND,
                         "fiscal calendar %s has no period %s %s; insert it into "
                         "reports.fiscal_period, and it goes on",
                         b->fiscal, there ? "before that of" : "with", date);
    }
    const struct fiscal_period *before = &p->list[low - 1];
    *ret = (struct firing_about){
        .state = ABOUT_KNOWN, .first = before->first, .last = before->last, .label = before->label};
    return STATUS_OK;
}

enum status business_date_of(const struct business_date *b, struct local_time nominal,
                             struct firing_about *ret, struct error *err)
{
    int64_t day = floor_divide(nominal.s, SECONDS_A_DAY);
    day -= nominal.s - day * SECONDS_A_DAY < b->cutoff_s ? 1 : 0;
    switch (b->kind) {
    case BUSINESS_RUN_DATE:
        *ret = (struct firing_about){.state = ABOUT_KNOWN, .first = day, .last = day};
        break;
    case BUSINESS_T_MINUS:
        return t_minus(b, day, ret, err);
    case BUSINESS_PREVIOUS_WEEK:
        *ret = week_of(day - DAYS_A_WEEK);
        break;
    case BUSINESS_CURRENT_WEEK:
        *ret = week_of(day);
        break;
    case BUSINESS_PREVIOUS_MONTH:
        *ret = months_of(months_of(day, 1).first - 1, 1);
        break;
    case BUSINESS_CURRENT_MONTH:
        *ret = months_of(day, 1);
        break;
    case BUSINESS_PREVIOUS_QUARTER:
        *ret = months_of(months_of(day, 3).first - 1, 3);
        break;
    case BUSINESS_CURRENT_QUARTER:
        *ret = months_of(day, 3);
        break;
    case BUSINESS_FISCAL_PERIOD:
        return fiscal_before(b, day, ret, err);
    }
    return STATUS_OK;
}

/* ---- their names ---- */

static bool digits_parse(const char *text, size_t count, int32_t *ret)
{
    int32_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_digit(text[i])) {
            return false;
        }
        n = n * 10 + (text[i] - '0');
    }
    *ret = n;
    return true;
}

bool business_period_parse(const char *text, int64_t *ret_first, int64_t *ret_last)
{
    int32_t year = 0;
    int32_t number = 0;
    struct firing_about a;
    size_t n = strlen(text);
    if (n < 7 || n > 8 || !digits_parse(text, 4, &year) || text[4] != '-' || year == 0) {
        return false;
    }
    if (text[5] == 'Q' && n == 7 && text[6] >= '1' && text[6] <= '4') {
        a = months_of(civil_days_of(year, (text[6] - '0') * 3, 1), 3);
    } else if (text[5] == 'W' && n == 8 && digits_parse(text + 6, 2, &number) && number >= 1) {
        /* Week 1 has 4 January in it; the Thursday of a week is in its year. */
        a = week_of(civil_days_of(year, 1, 4) + (int64_t)(number - 1) * DAYS_A_WEEK);
        if (civil_date_of(a.first + 3).year != year) {
            return false;
        }
    } else if (n == 7 && digits_parse(text + 5, 2, &number) && number >= 1 && number <= 12) {
        a = months_of(civil_days_of(year, number, 1), 1);
    } else {
        return false;
    }
    *ret_first = a.first;
    *ret_last = a.last;
    return true;
}
