/* The worker's life file (life_file.h): what its incarnation is called in the database, so that its
 * claims can be given up when the process was killed. Written before the incarnation registers,
 * removed when it has left in order. The keepers share its lock: it is free only when all programs
 * are gone, too. */
#ifndef RS_INCARNATION_FILE_H
#define RS_INCARNATION_FILE_H

#include "ident.h"
#include "life_file.h"

/* Returns: OK; AGAIN (it cannot be written). */
MUST_USE enum status incarnation_file_write(struct life_file *file, const char *worker,
                                            struct error *err);

/* Returns, as life_file_read: OK; NOT_FOUND; INVALID; CORRUPT. */
MUST_USE enum status incarnation_file_read(const struct life_file *file,
                                           char ret_worker[UUID_TEXT_MAX], struct error *err);

#endif
