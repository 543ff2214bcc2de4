/* What a cron expression says, in plain English: complete over the grammar, and never less exact
 * than the expression. Pure.
 *
 *   30 6 * * 1-5         at 06:30 on Monday to Friday
 *   0,30 8-18 * * *      at minutes 0 and 30 of each hour from 08:00 to 18:59
 *   0 18 LW * *          at 18:00 on the last weekday (Monday to Friday) of the month
 *   0 0 13 * +FRI        at 00:00 on day 13 of the month if it is also Friday */
#ifndef RS_CRON_TEXT_H
#define RS_CRON_TEXT_H

#include "cron.h"

#define CRON_PLAIN_MAX 4096 /* with NUL; nothing is ever cut */

/* Write the sentence, without a capital and a full stop. Thread: any. */
void cron_text_write(const struct cron *c, char ret_text[CRON_PLAIN_MAX]);

/* What its policies make of the two changes of the clock, in one sentence of the same form, such as
 * "a time that the clock skips runs at the first instant after the gap; ...". Thread: any. */
void cron_text_write_policies(const struct cron *c, char ret_text[CRON_PLAIN_MAX]);

#endif
