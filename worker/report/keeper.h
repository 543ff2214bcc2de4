/* The protocol between a worker and report-keeper, the small process between it and a program.
 *
 * The keeper runs one program in a session of its own and reports how it ended after the program
 * and every process that came from it are gone, also those that left the session: the keeper is
 * their subreaper. It kills them all at end-of-file of the control pipe (the worker ended, however)
 * and at a CLOCK_BOOTTIME deadline that only messages from the worker move (the worker is stopped
 * or cut off). So no program outlives its claim, whatever happened to the worker (invariant I6).
 *
 *   report-keeper DEADLINE_NS GRACE_MS MEMORY_BYTES CPU_S DIRECTORY -- PROGRAM [ARGUMENT...]
 *
 * DEADLINE_NS: absolute; GRACE_MS: between SIGTERM and SIGKILL at TERMINATE; a limit of 0 is none.
 * The environment is the program's. Descriptors: 0, 1, 2 the program's; 3 control, 4 report; 5, if
 * open, is the lock of the worker's life file (life_file.h), which the keeper holds to its end and
 * the program does not get: so nobody releases the claims of a killed worker while anything of its
 * programs lives. It expects no others and links only libc.
 * Both pipes carry struct keeper_message, whole. Worker to keeper: EXTEND, TERMINATE, KILL. Keeper
 * to worker: exactly one of EXITED, SIGNALLED, NOT_STARTED, then end-of-file. End-of-file without
 * one: the keeper itself was killed; its program is killed with it (PR_SET_PDEATHSIG), and what
 * came from that is handed to the worker, which kills it (orphans.h). Only when both are killed at
 * once can a program's children live on.
 *
 * Limits of what a keeper can do: a process that changed its user (set-uid) may not be killed by
 * it; a process in uninterruptible sleep is gone only when the kernel lets it go. */
#ifndef RS_KEEPER_H
#define RS_KEEPER_H

#include <stdint.h>

#define KEEPER_CONTROL_FD 3
#define KEEPER_REPORT_FD  4
#define KEEPER_LIFE_FD    5

enum keeper_message_kind {
    KEEPER_EXTEND = 1,      /* value: the new deadline, nanoseconds of CLOCK_BOOTTIME */
    KEEPER_TERMINATE = 2,   /* SIGTERM to the session's group, after the grace SIGKILL to all */
    KEEPER_KILL = 3,        /* SIGKILL to all now */
    KEEPER_EXITED = 11,     /* value: exit status */
    KEEPER_SIGNALLED = 12,  /* value: signal number */
    KEEPER_NOT_STARTED = 13 /* value: errno of chdir or execve */
};

/* Why the keeper ended the program, in `cause` of its report. */
enum keeper_cause {
    KEEPER_BY_ITSELF = 0, /* it did not */
    KEEPER_ASKED = 1,     /* TERMINATE or KILL */
    KEEPER_DEADLINE = 2,
    KEEPER_END_OF_FILE = 3,
};

struct keeper_message {
    uint32_t kind;
    uint32_t cause; /* reports only, otherwise 0 */
    int64_t value;
};

#endif
