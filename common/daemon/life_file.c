#include "life_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ident.h"

#define PATH_BYTES_MAX 560
#define LOOK_MS        2  /* between two tries for a lock that is held */
#define FD_FLOOR       10 /* above the numbers that a child gets by dup2 */
#define FIRST_LINE     "report life 1"
#define LAST_LINE      "end"

struct life_file {
    char path[PATH_BYTES_MAX];
    int fd; /* of PATH.lock */
};

/* ---- the lock ---- */

static enum status path_build(struct life_file *f, const char *path, const char *ending,
                              char to[PATH_BYTES_MAX], struct error *err)
{
    int n = snprintf(to, PATH_BYTES_MAX, "%s%s", path, ending);
    int m = snprintf(f->path, sizeof f->path, "%s", path);
    return n < 0 || n >= PATH_BYTES_MAX || m < 0
               ? error_set(err, STATUS_INVALID, "%.100s...: the path is too long", path)
               : STATUS_OK;
}

/* Ours alone? Others could otherwise read the secret, or make a living process look dead. */
static enum status owner_check(int fd, const char *path, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        return error_set(err, STATUS_INVALID, "%s: is no regular file; remove it", path);
    }
    if (st.st_uid != geteuid()) {
        return error_set(err, STATUS_INVALID,
                         "%s: belongs to user %ld, and this process runs as user %ld; run it as "
                         "the daemon's user",
                         path, (long)st.st_uid, (long)geteuid());
    }
    if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return error_set(err, STATUS_INVALID,
                         "%s: others may read or change it (mode %04o); run: chmod 600 %s", path,
                         (unsigned)(st.st_mode & 07777), path);
    }
    return STATUS_OK;
}

static enum status lock_missing(const struct life_file *f, const char *lock,
                                enum life_purpose purpose, int reason, struct error *err)
{
    if (reason == ENOENT && purpose == LIFE_PROVE && access(f->path, F_OK) == 0) {
        return error_set(err, STATUS_CORRUPT,
                         "%s: is there, but not its lock file %s: nothing proves that its process "
                         "is dead",
                         f->path, lock);
    }
    if (reason == ENOENT && purpose == LIFE_PROVE) {
        return error_set(err, STATUS_NOT_FOUND, "%s: is not there", f->path);
    }
    if (reason == ELOOP) {
        return error_set(err, STATUS_INVALID, "%s: is a symbolic link; remove it", lock);
    }
    return error_set(err, reason == ENOENT ? STATUS_NOT_FOUND : STATUS_INVALID, "%s: %s", lock,
                     strerror(reason));
}

static enum status lock_open(struct life_file *f, const char *lock, enum life_purpose purpose,
                             struct error *err)
{
    int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK;
    int fd = open(lock, flags | (purpose == LIFE_BEGIN ? O_CREAT : 0), 0600);
    if (fd < 0) {
        return lock_missing(f, lock, purpose, errno, err);
    }
    f->fd = fcntl(fd, F_DUPFD_CLOEXEC, FD_FLOOR);
    (void)close(fd); /* nothing is locked yet */
    return f->fd < 0 ? error_set(err, STATUS_FATAL, "%s: no descriptor for it", lock)
                     : owner_check(f->fd, lock, err);
}

/* The process lock first: who has only that one missing is told of a living process. */
static enum status lock_try(const struct life_file *f, long *ret_pid)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(f->fd, F_SETLK, &whole) != 0) {
        struct flock holder = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        *ret_pid = fcntl(f->fd, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK
                       ? (long)holder.l_pid
                       : 0;
        return STATUS_CONFLICT;
    }
    if (flock(f->fd, LOCK_EX | LOCK_NB) != 0) {
        whole.l_type = F_UNLCK; /* so that another who tries is not taken for the living one */
        (void)fcntl(f->fd, F_SETLK, &whole);
        return STATUS_TIMEOUT;
    }
    return STATUS_OK;
}

static enum status lock_take(const struct life_file *f, const char *lock, instant deadline,
                             struct error *err)
{
    for (;;) {
        long pid = 0;
        enum status s = lock_try(f, &pid);
        instant now = clock_now();
        if (s == STATUS_OK) {
            return s;
        }
        if (instant_before(now, deadline)) {
            (void)poll(NULL, 0, LOOK_MS);
        } else if (s == STATUS_CONFLICT) {
            return error_set(err, s,
                             "%s: process %ld holds it: the daemon, so it lives (one that is "
                             "stopped does too), or another run of this command",
                             lock, pid);
        } else {
            return error_set(
                err, s, "%s: its process is gone, but a program that it started still lives", lock);
        }
    }
}

