/* The sentence about an expression: it is read back by a reader that knows English only, and must
 * say exactly what the expression says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cron_text.h"
#include "fixture_cron.h"
#include "fixture_zone.h"

/* ---- the reader ---- */

#define WORDS_MAX 900

static const char *const MONTHS[] = {"January",   "February", "March",    "April",
                                     "May",       "June",     "July",     "August",
                                     "September", "October",  "November", "December"};
static const char *const WEEKDAYS[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                       "Thursday", "Friday", "Saturday"};

/* Words and commas of the sentence. */
struct reader {
    char text[CRON_PLAIN_MAX * 2];
    const char *words[WORDS_MAX];
    int count, at;
};

static void reader_open(struct reader *r, const char *sentence)
{
    size_t used = 0;
    for (const char *p = sentence; *p != '\0'; p++) {
        if (*p == ',') {
            r->text[used++] = ' ';
        }
        r->text[used++] = *p;
    }
    r->text[used] = '\0';
    r->count = r->at = 0;
    char *rest = NULL;
    for (char *w = strtok_r(r->text, " ", &rest); w != NULL; w = strtok_r(NULL, " ", &rest)) {
        assert_true(r->count < WORDS_MAX - 8);
        r->words[r->count++] = w;
    }
    for (int i = 0; i < 8; i++) {
        r->words[r->count + i] = "";
    }
}

static const char *word(const struct reader *r, int ahead)
{
    return r->words[r->at + ahead];
}

/* Are the next words these? Then go past them. */
static bool taken(struct reader *r, const char *phrase)
{
    int n = 0;
    for (const char *p = phrase; *p != '\0'; n++) {
        size_t length = strcspn(p, " ");
        if (strlen(word(r, n)) != length || memcmp(word(r, n), p, length) != 0) {
            return false;
        }
        p += length + (p[length] == ' ' ? 1 : 0);
    }
    r->at += n;
    return true;
}

static bool plain_number(const char *text)
{
    return text[0] != '\0' && strspn(text, "0123456789") == strlen(text);
}

/* A number or a name of `names`, or -1. */
static int value_of(const char *text, const char *const *names, int count)
{
    for (int i = 0; names != NULL && i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            return i;
        }
    }
    return names == NULL && plain_number(text) ? (int)strtol(text, NULL, 10) : -1;
}

static bool is_between(const char *text)
{
    return strcmp(text, ",") == 0 || strcmp(text, "and") == 0 || strcmp(text, "or") == 0;
}

/* "1, 5 to 8 and 12"; "0 to 22 in steps of 2"; weekday ranges may go over Sunday. */
static void list_read(struct reader *r, const char *const *names, int count, bool set[256])
{
    for (;;) {
        int low = value_of(word(r, 0), names, count);
        assert_true(low >= 0);
        r->at++;
        int high = low;
        int step = 1;
        if (taken(r, "to")) {
            high = value_of(word(r, 0), names, count);
            assert_true(high >= 0);
            r->at++;
            if (taken(r, "in steps of")) {
                step = (int)strtol(word(r, 0), NULL, 10);
                r->at++;
            }
        }
        high += names == WEEKDAYS && high < low ? 7 : 0;
        for (int v = low; v <= high; v += step) {
            set[names == WEEKDAYS ? v % 7 : v - (names == NULL ? count : 0)] = true;
        }
        if (!is_between(word(r, 0)) || value_of(word(r, 1), names, count) < 0) {
            return;
        }
        r->at++;
    }
}

static uint64_t bits_read(struct reader *r, const char *const *names, int count)
{
    bool set[256] = {false};
    uint64_t bits = 0;
    list_read(r, names, count, set);
    for (int i = 0; i < 64; i++) {
        bits |= set[i] ? (uint64_t)1 << i : 0;
    }
    return bits;
}

static uint64_t evenly(int step)
{
    uint64_t bits = 0;
    for (int v = 0; v < 60; v += step) {
        bits |= (uint64_t)1 << v;
    }
    return bits;
}

