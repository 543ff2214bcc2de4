/* Foreign text made fit for the database and the log. Pure. */
#ifndef RS_TEXT_H
#define RS_TEXT_H

#include <stddef.h>

/* Copy `n` bytes of anything as valid UTF-8 without NUL: each byte that is not part of a valid
 * character becomes '?'. Cut at size - 1 bytes on a character's boundary; NUL-terminated. */
void text_clean(const char *from, size_t n, char *to, size_t size);

#endif
