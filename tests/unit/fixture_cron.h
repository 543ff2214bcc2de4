/* Random texts of the cron grammar, for tests of all that reads it. Needs fixture_zone.h's random
 * numbers. */
#ifndef RS_FIXTURE_CRON_H
#define RS_FIXTURE_CRON_H

#include "cron.h"

/* An expression of 5, 6 or 7 fields or a nickname, over the whole grammar. Most compile; some name
 * a date that never comes, or step a day field beside another. */
void fixture_cron_text(char ret_text[CRON_TEXT_MAX]);

/* Fails the test when it does not compile. */
struct cron fixture_cron_parse(const char *text);

#endif
