#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fixture_settings.h"
#include "nearest.h"

/* The faults are exactly these lines, each prefixed by the path. */
static void assert_fault(const char *text, const char *expected)
{
    struct sample p;
    struct error err = {0};
    char line[512];
    assert_int_equal(sample_read(text, &p, &err), STATUS_INVALID);
    (void)snprintf(line, sizeof line, "%s:%s\n", settings_path, expected);
    assert_string_equal(settings_lines, line);
    line[strlen(line) - 1] = '\0';
    assert_string_equal(err.text, line);
}

static void test_what_is_not_given_gets_its_default(void **state)
{
    (void)state;
    struct sample p;
    assert_int_equal(sample_read("scope = \"sales\";\n", &p, NULL), STATUS_OK);
    assert_string_equal(p.scope, "sales");
    assert_string_equal(p.note, "none");
    assert_int_equal(p.session_ms, 10000);
    assert_false(p.verbose);
    assert_int_equal(p.brokers.count, 2);
    assert_string_equal(p.brokers.items[0], "a:1");
    assert_string_equal(p.brokers.items[1], "b:2");
    assert_int_equal(p.names.count, 0);
    assert_int_equal(p.source_count, 0);
    assert_string_equal(settings_lines, "");
}

static void test_every_type_is_read_from_the_file(void **state)
{
    (void)state;
    struct sample p;
    assert_int_equal(
        sample_read("scope = \"sales\"; note = \"\"; session_ms = 2000; verbose = true;\n"
                    "big = 9223372036854775807L; brokers = [\"k1:9092\"]; names = ();\n"
                    "sources = ( { name = \"one\"; rows = 7; },\n"
                    "            { name = \"two\"; conninfo = \"dbname=y\"; } );\n",
                    &p, NULL),
        STATUS_OK);
    assert_string_equal(p.note, "");
    assert_int_equal(p.session_ms, 2000);
    assert_true(p.verbose);
    assert_int_equal(p.big, INT64_MAX);
    assert_int_equal(p.brokers.count, 1);
    assert_string_equal(p.brokers.items[0], "k1:9092");
    assert_int_equal(p.source_count, 2);
    assert_string_equal(p.sources[0].name, "one");
    assert_string_equal(p.sources[0].conninfo, "dbname=x");
    assert_int_equal(p.sources[0].rows, 7);
    assert_string_equal(p.sources[1].conninfo, "dbname=y");
    assert_int_equal(p.sources[1].rows, 5);
}

static void test_all_faults_are_reported_at_once_in_file_order(void **state)
{
    (void)state;
    struct sample p;
    struct error err = {0};
    assert_int_equal(sample_read("sesion_ms = 2000;\n"
                                 "session_ms = \"2000\";\n"
                                 "verbose = 1;\n"
                                 "sources = ( { nam = \"x\"; } );\n",
                                 &p, &err),
                     STATUS_INVALID);
    const char *want[] = {":1: sesion_ms: unknown key; write session_ms, or remove the line\n",
                          ":2: session_ms: is text; write a whole number from 1000 to 60000 ms "
                          "without quotes: session_ms = 10000;\n",
                          ":3: verbose: is a whole number; write true or false without quotes: "
                          "verbose = false;\n",
                          ":4: sources[0].nam: unknown key; write name, or remove the line\n",
                          ":4: sources[0].name: is missing and has no default; write text in "
                          "double quotes: name = \"...\";\n",
                          ":4: scope: is missing and has no default; write text in double quotes: "
                          "scope = \"...\";\n"};
    const char *at = settings_lines;
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        assert_int_equal(strncmp(at, settings_path, strlen(settings_path)), 0);
        at += strlen(settings_path);
        assert_int_equal(strncmp(at, want[i], strlen(want[i])), 0);
        at += strlen(want[i]);
    }
    assert_string_equal(at, "");
    assert_non_null(strstr(err.text, ":1: sesion_ms: unknown key"));
    assert_non_null(strstr(err.text, "(the first of 6 faults)"));
}

static void test_a_number_out_of_range_is_refused_with_its_bounds(void **state)
{
    (void)state;
    assert_fault("scope = \"s\";\nsession_ms = 999;\n",
                 "2: session_ms: 999 is out of range; write a whole number from 1000 to 60000 ms "
                 "without quotes: session_ms = 10000;");
    assert_fault("scope = \"s\";\nsession_ms = 60001;\n",
                 "2: session_ms: 60001 is out of range; write a whole number from 1000 to 60000 ms "
                 "without quotes: session_ms = 10000;");
    struct sample p;
    assert_int_equal(sample_read("scope = \"s\"; session_ms = 1000;", &p, NULL), STATUS_OK);
    assert_int_equal(sample_read("scope = \"s\"; session_ms = 60000;", &p, NULL), STATUS_OK);
}

