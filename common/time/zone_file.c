#include "zone_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "digest.h"

struct zone_entry {
    char name[ZONE_NAME_MAX];
    struct zone *zone; /* NULL until asked for */
    char digest[ZONE_DIGEST_MAX];
    uint64_t mark; /* of the file that was looked at last, also when it was no good */
    char *fault;   /* why that file was not taken; NULL: it was */
};

struct zone_set {
    char directory[ZONE_DIRECTORY_MAX];
    char root[PATH_MAX]; /* the same without symbolic links */
    char version[TZDATA_VERSION_MAX];
    uint64_t list_mark;
    size_t count;
    struct zone_entry entries[ZONE_SET_MAX]; /* in strcmp order */
};

static enum status bytes_read_all(int fd, size_t size, char *to, struct error *err)
{
    for (size_t got = 0; got < size;) {
        ssize_t n = read(fd, to + got, size - got);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return error_set(err, STATUS_NOT_FOUND, "it could not be read: %s",
                             n < 0 ? strerror(errno) : "it shrank while it was read");
        }
        got += (size_t)n;
    }
    return STATUS_OK;
}

/* Which file stands at a path: by what a package or an editor cannot leave as it was. 0: none. */
static uint64_t mark_of(const struct stat *st)
{
    const uint64_t facts[] = {
        (uint64_t)st->st_dev,          (uint64_t)st->st_ino,          (uint64_t)st->st_size,
        (uint64_t)st->st_mtim.tv_sec,  (uint64_t)st->st_mtim.tv_nsec, (uint64_t)st->st_ctim.tv_sec,
        (uint64_t)st->st_ctim.tv_nsec,
    };
    uint64_t mark = 1469598103934665603U; /* FNV-1a, a word at a time */
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++) {
        mark = (mark ^ facts[i]) * 1099511628211U;
    }
    return mark != 0 ? mark : 1;
}

static uint64_t mark_at(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? mark_of(&st) : 0;
}

struct file {
    char *bytes; /* with a NUL behind them */
    size_t size;
    uint64_t mark;
};

/* The whole of a regular file of at most `max` bytes. */
static enum status file_read(const char *path, size_t max, struct file *ret_file, struct error *err)
{
    /* O_NONBLOCK: a FIFO or device in the place of a zone must not hang the opener. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return error_set(err, STATUS_NOT_FOUND, "%s: %s", path, strerror(errno));
    }
    struct stat st;
    enum status s = STATUS_OK;
    char *bytes = NULL;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size < 0 ||
        (uint64_t)st.st_size > max) {
        s = error_set(err, STATUS_INVALID, "it is not a regular file of at most %zu bytes", max);
    } else {
        bytes = malloc((size_t)st.st_size + 1);
        s = bytes == NULL ? error_set(err, STATUS_FATAL, "out of memory")
                          : bytes_read_all(fd, (size_t)st.st_size, bytes, err);
    }
    (void)close(fd); /* opened for reading: nothing can be lost */
    if (s != STATUS_OK) {
        free(bytes);
        return error_prefix(err, s, "%s", path);
    }
    bytes[st.st_size] = '\0';
    *ret_file = (struct file){.bytes = bytes, .size = (size_t)st.st_size, .mark = mark_of(&st)};
    return STATUS_OK;
}

/* Names that are in some lists or directories but are no place's time. */
static bool name_is_reserved(const char *name)
{
    return strncmp(name, "right/", 6) == 0 || strncmp(name, "posix/", 6) == 0 ||
           strcmp(name, "localtime") == 0 || strcmp(name, "posixrules") == 0 ||
           strcmp(name, "Factory") == 0;
}

/* Fit to be part of a path below the directory. */
static bool name_is_safe(const char *name)
{
    const char *allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";
    size_t n = strlen(name);
    return n > 0 && n < ZONE_NAME_MAX && name[0] != '/' && strspn(name, allowed) == n;
}

/* The n-th blank-separated word of a line, n from 0; its length is 0 when there are fewer. */
static size_t word_of(const char *line, size_t length, int n, const char **ret_word)
{
    size_t at = 0;
    for (;; n--) {
        while (at < length && (line[at] == ' ' || line[at] == '\t')) {
            at++;
        }
        size_t start = at;
        while (at < length && line[at] != ' ' && line[at] != '\t') {
            at++;
        }
        if (n == 0 || at == length) {
            *ret_word = line + start;
            return n == 0 ? at - start : 0;
        }
    }
}

