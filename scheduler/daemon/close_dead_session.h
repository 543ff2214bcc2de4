/* Crash-fast release: a session outlives its process only because nobody closes it.
 *
 * `report-scheduler --close-dead-session` runs after the daemon was killed (systemd's
 * ExecStopPost=, or any supervisor): it proves by the life file that the process is gone, attaches
 * to its session and closes it, so that the nodes go at once and the next candidate leads within
 * milliseconds. What the dead process still had running in PostgreSQL is covered by the barrier of
 * establish (I11). Expiry stays the path that must always work: every failure here costs time
 * only. Thread: of a process that does nothing else. */
#ifndef RS_CLOSE_DEAD_SESSION_H
#define RS_CLOSE_DEAD_SESSION_H

/* What --close-dead-session does; the exit status (after_death.h). `settings`: struct
 * scheduler_settings. Blocks: bounded, at most some 15 s. */
int close_dead_session(const void *settings);

#endif
