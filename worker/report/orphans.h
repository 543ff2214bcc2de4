/* Keepers of this process, and what is left of one that was killed: the processes that it kept are
 * handed to this process, which has made itself their subreaper. Every child that is no keeper is
 * such a one, since nothing else here starts processes; so they can be killed without knowing whose
 * they were. (As process 1 of a container the worker gets others' orphans too: give it an init.)
 * One registry a process. Thread: any. */
#ifndef RS_ORPHANS_H
#define RS_ORPHANS_H

#include <stdbool.h>
#include <sys/types.h>

/* One keeper, in the memory of whoever started it, from keeper_began to keeper_gone. */
struct keeper_entry {
    pid_t pid;
    struct keeper_entry *next;
};

/* Start a keeper between these two: a child that is not known yet would be taken for an orphan.
 * `entry` NULL: it did not start. Blocks: while others start one or look for orphans. */
void keeper_begins(void);
void keeper_began(struct keeper_entry *entry);

/* Reap it. True when it has ended: the entry is out of the registry, and its processes have been
 * handed to us. Blocks: never. */
bool keeper_gone(struct keeper_entry *entry);

/* Kill the orphans. True when there were some: look again, since killing one hands us its children.
 * (A process that changed its user, or hangs in the kernel, may stay.) Blocks: reads /proc. */
bool orphans_kill(void);

#endif