/* "Z NAME ..." defines a zone, "L TARGET NAME" a link; both words may be written in full. */
static bool list_take_line(struct zone_set *set, const char *line, size_t length)
{
    const char *word;
    size_t n = word_of(line, length, 0, &word);
    bool zone = (n == 1 && *word == 'Z') || (n == 4 && memcmp(word, "Zone", 4) == 0);
    bool link = (n == 1 && *word == 'L') || (n == 4 && memcmp(word, "Link", 4) == 0);
    if (!zone && !link) {
        return true;
    }
    n = word_of(line, length, zone ? 1 : 2, &word);
    if (n == 0 || n >= ZONE_NAME_MAX || set->count == ZONE_SET_MAX) {
        return false;
    }
    struct zone_entry *e = &set->entries[set->count];
    memcpy(e->name, word, n);
    e->name[n] = '\0';
    if (!name_is_safe(e->name) || name_is_reserved(e->name)) {
        memset(e->name, 0, sizeof e->name);
        return true;
    }
    set->count++;
    return true;
}

static int entry_compare(const void *a, const void *b)
{
    return strcmp(((const struct zone_entry *)a)->name, ((const struct zone_entry *)b)->name);
}

static enum status list_parse(struct zone_set *set, const char *text, struct error *err)
{
    const char *mark = "# version ";
    if (strncmp(text, mark, strlen(mark)) == 0) {
        const char *version = text + strlen(mark);
        size_t n = strcspn(version, " \t\r\n");
        if (n < sizeof set->version) {
            memcpy(set->version, version, n);
        }
    }
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        if (!list_take_line(set, text, length)) {
            return error_set(err, STATUS_INVALID, "it is not a list of time zones: \"%.*s\"",
                             (int)(length < 60 ? length : 60), text);
        }
        text += length + (text[length] == '\n' ? 1 : 0);
    }
    if (set->count == 0) {
        return error_set(err, STATUS_INVALID, "it lists no time zone");
    }
    qsort(set->entries, set->count, sizeof set->entries[0], entry_compare);
    return STATUS_OK;
}

static enum status list_load(struct zone_set *set, struct error *err)
{
    char path[ZONE_DIRECTORY_MAX + ZONE_NAME_MAX];
    struct file list = {.bytes = NULL};
    (void)snprintf(path, sizeof path, "%s/tzdata.zi", set->directory);
    enum status s = file_read(path, ZONE_LIST_MAX_BYTES, &list, err);
    if (s == STATUS_NOT_FOUND) {
        return error_prefix(err, s, "no list of time zones (install tzdata, or set RS_TZDIR)");
    }
    if (s == STATUS_OK) {
        set->list_mark = list.mark;
        s = list_parse(set, list.bytes, err);
        if (s != STATUS_OK) {
            (void)error_prefix(err, s, "%s", path);
        }
    }
    free(list.bytes);
    return s;
}

enum status zone_set_open(const char *directory, struct zone_set **ret_set, struct error *err)
{
    const char *chosen = directory != NULL ? directory : getenv("RS_TZDIR");
    chosen = chosen != NULL && chosen[0] != '\0' ? chosen : ZONE_DIRECTORY_USUAL;
    struct zone_set *set = calloc(1, sizeof *set);
    if (set == NULL) {
        return error_set(err, STATUS_FATAL, "time zones: out of memory");
    }
    int n = snprintf(set->directory, sizeof set->directory, "%s", chosen);
    if (n < 0 || (size_t)n >= sizeof set->directory) {
        zone_set_close(set);
        return error_set(err, STATUS_INVALID, "the path of the time zone directory is too long");
    }
    enum status s = list_load(set, err);
    if (s == STATUS_OK) {
        if (realpath(set->directory, set->root) == NULL) {
            s = error_set(err, STATUS_NOT_FOUND, "%s: %s", set->directory, strerror(errno));
        }
    }
    if (s != STATUS_OK) {
        zone_set_close(set);
        return s;
    }
    *ret_set = set;
    return STATUS_OK;
}

