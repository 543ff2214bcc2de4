/* The firings of a backfill as reports.ask_backfill takes them. Pure. */
#ifndef RS_BACKFILL_JSON_H
#define RS_BACKFILL_JSON_H

#include "planner.h"

#define BACKFILL_MAX 1000 /* firings a request may ask for; the same in ask_backfill */

/* The data interval of a firing, without jitter. */
struct backfill_window {
    utc_us start; /* the firing before; UTC_NONE: there is none */
    utc_us end;
};

/* windows[i] is that of the i-th firing. NULL when out of memory. Owns: free. */
char *backfill_firings_json(const struct plan_candidates *list,
                            const struct backfill_window *windows);

#endif
