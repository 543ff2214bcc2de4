/* What the two daemons' command lines have in common: options, the settings file, the log's start.
 * Thread: main, before any other starts. */
#ifndef RS_DAEMON_MAIN_H
#define RS_DAEMON_MAIN_H

#include "log.h"
#include "settings.h"

struct daemon_program {
    const char *name;                 /* "report-scheduler" */
    const char *purpose;              /* --help: one sentence */
    const char *file;                 /* --help: "scheduler.conf" */
    const char *signals;              /* --help: what signals do, in whole lines */
    const char *version;              /* --version: after the name */
    const struct settings_spec *spec; /* has a TEXT row log_level */
    /* The command that cleans up after a killed daemon: its option without "--", for --help what it
     * does, and what carries it out: the exit status (after_death.h). */
    struct {
        const char *option, *purpose;
        int (*run)(const void *settings);
    } after_death;
    /* Run until a stop; the exit status. `settings` are borrowed; the log is open, signals are
       blocked (daemon_signals.h). */
    int (*serve)(const char *path, const void *settings);
};

/* Carry out the command line. Returns the exit status: what serve says; 0 for what only prints; 2:
 * wrong usage or settings, which is said on stderr, every fault of the file on a line of its own.
 */
int daemon_main(const struct daemon_program *program, int argc, char **argv);

/* What the log_level row of these settings says. */
enum log_level daemon_log_level(const struct settings_spec *spec, const void *settings);

/* Log each line of a settings report. Lines that are warnings become warnings. */
void daemon_log_lines(const char *event, const char *lines);

#endif
