/* The import dialect `quartz`: expressions as Quartz 2.3.2 reads them, turned into the grammar of
 * cron.h once, when a schedule is made. Pure.
 *
 *   second minute hour day-of-month month day-of-week [year]
 *   weekdays are 1 to 7 = SUN to SAT; exactly one of the two day fields is "?"; a/n counts from a
 * to the end of the field, "/n" is "*"/n; ranges may wrap (22-2, FRI-MON); L alone in the day of
 * week is Saturday; L, L-n, LW, nW, dL and d#n as in cron.h. A text that Quartz's versions read
 * differently, or of which Quartz ignores a part, is refused. Not imitated: Quartz 2.3.2 fires 29W
 * on some February 28ths, and L-28 to L-30 in some months that have no such day; here a day that a
 * month does not have does not fire. */
#ifndef RS_CRON_QUARTZ_H
#define RS_CRON_QUARTZ_H

#include "cron.h"

/* The std text with the same meaning; it has five fields where seconds are 0 and no year is named.
 * What was written with "*" keeps it, so that a job follows the clock as written; a/n becomes a
 * range. The text that comes out compiles. Returns: OK, INVALID (one line with what to write).
 * Thread: any. */
MUST_USE enum status cron_quartz_to_std(const char *text, char ret_text[CRON_TEXT_MAX],
                                        struct error *err);

#endif
