#include "fixture_settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const struct setting sample_source_fields[] = {
    {.key = "name",
     .type = SETTING_TEXT,
     .offset = offsetof(struct sample_source, name),
     .size = 16,
     .unit = "",
     .why = "Name."},
    {.key = "conninfo",
     .type = SETTING_TEXT,
     .offset = offsetof(struct sample_source, conninfo),
     .size = 64,
     .unit = "",
     .why = "Where.",
     .secret = true,
     .fallback = "dbname=x"},
    {.key = "rows",
     .type = SETTING_INT,
     .offset = offsetof(struct sample_source, rows),
     .min = 1,
     .max = 10,
     .unit = "rows",
     .fallback = "5",
     .why = "How many."},
};

static const struct setting sample_table[] = {
    {.key = "scope",
     .type = SETTING_TEXT,
     .offset = offsetof(struct sample, scope),
     .size = 16,
     .unit = "",
     .why = "Which scope."},
    {.key = "note",
     .type = SETTING_TEXT,
     .offset = offsetof(struct sample, note),
     .size = 32,
     .unit = "",
     .fallback = "none",
     .why = "A note.",
     .reloadable = true},
    {.key = "session_ms",
     .type = SETTING_INT,
     .offset = offsetof(struct sample, session_ms),
     .min = 1000,
     .max = 60000,
     .unit = "ms",
     .fallback = "10000",
     .why = "Session timeout."},
    {.key = "big",
     .type = SETTING_INT,
     .offset = offsetof(struct sample, big),
     .min = 0,
     .max = INT64_MAX,
     .unit = "bytes",
     .fallback = "0",
     .why = "Big."},
    {.key = "verbose",
     .type = SETTING_BOOL,
     .offset = offsetof(struct sample, verbose),
     .unit = "",
     .fallback = "false",
     .why = "More words."},
    {.key = "brokers",
     .type = SETTING_LIST,
     .offset = offsetof(struct sample, brokers),
     .unit = "",
     .fallback = "a:1, b:2",
     .why = "Brokers."},
    {.key = "names",
     .type = SETTING_LIST,
     .offset = offsetof(struct sample, names),
     .unit = "",
     .fallback = "",
     .why = "Names."},
    {.key = "sources",
     .type = SETTING_GROUPS,
     .offset = offsetof(struct sample, sources),
     .unit = "",
     .why = "Sources.",
     .fields = sample_source_fields,
     .field_count = 3,
     .element_size = sizeof(struct sample_source),
     .capacity = 2,
     .count_offset = offsetof(struct sample, source_count)},
};

const struct settings_spec sample_spec = {.table = sample_table,
                                          .count = sizeof sample_table / sizeof sample_table[0],
                                          .size = sizeof(struct sample)};

char settings_directory[64];
char settings_path[80];
char settings_lines[8192];

int settings_directory_make(void **state)
{
    (void)state;
    (void)snprintf(settings_directory, sizeof settings_directory, "/tmp/test_settings.XXXXXX");
    if (mkdtemp(settings_directory) == NULL) {
        return -1;
    }
    (void)snprintf(settings_path, sizeof settings_path, "%s/test.conf", settings_directory);
    return 0;
}

int settings_directory_remove(void **state)
{
    (void)state;
    (void)unlink(settings_path);
    return rmdir(settings_directory);
}

void settings_file_write(const char *text)
{
    FILE *f = fopen(settings_path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
}

enum status settings_file_read(const struct settings_spec *spec, const char *text,
                               void **ret_settings, struct error *err)
{
    settings_file_write(text);
    memset(settings_lines, 0, sizeof settings_lines);
    FILE *to = fmemopen(settings_lines, sizeof settings_lines - 1, "w");
    assert_non_null(to);
    enum status s = settings_read(spec, settings_path, ret_settings, to, err);
    assert_int_equal(fclose(to), 0);
    return s;
}

enum status sample_read(const char *text, struct sample *ret_sample, struct error *err)
{
    void *settings = NULL;
    memset(ret_sample, 0, sizeof *ret_sample);
    enum status s = settings_file_read(&sample_spec, text, &settings, err);
    if (s == STATUS_OK) {
        memcpy(ret_sample, settings, sizeof *ret_sample);
        free(settings);
    }
    return s;
}

const char *settings_said(const struct settings_spec *spec, const char *text, enum status wanted)
{
    void *settings = NULL;
    enum status s = settings_file_read(spec, text, &settings, NULL);
    if (s == STATUS_OK) {
        free(settings);
    }
    if (s != wanted) {
        fail_msg("status %s: %s", status_name(s), settings_lines);
    }
    return settings_lines;
}
