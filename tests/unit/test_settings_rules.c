/* What goes beyond one key: rules, forms, surroundings, and the values in force. */
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

static void test_values_in_force_are_printed_without_secrets_and_read_back(void **state)
{
    (void)state;
    struct sample p;
    struct sample q;
    struct error err = {0};
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(
        sample_read("scope = \"a\\\"b\\\\\"; brokers = [\"x\", \"y\"]; verbose = true;\n"
                    "sources = ( { name = \"one\"; conninfo = \"s3cret\"; rows = 7; } );\n",
                    &p, &err),
        STATUS_OK);
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    settings_print_values(&sample_spec, &p, to);
    assert_int_equal(fclose(to), 0);
    assert_null(strstr(text, "s3cret"));
    assert_non_null(strstr(text, "# conninfo = (not shown)\n"));
    assert_int_equal(sample_read(text, &q, &err), STATUS_OK);
    assert_string_equal(q.scope, "a\"b\\");
    assert_int_equal(q.brokers.count, 2);
    assert_true(q.verbose);
    assert_int_equal(q.sources[0].rows, 7);
    free(text);
}

static void rule(const void *settings, struct settings_judge *judge)
{
    const struct sample *p = settings;
    if (settings_sound(judge, "session_ms") && p->session_ms < 2000) {
        settings_fault(judge, "session_ms", "too short");
        settings_fault(judge, "session_ms", "said twice");
    }
    if (settings_sound(judge, "note")) {
        settings_fault(judge, "note", "no note is good");
    }
    settings_warn(judge, "sources[1].name", "odd");
}

static void test_rules_across_keys_name_their_line_and_leave_out_faulty_keys(void **state)
{
    (void)state;
    struct settings_spec spec = sample_spec;
    spec.check = rule;
    struct error err = {0};
    void *settings = NULL;
    char expected[512];
    assert_int_equal(settings_file_read(&spec,
                                        "scope = \"s\";\nnote = 1;\nsession_ms = 1500;\n"
                                        "sources = ( { name = \"a\"; },\n { name = \"b\"; } );\n",
                                        &settings, &err),
                     STATUS_INVALID);
    assert_null(settings);
    (void)snprintf(expected, sizeof expected,
                   "%s:2: note: is a whole number; write text in double quotes: note = \"none\";\n"
                   "%s:3: session_ms: too short\n%s:5: sources[1].name: warning: odd\n",
                   settings_path, settings_path, settings_path);
    assert_string_equal(settings_lines, expected);
    assert_non_null(strstr(err.text, "(the first of 2 faults)"));
}

static enum status form_of_note(const char *value, struct error *err)
{
    return value[0] == 'n' ? STATUS_OK
                           : error_set(err, STATUS_INVALID, "must begin with n; write \"note\"");
}

static enum status around_note(const char *value, struct error *err)
{
    return strcmp(value, "nobody") != 0
               ? STATUS_OK
               : error_set(err, STATUS_INVALID, "there is nobody; write \"note\"");
}

static void test_a_form_is_a_fault_and_surroundings_are_a_warning(void **state)
{
    (void)state;
    struct setting row = sample_spec.table[1];
    row.form = form_of_note;
    row.around = around_note;
    const struct settings_spec spec = {.table = &row, .count = 1, .size = sizeof(struct sample)};
    const struct {
        const char *text, *line;
        enum status status;
    } cases[] = {
        {"\nnote = \"note\";\n", "", STATUS_OK},
        {"\nnote = \"x\";\n", "2: note: must begin with n; write \"note\"\n", STATUS_INVALID},
        {"\nnote = \"nobody\";\n", "2: note: warning: there is nobody; write \"note\"\n",
         STATUS_OK},
        {"\nnote = \"\";\n", "", STATUS_OK}, /* empty is what the default may be */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char expected[256] = "";
        if (cases[i].line[0] != '\0') {
            (void)snprintf(expected, sizeof expected, "%s:%s", settings_path, cases[i].line);
        }
        assert_string_equal(settings_said(&spec, cases[i].text, cases[i].status), expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_in_force_are_printed_without_secrets_and_read_back),
        cmocka_unit_test(test_rules_across_keys_name_their_line_and_leave_out_faulty_keys),
        cmocka_unit_test(test_a_form_is_a_fault_and_surroundings_are_a_warning),
    };
    return cmocka_run_group_tests(tests, settings_directory_make, settings_directory_remove);
}
