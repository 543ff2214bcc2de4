/* What `reportctl verify` asks of PostgreSQL (sql/0016_verify.sql): the ledger in chunks, each in
 * one snapshot. Adapter: store_pg_verify.c. Thread of each call: the connection's owner. Blocks:
 * until the deadline. Returns, of all: OK; AGAIN; TIMEOUT; INVALID; FATAL (out of memory). */
#ifndef RS_STORE_VERIFY_H
#define RS_STORE_VERIFY_H

#include "ledger.h"
#include "store.h"
#include "zone_file.h"

#define VERIFY_PAGE_MAX   500    /* schedules a page */
#define VERIFY_ROWS_MOST  500000 /* occurrences of a chunk at most */
#define VERIFY_DOUBTS_MAX 500

struct verify_span {
    utc_us from, to;
};

struct verify_page {
    char names[VERIFY_PAGE_MAX][NAME_MAX_BYTES];
    int64_t firings[VERIFY_PAGE_MAX]; /* occurrences in the span, counted up to VERIFY_ROWS_MOST */
    size_t count;
};

/* Schedules there have ever been whose names come after `after`, or the one that is named `only`
 * (NULL: all). */
MUST_USE enum status store_verify_page(struct store *store, const char *after, const char *only,
                                       struct verify_span span, instant deadline,
                                       struct verify_page *ret_page, struct error *err);

struct verify_chunk {
    struct ledger_subject *subjects; /* one a name, in that order */
    size_t count;
    utc_us now;   /* of the database, of the snapshot */
    bool full;    /* there are more occurrences than VERIFY_ROWS_MOST: not all are here */
    void *memory; /* the adapter's */
};

/* Read the ledger of some schedules; their rules are parsed with `zones`, which must live longer,
 * as must the page. Owns: *ret_chunk, verify_chunk_free. */
struct verify_part {
    const struct verify_page *page;
    size_t first, count; /* schedules of it */
    struct verify_span span;
};
MUST_USE enum status store_verify_chunk(struct store *store, const struct verify_part *part,
                                        struct zone_set *zones, instant deadline,
                                        struct verify_chunk **ret_chunk, struct error *err);
void verify_chunk_free(struct verify_chunk *c);

/* Look doubts up. ret_stands: which of the findings are what they say. At most VERIFY_DOUBTS_MAX.
 */
MUST_USE enum status store_verify_doubts(struct store *store, const struct ledger_finding *findings,
                                         size_t count, instant deadline,
                                         bool ret_stands[VERIFY_DOUBTS_MAX], struct error *err);

enum verify_query {
    VERIFY_STRAYS,  /* occurrences that the chunks cannot meet */
    VERIFY_JOBS,    /* jobs, attempts and artifacts that do not fit */
    VERIFY_ORPHANS, /* jobs without an occurrence */
};

/* What the server finds by itself in a span, into the sink; at most `limit`. *ret_count: how many.
 * schedule NULL: of all. */
MUST_USE enum status store_verify_query(struct store *store, enum verify_query query,
                                        struct verify_span span, const char *schedule,
                                        instant deadline, struct ledger_sink *sink,
                                        struct error *err);
#define VERIFY_QUERY_LIMIT 1000

/* Is there anything in a span that those look at? */
MUST_USE enum status store_verify_any(struct store *store, struct verify_span span,
                                      instant deadline, bool *ret_any, struct error *err);

#endif
