#include "civil.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t floor_divide(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return a % b < 0 ? q - 1 : q;
}

/* Years are counted from March, so that the leap day is the last day of a year; 719468 is the day
 * number of 0000-03-01 with its sign turned. Eras are the 400-year cycles of 146097 days. */
int64_t civil_days_of(int32_t year, int32_t month, int32_t day)
{
    int64_t y = (int64_t)year - (month <= 2 ? 1 : 0);
    int64_t era = floor_divide(y, 400);
    int64_t year_of_era = y - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return era * 146097 + day_of_era - 719468;
}

struct civil_date civil_date_of(int64_t days)
{
    int64_t shifted = days + 719468;
    int64_t era = floor_divide(shifted, 146097);
    int64_t day_of_era = shifted - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month_from_march = (5 * day_of_year + 2) / 153;
    int64_t month = month_from_march + (month_from_march < 10 ? 3 : -9);
    return (struct civil_date){
        .year = (int32_t)(year_of_era + era * 400 + (month <= 2 ? 1 : 0)),
        .month = (int32_t)month,
        .day = (int32_t)(day_of_year - (153 * month_from_march + 2) / 5 + 1),
    };
}

int32_t civil_weekday(int64_t days)
{
    /* 1970-01-01 was a Thursday. */
    return (int32_t)(days + 4 - floor_divide(days + 4, 7) * 7);
}

