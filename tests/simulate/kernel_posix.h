/* The linker's names: __wrap_X is called instead of X, __real_X is X itself. */
#ifndef RS_SIMULATE_KERNEL_POSIX_H
#define RS_SIMULATE_KERNEL_POSIX_H

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

#include "kernel.h"

int __real_clock_gettime(clockid_t clock, struct timespec *ts);
pid_t __real_getpid(void);
_Noreturn void __real__exit(int status);
int __real_eventfd(unsigned initial, int flags);
ssize_t __real_read(int fd, void *buffer, size_t size);
ssize_t __real_write(int fd, const void *buffer, size_t size);
int __real_close(int fd);
int __real_shutdown(int fd, int how);
int __real_poll(struct pollfd *list, nfds_t count, int timeout_ms);
int __real_ppoll(struct pollfd *list, nfds_t count, const struct timespec *wait,
                 const sigset_t *mask);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*entry)(void *), void *argument);
int __real_pthread_tryjoin_np(pthread_t thread, void **ret_value);
int __real_pthread_join(pthread_t thread, void **ret_value);
pthread_t __real_pthread_self(void);
int __real_pthread_setname_np(pthread_t thread, const char *name);
int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __real_pthread_cond_signal(pthread_cond_t *condition);
int __real_pthread_cond_broadcast(pthread_cond_t *condition);

int __wrap_clock_gettime(clockid_t clock, struct timespec *ts);
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags);
pid_t __wrap_getpid(void);
_Noreturn void __wrap__exit(int status);
int __wrap_eventfd(unsigned initial, int flags);
int __wrap_daemon_signals_open(void);
ssize_t __wrap_read(int fd, void *buffer, size_t size);
ssize_t __wrap___read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __wrap_write(int fd, const void *buffer, size_t size);
int __wrap_close(int fd);
int __wrap_shutdown(int fd, int how);
int __wrap_poll(struct pollfd *list, nfds_t count, int timeout_ms);
int __wrap_ppoll(struct pollfd *list, nfds_t count, const struct timespec *wait,
                 const sigset_t *mask);
int __wrap___poll_chk(struct pollfd *list, nfds_t count, int timeout_ms, size_t room);
int __wrap___ppoll_chk(struct pollfd *list, nfds_t count, const struct timespec *wait,
                       const sigset_t *mask, size_t room);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*entry)(void *), void *argument);
int __wrap_pthread_tryjoin_np(pthread_t thread, void **ret_value);
int __wrap_pthread_join(pthread_t thread, void **ret_value);
pthread_t __wrap_pthread_self(void);
int __wrap_pthread_setname_np(pthread_t thread, const char *name);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int __wrap_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);

const struct fiber_wish *fiber_wish_of(const struct fiber *f);
bool fiber_is_woken(const struct fiber *f);

#endif
