/* The whole ledger of a span, chunk by chunk: schedules in pages, the firings of some of them at
 * once, each chunk read in one snapshot, so that memory is bounded and no snapshot is long. (One
 * snapshot for all would keep the server from cleaning up behind every claim meanwhile; and since
 * occurrences and gaps are only ever added, what one chunk has proved a later one cannot undo.) */
#ifndef RS_LEDGER_VERIFY_H
#define RS_LEDGER_VERIFY_H

#include "ledger.h"
#include "store.h"

struct ledger_verify_options {
    utc_us from, to;          /* finite; firings due at or after, and before */
    bool to_now;              /* `to` is the database's now */
    const char *schedule;     /* NULL: all */
    int64_t grace_us;         /* what is due since less is not overdue */
    int64_t statement_ms;     /* deadline of each statement */
    const char *tz_directory; /* NULL: the system's */
    /* Told after each part of the records that was looked at, in order; NULL: nobody is. */
    void (*looked)(void *context, utc_us until);
    void *looked_context;
};

/* Findings go to the sink, without doubts, those of firings that follow one another as one; their
 * schedule is borrowed for the call of add. Returns: OK (all was read); AGAIN; TIMEOUT; INVALID;
 * NOT_FOUND (no time zone data here); FATAL. Thread: the store's owner. Blocks: statement by
 * statement until its deadline. */
MUST_USE enum status ledger_verify(struct store *store, const struct ledger_verify_options *options,
                                   struct ledger_sink *sink, struct error *err);

#endif
