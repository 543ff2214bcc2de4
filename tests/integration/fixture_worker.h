/* A real report-worker process with settings of its own, and jobs for it. */
#ifndef RS_FIXTURE_WORKER_H
#define RS_FIXTURE_WORKER_H

#include <sys/types.h>

#include "fixture_database.h"
#include "ident.h"

#define WORKER_LIMIT_MS 30000 /* for what it does soon, on a busy machine too */

struct test_worker {
    pid_t pid;
    char directory[128]; /* scratch: worker.conf, log, artifacts/ */
    char log[192];       /* path of its stderr */
};

/* Make a scratch directory. `extra`: more lines of worker.conf (programs, slots ...); a later line
 * must not repeat a key. Artifacts go to <directory>/artifacts. Data source "warehouse" is the
 * database `db` itself as the superuser. */
void test_worker_prepare(struct test_worker *w, const struct test_database *db, const char *extra);

/* Start it in the scratch directory and wait until it has registered. */
void test_worker_start(struct test_worker *w, const struct test_database *db);

/* Send a signal and wait for the end; returns the exit status, or 128 + signal. Fails the test when
 * it takes longer than limit_ms. */
int test_worker_stop(struct test_worker *w, int signal_number, int64_t limit_ms);

/* Remove the scratch directory; a worker that still runs is killed. Shows its log if `show`. */
void test_worker_done(struct test_worker *w, bool show);

/* Does the log hold this text? */
bool test_worker_logged(const struct test_worker *w, const char *text);
/* When the first line with `text` was written, as PostgreSQL reads it; "" when there is none. Valid
 * until the next call. */
const char *test_worker_log_time(const struct test_worker *w, const char *text);

/* Insert an occurrence and its queued job of a report that exists; returns the job's id. */
const char *test_job(const struct test_database *db, const char *report, const char *key);

#endif
