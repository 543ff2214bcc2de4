#include "fixture_worker.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LIVE_MAX 16

extern char **environ;

/* Workers that run: a test that fails on its way must not leave one behind. */
static pid_t live[LIVE_MAX];

static void live_kill(void)
{
    for (int i = 0; i < LIVE_MAX; i++) {
        if (live[i] > 0) {
            (void)kill(live[i], SIGKILL);
            (void)waitpid(live[i], NULL, 0);
        }
    }
}

static void live_change(pid_t from, pid_t to)
{
    static bool registered;
    if (!registered) {
        registered = true;
        (void)atexit(live_kill);
    }
    for (int i = 0; i < LIVE_MAX; i++) {
        if (live[i] == from) {
            live[i] = to;
            return;
        }
    }
}

void test_worker_prepare(struct test_worker *w, const struct test_database *db, const char *extra)
{
    char path[192];
    memset(w, 0, sizeof *w);
    (void)snprintf(w->directory, sizeof w->directory, "%s", "/tmp/rs-worker-XXXXXX");
    assert_non_null(mkdtemp(w->directory));
    (void)snprintf(path, sizeof path, "%s/artifacts", w->directory);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(w->log, sizeof w->log, "%s/log", w->directory);
    (void)snprintf(path, sizeof path, "%s/worker.conf", w->directory);
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    (void)fprintf(
        f,
        "name = \"test\";\nhttp_port = 0;\ndatabase = \"%s\";\nkeeper = \"%s/report-keeper\";\n"
        "artifact_stores = ( { name = \"main\"; directory = \"%s/artifacts\"; } );\n"
        "data_sources = ( { name = \"warehouse\"; conninfo = \"%s\"; },\n"
        "                 { name = \"away\"; conninfo = \"host=127.0.0.1 port=1\"; } );\n"
        "%s",
        db->worker, TEST_BINARY_DIR, w->directory, db->super, extra);
    (void)fclose(f);
}

void test_worker_start(struct test_worker *w, const struct test_database *db)
{
    char config[192];
    char program[] = TEST_BINARY_DIR "/report-worker";
    char option[] = "--config";
    char *arguments[] = {program, option, config, NULL};
    char before[32];
    posix_spawn_file_actions_t actions;
    (void)snprintf(config, sizeof config, "%s/worker.conf", w->directory);
    (void)snprintf(before, sizeof before, "%lld",
                   (long long)test_int(db->connection, "SELECT count(*) FROM reports.worker") + 1);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_addopen(&actions, 2, w->log, O_WRONLY | O_CREAT | O_APPEND,
                                           0600);
    (void)posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    assert_int_equal(posix_spawn(&w->pid, program, &actions, NULL, arguments, environ), 0);
    live_change(0, w->pid);
    (void)posix_spawn_file_actions_destroy(&actions);
    if (!test_wait_text(db->connection, "SELECT count(*) FROM reports.worker", before,
                        WORKER_LIMIT_MS)) {
        test_worker_done(w, true);
        fail_msg("%s", "the worker did not register");
    }
}

int test_worker_stop(struct test_worker *w, int signal_number, int64_t limit_ms)
{
    int status = 0;
    instant end = instant_add_ms(clock_now(), limit_ms);
    assert_int_equal(kill(w->pid, signal_number), 0);
    while (waitpid(w->pid, &status, WNOHANG) == 0) {
        if (!instant_before(clock_now(), end)) {
            test_worker_done(w, true);
            fail_msg("%s", "the worker did not end in time");
        }
        (void)poll(NULL, 0, 5);
    }
    live_change(w->pid, 0);
    w->pid = 0;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static char *log_read(const struct test_worker *w)
{
    FILE *f = fopen(w->log, "re");
    char *text = NULL;
    size_t size = 0;
    if (f != NULL) {
        if (getdelim(&text, &size, '\0', f) < 0) {
            free(text);
            text = NULL;
        }
        (void)fclose(f);
    }
    return text;
}

bool test_worker_logged(const struct test_worker *w, const char *text)
{
    char *log = log_read(w);
    bool found = log != NULL && strstr(log, text) != NULL;
    free(log);
    return found;
}

const char *test_worker_log_time(const struct test_worker *w, const char *text)
{
    static char time[48];
    char *log = log_read(w);
    const char *at = log != NULL ? strstr(log, text) : NULL;
    time[0] = '\0';
    while (at != NULL && at > log && at[-1] != '\n') {
        at--;
    }
    if (at == NULL || sscanf(at, "time=%47s", time) != 1) {
        time[0] = '\0';
    }
    free(log);
    return time;
}

static void directory_remove(char *path)
{
    char program[] = "rm";
    char option[] = "-rf";
    char *arguments[] = {program, option, path, NULL};
    pid_t pid = 0;
    if (posix_spawnp(&pid, program, NULL, NULL, arguments, environ) == 0) {
        (void)waitpid(pid, NULL, 0);
    }
}

void test_worker_done(struct test_worker *w, bool show)
{
    if (w->pid > 0) {
        (void)kill(w->pid, SIGKILL);
        (void)waitpid(w->pid, NULL, 0);
        live_change(w->pid, 0);
        w->pid = 0;
    }
    if (show) {
        char *log = log_read(w);
        print_error("%s\n", log == NULL ? "(no log)" : log);
        free(log);
    }
    if (w->directory[0] != '\0') {
        directory_remove(w->directory);
        w->directory[0] = '\0';
    }
}

const char *test_job(const struct test_database *db, const char *report, const char *key)
{
    static char id[UUID_TEXT_MAX];
    char sql[2048];
    uuid_random(id);
    (void)snprintf(
        sql, sizeof sql,
        "INSERT INTO reports.occurrence (schedule, occurrence_key, scope, job_id, scheduled_for,"
        " business_date, window_start, window_end, cause, version, incarnation, generation)"
        " VALUES ('%s', '%s', 'main', '%s', '2030-04-12 06:00+00', '2030-04-12',"
        " '2030-04-11 06:00+00', '2030-04-12 06:00+00', 'schedule', 1, 1, 1);"
        "INSERT INTO reports.job (id, schedule, occurrence_key, scope, report, queue, priority,"
        " state, run_after, max_attempts, retry_base, retry_cap, timeout)"
        " VALUES ('%s', '%s', '%s', 'main', '%s', 'default', 0, 'queued', clock_timestamp(), 3,"
        " '1 second', '1 minute', '1 hour')",
        report, key, id, id, report, key, report);
    test_run(db->connection, sql);
    return id;
}
