#include "node.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "coord.h"
#include "daemon.h"
#include "dispatch_fake.h"
#include "observe.h"
#include "store_fake.h"
#include "worker_daemon.h"
#include "world.h"
#include "zk_fake.h"

static struct scheduler_settings schedulers[HISTORY_SCHEDULERS];
static struct worker_settings workers[HISTORY_WORKERS];

bool node_is_worker(int node)
{
    return node >= HISTORY_WORKERS_FROM;
}

static void list_add(struct setting_list *list, const char *item)
{
    (void)snprintf(list->items[list->count++], sizeof list->items[0], "%s", item);
}

static void scheduler_fill(int node)
{
    struct scheduler_settings *s = &schedulers[node];
    const struct setup *u = &world.setup;
    memset(s, 0, sizeof *s);
    (void)snprintf(s->name, sizeof s->name, "s%d", node + 1);
    (void)snprintf(s->zookeeper, sizeof s->zookeeper, "zk1:2181,zk2:2181,zk3:2181");
    (void)snprintf(s->zookeeper_root, sizeof s->zookeeper_root, "/report-scheduler");
    (void)snprintf(s->database, sizeof s->database, "host=database");
    (void)snprintf(s->tz_directory, sizeof s->tz_directory, "%s", world.zone_directory);
    (void)snprintf(s->kafka_brokers, sizeof s->kafka_brokers, "kafka:9092");
    (void)snprintf(s->kafka_topic, sizeof s->kafka_topic, "jobs");
    s->zookeeper_session_ms = u->session_ms;
    s->zookeeper_tick_ms = u->tick_ms;
    s->lease_margin_ms = u->margin_ms;
    s->database_connect_ms = 2000;
    s->database_statement_ms = 1000;
    s->database_unhealthy_ms = 6000;
    s->establish_ms = 5000;
    s->planner_batch = 1000;
    s->tz_poll_ms = 60000;
    s->relay_window = 1000;
    s->drain_ms = 2000;
    s->stop_ms = 10000;
    s->stuck_ms = 15000;
    s->observe_ms = 15000;
    for (int i = 0; i < u->scopes; i++) {
        list_add(&s->scopes, world_scope_name(i));
    }
}

static void worker_fill(int number)
{
    struct worker_settings *s = &workers[number];
    memset(s, 0, sizeof *s);
    (void)snprintf(s->name, sizeof s->name, "w%d", number + 1);
    (void)snprintf(s->database, sizeof s->database, "host=database");
    (void)snprintf(s->kafka_brokers, sizeof s->kafka_brokers, "kafka:9092");
    (void)snprintf(s->kafka_topic, sizeof s->kafka_topic, "jobs");
    (void)snprintf(s->kafka_group, sizeof s->kafka_group, "workers");
    for (int i = 0; i < world.setup.queues; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "queue-%d", i);
        list_add(&s->queues, name);
    }
    s->slots = 3;
    s->pull_idle_ms = 1000;
    s->drain_ms = 3000;
    s->kill_grace_ms = 1000;
    s->sweep_ms = 15000;
    s->stuck_ms = 30000;
    (void)snprintf(s->keeper, sizeof s->keeper, "/nonexistent");
    (void)snprintf(s->artifact_stores[0].name, sizeof s->artifact_stores[0].name, "store");
    (void)snprintf(s->artifact_stores[0].directory, sizeof s->artifact_stores[0].directory, "%s",
                   world.zone_directory); /* looked at, never written to */
    s->artifact_store_count = 1;
    (void)snprintf(s->data_sources[0].name, sizeof s->data_sources[0].name, "source");
    s->data_source_count = 1;
}

/* As scheduler/main.c. */
static int scheduler_main(struct process *p)
{
    struct error err = {.text = ""};
    enum status status = scheduler_run("scheduler.conf", &schedulers[p->node], &err);
    if (status == STATUS_TIMEOUT) {
        process_exit(false); /* threads may still run: nothing may be freed under them */
    }
    return status == STATUS_OK ? 0 : 1;
}

static int worker_main(struct process *p)
{
    struct error err = {.text = ""};
    enum status status = worker_run("worker.conf", &workers[p->node - HISTORY_WORKERS_FROM], &err);
    return status == STATUS_OK ? 0 : 1;
}

/* What a supervisor runs after a process that was killed; only some have one. */
static void on_after_death(void *context, uint64_t session)
{
    const struct process *p = context;
    if (p->alive) {
        return; /* it was started again before: who starts it has cleaned up, or nobody does */
    }
    if (node_is_worker(p->node)) {
        store_fake_release_claims(p->node);
    } else {
        zk_end_session((int64_t)session);
    }
}

static void clean_up_after(struct process *p)
{
    if (!p->ended_in_order && chance_hits(kernel_chance(), 400)) {
        kernel_in(chance_in(kernel_chance(), 5, 150) * KERNEL_MS, on_after_death, p,
                  (uint64_t)zk_session_of(p));
    }
}

static void died(struct process *p)
{
    world_fact(
        (struct fact){.kind = p->ended_in_order ? FACT_STOPPED : FACT_CRASHED, .node = p->node});
    clean_up_after(p);
    zk_client_forget(p);
    store_fake_forget(p);
    dispatch_forget(p);
    observe_forget(p->node);
}

void nodes_reset(void)
{
    struct chance c = chance_of(kernel_seed(), 2);
    for (int i = 0; i < KERNEL_PROCESSES_MAX; i++) {
        struct process *p = kernel_process(i);
        bool is_worker = node_is_worker(i);
        int number = is_worker ? i - HISTORY_WORKERS_FROM : i;
        (void)snprintf(p->name, sizeof p->name, "%c%d", is_worker ? 'w' : 's', number + 1);
        p->entry = is_worker ? worker_main : scheduler_main;
        p->died = died;
        p->boot_ns = chance_in(&c, 1, 100000) * KERNEL_S;
        p->drift_ppm = chance_in(&c, -world.setup.drift_ppm, world.setup.drift_ppm);
        p->skew_ns = chance_in(&c, -3600, 3600) * KERNEL_S;
        if (is_worker) {
            worker_fill(number);
        } else {
            scheduler_fill(number);
        }
    }
    observe_reset();
}

void node_start(int node)
{
    struct process *p = kernel_process(node);
    if (!p->alive) {
        world_fact((struct fact){.kind = FACT_STARTED, .node = node});
        process_start(p);
    }
}

void node_crash(int node)
{
    process_kill(kernel_process(node));
}

void node_stop(int node)
{
    process_signal(kernel_process(node), SIGTERM);
}

void node_pause(int node)
{
    struct process *p = kernel_process(node);
    if (p->alive && !p->paused) {
        process_pause(p);
        world_fact((struct fact){.kind = FACT_PAUSED, .node = node});
    }
}

void node_resume(int node)
{
    struct process *p = kernel_process(node);
    if (p->alive && p->paused) {
        process_resume(p);
        world_fact((struct fact){
            .kind = FACT_WOKE, .node = node, .node_us = process_clock(p) / KERNEL_US});
    }
}
