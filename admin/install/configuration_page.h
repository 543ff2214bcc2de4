/* The reference of both programs' settings, for docs/configuration.md and the manual pages, from
 * the tables that the programs parse with. Thread: any. Blocks: on `to`. */
#ifndef RS_CONFIGURATION_PAGE_H
#define RS_CONFIGURATION_PAGE_H

#include <stdio.h>

#include "settings.h"

struct configuration_page {
    const char *program; /* "report-scheduler" */
    const char *file;    /* "scheduler.conf" */
    const struct settings_spec *spec;
};

extern const struct configuration_page configuration_of_scheduler, configuration_of_worker;

/* One program's keys, as Markdown. */
void configuration_print(const struct configuration_page *page, FILE *to);

/* docs/configuration.md: how files are read, and both programs' keys. */
void configuration_print_all(FILE *to);

/* docs/man/scheduler.conf.5 or worker.conf.5. */
void configuration_print_man(const struct configuration_page *page, FILE *to);

#endif
