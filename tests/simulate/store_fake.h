/* Connections to the database in memory, and requests on their way: what store_pg*.c is to libpq. A
 * request is carried whole: what its caller's memory does after it was sent concerns nobody, and it
 * may be executed long after its caller has given up. */
#ifndef RS_SIMULATE_STORE_FAKE_H
#define RS_SIMULATE_STORE_FAKE_H

#include "database.h"
#include "kernel.h"
#include "status.h"
#include "store.h"

#define INSTALLATION "11111111-1111-4111-8111-111111111111"

struct request {
    int refs; /* the caller's, and that of whoever has it */
    size_t size;
    struct store *store;
    enum call_op op; /* OP_NONE: a read, of which nothing is told */
    int64_t call;
    bool has_authority;
    struct authority authority;
    int scope; /* -1: none */
    void (*execute)(struct request *q, struct transaction *t);
    void (*done)(struct request *q); /* frees what it carries; NULL: nothing */
    uint64_t epoch;                  /* of the server it was sent to */
    bool cancelled, executed, answered;
    bool stuck; /* cannot be cancelled */
    struct fiber *waiter;
    int64_t limbo_until; /* its packets are repeated while the way is cut */
    /* The answer. */
    enum call_verdict verdict;
    enum status status;
    char code[8], text[160];
};

/* The server. */
struct database_server {
    bool up;
    uint64_t epoch;      /* grows when it starts or fails over: older connections are dead */
    int64_t slow;        /* further time of a statement, ns */
    unsigned lose_reply; /* of a thousand answers so many never arrive */
    unsigned lose_ask;   /* the same of requests */
    int64_t commits;
    int64_t stuck;   /* the next plan_batch is executed so much later, cancelled or not, ns */
    int64_t step_us; /* ... and meets a clock that is stepped by this just before */
};
extern struct database_server server;

struct store {
    struct store *next;
    struct process *process;
    unsigned life;
    enum store_role role;
    bool broken, closed, ended; /* ended: by the server */
    uint64_t epoch;
    int fd;
    unsigned notifications;
    bool listens;
    struct request *running;
    struct request *begun; /* by request_begin, not waited for yet */
};

extern struct store *store_fake_all;            /* of the run, newest first */
bool store_fake_is_dead(const struct store *s); /* its server is gone */

void store_fake_reset(void);
void store_fake_forget(struct process *p);

/* size: of the whole struct that begins with a request. */
void *request_new(size_t size, enum call_op op,
                  void (*execute)(struct request *q, struct transaction *t));
/* `a` may be NULL. */
void request_authority(struct request *q, const struct authority *a);
/* Send it and wait for the answer. The request is the caller's until request_end. */
enum status exchange(struct store *store, instant deadline, struct request *q, struct error *err);
void request_end(struct request *q);
/* The same in two halves. begin: not OK, and the request is gone. */
enum status request_begin(struct store *store, struct request *q, struct error *err);
struct request *request_begun(struct store *store);
bool request_is_answered(const struct store *store);
enum status request_wait(struct store *store, struct request *q, instant deadline,
                         struct error *err);
/* In execute: what the caller gets. */
void request_answer(struct request *q, enum call_verdict verdict, enum status status);
void request_fail(struct request *q, enum status status, const char *code, const char *text);
/* NOTIFY: to every session that listens. */
void database_notify(void);

/* A call has committed: a standby that lags has not got it. */
void server_committed(int64_t call);

/* A supervisor after a worker's death: `report-worker --release-claims`. */
void store_fake_release_claims(int node);

/* Faults. */
void server_stop(void);
void server_start(void);
/* A standby that has all but what was committed since it last was in step takes over. */
void server_fall_behind(void); /* the standby stops following here */
void server_promote(void);

#endif
