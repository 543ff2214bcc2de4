/* For tests of settings: a file in a directory of its own, all that was said when it was read, and
 * a small program's settings with a row of every type. */
#ifndef RS_FIXTURE_SETTINGS_H
#define RS_FIXTURE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "settings.h"

struct sample_source {
    char name[16];
    char conninfo[64];
    int64_t rows;
};

struct sample {
    char scope[16];
    char note[32];
    int64_t session_ms;
    int64_t big;
    bool verbose;
    struct setting_list brokers;
    struct setting_list names;
    struct sample_source sources[2];
    size_t source_count;
};

/* Only the table: no rules across keys. */
extern const struct settings_spec sample_spec;

extern char settings_directory[64];
extern char settings_path[80];    /* in the directory; made by the first writing */
extern char settings_lines[8192]; /* of the last reading: each fault and warning */

/* Group set-up and teardown. */
int settings_directory_make(void **state);
int settings_directory_remove(void **state);

/* Write the file anew, or write and read it. Owns: free(*ret_settings). */
void settings_file_write(const char *text);
enum status settings_file_read(const struct settings_spec *spec, const char *text,
                               void **ret_settings, struct error *err);

/* The same for the sample; *ret_sample is all zero unless OK. */
enum status sample_read(const char *text, struct sample *ret_sample, struct error *err);

/* settings_lines; fails the test when the status is not the wanted one. */
const char *settings_said(const struct settings_spec *spec, const char *text, enum status wanted);

#endif
