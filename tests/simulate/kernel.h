/* The machine under a simulated cluster: one event queue in simulated time, and fibers that stand
 * for the threads of the product's processes. One OS thread, no real clock, no real wait: what a
 * run does follows from its seed alone.
 *
 * The product's shells run as they are. At link time (tests/CMakeLists.txt) their calls of the
 * operating system that wait, tell the time, draw random numbers, start threads or take memory go
 * to kernel_posix.c and kernel_memory.c; each of them is a point where another fiber may run, where
 * the process may be paused, and where it may crash.
 *
 * Times are nanoseconds. True time begins at 0 and is seen by no process; a process sees its own
 * boot-time clock (offset and drift). */
#ifndef RS_SIMULATE_KERNEL_H
#define RS_SIMULATE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_PROCESSES_MAX 16
#define KERNEL_NEVER         INT64_MAX
#define KERNEL_US            INT64_C(1000)
#define KERNEL_MS            INT64_C(1000000)
#define KERNEL_S             INT64_C(1000000000)

/* A stream of random numbers; streams of one seed do not disturb each other. */
struct chance {
    uint64_t state;
};
struct chance chance_of(uint64_t seed, uint64_t stream);
uint64_t chance_next(struct chance *c);
int64_t chance_in(struct chance *c, int64_t low, int64_t high); /* both included */
bool chance_hits(struct chance *c, unsigned in_a_thousand);

struct fiber;

/* One process of the product. A restarted one is the same slot with another `life`. */
struct process {
    int node; /* of the history: see history.h */
    char name[16];
    unsigned life; /* 0: never started */
    bool alive, paused;
    int64_t boot_ns;      /* of its clock at true time 0 */
    int64_t drift_ppm;    /* how much faster its clock is */
    int64_t skew_ns;      /* of its wall clock, which decides nothing */
    struct chance chance; /* getrandom(2) */
    bool exiting;         /* it ended itself and is reaped when its fiber has left the stack */
    int pending_signal;   /* SIGTERM and the like, for signalfd; 0: none */
    int signal_fd;
    int (*entry)(struct process *p);
    void (*died)(struct process *p); /* after a crash or the end: what it held outside is dropped */
    bool ended_in_order;
    struct fiber *main;
};

/* Begin anew: nothing is queued, no process lives. */
void kernel_reset(uint64_t seed);
int64_t kernel_now(void);
uint64_t kernel_seed(void);
/* Of the world: latencies and the like. */
struct chance *kernel_chance(void);

typedef void kernel_action(void *context, uint64_t number);
/* Call it at that time, in order of time and then of asking. */
void kernel_at(int64_t at, kernel_action *action, void *context, uint64_t number);
void kernel_in(int64_t after, kernel_action *action, void *context, uint64_t number);
/* Run the next event that is not later than `until`. False: there is none, and it is `until` now.
 */
bool kernel_step(int64_t until);

/* Processes ----------------------------------------------------------------------------------- */

struct process *kernel_process(int number); /* slot 0 to KERNEL_PROCESSES_MAX - 1 */
void process_start(struct process *p);
void process_kill(struct process *p); /* as SIGKILL: at once, in the middle of whatever it does */
void process_pause(struct process *p);
void process_resume(struct process *p);
void process_signal(struct process *p, int number);
int64_t process_clock(const struct process *p);                  /* its boot-time clock now */
int64_t process_true_at(const struct process *p, int64_t local); /* first true time it shows it */
/* Whose code runs; NULL: the world's. */
struct process *process_current(void);
/* The process ends itself (_exit): never returns. */
_Noreturn void process_exit(bool in_order);

/* Fibers -------------------------------------------------------------------------------------- */

struct fiber *fiber_current(void);
/* Wait until woken or until that true time. True: woken. */
bool fiber_wait(int64_t until);
void fiber_wake(struct fiber *f);
/* For kernel_posix.c: start, and whether it has ended. */
struct fiber *fiber_start(struct process *p, void *(*entry)(void *), void *argument);
bool fiber_is_over(const struct fiber *f);
void fiber_forget(struct fiber *f);
unsigned fiber_number(const struct fiber *f);
struct fiber *fiber_at(unsigned number);
/* What a waiting fiber waits for; kernel_posix.c finds whom to wake by it. */
struct fiber_wish {
    const void *object; /* a condition variable; NULL: none */
    const void *fds;    /* struct pollfd[] */
    size_t count;
    uint64_t asked; /* order of asking */
};
struct fiber_wish *fiber_wish(struct fiber *f);
void fiber_each(struct process *p, bool (*visit)(struct fiber *f, const void *what),
                const void *what);

/* Descriptors (kernel_posix.c): eventfd and everything else that poll waits for. */
int kernel_fd_open(struct process *p);
void kernel_fd_close(int fd);
void kernel_fd_raise(int fd); /* readable from now on */
void kernel_fd_clear(int fd);
bool kernel_fd_is_raised(int fd);
void kernel_fd_drop_all(struct process *p);

/* Memory (kernel_memory.c): what a crashed process leaves is freed. Kernel and world take theirs by
 * kernel_new, which never fails and outlives processes; kernel_free. */
void *kernel_new(size_t size);
void kernel_free(void *p);
void kernel_memory_drop(unsigned owner);
void kernel_memory_begin(void); /* once, first of all */
void kernel_memory_reset(void); /* every kernel_new of the run before */
/* Owner of what is taken from now on: 0 the world, else a process's node + 1. Returns the one
 * before. */
unsigned kernel_memory_owner(unsigned owner);

#endif
