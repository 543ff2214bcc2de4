#include "calendar_command.h"

#include <string.h>

#include "calendar_file.h"
#include "civil.h"

/* What a command has found out so far. */
struct run {
    const char *words; /* of the command, for messages */
    const char *name;  /* --calendar */
    struct calendar *calendar;
    struct calendar_answer answer;
};

static enum status require(const char *value, const char *what, const char *example,
                           struct error *err)
{
    if (value != NULL) {
        return STATUS_OK;
    }
    return error_set(err, STATUS_INVALID, "%s is needed; write for example %s", what, example);
}

static enum status calendar_open(struct run *r, struct error *err)
{
    enum status s = require(r->name, "--calendar", "--calendar nyse", err);
    if (s == STATUS_OK) {
        s = calendar_file_load(r->name, &r->calendar, err);
    }
    return s;
}

static enum status date_take(const char *text, int64_t *ret_day, struct error *err)
{
    enum status s = require(text, "a date", "2030-04-12", err);
    if (s == STATUS_OK && date_parse(text, ret_day, err) != STATUS_OK) {
        return error_prefix(err, STATUS_INVALID, "\"%.40s\"", text);
    }
    return s;
}

/* "2026-08" is the day number of its first day. */
static enum status month_take(const char *text, int64_t *ret_day, struct error *err)
{
    char date[DATE_TEXT_MAX];
    if (strlen(text) == strlen("2026-08")) {
        (void)snprintf(date, sizeof date, "%s-01", text);
        if (date_parse(date, ret_day, NULL) == STATUS_OK) {
            return STATUS_OK;
        }
    }
    return error_set(err, STATUS_INVALID, "\"%.40s\" is no month; write YYYY-MM, as in 2026-08",
                     text);
}

static enum status number_take(const char *text, int32_t *ret, struct error *err)
{
    bool minus = text[0] == '-';
    const char *digits = text + (minus || text[0] == '+' ? 1 : 0);
    size_t n = strspn(digits, "0123456789");
    int32_t value = 0;
    for (size_t i = 0; i < n && value <= CALENDAR_ADD_MAX; i++) {
        value = value * 10 + (digits[i] - '0');
    }
    if (n == 0 || digits[n] != '\0' || value > CALENDAR_ADD_MAX) {
        return error_set(err, STATUS_INVALID, "\"%.40s\" is wrong; write a number from -%d to %d",
                         text, CALENDAR_ADD_MAX, CALENDAR_ADD_MAX);
    }
    if (value == 0) {
        return error_set(err, STATUS_INVALID,
                         "0 business days move nothing; write 1 for the next business day, -1 for "
                         "the one before, or use reportctl roll");
    }
    *ret = minus ? -value : value;
    return STATUS_OK;
}

/* ---- what both print ---- */

static void warn_beyond(const struct run *r, FILE *err)
{
    char from[DATE_TEXT_MAX] = "the beginning";
    char through[DATE_TEXT_MAX] = "for ever";
    if (calendar_valid_from(r->calendar) != CALENDAR_ALWAYS) {
        date_format(calendar_valid_from(r->calendar), from);
    }
    if (calendar_valid_through(r->calendar) != CALENDAR_FOREVER) {
        date_format(calendar_valid_through(r->calendar), through);
    }
    (void)fprintf(err,
                  "reportctl %s: warning: calendar %s is known from %s to %s only; beyond, days "
                  "without an entry are judged by the weekend alone\n",
                  r->words, r->name, from, through);
}

/* One line, whatever was typed. */
static void fail_tell(const struct run *r, const struct error *e, FILE *err)
{
    (void)fprintf(err, "reportctl %s: ", r->words);
    for (const char *c = e->text; *c != '\0'; c++) {
        bool control = (unsigned char)*c < ' ' || *c == 0x7f;
        (void)fputc(control ? '?' : *c, err);
    }
    (void)fputc('\n', err);
}

