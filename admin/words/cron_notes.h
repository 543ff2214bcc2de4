/* What is easily taken for something else in a cron expression. Pure. */
#ifndef RS_CRON_NOTES_H
#define RS_CRON_NOTES_H

#include "cron.h"
#include "notes.h"

/* What comes before all else: which days match. Thread: any. */
void cron_notes_add_days(const struct cron *c, struct notes *n);

/* Days that some months lack, steps that begin again, how often a day. Thread: any. */
void cron_notes_add_rest(const struct cron *c, struct notes *n);

#endif
