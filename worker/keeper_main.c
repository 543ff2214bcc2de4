/* report-keeper: see keeper.h. One thread, one loop, no allocation after the start. */
#include "crash_point.h"
#include "keeper.h"
#include "process_parent.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILL_EVERY_MS   20    /* a killed parent's children come to us: look for them again */
#define CHILDREN_TEXT   65536 /* of /proc/.../children: some 9 000 process ids */
#define LONGEST_POLL_MS 1000  /* poll(2) waits in MONOTONIC time; the deadline is BOOTTIME */
#define NS_PER_MS       INT64_C(1000000)

struct keeping {
    int64_t deadline_ns;
    int64_t kill_at_ns; /* after TERMINATE; INT64_MAX before */
    int64_t grace_ms;
    int64_t memory_bytes;
    int64_t cpu_s;
    const char *directory;
    char **program;
    pid_t child;
    bool killing;
    bool child_gone;
    int status; /* wait status of the child */
    enum keeper_cause cause;
};

static int64_t boottime_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000 * NS_PER_MS + t.tv_nsec;
}

static void report(uint32_t kind, int64_t value, enum keeper_cause cause)
{
    struct keeper_message m = {.kind = kind, .cause = (uint32_t)cause, .value = value};
    /* Nobody reads it when the worker is gone. */
    ssize_t ignored = write(KEEPER_REPORT_FD, &m, sizeof m);
    (void)ignored;
}

static bool number_parse(const char *text, int64_t *ret_value)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    *ret_value = value;
    return errno == 0 && end != text && *end == '\0' && value >= 0;
}

/* ---- the program's side of the fork ---- */

static void limit(int resource, int64_t value)
{
    if (value > 0) {
        struct rlimit r = {.rlim_cur = (rlim_t)value, .rlim_max = (rlim_t)value};
        (void)setrlimit((__rlimit_resource_t)resource, &r);
    }
}

/* The kernel's memory killer should take the program, not the worker. */
static void offer_to_memory_killer(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t ignored = write(fd, "500", 3);
        (void)ignored;
        (void)close(fd);
    }
}

static _Noreturn void program_become(const struct keeping *k, pid_t keeper, int failure_fd)
{
    sigset_t none;
    (void)setsid();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != keeper) { /* it ended before the line above */
        _exit(127);
    }
    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    limit(RLIMIT_AS, k->memory_bytes);
    limit(RLIMIT_CPU, k->cpu_s);
    struct rlimit no_core = {0};
    (void)setrlimit(RLIMIT_CORE, &no_core);
    offer_to_memory_killer();
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)close(KEEPER_CONTROL_FD);
    (void)close(KEEPER_REPORT_FD);
    if (chdir(k->directory) == 0) {
        (void)execv(k->program[0], k->program);
    }
    int reason = errno;
    ssize_t ignored = write(failure_fd, &reason, sizeof reason);
    (void)ignored;
    _exit(127);
}

/* Start the program; 0, or the errno of what failed in it. */
static int program_start(struct keeping *k)
{
    int failure[2];
    if (pipe2(failure, O_CLOEXEC) != 0) {
        return errno;
    }
    pid_t keeper = getpid();
    k->child = fork();
    if (k->child < 0) {
        k->child = 0; /* kill(-child) must never mean anybody else */
        k->child_gone = true;
        return errno;
    }
    if (k->child == 0) {
        (void)close(failure[0]);
        program_become(k, keeper, failure[1]);
    }
    (void)close(failure[1]);
    int reason = 0;
    ssize_t n = 0;
    do {
        n = read(failure[0], &reason, sizeof reason);
    } while (n < 0 && errno == EINTR);
    (void)close(failure[0]);
    return n == (ssize_t)sizeof reason ? reason : 0;
}

/* ---- ending all that came from it ---- */

