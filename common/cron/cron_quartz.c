#include "cron_quartz.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cron_words.h"

#define FIELDS_MAX 7

enum quartz_kind {
    QUARTZ_SECOND,
    QUARTZ_MINUTE,
    QUARTZ_HOUR,
    QUARTZ_DAY,
    QUARTZ_MONTH,
    QUARTZ_WEEKDAY,
    QUARTZ_YEAR,
};

/* A field as Quartz numbers it. */
struct quartz_field {
    enum quartz_kind kind;
    const char *name;
    int min, max;
    int step_max; /* of "*"/n and a/n */
    int shift;    /* what is added to a value for std */
    const char *const *names;
};

static const char *const MONTHS[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL",
                                     "AUG", "SEP", "OCT", "NOV", "DEC", NULL};
static const char *const WEEKDAYS[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", NULL};

static const struct quartz_field FIELDS[FIELDS_MAX] = {
    {QUARTZ_SECOND, "second", 0, 59, 59, 0, NULL},
    {QUARTZ_MINUTE, "minute", 0, 59, 59, 0, NULL},
    {QUARTZ_HOUR, "hour", 0, 23, 23, 0, NULL},
    {QUARTZ_DAY, "day of month", 1, 31, 31, 0, NULL},
    {QUARTZ_MONTH, "month", 1, 12, 12, 0, MONTHS},
    {QUARTZ_WEEKDAY, "day of week", 1, 7, 7, -1, WEEKDAYS},
    {QUARTZ_YEAR, "year", CRON_YEAR_MIN, CRON_YEAR_MAX, CRON_YEAR_MAX - CRON_YEAR_MIN + 1, 0, NULL},
};

/* The std text as it grows. */
struct target {
    char text[CRON_TEXT_MAX];
    size_t used;
    bool full;
};

static void target_add(struct target *t, const char *format, ...) PRINTF_LIKE(2, 3);

static void target_add(struct target *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(t->text + t->used, sizeof t->text - t->used, format, arguments);
    va_end(arguments);
    if (n < 0 || (size_t)n >= sizeof t->text - t->used) {
        t->full = true;
        t->text[t->used] = '\0';
        return;
    }
    t->used += (size_t)n;
}

/* One item of a field's list. */
struct item {
    const struct quartz_field *field;
    const char *text;
    bool alone; /* it is the whole field */
    struct target *to;
    struct error *err;
};

static enum status item_refuse(const struct item *it, const char *why)
{
    return error_set(it->err, STATUS_INVALID, "%s \"%s\": %s", it->field->name, it->text, why);
}

static bool is_letter(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Digits; false when there are none. More than four are as good as out of range. */
static bool scan_number(const char **p, int *ret)
{
    if (**p < '0' || **p > '9') {
        return false;
    }
    int value = 0;
    for (; **p >= '0' && **p <= '9'; (*p)++) {
        value = value > 9999 ? value : value * 10 + (**p - '0');
    }
    *ret = value;
    return true;
}

static bool letter_is(char c, char upper)
{
    return c == upper || c == upper - 'A' + 'a';
}

struct value {
    int number;
    bool named;
};

/* A name of three letters, perhaps with an L behind it where weekdays may have one. */
static enum status scan_name(const struct item *it, const char **p, int *ret_number)
{
    const struct quartz_field *f = it->field;
    size_t length = 0;
    while (is_letter((*p)[length])) {
        length++;
    }
    for (int i = 0; f->names != NULL && length >= 3 && f->names[i] != NULL; i++) {
        if (strncasecmp(*p, f->names[i], 3) != 0) {
            continue;
        }
        bool last = f->kind == QUARTZ_WEEKDAY && length == 4 && letter_is((*p)[3], 'L');
        if (length > 3 && !last) {
            char why[80];
            (void)snprintf(why, sizeof why, "names have three letters; write \"%s\"", f->names[i]);
            return item_refuse(it, why);
        }
        *p += 3;
        *ret_number = f->min + i;
        return STATUS_OK;
    }
    char why[120];
    (void)snprintf(why, sizeof why, "unknown word; write %d to %d%s", f->min, f->max,
                   f->kind == QUARTZ_MONTH     ? " or JAN to DEC"
                   : f->kind == QUARTZ_WEEKDAY ? " (1 is Sunday) or SUN to SAT"
                                               : "");
    return item_refuse(it, why);
}

static enum status scan_value(const struct item *it, const char **p, struct value *ret)
{
    const struct quartz_field *f = it->field;
    struct value v = {.named = is_letter(**p)};
    if (v.named) {
        enum status s = scan_name(it, p, &v.number);
        if (s == STATUS_OK) {
            *ret = v;
        }
        return s;
    }
    char why[120];
    bool number = scan_number(p, &v.number);
    if (!number || v.number < f->min || v.number > f->max) {
        (void)snprintf(why, sizeof why, "%s; write %d to %d%s",
                       number ? "the value is out of range" : "a value is missing", f->min, f->max,
                       f->kind == QUARTZ_WEEKDAY ? " (1 is Sunday)" : "");
        return item_refuse(it, why);
    }
    *ret = v;
    return STATUS_OK;
}

static void value_add(const struct item *it, struct value v)
{
    if (v.named) {
        target_add(it->to, "%s", it->field->names[v.number - it->field->min]);
    } else {
        target_add(it->to, "%d", v.number + it->field->shift);
    }
}

/* a-b that goes over the end of the field and begins again. */
static void wrapped_add(const struct item *it, int low, int high, int step)
{
    const struct quartz_field *f = it->field;
    if (step == 1) {
        target_add(it->to, low == f->max ? "%d" : "%d-%d", low + f->shift, f->max + f->shift);
        target_add(it->to, high == f->min ? ",%d" : ",%d-%d", f->min + f->shift, high + f->shift);
        return;
    }
    int count = f->max - f->min + 1;
    for (int v = low; v <= high + count; v += step) {
        target_add(it->to, "%s%d", v == low ? "" : ",", (v > f->max ? v - count : v) + f->shift);
    }
}

/* "/n" at the end of an item, or nothing. */
static enum status scan_step(const struct item *it, const char **p, int *ret_step)
{
    int step = 1;
    if (**p == '/') {
        (*p)++;
        if (!scan_number(p, &step) || step < 1 || step > it->field->step_max) {
            char why[80];
            (void)snprintf(why, sizeof why, "the step is out of range; write /1 to /%d",
                           it->field->step_max);
            return item_refuse(it, why);
        }
    }
    if (**p != '\0') {
        return item_refuse(it,
                           "unexpected text; write values, ranges a-b, steps a/n, a-b/n or */n");
    }
    *ret_step = step;
    return STATUS_OK;
}

/* a-b, a-b/n; p is behind the dash. */
static enum status item_convert_range(const struct item *it, struct value low, const char *p)
{
    struct value high;
    int step = 1;
    enum status s = scan_value(it, &p, &high);
    if (s != STATUS_OK) {
        return s;
    }
    if (low.named != high.named) {
        return item_refuse(it, "a name and a number; write names or numbers at both ends");
    }
    if (low.named && *p == '/') {
        return item_refuse(it,
                           "Quartz ignores a step behind names; write numbers, or leave it out");
    }
    s = scan_step(it, &p, &step);
    if (s != STATUS_OK) {
        return s;
    }
    if (high.number >= low.number) {
        value_add(it, low);
        target_add(it->to, "-");
        value_add(it, high);
        if (step > 1) {
            target_add(it->to, "/%d", step);
        }
    } else if (it->field->kind == QUARTZ_YEAR) {
        return item_refuse(it, "the range runs backwards; write the earlier year first");
    } else {
        wrapped_add(it, low.number, high.number, step);
    }
    return STATUS_OK;
}

/* "*", "*"/n, "/n", v, v/n, a-b, a-b/n. */
static enum status item_convert_values(const struct item *it)
{
    const struct quartz_field *f = it->field;
    const char *p = it->text;
    int step = 1;
    if (*p == '*' || *p == '/') {
        p += *p == '*' ? 1 : 0;
        enum status s = scan_step(it, &p, &step);
        if (s == STATUS_OK) {
            target_add(it->to, step > 1 ? "*/%d" : "*", step);
        }
        return s;
    }
    struct value low;
    enum status s = scan_value(it, &p, &low);
    if (s != STATUS_OK) {
        return s;
    }
    if (*p == '-') {
        return item_convert_range(it, low, p + 1);
    }
    bool open = *p == '/';
    if (low.named && open) {
        return item_refuse(it,
                           "Quartz ignores a step behind a name; write a number, or leave it out");
    }
    s = scan_step(it, &p, &step);
    if (s != STATUS_OK) {
        return s;
    }
    value_add(it, low);
    if (open && low.number + step <= f->max) {
        target_add(it->to, step > 1 ? "-%d/%d" : "-%d", f->max + f->shift, step);
    }
    return STATUS_OK;
}

/* Of these one only is sure to mean the same to every Quartz. */
static enum status refuse_listed(const struct item *it)
{
    return item_refuse(it, "Quartz 2.3 does not read L, W and # in a list as it stands, later "
                           "versions do; write it as the only item, or a schedule for each");
}

/* L, L-n, LW, nW; *ret_taken says whether it was one of them. */
static enum status item_convert_day(const struct item *it, bool *ret_taken)
{
    const char *p = it->text;
    int n = 0;
    *ret_taken = true;
    if (letter_is(*p, 'L')) {
        p++;
        bool offset = *p == '-';
        p += offset ? 1 : 0;
        bool good = !offset || (scan_number(&p, &n) && n <= 30);
        bool nearest = good && letter_is(*p, 'W') && p[1] == '\0';
        if (nearest && n > 0) {
            return item_refuse(it, "the weekday nearest to a day before the last has no form here; "
                                   "write LW, or a day such as 28W");
        }
        if (!good || (*p != '\0' && !nearest)) {
            return item_refuse(it, "write L, L-1 to L-30 or LW");
        }
        if (!it->alone) {
            return refuse_listed(it);
        }
        target_add(it->to, nearest ? "LW" : n > 0 ? "L-%d" : "L", n);
        return STATUS_OK;
    }
    if (scan_number(&p, &n) && letter_is(*p, 'W') && p[1] == '\0') {
        if (n < 1 || n > 31) {
            return item_refuse(it, "the day is out of range; write 1W to 31W");
        }
        if (!it->alone) {
            return refuse_listed(it);
        }
        target_add(it->to, "%dW", n);
        return STATUS_OK;
    }
    *ret_taken = false;
    return STATUS_OK;
}

/* L, dL, d#1 to d#5. */
static enum status item_convert_weekday(const struct item *it, bool *ret_taken)
{
    const char *p = it->text;
    size_t length = strlen(p);
    bool hash = strchr(p, '#') != NULL;
    bool last = !hash && letter_is(p[length - 1], 'L');
    *ret_taken = hash || last;
    if (!*ret_taken) {
        return STATUS_OK;
    }
    if (!it->alone) {
        return refuse_listed(it);
    }
    if (last && length == 1) {
        target_add(it->to, "6");
        return STATUS_OK;
    }
    struct value v;
    enum status s = scan_value(it, &p, &v);
    if (s != STATUS_OK) {
        return s;
    }
    if (last && letter_is(*p, 'L') && p[1] == '\0') {
        value_add(it, v);
        target_add(it->to, "L");
        return STATUS_OK;
    }
    if (*p != '#' || p[1] < '1' || p[1] > '5' || p[2] != '\0') {
        return item_refuse(it, "write one weekday and which in the month: 6#1 to 6#5, or 6L");
    }
    value_add(it, v);
    target_add(it->to, "#%c", p[1]);
    return STATUS_OK;
}

static enum status item_convert(const struct item *it)
{
    if (it->text[0] == '\0') {
        return item_refuse(it, "a value is missing beside a comma; write values between commas");
    }
    if (strchr(it->text, '?') != NULL) {
        return item_refuse(it, "? may only stand alone in a day field; write *");
    }
    bool taken = false;
    enum status s = STATUS_OK;
    if (it->field->kind == QUARTZ_DAY) {
        s = item_convert_day(it, &taken);
    } else if (it->field->kind == QUARTZ_WEEKDAY) {
        s = item_convert_weekday(it, &taken);
    }
    return s != STATUS_OK || taken ? s : item_convert_values(it);
}

static bool is_day_field(const struct quartz_field *f)
{
    return f->kind == QUARTZ_DAY || f->kind == QUARTZ_WEEKDAY;
}

static enum status field_convert(const struct quartz_field *f, const char *word, struct target *to,
                                 struct error *err)
{
    if (strcmp(word, "?") == 0 && is_day_field(f)) {
        target_add(to, "*");
        return STATUS_OK;
    }
    char text[CRON_TEXT_MAX];
    for (const char *p = word;; p++) {
        size_t length = strcspn(p, ",");
        memcpy(text, p, length);
        text[length] = '\0';
        const struct item it = {f, text, p == word && p[length] == '\0', to, err};
        enum status s = item_convert(&it);
        if (s != STATUS_OK) {
            return s;
        }
        p += length;
        if (*p == '\0') {
            return STATUS_OK;
        }
        target_add(to, ",");
    }
}

/* Exactly one of the day fields must be "?". */
static enum status days_check(const char *day, const char *weekday, struct error *err)
{
    bool open_day = strcmp(day, "?") == 0;
    bool open_weekday = strcmp(weekday, "?") == 0;
    if (open_day != open_weekday) {
        return STATUS_OK;
    }
    return error_set(
        err, STATUS_INVALID,
        "day of month \"%s\" with day of week \"%s\": in Quartz exactly one of them is "
        "\"?\"; write ? for %s",
        day, weekday,
        open_day                    ? "one, and * for the other if any day will do"
        : strcmp(day, "*") == 0     ? "the day of month"
        : strcmp(weekday, "*") == 0 ? "the day of week"
                                    : "the one that does not matter");
}

static enum status words_check(const char *const words[CRON_WORDS_MAX], int count,
                               struct error *err)
{
    if (count == FIELDS_MAX || count == FIELDS_MAX - 1) {
        return days_check(words[QUARTZ_DAY], words[QUARTZ_WEEKDAY], err);
    }
    return error_set(
        err, STATUS_INVALID,
        "%s%d field%s; write 6 (second minute hour day-of-month month day-of-week) or 7 "
        "(year last)%s",
        count == CRON_WORDS_MAX ? "at least " : "", count, count == 1 ? "" : "s",
        count == 5 || (count == 1 && words[0][0] == '@') ? "; this looks like dialect std" : "");
}

/* The fields of a checked text, one after the other. Five are enough where seconds are 0 and no
 * year is named. */
static enum status words_convert(const char *const words[CRON_WORDS_MAX], int count,
                                 struct target *to, struct error *err)
{
    bool any_year = count < FIELDS_MAX || strcmp(words[QUARTZ_YEAR], "*") == 0;
    bool plain = any_year && strcmp(words[QUARTZ_SECOND], "0") == 0;
    for (int i = plain ? 1 : 0; i < (any_year ? FIELDS_MAX - 1 : FIELDS_MAX); i++) {
        target_add(to, "%s", to->used > 0 ? " " : "");
        enum status s = field_convert(&FIELDS[i], words[i], to, err);
        if (s != STATUS_OK) {
            return s;
        }
    }
    if (to->full) {
        return error_set(err, STATUS_INVALID,
                         "the expression becomes longer than %d bytes in std; write less in one",
                         CRON_TEXT_MAX - 1);
    }
    return STATUS_OK;
}

enum status cron_quartz_to_std(const char *text, char ret_text[CRON_TEXT_MAX], struct error *err)
{
    enum status s = cron_text_check(text, err);
    if (s != STATUS_OK) {
        return s;
    }
    char copy[CRON_TEXT_MAX];
    const char *words[CRON_WORDS_MAX];
    memcpy(copy, text, strlen(text) + 1);
    int count = cron_words_split(copy, words);
    struct target to = {.used = 0};
    struct cron compiled;
    s = words_check(words, count, err);
    if (s == STATUS_OK) {
        s = words_convert(words, count, &to, err);
    }
    if (s == STATUS_OK) {
        s = cron_parse(to.text, &compiled, err);
    }
    if (s == STATUS_OK) {
        memcpy(ret_text, to.text, to.used + 1);
    }
    return s;
}
