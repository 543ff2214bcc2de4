/* The golden cases, as they are: tests/cases/cron_cases.csv and cron_invalid.csv, through the
 * command that people use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fixture_csv.h"
#include "next_command.h"

#define OUTPUT_MAX 4096

struct answer {
    int code;
    char out[OUTPUT_MAX];
    char err[OUTPUT_MAX];
};

static struct answer ask(const struct next_cron_arguments *arguments)
{
    struct answer a = {.code = -1};
    FILE *out = fmemopen(a.out, sizeof a.out, "w");
    FILE *err = fmemopen(a.err, sizeof a.err, "w");
    assert_non_null(out);
    assert_non_null(err);
    a.code = next_command_cron(arguments, out, err);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(fclose(err), 0);
    return a;
}

/* tests/cases/README.md says what the policy names stand for. */
static bool policy_set(const char *policy, struct next_cron_arguments *a)
{
    static const struct {
        const char *name, *gap, *overlap;
    } policies[] = {
        {"default", "auto", "auto"},       {"literal", "skip", "both"},
        {"shift_first", "shift", "first"}, {"skip_first", "skip", "first"},
        {"skip_second", "skip", "second"},
    };
    for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
        if (strcmp(policy, policies[i].name) == 0) {
            a->dst_gap = policies[i].gap;
            a->dst_overlap = policies[i].overlap;
            return true;
        }
    }
    return false;
}

/* "a;b;c" against "a\nb\nc\n", no line more or less: where a row lists fewer than five, fewer
 * exist. */
static bool lists_agree(const char *expected, const char *printed)
{
    for (;;) {
        size_t n = strcspn(expected, ";");
        if (strcspn(printed, "\n") != n || memcmp(expected, printed, n) != 0 ||
            printed[n] != '\n') {
            return false;
        }
        if (expected[n] == '\0') {
            return printed[n + 1] == '\0';
        }
        expected += n + 1;
        printed += n + 1;
    }
}

static bool row_agrees(struct csv_row *r, struct answer *ret_answer)
{
    static const char *const dialects[][2] = {
        {"std5", "std"}, {"std6", "std"}, {"std7", "std"}, {"quartz6", "quartz"}};
    struct next_cron_arguments a = {.cron = r->columns[1], .time_zone = r->columns[3]};
    const char *expected = r->columns[5];
    for (size_t i = 0; i < sizeof dialects / sizeof dialects[0]; i++) {
        a.dialect = strcmp(r->columns[2], dialects[i][0]) == 0 ? dialects[i][1] : a.dialect;
    }
    assert_non_null(a.dialect);
    a.after = r->columns[4];
    a.count = "5";
    assert_true(policy_set(r->columns[8], &a));
    *ret_answer = ask(&a);
    if (strcmp(expected, "NEVER") == 0) {
        /* A date that no calendar has is refused; one that is over just does not come. */
        bool refused = ret_answer->code == 2 && fixture_is_one_line(ret_answer->err) &&
                       strstr(ret_answer->err, "never fires") != NULL;
        bool none = ret_answer->code == 0 && ret_answer->err[0] == '\0';
        return ret_answer->out[0] == '\0' && (refused || none);
    }
    return ret_answer->code == 0 && ret_answer->err[0] == '\0' &&
           lists_agree(expected, ret_answer->out);
}

static void test_every_golden_case_gives_the_instants_it_lists(void **state)
{
    (void)state;
    FILE *f = fixture_cases_open("cron_cases.csv");
    static struct csv_row r;
    int agree = 0;
    int differ = 0;
    assert_true(fixture_csv_read(f, &r));
    assert_string_equal(r.columns[5], "expected_next_list");
    assert_string_equal(r.columns[8], "policy");
    while (fixture_csv_read(f, &r)) {
        assert_int_equal(r.count, 9);
        struct answer a;
        if (row_agrees(&r, &a)) {
            agree++;
            continue;
        }
        print_error("%s \"%s\" in %s (%s): wanted %s, code %d, got\n%s%s", r.columns[0],
                    r.columns[1], r.columns[3], r.columns[8], r.columns[5], a.code, a.out, a.err);
        differ++;
    }
    assert_int_equal(fclose(f), 0);
    print_message("%d rows agree, %d differ\n", agree, differ);
    assert_int_equal(differ, 0);
    assert_true(agree >= 123);
}

static void test_every_invalid_expression_is_refused_in_one_line(void **state)
{
    (void)state;
    FILE *f = fixture_cases_open("cron_invalid.csv");
    static struct csv_row r;
    int refused = 0;
    assert_true(fixture_csv_read(f, &r));
    assert_string_equal(r.columns[0], "expression");
    while (fixture_csv_read(f, &r)) {
        struct next_cron_arguments arguments = {
            .cron = r.columns[0], .time_zone = "UTC", .after = "2026-01-01T00:00:00Z"};
        struct answer a = ask(&arguments);
        if (a.code != 2 || a.out[0] != '\0' || !fixture_is_one_line(a.err)) {
            fail_msg("\"%s\": code %d, out \"%s\", err \"%s\"", r.columns[0], a.code, a.out, a.err);
        }
        /* A remedy, not only a verdict. */
        if (strstr(a.err, "write") == NULL) {
            fail_msg("\"%s\": no remedy in \"%s\"", r.columns[0], a.err);
        }
        refused++;
    }
    assert_int_equal(fclose(f), 0);
    print_message("%d rows refused\n", refused);
    assert_true(refused >= 25);
}

