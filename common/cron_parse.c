#include "cron.h"

#include <string.h>
#include <strings.h>

#include "cron_field.h"

#define WORDS_MAX 8 /* one more than fields, to see that there are too many */

static bool field_is_open(const struct cron_field *f)
{
    return strcmp(f->text, "*") == 0 || strcmp(f->text, "?") == 0;
}

/* Has it a "*" that is more or less than the whole field? */
static bool field_has_stepped_star(const struct cron_field *f)
{
    return !field_is_open(f) && strchr(f->text, '*') != NULL;
}

/* "*"/n in one day field beside another restricted one: Vixie's cron wants both to match, others
 * either, and some the whole. */
static enum status refuse_stepped_days(const struct cron_field *day,
                                       const struct cron_field *weekday, struct error *err)
{
    return error_set(err, STATUS_INVALID,
                     "day of month \"%s\" with day of week \"%s\": crons disagree about a * with "
                     "a step beside another day field; write the values as a list, such as "
                     "1,3,5, if either may match, or \"+%s\" as day of week if both must",
                     day->text, weekday->text, weekday->text);
}

static enum status days_parse(struct cron_field *day, struct cron_field *weekday, struct cron *c,
                              struct error *err)
{
    if (weekday->text[0] == '+') {
        weekday->text++;
        c->both_days = true;
    }
    c->day_restricted = !field_is_open(day);
    c->weekday_restricted = !field_is_open(weekday);
    if (c->both_days && (!c->weekday_restricted || weekday->text[0] == '\0')) {
        return error_set(err, STATUS_INVALID,
                         "day of week \"+%s\": + needs weekdays behind it, such as +FRI",
                         weekday->text);
    }
    struct cron_values set;
    enum status s = STATUS_OK;
    if (c->day_restricted) {
        s = cron_field_parse(day, c, &set, err);
        if (s != STATUS_OK) {
            return s;
        }
        c->days = (uint32_t)set.bits[0];
    }
    if (c->weekday_restricted) {
        s = cron_field_parse(weekday, c, &set, err);
        if (s != STATUS_OK) {
            return s;
        }
        c->weekdays = (uint8_t)((set.bits[0] | set.bits[0] >> 7) & 0x7f);
    }
    if (c->day_restricted && c->weekday_restricted && !c->both_days &&
        (field_has_stepped_star(day) || field_has_stepped_star(weekday))) {
        return refuse_stepped_days(day, weekday, err);
    }
    return STATUS_OK;
}

static enum status fields_parse(struct cron_field fields[CRON_FIELDS_MAX], struct cron *c,
                                struct error *err)
{
    struct cron_values sets[CRON_FIELDS_MAX];
    for (int i = 0; i < CRON_FIELDS_MAX; i++) {
        if (fields[i].kind == FIELD_DAY || fields[i].kind == FIELD_WEEKDAY) {
            continue;
        }
        enum status s = cron_field_parse(&fields[i], c, &sets[i], err);
        if (s != STATUS_OK) {
            return s;
        }
    }
    c->seconds = sets[FIELD_SECOND].bits[0];
    c->minutes = sets[FIELD_MINUTE].bits[0];
    c->hours = (uint32_t)sets[FIELD_HOUR].bits[0];
    c->months = (uint16_t)sets[FIELD_MONTH].bits[0];
    c->has_years = strcmp(fields[FIELD_YEAR].text, "*") != 0;
    memcpy(c->years, sets[FIELD_YEAR].bits, sizeof c->years);
    c->follows_clock = fields[FIELD_SECOND].text[0] == '*' || fields[FIELD_MINUTE].text[0] == '*' ||
                       fields[FIELD_HOUR].text[0] == '*';
    return days_parse(&fields[FIELD_DAY], &fields[FIELD_WEEKDAY], c, err);
}

