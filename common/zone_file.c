#include "zone_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct zone_entry {
    char name[ZONE_NAME_MAX];
    struct zone *zone; /* NULL until asked for */
};

struct zone_set {
    char directory[ZONE_DIRECTORY_MAX];
    char version[TZDATA_VERSION_MAX];
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

/* The whole of a regular file of at most `max` bytes, with a NUL behind it. */
static enum status file_read(const char *path, size_t max, char **ret_bytes, size_t *ret_size,
                             struct error *err)
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
        s = bytes == NULL ? error_set(err, STATUS_FULL, "out of memory")
                          : bytes_read_all(fd, (size_t)st.st_size, bytes, err);
    }
    (void)close(fd); /* opened for reading: nothing can be lost */
    if (s != STATUS_OK) {
        free(bytes);
        return error_prefix(err, s, "%s", path);
    }
    bytes[st.st_size] = '\0';
    *ret_bytes = bytes;
    *ret_size = (size_t)st.st_size;
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

enum status zone_set_open(const char *directory, struct zone_set **ret_set, struct error *err)
{
    const char *chosen = directory != NULL ? directory : getenv("RS_TZDIR");
    chosen = chosen != NULL && chosen[0] != '\0' ? chosen : ZONE_DIRECTORY_USUAL;
    struct zone_set *set = calloc(1, sizeof *set);
    if (set == NULL) {
        return error_set(err, STATUS_FULL, "time zones: out of memory");
    }
    char path[ZONE_DIRECTORY_MAX + ZONE_NAME_MAX];
    int n = snprintf(set->directory, sizeof set->directory, "%s", chosen);
    if (n < 0 || (size_t)n >= sizeof set->directory) {
        zone_set_close(set);
        return error_set(err, STATUS_INVALID, "the path of the time zone directory is too long");
    }
    (void)snprintf(path, sizeof path, "%s/tzdata.zi", set->directory);
    char *text = NULL;
    size_t size = 0;
    enum status s = file_read(path, ZONE_LIST_MAX_BYTES, &text, &size, err);
    if (s == STATUS_NOT_FOUND) {
        (void)error_prefix(err, s, "no list of time zones (install tzdata, or set RS_TZDIR)");
    } else if (s == STATUS_OK) {
        s = list_parse(set, text, err);
        if (s != STATUS_OK) {
            (void)error_prefix(err, s, "%s", path);
        }
    }
    free(text);
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

static enum status entry_load(const struct zone_set *set, struct zone_entry *e, struct error *err)
{
    char path[ZONE_DIRECTORY_MAX + ZONE_NAME_MAX];
    (void)snprintf(path, sizeof path, "%s/%s", set->directory, e->name);
    char *bytes = NULL;
    size_t size = 0;
    enum status s = file_read(path, ZONE_FILE_MAX_BYTES, &bytes, &size, err);
    if (s == STATUS_NOT_FOUND) {
        return error_prefix(err, s,
                            "time zone %s is listed but not installed (tzdata-legacy has it on "
                            "newer systems)",
                            e->name);
    }
    if (s == STATUS_OK) {
        s = zone_parse(e->name, (const unsigned char *)bytes, size, &e->zone, err);
        if (s != STATUS_OK) {
            (void)error_prefix(err, s, "%s", path);
        }
    }
    free(bytes);
    return s == STATUS_INVALID ? STATUS_CORRUPT : s;
}

enum status zone_set_find(struct zone_set *set, const char *name, const struct zone **ret_zone,
                          struct error *err)
{
    size_t low = 0;
    size_t high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(name, set->entries[middle].name);
        if (order == 0) {
            struct zone_entry *e = &set->entries[middle];
            enum status s = e->zone != NULL ? STATUS_OK : entry_load(set, e, err);
            if (s == STATUS_OK) {
                *ret_zone = e->zone;
            }
            return s;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return name_refuse(set, name, err);
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
