/* Programs under the real report-keeper: whatever happens to the worker, nothing of theirs is left.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "program.h"

#define LIMIT_MS 30000

static char scratch[64];

static int group_setup(void **state)
{
    (void)state;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)sigaction(SIGPIPE, &ignore, NULL);
    (void)snprintf(scratch, sizeof scratch, "/tmp/rs-keeper-XXXXXX");
    return mkdtemp(scratch) == NULL ? -1 : 0;
}

static int group_teardown(void **state)
{
    (void)state;
    return rmdir(scratch);
}

static instant after_ms(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

struct result {
    char output[8192];
    size_t size;
    struct program_end end;
};

static struct program *start_words(const char *const *words, const char *input, int64_t life_ms)
{
    const char *const environment[] = {"PATH=/usr/bin:/bin", "ONLY=this", NULL};
    struct program_options options = {.keeper = TEST_BINARY_DIR "/report-keeper",
                                      .arguments = words,
                                      .environment = environment,
                                      .directory = scratch,
                                      .grace_ms = 200};
    struct program *p = NULL;
    struct error err;
    assert_int_equal(program_start(&options, input, after_ms(life_ms), &p, &err), STATUS_OK);
    return p;
}

/* A shell script, in the scratch directory. */
static struct program *start(const char *script, int64_t life_ms)
{
    const char *const words[] = {"/bin/sh", "-c", script, NULL};
    return start_words(words, "the context\n", life_ms);
}

/* Follow it to its end. */
static void finish(struct program *p, struct result *r)
{
    instant limit = after_ms(LIMIT_MS);
    char block[4096];
    memset(r, 0, sizeof *r);
    for (;;) {
        size_t n = 0;
        enum program_event e = program_step(p, 50, -1, block, sizeof block, &n);
        if (e == PROGRAM_ENDED) {
            break;
        }
        if (e == PROGRAM_OUTPUT && r->size + n < sizeof r->output) {
            memcpy(r->output + r->size, block, n);
            r->size += n;
        }
        assert_true(instant_before(clock_now(), limit));
    }
    program_finish(p, &r->end);
}

/* Read the process ids that a script wrote into `name`, one a line; waits until there are `want`.
 */
static void pids_read(const char *name, long *pids, int want)
{
    char path[128];
    instant limit = after_ms(LIMIT_MS);
    (void)snprintf(path, sizeof path, "%s/%s", scratch, name);
    for (;;) {
        FILE *f = fopen(path, "re");
        int got = 0;
        char line[64];
        while (f != NULL && got < want && fgets(line, sizeof line, f) != NULL &&
               strchr(line, '\n') != NULL) {
            pids[got++] = strtol(line, NULL, 10);
        }
        if (f != NULL) {
            (void)fclose(f);
        }
        if (got == want) {
            (void)unlink(path);
            return;
        }
        assert_true(instant_before(clock_now(), limit));
        (void)poll(NULL, 0, 5);
    }
}

static void file_make(const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", scratch, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
}

static void file_remove(const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", scratch, name);
    assert_int_equal(unlink(path), 0);
}

