/* The files of a TLS server, for http_mhd.c only: PEM texts that the library takes from memory. */
#ifndef RS_HTTP_FILES_H
#define RS_HTTP_FILES_H

#include "status.h"

struct http_files {
    char *certificate; /* chain; NULL: no TLS */
    char *key;
};

/* Read both, or nothing where neither is named. Refuses a key that others may read. The library
 * has copied what it needs once it has started. Owns: http_files_free. Zero-initialise.
 * Returns: OK; INVALID, the text names the setting and the remedy. Blocks: on the file system. */
MUST_USE enum status http_files_read(struct http_files *files, const char *certificate_file,
                                     const char *key_file, struct error *err);
void http_files_free(struct http_files *files);

#endif
