/* report-worker: claims jobs and produces their report files. */
#include <stdio.h>

#include "daemon_main.h"
#include "dispatch.h"
#include "log.h"
#include "release_claims.h"
#include "version.h"
#include "worker_daemon.h"

static int serve(const char *path, const void *settings)
{
    struct error err = {.text = ""};
    log_event(LOG_LEVEL_INFO, "worker starting", "version=%s", RS_VERSION);
    enum status s = worker_run(path, settings, &err);
    if (s != STATUS_OK) {
        log_event(LOG_LEVEL_ERROR, "worker cannot start", "error=%s", log_quote(err.text).text);
    }
    return s == STATUS_OK ? 0 : s == STATUS_INVALID ? 2 : 1;
}

int main(int argc, char **argv)
{
    char version[64];
    (void)snprintf(version, sizeof version, "%s (librdkafka %s)", RS_VERSION,
                   dispatch_library_version());
    const struct daemon_program program = {
        .name = "report-worker",
        .purpose = "Claims jobs of the report scheduler and produces their files.",
        .file = "worker.conf",
        .signals = "SIGTERM stops in order: jobs may finish within drain_ms, the rest is handed "
                   "back; a second one\n"
                   "hands back at once. SIGHUP reads the settings again. SIGUSR1 writes the counts "
                   "of claims,\n"
                   "messages and outcomes to the log.\n",
        .version = version,
        .spec = &worker_spec,
        .after_death = {.option = "release-claims",
                        .purpose = "give up the claims of a killed daemon, so that other workers "
                                   "have its jobs at once",
                        .run = release_claims},
        .serve = serve,
    };
    return daemon_main(&program, argc, argv);
}
