/* What the leader forgets: one bounded call at a time, when nothing else is to be done
 * (sql/0010_retention.sql has the rules, reports.installation the keep times; store_retention.h is
 * the port). Thread: the scope's. */
#ifndef RS_RETENTION_H
#define RS_RETENTION_H

#include <stddef.h>

#include "clock.h"
#include "status.h"
#include "store_call.h"

#define RETENTION_MS       60000 /* between two rounds that found nothing more */
#define RETENTION_MORE_MS  1000  /* while there is more to forget */
#define RETENTION_ROWS     500   /* of each table in one call */
#define RETENTION_ROWS_MIN 10

struct retention {
    instant at;  /* next round */
    size_t rows; /* a call now: halved when a call took too long; 0 before the first */
};

/* One round if it is time. A call that is too slow is tried again with fewer rows: forgetting late
 * harms nobody, so only what concerns the leader or its connection is returned.
 * Returns: OK; FENCED; AGAIN. Blocks: until call->deadline. */
MUST_USE enum status retention_round(struct retention *r, const struct store_call *call,
                                     struct error *err);

#endif
