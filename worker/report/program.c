#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "keeper.h"
#include "orphans.h"
#include "text.h"

#define PIPES         KEEPER_LIFE_FD
#define FIXED_WORDS   7 /* of the keeper's command line, before the program's own */
#define ARGUMENTS_MAX 80
#define FD_FLOOR      10   /* our ends lie above the numbers the child gets by dup2 */
#define LOOK_MS       20   /* for the end of a keeper that was killed and of what it kept */
#define ORPHANS_MS    5000 /* what cannot be killed within this is left alone */

enum {
    STDIN_PIPE,
    STDOUT_PIPE,
    STDERR_PIPE,
    CONTROL_PIPE,
    REPORT_PIPE
};

struct program {
    struct keeper_entry keeper;
    bool reaped;        /* the keeper */
    bool silent;        /* it and all that it kept are gone: nobody of ours writes any more */
    instant give_up_at; /* for orphans of a killed keeper */
    int fds[PIPES];     /* our ends; -1 when closed */
    const char *input;
    size_t input_left;
    struct keeper_message report;
    size_t report_size;
    char tail[PROGRAM_TAIL_MAX]; /* a ring */
    size_t tail_total;           /* bytes of stderr seen */
};

static void fd_close(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

static bool is_input_of_child(int pipe_number)
{
    return pipe_number == STDIN_PIPE || pipe_number == CONTROL_PIPE;
}

/* Our end in ours[n], the child's in theirs[n], all close-on-exec and at or above FD_FLOOR. */
static bool pipes_make(int ours[PIPES], int theirs[PIPES])
{
    bool good = true;
    for (int i = 0; i < PIPES; i++) {
        ours[i] = -1;
        theirs[i] = -1;
    }
    for (int i = 0; i < PIPES && good; i++) {
        int both[2];
        if (pipe2(both, O_CLOEXEC) != 0) {
            return false;
        }
        int mine = is_input_of_child(i) ? both[1] : both[0];
        int its = is_input_of_child(i) ? both[0] : both[1];
        ours[i] = fcntl(mine, F_DUPFD_CLOEXEC, FD_FLOOR);
        theirs[i] = fcntl(its, F_DUPFD_CLOEXEC, FD_FLOOR);
        (void)close(both[0]);
        (void)close(both[1]);
        good = ours[i] >= 0 && theirs[i] >= 0 && fcntl(ours[i], F_SETFL, O_NONBLOCK) == 0;
    }
    return good;
}

/* No signal is blocked or ignored in the keeper, and nothing but 0 to 4 and the lock is open:
 * ZooKeeper's and librdkafka's descriptors are not close-on-exec. `theirs[PIPES]`: the lock, or -1.
 */
static int keeper_spawn(const char *path, char *const *arguments, char *const *environment,
                        const int theirs[PIPES + 1], pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigset_t all;
    (void)sigemptyset(&none);
    (void)sigfillset(&all);
    int failure = posix_spawn_file_actions_init(&actions);
    if (failure != 0) {
        return failure;
    }
    failure = posix_spawnattr_init(&attributes);
    int count = theirs[KEEPER_LIFE_FD] >= 0 ? PIPES + 1 : PIPES;
    for (int i = 0; i < count && failure == 0; i++) {
        failure = posix_spawn_file_actions_adddup2(&actions, theirs[i], i);
    }
    if (failure == 0) {
        failure = posix_spawn_file_actions_addclosefrom_np(&actions, count);
    }
    if (failure == 0) {
        (void)posix_spawnattr_setsigmask(&attributes, &none);
        (void)posix_spawnattr_setsigdefault(&attributes, &all);
        (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                        POSIX_SPAWN_SETSID);
        failure = posix_spawn(ret_pid, path, &actions, &attributes, arguments, environment);
    }
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return failure;
}

/* posix_spawn takes char *const * for history's sake and writes to nothing. */
static char *word(const char *text)
{
    union {
        const char *in;
        char *out;
    } u = {.in = text};
    return u.out;
}

struct numbers {
    char deadline[24], grace[24], memory[24], cpu[24];
};

static bool command_build(const struct program_options *o, const struct numbers *n,
                          char *words[ARGUMENTS_MAX])
{
    const char *fixed[FIXED_WORDS] = {o->keeper, n->deadline,  n->grace, n->memory,
                                      n->cpu,    o->directory, "--"};
    size_t count = 0;
    for (; count < FIXED_WORDS; count++) {
        words[count] = word(fixed[count]);
    }
    for (size_t i = 0; o->arguments[i] != NULL; i++) {
        if (count + 1 >= ARGUMENTS_MAX) {
            return false;
        }
        words[count++] = word(o->arguments[i]);
    }
    words[count] = NULL;
    return count > FIXED_WORDS;
}

static void numbers_format(const struct program_options *o, instant deadline, struct numbers *n)
{
    (void)snprintf(n->deadline, sizeof n->deadline, "%" PRId64, deadline.ns);
    (void)snprintf(n->grace, sizeof n->grace, "%" PRId64, o->grace_ms);
    (void)snprintf(n->memory, sizeof n->memory, "%" PRId64, o->memory_bytes);
    (void)snprintf(n->cpu, sizeof n->cpu, "%" PRId64, o->cpu_s);
}

enum status program_start(const struct program_options *options, const char *input,
                          instant deadline, struct program **ret_program, struct error *err)
{
    struct numbers numbers;
    char *words[ARGUMENTS_MAX];
    int theirs[PIPES + 1];
    numbers_format(options, deadline, &numbers);
    if (!command_build(options, &numbers, words)) {
        return error_set(err, STATUS_INVALID, "the program has no or too many arguments");
    }
    struct program *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    p->input = input;
    p->input_left = strlen(input);
    int failure = pipes_make(p->fds, theirs) ? 0 : errno;
    theirs[KEEPER_LIFE_FD] = options->life == NULL ? -1 : life_file_fd(options->life);
    if (failure == 0) {
        union {
            const char *const *in;
            char *const *out;
        } environment = {.in = options->environment};
        keeper_begins();
        failure = keeper_spawn(options->keeper, words, environment.out, theirs, &p->keeper.pid);
        keeper_began(failure == 0 ? &p->keeper : NULL);
    }
    for (int i = 0; i < PIPES; i++) {
        fd_close(&theirs[i]);
    }
    if (failure != 0) {
        for (int i = 0; i < PIPES; i++) {
            fd_close(&p->fds[i]);
        }
        free(p);
        return error_set(err, failure == ENOENT ? STATUS_NOT_FOUND : STATUS_AGAIN,
                         "cannot start the keeper %s: %s", options->keeper, strerror(failure));
    }
    *ret_program = p;
    return STATUS_OK;
}

/* ---- steps ---- */

static void input_send(struct program *p)
{
    while (p->input_left > 0) {
        ssize_t n = write(p->fds[STDIN_PIPE], p->input, p->input_left);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return;
        }
        if (n < 0) {
            break; /* EPIPE: it does not want to know */
        }
        p->input += n;
        p->input_left -= (size_t)n;
    }
    fd_close(&p->fds[STDIN_PIPE]);
}

