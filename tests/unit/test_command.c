#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "known_names.h"

#define WORDS_MAX 16

/* One parsed command line with what it printed. */
struct line {
    struct invocation in;
    enum exit_code code;
    bool go_on;
    char *out, *errors;
    size_t out_size, errors_size;
};

static void line_parse(struct line *l, int argc, const char *const *argv)
{
    memset(l, 0, sizeof *l);
    l->in.out = open_memstream(&l->out, &l->out_size);
    l->in.errors = open_memstream(&l->errors, &l->errors_size);
    assert_non_null(l->in.out);
    assert_non_null(l->in.errors);
    l->in.database = "from environment";
    l->in.timeout_s = 15;
    l->go_on = command_parse(argc, argv, &l->in, &l->code);
    assert_int_equal(fclose(l->in.out), 0);
    assert_int_equal(fclose(l->in.errors), 0);
}

static void line_free(struct line *l)
{
    free(l->out);
    free(l->errors);
}

#define PARSE(l, ...)                                                                              \
    do {                                                                                           \
        const char *argv_[] = {__VA_ARGS__};                                                       \
        line_parse((l), (int)(sizeof argv_ / sizeof argv_[0]), argv_);                             \
    } while (0)

/* The line is refused with this exit code and exactly this one line on stderr. */
#define ASSERT_REFUSED(message, ...)                                                               \
    do {                                                                                           \
        struct line refused_;                                                                      \
        PARSE(&refused_, __VA_ARGS__);                                                             \
        assert_false(refused_.go_on);                                                              \
        assert_int_equal(refused_.code, EXIT_USAGE);                                               \
        assert_string_equal(refused_.errors, "reportctl: " message "\n");                          \
        assert_string_equal(refused_.out, "");                                                     \
        line_free(&refused_);                                                                      \
    } while (0)

static void test_words_options_and_defaults_reach_the_command(void **state)
{
    (void)state;
    struct line l;
    PARSE(&l, "--database", "dbname=x", "occurrences", "sales-daily", "--from",
          "2030-04-12T00:00:00Z", "--limit=7", "-o", "csv");
    assert_true(l.go_on);
    assert_string_equal(l.in.command->words, "occurrences");
    assert_string_equal(command_text(&l.in, "schedule"), "sales-daily");
    assert_string_equal(command_text(&l.in, "--from"), "2030-04-12T00:00:00Z");
    assert_null(command_text(&l.in, "--to"));
    assert_int_equal(command_int(&l.in, "--limit"), 7);
    assert_int_equal(l.in.format, OUTPUT_CSV);
    assert_string_equal(l.in.database, "dbname=x");
    line_free(&l);

    PARSE(&l, "occurrences");
    assert_true(l.go_on);
    assert_int_equal(command_int(&l.in, "--limit"), 50);
    assert_null(command_text(&l.in, "schedule"));
    assert_string_equal(l.in.database, "from environment");
    line_free(&l);
}

static void test_two_words_name_one_command_and_the_longest_wins(void **state)
{
    (void)state;
    struct line l;
    PARSE(&l, "topic", "create", "jobs", "--partitions", "6", "--brokers", "k:9092");
    assert_true(l.go_on);
    assert_string_equal(l.in.command->words, "topic create");
    assert_int_equal(command_int(&l.in, "--replication"), 1);
    line_free(&l);
    ASSERT_REFUSED("topic needs a second word, e.g. reportctl topic create; see reportctl --help",
                   "topic");
}

static void test_what_asks_the_leader_has_a_bounded_wait_and_an_identity(void **state)
{
    (void)state;
    static const char *const kinds[] = {"trigger", "pause", "resume", "cancel", "retry"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct line l;
        PARSE(&l, kinds[i], "sales:2030", "--request-id", "0190f0b4-7c1a-7e3b-9d5e-2f6a8c4b1d07");
        bool job = i >= 3; /* those before take a schedule, whose name has no colon */
        assert_int_equal(l.go_on, job);
        line_free(&l);
        PARSE(&l, kinds[i], "sales", "--request-id", "0190f0b4-7c1a-7e3b-9d5e-2f6a8c4b1d07");
        assert_true(l.go_on);
        assert_int_equal(command_int(&l.in, "--wait"), 30);
        assert_string_equal(command_text(&l.in, "--request-id"),
                            "0190f0b4-7c1a-7e3b-9d5e-2f6a8c4b1d07");
        assert_string_equal(l.in.command->privilege, "report_operator");
        line_free(&l);
        ASSERT_REFUSED("--wait \"3601\" is wrong; write a whole number from 0 to 3600", kinds[i],
                       "sales", "--wait", "3601");
    }
}

