/* What a process leaves to whoever has to clean up after it, and the proof that it is dead.
 *
 * Two owner-only files. PATH.lock: the process holds it locked as long as it lives, and so does
 * what it shares the descriptor with; it is never replaced. PATH: what it holds elsewhere (a
 * session, claims), as lines key=value, replaced whole. Who gets the lock knows that the process is
 * gone: pids lie (a process whose first thread has ended looks like a zombie and goes on; other pid
 * namespaces; numbers used again), and a stopped process keeps its locks. PATH names the lock's
 * inode, so a lock file that was deleted under a living process proves nothing.
 *
 * Two kinds of lock on one file tell two cases apart: flock(2) belongs to everybody who shares the
 * descriptor, fcntl(2)'s to the process alone, all of its threads. In one process open a PATH once:
 * closing any descriptor of it drops the latter.
 *
 * On a local file system only. Thread: each object belongs to one at a time. */
#ifndef RS_LIFE_FILE_H
#define RS_LIFE_FILE_H

#include <stddef.h>

#include "clock.h"
#include "status.h"

#define LIFE_TEXT_MAX   1024
#define LIFE_FIELDS_MAX 16

struct life_file;

enum life_purpose {
    LIFE_BEGIN, /* a daemon starts: makes the lock file when it is missing */
    LIFE_PROVE, /* somebody cleans up after one: makes nothing */
};

/* Get both locks. Owns: *ret_file, life_file_free.
 * Returns: OK: whoever held it is gone; CONFLICT: a process lives (stopped counts as living);
 * TIMEOUT: the process is gone, but not what it shared the lock with; NOT_FOUND: no directory
 * (BEGIN), or no file: nobody has been there, or it stopped in order (PROVE); INVALID: another
 * user's, open to others or no file; CORRUPT: PATH without its lock (PROVE).
 * Blocks: until the deadline, while it is held. */
MUST_USE enum status life_file_take(const char *path, enum life_purpose purpose, instant deadline,
                                    struct life_file **ret_file, struct error *err);

/* The lock's descriptor (close-on-exec, at least 10), to be shared with a child. Borrowed. */
int life_file_fd(const struct life_file *file);

struct life_field {
    const char *key;
    const char *value; /* one line; may be a secret */
};

/* Replace PATH. Who reads it sees the old text or the new one. Adds boot, pid, start time and
 * lock. Returns: OK; INVALID (too long; a value is no line); AGAIN (errno's words). */
MUST_USE enum status life_file_write(struct life_file *file, const struct life_field *fields,
                                     size_t count, struct error *err);

/* What PATH says. May hold a secret: life_record_wipe it. */
struct life_record {
    char text[LIFE_TEXT_MAX];
    size_t count;
    struct {
        const char *key, *value; /* in text */
    } lines[LIFE_FIELDS_MAX];
};

/* Returns: OK; NOT_FOUND: no PATH, or of another boot, after which nothing can be said of it;
 * INVALID: another user's, or open to others; CORRUPT: not whole, or not written under this lock.
 */
MUST_USE enum status life_file_read(const struct life_file *file, struct life_record *ret_record,
                                    struct error *err);

/* NULL: not there. */
const char *life_record_get(const struct life_record *record, const char *key);
void life_record_wipe(struct life_record *record);

/* Nothing is left to clean up: PATH goes, the lock file stays. */
void life_file_remove(struct life_file *file);

/* Gives the locks up, the file as it is. NULL is fine. */
void life_file_free(struct life_file *file);

/* The default place: "NAME" in the first directory that systemd made for this unit
 * ($RUNTIME_DIRECTORY); "" without one. */
void life_file_default(const char *name, char *ret_path, size_t size);

#endif
