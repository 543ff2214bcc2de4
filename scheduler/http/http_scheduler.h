/* What report-scheduler shows over HTTP: /livez, /readyz, /metrics, a page for people, and the
 * requests of operators (http_requests.h). Everything shown is a snapshot: a stuck part, or a
 * database that hangs, is told and never waited for. */
#ifndef RS_HTTP_SCHEDULER_H
#define RS_HTTP_SCHEDULER_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "coord.h"
#include "scheduler_settings.h"
#include "scope.h"
#include "status.h"

struct problem_board;
struct scheduler_http;

/* Borrowed until scheduler_http_stop; the settings only until scheduler_http_start returns. */
struct scheduler_http_options {
    const struct scheduler_settings *settings;
    const struct coord *coord;
    struct problem_board *board;
    int64_t coord_late_ms, stuck_ms; /* silence of the coordination, of a scope, that is too long */
    struct scope *const *scopes;
    size_t count;
    const _Atomic int64_t *looked_ns; /* the main thread's last look, nanoseconds of an instant */
};

/* Listen, and log where. http_address = "": *ret_http is NULL. Owns: scheduler_http_stop.
 * Returns: OK; INVALID (the text names the setting); FATAL. Thread: main. */
MUST_USE enum status scheduler_http_start(const struct scheduler_http_options *options,
                                          struct scheduler_http **ret_http, struct error *err);

/* Answer what is waiting, close, free. NULL is fine. Returns: OK; TIMEOUT: a thread hangs, only
 * _exit is left. Thread: main. Blocks: until deadline. */
MUST_USE enum status scheduler_http_stop(struct scheduler_http *http, instant deadline);

#endif
