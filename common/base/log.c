#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"

#define LINE_MAX_BYTES 2048
#define PATIENCE_MS    100 /* for a reader that is slow; none for one that was found stuck */

/* How a line is written without waiting for a reader that has stopped reading. */
enum log_sink {
    SINK_FILE,   /* nobody reads while we write */
    SINK_OWN,    /* pipe or terminal, opened anew: O_NONBLOCK on the inherited description would
                    change it for everybody who has it */
    SINK_SOCKET, /* the journal */
    SINK_ASKED,  /* pipe or terminal that cannot be opened anew: asked for room first */
};

static struct {
    char program[32];
    _Atomic int most; /* enum log_level; SIGHUP may change it while others write */
    bool journal;     /* stderr is the journal's stream: prefix each line with its priority */
    int fd;
    enum log_sink sink;
    pthread_mutex_t mutex; /* SINK_ASKED: nobody else takes the room that was found */
    atomic_bool stuck;     /* the last line was dropped */
    atomic_ullong dropped; /* since the last line about it */
    atomic_ullong dropped_ever;
} log_state = {.program = "report",
               .most = LOG_LEVEL_INFO,
               .fd = STDERR_FILENO,
               .sink = SINK_FILE,
               .mutex = PTHREAD_MUTEX_INITIALIZER};

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

static void sink_choose(void)
{
    struct stat st = {0};
    int before = log_state.fd;
    log_state.fd = STDERR_FILENO;
    log_state.sink = SINK_FILE;
    if (fstat(STDERR_FILENO, &st) == 0 && S_ISSOCK(st.st_mode)) {
        log_state.sink = SINK_SOCKET;
    } else if (S_ISFIFO(st.st_mode) || isatty(STDERR_FILENO) != 0) {
        /* Not permitted when somebody else made the pipe. */
        int own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        log_state.sink = own >= 0 ? SINK_OWN : SINK_ASKED;
        log_state.fd = own >= 0 ? own : STDERR_FILENO;
    }
    if (before != STDERR_FILENO) {
        (void)close(before);
    }
}

void log_open(const char *program, enum log_level most)
{
    (void)snprintf(log_state.program, sizeof log_state.program, "%s", program);
    log_level_set(most);
    log_state.journal = stderr_is_journal();
    sink_choose();
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

static bool has_room(int timeout_ms)
{
    struct pollfd p = {.fd = log_state.fd, .events = POLLOUT};
    return poll(&p, 1, timeout_ms) > 0;
}

/* One write(2) a line: lines of several threads do not mix. False when there is no room; any other
 * failure has no better place to be told. */
static bool line_try(const char *line, size_t size)
{
    ssize_t n = 0;
    switch (log_state.sink) {
    case SINK_FILE:
    case SINK_OWN:
        n = write(log_state.fd, line, size);
        break;
    case SINK_SOCKET:
        n = send(log_state.fd, line, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        break;
    case SINK_ASKED:
        (void)pthread_mutex_lock(&log_state.mutex);
        bool room = has_room(0);
        n = room ? write(log_state.fd, line, size) : 0;
        (void)pthread_mutex_unlock(&log_state.mutex);
        return room;
    }
    return n >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

/* A log that nobody reads must not stop what it tells about (I10): after a little patience the line
 * is dropped and counted. */
static bool line_write(const char *line, size_t size)
{
    if (line_try(line, size) ||
        (!atomic_load(&log_state.stuck) && has_room(PATIENCE_MS) && line_try(line, size))) {
        atomic_store(&log_state.stuck, false);
        return true;
    }
    atomic_store(&log_state.stuck, true);
    (void)atomic_fetch_add(&log_state.dropped, 1);
    (void)atomic_fetch_add(&log_state.dropped_ever, 1);
    return false;
}

uint64_t log_dropped(void)
{
    return atomic_load(&log_state.dropped_ever);
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
    if (used >= room) {
        text_trim(line);
        used = strlen(line);
    }
    line[used] = '\n';
    if (line_write(line, used + 1) && atomic_load(&log_state.dropped) > 0) {
        unsigned long long dropped = atomic_exchange(&log_state.dropped, 0);
        if (dropped > 0) {
            log_event(LOG_LEVEL_WARN, "nobody read the log, lines were dropped", "lines=%llu",
                      dropped);
        }
    }
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
    q.text[n] = '\0';
    text_trim(q.text);
    n = strlen(q.text);
    q.text[n++] = '"';
    q.text[n] = '\0';
    return q;
}
