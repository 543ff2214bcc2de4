/* Which migrations there are, which are applied, and what to do: files and a pure decision. */
#ifndef RS_MIGRATION_H
#define RS_MIGRATION_H

#include <stddef.h>

#include "digest.h"
#include "status.h"

#define MIGRATIONS_MAX     512
#define MIGRATION_NAME_MAX 128

struct migration {
    int number;                     /* 1, 2, 3 ... */
    char name[MIGRATION_NAME_MAX];  /* "0002_definitions" */
    char checksum[DIGEST_TEXT_MAX]; /* SHA-256 of the file */
};

struct migration_set {
    size_t count;
    struct migration items[MIGRATIONS_MAX]; /* by number */
};

/* The files NNNN_name.sql of a directory, in order, with their checksums. Other files are ignored.
 * Returns: OK; NOT_FOUND (no such directory, or no migration in it); INVALID (a number is missing
 * or given twice: the text names the files). Blocks: on the file system. */
MUST_USE enum status migration_set_read(const char *directory, struct migration_set *ret,
                                        struct error *err);

/* Compare with what the database says is applied (by number, from 1 without gaps).
 * Returns: OK with the index of the first file to apply (== count: nothing to do); CONFLICT (an
 * applied file was changed, renamed, or is newer than this program: the text names it). */
MUST_USE enum status migration_set_compare(const struct migration_set *files,
                                           const struct migration_set *applied, size_t *ret_first,
                                           struct error *err);

/* Line (from 1) of a byte offset. */
int migration_line_at(const char *script, long position);

/* Whole content of one file. Owns: *ret_text, free. Returns: OK, NOT_FOUND, INVALID. */
MUST_USE enum status migration_read(const char *directory, const struct migration *m,
                                    char **ret_text, struct error *err);

#endif
