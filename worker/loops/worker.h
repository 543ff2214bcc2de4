/* What the threads of one worker process share. Each part protects itself; there is no lock over
 * the whole. */
#ifndef RS_WORKER_H
#define RS_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "claims.h"
#include "counters.h"
#include "life_file.h"
#include "settings_now.h"
#include "stall.h"
#include "store.h"
#include "store_claim.h"
#include "worker_settings.h"

/* Which life of the worker the database knows. Written by the heartbeat thread. */
struct incarnation {
    pthread_mutex_t mutex; /* protects all below */
    bool alive;
    char id[UUID_TEXT_MAX];
    struct worker_agreement agreement;
};

struct worker {
    /* As at the start: for keys that only a restart changes. Others are taken from `now`. */
    const struct worker_settings *settings;
    struct settings_now *now;
    _Atomic int64_t pull_idle_ms; /* of the settings in force */
    struct claims *claims;
    struct store_identity *identity; /* of the database, for all connections; owned */
    struct counters counters;
    struct incarnation incarnation;
    char keeper[WORKER_PATH_MAX];
    struct life_file *life; /* NULL: none; written by the heartbeat thread, shared with keepers */
    /* When these loops last turned, nanoseconds of an instant; for /livez and the watchdog. */
    _Atomic int64_t guard_turned_ns, heartbeat_turned_ns, intake_turned_ns, outcomes_turned_ns;

    _Atomic int64_t beat_ns; /* last heartbeat that was answered; 0: none yet */
    struct stall claims_stall, heartbeat_stall, outcomes_stall; /* of the loops */
    int heartbeat_wake;      /* eventfd: the heartbeat thread has something to do */
    int intake_wake;         /* eventfd: the poll thread has to look up */
    int sweep_wake;          /* eventfd: the sweeping thread has to stop */
    atomic_bool draining;    /* claim nothing more */
    atomic_bool intake_over; /* and nothing more will come */
    atomic_bool ended;       /* an RS005 was seen: the heartbeat thread begins a new incarnation */
    atomic_bool finishing;   /* outcomes, heartbeat and sweep end when they have nothing to do */
};

/* Settings are borrowed. Returns: OK; FATAL. */
MUST_USE enum status worker_init(struct worker *w, const struct worker_settings *settings,
                                 struct error *err);
void worker_done(struct worker *w);

/* A copy of the current incarnation; false while there is none. Thread: any. */
struct incarnation_copy {
    char id[UUID_TEXT_MAX];
    struct worker_agreement agreement;
};
bool worker_incarnation(struct worker *w, struct incarnation_copy *ret_copy);

/* Somebody was told that the incarnation has ended: kill all, and begin a new one. Thread: any. */
void worker_incarnation_ended(struct worker *w, const char *id);

void wake_up(int eventfd_number);
/* Wait for a wake-up, at most timeout_ms; takes it. */
void wake_wait(int eventfd_number, int timeout_ms);

/* One thread's connection to the scheduler's database, opened again with a backoff. */
struct connection {
    const char *what; /* for the log */
    struct store *store;
    instant retry_at;
    unsigned failures;
    struct error why; /* of the last failure to connect */
};

/* Make sure that there is a usable connection. Returns: OK; AGAIN (not now; wait until retry_at or
 * a little). Logs the first failure of a row and the recovery. Blocks: up to 5 s. */
MUST_USE enum status connection_ensure(struct connection *c, const struct worker *w);
void connection_close(struct connection *c);

/* The same trouble again and again: is it to be logged? When its text is new, and once a minute.
 * For one thread; zero-initialise. */
struct trouble {
    char text[ERROR_TEXT_MAX];
    instant again_at;
};
bool trouble_is_told(struct trouble *t, const char *text);

#define STATEMENT_MS 5000 /* client side; the role's statement_timeout (3 s) comes first */

#endif