/* When all are gone, an empty pipe is at its end, also when a stranger whom they sent their
 * descriptor holds it open. */
static bool is_for_later(const struct program *p, ssize_t n)
{
    return n < 0 && (errno == EINTR || (errno == EAGAIN && !p->silent));
}

static void tail_read(struct program *p)
{
    char block[4096];
    ssize_t n = read(p->fds[STDERR_PIPE], block, sizeof block);
    if (is_for_later(p, n)) {
        return;
    }
    if (n <= 0) {
        fd_close(&p->fds[STDERR_PIPE]);
        return;
    }
    for (ssize_t i = 0; i < n; i++) {
        p->tail[p->tail_total % PROGRAM_TAIL_MAX] = block[i];
        p->tail_total++;
    }
}

static void report_read(struct program *p)
{
    char *to = (char *)&p->report + p->report_size;
    ssize_t n = read(p->fds[REPORT_PIPE], to, sizeof p->report - p->report_size);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return;
    }
    if (n <= 0) {
        fd_close(&p->fds[REPORT_PIPE]);
        return;
    }
    p->report_size += (size_t)n;
    if (p->report_size == sizeof p->report) {
        fd_close(&p->fds[REPORT_PIPE]);
        p->silent = true;
    }
}

/* The report ended without a word: the keeper was killed. What it kept is ours when it is reaped.
 */
static void orphans_end(struct program *p)
{
    if (!p->reaped) {
        p->reaped = keeper_gone(&p->keeper);
        p->give_up_at = instant_add_ms(clock_now(), ORPHANS_MS);
        return;
    }
    p->silent = !orphans_kill() || !instant_before(clock_now(), p->give_up_at);
}

static size_t output_read(struct program *p, char *buffer, size_t size)
{
    ssize_t n = read(p->fds[STDOUT_PIPE], buffer, size);
    if (is_for_later(p, n)) {
        return 0;
    }
    if (n <= 0) {
        fd_close(&p->fds[STDOUT_PIPE]);
        return 0;
    }
    return (size_t)n;
}

static bool has_ended(const struct program *p)
{
    return p->fds[STDOUT_PIPE] < 0 && p->fds[STDERR_PIPE] < 0 && p->silent;
}

/* How long a step may wait: not at all for a pipe whose writers are gone. */
static int step_ms(const struct program *p, int timeout_ms)
{
    if (p->silent) {
        return 0;
    }
    return p->fds[REPORT_PIPE] >= 0 || timeout_ms < LOOK_MS ? timeout_ms : LOOK_MS;
}

