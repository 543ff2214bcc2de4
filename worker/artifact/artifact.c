#include "artifact.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "artifact_health.h"
#include "crash_point.h"
#include "worker_metrics.h"

#define DIRECTORY_MODE 0750
#define FILE_MODE      0640

struct artifact {
    const struct artifact_store *store;
    const struct job *job;
    char directory[ARTIFACT_PATH_MAX]; /* within the store */
    char temporary[ARTIFACT_NAME_MAX];
    int directory_fd;
    int fd;
    int64_t size;
    struct digest *digest;
    bool completed;
};

static enum status refused(const struct artifact_store *store, const char *what, struct error *err)
{
    int reason = errno;
    const char *remedy = "";
    metric_add(worker_metric(WORKER_ARTIFACT_FAILURES, store->name, NULL), 1);
    if (reason == ENOSPC || reason == EDQUOT) {
        remedy = "; free space there, the job is tried again";
    } else if (reason == EACCES || reason == EPERM || reason == EROFS) {
        remedy = "; let the worker's user write there";
    }
    struct error full;
    enum status s = error_set(&full, STATUS_AGAIN, "artifact store \"%s\" (%s): cannot %s: %s%s",
                              store->name, store->directory, what, strerror(reason), remedy);
    artifact_health_refused(store, full.text);
    return error_set(err, s, "%s", full.text);
}

/* Step into a directory, making it where it is missing. The parent is written through each time:
 * another thread may have made the entry a moment ago and not have come to its fsync yet. */
static int directory_enter(int parent, const char *name)
{
    if (mkdirat(parent, name, DIRECTORY_MODE) != 0 && errno != EEXIST) {
        return -1;
    }
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && fsync(parent) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static int directories_make(const struct artifact_store *store, const char *path)
{
    int at = open(store->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *p = path;
    while (at >= 0 && *p != '\0') {
        size_t n = strcspn(p, "/");
        char name[256];
        (void)snprintf(name, sizeof name, "%.*s", (int)n, p);
        int next = directory_enter(at, name);
        int reason = errno;
        (void)close(at);
        errno = reason;
        at = next;
        p += n + (p[n] == '/' ? 1 : 0);
    }
    return at;
}

enum status artifact_create(const struct artifact_store *store, const char *installation,
                            const struct job *job, struct artifact **ret_artifact,
                            struct error *err)
{
    struct artifact *a = calloc(1, sizeof *a);
    if (a == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    a->store = store;
    a->job = job;
    a->fd = -1;
    a->digest = digest_new();
    artifact_directory(installation, job, a->directory);
    artifact_temporary_name(job, a->temporary);
    a->directory_fd = directories_make(store, a->directory);
    enum status s = STATUS_OK;
    if (a->digest == NULL) {
        s = error_set(err, STATUS_FATAL, "out of memory");
    } else if (a->directory_fd < 0) {
        s = refused(store, "make or open a directory", err);
    } else {
        a->fd = openat(a->directory_fd, a->temporary,
                       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
        s = a->fd < 0 ? refused(store, "create a file", err) : STATUS_OK;
    }
    if (s != STATUS_OK) {
        artifact_abort(a);
        return s;
    }
    CRASH_POINT("artifact.created");
    *ret_artifact = a;
    return STATUS_OK;
}

enum status artifact_write(struct artifact *a, const void *data, size_t size, struct error *err)
{
    const char *p = data;
    CRASH_POINT("artifact.write");
    for (size_t left = size; left > 0;) {
        ssize_t n = write(a->fd, p, left);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            char what[64];
            (void)snprintf(what, sizeof what, "write more than %lld bytes", (long long)a->size);
            return refused(a->store, what, err);
        }
        p += n;
        left -= (size_t)n;
        a->size += n;
    }
    CRASH_POINT("artifact.written");
    if (digest_add(a->digest, data, size) != STATUS_OK) {
        return error_set(err, STATUS_FATAL, "the SHA-256 of the artifact cannot be computed");
    }
    return STATUS_OK;
}

int64_t artifact_size(const struct artifact *a)
{
    return a->size;
}

static void record_fill(const struct artifact *a, const char *name, const char *ending,
                        struct artifact_record *r)
{
    memcpy(r->store, a->store->name, sizeof r->store);
    /* Its parts are bounded so that it always fits: see artifact_path.h. */
    size_t n = strlen(a->directory);
    memcpy(r->path, a->directory, n);
    (void)snprintf(r->path + n, sizeof r->path - n, "/%s", name);
    (void)snprintf(r->media_type, sizeof r->media_type, "%s", media_type_of(ending));
    r->size_bytes = a->size;
}

enum status artifact_complete(struct artifact *a, const char *ending,
                              struct artifact_record *ret_record, struct error *err)
{
    char name[ARTIFACT_NAME_MAX];
    struct artifact_record record = {0};
    artifact_name(a->job, ending, name);
    record_fill(a, name, ending, &record);
    if (digest_finish(a->digest, record.sha256) != STATUS_OK) {
        return error_set(err, STATUS_FATAL, "the SHA-256 of the artifact cannot be computed");
    }
    CRASH_POINT("artifact_fsync.before");
    if (fsync(a->fd) != 0) {
        return refused(a->store, "write the file through", err);
    }
    CRASH_POINT("artifact_rename.before");
    if (renameat(a->directory_fd, a->temporary, a->directory_fd, name) != 0) {
        return refused(a->store, "give the file its name", err);
    }
    a->completed = true;
    CRASH_POINT("artifact_rename.after");
    if (fsync(a->directory_fd) != 0) {
        enum status s = refused(a->store, "write the directory through", err);
        (void)unlinkat(a->directory_fd, name, 0);
        return s;
    }
    CRASH_POINT("artifact.completed");
    artifact_health_works(a->store);
    *ret_record = record;
    return STATUS_OK;
}

void artifact_abort(struct artifact *a)
{
    if (a == NULL) {
        return;
    }
    if (a->fd >= 0) {
        if (!a->completed) {
            (void)unlinkat(a->directory_fd, a->temporary, 0);
        }
        (void)close(a->fd);
    }
    if (a->directory_fd >= 0) {
        (void)close(a->directory_fd);
    }
    digest_free(a->digest);
    free(a);
}

void artifact_remove(const struct artifact_store *store, const char *path)
{
    int at = open(store->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (at >= 0) {
        (void)unlinkat(at, path, 0);
        (void)close(at);
    }
}

const char *media_type_of(const char *ending)
{
    static const char *const types[][2] = {
        {"csv", "text/csv; charset=utf-8"},
        {"json", "application/json"},
        {"txt", "text/plain; charset=utf-8"},
        {"html", "text/html; charset=utf-8"},
        {"xml", "application/xml"},
        {"pdf", "application/pdf"},
        {"zip", "application/zip"},
        {"gz", "application/gzip"},
        {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(ending, types[i][0]) == 0) {
            return types[i][1];
        }
    }
    return "application/octet-stream";
}