static void test_a_command_word_may_stand_alone_and_before_another(void **state)
{
    (void)state;
    struct line l;
    PARSE(&l, "queue", "hold", "warehouse");
    assert_string_equal(l.in.command->words, "queue hold");
    assert_string_equal(command_text(&l.in, "--reason"), "no reason given");
    line_free(&l);
    PARSE(&l, "hold", "--scope", "main", "the warehouse is being moved");
    assert_string_equal(l.in.command->words, "hold");
    assert_string_equal(command_text(&l.in, "reason"), "the warehouse is being moved");
    line_free(&l);
    PARSE(&l, "hold", "--reason", "the warehouse is being moved");
    assert_string_equal(command_text(&l.in, "--reason"), "the warehouse is being moved");
    assert_null(command_text(&l.in, "reason"));
    line_free(&l);
    ASSERT_REFUSED("hold \"x\" is wrong; write a whole number from 1 to 9223372036854775807",
                   "release-hold", "x");
    ASSERT_REFUSED("unknown command calendar chek; did you mean calendar check?", "calendar",
                   "chek");
    ASSERT_REFUSED("unknown command queue nothing; behind queue stands one of hold, resume",
                   "queue", "nothing");
    ASSERT_REFUSED("queue needs a second word, e.g. reportctl queue hold; see reportctl --help",
                   "queue");
}

static void test_a_job_is_named_by_schedule_and_key_parted_at_the_first_colon(void **state)
{
    (void)state;
    char schedule[NAME_MAX_BYTES];
    const char *key = NULL;
    assert_true(job_name_split("sales-daily:2030-04-12T06:00", schedule, &key));
    assert_string_equal(schedule, "sales-daily");
    assert_string_equal(key, "2030-04-12T06:00");
    static const char *const wrong[] = {"sales-daily", ":2030", "sales:", "Sales:1", "", ":"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(job_name_split(wrong[i], schedule, &key));
    }
    char longest[NAME_MAX_BYTES + 2];
    memset(longest, 'a', sizeof longest);
    longest[NAME_MAX_BYTES - 1] = ':';
    longest[NAME_MAX_BYTES] = 'k';
    longest[NAME_MAX_BYTES + 1] = '\0';
    assert_true(job_name_split(longest, schedule, &key));
    longest[NAME_MAX_BYTES - 1] = 'a';
    longest[NAME_MAX_BYTES] = ':';
    assert_false(job_name_split(longest, schedule, &key));
}

static void test_a_flag_is_set_only_when_given(void **state)
{
    (void)state;
    struct line l;
    PARSE(&l, "migrate", "--dry-run");
    assert_true(command_flag(&l.in, "--dry-run"));
    line_free(&l);
    PARSE(&l, "migrate");
    assert_false(command_flag(&l.in, "--dry-run"));
    line_free(&l);
    ASSERT_REFUSED("--dry-run takes no value", "migrate", "--dry-run=yes");
}

static void test_wrong_use_is_refused_in_one_line_with_the_remedy(void **state)
{
    (void)state;
    ASSERT_REFUSED("unknown command stats; did you mean status?", "stats");
    ASSERT_REFUSED("unknown command xylophone; reportctl --help lists them", "xylophone");
    ASSERT_REFUSED("--state is given more than 1 time(s)", "jobs", "--state", "failed", "--state",
                   "queued");
    ASSERT_REFUSED("jobs has no option --stat; did you mean --state?", "jobs", "--stat", "failed");
    ASSERT_REFUSED("status has no option --zzzzzzzz; see reportctl status --help", "status",
                   "--zzzzzzzz");
    ASSERT_REFUSED("schedule needs NAME; see reportctl schedule --help", "schedule");
    ASSERT_REFUSED("topic create needs --partitions N; see reportctl topic create --help", "topic",
                   "create", "t", "--brokers", "k");
    ASSERT_REFUSED("--state needs a value: --state STATE", "jobs", "--state");
    ASSERT_REFUSED("workers does not know what to do with \"x\"; see reportctl workers --help",
                   "workers", "x");
    ASSERT_REFUSED("unknown option --nothing; see reportctl --help", "--nothing", "status");
}

