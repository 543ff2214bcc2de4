/* Faults at an instant: a statement that runs on after its client has given it up and repeated it,
 * a clock that goes back between what a planner has read and what it writes, or there and back
 * between two looks of the leader, a leader that is stopped between its last look at the lease and
 * the sending of its establish. */
#include <stdio.h>
#include <string.h>

#include "armed.h"
#include "faults.h"
#include "node.h"
#include "store_fake.h"
#include "world.h"
#include "zk_fake.h"

static void hold_up_plan(struct fault *f)
{
    server.stuck = f->amount * KERNEL_MS;
}

static void step_at_plan(struct fault *f)
{
    server.step_us = -f->amount * 1000;
}

static void forget(struct fault *f)
{
    (void)f;
    server.stuck = 0;
    server.step_us = 0;
}

static void choose_delay(struct fault *f, struct chance *c)
{
    f->amount = chance_in(c, 1100, 5000);
}

static void choose_establisher(struct fault *f, struct chance *c)
{
    f->node = (int)chance_in(c, 0, world.setup.schedulers - 1);
    f->which = (int)chance_in(c, 0, world.setup.scopes - 1);
    f->amount = chance_in(c, world.setup.session_ms, 3 * world.setup.session_ms);
}

static void stop_establisher(struct fault *f)
{
    char part[96];
    armed_set(f->node, ARMED_BEFORE_ESTABLISH, 1, ARMED_PAUSE, f->amount * KERNEL_MS);
    (void)snprintf(part, sizeof part, "/scopes/%s/candidates/", world_scope_name(f->which));
    zk_remove_node(part);
}

static void let_go(struct fault *f)
{
    armed_clear(f->node);
    node_resume(f->node);
}

/* Every connection is dropped; each replica loses it again as soon as its session is confirmed,
 * before it has read the candidates anew, and for longer than the lease that the confirmation gave
 * it. */
static struct {
    bool armed[HISTORY_SCHEDULERS];
    int64_t for_ns;
} cut_again;

static void on_cut(void *context, uint64_t number)
{
    (void)context;
    world.cut[number][SERVICE_ZOOKEEPER] = CUT_TO | CUT_FROM;
}

static void drop_clients(int node)
{
    for (struct zk_client *c = zk.clients; c != NULL; c = c->next) {
        if (c->process->node == node) {
            zk_drop_client(c);
        }
    }
}

static void on_dropped(void *context, uint64_t number)
{
    (void)context;
    drop_clients((int)number);
    kernel_in(KERNEL_MS, on_cut, NULL, number); /* it has seen the end of the connection by then */
}

static void on_mended(void *context, uint64_t number)
{
    (void)context;
    world.cut[number][SERVICE_ZOOKEEPER] = CUT_NOTHING;
}

void fault_session_confirmed(int node)
{
    if (!cut_again.armed[node]) {
        return;
    }
    int64_t after = chance_in(kernel_chance(), 1, 1000) * KERNEL_US;
    kernel_in(after, on_dropped, NULL, (uint64_t)node);
    kernel_in(after + cut_again.for_ns, on_mended, NULL, (uint64_t)node);
    cut_again.armed[node] = false;
}

static void choose_flapping(struct fault *f, struct chance *c)
{
    f->amount = chance_in(c, 1700, world.setup.session_ms - 700);
}

static void flap(struct fault *f)
{
    for (int i = 0; i < HISTORY_SCHEDULERS; i++) {
        cut_again.armed[i] = true;
    }
    cut_again.for_ns = f->amount * KERNEL_MS;
    zk_drop_connections(-1);
}

static void flap_no_more(struct fault *f)
{
    (void)f;
    for (int i = 0; i < HISTORY_SCHEDULERS; i++) {
        if (!cut_again.armed[i]) {
            world.cut[i][SERVICE_ZOOKEEPER] = CUT_NOTHING;
        }
        cut_again.armed[i] = false;
    }
}

static const struct fault_kind kinds[] = {
    {"plan-stuck", 1, 4000, 9000, choose_delay, hold_up_plan, forget},
    {"clock-step-at-plan", 1, 3000, 9000, choose_delay, step_at_plan, forget},
    {"cut-at-resume", 1, 6000, 9000, choose_flapping, flap, flap_no_more},
    {"pause-at-establish", 1, 9000, 16000, choose_establisher, stop_establisher, let_go},
};

