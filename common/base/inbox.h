/* A bounded mailbox between threads: library callbacks and other threads post fixed-size
 * messages, the owner takes them in order. The descriptor is readable while it is not empty.
 *
 * Nothing is lost silently: a post to a full inbox is refused and counted, and the owner sees the
 * count, so that it can re-read the truth (re-list, re-scan) instead of trusting events. */
#ifndef RS_INBOX_H
#define RS_INBOX_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

struct inbox;

/* Owns: free with inbox_free (NULL is fine), after every poster has stopped.
 * Units: message_size in bytes; capacity in messages. Returns NULL when out of memory. */
struct inbox *inbox_new(size_t message_size, size_t capacity);
void inbox_free(struct inbox *in);

/* Copy one message in. Thread: any. Blocks: never. Returns: OK, FULL (counted as dropped). */
MUST_USE enum status inbox_post(struct inbox *in, const void *message);

/* Copy the oldest message out. Thread: owner only. Blocks: never. False when empty. */
bool inbox_take(struct inbox *in, void *ret_message);

/* Descriptor for poll(2): readable while not empty. Borrowed. */
int inbox_fd(const struct inbox *in);

/* Messages refused since the last call. Thread: owner only. */
uint64_t inbox_take_dropped(struct inbox *in);

#endif
