/* A byte buffer that grows up to a bound. A failure sticks, so that a row can be built without
 * looking after every field. Thread: owner. Blocks: never. */
#ifndef RS_BYTES_H
#define RS_BYTES_H

#include <stdbool.h>
#include <stddef.h>

struct bytes {
    char *data; /* owned: bytes_free */
    size_t used, size;
    size_t most; /* never larger than this; set at the start */
    bool failed; /* something did not fit, or memory ran out: the content is not complete */
};

void bytes_add(struct bytes *b, const void *data, size_t n);
void bytes_add_text(struct bytes *b, const char *text);
void bytes_add_char(struct bytes *b, char c);
void bytes_clear(struct bytes *b); /* keeps the memory, forgets the failure */
void bytes_free(struct bytes *b);

#endif
