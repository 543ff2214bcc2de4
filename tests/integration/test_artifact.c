/* Artifact files: durable, unique to the attempt, and swept only when they are nobody's. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "artifact.h"
#include "artifact_sweep.h"
#include "fixture_database.h"

#define INSTALLATION "6f0c9a52-0000-4000-8000-000000000001"

static struct test_database db;
static struct store *store;
static struct artifact_store files = {.name = "main"};

static instant soon(void)
{
    return instant_add_ms(clock_now(), 10000);
}

static int group_setup(void **state)
{
    (void)state;
    struct error err;
    test_database_create(&db);
    struct store_options options = {
        .conninfo = db.worker, .application_name = "test_artifact", .role = STORE_WORKER};
    if (store_open(&options, soon(), &store, &err) != STATUS_OK) {
        print_error("%s\n", err.text);
        return -1;
    }
    (void)snprintf(files.directory, sizeof files.directory, "/tmp/rs-artifact-XXXXXX");
    return mkdtemp(files.directory) == NULL ? -1 : 0;
}

static void remove_tree(const char *path)
{
    DIR *d = opendir(path);
    for (struct dirent *e = d == NULL ? NULL : readdir(d); e != NULL; e = readdir(d)) {
        char inner[2048];
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            snprintf(inner, sizeof inner, "%s/%s", path, e->d_name) < (int)sizeof inner) {
            remove_tree(inner);
        }
    }
    if (d != NULL) {
        (void)closedir(d);
        (void)rmdir(path);
    } else {
        (void)unlink(path);
    }
}

static int group_teardown(void **state)
{
    (void)state;
    store_close(store);
    test_database_drop(&db);
    remove_tree(files.directory);
    return 0;
}

static struct job *job_make(const char *key)
{
    struct job *j = job_new();
    assert_non_null(j);
    uuid_random(j->id);
    uuid_random(j->token);
    (void)snprintf(j->scope, sizeof j->scope, "main");
    (void)snprintf(j->schedule, sizeof j->schedule, "sales-daily");
    (void)snprintf(j->occurrence_key, sizeof j->occurrence_key, "%s", key);
    return j;
}

static struct artifact *create(const struct artifact_store *in, const struct job *j)
{
    struct artifact *a = NULL;
    struct error err;
    if (artifact_create(in, INSTALLATION, j, &a, &err) != STATUS_OK) {
        print_error("%s\n", err.text);
        fail();
    }
    return a;
}

/* A published file of the job; its path within the store in *record. */
static void publish(const struct job *j, const char *text, struct artifact_record *record)
{
    struct artifact *a = create(&files, j);
    assert_int_equal(artifact_write(a, text, strlen(text), NULL), STATUS_OK);
    assert_int_equal(artifact_complete(a, "csv", record, NULL), STATUS_OK);
    artifact_abort(a);
}

static bool exists(const char *path)
{
    char whole[2048];
    struct stat st;
    (void)snprintf(whole, sizeof whole, "%s/%s", files.directory, path);
    return stat(whole, &st) == 0;
}

static void temporary_path(const struct job *j, char path[ARTIFACT_PATH_MAX + ARTIFACT_NAME_MAX])
{
    char name[ARTIFACT_NAME_MAX];
    char directory[ARTIFACT_PATH_MAX];
    artifact_directory(INSTALLATION, j, directory);
    artifact_temporary_name(j, name);
    (void)snprintf(path, ARTIFACT_PATH_MAX + ARTIFACT_NAME_MAX, "%s/%s", directory, name);
}

static void test_published_file_has_its_size_and_hash_and_no_temporary_is_left(void **state)
{
    (void)state;
    struct job *j = job_make("2026-10-25T02:30+02:00");
    struct artifact_record r;
    char temporary[ARTIFACT_PATH_MAX + ARTIFACT_NAME_MAX];
    char whole[2048];
    char sha[DIGEST_TEXT_MAX];
    publish(j, "a,b\n1,2\n", &r);
    (void)snprintf(whole, sizeof whole, "%s/%s", files.directory, r.path);
    assert_int_equal(digest_file(whole, sha, NULL), STATUS_OK);
    assert_string_equal(sha, r.sha256);
    assert_int_equal(r.size_bytes, 8);
    assert_string_equal(r.store, "main");
    assert_string_equal(r.media_type, "text/csv; charset=utf-8");
    assert_non_null(strstr(r.path, INSTALLATION "/main/sales-daily/2026-10-25T02_30p02_00/"));
    assert_non_null(strstr(r.path, j->id));
    assert_non_null(strstr(r.path, j->token));
    temporary_path(j, temporary);
    assert_false(exists(temporary));
    artifact_remove(&files, r.path);
    assert_false(exists(r.path));
    job_free(j);
}

