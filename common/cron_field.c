#include "cron_field.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const MONTH_NAMES[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL",
                                          "AUG", "SEP", "OCT", "NOV", "DEC", NULL};
static const char *const WEEKDAY_NAMES[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", NULL};

const struct cron_field CRON_FIELDS[CRON_FIELDS_MAX] = {
    {FIELD_SECOND, "second", 0, 59, 59, 0, 0, NULL, "0"},
    {FIELD_MINUTE, "minute", 0, 59, 59, 0, 0, NULL, ""},
    {FIELD_HOUR, "hour", 0, 23, 23, 0, 0, NULL, ""},
    {FIELD_DAY, "day of month", 1, 31, 31, 0, 0, NULL, ""},
    {FIELD_MONTH, "month", 1, 12, 12, 0, 1, MONTH_NAMES, ""},
    {FIELD_WEEKDAY, "day of week", 0, 7, 6, 0, 0, WEEKDAY_NAMES, ""},
    {FIELD_YEAR, "year", CRON_YEAR_MIN, CRON_YEAR_MAX, CRON_YEAR_MAX, CRON_YEAR_MIN, 0, NULL, "*"},
};

/* One item of a field's list, with where to put it and whom to tell. */
struct item {
    const struct cron_field *field;
    const char *text;
    struct cron *cron;
    struct error *err;
};

static enum status item_refuse(const struct item *it, const char *why)
{
    return error_set(it->err, STATUS_INVALID, "%s \"%s\": %s", it->field->name, it->text, why);
}

static void set_add(struct cron_values *set, int bit)
{
    set->bits[bit / 64] |= (uint64_t)1 << (bit % 64);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Digits; false when there are none. More than four are as good as out of range. */
static bool scan_number(const char **p, int *ret)
{
    if (!is_digit(**p)) {
        return false;
    }
    int value = 0;
    for (; is_digit(**p); (*p)++) {
        value = value > 9999 ? value : value * 10 + (**p - '0');
    }
    *ret = value;
    return true;
}

static enum status refuse_word(const struct item *it, const char *word, size_t length)
{
    char why[200];
    const struct cron_field *f = it->field;
    for (int i = 0; f->names != NULL && length > 3 && f->names[i] != NULL; i++) {
        if (strncasecmp(word, f->names[i], 3) == 0) {
            (void)snprintf(why, sizeof why, "names have three letters; write \"%s\"", f->names[i]);
            return item_refuse(it, why);
        }
    }
    if (length == 1 && (*word == 'H' || *word == 'h')) {
        return item_refuse(it, "H (a hashed value) is not part of the grammar; write a number");
    }
    if (length == 1 && strchr("LWlw", *word) != NULL && f->kind != FIELD_DAY &&
        f->kind != FIELD_WEEKDAY) {
        return item_refuse(it, "L and W are only for the day fields; write a number");
    }
    (void)snprintf(why, sizeof why, "unknown word; write %d to %d%s", f->min, f->max,
                   f->kind == FIELD_MONTH     ? " or JAN to DEC"
                   : f->kind == FIELD_WEEKDAY ? " or SUN to SAT"
                                              : "");
    return item_refuse(it, why);
}

static enum status refuse_rest(const struct item *it, const char *rest)
{
    switch (*rest) {
    case 'W':
    case 'w':
        return item_refuse(it, "W stands behind one day of month, such as 15W; write a single day");
    case 'L':
    case 'l':
    case '#':
        return item_refuse(it, "L and # stand behind one day of week; write for example 5L or 5#2");
    case '+':
        return item_refuse(it,
                           "+ may only be the first character of the day of week; write values");
    case '?':
        return item_refuse(it, "? may only stand alone in a day field; write *");
    default:
        return item_refuse(it, "unexpected text; write values, ranges a-b, steps a-b/n or */n");
    }
}

static enum status scan_value(const struct item *it, const char **p, int *ret_value)
{
    const struct cron_field *f = it->field;
    int value = 0;
    if (is_letter(**p)) {
        size_t length = 0;
        while (is_letter((*p)[length])) {
            length++;
        }
        /* Behind a weekday's name an L may stand: FRIL. */
        size_t name_length = length == 4 && f->kind == FIELD_WEEKDAY ? 3 : length;
        for (int i = 0; f->names != NULL && name_length == 3 && f->names[i] != NULL; i++) {
            bool whole = length == 3 || (*p)[3] == 'L' || (*p)[3] == 'l';
            if (whole && strncasecmp(*p, f->names[i], 3) == 0) {
                *p += 3;
                *ret_value = f->name_base + i;
                return STATUS_OK;
            }
        }
        return refuse_word(it, *p, length);
    }
    if (**p == '+' || **p == '?' || **p == '#') {
        return refuse_rest(it, *p);
    }
    char why[160];
    if (!scan_number(p, &value)) {
        (void)snprintf(why, sizeof why, "a value is missing; write %d to %d", f->min, f->max);
        return item_refuse(it, why);
    }
    if (value < f->min || value > f->max) {
        (void)snprintf(why, sizeof why, "%d is out of range; write %d to %d", value, f->min,
                       f->max);
        return item_refuse(it, why);
    }
    *ret_value = value;
    return STATUS_OK;
}

/* "/n" at the end of an item, or nothing. */
static enum status scan_step(const struct item *it, const char **p, int *ret_step)
{
    const struct cron_field *f = it->field;
    int step = 1;
    int range = f->star_max - f->min + 1;
    if (**p == '/') {
        (*p)++;
        if (!scan_number(p, &step) || step < 1 || step > range) {
            char why[100];
            (void)snprintf(why, sizeof why, "the step is out of range; write /1 to /%d", range);
            return item_refuse(it, why);
        }
    }
    *ret_step = step;
    return STATUS_OK;
}

/* What to write for the beginning of a range: Sunday is 0 there, since 7 ends one. */
static int range_begin(const struct cron_field *f, int low)
{
    return f->kind == FIELD_WEEKDAY && low == 7 ? 0 : low;
}

static enum status refuse_backwards(const struct item *it, int low, int high)
{
    const struct cron_field *f = it->field;
    char why[120];
    if (range_begin(f, low) <= high) {
        (void)snprintf(why, sizeof why, "the range runs backwards; write \"%d-%d\"",
                       range_begin(f, low), high);
    } else if (f->kind == FIELD_WEEKDAY && high == 0) {
        (void)snprintf(why, sizeof why, "the range runs backwards; write \"%d-7\"", low);
    } else {
        (void)snprintf(why, sizeof why, "the range runs backwards; write \"%d-%d,%d-%d\"", low,
                       f->star_max, f->min, high);
    }
    return item_refuse(it, why);
}

/* "*", "*"/n, v, a-b, a-b/n. */
static enum status item_parse_range(const struct item *it, struct cron_values *set)
{
    const struct cron_field *f = it->field;
    const char *p = it->text;
    int low = f->min;
    int high = f->star_max;
    int step = 1;
    if (*p == '*') {
        p++;
    } else {
        enum status s = scan_value(it, &p, &low);
        if (s != STATUS_OK) {
            return s;
        }
        high = low;
        if (*p == '/') {
            char why[120];
            (void)snprintf(why, sizeof why, "a step needs a range; write \"%d-%d%s\"",
                           range_begin(f, low), f->star_max, p);
            return item_refuse(it, why);
        }
        if (*p == '-') {
            p++;
            s = scan_value(it, &p, &high);
            if (s != STATUS_OK) {
                return s;
            }
        }
        if (high < low) {
            return refuse_backwards(it, low, high);
        }
    }
    enum status s = scan_step(it, &p, &step);
    if (s != STATUS_OK) {
        return s;
    }
    if (*p != '\0') {
        return refuse_rest(it, p);
    }
    for (int v = low; v <= high; v += step) {
        set_add(set, v - f->base);
    }
    return STATUS_OK;
}

/* L, L-n, LW, nW; *ret_taken says whether it was one of them. */
static enum status item_parse_day(const struct item *it, bool *ret_taken)
{
    const char *p = it->text;
    struct cron *c = it->cron;
    int n = 0;
    *ret_taken = true;
    if (*p == 'L' || *p == 'l') {
        p++;
        if (*p == '\0') {
            c->days_before_last |= 1;
            return STATUS_OK;
        }
        if ((*p == 'W' || *p == 'w') && p[1] == '\0') {
            c->last_weekday = true;
            return STATUS_OK;
        }
        if (*p == '-') {
            p++;
            if (!scan_number(&p, &n) || *p != '\0' || n < 1 || n > 30) {
                return item_refuse(it,
                                   "write L-1 to L-30 for days before the last, L for the last");
            }
            c->days_before_last |= (uint32_t)1 << n;
            return STATUS_OK;
        }
        return item_refuse(it, "write L, L-1 to L-30 or LW");
    }
    if (scan_number(&p, &n) && (*p == 'W' || *p == 'w') && p[1] == '\0') {
        if (n < 1 || n > 31) {
            return item_refuse(it, "the day is out of range; write 1W to 31W");
        }
        c->nearest_weekdays |= (uint32_t)1 << n;
        return STATUS_OK;
    }
    *ret_taken = false;
    return STATUS_OK;
}

/* dL, d#L, d#1 to d#5; a bare L means Saturday to some and Sunday to others. */
static enum status item_parse_weekday(const struct item *it, bool *ret_taken)
{
    const char *p = it->text;
    struct cron *c = it->cron;
    *ret_taken = true;
    if ((*p == 'L' || *p == 'l') && p[1] == '\0') {
        return item_refuse(it, "L alone is Saturday in one dialect and Sunday in another; write "
                               "SAT or SUN, or 5L for the last Friday of the month");
    }
    int weekday = 0;
    size_t letters = strcspn(p, "#");
    size_t length = strlen(p);
    bool hash = p[letters] == '#';
    bool last = !hash && length >= 2 && (p[length - 1] == 'L' || p[length - 1] == 'l');
    if (!hash && !last) {
        *ret_taken = false;
        return STATUS_OK;
    }
    enum status s = scan_value(it, &p, &weekday);
    if (s != STATUS_OK) {
        return s;
    }
    uint8_t bit = (uint8_t)(1 << (weekday % 7));
    p += hash && *p == '#' ? 1 : 0;
    if ((*p == 'L' || *p == 'l') && p[1] == '\0') {
        c->last_weekdays |= bit;
        return STATUS_OK;
    }
    if (!hash || *p < '1' || *p > '5' || p[1] != '\0') {
        return item_refuse(it, "write one weekday and which in the month: 5#1 to 5#5, or 5L");
    }
    c->nth_weekdays[*p - '1'] |= bit;
    return STATUS_OK;
}

static enum status item_parse(const struct item *it, struct cron_values *set)
{
    if (it->text[0] == '\0') {
        return error_set(
            it->err, STATUS_INVALID,
            "%s \"%s\": a value is missing beside a comma; write values between commas",
            it->field->name, it->field->text);
    }
    bool taken = false;
    enum status s = STATUS_OK;
    if (it->field->kind == FIELD_DAY) {
        s = item_parse_day(it, &taken);
    } else if (it->field->kind == FIELD_WEEKDAY) {
        s = item_parse_weekday(it, &taken);
    }
    return s != STATUS_OK || taken ? s : item_parse_range(it, set);
}

enum status cron_field_parse(const struct cron_field *f, struct cron *c,
                             struct cron_values *ret_values, struct error *err)
{
    struct cron_values set = {{0}};
    char text[CRON_TEXT_MAX];
    const char *p = f->text;
    for (;;) {
        size_t length = strcspn(p, ",");
        memcpy(text, p, length);
        text[length] = '\0';
        const struct item it = {f, text, c, err};
        enum status s = item_parse(&it, &set);
        if (s != STATUS_OK) {
            return s;
        }
        if (p[length] == '\0') {
            break;
        }
        p += length + 1;
    }
    *ret_values = set;
    return STATUS_OK;
}
