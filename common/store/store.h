/* Port: one connection to the PostgreSQL database of the scheduler.
 *
 * Opaque; what is asked over it is declared in the headers of those who ask (store_fence.h,
 * store_plan.h, store_claim.h ...). Each call is one statement, autocommit, small result
 * (docs/architecture.md, "A protected write"), with a deadline (I10): at the deadline the statement
 * is cancelled, the connection is marked broken and the answer is TIMEOUT, which means "effect
 * unknown". */
#ifndef RS_STORE_H
#define RS_STORE_H

#include <stdint.h>

#include "clock.h"
#include "ident.h"
#include "status.h"

struct store;

/* SQLSTATEs of our own, raised in sql/, and the status that each becomes; PostgreSQL's: store_pg.h.
 *
 *   RS001  CORRUPT  the scope has no fence row
 *   RS003  INVALID  establish: an incarnation of no known ensemble
 *   RS004  INVALID  plan_batch: a firing is not due yet, so the database's clock went back
 *   RS005  INVALID  this worker incarnation has ended (STORE_ENDED in store_claim.h)
 *   RS006  INVALID  worker_register: no such queue
 *   RS900  -        inside of rehearse, which takes back by it what it has done */

enum store_role {
    STORE_SCHEDULER, /* verified at connect: role settings, primary, no pooler */
    STORE_WORKER,    /* the same, for the worker's role */
    STORE_ADMIN,     /* reportctl: no settings are demanded */
};

/* Which database a process belongs to: learnt with its first connection and demanded of all later
 * ones, so that a name that leads elsewhere, or a restored copy, is noticed before anything is
 * written. Zero-initialised; shared by all connections of a process; any thread. */
struct store_identity {
    char system[24];                  /* pg_control_system().system_identifier */
    char installation[UUID_TEXT_MAX]; /* reports.installation.id; "" until known */
};

struct store_options {
    const char *conninfo;         /* libpq keywords; never logged */
    const char *password_file;    /* NULL or "": none */
    const char *application_name; /* at most 63 bytes, shown in pg_stat_activity */
    enum store_role role;
    struct store_identity *identity; /* NULL: not compared */
    int64_t lock_timeout_ms;         /* 0: the role's */
};

/* Is this a libpq connection string that may stand in a settings file: without a secret in it? The
 * second form also demands a host that is reached by TCP, as store_open does for its roles. err
 * says "what; write what instead", never a value. Returns: OK; INVALID. Thread: any. Blocks: never.
 */
MUST_USE enum status store_conninfo_check(const char *conninfo, struct error *err);
MUST_USE enum status store_tcp_conninfo_check(const char *conninfo, struct error *err);

/* Connect and verify: not in recovery, backend pid as seen by both ends (a pooler in transaction
 * mode is refused by name), the schema is there, role settings bound a paused owner.
 * Owns: *ret_store, closed with store_close (NULL is fine).
 * Returns: OK; AGAIN (unreachable, starting up, in recovery); INVALID (wrong role settings,
 * pooler, schema missing; text says the remedy); TIMEOUT. Thread: owner. Blocks: until deadline. */
MUST_USE enum status store_open(const struct store_options *options, instant deadline,
                                struct store **ret_store, struct error *err);
void store_close(struct store *store);

/* True after a lost connection, a timeout or a protocol error: close it and open another. */
bool store_is_broken(const struct store *store);

/* After a statement over many rows was INVALID: is one of the rows to blame (I12)? Data exceptions,
 * constraint violations and exceptions raised on purpose are; an I/O error, a revoked grant, a
 * missing function or a clock that went backwards (RS004) are the server's, and blaming rows for
 * those would spoil every one of them. Pure. */
bool store_blames_a_row(const struct error *err);

/* After AGAIN or TIMEOUT: did the statement fail although the server is well, since it waited for a
 * lock, met a deadlock, or was slow? Then fewer rows, or other ones, may succeed. Pure. */
bool store_is_a_wait(const struct error *err);

/* Ask the server to cancel what is running on this connection. Thread: any, while the owner keeps
 * the connection open (the caller guarantees that). Blocks: up to a few seconds on connect. */
void store_cancel(struct store *store);

/* LISTEN on a channel (a plain identifier). Returns: OK; INVALID; AGAIN; TIMEOUT. Thread: owner.
 * Blocks: until deadline. */
MUST_USE enum status store_listen(struct store *store, const char *channel, instant deadline,
                                  struct error *err);

/* Socket to poll(2) for notifications; -1 when broken. Borrowed. */
int store_fd(const struct store *store);

/* Read what has arrived and count notifications; never blocks.
 * Returns: OK, AGAIN (connection lost; the store is broken). */
MUST_USE enum status store_take_notifications(struct store *store, unsigned *ret_count);

/* Was one of those taken since this was asked last on that channel? Thread: owner. Blocks: never.
 */
bool store_heard(struct store *store, const char *channel);

/* clock_timestamp() of the server. Returns: OK; AGAIN; TIMEOUT; CORRUPT (no instant of ours).
 * Thread: owner. Blocks: until deadline. */
MUST_USE enum status store_clock(struct store *store, instant deadline, utc_us *ret_now,
                                 struct error *err);

#endif
