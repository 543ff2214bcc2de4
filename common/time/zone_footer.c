#include "zone_footer.h"

#include <string.h>

#include "civil.h"
#include "zone.h"

struct scan {
    const char *p;
    const char *end;
};

static char scan_peek(const struct scan *s)
{
    return s->p < s->end ? *s->p : '\0';
}

static bool scan_take(struct scan *s, char c)
{
    if (s->p == s->end || *s->p != c) {
        return false;
    }
    s->p++;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Up to three digits; more would be out of every range anyway. */
static bool scan_number(struct scan *s, int32_t low, int32_t high, int32_t *ret)
{
    int32_t value = 0;
    int digits = 0;
    while (digits < 4 && is_digit(scan_peek(s))) {
        value = value * 10 + (*s->p++ - '0');
        digits++;
    }
    if (digits == 0 || digits == 4 || value < low || value > high) {
        return false;
    }
    *ret = value;
    return true;
}

/* [+-]h[h[h]][:mm[:ss]] */
static bool scan_time(struct scan *s, int32_t hours_max, int32_t *ret)
{
    bool negative = scan_take(s, '-');
    if (!negative) {
        (void)scan_take(s, '+');
    }
    int32_t hours = 0;
    int32_t minutes = 0;
    int32_t seconds = 0;
    if (!scan_number(s, 0, hours_max, &hours)) {
        return false;
    }
    if (scan_take(s, ':')) {
        if (!scan_number(s, 0, 59, &minutes)) {
            return false;
        }
        if (scan_take(s, ':') && !scan_number(s, 0, 59, &seconds)) {
            return false;
        }
    }
    int32_t total = hours * 3600 + minutes * 60 + seconds;
    *ret = negative ? -total : total;
    return true;
}

/* Abbreviations are checked and dropped: nothing here shows or decides by them. */
static bool scan_name(struct scan *s)
{
    int length = 0;
    if (scan_take(s, '<')) {
        while (is_letter(scan_peek(s)) || is_digit(scan_peek(s)) || scan_peek(s) == '+' ||
               scan_peek(s) == '-') {
            s->p++;
            length++;
        }
        return length >= 3 && scan_take(s, '>');
    }
    while (is_letter(scan_peek(s))) {
        s->p++;
        length++;
    }
    return length >= 3;
}

static bool scan_date(struct scan *s, struct footer_date *d)
{
    if (!scan_take(s, ',')) {
        return false;
    }
    if (scan_take(s, 'M')) {
        d->kind = FOOTER_MONTH_WEEK_DAY;
        if (!scan_number(s, 1, 12, &d->month) || !scan_take(s, '.') ||
            !scan_number(s, 1, 5, &d->week) || !scan_take(s, '.') ||
            !scan_number(s, 0, 6, &d->weekday)) {
            return false;
        }
    } else if (scan_take(s, 'J')) {
        d->kind = FOOTER_JULIAN;
        if (!scan_number(s, 1, 365, &d->day)) {
            return false;
        }
    } else {
        d->kind = FOOTER_DAY_OF_YEAR;
        if (!scan_number(s, 0, 365, &d->day)) {
            return false;
        }
    }
    d->time_s = 2 * 3600;
    return !scan_take(s, '/') || scan_time(s, 167, &d->time_s);
}

static bool scan_footer(struct scan *s, struct zone_footer *f)
{
    /* POSIX writes offsets west of Greenwich as positive. */
    int32_t west = 0;
    if (!scan_name(s) || !scan_time(s, 24, &west)) {
        return false;
    }
    f->standard_s = -west;
    if (s->p == s->end) {
        return true;
    }
    if (!scan_name(s)) {
        return false;
    }
    f->has_daylight = true;
    f->daylight_s = f->standard_s + 3600;
    if (scan_peek(s) != ',') {
        if (!scan_time(s, 24, &west)) {
            return false;
        }
        f->daylight_s = -west;
    }
    /* Without dates POSIX leaves the rule to the system; a file must not. */
    return scan_date(s, &f->start) && scan_date(s, &f->end) && s->p == s->end;
}

enum status zone_footer_parse(const char *text, size_t size, struct zone_footer *ret,
                              struct error *err)
{
    struct scan s = {text, text + size};
    struct zone_footer f = {0};
    if (!scan_footer(&s, &f) || f.standard_s < ZONE_OFFSET_MIN || f.standard_s > ZONE_OFFSET_MAX ||
        f.daylight_s < ZONE_OFFSET_MIN || f.daylight_s > ZONE_OFFSET_MAX) {
        return error_set(err, STATUS_INVALID, "its footer is not a TZ rule that RFC 9636 allows");
    }
    *ret = f;
    return STATUS_OK;
}

int64_t zone_footer_instant(const struct footer_date *d, int32_t year, int32_t offset_s)
{
    int64_t day = 0;
    switch (d->kind) {
    case FOOTER_MONTH_WEEK_DAY: {
        int64_t first = civil_days_of(year, d->month, 1);
        int32_t ahead = (d->weekday - civil_weekday(first) + 7) % 7;
        int32_t n = ahead + 7 * (d->week - 1);
        day = first + (n < civil_days_in_month(year, d->month) ? n : n - 7);
        break;
    }
    case FOOTER_JULIAN: {
        bool after_leap_day = civil_year_is_leap(year) && d->day >= 60;
        day = civil_days_of(year, 1, 1) + d->day - (after_leap_day ? 0 : 1);
        break;
    }
    case FOOTER_DAY_OF_YEAR:
        day = civil_days_of(year, 1, 1) + d->day;
        break;
    }
    return day * SECONDS_A_DAY + d->time_s - offset_s;
}
