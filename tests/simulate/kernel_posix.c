/* Calls of the operating system that the product's code makes, in simulated time. The linker sends
 * them here (-Wl,--wrap=...); what is none of a simulated process's goes on to the real one. */
#include "kernel.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "kernel_posix.h"

#define FD_FROM      1000000 /* descriptors of simulated processes are numbered from here */
#define FDS_MAX      1024
#define LOOK_US      20    /* how soon a held mutex is tried again */
#define READS_A_TURN 20000 /* clock readings without a wait: then it is a spin, and takes time */

struct kernel_fd {
    bool used;
    struct process *process;
    uint64_t count; /* readable while not 0 */
};

static struct kernel_fd fds[FDS_MAX];

/* Time ------------------------------------------------------------------------------------------
 */

static unsigned readings;

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts)
{
    struct process *p = process_current();
    if (p == NULL) {
        return __real_clock_gettime(clock, ts);
    }
    if (++readings > READS_A_TURN) {
        readings = 0;
        (void)fiber_wait(kernel_now() + KERNEL_MS);
    }
    int64_t ns = process_clock(p);
    if (clock == CLOCK_REALTIME) {
        ns += p->skew_ns;
    }
    ts->tv_sec = ns / KERNEL_S;
    ts->tv_nsec = ns % KERNEL_S;
    return 0;
}

ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags)
{
    struct process *p = process_current();
    (void)flags;
    struct chance *c = p == NULL ? kernel_chance() : &p->chance;
    unsigned char *to = buffer;
    for (size_t i = 0; i < size; i++) {
        to[i] = (unsigned char)chance_next(c);
    }
    return (ssize_t)size;
}

pid_t __wrap_getpid(void)
{
    struct process *p = process_current();
    return p == NULL ? __real_getpid() : 1000 * (pid_t)(p->node + 1) + (pid_t)p->life;
}

_Noreturn void __wrap__exit(int status)
{
    if (process_current() == NULL) {
        __real__exit(status);
    }
    process_exit(false);
}

/* Descriptors ------------------------------------------------------------------------------------
 */

static struct kernel_fd *fd_find(int fd)
{
    return fd >= FD_FROM && fd < FD_FROM + FDS_MAX && fds[fd - FD_FROM].used ? &fds[fd - FD_FROM]
                                                                             : NULL;
}

int kernel_fd_open(struct process *p)
{
    for (int i = 0; i < FDS_MAX; i++) {
        if (!fds[i].used) {
            fds[i] = (struct kernel_fd){.used = true, .process = p};
            return FD_FROM + i;
        }
    }
    (void)fprintf(stderr, "simulate: out of descriptors\n");
    abort();
}

void kernel_fd_close(int fd)
{
    struct kernel_fd *f = fd_find(fd);
    if (f != NULL) {
        f->used = false;
    }
}

static bool is_polled(const struct pollfd *list, size_t count, int fd)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i].fd == fd) {
            return true;
        }
    }
    return false;
}

static bool wake_poller(struct fiber *f, const void *what)
{
    const struct fiber_wish *w = fiber_wish_of(f);
    if (w->fds != NULL && is_polled(w->fds, w->count, *(const int *)what)) {
        fiber_wake(f);
    }
    return false;
}

void kernel_fd_raise(int fd)
{
    struct kernel_fd *f = fd_find(fd);
    if (f == NULL) {
        return;
    }
    f->count++;
    fiber_each(f->process, wake_poller, &fd);
}

void kernel_fd_clear(int fd)
{
    struct kernel_fd *f = fd_find(fd);
    if (f != NULL) {
        f->count = 0;
    }
}

bool kernel_fd_is_raised(int fd)
{
    const struct kernel_fd *f = fd_find(fd);
    return f != NULL && f->count > 0;
}

void kernel_fd_drop_all(struct process *p)
{
    for (int i = 0; i < FDS_MAX; i++) {
        fds[i].used = fds[i].used && fds[i].process != p;
    }
}

