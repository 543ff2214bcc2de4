/* Life files: what proves that a process is dead, and what does not. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "life_file.h"

#define LIMIT_MS 10000
#define PROOF_MS 200

static char directory[64];
static char path[96];
static char lock[128];

static int setup(void **state)
{
    (void)state;
    (void)snprintf(directory, sizeof directory, "/tmp/rs-life-XXXXXX");
    if (mkdtemp(directory) == NULL) {
        return -1;
    }
    (void)snprintf(path, sizeof path, "%s/session", directory);
    (void)snprintf(lock, sizeof lock, "%s.lock", path);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(path);
    (void)unlink(lock);
    return rmdir(directory);
}

static instant after_ms(int64_t ms)
{
    return instant_add_ms(clock_now(), ms);
}

static void keep(struct life_file *file, const char *secret)
{
    const struct life_field fields[] = {{"session", "0x1"}, {"password", secret}};
    assert_int_equal(life_file_write(file, fields, 2, NULL), STATUS_OK);
}

/* ---- another process ---- */

struct other {
    pid_t pid;
    int from, to; /* it writes a byte when it holds the file, and ends at end-of-file */
};

/* What the child does while it lives; returns when it is to end. */
static void other_lives(int from_parent)
{
    char byte;
    while (read(from_parent, &byte, 1) > 0) {
    }
}

static void *thread_lives(void *argument)
{
    other_lives(*(int *)argument);
    _exit(0);
}

static _Noreturn void other_run(bool leave_first_thread, int from_parent, int to_parent)
{
    static int fd;
    struct life_file *file = NULL;
    pthread_t thread;
    fd = from_parent;
    if (life_file_take(path, LIFE_BEGIN, after_ms(0), &file, NULL) != STATUS_OK) {
        _exit(1);
    }
    const struct life_field fields[] = {{"session", "0x1"}};
    if (life_file_write(file, fields, 1, NULL) != STATUS_OK || write(to_parent, "x", 1) != 1) {
        _exit(1);
    }
    if (leave_first_thread && pthread_create(&thread, NULL, thread_lives, &fd) == 0) {
        pthread_exit(NULL);
    }
    other_lives(from_parent);
    _exit(0);
}

static void other_start(struct other *o, bool leave_first_thread)
{
    int down[2], up[2];
    char byte;
    assert_int_equal(pipe2(down, O_CLOEXEC), 0);
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    o->pid = fork();
    assert_true(o->pid >= 0);
    if (o->pid == 0) {
        (void)close(down[1]);
        (void)close(up[0]);
        other_run(leave_first_thread, down[0], up[1]);
    }
    (void)close(down[0]);
    (void)close(up[1]);
    o->from = up[0];
    o->to = down[1];
    struct pollfd p = {.fd = o->from, .events = POLLIN};
    assert_int_equal(poll(&p, 1, LIMIT_MS), 1);
    assert_int_equal(read(o->from, &byte, 1), 1);
}

static void other_kill(struct other *o)
{
    (void)kill(o->pid, SIGKILL);
    assert_int_equal(waitpid(o->pid, NULL, 0), o->pid);
    (void)close(o->from);
    (void)close(o->to);
}

static char state_of(pid_t pid)
{
    char name[64], text[512] = "";
    (void)snprintf(name, sizeof name, "/proc/%ld/stat", (long)pid);
    FILE *f = fopen(name, "re");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    (void)fclose(f);
    const char *end = strrchr(text, ')');
    return end == NULL ? '?' : end[2];
}

static void wait_state(pid_t pid, char state)
{
    instant limit = after_ms(LIMIT_MS);
    while (state_of(pid) != state) {
        assert_true(instant_before(clock_now(), limit));
        (void)poll(NULL, 0, 2);
    }
}

static enum status prove(struct error *err)
{
    struct life_file *file = NULL;
    enum status s = life_file_take(path, LIFE_PROVE, after_ms(PROOF_MS), &file, err);
    life_file_free(file);
    return s;
}

/* ---- tests ---- */

