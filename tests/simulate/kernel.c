#include "kernel.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "kernel_fiber.h"
#include "kernel_posix.h"

#define EVENTS_MAX  65536
#define STACK_BYTES (512u * 1024u)
#define FIBERS_MAX  256
/* Steps at one instant before something is taken to spin. */
#define STANDSTILL_MAX 200000

struct event {
    int64_t at;
    uint64_t order;
    kernel_action *action;
    void *context;
    uint64_t number;
};

static struct {
    uint64_t seed;
    int64_t now;
    uint64_t order, asked;
    unsigned standstill;
    struct chance chance;
    struct event heap[EVENTS_MAX];
    size_t count;
    struct process processes[KERNEL_PROCESSES_MAX];
    struct fiber fibers[FIBERS_MAX];
    struct fiber *current;
    struct fiber_side main_side;
} k;

/* Random numbers (splitmix64) ------------------------------------------------------------------ */

uint64_t chance_next(struct chance *c)
{
    c->state += 0x9e3779b97f4a7c15u;
    uint64_t x = c->state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

struct chance chance_of(uint64_t seed, uint64_t stream)
{
    struct chance c = {seed ^ (stream * 0xd1342543de82ef95u)};
    c.state = chance_next(&c);
    return c;
}

int64_t chance_in(struct chance *c, int64_t low, int64_t high)
{
    return low + (int64_t)(chance_next(c) % (uint64_t)(high - low + 1));
}

bool chance_hits(struct chance *c, unsigned in_a_thousand)
{
    return chance_next(c) % 1000 < in_a_thousand;
}

/* Events ----------------------------------------------------------------------------------------
 */

static bool event_before(const struct event *a, const struct event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void event_swap(size_t i, size_t j)
{
    struct event e = k.heap[i];
    k.heap[i] = k.heap[j];
    k.heap[j] = e;
}

void kernel_at(int64_t at, kernel_action *action, void *context, uint64_t number)
{
    if (k.count == EVENTS_MAX) {
        (void)fprintf(stderr, "simulate: more than %d events wait\n", EVENTS_MAX);
        abort();
    }
    size_t i = k.count++;
    k.heap[i] = (struct event){at < k.now ? k.now : at, k.order++, action, context, number};
    while (i > 0 && event_before(&k.heap[i], &k.heap[(i - 1) / 2])) {
        event_swap(i, (i - 1) / 2);
        i = (i - 1) / 2;
    }
}

void kernel_in(int64_t after, kernel_action *action, void *context, uint64_t number)
{
    kernel_at(k.now + after, action, context, number);
}

static struct event event_take(void)
{
    struct event first = k.heap[0];
    k.heap[0] = k.heap[--k.count];
    for (size_t i = 0;;) {
        size_t least = i;
        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < k.count; child++) {
            least = event_before(&k.heap[child], &k.heap[least]) ? child : least;
        }
        if (least == i) {
            return first;
        }
        event_swap(i, least);
        i = least;
    }
}

bool kernel_step(int64_t until)
{
    if (k.count == 0 || k.heap[0].at > until) {
        k.now = until > k.now ? until : k.now;
        return false;
    }
    struct event e = event_take();
    k.standstill = e.at > k.now ? 0 : k.standstill + 1;
    if (k.standstill > STANDSTILL_MAX) {
        (void)fprintf(stderr, "simulate: seed %llu: something spins at %lld ns\n",
                      (unsigned long long)k.seed, (long long)k.now);
        abort();
    }
    k.now = e.at;
    e.action(e.context, e.number);
    return true;
}

int64_t kernel_now(void)
{
    return k.now;
}

uint64_t kernel_seed(void)
{
    return k.seed;
}

struct chance *kernel_chance(void)
{
    return &k.chance;
}

void kernel_reset(uint64_t seed)
{
    for (int i = 0; i < KERNEL_PROCESSES_MAX; i++) {
        if (k.processes[i].alive) {
            process_kill(&k.processes[i]);
        }
        k.processes[i] = (struct process){.node = i, .signal_fd = -1};
    }
    kernel_memory_reset();
    k.main_side.jumps = true; /* the program's own stack has begun */
    k.seed = seed;
    k.now = 0;
    k.order = k.asked = k.count = 0;
    k.standstill = 0;
    k.chance = chance_of(seed, 1);
}

/* Fibers ----------------------------------------------------------------------------------------
 */

static void fiber_main(void)
{
    struct fiber *f = k.current;
    fiber_side_arrive(&f->side);
    (void)f->entry(f->argument);
    f->state = FIBER_OVER;
    fiber_switch(&f->side, &k.main_side, true);
    abort();
}

static void fiber_run(struct fiber *f)
{
    assert(k.current == NULL);
    k.current = f;
    f->state = FIBER_RUNNING;
    f->due = false;
    f->begun = true;
    (void)kernel_memory_owner((unsigned)f->process->node + 1);
    fiber_switch(&k.main_side, &f->side, false);
    (void)kernel_memory_owner(0);
    k.current = NULL;
}

static void on_turn(void *context, uint64_t number)
{
    struct fiber *f = context;
    if (f->wait != number || f->state != FIBER_WAITING) {
        return;
    }
    if (f->process->paused) {
        f->due = true;
        return;
    }
    struct process *p = f->process;
    fiber_run(f);
    if (p->exiting) {
        process_reap(p);
    }
}

bool fiber_wait(int64_t until)
{
    struct fiber *f = k.current;
    assert(f != NULL);
    f->wait = ++k.asked;
    f->woken = false;
    f->state = FIBER_WAITING;
    if (until != KERNEL_NEVER) {
        kernel_at(until, on_turn, f, f->wait);
    }
    fiber_switch(&f->side, &k.main_side, false);
    if (f->dying) {
        f->state = FIBER_OVER;
        fiber_switch(&f->side, &k.main_side, true);
        abort();
    }
    f->wish = (struct fiber_wish){.object = NULL};
    return f->woken;
}

void fiber_wake(struct fiber *f)
{
    if (f->state != FIBER_WAITING || f->woken) {
        return;
    }
    f->woken = true;
    /* A real wake-up takes a moment, and not the same each time. */
    kernel_in(chance_in(&k.chance, 1, 40) * KERNEL_US, on_turn, f, f->wait);
}

struct fiber *fiber_start(struct process *p, void *(*entry)(void *), void *argument)
{
    struct fiber *f = NULL;
    for (size_t i = 0; i < FIBERS_MAX && f == NULL; i++) {
        f = k.fibers[i].state == FIBER_FREE ? &k.fibers[i] : NULL;
    }
    if (f == NULL) {
        (void)fprintf(stderr, "simulate: more than %d threads\n", FIBERS_MAX);
        abort();
    }
    void *stack = f->side.stack;
    if (stack == NULL) {
        stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED) {
            abort();
        }
    }
    *f = (struct fiber){.process = p, .entry = entry, .argument = argument};
    f->side.stack = stack;
    f->side.size = STACK_BYTES;
    if (getcontext(&f->side.context) != 0) {
        abort();
    }
    f->side.context.uc_stack.ss_sp = stack;
    f->side.context.uc_stack.ss_size = STACK_BYTES;
    makecontext(&f->side.context, fiber_main, 0);
    f->state = FIBER_WAITING;
    f->wait = ++k.asked;
    kernel_in(chance_in(&k.chance, 5, 100) * KERNEL_US, on_turn, f, f->wait);
    return f;
}

