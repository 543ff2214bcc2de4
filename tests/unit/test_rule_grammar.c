/* Texts and notes over the whole grammar: none is empty or broken, none is cut, and rules that
 * differ do not read alike. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_csv.h"
#include "fixture_rrule.h"
#include "fixture_zone.h"
#include "rule_notes.h"

#define NOW "2030-01-01T00:00:00Z"

static const struct rule_around ALONE = {.bounds = {{INT64_MIN}, {INT64_MIN}}};

static void check_form(const struct rule *r)
{
    static char text[RULE_PLAIN_MAX];
    struct notes n;
    assert_true(rule_sentence_write(r, &ALONE, SENTENCE_RULE, fixture_instant(NOW), text));
    assert_true(strlen(text) < RULE_PLAIN_MAX - 1000);
    assert_null(strpbrk(text, "\n\r\t"));
    rule_notes_make(r, &ALONE, fixture_instant(NOW), &n);
    for (int i = 0; i < n.count; i++) {
        assert_true(n.text[i][0] != '\0' && strlen(n.text[i]) < NOTE_TEXT_MAX - 1);
        assert_null(strpbrk(n.text[i], "\n\r\t"));
    }
}

static void test_every_golden_rule_has_a_text_of_one_line(void **state)
{
    (void)state;
    static struct csv_row row;
    int told = 0;
    FILE *f = fixture_cases_open("rrule_cases.csv");
    assert_true(fixture_csv_read(f, &row));
    while (fixture_csv_read(f, &row)) {
        char start[32];
        const char *d = row.columns[1];
        struct date_time t;
        (void)snprintf(start, sizeof start, "%.4s-%.2s-%.2sT%.2s:%.2s:%.2s", d, d + 4, d + 6, d + 9,
                       d + 11, d + 13);
        assert_int_equal(date_time_parse(start, &t, NULL), STATUS_OK);
        const struct rule_source source = {.kind = "rrule",
                                           .text = row.columns[2],
                                           .zone = "Europe/Berlin",
                                           .has_start = true,
                                           .start = t.local};
        struct rule r;
        if (rule_parse(&source, fixture_zones(), &r, NULL) == STATUS_OK) {
            check_form(&r);
            told++;
        }
    }
    assert_int_equal(fclose(f), 0);
    f = fixture_cases_open("cron_cases.csv");
    assert_true(fixture_csv_read(f, &row));
    while (fixture_csv_read(f, &row)) {
        const struct rule_source source = {
            .kind = "cron",
            .text = row.columns[1],
            .dialect = strcmp(row.columns[2], "quartz6") == 0 ? "quartz" : "std",
            .zone = row.columns[3]};
        struct rule r;
        if (rule_parse(&source, fixture_zones(), &r, NULL) == STATUS_OK) {
            check_form(&r);
            told++;
        }
    }
    assert_int_equal(fclose(f), 0);
    assert_true(told > 140);
}

#define COMPARED 40

static bool firings_differ(const struct rule *a, const struct rule *b)
{
    utc_us at = fixture_instant("2029-12-01T00:00:00Z");
    for (int i = 0; i < COMPARED; i++) {
        struct firing x = rule_next(a, at);
        struct firing y = rule_next(b, at);
        if (x.found != y.found || x.at.us != y.at.us) {
            return true;
        }
        if (!x.found) {
            return false;
        }
        at = x.at;
    }
    return false;
}

static bool rule_random(const struct slow_rule *slow, struct rule *ret_rule)
{
    static char text[SLOW_TEXT_MAX];
    slow_rule_write(slow, text);
    const struct rule_source source = {
        .kind = "rrule", .text = text, .zone = "UTC", .has_start = true, .start = {slow->start}};
    return rule_parse(&source, fixture_zones(), ret_rule, NULL) == STATUS_OK;
}

/* One part of a rule is put into another's place. */
static void part_swap(struct slow_rule *r, const struct slow_rule *other)
{
    struct slow_list *const to[] = {&r->months, &r->weeks,   &r->yeardays, &r->days,
                                    &r->hours,  &r->minutes, &r->seconds,  &r->positions};
    const struct slow_list *const from[] = {&other->months,  &other->weeks,    &other->yeardays,
                                            &other->days,    &other->hours,    &other->minutes,
                                            &other->seconds, &other->positions};
    int which = fixture_random_in(0, 12);
    if (which < 8) {
        *to[which] = *from[which];
    } else if (which == 8) {
        r->weekdays = other->weekdays;
        r->ordinals = other->ordinals;
    } else if (which == 9) {
        r->interval = other->interval;
    } else if (which == 10) {
        r->week_start = other->week_start;
    } else if (which == 11) {
        r->frequency = other->frequency;
    } else {
        r->start = other->start;
    }
}