static void test_what_was_written_is_read_after_a_kill(void **state)
{
    (void)state;
    struct other o;
    struct life_file *file = NULL;
    struct life_record r;
    char pid[24];
    other_start(&o, false);
    (void)snprintf(pid, sizeof pid, "%ld", (long)o.pid);
    other_kill(&o);
    assert_int_equal(life_file_take(path, LIFE_PROVE, after_ms(PROOF_MS), &file, NULL), STATUS_OK);
    assert_int_equal(life_file_read(file, &r, NULL), STATUS_OK);
    assert_string_equal(life_record_get(&r, "session"), "0x1");
    assert_string_equal(life_record_get(&r, "pid"), pid);
    assert_true(strtoll(life_record_get(&r, "start"), NULL, 10) > 0);
    assert_null(life_record_get(&r, "sess"));
    life_file_free(file);
}

static void test_a_living_process_is_refused_by_its_number(void **state)
{
    (void)state;
    struct other o;
    struct error err;
    char words[48];
    other_start(&o, false);
    instant began = clock_now();
    assert_int_equal(prove(&err), STATUS_CONFLICT);
    assert_in_range(instant_ms_between(began, clock_now()), PROOF_MS, PROOF_MS + 2000);
    (void)snprintf(words, sizeof words, "process %ld holds it", (long)o.pid);
    assert_non_null(strstr(err.text, words));
    assert_non_null(strstr(err.text, "or another run of this command")); /* which holds it, too */
    other_kill(&o);
    assert_int_equal(prove(NULL), STATUS_OK);
}

static void test_a_stopped_process_lives(void **state)
{
    (void)state;
    struct other o;
    other_start(&o, false);
    (void)kill(o.pid, SIGSTOP);
    wait_state(o.pid, 'T');
    assert_int_equal(prove(NULL), STATUS_CONFLICT);
    other_kill(&o);
}

/* /proc says Z of it, as of a dead one. */
static void test_a_process_whose_first_thread_has_ended_lives(void **state)
{
    (void)state;
    struct other o;
    other_start(&o, true);
    wait_state(o.pid, 'Z');
    assert_int_equal(prove(NULL), STATUS_CONFLICT);
    other_kill(&o);
    assert_int_equal(prove(NULL), STATUS_OK);
}

/* As a keeper does. */
static void test_who_shares_the_descriptor_is_told_from_the_process(void **state)
{
    (void)state;
    struct life_file *file = NULL;
    int up[2];
    pid_t shares = -1;
    assert_int_equal(pipe2(up, O_CLOEXEC), 0);
    pid_t worker = fork();
    if (worker == 0) {
        if (life_file_take(path, LIFE_BEGIN, after_ms(0), &file, NULL) != STATUS_OK) {
            _exit(1);
        }
        keep(file, "x");
        pid_t keeper = fork();
        if (keeper == 0) {
            (void)poll(NULL, 0, LIMIT_MS);
            _exit(0);
        }
        if (write(up[1], &keeper, sizeof keeper) != (ssize_t)sizeof keeper) {
            _exit(1);
        }
        _exit(0);
    }
    assert_int_equal(read(up[0], &shares, sizeof shares), sizeof shares);
    assert_int_equal(waitpid(worker, NULL, 0), worker);
    assert_int_equal(prove(NULL), STATUS_TIMEOUT);
    assert_int_equal(life_file_take(path, LIFE_BEGIN, after_ms(PROOF_MS), &file, NULL),
                     STATUS_TIMEOUT);
    (void)kill(shares, SIGKILL);
    assert_int_equal(life_file_take(path, LIFE_PROVE, after_ms(LIMIT_MS), &file, NULL), STATUS_OK);
    life_file_free(file);
    (void)close(up[0]);
    (void)close(up[1]);
}

static void test_a_second_daemon_with_the_same_file_is_refused(void **state)
{
    (void)state;
    struct other o;
    struct life_file *file = NULL;
    other_start(&o, false);
    assert_int_equal(life_file_take(path, LIFE_BEGIN, after_ms(PROOF_MS), &file, NULL),
                     STATUS_CONFLICT);
    assert_null(file);
    other_kill(&o);
}

static void test_nobody_has_been_there(void **state)
{
    (void)state;
    struct error err;
    assert_int_equal(prove(&err), STATUS_NOT_FOUND);
    assert_int_equal(access(lock, F_OK), -1); /* and nothing was made */
}

