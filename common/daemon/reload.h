/* SIGHUP in a daemon: read the settings file again, all of it, and take what may change in a
 * running process. Logs every fault and every change, and counts. Thread: the one that owns the
 * settings in force. Blocks: on the file system. */
#ifndef RS_RELOAD_H
#define RS_RELOAD_H

#include "metrics.h"
#include "settings.h"

struct reload {
    const struct settings_spec *spec;
    const char *path;
    const struct metric_family *counted; /* one label: result, applied or refused */
};

/* What the process may go on with: reloadable keys from the file, all others as in *current. The
 * log level is set already. Owns: free(*ret_fresh). Returns: OK; INVALID, NOT_FOUND, FATAL
 * (refused: the settings in force stay; it is logged). */
MUST_USE enum status reload_read(const struct reload *reload, const void *current,
                                 void **ret_fresh);

#endif
