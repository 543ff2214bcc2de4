/* Whose child a process is. The worker and the keeper both look for their own; no more than libc is
 * linked, since the keeper has nothing else. */
#ifndef RS_PROCESS_PARENT_H
#define RS_PROCESS_PARENT_H

#include <sys/types.h>

/* The parent of a process, from /proc/<pid>/stat; `pid` is that directory's name. 0 when the
 * process is gone. Thread: any. Blocks: reads /proc. */
pid_t process_parent(const char *pid);

#endif
