/* What people should know of a rule before they rely on it: a few sentences. Pure. */
#ifndef RS_NOTES_H
#define RS_NOTES_H

#include "status.h"

#define NOTES_MAX     16
#define NOTE_TEXT_MAX 400

struct notes {
    int count;
    char text[NOTES_MAX][NOTE_TEXT_MAX]; /* each one sentence, without a full stop */
};

/* One more than NOTES_MAX is left out. */
void notes_add(struct notes *n, const char *format, ...) PRINTF_LIKE(2, 3);

#endif
