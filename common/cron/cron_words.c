#include "cron_words.h"

#include <string.h>

#include "cron.h"

int cron_words_split(char *text, const char *words[CRON_WORDS_MAX])
{
    int count = 0;
    for (char *p = text; count < CRON_WORDS_MAX;) {
        while (*p == ' ' || *p == '\t') {
            p++;
        }
        if (*p == '\0') {
            break;
        }
        words[count++] = p;
        while (*p != '\0' && *p != ' ' && *p != '\t') {
            p++;
        }
        if (*p != '\0') {
            *p++ = '\0';
        }
    }
    return count;
}

enum status cron_text_check(const char *text, struct error *err)
{
    size_t length = strnlen(text, CRON_TEXT_MAX);
    if (length >= CRON_TEXT_MAX) {
        return error_set(err, STATUS_INVALID, "the expression is longer than %d bytes; shorten it",
                         CRON_TEXT_MAX - 1);
    }
    for (size_t i = 0; i < length; i++) {
        unsigned char ch = (unsigned char)text[i];
        if (ch != '\t' && (ch < ' ' || ch > '~')) {
            return error_set(err, STATUS_INVALID,
                             "byte %zu of the expression (0x%02x) is no letter, digit or sign of "
                             "the grammar; remove it",
                             i + 1, ch);
        }
    }
    return STATUS_OK;
}