static enum status nickname_find(const char *word, const char **ret_text, struct error *err)
{
    static const struct {
        const char *name, *text;
    } nicknames[] = {
        {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"}, {"@monthly", "0 0 1 * *"},
        {"@weekly", "0 0 * * 0"}, {"@daily", "0 0 * * *"},    {"@midnight", "0 0 * * *"},
        {"@hourly", "0 * * * *"},
    };
    for (size_t i = 0; i < sizeof nicknames / sizeof nicknames[0]; i++) {
        if (strcmp(word, nicknames[i].name) == 0) {
            *ret_text = nicknames[i].text;
            return STATUS_OK;
        }
        if (strcasecmp(word, nicknames[i].name) == 0) {
            return error_set(err, STATUS_INVALID, "nickname \"%s\": write it in lower case, \"%s\"",
                             word, nicknames[i].name);
        }
    }
    if (strncasecmp(word, "@every", 6) == 0) {
        return error_set(err, STATUS_INVALID,
                         "nickname \"%s\": it is an interval, not a cron; write kind interval with "
                         "a text such as \"5 minutes\"",
                         word);
    }
    if (strcasecmp(word, "@reboot") == 0) {
        return error_set(err, STATUS_INVALID,
                         "nickname \"@reboot\": it is an event, not a time; write a time, such as "
                         "\"0 6 * * *\"");
    }
    return error_set(
        err, STATUS_INVALID,
        "nickname \"%s\": unknown; write @yearly, @monthly, @weekly, @daily or @hourly", word);
}

/* Cut `text` into words in place. Returns their number, at most WORDS_MAX. */
static int words_split(char *text, const char *words[WORDS_MAX])
{
    int count = 0;
    for (char *p = text; count < WORDS_MAX;) {
        while (*p == ' ' || *p == '\t') {
            p++;
        }
        if (*p == '\0') {
            break;
        }
        words[count++] = p;
        while (*p != '\0' && *p != ' ' && *p != '\t') {
            p++;
        }
        if (*p != '\0') {
            *p++ = '\0';
        }
    }
    return count;
}

static enum status text_check(const char *text, struct error *err)
{
    size_t length = strnlen(text, CRON_TEXT_MAX);
    if (length >= CRON_TEXT_MAX) {
        return error_set(err, STATUS_INVALID, "the expression is longer than %d bytes; shorten it",
                         CRON_TEXT_MAX - 1);
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char ch = (unsigned char)text[i];
        if (ch != '\t' && (ch < ' ' || ch > '~')) {
            return error_set(err, STATUS_INVALID,
                             "byte %zu of the expression (0x%02x) is no letter, digit or sign of "
                             "the grammar; remove it",
                             i + 1, ch);
        }
    }
    return STATUS_OK;
}

static enum status refuse_word_count(int count, const char *first, struct error *err)
{
    if (count > 0 && strchr(first, '=') != NULL) {
        return error_set(err, STATUS_INVALID,
                         "\"%s\": the time zone has its own column or option; write it there and "
                         "remove it here",
                         first);
    }
    return error_set(err, STATUS_INVALID,
                     "%s%d fields; write 5 (minute hour day-of-month month day-of-week), 6 (second "
                     "first) or 7 (second first, year last)",
                     count == WORDS_MAX ? "at least " : "", count);
}

enum status cron_parse(const char *text, struct cron *ret_cron, struct error *err)
{
    enum status s = text_check(text, err);
    if (s != STATUS_OK) {
        return s;
    }
    char copy[CRON_TEXT_MAX];
    const char *words[WORDS_MAX];
    memcpy(copy, text, strlen(text) + 1);
    int count = words_split(copy, words);
    if (count > 0 && words[0][0] == '@') {
        const char *long_text = NULL;
        s = nickname_find(count == 1 ? words[0] : text, &long_text, err);
        if (s != STATUS_OK) {
            return s;
        }
        memcpy(copy, long_text, strlen(long_text) + 1);
        count = words_split(copy, words);
    }
    if (count < 5 || count > CRON_FIELDS_MAX || strchr(words[0], '=') != NULL) {
        return refuse_word_count(count, count > 0 ? words[0] : "", err);
    }
    struct cron_field fields[CRON_FIELDS_MAX];
    memcpy(fields, CRON_FIELDS, sizeof fields);
    for (int i = 0; i < count; i++) {
        fields[count == 5 ? i + 1 : i].text = words[i];
    }
    struct cron c = {.seconds = 0};
    s = fields_parse(fields, &c, err);
    if (s != STATUS_OK) {
        return s;
    }
    cron_set_policies(&c, DST_GAP_AUTO, DST_OVERLAP_AUTO);
    struct local_time first;
    if (!cron_nominal_from(&c, (struct local_time){0}, &first)) {
        return error_set(err, STATUS_INVALID,
                         "never fires: no date has day of month \"%s\", month \"%s\" and day of "
                         "week \"%s\"; write a day that the month has, or L for its last",
                         fields[FIELD_DAY].text, fields[FIELD_MONTH].text,
                         fields[FIELD_WEEKDAY].text);
    }
    *ret_cron = c;
    return STATUS_OK;
}