static void test_the_command_refuses_each_bad_argument_in_one_line(void **state)
{
    (void)state;
    const struct next_cron_arguments good = {
        .cron = "0 6 * * *", .time_zone = "UTC", .after = "2026-01-01T00:00:00Z"};
    struct next_cron_arguments bad[11];
    const char *whys[11];
    for (size_t i = 0; i < 11; i++) {
        bad[i] = good;
    }
    bad[0].cron = NULL, whys[0] = "--cron";
    bad[1].time_zone = NULL, whys[1] = "--time-zone";
    bad[2].after = NULL, whys[2] = "--after";
    bad[3].time_zone = "europe/berlin", whys[3] = "Europe/Berlin";
    bad[4].after = "2026-01-01", whys[4] = "--after";
    bad[5].count = "0", whys[5] = "--count";
    bad[6].count = "5x", whys[6] = "--count";
    bad[7].dialect = "jenkins", whys[7] = "std or quartz";
    bad[8].dst_gap = "sometimes", whys[8] = "--dst-gap";
    bad[9].dst_overlap = "twice", whys[9] = "--dst-overlap";
    bad[10].cron = "0 6 * *\n*", whys[10] = "byte";
    for (size_t i = 0; i < 11; i++) {
        struct answer a = ask(&bad[i]);
        if (a.code != 2 || a.out[0] != '\0' || !fixture_is_one_line(a.err) ||
            strstr(a.err, whys[i]) == NULL) {
            fail_msg("%s: code %d, out \"%s\", err \"%s\"", whys[i], a.code, a.out, a.err);
        }
    }
}

static void test_the_command_prints_local_time_with_offset_or_utc_with_z(void **state)
{
    (void)state;
    struct next_cron_arguments a = {
        .cron = "0 2 * * *", .time_zone = "America/New_York", .after = "2026-03-07T07:00:00Z"};
    assert_string_equal(ask(&a).out, "2026-03-08T03:00:00-04:00\n");
    a.utc = true;
    a.count = "2";
    assert_string_equal(ask(&a).out, "2026-03-08T07:00:00Z\n2026-03-09T06:00:00Z\n");
}

static void test_explain_adds_words_below_and_changes_nothing_above(void **state)
{
    (void)state;
    struct next_cron_arguments a = {.cron = "0 30 2 ? * MON-FRI",
                                    .dialect = "quartz",
                                    .time_zone = "Europe/Berlin",
                                    .after = "2026-03-27T12:00:00Z",
                                    .count = "2"};
    struct answer plain = ask(&a);
    assert_string_equal(plain.out, "2026-03-30T02:30:00+02:00\n2026-03-31T02:30:00+02:00\n");
    a.explain = true;
    struct answer explained = ask(&a);
    assert_int_equal(explained.code, 0);
    assert_string_equal(explained.err, "");
    assert_memory_equal(explained.out, plain.out, strlen(plain.out));
    assert_string_equal(
        explained.out + strlen(plain.out),
        "\nAt 02:30 on Monday to Friday, by the clock of Europe/Berlin.\n"
        "In dialect std: 30 2 * * MON-FRI\n"
        "A time that the clock skips runs once, at the first instant after the gap; "
        "one that it shows twice runs the first time only.\n");
    a.dialect = NULL;
    a.cron = "30 2 * * *";
    assert_non_null(strstr(ask(&a).out, "\nNote: on 2026-03-29 the clock of Europe/Berlin skips "
                                        "02:30: it runs once, at 03:00 (dst_gap after).\n"));
}

static void test_the_process_time_zone_changes_nothing(void **state)
{
    (void)state;
    const struct next_cron_arguments a = {
        .cron = "30 2 * * *", .time_zone = "Europe/Berlin", .after = "2026-03-28T12:00:00Z"};
    assert_int_equal(setenv("TZ", "Asia/Tokyo", 1), 0);
    assert_string_equal(ask(&a).out, "2026-03-29T03:00:00+02:00\n");
    assert_int_equal(unsetenv("TZ"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_golden_case_gives_the_instants_it_lists),
        cmocka_unit_test(test_every_invalid_expression_is_refused_in_one_line),
        cmocka_unit_test(test_the_command_refuses_each_bad_argument_in_one_line),
        cmocka_unit_test(test_the_command_prints_local_time_with_offset_or_utc_with_z),
        cmocka_unit_test(test_explain_adds_words_below_and_changes_nothing_above),
        cmocka_unit_test(test_the_process_time_zone_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