static void test_two_attempts_of_a_job_write_to_two_files(void **state)
{
    (void)state;
    struct job *j = job_make("2030-04-12");
    struct artifact_record first;
    struct artifact_record second;
    publish(j, "first", &first);
    uuid_random(j->token);
    publish(j, "second", &second);
    assert_string_not_equal(first.path, second.path);
    assert_true(exists(first.path));
    assert_true(exists(second.path));
    artifact_remove(&files, first.path);
    artifact_remove(&files, second.path);
    job_free(j);
}

static void test_aborted_artifact_leaves_no_file(void **state)
{
    (void)state;
    struct job *j = job_make("aborted");
    char temporary[ARTIFACT_PATH_MAX + ARTIFACT_NAME_MAX];
    struct artifact *a = create(&files, j);
    temporary_path(j, temporary);
    assert_int_equal(artifact_write(a, "half", 4, NULL), STATUS_OK);
    assert_true(exists(temporary));
    artifact_abort(a);
    assert_false(exists(temporary));
    job_free(j);
}

static void test_store_that_is_away_is_named_in_the_error(void **state)
{
    (void)state;
    struct artifact_store away = {.name = "away", .directory = "/no/such/directory"};
    struct job *j = job_make("away");
    struct artifact *a = NULL;
    struct error err;
    assert_int_equal(artifact_create(&away, INSTALLATION, j, &a, &err), STATUS_AGAIN);
    assert_non_null(strstr(err.text, "\"away\" (/no/such/directory)"));
    assert_null(a);
    job_free(j);
}

/* Write until it is refused; returns the text. */
static void write_until_refused(const struct artifact_store *in, const struct job *j,
                                struct error *err)
{
    static char block[65536];
    struct artifact *a = create(in, j);
    enum status s = STATUS_OK;
    for (int i = 0; i < 64 && s == STATUS_OK; i++) {
        s = artifact_write(a, block, sizeof block, err);
    }
    assert_int_equal(s, STATUS_AGAIN);
    artifact_abort(a);
}

