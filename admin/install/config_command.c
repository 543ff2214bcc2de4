/* Settings of the daemons, checked and explained by the daemons' own tables. */
#include "commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "configuration_page.h"
#include "scheduler_settings.h"
#include "worker_settings.h"

enum settings_kind {
    SETTINGS_UNKNOWN,
    SETTINGS_OF_SCHEDULER,
    SETTINGS_OF_WORKER,
};

/* "scheduler", or a file name that holds the word: /etc/report-scheduler/worker.conf is a worker's,
 * so only the last part of a path counts. */
static enum settings_kind settings_kind_of(const char *word)
{
    const char *slash = strrchr(word, '/');
    const char *name = slash != NULL ? slash + 1 : word;
    if (strstr(name, "worker") != NULL) {
        return SETTINGS_OF_WORKER;
    }
    return strstr(name, "scheduler") != NULL ? SETTINGS_OF_SCHEDULER : SETTINGS_UNKNOWN;
}

static enum status settings_check(enum settings_kind settings, const char *path, FILE *faults,
                                  struct error *err)
{
    void *judged = NULL;
    enum status s = settings_read(settings == SETTINGS_OF_WORKER ? &worker_spec : &scheduler_spec,
                                  path, &judged, faults, err);
    free(judged); /* only what was said counts */
    return s;
}

enum exit_code check_config_command(struct invocation *in)
{
    const char *path = command_text(in, "file");
    const char *kind = command_text(in, "--kind");
    enum settings_kind settings = settings_kind_of(kind != NULL ? kind : path);
    struct error err = {0};
    if (settings == SETTINGS_UNKNOWN) {
        return command_fail(in, EXIT_USAGE,
                            "whose settings are in %s? write --kind scheduler or "
                            "--kind worker",
                            path);
    }
    /* Faults are printed as they are found, one line each: they are the answer. */
    enum status s = settings_check(settings, path, in->errors, &err);
    if (s == STATUS_NOT_FOUND) {
        return command_fail(in, EXIT_NOT_FOUND, "%s", err.text);
    }
    if (s == STATUS_INVALID) {
        return EXIT_USAGE;
    }
    if (s != STATUS_OK) {
        return command_fail(in, EXIT_FAILED, "%s", err.text);
    }
    (void)fprintf(in->out, "%s: no faults\n", path);
    return EXIT_DONE;
}

enum exit_code config_reference_command(struct invocation *in)
{
    enum settings_kind kind = settings_kind_of(command_text(in, "program"));
    const struct configuration_page *page =
        kind == SETTINGS_OF_WORKER ? &configuration_of_worker : &configuration_of_scheduler;
    if (command_flag(in, "--man") && kind == SETTINGS_UNKNOWN) {
        return command_fail(in, EXIT_USAGE,
                            "a manual page is one program's; write "
                            "config-reference scheduler --man, or worker");
    }
    if (command_flag(in, "--man")) {
        configuration_print_man(page, in->out);
    } else if (kind == SETTINGS_UNKNOWN) {
        configuration_print_all(in->out);
    } else {
        configuration_print(page, in->out);
    }
    return EXIT_DONE;
}
