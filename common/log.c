#include "log.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"

#define LINE_MAX_BYTES 2048

static struct {
    char program[32];
    _Atomic int most; /* enum log_level; SIGHUP may change it while others write */
    bool journal;     /* stderr is the journal's stream: prefix each line with its priority */
} log_state = {.program = "report", .most = LOG_LEVEL_INFO, .journal = false};

static const char *level_word(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_ERROR:
        return "error";
    case LOG_LEVEL_WARN:
        return "warn";
    case LOG_LEVEL_INFO:
        return "info";
    case LOG_LEVEL_DEBUG:
        return "debug";
    }
    return "unknown";
}

static int level_priority(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_ERROR:
        return 3;
    case LOG_LEVEL_WARN:
        return 4;
    case LOG_LEVEL_INFO:
        return 6;
    case LOG_LEVEL_DEBUG:
        return 7;
    }
    return 6;
}

/* systemd.exec(5): JOURNAL_STREAM is "device:inode" of the stream; compare with stderr itself so
 * that a redirected child does not write prefixes into a file. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat st;
    if (stream == NULL || fstat(STDERR_FILENO, &st) != 0) {
        return false;
    }
    char expect[64];
    (void)snprintf(expect, sizeof expect, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return strcmp(stream, expect) == 0;
}

void log_open(const char *program, enum log_level most)
{
    (void)snprintf(log_state.program, sizeof log_state.program, "%s", program);
    log_level_set(most);
    log_state.journal = stderr_is_journal();
}

void log_level_set(enum log_level most)
{
    atomic_store_explicit(&log_state.most, (int)most, memory_order_relaxed);
}

bool log_level_parse(const char *word, enum log_level *ret_level)
{
    const enum log_level all[] = {LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (strcmp(word, level_word(all[i])) == 0) {
            *ret_level = all[i];
            return true;
        }
    }
    return false;
}

void log_event(enum log_level level, const char *event, const char *fields, ...)
{
    if ((int)level > atomic_load_explicit(&log_state.most, memory_order_relaxed)) {
        return;
    }
    char line[LINE_MAX_BYTES];
    size_t room = sizeof line - 1; /* for the newline */
    int n = 0;
    if (log_state.journal) {
        n = snprintf(line, room, "<%d>", level_priority(level));
    }
    size_t used = n > 0 ? (size_t)n : 0;
    if (!log_state.journal) {
        /* The journal stamps its lines itself; a file or a terminal does not. */
        char stamp[CLOCK_STAMP_MAX];
        clock_stamp(stamp);
        n = snprintf(line + used, room - used, "time=%s ", stamp);
        used += n > 0 ? (size_t)n : 0;
    }
    n = snprintf(line + used, room - used, "level=%s program=%s event=\"%s\"", level_word(level),
                 log_state.program, event);
    used += n > 0 ? (size_t)n : 0;
    if (fields != NULL && used + 1 < room) {
        line[used++] = ' ';
        va_list args;
        va_start(args, fields);
        n = vsnprintf(line + used, room - used, fields, args);
        va_end(args);
        used += n > 0 ? (size_t)n : 0;
    }
    used = used < room ? used : room - 1;
    line[used] = '\n';
    /* One write(2) a line: lines of several threads do not mix, and a failed log write has no
     * better place to be told. */
    ssize_t ignored = write(STDERR_FILENO, line, used + 1);
    (void)ignored;
}

struct log_quoted log_quote(const char *value)
{
    struct log_quoted q;
    size_t n = 0;
    q.text[n++] = '"';
    for (const char *p = value == NULL ? "" : value; *p != '\0' && n + 4 < sizeof q.text; p++) {
        unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\') {
            q.text[n++] = '\\';
            q.text[n++] = (char)c;
        } else if (c == '\n') {
            q.text[n++] = '\\';
            q.text[n++] = 'n';
        } else if (c < 0x20) {
            q.text[n++] = ' ';
        } else {
            q.text[n++] = (char)c;
        }
    }
    q.text[n++] = '"';
    q.text[n] = '\0';
    return q;
}
