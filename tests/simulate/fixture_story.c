#include "fixture_story.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

const struct caller FIRST = {.node = 0, .generation = 100};
const struct caller SECOND = {.node = 1, .generation = 200};

static const struct setup setup = {
    .schedulers = 2,
    .workers = 2,
    .scopes = 1,
    .queues = 1,
    .session_ms = 10000,
    .tick_ms = 1000,
    .margin_ms = 1000,
    .beat_ms = 1000,
    .claim_lease_us = 6 * STORY_SECOND,
    .reap_grace_us = 2 * STORY_SECOND,
    .queue_bound = {3},
    .catch_up_per_minute = {2},
    .live_within_us = 30 * STORY_SECOND,
    .work_within_us = 60 * STORY_SECOND,
    .expect_mark = true,
};

struct story *story_begin(void)
{
    struct story *s = calloc(1, sizeof *s);
    if (s == NULL) {
        abort();
    }
    s->h = history_new(&setup);
    s->c = checker_new(s->h);
    for (size_t i = 0; i < 4; i++) {
        s->recipes[i] = (struct recipe){.kind = RECIPE_INTERVAL,
                                        .anchor_us = STORY_DB,
                                        .every_us = STORY_SECOND,
                                        .starts_at = HISTORY_NONE,
                                        .ends_at = HISTORY_NONE,
                                        .misfire_max = 31,
                                        .misfire_age_us = 7 * 86400 * STORY_SECOND,
                                        .misfire_grace_us = 60 * STORY_SECOND};
    }
    s->recipes[1].overlap = OVERLAP_FORBID;
    s->recipes[2].overlap = OVERLAP_QUEUE;
    s->recipes[3].kind = RECIPE_DAILY;
    s->recipes[3].zone = ZONE_BERLIN;
    return s;
}

void story_end(struct story *s)
{
    checker_free(s->c);
    history_free(s->h);
    free(s);
}

int64_t story_db(const struct story *s)
{
    return STORY_DB + s->now_us;
}

void pass(struct story *s, int64_t us)
{
    s->now_us += us;
}

void tell(struct story *s, struct fact fact)
{
    fact.at_us = s->now_us;
    if (fact.node_us == 0) {
        fact.node_us = s->now_us;
    }
    if (fact.db_us == 0) {
        fact.db_us = story_db(s);
    }
    history_add(s->h, &fact);
    pass(s, 1000);
}

static uint64_t owner_of(struct caller by)
{
    return 1000 + (uint64_t)by.generation;
}

void send_call(struct story *s, struct caller by, enum call_op op)
{
    struct fact f = {.kind = FACT_DECIDED,
                     .call = ++s->call,
                     .op = op,
                     .node = by.node,
                     .incarnation = 1,
                     .generation = by.generation,
                     .owner = owner_of(by)};
    tell(s, f);
    f.kind = FACT_SENT;
    tell(s, f);
}

void row(struct story *s, struct fact fact)
{
    fact.call = s->call;
    tell(s, fact);
}

void done(struct story *s, struct caller by, enum call_op op, enum call_verdict verdict)
{
    tell(s, (struct fact){.kind = FACT_CALL,
                          .call = s->call,
                          .op = op,
                          .node = by.node,
                          .verdict = verdict,
                          .incarnation = 1,
                          .generation = by.generation,
                          .owner = owner_of(by)});
    tell(s, (struct fact){.kind = FACT_ANSWERED, .call = s->call, .node = by.node, .known = true});
}

void send_work(struct story *s, int node, enum call_op op)
{
    tell(s, (struct fact){.kind = FACT_SENT, .call = ++s->call, .op = op, .node = node});
}

void done_work(struct story *s, int node, enum call_op op)
{
    tell(s, (struct fact){.kind = FACT_CALL, .call = s->call, .op = op, .node = node});
    tell(s, (struct fact){.kind = FACT_ANSWERED, .call = s->call, .node = node, .known = true});
}

void beat(struct story *s, int node, int64_t us)
{
    tell(s, (struct fact){.kind = FACT_BEAT_SENT, .node = node, .number = ++s->beat});
    pass(s, us);
    tell(s, (struct fact){.kind = FACT_BEAT_ANSWERED, .node = node, .number = s->beat});
}

void begin_scheduler(struct story *s, int node)
{
    tell(s, (struct fact){.kind = FACT_STARTED, .node = node});
    tell(s, (struct fact){.kind = FACT_SESSION_MADE, .node = node, .session = 500 + node});
    tell(s, (struct fact){.kind = FACT_SESSION_UP, .node = node, .session = 500 + node});
    beat(s, node, 1000);
}

void state(struct story *s, struct caller by, enum node_state was, enum node_state now)
{
    tell(s, (struct fact){.kind = FACT_STATE,
                          .node = by.node,
                          .was = was,
                          .state = now,
                          .generation = by.generation});
}

void enroll(struct story *s, struct caller by)
{
    tell(s, (struct fact){.kind = FACT_CANDIDATE_MADE,
                          .node = by.node,
                          .session = 500 + by.node,
                          .incarnation = 1,
                          .generation = by.generation});
}

void lead(struct story *s, struct caller by)
{
    state(s, by, STATE_ENROLLING, STATE_ESTABLISHING);
    send_call(s, by, OP_ESTABLISH);
    row(s, (struct fact){.kind = FACT_ROW_FENCE,
                         .incarnation = 1,
                         .generation = by.generation,
                         .owner = owner_of(by)});
    done(s, by, OP_ESTABLISH, VERDICT_OK);
    state(s, by, STATE_ESTABLISHING, STATE_PREPARING);
    state(s, by, STATE_PREPARING, STATE_ACTIVE);
}

