/* Whether the store that takes new files takes them: what artifact.c met with last, and a look from
 * time to time. One state a process. Thread: any. */
#ifndef RS_ARTIFACT_HEALTH_H
#define RS_ARTIFACT_HEALTH_H

#include <stdbool.h>

#include "artifact.h"
#include "status.h"

/* The store refused something; `text` names it and the reason. Logged as the daemon's own trouble:
 * once, and again each minute while it goes on. Blocks: never for long. */
void artifact_health_refused(const struct artifact_store *store, const char *text);

/* A file went through. Logs the end of the trouble. Blocks: never for long. */
void artifact_health_works(const struct artifact_store *store);

/* Look at the directory; while it refuses, write a small file there, since a full disk shows itself
 * in no other way. Blocks: on the file system. */
void artifact_health_look(const struct artifact_store *store);

/* True: all is well. False: *ret_why is the trouble. Blocks: never for long. */
bool artifact_health_is_good(struct error *ret_why);

#endif