/* libconfig 1.5 reads the first as 2000, the second as 1. */
static void test_a_number_beyond_32_bits_does_not_wrap_into_range(void **state)
{
    (void)state;
    struct sample p;
    assert_fault("scope = \"s\"; session_ms = 4294969296;",
                 "1: session_ms: 4294969296 is out of range; write a whole number from 1000 to "
                 "60000 ms without quotes: session_ms = 10000;");
    assert_int_equal(sample_read("scope = \"s\"; big = 0x100000001; session_ms = 0x7d0;", &p, NULL),
                     STATUS_OK);
    assert_int_equal(p.big, INT64_C(0x100000001));
    assert_int_equal(p.session_ms, 2000);
    assert_int_equal(sample_read("scope = \"s\"; big = 8589934592; # 4294969296\n", &p, NULL),
                     STATUS_OK);
    assert_int_equal(p.big, INT64_C(8589934592));
}

static void test_a_fraction_is_not_taken_for_a_whole_number(void **state)
{
    (void)state;
    assert_fault("scope = \"s\";\n\nsession_ms = 2000.5;\n",
                 "3: session_ms: is a number with a fraction; write a whole number from 1000 to "
                 "60000 ms without quotes: session_ms = 10000;");
}

static void test_text_that_does_not_fit_is_refused_not_cut(void **state)
{
    (void)state;
    struct sample p;
    assert_int_equal(sample_read("scope = \"123456789012345\";", &p, NULL), STATUS_OK);
    assert_fault("scope = \"1234567890123456\";", "1: scope: has 16 bytes; write at most 15");
}

static void test_a_required_text_may_not_be_empty(void **state)
{
    (void)state;
    assert_fault("scope = \"\";", "1: scope: is empty; write a value between the quotes");
}

static void test_a_list_takes_texts_only_and_a_bounded_number(void **state)
{
    (void)state;
    assert_fault("scope = \"s\";\nbrokers = (\"a\", 1);\n",
                 "2: brokers: item 2 is a whole number; write every item as text in double quotes");
    assert_fault("scope = \"s\";\nbrokers = \"a\";\n",
                 "2: brokers: is text; write texts in brackets: brokers = [\"first\", "
                 "\"second\"];");
    char text[1024] = "scope = \"s\";\nbrokers = [";
    for (int i = 0; i <= SETTING_LIST_MAX; i++) {
        size_t n = strlen(text);
        (void)snprintf(text + n, sizeof text - n, "%s\"b\"", i > 0 ? "," : "");
    }
    size_t n = strlen(text);
    (void)snprintf(text + n, sizeof text - n, "];\n");
    assert_fault(text, "2: brokers: has 65 items; write at most 64");
}

static void test_groups_are_bounded_and_their_names_unique(void **state)
{
    (void)state;
    assert_fault("scope = \"s\";\nsources = ( { name=\"a\"; }, { name=\"b\"; }, { name=\"c\"; } );",
                 "2: sources: has 3 elements; write at most 2");
    assert_fault("scope = \"s\";\nsources = ( { name=\"a\"; },\n { name=\"a\"; } );",
                 "3: sources: a second element has the name \"a\" (the first is at line 2); write "
                 "another name, or remove one");
    assert_fault("scope = \"s\";\nsources = ( 1 );",
                 "2: sources: element 0 is a whole number; write a group: { name = ...; }");
    assert_fault("scope = \"s\";\nsources = { name = \"a\"; };",
                 "2: sources: is a group { }; write groups in parentheses: sources = ( { name = "
                 "...; } );");
}

static void test_an_unknown_key_far_from_all_lists_what_is_known(void **state)
{
    (void)state;
    assert_fault("scope = \"s\";\nzzzzzzzz = 1;",
                 "2: zzzzzzzz: unknown key; remove the line (known here: scope, note, session_ms, "
                 "big, verbose, brokers, names, sources)");
}

static void test_a_syntax_error_names_its_line(void **state)
{
    (void)state;
    assert_fault("scope = \"s\"\n;\nsession_ms = = 1;\n",
                 "3: syntax error; look here and on the line before for a missing ; or quote or "
                 "bracket");
}