void zone_set_close(struct zone_set *set)
{
    if (set == NULL) {
        return;
    }
    for (size_t i = 0; i < set->count; i++) {
        zone_free(set->entries[i].zone);
        free(set->entries[i].fault);
    }
    free(set);
}

/* Letters of either case are alike, and a blank is the underscore people forget. */
static bool name_is_near(const char *listed, const char *written)
{
    for (; *listed != '\0' && *written != '\0'; listed++, written++) {
        char a = *listed >= 'A' && *listed <= 'Z' ? (char)(*listed - 'A' + 'a') : *listed;
        char b = *written >= 'A' && *written <= 'Z' ? (char)(*written - 'A' + 'a') : *written;
        if (a != (b == ' ' ? '_' : b)) {
            return false;
        }
    }
    return *listed == *written;
}

static enum status name_refuse(const struct zone_set *set, const char *name, struct error *err)
{
    char shown[ZONE_NAME_MAX];
    size_t n = 0;
    for (; n < sizeof shown - 1 && name[n] != '\0'; n++) {
        bool printable = name[n] >= ' ' && name[n] <= '~';
        shown[n] = printable ? name[n] : '?';
    }
    shown[n] = '\0';
    for (size_t i = 0; i < set->count; i++) {
        if (name_is_near(set->entries[i].name, name)) {
            return error_set(err, STATUS_INVALID, "unknown time zone \"%s\"; write \"%s\"", shown,
                             set->entries[i].name);
        }
    }
    return error_set(err, STATUS_INVALID,
                     "unknown time zone \"%s\"; write a name of the IANA list, such as "
                     "Europe/Berlin or UTC (tzdata %s in %s)",
                     shown, set->version, set->directory);
}

static void entry_path(const struct zone_set *set, const char *name,
                       char ret_path[ZONE_DIRECTORY_MAX + ZONE_NAME_MAX])
{
    (void)snprintf(ret_path, ZONE_DIRECTORY_MAX + ZONE_NAME_MAX, "%s/%s", set->directory, name);
}

/* A listed name may be a symbolic link to another, and nothing else: what lies elsewhere is not
 * part of the data that the list's version names, and is not watched. */
static enum status path_confine(const struct zone_set *set, const char *path, struct error *err)
{
    size_t n = strlen(set->root);
    char real[PATH_MAX];
    if (realpath(path, real) == NULL) {
        return error_set(err, STATUS_NOT_FOUND, "%s: %s", path, strerror(errno));
    }
    if (strncmp(real, set->root, n) != 0 || (real[n] != '/' && n > 1)) {
        return error_set(err, STATUS_INVALID,
                         "%s: it is a symbolic link out of the directory, to %s; copy the file",
                         path, real);
    }
    return STATUS_OK;
}

/* The entry is changed after OK only. */
static enum status entry_load(const struct zone_set *set, struct zone_entry *e, struct error *err)
{
    char path[ZONE_DIRECTORY_MAX + ZONE_NAME_MAX];
    char digest[DIGEST_TEXT_MAX];
    struct file file = {.bytes = NULL};
    struct zone *zone = NULL;
    entry_path(set, e->name, path);
    enum status s = path_confine(set, path, err);
    if (s == STATUS_OK) {
        s = file_read(path, ZONE_FILE_MAX_BYTES, &file, err);
    }
    if (s == STATUS_NOT_FOUND) {
        return error_prefix(err, s,
                            "time zone %s is listed but not installed (tzdata-legacy has it on "
                            "newer systems)",
                            e->name);
    }
    if (s == STATUS_OK) {
        s = zone_parse(e->name, (const unsigned char *)file.bytes, file.size, &zone, err);
        if (s == STATUS_OK) {
            s = digest_memory(file.bytes, file.size, digest);
        }
        if (s != STATUS_OK) {
            (void)error_prefix(err, s, "%s", path);
        }
    }
    if (s == STATUS_OK) {
        e->zone = zone;
        e->mark = file.mark;
        memcpy(e->digest, digest, sizeof e->digest - 1);
    } else {
        zone_free(zone);
    }
    free(file.bytes);
    return s == STATUS_INVALID ? STATUS_CORRUPT : s;
}

static struct zone_entry *entry_find(struct zone_set *set, const char *name)
{
    size_t low = 0;
    size_t high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, set->entries[middle].name);
        if (order == 0) {
            return &set->entries[middle];
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return NULL;
}

