#include "notes.h"

#include <stdio.h>

void notes_add(struct notes *n, const char *format, ...)
{
    if (n->count >= NOTES_MAX) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(n->text[n->count++], NOTE_TEXT_MAX, format, arguments);
    va_end(arguments);
}
