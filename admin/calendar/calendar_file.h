/* Finds and reads calendars: a file by its path, a shipped one by its name. Thread: any. Blocks: on
 * reading. */
#ifndef RS_CALENDAR_FILE_H
#define RS_CALENDAR_FILE_H

#include "calendar_definition.h"

#define CALENDAR_PATH_MAX 4096

/* Is it a path (it has a slash or ends in .csv or .ics) rather than a name? */
bool calendar_word_is_path(const char *word);

/* Read a path, or a shipped calendar of that name, into a definition that was initialised;
 * calendar_definition_done is due in any case. Shipped calendars are searched in
 * $REPORTCTL_CALENDAR_DIR, or if that is not set beside the program (a build tree), then where they
 * are installed. Returns: OK; INVALID (as calendar_csv_parse and calendar_ics_parse, a file that
 * cannot be read, a name that is not shipped: the text says the nearest); FATAL (out of memory). */
MUST_USE enum status calendar_file_read(const char *path_or_name, struct calendar_definition *d,
                                        struct error *err);

/* The same, compiled. Owns: calendar_free. */
MUST_USE enum status calendar_file_load(const char *path_or_name, struct calendar **ret,
                                        struct error *err);

#endif
