#include "faults.h"

#include <stdio.h>
#include <string.h>

#include "armed.h"
#include "dispatch_fake.h"
#include "node.h"
#include "recipes.h"
#include "store_fake.h"
#include "world.h"
#include "zk_fake.h"

/* Who ---------------------------------------------------------------------------------------------
 */

static void any_scheduler(struct fault *f, struct chance *c)
{
    f->node = (int)chance_in(c, 0, world.setup.schedulers - 1);
}

static void any_worker(struct fault *f, struct chance *c)
{
    f->node = HISTORY_WORKERS_FROM + (int)chance_in(c, 0, world.setup.workers - 1);
}

static void any_node(struct fault *f, struct chance *c)
{
    if (chance_hits(c, 600)) {
        any_scheduler(f, c);
    } else {
        any_worker(f, c);
    }
}

static void any_server(struct fault *f, struct chance *c)
{
    f->which = (int)chance_in(c, 0, ZK_SERVERS - 1);
    f->amount = chance_in(c, 200, 3000);
}

static void any_scope(struct fault *f, struct chance *c)
{
    f->which = (int)chance_in(c, 0, world.setup.scopes - 1);
}

/* Processes --------------------------------------------------------------------------------------
 */

static void crash(struct fault *f)
{
    node_crash(f->node);
}

static void start(struct fault *f)
{
    node_start(f->node);
}

static void stop(struct fault *f)
{
    node_stop(f->node);
}

static void start_after_stop(struct fault *f)
{
    if (kernel_process(f->node)->alive) {
        node_crash(f->node); /* it hangs: the supervisor kills it */
    }
    node_start(f->node);
}

static void pause_node(struct fault *f)
{
    node_pause(f->node);
}

static void resume_node(struct fault *f)
{
    node_resume(f->node);
}

static void choose_armed(struct fault *f, struct chance *c)
{
    any_node(f, c);
    f->how = (unsigned)chance_in(c, 0, 4);
    f->which = (int)chance_in(c, 1, 12);
    f->amount = chance_in(c, 500, 3 * world.setup.session_ms);
}

static void arm_pause(struct fault *f)
{
    armed_set(f->node, (enum armed_place)f->how, (unsigned)f->which, ARMED_PAUSE,
              f->amount * KERNEL_MS);
}

static void arm_crash(struct fault *f)
{
    armed_set(f->node, (enum armed_place)f->how, (unsigned)f->which, ARMED_CRASH, 0);
}

static void disarm(struct fault *f)
{
    armed_clear(f->node);
    node_resume(f->node);
    node_start(f->node);
}

/* Ways -------------------------------------------------------------------------------------------
 */

static void choose_cut(struct fault *f, struct chance *c)
{
    any_node(f, c);
    f->which = (int)chance_in(c, node_is_worker(f->node) ? SERVICE_POSTGRESQL : SERVICE_ZOOKEEPER,
                              SERVICE_KAFKA);
    f->how = chance_hits(c, 600) ? CUT_TO | CUT_FROM : chance_hits(c, 500) ? CUT_TO : CUT_FROM;
    f->amount = chance_in(c, 20, 900);
}

static void cut(struct fault *f)
{
    world.cut[f->node][f->which] = f->how;
}

static void uncut(struct fault *f)
{
    world.cut[f->node][f->which] = CUT_NOTHING;
}

static void slow(struct fault *f)
{
    world.slow[f->node][f->which] = f->amount * KERNEL_MS;
}

static void fast(struct fault *f)
{
    world.slow[f->node][f->which] = 0;
}

/* ZooKeeper --------------------------------------------------------------------------------------
 */

static void server_down(struct fault *f)
{
    zk_server_stop(f->which);
}

static void server_up(struct fault *f)
{
    zk_server_start(f->which);
}

static void isolate(struct fault *f)
{
    zk_isolate(f->which);
}

static void rejoin(struct fault *f)
{
    zk_rejoin(f->which);
}

static void lag(struct fault *f)
{
    zk_set_lag(f->which, f->amount * KERNEL_MS);
}

static void no_lag(struct fault *f)
{
    zk_set_lag(f->which, 0);
}

static void elect(struct fault *f)
{
    zk_elect(f->amount * KERNEL_MS);
}

static void rebuild(struct fault *f)
{
    (void)f;
    zk_rebuild();
}

static void on_rewind(void *context, uint64_t number)
{
    (void)context;
    (void)number;
    zk_rewind();
}

static void snapshot(struct fault *f)
{
    zk_take_snapshot();
    kernel_in((f->until_ms - f->at_ms) / 2 * KERNEL_MS, on_rewind, NULL, 0);
}

static void remove_candidate(struct fault *f)
{
    char part[96];
    (void)snprintf(part, sizeof part, "/scopes/%s/candidates/", world_scope_name(f->which));
    zk_remove_node(part);
}

/* PostgreSQL -------------------------------------------------------------------------------------
 */

