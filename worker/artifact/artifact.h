/* An artifact being written into a `directory` store: a temporary file, its SHA-256 and size taken
 * on the way, then made durable under its final name. It becomes visible to anybody only through
 * the outcome row that names it (invariant I7); until then it is an unreferenced file.
 * Each object belongs to one thread. Blocks: on the file system. */
#ifndef RS_ARTIFACT_H
#define RS_ARTIFACT_H

#include <stddef.h>
#include <stdint.h>

#include "artifact_path.h"
#include "digest.h"
#include "job.h"
#include "status.h"

#define MEDIA_TYPE_MAX 80

struct artifact_store {
    char name[NAME_MAX_BYTES];
    char directory[512]; /* absolute */
};

/* What the outcome row says of it. */
struct artifact_record {
    char store[NAME_MAX_BYTES];
    char path[ARTIFACT_PATH_MAX]; /* within the store */
    char media_type[MEDIA_TYPE_MAX];
    int64_t size_bytes;
    char sha256[DIGEST_TEXT_MAX];
};

struct artifact;

/* Make the directories and the temporary file. `store` is borrowed until the end.
 * Owns: *ret_artifact, ended by artifact_abort, also after artifact_complete.
 * Returns: OK; AGAIN (the file system refuses, the text says what and where; trying later can
 * help: disk full, permissions, a mount that is away); FATAL (memory). */
MUST_USE enum status artifact_create(const struct artifact_store *store, const char *installation,
                                     const struct job *job, struct artifact **ret_artifact,
                                     struct error *err);

/* Returns: OK; AGAIN (disk full and the like). */
MUST_USE enum status artifact_write(struct artifact *a, const void *data, size_t size,
                                    struct error *err);

/* Write through, rename, write the directories through. The file is whole and has its name; people
 * see it when the outcome row is recorded, not before (I7). `ending` is the file name's ending and
 * decides the media type. Returns: OK; AGAIN. */
MUST_USE enum status artifact_complete(struct artifact *a, const char *ending,
                                       struct artifact_record *ret_record, struct error *err);

int64_t artifact_size(const struct artifact *a);

/* Free; a file that was not completed is removed. NULL is fine. */
void artifact_abort(struct artifact *a);

/* Remove a complete file whose outcome was refused. A failure leaves it to the sweep. */
void artifact_remove(const struct artifact_store *store, const char *path);

/* "text/csv; charset=utf-8" and the like; "application/octet-stream" for an unknown ending. */
const char *media_type_of(const char *ending);

#endif