/* For kernels without /proc/<pid>/task/<tid>/children. */
static void children_kill_by_parent(void)
{
    DIR *all = opendir("/proc");
    for (struct dirent *e = all == NULL ? NULL : readdir(all); e != NULL; e = readdir(all)) {
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && process_parent(e->d_name) == getpid()) {
            (void)kill((pid_t)strtol(e->d_name, NULL, 10), SIGKILL);
        }
    }
    if (all != NULL) {
        (void)closedir(all);
    }
}

/* SIGKILL every child of ours: the program, and whatever was handed to us when its parent ended. */
static void children_kill(void)
{
    static char text[CHILDREN_TEXT];
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        children_kill_by_parent();
        return;
    }
    size_t used = 0;
    for (;;) {
        ssize_t n = read(fd, text + used, sizeof text - 1 - used);
        if (n <= 0) {
            break;
        }
        used += (size_t)n;
    }
    (void)close(fd);
    text[used] = '\0';
    for (char *p = text; *p != '\0';) {
        char *end = NULL;
        long pid = strtol(p, &end, 10);
        if (end == p) {
            break;
        }
        if (pid > 1 && *end == ' ') { /* a number cut at the bound is not followed by a blank */
            (void)kill((pid_t)pid, SIGKILL);
        }
        p = *end == ' ' ? end + 1 : end;
    }
}

static void killing_start(struct keeping *k, enum keeper_cause cause)
{
    if (!k->killing) {
        k->killing = true;
        k->cause = k->cause == KEEPER_BY_ITSELF && !k->child_gone ? cause : k->cause;
    }
}

static void killing_step(struct keeping *k)
{
    if (!k->child_gone) {
        (void)kill(-k->child, SIGKILL); /* before it is reaped its number cannot be another's */
    }
    children_kill();
}

/* When the program has ended, its group goes with it: while the program is not reaped yet. */
static void group_end(const struct keeping *k)
{
    siginfo_t info = {0};
    if (!k->child_gone && waitid(P_PID, (id_t)k->child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == k->child) {
        (void)kill(-k->child, SIGKILL);
    }
}

/* Reap what has ended. False when there is no child left. */
static bool children_reap(struct keeping *k)
{
    group_end(k);
    for (;;) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == k->child && pid > 0) {
            k->child_gone = true;
            k->status = status;
            /* What the program left behind has no business any more. */
            killing_start(k, KEEPER_BY_ITSELF);
        }
        if (pid == 0) {
            return true;
        }
        if (pid < 0 && errno != EINTR) {
            return false;
        }
    }
}

/* ---- the loop ---- */

static void message_obey(struct keeping *k, const struct keeper_message *m)
{
    switch ((enum keeper_message_kind)m->kind) {
    case KEEPER_EXTEND:
        CRASH_POINT("keeper.extended");
        k->deadline_ns = m->value;
        break;
    case KEEPER_TERMINATE:
        if (!k->child_gone && k->kill_at_ns == INT64_MAX) {
            k->kill_at_ns = boottime_ns() + k->grace_ms * NS_PER_MS;
            k->cause = k->killing ? k->cause : KEEPER_ASKED;
            (void)kill(-k->child, SIGTERM);
        }
        break;
    case KEEPER_KILL:
        killing_start(k, KEEPER_ASKED);
        break;
    case KEEPER_EXITED:
    case KEEPER_SIGNALLED:
    case KEEPER_NOT_STARTED:
        break; /* ours to say */
    }
}

