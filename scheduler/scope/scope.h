/* One scope in this process: a thread that feeds events to the lifecycle and carries out its
 * commands, with one database connection of its own. Nothing is decided here that lifecycle.h,
 * planning.h or the database can decide. */
#ifndef RS_SCOPE_H
#define RS_SCOPE_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "clock_watch.h"
#include "coord.h"
#include "ident.h"
#include "lifecycle.h"
#include "relay.h"
#include "status.h"

struct scope;

/* Strings and lists are borrowed until scope_free. */
struct scope_options {
    const char *name;
    const char *member; /* this replica, for people */
    const char *url;    /* of its HTTP server, for redirections; NULL or "": none */
    struct coord *coord;
    struct clock_watch *watch; /* shared by the process; NULL: the clock is not watched */
    const char *conninfo, *password_file;
    const char *tz_directory; /* NULL: the system's */
    int64_t tz_poll_ms;
    int64_t statement_ms; /* deadline of one statement */
    int64_t connect_ms;   /* deadline of connecting and verifying */
    int64_t establish_ms; /* how long to try to establish before giving the place up */
    int64_t unhealthy_ms; /* how long to bear a database without one successful statement */
    int64_t drain_ms;     /* for in-flight messages at an ordered stop */
    size_t batch_schedules;
    const char *brokers, *topic;
    const char *const *properties;   /* "key=value", NULL-terminated; may be NULL */
    const char *const *secret_files; /* "property=/path", the same */
    size_t relay_window;
};

/* Registers with the coordination, so before coord_start. Owns: scope_free.
 * Returns: OK, INVALID, FULL, FATAL (no memory). Thread: main. */
MUST_USE enum status scope_new(const struct scope_options *options, struct scope **ret_scope,
                               struct error *err);

/* Start the thread; after coord_start. Returns: OK, FATAL. */
MUST_USE enum status scope_start(struct scope *scope, struct error *err);

/* Ask for an ordered stop: drain, release, withdraw. Thread: any. Blocks: never. */
void scope_ask_stop(struct scope *scope);

/* Tell it that it made no turn for too long. Thread: any. Blocks: never. */
void scope_tell_stuck(struct scope *scope);

/* Bounds that a running scope may be given anew; they hold from the next time each is used. */
struct scope_bounds {
    int64_t establish_ms, unhealthy_ms, drain_ms;
};
/* Thread: any. Blocks: never. */
void scope_set_bounds(struct scope *scope, const struct scope_bounds *bounds);

/* Cancel the statement that is running, if any. Thread: any but the scope's own.
 * Blocks: while the cancel request travels, at worst a few seconds. */
void scope_cancel_statement(struct scope *scope);

/* When the loop last made a turn, at the latest `unhealthy` long ago. Thread: any. */
instant scope_last_turn(const struct scope *scope);

#define SCOPE_PROBLEM_MAX 480 /* a sentence about a hold, and its reason, is not cut off */

/* What people want to know; a consistent copy. Thread: any. Blocks: never for long. */
struct scope_snapshot {
    char name[NAME_MAX_BYTES];
    enum lifecycle_state state;
    enum lifecycle_reason reason; /* why ACTIVE was last left */
    instant since;                /* in this state */
    int64_t incarnation, generation;
    unsigned ahead;                  /* candidates before us, while FOLLOWING */
    unsigned failures;               /* fruitless tries in a row */
    char problem[SCOPE_PROBLEM_MAX]; /* last error, "" when none stands */
    bool suspended;                  /* ZooKeeper does not answer: the session may live or not */
    bool has_database;               /* a connection that answered when it was last used */
    bool has_relay;                  /* only a leader has one; false: `relay` is zero */
    struct relay_snapshot relay;
    double stall_s, relay_stall_s; /* longest of the loop and of the relay's, see stall.h */
};
struct scope_snapshot scope_read(struct scope *scope);

/* Wait for the thread to reach STOPPED. Returns: OK, TIMEOUT. Blocks: until deadline. */
MUST_USE enum status scope_join(struct scope *scope, instant deadline);

/* After scope_join returned OK, or when never started; before coord_free. NULL is fine. */
void scope_free(struct scope *scope);

#endif