static void test_each_kind_of_value_is_checked(void **state)
{
    (void)state;
    ASSERT_REFUSED("--limit \"0\" is wrong; write a whole number from 1 to 100000", "jobs",
                   "--limit", "0");
    ASSERT_REFUSED("--limit \"9223372036854775808\" is wrong; write a whole number from 1 to "
                   "100000",
                   "jobs", "--limit", "9223372036854775808");
    ASSERT_REFUSED("--limit \"5x\" is wrong; write a whole number from 1 to 100000", "jobs",
                   "--limit", "5x");
    ASSERT_REFUSED(
        "schedule \"Sales Daily\" is not a name; write \"sales-daily\", or 1 to 63 of a-z "
        "0-9 _ . - beginning with a letter or digit",
        "schedule", "Sales Daily");
    ASSERT_REFUSED("--state \"done\" is wrong; write one of waiting|queued|running|retry_wait|"
                   "succeeded|failed|cancelled|quarantined",
                   "jobs", "--state", "done");
    ASSERT_REFUSED("--state \"fail\" is wrong; write one of waiting|queued|running|retry_wait|"
                   "succeeded|failed|cancelled|quarantined",
                   "jobs", "--state", "fail");
    ASSERT_REFUSED("--request-id \"7\" is not an id; write it as in "
                   "0190f0b4-7c1a-7e3b-9d5e-2f6a8c4b1d07",
                   "trigger", "a", "--request-id", "7");
    ASSERT_REFUSED("--key is empty; write a value", "trigger", "a", "--key", "");
    struct line l;
    PARSE(&l, "occurrences", "--from", "yesterday");
    assert_int_equal(l.code, EXIT_USAGE);
    assert_int_equal(strncmp(l.errors, "reportctl: --from: ", 19), 0);
    line_free(&l);
}

static void test_an_output_form_that_a_command_has_not_is_refused(void **state)
{
    (void)state;
    ASSERT_REFUSED("status cannot be shown as csv; write -o table or json", "status", "-o", "csv");
    ASSERT_REFUSED("migrate has no -o: its output has one form", "migrate", "-o", "json");
    ASSERT_REFUSED("-o \"xml\" is wrong; write table, wide, json or csv", "jobs", "-o", "xml");
    ASSERT_REFUSED("jobs cannot be shown as markdown; write -o table or json or csv", "jobs", "-o",
                   "markdown");
    struct line l;
    PARSE(&l, "jobs", "-o", "wide");
    assert_true(l.in.wide && l.in.format == OUTPUT_TABLE);
    line_free(&l);
    PARSE(&l, "jobs", "-o", "wide", "-o", "json");
    assert_true(!l.in.wide && l.in.format == OUTPUT_JSON);
    line_free(&l);
    PARSE(&l, "lifecycle", "-o", "markdown");
    assert_true(l.go_on);
    assert_int_equal(l.in.format, OUTPUT_MARKDOWN);
    line_free(&l);
}

static void test_the_timeout_is_bounded(void **state)
{
    (void)state;
    struct line l;
    PARSE(&l, "status", "--timeout", "90");
    assert_true(l.go_on);
    assert_int_equal(l.in.timeout_s, 90);
    line_free(&l);
    ASSERT_REFUSED("--timeout \"0\" is wrong; write seconds from 1 to 3600", "status", "--timeout",
                   "0");
}

static void test_what_is_not_built_yet_says_so_by_name(void **state)
{
    (void)state;
    const char *verbs[] = {"catchup"};
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        struct line l;
        PARSE(&l, verbs[i], "anything", "--at-all");
        char start[64];
        (void)snprintf(start, sizeof start, "reportctl: %s is not available yet in version ",
                       verbs[i]);
        assert_false(l.go_on);
        assert_int_equal(l.code, EXIT_USAGE);
        assert_int_equal(strncmp(l.errors, start, strlen(start)), 0);
        line_free(&l);
    }
}

static void test_help_wins_over_whatever_else_is_wrong(void **state)
{
    (void)state;
    struct line l;
    PARSE(&l, "schedule", "--nonsense", "--help");
    assert_false(l.go_on);
    assert_int_equal(l.code, EXIT_DONE);
    assert_non_null(strstr(l.out, "Usage: reportctl schedule NAME\n"));
    assert_string_equal(l.errors, "");
    line_free(&l);
    PARSE(&l, "help", "next");
    assert_int_equal(l.code, EXIT_DONE);
    assert_non_null(strstr(l.out, "Usage: reportctl next "));
    line_free(&l);
}