struct fiber *fiber_current(void)
{
    return k.current;
}

bool fiber_is_over(const struct fiber *f)
{
    return f->state == FIBER_OVER;
}

void fiber_forget(struct fiber *f)
{
    f->state = FIBER_FREE;
}

unsigned fiber_number(const struct fiber *f)
{
    return (unsigned)(f - k.fibers);
}

struct fiber *fiber_at(unsigned number)
{
    return &k.fibers[number];
}

struct fiber_wish *fiber_wish(struct fiber *f)
{
    f->wish.asked = k.asked;
    return &f->wish;
}

const struct fiber_wish *fiber_wish_of(const struct fiber *f)
{
    return &f->wish;
}

bool fiber_is_woken(const struct fiber *f)
{
    return f->woken;
}

/* Oldest wish first; a visitor that returns true ends the walk. */
void fiber_each(struct process *p, bool (*visit)(struct fiber *f, const void *what),
                const void *what)
{
    struct fiber *list[FIBERS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < FIBERS_MAX; i++) {
        struct fiber *f = &k.fibers[i];
        if (f->process != p || f->state != FIBER_WAITING) {
            continue;
        }
        size_t at = count++;
        for (; at > 0 && list[at - 1]->wish.asked > f->wish.asked; at--) {
            list[at] = list[at - 1];
        }
        list[at] = f;
    }
    for (size_t i = 0; i < count; i++) {
        if (visit(list[i], what)) {
            return;
        }
    }
}

