#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "armed.h"
#include "dispatch_fake.h"
#include "faults.h"
#include "lease.h"
#include "node.h"
#include "recipes.h"
#include "report_fake.h"
#include "store_fake.h"
#include "zk_fake.h"

struct world world;
static struct fault_list list;

/* Telling ----------------------------------------------------------------------------------------
 */

int64_t world_us(void)
{
    return kernel_now() / KERNEL_US;
}

uint64_t world_identity(const char *uuid)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
    if (uuid[0] == '\0') {
        return 0;
    }
    for (const char *p = uuid; *p != '\0'; p++) {
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    }
    return h == 0 ? 1 : h;
}

int world_scope(const char *name)
{
    for (int i = 0; i < world.setup.scopes; i++) {
        if (strcmp(world_scope_name(i), name) == 0) {
            return i;
        }
    }
    return -1;
}

const char *world_scope_name(int scope)
{
    static const char *const names[HISTORY_SCOPES] = {"main", "second", "third", "fourth"};
    return names[scope];
}

void world_fact(struct fact fact)
{
    fact.at_us = world_us();
    if (world.trace) {
        char text[400];
        fact_format(&fact, text, sizeof text);
        (void)printf("%s\n", text);
    }
    if (world.history != NULL) {
        unsigned before = kernel_memory_owner(0);
        history_add(world.history, &fact);
        (void)kernel_memory_owner(before);
    }
}

void world_own_fact(struct fact fact)
{
    const struct process *p = process_current();
    fact.node = p->node;
    fact.node_us = process_clock(p) / KERNEL_US;
    world_fact(fact);
}

void world_file_gone(const char *path)
{
    for (size_t i = 0; i < db.artifact_count && world.violation[0] == '\0'; i++) {
        if (strcmp(db.artifacts[i].path, path) == 0) {
            (void)snprintf(world.violation, sizeof world.violation,
                           "the file of a visible artifact was removed: %.100s", path);
        }
    }
}

void world_mark_looked_at(const struct transaction *t)
{
    char path[160];
    (void)snprintf(path, sizeof path, "/report-scheduler/scopes/%s/mark",
                   world_scope_name(t->scope));
    const char *mark = zk_newest(path);
    const struct db_fence *f = &db.fences[t->scope];
    bool newer =
        t->authority.incarnation > f->incarnation ||
        (t->authority.incarnation == f->incarnation && t->authority.generation > f->generation);
    if (newer && job_not_known(t->scope, &mark, 1) != NULL) {
        world_fact((struct fact){.kind = FACT_MARK_BEHIND, .node = t->node, .scope = t->scope});
    }
}

/* Ways -------------------------------------------------------------------------------------------
 */

int64_t world_latency(int node, enum service service)
{
    struct chance *c = kernel_chance();
    int64_t ns = chance_in(c, 60, 400) * KERNEL_US;
    if (chance_hits(c, 15)) {
        ns += chance_in(c, 1, 30) * KERNEL_MS; /* a packet lost and sent again */
    }
    if (world.slow[node][service] > 0) {
        ns += chance_in(c, 0, world.slow[node][service]);
    }
    return ns;
}

bool world_is_cut(int node, enum service service, enum cut direction)
{
    return (world.cut[node][service] & (unsigned)direction) != 0;
}

/* A run ------------------------------------------------------------------------------------------
 */

/* Instants at which daily rules have something to do: a usual night, and both changes of the clock
 * in Berlin. */
static const int64_t bases[] = {
    INT64_C(1905811180) * 1000000, /* 2030-05-23T22:59:40Z */
    INT64_C(1901149180) * 1000000, /* 2030-03-30T23:59:40Z */
    INT64_C(1901152780) * 1000000, /* 2030-03-31T00:59:40Z: it jumps from 02:00 to 03:00 */
    INT64_C(1919293180) * 1000000, /* 2030-10-27T00:59:40Z: it goes back from 03:00 to 02:00 */
    INT64_C(1919289580) * 1000000, /* 2030-10-26T23:59:40Z */
};

static void setup_draw(uint64_t seed)
{
    struct chance c = chance_of(seed, 5);
    struct setup *s = &world.setup;
    *s = (struct setup){.schedulers = (int)chance_in(&c, 2, 4),
                        .workers = (int)chance_in(&c, 2, 4),
                        .scopes = (int)chance_in(&c, 1, 2),
                        .queues = (int)chance_in(&c, 1, 3),
                        .session_ms = 4000,
                        .tick_ms = 500,
                        .margin_ms = 1000,
                        .claim_lease_us = 4000000,
                        .reap_grace_us = 1000000,
                        .work_within_us = 60000000,
                        .drift_ppm = 200,
                        .expect_mark = true};
    s->beat_ms = lease_beat_ms(s->session_ms);
    for (int i = 1; i < s->queues; i++) {
        s->queue_bound[i] = chance_hits(&c, 500) ? chance_in(&c, 1, 4) : 0;
    }
    for (int i = 0; i < s->scopes; i++) {
        s->catch_up_max[i] = chance_hits(&c, 500) ? chance_in(&c, 1, 3) : 0;
    }
    struct chance budget = chance_of(seed, 6);
    for (int i = 0; i < s->scopes; i++) {
        s->catch_up_per_minute[i] =
            chance_hits(&budget, 400) ? chance_in(&budget, 1, BUDGET_MOST) : 0;
    }
    world.base_us =
        bases[chance_next(&c) % (sizeof bases / sizeof bases[0])] + chance_in(&c, 0, 999999);
}

