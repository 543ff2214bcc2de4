/* Inside of the kernel: a fiber and how stacks are switched. */
#ifndef RS_SIMULATE_KERNEL_FIBER_H
#define RS_SIMULATE_KERNEL_FIBER_H

#include <setjmp.h>
#include <ucontext.h>

#include "kernel.h"

/* A stack that can be left and come back to. */
struct fiber_side {
    ucontext_t context;
    void *stack; /* NULL: the program's own */
    size_t size;
    void *fake; /* AddressSanitizer's, while it is away */
    jmp_buf jump;
    bool jumps; /* it has begun: `jump` is where it was left */
};

enum fiber_state {
    FIBER_FREE,
    FIBER_WAITING,
    FIBER_RUNNING,
    FIBER_OVER, /* ended and not joined yet */
};

struct fiber {
    struct fiber_side side;
    struct process *process;
    void *(*entry)(void *);
    void *argument;
    enum fiber_state state;
    uint64_t wait; /* number of the present wait: an older timer is stale */
    bool begun;    /* it has run at least once: there is something on its stack */
    bool woken, due, dying;
    struct fiber_wish wish;
};

/* Leave one stack and go on with the other. `for_ever`: nobody comes back. */
void fiber_switch(struct fiber_side *from, struct fiber_side *to, bool for_ever);
/* First of all on a stack that begins. */
void fiber_side_arrive(struct fiber_side *here);

void process_reap(struct process *p);

#endif
