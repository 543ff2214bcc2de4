/* The words of a cron expression, whatever its dialect: for cron_parse.c and cron_quartz.c. */
#ifndef RS_CRON_WORDS_H
#define RS_CRON_WORDS_H

#include "status.h"

#define CRON_WORDS_MAX 8 /* one more than fields, to see that there are too many */

/* Is it short enough and of printable ASCII? Returns: OK, INVALID. */
MUST_USE enum status cron_text_check(const char *text, struct error *err);

/* Cut `text` into words in place. Returns their number, at most CRON_WORDS_MAX. */
int cron_words_split(char *text, const char *words[CRON_WORDS_MAX]);

#endif
