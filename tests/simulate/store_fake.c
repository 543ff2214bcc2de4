#include "store_fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "armed.h"
#include "world.h"

#define LIMBO_MS 8000 /* how long a lost packet is repeated: tcp_user_timeout */
#define LOST_MAX 4096

struct database_server server;
struct store *store_fake_all;
static struct {
    bool taken;
    struct database copy;
    int64_t calls[LOST_MAX]; /* committed since */
    size_t count;
} standby;

void store_fake_reset(void)
{
    server = (struct database_server){.up = true, .epoch = 1};
    store_fake_all = NULL; /* freed with the run */
    standby.taken = false;
    standby.count = 0;
}

/* Requests ---------------------------------------------------------------------------------------
 */

void *request_new(size_t size, enum call_op op,
                  void (*execute)(struct request *q, struct transaction *t))
{
    struct request *q = kernel_new(size);
    q->refs = 1;
    q->size = size;
    q->op = op;
    q->scope = -1;
    q->execute = execute;
    return q;
}

void request_authority(struct request *q, const struct authority *a)
{
    q->has_authority = true;
    q->authority = *a;
    q->scope = world_scope(a->scope);
}

static void unref(struct request *q)
{
    if (--q->refs == 0) {
        if (q->done != NULL) {
            q->done(q);
        }
        kernel_free(q);
    }
}

void request_end(struct request *q)
{
    unref(q);
}

void request_answer(struct request *q, enum call_verdict verdict, enum status status)
{
    q->verdict = verdict;
    q->status = status;
}

void request_fail(struct request *q, enum status status, const char *code, const char *text)
{
    q->verdict = VERDICT_ERROR;
    q->status = status;
    (void)snprintf(q->code, sizeof q->code, "%s", code);
    (void)snprintf(q->text, sizeof q->text, "%s", text);
}

static void tell_vanished(const struct request *q)
{
    if (q->op != OP_NONE) {
        world_fact(
            (struct fact){.kind = FACT_VANISHED, .node = q->store->process->node, .call = q->call});
    }
}

/* The server -------------------------------------------------------------------------------------
 */

static void on_reply(void *context, uint64_t number)
{
    struct request *q = context;
    struct store *s = q->store;
    (void)number;
    if (!s->closed && !s->broken && s->running == q) {
        q->answered = true;
        if (q->waiter != NULL) {
            fiber_wake(q->waiter);
        } else {
            kernel_fd_raise(s->fd);
        }
    }
    unref(q);
}

static void reply(struct request *q)
{
    int node = q->store->process->node;
    if (world_is_cut(node, SERVICE_POSTGRESQL, CUT_FROM) ||
        chance_hits(kernel_chance(), server.lose_reply)) {
        unref(q);
        return;
    }
    kernel_in(world_latency(node, SERVICE_POSTGRESQL), on_reply, q, 0);
}

void server_committed(int64_t call)
{
    server.commits++;
    if (standby.taken && standby.count < LOST_MAX) {
        standby.calls[standby.count++] = call;
    }
}

static void on_execute(void *context, uint64_t number)
{
    struct request *q = context;
    (void)number;
    if (q->op == OP_PLAN_BATCH && server.stuck > 0) {
        kernel_in(server.stuck, on_execute, q, 0);
        server.stuck = 0;
        q->stuck = true;
        return;
    }
    if (q->op == OP_PLAN_BATCH && server.step_us != 0) {
        database_step_clock(server.step_us);
        server.step_us = 0;
    }
    struct transaction t = {.call = q->call,
                            .op = q->op,
                            .node = q->store->process->node,
                            .authority = q->authority,
                            .scope = q->scope,
                            .now = database_now()};
    bool dead = !server.up || q->epoch != server.epoch || q->store->ended;
    q->executed = true;
    if (dead || (q->cancelled && !q->stuck)) {
        if (q->op != OP_NONE) {
            tell_call(&t, VERDICT_TERMINATED);
        }
        if (dead) {
            unref(q);
            return;
        }
        q->status = STATUS_TIMEOUT;
        (void)snprintf(q->code, sizeof q->code, "57014");
        reply(q);
        return;
    }
    q->execute(q, &t);
    if (q->op != OP_NONE) {
        tell_call(&t, q->verdict);
    }
    reply(q);
}

