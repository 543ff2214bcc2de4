/* Does a schedule exist, and which one was meant? Each asks the database.
 * Thread: main. Blocks: until the session's deadline. */
#ifndef RS_SCHEDULE_NAMES_H
#define RS_SCHEDULE_NAMES_H

#include "session.h"

/* DONE when the schedule exists or ever did; otherwise NOT_FOUND, reported with the nearest name.
 */
enum exit_code schedule_name_check(struct session *s, const char *name);

/* Report that there is no such schedule now: deleted when, or which name is near. */
enum exit_code schedule_name_fail(struct session *s, const char *name);

#endif
