#include "daemon_main.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon_signals.h"

enum {
    OPTION_CONFIG = 1,
    OPTION_CHECK,
    OPTION_PRINT_CONFIG,
    OPTION_PRINT_SETTINGS,
    OPTION_AFTER_DEATH,
    OPTION_VERSION,
    OPTION_HELP
};

static void usage_print(const struct daemon_program *p, FILE *to)
{
    (void)fprintf(to,
                  "Usage: %s --config FILE [--check-config | --print-config | --%s]\n"
                  "       %s --print-settings | --version | --help\n"
                  "%s\n"
                  "\n"
                  "  --config FILE     settings (see %s)\n"
                  "  --check-config    read the settings, say what is wrong with them, and end\n"
                  "  --print-config    print the settings in force, without secrets, and end\n"
                  "  --print-settings  the reference of all settings, as Markdown\n"
                  "  --version         version of this program\n"
                  "  --help            this text\n"
                  "  --%s\n"
                  "                    %s, and end; exit status: 0 done,\n"
                  "                    1 failed: it lapses by itself, 3 nothing was left, "
                  "4 refused: it lives\n"
                  "\n"
                  "%s"
                  "Exit status: 0 stopped in order, 1 failed or stopped in haste, 2 wrong usage or "
                  "settings.\n",
                  p->name, p->after_death.option, p->name, p->purpose, p->file,
                  p->after_death.option, p->after_death.purpose, p->signals);
}

enum log_level daemon_log_level(const struct settings_spec *spec, const void *settings)
{
    enum log_level level = LOG_LEVEL_INFO;
    for (size_t i = 0; i < spec->count; i++) {
        if (strcmp(spec->table[i].key, "log_level") == 0) {
            (void)log_level_parse((const char *)settings + spec->table[i].offset, &level);
        }
    }
    return level;
}

void daemon_log_lines(const char *event, const char *lines)
{
    while (*lines != '\0') {
        char line[ERROR_TEXT_MAX];
        size_t n = strcspn(lines, "\n");
        (void)snprintf(line, sizeof line, "%.*s", (int)n, lines);
        log_event(strstr(line, ": warning: ") != NULL ? LOG_LEVEL_WARN : LOG_LEVEL_ERROR, event,
                  "line=%s", log_quote(line).text);
        lines += n + (lines[n] == '\n' ? 1 : 0);
    }
}

static size_t lines_count(const char *lines)
{
    size_t n = 0;
    for (; *lines != '\0'; lines++) {
        n += *lines == '\n' ? 1 : 0;
    }
    return n;
}

struct wanted {
    const char *path;
    int only; /* 0: serve */
};

static int settings_use(const struct daemon_program *p, const struct wanted *w,
                        const void *settings, const char *lines)
{
    switch (w->only) {
    case OPTION_CHECK:
        (void)fputs(lines, stderr);
        if (lines[0] == '\0') {
            (void)printf("%s: no faults\n", w->path);
        } else {
            (void)printf("%s: no faults; warnings: %zu\n", w->path, lines_count(lines));
        }
        return 0;
    case OPTION_PRINT_CONFIG:
        settings_print_values(p->spec, settings, stdout);
        return 0;
    default:
        daemon_signals_block();
        log_open(p->name, daemon_log_level(p->spec, settings));
        daemon_log_lines("settings", lines);
        return w->only == OPTION_AFTER_DEATH ? p->after_death.run(settings)
                                             : p->serve(w->path, settings);
    }
}

static int run(const struct daemon_program *p, const struct wanted *w)
{
    void *settings = NULL;
    char *lines = NULL;
    size_t size = 0;
    struct error err = {.text = ""};
    FILE *to = open_memstream(&lines, &size);
    if (to == NULL) {
        (void)fprintf(stderr, "%s: out of memory\n", p->name);
        return 1;
    }
    enum status s = settings_read(p->spec, w->path, &settings, to, &err);
    if (fclose(to) != 0) {
        (void)fprintf(stderr, "%s: out of memory\n", p->name);
        free(settings);
        return 1;
    }
    int code = 2;
    if (s == STATUS_OK) {
        code = settings_use(p, w, settings, lines);
    } else if (lines[0] != '\0') {
        (void)fputs(lines, stderr);
    } else {
        (void)fprintf(stderr, "%s: %s\n", p->name, err.text);
    }
    free(lines);
    free(settings);
    return code;
}

int daemon_main(const struct daemon_program *p, int argc, char **argv)
{
    struct wanted w = {.path = NULL};
    const struct option options[] = {
        {"config", required_argument, NULL, OPTION_CONFIG},
        {"check-config", no_argument, NULL, OPTION_CHECK},
        {"print-config", no_argument, NULL, OPTION_PRINT_CONFIG},
        {"print-settings", no_argument, NULL, OPTION_PRINT_SETTINGS},
        {p->after_death.option, no_argument, NULL, OPTION_AFTER_DEATH},
        {"version", no_argument, NULL, OPTION_VERSION},
        {"help", no_argument, NULL, OPTION_HELP},
        {NULL, 0, NULL, 0},
    };
    for (int o = 0; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case OPTION_CONFIG:
            w.path = optarg;
            break;
        case OPTION_CHECK:
        case OPTION_PRINT_CONFIG:
        case OPTION_AFTER_DEATH:
            w.only = o;
            break;
        case OPTION_PRINT_SETTINGS:
            settings_print_reference(p->spec->table, p->spec->count, stdout);
            return 0;
        case OPTION_VERSION:
            (void)printf("%s %s\n", p->name, p->version);
            return 0;
        case OPTION_HELP:
            usage_print(p, stdout);
            return 0;
        default:
            usage_print(p, stderr);
            return 2;
        }
    }
    if (w.path == NULL || optind != argc) {
        usage_print(p, stderr);
        return 2;
    }
    return run(p, &w);
}
