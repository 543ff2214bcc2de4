#include "status.h"

#include <stdio.h>
#include <string.h>

const char *status_name(enum status s)
{
    switch (s) {
    case STATUS_OK:
        return "ok";
    case STATUS_AGAIN:
        return "again";
    case STATUS_TIMEOUT:
        return "timeout";
    case STATUS_FENCED:
        return "fenced";
    case STATUS_HELD:
        return "held";
    case STATUS_CONFLICT:
        return "conflict";
    case STATUS_NOT_FOUND:
        return "not_found";
    case STATUS_INVALID:
        return "invalid";
    case STATUS_CORRUPT:
        return "corrupt";
    case STATUS_FULL:
        return "full";
    case STATUS_FATAL:
        return "fatal";
    }
    return "unknown";
}

void text_trim(char *text)
{
    size_t n = strlen(text);
    size_t back = 0;
    while (back < n && back < 4 && ((unsigned char)text[n - 1 - back] & 0xc0) == 0x80) {
        back++;
    }
    if (back == n || back == 4) {
        return;
    }
    unsigned char lead = (unsigned char)text[n - 1 - back];
    size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (want != back + 1) {
        text[n - 1 - back] = '\0';
    }
}

enum status error_set(struct error *err, enum status s, const char *format, ...)
{
    if (err == NULL) {
        return s;
    }
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    if (n < 0) {
        err->text[0] = '\0';
    } else if ((size_t)n >= sizeof err->text) {
        text_trim(err->text);
    }
    err->code[0] = '\0';
    return s;
}

enum status error_prefix(struct error *err, enum status s, const char *format, ...)
{
    if (err == NULL) {
        return s;
    }
    struct error outer;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(outer.text, sizeof outer.text, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof outer.text - 3) {
        return s;
    }
    size_t used = (size_t)n;
    int m = snprintf(outer.text + used, sizeof outer.text - used, ": %s", err->text);
    if (m >= 0 && (size_t)m >= sizeof outer.text - used) {
        text_trim(outer.text);
    }
    memcpy(err->text, outer.text, sizeof err->text);
    return s;
}
