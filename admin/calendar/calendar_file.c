#include "calendar_file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calendar_csv.h"
#include "calendar_ics.h"
#include "ident.h"
#include "nearest.h"
#include "version.h"

#define SHIPPED_MAX 256 /* files of a directory that are looked at */

static bool text_ends(const char *text, const char *ending)
{
    size_t n = strlen(text);
    size_t m = strlen(ending);
    return n > m && strcmp(text + n - m, ending) == 0;
}

bool calendar_word_is_path(const char *word)
{
    return strchr(word, '/') != NULL || text_ends(word, ".csv") || text_ends(word, ".ics");
}

/* Up to one byte more than is allowed, so that the parser sees that there is more. */
static enum status bytes_read(const char *path, char **ret_bytes, size_t *ret_size,
                              struct error *err)
{
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return error_set(err, STATUS_INVALID, "%s cannot be opened: %s", path, strerror(errno));
    }
    char *bytes = malloc(CALENDAR_FILE_MAX_BYTES + 1);
    if (bytes == NULL) {
        (void)fclose(f);
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    errno = 0;
    size_t size = fread(bytes, 1, CALENDAR_FILE_MAX_BYTES + 1, f);
    bool failed = ferror(f) != 0;
    int cause = errno;
    (void)fclose(f);
    if (failed) {
        free(bytes);
        return error_set(err, STATUS_INVALID, "%s cannot be read: %s", path, strerror(cause));
    }
    *ret_bytes = bytes;
    *ret_size = size;
    return STATUS_OK;
}

static enum status path_read(const char *path, struct calendar_definition *d, struct error *err)
{
    char *bytes = NULL;
    struct calendar_source source = {.file = path};
    enum status s = bytes_read(path, &bytes, &source.size, err);
    if (s != STATUS_OK) {
        return s;
    }
    source.text = bytes;
    s = text_ends(path, ".ics") ? calendar_ics_parse(&source, d, err)
                                : calendar_csv_parse(&source, d, err);
    free(bytes);
    return s;
}

/* ---- shipped calendars ---- */

/* A directory as seen from the program's own; false: it cannot be said. */
static bool beside_program(const char *there, char ret_path[CALENDAR_PATH_MAX])
{
    ssize_t size = readlink("/proc/self/exe", ret_path, CALENDAR_PATH_MAX - 1);
    if (size <= 0) {
        return false;
    }
    ret_path[size] = '\0';
    char *slash = strrchr(ret_path, '/');
    size_t room = slash != NULL ? CALENDAR_PATH_MAX - (size_t)(slash - ret_path) : 0;
    return slash != NULL && (size_t)snprintf(slash, room, "%s", there) < room;
}

/* The n-th place to look in, "" if it cannot be said; false: there are no more. A build tree has
 * the calendars beside the program, and an older installation must not win over it; a program that
 * was installed into another root finds those that came with it. */
static bool directory_get(int n, char ret_path[CALENDAR_PATH_MAX])
{
    static const char *const beside[] = {"/calendars", "/../share/report-scheduler/calendars"};
    const char *environment = getenv("REPORTCTL_CALENDAR_DIR");
    bool told = environment != NULL && environment[0] != '\0';
    ret_path[0] = '\0';
    if (told || n == 2) {
        (void)snprintf(ret_path, CALENDAR_PATH_MAX, "%s",
                       told ? environment : RS_DATA_DIR "/calendars");
        return told ? n == 0 : true;
    }
    if (n < 2 && !beside_program(beside[n], ret_path)) {
        ret_path[0] = '\0';
    }
    return n < 2;
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The names of the shipped calendars, in order; returns how many there are. */
static size_t shipped_names(char known[SHIPPED_MAX][NAME_MAX_BYTES])
{
    char path[CALENDAR_PATH_MAX];
    size_t count = 0;
    for (int n = 0; count == 0 && directory_get(n, path); n++) {
        DIR *directory = path[0] != '\0' ? opendir(path) : NULL;
        struct dirent *entry = NULL;
        while (directory != NULL && count < SHIPPED_MAX && (entry = readdir(directory)) != NULL) {
            size_t length = strlen(entry->d_name);
            if (text_ends(entry->d_name, ".csv") && length - 4 < NAME_MAX_BYTES) {
                (void)snprintf(known[count], NAME_MAX_BYTES, "%.*s", (int)(length - 4),
                               entry->d_name);
                count++;
            }
        }
        if (directory != NULL) {
            (void)closedir(directory);
        }
    }
    qsort(known, count, NAME_MAX_BYTES, name_compare);
    return count;
}

static enum status shipped_unknown(const char *name, struct error *err)
{
    char(*known)[NAME_MAX_BYTES] = calloc(SHIPPED_MAX, sizeof *known);
    if (known == NULL) {
        return error_set(err, STATUS_FATAL, "out of memory");
    }
    char all[256] = "";
    char folded[NAME_MAX_BYTES];
    (void)snprintf(folded, sizeof folded, "%s", name);
    for (char *p = folded; *p != '\0'; p++) {
        *p = (char)(*p >= 'A' && *p <= 'Z' ? *p + ('a' - 'A') : *p);
    }
    struct nearest near = nearest_start(folded);
    size_t count = shipped_names(known);
    for (size_t i = 0; i < count; i++) {
        size_t used = strlen(all);
        nearest_offer(&near, known[i]);
        (void)snprintf(all + used, sizeof all - used, "%s%s", i > 0 ? ", " : "", known[i]);
    }
    enum status s = STATUS_INVALID;
    if (count == 0) {
        (void)error_set(err, s,
                        "no calendars are installed in %s; set REPORTCTL_CALENDAR_DIR, or write "
                        "the path of a file, with a slash in it or .csv or .ics at its end",
                        RS_DATA_DIR "/calendars");
    } else {
        (void)error_set(err, s,
                        "no calendar \"%.63s\" is shipped%s%s%s; there are %s. A file of your own "
                        "is written with a slash in it or .csv or .ics at its end",
                        name, near.best != NULL ? " (did you mean " : "",
                        near.best != NULL ? near.best : "", near.best != NULL ? "?)" : "", all);
    }
    free(known);
    return s;
}

static enum status shipped_read(const char *name, struct calendar_definition *d, struct error *err)
{
    char directory[CALENDAR_PATH_MAX];
    if (!name_is_valid(name)) {
        return shipped_unknown(name, err);
    }
    for (int n = 0; directory_get(n, directory); n++) {
        char path[CALENDAR_PATH_MAX + NAME_MAX_BYTES + 8];
        (void)snprintf(path, sizeof path, "%s/%s.csv", directory, name);
        if (directory[0] != '\0' && access(path, F_OK) == 0) {
            return path_read(path, d, err);
        }
    }
    return shipped_unknown(name, err);
}

enum status calendar_file_read(const char *path_or_name, struct calendar_definition *d,
                               struct error *err)
{
    return calendar_word_is_path(path_or_name) ? path_read(path_or_name, d, err)
                                               : shipped_read(path_or_name, d, err);
}

enum status calendar_file_load(const char *path_or_name, struct calendar **ret, struct error *err)
{
    struct calendar_definition d;
    calendar_definition_init(&d);
    enum status s = calendar_file_read(path_or_name, &d, err);
    if (s == STATUS_OK) {
        s = calendar_definition_compile(&d, ret, err);
    }
    calendar_definition_done(&d);
    return s;
}