static void test_rules_that_differ_in_a_firing_differ_in_their_text(void **state)
{
    (void)state;
    static char texts[2][RULE_PLAIN_MAX];
    int64_t near = utc_seconds(fixture_instant(NOW));
    int different = 0;
    for (int i = 0; i < 1200; i++) {
        struct slow_rule first;
        struct slow_rule other;
        struct rule a;
        struct rule b;
        slow_rule_random(&first, near);
        slow_rule_random(&other, near);
        struct slow_rule second = first;
        part_swap(&second, &other);
        if (!rule_random(&first, &a) || !rule_random(&second, &b)) {
            continue;
        }
        check_form(&a);
        assert_true(rule_sentence_write(&a, &ALONE, SENTENCE_RULE, UTC_PAST, texts[0]));
        assert_true(rule_sentence_write(&b, &ALONE, SENTENCE_RULE, UTC_PAST, texts[1]));
        if (firings_differ(&a, &b)) {
            different++;
            if (strcmp(texts[0], texts[1]) == 0) {
                char one[SLOW_TEXT_MAX];
                char two[SLOW_TEXT_MAX];
                slow_rule_write(&first, one);
                slow_rule_write(&second, two);
                fail_msg("%s and %s both are \"%s\"", one, two, texts[0]);
            }
        }
    }
    print_message("%d pairs of rules with different firings\n", different);
    assert_true(different > 200);
}

static void test_the_longest_text_is_not_cut(void **state)
{
    (void)state;
    static char text[RRULE_TEXT_MAX];
    static char words[RULE_PLAIN_MAX];
    int used = snprintf(text, sizeof text, "FREQ=YEARLY;BYMONTHDAY=1,3,5,-1,-3;BYSETPOS=1");
    for (int n = 3; n <= 365; n += 2) {
        used += snprintf(text + used, sizeof text - (size_t)used, ",%d,-%d", n, n);
    }
    used += snprintf(text + used, sizeof text - (size_t)used, ";BYYEARDAY=1");
    for (int n = 3; n <= 365; n += 2) {
        used += snprintf(text + used, sizeof text - (size_t)used, ",%d,-%d", n, n);
    }
    used += snprintf(text + used, sizeof text - (size_t)used, ";BYDAY=MO,TU,WE,TH,FR,SA,SU");
    assert_true(used < RRULE_TEXT_MAX);
    struct rule r = fixture_recurrence(text, "Europe/Berlin", "2030-01-07T08:00:00");
    assert_true(rule_sentence_write(&r, &ALONE, SENTENCE_RULE, UTC_PAST, words));
    assert_true(strlen(words) < RULE_PLAIN_MAX - 4000);
    assert_non_null(strstr(words, ", by the clock of Europe/Berlin"));
    struct rule long_nth = fixture_recurrence(
        "FREQ=YEARLY;BYDAY=1MO,3MO,5MO,7MO,9MO,-1MO,-3MO,-5MO,-53SU,1SU,3SU,5SU,7SU,-1TU,-9TU",
        "Europe/Berlin", "2030-01-07T08:00:00");
    check_form(&long_nth);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_golden_rule_has_a_text_of_one_line),
        cmocka_unit_test(test_rules_that_differ_in_a_firing_differ_in_their_text),
        cmocka_unit_test(test_the_longest_text_is_not_cut),
    };
    return cmocka_run_group_tests(tests, fixture_zones_open, fixture_zones_close);
}