/* Processes ------------------------------------------------------------------------------------ */

struct process *kernel_process(int number)
{
    return &k.processes[number];
}

struct process *process_current(void)
{
    return k.current == NULL ? NULL : k.current->process;
}

int64_t process_clock(const struct process *p)
{
    return p->boot_ns + k.now + k.now / 1000000 * p->drift_ppm;
}

int64_t process_true_at(const struct process *p, int64_t local)
{
    if (local == KERNEL_NEVER || local - p->boot_ns > 1000000 * KERNEL_S) {
        return KERNEL_NEVER;
    }
    int64_t since = local - p->boot_ns;
    int64_t at = since - since / 1000000 * p->drift_ppm;
    at -= at > 2 * KERNEL_US ? 2 * KERNEL_US : 0;
    while (p->boot_ns + at + at / 1000000 * p->drift_ppm < local) {
        at += 500;
    }
    return at;
}

static void *process_main(void *argument)
{
    struct process *p = argument;
    p->ended_in_order = p->entry(p) == 0;
    p->exiting = true;
    return NULL;
}

void process_start(struct process *p)
{
    assert(!p->alive);
    p->life++;
    p->alive = true;
    p->paused = p->exiting = p->ended_in_order = false;
    p->pending_signal = 0;
    p->signal_fd = -1;
    p->chance = chance_of(k.seed, 1000 + (uint64_t)p->node * 1000 + p->life);
    p->main = fiber_start(p, process_main, p);
}

/* Everything of it is gone. Not from one of its own fibers. */
void process_reap(struct process *p)
{
    assert(process_current() != p);
    p->alive = false;
    for (size_t i = 0; i < FIBERS_MAX; i++) {
        struct fiber *f = &k.fibers[i];
        if (f->process != p || f->state == FIBER_FREE) {
            continue;
        }
        if (f->state == FIBER_WAITING && f->begun) {
            f->dying = true; /* it ends where it waits, so that its stack is given back in order */
            fiber_run(f);
        }
        f->state = FIBER_FREE;
    }
    kernel_fd_drop_all(p);
    if (p->died != NULL) {
        p->died(p);
    }
    kernel_memory_drop((unsigned)p->node + 1);
}

void process_kill(struct process *p)
{
    if (!p->alive) {
        return;
    }
    p->ended_in_order = false;
    if (process_current() != p) {
        process_reap(p);
        return;
    }
    p->exiting = true; /* it kills itself: it goes when its fiber has left the stack */
    (void)fiber_wait(KERNEL_NEVER);
    abort();
}

_Noreturn void process_exit(bool in_order)
{
    struct process *p = process_current();
    p->ended_in_order = in_order;
    p->exiting = true;
    (void)fiber_wait(KERNEL_NEVER);
    abort();
}

void process_pause(struct process *p)
{
    p->paused = true;
}

void process_resume(struct process *p)
{
    if (!p->alive || !p->paused) {
        return;
    }
    p->paused = false;
    for (size_t i = 0; i < FIBERS_MAX; i++) {
        struct fiber *f = &k.fibers[i];
        if (f->process == p && f->state == FIBER_WAITING && f->due) {
            f->due = false;
            kernel_in(chance_in(&k.chance, 1, 2000) * KERNEL_US, on_turn, f, f->wait);
        }
    }
}

void process_signal(struct process *p, int number)
{
    if (p->alive) {
        p->pending_signal = number;
        if (p->signal_fd >= 0) {
            kernel_fd_raise(p->signal_fd);
        }
    }
}
