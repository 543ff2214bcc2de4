#include "cron_field.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define STEP_WORDS_MAX 100

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

/* L, W or # where it does not belong. */
static enum status refuse_special(const struct item *it, char special)
{
    const struct cron_field *f = it->field;
    bool nearest = special == 'W' || special == 'w';
    char why[120];
    if (f->kind == FIELD_DAY) {
        return item_refuse(it, nearest ? "W stands behind a single day; write for example \"15W\""
                                       : "L and # of a weekday belong to the day of week; write "
                                         "\"L\" for the last day");
    }
    if (f->kind == FIELD_WEEKDAY) {
        return item_refuse(it, nearest ? "W is only for the day of month; write for example \"1-5\""
                                       : "L and # stand behind one weekday; write for example "
                                         "\"5L\" or \"5#2\"");
    }
    (void)snprintf(why, sizeof why,
                   "L, W and # are only for the day fields; write for example \"%d-%d\"", f->min,
                   f->star_max);
    return item_refuse(it, why);
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
    if (length == 1 && strchr("LWlw", *word) != NULL) {
        return refuse_special(it, *word);
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
    case 'L':
    case 'l':
    case '#':
        return refuse_special(it, *rest);
    case '+':
        return item_refuse(it,
                           "+ may only be the first character of the day of week; write values");
    case '?':
        return item_refuse(it, "? may only stand alone in a day field; write \"*\"");
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

static bool step_is_good(const struct cron_field *f, int step)
{
    return step >= 1 && step <= f->star_max - f->min + 1;
}

/* Behind the refusal of a step: "0-59/90" was meant to be every 90 minutes, which no field can say.
 */
static const char *interval_words(const struct cron_field *f, int step, char words[STEP_WORDS_MAX])
{
    words[0] = '\0';
    if (f->kind <= FIELD_HOUR && step > f->star_max + 1 && step <= 9999) {
        (void)snprintf(words, STEP_WORDS_MAX,
                       "; every %d %ss is no cron but kind interval, rule %d %ss", step, f->name,
                       step, f->name);
    }
    return words;
}

/* "/n" at the end of an item, or nothing. */
static enum status scan_step(const struct item *it, const char **p, int *ret_step)
{
    const struct cron_field *f = it->field;
    int step = 1;
    if (**p == '/') {
        (*p)++;
        const char *number = *p;
        if (!scan_number(p, &step) || !step_is_good(f, step)) {
            char why[160 + STEP_WORDS_MAX];
            char range[24];
            char words[STEP_WORDS_MAX];
            (void)snprintf(range, sizeof range, "%d-%d", f->min, f->star_max);
            /* The item again with a step that fits, unless it is absurdly long. */
            bool star = it->text[0] == '*' || number - it->text > 20;
            (void)snprintf(why, sizeof why,
                           "the step is out of range; write /1 to /%d, such as \"%.*s/2\"%s",
                           f->star_max - f->min + 1, star ? 24 : (int)(number - 1 - it->text),
                           star ? range : it->text, interval_words(f, step, words));
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

/* The values that a wrapping range with a step names where it is allowed. */
static void wrapped_write(const struct cron_field *f, int low, int high, int step, char *ret_text,
                          size_t size)
{
    int values = f->star_max - f->min + 1;
    size_t used = 0;
    for (int v = low; v <= high + values && used < size; v += step) {
        int value = v > f->star_max ? v - values : v;
        used += (size_t)snprintf(ret_text + used, size - used, "%s%d", used > 0 ? "," : "", value);
    }
}

/* `rest` follows the range: perhaps a step. */
static enum status refuse_backwards(const struct item *it, int low, int high, const char *rest)
{
    const struct cron_field *f = it->field;
    char why[320];
    char instead[240];
    int step = 1;
    const char *number = rest + 1;
    bool stepped = *rest == '/' && scan_number(&number, &step) && step_is_good(f, step) && step > 1;
    if (range_begin(f, low) <= high) {
        (void)snprintf(instead, sizeof instead, stepped ? "%d-%d/%d" : "%d-%d", range_begin(f, low),
                       high, step);
    } else if (f->kind == FIELD_YEAR) {
        (void)snprintf(instead, sizeof instead, stepped ? "%d-%d/%d" : "%d-%d", high, low, step);
    } else if (stepped) {
        wrapped_write(f, low, high, step, instead, sizeof instead);
    } else if (f->kind == FIELD_WEEKDAY && high == 0) {
        (void)snprintf(instead, sizeof instead, "%d-7", low);
    } else {
        (void)snprintf(instead, sizeof instead, "%d-%d,%d-%d", low, f->star_max, f->min, high);
    }
    (void)snprintf(why, sizeof why, "the range runs backwards; write \"%s\"", instead);
    return item_refuse(it, why);
}

/* v/n: a beginning and a step, which others read as v to the end. */
static enum status refuse_open_range(const struct item *it, int low, const char *number)
{
    const struct cron_field *f = it->field;
    int step = 1;
    char words[STEP_WORDS_MAX] = "";
    if (!scan_number(&number, &step) || !step_is_good(f, step)) {
        (void)interval_words(f, step, words);
        step = 2;
    }
    char why[120 + STEP_WORDS_MAX];
    (void)snprintf(why, sizeof why, "a step needs a range; write \"%d-%d/%d\"%s",
                   range_begin(f, low), f->star_max, step, words);
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
            return refuse_open_range(it, low, p + 1);
        }
        if (*p == '-') {
            p++;
            s = scan_value(it, &p, &high);
            if (s != STATUS_OK) {
                return s;
            }
        }
        if (high < low) {
            return refuse_backwards(it, low, high, p);
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
                return item_refuse(
                    it, "write \"L-1\" to \"L-30\" for days before the last, or \"L\" for "
                        "the last");
            }
            c->days_before_last |= (uint32_t)1 << n;
            return STATUS_OK;
        }
        return item_refuse(it, "write \"L\", \"L-1\" to \"L-30\" or \"LW\"");
    }
    if (scan_number(&p, &n) && (*p == 'W' || *p == 'w') && p[1] == '\0') {
        if (n < 1 || n > 31) {
            return item_refuse(it, "the day is out of range; write \"1W\" to \"31W\"");
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
                               "\"SAT\" or \"SUN\", or \"5L\" for the last Friday of the month");
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
        return item_refuse(it, "write one weekday and which in the month: \"5#1\" to \"5#5\", or "
                               "\"5L\" for the last");
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