enum status life_file_take(const char *path, enum life_purpose purpose, instant deadline,
                           struct life_file **ret_file, struct error *err)
{
    char lock[PATH_BYTES_MAX];
    struct life_file *f = calloc(1, sizeof *f);
    if (f == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    f->fd = -1;
    enum status s = path_build(f, path, ".lock", lock, err);
    if (s == STATUS_OK) {
        s = lock_open(f, lock, purpose, err);
    }
    if (s == STATUS_OK) {
        s = lock_take(f, lock, deadline, err);
    }
    if (s != STATUS_OK) {
        life_file_free(f);
        return s;
    }
    *ret_file = f;
    return STATUS_OK;
}

int life_file_fd(const struct life_file *file)
{
    return file->fd;
}

void life_file_free(struct life_file *file)
{
    if (file != NULL) {
        if (file->fd >= 0) {
            (void)close(file->fd);
        }
        free(file);
    }
}

void life_file_remove(struct life_file *file)
{
    (void)unlink(file->path);
}

void life_file_default(const char *name, char *ret_path, size_t size)
{
    const char *directories = getenv("RUNTIME_DIRECTORY");
    size_t n = directories == NULL ? 0 : strcspn(directories, ":");
    ret_path[0] = '\0';
    if (n > 0 && directories[0] == '/' && n + strlen(name) + 2 <= size) {
        (void)snprintf(ret_path, size, "%.*s/%s", (int)n, directories, name);
    }
}

/* ---- what this process is ---- */

/* A small file of the kernel's, without the line's end. */
static bool kernel_read(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    if (fd >= 0) {
        (void)close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return n > 0;
}

/* Field 22 of /proc/self/stat: ticks since the boot. For people who compare it with ps. */
static void start_read(char *text, size_t size)
{
    char stat[1024];
    (void)kernel_read("/proc/self/stat", stat, sizeof stat);
    const char *p = strrchr(stat, ')');
    for (int field = 2; p != NULL && field < 22; field++) {
        p = strchr(p + 1, ' ');
    }
    size_t n = p == NULL ? 0 : strspn(p + 1, "0123456789");
    (void)snprintf(text, size, "%.*s", (int)n, p == NULL ? "" : p + 1);
}

/* An inode that somebody holds open is nobody else's: while the process lives, no other lock file
 * can be taken for its own. */
static void lock_name(const struct life_file *f, char *text, size_t size)
{
    struct stat st = {0};
    (void)fstat(f->fd, &st);
    (void)snprintf(text, size, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
}

/* ---- writing ---- */

static bool is_line(const char *value)
{
    return value[strcspn(value, "\n")] == '\0';
}

static enum status text_build(const struct life_file *f, const struct life_field *fields,
                              size_t count, char text[LIFE_TEXT_MAX], struct error *err)
{
    char boot[64], pid[24], start[24], lock[64];
    (void)boot_id_read(boot, sizeof boot);
    (void)snprintf(pid, sizeof pid, "%ld", (long)getpid());
    start_read(start, sizeof start);
    lock_name(f, lock, sizeof lock);
    const struct life_field own[] = {
        {"lock", lock}, {"boot", boot}, {"pid", pid}, {"start", start}};
    size_t owns = sizeof own / sizeof own[0];
    int n = snprintf(text, LIFE_TEXT_MAX, FIRST_LINE "\n");
    size_t used = (size_t)n;
    bool fits = owns + count <= LIFE_FIELDS_MAX;
    for (size_t i = 0; fits && i < owns + count; i++) {
        const struct life_field *x = i < owns ? &own[i] : &fields[i - owns];
        n = snprintf(text + used, LIFE_TEXT_MAX - used, "%s=%s\n", x->key, x->value);
        fits = is_line(x->value) && n > 0 && (size_t)n < LIFE_TEXT_MAX - used;
        used += fits ? (size_t)n : 0;
    }
    n = snprintf(text + used, LIFE_TEXT_MAX - used, LAST_LINE "\n");
    return fits && n > 0 && (size_t)n < LIFE_TEXT_MAX - used
               ? STATUS_OK
               : error_set(err, STATUS_INVALID, "%s: what is to be written is too long", f->path);
}

static bool write_all(int fd, const char *text, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(fd, text + done, size - done);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

enum status life_file_write(struct life_file *file, const struct life_field *fields, size_t count,
                            struct error *err)
{
    char fresh[PATH_BYTES_MAX + 8];
    char text[LIFE_TEXT_MAX];
    enum status s = text_build(file, fields, count, text, err);
    if (s == STATUS_OK) {
        (void)snprintf(fresh, sizeof fresh, "%s.new", file->path);
        (void)unlink(fresh); /* of one that was killed here; nobody else may, we have the lock */
        int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        bool good = fd >= 0 && write_all(fd, text, strlen(text));
        good = (fd < 0 || close(fd) == 0) && good;
        /* No fsync: after a crash of the machine nothing is asked of it. */
        if (!good || rename(fresh, file->path) != 0) {
            s = error_set(err, STATUS_AGAIN, "%s: cannot be written: %s", file->path,
                          strerror(errno));
        }
    }
    explicit_bzero(text, sizeof text);
    return s;
}

/* ---- reading ---- */

static enum status text_read(const struct life_file *f, char text[LIFE_TEXT_MAX], struct error *err)
{
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return error_set(err, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_INVALID, "%s: %s",
                         f->path, strerror(errno));
    }
    enum status s = owner_check(fd, f->path, err);
    ssize_t n = s == STATUS_OK ? read(fd, text, LIFE_TEXT_MAX - 1) : 0;
    (void)close(fd);
    if (s != STATUS_OK) {
        return s;
    }
    text[n > 0 ? n : 0] = '\0';
    size_t used = strlen(text);
    static const char begin[] = FIRST_LINE "\n";
    static const char end[] = "\n" LAST_LINE "\n";
    bool whole = n > 0 && used == (size_t)n && strncmp(text, begin, sizeof begin - 1) == 0 &&
                 used > sizeof end && strcmp(text + used - (sizeof end - 1), end) == 0;
    return whole ? STATUS_OK
                 : error_set(err, STATUS_CORRUPT, "%s: is not what a daemon writes; remove it",
                             f->path);
}

static enum status lines_split(const struct life_file *f, struct life_record *r, struct error *err)
{
    char *next = NULL;
    r->count = 0;
    (void)strtok_r(r->text, "\n", &next); /* FIRST_LINE */
    for (char *line = strtok_r(NULL, "\n", &next); line != NULL && strcmp(line, LAST_LINE) != 0;
         line = strtok_r(NULL, "\n", &next)) {
        char *equals = strchr(line, '=');
        if (equals == NULL || r->count == LIFE_FIELDS_MAX) {
            return error_set(err, STATUS_CORRUPT,
                             "%s: has a line that is not key=value, or too many; remove it",
                             f->path);
        }
        *equals = '\0';
        r->lines[r->count].key = line;
        r->lines[r->count].value = equals + 1;
        r->count++;
    }
    return STATUS_OK;
}

static enum status origin_check(const struct life_file *f, const struct life_record *r,
                                struct error *err)
{
    char boot[64], lock[64];
    const char *its_boot = life_record_get(r, "boot");
    const char *its_lock = life_record_get(r, "lock");
    lock_name(f, lock, sizeof lock);
    if (its_boot == NULL || its_lock == NULL || !boot_id_read(boot, sizeof boot)) {
        return error_set(err, STATUS_CORRUPT, "%s: does not say who wrote it; remove it", f->path);
    }
    if (strcmp(its_boot, boot) != 0) {
        return error_set(err, STATUS_NOT_FOUND,
                         "%s: was written in another boot (or on another host)", f->path);
    }
    if (strcmp(its_lock, lock) != 0) {
        return error_set(err, STATUS_CORRUPT,
                         "%s: was written under another lock file than %s.lock, so nothing proves "
                         "that its process is dead",
                         f->path, f->path);
    }
    return STATUS_OK;
}

enum status life_file_read(const struct life_file *file, struct life_record *ret_record,
                           struct error *err)
{
    enum status s = text_read(file, ret_record->text, err);
    if (s == STATUS_OK) {
        s = lines_split(file, ret_record, err);
    }
    if (s == STATUS_OK) {
        s = origin_check(file, ret_record, err);
    }
    if (s != STATUS_OK) {
        life_record_wipe(ret_record);
    }
    return s;
}

const char *life_record_get(const struct life_record *record, const char *key)
{
    for (size_t i = 0; i < record->count; i++) {
        if (strcmp(record->lines[i].key, key) == 0) {
            return record->lines[i].value;
        }
    }
    return NULL;
}

void life_record_wipe(struct life_record *record)
{
    explicit_bzero(record, sizeof *record);
}