enum program_event program_step(struct program *p, int timeout_ms, int wake_fd, char *buffer,
                                size_t size, size_t *ret_size)
{
    if (has_ended(p)) {
        return PROGRAM_ENDED;
    }
    struct pollfd fds[5] = {{.fd = p->fds[STDOUT_PIPE], .events = POLLIN},
                            {.fd = p->fds[STDERR_PIPE], .events = POLLIN},
                            {.fd = p->fds[REPORT_PIPE], .events = POLLIN},
                            {.fd = p->fds[STDIN_PIPE], .events = POLLOUT},
                            {.fd = wake_fd, .events = POLLIN}};
    bool silent = p->silent; /* before it is looked at what is in the pipes */
    int ready = poll(fds, 5, step_ms(p, timeout_ms));
    if (ready <= 0 && p->fds[REPORT_PIPE] >= 0) {
        return PROGRAM_QUIET;
    }
    if (ready > 0 && fds[3].revents != 0) {
        input_send(p);
    }
    if (fds[1].fd >= 0 && (silent || (ready > 0 && fds[1].revents != 0))) {
        tail_read(p);
    }
    size_t n = 0;
    if (fds[0].fd >= 0 && (silent || (ready > 0 && fds[0].revents != 0))) {
        n = output_read(p, buffer, size);
    }
    if (ready > 0 && fds[2].revents != 0) {
        report_read(p);
    }
    if (p->fds[REPORT_PIPE] < 0 && !p->silent) {
        orphans_end(p);
    }
    if (n > 0) {
        *ret_size = n;
        return PROGRAM_OUTPUT;
    }
    return has_ended(p) ? PROGRAM_ENDED : PROGRAM_QUIET;
}

static void tell(struct program *p, enum keeper_message_kind kind, int64_t value)
{
    struct keeper_message m = {.kind = (uint32_t)kind, .value = value};
    if (p->fds[CONTROL_PIPE] < 0) {
        return;
    }
    if (kind != KEEPER_EXTEND && !p->reaped) {
        (void)kill(p->keeper.pid, SIGCONT); /* one that somebody stopped hears nothing */
    }
    ssize_t n = write(p->fds[CONTROL_PIPE], &m, sizeof m);
    if (n < 0 && errno == EAGAIN && kind == KEEPER_KILL) {
        fd_close(&p->fds[CONTROL_PIPE]); /* it does not read; end-of-file says the same */
    }
}

void program_extend(struct program *p, instant deadline)
{
    tell(p, KEEPER_EXTEND, deadline.ns);
}

void program_terminate(struct program *p)
{
    tell(p, KEEPER_TERMINATE, 0);
}

void program_kill(struct program *p)
{
    tell(p, KEEPER_KILL, 0);
}

/* ---- the end ---- */

static void tail_copy(const struct program *p, char to[PROGRAM_TAIL_MAX + 1])
{
    size_t kept = p->tail_total < PROGRAM_TAIL_MAX ? p->tail_total : PROGRAM_TAIL_MAX;
    char raw[PROGRAM_TAIL_MAX];
    for (size_t i = 0; i < kept; i++) {
        raw[i] = p->tail[(p->tail_total - kept + i) % PROGRAM_TAIL_MAX];
    }
    while (kept > 0 && (raw[kept - 1] == '\n' || raw[kept - 1] == '\r')) {
        kept--;
    }
    text_clean(raw, kept, to, PROGRAM_TAIL_MAX + 1);
}

static void keeper_reap(struct program *p)
{
    siginfo_t info = {0};
    while (!p->reaped && waitid(P_PID, (id_t)p->keeper.pid, &info, WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
    p->reaped = p->reaped || keeper_gone(&p->keeper);
}

void program_finish(struct program *p, struct program_end *ret_end)
{
    if (!has_ended(p)) {
        program_kill(p);
    }
    fd_close(&p->fds[CONTROL_PIPE]); /* all is over, or is over by end-of-file now */
    keeper_reap(p);
    if (p->fds[REPORT_PIPE] >= 0) {
        report_read(p);
    }
    p->give_up_at = instant_add_ms(clock_now(), ORPHANS_MS);
    while (!p->silent) {
        orphans_end(p);
        (void)poll(NULL, 0, p->silent ? 0 : LOOK_MS);
    }
    ret_end->kind = PROGRAM_KEEPER_GONE;
    ret_end->code = 0;
    ret_end->deadline = false;
    if (p->report_size == sizeof p->report) {
        ret_end->kind = p->report.kind == KEEPER_EXITED      ? PROGRAM_EXITED
                        : p->report.kind == KEEPER_SIGNALLED ? PROGRAM_SIGNALLED
                                                             : PROGRAM_NOT_STARTED;
        ret_end->code = (int)p->report.value;
        ret_end->deadline = p->report.cause == KEEPER_DEADLINE;
    }
    tail_copy(p, ret_end->tail);
    for (int i = 0; i < PIPES; i++) {
        fd_close(&p->fds[i]);
    }
    free(p);
}