/* False at end-of-file. */
static bool control_read(struct keeping *k)
{
    struct keeper_message m;
    for (;;) {
        ssize_t n = read(KEEPER_CONTROL_FD, &m, sizeof m);
        if (n == (ssize_t)sizeof m) {
            message_obey(k, &m);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else {
            return n < 0 && errno == EAGAIN;
        }
    }
}

static int wait_ms(const struct keeping *k)
{
    if (k->killing) {
        return KILL_EVERY_MS;
    }
    int64_t until = k->deadline_ns < k->kill_at_ns ? k->deadline_ns : k->kill_at_ns;
    int64_t ms = (until - boottime_ns()) / NS_PER_MS + 1;
    return ms < 0 ? 0 : ms > LONGEST_POLL_MS ? LONGEST_POLL_MS : (int)ms;
}

static void keep(struct keeping *k, int signal_fd)
{
    bool open_control = true;
    while (children_reap(k)) {
        int64_t now = boottime_ns();
        if (now >= k->deadline_ns) {
            killing_start(k, KEEPER_DEADLINE);
        } else if (now >= k->kill_at_ns) {
            killing_start(k, KEEPER_ASKED);
        }
        if (k->killing) {
            killing_step(k);
        }
        struct pollfd p[2] = {{.fd = signal_fd, .events = POLLIN},
                              {.fd = open_control ? KEEPER_CONTROL_FD : -1, .events = POLLIN}};
        if (poll(p, 2, wait_ms(k)) <= 0) {
            continue;
        }
        if (p[0].revents != 0) {
            struct signalfd_siginfo info;
            ssize_t ignored = read(signal_fd, &info, sizeof info);
            (void)ignored; /* which signal does not matter: the loop looks at everything */
        }
        if (p[1].revents != 0 && !control_read(k)) {
            open_control = false;
            killing_start(k, KEEPER_END_OF_FILE);
        }
    }
}

/* The program's ends of the pipes must not stay open in here, or its reader would never see their
 * end; but 0 to 2 must not become something else either. */
static void own_ends_close(void)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2 && null >= 0; fd++) {
        (void)dup2(null, fd);
    }
    if (null > KEEPER_REPORT_FD) {
        (void)close(null);
    }
}

static bool arguments_take(struct keeping *k, int argc, char **argv)
{
    if (argc < 8 || strcmp(argv[6], "--") != 0 || !number_parse(argv[1], &k->deadline_ns) ||
        !number_parse(argv[2], &k->grace_ms) || !number_parse(argv[3], &k->memory_bytes) ||
        !number_parse(argv[4], &k->cpu_s)) {
        return false;
    }
    k->directory = argv[5];
    k->program = &argv[7];
    k->kill_at_ns = INT64_MAX;
    return true;
}

int main(int argc, char **argv)
{
    struct keeping k = {0};
    if (!arguments_take(&k, argc, argv)) {
        static const char usage[] = "report-keeper is started by report-worker: see keeper.h\n";
        ssize_t ignored = write(STDERR_FILENO, usage, sizeof usage - 1);
        (void)ignored;
        return 64;
    }
    (void)fcntl(KEEPER_LIFE_FD, F_SETFD, FD_CLOEXEC); /* ours, if it is there at all */
    /* All signals wait in the descriptor: only the worker and the deadline end a keeper. */
    sigset_t all;
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    int signal_fd = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    int flags = fcntl(KEEPER_CONTROL_FD, F_GETFL);
    if (signal_fd < 0 || flags < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0 ||
        fcntl(KEEPER_CONTROL_FD, F_SETFL, flags | O_NONBLOCK) != 0) {
        report(KEEPER_NOT_STARTED, errno, KEEPER_BY_ITSELF);
        return 71;
    }
    CRASH_POINT("keeper.begun");
    int reason = program_start(&k);
    CRASH_POINT("keeper.forked");
    own_ends_close();
    keep(&k, signal_fd);
    CRASH_POINT("keeper.reaped");
    if (reason != 0) {
        report(KEEPER_NOT_STARTED, reason, KEEPER_BY_ITSELF);
    } else if (WIFSIGNALED(k.status)) {
        report(KEEPER_SIGNALLED, WTERMSIG(k.status), k.cause);
    } else {
        report(KEEPER_EXITED, WEXITSTATUS(k.status), k.cause);
    }
    return 0;
}