/* "at 06:30, 06:45 and 07:30": all combinations must be there. */
static void times_read(struct reader *r, struct cron *c)
{
    int count = 0;
    assert_true(taken(r, "at"));
    c->seconds = c->minutes = c->hours = 0;
    do {
        int hour = 0;
        int minute = 0;
        int second = 0;
        int parts = sscanf(word(r, 0), "%2d:%2d:%2d", &hour, &minute, &second);
        assert_true(parts >= 2);
        c->hours |= (uint32_t)1 << hour;
        c->minutes |= (uint64_t)1 << minute;
        c->seconds |= (uint64_t)1 << second;
        count++;
        r->at++;
    } while (is_between(word(r, 0)) && strchr(word(r, 1), ':') != NULL && (r->at++, true));
    assert_int_equal(count, __builtin_popcountll(c->seconds) * __builtin_popcountll(c->minutes) *
                                __builtin_popcountll(c->hours));
}

static uint64_t part_read(struct reader *r, const char *unit)
{
    char phrase[64];
    (void)snprintf(phrase, sizeof phrase, "every %s", unit);
    if (taken(r, phrase)) {
        return evenly(1);
    }
    (void)snprintf(phrase, sizeof phrase, "%ss", unit);
    if (strcmp(word(r, 0), "every") == 0 && strcmp(word(r, 2), phrase) == 0) {
        int step = (int)strtol(word(r, 1), NULL, 10);
        r->at += 3;
        return evenly(step);
    }
    assert_true(taken(r, "at"));
    assert_true(taken(r, unit) || taken(r, phrase));
    return bits_read(r, NULL, 0);
}

static uint32_t hours_read(struct reader *r)
{
    if (taken(r, "of hours")) {
        return (uint32_t)bits_read(r, NULL, 0);
    }
    (void)taken(r, "of each hour");
    uint32_t hours = 0;
    int low = 0;
    int high = 23;
    if (taken(r, "from")) {
        assert_int_equal(sscanf(word(r, 0), "%2d:00", &low), 1);
        assert_string_equal(word(r, 1), "to");
        assert_int_equal(sscanf(word(r, 2), "%2d:59", &high), 1);
        r->at += 3;
    }
    for (int hour = low; hour <= high; hour++) {
        hours |= (uint32_t)1 << hour;
    }
    return hours;
}

static void clock_read(struct reader *r, struct cron *c)
{
    if (strcmp(word(r, 0), "at") == 0 && strchr(word(r, 1), ':') != NULL) {
        times_read(r, c);
        return;
    }
    const char *unit = strcmp(word(r, 0), "every") == 0 && !plain_number(word(r, 1)) ? word(r, 1)
                       : strcmp(word(r, 0), "every") == 0                            ? word(r, 2)
                                                                                     : word(r, 1);
    c->seconds = 1;
    if (strncmp(unit, "second", 6) == 0) {
        c->seconds = part_read(r, "second");
        if (taken(r, "of minutes") || taken(r, "of minute")) {
            c->minutes = bits_read(r, NULL, 0);
        } else {
            (void)taken(r, "of each minute");
            c->minutes = evenly(1);
        }
    } else {
        c->minutes = part_read(r, "minute");
    }
    c->hours = hours_read(r);
}

/* One phrase about the days of a month; false: there is none. */
static bool day_read(struct reader *r, struct cron *c)
{
    if (taken(r, "days") || taken(r, "day")) {
        c->days |= (uint32_t)bits_read(r, NULL, 0);
    } else if (taken(r, "the last day")) {
        c->days_before_last |= 1;
    } else if (taken(r, "the last weekday (Monday to Friday)")) {
        c->last_weekday = true;
    } else if (taken(r, "the weekday (Monday to Friday) nearest to day")) {
        c->nearest_weekdays |= (uint32_t)1 << strtol(word(r, 0), NULL, 10);
        r->at++;
    } else if (strcmp(word(r, 0), "the") == 0 && strcmp(word(r, 2), "day") == 0) {
        c->days_before_last |= (uint32_t)1 << strtol(word(r, 1), NULL, 10);
        r->at += 3;
        assert_true(taken(r, "before the last"));
    } else {
        return false;
    }
    c->day_restricted = true;
    return true;
}