static void test_nothing_at_all_is_wrong_use_but_help_is_not(void **state)
{
    (void)state;
    struct line l;
    line_parse(&l, 0, NULL);
    assert_int_equal(l.code, EXIT_USAGE);
    assert_non_null(strstr(l.errors, "Usage: reportctl"));
    assert_string_equal(l.out, "");
    line_free(&l);
    PARSE(&l, "--help");
    assert_int_equal(l.code, EXIT_DONE);
    assert_non_null(strstr(l.out, "4  the leader refused, or did not answer in time"));
    line_free(&l);
    PARSE(&l, "--version");
    assert_int_equal(l.code, EXIT_DONE);
    assert_int_equal(strncmp(l.out, "reportctl ", 10), 0);
    line_free(&l);
}

static void test_two_dashes_end_the_options(void **state)
{
    (void)state;
    struct line l;
    PARSE(&l, "job", "--", "--help");
    assert_true(l.go_on);
    assert_string_equal(command_text(&l.in, "job"), "--help");
    line_free(&l);
}

static void test_every_row_of_the_table_is_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < command_count; i++) {
        const struct command *c = &command_table[i];
        bool optional_word = false;
        assert_non_null(c->summary);
        assert_true((c->run != NULL) != (c->not_yet != NULL));
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(c->words, command_table[j].words);
        }
        for (size_t p = 0; p < ARGUMENTS_MAX && c->parameters[p].name != NULL; p++) {
            const struct argument *q = &c->parameters[p];
            assert_non_null(q->help);
            assert_int_equal(q->kind == PARAMETER_WORD, q->name[0] != '-');
            assert_int_equal(q->kind == PARAMETER_FLAG, q->placeholder == NULL);
            assert_int_equal(q->value == VALUE_CHOICE, q->choices != NULL);
            assert_true(q->value != VALUE_INT || q->min < q->max);
            /* A required word behind an optional one could never be told apart from it. */
            assert_false(q->kind == PARAMETER_WORD && q->required && optional_word);
            optional_word = optional_word || (q->kind == PARAMETER_WORD && !q->required);
        }
    }
}

/* The file must be what the program prints now. */
static void assert_page_is_fresh(const char *path, void (*print)(FILE *))
{
    char *want = NULL;
    size_t want_size = 0;
    FILE *to = open_memstream(&want, &want_size);
    print(to);
    assert_int_equal(fclose(to), 0);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fail_msg("%s is missing: print it with reportctl help", path);
    }
    char *have = calloc(1, want_size + 2);
    assert_non_null(have);
    size_t n = fread(have, 1, want_size + 1, file);
    assert_int_equal(fclose(file), 0);
    if (n != want_size || memcmp(have, want, want_size) != 0) {
        fail_msg("%s is stale: print it with reportctl help --markdown, --man", path);
    }
    free(have);
    free(want);
}

static void test_the_pages_in_docs_are_fresh(void **state)
{
    (void)state;
    assert_page_is_fresh(TEST_SOURCE_DIR "/../docs/reportctl.md", command_print_markdown);
    assert_page_is_fresh(TEST_SOURCE_DIR "/../docs/man/reportctl.1", command_print_manual);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_options_and_defaults_reach_the_command),
        cmocka_unit_test(test_two_words_name_one_command_and_the_longest_wins),
        cmocka_unit_test(test_what_asks_the_leader_has_a_bounded_wait_and_an_identity),
        cmocka_unit_test(test_a_command_word_may_stand_alone_and_before_another),
        cmocka_unit_test(test_a_job_is_named_by_schedule_and_key_parted_at_the_first_colon),
        cmocka_unit_test(test_a_flag_is_set_only_when_given),
        cmocka_unit_test(test_wrong_use_is_refused_in_one_line_with_the_remedy),
        cmocka_unit_test(test_each_kind_of_value_is_checked),
        cmocka_unit_test(test_an_output_form_that_a_command_has_not_is_refused),
        cmocka_unit_test(test_the_timeout_is_bounded),
        cmocka_unit_test(test_what_is_not_built_yet_says_so_by_name),
        cmocka_unit_test(test_help_wins_over_whatever_else_is_wrong),
        cmocka_unit_test(test_nothing_at_all_is_wrong_use_but_help_is_not),
        cmocka_unit_test(test_two_dashes_end_the_options),
        cmocka_unit_test(test_every_row_of_the_table_is_complete),
        cmocka_unit_test(test_the_pages_in_docs_are_fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
