#include "calendar_definition.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "civil.h"

#define SATURDAY_AND_SUNDAY 0x41

void calendar_definition_init(struct calendar_definition *d)
{
    *d = (struct calendar_definition){
        .valid_from = CALENDAR_ALWAYS,
        .valid_through = CALENDAR_FOREVER,
        .beyond = CALENDAR_BEYOND_WEEKENDS,
    };
}

void calendar_definition_done(struct calendar_definition *d)
{
    free(d->entries);
    calendar_definition_init(d);
}

/* ---- texts ---- */

/* Bytes of the UTF-8 character at p; 0: it is none, or a control character. */
static size_t character_length(const unsigned char *p)
{
    if (p[0] < 0x80) {
        return p[0] >= 0x20 && p[0] != 0x7f ? 1 : 0;
    }
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    /* Not the shortest form, a surrogate, or beyond U+10FFFF. */
    bool wrong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
                 (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f);
    /* U+0080 to U+009F are control characters too. */
    return wrong || (p[0] == 0xc2 && p[1] < 0xa0) ? 0 : n;
}

bool calendar_text_is_clean(const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    while (*p != '\0') {
        size_t n = character_length(p);
        if (n == 0) {
            return false;
        }
        p += n;
    }
    return true;
}

static int weekday_find(const char *word, size_t length)
{
    static const char *const names[] = {"sunday",   "monday", "tuesday", "wednesday",
                                        "thursday", "friday", "saturday"};
    for (int i = 0; i < 7; i++) {
        if (length >= 3 && length <= strlen(names[i]) && strncasecmp(word, names[i], length) == 0) {
            return i;
        }
    }
    return -1;
}

static enum status weekday_refuse(const char *word, size_t length, struct error *err)
{
    char shown[41];
    (void)snprintf(shown, sizeof shown, "%.*s", (int)(length < 40 ? length : 40), word);
    text_trim(shown);
    if (!calendar_text_is_clean(shown)) {
        return error_set(err, STATUS_INVALID,
                         "it is not UTF-8 text; write for example Sat Sun, or none");
    }
    return error_set(err, STATUS_INVALID,
                     "\"%s\" is no weekday; write for example Sat Sun, or none", shown);
}

enum status calendar_weekend_parse(const char *text, uint8_t *ret_days, struct error *err)
{
    static const char separators[] = " ,\t";
    uint8_t days = 0;
    const char *p = text + strspn(text, separators);
    bool none = strcasecmp(p, "none") == 0;
    while (*p != '\0' && !none) {
        size_t length = strcspn(p, separators);
        int day = weekday_find(p, length);
        if (day < 0) {
            return weekday_refuse(p, length, err);
        }
        days |= (uint8_t)(1U << day);
        p += length;
        p += strspn(p, separators);
    }
    if (days == 0 && !none) {
        return error_set(err, STATUS_INVALID, "no weekday; write for example Sat Sun, or none");
    }
    if (days == 0x7f) {
        return error_set(err, STATUS_INVALID,
                         "all seven days are weekend, so there is no business day; leave out one");
    }
    *ret_days = days;
    return STATUS_OK;
}

/* ---- entries ---- */

static enum status room_make(struct calendar_definition *d, struct error *err)
{
    if (d->entry_count >= CALENDAR_DAYS_MAX) {
        return error_set(err, STATUS_INVALID, "more than %d days; leave out years long gone",
                         CALENDAR_DAYS_MAX);
    }
    if (d->entry_count < d->entry_room) {
        return STATUS_OK;
    }
    size_t room = d->entry_room == 0 ? 64 : d->entry_room * 2;
    struct calendar_entry *entries = reallocarray(d->entries, room, sizeof *entries);
    if (entries == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    d->entries = entries;
    d->entry_room = room;
    return STATUS_OK;
}

enum status calendar_definition_add(struct calendar_definition *d,
                                    const struct calendar_entry *entry, struct error *err)
{
    struct civil_date date = civil_date_of(entry->day);
    if (date.year < CALENDAR_YEAR_MIN || date.year > CALENDAR_YEAR_MAX) {
        return error_set(err, STATUS_INVALID, "the year is not within %d to %d; leave the day out",
                         CALENDAR_YEAR_MIN, CALENDAR_YEAR_MAX);
    }
    if (!calendar_text_is_clean(entry->label)) {
        return error_set(err, STATUS_INVALID,
                         "the name is not UTF-8 text on one line; save the file as UTF-8");
    }
    enum status s = room_make(d, err);
    if (s == STATUS_OK) {
        d->entries[d->entry_count++] = *entry;
    }
    return s;
}

static int entry_compare(const void *a, const void *b)
{
    const struct calendar_entry *x = a;
    const struct calendar_entry *y = b;
    if (x->day != y->day) {
        return x->day < y->day ? -1 : 1;
    }
    return (x->line > y->line) - (x->line < y->line);
}

static enum status once_check(const struct calendar_definition *d, struct error *err)
{
    for (size_t i = 1; i < d->entry_count; i++) {
        if (d->entries[i].day == d->entries[i - 1].day) {
            char text[DATE_TEXT_MAX];
            date_format(d->entries[i].day, text);
            return error_set(err, STATUS_INVALID,
                             "%s stands on line %d and on line %d; leave out one of them", text,
                             (int)d->entries[i - 1].line, (int)d->entries[i].line);
        }
    }
    return STATUS_OK;
}

enum status calendar_definition_finish(struct calendar_definition *d, struct error *err)
{
    if (d->entry_count > 0) {
        qsort(d->entries, d->entry_count, sizeof d->entries[0], entry_compare);
        if (!d->has_valid_from) {
            d->valid_from = civil_days_of(civil_date_of(d->entries[0].day).year, 1, 1);
        }
        if (!d->has_valid_through) {
            int64_t last = d->entries[d->entry_count - 1].day;
            d->valid_through = civil_days_of(civil_date_of(last).year, 12, 31);
        }
    }
    if (d->weekend_count == 0) {
        d->weekends[0] = (struct calendar_weekend){CALENDAR_ALWAYS, SATURDAY_AND_SUNDAY};
        d->weekend_count = 1;
    }
    enum status s = once_check(d, err);
    if (s == STATUS_OK && d->valid_from > d->valid_through) {
        char from[DATE_TEXT_MAX];
        char through[DATE_TEXT_MAX];
        date_format(d->valid_from, from);
        date_format(d->valid_through, through);
        return error_set(err, STATUS_INVALID,
                         "valid_through %s is before valid_from %s; write a later one", through,
                         from);
    }
    return s;
}

enum status calendar_definition_compile(const struct calendar_definition *d, struct calendar **ret,
                                        struct error *err)
{
    struct calendar_special *days = calloc(d->entry_count + 1, sizeof *days);
    if (days == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    for (size_t i = 0; i < d->entry_count; i++) {
        days[i] = (struct calendar_special){d->entries[i].day, d->entries[i].business};
    }
    struct calendar_rules rules = {
        .weekends = d->weekends,
        .weekend_count = d->weekend_count,
        .days = days,
        .day_count = d->entry_count,
        .valid_from = d->valid_from,
        .valid_through = d->valid_through,
        .beyond = d->beyond,
    };
    enum status s = calendar_new(&rules, ret, err);
    free(days);
    return s;
}
