/* What libconfig 1.5 gets wrong before it parses, for settings*.c only.
 *
 * It reads an integer beyond 32 bits modulo 2^32 unless it carries an L (4294969296 becomes 2000),
 * and its scanner ends the process when an included path cannot be read. So the text is scanned
 * first: such integers get their L, and @include is refused. It also stops at a key that was given
 * before in its group, naming neither the key nor any other fault: such a key is renamed here, to
 * be reported like the others ("key" SETTINGS_AGAIN number). Thread: any. Blocks: on the file
 * system. */
#ifndef RS_SETTINGS_SCAN_H
#define RS_SETTINGS_SCAN_H

#include "status.h"

#define SETTINGS_AGAIN "*again*"

struct settings_text {
    char *text; /* owned: free */
    int lines;  /* at least 1 */
};

/* Read and prepare the file. err names file:line on INVALID.
 * Returns: OK, INVALID, NOT_FOUND (cannot be read, or is not a regular file of a sane size). */
MUST_USE enum status settings_text_read(const char *path, struct settings_text *ret,
                                        struct error *err);

#endif
