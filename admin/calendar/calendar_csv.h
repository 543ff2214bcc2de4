/* A business calendar as a CSV file; the format is described in docs/calendars.md. Pure. */
#ifndef RS_CALENDAR_CSV_H
#define RS_CALENDAR_CSV_H

#include "calendar_definition.h"

/* The bytes of a file; it need not end in NUL. */
struct calendar_source {
    const char *text;
    size_t size;
    const char *file; /* for messages */
};

/* Into a definition that was initialised; it is finished on OK, and calendar_definition_done is due
 * in any case. Returns: OK; INVALID ("FILE:LINE: what is wrong; what to write"); FATAL. */
MUST_USE enum status calendar_csv_parse(const struct calendar_source *source,
                                        struct calendar_definition *d, struct error *err);

#endif
