/* report-scheduler: elects a leader for each scope, plans its schedules, relays to Kafka. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon.h"
#include "log.h"
#include "version.h"

static const char usage[] =
    "Usage: report-scheduler --config FILE\n"
    "Elects a leader for each scope and turns due schedules into jobs.\n"
    "\n"
    "  --config FILE     settings (see scheduler.conf)\n"
    "  --check-config    read the settings, say what is wrong with them, and end\n"
    "  --print-settings  the reference of all settings, as Markdown\n"
    "  --version         version of this program\n"
    "  --help            this text\n"
    "\n"
    "SIGTERM stops in order: drains, releases leadership, closes its session, within stop_ms.\n"
    "SIGUSR1 writes each scope's state and its relay's counts to the log.\n"
    "Exit status: 0 stopped in order, 1 failed or stopped in haste, 2 wrong usage or settings.\n";

enum {
    OPTION_CONFIG = 1,
    OPTION_CHECK,
    OPTION_PRINT,
    OPTION_VERSION,
    OPTION_HELP
};

static const struct option options[] = {
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"check-config", no_argument, NULL, OPTION_CHECK},
    {"print-settings", no_argument, NULL, OPTION_PRINT},
    {"version", no_argument, NULL, OPTION_VERSION},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static int serve(const struct scheduler_settings *settings)
{
    struct error err = {.text = ""};
    enum log_level level = LOG_LEVEL_INFO;
    (void)log_level_parse(settings->log_level, &level);
    scheduler_block_signals();
    log_open("report-scheduler", level);
    log_event(LOG_LEVEL_INFO, "scheduler starting", "version=%s name=%s", RS_VERSION,
              settings->name);
    enum status status = scheduler_run(settings, &err);
    if (status == STATUS_TIMEOUT) {
        log_event(LOG_LEVEL_ERROR, "left in haste: the place in line falls by expiry", "error=%s",
                  log_quote(err.text).text);
        _exit(1); /* threads may still run: nothing may be freed under them */
    }
    if (status != STATUS_OK) {
        log_event(LOG_LEVEL_ERROR, "scheduler cannot start", "error=%s", log_quote(err.text).text);
        return status == STATUS_INVALID ? 2 : 1;
    }
    log_event(LOG_LEVEL_INFO, "scheduler stopped", NULL);
    return 0;
}

static int run(const char *path, bool check_only)
{
    struct scheduler_settings *settings = NULL;
    struct error err = {.text = ""};
    enum status status = scheduler_settings_load(path, &settings, check_only ? stderr : NULL, &err);
    if (status != STATUS_OK) {
        if (!check_only || status != STATUS_INVALID) {
            (void)fprintf(stderr, "report-scheduler: %s\n", err.text);
        }
        return 2;
    }
    int code = 0;
    if (check_only) {
        (void)printf("%s: no faults\n", path);
    } else {
        code = serve(settings);
    }
    free(settings);
    return code;
}

int main(int argc, char **argv)
{
    const char *path = NULL;
    bool check_only = false;
    for (int o = 0; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (o) {
        case OPTION_CONFIG:
            path = optarg;
            break;
        case OPTION_CHECK:
            check_only = true;
            break;
        case OPTION_PRINT:
            scheduler_settings_print(stdout);
            return 0;
        case OPTION_VERSION:
            (void)printf("report-scheduler %s\n", RS_VERSION);
            return 0;
        case OPTION_HELP:
            (void)fputs(usage, stdout);
            return 0;
        default:
            (void)fputs(usage, stderr);
            return 2;
        }
    }
    if (path == NULL || optind != argc) {
        (void)fputs(usage, stderr);
        return 2;
    }
    return run(path, check_only);
}
