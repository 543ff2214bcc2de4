/* Preloaded before libfaketime into PostgreSQL. While a process waits in epoll_wait, libfaketime
 * shows it the machine's clock; the handler of SIGALRM, which runs just then, compares that with
 * deadlines told by the clock it shows otherwise. With an offset of an hour no statement_timeout,
 * lock_timeout or deadlock check ends a wait, or all of them at once. A plain epoll_wait counts
 * milliseconds and needs no clock. */

#define _GNU_SOURCE
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

int epoll_wait(int epoll, struct epoll_event *events, int room, int timeout_ms)
{
    return (int)syscall(SYS_epoll_pwait, epoll, events, room, timeout_ms, NULL, 0);
}
