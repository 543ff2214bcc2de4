#include "bytes.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 4096

static bool room_make(struct bytes *b, size_t n)
{
    if (b->failed || n > b->most || b->used > b->most - n) {
        b->failed = true;
        return false;
    }
    if (b->used + n <= b->size) {
        return true;
    }
    size_t size = b->size == 0 ? FIRST_SIZE : b->size;
    while (size < b->used + n) {
        size = size > b->most / 2 ? b->most : size * 2;
    }
    char *data = realloc(b->data, size);
    if (data == NULL) {
        b->failed = true;
        return false;
    }
    b->data = data;
    b->size = size;
    return true;
}

void bytes_add(struct bytes *b, const void *data, size_t n)
{
    if (n > 0 && room_make(b, n)) {
        memcpy(b->data + b->used, data, n);
        b->used += n;
    }
}

void bytes_add_text(struct bytes *b, const char *text)
{
    bytes_add(b, text, strlen(text));
}

void bytes_add_char(struct bytes *b, char c)
{
    bytes_add(b, &c, 1);
}

void bytes_clear(struct bytes *b)
{
    b->used = 0;
    b->failed = false;
}

void bytes_free(struct bytes *b)
{
    free(b->data);
    *b = (struct bytes){.most = b->most};
}