static bool is_gone(long pid)
{
    return kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* All gone within the limit; says which is not. */
static void expect_gone(const long *pids, int count, int64_t limit_ms)
{
    instant limit = after_ms(limit_ms);
    for (int i = 0; i < count; i++) {
        while (!is_gone(pids[i])) {
            if (!instant_before(clock_now(), limit)) {
                print_error("process %ld still there\n", pids[i]);
                fail();
            }
            (void)poll(NULL, 0, 5);
        }
    }
}

static void test_output_context_and_status_come_through(void **state)
{
    (void)state;
    struct result r;
    finish(start("cat; echo $ONLY; exit 3", LIMIT_MS), &r);
    assert_string_equal(r.output, "the context\nthis\n");
    assert_int_equal(r.end.kind, PROGRAM_EXITED);
    assert_int_equal(r.end.code, 3);
}

static void test_program_that_reads_nothing_does_not_hold_us_up(void **state)
{
    (void)state;
    char *input = malloc(1000001);
    const char *const words[] = {"/bin/true", NULL};
    struct result r;
    memset(input, 'x', 1000000);
    input[1000000] = '\0';
    finish(start_words(words, input, LIMIT_MS), &r);
    assert_int_equal(r.end.kind, PROGRAM_EXITED);
    assert_int_equal(r.end.code, 0);
    free(input);
}

static void test_end_of_stderr_is_kept(void **state)
{
    (void)state;
    struct result r;
    finish(start("i=0; while [ $i -lt 2000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1",
                 LIMIT_MS),
           &r);
    assert_true(strlen(r.end.tail) <= PROGRAM_TAIL_MAX);
    assert_non_null(strstr(r.end.tail, "line 1998\nline 1999"));
    assert_null(strstr(r.end.tail, "line 1\n"));
}

static void test_program_that_cannot_start_says_why(void **state)
{
    (void)state;
    const char *const words[] = {"/no/such/program", NULL};
    struct result r;
    finish(start_words(words, "", LIMIT_MS), &r);
    assert_int_equal(r.end.kind, PROGRAM_NOT_STARTED);
    assert_int_equal(r.end.code, ENOENT);
}

static void test_missing_keeper_is_an_error(void **state)
{
    (void)state;
    const char *const words[] = {"/bin/true", NULL};
    const char *const environment[] = {NULL};
    struct program_options options = {.keeper = "/no/such/keeper",
                                      .arguments = words,
                                      .environment = environment,
                                      .directory = "/"};
    struct program *p = NULL;
    struct error err;
    assert_int_equal(program_start(&options, "", after_ms(1000), &p, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "/no/such/keeper"));
}

static void test_no_descriptor_is_inherited(void **state)
{
    (void)state;
    int leaked[20];
    struct result r;
    for (int i = 0; i < 20; i++) {
        leaked[i] = open("/dev/null", O_RDONLY); /* without O_CLOEXEC, as ZooKeeper's are */
    }
    const char *const words[] = {"/bin/ls", "/proc/self/fd", NULL};
    finish(start_words(words, "", LIMIT_MS), &r);
    assert_string_equal(r.output, "0\n1\n2\n3\n"); /* 3: ls itself reads the directory */
    for (int i = 0; i < 20; i++) {
        (void)close(leaked[i]);
    }
}

static void test_signals_and_limits_are_as_a_program_expects_them(void **state)
{
    (void)state;
    /* posix_spawn itself ignores signals 32 and 33, which are the C library's own. */
    static const char script[] = "grep SigBlk /proc/self/status;"
                                 "sed -n 's/^SigIgn:.*[08]\\(.......\\)$/\\1/p' /proc/self/status;"
                                 "grep NoNewPrivs /proc/self/status;"
                                 "ulimit -v; ulimit -t; ulimit -c";
    const char *const words[] = {"/bin/sh", "-c", script, NULL};
    const char *const environment[] = {NULL};
    struct program_options options = {.keeper = TEST_BINARY_DIR "/report-keeper",
                                      .arguments = words,
                                      .environment = environment,
                                      .directory = "/",
                                      .memory_bytes = 1 << 30,
                                      .cpu_s = 77};
    struct program *p = NULL;
    struct result r;
    assert_int_equal(program_start(&options, "", after_ms(LIMIT_MS), &p, NULL), STATUS_OK);
    finish(p, &r);
    assert_string_equal(r.output, "SigBlk:\t0000000000000000\n0000000\nNoNewPrivs:\t1\n"
                                  "1048576\n77\n0\n");
}

static void test_polite_end_lets_the_program_finish(void **state)
{
    (void)state;
    struct result r;
    long pid = 0;
    struct program *p = start(
        "trap 'echo bye; exit 0' TERM; echo $$ > pid; while :; do sleep 0.02; done", LIMIT_MS);
    pids_read("pid", &pid, 1);
    program_terminate(p);
    finish(p, &r);
    assert_string_equal(r.output, "bye\n");
    assert_int_equal(r.end.kind, PROGRAM_EXITED);
}

static void test_program_that_ignores_sigterm_is_killed_after_the_grace(void **state)
{
    (void)state;
    struct result r;
    long pid = 0;
    struct program *p = start("trap '' TERM; echo $$ > pid; while :; do sleep 1; done", LIMIT_MS);
    pids_read("pid", &pid, 1);
    instant asked = clock_now();
    program_terminate(p);
    finish(p, &r);
    assert_int_equal(r.end.kind, PROGRAM_SIGNALLED);
    assert_int_equal(r.end.code, SIGKILL);
    assert_in_range(instant_ms_between(asked, clock_now()), 190, LIMIT_MS / 2);
    expect_gone(&pid, 1, 0);
}

/* A grandchild in a session of its own, a daemon whose parent has ended, and one that ignores
 * SIGTERM and SIGHUP. */
static const char family[] = "setsid sh -c 'echo $$ >> pids; exec sleep 600' &\n"
                             "(setsid sh -c 'echo $$ >> pids; exec sleep 600' &)\n"
                             "sh -c 'trap \"\" TERM HUP; echo $$ >> pids; sleep 600; sleep 600' &\n"
                             "echo $$ >> pids\n";

static void test_kill_reaches_descendants_in_other_sessions(void **state)
{
    (void)state;
    char script[512];
    long pids[4];
    struct result r;
    (void)snprintf(script, sizeof script, "%s sleep 600", family);
    struct program *p = start(script, LIMIT_MS);
    pids_read("pids", pids, 4);
    program_kill(p);
    finish(p, &r);
    assert_int_equal(r.end.kind, PROGRAM_SIGNALLED);
    expect_gone(pids, 4, 0); /* the keeper reports after they are gone */
}

static void test_what_a_program_leaves_behind_ends_with_it(void **state)
{
    (void)state;
    char script[512];
    long pids[4];
    struct result r;
    /* They keep stdout open, too: the end of the output must not wait for them. */
    (void)snprintf(script, sizeof script, "%s while [ $(wc -l < pids) -lt 4 ]; do :; done; exit 0",
                   family);
    finish(start(script, LIMIT_MS), &r);
    assert_int_equal(r.end.kind, PROGRAM_EXITED);
    assert_int_equal(r.end.code, 0);
    pids_read("pids", pids, 4);
    expect_gone(pids, 4, 0);
}

static void test_deadline_ends_a_program_that_nobody_extends(void **state)
{
    (void)state;
    struct result r;
    instant begun = clock_now();
    finish(start("sleep 600", 300), &r);
    assert_int_equal(r.end.kind, PROGRAM_SIGNALLED);
    assert_true(r.end.deadline);
    assert_in_range(instant_ms_between(begun, clock_now()), 290, LIMIT_MS / 2);
}

static void test_extension_moves_the_deadline(void **state)
{
    (void)state;
    struct result r;
    /* Time enough for the extension to reach it, and more than that to run. */
    struct program *p = start("sleep 3.3; echo done", 3000);
    program_extend(p, after_ms(LIMIT_MS));
    finish(p, &r);
    assert_string_equal(r.output, "done\n");
    assert_int_equal(r.end.kind, PROGRAM_EXITED);
}

/* A small worker: starts the family with a life of life_ms and then does nothing at all. */
static pid_t worker_fork(int64_t life_ms)
{
    pid_t pid = fork();
    if (pid == 0) {
        char script[512];
        (void)snprintf(script, sizeof script, "%s sleep 600", family);
        (void)start(script, life_ms);
        for (;;) {
            (void)pause();
        }
    }
    assert_true(pid > 0);
    return pid;
}

static void test_killed_worker_leaves_nothing_running(void **state)
{
    (void)state;
    long pids[4];
    pid_t w = worker_fork(600000);
    pids_read("pids", pids, 4);
    assert_int_equal(kill(w, SIGKILL), 0);
    assert_int_equal(waitpid(w, NULL, 0), w);
    expect_gone(pids, 4, LIMIT_MS);
}

static void test_stopped_worker_loses_its_program_at_the_deadline(void **state)
{
    (void)state;
    long pids[4];
    pid_t w = worker_fork(5000); /* the family is there long before that */
    instant begun = clock_now();
    pids_read("pids", pids, 4);
    assert_int_equal(kill(w, SIGSTOP), 0);
    expect_gone(pids, 4, LIMIT_MS);
    assert_true(instant_ms_between(begun, clock_now()) >= 4500);
    assert_int_equal(kill(w, SIGKILL), 0);
    assert_int_equal(waitpid(w, NULL, 0), w);
}

static void test_program_dies_with_a_killed_keeper(void **state)
{
    (void)state;
    long pids[2];
    struct result r;
    struct program *p =
        start("echo $$ >> pids; echo $PPID >> pids; while :; do sleep 0.05; done", LIMIT_MS);
    pids_read("pids", pids, 2);
    assert_int_equal(kill((pid_t)pids[1], SIGKILL), 0);
    finish(p, &r);
    assert_int_equal(r.end.kind, PROGRAM_KEEPER_GONE);
    expect_gone(pids, 1, LIMIT_MS);
}

/* What it started is handed to us: it keeps the output open, and nobody else would end it. */
static void test_descendants_die_with_a_killed_keeper(void **state)
{
    (void)state;
    char script[512];
    long pids[4];
    long keeper = 0;
    struct result r;
    (void)snprintf(script, sizeof script, "echo said; %s echo $PPID > keeper; sleep 600", family);
    struct program *p = start(script, LIMIT_MS);
    struct program *neighbour =
        start("while [ ! -e go ]; do sleep 0.02; done; echo well", LIMIT_MS);
    pids_read("pids", pids, 4);
    pids_read("keeper", &keeper, 1);
    assert_int_equal(kill((pid_t)keeper, SIGKILL), 0);
    finish(p, &r);
    assert_int_equal(r.end.kind, PROGRAM_KEEPER_GONE);
    assert_string_equal(r.output, "said\n");
    expect_gone(pids, 4, 0);
    file_make("go");
    finish(neighbour, &r);
    file_remove("go");
    assert_int_equal(r.end.kind, PROGRAM_EXITED);
    assert_string_equal(r.output, "well\n");
}

/* A descriptor can be sent to a process that is no descendant: a daemon that was asked to write. */
static void test_output_held_open_by_a_stranger_does_not_delay_the_end(void **state)
{
    (void)state;
    struct result r;
    long pid = 0;
    struct program *p =
        start("echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done; echo last", LIMIT_MS);
    char path[64];
    pids_read("pid", &pid, 1);
    (void)snprintf(path, sizeof path, "/proc/%ld/fd/1", pid);
    int held = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(held >= 0);
    file_make("go");
    finish(p, &r);
    file_remove("go");
    (void)close(held);
    assert_string_equal(r.output, "last\n");
    assert_int_equal(r.end.kind, PROGRAM_EXITED);
}

/* A stopped keeper could not hear that the program is to end. */
static void test_stopped_keeper_is_woken_to_kill(void **state)
{
    (void)state;
    struct result r;
    long pids[2];
    struct program *p = start("echo $$ >> pids; echo $PPID >> pids; sleep 600", 600000);
    pids_read("pids", pids, 2);
    assert_int_equal(kill((pid_t)pids[1], SIGSTOP), 0);
    program_kill(p);
    finish(p, &r);
    assert_int_equal(r.end.kind, PROGRAM_SIGNALLED);
    expect_gone(pids, 1, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output_context_and_status_come_through),
        cmocka_unit_test(test_program_that_reads_nothing_does_not_hold_us_up),
        cmocka_unit_test(test_end_of_stderr_is_kept),
        cmocka_unit_test(test_program_that_cannot_start_says_why),
        cmocka_unit_test(test_missing_keeper_is_an_error),
        cmocka_unit_test(test_no_descriptor_is_inherited),
        cmocka_unit_test(test_signals_and_limits_are_as_a_program_expects_them),
        cmocka_unit_test(test_polite_end_lets_the_program_finish),
        cmocka_unit_test(test_program_that_ignores_sigterm_is_killed_after_the_grace),
        cmocka_unit_test(test_kill_reaches_descendants_in_other_sessions),
        cmocka_unit_test(test_what_a_program_leaves_behind_ends_with_it),
        cmocka_unit_test(test_deadline_ends_a_program_that_nobody_extends),
        cmocka_unit_test(test_extension_moves_the_deadline),
        cmocka_unit_test(test_killed_worker_leaves_nothing_running),
        cmocka_unit_test(test_stopped_worker_loses_its_program_at_the_deadline),
        cmocka_unit_test(test_program_dies_with_a_killed_keeper),
        cmocka_unit_test(test_descendants_die_with_a_killed_keeper),
        cmocka_unit_test(test_output_held_open_by_a_stranger_does_not_delay_the_end),
        cmocka_unit_test(test_stopped_keeper_is_woken_to_kill),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
