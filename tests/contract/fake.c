/* The contracts on the fakes, as a process of the simulated machine: contract_fake
 * zookeeper|store|kafka [SEED]. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "armed.h"
#include "contract.h"
#include "dispatch_fake.h"
#include "fake.h"
#include "node.h"
#include "report_fake.h"
#include "store_fake.h"
#include "world.h"
#include "zk_fake.h"

/* A case waits less than this in all. */
#define LONGEST (3600 * KERNEL_S)

static int (*contract)(void);
static int failed = -1;

bool contract_is_real(void)
{
    return false;
}

struct process *fake_side(enum contract_side side)
{
    return kernel_process(side == SIDE_SURE ? 0 : 1);
}

void fake_way(enum service service, enum contract_way way)
{
    unsigned *cut = &world.cut[fake_side(SIDE_EXPOSED)->node][service];
    switch (way) {
    case WAY_OPEN:
        *cut = CUT_NOTHING;
        return;
    case WAY_DEAF:
        *cut = CUT_FROM;
        return;
    case WAY_HOLE:
    case WAY_CLOSED:
        *cut = CUT_TO | CUT_FROM;
        return;
    }
}

static int run_cases(struct process *p)
{
    (void)p;
    failed = contract();
    return 0;
}

static int stand_by(struct process *p)
{
    (void)p; /* only there so that something can be between it and a service */
    while (failed < 0) {
        (void)fiber_wait(kernel_now() + KERNEL_S);
    }
    return 0;
}

static void machine_begin(uint64_t seed)
{
    kernel_reset(seed);
    world.setup = (struct setup){.schedulers = 2,
                                 .workers = 1,
                                 .scopes = 1,
                                 .queues = 2,
                                 .session_ms = CONTRACT_SESSION_MS,
                                 .tick_ms = CONTRACT_TICK_MS,
                                 .margin_ms = 500,
                                 .claim_lease_us = 60000000,
                                 .reap_grace_us = 10000000,
                                 .drift_ppm = 200,
                                 .queue_bound = {0, 1}};
    world.base_us = INT64_C(1905811180) * 1000000;
    nodes_reset();
    armed_reset();
    database_reset();
    store_fake_reset();
    zk_reset(world.setup.tick_ms);
    dispatch_reset();
    report_reset();
    /* One clock: the second process has nothing of its own but its way to the services. */
    kernel_process(1)->boot_ns = kernel_process(0)->boot_ns;
    kernel_process(1)->drift_ppm = kernel_process(0)->drift_ppm;
    kernel_process(0)->entry = run_cases;
    kernel_process(1)->entry = stand_by;
    process_start(kernel_process(1));
    process_start(kernel_process(0));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } contracts[] = {
        {"zookeeper", contract_zookeeper}, {"store", contract_store}, {"kafka", contract_kafka}};
    for (size_t i = 0; argc >= 2 && i < sizeof contracts / sizeof contracts[0]; i++) {
        if (strcmp(argv[1], contracts[i].name) == 0) {
            contract = contracts[i].run;
        }
    }
    if (contract == NULL || argc > 3) {
        (void)fprintf(stderr, "usage: contract_fake zookeeper|store|kafka [SEED]\n");
        return 2;
    }
    kernel_memory_begin();
    machine_begin(argc == 3 ? strtoull(argv[2], NULL, 10) : 1);
    while (failed < 0 && kernel_step(LONGEST)) {
    }
    (void)printf("%" PRId64 " ms of simulated time\n", kernel_now() / KERNEL_MS);
    int status = failed;
    failed = failed < 0 ? 0 : failed;
    world_end();
    return status == 0 ? 0 : 1;
}
