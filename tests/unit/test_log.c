/* The log, when its reader is slow, gone or stuck. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"
#include "log.h"

static int kept; /* the test's own stderr */

static void stderr_becomes(int fd)
{
    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    (void)close(fd);
    log_open("test", LOG_LEVEL_INFO);
}

static int stderr_back(void **state)
{
    (void)state;
    (void)dup2(kept, STDERR_FILENO);
    log_open("test", LOG_LEVEL_INFO);
    return 0;
}

/* All that can be read now. */
static size_t drain(int fd, char *to, size_t size)
{
    size_t used = 0;
    struct pollfd p = {.fd = fd, .events = POLLIN};
    while (used + 1 < size && poll(&p, 1, 0) > 0) {
        ssize_t n = read(fd, to + used, size - 1 - used);
        if (n <= 0) {
            break;
        }
        used += (size_t)n;
    }
    to[used] = '\0';
    return used;
}

/* More lines than any buffer holds: dropped in bounded time, and told when somebody reads again. */
static void floods(int reader)
{
    static char text[4 << 20];
    char line[1500];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    uint64_t before = log_dropped();
    instant begin = clock_now();
    for (int i = 0; i < 2000; i++) {
        log_event(LOG_LEVEL_INFO, "flood", "text=%s", line);
    }
    assert_true(instant_ms_between(begin, clock_now()) < 5000);
    uint64_t lost = log_dropped() - before;
    assert_true(lost > 0 && lost < 2000);
    size_t n = drain(reader, text, sizeof text);
    assert_true(n > 0 && text[n - 1] == '\n'); /* no line was cut */
    log_event(LOG_LEVEL_INFO, "read again", NULL);
    (void)drain(reader, text, sizeof text);
    char want[80];
    (void)snprintf(want, sizeof want, "lines=%llu", (unsigned long long)lost);
    assert_non_null(strstr(text, "event=\"read again\""));
    assert_non_null(strstr(text, "lines were dropped"));
    assert_non_null(strstr(text, want));
    log_event(LOG_LEVEL_INFO, "and on", NULL);
    (void)drain(reader, text, sizeof text);
    assert_null(strstr(text, "lines were dropped"));
}

static void test_pipe_that_nobody_reads_stops_no_thread(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    stderr_becomes(ends[1]);
    /* Others who have the same description are not touched. */
    assert_int_equal(fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK, 0);
    floods(ends[0]);
    (void)close(ends[0]);
}

static void test_pipe_that_cannot_be_opened_anew_stops_no_thread(void **state)
{
    (void)state;
    int ends[2];
    struct rlimit limit;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit none = {.rlim_cur = STDERR_FILENO + 1, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    stderr_becomes(ends[1]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    floods(ends[0]);
    (void)close(ends[0]);
}

static void test_journal_that_does_not_read_stops_no_thread(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    stderr_becomes(ends[1]);
    floods(ends[0]);
    (void)close(ends[0]);
}

static void test_reader_that_is_gone_is_nobodys_trouble(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    stderr_becomes(ends[1]);
    (void)close(ends[0]);
    uint64_t before = log_dropped();
    log_event(LOG_LEVEL_INFO, "for nobody", NULL);
    assert_int_equal(log_dropped(), before);
}

static void test_file_gets_every_line_at_its_place(void **state)
{
    (void)state;
    char path[] = "/tmp/test-log-XXXXXX";
    char text[1024];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    stderr_becomes(dup(fd));
    log_event(LOG_LEVEL_INFO, "one", NULL);
    assert_true(write(STDERR_FILENO, "from elsewhere\n", 15) == 15);
    log_event(LOG_LEVEL_INFO, "two", NULL);
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
    assert_non_null(strstr(text, "event=\"one\"\nfrom elsewhere\n"));
    assert_non_null(strstr(text, "event=\"two\"\n"));
    (void)close(fd);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_pipe_that_nobody_reads_stops_no_thread, stderr_back),
        cmocka_unit_test_teardown(test_pipe_that_cannot_be_opened_anew_stops_no_thread,
                                  stderr_back),
        cmocka_unit_test_teardown(test_journal_that_does_not_read_stops_no_thread, stderr_back),
        cmocka_unit_test_teardown(test_reader_that_is_gone_is_nobodys_trouble, stderr_back),
        cmocka_unit_test_teardown(test_file_gets_every_line_at_its_place, stderr_back),
    };
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL);
    kept = dup(STDERR_FILENO);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