int64_t firing(int64_t n)
{
    return STORY_DB + n * STORY_SECOND;
}

struct fact progress(int schedule, int64_t step, int64_t last_us)
{
    return (struct fact){.kind = FACT_ROW_PROGRESS,
                         .schedule = schedule,
                         .version = 1,
                         .step = step,
                         .last_us = last_us,
                         .next_us = last_us == HISTORY_NONE ? STORY_DB : last_us + STORY_SECOND,
                         .switched_us = STORY_DB};
}

void make_schedule(struct story *s, struct caller by, int schedule)
{
    send_work(s, 0, OP_EDIT);
    row(s, (struct fact){.kind = FACT_ROW_VERSION,
                         .schedule = schedule,
                         .version = 1,
                         .effective_us = STORY_DB,
                         .recipe = &s->recipes[schedule]});
    done_work(s, 0, OP_EDIT);
    send_call(s, by, OP_TAKE_IN);
    row(s, progress(schedule, 1, HISTORY_NONE));
    done(s, by, OP_TAKE_IN, VERDICT_OK);
}

struct fact occurrence(struct caller by, int schedule, int64_t fire_us, uint64_t number)
{
    struct fact f = {.kind = FACT_ROW_OCCURRENCE,
                     .schedule = schedule,
                     .fire_us = fire_us,
                     .job = number,
                     .version = 1,
                     .incarnation = 1,
                     .generation = by.generation};
    int64_t seconds = fire_us / STORY_SECOND - 1900000000; /* 2030-03-17T17:46:40Z */
    int64_t of_day = 17 * 3600 + 46 * 60 + 40 + seconds;
    (void)snprintf(f.key, sizeof f.key, "2030-03-17T%02d:%02d:%02dZ", (int)(of_day / 3600),
                   (int)(of_day / 60 % 60), (int)(of_day % 60));
    return f;
}

struct fact job(int schedule, uint64_t number, enum job_state state)
{
    static const enum overlap_policy overlaps[] = {OVERLAP_ALLOW, OVERLAP_FORBID, OVERLAP_QUEUE,
                                                   OVERLAP_ALLOW};
    return (struct fact){.kind = FACT_ROW_JOB,
                         .schedule = schedule,
                         .job = number,
                         .job_state = state,
                         .overlap = overlaps[schedule],
                         .run_after_us = STORY_DB};
}

struct fact message(struct story *s, uint64_t number)
{
    return (struct fact){.kind = FACT_ROW_OUTBOX, .id = ++s->outbox, .job = number};
}

void plan(struct story *s, struct caller by, int schedule, int64_t n)
{
    uint64_t number = 100 * (uint64_t)schedule + (uint64_t)n + 1;
    send_call(s, by, OP_PLAN_BATCH);
    row(s, occurrence(by, schedule, firing(n), number));
    struct fact queued = job(schedule, number, JOB_QUEUED);
    queued.run_after_us = firing(n);
    row(s, queued);
    row(s, message(s, number));
    row(s, progress(schedule, n + 2, firing(n)));
    done(s, by, OP_PLAN_BATCH, VERDICT_OK);
}

void claim(struct story *s, int node, int schedule, uint64_t number, uint64_t token)
{
    send_work(s, node, OP_CLAIM_IDS);
    struct fact f = job(schedule, number, JOB_RUNNING);
    f.token = token;
    f.worker = (uint64_t)node;
    f.attempt = 1;
    f.lease_us = story_db(s) + setup.claim_lease_us;
    row(s, f);
    done_work(s, node, OP_CLAIM_IDS);
    tell(s, (struct fact){.kind = FACT_RUN_BEGUN, .node = node, .job = number, .token = token});
}

const char *broken(struct story *s)
{
    const struct violation *v = NULL;
    return checker_step(s->c, &v) ? "" : v->invariant;
}

struct story *two_schedulers(void)
{
    struct story *s = story_begin();
    begin_scheduler(s, 0);
    begin_scheduler(s, 1);
    enroll(s, FIRST);
    enroll(s, SECOND);
    lead(s, FIRST);
    for (int i = 0; i < 3; i++) {
        make_schedule(s, FIRST, i);
    }
    pass(s, STORY_SECOND); /* firings 0 and 1 are due soon */
    return s;
}

void take_over(struct story *s)
{
    tell(s, (struct fact){.kind = FACT_DISCONNECTED, .node = 0});
    pass(s, 11 * STORY_SECOND);
    tell(s, (struct fact){.kind = FACT_SESSION_ENDED,
                          .node = 0,
                          .session = 500,
                          .candidate_end = CANDIDATE_EXPIRED});
    tell(s, (struct fact){.kind = FACT_CANDIDATE_GONE,
                          .generation = FIRST.generation,
                          .candidate_end = CANDIDATE_EXPIRED});
    beat(s, 1, 1000);
    lead(s, SECOND);
}

void assert_broken(struct story *s, const char *invariant)
{
    const char *found = broken(s);
    story_end(s);
    assert_string_equal(found, invariant);
}

struct story *running_job(void)
{
    struct story *s = two_schedulers();
    plan(s, FIRST, 0, 0);
    claim(s, WORKER, 0, 1, 71);
    return s;
}