static void test_after_an_ordered_end_nothing_is_left_to_clean_up(void **state)
{
    (void)state;
    struct life_file *file = NULL;
    struct life_record r;
    assert_int_equal(life_file_take(path, LIFE_BEGIN, after_ms(0), &file, NULL), STATUS_OK);
    keep(file, "x");
    life_file_remove(file);
    life_file_free(file);
    assert_int_equal(life_file_take(path, LIFE_PROVE, after_ms(0), &file, NULL), STATUS_OK);
    assert_int_equal(life_file_read(file, &r, NULL), STATUS_NOT_FOUND);
    life_file_free(file);
}

/* A lock file that somebody removed under a living process must not make it look dead. */
static void test_a_removed_lock_file_proves_nothing(void **state)
{
    (void)state;
    struct other o;
    struct error err;
    struct life_file *file = NULL;
    struct life_record r;
    other_start(&o, false);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(prove(&err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "nothing proves"));
    /* Nor does one made anew, by hand or by the next daemon. */
    assert_int_equal(life_file_take(path, LIFE_BEGIN, after_ms(0), &file, NULL), STATUS_OK);
    assert_int_equal(life_file_read(file, &r, &err), STATUS_CORRUPT);
    assert_non_null(strstr(err.text, "nothing proves"));
    life_file_free(file);
    other_kill(&o);
}

static void text_put(const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(fd, mode), 0);
    (void)close(fd);
}

static char *text_get(void)
{
    static char text[LIFE_TEXT_MAX];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    (void)close(fd);
    return text;
}

static void test_a_file_that_is_not_whole_is_refused(void **state)
{
    (void)state;
    struct life_file *file = NULL;
    struct life_record r;
    char text[LIFE_TEXT_MAX];
    assert_int_equal(life_file_take(path, LIFE_BEGIN, after_ms(0), &file, NULL), STATUS_OK);
    keep(file, "secret");
    (void)snprintf(text, sizeof text, "%s", text_get());
    size_t whole = strlen(text);
    for (size_t n = 0; n < whole; n++) {
        char cut[LIFE_TEXT_MAX];
        (void)snprintf(cut, sizeof cut, "%.*s", (int)n, text);
        text_put(cut, 0600);
        assert_int_equal(life_file_read(file, &r, NULL), STATUS_CORRUPT);
    }
    text_put("report life 1\nno key\nend\n", 0600);
    assert_int_equal(life_file_read(file, &r, NULL), STATUS_CORRUPT);
    text_put("report life 1\nsession=0x1\nend\n", 0600);
    assert_int_equal(life_file_read(file, &r, NULL), STATUS_CORRUPT);
    text_put(text, 0600);
    assert_int_equal(life_file_read(file, &r, NULL), STATUS_OK);
    life_file_free(file);
}

static void test_another_boot_leaves_nothing_to_close(void **state)
{
    (void)state;
    struct life_file *file = NULL;
    struct life_record r;
    struct error err;
    assert_int_equal(life_file_take(path, LIFE_BEGIN, after_ms(0), &file, NULL), STATUS_OK);
    keep(file, "x");
    char *text = text_get();
    char *boot = strstr(text, "boot=");
    assert_non_null(boot);
    boot[5] = boot[5] == 'a' ? 'b' : 'a';
    text_put(text, 0600);
    assert_int_equal(life_file_read(file, &r, &err), STATUS_NOT_FOUND);
    assert_non_null(strstr(err.text, "another boot"));
    life_file_free(file);
}