static void test_full_disk_is_told_and_the_temporary_removed(void **state)
{
    (void)state;
    struct artifact_store full = {.name = "full"};
    struct job *j = job_make("full");
    struct error err;
    char path[2048];
    char temporary[ARTIFACT_PATH_MAX + ARTIFACT_NAME_MAX];
    (void)snprintf(full.directory, sizeof full.directory, "%.400s/full", files.directory);
    assert_int_equal(mkdir(full.directory, 0700), 0);
    bool mounted = mount("tmpfs", full.directory, "tmpfs", 0, "size=256k") == 0;
    struct rlimit old;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    (void)getrlimit(RLIMIT_FSIZE, &old);
    if (!mounted) { /* without the right to mount: a file size limit goes the same way */
        struct rlimit small = {.rlim_cur = 256 * 1024, .rlim_max = old.rlim_max};
        (void)sigaction(SIGXFSZ, &ignore, NULL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    }
    write_until_refused(&full, j, &err);
    (void)setrlimit(RLIMIT_FSIZE, &old);
    temporary_path(j, temporary);
    (void)snprintf(path, sizeof path, "%s/%s", full.directory, temporary);
    struct stat st;
    assert_int_not_equal(stat(path, &st), 0);
    assert_non_null(strstr(err.text, strerror(mounted ? ENOSPC : EFBIG)));
    assert_non_null(strstr(err.text, "artifact store \"full\""));
    if (mounted) {
        assert_non_null(strstr(err.text, "free space there"));
        assert_int_equal(umount(full.directory), 0);
    }
    job_free(j);
}

/* ---- the sweep ---- */

static void job_row(const struct job *j, const char *state, const char *outcome)
{
    char sql[2048];
    bool runs = strcmp(state, "running") == 0;
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO reports.job (id, schedule, occurrence_key, scope, report, queue,"
                   " priority, state, run_after, attempt, max_attempts, retry_base, retry_cap,"
                   " timeout, attempt_token, worker, lease_until, finished_at) VALUES ('%s',"
                   " 'sales-daily', '%s', 'main', 'r', 'default', 0, '%s', clock_timestamp(), 1, 3,"
                   " '1 s', '1 s', '1 s', %s%.40s%s, %s, %s, %s)",
                   j->id, j->occurrence_key, state, runs ? "'" : "", runs ? j->token : "NULL",
                   runs ? "'" : "", runs ? "gen_random_uuid()" : "NULL",
                   runs ? "clock_timestamp()" : "NULL", runs ? "NULL" : "clock_timestamp()");
    test_run(db.connection, sql);
    if (!runs) {
        (void)snprintf(sql, sizeof sql,
                       "INSERT INTO reports.job_attempt (job_id, attempt, token, worker, outcome,"
                       " started_at) VALUES ('%s', 1, '%s', gen_random_uuid(), '%s',"
                       " clock_timestamp())",
                       j->id, j->token, outcome);
        test_run(db.connection, sql);
    }
}

static struct sweep_counts sweep_all(void)
{
    struct sweep_counts counts = {0};
    struct sweep *s = sweep_begin(&files, INSTALLATION);
    struct error err = {0};
    enum status status = STATUS_OK;
    assert_non_null(s);
    for (int steps = 0; status == STATUS_OK && steps < 1000; steps++) {
        status = sweep_step(s, store, soon(), &counts, &err);
    }
    sweep_end(s);
    if (status != STATUS_NOT_FOUND) {
        print_error("%s\n", err.text);
        fail();
    }
    return counts;
}

static void test_sweep_removes_what_closed_attempts_left_and_nothing_else(void **state)
{
    (void)state;
    struct job *lost = job_make("lost");
    struct job *half = job_make("half");
    struct job *running = job_make("running");
    struct job *done = job_make("done");
    struct job *unknown = job_make("unknown");
    struct artifact_record r[4];
    char temporary[ARTIFACT_PATH_MAX + ARTIFACT_NAME_MAX];
    char path[2048];
    char sql[2048];
    publish(lost, "x", &r[0]);
    publish(running, "x", &r[1]);
    publish(done, "x", &r[2]);
    publish(unknown, "x", &r[3]);
    temporary_path(half, temporary);
    artifact_abort(create(&files, half)); /* makes the directory */
    (void)snprintf(path, sizeof path, "%s/%s", files.directory, temporary);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    (void)snprintf(path, sizeof path, "%s/" INSTALLATION "/main/sales-daily/lost/notes.txt",
                   files.directory);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    (void)close(fd);
    job_row(lost, "failed", "lost");
    job_row(half, "failed", "lost");
    job_row(running, "running", "");
    job_row(done, "succeeded", "succeeded");
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO reports.artifact (job_id, attempt, store, path, media_type,"
                   " size_bytes, sha256) VALUES ('%s', 1, 'main', '%s', 'text/csv', 1, '\\x%s')",
                   done->id, r[2].path, r[2].sha256);
    test_run(db.connection, sql);
    struct sweep_counts counts = sweep_all();
    assert_false(exists(r[0].path));
    assert_false(exists(temporary));
    assert_true(exists(r[1].path));
    assert_true(exists(r[2].path));
    assert_true(exists(r[3].path));
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(counts.removed, 2);
    assert_int_equal(counts.foreign, 1);
    counts = sweep_all();
    assert_int_equal(counts.removed, 0);
    assert_int_equal(counts.seen, 3);
    job_free(lost);
    job_free(half);
    job_free(running);
    job_free(done);
    job_free(unknown);
}

static void test_sweep_of_a_store_without_files_is_over_at_once(void **state)
{
    (void)state;
    struct sweep_counts counts = {0};
    struct sweep *s = sweep_begin(&files, "no-such-installation");
    assert_int_equal(sweep_step(s, store, soon(), &counts, NULL), STATUS_NOT_FOUND);
    sweep_end(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_published_file_has_its_size_and_hash_and_no_temporary_is_left),
        cmocka_unit_test(test_two_attempts_of_a_job_write_to_two_files),
        cmocka_unit_test(test_aborted_artifact_leaves_no_file),
        cmocka_unit_test(test_store_that_is_away_is_named_in_the_error),
        cmocka_unit_test(test_full_disk_is_told_and_the_temporary_removed),
        cmocka_unit_test(test_sweep_removes_what_closed_attempts_left_and_nothing_else),
        cmocka_unit_test(test_sweep_of_a_store_without_files_is_over_at_once),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
