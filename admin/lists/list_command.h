/* A command that is one SELECT: open, check the names, select, print, close. Thread: main. Blocks:
 * until --timeout. */
#ifndef RS_LIST_COMMAND_H
#define RS_LIST_COMMAND_H

#include "command.h"

/* All borrowed for the call. */
struct list_command {
    const char *sql;
    int count;
    const char *const *values; /* its parameters */
    const char *empty;         /* what to say when there are no rows */
    const char *scope, *queue; /* names that must exist; NULL: none given */
};

enum exit_code list_command_run(struct invocation *in, const struct list_command *list);

#endif