static bool weekday_read(struct reader *r, struct cron *c)
{
    int weekday = -1;
    if (value_of(word(r, 0), WEEKDAYS, 7) >= 0) {
        c->weekdays |= (uint8_t)bits_read(r, WEEKDAYS, 7);
    } else if (strcmp(word(r, 0), "the") == 0 &&
               (weekday = value_of(word(r, 2), WEEKDAYS, 7)) >= 0) {
        if (strcmp(word(r, 1), "last") == 0) {
            c->last_weekdays |= (uint8_t)(1 << weekday);
        } else {
            c->nth_weekdays[strtol(word(r, 1), NULL, 10) - 1] |= (uint8_t)(1 << weekday);
        }
        r->at += 3;
    } else {
        return false;
    }
    c->weekday_restricted = true;
    return true;
}

static void dates_read(struct reader *r, struct cron *c)
{
    bool either = taken(r, "either");
    while (day_read(r, c)) {
        r->at += is_between(word(r, 0)) && strcmp(word(r, 1), "in") != 0 ? 1 : 0;
    }
    if (c->day_restricted) {
        assert_true(taken(r, "of the month"));
    }
    c->both_days = taken(r, "if it is also");
    assert_true(taken(r, "or") == either);
    while (weekday_read(r, c)) {
        r->at += is_between(word(r, 0)) && strcmp(word(r, 1), "in") != 0 ? 1 : 0;
    }
    (void)taken(r, "of the month");
    assert_true(either == (c->day_restricted && c->weekday_restricted && !c->both_days));
}

static struct cron sentence_read(const char *sentence)
{
    static struct reader r;
    struct cron c = {.months = 0x1ffe};
    reader_open(&r, sentence);
    clock_read(&r, &c);
    if (!taken(&r, "every day") && taken(&r, "on")) {
        dates_read(&r, &c);
    }
    if (strcmp(word(&r, 2), "the") != 0 && taken(&r, ", in")) {
        c.months = (uint16_t)(bits_read(&r, MONTHS, 12) << 1);
    }
    if (taken(&r, ", in the years") || taken(&r, ", in the year")) {
        bool set[256] = {false};
        c.has_years = true;
        list_read(&r, NULL, CRON_YEAR_MIN, set);
        for (int i = 0; i < 256; i++) {
            c.years[i / 64] |= set[i] ? (uint64_t)1 << (i % 64) : 0;
        }
    }
    if (r.at != r.count) {
        fail_msg("\"%s\": what is \"%s\"?", sentence, word(&r, 0));
    }
    return c;
}

static bool says_the_same(const struct cron *a, const struct cron *b)
{
    return a->seconds == b->seconds && a->minutes == b->minutes && a->hours == b->hours &&
           a->months == b->months && a->days == b->days && a->weekdays == b->weekdays &&
           a->days_before_last == b->days_before_last && a->last_weekday == b->last_weekday &&
           a->nearest_weekdays == b->nearest_weekdays && a->last_weekdays == b->last_weekdays &&
           memcmp(a->nth_weekdays, b->nth_weekdays, sizeof a->nth_weekdays) == 0 &&
           a->day_restricted == b->day_restricted &&
           a->weekday_restricted == b->weekday_restricted &&
           (a->both_days == b->both_days || !a->day_restricted || !a->weekday_restricted) &&
           a->has_years == b->has_years &&
           (!a->has_years || memcmp(a->years, b->years, sizeof a->years) == 0);
}

static void check_read_back(const char *text, const struct cron *c)
{
    char sentence[CRON_PLAIN_MAX];
    cron_text_write(c, sentence);
    struct cron back = sentence_read(sentence);
    if (!says_the_same(&back, c)) {
        fail_msg("\"%s\" became \"%s\", which says something else", text, sentence);
    }
}

/* ---- tests ---- */

static void test_the_sentence_says_all_of_the_expression_and_nothing_else(void **state)
{
    (void)state;
    int read = 0;
    for (int i = 0; i < 6000; i++) {
        char text[CRON_TEXT_MAX];
        struct cron c;
        fixture_cron_text(text);
        if (cron_parse(text, &c, NULL) == STATUS_OK) {
            check_read_back(text, &c);
            read++;
        }
    }
    print_message("%d sentences read back\n", read);
    assert_true(read > 3000);
}

static void test_the_longest_sentence_fits(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "1-59/2,0-59/7 1-59/2,0-59/7 1-23/2,0-23/7 L,L-1,L-5,LW,1W,3W,5W,31W,1-31/2,1-31/7 "
        "1-12/2,3 "
        "+0#1,1#2,2#3,3#4,4#5,5L,6L,0,2,4 1970-2199/2,1970-2199/7,1970-2199/11",
        "* * * * * *",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct cron c = fixture_cron_parse(texts[i]);
        char sentence[CRON_PLAIN_MAX];
        cron_text_write(&c, sentence);
        assert_true(strlen(sentence) < CRON_PLAIN_MAX - 1000);
        check_read_back(texts[i], &c);
    }
}

