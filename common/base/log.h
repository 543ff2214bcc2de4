/* logfmt to stderr, one line a fact, with systemd's <N> priority prefix when stderr is a journal.
 *
 * Usage: log_event(LOG_LEVEL_INFO, "leader established", "scope=%s generation=%" PRId64, s, g);
 * The event text is fixed; everything that varies is a field. Values with blanks or quotes must
 * go through log_quote(). Never log a secret, a connection string or a result row.
 * Names avoid LOG_INFO, LOG_ERROR ...: syslog.h and zookeeper_log.h both define those. */
#ifndef RS_LOG_H
#define RS_LOG_H

#include <stdint.h>

#include "status.h"

enum log_level {
    LOG_LEVEL_ERROR, /* needs a human */
    LOG_LEVEL_WARN,  /* handled; says what we do instead */
    LOG_LEVEL_INFO,  /* a state changed */
    LOG_LEVEL_DEBUG, /* a decision */
};

/* Set once at start: program name for each line, and the most detailed level that is written.
 * Thread: main thread before any other starts. */
void log_open(const char *program, enum log_level most);
/* Change the most detailed level of a running process. Thread: any. */
void log_level_set(enum log_level most);
bool log_level_parse(const char *word, enum log_level *ret_level);

/* Write one line. fields may be NULL. Lines over 2 KiB are cut. Thread: any. Blocks: after log_open
 * for a moment when nobody reads stderr; then the line is dropped, and a later one says how many
 * were. (A disk that hangs under a log file is not guarded against: log to the journal.) */
void log_event(enum log_level level, const char *event, const char *fields, ...) PRINTF_LIKE(3, 4);

/* Lines dropped so far. Thread: any. */
uint64_t log_dropped(void);

/* One quoted logfmt value: "..." with escapes, cut at the bound. The returned struct is a value,
 * use as log_quote(x).text within the full expression. NULL is written as "". */
struct log_quoted {
    char text[640];
};
struct log_quoted log_quote(const char *value);

#endif
