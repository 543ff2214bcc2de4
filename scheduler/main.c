/* report-scheduler: elects a leader for each scope, plans its schedules, relays to Kafka. */
#include <unistd.h>

#include "close_dead_session.h"
#include "daemon.h"
#include "daemon_main.h"
#include "log.h"
#include "version.h"

static int serve(const char *path, const void *settings)
{
    const struct scheduler_settings *s = settings;
    struct error err = {.text = ""};
    log_event(LOG_LEVEL_INFO, "scheduler starting", "version=%s name=%s", RS_VERSION,
              log_quote(s->name).text);
    enum status status = scheduler_run(path, s, &err);
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

int main(int argc, char **argv)
{
    const struct daemon_program program = {
        .name = "report-scheduler",
        .purpose = "Elects a leader for each scope and turns due schedules into jobs.",
        .file = "scheduler.conf",
        .signals =
            "SIGTERM stops in order: drains, releases leadership, closes its session, within "
            "stop_ms; a second\n"
            "one ends at once. SIGHUP reads the settings again. SIGUSR1 writes each scope's "
            "state and its\n"
            "relay's counts to the log.\n",
        .version = RS_VERSION,
        .spec = &scheduler_spec,
        .after_death = {.option = "close-dead-session",
                        .purpose =
                            "close the ZooKeeper session of a killed daemon, so that another "
                            "leads at once",
                        .run = close_dead_session},
        .serve = serve,
    };
    return daemon_main(&program, argc, argv);
}
