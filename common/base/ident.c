#include "ident.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

static void random_bytes(unsigned char *out, size_t n)
{
    size_t got = 0;
    while (got < n) {
        ssize_t r = getrandom(out + got, n - got, 0);
        if (r > 0) {
            got += (size_t)r;
        } else if (r < 0) {
            abort(); /* no id is better than a guessable or repeated one */
        }
    }
}

uint64_t random_number(void)
{
    unsigned char bytes[sizeof(uint64_t)];
    uint64_t value = 0;
    random_bytes(bytes, sizeof bytes);
    memcpy(&value, bytes, sizeof value);
    return value;
}

static void uuid_format(const unsigned char b[16], char text[UUID_TEXT_MAX])
{
    (void)snprintf(text, UUID_TEXT_MAX,
                   "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0],
                   b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                   b[14], b[15]);
}

void uuid_random(char ret_text[UUID_TEXT_MAX])
{
    unsigned char b[16];
    random_bytes(b, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    uuid_format(b, ret_text);
}

void uuid_time_ordered(utc_us at, char ret_text[UUID_TEXT_MAX])
{
    unsigned char b[16];
    random_bytes(b, sizeof b);
    uint64_t ms = (uint64_t)(at.us / 1000);
    for (int i = 0; i < 6; i++) {
        b[i] = (unsigned char)(ms >> (40 - 8 * i));
    }
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x70);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    uuid_format(b, ret_text);
}

bool boot_id_read(char *ret_text, size_t size)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool read = f != NULL && fgets(ret_text, (int)size, f) != NULL;
    if (f != NULL) {
        (void)fclose(f);
    }
    ret_text[read ? strcspn(ret_text, "\n") : 0] = '\0';
    return read && ret_text[0] != '\0';
}

bool uuid_is_valid(const char *text)
{
    if (strlen(text) != UUID_TEXT_MAX - 1) {
        return false;
    }
    for (size_t i = 0; i < UUID_TEXT_MAX - 1; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : strchr("0123456789abcdefABCDEF", text[i]) == NULL) {
            return false;
        }
    }
    return true;
}

bool name_is_valid(const char *text)
{
    const char *alnum = "abcdefghijklmnopqrstuvwxyz0123456789";
    const char *rest = "abcdefghijklmnopqrstuvwxyz0123456789_.-";
    size_t n = strlen(text);
    return n >= 1 && n < NAME_MAX_BYTES && strchr(alnum, text[0]) != NULL &&
           strspn(text, rest) == n;
}
