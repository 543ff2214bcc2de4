/* What a worker counts, for people. Any thread adds; reading is a snapshot, not an instant. */
#ifndef RS_COUNTERS_H
#define RS_COUNTERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum counter {
    COUNT_CLAIMED,   /* jobs claimed, by message or pull */
    COUNT_PULLED,    /* of these, by pull */
    COUNT_ADOPTED,   /* of these, after a claim whose answer was lost */
    COUNT_MESSAGES,  /* messages read */
    COUNT_DUPLICATE, /* for a job that runs or has succeeded */
    COUNT_STALE,     /* for a job in another state */
    COUNT_UNCLAIMED, /* for a queued job that was not to be had: locked, held, not due */
    COUNT_UNKNOWN,   /* for a job the database does not know */
    COUNT_POISON,    /* unreadable */
    COUNT_SHED,      /* passed by, no free slot */
    COUNT_SUCCEEDED,
    COUNT_FAILED, /* with timeouts */
    COUNT_CANCELLED,
    COUNT_HANDED_BACK,
    COUNT_LOST,            /* claims lost, and outcomes that came too late */
    COUNT_OUTCOME_REPEATS, /* outcomes found recorded already */
    COUNT_HEARTBEATS,
    COUNT_HEARTBEATS_FAILED,
    COUNT_INCARNATIONS,
    COUNTERS,
};

struct counters {
    atomic_uint_fast64_t value[COUNTERS];
};

void counter_add(struct counters *c, enum counter which, uint64_t n);
uint64_t counter_read(const struct counters *c, enum counter which);
const char *counter_name(enum counter which);

/* All that are not zero as logfmt fields. */
void counters_format(const struct counters *c, char *ret_text, size_t size);

#endif