int __wrap_eventfd(unsigned initial, int flags)
{
    struct process *p = process_current();
    if (p == NULL) {
        return __real_eventfd(initial, flags);
    }
    int fd = kernel_fd_open(p);
    fds[fd - FD_FROM].count = initial;
    return fd;
}

int __wrap_daemon_signals_open(void)
{
    struct process *p = process_current();
    p->signal_fd = kernel_fd_open(p);
    if (p->pending_signal != 0) {
        kernel_fd_raise(p->signal_fd);
    }
    return p->signal_fd;
}

static ssize_t signal_read(struct process *p, void *buffer)
{
    struct signalfd_siginfo info = {.ssi_signo = (uint32_t)p->pending_signal};
    if (p->pending_signal == 0) {
        errno = EAGAIN;
        return -1;
    }
    p->pending_signal = 0;
    kernel_fd_clear(p->signal_fd);
    memcpy(buffer, &info, sizeof info);
    return (ssize_t)sizeof info;
}

ssize_t __wrap_read(int fd, void *buffer, size_t size)
{
    struct kernel_fd *f = fd_find(fd);
    if (f == NULL) {
        return __real_read(fd, buffer, size);
    }
    if (fd == f->process->signal_fd) {
        return signal_read(f->process, buffer);
    }
    if (f->count == 0) {
        errno = EAGAIN;
        return -1;
    }
    memcpy(buffer, &f->count, sizeof f->count);
    f->count = 0;
    return (ssize_t)sizeof f->count;
}

ssize_t __wrap___read_chk(int fd, void *buffer, size_t size, size_t room)
{
    (void)room;
    return __wrap_read(fd, buffer, size);
}

ssize_t __wrap_write(int fd, const void *buffer, size_t size)
{
    if (fd_find(fd) == NULL) {
        return __real_write(fd, buffer, size);
    }
    kernel_fd_raise(fd);
    return (ssize_t)size;
}

int __wrap_close(int fd)
{
    if (fd_find(fd) == NULL) {
        return __real_close(fd);
    }
    kernel_fd_close(fd);
    return 0;
}

/* A data source's socket is cut: whoever waits for it sees it. */
int __wrap_shutdown(int fd, int how)
{
    if (fd_find(fd) == NULL) {
        return __real_shutdown(fd, how);
    }
    kernel_fd_raise(fd);
    return 0;
}

static int poll_look(struct pollfd *list, size_t count)
{
    int ready = 0;
    for (size_t i = 0; i < count; i++) {
        bool raised = (list[i].events & POLLIN) != 0 && kernel_fd_is_raised(list[i].fd);
        list[i].revents = raised ? POLLIN : 0;
        ready += raised ? 1 : 0;
    }
    return ready;
}

/* until: true time. */
static int poll_until(struct pollfd *list, size_t count, int64_t until)
{
    int ready = poll_look(list, count);
    if (ready > 0 && until > kernel_now()) {
        return ready;
    }
    /* Also with a time that has passed: a turn of a loop takes a moment. */
    until = until < kernel_now() + KERNEL_US ? kernel_now() + KERNEL_US : until;
    while (ready == 0 && kernel_now() < until) {
        struct fiber_wish *w = fiber_wish(fiber_current());
        w->fds = list;
        w->count = count;
        (void)fiber_wait(until);
        readings = 0;
        ready = poll_look(list, count);
    }
    return ready;
}

int __wrap_poll(struct pollfd *list, nfds_t count, int timeout_ms)
{
    struct process *p = process_current();
    if (p == NULL) {
        return __real_poll(list, count, timeout_ms);
    }
    int64_t until = timeout_ms < 0 ? KERNEL_NEVER
                                   : process_true_at(p, process_clock(p) + timeout_ms * KERNEL_MS);
    return poll_until(list, count, until);
}

