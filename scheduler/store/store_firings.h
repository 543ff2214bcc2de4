/* Next firings as they are stored, of all schedules, and the definitions behind firings to come,
 * for readers. Adapter: store_pg_firings.c. Thread: the connection's owner. Blocks: until the
 * deadline. */
#ifndef RS_STORE_FIRINGS_H
#define RS_STORE_FIRINGS_H

#include "store_plan.h"

/* Of schedules whose names come after `after` ("": all), in one zone or in all (NULL), by name, at
 * most rows->max. Returns: OK; AGAIN; TIMEOUT; INVALID. */
MUST_USE enum status store_firings(struct store *store, const char *after, const char *time_zone,
                                   instant deadline, struct due_rows *ret_rows, struct error *err);

/* What is told of a definition besides. */
struct definition_more {
    char queue[NAME_MAX_BYTES];
    bool problem;        /* nothing of it runs until it is mended */
    utc_us paused_until; /* UTC_NONE: it is not paused, or without end */
};

/* The version of one schedule that is in force now, and behind it one that is announced; a version
 * that is not taken in yet counts as in force. `switched_at` is as progress has it. Fields of a
 * stored next firing are not set. No rows: there is no such schedule. Returns: as store_firings. */
MUST_USE enum status store_definition(struct store *store, const char *schedule, instant deadline,
                                      struct due_rows *ret_rows, struct error *err);

struct definition_page {
    const char *after; /* names come after it; "": all */
    const char *scope; /* NULL: all */
    size_t schedules;  /* at most; rows->max is at least twice as much */
};

/* The same of many schedules, by name and version. `more` has a place for each row. */
MUST_USE enum status store_definitions(struct store *store, const struct definition_page *page,
                                       instant deadline, struct due_rows *ret_rows,
                                       struct definition_more *ret_more, struct error *err);

/* store_keys_taken for readers. */
MUST_USE enum status store_keys_used(struct store *store, const char *schedule, instant deadline,
                                     struct plan_candidates *c, struct error *err);

#endif
