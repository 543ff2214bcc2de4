/* SHA-256 of memory, a file or a stream. The only user of OpenSSL.
 * Thread: any; one object is one thread's at a time. */
#ifndef RS_DIGEST_H
#define RS_DIGEST_H

#include <stddef.h>

#include "status.h"

#define DIGEST_TEXT_MAX 65 /* 64 lower-case hexadecimal digits and NUL */

struct digest; /* a running digest; one thread at a time */

/* Owns: digest_free (NULL is fine). NULL when out of memory. */
struct digest *digest_new(void);
void digest_free(struct digest *d);

/* Take n bytes in. Returns: OK; FATAL (the digest cannot go on, do not finish it). */
MUST_USE enum status digest_add(struct digest *d, const void *bytes, size_t n);

/* The digest of all that was added; the object starts afresh, for the next stream.
 * Returns: OK; FATAL (the digest cannot go on). */
MUST_USE enum status digest_finish(struct digest *d, char ret_text[DIGEST_TEXT_MAX]);

/* In one call. Returns: OK; FATAL (no memory). */
MUST_USE enum status digest_memory(const void *bytes, size_t n, char ret_text[DIGEST_TEXT_MAX]);

/* Of a whole file, read in blocks. Blocks: on the file system.
 * Returns: OK; NOT_FOUND (cannot be opened or read, with the reason); FATAL. */
MUST_USE enum status digest_file(const char *path, char ret_text[DIGEST_TEXT_MAX],
                                 struct error *err);

#endif
