#include "migration.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRIPT_BYTES_MAX (4 * 1024 * 1024)

/* "0002_definitions.sql": four digits, an underscore, a name. */
static bool file_is_migration(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < 4; i++) {
        if (!isdigit((unsigned char)name[i])) {
            return false;
        }
    }
    return name[4] == '_' && n > 9 && n < MIGRATION_NAME_MAX && strcmp(name + n - 4, ".sql") == 0;
}

static int by_name(const void *a, const void *b)
{
    const struct migration *x = a;
    const struct migration *y = b;
    return strcmp(x->name, y->name);
}

static void path_of(const char *directory, const struct migration *m, char *path, size_t size)
{
    (void)snprintf(path, size, "%s/%s.sql", directory, m->name);
}

static enum status names_read(DIR *dir, const char *directory, struct migration_set *set,
                              struct error *err)
{
    for (const struct dirent *e = readdir(dir); e != NULL; e = readdir(dir)) {
        if (!file_is_migration(e->d_name)) {
            continue;
        }
        if (set->count == MIGRATIONS_MAX) {
            return error_set(err, STATUS_INVALID, "%s: more than %d migrations", directory,
                             MIGRATIONS_MAX);
        }
        struct migration *m = &set->items[set->count++];
        (void)snprintf(m->name, sizeof m->name, "%.*s", (int)(strlen(e->d_name) - 4), e->d_name);
        m->number = (int)strtol(m->name, NULL, 10);
    }
    qsort(set->items, set->count, sizeof set->items[0], by_name);
    return STATUS_OK;
}

static enum status numbers_check(const char *directory, const struct migration_set *set,
                                 struct error *err)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct migration *m = &set->items[i];
        if (m->number == (int)i + 1) {
            continue;
        }
        if (i > 0 && m->number == set->items[i - 1].number) {
            return error_set(err, STATUS_INVALID,
                             "%s: number %04d is given twice, by %s.sql and %s.sql; rename one",
                             directory, m->number, set->items[i - 1].name, m->name);
        }
        return error_set(err, STATUS_INVALID,
                         "%s: number %04d is missing before %s.sql; is the directory complete?",
                         directory, (int)i + 1, m->name);
    }
    return STATUS_OK;
}

enum status migration_set_read(const char *directory, struct migration_set *ret, struct error *err)
{
    char path[4096];
    DIR *dir = opendir(directory);
    if (dir == NULL) {
        return error_set(err, STATUS_NOT_FOUND,
                         "%s: cannot be read: %s; say where the .sql files are with --dir",
                         directory, strerror(errno));
    }
    memset(ret, 0, sizeof *ret);
    enum status s = names_read(dir, directory, ret, err);
    (void)closedir(dir);
    if (s == STATUS_OK && ret->count == 0) {
        s = error_set(err, STATUS_NOT_FOUND,
                      "%s: holds no migration (0001_name.sql); say where they are with --dir",
                      directory);
    }
    if (s == STATUS_OK) {
        s = numbers_check(directory, ret, err);
    }
    for (size_t i = 0; i < ret->count && s == STATUS_OK; i++) {
        path_of(directory, &ret->items[i], path, sizeof path);
        s = digest_file(path, ret->items[i].checksum, err);
    }
    return s;
}

enum status migration_set_compare(const struct migration_set *files,
                                  const struct migration_set *applied, size_t *ret_first,
                                  struct error *err)
{
    for (size_t i = 0; i < applied->count; i++) {
        const struct migration *a = &applied->items[i];
        if (i >= files->count) {
            return error_set(err, STATUS_CONFLICT,
                             "the database has migration %s, which this version does not know: it "
                             "was made by a newer one; use that one",
                             a->name);
        }
        const struct migration *f = &files->items[i];
        if (a->number != f->number || strcmp(a->name, f->name) != 0) {
            return error_set(err, STATUS_CONFLICT,
                             "the database has migration %s where this version has %s.sql", a->name,
                             f->name);
        }
        if (strcmp(a->checksum, f->checksum) != 0) {
            return error_set(err, STATUS_CONFLICT,
                             "%s.sql was changed after it was applied (SHA-256 %.12s..., applied "
                             "%.12s...); restore it and write the change as a new migration",
                             f->name, f->checksum, a->checksum);
        }
    }
    *ret_first = applied->count;
    return STATUS_OK;
}

int migration_line_at(const char *script, long position)
{
    int line = 1;
    for (long i = 0; i < position && script[i] != '\0'; i++) {
        line += script[i] == '\n' ? 1 : 0;
    }
    return line;
}

static enum status content_take(int fd, const char *path, char **ret_text, struct error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > SCRIPT_BYTES_MAX) {
        return error_set(err, STATUS_INVALID, "%s: is not a file of at most 4 MiB", path);
    }
    size_t size = (size_t)st.st_size;
    char *text = calloc(1, size + 1);
    if (text == NULL) {
        return error_set(err, STATUS_FATAL, "%s: out of memory", path);
    }
    size_t used = 0;
    while (used < size) {
        ssize_t n = read(fd, text + used, size - used);
        if (n > 0) {
            used += (size_t)n;
        } else if (n == 0 || errno != EINTR) {
            break;
        }
    }
    if (used != size || strlen(text) != size) {
        free(text);
        return error_set(err, STATUS_INVALID, "%s: could not be read as text", path);
    }
    *ret_text = text;
    return STATUS_OK;
}

enum status migration_read(const char *directory, const struct migration *m, char **ret_text,
                           struct error *err)
{
    char path[4096];
    char checksum[DIGEST_TEXT_MAX];
    char *text = NULL;
    path_of(directory, m, path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return error_set(err, STATUS_NOT_FOUND, "%s: cannot be read: %s", path, strerror(errno));
    }
    enum status s = content_take(fd, path, &text, err);
    (void)close(fd);
    if (s != STATUS_OK) {
        return s;
    }
    /* What runs is what was recorded: the file may have been replaced since it was listed. */
    if (digest_memory(text, strlen(text), checksum) != STATUS_OK ||
        strcmp(checksum, m->checksum) != 0) {
        free(text);
        return error_set(err, STATUS_INVALID, "%s: changed while it was read; run again", path);
    }
    *ret_text = text;
    return STATUS_OK;
}
