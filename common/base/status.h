/* What a call came to, as the caller's next decision, and the words for people.
 *
 * An error code here is not a library's history: a port translates SQLSTATEs, ZooKeeper and
 * Kafka codes into the few decisions below and keeps the foreign text in struct error. */
#ifndef RS_STATUS_H
#define RS_STATUS_H

#include <stdarg.h>
#include <stdbool.h>

#define MUST_USE          __attribute__((warn_unused_result))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))

enum status {
    STATUS_OK = 0,
    STATUS_AGAIN,     /* transient: nothing is known to have happened; try again later */
    STATUS_TIMEOUT,   /* the deadline passed; the effect is unknown */
    STATUS_FENCED,    /* a newer generation holds the scope: step down */
    STATUS_HELD,      /* a hold row forbids the work until it is lifted */
    STATUS_CONFLICT,  /* somebody else changed it first: read again */
    STATUS_NOT_FOUND, /* the named thing does not exist */
    STATUS_INVALID,   /* the input is wrong; the text says what and the remedy */
    STATUS_CORRUPT,   /* stored data contradicts itself: a human must look */
    STATUS_FULL,      /* a bound was reached; nothing was taken */
    STATUS_FATAL,     /* this object cannot go on: close it and make a new one */
};

#define ERROR_TEXT_MAX 512

/* Room for one sentence (or two) that names the row, key or file:line and the remedy. */
struct error {
    char text[ERROR_TEXT_MAX]; /* "" until set; always NUL-terminated, cut at the bound */
    char code[8];              /* SQLSTATE or "" */
};

/* "ok", "again", ... for logs. Never NULL. */
const char *status_name(enum status s);

/* Fill *err (which may be NULL) and return s, so that a failing function ends in one line.
 * Text longer than ERROR_TEXT_MAX is cut on a UTF-8 boundary. Thread: any. */
enum status error_set(struct error *err, enum status s, const char *format, ...) PRINTF_LIKE(3, 4);

/* Drop the beginning of a UTF-8 character that a bound has cut off at the end of text: the database
 * and whoever reads a log refuse half a character. Whole text stays as it is. */
void text_trim(char *text);

/* Put "prefix: " in front of the text that is there. err may be NULL. Returns s. */
enum status error_prefix(struct error *err, enum status s, const char *format, ...)
    PRINTF_LIKE(3, 4);

#endif