int __wrap_ppoll(struct pollfd *list, nfds_t count, const struct timespec *wait,
                 const sigset_t *mask)
{
    struct process *p = process_current();
    if (p == NULL) {
        return __real_ppoll(list, count, wait, mask);
    }
    int64_t ns = wait == NULL ? 0 : (int64_t)wait->tv_sec * KERNEL_S + wait->tv_nsec;
    int64_t until = wait == NULL ? KERNEL_NEVER : process_true_at(p, process_clock(p) + ns);
    return poll_until(list, count, until);
}

int __wrap___poll_chk(struct pollfd *list, nfds_t count, int timeout_ms, size_t room)
{
    (void)room;
    return __wrap_poll(list, count, timeout_ms);
}

int __wrap___ppoll_chk(struct pollfd *list, nfds_t count, const struct timespec *wait,
                       const sigset_t *mask, size_t room)
{
    (void)room;
    return __wrap_ppoll(list, count, wait, mask);
}

/* Threads ----------------------------------------------------------------------------------------
 */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*entry)(void *), void *argument)
{
    struct process *p = process_current();
    int detached = PTHREAD_CREATE_JOINABLE;
    if (p == NULL) {
        return __real_pthread_create(thread, attributes, entry, argument);
    }
    if (attributes != NULL) {
        (void)pthread_attr_getdetachstate(attributes, &detached);
    }
    (void)detached; /* nobody joins it: it stays until the process ends */
    *thread = (pthread_t)fiber_number(fiber_start(p, entry, argument)) + 1;
    return 0;
}

int __wrap_pthread_tryjoin_np(pthread_t thread, void **ret_value)
{
    if (process_current() == NULL) {
        return __real_pthread_tryjoin_np(thread, ret_value);
    }
    struct fiber *f = fiber_at((unsigned)thread - 1);
    if (!fiber_is_over(f)) {
        return EBUSY;
    }
    fiber_forget(f);
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **ret_value)
{
    if (process_current() == NULL) {
        return __real_pthread_join(thread, ret_value);
    }
    while (__wrap_pthread_tryjoin_np(thread, ret_value) != 0) {
        (void)fiber_wait(kernel_now() + KERNEL_MS);
    }
    return 0;
}

pthread_t __wrap_pthread_self(void)
{
    struct fiber *f = fiber_current();
    return f == NULL ? __real_pthread_self() : (pthread_t)fiber_number(f) + 1;
}

int __wrap_pthread_setname_np(pthread_t thread, const char *name)
{
    return process_current() == NULL ? __real_pthread_setname_np(thread, name) : 0;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (process_current() == NULL) {
        return __real_pthread_mutex_lock(mutex);
    }
    while (pthread_mutex_trylock(mutex) == EBUSY) {
        (void)fiber_wait(kernel_now() + LOOK_US * KERNEL_US);
    }
    return 0;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until)
{
    struct process *p = process_current();
    if (p == NULL) {
        return __real_pthread_cond_timedwait(condition, mutex, until);
    }
    int64_t at = (int64_t)until->tv_sec * KERNEL_S + until->tv_nsec;
    fiber_wish(fiber_current())->object = condition;
    (void)pthread_mutex_unlock(mutex);
    readings = 0;
    bool woken = fiber_wait(process_true_at(p, at));
    (void)__wrap_pthread_mutex_lock(mutex);
    return woken ? 0 : ETIMEDOUT;
}

static bool wake_one(struct fiber *f, const void *what)
{
    if (fiber_wish_of(f)->object != what || fiber_is_woken(f)) {
        return false;
    }
    fiber_wake(f);
    return true;
}

static bool wake_all(struct fiber *f, const void *what)
{
    (void)wake_one(f, what);
    return false;
}

int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    struct process *p = process_current();
    if (p == NULL) {
        return __real_pthread_cond_signal(condition);
    }
    fiber_each(p, wake_one, condition);
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    struct process *p = process_current();
    if (p == NULL) {
        return __real_pthread_cond_broadcast(condition);
    }
    fiber_each(p, wake_all, condition);
    return 0;
}
