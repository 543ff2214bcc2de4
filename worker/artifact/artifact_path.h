/* Names of artifact files. Pure.
 *
 *   <installation>/<scope>/<schedule>/<key>/<job>.<token>.<ending>
 *   <installation>/<scope>/<schedule>/<key>/.<job>.<token>.tmp      while it is written
 *
 * The name is unique to the attempt (invariant I7), so that a worker whose claim moved on can
 * never write to a file that somebody else made visible. The key's ':' becomes '_' and '+' becomes
 * 'p', which every file system and URL takes; different keys may share a directory then, and no
 * file does. */
#ifndef RS_ARTIFACT_PATH_H
#define RS_ARTIFACT_PATH_H

#include <stdbool.h>

#include "ident.h"
#include "job.h"

#define ARTIFACT_PATH_MAX 1024 /* within the store, with NUL; same bound in SQL */
#define ARTIFACT_NAME_MAX 128

/* Directory within the store, without trailing slash. */
void artifact_directory(const char *installation, const struct job *job,
                        char ret_text[ARTIFACT_PATH_MAX]);

void artifact_name(const struct job *job, const char *ending, char ret_text[ARTIFACT_NAME_MAX]);
void artifact_temporary_name(const struct job *job, char ret_text[ARTIFACT_NAME_MAX]);

/* Which attempt a file name belongs to; false for names that are not of this module's making. */
bool artifact_name_parse(const char *name, char ret_job[UUID_TEXT_MAX],
                         char ret_token[UUID_TEXT_MAX], bool *ret_temporary);

#endif