static void test_a_file_that_is_not_ours_alone_is_refused(void **state)
{
    (void)state;
    struct life_file *file = NULL;
    struct life_record r;
    struct error err;
    assert_int_equal(life_file_take(path, LIFE_BEGIN, after_ms(0), &file, NULL), STATUS_OK);
    keep(file, "x");
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(life_file_read(file, &r, &err), STATUS_INVALID);
    assert_non_null(strstr(err.text, "chmod 600"));
    if (geteuid() == 0) {
        assert_int_equal(chmod(path, 0600), 0);
        assert_int_equal(chown(path, 65534, (gid_t)-1), 0);
        assert_int_equal(life_file_read(file, &r, &err), STATUS_INVALID);
        assert_non_null(strstr(err.text, "belongs to user 65534"));
        assert_int_equal(chown(lock, 65534, (gid_t)-1), 0);
    } else {
        assert_int_equal(chmod(lock, 0660), 0);
    }
    life_file_free(file);
    assert_int_equal(prove(&err), STATUS_INVALID);
    assert_int_equal(life_file_take(path, LIFE_BEGIN, after_ms(0), &file, &err), STATUS_INVALID);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(symlink("/dev/null", lock), 0);
    assert_int_equal(life_file_take(path, LIFE_BEGIN, after_ms(0), &file, &err), STATUS_INVALID);
    assert_int_equal(unlink(lock), 0);
    assert_int_equal(mkfifo(lock, 0600), 0);
    assert_int_equal(life_file_take(path, LIFE_BEGIN, after_ms(0), &file, &err), STATUS_INVALID);
}

static void test_files_are_for_their_owner_and_replaced_whole(void **state)
{
    (void)state;
    struct life_file *file = NULL;
    struct life_record r;
    struct stat first, second;
    assert_int_equal(life_file_take(path, LIFE_BEGIN, after_ms(0), &file, NULL), STATUS_OK);
    keep(file, "one");
    assert_int_equal(stat(path, &first), 0);
    assert_int_equal(first.st_mode & 07777, 0600);
    int reader = open(path, O_RDONLY | O_CLOEXEC);
    keep(file, "two");
    assert_int_equal(stat(path, &second), 0);
    assert_int_not_equal(first.st_ino, second.st_ino);
    char text[LIFE_TEXT_MAX] = "";
    assert_true(read(reader, text, sizeof text - 1) > 0);
    assert_non_null(strstr(text, "password=one\nend\n"));
    (void)close(reader);
    assert_int_equal(stat(lock, &second), 0);
    assert_int_equal(second.st_mode & 07777, 0600);
    assert_int_equal(life_file_read(file, &r, NULL), STATUS_OK);
    assert_string_equal(life_record_get(&r, "password"), "two");
    /* What is left of a write that was killed is in nobody's way. */
    char fresh[128];
    (void)snprintf(fresh, sizeof fresh, "%s.new", path);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    keep(file, "three");
    assert_int_equal(access(fresh, F_OK), -1);
    const struct life_field two_lines = {"session", "a\nb"};
    assert_int_equal(life_file_write(file, &two_lines, 1, NULL), STATUS_INVALID);
    life_file_free(file);
}

static void test_the_default_is_in_the_first_directory_of_systemd(void **state)
{
    (void)state;
    char text[32];
    (void)unsetenv("RUNTIME_DIRECTORY");
    life_file_default("session", text, sizeof text);
    assert_string_equal(text, "");
    (void)setenv("RUNTIME_DIRECTORY", "/run/one:/run/two", 1);
    life_file_default("session", text, sizeof text);
    assert_string_equal(text, "/run/one/session");
    life_file_default("a-name-that-is-much-too-long-for-it", text, sizeof text);
    assert_string_equal(text, "");
    (void)unsetenv("RUNTIME_DIRECTORY");
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(test_what_was_written_is_read_after_a_kill),
        EACH(test_a_living_process_is_refused_by_its_number),
        EACH(test_a_stopped_process_lives),
        EACH(test_a_process_whose_first_thread_has_ended_lives),
        EACH(test_who_shares_the_descriptor_is_told_from_the_process),
        EACH(test_a_second_daemon_with_the_same_file_is_refused),
        EACH(test_nobody_has_been_there),
        EACH(test_after_an_ordered_end_nothing_is_left_to_clean_up),
        EACH(test_a_removed_lock_file_proves_nothing),
        EACH(test_a_file_that_is_not_whole_is_refused),
        EACH(test_another_boot_leaves_nothing_to_close),
        EACH(test_a_file_that_is_not_ours_alone_is_refused),
        EACH(test_files_are_for_their_owner_and_replaced_whole),
        EACH(test_the_default_is_in_the_first_directory_of_systemd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