static void on_receive(void *context, uint64_t number)
{
    struct request *q = context;
    int node = q->store->process->node;
    bool is_cut = world_is_cut(node, SERVICE_POSTGRESQL, CUT_TO);
    if (is_cut && kernel_now() < q->limbo_until) {
        kernel_in(chance_in(kernel_chance(), 50, 400) * KERNEL_MS, on_receive, q, number + 1);
        return;
    }
    bool was_cut = is_cut || number > 0; /* else it is only late */
    if ((was_cut && kernel_now() >= q->limbo_until) || !server.up || q->epoch != server.epoch ||
        q->store->ended) {
        tell_vanished(q);
        unref(q);
        return;
    }
    kernel_in(chance_in(kernel_chance(), 100, 1500) * KERNEL_US +
                  (server.slow > 0 ? chance_in(kernel_chance(), 0, server.slow) : 0),
              on_execute, q, 0);
}

/* The client -------------------------------------------------------------------------------------
 */

static enum status lost(struct store *s, struct error *err)
{
    s->broken = true;
    return error_set(err, STATUS_AGAIN, "the connection was lost");
}

bool store_fake_is_dead(const struct store *s)
{
    return !server.up || s->epoch != server.epoch || s->ended;
}

static void on_notice(void *context, uint64_t number)
{
    struct store *s = context;
    (void)number;
    if (!s->closed && s->running != NULL && s->running->waiter != NULL) {
        fiber_wake(s->running->waiter);
    }
    if (!s->closed) {
        kernel_fd_raise(s->fd);
    }
}

static void send(struct request *q)
{
    struct store *s = q->store;
    int node = s->process->node;
    q->refs++;
    q->epoch = s->epoch;
    s->running = q;
    bool keeps_trying = chance_hits(kernel_chance(), 500);
    q->limbo_until = kernel_now() + (keeps_trying ? LIMBO_MS * KERNEL_MS : 30 * KERNEL_MS);
    if (chance_hits(kernel_chance(), server.lose_ask)) {
        tell_vanished(q);
        unref(q);
        return;
    }
    kernel_in(world_latency(node, SERVICE_POSTGRESQL), on_receive, q, 0);
}

static void tell_step(struct request *q, enum fact_kind kind)
{
    if (q->op == OP_NONE || (kind == FACT_DECIDED && !q->has_authority)) {
        return;
    }
    struct fact f = {.kind = kind,
                     .call = q->call,
                     .op = q->op,
                     .scope = q->scope,
                     .incarnation = q->authority.incarnation,
                     .generation = q->authority.generation,
                     .owner = world_identity(q->authority.owner)};
    world_own_fact(f);
}

static enum status give_up(struct store *s, struct request *q, struct error *err)
{
    s->broken = true;
    s->running = NULL;
    q->waiter = NULL;
    /* The cancel may come too late, or not at all. */
    if (!world_is_cut(s->process->node, SERVICE_POSTGRESQL, CUT_TO) &&
        chance_hits(kernel_chance(), 700)) {
        q->cancelled = true;
    }
    return error_set(err, STATUS_TIMEOUT, "no answer within the deadline");
}

static enum status answered(struct store *s, struct request *q, struct error *err)
{
    s->running = NULL;
    q->waiter = NULL;
    if (s->notifications == 0) {
        kernel_fd_clear(s->fd); /* nothing is left to read */
    }
    if (q->status == STATUS_OK) {
        return STATUS_OK;
    }
    enum status status = error_set(err, q->status, "%s", q->text);
    if (err != NULL) {
        memcpy(err->code, q->code, sizeof err->code);
    }
    return status;
}

