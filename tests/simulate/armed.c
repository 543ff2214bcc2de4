#include "armed.h"

#include <string.h>

#include "kernel.h"
#include "node.h"

static struct {
    bool set;
    enum armed_place place;
    unsigned left;
    enum armed_act act;
    int64_t pause_ns;
} armed[KERNEL_PROCESSES_MAX];

void armed_reset(void)
{
    memset(armed, 0, sizeof armed);
}

void armed_clear(int node)
{
    armed[node].set = false;
}

void armed_set(int node, enum armed_place place, unsigned after, enum armed_act act,
               int64_t pause_ns)
{
    armed[node].set = true;
    armed[node].place = place;
    armed[node].left = after;
    armed[node].act = act;
    armed[node].pause_ns = pause_ns;
}

static void on_resume(void *context, uint64_t number)
{
    (void)context;
    node_resume((int)number);
}

void armed_point(enum armed_place place)
{
    struct process *p = process_current();
    if (p == NULL || !armed[p->node].set || armed[p->node].place != place ||
        --armed[p->node].left > 0) {
        return;
    }
    armed[p->node].set = false;
    if (armed[p->node].act == ARMED_CRASH) {
        process_exit(false);
    }
    node_pause(p->node);
    kernel_in(armed[p->node].pause_ns, on_resume, NULL, (uint64_t)p->node);
    (void)fiber_wait(kernel_now() + KERNEL_US); /* it does not come back before it is woken */
}
