/* Does what an option names exist? An empty list would hide a mistyped name. Each asks the
 * database. Thread: main. Blocks: until the session's deadline. */
#ifndef RS_KNOWN_NAMES_H
#define RS_KNOWN_NAMES_H

#include "session.h"

/* DONE when there is a scope of that name, or `name` is NULL; otherwise NOT_FOUND, reported with
 * the scopes there are. */
MUST_USE enum exit_code scope_name_check(struct session *s, const char *name);

/* The same for queues and calendars. */
MUST_USE enum exit_code queue_name_check(struct session *s, const char *name);
MUST_USE enum exit_code calendar_name_check(struct session *s, const char *name);

/* "SCHEDULE:KEY" into its two parts; a name holds no colon, a key may. False: it is not that.
 * *ret_key points into `text`. Pure. */
bool job_name_split(const char *text, char ret_schedule[NAME_MAX_BYTES], const char **ret_key);

/* A job's id or SCHEDULE:KEY; otherwise USAGE, reported. Asks nothing. */
MUST_USE enum exit_code job_name_check(struct session *s, const char *text);

#endif