static void test_common_expressions_read_as_people_say_them(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"30 6 * * 1-5", "at 06:30 on Monday to Friday"},
        {"0 0 * * *", "at 00:00 every day"},
        {"@hourly", "at minute 0 of each hour"},
        {"@weekly", "at 00:00 on Sunday"},
        {"@yearly", "at 00:00 on day 1 of the month, in January"},
        {"* * * * *", "every minute"},
        {"*/15 * * * *", "every 15 minutes"},
        {"*/15 8-18 * * MON-FRI", "every 15 minutes from 08:00 to 18:59 on Monday to Friday"},
        {"*/25 * * * *", "at minutes 0, 25 and 50 of each hour"},
        {"0,30 8-18 * * *", "every 30 minutes from 08:00 to 18:59"},
        {"5 */2 * * *", "at minute 5 of hours 0 to 22 in steps of 2"},
        {"0 6,18 1,15 * *", "at 06:00 and 18:00 on days 1 and 15 of the month"},
        {"0 18 LW * *", "at 18:00 on the last weekday (Monday to Friday) of the month"},
        {"0 12 15W * *",
         "at 12:00 on the weekday (Monday to Friday) nearest to day 15 of the month"},
        {"0 0 L-3 * *", "at 00:00 on the 3rd day before the last of the month"},
        {"0 8 * * MON#1", "at 08:00 on the 1st Monday of the month"},
        {"0 8 * * FRI#L", "at 08:00 on the last Friday of the month"},
        {"0 8 * * 5-7", "at 08:00 on Friday to Sunday"},
        {"0 0 13 * 5", "at 00:00 on either day 13 of the month or Friday"},
        {"0 0 13 * +5", "at 00:00 on day 13 of the month if it is also Friday"},
        {"0 0 1-7 * +1,2,5",
         "at 00:00 on days 1 to 7 of the month if it is also Monday, Tuesday or "
         "Friday"},
        {"0 0 1 JAN,APR,JUL,OCT *",
         "at 00:00 on day 1 of the month, in January, April, July and October"},
        {"30 0 0 1 1 * 2027-2033",
         "at 00:00:30 on day 1 of the month, in January, in the years 2027 "
         "to 2033"},
        {"*/10 * * * * *", "every 10 seconds of each minute"},
        {"* * * * * *", "every second"},
        {"*/10 0 9-17 * * *", "every 10 seconds of minute 0 of each hour from 09:00 to 17:59"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cron c = fixture_cron_parse(cases[i][0]);
        char sentence[CRON_PLAIN_MAX];
        cron_text_write(&c, sentence);
        assert_string_equal(sentence, cases[i][1]);
        check_read_back(cases[i][0], &c);
    }
}

static void test_policies_are_told_by_the_class_of_the_job_or_as_chosen(void **state)
{
    (void)state;
    char sentence[CRON_PLAIN_MAX];
    struct cron c = fixture_cron_parse("30 2 * * *");
    cron_text_write_policies(&c, sentence);
    assert_string_equal(sentence,
                        "a time that the clock skips runs once, at the first instant after "
                        "the gap; one that it shows twice runs the first time only");
    c = fixture_cron_parse("*/15 2 * * *");
    cron_text_write_policies(&c, sentence);
    assert_string_equal(sentence,
                        "a time that the clock skips does not run; one that it shows twice "
                        "runs both times");
    cron_set_policies(&c, DST_GAP_SHIFT, DST_OVERLAP_SECOND);
    cron_text_write_policies(&c, sentence);
    assert_string_equal(sentence,
                        "a time that the clock skips runs later by the length of the gap; "
                        "one that it shows twice runs the second time only");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_sentence_says_all_of_the_expression_and_nothing_else),
        cmocka_unit_test(test_the_longest_sentence_fits),
        cmocka_unit_test(test_common_expressions_read_as_people_say_them),
        cmocka_unit_test(test_policies_are_told_by_the_class_of_the_job_or_as_chosen),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
