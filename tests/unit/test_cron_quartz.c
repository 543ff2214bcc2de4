/* The dialect quartz: what a text becomes in std, what is refused, and that both mean the same by
 * an evaluator of Quartz's own rules, which reads the text value by value. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "cron_quartz.h"
#include "fixture_zone.h"

/* ---- the evaluator: fields as Quartz fills its sets ---- */

enum {
    SECOND,
    MINUTE,
    HOUR,
    DAY,
    MONTH,
    WEEKDAY,
    YEAR,
};

static const int LOW[] = {0, 0, 0, 1, 1, 1, 1970};
static const int HIGH[] = {59, 59, 23, 31, 12, 7, 2199};
static const char *const MONTHS[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                     "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
static const char *const WEEKDAYS[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

/* A number or a name at *p. */
static int value_read(const char **p, int field)
{
    const char *const *names = field == MONTH ? MONTHS : WEEKDAYS;
    for (int i = 0; i < (field == MONTH ? 12 : field == WEEKDAY ? 7 : 0); i++) {
        if (strncasecmp(*p, names[i], 3) == 0) {
            *p += 3;
            return i + 1;
        }
    }
    char *end = NULL;
    int value = (int)strtol(*p, &end, 10);
    *p = end;
    return value;
}

/* Is `value` in the set that one plain item names: "*", "*"/n, /n, v, v/n, a-b, a-b/n? */
static bool item_has(const char *p, int field, int value)
{
    int low = LOW[field];
    int high = HIGH[field];
    int size = high - low + 1;
    if (*p == '*') {
        p++;
    } else if (*p != '/') {
        low = value_read(&p, field);
        if (*p == '-') {
            p++;
            high = value_read(&p, field);
        } else {
            high = *p == '/' ? high : low;
        }
    }
    int step = *p == '/' ? (int)strtol(p + 1, NULL, 10) : 1;
    high += high < low ? size : 0;
    for (int v = low; v <= high; v += step) {
        if (value == (v > HIGH[field] ? v - size : v)) {
            return true;
        }
    }
    return false;
}

static bool list_has(const char *text, int field, int value)
{
    for (const char *p = text;; p++) {
        char item[64];
        size_t n = strcspn(p, ",");
        assert_true(n < sizeof item);
        memcpy(item, p, n);
        item[n] = '\0';
        if (item_has(item, field, value)) {
            return true;
        }
        p += n;
        if (*p == '\0') {
            return false;
        }
    }
}

/* Monday to Friday nearest to a day, within its month. */
static bool is_nearest(int wanted, const struct civil_date *d, int last)
{
    int best = 0;
    for (int day = 1; day <= last && wanted <= last; day++) {
        int w = civil_weekday(civil_days_of(d->year, d->month, day));
        if (w != 0 && w != 6 && (best == 0 || abs(day - wanted) < abs(best - wanted))) {
            best = day;
        }
    }
    return best == d->day;
}

static bool day_has(const char *text, const struct civil_date *d)
{
    int last = civil_days_in_month(d->year, d->month);
    size_t n = strlen(text);
    if (strcmp(text, "L") == 0) {
        return d->day == last;
    }
    if (strcmp(text, "LW") == 0) {
        return is_nearest(last, d, last);
    }
    if (text[0] == 'L') {
        return d->day == last - (int)strtol(text + 2, NULL, 10);
    }
    if (text[n - 1] == 'W') {
        return is_nearest((int)strtol(text, NULL, 10), d, last);
    }
    return list_has(text, DAY, d->day);
}

static bool weekday_has(const char *text, const struct civil_date *d)
{
    int weekday = civil_weekday(civil_days_of(d->year, d->month, d->day)) + 1; /* 1 = Sunday */
    int last = civil_days_in_month(d->year, d->month);
    const char *p = text;
    if (strcmp(text, "L") == 0) {
        return weekday == 7;
    }
    if (strchr(text, '#') != NULL) {
        return value_read(&p, WEEKDAY) == weekday && (d->day - 1) / 7 + 1 == p[1] - '0';
    }
    if (text[strlen(text) - 1] == 'L') {
        return value_read(&p, WEEKDAY) == weekday && d->day + 7 > last;
    }
    return list_has(text, WEEKDAY, weekday);
}

static bool date_has(char *const words[7], int count, int64_t day)
{
    struct civil_date d = civil_date_of(day);
    return list_has(words[MONTH], MONTH, d.month) &&
           (count < 7 || list_has(words[YEAR], YEAR, d.year)) &&
           (strcmp(words[DAY], "?") == 0 || day_has(words[DAY], &d)) &&
           (strcmp(words[WEEKDAY], "?") == 0 || weekday_has(words[WEEKDAY], &d));
}

/* ---- random texts ---- */

static void put(char *text, const char *format, ...) PRINTF_LIKE(2, 3);

static void put(char *text, const char *format, ...)
{
    va_list arguments;
    size_t used = strlen(text);
    va_start(arguments, format);
    assert_true(vsnprintf(text + used, CRON_TEXT_MAX - used, format, arguments) <
                (int)(CRON_TEXT_MAX - used));
    va_end(arguments);
}

static void put_item(char *text, int field)
{
    int low = LOW[field];
    int high = HIGH[field] < 2100 ? HIGH[field] : 2100;
    int a = fixture_random_in(low, high);
    int b = field == YEAR ? fixture_random_in(a, high) : fixture_random_in(low, high);
    int step = fixture_random_in(1, 7);
    const char *const *names = field == MONTH ? MONTHS : field == WEEKDAY ? WEEKDAYS : NULL;
    switch (fixture_random_in(0, 6)) {
    case 0:
        put(text, "%d/%d", a, step);
        return;
    case 1:
        put(text, "%d-%d/%d", a, b, step);
        return;
    case 2:
        put(text, "%d-%d", a, b);
        return;
    case 3:
        if (names != NULL) {
            put(text, "%s-%s", names[a - 1], names[b - 1]);
            return;
        }
        put(text, "/%d", step);
        return;
    case 4:
        if (names != NULL) {
            put(text, "%s", names[a - 1]);
            return;
        }
        put(text, "%d", a);
        return;
    default:
        put(text, "%d", a);
        return;
    }
}

static void put_field(char *text, int field)
{
    switch (fixture_random_in(0, 5)) {
    case 0:
        put(text, "*");
        return;
    case 1:
        put(text, "*/%d", fixture_random_in(1, 7));
        return;
    default:
        break;
    }
    for (int items = fixture_random_in(1, 3); items > 0; items--) {
        put_item(text, field);
        put(text, "%s", items > 1 ? "," : "");
    }
}

static void put_special_day(char *text)
{
    switch (fixture_random_in(0, 7)) {
    case 0:
        put(text, "L");
        return;
    case 1:
        put(text, "L-%d", fixture_random_in(1, 30));
        return;
    case 2:
        put(text, "LW");
        return;
    case 3:
        put(text, "%dW", fixture_random_in(1, 31));
        return;
    default:
        put_field(text, DAY);
        return;
    }
}

static void put_special_weekday(char *text)
{
    int d = fixture_random_in(1, 7);
    switch (fixture_random_in(0, 7)) {
    case 0:
        put(text, "L");
        return;
    case 1:
        put(text, "%dL", d);
        return;
    case 2:
        put(text, "%sL", WEEKDAYS[d - 1]);
        return;
    case 3:
        put(text, "%d#%d", d, fixture_random_in(1, 5));
        return;
    case 4:
        put(text, "%s#%d", WEEKDAYS[d - 1], fixture_random_in(1, 5));
        return;
    default:
        put_field(text, WEEKDAY);
        return;
    }
}

static void quartz_make(char text[CRON_TEXT_MAX])
{
    text[0] = '\0';
    bool by_day = fixture_random_in(0, 1) == 0;
    bool year = fixture_random_in(0, 3) == 0;
    if (fixture_random_in(0, 1) == 0) {
        put(text, "0");
    } else {
        put_field(text, SECOND);
    }
    put(text, " ");
    put_field(text, MINUTE);
    put(text, " ");
    put_field(text, HOUR);
    put(text, " ");
    if (by_day) {
        put_special_day(text);
    } else {
        put(text, "?");
    }
    put(text, " ");
    put_field(text, MONTH);
    put(text, " ");
    if (by_day) {
        put(text, "?");
    } else {
        put_special_weekday(text);
    }
    if (year) {
        put(text, " ");
        put_field(text, YEAR);
    }
}

/* ---- tests ---- */

static int words_of(char *text, char *words[7])
{
    int count = 0;
    char *rest = NULL;
    for (char *w = strtok_r(text, " ", &rest); w != NULL && count < 7;
         w = strtok_r(NULL, " ", &rest)) {
        words[count++] = w;
    }
    return count;
}

/* Times of day by the compiled sets, dates by walking through some years. */
static void check_same(const char *quartz, const char *std)
{
    char copy[CRON_TEXT_MAX];
    char *words[7];
    struct cron c;
    struct error err = {.text = ""};
    if (cron_parse(std, &c, &err) != STATUS_OK) {
        fail_msg("\"%s\" became \"%s\": %s", quartz, std, err.text);
    }
    memcpy(copy, quartz, strlen(quartz) + 1);
    int count = words_of(copy, words);
    for (int v = 0; v < 60; v++) {
        if ((c.seconds >> v & 1) != list_has(words[SECOND], SECOND, v) ||
            (c.minutes >> v & 1) != list_has(words[MINUTE], MINUTE, v) ||
            (v < 24 && (c.hours >> v & 1) != list_has(words[HOUR], HOUR, v))) {
            fail_msg("\"%s\" became \"%s\", which differs at %d", quartz, std, v);
        }
    }
    int64_t day = civil_days_of(fixture_random_in(1970, 2110), fixture_random_in(1, 12), 1);
    for (int64_t end = day + 500; day < end; day++) {
        struct local_time t = {day * SECONDS_A_DAY};
        bool here = cron_nominal_from(&c, t, &t) && t.s < (day + 1) * SECONDS_A_DAY;
        if (here != date_has(words, count, day)) {
            char date[DATE_TEXT_MAX];
            date_format(day, date);
            fail_msg("\"%s\" became \"%s\", which differs on %s", quartz, std, date);
        }
    }
}

static void test_the_std_text_means_what_quartz_means(void **state)
{
    (void)state;
    int same = 0;
    for (int i = 0; i < 1500; i++) {
        char quartz[CRON_TEXT_MAX];
        char std[CRON_TEXT_MAX];
        struct error err = {.text = ""};
        quartz_make(quartz);
        enum status s = cron_quartz_to_std(quartz, std, &err);
        if (s == STATUS_OK) {
            check_same(quartz, std);
            same++;
        } else if (strstr(err.text, "never fires") == NULL &&
                   strstr(err.text, "longer than") == NULL) {
            fail_msg("\"%s\" was refused: %s", quartz, err.text);
        }
    }
    print_message("%d texts mean the same in both dialects\n", same);
    assert_true(same > 1200);
}

static void test_texts_become_what_a_person_would_write(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"0 0 12 * * ?", "0 12 * * *"},
        {"0 15 10 ? * *", "15 10 * * *"},
        {"0 15 10 * * ? 2025", "0 15 10 * * * 2025"},
        {"0 15 10 * * ? *", "15 10 * * *"},
        {"0 0/5 14 * * ?", "0-59/5 14 * * *"},
        {"0 */5 14 * * ?", "*/5 14 * * *"},
        {"0 /5 14 * * ?", "*/5 14 * * *"},
        {"30 0/5 14,18 * * ?", "30 0-59/5 14,18 * * *"},
        {"0 10,44 14 ? 3 WED", "10,44 14 * 3 WED"},
        {"0 15 10 ? * MON-FRI", "15 10 * * MON-FRI"},
        {"0 15 10 ? * 2-6", "15 10 * * 1-5"},
        {"0 15 10 ? * FRI-MON", "15 10 * * 5-6,0-1"},
        {"0 15 10 ? * 6-2", "15 10 * * 5-6,0-1"},
        {"0 15 10 ? * 7-1", "15 10 * * 6,0"},
        {"0 0 22-2 * * ?", "0 22-23,0-2 * * *"},
        {"0 0 22-2/2 * * ?", "0 22,0,2 * * *"},
        {"0 0 23-1/2 * * ?", "0 23,1 * * *"},
        {"0 0 0 30-2 * ?", "0 0 30-31,1-2 * *"},
        {"0 0 0 1 NOV-FEB ?", "0 0 1 11-12,1-2 *"},
        {"0 15 10 L * ?", "15 10 L * *"},
        {"0 15 10 L-2 * ?", "15 10 L-2 * *"},
        {"0 15 10 LW * ?", "15 10 LW * *"},
        {"0 15 10 15W * ?", "15 10 15W * *"},
        {"0 15 10 ? * 6L", "15 10 * * 5L"},
        {"0 15 10 ? * friL", "15 10 * * FRIL"},
        {"0 15 10 ? * 6#3", "15 10 * * 5#3"},
        {"0 15 10 ? * MON#1", "15 10 * * MON#1"},
        {"0 15 10 ? * L", "15 10 * * 6"},
        {"0 15 10 ? * 1,7", "15 10 * * 0,6"},
        {"0 0 12 1/5 * ?", "0 12 1-31/5 * *"},
        {"0 33 20 2 1/2 ?", "33 20 2 1-12/2 *"},
        {"0 0 12 ? * 2/2", "0 12 * * 1-6/2"},
        {"0 0 12 ? * 7/3", "0 12 * * 6"},
        {"0 0 23/5 * * ?", "0 23 * * *"},
        {"0 0 0 1 1 ? 2025/2", "0 0 0 1 1 * 2025-2199/2"},
        {"0-59/30 * * * * ?", "0-59/30 * * * * *"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char std[CRON_TEXT_MAX];
        struct error err = {.text = ""};
        if (cron_quartz_to_std(cases[i][0], std, &err) != STATUS_OK) {
            fail_msg("\"%s\": %s", cases[i][0], err.text);
        }
        assert_string_equal(std, cases[i][1]);
        char upper[CRON_TEXT_MAX];
        (void)snprintf(upper, sizeof upper, "%s", cases[i][0]);
        for (char *p = upper; *p != '\0'; p++) {
            *p = *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
        }
        check_same(upper, std);
    }
}

struct refusal {
    const char *text, *why;
};

/* table: exempt from the length limit */
static const struct refusal REFUSALS[] = {
    {"", "0 fields; write 6"},
    {"0 0 12 * *", "dialect std"},
    {"@daily", "dialect std"},
    {"0 0 12 * * ? 2025 x", "at least 8 fields"},
    {"0 0 12 * * *", "exactly one of them is \"?\"; write ? for the day of month"},
    {"0 0 12 * * MON", "write ? for the day of month"},
    {"0 0 12 1 * *", "write ? for the day of week"},
    {"0 0 12 1 * MON", "the one that does not matter"},
    {"0 0 12 ? * ?", "write ? for one"},
    {"0 0 ? * * ?", "? may only stand alone in a day field"},
    {"0 0 12 1,? * *", "the day of week"},
    {"0 0 12 1,? * ?", "? may only stand alone"},
    {"60 0 12 * * ?", "second \"60\": the value is out of range; write 0 to 59"},
    {"0 0 24 * * ?", "write 0 to 23"},
    {"0 0 12 0 * ?", "write 1 to 31"},
    {"0 0 12 ? * 0", "write 1 to 7 (1 is Sunday)"},
    {"0 0 12 ? * 8", "write 1 to 7 (1 is Sunday)"},
    {"0 0 12 ? * 0L", "write 1 to 7"},
    {"0 0 12 ? * 0#1", "write 1 to 7"},
    {"0 */60 12 * * ?", "the step is out of range; write /1 to /59"},
    {"0 0/0 12 * * ?", "write /1 to /59"},
    {"0 0/ 12 * * ?", "write /1 to /59"},
    {"0 0 */24 * * ?", "write /1 to /23"},
    {"0 0 12 ? * MON-FRI/2", "ignores a step"},
    {"0 0 12 ? * MON/2", "ignores a step"},
    {"0 0 12 ? * MON-6", "a name and a number"},
    {"0 0 12 ? * MONDAY", "write \"MON\""},
    {"0 0 12 ? JUNE MON", "write \"JUN\""},
    {"0 0 12 ? XYZ MON", "JAN to DEC"},
    {"0 JAN 12 ? * MON", "unknown word; write 0 to 59"},
    {"0 0 12 ? * MON#6", "6#1 to 6#5"},
    {"0 0 12 ? * 6#", "6#1 to 6#5"},
    {"0 0 12 ? * 6#3,2", "the only item"},
    {"0 0 12 ? * 6#3,2#1", "the only item"},
    {"0 0 12 ? * 2,6L", "the only item"},
    {"0 0 12 1W,15W * ?", "the only item"},
    {"0 0 12 L,15 * ?", "the only item"},
    {"0 0 12 L-3W * ?", "no form here"},
    {"0 0 12 L-31 * ?", "L-1 to L-30"},
    {"0 0 12 32W * ?", "1W to 31W"},
    {"0 0 12 1-15W * ?", "unexpected text"},
    {"0 0 12 5L * ?", "unexpected text"},
    {"0 L 12 * * ?", "unknown word"},
    {"0 1,,2 12 * * ?", "beside a comma"},
    {"0 1- 12 * * ?", "a value is missing"},
    {"0 0 0 1 1 ? 2030-2027", "the earlier year first"},
    {"0 0 0 1 1 ? 2200", "1970 to 2199"},
    {"0 0 0 30 2 ?", "never fires"},
    {"0 0 0 1 * ?\n", "byte 12"},
};

static void test_what_has_no_sure_meaning_is_refused_by_name(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof REFUSALS / sizeof REFUSALS[0]; i++) {
        char std[CRON_TEXT_MAX] = "untouched";
        struct error err = {.text = ""};
        enum status s = cron_quartz_to_std(REFUSALS[i].text, std, &err);
        if (s != STATUS_INVALID || strstr(err.text, REFUSALS[i].why) == NULL ||
            strchr(err.text, '\n') != NULL) {
            fail_msg("\"%s\": %s \"%s\", wanted \"%s\"", REFUSALS[i].text, status_name(s), err.text,
                     REFUSALS[i].why);
        }
        assert_string_equal(std, "untouched");
    }
    char text[CRON_TEXT_MAX + 8];
    memset(text, ' ', sizeof text);
    memcpy(text, "0 0 0 * * ?", 11);
    text[sizeof text - 1] = '\0';
    char std[CRON_TEXT_MAX];
    struct error err = {.text = ""};
    assert_int_equal(cron_quartz_to_std(text, std, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "longer than 255 bytes"));
}

static void test_a_text_that_grows_too_long_is_refused(void **state)
{
    (void)state;
    char text[CRON_TEXT_MAX] = "0 1-0/2";
    for (int i = 0; i < 40; i++) {
        put(text, ",59-0");
    }
    put(text, " 0 * * ?");
    char std[CRON_TEXT_MAX];
    struct error err = {.text = ""};
    enum status s = cron_quartz_to_std(text, std, &err);
    assert_int_equal(s, STATUS_INVALID);
    assert_non_null(strstr(err.text, "becomes longer than 255 bytes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_std_text_means_what_quartz_means),
        cmocka_unit_test(test_texts_become_what_a_person_would_write),
        cmocka_unit_test(test_what_has_no_sure_meaning_is_refused_by_name),
        cmocka_unit_test(test_a_text_that_grows_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
