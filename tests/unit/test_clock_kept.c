/* What the kernel says of the wall clock, and what is said where it may not be asked. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "clock.h"

/* As ProtectClock= of a systemd unit does. */
static bool question_forbid(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_adjtimex, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_adjtime, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof rules / sizeof rules[0], .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In a process of its own, since a filter stays; -1: it could not be set. */
static int kept_in_a_child(bool forbidden)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        enum clock_kept kept = CLOCK_KEPT;
        if (forbidden && !question_forbid()) {
            _exit(255);
        }
        wall_us now = clock_wall(&kept);
        _exit(now.us > 0 ? (int)kept : 254);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 255 ? -1 : WEXITSTATUS(status);
}

static void test_clock_that_may_not_be_asked_is_unknown_and_not_unkept(void **state)
{
    (void)state;
    int kept = kept_in_a_child(true);
    if (kept < 0) {
        skip(); /* this kernel sets no filter */
    }
    assert_int_equal(kept, CLOCK_KEPT_UNKNOWN);
}

static void test_kernel_that_may_be_asked_says_yes_or_no(void **state)
{
    (void)state;
    struct timex kernel = {.modes = 0};
    int said = adjtimex(&kernel);
    int kept = kept_in_a_child(false);
    if (said < 0) {
        assert_int_equal(kept, CLOCK_KEPT_UNKNOWN);
    } else {
        assert_true(kept == CLOCK_KEPT || kept == CLOCK_KEPT_NOT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clock_that_may_not_be_asked_is_unknown_and_not_unkept),
        cmocka_unit_test(test_kernel_that_may_be_asked_says_yes_or_no),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
