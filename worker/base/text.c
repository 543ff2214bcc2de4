#include "text.h"

#include <stdbool.h>
#include <string.h>

/* Bytes of the valid UTF-8 character at p, at most `left`; 0 when there is none. */
static size_t character_length(const unsigned char *p, size_t left)
{
    if (p[0] < 0x80) {
        return p[0] == 0 ? 0 : 1;
    }
    size_t n = p[0] >= 0xf0 && p[0] <= 0xf4   ? 4
               : p[0] >= 0xe0 && p[0] <= 0xef ? 3
               : p[0] >= 0xc2 && p[0] <= 0xdf ? 2
                                              : 0;
    if (n == 0 || n > left) {
        return 0;
    }
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool beyond = (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf4 && p[1] > 0x8f);
    return overlong || beyond ? 0 : n;
}

void text_clean(const char *from, size_t n, char *to, size_t size)
{
    size_t used = 0;
    for (size_t i = 0; i < n;) {
        size_t length = character_length((const unsigned char *)from + i, n - i);
        size_t take = length == 0 ? 1 : length;
        if (used + take >= size) {
            break;
        }
        if (length == 0) {
            to[used] = '?';
        } else {
            memcpy(to + used, from + i, length);
        }
        used += take;
        i += take;
    }
    to[used] = '\0';
}
