/* The clock guard of one process: fed by whoever reads the database's clock, settled by the clock
 * witness. Thread: any. Blocks: never for long. */
#ifndef RS_CLOCK_WATCH_H
#define RS_CLOCK_WATCH_H

#include <stdbool.h>

#include "clock_guard.h"
#include "status.h"

struct clock_watch;

/* Owns: clock_watch_free, when no thread uses it any more; NULL is fine. Returns: OK; FATAL. */
MUST_USE enum status clock_watch_new(struct clock_watch **ret_watch, struct error *err);
void clock_watch_free(struct clock_watch *watch);

/* The database's clock showed `said` between `before` and now. False: it is suspect, and nothing
 * may be decided by it. Without a watch (NULL) nothing is suspect. */
bool clock_watch_take(struct clock_watch *watch, utc_us said, instant before);
bool clock_watch_is_suspect(struct clock_watch *watch);

/* When the last sample was taken; 0: none was. */
instant clock_watch_taken_at(struct clock_watch *watch);

/* The database has a testimony of this machine that is not judged: one of an earlier process. */
void clock_watch_doubt(struct clock_watch *watch, int64_t step_us);

/* It was judged; `sample` is the measure from now on. */
void clock_watch_settle(struct clock_watch *watch, struct clock_sample sample);

/* Readable when it has become suspect, until the next clock_watch_heard. Borrowed. */
int clock_watch_fd(const struct clock_watch *watch);
void clock_watch_heard(struct clock_watch *watch);

#endif
