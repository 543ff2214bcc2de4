/* The claims this process holds: one bounded table between the threads that claim, run, renew and
 * report. It decides nothing about the database; it knows until when a claim may be worked on.
 *
 *   WAITING ──take──► RUNNING ──report──► DONE ──collect──► RECORDING ──close──► (gone)
 *                        │ killed as LOST: report drops it        │ put_back
 *                        └────────────────► (gone)                ├──► DONE
 *                                                                 └──► RESTING ──► DONE
 *
 * Every claim has a deadline by CLOCK_BOOTTIME: the sending of the last renewal that succeeded,
 * plus the lease, minus a safety of at least a quarter of it (claim_deadline). claims_expire kills
 * what has passed it; it needs neither PostgreSQL nor a runner. A runner that hangs (a dead file
 * system) must not keep its claim for ever either: CLAIM_OVERTIME_MS after the job's own timeout
 * the claim is given up whatever the heartbeat says, and another worker gets the job. All
 * functions: any thread; blocking ones say so. */
#ifndef RS_CLAIMS_H
#define RS_CLAIMS_H

#include <stdbool.h>
#include <stddef.h>

#include "clock.h"
#include "job.h"
#include "outcome.h"
#include "status.h"

#define CLAIM_OVERTIME_MS 60000 /* kill, fsync and hash: far longer than a healthy runner needs */
#define CLAIM_REST_MS     100   /* of an outcome whose row another session holds */

struct claims;

/* Why a running job has to stop; a later word of the list overrides an earlier one. */
enum claim_kill {
    KILL_NONE,
    KILL_STOPPING,  /* the worker stops: hand it back */
    KILL_CANCELLED, /* an operator asked for it */
    KILL_EXPIRED,   /* given up by ourselves; it may still be ours in the database: reported there,
                       so that the attempt counts and is not taken up again as the same one */
    KILL_LOST,      /* the claim moved on: its outcome is nobody's */
};

/* One claim. Its address is stable until it is closed or dropped. `job` may be read by whom it was
 * handed to; `outcome` is written by the runner while RUNNING and read by the outcome writer while
 * RECORDING; the rest belongs to the table and is touched under its mutex only. */
struct claim {
    struct job *job;
    struct outcome outcome;
    instant reported_at; /* the run ended; as `outcome` */
    unsigned locked;     /* RECORDING: how often another session held its row */
    struct {
        int state;
        enum claim_kill kill;
        instant deadline;
        instant rest_until; /* RESTING */
        instant end;        /* RUNNING: its timeout and CLAIM_OVERTIME_MS; no renewal moves it */
        int wake_fd;        /* of the runner: written to when it is killed; -1 */
        int source_fd;      /* socket to cut when the deadline has passed; -1 */
        struct claim *before, *behind; /* in the list of its state, oldest first */
    } own;
};

struct claim_counts {
    size_t waiting, running, unrecorded;
    size_t free; /* how many more may be claimed now */
};

/* `slots`: jobs that run at once; unrecorded outcomes may pile up to `backlog` more.
 * Owns: claims_free, after all threads have stopped. NULL when out of memory. */
struct claims *claims_new(size_t slots, size_t backlog);
void claims_free(struct claims *c);

/* When a claim sent at `sent` with this lease must be over: sent + lease - safety, where the safety
 * is the larger of a quarter of the lease and 200 ms. */
instant claim_deadline(instant sent, int64_t lease_ms);

/* Take a claimed job in. It must not be known already: a fresh claim has a fresh token, and who
 * adopts asks claims_knows first. Owns: takes *job on OK. Returns: OK; FULL. */
MUST_USE enum status claims_add(struct claims *c, struct job *job, instant deadline);

/* What this process knows of a claim. One that has ended is never begun again, whatever the
 * database says of it: it may have been restored from a dump. */
enum claim_known {
    CLAIM_UNKNOWN,
    CLAIM_HELD,  /* in the table */
    CLAIM_ENDED, /* it was; among the newest TOKEN_MEMORY_MAX that were */
};
enum claim_known claims_knows(struct claims *c, const char *job_id, const char *token);

/* The next waiting claim, for a runner whose eventfd is wake_fd (drained here). NULL at the
 * deadline, or once claims_stop was called. One whose own deadline has passed comes killed, as
 * EXPIRED. Blocks. */
struct claim *claims_take(struct claims *c, int wake_fd, instant deadline);

struct claim_watch {
    enum claim_kill kill;
    instant deadline;
};
struct claim_watch claims_watch(struct claims *c, const struct claim *claim);

/* The socket the running job depends on; -1 before it is closed. */
void claims_source(struct claims *c, struct claim *claim, int fd);

/* The runner is done: the outcome is in claim->outcome. False: the claim was lost and is dropped;
 * *claim is gone and nothing will be reported. */
bool claims_report(struct claims *c, struct claim *claim);

/* Up to `most` outcomes to record, at most one of a job. Waits until the deadline for the first
 * one, then `linger_ms` for more. Blocks. */
size_t claims_collect(struct claims *c, struct claim **ret_claims, size_t most, int linger_ms,
                      instant deadline);
/* Could not be recorded now; with a rest it is not collected for CLAIM_REST_MS. */
void claims_put_back(struct claims *c, struct claim *claim, bool rests);
/* Recorded, or it never will be and is left to lapse: out of the table. */
void claims_close(struct claims *c, struct claim *claim);

/* All pairs to renew: everything that is held and not lost. Owns: free(*ret_pairs).
 * Returns: OK; FATAL (memory). */
MUST_USE enum status claims_pairs(struct claims *c, struct claim_pair **ret_pairs,
                                  size_t *ret_count);

/* What the heartbeat said of a pair: renewed until `deadline` ({0}: ours, but not renewed), with or
 * without a request to cancel; or not ours any more. False: it did not need to be renewed, since
 * its job has ended. */
bool claims_renewed(struct claims *c, const struct claim_pair *pair, instant deadline, bool cancel);
void claims_lost(struct claims *c, const struct claim_pair *pair);

/* Stop everything that waits or runs. */
void claims_kill_all(struct claims *c, enum claim_kill why);

/* Kill what has passed its deadline; returns how many, and when to look again. */
size_t claims_expire(struct claims *c, instant now, instant *ret_next);

struct claim_counts claims_count(struct claims *c);

/* Wait until something may be claimed / nothing waits or runs / nothing is held at all. False at
 * the deadline. Blocks. */
bool claims_wait_free(struct claims *c, instant deadline);
bool claims_wait_quiet(struct claims *c, instant deadline);
bool claims_wait_empty(struct claims *c, instant deadline);

/* claims_take returns NULL from now on; waiting jobs stay where they are. */
void claims_stop(struct claims *c);

#endif
