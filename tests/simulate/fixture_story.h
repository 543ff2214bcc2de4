/* Short words for hand-written histories: a cluster of one scope, two schedulers and a worker,
 * whose clocks all show true time plus a constant. Each word adds its facts and lets a millisecond
 * pass. */
#ifndef RS_FIXTURE_STORY_H
#define RS_FIXTURE_STORY_H

#include "checker.h"

#define STORY_DB     (INT64_C(1900000000) * 1000000) /* the database clock at true time 0 */
#define STORY_SECOND INT64_C(1000000)

struct story {
    struct history *h;
    struct checker *c;
    int64_t now_us;
    int64_t call; /* number of the last call */
    int64_t beat;
    int64_t outbox;
    struct recipe recipes[4]; /* of schedules 0 to 3: one firing a second from STORY_DB on; 1
                               * forbids, 2 queues overlap; 3 is daily in Berlin */
};

struct story *story_begin(void);
void story_end(struct story *s);

/* Add a fact now. */
void tell(struct story *s, struct fact fact);
void pass(struct story *s, int64_t us);
int64_t story_db(const struct story *s);

/* Who calls: scheduler `node` with czxid `generation`; its owner is 1000 + generation. */
struct caller {
    int node;
    int64_t generation;
};
/* DECIDED and SENT; the number of the call is s->call. */
void send_call(struct story *s, struct caller by, enum call_op op);
/* A row of the call that is being made. */
void row(struct story *s, struct fact fact);
/* CALL: the commit (or refusal) of the last one that was sent, and its answer. */
void done(struct story *s, struct caller by, enum call_op op, enum call_verdict verdict);
/* Workers' calls: SENT only. */
void send_work(struct story *s, int node, enum call_op op);
void done_work(struct story *s, int node, enum call_op op);

/* A lease beat of a scheduler, sent now and answered after `us`. */
void beat(struct story *s, int node, int64_t us);
/* Started, with a session and a lease. */
void begin_scheduler(struct story *s, int node);
/* With a candidate node of that czxid, as yet nobody. */
void enroll(struct story *s, struct caller by);
void state(struct story *s, struct caller by, enum node_state was, enum node_state now);
/* From ENROLLING to ACTIVE: established and prepared. */
void lead(struct story *s, struct caller by);
/* A user makes the schedule and the leader takes it in. Its progress is at step 1. */
void make_schedule(struct story *s, struct caller by, int schedule);

/* Rows in short. */
struct fact progress(int schedule, int64_t step, int64_t last_us);
struct fact occurrence(struct caller by, int schedule, int64_t fire_us, uint64_t job);
struct fact job(int schedule, uint64_t number, enum job_state state);
struct fact message(struct story *s, uint64_t job);
/* The n-th firing of schedules 0 to 2, from 0. */
int64_t firing(int64_t n);

/* Firing n of the schedule becomes occurrence, job (number 100 * schedule + n + 1) and message in
 * one call; the progress goes to step n + 2. */
void plan(struct story *s, struct caller by, int schedule, int64_t n);
/* The worker claims the job with that token, and runs it. */
void claim(struct story *s, int node, int schedule, uint64_t number, uint64_t token);

/* Scheduler 0 leads by FIRST with schedules 0 (allow), 1 (forbid) and 2 (queue), 1 follows by
 * SECOND. */
extern const struct caller FIRST, SECOND;
enum {
    WORKER = HISTORY_WORKERS_FROM,
    OTHER_WORKER = HISTORY_WORKERS_FROM + 1
};
struct story *two_schedulers(void);
/* The first one's session ends in the ensemble, after its lease; the second takes over. */
void take_over(struct story *s);
/* two_schedulers, and firing 0 of schedule 0 is job 1, which WORKER runs with token 71. */
struct story *running_job(void);

/* The invariant that is broken, or "": none. */
const char *broken(struct story *s);

/* Ends the story, too. */
void assert_broken(struct story *s, const char *invariant);

#endif
