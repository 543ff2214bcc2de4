/* What people should know about a cron expression before they rely on it: what is easily taken for
 * something else, and what the clock changes of a zone do to it. Pure. */
#ifndef RS_CRON_NOTES_H
#define RS_CRON_NOTES_H

#include "cron.h"

#define CRON_NOTES_MAX     12
#define CRON_NOTE_TEXT_MAX 320
#define CRON_NOTES_AHEAD_S ((int64_t)731 * SECONDS_A_DAY) /* how far changes are looked for */

struct cron_notes {
    int count;
    char text[CRON_NOTES_MAX][CRON_NOTE_TEXT_MAX]; /* each one sentence, without a full stop */
};

/* All there is to say about it in a zone, from an instant on. Thread: any. */
void cron_notes_make(const struct cron *c, const struct zone *z, utc_us from,
                     struct cron_notes *ret_notes);

#endif
