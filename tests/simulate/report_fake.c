/* What workers work on: the data source (worker/report/source.h) and the artifact store
 * (worker/artifact/artifact.h, artifact_sweep.h) in memory. A query takes its time and can be
 * stopped in it.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "artifact.h"
#include "artifact_health.h"
#include "artifact_sweep.h"
#include "report_fake.h"
#include "source.h"
#include "store_claim.h"
#include "world.h"

#define FILES_MAX 4096

struct file {
    bool there;
    char job[UUID_TEXT_MAX], token[UUID_TEXT_MAX];
    char path[128];
};
static struct file files[FILES_MAX];
static size_t file_count;

void report_reset(void)
{
    file_count = 0;
}

/* ---- The data source ---- */

struct source {
    int fd;
    bool broken, running;
    uint64_t job, token;
    int rows_left;
    struct source_column column;
    struct source_cell cell;
};

enum status source_open(const struct source_options *options, const struct source_wait *wait,
                        struct source **ret_source, struct error *err)
{
    (void)options;
    (void)wait;
    (void)err;
    struct source *s = calloc(1, sizeof *s);
    if (s == NULL) {
        abort();
    }
    (void)fiber_wait(kernel_now() + chance_in(kernel_chance(), 500, 3000) * KERNEL_US);
    s->fd = kernel_fd_open(process_current());
    *ret_source = s;
    return STATUS_OK;
}

void source_close(struct source *s)
{
    if (s != NULL) {
        kernel_fd_close(s->fd);
        free(s);
    }
}

/* How long a query runs: mostly short, now and then longer than a claim's lease. */
static int64_t query_ns(void)
{
    int64_t lease = world.setup.claim_lease_us * KERNEL_US;
    int64_t die = chance_in(kernel_chance(), 0, 99);
    return die < 70   ? chance_in(kernel_chance(), 2, 400) * KERNEL_MS
           : die < 95 ? chance_in(kernel_chance(), 400, 3000) * KERNEL_MS
                      : lease + chance_in(kernel_chance(), 0, 4000) * KERNEL_MS;
}

static enum status query_wait(struct source *s, const struct source_wait *wait, int64_t ns,
                              struct error *err)
{
    struct process *p = process_current();
    struct pollfd fds[2] = {{.fd = wait->wake_fd, .events = POLLIN},
                            {.fd = s->fd, .events = POLLIN}};
    instant now = clock_now();
    instant end = instant_min((instant){now.ns + ns}, wait->deadline);
    (void)p;
    int ready = poll(fds, 2, instant_poll_timeout(now, end));
    if (kernel_fd_is_raised(s->fd)) {
        s->broken = true;
        return error_set(err, STATUS_AGAIN, "the connection was cut");
    }
    if (ready > 0 || !instant_before(clock_now(), wait->deadline)) {
        return error_set(err, STATUS_TIMEOUT, "stopped");
    }
    return STATUS_OK;
}

enum status source_query(struct source *s, const struct job *job, const struct source_wait *wait,
                         struct error *err)
{
    /* The snapshot is begun first: whoever was stopped or cut by then sends no query. */
    enum status status = query_wait(s, wait, chance_in(kernel_chance(), 100, 900) * KERNEL_US, err);
    if (status != STATUS_OK) {
        return status;
    }
    s->job = world_identity(job->id);
    s->token = world_identity(job->token);
    s->running = true;
    s->rows_left = 2;
    world_own_fact((struct fact){.kind = FACT_RUN_BEGUN, .job = s->job, .token = s->token});
    status = query_wait(s, wait, query_ns(), err);
    if (status == STATUS_OK && chance_hits(kernel_chance(), 30)) {
        return error_set(err, STATUS_AGAIN, "the data source failed");
    }
    return status;
}

size_t source_columns(const struct source *s, const struct source_column **ret_columns)
{
    *ret_columns = &s->column;
    ((struct source *)(uintptr_t)s)->column.name = "column";
    return 1;
}

enum status source_next(struct source *s, const struct source_wait *wait,
                        const struct source_cell **ret_cells, struct error *err)
{
    if (s->rows_left-- <= 0) {
        return STATUS_NOT_FOUND;
    }
    s->cell = (struct source_cell){.text = "1", .size = 1};
    *ret_cells = &s->cell;
    return query_wait(s, wait, KERNEL_MS, err);
}

void source_end(struct source *s)
{
    if (s->running) {
        s->running = false;
        world_own_fact((struct fact){.kind = FACT_RUN_ENDED, .job = s->job, .token = s->token});
    }
}

bool source_is_broken(const struct source *s)
{
    return s->broken;
}

int source_fd(const struct source *s)
{
    return s->fd;
}