enum status zone_set_find(struct zone_set *set, const char *name, const struct zone **ret_zone,
                          struct error *err)
{
    struct zone_entry *e = entry_find(set, name);
    if (e == NULL) {
        return name_refuse(set, name, err);
    }
    enum status s = e->zone != NULL ? STATUS_OK : entry_load(set, e, err);
    if (s == STATUS_OK) {
        *ret_zone = e->zone;
    }
    return s;
}

const char *zone_set_digest(struct zone_set *set, const char *name)
{
    static const char unread[ZONE_DIGEST_MAX] = "";
    const struct zone_entry *e = entry_find(set, name);
    return e != NULL && e->zone != NULL ? e->digest : unread;
}

bool zone_set_is_current(const struct zone_set *set, uint64_t *ret_mark)
{
    char path[ZONE_DIRECTORY_MAX + ZONE_NAME_MAX];
    entry_path(set, "tzdata.zi", path);
    uint64_t mark = mark_at(path);
    bool current = mark == set->list_mark;
    uint64_t all = mark;
    for (size_t i = 0; i < set->count; i++) {
        const struct zone_entry *e = &set->entries[i];
        if (e->zone != NULL) {
            entry_path(set, e->name, path);
            mark = mark_at(path);
            current = current && mark == e->mark;
            all = (all ^ mark) * 1099511628211U;
        }
    }
    *ret_mark = all;
    return current;
}

/* What the present file has is no good, or there is none, or no such name: the old table goes on
 * counting. */
static bool entry_keep(struct zone_set *set, struct zone_entry *old, const struct error *why)
{
    char path[ZONE_DIRECTORY_MAX + ZONE_NAME_MAX];
    struct zone_entry *e = entry_find(set, old->name);
    if (e == NULL) {
        if (set->count == ZONE_SET_MAX) {
            return false;
        }
        e = &set->entries[set->count];
        memset(e, 0, sizeof *e);
        memcpy(e->name, old->name, sizeof e->name);
    }
    entry_path(set, old->name, path);
    char *fault = strdup(why->text);
    if (fault == NULL) {
        return false;
    }
    e->fault = fault;
    e->mark = mark_at(path);
    memcpy(e->digest, old->digest, sizeof e->digest);
    e->zone = old->zone;
    old->zone = NULL;
    if (e == &set->entries[set->count]) {
        set->count++;
        qsort(set->entries, set->count, sizeof set->entries[0], entry_compare);
    }
    return true;
}

enum status zone_set_reload(struct zone_set *old, struct zone_set **ret_set, struct error *err)
{
    struct zone_set *set = NULL;
    struct error why = {.text = ""};
    enum status s = zone_set_open(old->directory, &set, err);
    /* Those that fail come last: nothing is taken from the old set before all else is well. */
    for (int keep = 0; s == STATUS_OK && keep < 2; keep++) {
        for (size_t i = 0; s == STATUS_OK && i < old->count; i++) {
            struct zone_entry *was = &old->entries[i];
            const struct zone *zone = NULL;
            enum status found =
                was->zone == NULL ? STATUS_OK : zone_set_find(set, was->name, &zone, &why);
            if (found == STATUS_FATAL) {
                s = error_set(err, STATUS_FATAL, "time zones: out of memory");
            } else if (found != STATUS_OK && keep == 1 && !entry_keep(set, was, &why)) {
                s = error_set(err, STATUS_FATAL, "time zones: out of memory");
            }
        }
    }
    if (s != STATUS_OK) {
        zone_set_close(set);
        return s;
    }
    *ret_set = set;
    return STATUS_OK;
}

struct zone_facts zone_set_facts(const struct zone_set *set, size_t index)
{
    const struct zone_entry *e = &set->entries[index];
    return (struct zone_facts){.name = e->name,
                               .zone = e->zone,
                               .digest = e->digest,
                               .fault = e->fault != NULL ? e->fault : ""};
}

bool tzdata_is_newer(const char *tzdata, const char *than)
{
    return strcmp(tzdata, than) > 0;
}

const char *zone_set_version(const struct zone_set *set)
{
    return set->version;
}

size_t zone_set_count(const struct zone_set *set)
{
    return set->count;
}

const char *zone_set_name(const struct zone_set *set, size_t index)
{
    return set->entries[index].name;
}
