/* What report-worker shows over HTTP: /livez, /readyz, /metrics. Snapshots only: nothing here waits
 * for a part that is stuck. */
#ifndef RS_HTTP_WORKER_H
#define RS_HTTP_WORKER_H

#include "clock.h"
#include "status.h"
#include "worker.h"

struct worker_http;

/* Listen, and log where. http_address = "": *ret_http is NULL. The worker is borrowed until
 * worker_http_stop. Returns: OK; INVALID (the text names the setting); FATAL. Thread: main. */
MUST_USE enum status worker_http_start(struct worker *w, struct worker_http **ret_http,
                                       struct error *err);

/* NULL is fine. Returns: OK; TIMEOUT: a thread hangs, only _exit is left. Thread: main.
 * Blocks: until deadline. */
MUST_USE enum status worker_http_stop(struct worker_http *http, instant deadline);

#endif