static void database_down(struct fault *f)
{
    (void)f;
    server_stop();
}

static void database_up(struct fault *f)
{
    (void)f;
    server_start();
}

static void fall_behind(struct fault *f)
{
    (void)f;
    server_fall_behind();
}

static void promote(struct fault *f)
{
    (void)f;
    server_promote();
}

static void choose_amount(struct fault *f, struct chance *c)
{
    f->amount = chance_in(c, 20, 300);
    f->how = (unsigned)chance_in(c, 0, 1);
}

static void slow_statements(struct fault *f)
{
    server.slow = f->amount * 6 * KERNEL_MS;
}

static void fast_statements(struct fault *f)
{
    (void)f;
    server.slow = 0;
}

static void lose_answers(struct fault *f)
{
    server.lose_reply = (unsigned)f->amount;
    server.lose_ask = f->how == 1 ? (unsigned)f->amount / 2 : 0;
}

static void lose_nothing(struct fault *f)
{
    (void)f;
    server.lose_reply = server.lose_ask = 0;
}

static void choose_step(struct fault *f, struct chance *c)
{
    f->amount = chance_in(c, 50, 20000) * (chance_hits(c, 500) ? 1 : -1);
}

static void step_clock(struct fault *f)
{
    database_step_clock(f->amount * 1000);
}

/* Kafka ------------------------------------------------------------------------------------------
 */

static void brokers_down(struct fault *f)
{
    (void)f;
    dispatch_stop();
}

static void brokers_up(struct fault *f)
{
    (void)f;
    dispatch_start();
}

static void topic_lost(struct fault *f)
{
    (void)f;
    dispatch_lose_topic();
}

static void topic_back(struct fault *f)
{
    (void)f;
    dispatch_make_topic();
}

static void repeat(struct fault *f)
{
    dispatch_repeat((unsigned)f->amount * 2);
}

static void repeat_nothing(struct fault *f)
{
    (void)f;
    dispatch_repeat(0);
}

static void delay(struct fault *f)
{
    dispatch_delay(f->amount * 20 * KERNEL_MS);
}

static void delay_nothing(struct fault *f)
{
    (void)f;
    dispatch_delay(0);
}

static void rebalance(struct fault *f)
{
    (void)f;
    dispatch_rebalance();
}

/* People -----------------------------------------------------------------------------------------
 */

static struct transaction by_hand(enum call_op op, int scope)
{
    return (struct transaction){
        .call = ++world.calls, .op = op, .node = -1, .scope = scope, .now = database_now()};
}

static void hold(struct fault *f)
{
    struct transaction t = by_hand(OP_RAISE_HOLD, f->how == 1 ? -1 : f->which);
    f->amount = raise_hold(&t, f->how == 1 ? -1 : f->which);
    tell_call(&t, VERDICT_OK);
}

static void unhold(struct fault *f)
{
    if ((size_t)f->amount < db.hold_count && !db.holds[f->amount].lifted) {
        struct transaction t = by_hand(OP_LIFT_HOLD, db.holds[f->amount].scope);
        lift_hold(&t, (int)f->amount);
        tell_call(&t, VERDICT_OK);
    }
}

static void choose_hold(struct fault *f, struct chance *c)
{
    any_scope(f, c);
    f->how = (unsigned)chance_in(c, 0, 1);
}

static void choose_edit(struct fault *f, struct chance *c)
{
    f->which = (int)chance_in(c, 0, recipes_count() - 1);
}

static void edit_schedule(struct fault *f)
{
    recipe_edit(f->which, f->random);
    database_notify();
}

