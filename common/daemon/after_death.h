/* What the commands that clean up after a killed daemon have in common: `report-scheduler
 * --close-dead-session` and `report-worker --release-claims`. */
#ifndef RS_AFTER_DEATH_H
#define RS_AFTER_DEATH_H

#include "life_file.h"

/* Their exit status; 2 is wrong usage or settings, as ever. */
enum after_death {
    AFTER_DEATH_DONE = 0,   /* what the dead process held was given up */
    AFTER_DEATH_FAILED = 1, /* not known, or not possible now: it lapses by itself */
    AFTER_DEATH_SETTINGS = 2,
    AFTER_DEATH_NOTHING = 3, /* there was nothing, or it had lapsed already */
    AFTER_DEATH_LIVES = 4,   /* refused: the process, or a program of its, lives */
};

/* Prove that the daemon whose life file `path` is has died, within proof_ms, and take its place.
 * `key`: of the setting that names the file. From here on the whole command may take limit_ms:
 * then the process ends with AFTER_DEATH_FAILED, whatever hangs. Says what it found in the log.
 * Thread: of a process that does nothing else. Blocks: until limit_ms.
 * Returns the exit status where *ret_file stays NULL; otherwise go on with it (life_file_free). */
int after_death_take(const char *key, const char *path, int64_t proof_ms, int64_t limit_ms,
                     struct life_file **ret_file);

#endif