static void on_start(void *context, uint64_t number)
{
    (void)context;
    node_start((int)number);
}

/* Somebody looks after the installation: lifts what a guard has raised, and rebases when the
 * schedulers are refused for their ensemble. */
static void on_look(void *context, uint64_t number)
{
    (void)context;
    (void)number;
    if (server.up) {
        lift_rewound(2000000);
        (void)rebase();
    }
    kernel_in(4 * KERNEL_S, on_look, NULL, 0);
}

static void on_all_healed(void *context, uint64_t number)
{
    (void)context;
    (void)number;
    armed_reset();
    for (int i = 0; i < KERNEL_PROCESSES_MAX; i++) {
        bool is_worker = node_is_worker(i);
        int limit = is_worker ? HISTORY_WORKERS_FROM + world.setup.workers : world.setup.schedulers;
        if (i < limit) {
            node_resume(i);
            node_start(i);
        }
    }
    world_fact((struct fact){.kind = FACT_FAULTS_OVER, .node = -1});
}

static void world_begin(const struct run *run)
{
    unsigned before = kernel_memory_owner(0);
    history_free(world.history);
    world.history = NULL;
    kernel_reset(run->seed);
    memset(world.cut, 0, sizeof world.cut);
    memset(world.slow, 0, sizeof world.slow);
    world.calls = 0;
    world.violation[0] = '\0';
    world.trace = run->trace;
    setup_draw(run->seed);
    world.history = history_new(&world.setup);
    nodes_reset();
    armed_reset();
    database_reset();
    store_fake_reset();
    zk_reset(world.setup.tick_ms);
    dispatch_reset();
    report_reset();
    recipes_make(run->seed);
    faults_make(run->seed, &list);
    faults_plan(&list, run->keep);
    for (int i = 0; i < world.setup.schedulers; i++) {
        kernel_in(chance_in(kernel_chance(), 1, 500) * KERNEL_MS, on_start, NULL, (uint64_t)i);
    }
    for (int i = 0; i < world.setup.workers; i++) {
        kernel_in(chance_in(kernel_chance(), 1, 500) * KERNEL_MS, on_start, NULL,
                  (uint64_t)(HISTORY_WORKERS_FROM + i));
    }
    kernel_in(4 * KERNEL_S, on_look, NULL, 0);
    kernel_at((FAULTS_UNTIL_MS + 1) * KERNEL_MS, on_all_healed, NULL, 0);
    (void)kernel_memory_owner(before);
}

static bool is_violated(struct checker *checker, struct outcome_of_run *o)
{
    const struct violation *v = NULL;
    if (world.violation[0] != '\0') {
        o->failed = true;
        (void)snprintf(o->invariant, sizeof o->invariant, "I7");
        (void)snprintf(o->text, sizeof o->text, "%s", world.violation);
        return true;
    }
    if (checker != NULL && !checker_step(checker, &v)) {
        o->failed = true;
        (void)snprintf(o->invariant, sizeof o->invariant, "%s", v->invariant);
        (void)snprintf(o->text, sizeof o->text, "%s", v->text);
        return true;
    }
    return false;
}

void world_run(const struct run *run, struct outcome_of_run *o)
{
    *o = (struct outcome_of_run){.failed = false};
    world_begin(run);
    struct checker *checker = run->is_checked ? checker_new(world.history) : NULL;
    int64_t end = (FAULTS_UNTIL_MS + 500) * KERNEL_MS + checker_bound(&world.setup) * KERNEL_US;
    bool is_over = false;
    while (!is_over && (run->steps_max == 0 || o->steps < run->steps_max)) {
        is_over = !kernel_step(end);
        nodes_look();
        if (is_over) {
            world_fact((struct fact){.kind = FACT_END, .node = -1, .db_us = database_now()});
        }
        o->steps++;
        if (is_violated(checker, o)) {
            break;
        }
    }
    o->simulated_us = world_us();
    if (checker != NULL) {
        o->tally = checker_tally(checker);
    }
    o->jobs = db.job_count;
    for (size_t i = 0; i < db.job_count; i++) {
        o->succeeded += db.jobs[i].state == JOB_SUCCEEDED ? 1 : 0;
    }
    checker_free(checker);
}

void world_tail(size_t lines)
{
    size_t n = world.history == NULL ? 0 : history_count(world.history);
    for (size_t i = n > lines ? n - lines : 0; i < n; i++) {
        char text[400];
        fact_format(history_at(world.history, i), text, sizeof text);
        (void)printf("  %s\n", text);
    }
}

void world_end(void)
{
    kernel_reset(0);
    history_free(world.history);
    world.history = NULL;
}
