/* An instant as people type it on the command line. Pure. */
#ifndef RS_INSTANT_TEXT_H
#define RS_INSTANT_TEXT_H

#include <stdbool.h>

#include "clock.h"
#include "status.h"

/* Has it the form of a date, "2030-04-12"? Whether there is such a day is not asked. */
bool text_is_date(const char *text);

/* RFC 3339, or a date, which begins at midnight in UTC. Returns: OK; INVALID. */
MUST_USE enum status instant_text_parse(const char *text, utc_us *ret, struct error *err);

#endif