static enum status wait_for_answer(struct store *s, struct request *q, instant deadline,
                                   struct error *err)
{
    int64_t until = process_true_at(s->process, deadline.ns);
    q->waiter = fiber_current();
    while (!q->answered) {
        bool cut = world_is_cut(s->process->node, SERVICE_POSTGRESQL, CUT_FROM);
        if (store_fake_is_dead(s) && !cut) {
            s->running = NULL;
            q->waiter = NULL;
            return lost(s, err);
        }
        if (kernel_now() >= until) {
            return give_up(s, q, err);
        }
        (void)fiber_wait(until);
    }
    return answered(s, q, err);
}

/* Decided, perhaps stopped for as long as anybody likes, sent. */
static enum status begin(struct store *s, struct request *q, struct error *err)
{
    if (s->broken) {
        return error_set(err, STATUS_AGAIN, "the connection is broken");
    }
    q->store = s;
    q->call = ++world.calls;
    tell_step(q, FACT_DECIDED);
    armed_point(q->op == OP_NONE ? ARMED_READ : ARMED_BEFORE_CALL);
    if (q->op == OP_ESTABLISH) {
        armed_point(ARMED_BEFORE_ESTABLISH);
    }
    (void)fiber_wait(kernel_now() + chance_in(kernel_chance(), 1, 30) * KERNEL_US);
    if (store_fake_is_dead(s) && !world_is_cut(s->process->node, SERVICE_POSTGRESQL, CUT_FROM)) {
        tell_vanished(q);
        return lost(s, err);
    }
    tell_step(q, FACT_SENT);
    send(q);
    return STATUS_OK;
}

enum status request_wait(struct store *s, struct request *q, instant deadline, struct error *err)
{
    s->begun = NULL;
    enum status status = wait_for_answer(s, q, deadline, err);
    if (q->op != OP_NONE) {
        world_own_fact((struct fact){
            .kind = FACT_ANSWERED, .call = q->call, .op = q->op, .known = q->answered});
        armed_point(ARMED_AFTER_CALL);
    }
    return status;
}

enum status request_begin(struct store *s, struct request *q, struct error *err)
{
    enum status status = begin(s, q, err);
    if (status != STATUS_OK) {
        request_end(q);
        return status;
    }
    s->begun = q;
    return STATUS_OK;
}

struct request *request_begun(struct store *s)
{
    return s->begun;
}

bool request_is_answered(const struct store *s)
{
    return s->begun == NULL || s->begun->answered || s->broken || store_fake_is_dead(s);
}

enum status exchange(struct store *s, instant deadline, struct request *q, struct error *err)
{
    enum status status = begin(s, q, err);
    return status == STATUS_OK ? request_wait(s, q, deadline, err) : status;
}

/* Faults -----------------------------------------------------------------------------------------
 */

static void drop_all(void)
{
    server.epoch++;
    for (struct store *s = store_fake_all; s != NULL; s = s->next) {
        if (!s->closed) {
            kernel_in(world_latency(s->process->node, SERVICE_POSTGRESQL), on_notice, s, 0);
        }
    }
}

void server_stop(void)
{
    server.up = false;
    drop_all();
}

void server_start(void)
{
    server.up = true;
}

void server_fall_behind(void)
{
    standby.taken = true;
    standby.count = 0;
    standby.copy = db;
}

void server_promote(void)
{
    if (!standby.taken) {
        return;
    }
    drop_all();
    db = standby.copy;
    world_fact((struct fact){.kind = FACT_FAILOVER,
                             .node = -1,
                             .number = (int64_t)standby.count,
                             .db_us = database_now()});
    for (size_t i = 0; i < standby.count; i++) {
        world_fact((struct fact){.kind = FACT_LOST, .node = -1, .call = standby.calls[i]});
    }
    standby.taken = false;
    standby.count = 0;
}
