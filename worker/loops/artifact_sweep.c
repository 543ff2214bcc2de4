#include "artifact_sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store_claim.h"

#define LEVELS     4   /* installation, scope, schedule, key */
#define STEP_FILES 100 /* a step, and the rows of its one question */

struct sweep {
    const struct artifact_store *store;
    DIR *open[LEVELS];
    size_t depth;                             /* open directories; 0: the walk is over */
    char path[LEVELS + 1][ARTIFACT_PATH_MAX]; /* of open[i], within the store */
    struct artifact_file files[STEP_FILES];
};

static DIR *directory_open(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (d == NULL && fd >= 0) {
        (void)close(fd);
    }
    return d;
}

struct sweep *sweep_begin(const struct artifact_store *store, const char *installation)
{
    struct sweep *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    s->store = store;
    int root = open(store->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root >= 0) {
        s->open[0] = directory_open(root, installation);
        s->depth = s->open[0] == NULL ? 0 : 1;
        (void)snprintf(s->path[0], sizeof s->path[0], "%s", installation);
        (void)close(root);
    }
    return s;
}

void sweep_end(struct sweep *s)
{
    if (s == NULL) {
        return;
    }
    while (s->depth > 0) {
        (void)closedir(s->open[--s->depth]);
    }
    free(s);
}

/* Into *to: parent "/" name. False when it does not fit: no file of ours is that deep. */
static bool path_join(char to[ARTIFACT_PATH_MAX], const char *parent, const char *name)
{
    size_t n = strlen(parent);
    size_t m = strlen(name);
    if (n + m + 2 > ARTIFACT_PATH_MAX) {
        return false;
    }
    memcpy(to, parent, n);
    to[n] = '/';
    memcpy(to + n + 1, name, m + 1);
    return true;
}

static void descend(struct sweep *s, const char *name)
{
    DIR *d = directory_open(dirfd(s->open[s->depth - 1]), name);
    if (d != NULL && !path_join(s->path[s->depth], s->path[s->depth - 1], name)) {
        (void)closedir(d);
        d = NULL;
    }
    if (d != NULL) {
        s->open[s->depth++] = d;
    }
}

/* The next artifact file of the walk. */
static bool file_next(struct sweep *s, struct artifact_file *ret_file, struct sweep_counts *counts)
{
    while (s->depth > 0) {
        const struct dirent *e = readdir(s->open[s->depth - 1]);
        bool temporary = false;
        if (e == NULL) {
            (void)closedir(s->open[--s->depth]);
        } else if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
            continue;
        } else if (s->depth < LEVELS) {
            descend(s, e->d_name);
        } else if (artifact_name_parse(e->d_name, ret_file->job_id, ret_file->token, &temporary) &&
                   path_join(ret_file->path, s->path[s->depth - 1], e->d_name)) {
            return true;
        } else {
            counts->foreign++;
        }
    }
    return false;
}

enum status sweep_step(struct sweep *s, struct store *db, instant deadline,
                       struct sweep_counts *counts, struct error *err)
{
    size_t n = 0;
    while (n < STEP_FILES && file_next(s, &s->files[n], counts)) {
        n++;
    }
    if (n == 0) {
        return STATUS_NOT_FOUND;
    }
    enum status status = store_unreferenced(db, s->files, n, deadline, err);
    if (status != STATUS_OK) {
        return status;
    }
    counts->seen += n;
    for (size_t i = 0; i < n; i++) {
        if (s->files[i].removable) {
            artifact_remove(s->store, s->files[i].path);
            counts->removed++;
        }
    }
    return STATUS_OK;
}
