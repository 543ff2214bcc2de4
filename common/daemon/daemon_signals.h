/* The signals that a daemon acts on: SIGTERM, SIGINT, SIGHUP and SIGUSR1, read in its main thread.
 * SIGPIPE is ignored: a write to a closed socket is an error like any other. */
#ifndef RS_DAEMON_SIGNALS_H
#define RS_DAEMON_SIGNALS_H

/* Block them, for this thread and all that it starts; so call it before any thread. */
void daemon_signals_block(void);

/* A descriptor that is readable when one has come: struct signalfd_siginfo, read without waiting.
 * Owns: close. -1: there is none to be had, errno says why. */
int daemon_signals_open(void);

#endif
