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

#include "settings.h"

struct source {
    char name[16];
    char conninfo[64];
    int64_t rows;
};

struct program {
    char scope[16];
    char note[32];
    int64_t session_ms;
    int64_t big;
    bool verbose;
    struct setting_list brokers;
    struct setting_list names;
    struct source sources[2];
    size_t source_count;
};

static const struct setting source_fields[] = {
    {.key = "name",
     .type = SETTING_TEXT,
     .offset = offsetof(struct source, name),
     .size = 16,
     .unit = "",
     .why = "Name."},
    {.key = "conninfo",
     .type = SETTING_TEXT,
     .offset = offsetof(struct source, conninfo),
     .size = 64,
     .unit = "",
     .why = "Where.",
     .secret = true,
     .fallback = "dbname=x"},
    {.key = "rows",
     .type = SETTING_INT,
     .offset = offsetof(struct source, rows),
     .min = 1,
     .max = 10,
     .unit = "rows",
     .fallback = "5",
     .why = "How many."},
};

static const struct setting table[] = {
    {.key = "scope",
     .type = SETTING_TEXT,
     .offset = offsetof(struct program, scope),
     .size = 16,
     .unit = "",
     .why = "Which scope."},
    {.key = "note",
     .type = SETTING_TEXT,
     .offset = offsetof(struct program, note),
     .size = 32,
     .unit = "",
     .fallback = "none",
     .why = "A note.",
     .reloadable = true},
    {.key = "session_ms",
     .type = SETTING_INT,
     .offset = offsetof(struct program, session_ms),
     .min = 1000,
     .max = 60000,
     .unit = "ms",
     .fallback = "10000",
     .why = "Session timeout."},
    {.key = "big",
     .type = SETTING_INT,
     .offset = offsetof(struct program, big),
     .min = 0,
     .max = INT64_MAX,
     .unit = "bytes",
     .fallback = "0",
     .why = "Big."},
    {.key = "verbose",
     .type = SETTING_BOOL,
     .offset = offsetof(struct program, verbose),
     .unit = "",
     .fallback = "false",
     .why = "More words."},
    {.key = "brokers",
     .type = SETTING_LIST,
     .offset = offsetof(struct program, brokers),
     .unit = "",
     .fallback = "a:1, b:2",
     .why = "Brokers."},
    {.key = "names",
     .type = SETTING_LIST,
     .offset = offsetof(struct program, names),
     .unit = "",
     .fallback = "",
     .why = "Names."},
    {.key = "sources",
     .type = SETTING_GROUPS,
     .offset = offsetof(struct program, sources),
     .unit = "",
     .why = "Sources.",
     .fields = source_fields,
     .field_count = 3,
     .element_size = sizeof(struct source),
     .capacity = 2,
     .count_offset = offsetof(struct program, source_count)},
};
static const size_t table_count = sizeof table / sizeof table[0];

static char directory[] = "/tmp/test_settings_rules.XXXXXX";
static char path[64];
static char faults[8192];

static void file_write(const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

static enum status load(const char *text, struct program *p, struct error *err)
{
    file_write(text);
    memset(p, 0, sizeof *p);
    memset(faults, 0, sizeof faults);
    FILE *to = fmemopen(faults, sizeof faults - 1, "w");
    assert_non_null(to);
    enum status s = settings_load(table, table_count, path, p, to, err);
    assert_int_equal(fclose(to), 0);
    return s;
}

static void test_values_in_force_are_printed_without_secrets_and_read_back(void **state)
{
    (void)state;
    static const struct settings_spec spec = {
        .table = table, .count = sizeof table / sizeof table[0], .size = sizeof(struct program)};
    struct program p;
    struct program q;
    struct error err = {0};
    char *text = NULL;
    size_t size = 0;
    assert_int_equal(load("scope = \"a\\\"b\\\\\"; brokers = [\"x\", \"y\"]; verbose = true;\n"
                          "sources = ( { name = \"one\"; conninfo = \"s3cret\"; rows = 7; } );\n",
                          &p, &err),
                     STATUS_OK);
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    settings_print_values(&spec, &p, to);
    assert_int_equal(fclose(to), 0);
    assert_null(strstr(text, "s3cret"));
    assert_non_null(strstr(text, "# conninfo = (not shown)\n"));
    assert_int_equal(load(text, &q, &err), STATUS_OK);
    assert_string_equal(q.scope, "a\"b\\");
    assert_int_equal(q.brokers.count, 2);
    assert_true(q.verbose);
    assert_int_equal(q.sources[0].rows, 7);
    free(text);
}

static void rule(const void *settings, struct settings_judge *judge)
{
    const struct program *p = settings;
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
    static const struct settings_spec spec = {.table = table,
                                              .count = sizeof table / sizeof table[0],
                                              .size = sizeof(struct program),
                                              .check = rule};
    struct error err = {0};
    void *settings = NULL;
    char expected[512];
    file_write("scope = \"s\";\nnote = 1;\nsession_ms = 1500;\n"
               "sources = ( { name = \"a\"; },\n { name = \"b\"; } );\n");
    memset(faults, 0, sizeof faults);
    FILE *to = fmemopen(faults, sizeof faults - 1, "w");
    assert_non_null(to);
    assert_int_equal(settings_read(&spec, path, &settings, to, &err), STATUS_INVALID);
    assert_int_equal(fclose(to), 0);
    assert_null(settings);
    (void)snprintf(expected, sizeof expected,
                   "%s:2: note: is a whole number; write text in double quotes: note = \"none\";\n"
                   "%s:3: session_ms: too short\n%s:5: sources[1].name: warning: odd\n",
                   path, path, path);
    assert_string_equal(faults, expected);
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
    struct setting row = table[1];
    row.form = form_of_note;
    row.around = around_note;
    const struct settings_spec spec = {.table = &row, .count = 1, .size = sizeof(struct program)};
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
        void *settings = NULL;
        char expected[256] = "";
        file_write(cases[i].text);
        memset(faults, 0, sizeof faults);
        FILE *to = fmemopen(faults, sizeof faults - 1, "w");
        assert_non_null(to);
        assert_int_equal(settings_read(&spec, path, &settings, to, NULL), cases[i].status);
        assert_int_equal(fclose(to), 0);
        if (cases[i].line[0] != '\0') {
            (void)snprintf(expected, sizeof expected, "%s:%s", path, cases[i].line);
        }
        assert_string_equal(faults, expected);
        free(settings);
    }
}

static int setup(void **state)
{
    (void)state;
    if (mkdtemp(directory) == NULL) {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/test.conf", directory);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_in_force_are_printed_without_secrets_and_read_back),
        cmocka_unit_test(test_rules_across_keys_name_their_line_and_leave_out_faulty_keys),
        cmocka_unit_test(test_a_form_is_a_fault_and_surroundings_are_a_warning),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