bool civil_year_is_leap(int32_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int32_t civil_days_in_month(int32_t year, int32_t month)
{
    static const int8_t days[13] = {0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month] + (month == 2 && civil_year_is_leap(year) ? 1 : 0);
}

int64_t utc_seconds(utc_us t)
{
    return floor_divide(t.us, MICROS_A_SECOND);
}

utc_us utc_from_seconds(int64_t s)
{
    return (utc_us){s * MICROS_A_SECOND};
}

/* Take exactly `digits` digits. */
static bool scan_number(const char **p, int digits, int32_t *ret)
{
    int32_t value = 0;
    for (int i = 0; i < digits; i++) {
        char c = (*p)[i];
        if (c < '0' || c > '9') {
            return false;
        }
        value = value * 10 + (c - '0');
    }
    *p += digits;
    *ret = value;
    return true;
}

static bool scan_char(const char **p, char c)
{
    if (**p != c) {
        return false;
    }
    (*p)++;
    return true;
}

/* What to write, in full: a remedy that is refused in its turn is none. */
#define DATE_FORM    "YYYY-MM-DD"
#define LOCAL_FORM   "YYYY-MM-DDTHH:MM:SS"
#define INSTANT_FORM "2030-04-12T06:00:00Z or 2030-04-12T06:00:00+02:00"

static enum status scan_date(const char **p, const char *form, int64_t *ret_days, struct error *err)
{
    struct civil_date d;
    if (!scan_number(p, 4, &d.year) || !scan_char(p, '-') || !scan_number(p, 2, &d.month) ||
        !scan_char(p, '-') || !scan_number(p, 2, &d.day)) {
        return error_set(err, STATUS_INVALID, "it does not begin with a date; write %s", form);
    }
    if (d.year < CIVIL_YEAR_MIN || d.month < 1 || d.month > 12 || d.day < 1 ||
        d.day > civil_days_in_month(d.year, d.month)) {
        return error_set(err, STATUS_INVALID,
                         "there is no date %04" PRId32 "-%02" PRId32 "-%02" PRId32, d.year, d.month,
                         d.day);
    }
    *ret_days = civil_days_of(d.year, d.month, d.day);
    return STATUS_OK;
}

static enum status scan_clock(const char **p, const char *form, struct date_time *t,
                              struct error *err)
{
    int32_t hour = 0;
    int32_t minute = 0;
    int32_t second = 0;
    if (!scan_number(p, 2, &hour) || !scan_char(p, ':') || !scan_number(p, 2, &minute)) {
        return error_set(err, STATUS_INVALID, "no time of day after the date; write %s", form);
    }
    if (scan_char(p, ':')) {
        t->has_seconds = true;
        if (!scan_number(p, 2, &second)) {
            return error_set(err, STATUS_INVALID, "seconds need two digits; write %s", form);
        }
        if (scan_char(p, '.')) {
            t->has_fraction = true;
            int digits = 0;
            for (int32_t digit; scan_number(p, 1, &digit); digits++) {
                t->micros = digits < 6 ? t->micros * 10 + digit : t->micros;
            }
            if (digits == 0) {
                return error_set(err, STATUS_INVALID, "no digits after the point");
            }
            for (; digits < 6; digits++) {
                t->micros *= 10;
            }
        }
    }
    if (hour > 23 || minute > 59 || second > 59) {
        return error_set(err, STATUS_INVALID,
                         "the time of day %02" PRId32 ":%02" PRId32 ":%02" PRId32
                         " is out of range; write 00:00:00 to 23:59:59",
                         hour, minute, second);
    }
    t->local.s += hour * 3600 + minute * 60 + second;
    return STATUS_OK;
}

static enum status scan_offset(const char **p, struct date_time *t, struct error *err)
{
    if (**p == '\0') {
        return STATUS_OK;
    }
    t->has_offset = true;
    if (scan_char(p, 'Z') || scan_char(p, 'z')) {
        return STATUS_OK;
    }
    int32_t hour = 0;
    int32_t minute = 0;
    bool west = **p == '-';
    if ((!scan_char(p, '+') && !scan_char(p, '-')) || !scan_number(p, 2, &hour) ||
        !scan_char(p, ':') || !scan_number(p, 2, &minute)) {
        return error_set(err, STATUS_INVALID,
                         "only an offset may follow the time; write Z or +HH:MM or -HH:MM");
    }
    if (hour > 23 || minute > 59) {
        return error_set(err, STATUS_INVALID, "the offset is out of range; write up to 23:59");
    }
    t->offset_s = (hour * 3600 + minute * 60) * (west ? -1 : 1);
    return STATUS_OK;
}

enum status date_parse(const char *text, int64_t *ret_days, struct error *err)
{
    const char *p = text;
    int64_t days = 0;
    enum status s = scan_date(&p, DATE_FORM, &days, err);
    if (s != STATUS_OK) {
        return s;
    }
    if (*p != '\0') {
        return error_set(err, STATUS_INVALID, "there is text after the date; write YYYY-MM-DD");
    }
    *ret_days = days;
    return STATUS_OK;
}

static enum status date_time_scan(const char *text, const char *form, struct date_time *ret_time,
                                  struct error *err)
{
    const char *p = text;
    struct date_time t = {.local = {0}};
    int64_t days = 0;
    enum status s = scan_date(&p, form, &days, err);
    if (s != STATUS_OK) {
        return s;
    }
    if (!scan_char(&p, 'T') && !scan_char(&p, 't')) {
        return error_set(err, STATUS_INVALID, "a T must stand between date and time; write %s",
                         form);
    }
    t.local.s = days * SECONDS_A_DAY;
    s = scan_clock(&p, form, &t, err);
    if (s == STATUS_OK) {
        s = scan_offset(&p, &t, err);
    }
    if (s != STATUS_OK) {
        return s;
    }
    if (*p != '\0') {
        return error_set(err, STATUS_INVALID, "there is text after the offset; remove it");
    }
    *ret_time = t;
    return STATUS_OK;
}

enum status date_time_parse(const char *text, struct date_time *ret_time, struct error *err)
{
    return date_time_scan(text, LOCAL_FORM, ret_time, err);
}

enum status rfc3339_parse(const char *text, utc_us *ret_instant, struct error *err)
{
    struct date_time t;
    enum status s = date_time_scan(text, INSTANT_FORM, &t, err);
    if (s != STATUS_OK) {
        return s;
    }
    if (!t.has_seconds) {
        return error_set(err, STATUS_INVALID, "seconds are missing; write " INSTANT_FORM);
    }
    if (!t.has_offset) {
        return error_set(err, STATUS_INVALID, "the offset is missing; write " INSTANT_FORM);
    }
    *ret_instant = (utc_us){(t.local.s - t.offset_s) * MICROS_A_SECOND + t.micros};
    return STATUS_OK;
}

void date_format(int64_t days, char ret_text[DATE_TEXT_MAX])
{
    struct civil_date d = civil_date_of(days);
    (void)snprintf(ret_text, DATE_TEXT_MAX, "%04" PRId32 "-%02" PRId32 "-%02" PRId32, d.year,
                   d.month, d.day);
}

void offset_format(int32_t offset_s, char ret_text[OFFSET_TEXT_MAX])
{
    char sign = offset_s < 0 ? '-' : '+';
    int32_t m = offset_s < 0 ? -offset_s : offset_s;
    int n = snprintf(ret_text, OFFSET_TEXT_MAX, "%c%02" PRId32 ":%02" PRId32, sign, m / 3600,
                     m / 60 % 60);
    if (m % 60 != 0 && n > 0 && n < OFFSET_TEXT_MAX) {
        (void)snprintf(ret_text + n, (size_t)(OFFSET_TEXT_MAX - n), ":%02" PRId32, m % 60);
    }
}

static void instant_format(utc_us t, int32_t offset_s, const char *suffix, char *ret_text)
{
    int64_t local = utc_seconds(t) + offset_s;
    int64_t days = floor_divide(local, SECONDS_A_DAY);
    int32_t clock = (int32_t)(local - days * SECONDS_A_DAY);
    int32_t micros = (int32_t)(t.us - utc_seconds(t) * MICROS_A_SECOND);
    char date[DATE_TEXT_MAX];
    date_format(days, date);
    char fraction[16] = "";
    if (micros != 0) {
        (void)snprintf(fraction, sizeof fraction, ".%06" PRId32, micros);
    }
    (void)snprintf(ret_text, RFC3339_TEXT_MAX, "%sT%02" PRId32 ":%02" PRId32 ":%02" PRId32 "%s%s",
                   date, clock / 3600, clock / 60 % 60, clock % 60, fraction, suffix);
}

void rfc3339_format(utc_us t, int32_t offset_s, char ret_text[RFC3339_TEXT_MAX])
{
    char offset[OFFSET_TEXT_MAX];
    offset_format(offset_s, offset);
    instant_format(t, offset_s, offset, ret_text);
}

void rfc3339_format_utc(utc_us t, char ret_text[RFC3339_TEXT_MAX])
{
    instant_format(t, 0, "Z", ret_text);
}