static void test_a_key_given_twice_is_named_and_hides_no_other_fault(void **state)
{
    (void)state;
    assert_fault("scope = \"s\";\nscope = \"t\";\n",
                 "2: scope: was given before, at line 1; keep one of the two lines");
    const char *said =
        settings_said(&sample_spec,
                      "scope = \"s\";\nsession_ms = true;\nscope : \"t\"\n"
                      "sources = ( { name = \"a\";\n name = \"b\"; conninfo = 1; },\n"
                      "  { name = \"c\"; conninfo = \"x\"; } ); # scope = 1;\n"
                      "scope = \"scope = 2\";\nverboze = true;\n",
                      STATUS_INVALID);
    const char *const wanted[] = {":2: session_ms: is a truth value",
                                  ":3: scope: was given before, at line 1;",
                                  ":5: sources[0].name: was given before, at line 4;",
                                  ":5: sources[0].conninfo: is a whole",
                                  ":7: scope: was given before, at line 1;",
                                  ":8: verboze: unknown key; write verbose"};
    size_t lines = 0;
    for (const char *p = said; *p != '\0'; p++) {
        lines += *p == '\n' ? 1 : 0;
    }
    assert_int_equal(lines, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (strstr(said, wanted[i]) == NULL) {
            fail_msg("no \"%s\" in: %s", wanted[i], said);
        }
    }
}

static void test_a_file_that_is_none_is_not_found(void **state)
{
    (void)state;
    void *settings = NULL;
    struct error err = {0};
    assert_int_equal(settings_read(&sample_spec, "/nonexistent/x.conf", &settings, NULL, &err),
                     STATUS_NOT_FOUND);
    assert_string_equal(err.text, "/nonexistent/x.conf: cannot be read: No such file or directory");
    /* libconfig's scanner would exit(2) here. */
    assert_int_equal(settings_read(&sample_spec, settings_directory, &settings, NULL, &err),
                     STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "is not a settings file"));
}

/* libconfig 1.5 would end the process on an unreadable one, and print the wrong file for a fault.
 */
static void test_an_include_is_refused_by_name(void **state)
{
    (void)state;
    assert_fault(
        "scope = \"s\"; # @include \"a\"\n/* \n@ */ note = \"@\";\n@include \"more.conf\"\n",
        "4: @include: is not supported; write all settings into one file");
}

static void test_a_number_beyond_64_bits_is_refused(void **state)
{
    (void)state;
    assert_fault("scope = \"s\";\nbig = 99999999999999999999;\n",
                 "2: 99999999999999999999: is too large for a number; write a smaller one");
}

static void test_the_reference_names_unit_default_bounds_and_reload(void **state)
{
    (void)state;
    char *page = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&page, &size);
    assert_non_null(to);
    settings_print_reference(sample_spec.table, sample_spec.count, to);
    assert_int_equal(fclose(to), 0);
    assert_non_null(strstr(page,
                           "### `session_ms`\n\nSession timeout.\n\nwhole number from 1000 to "
                           "60000, ms; default: `10000`; a change needs a restart.\n"));
    assert_non_null(strstr(page, "default: `none`; SIGHUP applies a change."));
    assert_non_null(strstr(page, "### `scope`\n\nWhich scope.\n\ntext of at most 15 bytes; must "
                                 "be given"));
    assert_non_null(strstr(page, "#### `sources[].rows`"));
    assert_null(strstr(page, "dbname=x")); /* secret */
    free(page);
}

static void test_the_nearest_word_is_offered_and_a_far_one_is_not(void **state)
{
    (void)state;
    struct nearest n = nearest_start("tick");
    nearest_offer(&n, "scope");
    assert_null(n.best);
    nearest_offer(&n, "zookeeper_tick_ms");
    assert_string_equal(n.best, "zookeeper_tick_ms");
    nearest_offer(&n, "ticks");
    assert_string_equal(n.best, "ticks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_not_given_gets_its_default),
        cmocka_unit_test(test_every_type_is_read_from_the_file),
        cmocka_unit_test(test_all_faults_are_reported_at_once_in_file_order),
        cmocka_unit_test(test_a_number_out_of_range_is_refused_with_its_bounds),
        cmocka_unit_test(test_a_number_beyond_32_bits_does_not_wrap_into_range),
        cmocka_unit_test(test_a_fraction_is_not_taken_for_a_whole_number),
        cmocka_unit_test(test_text_that_does_not_fit_is_refused_not_cut),
        cmocka_unit_test(test_a_required_text_may_not_be_empty),
        cmocka_unit_test(test_a_list_takes_texts_only_and_a_bounded_number),
        cmocka_unit_test(test_groups_are_bounded_and_their_names_unique),
        cmocka_unit_test(test_an_unknown_key_far_from_all_lists_what_is_known),
        cmocka_unit_test(test_a_syntax_error_names_its_line),
        cmocka_unit_test(test_a_key_given_twice_is_named_and_hides_no_other_fault),
        cmocka_unit_test(test_a_file_that_is_none_is_not_found),
        cmocka_unit_test(test_an_include_is_refused_by_name),
        cmocka_unit_test(test_a_number_beyond_64_bits_is_refused),
        cmocka_unit_test(test_the_reference_names_unit_default_bounds_and_reload),
        cmocka_unit_test(test_the_nearest_word_is_offered_and_a_far_one_is_not),
    };
    return cmocka_run_group_tests(tests, settings_directory_make, settings_directory_remove);
}