/* table: exempt from the length limit */
static const struct fault_kind kinds[] = {
    {"crash-scheduler", 10, 300, 9000, any_scheduler, crash, start},
    {"crash-worker", 8, 300, 9000, any_worker, crash, start},
    {"stop-scheduler", 5, 3000, 12000, any_scheduler, stop, start_after_stop},
    {"stop-worker", 4, 3000, 12000, any_worker, stop, start_after_stop},
    {"pause", 12, 200, 12000, any_node, pause_node, resume_node},
    {"pause-at", 12, 1000, 15000, choose_armed, arm_pause, disarm},
    {"crash-at", 10, 1000, 8000, choose_armed, arm_crash, disarm},
    {"cut", 16, 300, 12000, choose_cut, cut, uncut},
    {"slow-way", 6, 1000, 10000, choose_cut, slow, fast},
    {"zk-server-down", 6, 500, 10000, any_server, server_down, server_up},
    {"zk-isolated", 6, 500, 10000, any_server, isolate, rejoin},
    {"zk-lag", 6, 1000, 10000, any_server, lag, no_lag},
    {"zk-election", 6, 500, 1000, any_server, elect, NULL},
    {"zk-rebuilt", 1, 3000, 9000, NULL, rebuild, NULL},
    {"zk-rewound", 1, 6000, 14000, NULL, snapshot, NULL},
    {"candidate-removed", 4, 100, 200, any_scope, remove_candidate, NULL},
    {"pg-down", 6, 200, 9000, NULL, database_down, database_up},
    {"pg-failover", 4, 50, 3000, NULL, fall_behind, promote},
    {"pg-slow", 6, 1000, 10000, choose_amount, slow_statements, fast_statements},
    {"pg-answers-lost", 8, 1000, 10000, choose_amount, lose_answers, lose_nothing},
    {"pg-clock-step", 4, 100, 200, choose_step, step_clock, NULL},
    {"kafka-down", 4, 500, 10000, NULL, brokers_down, brokers_up},
    {"topic-lost", 2, 200, 5000, NULL, topic_lost, topic_back},
    {"messages-repeated", 4, 1000, 15000, choose_amount, repeat, repeat_nothing},
    {"messages-delayed", 4, 1000, 15000, choose_amount, delay, delay_nothing},
    {"rebalance", 3, 100, 200, NULL, rebalance, NULL},
    {"hold", 2, 500, 6000, choose_hold, hold, unhold},
    {"edit", 14, 100, 200, choose_edit, edit_schedule, NULL},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

size_t fault_kind_count(void)
{
    return KINDS;
}

const char *fault_kind_name(size_t index)
{
    return kinds[index].name;
}

static const struct fault_kind *kind_draw(struct chance *c)
{
    unsigned sum = 0;
    for (size_t i = 0; i < KINDS; i++) {
        sum += kinds[i].weight;
    }
    int64_t at = chance_in(c, 0, (int64_t)sum - 1);
    for (size_t i = 0; i < KINDS; i++) {
        at -= kinds[i].weight;
        if (at < 0) {
            return &kinds[i];
        }
    }
    return &kinds[0];
}

/* One after another in order of their times: the list is read by people. */
static void list_sort(struct fault_list *list)
{
    for (size_t i = 1; i < list->count; i++) {
        struct fault f = list->faults[i];
        size_t at = i;
        for (; at > 0 && list->faults[at - 1].at_ms > f.at_ms; at--) {
            list->faults[at] = list->faults[at - 1];
        }
        list->faults[at] = f;
    }
}

void faults_make(uint64_t seed, struct fault_list *ret_list)
{
    struct chance c = chance_of(seed, 3);
    ret_list->count = (size_t)chance_in(&c, 3, 24);
    for (size_t i = 0; i < ret_list->count; i++) {
        struct fault *f = &ret_list->faults[i];
        *f = (struct fault){.kind = kind_draw(&c), .node = -1};
        f->at_ms = chance_in(&c, FAULTS_FROM_MS, FAULTS_UNTIL_MS - 1000);
        f->until_ms = f->at_ms + chance_in(&c, f->kind->shortest_ms, f->kind->longest_ms);
        f->until_ms = f->until_ms < FAULTS_UNTIL_MS ? f->until_ms : FAULTS_UNTIL_MS;
        f->random = chance_next(&c);
        if (f->kind->choose != NULL) {
            f->kind->choose(f, &c);
        }
    }
    faults_add_rare(seed, ret_list);
    list_sort(ret_list);
}

void fault_format(const struct fault *f, char *ret_text, size_t size)
{
    int n = snprintf(ret_text, size, "%6.3f to %6.3f s  %s", (double)f->at_ms / 1000,
                     (double)f->until_ms / 1000, f->kind->name);
    if (f->node >= 0 && n > 0 && (size_t)n < size) {
        n += snprintf(ret_text + n, size - (size_t)n, " %s", kernel_process(f->node)->name);
    }
    if (f->kind->choose != NULL && n > 0 && (size_t)n < size) {
        (void)snprintf(ret_text + n, size - (size_t)n, " (which %d, how %u, amount %lld)", f->which,
                       f->how, (long long)f->amount);
    }
}

static void on_apply(void *context, uint64_t number)
{
    struct fault *f = context;
    world_fact((struct fact){.kind = FACT_FAULT_BEGUN,
                             .node = f->node,
                             .number = (int64_t)number,
                             .name = f->kind->name});
    f->applied = true;
    f->kind->apply(f);
}

static void on_heal(void *context, uint64_t number)
{
    struct fault *f = context;
    if (f->kind->heal != NULL) {
        f->kind->heal(f);
    }
    world_fact((struct fact){.kind = FACT_FAULT_HEALED,
                             .node = f->node,
                             .number = (int64_t)number,
                             .name = f->kind->name});
}

void faults_plan(struct fault_list *list, const bool *keep)
{
    for (size_t i = 0; i < list->count; i++) {
        struct fault *f = &list->faults[i];
        f->applied = false;
        if (keep == NULL || keep[i]) {
            kernel_at(f->at_ms * KERNEL_MS, on_apply, f, i);
            kernel_at(f->until_ms * KERNEL_MS, on_heal, f, i);
        }
    }
}
