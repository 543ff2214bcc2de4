#include "settings_judge.h"

#include <string.h>

#include <libconfig.h>

static bool key_is_faulty(const struct settings_judge *l, const char *key)
{
    for (size_t i = 0; i < l->faulty_count; i++) {
        if (strcmp(l->faulty[i], key) == 0) {
            return true;
        }
    }
    return l->faulty_count == FAULTY_MAX;
}

/* "file:line: key: what", or without the line when there is no file. */
static void line_format(const struct settings_judge *l, const config_setting_t *at, const char *key,
                        const char *what, struct error *ret_line)
{
    int line = at != NULL ? (int)config_setting_source_line(at) : l->last_line;
    if (l->config == NULL) {
        (void)error_set(ret_line, STATUS_INVALID, "%s: %s: %s", l->path, key, what);
    } else {
        (void)error_set(ret_line, STATUS_INVALID, "%s:%d: %s: %s", l->path, line, key, what);
    }
}

static void fault_take(struct settings_judge *l, const config_setting_t *at, const char *key,
                       const char *what)
{
    struct error line;
    line_format(l, at, key, what, &line);
    if (l->fault_count++ == 0) {
        l->first = line;
    }
    if (l->faulty_count < FAULTY_MAX) {
        (void)snprintf(l->faulty[l->faulty_count++], sizeof l->faulty[0], "%s", key);
    }
    if (l->lines != NULL) {
        (void)fprintf(l->lines, "%s\n", line.text);
    }
}

void judge_fault(struct settings_judge *l, const config_setting_t *at, const char *key,
                 const char *format, ...)
{
    char what[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    fault_take(l, at, key, what);
}

void judge_warn(struct settings_judge *l, const config_setting_t *at, const char *key,
                const char *what)
{
    char text[ERROR_TEXT_MAX];
    struct error line;
    (void)snprintf(text, sizeof text, "warning: %s", what);
    line_format(l, at, key, text, &line);
    if (l->lines != NULL) {
        (void)fprintf(l->lines, "%s\n", line.text);
    }
}

/* ---- what the program's own rules say ---- */

/* The element of the file that "programs[0].arguments" means; NULL: not in the file. */
static const config_setting_t *key_locate(const struct settings_judge *l, const char *key)
{
    char path[KEY_TEXT_MAX * 2];
    size_t n = 0;
    for (const char *p = key; *p != '\0' && n + 2 < sizeof path; p++) {
        if (*p == '[') {
            path[n++] = '.'; /* libconfig's own form is programs.[0].arguments */
        }
        path[n++] = *p;
    }
    path[n] = '\0';
    return l->config != NULL ? config_lookup(l->config, path) : NULL;
}

void settings_fault(struct settings_judge *judge, const char *key, const char *format, ...)
{
    char what[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (!key_is_faulty(judge, key)) {
        fault_take(judge, key_locate(judge, key), key, what);
    }
}

void settings_warn(struct settings_judge *judge, const char *key, const char *format, ...)
{
    char what[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (!key_is_faulty(judge, key)) {
        judge_warn(judge, key_locate(judge, key), key, what);
    }
}

bool settings_sound(const struct settings_judge *judge, const char *key)
{
    return !key_is_faulty(judge, key);
}

enum status judge_verdict(const struct settings_judge *l, struct error *err)
{
    if (l->fault_count == 0) {
        return STATUS_OK;
    }
    if (l->fault_count == 1) {
        return error_set(err, STATUS_INVALID, "%s", l->first.text);
    }
    return error_set(err, STATUS_INVALID, "%s (the first of %zu faults)", l->first.text,
                     l->fault_count);
}
