/* report-worker: claims jobs and produces their report files. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker_daemon.h"
#include "dispatch.h"
#include "log.h"
#include "version.h"

static const char usage[] =
    "Usage: report-worker --config FILE\n"
    "Claims jobs of the report scheduler and produces their files.\n"
    "\n"
    "  --config FILE     settings (see worker.conf)\n"
    "  --check-config    read the settings, say what is wrong with them, and end\n"
    "  --print-settings  the reference of all settings, as Markdown\n"
    "  --version         version of this program and of its Kafka library\n"
    "  --help            this text\n"
    "\n"
    "SIGTERM stops in order: jobs may finish within drain_ms, the rest is handed back.\n"
    "SIGUSR1 writes the counts of claims, messages and outcomes to the log.\n"
    "Exit status: 0 stopped in order, 1 failed, 2 wrong usage or settings.\n";

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

static int run(const char *path, bool check_only)
{
    struct worker_settings *settings = NULL;
    struct error err = {0};
    enum log_level level = LOG_LEVEL_INFO;
    enum status s = worker_settings_load(path, &settings, check_only ? stderr : NULL, &err);
    if (s != STATUS_OK) {
        if (!check_only || s != STATUS_INVALID) {
            (void)fprintf(stderr, "report-worker: %s\n", err.text);
        }
        return 2;
    }
    if (check_only) {
        (void)printf("%s: no faults\n", path);
        free(settings);
        return 0;
    }
    (void)log_level_parse(settings->log_level, &level);
    worker_signals_block();
    log_open("report-worker", level);
    log_event(LOG_LEVEL_INFO, "worker starting", "version=%s", RS_VERSION);
    s = worker_run(settings, &err);
    if (s != STATUS_OK) {
        log_event(LOG_LEVEL_ERROR, "worker cannot start", "error=%s", log_quote(err.text).text);
    }
    free(settings);
    return s == STATUS_OK ? 0 : s == STATUS_INVALID ? 2 : 1;
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
            worker_settings_print(stdout);
            return 0;
        case OPTION_VERSION:
            (void)printf("report-worker %s (librdkafka %s)\n", RS_VERSION,
                         dispatch_library_version());
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