#define KINDS ((int64_t)(sizeof kinds / sizeof kinds[0]))

/* To the leader two opposite steps within a round of tending are none. */
static void choose_excursion(struct fault *f, struct chance *c)
{
    f->amount = chance_in(c, 2000, 20000) * (chance_hits(c, 500) ? 1 : -1);
}

static void step_there(struct fault *f)
{
    database_step_clock(f->amount * 1000);
}

static void step_back(struct fault *f)
{
    database_step_clock(-f->amount * 1000);
}

static const struct fault_kind excursion = {"clock-step-and-back", 1,          5,        400,
                                            choose_excursion,      step_there, step_back};

/* Scope threads wait for the database, in a statement that is held up there, while all sessions end
 * and the next ones are up before those threads have come back. Their relays can work all the time.
 */
static void choose_ends(struct fault *f, struct chance *c)
{
    f->amount = chance_in(c, 1100, 5000);
    f->which = (int)chance_in(c, 50, 900);
}

static void on_sessions_end(void *context, uint64_t number)
{
    (void)context;
    (void)number;
    for (int i = 0; i < world.setup.schedulers; i++) {
        int64_t session = zk_session_of(kernel_process(i));
        if (session != 0) {
            zk_end_session(session);
            drop_clients(i);
        }
    }
}

static void end_in_a_call(struct fault *f)
{
    server.stuck = f->amount * KERNEL_MS;
    kernel_in(f->which * KERNEL_MS, on_sessions_end, NULL, 0);
}

static const struct fault_kind session_end = {
    "sessions-end-in-a-call", 1, 2500, 6000, choose_ends, end_in_a_call, forget};

/* A worker is cut from the database for so long that its claims lapse and are reaped; the leader is
 * there all the time. */
static void choose_worker(struct fault *f, struct chance *c)
{
    f->node = HISTORY_WORKERS_FROM + (int)chance_in(c, 0, world.setup.workers - 1);
}

static void cut_worker(struct fault *f)
{
    world.cut[f->node][SERVICE_POSTGRESQL] = CUT_TO | CUT_FROM;
}

static void join_worker(struct fault *f)
{
    world.cut[f->node][SERVICE_POSTGRESQL] = CUT_NOTHING;
}

static const struct fault_kind worker_cut = {
    "worker-cut-beyond-lease", 1, 9000, 20000, choose_worker, cut_worker, join_worker};

static void fault_add(struct fault_list *list, const struct fault_kind *kind, struct chance *c)
{
    struct fault *f = &list->faults[list->count++];
    *f = (struct fault){.kind = kind, .node = -1};
    f->at_ms = chance_in(c, FAULTS_FROM_MS, FAULTS_UNTIL_MS - 10000);
    f->until_ms = f->at_ms + chance_in(c, kind->shortest_ms, kind->longest_ms);
    f->until_ms = f->until_ms < FAULTS_UNTIL_MS ? f->until_ms : FAULTS_UNTIL_MS;
    f->random = chance_next(c);
    kind->choose(f, c);
}

/* Each stream is drawn from a seed's own chances; most seeds have none of it. */
struct stream {
    const struct fault_kind *kinds;
    int64_t kind_count;
    uint64_t number; /* chosen so that the seeds which had shown bugs before stayed as they were */
    unsigned per_mille;
    int64_t fewest, most;
};

static void add_stream(uint64_t seed, const struct stream *s, struct fault_list *list)
{
    struct chance c = chance_of(seed, s->number);
    if (!chance_hits(&c, s->per_mille)) {
        return;
    }
    for (int64_t n = chance_in(&c, s->fewest, s->most); n > 0 && list->count < FAULTS_MAX; n--) {
        int64_t kind = s->kind_count > 1 ? chance_in(&c, 0, s->kind_count - 1) : 0;
        fault_add(list, &s->kinds[kind], &c);
    }
}

void faults_add_rare(uint64_t seed, struct fault_list *list)
{
    static const struct stream streams[] = {
        {&excursion, 1, 716, 150, 2, 12},
        {&session_end, 1, 905, 150, 1, 3},
        {&worker_cut, 1, 906, 350, 1, 3},
        {kinds, KINDS, 546, 350, 1, 4},
    };
    memset(&cut_again, 0, sizeof cut_again);
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        add_stream(seed, &streams[i], list);
    }
}
