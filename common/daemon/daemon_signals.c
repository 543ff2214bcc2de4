#include "daemon_signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>

static void signals_of_interest(sigset_t *set)
{
    (void)sigemptyset(set);
    (void)sigaddset(set, SIGTERM);
    (void)sigaddset(set, SIGINT);
    (void)sigaddset(set, SIGHUP);
    (void)sigaddset(set, SIGUSR1);
}

void daemon_signals_block(void)
{
    sigset_t set;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    signals_of_interest(&set);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)sigaction(SIGPIPE, &ignore, NULL);
}

int daemon_signals_open(void)
{
    sigset_t set;
    signals_of_interest(&set);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
