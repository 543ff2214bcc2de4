#include "cron.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "cron_field.h"
#include "cron_words.h"

static bool field_is_open(const struct cron_field *f)
{
    return strcmp(f->text, "*") == 0 || strcmp(f->text, "?") == 0;
}

/* Has it a "*" that is more or less than the whole field? */
static bool field_has_stepped_star(const struct cron_field *f)
{
    return !field_is_open(f) && strchr(f->text, '*') != NULL;
}

/* A field's text with each "*" spelled out as the range it stands for. */
static void stars_spell(const struct cron_field *f, char *ret_text, size_t size)
{
    size_t used = 0;
    for (const char *p = f->text; *p != '\0' && used + 1 < size; p++) {
        if (*p == '*') {
            used += (size_t)snprintf(ret_text + used, size - used, "%d-%d", f->min, f->star_max);
        } else {
            ret_text[used++] = *p;
            ret_text[used] = '\0';
        }
    }
}

/* "*"/n in one day field beside another restricted one: Vixie's cron wants both to match, others
 * either, and some the whole. */
static enum status refuse_stepped_days(const struct cron_field *day,
                                       const struct cron_field *weekday, struct error *err)
{
    char days[CRON_TEXT_MAX];
    char weekdays[CRON_TEXT_MAX];
    stars_spell(day, days, sizeof days);
    stars_spell(weekday, weekdays, sizeof weekdays);
    return error_set(err, STATUS_INVALID,
                     "day of month \"%s\" with day of week \"%s\": crons disagree about a * with "
                     "a step beside another day field; write \"%s\" as day of month and \"%s\" as "
                     "day of week if either may match, or \"+%s\" as day of week if both must",
                     day->text, weekday->text, days, weekdays, weekday->text);
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
        return error_set(
            err, STATUS_INVALID,
            "day of week \"+%s\": + needs weekdays behind it; write for example \"+FRI\"",
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
        return error_set(
            err, STATUS_INVALID,
            "nickname \"%s\": it is an interval, not a cron; write it as kind interval "
            "with a text such as 5 minutes",
            word);
    }
    if (strcasecmp(word, "@reboot") == 0) {
        return error_set(err, STATUS_INVALID,
                         "nickname \"@reboot\": it is an event, not a time; write a time, such as "
                         "\"0 6 * * *\"");
    }
    return error_set(err, STATUS_INVALID,
                     "nickname \"%s\": unknown; write \"@yearly\", \"@monthly\", \"@weekly\", "
                     "\"@daily\" or \"@hourly\"",
                     word);
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
                     count == CRON_WORDS_MAX ? "at least " : "", count);
}

static enum status refuse_never(const struct cron_field fields[CRON_FIELDS_MAX],
                                const struct cron *c, struct error *err)
{
    struct cron last = *c;
    struct local_time first;
    last.days = last.nearest_weekdays = 0;
    last.last_weekday = false;
    last.days_before_last = 1;
    last.day_restricted = true;
    bool remedy = cron_nominal_from(&last, (struct local_time){0}, &first);
    return error_set(err, STATUS_INVALID,
                     "never fires: no date has day of month \"%s\", month \"%s\", day of week "
                     "\"%s%s\"%s%s%s; write %s",
                     fields[FIELD_DAY].text, fields[FIELD_MONTH].text, c->both_days ? "+" : "",
                     fields[FIELD_WEEKDAY].text, c->has_years ? " and year \"" : "",
                     c->has_years ? fields[FIELD_YEAR].text : "", c->has_years ? "\"" : "",
                     remedy ? "\"L\" as day of month for the last of the month"
                            : "days that occur together");
}

enum status cron_parse(const char *text, struct cron *ret_cron, struct error *err)
{
    enum status s = cron_text_check(text, err);
    if (s != STATUS_OK) {
        return s;
    }
    char copy[CRON_TEXT_MAX];
    const char *words[CRON_WORDS_MAX];
    memcpy(copy, text, strlen(text) + 1);
    int count = cron_words_split(copy, words);
    if (count > 0 && words[0][0] == '@') {
        const char *long_text = NULL;
        s = nickname_find(count == 1 ? words[0] : text, &long_text, err);
        if (s != STATUS_OK) {
            return s;
        }
        memcpy(copy, long_text, strlen(long_text) + 1);
        count = cron_words_split(copy, words);
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
        return refuse_never(fields, &c, err);
    }
    *ret_cron = c;
    return STATUS_OK;
}