static int finish(struct run *r, enum status s, struct error *e, FILE *out, FILE *err)
{
    if (s == STATUS_OK && !r->answer.skipped &&
        (r->answer.day < civil_days_of(CIVIL_YEAR_MIN, 1, 1) ||
         r->answer.day > civil_days_of(CIVIL_YEAR_MAX, 12, 31))) {
        s = error_set(e, STATUS_INVALID, "the answer lies beyond the years 1 to 9999");
    }
    if (s != STATUS_OK) {
        fail_tell(r, e, err);
        calendar_free(r->calendar);
        return s == STATUS_FATAL ? 1 : 2;
    }
    if (!r->answer.skipped) {
        char text[DATE_TEXT_MAX];
        date_format(r->answer.day, text);
        (void)fprintf(out, "%s\n", text);
    }
    bool failed = fflush(out) != 0 || ferror(out) != 0;
    if (failed) {
        (void)fprintf(err, "reportctl %s: the output could not be written\n", r->words);
    } else if (r->answer.beyond) {
        warn_beyond(r, err);
    }
    calendar_free(r->calendar);
    return failed ? 1 : 0;
}

/* A question that the calendar cannot answer names it. */
static enum status asked(const struct run *r, enum status s, struct error *err)
{
    return s == STATUS_OK ? s : error_prefix(err, s, "calendar %s", r->name);
}

/* ---- roll ---- */

int roll_command_run(const struct roll_arguments *arguments, FILE *out, FILE *err)
{
    struct run r = {.words = "roll", .name = arguments->calendar};
    struct error e = {.text = ""};
    enum roll_convention convention = ROLL_RUN;
    int64_t day = 0;
    enum status s =
        require(arguments->convention, "--convention", "--convention modified_following", &e);
    if (s == STATUS_OK) {
        s = roll_convention_parse(arguments->convention, &convention, &e);
    }
    if (s == STATUS_OK) {
        s = date_take(arguments->date, &day, &e);
    }
    if (s == STATUS_OK) {
        s = calendar_open(&r, &e);
    }
    if (s == STATUS_OK) {
        s = asked(&r, calendar_roll(r.calendar, convention, day, &r.answer, &e), &e);
    }
    return finish(&r, s, &e, out, err);
}

/* ---- business-day ---- */

static enum status one_question(const struct business_day_arguments *a, struct error *err)
{
    int questions =
        (a->add != NULL ? 1 : 0) + (a->first != NULL ? 1 : 0) + (a->last != NULL ? 1 : 0);
    if (questions != 1) {
        return error_set(err, STATUS_INVALID,
                         "write one of --add N DATE, --first MONTH and --last MONTH");
    }
    if (a->add == NULL && a->date != NULL) {
        return error_set(err, STATUS_INVALID,
                         "a date goes with --add; --first and --last have their month");
    }
    return STATUS_OK;
}

static enum status question_parse(const struct business_day_arguments *a, int64_t *ret_day,
                                  int32_t *ret_add, struct error *err)
{
    enum status s = one_question(a, err);
    if (s != STATUS_OK) {
        return s;
    }
    if (a->add == NULL) {
        s = month_take(a->first != NULL ? a->first : a->last, ret_day, err);
        return s == STATUS_OK ? s : error_prefix(err, s, a->first != NULL ? "--first" : "--last");
    }
    s = number_take(a->add, ret_add, err);
    return s == STATUS_OK ? date_take(a->date, ret_day, err) : error_prefix(err, s, "--add");
}

int business_day_command_run(const struct business_day_arguments *arguments, FILE *out, FILE *err)
{
    struct run r = {.words = "business-day", .name = arguments->calendar};
    struct error e = {.text = ""};
    int64_t day = 0;
    int32_t add = 0;
    enum status s = question_parse(arguments, &day, &add, &e);
    if (s == STATUS_OK) {
        s = calendar_open(&r, &e);
    }
    if (s == STATUS_OK && arguments->add != NULL) {
        s = asked(&r, calendar_add(r.calendar, day, add, &r.answer, &e), &e);
    } else if (s == STATUS_OK && arguments->first != NULL) {
        s = asked(&r, calendar_first_of_month(r.calendar, day, &r.answer, &e), &e);
    } else if (s == STATUS_OK) {
        s = asked(&r, calendar_last_of_month(r.calendar, day, &r.answer, &e), &e);
    }
    return finish(&r, s, &e, out, err);
}
