/* The scheduler's life file (life_file.h): the ZooKeeper session it holds, so that it can be closed
 * when the process was killed and its successor need not wait for the session to expire.
 *
 * The file is replaced before a new session is used, and removed when the session was closed in
 * order. The password in it is a secret. Thread: the life file's owner. Blocks: on the file system.
 */
#ifndef RS_SESSION_FILE_H
#define RS_SESSION_FILE_H

#include "coord_zk_client.h"
#include "life_file.h"

/* Returns: OK; AGAIN (it cannot be written). */
MUST_USE enum status session_file_write(struct life_file *file, const struct zk_session *session,
                                        struct error *err);

/* Returns, as life_file_read: OK; NOT_FOUND; INVALID; CORRUPT. */
MUST_USE enum status session_file_read(const struct life_file *file, struct zk_session *ret_session,
                                       struct error *err);

#endif