bool source_failure_is_retryable(enum status s, const char *sqlstate)
{
    (void)sqlstate;
    return s != STATUS_INVALID && s != STATUS_NOT_FOUND;
}

/* ---- Artifacts ---- */

struct artifact {
    const struct artifact_store *store;
    char job[UUID_TEXT_MAX], token[UUID_TEXT_MAX];
    int64_t size;
};

enum status artifact_create(const struct artifact_store *store, const char *installation,
                            const struct job *job, struct artifact **ret_artifact,
                            struct error *err)
{
    (void)installation;
    (void)err;
    struct artifact *a = calloc(1, sizeof *a);
    if (a == NULL) {
        abort();
    }
    a->store = store;
    memcpy(a->job, job->id, sizeof a->job);
    memcpy(a->token, job->token, sizeof a->token);
    *ret_artifact = a;
    return STATUS_OK;
}

enum status artifact_write(struct artifact *a, const void *data, size_t size, struct error *err)
{
    (void)data;
    (void)err;
    a->size += (int64_t)size;
    return STATUS_OK;
}

enum status artifact_complete(struct artifact *a, const char *ending,
                              struct artifact_record *ret_record, struct error *err)
{
    (void)err;
    (void)fiber_wait(kernel_now() + chance_in(kernel_chance(), 200, 5000) * KERNEL_US);
    *ret_record = (struct artifact_record){.size_bytes = a->size};
    (void)snprintf(ret_record->store, sizeof ret_record->store, "%s", a->store->name);
    (void)snprintf(ret_record->path, sizeof ret_record->path, "%s.%s.%.8s", a->job, a->token,
                   ending);
    (void)snprintf(ret_record->media_type, sizeof ret_record->media_type, "text/csv");
    (void)snprintf(ret_record->sha256, sizeof ret_record->sha256, "%064d", 0);
    if (file_count < FILES_MAX) {
        struct file *f = &files[file_count++];
        *f = (struct file){.there = true};
        memcpy(f->job, a->job, sizeof f->job);
        memcpy(f->token, a->token, sizeof f->token);
        (void)snprintf(f->path, sizeof f->path, "%.120s", ret_record->path);
    }
    return STATUS_OK;
}

int64_t artifact_size(const struct artifact *a)
{
    return a->size;
}

void artifact_abort(struct artifact *a)
{
    free(a);
}

static void file_remove(struct file *f)
{
    f->there = false;
    world_file_gone(f->path);
}

void artifact_remove(const struct artifact_store *store, const char *path)
{
    (void)store;
    for (size_t i = 0; i < file_count; i++) {
        if (files[i].there && strcmp(files[i].path, path) == 0) {
            file_remove(&files[i]);
        }
    }
}

const char *media_type_of(const char *ending)
{
    (void)ending;
    return "text/csv";
}

bool report_file_is_there(const char *path)
{
    for (size_t i = 0; i < file_count; i++) {
        if (files[i].there && strcmp(files[i].path, path) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- The sweep ---- */

#define SWEEP_STEP 100

struct sweep {
    size_t next;
};

struct sweep *sweep_begin(const struct artifact_store *store, const char *installation)
{
    (void)store;
    (void)installation;
    return calloc(1, sizeof(struct sweep));
}

void sweep_end(struct sweep *s)
{
    free(s);
}

enum status sweep_step(struct sweep *s, struct store *store, instant deadline,
                       struct sweep_counts *counts, struct error *err)
{
    struct artifact_file *list = calloc(SWEEP_STEP, sizeof *list);
    size_t at[SWEEP_STEP];
    size_t n = 0;
    for (; s->next < file_count && n < SWEEP_STEP; s->next++) {
        const struct file *f = &files[s->next];
        if (f->there) {
            memcpy(list[n].job_id, f->job, sizeof f->job);
            memcpy(list[n].token, f->token, sizeof f->token);
            (void)snprintf(list[n].path, sizeof list[n].path, "%s", f->path);
            at[n++] = s->next;
        }
    }
    enum status status =
        n == 0 ? STATUS_NOT_FOUND : store_unreferenced(store, list, n, deadline, err);
    for (size_t i = 0; status == STATUS_OK && i < n; i++) {
        counts->seen++;
        if (list[i].removable && files[at[i]].there) {
            file_remove(&files[at[i]]);
            counts->removed++;
        }
    }
    free(list);
    return status;
}

void artifact_health_refused(const struct artifact_store *store, const char *text)
{
    (void)store;
    (void)text;
}

void artifact_health_works(const struct artifact_store *store)
{
    (void)store;
}

void artifact_health_look(const struct artifact_store *store)
{
    (void)store;
}

bool artifact_health_is_good(struct error *ret_why)
{
    (void)ret_why;
    return true;
}
